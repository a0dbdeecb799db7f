from keras_bert_impl.layers.base import ConfiguredLayer
from tests.support.tiny_bert import TINY


def test_a_layer_carries_its_configuration():
    layer = ConfiguredLayer(TINY.replace(extra={"note": 1}), name="part", trainable=False)
    again = ConfiguredLayer.from_config(layer.get_config())
    assert again.config == TINY
    assert again.config.extra == {"note": 1}
    assert (again.name, again.trainable) == ("part", False)


def test_its_dense_layers_start_as_the_configuration_says_in_its_own_precision():
    layer = ConfiguredLayer(TINY.replace(initializer_range=0.5), dtype="mixed_bfloat16")
    dense = layer.dense(7, "wide", activation="relu")
    assert (dense.name, dense.units, dense.activation) == ("wide", 7, "relu")
    assert dense.initializer_range == 0.5
    assert dense.compute_dtype == "bfloat16"
