"""The exceptions for what a user can mend."""

from collections.abc import Iterable


class UserError(Exception):
    """Bad input that the user can mend.

    The message is one sentence that names the file, line, parameter or record and says what to do.
    The command-line tools print it and exit with code 1, without a traceback; any other exception
    that reaches a user is a bug.

    Example:
        >>> raise UserError("vocab.txt: has no [MASK] token; add a line '[MASK]'.")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: vocab.txt: has no [MASK] token; add a line '[MASK]'.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is told, a sentence each."""
        return (str(self),)


class SeveralUserError(UserError):
    """Several mistakes in one input, each of which the user can mend.

    Args:
        sentences: one or more, each as that of a `UserError`.

    Example:
        >>> SeveralUserError(["a.txt: line 1 is empty.", "a.txt: line 7 is empty."]).sentences
        ('a.txt: line 1 is empty.', 'a.txt: line 7 is empty.')
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._sentences = tuple(sentences)
        super().__init__("\n".join(self._sentences))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is told, a sentence each."""
        return self._sentences


def reason_of(error: BaseException) -> str:
    """The first line of what an error of the system says; its kind where it says nothing.

    Example:
        >>> reason_of(OSError(28, "No space left on device")), reason_of(OSError())
        ('No space left on device', 'OSError')
    """
    said = error.strerror if isinstance(error, OSError) else getattr(error, "message", None)
    lines = (said or str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
