"""Compares the vectors of one word that is used in several senses."""

import dataclasses
import re
from pathlib import Path

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder
from keras_bert_impl.options import options_named
from keras_bert_impl.pictures import write_png
from pipelines.vectors.extract import FeatureExtractor, LineFeatures
from pipelines.vectors.options import FeaturesConfig, SensesConfig


@dataclasses.dataclass(frozen=True)
class SensesTable:
    """The uses of a word and their cosines.

    Attributes:
        uses: each use with the words around it.
        cosines: float64 [uses, uses].
    """

    uses: list[str]
    cosines: np.ndarray

    def text(self) -> str:
        """The table as text: the uses, then the cosine of every two.

        Example:
            >>> table = SensesTable(["a bank", "the bank"], np.array([[1.0, 0.5], [0.5, 1.0]]))
            >>> print(table.text())
            use 1: a bank
            use 2: the bank
            cosine of uses 1 and 2: 0.500
        """
        lines = [f"use {number}: {use}" for number, use in enumerate(self.uses, start=1)]
        lines += [
            f"cosine of uses {first + 1} and {second + 1}: {self.cosines[first, second]:.3f}"
            for first in range(len(self.uses))
            for second in range(first + 1, len(self.uses))
        ]
        return "\n".join(lines)


def compare_word_senses(config: SensesConfig) -> SensesTable:
    """Compares a word's vectors, each the sum of the last layers, by their cosine.

    Raises:
        UserError: the text does not use the word twice as one token, or the checkpoint is not what
            it should be.
    """
    features = FeaturesConfig(
        input_file="",
        output_file="",
        model=config.model,
        layers=range(-config.last_layers, 0),
        max_seq_length=None,
        bert_config_file=config.bert_config_file,
        vocab_file=config.vocab_file,
        do_lower_case=config.do_lower_case,
    )
    with options_named({"layers": "last_layers"}):
        extractor = FeatureExtractor(features)
    (line,) = extractor.extract([config.text])
    positions = [position for position, token in enumerate(line.tokens) if token == config.word]
    if len(positions) < 2:
        raise UserError(
            f"`text` uses the token '{config.word}' {len(positions)} times; it must do so at least "
            "twice (is the word one token of the model's vocabulary, in its casing?)."
        )
    vectors = line.vectors.sum(axis=0)[positions].astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    table = SensesTable([_context(line, position) for position in positions], unit @ unit.T)
    if config.picture:
        _draw(table, config)
    return table


def _context(line: LineFeatures, position: int, words: int = 4) -> str:
    before = line.tokens[max(1, position - words) : position]
    after = line.tokens[position + 1 : -1][:words]
    tokens = [*before, line.tokens[position].upper(), *after]
    return re.sub(r" ##| (?=[,.;:!?])", "", " ".join(tokens))


def _draw(table: SensesTable, config: SensesConfig) -> None:
    from matplotlib.figure import Figure

    path = Path(config.picture or "")
    make_folder(path.parent)
    count = len(table.uses)
    figure = Figure(figsize=(3 + 1.6 * count, 1.5 + 1.1 * count), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(table.cosines, vmin=min(0.0, table.cosines.min()), vmax=1.0, cmap="viridis")
    figure.colorbar(image, label="cosine")
    axes.set_xticks(range(count), [f"use {number}" for number in range(1, count + 1)])
    axes.set_yticks(range(count), table.uses)
    for row in range(count):
        for column in range(count):
            cosine = table.cosines[row, column]
            colour = "black" if cosine > 0.6 else "white"
            axes.text(column, row, f"{cosine:.2f}", ha="center", va="center", color=colour)
    axes.set_title(f"'{config.word}': sum of the last {config.last_layers} layers")
    write_png(path, figure, dpi=100)
