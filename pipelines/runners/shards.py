"""Writes shards from the plan: each shard is a range of keys, in the order of the keys.

As keys do not depend on the work, neither do the shards: any number of processes write the same.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.files import open_whole
from pipelines.pretraining_data.draws import key_ranges
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.description import ShardEntry, file_crc32c
from pipelines.records.names import index_path
from pipelines.records.record_maker import RecordMaker
from pipelines.records.serialise import Frames
from pipelines.records.shard_writer import write_shard as write_records
from pipelines.runners.corpus import Corpus
from pipelines.runners.plans import planned_between

_EXAMPLES_AT_ONCE = 1 << 18  # examples of the plan sorted at once: bounds the memory


@dataclasses.dataclass(frozen=True)
class ShardTask:
    """One shard to write.

    Attributes:
        corpus, recipe, facts: what it is made from.
        plan: the file of each batch of the plan and the number of its examples.
        number, of: which shard of how many.
        target: its file.
        note: file that says that it is finished.
    """

    corpus: Corpus
    recipe: Recipe
    facts: VocabularyFacts
    plan: list[tuple[str, int]]
    number: int
    of: int
    target: str
    note: str


def write_shard(task: ShardTask) -> ShardEntry:
    """Writes a shard, its index and a note that it is complete."""
    maker = RecordMaker(task.recipe, task.facts)
    ids = task.corpus.ids()
    first_key, end_key = key_ranges(0, 1 << 64, task.of)[task.number]
    expected = sum(examples for _, examples in task.plan) // task.of

    def blocks() -> Iterator[Frames]:
        for first, end in key_ranges(first_key, end_key, 1 + expected // _EXAMPLES_AT_ONCE):
            yield from maker.blocks(ids.array, planned_between(task.plan, first, end))
            ids.forget()  # pages of all over the corpus, which would add up to all of it

    entry = write_records(task.target, blocks(), maker.counts)
    with open_whole(task.note) as file:
        json.dump(entry.to_json(), file)
    return entry


def finished_shard(task: ShardTask) -> ShardEntry | None:
    """The entry of a shard that an earlier run finished and that is still what it was."""
    note, target = Path(task.note), Path(task.target)
    if not (note.exists() and target.exists() and Path(index_path(target)).exists()):
        return None
    entry = ShardEntry(**json.loads(note.read_text(encoding="utf-8")))
    if target.stat().st_size != entry.bytes or file_crc32c(target) != entry.crc32c:
        return None
    return entry
