"""Every private name of TensorFlow, TensorFlow Text and Keras that this project uses, in one place.

Private names may change with any release. Each function says what its name is for and in which
release it was seen; the test of this file fails, and names what is gone, where a release has it no
longer. Nothing is imported until a function is called.
"""

import contextlib
import functools
import hashlib
import importlib.util
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def merge_call(function: Callable[..., None], strategy: Any, *arguments: Any) -> None:
    """Calls `function(strategy, *arguments)` once for all replicas, out of a replica's own code.

    Optimizers of Keras call it to update variables. The public `ReplicaContext.merge_call` cannot
    be called inside compiled functions or control flow; this one does without it where it can.
    `tf.__internal__`: seen in TensorFlow 2.21.0.
    """
    import tensorflow as tf

    tf.__internal__.distribute.interim.maybe_merge_call(function, strategy, *arguments)


def own_copy(variable: Any) -> Any:
    """Of a variable with a copy on each replica, the copy of the replica that is being updated.

    `extended.update` hands its function the copies of the updated variable and of the arguments,
    but not those of what the function finds by itself, such as an optimizer's moments.
    `get_update_replica_id`, `DistributedVariable`: seen in TensorFlow 2.21.0.
    """
    from tensorflow.python.distribute import distribute_lib
    from tensorflow.python.distribute.values import DistributedVariable

    replica = distribute_lib.get_update_replica_id()
    has_copies = isinstance(variable, DistributedVariable) and isinstance(replica, int)
    return variable.values[replica] if has_copies else variable


def is_plain_variable(variable: Any) -> bool:
    """Whether a variable is one place in memory, which compiled code may overwrite.

    The public `tf.Variable` is a class above others that are not.
    `ResourceVariable`: seen in TensorFlow 2.21.0.
    """
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    return type(variable) is ResourceVariable


@contextlib.contextmanager
def gradients_of_this_graph() -> Iterator[None]:
    """Custom gradients that are made inside the block live as long as the graph that it is in.

    TensorFlow registers each under a name of its own for the whole life of the process, and with it
    the graph and all weights that the graph reads: those of `tf.custom_gradient`, `keras.remat` and
    `ReplicaContext.all_reduce`. Here the graph holds them, and the register points to them weakly.
    `gradient_registry._registry`: seen in TensorFlow 2.21.0.
    """
    import tensorflow as tf
    from tensorflow.python.framework.ops import gradient_registry

    registered = gradient_registry._registry
    before = set(registered)
    yield
    graph = tf.compat.v1.get_default_graph()
    for name in registered.keys() - before:
        gradient = gradient_registry.lookup(name)
        if name.startswith("CustomGradient-") and not isinstance(gradient, weakref.ProxyTypes):
            if not hasattr(graph, "custom_gradients"):
                graph.custom_gradients = []
            graph.custom_gradients.append(gradient)
            forget = functools.partial(registered.pop, name)
            registered[name]["type"] = weakref.proxy(gradient, forget)


_BY_CONTENT = "by_content_"


def name_by_content(arguments: Any, outputs: Any) -> None:
    """Calls the function that is being traced by what it computes; at the end of its body.

    TensorFlow calls it by a number, which another process, or the next model, gives to another one.
    XLA's programs are found again under the name, in memory and on disk (see `kept_programs`).
    `_inference_name`, a graph's `name`: seen in TensorFlow 2.21.0.
    """
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import concrete_function

    graph = tf.compat.v1.get_default_graph()
    if tf.executing_eagerly() or not graph.building_function:
        return
    nodes = [node.SerializeToString(deterministic=True) for node in graph.as_graph_def().node]
    given = [str(getattr(one, "shape", one)) for one in tf.nest.flatten(arguments)]
    given += [str(getattr(one, "name", one)) for one in tf.nest.flatten(outputs)]
    digest = hashlib.sha256(b"".join([*nodes, *map(str.encode, given)])).hexdigest()
    graph.name = f"{_BY_CONTENT}{graph.name}_{digest}"
    usual = concrete_function._inference_name
    if not hasattr(usual, _BY_CONTENT):

        def named(name: str) -> str:
            return name if name.startswith(_BY_CONTENT) else usual(name)

        setattr(named, _BY_CONTENT, True)
        concrete_function._inference_name = named


def variable_index(optimizer: Any, variable: Any) -> int:
    """The number of a variable among those that a Keras optimizer was built with.

    Keras' own optimizers find their moments by it; there is no public way from the variable of a
    backend to its number. `_get_variable_index`: seen in Keras 3.15.1.
    """
    return int(optimizer._get_variable_index(variable))


def sublayers(layer: Any) -> list[Any]:
    """The layers that a Keras layer holds directly.

    The public `layers` is there for models only. `_flatten_layers`: seen in Keras 3.15.1.
    """
    return list(layer._flatten_layers(include_self=False, recursive=False))


@contextlib.contextmanager
def built_layer_grows(layer: Any) -> Iterator[None]:
    """Inside the block a Keras layer that is built takes further weights, as for its own adapters.

    `_tracker`: seen in Keras 3.15.1.
    """
    layer._tracker.unlock()
    try:
        yield
    finally:
        layer._tracker.lock()


def share(variable: Any, other: Any) -> None:
    """Lets a Keras variable hold the numbers of another one, and lets its own go.

    `_value`: seen in Keras 3.15.1.
    """
    variable._value = other._value


def text_operations(library: str) -> Any:
    """Loads one library of operations of TensorFlow Text.

    The public wrappers around an operation cost more than the operation itself does for a single
    line, and the package loads twenty more libraries.
    `_fast_bert_normalizer`, `_fast_wordpiece_tokenizer`: seen in TensorFlow Text 2.21.1.
    """
    import tensorflow as tf

    return tf.load_op_library(str(_text_package() / "python" / "ops" / f"{library}.so"))


def wordpiece_model_builder() -> ModuleType:
    """The extension module of TensorFlow Text that builds models for its WordPiece operation.

    The public tokenizer builds one by it and does not give it away.
    `pywrap_fast_wordpiece_tokenizer_model_builder`: seen in TensorFlow Text 2.21.1.
    """
    name = "tensorflow_text.core.pybinds.pywrap_fast_wordpiece_tokenizer_model_builder"
    if name in sys.modules:
        return sys.modules[name]
    path = _text_package() / "core" / "pybinds" / f"{name.rpartition('.')[2]}.so"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Under its own name, so that the package, if it is imported later, does not load it again.
    sys.modules[name] = module
    return module


def _text_package() -> Path:
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'tensorflow_text'", name="tensorflow_text")
    return Path(spec.origin).parent
