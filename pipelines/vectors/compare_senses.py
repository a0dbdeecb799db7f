"""Compares the vectors of one word that is used in several senses."""

import dataclasses
import logging
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, text_lines
from keras_bert_impl.options import options_named
from keras_bert_impl.pictures import write_png
from keras_bert_impl.tokenization.vocabulary import UNK
from pipelines.corpora.wrapping import columns
from pipelines.vectors.extract import FeatureExtractor, LineFeatures
from pipelines.vectors.options import FeaturesConfig, SensesConfig

_LOGGER = logging.getLogger(__name__)
_LAYERS = 4
_AROUND = 4  # so many words of the text are shown on either side of a use
_FORMS = ("NFC", "NFD", None)


@dataclasses.dataclass(frozen=True)
class SensesTable:
    """The uses of a word and their cosines.

    Attributes:
        uses: each use, in brackets, with the words around it.
        cosines: float64 [uses, uses].
        texts: the number of the text of each use, from 1; None of one text.
    """

    uses: list[str]
    cosines: np.ndarray
    texts: list[int] | None = None

    def names(self) -> list[str]:
        """How each use is called, with its text where there are several."""
        if self.texts is None:
            return [f"use {number}" for number in range(1, len(self.uses) + 1)]
        return [f"use {number} (text {of})" for number, of in enumerate(self.texts, start=1)]

    def text(self) -> str:
        """The table as text: the uses, then the cosine of every two.

        Example:
            >>> table = SensesTable(["a [bank]", "the [bank]"], np.array([[1.0, 0.5], [0.5, 1.0]]))
            >>> print(table.text())
            use 1: a [bank]
            use 2: the [bank]
            cosine of uses 1 and 2: 0.500
        """
        lines = [f"{name}: {use}" for name, use in zip(self.names(), self.uses, strict=True)]
        lines += [
            f"cosine of uses {first + 1} and {second + 1}: {self.cosines[first, second]:.3f}"
            for first in range(len(self.uses))
            for second in range(first + 1, len(self.uses))
        ]
        return "\n".join(lines)


def compare_word_senses(config: SensesConfig) -> SensesTable:
    """Compares a word's vectors, each the sum of the last layers, by their cosine.

    The vector of a word of several tokens is their mean.

    Raises:
        UserError: the texts do not use the word twice, or the checkpoint is not what it should be.
    """
    texts = _texts(config)
    layers = config.last_layers or min(_LAYERS, _blocks(config))
    features = FeaturesConfig(
        input_file="",
        output_file="",
        model=config.model,
        layers=range(-layers, 0),
        max_seq_length=None,
        bert_config_file=config.bert_config_file,
        vocab_file=config.vocab_file,
        do_lower_case=config.do_lower_case,
    )
    if config.picture:
        check_output(config.picture)
    with options_named({"layers": "last_layers"}):
        extractor = FeatureExtractor(features)
    word, form = _in_vocabulary(extractor, config.word)
    lines = list(extractor.extract([_normalized(text, form) for text in texts]))
    uses = [(number, at) for number, line in enumerate(lines) for at in _uses(line.tokens, word)]
    _check_uses(config.word, word, len(uses), texts, {number for number, _ in uses})
    vectors = np.stack([_vector(lines[number], at, len(word)) for number, at in uses])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    table = SensesTable(
        [_context(lines[number].tokens, at, len(word)) for number, at in uses],
        unit @ unit.T,
        None if len(texts) == 1 else [number + 1 for number, _ in uses],
    )
    if config.picture:
        title = f"'{config.word}': cosines of the sums of the last {layers} layers"
        labels = [f"{name}: {use}" for name, use in zip(table.names(), table.uses, strict=True)]
        draw_senses(followed(config.picture), labels, table.cosines, title)
    return table


def _texts(config: SensesConfig) -> list[str]:
    texts = list(config.text)
    if config.input_file:
        texts += [line for line in text_lines(config.input_file, stream=True) if line.strip()]
        if not texts:
            raise UserError(f"{config.input_file}: has no text; write a text a line.")
    return texts or [SensesConfig.EXAMPLE]


def _blocks(config: SensesConfig) -> int:
    found = find_model(config.model, **config.description(), default_lower_case=True)
    return found.config.num_hidden_layers


def _in_vocabulary(extractor: FeatureExtractor, word: str) -> tuple[list[str], str | None]:
    """The word's tokens, and the form of Unicode in which the vocabulary has it.

    A syllable of Hangul or a letter with its accent may be one character there or several, and
    in the text, too.
    """
    found = [(extractor.tokens(_normalized(word, form)), form) for form in _FORMS]
    for tokens, form in found:
        if tokens and UNK not in tokens:
            return tokens, form
    raise UserError(
        f"`word={word}` is not in the model's vocabulary ({' '.join(found[0][0]) or 'no token'}); "
        "name another word, or another model."
    )


def _normalized(text: str, form: str | None) -> str:
    return unicodedata.normalize(form, text) if form else text  # type: ignore[arg-type]


def _uses(tokens: Sequence[str], word: Sequence[str]) -> Iterator[int]:
    """Where the word's tokens stand, those of an ending may follow.

    Example:
        >>> list(_uses(["the", "bank", "##s", "em", "##bank"], ["bank"]))
        [1]
    """
    size = len(word)
    return (at for at in range(len(tokens)) if list(tokens[at : at + size]) == list(word))


def _check_uses(
    word: str, tokens: Sequence[str], count: int, texts: Sequence[str], with_use: set[int]
) -> None:
    if count < 2:
        shown = "" if list(tokens) == [word] else f" (as {' '.join(tokens)})"
        raise UserError(
            f"`text` uses the token '{word}'{shown} {count} times; it must do so at least twice "
            "(write the word as the text has it; give more texts)."
        )
    without = [str(number + 1) for number in range(len(texts)) if number not in with_use]
    if without:
        _LOGGER.warning("No use of '%s' in text %s.", word, ", ".join(without))


def _vector(line: LineFeatures, at: int, size: int) -> NDArray[np.float64]:
    return line.vectors.sum(axis=0)[at : at + size].astype(np.float64).mean(axis=0)


def _context(tokens: Sequence[str], at: int, size: int) -> str:
    """The use in brackets, with some words around it.

    Example:
        >>> _context(["[CLS]", "a", "river", "bank", "##s", ";", "it", "[SEP]"], 3, 1)
        'a river [bank]s; it'
    """
    words = [n for n in range(1, len(tokens)) if not tokens[n].startswith("##")]
    before = [n for n in words if n <= at][-_AROUND - 1 :]
    after = [n for n in words if n >= at + size][: _AROUND + 1]
    start, end = before[0] if before else 1, after[-1]  # [SEP] is a word, the last one
    use = "[" + _joined(tokens[at : at + size]) + "]"
    # The piece after the use is glued to it below, as any other.
    text = _joined([*tokens[start:at], use, *tokens[at + size : end]])
    return unicodedata.normalize("NFC", text).lstrip(" ,.;:!?")


def _joined(tokens: Sequence[str]) -> str:
    return re.sub(r" ##| (?=[,.;:!?])", "", " ".join(tokens))


_WIDEST = 56  # characters of a line of a label
_INCHES_A_CHARACTER = 0.095
_DARK = 0.55  # share of the colours, from below, on which numbers are white


def draw_senses(
    path: Path, labels: Sequence[str], cosines: NDArray[np.float64], title: str
) -> None:
    """Draws the cosines of every two uses, in colours from the lowest to the highest of them.

    That a use is like itself says nothing: the diagonal has no colour.

    Args:
        path: the PNG file.
        labels: a name for each use.
        cosines: [uses, uses].
        title: stands above.
    """
    from matplotlib.figure import Figure

    lines = [textwrap.wrap(label, _WIDEST) for label in labels]
    widest = max(columns(line) for label in lines for line in label)
    count, tallest = len(labels), max(map(len, lines))
    cell = 0.85 if count <= 12 else 0.6
    low, high = _bounds(cosines)
    figure = Figure(
        figsize=(
            max(6.5, 2.0 + widest * _INCHES_A_CHARACTER + cell * count),
            1.6 + max(cell, 0.2 * tallest) * count,
        ),
        layout="constrained",
    )
    axes = figure.add_subplot()
    others = np.ma.masked_array(cosines, np.eye(count, dtype=bool))
    image = axes.imshow(others, vmin=low, vmax=high, cmap="viridis")
    axes.set_facecolor("lightgrey")
    figure.colorbar(image, label="cosine")
    axes.set_xticks(range(count), [str(number) for number in range(1, count + 1)])
    axes.set_yticks(range(count), ["\n".join(label) for label in lines], parse_math=False)
    axes.set_xlabel("use")
    for row in range(count):
        for column in range(count):
            dark = row != column and (cosines[row, column] - low) < _DARK * (high - low)
            axes.text(
                column,
                row,
                "" if row == column else f"{cosines[row, column]:.2f}",
                ha="center",
                va="center",
                color="white" if dark else "black",
            )
    figure.suptitle("\n".join(textwrap.wrap(title, 60)), parse_math=False)
    write_png(path, figure, dpi=100)


def _bounds(cosines: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest cosine of two uses, at least two hundredths apart.

    Example:
        >>> _bounds(np.array([[1.0, 0.5], [0.5, 1.0]]))
        (0.49, 0.51)
    """
    others = cosines[~np.eye(len(cosines), dtype=bool)]
    low, high = float(others.min()), float(others.max())
    spare = max(0.0, 0.02 - (high - low)) / 2
    return low - spare, high + spare
