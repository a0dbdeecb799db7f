"""The ways in which files write entities as tags, told apart and turned into one another.

| scheme | "Ada Byron , London London" (PER, LOC, LOC) |
|---|---|
| `iob1` | I-PER I-PER O I-LOC B-LOC: "B-" only directly after an entity of the same type |
| `iob2` | B-PER I-PER O B-LOC B-LOC |
| `bioes` | B-PER E-PER O S-LOC S-LOC |
| `bilou` | B-PER L-PER O U-LOC U-LOC |
| `bare` | PER PER O LOC LOC: types only, so that neighbours of one type are one entity |

Some files write `iob2` in short, B_PER I O B_LOC B_LOC, or with the type first, PER-B PER-I O LOC-B
LOC-B; both are spelled out where they are read.
"""

import itertools
import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_impl.errors import UserError, cut, shown
from pipelines.metrics.entities import OUTSIDE, Entity, find_entities

if TYPE_CHECKING:
    from pipelines.tasks.tagging.files import Sentence

_LOGGER = logging.getLogger(__name__)

WORDS, CHARACTERS = "words", "characters"
LETTERED = re.compile(r"(?P<letter>[BIESLU])-(?P<type>.+)")
"""A tag of any scheme but bare types: its letter and its type."""
_SPELLINGS = (
    LETTERED,
    re.compile(r"(?P<letter>[BIESLU])_(?P<type>.+)"),
    re.compile(r"(?P<type>.+)[-_](?P<letter>[BIESLU])"),
)
_NO_ENTITY = re.compile(r"\[.*\]|<.*>|X|PAD|[-_]?", re.IGNORECASE)
_OTHER_FORMS = (
    re.compile(r"(?P<letter>[BI])([-_:./|](?P<type>.*))?", re.IGNORECASE),
    re.compile(r"(?P<type>.+)[-_:./|](?P<letter>[BI])", re.IGNORECASE),
)


@dataclass(frozen=True)
class Scheme:
    """A way to write entities as tags."""

    name: str
    first: str  # the letter of the first word of an entity; of bare types all are empty
    inside: str
    last: str
    single: str  # of the only word

    @property
    def _letters(self) -> Iterable[str]:
        if self is IOB1:
            return "B", "I"
        return dict.fromkeys((self.first, self.inside, self.last, self.single))

    def tags(self, types: Iterable[str]) -> tuple[str, ...]:
        """All tags of some types, "O" first."""
        return (OUTSIDE, *(_joined(letter, kind) for kind in types for letter in self._letters))

    def type_of(self, tag: str) -> str | None:
        """The type of a tag, "" of "O"; None where it is no tag of this scheme.

        Example:
            >>> [IOB2.type_of(tag) for tag in ("B-PER", "O", "PER")]
            ['PER', '', None]
        """
        if tag == OUTSIDE:
            return ""
        letter, _, kind = ("", "", tag) if self is BARE else tag.partition("-")
        return kind if kind and letter in self._letters else None

    def has(self, tags: Iterable[str]) -> bool:
        """Whether all these are tags of this scheme."""
        return None not in map(self.type_of, tags)

    def as_iob(self, tag: str) -> str:
        """The tag as the official scorer reads it.

        Of BIOES that is IOB2. A bare type continues an entity of its type, as "I-" does.

        Example:
            >>> [BIOES.as_iob("S-LOC"), BARE.as_iob("place"), BARE.as_iob("O")]
            ['B-LOC', 'I-place', 'O']
        """
        if tag == OUTSIDE:
            return tag
        letter, _, kind = ("I", "", tag) if self is BARE else tag.partition("-")
        return f"{_IOB[letter]}-{kind}"

    def entities(self, tags: Sequence[str]) -> list[Entity]:
        """The entities of a sentence."""
        return find_entities([self.as_iob(tag) for tag in tags])

    def write(self, entities: Sequence[Entity], count: int) -> list[str]:
        """The tags of a sentence of `count` words with these entities, in their order."""
        tags = [OUTSIDE] * count
        before = Entity("", 0, 0)
        for entity in entities:
            size = entity.end - entity.start
            several = [self.first, *[self.inside] * (size - 2), self.last]
            letters = [self.single] if size == 1 else several
            if self is IOB1 and (before.type, before.end) == (entity.type, entity.start):
                letters[0] = "B"
            tags[entity.start : entity.end] = [_joined(letter, entity.type) for letter in letters]
            before = entity
        return tags


def _joined(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if letter else kind


IOB1 = Scheme("iob1", "I", "I", "I", "I")
IOB2 = Scheme("iob2", "B", "I", "I", "B")
BIOES = Scheme("bioes", "B", "I", "E", "S")
BILOU = Scheme("bilou", "B", "I", "L", "U")
BARE = Scheme("bare", "", "", "", "")
SCHEMES = {scheme.name: scheme for scheme in (IOB1, IOB2, BIOES, BILOU, BARE)}


def tags_of_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels of a model that was trained elsewhere, as tags.

    Types in front of letters are put behind them. Labels of special tokens, and what has no letter
    where others have one, are no entities: they count as "O".

    Example:
        >>> tags_of_labels(["O", "PER-B", "PER-I", "X", "[SEP]"])
        ('O', 'B-PER', 'I-PER', 'O', 'O')
    """
    tags = [OUTSIDE if _NO_ENTITY.fullmatch(label) else label for label in labels]
    for spelling in _SPELLINGS:
        found = [spelling.fullmatch(tag) for tag in tags]
        if any(one and (one["letter"] == "B" or spelling is LETTERED) for one in found):
            return tuple(f"{one['letter']}-{one['type']}" if one else OUTSIDE for one in found)
    return tuple(tags)


def scheme_of_labels(labels: Collection[str]) -> Scheme:
    """The scheme in which a model's labels are written; of "B-" and "I-" alone IOB2."""
    return next((one for one in (IOB2, BIOES, BILOU) if labels and one.has(labels)), BARE)


_IOB = {"B": "B", "I": "I", "E": "I", "L": "I", "S": "B", "U": "B"}


def spelled_out(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags of a sentence in this project's spelling.

    Those in short, B_PER and a bare "I", those with the type first, and "-" in place of "O".

    Example:
        >>> spelled_out(["B_PS", "I", "O", "I", "PER-B", "-"])
        ('B-PS', 'I-PS', 'O', 'I', 'B-PER', 'O')
    """
    spelled, kind = list[str](), ""
    for tag in tags:
        found = next(filter(None, (one.fullmatch(tag) for one in _SPELLINGS)), None)
        if found and found["letter"] in "BI" and found.re is not LETTERED:
            kind = found["type"]
            spelled.append(f"{found['letter']}-{kind}")
        elif tag == "I" and kind:
            spelled.append(f"I-{kind}")
        else:
            kind = ""
            spelled.append(OUTSIDE if tag == "-" else tag)
    return tuple(spelled)


class TagStatistics:
    """Counts of all sentences of a file."""

    def __init__(self, path: Path, sentences: "Iterable[Sentence]") -> None:
        self._path, self._sentences, self._documents, self._items = path, 0, 0, 0
        self.several = 0  # the line of the first item of several characters; 0: there is none
        self._lines = dict[str, int]()  # of each tag the first line
        self._loose = self._free = 0  # "I-" that continues nothing; "B-" after none of its type
        for sentence in sentences:
            self._add(sentence)

    def _add(self, sentence: "Sentence") -> None:
        self._sentences += 1
        self._documents += bool(sentence.document_start)
        self._items += len(sentence.items)
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
            if scheme.has(self._lines):
                # Without an "I-" that continues nothing the file has no entity in IOB1.
                is_iob1 = scheme is IOB2 and self._loose > self._free
                return IOB1 if is_iob1 else scheme
        one, other = next(
            pair
            for pair in itertools.combinations(self._lines, 2)
            if any(map(LETTERED.fullmatch, pair)) and not (BIOES.has(pair) or BILOU.has(pair))
        )
        raise UserError(
            f"{self._path}: line {self._lines[one]} has the tag {shown(one)} and line "
            f"{self._lines[other]} {shown(other)}, which are of different tagging schemes; write "
            "all tags in one, or name it with `tagging_scheme`."
        )

    def _refuse_other_forms(self) -> None:
        """Refuses tags that as types would be entities of their own.

        B:PER and I:PER, B and I, or one letter where there is no other tag.
        """
        for form in _OTHER_FORMS:
            seen = {tag: found for tag in self._lines if (found := form.fullmatch(tag))}
            letters = {found["letter"].upper() for found in seen.values()}
            if letters == {"B", "I"} or len(seen) == len(self._lines):
                tag, found = next(iter(seen.items()))
                right = f"{found['letter'].upper()}-{found['type'] or 'NAME'}"
                raise UserError(
                    f"{self._path}: line {self._lines[tag]}: the tag {shown(tag)} is of a form "
                    f"that is not read; write {right} (and O outside of entities) or, if it is a "
                    "type, set `tagging_scheme=bare`."
                )

    def types(self, scheme: Scheme, known: Collection[str] | None = None) -> list[str]:
        """The types of the entities, sorted; others than the `known` ones are refused."""
        types = set[str]()
        for tag, line in self._lines.items():
            kind = scheme.type_of(tag)
            if kind is None:
                raise UserError(
                    f"{self._path}: line {line}: {shown(tag)} is no tag of {scheme.name}; correct "
                    "it, or name another `tagging_scheme`."
                )
            if known is not None and kind not in known:
                raise UserError(
                    f"{self._path}: line {line}: the tag {shown(tag)} is unknown (the model has "
                    f"the types {cut(', '.join(known), 200)}); correct it, or train on examples of "
                    "it."
                )
            types.add(kind)
        if not types and known is None:
            raise UserError(f"{self._path}: has no entity to learn; all its tags are 'O'.")
        return sorted(types)

    def log(self, scheme: Scheme | None, unit: str) -> None:
        """Says what the file has."""
        documents = f" in {self._documents} documents" if self._documents else ""
        _LOGGER.info(
            "%s: %d sentences%s, %d %s, %s",
            *(self._path, self._sentences, documents, self._items, unit),
            f"tags in {scheme.name}" if scheme else "without tags",
        )
