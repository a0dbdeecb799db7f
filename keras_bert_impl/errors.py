"""What a user can fix, how foreign text is shown in messages, and what a machine refuses."""

import contextlib
import difflib
import errno
import os
import re
import reprlib
import tokenize
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

MOST_SHOWN = 80
"""Characters of what a file holds that a message shows."""

_MOST_OF_MESSAGE = 1200  # two long paths and a sentence
_ENDLESS_WORD = re.compile(r"\S{401,}")  # a path may be long; no reader needs more of one word
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control characters, direction marks, lone surrogates
_JOINERS = "\u200c\u200d"  # Persian and Indic words are spelled with them


class UserError(Exception):
    """Bad input that the user can correct.

    The message is one sentence that names the file, line, parameter or record and says what to do.
    The command-line tools print it and exit with code 1, without a traceback; any other exception
    that reaches a user is a bug. Control characters and direction marks, which a file or a name may
    bring along, are shown escaped, and a message without end is cut in its middle.

    Example:
        >>> raise UserError("vocab.txt: has no [MASK] token; add a line '[MASK]'.")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: vocab.txt: has no [MASK] token; add a line '[MASK]'.
    """

    def __init__(self, message: str) -> None:
        words = _ENDLESS_WORD.sub(lambda word: cut(word[0], 300), escaped(message))
        super().__init__(cut(words, _MOST_OF_MESSAGE))


def shown(value: Any) -> str:
    r"""A value out of a file as a message shows it: as Python writes it, cut to `MOST_SHOWN`.

    What a user typed (a path, a flag) is shown whole instead.

    Example:
        >>> print(shown("배\n"), shown({"a": [1, None]}), len(shown("x" * 10_000)))
        '배\n' {'a': [1, None]} 80
    """
    try:
        text = _SHORT.repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return cut(escaped(text), MOST_SHOWN)


def check_kind(value: Any, kind: type, remedy: str) -> None:
    """Refuses a value of another class than the one that is wanted."""
    if not isinstance(value, kind):
        raise UserError(f"{shown(value)} is no {kind.__name__}; {remedy}.")


def escaped(text: str) -> str:
    r"""Shows control characters, direction marks and halves of surrogate pairs as escapes.

    Line ends, blanks and all letters stay as they are. JSON stays JSON of the same values: of what
    it holds as it is, all is escaped as JSON does.

    Example:
        >>> print(escaped("\x1b[31mred \u202e\ud83d\x9b 한글"))
        \x1b[31mred \u202e\ud83d\u009b 한글
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(map(_escaped_character, text))


def _escaped_character(character: str) -> str:
    kept = character.isprintable() or character in "\n\t" or character in _JOINERS
    if kept or unicodedata.category(character) not in _HIDDEN:
        return character
    if character < " ":
        return character.encode("unicode_escape").decode()
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def cut(text: str, most: int = 400) -> str:
    """A text with its middle left out where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"


def nearest(word: str, names: Sequence[str]) -> str | None:
    """Finds the name that the user may have meant; None where nothing is near.

    Example:
        >>> names = ["train_batch_size", "num_train_epochs", "learning_rate"]
        >>> [nearest(word, names) for word in ("epochs", "learningrate", "verbosity")]
        ['num_train_epochs', 'learning_rate', None]
    """
    if close := difflib.get_close_matches(word, names, 1, 0.75):
        return close[0]
    parts = set(word.split("_"))
    whole = [name for name in names if parts <= set(name.split("_"))]
    return min(whole, key=len, default=None)


# Writes a few items of each level: a whole `repr` may be as large as the file.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * MOST_SHOWN
_SHORT.maxlevel = 3


def reason_of(error: BaseException) -> str:
    """The first line of what an error of the system says; its kind where it says nothing."""
    said = error.strerror if isinstance(error, OSError) else getattr(error, "message", None)
    lines = (said or str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


# What readers raise at a file that is not theirs; RecursionError is a RuntimeError. Stops are none.
_OF_READERS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError),
    *(OSError, RuntimeError, SyntaxError, TypeError, ValueError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


@contextlib.contextmanager
def reading(
    path: str | os.PathLike[str], what: str, remedy: str = "check it, or name another file"
) -> Iterator[None]:
    """Inside the block what goes wrong is one sentence: a file is not what it should be.

    Example:
        >>> with reading("sizes.json", "a list of sizes"):
        ...     {"small": 2}["large"]
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: sizes.json: cannot be read as a list of sizes (it has no \
'large'); check it, or name another file.
    """
    try:
        yield
    except _OF_READERS as error:
        missing = isinstance(error, KeyError) and error.args
        cause = f"it has no {shown(error.args[0])}" if missing else shown(reason_of(error))[1:-1]
        raise UserError(f"{path}: cannot be read as {what} ({cause}); {remedy}.") from error


# What Python says by an `OSError` TensorFlow and other foreign writers say by errors of their own,
# which hold the system's words: a full disk, a name that is too long.
_OF_DISKS = tuple(
    os.strerror(number)
    for number in (
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO),
        *(errno.EACCES, errno.EPERM, errno.ENAMETOOLONG),
    )
)
# What C++'s streams, through which OpenVINO writes, say of every fault.
_OF_STREAMS = "iostream error"
_NUL = "embedded null"  # how Python's `ValueError` for a path begins


def refusal(error: BaseException) -> str | None:
    """Why the system refused to read or write; None where an exception is about something else.

    Example:
        >>> refusal(OSError(28, "No space left on device"))
        'No space left on device'
        >>> refusal(RuntimeError("weights.tmp; No space left on device [Op:SaveV2]"))
        'No space left on device'
        >>> refusal(RuntimeError("basic_ios::clear: iostream error"))
        'the disk is full, or refuses it'
        >>> print(refusal(RuntimeError("shapes differ")))
        None
    """
    if isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, OSError):
        return reason_of(error)
    said = str(error)
    if isinstance(error, ValueError) and said.startswith(_NUL):
        return "its name holds a NUL character"
    if said.endswith(_OF_STREAMS):
        return "the disk is full, or refuses it"
    return next((words for words in _OF_DISKS if words in said), None)
