"""Where this package keeps for a user what can be made again."""

import os
from pathlib import Path

_NAME = "keras_bert_impl"


def user_cache() -> Path | None:
    """The folder of what is kept; None where that is switched off. It may not exist yet.

    The environment variable KERAS_BERT_CACHE names it, an empty value switches it off; otherwise it
    is `keras_bert_impl` in the folder that XDG_CACHE_HOME names, or in `~/.cache`.
    """
    named = os.environ.get("KERAS_BERT_CACHE")
    if named is not None:
        return Path(named) if named else None
    root = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / _NAME
    except RuntimeError:  # this user has no home
        return None
