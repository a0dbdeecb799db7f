"""Statistics of the tags of a file: the scheme that they are in, and what is wrong with them."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from keras_bert_impl.errors import UserError, shown
from pipelines.metrics.entities import OUTSIDE
from pipelines.tasks.tagging.files import Sentence
from pipelines.tasks.tagging.schemes import BARE, BILOU, BIOES, IOB1, IOB2, Scheme, fault

_LOGGER = logging.getLogger(__name__)

WORDS, CHARACTERS = "words", "characters"
LETTERED = re.compile(r"([BIESLU])-(.+)")
"""A tag of any scheme but bare types: its letter and its type."""
_IN_FRONT = re.compile(r"(?P<letter>[BI])[-_:./|](?P<type>.+)", re.IGNORECASE)
_BEHIND = re.compile(r"(?P<type>.+)[-_:./|](?P<letter>[BI])", re.IGNORECASE)
_LETTERS_ALONE = frozenset("BIESLU")
_LONG_SENTENCE = 1000
_MOST_NAMED = 12


@dataclass
class _Places:
    """How often something was seen, and where first."""

    count: int = 0
    line: int = 0
    tag: str = ""

    def add(self, line: int, tag: str) -> None:
        if not self.count:
            self.line, self.tag = line, tag
        self.count += 1


@dataclass
class TagStatistics:
    """Counts of a labelled file.

    Attributes:
        path: the file.
        sentences: how many it has.
        documents: how many documents begin in it.
        items: how many words or characters.
        longest: the words of the longest sentence, and the line that it begins on.
    """

    path: Path
    sentences: int = 0
    documents: int = 0
    items: int = 0
    longest: tuple[int, int] = (0, 0)
    _tags: dict[str, int] = field(default_factory=dict)  # to the first line
    _long: _Places = field(default_factory=_Places)  # items of several characters
    _blank: _Places = field(default_factory=_Places)  # items of blanks
    _numerals: int = 0
    _bare: _Places = field(default_factory=_Places)
    _lettered: dict[str, _Places] = field(default_factory=dict)
    _loose: _Places = field(default_factory=_Places)  # "I-" that continues nothing
    _free: _Places = field(default_factory=_Places)  # "B-" that follows none of its type

    @property
    def has_words(self) -> bool:
        """Whether an item has more than one character."""
        return self._long.count > 0

    @classmethod
    def of(cls, path: Path, sentences: Iterable[Sentence]) -> "TagStatistics":
        """Reads all sentences of a file."""
        statistics = cls(path)
        for sentence in sentences:
            statistics.add(sentence)
        return statistics

    def add(self, sentence: Sentence) -> None:
        """Counts a sentence."""
        self.sentences += 1
        self.documents += sentence.begins_document
        self.items += len(sentence.items)
        self.longest = max(self.longest, (len(sentence.items), sentence.numbers[0]))
        for number, item in zip(sentence.numbers, sentence.items, strict=True):
            if len(item) > 1:
                self._long.add(number, item)
            if item.isspace():
                self._blank.add(number, item)
            self._numerals += item.isdecimal()
        before = ""  # the type of the tag in front
        for number, tag in zip(sentence.numbers, sentence.tags or (), strict=False):
            if tag == OUTSIDE:
                before = ""
                continue
            self._tags.setdefault(tag, number)
            parts = LETTERED.fullmatch(tag)
            if parts is None:
                self._bare.add(number, tag)
                continue
            letter, kind = parts.groups()
            self._lettered.setdefault(letter, _Places()).add(number, tag)
            if letter == "I" and kind != before:
                self._loose.add(number, tag)
            if letter == "B" and kind != before:
                self._free.add(number, tag)
            before = kind

    def scheme(self) -> Scheme:
        """The scheme that the tags are in."""
        if self._lettered and self._bare.count:
            self._refuse(self._bare, min(self._lettered.values(), key=lambda x: x.line))
        if self._bare.count:
            self._refuse_other_letters()
            return BARE
        ends = [self._lettered[letter] for letter in "ES" if letter in self._lettered]
        lasts = [self._lettered[letter] for letter in "LU" if letter in self._lettered]
        if ends and lasts:
            self._refuse(ends[0], lasts[0])
        if ends or lasts:
            return BIOES if ends else BILOU
        # Without an "I-" that continues nothing the file has no entity in IOB1.
        return IOB1 if self._loose.count > self._free.count else IOB2

    def _refuse_other_letters(self) -> None:
        """Refuses tags that as types would be entities of their own: B_PER and I_PER, B and I."""
        if _LETTERS_ALONE.issuperset(self._tags):
            raise UserError(
                f"{self.path}: line {self._bare.line} has the tag {shown(self._bare.tag)} without "
                "a "
                f"type; write {self._bare.tag}-NAME (and O outside of entities) or, if it is a "
                "type, set `tagging_scheme=bare`."
            )
        for pattern in (_IN_FRONT, _BEHIND):
            seen = dict[str, str]()  # type to letter
            for tag, line in self._tags.items():
                found = pattern.fullmatch(tag)
                if found and seen.setdefault(found["type"], found["letter"]) != found["letter"]:
                    letter, kind = found["letter"].upper(), found["type"]
                    raise UserError(
                        f"{self.path}: line {line}: the tag {shown(tag)} seems to be one of words "
                        "in an "
                        f"entity in a form that is not read; write {letter}-{kind} (and O outside "
                        "of entities) or, if it is a type, set `tagging_scheme=bare`."
                    )

    def _refuse(self, first: _Places, second: _Places) -> None:
        raise UserError(
            f"{self.path}: line {first.line} has the tag {shown(first.tag)} and line {second.line} "
            f"{shown(second.tag)}, which are of different tagging schemes; write all tags in one, "
            "or "
            "name it with `tagging_scheme`."
        )

    def types(self, scheme: Scheme) -> list[str]:
        """The types of the entities, sorted."""
        types = set[str]()
        for tag, line in self._tags.items():
            parts = scheme.split(tag)
            if parts is None:
                raise UserError(
                    f"{self.path}: line {line}: {shown(tag)} is no tag of {scheme.name}; name "
                    "another "
                    "`tagging_scheme`, or mend the line."
                )
            types.add(parts.type)
        if not types:
            raise UserError(
                f"{self.path}: has no entity to learn; all its tags are {shown(OUTSIDE)}."
            )
        return sorted(types)

    def log(self, scheme: Scheme | None, unit: str) -> None:
        """Says what the file has."""
        _LOGGER.info(
            "%s: %d sentences%s, %d %s%s",
            self.path,
            self.sentences,
            f" in {self.documents} documents" if self.documents else "",
            self.items,
            unit,
            f", tags in {scheme.name}" if scheme else ", without tags",
        )
        count, line = self.longest
        if count > _LONG_SENTENCE and unit == WORDS:
            _LOGGER.warning(
                "%s: the sentence that begins on line %d has %d words; is the empty line after it "
                "missing? It is read in windows.",
                self.path,
                line,
                count,
            )
        if self._numerals == self.items:
            _LOGGER.warning(
                "%s: all words are numbers; if words stand in another column, name it with "
                "`word_column`.",
                self.path,
            )
        if unit == WORDS and self._blank.count and self.has_words:
            _LOGGER.warning(
                "%s: lines of blanks, as line %d, look like characters, but line %d has %r, which "
                "is several; if characters are meant, write each as one and set "
                "`tag_unit=characters`.",
                self.path,
                self._blank.line,
                self._long.line,
                self._long.tag,
            )


def check_tags(path: Path, sentence: Sentence, scheme: Scheme, types: Iterable[str]) -> None:
    """Refuses a tag that cannot stand where it does.

    Example:
        >>> sentence = Sentence(("Ada",), ("I-PER",), ("Ada I-PER",), (7,))
        >>> check_tags(Path("dev.txt"), sentence, IOB2, ["PER"])
        Traceback (most recent call last):
        keras_bert_impl.errors.UserError: dev.txt: line 7: the tag 'I-PER' starts nowhere: there is
        no PER in front of it (the tags are in iob2); mend the line, name another `tagging_scheme`,
        or set `keep_broken_tags`.
    """
    padded = [OUTSIDE, *(sentence.tags or ()), OUTSIDE]
    for number, *around in zip(sentence.numbers, padded, padded[1:], padded[2:], strict=False):
        if around[1] == OUTSIDE:
            continue
        if wrong := fault(scheme, *around):
            raise UserError(
                f"{path}: line {number}: the tag {shown(around[1])} {wrong} (the tags are in "
                f"{scheme.name}); mend the line, name another `tagging_scheme`, or set "
                "`keep_broken_tags`."
            )
    check_types(path, sentence, scheme, types)


def check_types(path: Path, sentence: Sentence, scheme: Scheme, types: Iterable[str]) -> None:
    """Refuses a tag that is none of the scheme, or of a type that training does not have."""
    known = set(types)
    for number, tag in zip(sentence.numbers, sentence.tags or (), strict=False):
        parts = scheme.split(tag)
        if parts is None:
            raise UserError(
                f"{path}: line {number}: {shown(tag)} is no tag of {scheme.name}, the scheme of "
                "the "
                "others; mend the line, or name another `tagging_scheme`."
            )
        if parts.type and parts.type not in known:
            some = ", ".join(sorted(known)[:_MOST_NAMED])
            raise UserError(
                f"{path}: line {number}: the tag {shown(tag)} is unknown (training has the types "
                f"{some}); mend the line, or add examples of it to the training file."
            )
