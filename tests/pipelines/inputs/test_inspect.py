"""Figures of a batch, counted once more example by example."""

import dataclasses
import re
import shutil

import numpy as np
import pytest

from keras_bert_impl.tokenization.unknown_words import WordCount
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.inputs import inspect
from pipelines.inputs.inspect import (
    InspectConfig,
    PairStatistics,
    as_text,
    inspect_pretraining_data,
    look,
    page,
)
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.records.check import Expected
from tests.support.pretraining_corpus import make_shards

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "##s", "fox", "hen"])
ID = {token: number for number, token in enumerate(VOCABULARY.tokens)}

# (shown tokens, tokens of A, {masked position: true token}, random next)
EXAMPLES = [
    ("[CLS] the [MASK] [SEP] hen ##s [SEP]", 2, {2: "fox", 5: "##s"}, 0),
    ("[CLS] fox [SEP] the hen [SEP]", 1, {1: "hen"}, 1),
    ("[CLS] the fox ##s the fox [SEP] [MASK] [SEP]", 5, {7: "##s"}, 1),
]
LENGTH, PREDICTIONS = 10, 3


def features() -> dict[str, np.ndarray]:
    """The examples as a pre-training batch."""
    batch = {
        "input_ids": np.zeros((3, LENGTH), np.int64), "input_mask": np.zeros((3, LENGTH), np.int64),
        "segment_ids": np.zeros((3, LENGTH), np.int64),
        "masked_lm_positions": np.zeros((3, PREDICTIONS), np.int64),
        "masked_lm_ids": np.zeros((3, PREDICTIONS), np.int64),
        "masked_lm_weights": np.zeros((3, PREDICTIONS), np.float32),
        "next_sentence_labels": np.array([[example[3]] for example in EXAMPLES]),
    }  # fmt: skip
    for row, (shown, len_a, masked, _) in enumerate(EXAMPLES):
        ids = [ID[token] for token in shown.split()]
        batch["input_ids"][row, : len(ids)] = ids
        batch["input_mask"][row, : len(ids)] = 1
        batch["segment_ids"][row, len_a + 2 : len(ids)] = 1
        for slot, (position, token) in enumerate(masked.items()):
            batch["masked_lm_positions"][row, slot] = position
            batch["masked_lm_ids"][row, slot] = ID[token]
            batch["masked_lm_weights"][row, slot] = 1
    return batch


@pytest.fixture
def statistics() -> PairStatistics:
    found = PairStatistics(LENGTH, PREDICTIONS, VocabularyFacts.of(VOCABULARY))
    found.add(features())
    return found


def test_lengths_are_those_of_the_examples(statistics):
    assert np.flatnonzero(statistics.lengths).tolist() == [6, 7, 9]
    figures = statistics.figures()
    assert np.repeat(np.arange(LENGTH + 1), statistics.lengths_a).tolist() == [1, 2, 5]
    assert np.repeat(np.arange(LENGTH + 1), statistics.lengths_b).tolist() == [1, 2, 2]
    assert figures["mean_length"] == pytest.approx(22 / 3)
    assert figures["padding"] == pytest.approx(8 / 30)
    assert figures["full_length"] == 0
    assert figures["random_next"] == pytest.approx(2 / 3)


def test_what_is_shown_at_masked_positions_is_told_apart(statistics):
    assert dict(statistics.kinds) == {"kept": 1, "mask": 2, "random": 1}
    figures = statistics.figures()
    shares = [figures[f"share_{kind}"] for kind in ("mask", "kept", "random")]
    assert shares == [0.5, 0.25, 0.25]
    assert figures["masks_per_example"] == pytest.approx(4 / 3)
    assert figures["masked_share"] == pytest.approx(4 / 22)


def test_masked_tokens_are_counted(statistics):
    assert statistics.masks.tolist() == [0, 2, 1, 0]


def test_positions_are_counted_by_tenths_of_the_example(statistics):
    expected = np.zeros(10, int)
    for shown, _, masked, _ in EXAMPLES:
        for position in masked:
            expected[10 * position // len(shown.split())] += 1
    assert statistics.deciles.tolist() == expected.tolist()
    assert statistics.shares_of_a.tolist() == [0, 0, 0, 1, 0, 1, 0, 0, 1, 0]


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> InspectConfig:
    made = make_shards(tmp_path_factory.mktemp("shards"))
    return InspectConfig(made.output_file, made.vocab_file, num_samples=6)


def _records(config: InspectConfig) -> list[tuple]:
    """(shown tokens, masked positions with their tokens, label) of every record of the set."""
    vocabulary = Vocabulary.load(config.vocab_file)
    found = []
    for batch in PretrainingEvaluation([config.input_file], 1, Expected(32, 4)).batches():
        ids = batch["input_ids"][0][: int(batch["input_mask"].sum())]
        real = batch["masked_lm_weights"][0] > 0
        masked = zip(
            batch["masked_lm_positions"][0][real].tolist(),
            (vocabulary.tokens[number] for number in batch["masked_lm_ids"][0][real]),
            strict=True,
        )
        shown = [vocabulary.tokens[number] for number in ids]
        found.append((shown, dict(masked), int(batch["next_sentence_labels"][0, 0])))
    return found


def test_the_first_of_some_bare_shards_may_be_empty(config, tmp_path):
    (tmp_path / "a").touch()
    shutil.copy(f"{config.input_file}-00000-of-00003", tmp_path / "b")
    named = dataclasses.replace(config, input_file=f"{tmp_path}/a,{tmp_path}/b")
    assert len(look(named).samples) == 6


def test_samples_are_records_in_words(config):
    inspection = look(config)
    records = _records(config)
    assert len(inspection.samples) == 6
    for sample, label in zip(inspection.samples, inspection.labels, strict=True):
        masked = {position: true for position, (_, true) in enumerate(sample) if true is not None}
        assert ([shown for shown, _ in sample], masked, label) in records


def test_the_figures_are_those_of_the_whole_set(config):
    inspection, records = look(config), _records(config)
    figures = inspection.statistics.figures()
    assert inspection.total == figures["examples"] == len(records)
    assert figures["random_next"] == pytest.approx(np.mean([label for _, _, label in records]))
    assert figures["mean_length"] == pytest.approx(np.mean([len(shown) for shown, _, _ in records]))
    assert figures["masks_per_example"] == pytest.approx(np.mean([len(m) for _, m, _ in records]))


def test_the_figures_may_be_made_from_a_part_spread_over_the_set(config, monkeypatch):
    monkeypatch.setattr(inspect, "_BATCH", 16)
    part = look(dataclasses.replace(config, max_examples=40))
    assert part.statistics.examples == 40
    assert "figures from 40:" in as_text(part)
    assert part.samples == look(config).samples  # the same order, so the same first samples


def test_the_page_is_one_file_and_the_same_for_the_same_data(config, tmp_path):
    path = tmp_path / "page.html"
    inspect_pretraining_data(dataclasses.replace(config, html=str(path)))
    written = path.read_text(encoding="utf-8")
    assert written == page(look(config))
    assert not re.findall(r"<(?:script|link|img)|(?:src|href)=['\"]http", written)
    for title in ("Tokens an example", "Masked positions an example", "A's share of the tokens"):
        assert title in written


def test_tokens_of_a_vocabulary_are_no_html(config):
    inspection = dataclasses.replace(
        look(config), title="<b>.tfrecord", samples=[[("<i>", "&amp;")]], labels=[0]
    )
    written = page(inspection)
    assert "&lt;b&gt;.tfrecord" in written
    assert "&lt;i&gt;«&amp;amp;»" in written


def test_the_share_of_unknown_words_is_the_whole_text_s(tmp_path):
    (tmp_path / "corpus.txt").write_text("The fox saw a dog. It barks\n\nthe hen ran.\n" * 20)
    made = make_shards(tmp_path)
    config = InspectConfig(made.output_file, made.vocab_file, max_examples=3)
    inspection = look(config)
    assert inspection.words == WordCount(words=240, unknown=60)
    assert "  [UNK]                  25.0 % of the words\n" in as_text(inspection)
