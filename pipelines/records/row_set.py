"""Rows on disk: TFRecord shards of one split of a task, which say themselves what they are.

They are made once and used again while nothing that they come from has changed. Making and reading
take memory for one block of rows and for the index (8 to 16 bytes a row).
"""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.files import whole_folder
from pipelines.records.description import ShardEntry
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

FORMAT = 1
DESCRIPTION = "rows.json"
_INDEX = "rows.index"  # uint32 [rows, 2]: the number of the example, the tokens of the row
_SHARD_BYTES = 256 << 20
_READ_AT_ONCE = 2048


@dataclasses.dataclass(frozen=True)
class RowDescription:
    """What a set of rows says about itself.

    Attributes:
        made_from: everything that the rows follow from: files, tokenizer, task and lengths.
        features: what a record holds.
        choices: how many choices each row has, or None.
        counts: examples, rows, tokens, and the longest row's tokens.
        shards: the shards in their order.
    """

    made_from: Mapping[str, Any]
    features: tuple[RowFeature, ...]
    choices: int | None
    counts: Mapping[str, int]
    shards: tuple[ShardEntry, ...]

    def write(self, path: Path) -> None:
        """Writes the description, as JSON."""
        values = {"format": FORMAT, **dataclasses.asdict(self)}
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "RowDescription | None":
        """Reads a description; None where there is none of this format."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.pop("format") != FORMAT:
                return None
            features = tuple(
                RowFeature(**{**f, "shape": None if f["shape"] is None else tuple(f["shape"])})
                for f in values.pop("features")
            )
            shards = tuple(ShardEntry(**shard) for shard in values.pop("shards"))
            return cls(features=features, shards=shards, **values)
        except (OSError, ValueError, KeyError, TypeError):
            return None


class RowSet:
    """The rows of one split, read by their numbers.

    Args:
        folder: made by `make_rows`.

    Raises:
        UserError: a shard is missing, truncated or altered.
    """

    def __init__(self, folder: Path, description: RowDescription) -> None:
        self.folder, self.description = folder, description
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


def make_rows(folder: Path, made_from: Mapping[str, Any], blocks: Iterable[Rows]) -> RowSet:
    """Writes rows into a folder, or opens what an earlier call wrote from the same.

    The folder appears when it is complete; a process that is killed leaves nothing that looks so.

    Args:
        folder: where to; what was made there from something else is replaced.
        made_from: everything that the rows follow from, as JSON values.
        blocks: the rows of the examples in their order; each block counts its examples from 0. It
            is asked for nothing where the rows are there already.

    Raises:
        UserError: the folder cannot be written.
    """
    made_from = json.loads(json.dumps(made_from))
    found = RowDescription.read(folder / DESCRIPTION)
    if found and found.made_from == made_from and _is_whole(folder, found):
        return RowSet(folder, found)
    with whole_folder(folder) as aside:
        description = _write(aside, made_from, blocks)
        description.write(aside / DESCRIPTION)
    return RowSet(folder, description)


def _is_whole(folder: Path, description: RowDescription) -> bool:
    """Whether all files have the sizes that they were written with."""
    sizes = {shard.file: shard.bytes for shard in description.shards}
    sizes[_INDEX] = 8 * description.counts["rows"]
    files = {name: folder / name for name in sizes}
    return all(file.is_file() and file.stat().st_size == sizes[n] for n, file in files.items())


def _write(folder: Path, made_from: Mapping[str, Any], blocks: Iterable[Rows]) -> RowDescription:
    features: tuple[RowFeature, ...] = ()
    choices: int | None = None
    counts = {"examples": 0, "rows": 0, "tokens": 0, "longest": 0}

    def records(index: IO[bytes]) -> Iterator[Frames]:
        nonlocal features, choices
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
            yield serialise_rows(block)

    names = (str(folder / f"rows-{number:05d}.tfrecord") for number in itertools.count())
    with (folder / _INDEX).open("wb") as index:
        shards = write_shards(names, records(index), _SHARD_BYTES, "rows")
    return RowDescription(made_from, features, choices, counts, shards)
