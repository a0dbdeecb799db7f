"""Models asked from Python, through the front door."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import keras_bert_impl as kb
from tests.support.model_folders import write_classifier


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    folder = write_classifier(tmp_path_factory.mktemp("labels") / "model", ["no", "yes"])
    with kb.Predictor.from_pretrained(folder, engine="openvino") as opened:
        yield opened


def test_one_text_has_one_answer_and_a_list_a_list(predictor):
    one = predictor("the dog")
    assert one["label"] in ("no", "yes")
    assert predictor(["the dog", "a cat"])[0]["logits"] == pytest.approx(one["logits"], abs=1e-5)
    assert predictor([]) == []


def test_pairs_and_instances_find_their_signature(predictor):
    assert (predictor.kind, predictor.signatures) == ("label", ("text", "text_pair"))
    pair = predictor(("the dog", "a cat"))
    assert predictor({"text_a": "the dog", "text_b": "a cat"}) == pair
    assert predictor([("the dog", "a cat")], signature="text_pair") == [pair]


@pytest.mark.parametrize("asked", [("a", "b", "c"), ["a", 5]])
def test_what_is_no_text_is_told(predictor, asked):
    with pytest.raises(kb.UserError):
        predictor(asked)


def test_threads_ask_at_once(predictor):
    texts = [f"the {'dog ' * number}" for number in range(8)] * 4
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(predictor, texts)]
    for one, other in zip(found, predictor(texts), strict=True):
        assert one["logits"] == pytest.approx(other["logits"], abs=1e-5)
