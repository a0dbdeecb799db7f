"""Writes shards from the plan: each shard is a range of keys, in the order of the keys.

As keys do not depend on the work, neither do the shards: any number of processes write the same.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from keras_bert_impl.files import open_whole, remove
from keras_bert_impl.json_files import read_sealed, sealed
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
    remove(Path(task.note))  # a damaged folder may have anything in its place
    with open_whole(task.note) as file:
        index = file_crc32c(Path(index_path(task.target)))
        file.write(sealed({"entry": entry.to_json(), "index_crc32c": index}))
    return entry


class _Finished(TypedDict):
    entry: ShardEntry
    index_crc32c: str


def finished_shard(task: ShardTask) -> ShardEntry | None:
    """The entry of a shard that an earlier run finished and that is still what it was."""
    target = Path(task.target)
    index, noted = Path(index_path(target)), read_sealed(task.note, _Finished)
    if noted is None or not (target.is_file() and index.is_file()):
        return None
    entry = noted["entry"]
    # The description has its size as well: a sealed note may be another shard's.
    same = target.stat().st_size == entry.bytes and entry.file == target.name
    sound = same and file_crc32c(target) == entry.crc32c
    return entry if sound and file_crc32c(index) == noted["index_crc32c"] else None
