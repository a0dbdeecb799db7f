"""The words of a text that is to be tagged: what stands between blanks, marks apart or not."""

import re

BLANKS = " \t\r\n"
RARE_BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
LINE_BREAK = "\n"
MARKS = ".,;:!?()[]{}<>\"'`´“”„‟‘’‚‛«»‹›…·¡¿、。，．！？：；（）「」『』《》〈〉【】"

_WORDS = re.compile(f"[^{re.escape(BLANKS)}]+")
_WORDS_OF_RAW_TEXT = re.compile(f"[^{re.escape(BLANKS + RARE_BLANKS)}]+")
_MARKED = re.compile(f"([{re.escape(MARKS)}]*)(.*?)([{re.escape(MARKS)}]*)", re.DOTALL)

Span = tuple[int, int]


def words_of(text: str, *, split_marks: bool = False) -> list[list[Span]]:
    r"""Finds the words of each line of a text.

    Returns:
        Of each line the position in the text of each word's first character, and the one after
        its last.

    Example:
        >>> words_of("In Paris.\nYes")
        [[(0, 2), (3, 9)], [(10, 13)]]
        >>> words_of("(Paris).", split_marks=True)
        [[(0, 1), (1, 6), (6, 7), (7, 8)]]
    """
    pattern, begin, lines = _WORDS_OF_RAW_TEXT if split_marks else _WORDS, 0, []
    for line in text.split(LINE_BREAK):
        spans = [(begin + one.start(), begin + one.end()) for one in pattern.finditer(line)]
        if split_marks:
            spans = [part for span in spans for part in _without_marks(text, span)]
        lines.append(spans)
        begin += len(line) + 1
    return lines


def _without_marks(text: str, span: Span) -> list[Span]:
    found = _MARKED.fullmatch(text, *span)
    if found is None or found.start(2) == found.end(2):  # nothing but marks
        return [span]
    (start, end), core = span, found.span(2)
    return [
        *((mark, mark + 1) for mark in range(start, core[0])),
        core,
        *((mark, mark + 1) for mark in range(core[1], end)),
    ]
