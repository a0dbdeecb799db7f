"""How large a model is, what one example costs, and examples of random ids to time it with."""

import numpy as np

from keras_bert_impl.config import BertConfig


def parameters_by_part(config: BertConfig) -> dict[str, int]:
    """Counts a pre-training model's numbers by part.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> parts = parameters_by_part(named_config("base", 30522))
        >>> parts["embeddings"] + parts["layers"] + parts["pooler"]
        109482240
    """
    hidden, wide, tokens = config.hidden_size, config.intermediate_size, config.vocab_size
    rows = tokens + config.type_vocab_size + config.max_position_embeddings
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * wide + wide + wide * hidden + hidden
    return {
        "embeddings": rows * hidden + 2 * hidden,
        "layers": config.num_hidden_layers * (attention + feed_forward + 4 * hidden),
        "pooler": hidden * hidden + hidden,
        "masked_lm_head": hidden * hidden + 3 * hidden + tokens,
        "next_sentence_head": 2 * hidden + 2,
    }


def count_parameters(config: BertConfig) -> int:
    """Counts all of a pre-training model's numbers.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> count_parameters(named_config("tiny", 30522))
        4433468
    """
    return sum(parameters_by_part(config).values())


def encoder_flops(config: BertConfig, length: int) -> int:
    """Counts the floating-point operations of the encoder's matrix products for one example.

    A product of [n, k] and [k, m] counts 2 n k m.

    Args:
        config: the model.
        length: tokens of the example, padding included.
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    layer = 2 * length * (4 * hidden * hidden + 2 * hidden * wide) + 4 * length * length * hidden
    return config.num_hidden_layers * layer


def training_flops(config: BertConfig, length: int, predictions: int) -> int:
    """Counts the matrix products' floating-point operations of one example's training step.

    The backward pass counts twice the forward pass; the heads of pre-training are included.

    Args:
        config: the model.
        length: tokens of the example, padding included.
        predictions: masked positions of the example.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> round(training_flops(named_config("base", 30522), 128, 20) / 1e9, 1)
        69.9
    """
    hidden = config.hidden_size
    heads = 2 * predictions * (hidden * hidden + hidden * config.vocab_size)
    heads += 2 * hidden * hidden + 4 * hidden
    return 3 * (encoder_flops(config, length) + heads)


def made_up_examples(
    rows: int, length: int, predictions: int, vocab_size: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Makes full-length examples.

    Args:
        rows: how many.
        length: tokens of each.
        predictions: masked positions of each.
        vocab_size: ids are below it.
        seed: fixes the draws.

    Returns:
        The features of pre-training, [rows, ...].
    """
    draws = np.random.default_rng(seed)
    tokens = draws.integers(5, vocab_size, [rows, length], np.int32)
    return {
        "input_ids": tokens,
        "input_mask": np.ones([rows, length], np.int32),
        "segment_ids": np.repeat(np.arange(length)[None] >= length // 2, rows, 0).astype(np.int32),
        "masked_lm_positions": draws.integers(1, length, [rows, predictions], np.int32),
        "masked_lm_ids": draws.integers(5, vocab_size, [rows, predictions], np.int32),
        "masked_lm_weights": np.ones([rows, predictions], np.float32),
        "next_sentence_labels": draws.integers(0, 2, [rows, 1], np.int32),
    }
