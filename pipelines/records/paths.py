"""Finds the files that a name or pattern means, on this machine or on a remote file system.

Training reads single records from all over a set, which would be one request over the network for
each. So a remote set is copied shard by shard before the first step and read locally from then on.
A file that is already there with the right size is not copied again, and the copy of a file that
has been removed is removed too.
"""

import fnmatch
import glob
import hashlib
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import is_there, make_folder, open_whole
from keras_bert_impl.progress import Progress
from pipelines.records.names import DESCRIPTION_SUFFIX

_LOGGER = logging.getLogger(__name__)
_MAGIC = frozenset("*?[")


def has_magic(pattern: str) -> bool:
    """Whether a name is a pattern.

    Example:
        >>> has_magic("train.tfrecord-*"), has_magic("train.tfrecord")
        (True, False)
    """
    return bool(_MAGIC & set(pattern))


def match_files(pattern: str) -> list[str]:
    """The files that match a name or glob, sorted; the name of a file is given back as it is.

    Hidden files match only where the pattern itself has the dot, as in a shell.

    Args:
        pattern: a path, in which `*`, `?`, `[...]` and `**` may stand.

    Raises:
        UserError: a folder on the way may not be searched.

    Example:
        >>> match_files("corpus.txt")
        ['corpus.txt']
        >>> match_files("/no/such/folder/*.txt")
        []
    """
    if not has_magic(pattern) or is_there(pattern):  # "[" may be part of it
        return [pattern]
    # Not `Path.glob`: there `*` also matches hidden files, which are half written.
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207


def with_content(files: list[str]) -> list[str]:
    """Passes over empty files, unless all are: a splitter leaves some where documents are few.

    Raises:
        UserError: a folder on the way to a file may not be searched.
    """
    there = {name: Path(name) for name in files if is_there(name)}
    empty = {name for name, path in there.items() if path.is_file() and not path.stat().st_size}
    if empty.issuperset(files):
        return files
    for path in sorted(empty):
        _LOGGER.info("%s: is empty and left out", path)
    return [path for path in files if path not in empty]


_COPIED_AT_ONCE = 8 << 20
CACHE_VARIABLE = "KERAS_BERT_CACHE"


def with_local_copies(patterns: Sequence[str]) -> list[str]:
    """Replaces remote names by local ones, copying what they stand for.

    Args:
        patterns: as for `find_shards`; those with "://" are remote, on any file system that
            TensorFlow knows (gs://, hdfs://, ... where their plug-ins are installed).

    Raises:
        UserError: a remote name matches nothing or cannot be read.

    Example:
        >>> with_local_copies(["data/train.tfrecord"])
        ['data/train.tfrecord']
    """
    return [_copied(pattern) if "://" in pattern else pattern for pattern in patterns]


def _copied(pattern: str) -> str:
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
        cache = _cache_folder(folder)
        _copy_all(remote, cache)
    except tf.errors.OpError as error:
        raise UserError(
            f"{pattern}: cannot be read ({reason_of(error)}); check the address and whether the "
            "file system's plug-in is installed."
        ) from error
    _remove_all_but({_local(cache, path).name for path in remote}, cache, globs)
    return str(cache / name) if name else str(cache)


def _is_shard_file(path: str) -> bool:
    hidden = path.rsplit("/", 1)[1].startswith(".")
    return not hidden and not path.endswith((".html", "dataset_info.json", "features.json", "/"))


def _remove_all_but(names: set[str], cache: Path, globs: Sequence[str]) -> None:
    """Removes copies of what is not there any more: the same name would find them as well."""
    for path in list(cache.iterdir()):
        meant = any(fnmatch.fnmatchcase(path.name, one) for one in globs)
        if meant and path.name not in names and not path.name.startswith("."):
            path.unlink(missing_ok=True)


def _cache_folder(folder: str) -> Path:
    root = os.environ.get(CACHE_VARIABLE, str(Path(tempfile.gettempdir()) / "keras_bert_cache"))
    return make_folder(Path(root) / hashlib.sha256(folder.encode()).hexdigest()[:16])


def _copy_all(remote: Sequence[str], cache: Path) -> None:
    import tensorflow as tf

    sizes = {path: tf.io.gfile.stat(path).length for path in remote}
    missing = [path for path in remote if not _is_there(cache / Path(path).name, sizes[path])]
    if not missing:
        return
    progress = Progress("copy shards", sum(sizes[path] for path in missing) / 1e6, "MB")
    for path in missing:
        with tf.io.gfile.GFile(path, "rb") as source, open_whole(_local(cache, path), "wb") as file:
            while part := source.read(_COPIED_AT_ONCE):
                file.write(part)
                progress.advance(len(part) / 1e6)
    progress.close()


def _local(cache: Path, path: str) -> Path:
    return cache / path.rsplit("/", 1)[1]


def _is_there(path: Path, size: int) -> bool:
    # A description is small and may change without changing its size: it is always copied.
    return path.suffix != ".json" and path.exists() and path.stat().st_size == size
