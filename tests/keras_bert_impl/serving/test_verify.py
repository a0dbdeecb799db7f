import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import verify
from keras_bert_impl.serving.verify import InputSpec, verify_export
from tests.support.model_folders import POSITIONS, WORD_VOCABULARY, tiny_config

SPECS = {
    "serving_default": {
        "input_ids": InputSpec([None, None]),
        "input_mask": InputSpec([None, None]),
    },
    "choose": {"endings": InputSpec([None, 3], is_text=True)},
}


def model(signature, arrays):
    """Gives numbers that depend on what goes in, and texts."""
    first = next(iter(arrays.values()))
    lengths = np.vectorize(len)(first) if first.dtype.kind == "S" else first
    logits = np.float32(lengths.reshape(len(first), -1)[:, :2])
    return {"logits": logits, "label": np.full(len(first), b"no", object)}


def verified(found):
    return verify_export(SPECS, model, found, WORD_VOCABULARY, tiny_config())


def test_every_signature_is_called_at_two_sizes():
    shapes = []

    def found(signature, arrays):
        shapes.append((signature, next(iter(arrays.values())).shape))
        return model(signature, arrays)

    result = verified(found)
    assert (result.calls, result.largest_difference) == (4, 0.0)
    assert result.timed == "serving_default"
    assert shapes[:2] == [("serving_default", (1, 7)), ("serving_default", (3, POSITIONS))]
    assert shapes[2:4] == [("choose", (1, 3)), ("choose", (3, 3))]


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {**arrays, "logits": arrays["logits"] + 0.01},
        lambda arrays: {**arrays, "logits": arrays["logits"] * np.nan},
        lambda arrays: {**arrays, "logits": arrays["logits"][:, :1]},
        lambda arrays: {**arrays, "label": np.full_like(arrays["label"], b"?")},
        lambda arrays: {"logits": arrays["logits"]},
    ],
    ids=["numbers", "no numbers", "shape", "texts", "names"],
)
def test_other_answers_are_refused(change):
    with pytest.raises(UserError, match="is not what the model gives"):
        verified(lambda *call: change(model(*call)))


ROUNDED = {  # expected numbers of two calls, what a runtime gave, and whether that is rounding
    "one last place of large numbers": ([0, 9999.5, 10000], [0, 9999.501, 10000.001], True),
    "small numbers by a hundredth": ([1e-6, 3e-6], [1.01e-6, 3e-6], False),
    "small numbers by a millionth": ([1e-6, 3e-6], [1.000001e-6, 3e-6], True),
    "numbers around a large mean by one last place": ([1e6, 1e6 + 1], [1e6, 1e6 + 1.0625], True),
    "one number for all": ([20000, 20010], [20005, 20005], False),
    "no number": ([1, 2], [np.nan, np.nan], False),
    "endless numbers": ([1, 2], [np.inf, 2], False),
    "equal numbers": ([0, 0], [0, 0], True),
    "something for nothing": ([0, 0], [1e-9, 0], False),
}


@pytest.mark.parametrize("case", ROUNDED)
def test_numbers_may_differ_by_the_rounding_of_such_numbers(case):
    expected, found, is_rounding = ROUNDED[case]
    other = {"large": np.float32([1e9])}  # each output is measured by itself
    calls = [
        ({"score": np.float32([ours]), **other}, {"score": np.float32([theirs]), **other})
        for ours, theirs in zip(expected, found, strict=True)
    ]
    if is_rounding:
        verify.largest_difference(calls)
    else:
        with pytest.raises(UserError, match="`score` is not what the model gives"):
            verify.largest_difference(calls)


def test_whole_numbers_and_texts_must_be_equal():
    starts, other = np.int32([0, 20000]), np.int32([1, 20000])
    assert verify.largest_difference([({"start": starts}, {"start": starts})]) == 0
    for found in (other, starts.astype(bytes)):
        with pytest.raises(UserError, match="`start` is not what"):
            verify.largest_difference([({"start": starts}, {"start": found})])


def test_a_model_that_gives_nan_is_not_to_be_exported_again():
    outputs = {"score": np.float32([0.5, np.nan])}
    with pytest.raises(UserError, match=r"the model: its score are NaN .* take another checkpoint"):
        verify.largest_difference([(outputs, outputs)])


@pytest.mark.parametrize("segments", [1, 2])
def test_every_kind_of_segment_that_there_is_is_compared(segments):
    specs, seen = {"serving_default": {"segment_ids": InputSpec([None, None])}}, set()

    def found(signature, arrays):
        seen.update(arrays["segment_ids"].ravel().tolist())
        return model(signature, arrays)

    config = tiny_config(type_vocab_size=segments)
    verify_export(specs, model, found, WORD_VOCABULARY, config)
    assert seen == {*range(segments)}
