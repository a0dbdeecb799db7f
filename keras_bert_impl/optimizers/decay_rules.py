"""Which variables weight decay applies to, and how layer-wise learning rates fall."""

import re
from collections.abc import Sequence

_NOT_DECAYED = re.compile(r"layer_?norm|bias|(^|/)(gamma|beta)$", re.IGNORECASE)
_LAYER_NUMBER = re.compile(r"(?:^|/)(?:encoder_)?(?:layer|block)_(\d+)(?:/|$)")
_EMBEDDINGS = re.compile(r"(?:^|/)embeddings?(?:/|_|$)")


def is_decayed(path: str) -> bool:
    """Says whether the variable of this path is decayed: not biases, not LayerNorm.

    Example:
        >>> is_decayed("encoder/layer_0/attention/query/kernel")
        True
        >>> is_decayed("encoder/layer_0/attention/query/bias")
        False
        >>> is_decayed("encoder/embeddings/layer_norm/gamma")
        False
    """
    return _NOT_DECAYED.search(path) is None


def layer_factors(paths: Sequence[str], layer_decay: float) -> list[float]:
    """Gives each variable's factor on the learning rate.

    The head has factor 1, the last encoder layer `layer_decay`, the one below its square, and so
    on down to the embeddings.

    Args:
        paths: the variables' paths.
        layer_decay: the factor from one layer to the next one below; 1 switches it off.

    Example:
        >>> layer_factors(["embeddings/word", "layer_0/kernel", "layer_1/kernel", "head"], 0.5)
        [0.125, 0.25, 0.5, 1.0]
    """
    numbers = [_layer_number(path) for path in paths]
    top = max((number for number in numbers if number is not None), default=-1) + 1
    return [1.0 if number is None else layer_decay ** (top - number) for number in numbers]


def _layer_number(path: str) -> int | None:
    """The encoder layer a variable belongs to, -1 for the embeddings, None for what is above."""
    layer = _LAYER_NUMBER.search(path)
    if layer:
        return int(layer.group(1))
    return -1 if _EMBEDDINGS.search(path) else None
