"""How large a model is and how much one example costs."""

from keras_bert_impl.config import BertConfig


def parameters_by_part(config: BertConfig) -> dict[str, int]:
    """Counts a pre-training model's numbers by part.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> parts = parameters_by_part(named_config("base", 30522))
        >>> parts["embeddings"] + parts["layers"] + parts["pooler"]
        109482240
    """
    hidden, wide, pieces = config.hidden_size, config.intermediate_size, config.vocab_size
    rows = pieces + config.type_vocab_size + config.max_position_embeddings
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * wide + wide + wide * hidden + hidden
    return {
        "embeddings": rows * hidden + 2 * hidden,
        "layers": config.num_hidden_layers * (attention + feed_forward + 4 * hidden),
        "pooler": hidden * hidden + hidden,
        "masked_lm_head": hidden * hidden + 3 * hidden + pieces,
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


def training_flops(config: BertConfig, length: int, predictions: int) -> int:
    """Counts the matrix products' floating-point operations of one example's training step.

    A product of [n, k] and [k, m] counts 2 n k m; the backward pass counts twice the forward pass.

    Args:
        config: the model.
        length: pieces of the example, padding included.
        predictions: masked places of the example.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> round(training_flops(named_config("base", 30522), 128, 20) / 1e9, 1)
        69.9
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    layer = 2 * length * (4 * hidden * hidden + 2 * hidden * wide) + 4 * length * length * hidden
    heads = 2 * predictions * (hidden * hidden + hidden * config.vocab_size)
    heads += 2 * hidden * hidden + 4 * hidden
    return 3 * (config.num_hidden_layers * layer + heads)
