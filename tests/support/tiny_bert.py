"""Tiny models, made in code, for tests."""

from pathlib import Path

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GOLDEN = Path(__file__).parent.parent / "golden"
TINY = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=32,
)
VOCABULARY = Vocabulary(
    ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(24))]
)


def golden_config(**changes):
    """The configuration of the golden checkpoint."""
    path = GOLDEN / "pretrain" / "bert_config.json"
    return BertConfig.from_google_file(path).replace(**changes)


def golden_inputs():
    """The features of the 16 golden records, int32 and float32."""
    with np.load(GOLDEN / "forward" / "inputs.npz") as arrays:
        return dict(arrays)


def features(batch=2, length=8, predictions=3, config=TINY, seed=0):
    """Random features of a pre-training batch; the last two positions of row 0 are padding."""
    draw = np.random.default_rng(seed)
    mask = np.ones([batch, length], np.int32)
    mask[0, -2:] = 0
    return {
        "input_ids": draw.integers(0, config.vocab_size, [batch, length], np.int32) * mask,
        "input_mask": mask,
        "segment_ids": draw.integers(0, 2, [batch, length], np.int32) * mask,
        "masked_lm_positions": draw.integers(0, length - 2, [batch, predictions], np.int32),
        "masked_lm_ids": draw.integers(0, config.vocab_size, [batch, predictions], np.int32),
        "masked_lm_weights": np.ones([batch, predictions], np.float32),
        "next_sentence_labels": draw.integers(0, 2, [batch, 1], np.int32),
    }


def scatter_weights(model, seed=0, deviation=0.2):
    """Moves every weight off its start, so that no bias is 0 and no gamma is 1."""
    draw = np.random.default_rng(seed)
    for variable in model.weights:
        start = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(start + deviation * draw.standard_normal(variable.shape))
    return model


def one_matrix(kernel):
    """A layer's kernel, with what an adapter adds to it."""
    return (
        kernel.kernel + kernel.scale * (kernel.a @ kernel.b)
        if isinstance(kernel, tuple)
        else kernel
    )
