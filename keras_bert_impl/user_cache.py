"""Where this package keeps for a user what can be made again."""

import contextlib
import os
import stat
from pathlib import Path

from keras_bert_impl.errors import UserError, refusal
from keras_bert_impl.files import remove

_NAME = "keras_bert_impl"
_VARIABLE = "KERAS_BERT_CACHE"
_REMEDY = f"remove it, or name another place in {_VARIABLE}"


def user_cache() -> Path | None:
    """The folder of what is kept; None where that is switched off. It may not exist yet.

    The environment variable KERAS_BERT_CACHE names it, an empty value switches it off; otherwise it
    is `keras_bert_impl` in the folder that XDG_CACHE_HOME names, or in `~/.cache`.
    """
    named = os.environ.get(_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    root = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / _NAME
    except RuntimeError:  # this user has no home
        return None


def own_folder(name: str) -> Path | None:
    """A folder of the cache that this user alone can write to; None where that is switched off."""
    cache = user_cache()
    if cache is None:
        return None
    folder = cache / name
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: cannot be made ({refusal(error) or error}); {_REMEDY}."
        ) from error
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_own or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(f"{folder}: is no folder that you alone can write to; {_REMEDY}.")
    return folder


def keep_newest(folder: Path, most_bytes: int) -> None:
    """Removes the files and folders that were written longest ago, but for so many bytes.

    The newest one stays. Several processes may do so at once.
    """
    with contextlib.suppress(OSError):  # another process was faster
        found = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        total = 0
        for number, path in enumerate(found):
            parts = [path, *path.rglob("*")]
            total += sum(part.stat().st_size for part in parts if part.is_file())
            if number and total > most_bytes:
                remove(path)
