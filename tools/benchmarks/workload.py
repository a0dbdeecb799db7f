"""What every contender of the model benchmark computes, and the least time it could take."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.planning import encoder_flops, made_up_examples, training_flops


@dataclasses.dataclass(frozen=True)
class Workload:
    """The same sizes, data and precision for every contender.

    Attributes:
        size: tiny, mini, small, medium, base or large.
        batch_size: sequences a step.
        length: tokens a sequence; every sequence is full, so that no contender gains by skipping
            padding.
        precision: "bfloat16" or "float32".
        steps: timed steps of one round.
        vocab_size: the number of tokens in the vocabulary.

    Example:
        >>> Workload(size="tiny", batch_size=2).features()["masked_lm_positions"].shape
        (2, 19)
    """

    size: str = "base"
    batch_size: int = 16
    length: int = 128
    precision: str = "bfloat16"
    steps: int = 4
    vocab_size: int = 30522

    @property
    def predictions(self) -> int:
        """Masked positions a sequence."""
        return max(1, round(self.length * 0.15))

    @property
    def config(self) -> BertConfig:
        """The model's configuration."""
        return named_config(self.size, self.vocab_size)

    def features(self) -> dict[str, np.ndarray]:
        """Random pre-training features of one batch."""
        return made_up_examples(self.batch_size, self.length, self.predictions, self.vocab_size)

    def flops(self, training: bool) -> float:
        """Floating-point operations of all matrix products of one step."""
        if training:
            return self.batch_size * training_flops(self.config, self.length, self.predictions)
        return self.batch_size * encoder_flops(self.config, self.length)


def matrix_products(workload: Workload, training: bool) -> Callable[[], Any]:
    """Computes the matrix products of one step and nothing else (TensorFlow; oneDNN on CPUs).

    Args:
        workload: the sizes.
        training: whether to compute the backward pass and the masked-LM head, too.
    """
    import tensorflow as tf

    dtype = tf.bfloat16 if workload.precision == "bfloat16" else tf.float32
    config, tokens = workload.config, workload.batch_size * workload.length
    hidden, wide, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads

    def operands(inputs: int, width: int, outputs: int) -> list[Any]:
        """Inputs, kernel and upstream gradient of one dense layer."""
        shapes = (inputs, width), (width, outputs), (inputs, outputs)
        return [tf.random.normal(shape, dtype=dtype) for shape in shapes]

    dense_layers = [
        operands(tokens, hidden, 3 * hidden),  # query, key and value
        operands(tokens, hidden, hidden),
        operands(tokens, hidden, wide),
        operands(tokens, wide, hidden),
    ]
    per_head = (workload.batch_size * heads, workload.length, hidden // heads)
    queries = tf.random.normal(per_head, dtype=dtype)
    masked = workload.batch_size * workload.predictions
    masked_lm_head = operands(masked, hidden, workload.vocab_size)

    def multiply(parts: list[Any]) -> list[Any]:
        inputs, kernel, upstream = parts
        forward = [tf.matmul(inputs, kernel)]
        if not training:
            return forward
        back = tf.matmul(upstream, kernel, transpose_b=True)
        return [*forward, back, tf.matmul(inputs, upstream, transpose_a=True)]

    @tf.function
    def compute() -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(config.num_hidden_layers):
            results = [result for parts in dense_layers for result in multiply(parts)]
            for _ in range(3 if training else 1):  # the backward pass has twice as many
                scores = tf.matmul(queries, queries, transpose_b=True)
                results += [scores, tf.matmul(scores, queries)]
            total += tf.add_n([_corner(result) for result in results])
        if training:
            for result in multiply(masked_lm_head):
                total += _corner(result)
        return total

    return lambda: float(compute())


def _corner(result: Any) -> Any:
    """One number of a product: asking for it keeps the product from being optimized away."""
    import tensorflow as tf

    return tf.cast(tf.reshape(result, [-1])[0], tf.float32)
