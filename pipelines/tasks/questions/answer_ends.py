"""Where an answer ends as it stands in the text: with a character of its last token.

The characters that the tokenizer drops (a zero-width space, a soft hyphen) belong to the token in
front of them, so that a token's characters may end with some that nobody sees.
"""

import sys
from functools import cache

from keras_bert_impl.tokenization.reference import is_dropped


def visible_end(text: str, start: int, end: int) -> int:
    r"""The position after the last character of a span that the tokenizer does not drop.

    Args:
        text: the passage.
        start: the position of the span's first character.
        end: the position after its last one.

    Example:
        >>> visible_end("It rained\u200b all day.", 3, 10)
        9
    """
    while end > start and is_dropped(text[end - 1]):
        end -= 1
    return end


@cache
def dropped_at_the_end() -> str:
    r"""A regular expression, for Python and for TensorFlow's graphs, for what `visible_end` leaves.

    Example:
        >>> import re
        >>> re.sub(dropped_at_the_end(), "", "soft\u00ad\u200b")
        'soft'
    """
    dropped = [code for code in range(sys.maxunicode + 1) if is_dropped(chr(code))]
    known = "".join(f"\\x{code:02x}" if code < 128 else chr(code) for code in dropped)
    return f"[{known}]+$"
