"""Lines to paragraphs, and paragraphs to sentences.

In wrapped prose (mails, man pages, old books) many lines end in the middle of a sentence at one
width, where the next word had no room. In a poem, in a list, and where each line is a paragraph or
a sentence, few do both.

The library `sentencex` proposes the boundaries of sentences: it knows the abbreviations of many
languages and is by far the fastest of those compared (tools/benchmarks/tokenizer.py). Some of its
mistakes can be recognised from the text on both sides of a boundary; those are removed here.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

_SAMPLE_LINES, _FEWEST, _RAGGED = 500, 3, 15
_FULL, _NARROWEST, _WIDEST = 0.4, 40, 250  # the share of full lines that proves it, at which widths
_LONGEST_WORD = 10  # in Thai, which has no blanks, a word may be a sentence
_LEAD = re.compile(r"((?:\s*>)*)(\s*)((?:[-*•]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+)?")
_ENDS_SENTENCE = re.compile(r"[.!?:…。！？।॥۔؟][\"'”’»)\]」』]*$")
_ENDS_IN_HYPHEN = re.compile(r"\w(?:-|--|‐|—)$")


class _Line(NamedTuple):
    """A line: how deep a mail quotes it, its words, and where they begin (`inner`: in a list)."""

    text: str
    quoted: int
    body: str
    start: int
    inner: int

    @property
    def word(self) -> str:
        """The first word, or as much as stands together where a script has no blanks."""
        return self.body[:2] if _has_no_blanks(self.body[0]) else self.body.split(maxsplit=1)[0]


def are_cut(lines: Iterable[str | None]) -> bool:
    """Whether the lines of a text are cut at one width, and are no paragraphs or sentences.

    Example:
        >>> import textwrap
        >>> text = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. " * 9
        >>> are_cut(textwrap.wrap(text, 60)), are_cut([text] * 9)
        (True, False)
    """
    sample = [_parsed((line or "")[: 2 * _WIDEST]) for line in islice(lines, _SAMPLE_LINES)]
    pairs = [(a, b) for a, b in pairwise(sample) if a and b and _may_continue(a, b)]
    if len(pairs) < _FEWEST:
        return False
    # The narrowest width that the most lines nearly reach.
    counts = np.bincount([columns(line.text) for line, _ in pairs])[: _WIDEST + 1]
    width = int(np.argmax(np.convolve(counts, np.ones(_RAGGED))))
    full = sum(
        0 <= width - columns(line.text) <= columns(following.word[:_LONGEST_WORD])
        for line, following in pairs
        if _runs_on(line, following)
    )
    return width >= _NARROWEST and full >= _FULL * len(pairs)


def joined_lines(lines: Iterable[str | None]) -> Iterator[str | None]:
    """The paragraphs of cut lines, up to an empty one, a quotation or an item of a list.

    None ends a document.

    Example:
        >>> list(joined_lines(["> A well-", "> known one", "", "- two", "  lines"]))
        ['> A well-known one', '- two lines']
    """
    paragraph, last = "", None
    for text in lines:
        line = _parsed(text)
        if last and line and _may_continue(last, line):
            paragraph += f"{_between(paragraph, line.body)}{line.body}"
        else:
            if last:
                yield paragraph
            paragraph = line.text if line else ""
        if text is None:
            yield None
        last = line
    if last:
        yield paragraph


def _parsed(text: str | None) -> _Line | None:
    """A line; None where there is none, or an empty one, which may be quoted."""
    text = (text or "").expandtabs().rstrip()
    quotes, blanks, mark = _LEAD.match(text).groups("")  # type: ignore[union-attr]
    start = len(quotes) + len(blanks)
    line = _Line(text, quotes.count(">"), text[start:], start, start + len(mark))
    return line if line.body else None


def _may_continue(line: _Line, following: _Line) -> bool:
    """Whether two lines may be parts of one paragraph."""
    new_item = following.inner > following.start
    return line.quoted == following.quoted and following.start <= line.inner and not new_item


def _runs_on(line: _Line, following: _Line) -> bool:
    """Whether no sentence ends with a line, and none seems to begin with the next one."""
    first = next(filter(str.isalnum, following.body), "")
    return not (_ENDS_SENTENCE.search(line.text) or first.isupper() or first.isdigit())


def _between(before: str, after: str) -> str:
    """What stands between two parts of a paragraph: a blank, where the script has any."""
    unparted = _has_no_blanks(before[-1]) and _has_no_blanks(after[0])
    return "" if unparted or _ENDS_IN_HYPHEN.search(before) else " "


def columns(text: str) -> int:
    """The columns that a text takes; Hangul and other wide characters take two each."""
    wide = () if text.isascii() else map(unicodedata.east_asian_width, text)
    return len(text) + sum(one in "WF" for one in wide)


def _has_no_blanks(character: str) -> bool:
    """Whether a character is of a script that parts no words: Chinese or Japanese, not Korean."""
    return columns(character) == 2 and not "가" <= character <= "힣"


_CLOSING = "\"'”’»)\\]』」》〉"
# The end of a text that no sentence ends with, in any language.
_NOT_AN_END = re.compile(
    r"(?:^|[\s(\[“\"'])(?:"
    r"[Vv]ol|[Nn]os|[Ff]igs?|[Ee]qs?|[Cc]h|[Cc]f|[Vv]s?|[Aa]pprox|"
    r"St|Ste|Sta|Sto|Ft|Mt|Pt|Fr|Sr|Br|Dr|Mr|Mrs|Ms|Mx|Messrs|Prof|Rev|Hon|Pres|Gov|Gen|Sen|Rep|"
    r"Col|Lt|Maj|Capt|Cpl|Sgt|Pvt|Adm|Cmdr|Brig|Insp|Supt|Amb|Mon|Tues?|Thurs?"
    r")\.\s*$"
)
# Before a number only: they are words, too ("He said no.").
_BEFORE_NUMBER = re.compile(
    r"(?:^|[\s(\[“\"'’])(?:[Nn]o|[Aa]rt|[Cc]a?|[Pp]p?|[Ss]ec|[Ff]l)\.\s*(?:[A-Z]\.\s*)?$"
)
_BEFORE_NUMBER_IN_WORDS = re.compile(r"(?:^|[\s(\[“\"'’])(?:No|Art)\.\s*$")
_NUMBER_IN_WORDS = re.compile(
    r"(?:One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Premier|Première|Primeiro|Primero|Ia)\b"
)
_NUMBER = re.compile(
    r"[(\[#]?(?:[A-Z]\. ?)?[A-Z]?\d|[A-Z]\.\s*$|"
    r"(?:[IVXLCDM]{2,}|[ivxlcdm]{2,}|[VXvx]|I(?=[,.;:)]|$))\b"
)
# Where the library takes such a word for an abbreviation.
_AFTER_A_WORD = re.compile(
    r"(?<=\b[Nn]o\. )(?=I['’ ]|[¿¡]?[A-ZÀ-Þ][a-zà-þ])|(?<=\bArt\. )(?=(?!Nr)[A-ZÀ-Þ][a-zà-þ])"
)
_LIST_NUMBER = re.compile(r"^(?:\(?\d{1,3}[.)]|[A-Za-z][.)]|제\s?\d+\s?[조장절항]\.)\s*$")
_SAYS = re.compile(
    r"\w+(?: \w+)? (?:said|asked|cried|shouted|replied|answered|whispered|called|exclaimed|added|"
    r"yelled|screamed|muttered|remarked|says|asks|replies|answers)\b"
    r"|\w{1,6}?(?:(?<!小)[说說]|(?<![访訪])[问問]|喊|回答|[叫答笑吼嚷骂罵]道)(?=[道着著了：:，,。！？]|$)"
)
_REPORTS_JAPANESE = re.compile(
    r"って|と(?!ころ|ても|にかく|うとう|りあえず|ある|つぜん|なり|もかく|もに|くに|き)"
)
_ENDS_IN_QUOTE = re.compile(r"[\"”’»'』」]\s*$")
_ENDS_IN_CRY = re.compile(rf"[!?！？。][{_CLOSING}]+\s*$")
_ASIDE = re.compile(r"^\(.*[.!?]\)\s+(?=[\"“(]?\w)", re.DOTALL)
# Korean: what introduces or follows a quotation, and dates.
_REPORTS = re.compile(
    r"(?:이?라고|이?라며|이?라는|이?라면서|이?란|하고|하며|고|며|라)(?![가-힣])|라|이라|하고"
)
_SAYS_KOREAN = re.compile(
    r"(?:\S{1,9}(?:이|가|은|는|께서|도) )?(?:\S{1,6}[게히며서] )?"
    r"(?:되?물었|되?묻|말했|말하|대답|답했|답하(?!라)|소리를? ?(?:[쳤치]|지르|질[렀러])|외[쳤치]|"
    r"속삭[였이]|중얼거[렸리]|덧붙[였이]|하셨|했)"
)
_DATE = re.compile(r"(?:^|\s)\d{4}\.\s*(?:\d{1,2}\.\s*){1,2}$")
_YEAR_OR_MONTH = re.compile(r"\d\.\s*$")
_NUMBER_AND_DOT = re.compile(r"\d{1,2}\.")


_PIECE = 4000  # characters; the library's time is quadratic in text without blanks
_MARKS = re.compile(r"([「『“‘（(])|([」』”’）)])|[。！？]++\s*+(?![」』”’）)\"])")


def _pieces(paragraph: str) -> Iterator[str]:
    """Cuts a long paragraph in Chinese or Japanese where sentences end outside of quotations."""
    start = depth = 0
    for mark in _MARKS.finditer(paragraph) if len(paragraph) > _PIECE else ():
        opens, closes = mark.groups()
        depth = max(0, depth + bool(opens) - bool(closes))
        # A quotation that long was never closed.
        if not (opens or closes) and mark.end() - start > (4 * _PIECE if depth else _PIECE):
            yield paragraph[start : mark.end()]
            start, depth = mark.end(), 0
    yield paragraph[start:]


class _Boundary(NamedTuple):
    """The text on both sides of a proposed boundary; `before` ends with the white space between."""

    before: str
    after: str


def split_paragraph(paragraph: str, language: str = "en") -> list[str]:
    """Splits a paragraph into sentences; together they have all of its text.

    Example:
        >>> split_paragraph("Dr. Smith paid $3.50. Why?")
        ['Dr. Smith paid $3.50.', 'Why?']
        >>> split_paragraph("그는 갔다. 왜?", "ko")
        ['그는 갔다.', '왜?']
    """
    import sentencex  # type: ignore[import-untyped]

    # In a paragraph without capitals, a small letter after a boundary tells nothing.
    has_case = not paragraph.islower()
    proposed = list[str]()
    for part in (one for piece in _pieces(paragraph) for one in sentencex.segment(language, piece)):
        proposed += _AFTER_A_WORD.split(part) if ". " in part[:-2] else [part]
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
    if _BEFORE_NUMBER.search(before[-12:]) and _NUMBER.match(after):
        return True
    if _BEFORE_NUMBER_IN_WORDS.search(before[-6:]) and _NUMBER_IN_WORDS.match(after):
        return True
    if _YEAR_OR_MONTH.search(before[-4:]) and _NUMBER_AND_DOT.match(after):
        return True
    if _ENDS_IN_CRY.search(before[-6:]) and _SAYS.match(after):
        return True
    ends_in_quote = before.endswith(("」", "』")) and _REPORTS_JAPANESE.match(after)
    if ends_in_quote or after.startswith(("」", "』")):
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
