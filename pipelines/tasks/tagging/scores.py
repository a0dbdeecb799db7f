"""Anybody's predicted tags, scored as `conlleval` does, with intervals over documents.

Sentences of one document resemble one another, so documents are drawn, as articles are for
questions; in a file without `-DOCSTART-` sentences are.
"""

import itertools
import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from pipelines.metrics.entities import FIGURES, EntityScorer, Figures
from pipelines.metrics.group_bootstrap import interval_of, resampled_totals
from pipelines.tasks.tagging.files import (
    Sentence,
    TaggedFile,
    open_tagged,
    read_documents,
    read_sentences,
)
from pipelines.tasks.tagging.options import AUTO, ScoreTagsConfig
from pipelines.tasks.tagging.schemes import SCHEMES, Scheme, TagStatistics

_LOGGER = logging.getLogger(__name__)


def score_tags(config: ScoreTagsConfig) -> dict[str, float]:
    """Precision, recall and F1 of all types in percent, averaged over the runs.

    `f1_low` and `f1_high` bound the 95 % of the bootstrap over documents; a single document has
    none, which the log says.
    """
    paths = config.predictions_file
    files = [_opened(config, path) for path in paths]
    if config.tagging_scheme == AUTO:
        sentences = itertools.chain(*map(read_sentences, files[0]))
        scheme = TagStatistics(paths[0], sentences).scheme()
    else:
        scheme = SCHEMES[config.tagging_scheme]
    _LOGGER.info("%s: its tags are read as %s.", paths[0], scheme.name)
    runs = [_count(*both, scheme) for both in files]
    for path, counts in zip(paths, runs, strict=True):
        if not np.array_equal(counts[:, 0], runs[0][:, 0]):
            raise UserError(
                f"{path}: has other right tags than {paths[0]}, or other documents "
                "(-DOCSTART-); name predictions for one text."
            )
    totals = [Figures(*counts.sum(axis=0).tolist()) for counts in runs]
    figures = {name: float(np.mean([getattr(x, name) for x in totals])) for name in FIGURES}
    if len(runs[0]) > 1:
        low, high = interval_of(np.mean([_f1(resampled_totals(x)) for x in runs], axis=0))
        return {**figures, "f1_low": low, "f1_high": high}
    _LOGGER.warning("%s: has a single document, so there are no intervals.", paths[0])
    return figures


def _opened(config: ScoreTagsConfig, path: Path) -> tuple[TaggedFile, TaggedFile]:
    """A file with its right tags, and with the predicted ones."""
    file = open_tagged(path, config.word_column, encoding=config.text_encoding)
    right = (config.tag_column or file.width - 1) - 1
    if file.width < 3 or right >= file.width - 1:
        raise UserError(
            f"{path}: has {file.width} columns, so no right tag before the predicted one in the "
            "last; name a file of predictions with both, or another `tag_column`."
        )
    return file._replace(tag=right), file._replace(tag=file.width - 1)


def _count(right: TaggedFile, predicted: TaggedFile, scheme: Scheme) -> NDArray[np.int64]:
    """Expected, found and correct entities: int64 [documents, 3]."""
    counts = list[Figures]()
    both = (read_documents(file, whole=True) for file in (right, predicted))
    for document, answers in zip(*both, strict=True):
        scorer = EntityScorer()
        for sentence, answer in zip(document.sentences, answers.sentences, strict=True):
            scorer.add(_tags(sentence, scheme), _tags(answer, scheme))
        counts.append(scorer.total)
    return np.array(counts, np.int64).reshape(-1, 3)


def _tags(sentence: Sentence, scheme: Scheme) -> list[str]:
    """The tags of a sentence as the official scorer reads them."""
    for number, tag in zip(sentence.numbers, sentence.tags or (), strict=True):
        if scheme.type_of(tag) is None:
            raise UserError(
                f"{sentence.path}: line {number}: {shown(tag)} is no tag of {scheme.name}, the "
                "scheme of the others; correct the line, or name another `tagging_scheme`."
            )
    return [scheme.as_iob(tag) for tag in sentence.tags or ()]


def _f1(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    expected, found, correct = totals.T
    return 200 * correct / np.maximum(expected + found, 1)
