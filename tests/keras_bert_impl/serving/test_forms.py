"""Forms that need no task, by an engine that computes nothing, and what all forms refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.engines.engine import NotFiniteError
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Input, ask
from keras_bert_impl.serving.forms import (
    EngineAnswerer,
    MaskedWordsForm,
    NextSentenceForm,
    VectorForm,
    read_fields,
)
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import WORD_VOCABULARY, tiny_config
from tests.support.tokenization import trouble_text

ID_OF = WORD_VOCABULARY.id_of


class Known:
    """A model of which only the vocabulary and the positions are asked for."""

    config = tiny_config()
    text = TextSettings(WORD_VOCABULARY)


class CountingEngine:
    """Gives the sum of a row's mask, and as logits its ids."""

    tokens_at_once, batches_at_once = 64, 1

    def __init__(self, few_lengths=False):
        self.few_lengths, self.shapes = few_lengths, []

    def compute_one(self, features):
        ids, mask = features["input_ids"], features["input_mask"]
        self.shapes.append(ids.shape)
        logits = np.eye(len(WORD_VOCABULARY), dtype=np.float32)[ids] * 5.0
        positions = features.get("masked_lm_positions", np.zeros([len(ids), 1], np.int32))
        return {
            "embedding": mask.sum(axis=-1, keepdims=True).astype(np.float32),
            "masked_lm_logits": np.take_along_axis(logits, positions[..., None], axis=1),
            "next_sentence_logits": np.stack([mask.sum(axis=-1), 0 * mask[:, 0]], -1) / 2.0,
        }


def vectors(length=6, prompt="", engine=None):
    form = VectorForm(Known, SentenceSettings(prompt=prompt), length)
    return EngineAnswerer(form, engine or CountingEngine(), Known.config)


def masked(length=7, top_k=2):
    form = MaskedWordsForm(Known, PlainTokenizer(Known.text, "keep"), length, top_k)
    return EngineAnswerer(form, CountingEngine(), Known.config)


def test_a_text_is_read_to_the_length_with_its_prompt_in_front():
    texts = [{"text": "dog"}, {"text": "the dog runs ."}, {"text": "the dog runs a list"}]
    assert [one["embedding"] for one in ask(vectors(), texts)] == [[3.0], [6.0], [6.0]]
    assert ask(vectors(prompt="the "), texts[:1]) == [{"embedding": [4.0]}]


def test_an_instance_may_say_its_prompt_and_how_many_numbers_it_wants():
    class Sized(Known):
        config = tiny_config()

    sentence = SentenceSettings(normalize=True, prompts={"query": "the "}, dimensions=(4, 2))
    form = VectorForm(Sized, sentence, 6)
    asked = [{"text": "dog"}, {"text": "dog", "input_type": "query", "dimensions": 2}]
    prepared = form.prepare(asked)
    assert [len(row["input_ids"]) for row in prepared.rows] == [3, 4]
    vector = {"embedding": np.arange(1, 17, dtype="float32")}
    first, second = form.finish(prepared, [vector, vector])
    assert first["embedding"] == vector["embedding"].tolist()
    np.testing.assert_allclose(second["embedding"], np.array([1, 2]) / 5**0.5, rtol=1e-6)
    any_size = VectorForm(Sized, sentence, 6, any_size=True)
    for size, forms in ((3, [any_size]), (16, [form, any_size]), (4, [form, any_size])):
        for one in forms:
            assert one.prepare([{"text": "dog", "dimensions": size}]).state == [(size, None)]
    for option, sentence in (
        ({"dimensions": 3}, "`dimensions` is 3, but the model's vectors have 16 or 4 or 2 numbers"),
        ({"dimensions": True}, "`dimensions` is True; give a whole number"),
        ({"vector_type": "int8"}, "`vector_type` is 'int8'; give float32 or ubinary"),
        ({"input_type": "x"}, "no prompt 'x'; choose query, document"),
        ({"input_type": 1}, "`input_type` is 1; give a text"),
    ):
        with pytest.raises(UserError, match=sentence):
            form.prepare([{"text": "dog", **option}])


def test_a_batch_is_filled_up_where_few_shapes_should_be_compiled():
    engine = CountingEngine(few_lengths=True)
    texts = [{"text": "dog"}] * 9
    assert ask(vectors(engine=engine), texts) == [{"embedding": [3.0]}] * 9
    assert engine.shapes == [(10, 8)]
    ask(vectors(length=12, engine=engine), [{"text": "dog " * 20}])
    assert engine.shapes[-1] == (1, 12)  # no longer than the model's positions


@given(st.lists(trouble_text(), max_size=4))
def test_any_text_gets_a_vector(texts):
    answers = ask(vectors(), [{"text": text} for text in texts])
    assert all(2 <= answer["embedding"][0] <= 6 for answer in answers)
    assert len(answers) == len(texts)


def test_half_of_a_surrogate_pair_is_an_unknown_word():
    assert ask(vectors(), [{"text": "the \ud83d dog"}]) == [{"embedding": [5.0]}]


def test_each_mask_has_its_words_and_a_text_without_masks_none():
    asked = [{"text": "the [MASK] [MASK]"}, {"text": "dog"}]
    answers = ask(masked(), asked)
    assert [answer["mask_counts"] for answer in answers] == [2, 0]
    assert [tokens[0] for tokens in answers[0]["tokens"]] == ["[MASK]", "[MASK]"]
    assert answers[0]["probabilities"][0][0] > answers[0]["probabilities"][0][1]
    assert answers[1] == {"tokens": [], "probabilities": [], "mask_counts": 0, "num_truncated": 0}


@pytest.mark.parametrize(
    ("text", "masks", "truncated"),
    [
        ("the dog runs a list value [MASK]", 1, 2),
        ("[MASK] the dog runs a list value", 1, 2),
        ("the dog [MASK] a list value [MASK]", 1, 2),
        ("the dog runs [MASK] [MASK]", 2, 0),
    ],
)
def test_a_long_text_is_read_around_its_first_mask(text, masks, truncated):
    (answer,) = ask(masked(), [{"text": text}])
    assert (answer["mask_counts"], answer["num_truncated"]) == (masks, truncated)


def test_no_more_words_are_given_than_there_are():
    (answer,) = ask(masked(top_k=1000), [{"text": "[MASK]"}])
    assert sorted(answer["tokens"][0]) == sorted(WORD_VOCABULARY.tokens)


def test_a_row_that_is_not_finite_takes_no_other_with_it():
    class Broken(CountingEngine):
        def compute_one(self, features):
            vectors = super().compute_one(features)["embedding"]
            return {"embedding": np.where(vectors > 3, np.inf, vectors)}

    answerer = vectors(engine=Broken())
    short, long = (answerer.prepare([{"text": text}]) for text in ("a", "a dog"))
    found = answerer.compute([*short.rows, *long.rows])
    assert answerer.finish(short, found[:1]) == [{"embedding": [3.0]}]
    with pytest.raises(NotFiniteError, match="the model: its embedding are NaN or infinite"):
        answerer.finish(long, found[1:])


def test_a_pair_of_texts_is_one_row():
    form = NextSentenceForm(Known, PlainTokenizer(Known.text, "keep"), 9)
    rows = form.prepare([{"text_a": "the dog", "text_b": "runs"}, {"text_a": "a", "text_b": ""}])
    assert [row["segment_ids"].tolist() for row in rows.rows] == [[0, 0, 0, 0, 1, 1], [0, 0, 0]]
    answers = ask(
        EngineAnswerer(form, CountingEngine(), Known.config), [{"text_a": "a", "text_b": "."}]
    )
    assert answers[0]["next_sentence_logits"] == [2.5, 0.0]
    assert answers[0]["probability"] == pytest.approx(0.9241, abs=1e-4)


def test_of_a_pair_without_a_second_text_one_more_token_is_read():
    form = NextSentenceForm(Known, PlainTokenizer(Known.text, "keep"), 5)
    pairs = [("the dog runs", ""), ("the dog runs .", ""), ("the", "dog"), ("the dog", "runs")]
    asked = [{"text_a": first, "text_b": second} for first, second in pairs]
    assert form.prepare(asked).num_truncated == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("instance", "sentence"),
    [
        ({}, "instance 1: has nothing, but this model is asked with text and endings"),
        ({"text": None}, "instance 1: has nothing, but this model is asked with text and endings"),
        ({"text": ["a"]}, "instance 1: `text` is"),
        ({"text": "a", "endings": "b"}, "instance 1: `endings` is 'b'; give a list of texts."),
        ({"text": "a", "endings": ["b", 3]}, "instance 1: `endings` is"),
        ({"text": "a", "extra": "b"}, "instance 1: has text and extra, but this model is asked"),
        ("a", "instance 1: is 'a'; give an object with text, endings."),
    ],
)
def test_what_is_no_instance_is_told_in_one_sentence(instance, sentence):
    fields = [Input("text"), Input("endings", is_list=True, needed=False)]
    with pytest.raises(UserError) as caught:
        read_fields(fields, [instance])
    assert str(caught.value).startswith(sentence)


def test_what_need_not_be_there_is_left_out():
    fields = [Input("text"), Input("endings", is_list=True, needed=False)]
    assert read_fields(fields, [{"text": "a"}]) == {"text": ["a"], "endings": [None]}
