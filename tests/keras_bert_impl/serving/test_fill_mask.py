import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.config import FillMaskConfig
from keras_bert_impl.serving.export import export_saved_model, serve_model
from keras_bert_impl.serving.fill_mask import Candidate, FilledText, FillMask, read_texts
from keras_bert_impl.serving.opened_model import open_model

TEXTS = ["the [MASK] runs.", "[MASK] [MASK]", "a dog, a cat, a list, a value, the [MASK] sleeps."]


def answering(texts):
    """A signature that knows two tokens and sees one mask a text."""
    rows = len(texts)
    return {
        "tokens": tf.constant([[["dog", "cat"]]] * rows),
        "probabilities": tf.constant([[[0.5, 0.25]]] * rows),
        "mask_counts": tf.constant([1] * rows),
        "num_truncated": tf.constant([0] * rows),
    }


def test_a_text_gets_its_best_tokens():
    assert FillMask(answering).fill(["the [MASK]"], top_k=2) == [
        FilledText("the [MASK]", [[Candidate("dog", 0.5), Candidate("cat", 0.25)]], 0)
    ]


def test_any_number_of_texts_is_answered_in_order():
    texts = [f"{number} [MASK]" for number in range(70)]
    assert [filled.text for filled in FillMask(answering).fill(texts, top_k=1)] == texts


def test_only_line_feeds_end_a_line_as_in_a_file():
    config = FillMaskConfig(model="", text=("a [MASK]\u2028b\r\nc [MASK]",))
    assert [one.text for one in read_texts(config)] == ["a [MASK]\u2028b", "c [MASK]"]


def test_a_text_without_mask_is_quoted():
    with pytest.raises(UserError, match=r"'the dog' has no \[MASK\]"):
        FillMask(answering).fill(["the [MASK]", "the dog"], top_k=1)


def test_more_tokens_than_the_model_gives_are_refused():
    with pytest.raises(UserError, match="`top_k=3` is more than the 2 tokens"):
        FillMask(answering).fill(["the [MASK]"], top_k=3)


def test_a_saved_model_answers_as_its_model_directory(pretrainer_folder, tmp_path):
    opened = open_model(pretrainer_folder)
    export_saved_model(serve_model(opened), opened, tmp_path / "saved", verify=False)
    by_saved_model = FillMask.load(tmp_path / "saved", top_k=3, trust_saved_model=True).fill(
        TEXTS, top_k=3
    )
    by_directory = FillMask.load(pretrainer_folder, top_k=3).fill(TEXTS, top_k=3)
    assert [len(filled.masks) for filled in by_saved_model] == [1, 2, 1]
    assert [filled.num_truncated for filled in by_saved_model] == [0, 0, 6]
    for left, right in zip(by_saved_model, by_directory, strict=True):
        assert left.text == right.text
        for one, other in zip(left.masks, right.masks, strict=True):
            assert [c.token for c in one] == [c.token for c in other]
            assert [c.probability for c in one] == pytest.approx(
                [c.probability for c in other], abs=1e-6
            )


def test_a_classifier_cannot_fill_masks(classifier_folder, tmp_path):
    with pytest.raises(UserError, match="has no masked-LM head"):
        FillMask.load(classifier_folder, top_k=1)
    opened = open_model(classifier_folder)
    export_saved_model(serve_model(opened), opened, tmp_path / "saved", verify=False)
    with pytest.raises(UserError, match="has no signature fill_mask_text"):
        FillMask.load(tmp_path / "saved", top_k=1, trust_saved_model=True)


def test_what_is_no_model_is_named(tmp_path):
    with pytest.raises(UserError, match=r"holds neither model\.safetensors"):
        FillMask.load(tmp_path, top_k=1)


def test_a_tf1_folder_fills_masks_too(pretrainer_folder, tmp_path):
    google = tmp_path / "google" / "bert_model.ckpt"
    write_portable(read_portable(pretrainer_folder), google, "google_tf1")
    expected = FillMask.load(pretrainer_folder, top_k=3).fill(TEXTS, top_k=3)
    assert FillMask.load(google.parent, top_k=3).fill(TEXTS, top_k=3) == expected


def test_a_broken_saved_model_is_named(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"not a protocol buffer")
    with pytest.raises(UserError, match="cannot be loaded"):
        FillMask.load(tmp_path, top_k=1, trust_saved_model=True)
