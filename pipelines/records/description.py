"""The description beside a set of shards: recipe, vocabulary, counts and a checksum per shard."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import google_crc32c

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from pipelines.pretraining_data.recipe import Pieces, Recipe

_PIECE = 1 << 22


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
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            checksum.update(piece)
    return checksum.digest().hex()


FORMAT = 1
SUFFIX = ".recipe.json"


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """One shard.

    Attributes:
        file: its name, in the folder of the description.
        bytes: its size.
        crc32c: checksum of the whole file, hexadecimal.
        counts: what it holds: examples, random_next, masked, tokens.
    """

    file: str
    bytes: int
    crc32c: str
    counts: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """The entry as plain values."""
        return {**dataclasses.asdict(self), "counts": dict(self.counts)}


@dataclasses.dataclass(frozen=True)
class Description:
    """What a set of shards says about itself.

    Attributes:
        recipe: the rules by which it was made.
        pieces: what data work needs to know of the vocabulary, its SHA-256 included.
        do_lower_case, strip_accents: how text was tokenized.
        source: the text: its files, bytes, sha256, documents, sentences, tokens.
        shards: the shards in their order.
        versions: what made it.
    """

    recipe: Recipe
    pieces: Pieces
    do_lower_case: bool
    strip_accents: bool | None
    source: Mapping[str, Any]
    shards: tuple[ShardEntry, ...]
    versions: Mapping[str, str]

    def totals(self) -> dict[str, int]:
        """The counts of all shards added up."""
        total: Counter[str] = Counter()
        for shard in self.shards:
            total.update(shard.counts)
        return dict(total)

    def summary(self) -> str:
        """One line for a person."""
        total = self.totals()
        examples = max(1, total.get("examples", 0))
        size = sum(shard.bytes for shard in self.shards) / 1e6
        line = (
            f"{total.get('examples', 0):,} examples in {len(self.shards)} shards ({size:,.1f} MB) "
            f"from {self.source['documents']:,} documents; {total.get('tokens', 0) / examples:.1f} "
            "tokens an example"
        )
        if self.recipe.do_next_sentence:
            line += f", {total.get('random_next', 0) / examples:.1%} random next".replace("%", " %")
        if "masked" in total:
            line += f", {total['masked'] / examples:.2f} masked"
        return line + "."

    def to_text(self) -> str:
        """The description as a file's content."""
        values = {
            "format": FORMAT,
            "recipe": self.recipe.to_json(),
            "vocabulary": self.pieces.to_json(),
            "tokenizer": {
                "do_lower_case": self.do_lower_case,
                "strip_accents": self.strip_accents,
            },
            "source": dict(self.source),
            "counts": self.totals(),
            "versions": dict(self.versions),
            "shards": [shard.to_json() for shard in self.shards],
        }
        return json.dumps(values, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Writes the description; it comes last and says that the set is complete."""
        with open_whole(path) as file:
            file.write(self.to_text())

    @classmethod
    def read(cls, path: Path) -> "Description":
        """Reads a description.

        Raises:
            UserError: it is not a description of this format.
        """
        return cls.from_text(path.read_text(encoding="utf-8"), str(path))

    @classmethod
    def from_text(cls, text: str, path: str) -> "Description":
        """The inverse of `to_text`; `path` is for errors."""
        try:
            values = json.loads(text)
            if values["format"] != FORMAT:
                raise UserError(
                    f"{path}: has format {values['format']}, this version reads {FORMAT}; make the "
                    "shards again."
                )
            return cls(
                recipe=Recipe.from_json(values["recipe"]),
                pieces=Pieces.from_json(values["vocabulary"]),
                do_lower_case=values["tokenizer"]["do_lower_case"],
                strip_accents=values["tokenizer"]["strip_accents"],
                source=values["source"],
                shards=tuple(ShardEntry(**shard) for shard in values["shards"]),
                versions=values["versions"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}: is not a description of pre-training shards ({error}); make the shards "
                "again, or delete it to read them without checks."
            ) from error


def description_path(output_file: Path) -> Path:
    """The description of the set that `output_file` names.

    Example:
        >>> description_path(Path("data/train.tfrecord")).as_posix()
        'data/train.tfrecord.recipe.json'
    """
    return output_file.with_name(output_file.name + SUFFIX)
