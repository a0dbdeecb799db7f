"""What the page's scripts read: attention and rows of tokens as JSON values."""

import base64
from typing import Any

import numpy as np

from keras_bert_impl.serving.attention import TextAttention

_SCALE = 65535


def written_attention(attention: TextAttention) -> dict[str, Any]:
    """The attention of a text as JSON values, in shares of 1/65535.

    Returns:
        `tokens`, `segments`, `layers`, `heads`, and `probabilities`: base64 of uint16,
        little-endian, [layers, heads, from, to].

    Example:
        >>> halves = np.full([1, 1, 2, 2], 0.5, np.float32)
        >>> written_attention(TextAttention(("a", "b"), (0, 0), halves))["probabilities"]
        'AIAAgACAAIA='
    """
    layers, heads = attention.probabilities.shape[:2]
    shares = np.rint(attention.probabilities * _SCALE).astype("<u2")
    return {
        "tokens": list(attention.tokens),
        "segments": list(attention.segments),
        "layers": layers,
        "heads": heads,
        "probabilities": base64.b64encode(shares.tobytes()).decode("ascii"),
    }
