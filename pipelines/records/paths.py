"""Copies of the shards that a name or pattern means on a remote file system.

Training reads single records from all over a set, which would be one request over the network for
each. So a remote set is copied shard by shard before the first step and read locally from then on.
A copy stays in the user's cache with a note of what it is of: the address, the size, the time of
its last change and its checksum in the set's description. Where the store tells no time and the set
no checksum, every process copies anew. The copy of a file that has been removed is removed too.
"""

import contextlib
import fnmatch
import functools
import hashlib
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.json_files import read_sealed, sealed
from keras_bert_impl.progress import Progress
from keras_bert_impl.user_cache import own_folder
from pipelines.corpora.sources import has_magic
from pipelines.records.description import Description
from pipelines.records.names import DESCRIPTION_SUFFIX, base_name

_COPIED_AT_ONCE = 8 << 20
_THIS_PROCESS = uuid.uuid4().hex


def with_local_copies(patterns: Sequence[str]) -> list[str]:
    """Replaces remote names by local ones, copying what they stand for.

    Args:
        patterns: as for `find_shards`; those with "://" are remote, on any file system that
            TensorFlow knows (gs://, hdfs://, ... where their plug-ins are installed).

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
    root = own_folder("shards") or Path(_folder_of_this_process().name)
    return make_folder(root / hashlib.sha256(folder.encode()).hexdigest()[:16])


@functools.cache
def _folder_of_this_process() -> tempfile.TemporaryDirectory:
    """Where copies lie that are not kept; gone at the end of the process."""
    return tempfile.TemporaryDirectory(prefix="shards-")


def _copy_all(remote: Sequence[str], cache: Path) -> None:
    import tensorflow as tf

    described = [path for path in remote if path.endswith(DESCRIPTION_SUFFIX)]
    checksums: dict[str, str] = {}
    for path in described:
        with contextlib.suppress(UserError), tf.io.gfile.GFile(path, "rb") as file:
            shards = Description.from_text(file.read(), path).shards
            checksums |= {shard.file: shard.crc32c for shard in shards}
    origins = {path: _origin(path, checksums.get(base_name(path))) for path in remote}
    # A description is small, and nothing tells what it was: it is always copied.
    missing = [x for x in remote if x in described or not _is_there(_local(cache, x), origins[x])]
    if not missing:
        return
    progress = Progress("copy shards", sum(origins[x]["bytes"] for x in missing) / 1e6, "MB")
    for path in missing:
        local = _local(cache, path)
        with tf.io.gfile.GFile(path, "rb") as source, open_whole(local, "wb") as file:
            while part := source.read(_COPIED_AT_ONCE):
                file.write(part)
                progress.advance(len(part) / 1e6)
        with open_whole(_note(local)) as file:
            file.write(sealed(_noted(local, origins[path])))
    progress.close()


def _origin(path: str, checksum: str | None) -> dict[str, Any]:
    """What is known of a remote file, as JSON values."""
    import tensorflow as tf

    found = tf.io.gfile.stat(path)
    told = [found.mtime_nsec, checksum] if found.mtime_nsec or checksum else [_THIS_PROCESS]
    return {"address": path, "bytes": found.length, "told": told}


def _is_there(local: Path, origin: dict[str, Any]) -> bool:
    noted = read_sealed(_note(local), dict[str, Any])
    return noted is not None and local.is_file() and noted == _noted(local, origin)


def _noted(local: Path, origin: dict[str, Any]) -> dict[str, Any]:
    """What is noted of a copy: what it is of, its own size and the time of its last change."""
    now = local.stat()
    return {"origin": origin, "copied": [now.st_size, now.st_mtime_ns]}


def _note(local: Path) -> Path:
    return local.with_name(f".{local.name}.origin")


def _local(cache: Path, path: str) -> Path:
    return cache / base_name(path)
