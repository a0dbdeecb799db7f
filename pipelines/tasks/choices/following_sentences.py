"""A real set in SWAG's form out of any text: which of four sentences follows a sentence?

The three others stand in the same document, so that its topic does not give the answer away.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.options import REQUIRED, check_options, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.corpora.sources import find_sources
from pipelines.corpora.unpacking import decode, lines_of, read_line_blocks

_ENDINGS = 4
_WORDS = re.compile(r"\w+")
_COLUMNS = ("video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source")


@dataclass(frozen=True, kw_only=True)
class MakeSwagConfig:
    """The options of making examples.

    Raises:
        UserError: a value out of range.
    """

    input_file: Sequence[str] = option(
        (), "Sentences, one a line, an empty line between documents: split_sentences writes them."
    )
    text_encoding: TextEncoding = nested(TextEncoding)
    output_dir: Path = option(REQUIRED, "The folder that gets train.csv and val.csv.")
    dev_share: float = option(
        0.1, "The share of the documents whose examples are held out.", more_than=0, at_most=0.5
    )
    most_per_document: int = option(2, "The most examples of a document.", at_least=1)
    min_words: int = option(5, "Shorter sentences are left out.", at_least=1)
    max_words: int = option(40, "Longer sentences are left out.", at_least=1)
    seed: int = option(12345, "Fixes all draws.", at_least=0, at_most=2**63 - 1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.max_words < self.min_words:
            raise UserError(
                f"`max_words={self.max_words}` is less than `min_words={self.min_words}`."
            )


class FollowingSentence(NamedTuple):
    """An example.

    Attributes:
        context: a sentence.
        endings: four sentences of its document, one of which follows it.
        label: the number of that one.
    """

    context: str
    endings: tuple[str, ...]
    label: int


class SwagCounts(NamedTuple):
    """The files that were written.

    Attributes:
        train: examples to train on.
        dev: examples of held-out documents.
        overlap_accuracy: the share of these that `overlap_choice` chooses rightly.
    """

    train: int
    dev: int
    overlap_accuracy: float


def make_swag(config: MakeSwagConfig) -> SwagCounts:
    """Writes train.csv and val.csv; every document's examples are in one of them.

    Raises:
        UserError: there is no input, or no example can be made of it.
    """
    counts: Counter[str] = Counter()
    make_folder(config.output_dir)
    paths = [config.output_dir / name for name in ("train.csv", "val.csv")]
    with open_whole(paths[0]) as train, open_whole(paths[1]) as dev:
        tables = {
            "train": csv.writer(train, lineterminator="\n"),
            "dev": csv.writer(dev, lineterminator="\n"),
        }
        endings = [f"ending{number}" for number in range(_ENDINGS)]
        for table in tables.values():
            table.writerow(["", *_COLUMNS, *endings, "label"])
        for number, sentences in enumerate(_documents(config.input_file, config.text_encoding)):
            draw = np.random.default_rng([config.seed, number])
            split = "dev" if draw.random() < config.dev_share else "train"
            for example in examples_of(sentences, draw, config):
                row = [counts[split], f"document-{number}", counts[split], "", example.context]
                tables[split].writerow([*row, "", "gold", *example.endings, example.label])
                counts[split] += 1
                counts["right"] += split == "dev" and overlap_choice(example) == example.label
        if not (counts["train"] and counts["dev"]):
            raise UserError(
                f"{', '.join(config.input_file)}: too few documents of five sentences and more to "
                "make a training and a held-out set; name more text, or raise `dev_share`."
            )
    return SwagCounts(counts["train"], counts["dev"], counts["right"] / counts["dev"])


def examples_of(
    sentences: Sequence[str], draw: np.random.Generator, config: MakeSwagConfig
) -> Iterator[FollowingSentence]:
    """Makes examples of a document.

    Args:
        sentences: all of its sentences.
        draw: gives the draws of this document.
        config: how long sentences are, and how many examples a document has.

    Example:
        >>> config = MakeSwagConfig(output_dir=Path("x"), min_words=1)
        >>> example = next(examples_of(list("abcdef"), np.random.default_rng(1), config))
        >>> ord(example.endings[example.label]) - ord(example.context)
        1
    """
    sizes = [len(sentence.split()) for sentence in sentences]
    fits = [config.min_words <= size <= config.max_words for size in sizes]
    starts = [n for n in range(len(sentences) - 1) if fits[n] and fits[n + 1]]
    chosen = draw.permutation(np.array(starts, np.int64))[: config.most_per_document].tolist()
    for start in chosen:
        known = {sentences[start], sentences[start + 1]}
        others = sorted({x for x, fit in zip(sentences, fits, strict=True) if fit} - known)
        if len(others) < _ENDINGS - 1:
            return
        wrong = [others[n] for n in draw.permutation(len(others))[: _ENDINGS - 1]]
        label = int(draw.integers(_ENDINGS))
        endings = (*wrong[:label], sentences[start + 1], *wrong[label:])
        yield FollowingSentence(sentences[start], endings, label)


def overlap_choice(example: FollowingSentence) -> int:
    """The ending that shares most of its different words with the context; the baseline.

    Example:
        >>> overlap_choice(FollowingSentence("A dog runs.", ("It sleeps.", "The dog sleeps."), 1))
        1
    """
    context = _words(example.context)
    shares = [len(_words(x) & context) / max(len(_words(x)), 1) for x in example.endings]
    return int(np.argmax(shares))


def _words(text: str) -> set[str]:
    return {*_WORDS.findall(text.lower())}


def _documents(names: Iterable[str], encoding: TextEncoding) -> Iterator[list[str]]:
    """The sentences of each document."""
    for source in find_sources(list(names), "text", encoding):
        sentences = list[str]()
        for block in read_line_blocks(source.name, encoding=encoding):
            for number, line in enumerate(lines_of(block), start=block.first_line):
                sentence = decode(source.name, number, line, encoding).text.strip() if line else ""
                if sentence:
                    sentences.append(sentence)
                elif sentences:
                    yield sentences
                    sentences = []
        if sentences:
            yield sentences
