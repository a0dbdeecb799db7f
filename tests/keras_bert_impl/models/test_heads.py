import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.span_labeler import BertSpanLabeler
from keras_bert_impl.models.token_classifier import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.gradients import assert_slopes, gradients_of
from tests.support.numpy_bert import NumpyBert
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

MAKERS = {
    "classifier": lambda: BertClassifier(TINY, num_labels=3),
    "span": lambda: BertSpanLabeler(TINY),
    "tagger": lambda: BertTokenClassifier(TINY, num_labels=5),
    "choice": lambda: BertMultipleChoice(TINY, num_choices=2),
}


def batch_for(head):
    batch = features()
    if head == "choice":
        return {name: np.stack([batch[name]] * 2, axis=1) for name in list(batch)[:3]}
    return batch


@pytest.mark.parametrize("head", MAKERS)
def test_a_head_survives_saving_and_the_model_directory(tmp_path, head):
    model, batch = scatter_weights(MAKERS[head]()), batch_for(head)
    expected = {name: np.array(value) for name, value in model(batch).items()}
    model.save(tmp_path / "model.keras")
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    restored = scatter_weights(MAKERS[head](), seed=9)
    report = restore(restored, tmp_path / "model")
    assert (report.new, report.ignored) == ((), ())
    for again in (keras.models.load_model(tmp_path / "model.keras"), restored):
        for name, value in again(batch).items():
            assert np.array_equal(value, expected[name])


@pytest.mark.parametrize(
    ("head", "shapes"),
    [
        ("classifier", {"logits": (2, 3)}),
        ("span", {"start_logits": (2, 8), "end_logits": (2, 8)}),
        ("tagger", {"logits": (2, 8, 5)}),
        ("choice", {"logits": (2, 2)}),
    ],
)
def test_a_head_gives_float32_of_its_shape(head, shapes):
    outputs = MAKERS[head]()(batch_for(head))
    assert {name: tuple(value.shape) for name, value in outputs.items()} == shapes
    assert {keras.backend.standardize_dtype(v.dtype) for v in outputs.values()} == {"float32"}


@pytest.mark.parametrize("head", MAKERS)
def test_outputs_and_gradients_are_those_of_an_independent_model(tmp_path, head):
    model, batch = scatter_weights(MAKERS[head]()), batch_for(head)
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    reference = NumpyBert(tmp_path / "model")
    expected, draw = reference.head_outputs(head, batch), np.random.default_rng(4)
    for name, value in model(batch).items():
        np.testing.assert_allclose(np.array(value), expected[name], atol=1e-5)
    # A loss that weighs every output by a number of its own.
    factors = {name: draw.standard_normal(value.shape) for name, value in expected.items()}

    def loss(outputs):
        return sum(ops.sum(outputs[name] * factors[name].astype("float32")) for name in factors)

    def reference_loss():
        outputs = reference.head_outputs(head, batch)
        return sum((outputs[name] * factors[name]).sum() for name in factors)

    theirs = "qa_outputs" if head == "span" else "classifier"
    names = [
        (f"{head}/dense/kernel", f"{theirs}.weight", True),
        (f"{head}/dense/bias", f"{theirs}.bias", False),
        ("embeddings/token_embeddings", "embeddings.word_embeddings.weight", False),
        ("embeddings/position_embeddings", "embeddings.position_embeddings.weight", False),
        ("layer_0/attention/query/kernel", "encoder.layer.0.attention.self.query.weight", True),
        ("layer_1/attention/value/bias", "encoder.layer.1.attention.self.value.bias", False),
        ("layer_1/intermediate/kernel", "encoder.layer.1.intermediate.dense.weight", True),
        ("layer_1/output_layer_norm/gamma", "encoder.layer.1.output.LayerNorm.weight", False),
    ]
    if head in ("classifier", "choice"):
        names.append(("pooler/dense/kernel", "pooler.dense.weight", True))
    assert_slopes(reference, gradients_of(model, batch, loss), names, reference_loss)


def test_equal_choices_score_equally_and_others_do_not():
    model, batch = scatter_weights(MAKERS["choice"]()), batch_for("choice")
    batch["input_ids"][1, 1, 1] += 1
    scores = np.array(model(batch)["logits"])
    assert scores[0, 0] == scores[0, 1]
    assert scores[1, 0] != scores[1, 1]


def test_compile_and_fit_learn():
    keras.utils.set_random_seed(3)
    quiet = TINY.replace(hidden_dropout_prob=0.1, initializer_range=0.2)
    model, batch = BertClassifier(quiet, num_labels=2), features(batch=8)
    labels = (batch["input_ids"][:, 0] % 2).astype("int32")
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss={"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
        jit_compile=False,
    )
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    history = model.fit(inputs, {"logits": labels}, epochs=15, batch_size=8, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_dropout_of_the_head_works_in_training_only():
    model, batch = scatter_weights(MAKERS["classifier"]()), features()
    still = [np.array(model(batch, training=False)["logits"]) for _ in range(2)]
    assert np.array_equal(*still)
    moving = [np.array(ops.convert_to_tensor(model(batch, training=True)["logits"])) for _ in "ab"]
    assert not np.array_equal(*moving)
