"""Rows on disk: TFRecord shards of one split of a task, which say themselves what they are.

They are made once and used again while nothing that they come from has changed. A folder is named
by what its rows come from, so that several runs can share the folder that all rows stand in. Making
and reading take memory for one block of rows and for the index (8 to 16 bytes a row).
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_input, remove, whole_folder
from keras_bert_impl.json_files import bounded_loads, read_sealed, sealed, typed
from keras_bert_impl.locks import in_turn
from keras_bert_impl.tokenization.unknown_words import WordCount
from pipelines.records.description import ShardEntry
from pipelines.records.names import index_path
from pipelines.records.reader import RecordReader
from pipelines.records.rows import (
    Numbers,
    RowFeature,
    Rows,
    features_of,
    rows_parser,
    serialise_rows,
)
from pipelines.records.serialise import Frames
from pipelines.records.shard_writer import write_shards

_LOGGER = logging.getLogger(__name__)

FORMAT = 3
DESCRIPTION = "rows.json"
_INDEX = "rows.index"  # uint32 [rows, 2]: the number of the example, the tokens of the row
_LOCK = ".rows.lock"
_UNFINISHED = (".rows*.incomplete", ".rows*.replaced")
_SHARD_BYTES = 256 << 20
_READ_AT_ONCE = 2048
_BYTES_AT_ONCE = 1 << 20


@dataclasses.dataclass(frozen=True)
class RowDescription:
    """The description of a set of rows.

    Attributes:
        made_from: everything that the rows follow from: files, tokenizer, task and lengths.
        features: what a record holds.
        choices: how many choices each row has, or None.
        counts: examples, rows, tokens, and the longest row's tokens; words and unknown_words,
            where they were counted.
        shards: the shards in their order.
        indexes: the CRC-32C of each index file, hexadecimal.
    """

    made_from: Mapping[str, Any]
    features: tuple[RowFeature, ...]
    choices: int | None
    counts: Mapping[str, int]
    shards: tuple[ShardEntry, ...]
    indexes: Mapping[str, str]

    def write(self, path: Path) -> None:
        """Writes the description, as JSON."""
        path.write_text(sealed({"format": FORMAT, **dataclasses.asdict(self)}), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "RowDescription | None":
        """Reads a description; None where there is none of this format, or a damaged one."""
        values = read_sealed(path, dict[str, Any])
        if values is None or values.pop("format", None) != FORMAT:
            return None
        try:
            found: RowDescription = typed(values, cls, str(path))
        except UserError:
            return None
        return found if {"examples", "rows", "tokens", "longest"} <= found.counts.keys() else None


class RowSet:
    """The rows of one split, read by their numbers."""

    def __init__(self, folder: Path, description: RowDescription) -> None:
        self.folder, self.description = folder, description
        _check_is_there(folder, description)
        self._reader = RecordReader([folder / shard.file for shard in description.shards])
        index = np.fromfile(folder / _INDEX, "<u4").reshape(-1, 2)
        self.examples: NDArray[np.uint32] = index[:, 0]
        self.lengths: NDArray[np.uint32] = index[:, 1]
        self._parse = rows_parser(description.features, description.choices)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def num_examples(self) -> int:
        """How many examples the rows are of."""
        return self.description.counts["examples"]

    @property
    def word_count(self) -> WordCount | None:
        """The words of the rows; None where they were not counted."""
        counts = self.description.counts
        return WordCount(counts["words"], counts["unknown_words"]) if "words" in counts else None

    @property
    def identity(self) -> str:
        """Tells one set from another, for a message and for a run that is resumed."""
        checksums = "".join(shard.crc32c for shard in self.description.shards)
        digest = google_crc32c.value(checksums.encode())
        return f"{self.num_examples} examples, {len(self)} rows, crc32c {digest:08x}"

    def read(self, numbers: Numbers) -> Rows:
        """Reads rows in the order of their numbers: int64 [n]."""
        lengths, tokens, values = self._parse(self._reader.read(numbers))
        examples = self.examples[numbers].astype(np.int64)
        return Rows(examples, lengths, tokens, values, self.description.choices)

    def blocks(self, rows: int = _READ_AT_ONCE) -> Iterator[tuple[int, Rows]]:
        """Gives all rows, about so many at a time, with the number of the first one.

        All rows of an example are in one block.
        """
        start = 0
        while start < len(self):
            stop = min(start + rows, len(self))
            while stop < len(self) and self.examples[stop] == self.examples[stop - 1]:
                stop += 1
            yield start, self.read(np.arange(start, stop))
            start = stop


def make_rows(
    folder: Path,
    made_from: Mapping[str, Any],
    blocks: Iterable[Rows],
    count_words: Callable[[Rows], WordCount] | None = None,
) -> RowSet:
    """Writes rows into a folder, or opens what an earlier call wrote from the same.

    The folder appears when it is complete; a process that is killed leaves nothing that looks so.
    Processes that make rows beside one another do so in turn: those that need the same find them.

    Args:
        folder: where to, a name that begins with "rows"; it gets a hash of `made_from`. Rows that
            were damaged are replaced.
        blocks: the rows of the examples in their order; each block counts its examples from 0. It
            is asked for nothing where the rows are there already.
    """
    content = json.dumps(made_from, sort_keys=True)
    made_from = bounded_loads(content)  # as it comes out of a file
    name = f"{folder.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    with _alone_in(make_folder(folder.parent)) as parent:
        folder = parent / name
        found = RowDescription.read(folder / DESCRIPTION)
        if found and found.made_from == made_from and _is_whole(folder, found):
            return RowSet(folder, found)
        if folder.exists():
            _LOGGER.warning("%s: these rows were damaged; they are made again.", folder)
        with whole_folder(folder) as aside:
            description = _write(aside, made_from, blocks, count_words)
            description.write(aside / DESCRIPTION)
        return RowSet(folder, description)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[Path]:
    """Inside the block no other process makes rows in a folder; what killed ones left is gone."""
    with in_turn(
        folder / _LOCK, lambda: _LOGGER.info("%s: waiting for another run's rows", folder)
    ) as alone:
        # Whoever began these, on this machine or another one, is not at work any more.
        for ending in _UNFINISHED if alone else ():
            for left in folder.glob(ending):
                remove(left)
        yield folder


def _check_is_there(folder: Path, description: RowDescription) -> None:
    """Compares what lies in a folder with its description: the files' sizes, not their bytes."""
    if RowDescription.read(folder / DESCRIPTION) != description:
        raise UserError(f"{folder}: other rows than these lie there; run again to make them.")
    sizes = {shard.file: shard.bytes for shard in description.shards}
    sizes[_INDEX] = 8 * description.counts["rows"]
    for name, size in sizes.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            raise UserError(f"{file}: is missing or not of {size} bytes; delete {folder}.")


def _is_whole(folder: Path, description: RowDescription) -> bool:
    """Whether all files have the bytes that they were written with.

    All of them are read, which takes seconds where making them takes minutes.
    """
    checksums = {shard.file: shard.crc32c for shard in description.shards}
    checksums |= description.indexes
    try:
        return all(_crc32c(folder / name) == value for name, value in checksums.items())
    except (OSError, UserError):
        return False


def _crc32c(file: Path) -> str:
    checksum = google_crc32c.Checksum()
    with open_input(file, may_be_empty=True) as content:  # a device has no end
        while some := content.read(_BYTES_AT_ONCE):
            checksum.update(some)
    return checksum.digest().hex()


def _write(
    folder: Path,
    made_from: Mapping[str, Any],
    blocks: Iterable[Rows],
    count_words: Callable[[Rows], WordCount] | None,
) -> RowDescription:
    features: tuple[RowFeature, ...] = ()
    choices: int | None = None
    counts = {"examples": 0, "rows": 0, "tokens": 0, "longest": 0}
    words = WordCount()

    def records(index: IO[bytes]) -> Iterator[Frames]:
        nonlocal features, choices, words
        for block in filter(len, blocks):
            found = features_of(block)
            if counts["rows"] and (found, block.choices) != (features, choices):
                raise ValueError(f"a block holds {found}, the blocks before it {features}")
            features, choices = found, block.choices
            numbers = block.examples + counts["examples"]
            index.write(np.stack([numbers, block.lengths], axis=1).astype("<u4").tobytes())
            counts["examples"] = int(numbers[-1]) + 1
            counts["rows"] += len(block)
            counts["tokens"] += int(block.lengths.sum())
            counts["longest"] = max(counts["longest"], int(block.lengths.max()))
            words += count_words(block) if count_words else WordCount()
            yield serialise_rows(block)

    names = (str(folder / f"rows-{number:05d}.tfrecord") for number in itertools.count())
    with (folder / _INDEX).open("wb") as index:
        shards = write_shards(names, records(index), _SHARD_BYTES, "rows")
    if count_words:
        counts |= {"words": words.words, "unknown_words": words.unknown}
    names_of_indexes = [_INDEX, *(index_path(shard.file) for shard in shards)]
    indexes = {name: _crc32c(folder / name) for name in names_of_indexes}
    return RowDescription(made_from, features, choices, counts, shards, indexes)
