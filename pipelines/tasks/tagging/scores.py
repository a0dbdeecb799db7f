"""Anybody's predicted tags, scored as `conlleval` does, with intervals over documents.

Sentences of one document resemble one another, so documents are drawn, as articles are for
questions; in a file without `-DOCSTART-` sentences are.
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.tokenization.reference import as_name
from pipelines.metrics.entities import EntityScorer, Figures
from pipelines.metrics.group_bootstrap import interval_of, resampled_totals
from pipelines.tasks.tagging.files import (
    Document,
    Layout,
    Sentence,
    find_layout,
    find_short_tags,
    read_documents,
    read_sentences,
)
from pipelines.tasks.tagging.options import AUTO, ScoreTagsConfig
from pipelines.tasks.tagging.schemes import BARE, IOB2, SCHEMES, Scheme, spelled_out
from pipelines.tasks.tagging.statistics import LETTERED, TagStatistics

_LOGGER = logging.getLogger(__name__)


class _Counted(NamedTuple):
    """The contents of a tagged file.

    Attributes:
        counts: int64 [documents, 3], expected, found and correct entities.
        text: a hash of its words, right tags and documents.
    """

    counts: NDArray[np.int64]
    text: str


def score_tags(config: ScoreTagsConfig) -> dict[str, float]:
    """Precision, recall and F1 of all types in percent, averaged over the runs.

    `f1_low` and `f1_high` bound the 95 % of the bootstrap over documents; a single document has
    none, which the log says. With `compared_with`, `compared_f1` is the F1 of those runs and
    `difference` how much more the first ones have; both are drawn from the same documents, so the
    interval of the difference is far narrower than the two intervals would let one think.
    """
    paths = (*config.predictions_file, *config.compared_with)
    first = paths[0]
    layout = _layout(config, first)
    name = config.tagging_scheme
    scheme = _find_scheme(first, layout) if name == AUTO else SCHEMES[name]
    _LOGGER.info("%s: its tags are read as %s.", first, scheme.name)
    found = [_count(path, _layout(config, path), scheme) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if one.text != found[0].text:
            raise UserError(
                f"{path}: has other words or other right tags than {first}, or other documents "
                "(-DOCSTART-); name predictions for one text."
            )
    runs = len(config.predictions_file)
    own, others = found[:runs], found[runs:]
    totals = [Figures(*one.counts.sum(axis=0).tolist()) for one in own]
    figures = {
        "precision": float(np.mean([total.precision for total in totals])),
        "recall": float(np.mean([total.recall for total in totals])),
        "f1": float(np.mean([total.f1 for total in totals])),
    }
    if several := len(own[0].counts) > 1:
        figures |= _bounds("f1", _f1(own))
    else:
        _LOGGER.warning("%s: has a single document, so there are no intervals.", first)
    if others:
        compared = [Figures(*one.counts.sum(axis=0).tolist()).f1 for one in others]
        figures["compared_f1"] = float(np.mean(compared))
        figures["difference"] = figures["f1"] - figures["compared_f1"]
        if several:
            figures |= _bounds("difference", _f1(own) - _f1(others))
    return figures


def _layout(config: ScoreTagsConfig, path: Path) -> Layout:
    """The layout of a file, its tag that of the column of right tags."""
    layout = find_layout(path, config.word_column, encoding=config.text_encoding)
    right = (config.tag_column or layout.width - 1) - 1
    if layout.width < 3 or right >= layout.width - 1:
        raise UserError(
            f"{path}: has {layout.width} columns, so no right tag before the predicted one in the "
            "last; name a file of predictions with both, or another `tag_column`."
        )
    layout = layout._replace(tag=right)
    if config.tagging_scheme in (AUTO, IOB2.name):
        predicted = find_short_tags(path, layout._replace(tag=layout.width - 1))
        layout = find_short_tags(path, layout, expected=predicted.short_tags)
    return layout


def _find_scheme(path: Path, layout: Layout) -> Scheme:
    scheme = TagStatistics.of(path, read_sentences(path, layout)).scheme()
    if scheme is BARE:
        _refuse_other_predictions(path, layout)
    return scheme


def _refuse_other_predictions(path: Path, layout: Layout) -> None:
    """Parts of speech, say, in the column of the right tags look like bare types."""
    for sentence in read_sentences(path, layout):
        tags = zip(sentence.tags or (), _predicted(sentence, layout), strict=True)
        for line, (right, tag) in zip(sentence.numbers, tags, strict=True):
            if LETTERED.fullmatch(tag):
                raise UserError(
                    f"{path}: line {line} has the predicted tag {shown(tag)}, but the right one, "
                    f"{shown(right)}, is of another tagging scheme; name the column of the right "
                    "tags "
                    "with `tag_column`, or the scheme of both with `tagging_scheme`."
                )


def _count(path: Path, layout: Layout, scheme: Scheme) -> _Counted:
    counts, text = list[Figures](), hashlib.sha256()
    for document in read_documents(path, layout, whole=True):
        scorer = EntityScorer()
        for right, predicted in _tags(path, document, layout, scheme):
            scorer.add(right, predicted)
        counts.append(scorer.total)
        text.update(b"document")  # what is drawn must be the same of all files
        for sentence in document.sentences:
            text.update(repr((sentence.items, sentence.tags)).encode())
    return _Counted(np.array(counts, np.int64).reshape(-1, 3), text.hexdigest())


def _tags(
    path: Path, document: Document, layout: Layout, scheme: Scheme
) -> Iterator[tuple[list[str], list[str]]]:
    """The right and the predicted tags of each sentence, as the official scorer reads them."""
    for sentence in document.sentences:
        predicted = _predicted(sentence, layout)
        for tags in (sentence.tags or (), predicted):
            for number, tag in zip(sentence.numbers, tags, strict=True):
                if scheme.split(tag) is None:
                    raise UserError(
                        f"{path}: line {number}: {shown(tag)} is no tag of {scheme.name}, the "
                        "scheme "
                        "of the others; correct the line, or name another `tagging_scheme`."
                    )
        yield (
            [scheme.as_iob(tag) for tag in sentence.tags or ()],
            [scheme.as_iob(tag) for tag in predicted],
        )


def _predicted(sentence: Sentence, layout: Layout) -> list[str]:
    tags = [as_name(layout.columns(line)[-1].strip(" ")) for line in sentence.lines]
    return spelled_out(tags) if layout.short_tags else tags


def _f1(runs: Sequence[_Counted]) -> NDArray[np.float64]:
    """The mean F1 of runs in each draw of documents: [samples]."""
    return np.mean([_f1_of(resampled_totals(run.counts)) for run in runs], axis=0)


def _f1_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    expected, found, correct = totals.T
    return 200 * correct / np.maximum(expected + found, 1)


def _bounds(name: str, samples: NDArray[np.float64]) -> dict[str, float]:
    interval = interval_of(samples)
    return {f"{name}_low": interval.low, f"{name}_high": interval.high}
