"""What each kind of model serves, held to the NumPy encoder that shares no code with it."""

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.serving.export import serve_model
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.packing import pack_batch
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.model_folders import POSITIONS, WORD_VOCABULARY, tiny_config
from tests.support.numpy_bert import NumpyBert, log_softmax
from tests.support.tiny_bert import scatter_weights

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY), special_tokens="keep")
INPUTS = {
    "input_ids": np.array([[2, 5, 4, 8, 3], [2, 6, 3, 0, 0]], np.int32),
    "input_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32),
    "segment_ids": np.zeros([2, 5], np.int32),
}


def arrays(outputs):
    return {name: np.asarray(value) for name, value in outputs.items()}


def packed(text_a, text_b=None):
    ids_b = None if text_b is None else [TOKENIZER.encode(text_b)]
    ids_a = [TOKENIZER.encode(text_a)]
    return [*pack_batch(ids_a, ids_b, WORD_VOCABULARY, POSITIONS, pad_to_longest=False).values()]


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.fixture(scope="module")
def pretrainer(pretrainer_folder):
    return serve_model(open_model(pretrainer_folder), top_k=3), NumpyBert(pretrainer_folder)


@pytest.fixture(scope="module")
def classifier(classifier_folder):
    return serve_model(open_model(classifier_folder)), NumpyBert(classifier_folder)


def test_a_pretrained_model_serves_vectors_scores_and_words(pretrainer):
    served, _ = pretrainer
    assert served.interface() == {
        "masked_lm": (
            ("input_ids", "input_mask", "segment_ids", "masked_lm_positions"),
            ("masked_lm_logits", "next_sentence_logits"),
        ),
        "serving_default": (
            ("input_ids", "input_mask", "segment_ids"),
            ("pooled_output", "sequence_output"),
        ),
        "fill_mask_text": (("text",), ("mask_counts", "num_truncated", "probabilities", "tokens")),
        "next_sentence_text": (("text_a", "text_b"), ("next_sentence_logits", "probability")),
    }


def test_served_vectors_are_the_encoders(pretrainer):
    served, reference = pretrainer
    found = arrays(served.call("serving_default", INPUTS))
    sequence = reference.encode(*INPUTS.values())[-1]
    close(found["pooled_output"], reference.pooled(sequence))
    close(found["sequence_output"][0], sequence[0])


def test_served_scores_are_the_heads(pretrainer):
    served, reference = pretrainer
    positions = np.array([[2], [1]], np.int32)
    found = arrays(served.call("masked_lm", {**INPUTS, "masked_lm_positions": positions}))
    sequence = reference.encode(*INPUTS.values())[-1]
    close(
        log_softmax(found["masked_lm_logits"]),
        reference.masked_lm_log_probabilities(sequence, positions),
    )
    close(
        log_softmax(found["next_sentence_logits"]),
        reference.next_sentence_log_probabilities(reference.pooled(sequence)),
    )


def test_the_best_tokens_of_a_text_come_first_with_their_probabilities(pretrainer):
    served, reference = pretrainer
    found = arrays(served.call("fill_mask_text", {"text": ["the [MASK] runs", "a dog"]}))
    sequence = reference.encode(*packed("the [MASK] runs"))[-1]
    logs = reference.masked_lm_log_probabilities(sequence, np.array([[2]]))[0, 0]
    best = np.argsort(-logs)[:3]
    words = [WORD_VOCABULARY.tokens[number].encode() for number in best]
    assert found["tokens"].tolist() == [[words], [[b"", b"", b""]]]
    close(found["probabilities"], [[np.exp(logs[best])], [[0, 0, 0]]])
    assert found["mask_counts"].tolist() == [1, 0]


def test_a_pair_of_texts_gets_the_probability_that_the_second_follows(pretrainer):
    served, reference = pretrainer
    pair = {"text_a": ["the dog", "a"], "text_b": ["a cat runs.", "list"]}
    found = arrays(served.call("next_sentence_text", pair))
    sequence = reference.encode(*packed("the dog", "a cat runs."))[-1]
    logs = reference.next_sentence_log_probabilities(reference.pooled(sequence))
    close(found["probability"][0], np.exp(logs[0, 0]))
    close(log_softmax(found["next_sentence_logits"])[0], logs[0])
    assert found["probability"].shape == (2,)


def test_rows_of_the_table_beyond_the_vocabulary_are_never_an_answer(tmp_path):
    rows, tokens = len(WORD_VOCABULARY) + 7, len(WORD_VOCABULARY)
    model = scatter_weights(BertPretrainer(tiny_config(vocab_size=rows)))
    model.masked_lm.output_bias.assign([0.0] * tokens + [100.0] * (rows - tokens))
    write_model_directory(tmp_path / "m", model, TextSettings(WORD_VOCABULARY))
    served = serve_model(open_model(tmp_path / "m"), top_k=1000)
    found = arrays(served.call("fill_mask_text", {"text": ["the [MASK] runs"]}))
    words = sorted(token.encode() for token in WORD_VOCABULARY.tokens)
    assert sorted(found["tokens"][0, 0].tolist()) == words
    close(found["probabilities"].sum(), 1.0)


def test_a_classifier_serves_labels_for_ids_texts_and_pairs(classifier):
    served, reference = classifier
    pair = arrays(served.call("text_pair", {"text_a": ["the dog"], "text_b": ["a cat runs."]}))
    logits = reference.class_logits(
        reference.pooled(reference.encode(*packed("the dog", "a cat runs."))[-1])
    )
    close(pair["logits"], logits)
    close(pair["probabilities"], np.exp(log_softmax(logits)))
    assert pair["label"].tolist() == [(b"no", b"yes")[logits[0].argmax()]]
    text = arrays(served.call("text", {"text": ["the dog"]}))
    close(
        text["logits"],
        reference.class_logits(reference.pooled(reference.encode(*packed("the dog"))[-1])),
    )
    ids = arrays(served.call("serving_default", INPUTS))
    close(
        ids["logits"],
        reference.class_logits(reference.pooled(reference.encode(*INPUTS.values())[-1])),
    )


def test_rows_do_not_depend_on_their_neighbours(classifier):
    served, _ = classifier
    together = arrays(served.call("text", {"text": ["the dog", "a cat runs. the list sleeps."]}))
    alone = arrays(served.call("text", {"text": ["the dog"]}))
    close(together["logits"][0], alone["logits"][0])


def test_a_text_longer_than_the_positions_is_cut(classifier):
    served, _ = classifier
    long = arrays(served.call("text", {"text": ["the dog " * 40]}))
    cut = arrays(served.call("text", {"text": ["the dog " * (POSITIONS // 2 - 1)]}))
    close(long["logits"], cut["logits"])


def test_a_regression_serves_a_score(regression_folder):
    served = serve_model(open_model(regression_folder))
    reference = NumpyBert(regression_folder)
    found = arrays(served.call("text", {"text": ["the dog"]}))
    assert list(found) == ["score"]
    close(
        found["score"],
        reference.class_logits(reference.pooled(reference.encode(*packed("the dog"))[-1]))[:, 0],
    )


def test_an_encoder_serves_vectors_and_tells_tokens_from_padding(encoder_folder):
    served, reference = serve_model(open_model(encoder_folder)), NumpyBert(encoder_folder)
    found = arrays(served.call("text", {"text": ["the dog", "a"]}))
    assert found["input_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    sequence = reference.encode(*(row[:, :4] for row in packed("the dog")))[-1]
    close(found["sequence_output"][0], sequence[0])
    close(found["pooled_output"][0], reference.pooled(sequence)[0])
