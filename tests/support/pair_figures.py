"""Figures of our own pairs in the words of the original's recorded figures."""

import json
import lzma
import re
from pathlib import Path

import numpy as np

from pipelines.inputs.inspect import PairStatistics
from pipelines.pretraining_data import chunks as chunking
from pipelines.pretraining_data.documents import SentenceBlock
from pipelines.pretraining_data.draws import seed_word
from pipelines.pretraining_data.masking import mask_examples
from pipelines.pretraining_data.pairs import find_partners, gather_examples, truncate
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.record_maker import example_features, masked_features

GOLDEN = Path(__file__).parent.parent / "golden" / "pairs" / "pairs.json"
_SPLIT = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(0-9])")


def golden_text(data_folder: Path, size: int) -> str:
    """The text of the recorded runs: sentences of every seventh document, until `size` bytes."""
    parts, written = [], 0
    with lzma.open(
        data_folder / "corpora" / "enwiki-2015.jsonl.xz", "rt", encoding="utf-8"
    ) as file:
        for number, line in enumerate(file):
            if number % 7:
                continue
            paragraphs = json.loads(line)["text"].split("\n")
            found = [s.strip() for text in paragraphs for s in _SPLIT.split(text)]
            sentences = [sentence for sentence in found if sentence]
            if sentences:
                parts.append("\n".join(sentences) + "\n\n")
                written += len(parts[-1].encode())
            if written >= size:
                break
    return "".join(parts)


def golden_figures(*, whole_words: bool) -> list[dict[str, float]]:
    """The original's figures, one dictionary a seed."""
    runs = json.loads(GOLDEN.read_text(encoding="utf-8"))["runs"]
    return [_named(run) for run in runs if run["whole_word_mask"] == whole_words]


def _named(run: dict) -> dict[str, float]:
    tenths = np.array(run["masked_relative_position_decile_hist"], float)
    tenths /= tenths.sum()
    figures = {
        "examples": run["instances"],
        "random next": run["share_random_next"],
        "full length": run["share_full_length"],
        "masked share of tokens": run["masked_share_of_tokens"],
        "kind [MASK]": run["masked_kind_share"]["mask"],
        "kind same": run["masked_kind_share"]["kept"],
        "B directly follows A": run["b_first_sentence_directly_follows_a_given_next"],
        "masked in first tenth": tenths[0],
        "masked in fifth tenth": tenths[4],
        "masked in last tenth": tenths[9],
        "masked word starts": run["masked_labels_not_continuation"]["mean"],
    }
    for name, key in {
        "length of A": "len_a",
        "length of B": "len_b",
        "length": "total_len",
        "masked": "masked_positions",
        "A's share": "a_share_of_tokens",
    }.items():
        figures[name] = run[key]["mean"]
        figures[f"{name} (sd)"] = run[key]["std"]
    return figures


def our_figures(block: SentenceBlock, facts: VocabularyFacts, recipe: Recipe) -> dict[str, float]:
    """The same figures of the pairs that our rules make from a corpus in one block."""
    offsets = np.concatenate([[0], np.cumsum(block.sentence_lengths)])
    bounds = np.concatenate([[0], np.cumsum(block.document_sizes)])
    chunks = chunking.plan_chunks(
        chunking.DocumentBatch(offsets, bounds),
        recipe.chunk_rules(),
        seed_word(recipe.random_seed),
        range(recipe.dupe_factor),
        len(block.sentence_lengths),
    )
    start_b, len_b = find_partners(chunks, offsets, bounds, recipe.same_document_tries)
    plan = truncate(chunks, start_b, len_b, recipe.token_budget)
    rows = gather_examples(block.ids, plan, recipe.max_seq_length, facts.special)
    masked = mask_examples(rows, plan.keys, recipe.masking_rules(facts))
    features = example_features(rows, plan.is_random) | masked_features(masked)
    statistics = PairStatistics(recipe.max_seq_length, recipe.max_predictions_per_seq, facts)
    statistics.add(features)
    figures = statistics.figures()
    labels = features["masked_lm_ids"][features["masked_lm_weights"] > 0]
    word_starts = int((~facts.is_continuation[labels]).sum())
    tenths = statistics.deciles / statistics.deciles.sum()
    share = plan.len_a / (plan.len_a.astype(float) + plan.len_b)
    last_a = np.searchsorted(offsets, plan.start_a + plan.len_a - 1, side="right")
    first_b = np.searchsorted(offsets, plan.start_b, side="right")
    return {
        "examples": figures["examples"],
        "random next": figures["random_next"],
        "full length": figures["full_length"],
        "masked share of tokens": figures["masked_share"],
        "kind [MASK]": figures["share_mask"],
        "kind same": figures["share_kept"],
        "B directly follows A": float((first_b == last_a + 1)[~plan.is_random].mean()),
        "masked in first tenth": tenths[0],
        "masked in fifth tenth": tenths[4],
        "masked in last tenth": tenths[9],
        "masked word starts": word_starts / len(plan.keys),
        "length of A": figures["mean_length_a"],
        "length of A (sd)": deviation(statistics.lengths_a),
        "length of B": figures["mean_length_b"],
        "length of B (sd)": deviation(statistics.lengths_b),
        "length": figures["mean_length"],
        "length (sd)": deviation(statistics.lengths),
        "masked": figures["masks_per_example"],
        "masked (sd)": float(masked.counts.std()),
        "A's share": float(share.mean()),
        "A's share (sd)": float(share.std()),
    }


def deviation(histogram) -> float:
    return float(np.repeat(np.arange(len(histogram)), histogram).std())


def deviations(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, float]:
    """Welch's t for each figure: how many standard errors the means over seeds lie apart."""
    result = {}
    for name in theirs[0]:
        a = np.array([figures[name] for figures in ours], float)
        b = np.array([figures[name] for figures in theirs], float)
        error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
        result[name] = float(abs(a.mean() - b.mean()) / max(error, 1e-12))
    return result
