"""Finds the shards that an input names and checks that they are what a model needs.

Training reads single records from all over a set, which would be one request over the network for
each. So a process copies a remote set before the first step; the copy goes with the process.
"""

import dataclasses
import functools
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import is_there, open_whole
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.unknown_words import WordCount
from pipelines.corpora.documents import has_magic, match_files
from pipelines.records.description import (
    DESCRIPTION_SUFFIX,
    Description,
    ShardEntry,
    base_name,
    description_path,
    set_of_shard,
)

_COPIED_AT_ONCE = 8 << 20
_copies: list[tempfile.TemporaryDirectory] = []  # they go when the process ends


@functools.cache
def _copied(pattern: str) -> str:
    """The local name of a copy of what a remote one stands for."""
    import tensorflow as tf

    folder, name = pattern.rstrip("/").rsplit("/", 1)
    try:
        described = tf.io.gfile.exists(f"{pattern}{DESCRIPTION_SUFFIX}")
        if not described and tf.io.gfile.isdir(pattern):
            folder, name = pattern.rstrip("/"), ""
        globs = [name if has_magic(name) else f"{name}*", f"*{DESCRIPTION_SUFFIX}"]
        found, descriptions = (tf.io.gfile.glob(f"{folder}/{one}") for one in globs)
        if not found:
            raise UserError(f"`input_file`: '{pattern}' matches no file; check the address.")
        remote = [path for path in dict.fromkeys(found + descriptions) if _is_shard_file(path)]
        local = _copy_all(remote)
    except tf.errors.OpError as error:
        raise UserError(
            f"{pattern}: cannot be read ({reason_of(error)}); check the address and whether the "
            "file system's plug-in is installed."
        ) from error
    return str(local / name) if name else str(local)


def _is_shard_file(path: str) -> bool:
    hidden = path.rsplit("/", 1)[1].startswith(".")
    return not hidden and not path.endswith((".html", "dataset_info.json", "features.json", "/"))


def _copy_all(remote: Sequence[str]) -> Path:
    """Copies files into a new folder; gives the folder."""
    import tensorflow as tf

    copies = tempfile.TemporaryDirectory(prefix="shards-")
    _copies.append(copies)
    sizes = {path: tf.io.gfile.stat(path).length for path in remote}
    progress = Progress("copy shards", sum(sizes.values()) / 1e6, "MB")
    for path in remote:
        target = Path(copies.name, base_name(path))
        with tf.io.gfile.GFile(path, "rb") as source, open_whole(target, "wb") as file:
            while part := source.read(_COPIED_AT_ONCE):
                file.write(part)
                progress.advance(len(part) / 1e6)
    progress.close()
    return Path(copies.name)


_FULL_CHECK_BYTES = 8 << 30  # of larger sets only the sizes: records have checksums of their own


@dataclasses.dataclass(frozen=True)
class Expected:
    """The requirements of a model on its shards; what is None is not checked.

    With `model_config` each batch is checked against the model's tables.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    vocabulary_sha256: str | None = None
    do_lower_case: bool | None = None
    model_config: BertConfig | None = None


@dataclasses.dataclass(frozen=True)
class Shard:
    """A shard, its set's description (None for bare TFRecords), and its line in that."""

    path: Path
    description: Description | None = None
    entry: ShardEntry | None = None


_Known = Callable[[Path], dict[str, Shard]]


def find_shards(patterns: Sequence[str]) -> list[Shard]:
    """The shards that files, globs, folders and common names stand for, of remote ones copies."""
    shards: dict[Path, Shard] = {}
    known = functools.cache(_known_shards)  # many files may be named one by one
    for pattern in patterns:
        for shard in _match(_copied(pattern) if "://" in pattern else pattern, known):
            _check_is_there(shard.path)
            shards.setdefault(shard.path, shard)
    return list(shards.values())


def _check_is_there(shard: Path) -> None:
    if not is_there(shard):
        raise UserError(
            f"{shard}: this shard of the set is missing (a run that was stopped?); make the set "
            "again, or name the files one by one."
        )


def _match(pattern: str, known: _Known) -> list[Shard]:
    path, description_file = Path(pattern), Path(description_path(pattern))
    if is_there(path) and path.is_file():
        shard = known(path.parent).get(path.name, Shard(path))
        if shard.entry is None and description_file.is_file():
            raise UserError(
                f"{path}: is a file, and no shard of the set of this name ({description_file}); "
                f"move it away, or name the shards: {path}-*."
            )
        return [shard]
    if description_file.is_file():
        return _listed(description_file)
    if path.is_dir():
        descriptions = sorted(path.glob(f"*{DESCRIPTION_SUFFIX}"))
        if found := [shard for file in descriptions for shard in _listed(file)]:
            return found
        raise UserError(f"{path}: holds no pre-training shards with a description; name its files.")
    files = [Path(name) for name in match_files(pattern) if _may_be_shard(name)]
    if not files:
        raise UserError(f"`input_file`: '{pattern}' matches no file; check the path.")
    return _matched(files, known)


def _matched(files: list[Path], known: _Known) -> list[Shard]:
    """Shards of a glob; of each numbered set that it touches, all must be there."""
    sizes = defaultdict[str, set[str]](set)
    for name, of in filter(None, (set_of_shard(str(file)) for file in files)):
        sizes[name].add(of)
    for name, counts in sizes.items():
        if len(counts) > 1:
            listed = " and ".join(sorted(f"{int(of)}" for of in counts))
            raise UserError(
                f"{name}-*: holds shards of two sets, of {listed} files; remove the old ones."
            )
        (of,) = counts
        for number in range(int(of)):
            _check_is_there(Path(f"{name}-{number:05d}-of-{of}"))
    return [known(file.parent).get(file.name, Shard(file)) for file in files]


def _may_be_shard(name: str) -> bool:
    return Path(name).is_file() and not name.endswith((".index", ".json", ".html", ".incomplete"))


def _listed(description_file: Path) -> list[Shard]:
    description, folder = Description.read(description_file), description_file.parent
    return [Shard(folder / entry.file, description, entry) for entry in description.shards]


def _known_shards(folder: Path) -> dict[str, Shard]:
    """All shards that the descriptions in a folder list, by file name."""
    files = sorted(folder.glob(f"*{DESCRIPTION_SUFFIX}"))
    return {shard.path.name: shard for file in files for shard in _listed(file)}


def described_words(shards: Sequence[Shard]) -> WordCount | None:
    """The words of the texts that shards were made of; None where not all say it.

    Of a set of which some shards are named, it is the text of the whole set.
    """
    sets = {id(shard.description): shard.description for shard in shards}.values()
    counts = [description.word_count() if description else None for description in sets]
    return None if None in counts else sum(filter(None, counts), WordCount())


def check_shards(shards: Sequence[Shard], expected: Expected) -> None:
    """Refuses shards that a model cannot be trained on.

    Bare TFRecords pass here; their first record is checked when they are read.
    """
    for shard in {id(one.description): one for one in shards}.values():
        if shard.description is not None:
            _check_description(shard.description, shard.path, expected)
    total = sum(shard.entry.bytes for shard in shards if shard.entry)
    for shard in shards:
        if shard.entry is not None:
            shard.entry.check(shard.path, full=total <= _FULL_CHECK_BYTES)


def _check_description(description: Description, path: Path, expected: Expected) -> None:
    recipe = description.recipe
    check_shape(path, recipe.max_seq_length, recipe.max_predictions_per_seq, expected)
    if expected.vocabulary_sha256 not in (None, description.vocabulary.sha256):
        theirs, ours = description.vocabulary.sha256[:12], str(expected.vocabulary_sha256)[:12]
        raise UserError(
            f"{path}: was made with another vocabulary (sha256 {theirs}… instead of {ours}…); use "
            "that vocabulary or make the shards again."
        )
    made = description.tokenizer["do_lower_case"]
    if expected.do_lower_case not in (None, made):
        raise UserError(
            f"{path}: was made with `do_lower_case={made}`; use the same casing or make the shards "
            "again."
        )


def check_shape(path: Path, length: int, predictions: int, expected: Expected) -> None:
    """Refuses a shard whose examples have another length, or more predictions."""
    for found, name, fits in (
        (length, "max_seq_length", length == expected.max_seq_length),
        (predictions, "max_predictions_per_seq", predictions <= expected.max_predictions_per_seq),
    ):
        if not fits:
            raise UserError(
                f"{path}: was made with `{name}={found}`, which does not fit "
                f"`{name}={getattr(expected, name)}`; pass `{name}={found}`, or make it again."
            )
