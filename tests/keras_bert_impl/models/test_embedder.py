"""One vector of a whole input."""

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings, read_sentence_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.keras_file import load_model
from keras_bert_impl.losses import CoSENTLoss, MultipleNegativesRankingLoss
from keras_bert_impl.models.embedder import BertEmbedder, UnitLength
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.gradients import gradients_of
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

IDS = np.array([[2, 7, 8, 3, 0], [2, 9, 10, 11, 3]], "int32")
INPUTS = {"input_ids": IDS, "input_mask": (IDS > 0).astype("int32"), "segment_ids": IDS * 0}


def vectors(pooling, normalize=False):
    """What the embedder gives, and what its encoder does."""
    keras.utils.set_random_seed(3)
    model = BertEmbedder(tiny_config(), pooling, normalize)
    encoded = {name: np.array(value) for name, value in model.encoder(INPUTS).items()}
    return np.array(model(INPUTS)["embedding"]), encoded


def test_the_three_poolings():
    mean, encoded = vectors("mean")
    mask = INPUTS["input_mask"][:, :, None]
    expected = (encoded["sequence_output"] * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    np.testing.assert_array_equal(
        *(x[:, 0] if x.ndim == 3 else x for x in (vectors("cls")[0], encoded["sequence_output"]))
    )
    np.testing.assert_array_equal(vectors("pooler")[0], encoded["pooled_output"])


def test_normalized_vectors_have_length_one_and_the_same_direction():
    plain, unit = vectors("mean")[0], vectors("mean", normalize=True)[0]
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, plain / lengths, atol=1e-6)


def test_a_model_is_made_again_from_its_config():
    model = BertEmbedder(tiny_config(), "cls", normalize=True)
    again = BertEmbedder.from_config(model.get_config())
    assert (again.pooling, again.normalize) == ("cls", True)
    assert not again.encoder.pooler.trainable  # no loss reaches it
    model.sentence = SentenceSettings("cls", True, 9, prompts={"query": "q: "}, dimensions=(8, 4))
    assert BertEmbedder.from_config(model.get_config()).sentence == model.sentence


def test_regularizers_are_added_to_a_loss_of_vectors():
    model, vectors = BertEmbedder(tiny_config()), [{"embedding": np.eye(2, dtype="float32")}] * 2
    model.compile("sgd", MultipleNegativesRankingLoss())
    plain = float(model.compute_loss((INPUTS, INPUTS), None, vectors))
    model.trainable_variables[0].regularizer = keras.regularizers.L2(1.0)
    more = float(np.square(model.trainable_variables[0].numpy()).sum())
    found = float(model.compute_loss((INPUTS, INPUTS), None, vectors))
    assert found == pytest.approx(plain + more, rel=1e-5)


def test_an_unknown_pooling_is_one_sentence():
    with pytest.raises(UserError, match="pooling=max"):
        BertEmbedder(tiny_config(), "max")


# Training with losses of vectors

SCORES = np.array([0.1, 0.9, 0.4, 0.6, 0.2, 0.8, 0.5], "float32")


def untrained():
    keras.utils.set_random_seed(4)
    config = tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return BertEmbedder(config.replace(num_hidden_layers=1))


def column(length, seed):
    ids = np.random.default_rng(seed).integers(5, 17, [len(SCORES), length])
    return {"input_ids": ids.astype("int32")}


COLUMNS = column(6, seed=1), column(9, seed=2)  # of two lengths


@pytest.mark.parametrize("loss", [CoSENTLoss(), MultipleNegativesRankingLoss()])
def test_a_step_of_fit_goes_along_the_gradient_of_the_loss(loss):
    model = untrained()
    before = model.plain_weights()
    labels = SCORES if loss.needs_labels else None
    gradients = gradients_of(
        model, COLUMNS, lambda outputs: loss([one["embedding"] for one in outputs], labels)
    )
    expected = float(loss([model(one)["embedding"] for one in COLUMNS], labels))

    model.compile(keras.optimizers.SGD(0.01), loss, run_eagerly=True)
    history = model.fit(COLUMNS, labels, batch_size=len(SCORES), shuffle=False, verbose=0)

    assert history.history["loss"] == [pytest.approx(expected, rel=1e-5)]
    moved = {path: value - before[path] for path, value in model.plain_weights().items()}
    for path, gradient in gradients.items():
        np.testing.assert_allclose(moved[path], -0.01 * gradient, atol=1e-6, err_msg=path)
    assert max(np.abs(one).max() for one in moved.values()) > 1e-3


def batches(columns, labels):
    while True:
        yield columns, labels


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ((["a text"], ["another"]), {"y": SCORES[:1]}, "takes a tuple of columns, each a dict"),
        (COLUMNS[0], {"y": SCORES}, "takes a tuple of columns"),
        (batches(COLUMNS[0], SCORES), {"steps_per_epoch": 1}, "takes a tuple of columns"),
        (COLUMNS, {"y": SCORES, "sample_weight": SCORES}, "takes no sample_weight"),
        (COLUMNS, {}, "CoSENTLoss needs labels"),
    ],
    ids=["texts", "one column", "one column of a generator", "weights", "no labels"],
)
def test_what_a_loss_of_vectors_cannot_be_fitted_with_is_one_sentence(x, options, message):
    model = untrained()
    model.compile("sgd", CoSENTLoss(), run_eagerly=True)
    with pytest.raises(UserError, match=message):
        model.fit(x, verbose=0, **options)


def test_a_loss_of_one_s_own_on_a_dict_is_keras_own():
    model = untrained()
    model.compile("sgd", {"embedding": "mse"}, run_eagerly=True)
    vectors = np.array(model(COLUMNS[0])["embedding"])
    loss = model.evaluate(COLUMNS[0], {"embedding": vectors + 2}, verbose=0)
    assert loss == pytest.approx(4.0, rel=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_lengths_are_scaled_in_float32_under_any_policy(policy):
    found = np.array(UnitLength(dtype=policy)(np.array([[1.001, 0.0707]], "float32")))
    np.testing.assert_allclose(found, [[0.997515, 0.070454]], atol=1e-6)


def test_an_input_of_zeros_stays_zero():
    np.testing.assert_array_equal(np.array(UnitLength()(np.zeros([2, 4]))), np.zeros([2, 4]))


def test_training_lowers_the_loss_and_the_saved_model_is_the_trained_one(tmp_path):
    model = untrained()
    model.compile(keras.optimizers.Adam(3e-3), CoSENTLoss(scale=10.0), jit_compile=False)
    stop = keras.callbacks.EarlyStopping("val_loss", patience=30)
    options = {"validation_data": (COLUMNS, SCORES), "callbacks": [stop], "verbose": 0}
    losses = model.fit(COLUMNS, SCORES, epochs=12, **options).history["val_loss"]
    assert losses[-1] < 0.3 * losses[0]
    assert model.evaluate(COLUMNS, SCORES, verbose=0) == pytest.approx(losses[-1], rel=1e-4)

    # The last batch of seven rows is one row, which costs nothing.
    rest = model.fit(COLUMNS, SCORES, batch_size=3, verbose=0).history["loss"]
    assert np.isfinite(rest).all()

    model.save(tmp_path / "model.keras")
    again = load_model(tmp_path / "model.keras")

    assert again.loss.get_config() == model.loss.get_config()
    for first, second in zip(again(COLUMNS), model(COLUMNS), strict=True):
        np.testing.assert_array_equal(*map(np.array, (first["embedding"], second["embedding"])))


def test_what_a_directory_says_of_vectors_is_kept_when_it_is_written_again(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    said = SentenceSettings("pooler", True, 9, prompts={"query": "query: ", "document": ""})
    model = BertEmbedder(tiny_config(), "pooler", normalize=True)
    write_model_directory(first, model, TextSettings(WORD_VOCABULARY), sentence=said)
    opened = BertEmbedder.from_pretrained(first)
    np.testing.assert_allclose(opened(INPUTS)["embedding"], model(INPUTS)["embedding"], atol=1e-6)
    opened.save_pretrained(again)
    assert read_sentence_settings(again) == said
    BertEmbedder.from_pretrained(first, pooling="cls").save_pretrained(again)
    assert read_sentence_settings(again).pooling == "cls"


def test_a_warning_of_new_weights_names_the_pooler_only_where_it_is_read(tmp_path, caplog):
    folder = tmp_path / "model"
    model = BertEmbedder(tiny_config(), "pooler")
    write_model_directory(folder, model, TextSettings(WORD_VOCABULARY), sentence=model.sentence)
    path = folder / "model.safetensors"
    tensors = {name: read_tensor(path, name) for name in read_shapes(path)}
    write_safetensors(path, {name: x for name, x in tensors.items() if "pooler" not in name})
    opened = BertEmbedder.from_pretrained(folder)
    np.testing.assert_allclose(opened(INPUTS)["embedding"], model(INPUTS)["embedding"], atol=1e-6)
    assert not caplog.messages  # 2_Dense holds it
    (folder / "modules.json").unlink()
    BertEmbedder.from_pretrained(folder)
    assert not caplog.messages  # the mean does not read it
    BertEmbedder.from_pretrained(folder, pooling="pooler")
    assert "no weights for these parts of BertEmbedder: pooler." in caplog.text


def test_a_pooling_that_does_not_exist_here_is_read_only_where_the_caller_gives_none(tmp_path):
    folder, said = tmp_path / "model", SentenceSettings()
    model = BertEmbedder(tiny_config())
    write_model_directory(folder, model, TextSettings(WORD_VOCABULARY), sentence=said)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
    for options in ({}, {"pooling": "mean"}):
        with pytest.raises(UserError, match=r"pools by max.* give .* `pooling` and `normalize`"):
            BertEmbedder.from_pretrained(folder, **options)
    opened = BertEmbedder.from_pretrained(folder, pooling="mean", normalize=False)
    np.testing.assert_allclose(opened(INPUTS)["embedding"], model(INPUTS)["embedding"], atol=1e-6)
