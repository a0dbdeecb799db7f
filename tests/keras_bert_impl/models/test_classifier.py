import keras
import numpy as np
from keras import ops

from keras_bert_impl.models.classifier import BertClassifier
from tests.support.head_checks import check_against_numpy, check_outputs, check_saving
from tests.support.tiny_bert import TINY, features, scatter_weights


def make_model():
    return BertClassifier(TINY, num_labels=3)


def test_it_gives_float32_scores():
    check_outputs(make_model(), features(), {"logits": (2, 3)})


def test_it_survives_saving_and_the_model_directory(tmp_path):
    check_saving(make_model, features(), tmp_path)


def test_outputs_and_gradients_are_those_of_an_independent_model(tmp_path):
    check_against_numpy(make_model(), "classifier", features(), tmp_path)


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
    model, batch = scatter_weights(make_model()), features()
    still = [np.array(model(batch, training=False)["logits"]) for _ in range(2)]
    assert np.array_equal(*still)
    moving = [np.array(ops.convert_to_tensor(model(batch, training=True)["logits"])) for _ in "ab"]
    assert not np.array_equal(*moving)
