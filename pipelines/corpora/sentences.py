"""Splits a paragraph into sentences.

The library `sentencex` proposes the boundaries: it knows the abbreviations of many languages and is
by far the fastest of those compared (tools/benchmarks/tokenizer.py). Some of its mistakes can be
recognised from the text on both sides of a boundary; those boundaries are removed here.
"""

import re
from typing import NamedTuple

_CLOSING = "\"'”’»)\\]』」》〉"
# The end of a text that no sentence ends with, in any language.
_NOT_AN_END = re.compile(
    r"(?:^|[\s(\[“\"'])(?:"
    r"[Vv]ol|[Nn]os?|[Pp]p?|[Ff]igs?|[Ee]qs?|[Ss]ec|[Cc]h|[Aa]rt|[Cc]a?|[Cc]f|[Vv]s?|[Aa]pprox|[Ff]l|"
    r"St|Ste|Sta|Sto|Ft|Mt|Pt|Fr|Sr|Br|Dr|Mr|Mrs|Ms|Mx|Messrs|Prof|Rev|Hon|Pres|Gov|Gen|Sen|Rep|"
    r"Col|Lt|Maj|Capt|Cpl|Sgt|Pvt|Adm|Cmdr|Brig|Insp|Supt|Amb|Mon|Tues?|Thurs?"
    r")\.\s*$"
)
_LIST_NUMBER = re.compile(r"^(?:\(?\d{1,3}[.)]|[A-Za-z][.)]|제\s?\d+\s?[조장절항]\.)\s*$")
_SAYS = re.compile(
    r"\w+(?: \w+)? (?:said|asked|cried|shouted|replied|answered|whispered|called|exclaimed|added|"
    r"yelled|screamed|muttered|remarked|says|asks|replies|answers)\b"
)
_ENDS_IN_QUOTE = re.compile(r"[\"”’»'』」]\s*$")
_ENDS_IN_CRY = re.compile(rf"[!?][{_CLOSING}]+\s*$")
_ASIDE = re.compile(r"^\(.*[.!?]\)\s+(?=[\"“(]?\w)", re.DOTALL)
# Korean: what introduces or follows a quotation, and dates.
_REPORTS = re.compile(
    r"(?:이?라고|이?라며|이?라는|이?라면서|이?란|하고|하며|고|며|라)(?![가-힣])|라|이라|하고"
)
_SAYS_KOREAN = re.compile(
    r"(?:\S{1,9}(?:이|가|은|는|께서|도) )?(?:\S{1,6}[게히며서] )?"
    r"(?:되?물었|되?묻|말했|말하|대답|소리[쳤치]|외[쳤치]|속삭[였이]|중얼거[렸리]|덧붙[였이]|하셨|했)"
)
_DATE = re.compile(r"(?:^|\s)\d{4}\.\s*(?:\d{1,2}\.\s*){1,2}$")
_YEAR_OR_MONTH = re.compile(r"\d\.\s*$")
_NUMBER_AND_DOT = re.compile(r"\d{1,2}\.")


class _Boundary(NamedTuple):
    """The text on both sides of a proposed boundary; `before` ends with the white space between."""

    before: str
    after: str


def split_paragraph(paragraph: str, language: str = "en") -> list[str]:
    """Splits a paragraph into sentences; together they have all of its text.

    Args:
        language: ISO 639 code of its language; one that the library does not know is split by
            general rules.

    Returns:
        The sentences without white space around them; none where there is no text.

    Example:
        >>> split_paragraph("Dr. Smith paid $3.50. Why?")
        ['Dr. Smith paid $3.50.', 'Why?']
        >>> split_paragraph("그는 갔다. 왜?", "ko")
        ['그는 갔다.', '왜?']
    """
    import sentencex  # type: ignore[import-untyped]

    # In a paragraph without capitals, a small letter after a boundary tells nothing.
    has_case = not paragraph.islower()
    proposed = sentencex.segment(language, paragraph)
    sentences: list[str] = []
    before = ""
    for part in proposed:
        if before and not _is_false(_Boundary(before, part), language, has_case):
            sentences.append(before)
            before = part
        else:
            before += part
    sentences.append(before)
    stripped = (part.strip() for sentence in sentences for part in _split_aside(sentence))
    return [sentence for sentence in stripped if sentence]


def _is_false(boundary: _Boundary, language: str, has_case: bool) -> bool:
    """Whether a proposed boundary is inside a sentence."""
    before, after = boundary
    small = after[:1].islower() and not after[1:2].isupper()  # a name like iPad may begin one
    if has_case and small and before.rstrip()[-1:] in ".!?":
        return True
    if _NOT_AN_END.search(before[-12:]) or (len(before) < 12 and _LIST_NUMBER.match(before)):
        return True
    if _YEAR_OR_MONTH.search(before[-4:]) and _NUMBER_AND_DOT.match(after):
        return True
    if _ENDS_IN_CRY.search(before[-6:]) and _SAYS.match(after):
        return True
    return language == "ko" and _is_false_in_korean(boundary)


def _is_false_in_korean(boundary: _Boundary) -> bool:
    before, after = boundary
    if _ENDS_IN_QUOTE.search(before[-3:]):
        # Without a space, what follows is an ending of the quoted words: “왜?”였다.
        attached = not before[-1:].isspace() and "가" <= after[:1] <= "힣"
        return attached or bool(_REPORTS.match(after) or _SAYS_KOREAN.match(after))
    return bool(_DATE.search(before[-16:]))


def _split_aside(sentence: str) -> list[str]:
    """Separates a sentence in brackets from the one after it."""
    aside = _ASIDE.match(sentence) if sentence.startswith("(") else None
    if aside is None:
        return [sentence]
    return [sentence[: aside.end()], sentence[aside.end() :]]
