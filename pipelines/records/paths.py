"""Copies of the shards that a name or pattern means on a remote file system.

Training reads single records from all over a set, which would be one request over the network for
each. So a remote set is copied shard by shard before the first step and read locally from then on.
Copies stay in the user's cache, in a folder that is named by what the store and the descriptions
tell of the set: its files, their sizes and times, and the descriptions' text. Of a set that has
changed a new folder is made; the old one goes. Where neither tells anything, every process copies.
"""

import functools
import hashlib
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import make_folder, open_whole, remove
from keras_bert_impl.progress import Progress
from keras_bert_impl.user_cache import own_folder
from pipelines.corpora.sources import has_magic
from pipelines.records.names import DESCRIPTION_SUFFIX, base_name

_COPIED_AT_ONCE = 8 << 20
_THIS_PROCESS = uuid.uuid4().hex


def with_local_copies(patterns: Sequence[str]) -> list[str]:
    """Replaces remote names by local ones, copying what they stand for.

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
        cache = _copy_all(remote, pattern)
    except tf.errors.OpError as error:
        raise UserError(
            f"{pattern}: cannot be read ({reason_of(error)}); check the address and whether the "
            "file system's plug-in is installed."
        ) from error
    return str(cache / name) if name else str(cache)


def _is_shard_file(path: str) -> bool:
    hidden = path.rsplit("/", 1)[1].startswith(".")
    return not hidden and not path.endswith((".html", "dataset_info.json", "features.json", "/"))


@functools.cache
def _folder_of_this_process() -> tempfile.TemporaryDirectory:
    """Where copies lie that are not kept; gone at the end of the process."""
    return tempfile.TemporaryDirectory(prefix="shards-")


def _copy_all(remote: Sequence[str], pattern: str) -> Path:
    """Copies what is not there yet; gives the folder."""
    import tensorflow as tf

    stats = {path: tf.io.gfile.stat(path) for path in remote}
    told: list[object] = [(path, one.length, one.mtime_nsec) for path, one in stats.items()]
    for path in remote:
        if path.endswith(DESCRIPTION_SUFFIX):
            with tf.io.gfile.GFile(path, "rb") as file:
                told.append(file.read())
    if len(told) == len(remote) and not all(one.mtime_nsec for one in stats.values()):
        told.append(_THIS_PROCESS)
    root = own_folder("shards") or Path(_folder_of_this_process().name)
    sets = make_folder(root / hashlib.sha256(pattern.encode()).hexdigest()[:16])
    cache = make_folder(sets / hashlib.sha256(repr(told).encode()).hexdigest()[:16])
    for old in set(sets.iterdir()) - {cache}:
        remove(old)
    missing = [path for path in remote if not (cache / base_name(path)).exists()]
    progress = Progress("copy shards", sum(stats[path].length for path in missing) / 1e6, "MB")
    for path in missing:
        target = cache / base_name(path)
        with tf.io.gfile.GFile(path, "rb") as source, open_whole(target, "wb") as file:
            while part := source.read(_COPIED_AT_ONCE):
                file.write(part)
                progress.advance(len(part) / 1e6)
    if missing:
        progress.close()
    return cache
