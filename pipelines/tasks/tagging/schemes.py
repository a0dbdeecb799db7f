"""The ways in which files write entities as tags, told apart and turned into one another.

| scheme | "Ada Byron , London London" (PER, LOC, LOC) |
|---|---|
| `iob1` | I-PER I-PER O I-LOC B-LOC: "B-" only where an entity of the same type stands in front |
| `iob2` | B-PER I-PER O B-LOC B-LOC |
| `bioes` | B-PER E-PER O S-LOC S-LOC |
| `bilou` | B-PER L-PER O U-LOC U-LOC |
| `bare` | PER PER O LOC LOC: types only, so that neighbours of one type are one entity |

Some files write `iob2` in short, B_PER I O B_LOC B_LOC; it is spelled out where they are read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.metrics.entities import OUTSIDE, Entity, find_entities


class Tag(NamedTuple):
    """A tag taken apart.

    Attributes:
        letter: "O", or the letter in front of the type; "" of a bare type.
        type: the entity's type; "" of "O".
    """

    letter: str
    type: str


@dataclass(frozen=True)
class Scheme:
    """A way to write entities as tags.

    Attributes:
        first: the letter of the first word of an entity.
        inside: of the words between.
        last: of its last word.
        single: of the only one.
    """

    name: str
    first: str
    inside: str
    last: str
    single: str

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that tags begin with; of bare types one that is empty."""
        return tuple(dict.fromkeys((self.first, self.inside, self.last, self.single)))

    def tags(self, types: Iterable[str]) -> tuple[str, ...]:
        """All tags of some types, "O" first.

        Example:
            >>> IOB2.tags(["PER"])
            ('O', 'B-PER', 'I-PER')
        """
        letters = ("B", "I") if self is IOB1 else self.letters
        return (OUTSIDE, *(_joined(letter, kind) for kind in types for letter in letters))

    def split(self, tag: str) -> Tag | None:
        """Takes a tag apart; None where it is none of this scheme.

        Example:
            >>> IOB2.split("B-PER"), IOB2.split("PER")
            (Tag(letter='B', type='PER'), None)
        """
        if tag == OUTSIDE:
            return Tag(OUTSIDE, "")
        if self is BARE:
            return Tag("", tag) if tag else None
        letter, hyphen, kind = tag.partition("-")
        known = ("B", "I") if self is IOB1 else self.letters
        return Tag(letter, kind) if hyphen and kind and letter in known else None

    def as_iob(self, tag: str) -> str:
        """The tag as the official scorer reads it.

        Of BIOES that is IOB2. A bare type continues an entity of its type, as "I-" does.

        Example:
            >>> [BIOES.as_iob("S-LOC"), BARE.as_iob("place"), BARE.as_iob("O")]
            ['B-LOC', 'I-place', 'O']
        """
        if tag == OUTSIDE:
            return tag
        if self is BARE:
            return f"I-{tag}"
        letter, _, kind = tag.partition("-")
        return f"{_IOB[letter]}-{kind}"

    def entities(self, tags: Sequence[str]) -> list[Entity]:
        """The entities of a sentence.

        Example:
            >>> BIOES.entities(["B-PER", "E-PER", "S-PER"])
            [Entity(type='PER', start=0, end=2), Entity(type='PER', start=2, end=3)]
        """
        return find_entities([self.as_iob(tag) for tag in tags])

    def write(self, entities: Sequence[Entity], count: int) -> list[str]:
        """The tags of a sentence of `count` words with these entities, in their order.

        Example:
            >>> pair = [Entity("LOC", 0, 1), Entity("LOC", 1, 3)]
            >>> IOB1.write(pair, 4), BIOES.write(pair, 3)
            (['I-LOC', 'B-LOC', 'I-LOC', 'O'], ['S-LOC', 'B-LOC', 'E-LOC'])
        """
        tags = [OUTSIDE] * count
        before = Entity("", 0, 0)
        for entity in entities:
            size = entity.end - entity.start
            letters = [self.single] if size == 1 else [self.first, *[self.inside] * (size - 2)]
            letters += [self.last] if size > 1 else []
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


def scheme_of_labels(labels: Iterable[str]) -> Scheme:
    """The scheme in which a model's labels are written; of "B-" and "I-" alone IOB2.

    Example:
        >>> [scheme_of_labels(x).name for x in (["O", "I-PER"], ["O", "S-PER"], ["O", "PER"])]
        ['iob2', 'bioes', 'bare']
    """
    known = list(labels)
    fitting = (one for one in (IOB2, BIOES, BILOU) if known and all(map(one.split, known)))
    return next(fitting, BARE)


_IOB = {"B": "B", "I": "I", "E": "I", "L": "I", "S": "B", "U": "B"}


def spelled_out(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags of a sentence; of those in short, B_PER and a bare "I", what they stand for.

    Example:
        >>> spelled_out(["B_PS", "I", "O", "I"])
        ('B-PS', 'I-PS', 'O', 'I')
    """
    spelled, kind = list[str](), ""
    for tag in tags:
        if tag.startswith("B_"):
            kind = tag.removeprefix("B_")
            spelled.append(f"B-{kind}")
        elif tag == "I" and kind:
            spelled.append(f"I-{kind}")
        else:
            kind = ""
            spelled.append(tag)
    return tuple(spelled)
