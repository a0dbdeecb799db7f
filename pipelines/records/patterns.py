"""Files that a name or glob on the command line stands for."""

import glob
import logging
from pathlib import Path

from keras_bert_impl.files import is_there

_LOGGER = logging.getLogger(__name__)
_MAGIC = frozenset("*?[")


def has_magic(pattern: str) -> bool:
    """Whether a name has characters that stand for others.

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
    # As in a shell, but not as `Path.glob`: `*` leaves out hidden files, which are half written.
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
