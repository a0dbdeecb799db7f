"""Looks into pre-training shards: samples in words, figures, and an HTML page with plots."""

import dataclasses
import html
import io
import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, followed, open_whole
from keras_bert_impl.options import REQUIRED, check_options, items_of, option
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.inputs.order import RecordOrder
from pipelines.inputs.pretraining_records import PretrainingRecords, check_batch, stored_shape
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.pretraining_data.statistics import PairStatistics, random_next
from pipelines.records.check import described_words, find_shards
from pipelines.records.paths import with_local_copies

_BATCH = 1024
_BAR = 40
_TOKENS_LISTED = 12
_STYLE = """
body { margin: 0; background: #f5f7fa; color: #1d2733; font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 0 0 12px; }
p.sub { color: #64748b; margin: 0 0 24px; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #e2e8f0; border-radius: 10px; padding: 18px 20px;
  margin-bottom: 16px; }
svg { width: 100%; height: auto; display: block; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 16px; }
table { width: 100%; border-collapse: collapse; } td:last-child { text-align: right; }
.example { margin: 0 0 14px; line-height: 2; overflow-wrap: anywhere; }
.example i { font-style: normal; border-radius: 4px; padding: 1px 5px; }
.example i.mask { background: #dbe7ff; } .example i.kept { background: #d9f2e3; }
.example i.random { background: #ffe2d1; }
.example small, .example b, .tag { color: #64748b; }
.tag { font-size: 12px; border: 1px solid #e2e8f0; border-radius: 99px; padding: 1px 9px; }
"""


@dataclasses.dataclass(frozen=True)
class InspectConfig:
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

    def __post_init__(self) -> None:
        check_options(self)


@dataclasses.dataclass(frozen=True)
class Inspection:
    """The findings.

    Attributes:
        title: the input's name.
        total: examples in the set.
        samples: examples as tokens: (token shown, true token or None where nothing is masked).
        labels: next-sentence label of each sample.
        statistics: the figures.
        vocabulary: names the tokens.
        words: the words of the text that the shards were made of; of shards that do not say it,
            those of the examples, but for the masked ones.
    """

    title: str
    total: int
    samples: list[list[tuple[str, str | None]]]
    labels: list[int]
    statistics: PairStatistics
    vocabulary: Vocabulary
    words: WordCount


def inspect_pretraining_data(config: InspectConfig) -> str:
    """Reads shards and describes what they hold; writes the page if one is asked for.

    Returns:
        Text for a terminal.
    """
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
    patterns = with_local_copies(items_of(config.input_file))
    shards = find_shards(patterns)
    if not shards:
        raise UserError("`input_file` names no file; name at least one.")
    expected, pairs = stored_shape(shards, vocabulary.sha256)
    records = PretrainingRecords(patterns, expected, seed=0)
    statistics = PairStatistics(
        expected.max_seq_length,
        expected.max_predictions_per_seq,
        VocabularyFacts.of(vocabulary),
        pairs,
    )
    counter, shown = WordCounter(vocabulary), WordCount()
    samples: list[list[tuple[str, str | None]]] = []
    labels: list[int] = []
    model = BertConfig(vocab_size=len(vocabulary))
    for numbers, features in _batches(records, config.max_examples):
        if int(features["input_ids"].max()) >= len(vocabulary):
            raise UserError(
                f"{config.vocab_file}: has {len(vocabulary)} tokens but the shards hold id "
                f"{features['input_ids'].max()}; name the vocabulary they were made with."
            )
        check_batch(features, model, records.reader.namer(numbers))
        statistics.add(features)
        shown += counter.count(features["input_ids"])
        for row in range(min(config.num_samples - len(samples), len(features["input_ids"]))):
            samples.append(_in_tokens(features, row, vocabulary))
            labels.append(int(features["next_sentence_labels"][row, 0]))
    words = described_words(shards) or shown
    return Inspection(
        config.input_file, len(records), samples, labels, statistics, vocabulary, words
    )


def _batches(
    records: PretrainingRecords, most: int
) -> Iterator[tuple[NDArray[np.int64], dict[str, NDArray]]]:
    """Batches of examples from all over the set, with the numbers of their records."""
    order = RecordOrder(len(records), seed=0)
    for start in range(0, min(most, len(records)), _BATCH):
        positions = np.arange(start, min(start + _BATCH, most, len(records)))
        epochs, numbers = order.at(positions)
        yield numbers, records.batch(epochs, numbers)


def _in_tokens(
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
    tokens = vocabulary.tokens
    return [
        (tokens[shown], tokens[true[position]] if position in true else None)
        for position, shown in enumerate(ids)
    ]


def as_text(inspection: Inspection) -> str:
    """Samples and figures for a terminal."""
    parts = [_sample_text(inspection, number) for number in range(len(inspection.samples))]
    parts.append(f"{inspection.total:,} examples, figures from {inspection.statistics.examples:,}:")
    parts[-1] += "".join(f"\n  {name:<22} {value}" for name, value in _figures(inspection).items())
    parts.append("Lengths in tokens:\n" + _histogram(inspection.statistics.lengths))
    return "\n\n".join(parts)


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
        "[MASK], same, random": ", ".join(
            _percent(found[f"share_{kind}"]) for kind in ("mask", "kept", "random")
        ),
    }


def _sample_text(inspection: Inspection, number: int) -> str:
    label = ("next", "random")[inspection.labels[number]]
    words = " ".join(
        shown if true is None else f"{shown}«{true}»" for shown, true in inspection.samples[number]
    )
    return (
        f"Example {number + 1} ({label}; «…» holds the true token of a masked position):\n{words}"
    )


def _histogram(counts: NDArray[np.int64], bins: int = 8) -> str:
    """A histogram in text: a bar for each of a few ranges of lengths."""
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


def page(inspection: Inspection) -> str:
    """The same as an HTML page, complete in one file."""
    examples = inspection.statistics.examples
    order = np.argsort(-inspection.statistics.masked_ids, kind="stable")[:_TOKENS_LISTED].tolist()
    counts = inspection.statistics.masked_ids[order] / max(
        1, inspection.statistics.masked_ids.sum()
    )
    named = zip((inspection.vocabulary.tokens[number] for number in order), counts, strict=True)
    most = {token: f"{100 * share:.2f} %" for token, share in named if share}
    tables = _table("The set", _figures(inspection)) + _table("Most masked tokens", most)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Pre-training data</title><style>{_STYLE}</style></head><body><main>",
        "<h1>Pre-training data</h1>",
        f"<p class='sub'>{html.escape(inspection.title)} · figures from "
        f"{examples:,} of {inspection.total:,} examples</p>",
        f"<div class='tables'>{tables}</div>",
        f"<section>{_plots(inspection.statistics)}</section>",
        f"<section><h2>Examples</h2>{''.join(_examples(inspection))}</section>",
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _table(title: str, rows: Mapping[str, str]) -> str:
    lines = (
        f"<tr><td>{html.escape(name)}</td><td>{value}</td></tr>" for name, value in rows.items()
    )
    return f"<section><h2>{title}</h2><table>{''.join(lines)}</table></section>"


def _plots(statistics: PairStatistics) -> str:
    """Four histograms as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    tenths = np.linspace(0, 100, 11)
    plots = (
        ("Tokens an example", statistics.lengths, None),
        ("Masked positions an example", statistics.masks, None),
        ("Where masked positions are in the example, %", statistics.deciles, tenths),
        ("A's share of the tokens, %", statistics.shares_of_a, tenths),
    )
    # Text as text, not as outlines: a small file. The salt makes the same data the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pre-training data"}):
        figure = Figure(figsize=(10, 6.5), layout="constrained")
        all_axes = figure.subplots(2, 2).flat
        for axes, (title, counts, edges) in zip(all_axes, plots, strict=True):
            values = np.arange(len(counts)) if edges is None else (edges[1:] + edges[:-1]) / 2
            bins = _whole_bins(len(counts)) if edges is None else edges
            axes.hist(values, bins, weights=counts, rwidth=0.9, color="#2f6fde")
            axes.set_title(title, fontsize=11)
            if edges is None:
                # Most examples have the full length: square roots let the others show as well.
                axes.set_yscale("function", functions=(_root, np.square))
            axes.set_ylim(0)
            axes.spines[["top", "right"]].set_visible(False)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    text = drawing.getvalue()
    return text[text.index("<svg") :]


def _whole_bins(count: int) -> NDArray:
    """Edges of at most 32 bins of whole numbers; the last bin ends with `count - 1`."""
    step = -(-count // 32)
    return np.arange(count - 0.5, -step, -step)[::-1]


def _root(counts: NDArray) -> NDArray:
    return np.sqrt(np.maximum(counts, 0))


def _examples(inspection: Inspection) -> list[str]:
    lines = []
    for sample, label in zip(inspection.samples, inspection.labels, strict=True):
        words = " ".join(_word(shown, true) for shown, true in sample)
        tag = "random next" if label else "next"
        lines.append(f"<p class='example'><span class='tag'>{tag}</span> {words}</p>")
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
