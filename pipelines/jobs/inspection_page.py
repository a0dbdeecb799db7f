"""The HTML page of `inspect_pretraining_data`: one file, plots drawn as SVG, no scripts."""

import dataclasses
import html
from collections.abc import Sequence

import numpy as np

from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.statistics import PairStatistics

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
