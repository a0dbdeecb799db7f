"""Which layers of a model are frozen (`trainable=False`), so that a saved model keeps it.

Keras saves `trainable` with each layer that it saves. A `ConfiguredModel` saves its configuration
in place of its layers, so it saves this beside it.
"""

from collections.abc import Iterator, Mapping

import keras

from keras_bert_impl.compat import sublayers


def frozen_layers(model: keras.Layer) -> dict[str, bool]:
    """Gives `trainable` of every layer where it differs from the layer that holds it.

    Returns:
        Values of `trainable` by the layers' paths, outer layers first.

    Example:
        >>> model = keras.Sequential([keras.layers.Dense(1, name="first")])
        >>> model.layers[0].trainable = False
        >>> frozen_layers(model)
        {'first': False}
    """
    return {
        path: layer.trainable
        for path, layer, parent in _walk(model)
        if layer.trainable != parent.trainable
    }


def freeze_layers(model: keras.Layer, differences: Mapping[str, bool]) -> None:
    """Sets `trainable` as `frozen_layers` found it.

    Example:
        >>> model = keras.Sequential([keras.layers.Dense(1, name="first")])
        >>> freeze_layers(model, {"first": False})
        >>> model.layers[0].trainable
        False
    """
    layers = {path: layer for path, layer, _ in _walk(model)}
    # Setting a layer sets all layers in it: the outer ones come first.
    for path in sorted(differences, key=lambda path: path.count("/")):
        if path in layers:
            layers[path].trainable = differences[path]


def _walk(layer: keras.Layer, prefix: str = "") -> Iterator[tuple[str, keras.Layer, keras.Layer]]:
    """Every layer below one, with its path and the layer that holds it."""
    for child in sublayers(layer):
        path = f"{prefix}{child.name}"
        yield path, child, layer
        yield from _walk(child, f"{path}/")
