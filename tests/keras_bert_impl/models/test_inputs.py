"""What a model takes: with what is left out filled in, and what cannot be meant refused."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.inputs import complete_inputs
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from tests.support.tiny_bert import TINY, features, scatter_weights


def complete(inputs, config=TINY, names=ENCODER_INPUTS):
    return {k: np.array(v).tolist() for k, v in complete_inputs(inputs, names, config).items()}


def test_all_inputs_pass_as_they_are_and_others_are_left_aside():
    given = {"input_ids": [[3, 0]], "input_mask": [[1, 1]], "segment_ids": [[0, 1]]}
    assert complete({**given, "label_ids": [1]}) == given


def test_the_names_of_hugging_face_are_understood():
    given = {"input_ids": [[3, 7]], "attention_mask": [[1, 0]], "token_type_ids": [[0, 1]]}
    assert complete(given) == {
        "input_ids": [[3, 7]],
        "input_mask": [[1, 0]],
        "segment_ids": [[0, 1]],
    }


@pytest.mark.parametrize(("extra", "mask"), [({}, [[1, 1, 0]]), ({"pad_token_id": 7}, [[1, 0, 1]])])
def test_without_a_mask_everything_but_padding_counts(extra, mask):
    config = TINY.replace(extra=extra)
    assert complete({"input_ids": [[3, 7, 0]]}, config)["input_mask"] == mask
    assert complete({"input_ids": [[3, 7, 0]], "input_mask": None}, config)["input_mask"] == mask


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, "the model's input 'input_ids' is missing; give a dict with input_ids, input_mask,"),
        ({"input_ids": [[1]], "atention_mask": [[1]]}, "'atention_mask' is no input of the model;"),
        ({"input_ids": [[1]], "input_masks": [[1]]}, "'input_masks' is no input of the model;"),
        (
            {"input_ids": np.ones([1, 33], int)},
            "the inputs are 33 tokens long, but the model has 32 positions",
        ),
        *(
            (wrong, f"{[*wrong][-1]} is .*; give whole numbers from 0 to [0-9]+ in rows of one")
            for wrong in (
                *({"input_ids": ids} for ids in ("text", ["a b"], 3, [[1], [1, 2]], [[1.5]])),
                *({"input_ids": [[one]]} for one in (-1, TINY.vocab_size)),
                *({"input_ids": [[1, 2]], "input_mask": one} for one in ([[1]], [1, 1], [[2, 1]])),
                {"input_ids": [[1]], "segment_ids": [[TINY.type_vocab_size]]},
            )
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(inputs, sentence):
    with pytest.raises(UserError, match=f"^{sentence}[^\n]*$"):
        complete(inputs)


def test_a_model_gives_the_same_whichever_way_it_is_called():
    encoder, batch = scatter_weights(BertEncoder(TINY)), features()
    batch["segment_ids"] *= 0
    batch["input_ids"][batch["input_ids"] == 0] = 9
    batch["input_ids"] *= batch["input_mask"]
    expected = np.array(encoder(batch)["pooled_output"])
    ids, mask = batch["input_ids"], batch["input_mask"]
    for inputs in (ids, {"input_ids": ids}, {"input_ids": ids.tolist(), "attention_mask": mask}):
        np.testing.assert_array_equal(np.array(encoder(inputs)["pooled_output"]), expected)
    predicted = encoder.predict({"input_ids": ids}, verbose=0)["pooled_output"]
    np.testing.assert_allclose(predicted, expected, atol=1e-6)
