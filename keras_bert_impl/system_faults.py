"""What the machine refuses: a full disk, a name that is too long, memory that does not suffice.

Python says so by an `OSError`, TensorFlow and other foreign writers by errors of their own that
hold the system's words.
"""

import errno
import os

from keras_bert_impl.errors import reason_of

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

    Args:
        error: any exception. A reader of a pipe that went away is no refusal.

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
