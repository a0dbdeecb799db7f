"""What every contender of a benchmark computes."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Settings:
    """One workload: the same sizes, data and precision for every contender.

    Attributes:
        size: tiny, mini, small, medium, base or large.
        batch_size: sequences a step.
        length: pieces a sequence.
        predictions: masked positions a sequence.
        precision: "bfloat16" or "float32".
        steps: timed steps of one round.
        vocab_size: the number of pieces.
    """

    size: str = "base"
    batch_size: int = 16
    length: int = 128
    predictions: int = 20
    precision: str = "bfloat16"
    steps: int = 4
    vocab_size: int = 30522

    def features(self) -> dict[str, np.ndarray]:
        """Random features; every sequence is full, so that nobody gains by skipping padding."""
        draw = np.random.default_rng(0)
        shape, places = (self.batch_size, self.length), (self.batch_size, self.predictions)
        order = draw.permuted(np.tile(np.arange(self.length), (self.batch_size, 1)), axis=1)
        half = np.arange(self.length) >= self.length // 2
        return {
            "input_ids": draw.integers(5, self.vocab_size, shape, np.int32),
            "input_mask": np.ones(shape, np.int32),
            "segment_ids": np.tile(half.astype(np.int32), (self.batch_size, 1)),
            "masked_lm_positions": np.sort(order[:, : self.predictions], axis=1).astype(np.int32),
            "masked_lm_ids": draw.integers(5, self.vocab_size, places, np.int32),
            "masked_lm_weights": np.ones(places, np.float32),
            "next_sentence_labels": draw.integers(0, 2, (self.batch_size, 1), np.int32),
        }

    def sizes(self) -> dict[str, int]:
        """Blocks, width, heads and feed-forward width of the model."""
        from keras_bert_impl.config import named_config

        config = named_config(self.size, self.vocab_size)
        return {
            "blocks": config.num_hidden_layers,
            "hidden": config.hidden_size,
            "heads": config.num_attention_heads,
            "intermediate": config.intermediate_size,
        }

    def products(self, training: bool) -> float:
        """Floating-point operations of all matrix products of one step.

        A training step is one forward pass and twice as much backward; the heads count in training
        only.
        """
        sizes = self.sizes()
        h, wide = sizes["hidden"], sizes["intermediate"]
        rows = self.batch_size * self.length
        block = 2 * rows * (4 * h * h + 2 * h * wide) + 4 * rows * self.length * h
        forward = sizes["blocks"] * block
        if not training:
            return float(forward)
        masked = self.batch_size * self.predictions
        return 3.0 * (forward + 2 * masked * (h * h + h * self.vocab_size))

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return dataclasses.asdict(self)
