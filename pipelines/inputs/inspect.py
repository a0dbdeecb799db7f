"""Looks into pre-training shards: samples in words, figures, and an HTML page with plots."""

import dataclasses
import html
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.options import REQUIRED, Options, items_of, option
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.inputs.pretraining import PretrainingRecords, RecordOrder, stored_shape
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.records.check import described_words, find_shards
from pipelines.records.description import random_next

KINDS = ("mask", "kept", "random")
_DECILES = 10


class PairStatistics:
    """Adds up figures over batches of features.

    "Kept" means that the token at a masked position equals the true one, so a random draw that hits
    it counts as kept.
    """

    def __init__(
        self, length: int, predictions: int, facts: VocabularyFacts, pairs: bool = True
    ) -> None:
        self._length, self._facts, self._framing = length, facts, 3 if pairs else 2
        self.examples = self.random_next = 0
        # How many examples have so many tokens ([CLS] and [SEP] counted in the whole only), and
        # so many masked positions.
        self.lengths = np.zeros(length + 1, np.int64)
        self.lengths_a = np.zeros(length + 1, np.int64)
        self.lengths_b = np.zeros(length + 1, np.int64)
        self.masks = np.zeros(predictions + 1, np.int64)
        self.kinds: Counter[str] = Counter()  # masked positions by what is shown there
        self.deciles = np.zeros(_DECILES, np.int64)  # masked positions by their tenth
        self.shares_of_a = np.zeros(_DECILES, np.int64)  # examples by A's share of the tokens

    def add(self, features: Mapping[str, NDArray]) -> None:
        """Adds a batch."""
        total = features["input_mask"].sum(axis=1, dtype=np.int64)
        len_b = np.maximum(features["segment_ids"].sum(axis=1, dtype=np.int64) - 1, 0)
        # Segments of another maker's records may lie on padding.
        len_a = np.maximum(total - len_b - self._framing, 0)
        self.examples += len(total)
        self.random_next += int(features["next_sentence_labels"].sum())
        self.lengths += np.bincount(total, minlength=self._length + 1)
        self.lengths_a += np.bincount(len_a, minlength=self._length + 1)
        self.lengths_b += np.bincount(len_b, minlength=self._length + 1)
        self.shares_of_a += _counted(_DECILES * len_a // np.maximum(len_a + len_b, 1))
        real = features["masked_lm_weights"] > 0
        row, slot = np.nonzero(real)
        position = features["masked_lm_positions"][row, slot]
        true_id = features["masked_lm_ids"][row, slot]
        shown = features["input_ids"][row, position]
        self.masks += np.bincount(real.sum(axis=1), minlength=len(self.masks))
        kept = shown == true_id
        hidden = (shown == self._facts.special.mask) & ~kept
        self.kinds["kept"] += int(kept.sum())
        self.kinds["mask"] += int(hidden.sum())
        self.kinds["random"] += int((~kept & ~hidden).sum())
        self.deciles += _counted(_DECILES * position // total[row])

    def figures(self) -> dict[str, float]:
        """Shares and means by name."""
        examples, masked = max(1, self.examples), max(1, sum(self.kinds.values()))
        sizes = np.arange(self._length + 1)
        tokens = int(sizes @ self.lengths)
        return {
            "examples": self.examples,
            "random_next": self.random_next / examples,
            "full_length": self.lengths[-1] / examples,
            "mean_length": tokens / examples,
            "mean_length_a": int(sizes @ self.lengths_a) / examples,
            "mean_length_b": int(sizes @ self.lengths_b) / examples,
            "padding": 1 - tokens / (examples * self._length),
            "masks_per_example": masked / examples,
            "masked_share": masked / max(1, tokens),
            **{f"share_{kind}": self.kinds[kind] / masked for kind in KINDS},
        }


def _counted(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.minimum(values, _DECILES - 1), minlength=_DECILES)


_BATCH = 1024
_STYLE = (
    "body { max-width: 1080px; margin: 2em auto } pre { white-space: pre-wrap } "
    "svg { width: 100%; height: 10em; fill: #2f6fde; border-bottom: 1px solid }"
)


@dataclasses.dataclass(frozen=True)
class InspectConfig(Options):
    """The options of an inspection."""

    input_file: str = option(
        REQUIRED,
        "Shards: the common name of a set, files, globs or a folder, separated by commas.",
        listed=True,
    )
    vocab_file: str = option(REQUIRED, "The vocabulary that the shards were made with.")
    num_samples: int = option(5, "How many examples to print.", at_least=0)
    max_examples: int = option(
        100_000,
        "How many examples the figures are made from, spread over the whole set.",
        at_least=1,
    )
    html: str | None = option(None, "File for a page with plots.")


@dataclasses.dataclass(frozen=True)
class Inspection:
    """The findings; samples are examples as tokens, each with the true one where it is masked."""

    title: str
    total: int
    samples: list[list[tuple[str, str | None]]]
    labels: list[int]
    statistics: PairStatistics
    words: WordCount  # of the text, or else of the examples but for their masked positions


def inspect_pretraining_data(config: InspectConfig) -> str:
    """Reads shards and describes what they hold; writes the page if one is asked for."""
    if config.html is not None:
        check_output(config.html)
    inspection = look(config)
    if config.html is not None:
        with open_whole(followed(config.html)) as file:
            file.write(page(inspection))
    return as_text(inspection)


def look(config: InspectConfig) -> Inspection:
    """Reads the examples and adds up the figures."""
    vocabulary = Vocabulary.load(config.vocab_file)
    patterns = items_of(config.input_file)
    if not (shards := find_shards(patterns)):
        raise UserError("`input_file` names no file; name at least one.")
    expected, pairs = stored_shape(shards, vocabulary)
    records = PretrainingRecords(patterns, expected, seed=0)
    facts, predictions = VocabularyFacts.of(vocabulary), expected.max_predictions_per_seq
    statistics = PairStatistics(expected.max_seq_length, predictions, facts, pairs)
    counter, shown = WordCounter(vocabulary), WordCount()
    samples: list[list[tuple[str, str | None]]] = []
    labels: list[int] = []
    for features in _batches(records, config.max_examples):
        statistics.add(features)
        shown += counter.count(features["input_ids"])
        for row in range(min(config.num_samples - len(samples), len(features["input_ids"]))):
            samples.append(_in_tokens(features, row, vocabulary))
            labels.append(int(features["next_sentence_labels"][row, 0]))
    words = described_words(shards) or shown
    return Inspection(config.input_file, len(records), samples, labels, statistics, words)


def _batches(records: PretrainingRecords, most: int) -> Iterator[dict[str, NDArray]]:
    """Batches of examples from all over the set."""
    order = RecordOrder(len(records), seed=0)
    for start in range(0, min(most, len(records)), _BATCH):
        positions = np.arange(start, min(start + _BATCH, most, len(records)))
        yield records.batch(*order.at(positions))


def _in_tokens(
    features: dict[str, NDArray], row: int, vocabulary: Vocabulary
) -> list[tuple[str, str | None]]:
    masked = features["masked_lm_weights"][row] > 0
    positions, ids = (features[f"masked_lm_{name}"][row][masked] for name in ("positions", "ids"))
    tokens = vocabulary.tokens
    true = {at: tokens[token] for at, token in zip(positions.tolist(), ids.tolist(), strict=True)}
    shown = features["input_ids"][row][: int(features["input_mask"][row].sum())].tolist()
    return [(tokens[token], true.get(at)) for at, token in enumerate(shown)]


def as_text(inspection: Inspection) -> str:
    """Samples and figures for a terminal."""
    parts, samples = [], zip(inspection.samples, inspection.labels, strict=True)
    for number, (sample, label) in enumerate(samples, start=1):
        about = f"{('next', 'random')[label]}; «…» holds the true token of a masked position"
        words = " ".join(shown if true is None else f"{shown}«{true}»" for shown, true in sample)
        parts.append(f"Example {number} ({about}):\n{words}")
    lines = [f"{inspection.total:,} examples, figures from {inspection.statistics.examples:,}:"]
    lines += [f"  {name:<22} {value}" for name, value in _figures(inspection).items()]
    return "\n\n".join([*parts, "\n".join(lines)])


def _figures(inspection: Inspection) -> dict[str, str]:
    """The figures by their names, as text and page show them."""
    found = inspection.statistics.figures()
    return {
        "random next sentence": random_next(found["random_next"]),
        "tokens an example": f"{found['mean_length']:.1f} (A {found['mean_length_a']:.1f}, "
        f"B {found['mean_length_b']:.1f})",
        "of full length": _percent(found["full_length"]),
        "padding": _percent(found["padding"]),
        "masked an example": f"{found['masks_per_example']:.2f} "
        f"({_percent(found['masked_share'])} of the tokens)",
        "[UNK]": str(inspection.words),
        "[MASK], same, random": ", ".join(_percent(found[f"share_{kind}"]) for kind in KINDS),
    }


def page(inspection: Inspection) -> str:
    """The same with plots as an HTML page, complete in one file."""
    found = inspection.statistics
    plots = (
        _plot("Tokens an example", found.lengths, len(found.lengths) - 1),
        _plot("Masked positions an example", found.masks, len(found.masks) - 1),
        _plot("Where masked positions are in the example, %", found.deciles, 100),
        _plot("A's share of the tokens, %", found.shares_of_a, 100),
    )
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>Pre-training data</title><style>{_STYLE}</style></head><body>",
        f"<h1>{html.escape(inspection.title)}</h1>",
        *plots,
        f"<pre>{html.escape(as_text(inspection))}</pre></body></html>\n",
    ]
    return "\n".join(parts)


def _plot(title: str, counts: NDArray[np.int64], last: int) -> str:
    """A histogram as SVG; of roots, because most examples have the full length."""
    heights = 100 * np.sqrt(counts / max(1, counts.max()))
    bars = "".join(
        f"<rect x='{number}.05' y='{100 - height:.1f}' width='.9' height='{height:.1f}'/>"
        for number, height in enumerate(heights)
        if height
    )
    size = f"viewBox='0 0 {len(counts)} 100' preserveAspectRatio='none'"
    return f"<figure><figcaption>{title}: 0 to {last}</figcaption><svg {size}>{bars}</svg></figure>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
