import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.layers import kernels
from keras_bert_impl.serving.signatures import ServedModel, graph_function, ids_specs, text_specs


@pytest.fixture
def served():
    """Adds a weight to numbers; counts how often it is traced."""
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, bias_initializer="ones")])
    result = ServedModel(model)
    result.traced = []

    def add(ids):
        result.traced.append(tuple(ids.shape))
        return {"sum": tf.cast(ids, tf.float32) + model.weights[1].value}

    result.add_signature("add", add, ids_specs("input_ids"))
    result.add_signature("length", lambda t: {"n": tf.strings.length(t)}, text_specs("text"))
    return result


def test_a_signature_is_traced_once_for_inputs_of_any_size(served):
    for shape in [(1, 2), (3, 4), (0, 1)]:
        sums = served.call("add", {"input_ids": np.full(shape, 2, np.int32)})["sum"]
        assert sums.numpy().tolist() == np.full(shape, 3.0).tolist()
    assert served.traced == [(None, None)]


def test_inputs_are_found_by_their_names(served):
    assert served.call("length", {"more": 1, "text": ["a", "bcd"]})["n"].numpy().tolist() == [1, 3]


def test_the_interface_names_what_goes_in_and_comes_out(served):
    assert [*served.specs] == ["add", "length"]
    assert served.interface() == {"add": (("input_ids",), ("sum",)), "length": (("text",), ("n",))}


def test_a_client_asks_one_signature_for_each_number_of_texts(served):
    def lengths(*texts):
        return {"n": tf.strings.length(texts[0])}

    (length,) = served.text_signatures()
    assert (length.name, length.outputs, length.endings) == ("length", {"n"}, 0)
    served.add_signature("embed", lengths, text_specs("text"))
    served.add_signature("answers", lengths, text_specs("question", "passage"))
    served.add_signature("serving_default", lengths, text_specs("question", "passage"))
    names = {one.name: one.inputs for one in served.text_signatures()}
    assert names == {"embed": ("text",), "serving_default": ("question", "passage")}


def test_a_client_knows_that_a_text_has_several_endings(served):
    endings = tf.TensorSpec([None, 4], tf.string, name="endings")
    served.add_signature(
        "choose", lambda a, b: {"n": tf.strings.length(b)}, [*text_specs("context"), endings]
    )
    signature = served.text_signatures()[-1]
    assert (signature.inputs, signature.endings) == (("context", "endings"), 4)


def test_a_loaded_model_has_its_weights_and_needs_no_keras(served, tmp_path):
    tf.saved_model.save(served, str(tmp_path), signatures=dict(served.functions))
    loaded = tf.saved_model.load(str(tmp_path))
    answer = loaded.signatures["add"](input_ids=tf.constant([[5]]))
    assert answer["sum"].numpy().tolist() == [[6.0]]
    assert len(loaded.weights) == 2


def test_what_is_saved_has_no_kernels_that_suit_this_machine_alone():
    used = []
    function = graph_function(lambda t: used.append(kernels.current()) or t, text_specs("text"))
    function(tf.constant(["a"]))
    assert used == [kernels.PLAIN]
