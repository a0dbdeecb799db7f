"""Makes records of planned examples: gathers, masks and serialises a block at a time."""

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Words
from pipelines.pretraining_data.examples import PaddedExamples, Spans, Tokens, gather_examples
from pipelines.pretraining_data.masking import Masked, mask_examples
from pipelines.pretraining_data.pairs import PlannedExamples
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.features import pair_features
from pipelines.records.serialise import BlockSerialiser, Frames

BLOCK_EXAMPLES = 2048


@dataclasses.dataclass
class RecordMaker:
    """Makes the records of a recipe."""

    recipe: Recipe
    facts: VocabularyFacts

    def __post_init__(self) -> None:
        recipe = self.recipe
        self.counts: Counter[str] = Counter()
        self._rules = recipe.masking_rules(self.facts)
        self._serialiser = BlockSerialiser(
            pair_features(recipe.max_seq_length, recipe.stored_predictions, self.facts.size)
        )

    def blocks(self, tokens: Tokens, plan: PlannedExamples) -> Iterator[Frames]:
        """The framed records of planned examples, a block at a time.

        Args:
            tokens: unsigned [tokens], the array in which the examples' tokens lie.
        """
        for start in range(0, len(plan), BLOCK_EXAMPLES):
            part = slice(start, start + BLOCK_EXAMPLES)
            yield self.records(tokens, plan.spans(part), plan.keys[part], plan.is_random[part])

    def records(
        self, tokens: Tokens, spans: Spans, keys: Words, is_random: NDArray[np.bool_]
    ) -> Frames:
        """The framed records of a block and the bytes of each; counts what they hold.

        Args:
            tokens: unsigned [tokens], the array in which the spans lie.
            keys: uint64 [examples].
            is_random: bool [examples], the next-sentence labels.
        """
        recipe = self.recipe
        rows = gather_examples(
            tokens, spans, recipe.max_seq_length, self.facts.special, pairs=recipe.do_next_sentence
        )
        features: dict[str, NDArray] = {}
        if recipe.masking == "static":
            masked = mask_examples(rows, keys, self._rules)
            features = masked_features(masked)
            self.counts["masked"] += int(masked.counts.sum())
        features |= example_features(rows, is_random)
        self.counts["examples"] += len(keys)
        self.counts["random_next"] += int(is_random.sum())
        self.counts["tokens"] += int(rows.lengths().sum())
        return self._serialiser.frames(features)


def example_features(examples: PaddedExamples, is_random: NDArray[np.bool_]) -> dict[str, NDArray]:
    """The features of padded examples by the reference's names; arrays [examples, size]."""
    column = np.arange(examples.ids.shape[1])
    inside = column < examples.lengths()[:, None]
    return {
        "input_ids": examples.ids,
        "input_mask": inside.view(np.uint8),
        "segment_ids": (inside & (column > (examples.len_a + 1)[:, None])).view(np.uint8),
        "next_sentence_labels": is_random.view(np.uint8)[:, None],
    }


def masked_features(masked: Masked) -> dict[str, NDArray]:
    """The features of masked positions by the reference's names; arrays [examples, predictions]."""
    slots = np.arange(masked.positions.shape[1])
    return {
        "masked_lm_positions": masked.positions,
        "masked_lm_ids": masked.ids,
        "masked_lm_weights": (slots < masked.counts[:, None]).astype(np.float32),
    }
