"""Files with a model's answers: google's table of probabilities and GLUE's submission."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from keras_bert_impl.files import open_whole


def write_values(path: Path, values: np.ndarray) -> Path:
    r"""Writes one line an example, its numbers separated by tabs, without a header.

    Args:
        path: the file to write, e.g. `test_results.tsv`.
        values: [examples, numbers], e.g. the probabilities of the classes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "test_results.tsv"
        >>> write_values(path, np.array([[0.25, 0.75]])).read_text()
        '0.25\t0.75\n'
    """
    with open_whole(path) as file:
        for row in values.astype(np.float32):
            file.write("\t".join(str(number) for number in row) + "\n")
    return path


def write_submission(path: Path, identifiers: Iterable[str], answers: Sequence[str]) -> Path:
    r"""Writes the file that GLUE's server takes: a header, then index and answer.

    Args:
        path: the file to write, named as GLUE wants it, e.g. `CoLA.tsv`.
        identifiers: the examples' index column.
        answers: the labels or numbers, one an example.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "RTE.tsv"
        >>> write_submission(path, ["0"], ["entailment"]).read_text()
        'index\tprediction\n0\tentailment\n'
    """
    with open_whole(path) as file:
        file.write("index\tprediction\n")
        for identifier, answer in zip(identifiers, answers, strict=True):
            file.write(f"{identifier}\t{answer}\n")
    return path
