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
    write_model_directory(tmp_path / "model", model, VOCABULARY, do_lower_case=True)
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


def test_the_classifier_is_the_independent_one(tmp_path):
    model, batch = scatter_weights(MAKERS["classifier"]()), features()
    write_model_directory(tmp_path / "model", model, VOCABULARY, do_lower_case=True)
    reference = NumpyBert(tmp_path / "model")
    sequence = reference.encode(batch["input_ids"], batch["input_mask"], batch["segment_ids"])[-1]
    expected = reference.class_logits(reference.pooled(sequence))
    np.testing.assert_allclose(np.array(model(batch)["logits"]), expected, atol=1e-5)


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
