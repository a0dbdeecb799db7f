"""Parts that served models share: input shapes, the module that holds the weights, its calls."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_bert_impl.backend import need_tensorflow
from keras_bert_impl.layers import kernels
from keras_bert_impl.serving.answerer import default_first

Function = Callable[..., dict[str, tf.Tensor]]


class TextSignature(NamedTuple):
    """A signature that takes texts.

    `endings` is how many texts the last input of each example holds; 0 where it is one text.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: frozenset[str]
    endings: int = 0


def ids_specs(*names: str) -> list[tf.TensorSpec]:
    """Inputs of ids: int32 [batch, length] each, both of any size."""
    return [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]


def text_specs(*names: str) -> list[tf.TensorSpec]:
    """Inputs of texts: UTF-8 strings [batch] each."""
    return [tf.TensorSpec([None], tf.string, name=name) for name in names]


def utf16_length(texts: tf.Tensor) -> tf.Tensor:
    """How long strings are in UTF-16, in which JavaScript counts: int32, of the same shape.

    Example:
        >>> utf16_length(tf.constant(["😀 Ada"])).numpy().tolist()
        [6]
    """
    return tf.strings.length(tf.strings.unicode_transcode(texts, "UTF-8", "UTF-16-BE")) // 2


def graph_function(function: Callable[..., Any], specs: list[tf.TensorSpec]) -> Any:
    """Makes a function a graph that is traced once, for inputs of any size."""

    def traced(*inputs: tf.Tensor) -> Any:
        # A SavedModel goes to other machines: no kernels that suit this one.
        with kernels.use(kernels.PLAIN):
            return function(*inputs)

    return tf.function(traced, input_signature=specs, autograph=False)


class ServedModel(tf.Module):
    """A model as a SavedModel holds it: its weights and one function a signature."""

    def __init__(self, model: keras.Model) -> None:
        super().__init__()
        need_tensorflow("a SavedModel")
        # The variables themselves, and the model only inside a function: what is loaded later
        # needs nothing of Keras.
        self.weights = [variable.value for variable in model.variables]
        self.functions: dict[str, Any] = {}
        self.specs: dict[str, list[tf.TensorSpec]] = {}

    def add_signature(self, name: str, function: Function, specs: list[tf.TensorSpec]) -> Function:
        """Serves `function`, which takes tensors in the order of `specs`, under `name`.

        Gives the function as a graph of its own. Signatures that call it share that graph, so that
        a SavedModel holds it once.
        """
        graph = graph_function(function, specs)
        self.functions[name], self.specs[name] = graph, specs
        return graph

    def call(self, name: str, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Calls a signature with arrays or tensors by the names of its inputs."""
        return self.functions[name](*(tf.constant(inputs[s.name]) for s in self.specs[name]))

    def interface(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        found = {}
        for name, function in self.functions.items():
            outputs = function.get_concrete_function().structured_outputs
            found[name] = tuple(spec.name for spec in self.specs[name]), tuple(sorted(outputs))
        return found

    def text_signatures(self) -> list[TextSignature]:
        """Gives the signatures that a client asks with texts: one for each number of inputs."""
        interface, found = self.interface(), dict[int, TextSignature]()
        for name in default_first(self.functions):
            specs = self.specs[name]
            if all(spec.dtype == tf.string for spec in specs):
                inputs, outputs = interface[name]
                endings = specs[-1].shape[1] if specs[-1].shape.rank > 1 else 0
                signature = TextSignature(name, inputs, frozenset(outputs), endings)
                found.setdefault(len(inputs), signature)
        return list(found.values())
