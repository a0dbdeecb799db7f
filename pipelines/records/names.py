"""The names of the files of a set of shards.

A set is named by its `output_file`, say `data/train.tfrecord`. Its shards are
`data/train.tfrecord-00000-of-00008` and so on, or have names of their own where `output_file` lists
them. Beside each shard stands its index, beside the set its description. Names are strings here,
because they may also be addresses on a remote file system.
"""

import os
import re

DESCRIPTION_SUFFIX = ".recipe.json"
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
    """The index of a shard.

    Example:
        >>> index_path("data/train.tfrecord-00000-of-00002")
        'data/train.tfrecord-00000-of-00002.index'
    """
    return f"{os.fspath(shard)}.index"


def description_path(set_name: str | os.PathLike[str]) -> str:
    """The description of a set of pre-training shards.

    Example:
        >>> description_path("data/train.tfrecord")
        'data/train.tfrecord.recipe.json'
    """
    return f"{os.fspath(set_name)}{DESCRIPTION_SUFFIX}"
