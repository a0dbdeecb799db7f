"""Looks into pre-training shards: examples in words, figures, and a page with plots."""

import dataclasses
import html
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.inputs.order import RecordOrder
from pipelines.inputs.pretraining_records import PretrainingRecords, stored_shape
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.pretraining_data.statistics import PairStatistics
from pipelines.records.check import find_shards
from pipelines.records.paths import with_local_copies

_MOST_PIECES = 12
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #64748b; --line: #e2e8f0;
  --card: #ffffff; --ground: #f5f7fa; --bar: #2f6fde; --mask: #dbe7ff; --kept: #d9f2e3;
  --random: #ffe2d1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5eaf1; --soft: #94a3b8; --line: #2b3646;
  --card: #18212d; --ground: #0f1620; --bar: #6ea0ff; --mask: #23407a; --kept: #1f4f38;
  --random: #6b3a20; } }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 0 0 12px; }
p.sub { color: var(--soft); margin: 0 0 24px; overflow-wrap: anywhere; }
.cards, .plots { display: grid; gap: 16px; margin-bottom: 16px; }
.cards { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.plots { grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; }
.cards section { padding: 14px 18px; }
.cards b { display: block; font-size: 22px; font-weight: 600; }
.cards span { color: var(--soft); font-size: 13px; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg rect { fill: var(--bar); } svg line { stroke: var(--line); }
.example { margin: 0 0 14px; line-height: 2; overflow-wrap: anywhere; }
.example i { font-style: normal; border-radius: 4px; padding: 1px 5px; }
.example i.mask { background: var(--mask); } .example i.kept { background: var(--kept); }
.example i.random { background: var(--random); }
.example small { color: var(--soft); } .example b { color: var(--soft); font-weight: 600; }
.tag { font-size: 12px; color: var(--soft); border: 1px solid var(--line); border-radius: 99px;
  padding: 1px 9px; margin-right: 8px; }
"""


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What was seen.

    Attributes:
        title: the input's name.
        total: examples in the set.
        samples: examples in pieces: (piece shown, true piece or None where nothing is masked).
        labels: next-sentence label of each sample.
        statistics: the figures.
        vocabulary: the pieces' names.
    """

    title: str
    total: int
    samples: list[list[tuple[str, str | None]]]
    labels: list[int]
    statistics: PairStatistics
    vocabulary: Vocabulary


def page(inspection: Inspection) -> str:
    """The whole page."""
    figures = inspection.statistics.figures()
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Pre-training data</title><style>{_STYLE}</style></head><body><main>",
        "<h1>Pre-training data</h1>",
        f"<p class='sub'>{html.escape(inspection.title)} · figures from "
        f"{figures['examples']:,.0f} of {inspection.total:,} examples</p>",
        _cards(inspection),
        f"<div class='plots'>{''.join(_plots(inspection))}</div>",
        f"<section><h2>Examples</h2>{''.join(_examples(inspection))}</section>",
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _cards(inspection: Inspection) -> str:
    figures = inspection.statistics.figures()
    cards = {
        "examples": f"{inspection.total:,}",
        "random next": _percent(figures["random_next"]),
        "tokens an example": f"{figures['mean_length']:.1f}",
        "of full length": _percent(figures["full_length"]),
        "padding": _percent(figures["padding"]),
        "masked an example": f"{figures['masks_per_example']:.2f}",
    }
    inner = "".join(
        f"<section><b>{value}</b><span>{name}</span></section>" for name, value in cards.items()
    )
    return f"<div class='cards'>{inner}</div>"


def _plots(inspection: Inspection) -> list[str]:
    statistics, figures = inspection.statistics, inspection.statistics.figures()
    labels, lengths = _binned(statistics.lengths[1:], 32)
    kinds = {"[MASK]": "share_mask", "the piece itself": "share_kept", "random": "share_random"}
    shares = [(name, 100 * figures[key]) for name, key in kinds.items()]
    order = np.argsort(-statistics.masked_ids, kind="stable")[:_MOST_PIECES]
    masked = max(1, int(statistics.masked_ids.sum()))
    pieces = [
        (inspection.vocabulary.pieces[number], 100 * float(statistics.masked_ids[number]) / masked)
        for number in order.tolist()
        if statistics.masked_ids[number]
    ]
    tenths = [f"{10 * number} %" for number in range(10)]
    return [
        _plot("Tokens an example", _columns(labels, lengths, roots=True)),
        _plot(
            "Masked places an example",
            _columns(list(map(str, range(len(statistics.masks)))), statistics.masks, roots=True),
        ),
        _plot("What stands at masked places", _rows(shares)),
        _plot("Where masked places stand in the example", _columns(tenths, statistics.deciles)),
        _plot("A's share of the tokens", _columns(tenths, statistics.shares_of_a)),
        _plot("Most masked pieces", _rows(pieces)),
    ]


def _examples(inspection: Inspection) -> list[str]:
    lines = []
    for sample, label in zip(inspection.samples, inspection.labels, strict=True):
        words = " ".join(_word(shown, true) for shown, true in sample)
        tag = "random next" if label else "next"
        lines.append(f"<p class='example'><span class='tag'>{tag}</span>{words}</p>")
    return lines


def _word(shown: str, true: str | None) -> str:
    word = html.escape(shown)
    if true is None:
        return f"<b>{word}</b>" if shown in ("[CLS]", "[SEP]") else word
    kind = "kept" if shown == true else "mask" if shown == "[MASK]" else "random"
    was = "" if kind == "kept" else f" <small>{html.escape(true)}</small>"
    return f"<i class='{kind}'>{word}{was}</i>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plot(title: str, drawing: str) -> str:
    return f"<section><h2>{title}</h2>{drawing}</section>"


def _binned(counts: np.ndarray, bins: int) -> tuple[list[str], np.ndarray]:
    """Counts of 1, 2, 3, ... joined to at most so many bins, and the bins' labels."""
    width = -(-len(counts) // bins)
    starts = np.arange(0, len(counts), width)
    ends = np.minimum(starts + width, len(counts))
    labels = [
        str(end) if width == 1 else f"{start + 1}-{end}"
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return labels, np.add.reduceat(counts, starts)


def _columns(labels: Sequence[str], values: np.ndarray, *, roots: bool = False) -> str:
    """Upright bars; with `roots` their heights are square roots, so that small ones show."""
    width, height, base = 480, 190, 165
    step = width / len(labels)
    most = max(1, int(values.max()))
    parts = [f"<svg viewBox='0 0 {width} {height}' role='img'>"]
    parts.append(f"<line x1='0' y1='{base}' x2='{width}' y2='{base}'/>")
    every = -(-len(labels) // 8)
    for number, (label, value) in enumerate(zip(labels, values.tolist(), strict=True)):
        share = value / most
        tall = 145 * (share**0.5 if roots else share)
        parts.append(
            f"<rect x='{number * step + step * 0.1:.1f}' y='{base - tall:.1f}' rx='2' "
            f"width='{step * 0.8:.1f}' height='{tall:.1f}'><title>{label}: {value:,}</title></rect>"
        )
        if number % every == 0:
            middle = number * step + step / 2
            parts.append(f"<text x='{middle:.1f}' y='182' text-anchor='middle'>{label}</text>")
    scale = ", square-root scale" if roots else ""
    note = f"highest: {most:,}{scale}"
    parts.append(f"<text x='0' y='12'>{note}</text></svg>")
    return "".join(parts)


def _rows(values: Sequence[tuple[str, float]]) -> str:
    """Lying bars with their percentages."""
    height = 22 * len(values) + 4
    most = max([value for _, value in values], default=1.0) or 1.0
    parts = [f"<svg viewBox='0 0 480 {height}' role='img'>"]
    for number, (label, value) in enumerate(values):
        top = 22 * number + 2
        long = 290 * value / most
        parts.append(
            f"<text x='112' y='{top + 13}' text-anchor='end'>{html.escape(label)}</text>"
            f"<rect x='120' y='{top}' rx='2' width='{long:.1f}' height='17'/>"
            f"<text x='{126 + long:.1f}' y='{top + 13}'>{value:.2f} %</text>"
        )
    return "".join([*parts, "</svg>"])


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
        expected.max_seq_length,
        expected.max_predictions_per_seq,
        VocabularyFacts.of(vocabulary),
        pairs,
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
