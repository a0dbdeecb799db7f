"""The files of a set of shards: their names, the set's description, and TensorFlow Datasets' files.

A set is named by its `output_file`, say `data/train.tfrecord`. Its shards are
`data/train.tfrecord-00000-of-00008` and so on, or have names of their own where `output_file` lists
them. Beside each shard is its index. Names are strings: they may be addresses on a remote store.

The description, `NAME.recipe.json`, is written last, so a set that has one is complete. It holds
all that decides the content of the records, so that a run can refuse shards of another model.
"""

import dataclasses
import logging
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import google_crc32c
import numpy as np

from keras_bert_impl import __version__
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_input, read_small
from keras_bert_impl.json_files import Count, FileName, json_text, parse_json, typed
from keras_bert_impl.tokenization.unknown_words import WordCount
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe, VocabularyFacts
from pipelines.records.serialise import Feature, pair_features

_LOGGER = logging.getLogger(__name__)

DESCRIPTION_SUFFIX = ".recipe.json"
INDEX_SUFFIX = ".index"
_NUMBERED = re.compile(r"(?P<name>.+)-\d{5}-of-(?P<count>\d{5})")


def base_name(path: str) -> str:
    """The last part of a path or URL.

    Example:
        >>> base_name("gs://bucket/train.tfrecord")
        'train.tfrecord'
    """
    return re.split(r"[\\/]", path)[-1]


def shard_names(output_names: list[str], count: int) -> list[str]:
    """The names of a set's shards: made from their common name, or the names that were given.

    Example:
        >>> shard_names(["data/train.tfrecord"], 2)
        ['data/train.tfrecord-00000-of-00002', 'data/train.tfrecord-00001-of-00002']
        >>> shard_names(["data/a.tfrecord", "data/b.tfrecord"], 2)
        ['data/a.tfrecord', 'data/b.tfrecord']
    """
    if len(output_names) > 1:
        return output_names
    return [f"{output_names[0]}-{shard:05d}-of-{count:05d}" for shard in range(count)]


def set_of_shard(path: str) -> tuple[str, str] | None:
    """The common name and the number of shards, where a name ends in -NNNNN-of-NNNNN.

    Example:
        >>> set_of_shard("data/train.tfrecord-00001-of-00008")
        ('data/train.tfrecord', '00008')
        >>> set_of_shard("data/train.tfrecord") is None
        True
    """
    match = _NUMBERED.fullmatch(path)
    return (match["name"], match["count"]) if match else None


def index_path(shard: str | os.PathLike[str]) -> str:
    """The index of a shard."""
    return f"{os.fspath(shard)}{INDEX_SUFFIX}"


def description_path(set_name: str | os.PathLike[str]) -> str:
    """The description of a set of shards."""
    return f"{os.fspath(set_name)}{DESCRIPTION_SUFFIX}"


FORMAT = 1
_READ_BYTES = 1 << 22
_MOST_MEBIBYTES = 64
_REMEDY = "make the shards again, or delete it to read them without checks"


def file_crc32c(path: Path) -> str:
    """The CRC-32C of a file, as 8 hexadecimal digits."""
    checksum = google_crc32c.Checksum()
    with open_input(path, may_be_empty=True) as file:
        while part := file.read(_READ_BYTES):
            checksum.update(part)
    return checksum.digest().hex()


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """A shard in the description's folder; counts of examples, random_next, masked and tokens."""

    file: FileName
    bytes: Count
    crc32c: str
    counts: Mapping[str, Count]

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


def replaced_files(
    set_name: str, targets: Iterable[str], found: Iterable[str], kept: Iterable[str] = ()
) -> list[str]:
    """What goes before shards are written: the description first, for its set is whole no longer.

    An older set of the name is known among the files beside it by its indexes, each of which goes
    after its shard; a glob would take both sets for one. Finished targets are kept.
    """
    name, names = base_name(set_name), {base_name(path) for path in kept}
    indexed = sorted(one.removesuffix(INDEX_SUFFIX) for one in found if one.endswith(INDEX_SUFFIX))
    older = [one for one in indexed if (set_of_shard(base_name(one)) or ("",))[0] == name]
    gone = [path for path in dict.fromkeys((*older, *targets)) if base_name(path) not in names]
    return [description_path(set_name), *(x for path in gone for x in (path, index_path(path)))]


def random_next(share: float) -> str:
    """The share of examples labelled random as people read it, with a remark where it is too large.

    Example:
        >>> random_next(0.545), random_next(1.0)
        ('54.5 %', '100.0 % (hardly a true next to learn from: were the lines sentences?)')
    """
    remark = " (hardly a true next to learn from: were the lines sentences?)"
    return f"{100 * share:.1f} %{remark if share > 0.9 else ''}"


class TokenizerFacts(TypedDict):
    """How the text became tokens."""

    do_lower_case: bool
    strip_accents: bool | None
    unicode_form: NotRequired[str]


class Source(TypedDict):
    """The figures of a text; others are kept as they are."""

    documents: Count
    words: NotRequired[Count]
    unknown_words: NotRequired[Count]


@dataclasses.dataclass(frozen=True)
class Description:
    """The description of a set of shards."""

    recipe: Recipe
    vocabulary: VocabularyFacts
    tokenizer: TokenizerFacts
    source: Source
    versions: Mapping[str, str]
    shards: tuple[ShardEntry, ...]

    @classmethod
    def of(
        cls,
        config: PretrainingDataConfig,
        facts: VocabularyFacts,
        source: Any,
        entries: Sequence[ShardEntry],
    ) -> "Description":
        """The description of a finished set."""
        tokenizer: TokenizerFacts = {
            "do_lower_case": config.do_lower_case,
            "strip_accents": config.strip_accents,
        }
        if config.text_encoding.composes:
            tokenizer["unicode_form"] = config.text_encoding.unicode_form
        versions = {
            "keras_bert_impl": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        return cls(config.recipe, facts, tokenizer, source, versions, tuple(entries))

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
        values = dataclasses.asdict(self)
        last = {name: values.pop(name) for name in ("versions", "shards")}
        values = {"format": FORMAT, **values, "counts": self.totals(), **last}
        return json_text(values, indent=1) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> "Description":
        """Reads a description."""
        return cls.from_text(
            read_small(path, _MOST_MEBIBYTES, f"which no description has; {_REMEDY}"), str(path)
        )

    @classmethod
    def from_text(cls, text: str | bytes, path: str) -> "Description":
        """The inverse of `to_text`; `path` is for errors."""
        where = f"{path}: is not a description of pre-training shards"
        values = typed(parse_json(text, path, _REMEDY), dict, where, _REMEDY)
        found = values.get("format")
        if type(found) is not int or found != FORMAT:
            raise UserError(
                f"{path}: has format {shown(found)}, this version reads {FORMAT}; make the shards "
                "again."
            )
        names = [one.name for one in dataclasses.fields(cls)]
        own = {name: values[name] for name in names if name in values}
        described: Description = typed(own, cls, where, _REMEDY)
        return described


_MODULE = "tensorflow_datasets.core.features"


def split_name(output_name: str, *, whole: bool = False) -> str:
    """The split that a set is: its name to the first full stop, or all; letters and digits only.

    Example:
        >>> split_name("wiki-128.tfrecord")
        'wiki_128'
    """
    return re.sub(r"\W", "_", output_name if whole else output_name.split(".", 1)[0]) or "train"


def metadata_files(
    set_name: str,
    description: Description,
    found: Iterable[str],
    read: Callable[[str], Description] = Description.read,
) -> dict[str, str]:
    """What is written beside the shards, by path; `found` are the folder's descriptions.

    The set's own description is the last: it says that the set is complete.
    """
    name = base_name(set_name)
    folder = set_name.removesuffix(name)
    sets = {}
    for path in found:
        try:
            sets[base_name(path).removesuffix(DESCRIPTION_SUFFIX)] = read(path)
        except UserError as error:  # of another set: no reason to stop at the end of this one
            _LOGGER.warning("%s", error)
    sets[name] = description
    features = _features(description)
    alike = [one for one in sorted(sets.items()) if _features(one[1]) == features]
    splits = [split for one in alike for split in _splits(*one)]
    first_parts = Counter(split_name(name) for name, *_ in splits)
    info = {
        "description": description.summary(),
        "fileFormat": "tfrecord",
        "name": "pretraining_examples",
        "splits": [
            {
                # Where several names have the first part in common, the whole ones.
                "name": split_name(name, whole=first_parts[split_name(name)] > 1),
                "filepathTemplate": template,
                "numBytes": str(sum(shard.bytes for shard in shards)),
                "shardLengths": [str(shard.counts.get("examples", 0)) for shard in shards],
            }
            for name, template, shards in splits
        ],
        "version": "1.0.0",
    }
    spec = {
        "featuresDict": {"features": {feature.name: _tensor(feature) for feature in features}},
        "pythonClassName": f"{_MODULE}.features_dict.FeaturesDict",
    }
    return {
        f"{folder}features.json": json_text(spec, indent=1) + "\n",
        f"{folder}dataset_info.json": json_text(info, indent=1) + "\n",
        description_path(set_name): description.to_text(),
    }


def _features(description: Description) -> tuple[Feature, ...]:
    recipe = description.recipe
    return pair_features(recipe.max_seq_length, recipe.stored_predictions)


def _splits(name: str, description: Description) -> list[tuple[str, str, Sequence[ShardEntry]]]:
    """Name, template and shards of the split that a set is; shards with own names are one each."""
    shards = description.shards
    if shards and not shards[0].file.startswith(f"{name}-"):
        return [(shard.file, shard.file, [shard]) for shard in shards]
    return [(name, f"{name}-{{SHARD_X_OF_Y}}", shards)]


def _tensor(feature: Feature) -> dict:
    return {
        "pythonClassName": f"{_MODULE}.tensor_feature.Tensor",
        "tensor": {
            "dtype": "float32" if feature.is_float else "int64",
            "encoding": "none",
            "shape": {"dimensions": [str(feature.size)]},
        },
    }
