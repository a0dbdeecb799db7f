"""Looks into pre-training shards: examples in words, figures, and a page with plots."""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.inputs.order import RecordOrder
from pipelines.inputs.pretraining_records import PretrainingRecords, stored_shape
from pipelines.jobs.inspection_page import Inspection, page
from pipelines.pretraining_data.recipe import Pieces
from pipelines.pretraining_data.statistics import PairStatistics
from pipelines.records.check import find_shards
from pipelines.records.remote import with_local_copies

_BATCH = 1024
_BAR = 40


@dataclasses.dataclass(frozen=True)
class InspectConfig:
    """One look at a set of shards.

    Attributes:
        input_file: shards: files, globs, a folder or the common name of a set, by commas.
        vocab_file: their vocabulary.
        num_samples: how many examples to print.
        max_examples: how many examples the figures are made from, spread over the set.
        html: file for the page, or None.
    """

    input_file: str
    vocab_file: str
    num_samples: int = 5
    max_examples: int = 100_000
    html: str | None = None


def inspect_pretraining_data(config: InspectConfig) -> str:
    """Reads shards and tells what is in them; writes the page if one is asked for.

    Returns:
        Text for a terminal.

    Raises:
        UserError: broken shards, or another vocabulary than theirs.
    """
    inspection = look(config)
    if config.html is not None:
        with open_whole(config.html) as file:
            file.write(page(inspection))
    return as_text(inspection)


def look(config: InspectConfig) -> Inspection:
    """Reads the examples and adds up the figures."""
    vocabulary = Vocabulary.load(config.vocab_file)
    patterns = with_local_copies(config.input_file.split(","))
    expected, pairs = stored_shape(find_shards(patterns), vocabulary.sha256)
    records = PretrainingRecords(patterns, expected, seed=0)
    statistics = PairStatistics(
        expected.max_seq_length, expected.max_predictions_per_seq, Pieces.of(vocabulary), pairs
    )
    samples: list[list[tuple[str, str | None]]] = []
    labels: list[int] = []
    for features in _batches(records, config.max_examples):
        if int(features["input_ids"].max()) >= len(vocabulary):
            raise UserError(
                f"{config.vocab_file}: has {len(vocabulary)} pieces but the shards hold id "
                f"{features['input_ids'].max()}; name the vocabulary they were made with."
            )
        statistics.add(features)
        for row in range(min(config.num_samples - len(samples), len(features["input_ids"]))):
            samples.append(_in_pieces(features, row, vocabulary))
            labels.append(int(features["next_sentence_labels"][row, 0]))
    return Inspection(config.input_file, len(records), samples, labels, statistics, vocabulary)


def _batches(records: PretrainingRecords, most: int) -> Iterator[dict[str, NDArray]]:
    """Batches of examples from all over the set."""
    order = RecordOrder(len(records), seed=0)
    for start in range(0, min(most, len(records)), _BATCH):
        places = np.arange(start, min(start + _BATCH, most, len(records)))
        yield records.batch(*order.at(places))


def _in_pieces(
    features: dict[str, NDArray], row: int, vocabulary: Vocabulary
) -> list[tuple[str, str | None]]:
    masked = features["masked_lm_weights"][row] > 0
    true = dict(
        zip(
            features["masked_lm_positions"][row][masked].tolist(),
            features["masked_lm_ids"][row][masked].tolist(),
            strict=True,
        )
    )
    ids = features["input_ids"][row][: int(features["input_mask"][row].sum())].tolist()
    pieces = vocabulary.pieces
    return [
        (pieces[shown], pieces[true[place]] if place in true else None)
        for place, shown in enumerate(ids)
    ]


def as_text(inspection: Inspection) -> str:
    """Samples and figures for a terminal."""
    figures = inspection.statistics.figures()
    parts = [_sample_text(inspection, number) for number in range(len(inspection.samples))]
    parts.append(
        f"{inspection.total:,} examples, figures from {figures['examples']:,.0f} of them:\n"
        f"  random next sentence   {_percent(figures['random_next'])}\n"
        f"  tokens an example      {figures['mean_length']:.1f} "
        f"(A {figures['mean_length_a']:.1f}, B {figures['mean_length_b']:.1f})\n"
        f"  of full length         {_percent(figures['full_length'])}\n"
        f"  padding                {_percent(figures['padding'])}\n"
        f"  masked an example      {figures['masks_per_example']:.2f} "
        f"({_percent(figures['masked_share'])} of the tokens)\n"
        f"  [MASK], same, random   {_percent(figures['share_mask'])}, "
        f"{_percent(figures['share_kept'])}, {_percent(figures['share_random'])}"
    )
    parts.append("Lengths in tokens:\n" + _histogram(inspection.statistics.lengths))
    return "\n\n".join(parts)


def _sample_text(inspection: Inspection, number: int) -> str:
    label = ("next", "random")[inspection.labels[number]]
    words = " ".join(
        shown if true is None else f"{shown}«{true}»" for shown, true in inspection.samples[number]
    )
    return f"Example {number + 1} ({label}; «…» holds the true piece of a masked place):\n{words}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _histogram(counts: NDArray[np.int64], bins: int = 8) -> str:
    """Bars of text, one for each of a few ranges of lengths."""
    edges = np.linspace(0, len(counts) - 1, bins + 1).astype(int)
    ranges = [
        (int(first) + 1, int(last), int(counts[first + 1 : last + 1].sum()))
        for first, last in itertools.pairwise(edges)
    ]
    most = max(1, *(count for _, _, count in ranges))
    return "\n".join(
        f"  {first:>4}-{last:<4} {'█' * round(_BAR * count / most):<{_BAR}} {count:,}"
        for first, last, count in ranges
    )
