"""The figures of CoNLL's official scorer `conlleval`: entities by their borders and their types.

Source: the script of the CoNLL shared tasks of 2000 to 2003 (E. Tjong Kim Sang). It reads IOB1 and
IOB2 by the same rules, and so does this module; other ways to write tags are turned into one of
these first (`pipelines.tasks.tagging.schemes`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

OUTSIDE = "O"
FIGURES = ("precision", "recall", "f1")


class Entity(NamedTuple):
    """An entity of a sentence."""

    type: str
    start: int
    end: int


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence, as the official scorer reads its tags.

    "B-X" begins an entity. "I-X" continues one of its type, and begins one where there is none: a
    tag that starts nowhere is an entity all the same.

    Example:
        >>> find_entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
        [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4),
        Entity(type='LOC', start=4, end=5)]
    """
    found, start, current = list[Entity](), 0, ""
    for position, tag in enumerate([*tags, OUTSIDE]):
        letter, _, kind = tag.partition("-")
        if current and (letter != "I" or kind != current):
            found.append(Entity(current, start, position))
            current = ""
        if letter != OUTSIDE and not current:
            start, current = position, kind
    return found


def klue_scores(
    expected: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, float]:
    """KLUE's official figures of tagged characters in percent, of all sentences one after another.

    Source: `klue_baseline/metrics/functional.py` of KLUE-benchmark/KLUE-baseline: the mean F1 of
    the types, whose entities begin with "B-" (seqeval, strict), and of the characters' tags, "O"
    among them; a tag that neither has counts as right.
    """
    entities = [
        [one for one in find_entities(tags) if tags[one.start].startswith("B-")]
        for tags in (expected, predicted)
    ]
    right = Counter(one.type for one in {*entities[0]} & {*entities[1]})
    found = Counter(one.type for given in entities for one in given)
    same = Counter(a for a, b in zip(expected, predicted, strict=True) if a == b)
    tags = Counter([*expected, *predicted])
    of_types = [2 * right[kind] / count for kind, count in found.items()]
    of_tags = [2 * same[tag] / tags[tag] if tags[tag] else 1.0 for tag in dict.fromkeys(labels)]
    return {
        "entity_macro_f1": 100 * sum(of_types) / max(len(of_types), 1),
        "character_macro_f1": 100 * sum(of_tags) / max(len(of_tags), 1),
    }


class Figures(NamedTuple):
    """Precision, recall and F1 in percent, and the counts that they come from."""

    expected: int
    found: int
    correct: int

    @property
    def precision(self) -> float:
        """The share of the predicted entities that are right."""
        return 100 * self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of the file's entities that were found."""
        return 100 * self.correct / self.expected if self.expected else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass
class EntityScorer:
    """Counts what `conlleval` counts, a sentence at a time, and gives its figures."""

    words: int = 0
    equal_tags: int = 0
    _expected: Counter[str] = field(default_factory=Counter)
    _found: Counter[str] = field(default_factory=Counter)
    _correct: Counter[str] = field(default_factory=Counter)

    def add(self, expected: Sequence[str], predicted: Sequence[str]) -> None:
        """Counts a sentence."""
        self.words += len(expected)
        self.equal_tags += sum(a == b for a, b in zip(expected, predicted, strict=True))
        right, given = find_entities(expected), find_entities(predicted)
        self._expected.update(entity.type for entity in right)
        self._found.update(entity.type for entity in given)
        self._correct.update(entity.type for entity in {*right} & {*given})

    @property
    def accuracy(self) -> float:
        """The share of equal tags, in percent."""
        return 100 * self.equal_tags / self.words if self.words else 0.0

    @property
    def total(self) -> Figures:
        """The figures of all types."""
        counts = self._expected, self._found, self._correct
        return Figures(*(count.total() for count in counts))

    def types(self) -> Iterator[tuple[str, Figures]]:
        """The figures of each type that the file has or that was predicted, sorted by name."""
        for name in sorted({*self._expected, *self._found}):
            yield name, Figures(self._expected[name], self._found[name], self._correct[name])

    def scores(self) -> dict[str, float]:
        """All figures in percent: of all types `f1`, ..., of one type `f1_PER`, ...."""
        each = [("", self.total), *((f"_{name}", figures) for name, figures in self.types())]
        return {"accuracy": self.accuracy} | {
            name + of: getattr(figures, name) for of, figures in each for name in FIGURES
        }

    def report(self) -> str:
        """Formats the report as the official script prints it, byte for byte."""
        total = self.total
        lines = [
            f"processed {self.words} tokens with {total.expected} phrases; "
            f"found: {total.found} phrases; correct: {total.correct}."
        ]
        if self.words:
            lines.append(f"accuracy: {self.accuracy:6.2f}%; {_shares(total)}")
        for name, figures in self.types():
            # The script pads a name's bytes, not its characters.
            padding = " " * (17 - len(name.encode()))
            lines.append(f"{padding}{name}: {_shares(figures)}  {figures.found}")
        return "\n".join(lines) + "\n"


def _shares(figures: Figures) -> str:
    return (
        f"precision: {figures.precision:6.2f}%; recall: {figures.recall:6.2f}%; "
        f"FB1: {figures.f1:6.2f}"
    )
