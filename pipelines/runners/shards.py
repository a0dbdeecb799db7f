"""The plan of all examples on disk, and the shards that are written from it.

The plan says which tokens of the corpus each example takes. It is what is shuffled, because it is
thirty times smaller than the records. It has one file for each batch of documents, whose examples
are sorted by key, so that the examples of a shard, a range of keys, are a slice of each file. As
keys do not depend on the work, neither do the shards: any number of processes write the same.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text, read_json_object
from pipelines.pretraining_data.chunks import DocumentBatch, plan_chunks
from pipelines.pretraining_data.draws import key_ranges, seed_word
from pipelines.pretraining_data.pairs import PlannedExamples, find_partners, truncate
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.description import ShardEntry, file_crc32c, index_path
from pipelines.records.record_maker import RecordMaker
from pipelines.records.record_maker import write_shard as write_records
from pipelines.records.serialise import Frames
from pipelines.runners.corpus import Corpus

_COLUMNS = {
    "keys": "<u8",
    "start_a": "<i8",
    "start_b": "<i8",
    "len_a": "<u2",
    "len_b": "<u2",
    "is_random": "|b1",
}
_SENTENCES_AT_ONCE = 1_000_000  # sentences times copies planned at once: bounds memory


@dataclasses.dataclass(frozen=True)
class PlanTask:
    """Neighbouring documents to plan in some copies."""

    corpus: Corpus
    recipe: Recipe
    documents: range
    copies: range
    target: str


def plan_tasks(corpus: Corpus, recipe: Recipe, folder: Path) -> list[PlanTask]:
    """Cuts the work into batches of documents and copies that bound the memory."""
    bounds = corpus.document_bounds().array
    copies = min(recipe.dupe_factor, 10)
    tasks: list[PlanTask] = []
    document = 0
    while document < corpus.documents:
        limit = bounds[document] + _SENTENCES_AT_ONCE // copies
        end = max(document + 1, int(np.searchsorted(bounds, limit, side="right")) - 1)
        for copy in range(0, recipe.dupe_factor, copies):
            some = range(copy, min(copy + copies, recipe.dupe_factor))
            target = str(folder / f"plan-{len(tasks):06d}.rows")
            tasks.append(PlanTask(corpus, recipe, range(document, end), some, target))
        document = end
    return tasks


def plan_batch(task: PlanTask) -> int:
    """Plans a batch into its file; gives back the number of examples."""
    corpus, recipe = task.corpus, task.recipe
    offsets, bounds = corpus.sentence_offsets(), corpus.document_bounds()
    documents = bounds.array[task.documents.start : task.documents.stop + 1]
    sentences = offsets.array[documents[0] : documents[-1] + 1]
    batch = DocumentBatch(
        sentence_offsets=sentences - sentences[0],
        document_bounds=documents - documents[0],
        first_sentence=int(documents[0]),
        first_document=task.documents.start,
        first_token=int(sentences[0]),
    )
    seed = seed_word(recipe.random_seed)
    chunks = plan_chunks(batch, recipe.chunk_rules(), seed, task.copies, corpus.sentences)
    start_b, len_b = find_partners(chunks, offsets.array, bounds.array, recipe.same_document_tries)
    rows = truncate(chunks, start_b, len_b, recipe.token_budget).ordered()
    with open_whole(task.target, "wb") as file:
        for name, column in rows.columns().items():
            file.write(np.ascontiguousarray(column, _COLUMNS[name]).tobytes())
    return len(rows)


def _read_rows(path: str, examples: int, first_key: int, end_key: int) -> PlannedExamples:
    """The examples of one batch whose keys are in [first_key, end_key)."""
    keys = np.memmap(path, "<u8", "r", shape=(examples,))
    first, end = (
        examples if key >= 1 << 64 else int(np.searchsorted(keys, np.uint64(key)))
        for key in (first_key, end_key)
    )
    columns, position = {}, 0
    for name, kind in _COLUMNS.items():
        size = np.dtype(kind).itemsize
        columns[name] = np.fromfile(path, kind, end - first, offset=position + first * size)
        position += examples * size
    return PlannedExamples(**columns)


def planned_between(plan: list[tuple[str, int]], first_key: int, end_key: int) -> PlannedExamples:
    """All examples whose keys are in a range, in the order of their keys."""
    parts = [_read_rows(path, examples, first_key, end_key) for path, examples in plan if examples]
    merged = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
    return PlannedExamples(**merged).ordered()


_EXAMPLES_AT_ONCE = 1 << 18  # examples of the plan sorted at once: bounds the memory


@dataclasses.dataclass(frozen=True)
class ShardTask:
    """One shard to write."""

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
        file.write(json_text(dataclasses.asdict(entry)))
    return entry


def finished_shard(task: ShardTask) -> ShardEntry | None:
    """The entry of a shard that an earlier run finished and that is still what it was."""
    target, note = Path(task.target), Path(task.note)
    if not (note.is_file() and target.is_file() and Path(index_path(target)).is_file()):
        return None
    entry = ShardEntry(**read_json_object(note))
    same = target.stat().st_size == entry.bytes and file_crc32c(target) == entry.crc32c
    return entry if same else None
