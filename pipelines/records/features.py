"""The features of a pre-training example, and serialised examples as arrays."""

import dataclasses
from collections.abc import Callable, Sequence

from numpy.typing import NDArray

from keras_bert_impl.errors import UserError


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of an example, of fixed size.

    Attributes:
        name: its key in `tf.train.Example`.
        size: how many numbers it has.
        is_float: a float list; otherwise an int64 list.
        limit: of integers, one more than the largest that can occur; a reader does not need it.
    """

    name: str
    size: int
    is_float: bool = False
    limit: int = 0


def pair_features(length: int, predictions: int | None, vocab_size: int = 0) -> tuple[Feature, ...]:
    """The features of pre-training examples, by the reference's names and in its order.

    Example:
        >>> [feature.name for feature in pair_features(128, None)]
        ['input_ids', 'input_mask', 'segment_ids', 'next_sentence_labels']
    """
    masked = (
        ()
        if predictions is None
        else (
            Feature("masked_lm_positions", predictions, limit=length),
            Feature("masked_lm_ids", predictions, limit=vocab_size),
            Feature("masked_lm_weights", predictions, is_float=True),
        )
    )
    return (
        Feature("input_ids", length, limit=vocab_size),
        Feature("input_mask", length, limit=2),
        Feature("segment_ids", length, limit=2),
        *masked,
        Feature("next_sentence_labels", 1, limit=2),
    )


def example_parser(
    features: Sequence[Feature],
) -> Callable[[list[bytes]], dict[str, NDArray]]:
    """Makes a function that parses serialised examples, a batch at a time.

    Returns:
        A function from serialised `tf.train.Example`s to arrays [examples, size], int32 or float32.
    """
    import tensorflow as tf

    spec = {
        feature.name: tf.io.FixedLenFeature(
            [feature.size], tf.float32 if feature.is_float else tf.int64
        )
        for feature in features
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def parse(contents: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.device("/cpu:0"):
            parsed = tf.io.parse_example(contents, spec)
            return {
                name: tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.int32)
                for name, tensor in parsed.items()
            }

    return lambda contents: {name: each.numpy() for name, each in parse(contents).items()}


def feature_sizes(content: bytes, where: str) -> dict[str, int]:
    """How many numbers each feature of one serialised example holds."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        example = tf.train.Example.FromString(content)
    except DecodeError as error:
        raise UserError(
            f"{where}: is no tf.train.Example; name shards of create_pretraining_data."
        ) from error
    return {
        name: len(feature.float_list.value or feature.int64_list.value)
        for name, feature in example.features.feature.items()
    }
