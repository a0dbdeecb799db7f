"""The card is what the hub's own reader understands, and nobody's words are lost."""

import pytest
from huggingface_hub import ModelCard

from keras_bert_impl.checkpoints.model_card import (
    CARD_FILE,
    TrainingFacts,
    edited_card,
    export_card,
    model_card,
    write_card,
)
from keras_bert_impl.config import MASKED_LM_ENTRY
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY

TEXT = TextSettings(VOCABULARY)
LABELS = {"id2label": {"0": "bad", "1": "good"}, "label2id": {"bad": 0, "good": 1}}


def classifier():
    return BertClassifier(TINY.replace(extra=LABELS), 2)


def pretrainer():
    return BertPretrainer(TINY)


def test_save_pretrained_writes_a_card_that_the_hub_reads(tmp_path):
    classifier().save_pretrained(tmp_path / "reviews", TEXT)
    card = ModelCard.load(tmp_path / "reviews" / CARD_FILE)
    assert card.data.pipeline_tag == "text-classification"
    assert {"bert", "keras"} <= {*card.data.tags}
    assert card.data.license is None
    assert "`bad`, `good`" in card.text
    assert 'AutoModelForSequenceClassification.from_pretrained(".")' in card.text


def test_what_a_run_knows_stands_in_the_card():
    facts = TrainingFacts(
        flags="--init_checkpoint=klue/bert-base\n--seed=7\n",
        base_model="klue/bert-base",
        steps=1200,
        hours=1.5,
        figures={"eval_accuracy": 0.875},
        guesses={"eval_accuracy": 0.5},
    )
    config = TINY.replace(extra={**LABELS, "architectures": ["BertForSequenceClassification"]})
    card = ModelCard(model_card(config, TEXT, facts))
    assert card.data.base_model == "klue/bert-base"
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_value) == ("accuracy", 0.875)
    assert "| eval_accuracy | 0.875 | 0.5 |" in card.text
    assert "1,200 steps from `klue/bert-base` in 1.5 hours (the steps alone)" in card.text
    assert "--seed=7" in card.text


def test_a_model_of_vectors_has_the_peers_own_tags():
    data = ModelCard(model_card(TINY, TEXT, sentences=True)).data
    assert data.to_dict()["library_name"] == "sentence-transformers"
    assert data.pipeline_tag == "sentence-similarity"
    assert data.tags[:3] == ["sentence-transformers", "sentence-similarity", "feature-extraction"]


def test_vectors_that_the_peer_would_compute_otherwise_are_not_called_its_own():
    config = TINY.replace(anticausal=True)
    data = ModelCard(model_card(config, TEXT, sentences=True)).data
    assert data.to_dict()["library_name"] == "keras_bert_impl"
    assert "sentence-transformers" not in data.tags


@pytest.mark.parametrize("card", ["my words\n", "---\nlicense: mit\n---\n# 모델\n"])
def test_a_card_of_a_person_is_kept(tmp_path, card):
    folder = tmp_path / "model"
    BertEncoder(TINY).save_pretrained(folder, TEXT)
    (folder / CARD_FILE).write_text(card, encoding="utf-8")
    BertEncoder(TINY).save_pretrained(folder, TEXT)
    write_card(folder, model_card(TINY, TEXT))
    assert (folder / CARD_FILE).read_text(encoding="utf-8") == card


def test_one_changed_word_makes_a_card_a_persons(tmp_path):
    write_card(tmp_path, model_card(TINY, TEXT))
    assert edited_card(tmp_path) is None
    path = tmp_path / CARD_FILE
    path.write_text(path.read_text().replace("Not said yet", "MIT"))
    assert "MIT" in edited_card(tmp_path)


def test_what_a_link_leads_to_is_neither_read_nor_written(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("mine\n")
    folder = tmp_path / "model"
    BertEncoder(TINY).save_pretrained(folder, TEXT)
    (folder / CARD_FILE).unlink()
    (folder / CARD_FILE).symlink_to(secret)
    BertEncoder(TINY).save_pretrained(folder, TEXT)
    assert secret.read_text() == "mine\n"
    assert not (folder / CARD_FILE).is_symlink()
    assert "mine" not in (folder / CARD_FILE).read_text().splitlines()


def test_names_and_flags_are_no_markup():
    labels = {"id2label": {"0": "x\n---\n# EVIL", "1": "a`b"}}
    config = TINY.replace(extra={**labels, "architectures": ["BertForSequenceClassification"]})
    lines = model_card(config, TEXT, TrainingFacts(flags="--a=1\n```\n# EVIL")).splitlines()
    assert "`x --- # EVIL`, `a'b`" in lines
    assert [lines[n - 3] for n, line in enumerate(lines) if line == "# EVIL"] == ["````"]


@pytest.mark.parametrize(("make", "said"), [(classifier, "label"), (pretrainer, "probabilit")])
def test_the_example_of_a_card_runs(tmp_path, monkeypatch, capsys, make, said):
    make().save_pretrained(tmp_path / "reviews", TEXT)
    monkeypatch.chdir(tmp_path / "reviews")
    example = (tmp_path / "reviews" / CARD_FILE).read_text().split("```python\n")[1]
    exec(example.split("```")[0], {})
    assert said in capsys.readouterr().out


OF_PEERS = "---\nlibrary_name: sentence-transformers\n---\n# Mine\n\n## Use\n\nFor searching.\n"


@pytest.mark.parametrize(
    ("card", "kept"), [(model_card(TINY, TEXT), "\n## Licence\n"), (OF_PEERS, "\nFor searching.\n")]
)
def test_beside_an_export_a_card_keeps_all_but_the_use_of_the_directory(card, kept):
    found = export_card(card, "## Use\n\nAsk its client.\n")
    assert kept in found
    assert "\nAsk its client.\n" in found
    assert "from_pretrained" not in found
    assert "\nlibrary_name: keras_bert_impl\n" in found
    assert found.count("<!-- written by") == 1


def test_what_transformers_computes_otherwise_is_not_promised(tmp_path):
    masked = {MASKED_LM_ENTRY: {"hidden_act": "relu"}, "architectures": ["BertForMaskedLM"]}
    card = model_card(TINY.replace(extra=masked), TEXT)
    assert "transformers" not in card
    model = BertClassifier(TINY, 2, pooling="mean")
    model.save_pretrained(tmp_path / "mean", TEXT)
    assert "transformers" not in (tmp_path / "mean" / CARD_FILE).read_text()
