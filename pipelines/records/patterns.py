"""Files that a name or glob on the command line stands for."""

from pathlib import Path

_MAGIC = frozenset("*?[")


def match_files(pattern: str) -> list[str]:
    """The files that match a name or glob, sorted; the name of a file is given back as it is.

    Args:
        pattern: a path, in which `*`, `?`, `[...]` and `**` may stand.

    Example:
        >>> match_files("corpus.txt")
        ['corpus.txt']
        >>> match_files("/no/such/folder/*.txt")
        []
    """
    if not _MAGIC & set(pattern) or Path(pattern).exists():
        return [pattern]
    path = Path(pattern)
    root = Path(path.anchor)
    found = root.glob(str(path.relative_to(root)) if path.anchor else pattern)
    return sorted(str(file) for file in found)
