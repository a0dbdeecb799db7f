"""Statistics of the tags of a file: the scheme that they are in, and what is wrong with them."""

import itertools
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from keras_bert_impl.errors import UserError, cut, shown
from pipelines.metrics.entities import OUTSIDE
from pipelines.tasks.tagging.files import Sentence
from pipelines.tasks.tagging.schemes import BARE, BILOU, BIOES, IOB1, IOB2, Scheme

_LOGGER = logging.getLogger(__name__)

WORDS, CHARACTERS = "words", "characters"
LETTERED = re.compile(r"([BIESLU])-(.+)")
"""A tag of any scheme but bare types: its letter and its type."""
_OTHER_FORMS = (
    re.compile(r"(?P<letter>[BI])([-_:./|](?P<type>.+))?", re.IGNORECASE),
    re.compile(r"(?P<type>.+)[-_:./|](?P<letter>[BI])", re.IGNORECASE),
)


@dataclass
class TagStatistics:
    """Counts of a file.

    Attributes:
        several: the line of the first item of several characters; 0: there is none.
    """

    path: Path
    sentences: int = 0
    documents: int = 0
    items: int = 0
    several: int = 0
    _lines: dict[str, int] = field(default_factory=dict)  # of each tag the first line
    _loose: int = 0  # "I-" that continues nothing
    _free: int = 0  # "B-" that follows none of its type

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
        self.documents += bool(sentence.document_start)
        self.items += len(sentence.items)
        for number, item in zip(sentence.numbers, sentence.items, strict=True):
            self.several = self.several or (number if len(item) > 1 else 0)
        before = ""  # the type of the tag in front
        for number, tag in zip(sentence.numbers, sentence.tags or (), strict=False):
            parts = LETTERED.fullmatch(tag)
            if tag != OUTSIDE:
                self._lines.setdefault(tag, number)
            if parts and parts[2] != before:
                self._loose += parts[1] == "I"
                self._free += parts[1] == "B"
            before = parts[2] if parts else ""

    def scheme(self) -> Scheme:
        """The scheme that the tags are in."""
        if self._lines and not any(map(LETTERED.fullmatch, self._lines)):
            self._refuse_other_forms()
            return BARE
        for scheme in (IOB2, BIOES, BILOU):
            if all(map(scheme.split, self._lines)):
                # Without an "I-" that continues nothing the file has no entity in IOB1.
                is_iob1 = scheme is IOB2 and self._loose > self._free
                return IOB1 if is_iob1 else scheme
        pairs = itertools.combinations(self._lines, 2)
        one, other = next(pair for pair in pairs if not _schemes(pair[0]) & _schemes(pair[1]))
        raise UserError(
            f"{self.path}: line {self._lines[one]} has the tag {shown(one)} and line "
            f"{self._lines[other]} {shown(other)}, which are of different tagging schemes; write "
            "all tags in one, or name it with `tagging_scheme`."
        )

    def _refuse_other_forms(self) -> None:
        """Refuses tags that as types would be entities of their own: B_PER and I_PER, B and I."""
        for form in _OTHER_FORMS:
            seen = dict[str, str]()  # type to letter
            for tag, line in self._lines.items():
                found = form.fullmatch(tag)
                if found is None:
                    continue
                kind, letter = found["type"] or "NAME", found["letter"].upper()
                if seen.setdefault(kind, letter) != letter:
                    raise UserError(
                        f"{self.path}: line {line}: the tag {shown(tag)} is of a form that is not "
                        f"read; write {letter}-{kind} (and O outside of entities) or, if it is a "
                        "type, set `tagging_scheme=bare`."
                    )

    def types(self, scheme: Scheme, known: Iterable[str] | None = None) -> list[str]:
        """The types of the entities, sorted.

        Args:
            known: those of training, where others are refused.
        """
        types, expected = set[str](), None if known is None else set(known)
        for tag, line in self._lines.items():
            parts = scheme.split(tag)
            if parts is None:
                raise UserError(
                    f"{self.path}: line {line}: {shown(tag)} is no tag of {scheme.name}; correct "
                    "it, or name another `tagging_scheme`."
                )
            if expected is not None and parts.type not in expected:
                raise UserError(
                    f"{self.path}: line {line}: the tag {shown(tag)} is unknown (training has the "
                    f"types {cut(', '.join(sorted(expected)), 200)}); correct it, or add examples "
                    "of it to the training file."
                )
            types.add(parts.type)
        if not types and known is None:
            raise UserError(
                f"{self.path}: has no entity to learn; all its tags are {shown(OUTSIDE)}."
            )
        return sorted(types)

    def log(self, scheme: Scheme | None, unit: str) -> None:
        """Says what the file has."""
        documents = f" in {self.documents} documents" if self.documents else ""
        _LOGGER.info(
            "%s: %d sentences%s, %d %s, %s",
            *(self.path, self.sentences, documents, self.items, unit),
            f"tags in {scheme.name}" if scheme else "without tags",
        )


def _schemes(tag: str) -> set[str]:
    """The names of the schemes that a tag may be of."""
    if not LETTERED.fullmatch(tag):
        return {BARE.name}
    return {scheme.name for scheme in (BIOES, BILOU) if scheme.split(tag)}
