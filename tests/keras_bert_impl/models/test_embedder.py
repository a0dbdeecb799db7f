"""One vector of a whole input."""

import keras
import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.embedder import BertEmbedder
from tests.support.model_folders import tiny_config

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


def test_an_unknown_pooling_is_one_sentence():
    with pytest.raises(UserError, match="pooling=max"):
        BertEmbedder(tiny_config(), "max")
