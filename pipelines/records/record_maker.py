"""Makes records of planned examples, a block at a time, and writes shards of them.

Every shard is written here, wherever its files are created, so that each has an index and a
checksum and is read in the same way.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.files import open_whole
from pipelines.pretraining_data import pairs
from pipelines.pretraining_data.masking import Masked, mask_examples
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.description import ShardEntry, base_name, index_path
from pipelines.records.serialise import BlockSerialiser, Frames, pair_features

BLOCK_EXAMPLES = 2048
# Opens a file for writing bytes that appears under its name when the block ends without an error.
CreateFile = Callable[[str], contextlib.AbstractContextManager[IO[bytes]]]


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

    def blocks(self, tokens: pairs.Tokens, plan: pairs.PlannedExamples) -> Iterator[Frames]:
        """The framed records of planned examples, a block at a time."""
        for start in range(0, len(plan), BLOCK_EXAMPLES):
            yield self._records(tokens, plan.take(slice(start, start + BLOCK_EXAMPLES)))

    def _records(self, tokens: pairs.Tokens, plan: pairs.PlannedExamples) -> Frames:
        recipe, special = self.recipe, self.facts.special
        rows = pairs.gather_examples(
            tokens, plan, recipe.max_seq_length, special, pairs=recipe.do_next_sentence
        )
        features: dict[str, NDArray] = {}
        if recipe.masking == "static":
            masked = mask_examples(rows, plan.keys, self._rules)
            features = masked_features(masked)
            self.counts["masked"] += int(masked.counts.sum())
        features |= example_features(rows, plan.is_random)
        self.counts["examples"] += len(plan)
        self.counts["random_next"] += int(plan.is_random.sum())
        self.counts["tokens"] += int(rows.lengths().sum())
        return self._serialiser.frames(features)


def example_features(
    examples: pairs.PaddedExamples, is_random: NDArray[np.bool_]
) -> dict[str, NDArray]:
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


def write_shard(
    path: str, blocks: Iterable[Frames], counts: Mapping[str, int], create: CreateFile | None = None
) -> ShardEntry:
    """Writes a shard and its index."""
    checksum = google_crc32c.Checksum()
    sizes: list[NDArray[np.int64]] = []
    create = create or partial(open_whole, mode="wb")
    with create(path) as file:
        for data, block_sizes in blocks:
            file.write(data.data)
            checksum.update(data)
            sizes.append(block_sizes)
    all_sizes = np.concatenate([np.zeros(0, np.int64), *sizes])
    with create(index_path(path)) as file:
        file.write(all_sizes.astype("<u4").tobytes())
    return ShardEntry(
        file=base_name(path),
        bytes=int(all_sizes.sum()),
        crc32c=checksum.digest().hex(),
        counts=dict(counts),
    )
