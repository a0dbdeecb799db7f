"""The description of a set of shards, and the entry of each shard in it.

The description of a pre-training set stands next to its shards as `NAME.recipe.json`. It is written
last, so a set that has one is complete. It holds all that decides the content of the records, so
that a run can refuse shards that were made for another model.
"""

import dataclasses
import platform
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import google_crc32c
import numpy as np

from keras_bert_impl import __version__
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_input, open_whole
from keras_bert_impl.json_files import (
    Count,
    FileName,
    json_text,
    parse_json,
    read_json_value,
    typed,
)
from keras_bert_impl.tokenization.text_settings import AS_IS
from keras_bert_impl.tokenization.unknown_words import WordCount
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.pretraining_data.statistics import random_next

FORMAT = 1
_READ_BYTES = 1 << 22
_REMEDY = "make the shards again, or delete it to read them without checks"


def file_crc32c(path: Path) -> str:
    """The CRC-32C of a file, as 8 hexadecimal digits.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "x"
        >>> _ = path.write_bytes(b"123456789")
        >>> file_crc32c(path)
        'e3069283'
    """
    checksum = google_crc32c.Checksum()
    with open_input(path, may_be_empty=True) as file:
        while part := file.read(_READ_BYTES):
            checksum.update(part)
    return checksum.digest().hex()


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """One shard.

    Attributes:
        file: its name, in the folder of the description.
        bytes: its size.
        crc32c: checksum of the whole file, hexadecimal.
        counts: what it holds: examples, random_next, masked, tokens.
    """

    file: FileName
    bytes: Count
    crc32c: str
    counts: Mapping[str, Count]

    def to_json(self) -> dict[str, Any]:
        """The entry as plain values."""
        return {**dataclasses.asdict(self), "counts": dict(self.counts)}

    def check(self, path: Path, *, full: bool) -> None:
        """Refuses a file that is not what was written; `full` reads it all for its checksum."""
        size = path.stat().st_size
        if size != self.bytes:
            how = "truncated" if size < self.bytes else "longer than it was"
            raise UserError(
                f"{path}: this shard is {how} ({size:,} of {self.bytes:,} bytes); make it again."
            )
        if full and file_crc32c(path) != self.crc32c:
            raise UserError(
                f"{path}: this shard was altered since it was written (its checksum differs); make "
                "it again."
            )


def versions_in_use() -> dict[str, str]:
    """The versions of the packages that make the data."""
    return {
        "keras_bert_impl": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


class _Tokenizer(TypedDict):
    do_lower_case: bool
    strip_accents: bool | None
    unicode_form: NotRequired[str]


class _Source(TypedDict):
    documents: Count
    words: NotRequired[Count]
    unknown_words: NotRequired[Count]


class _File(TypedDict):
    """What the file of a description holds."""

    format: int
    recipe: Recipe
    vocabulary: dict[str, Any]
    tokenizer: _Tokenizer
    source: _Source
    shards: tuple[ShardEntry, ...]
    versions: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Description:
    """The description of a set of shards.

    Attributes:
        source: the text: its files, bytes, sha256, documents, sentences, tokens, words and how
            many of them are [UNK] (`unknown_words`).
    """

    recipe: Recipe
    vocabulary: VocabularyFacts
    do_lower_case: bool
    strip_accents: bool | None
    source: Mapping[str, Any]
    shards: tuple[ShardEntry, ...]
    versions: Mapping[str, str]
    unicode_form: str = AS_IS

    def totals(self) -> dict[str, int]:
        """The counts of all shards added up."""
        total: Counter[str] = Counter()
        for shard in self.shards:
            total.update(shard.counts)
        return dict(total)

    def word_count(self) -> WordCount | None:
        """The words of the text; None in a description from before they were counted."""
        words, unknown = self.source.get("words"), self.source.get("unknown_words")
        return None if words is None or unknown is None else WordCount(words, unknown)

    def summary(self) -> str:
        """One line for the user."""
        total = self.totals()
        examples = max(1, total.get("examples", 0))
        size = sum(shard.bytes for shard in self.shards) / 1e6
        line = (
            f"{total.get('examples', 0):,} examples in {len(self.shards)} shards ({size:,.1f} MB) "
            f"from {self.source['documents']:,} documents; {total.get('tokens', 0) / examples:.1f} "
            "tokens an example"
        )
        if self.recipe.do_next_sentence:
            line += f", random next {random_next(total.get('random_next', 0) / examples)}"
        if "masked" in total:
            line += f", {total['masked'] / examples:.2f} masked"
        if (words := self.word_count()) is not None:
            line += f"; {words} are [UNK]"
        return line + "."

    def to_text(self) -> str:
        """The description as a file's content."""
        values = {
            "format": FORMAT,
            "recipe": self.recipe.to_json(),
            "vocabulary": self.vocabulary.to_json(),
            "tokenizer": {
                "do_lower_case": self.do_lower_case,
                "strip_accents": self.strip_accents,
                **({} if self.unicode_form == AS_IS else {"unicode_form": self.unicode_form}),
            },
            "source": dict(self.source),
            "counts": self.totals(),
            "versions": dict(self.versions),
            "shards": [shard.to_json() for shard in self.shards],
        }
        return json_text(values, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Writes the description; it comes last and says that the set is complete."""
        with open_whole(path) as file:
            file.write(self.to_text())

    @classmethod
    def read(cls, path: Path) -> "Description":
        """Reads a description."""
        return cls._of(read_json_value(path), str(path))

    @classmethod
    def from_text(cls, text: str | bytes, path: str) -> "Description":
        """The inverse of `to_text`; `path` is for errors."""
        return cls._of(parse_json(text, path, _REMEDY), path)

    @classmethod
    def _of(cls, values: Any, path: str) -> "Description":
        where = f"{path}: is not a description of pre-training shards"
        found = typed(values, dict, where, _REMEDY).get("format")
        if found != FORMAT:
            raise UserError(
                f"{path}: has format {shown(found)}, this version reads {FORMAT}; make the shards "
                "again."
            )
        described: _File = typed(values, _File, where, _REMEDY)
        return cls(
            recipe=described["recipe"],
            vocabulary=VocabularyFacts.from_json(described["vocabulary"], where, _REMEDY),
            do_lower_case=described["tokenizer"]["do_lower_case"],
            strip_accents=described["tokenizer"]["strip_accents"],
            source=described["source"],
            shards=described["shards"],
            versions=described["versions"],
            unicode_form=described["tokenizer"].get("unicode_form", AS_IS),
        )
