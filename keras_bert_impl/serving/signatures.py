"""Parts that served models share: input shapes, the module that holds the weights, its calls."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from google.protobuf.message import DecodeError

from keras_bert_impl.backend import need_tensorflow
from keras_bert_impl.compat import saved_model_fingerprint
from keras_bert_impl.errors import UserError, reason_of, shown
from keras_bert_impl.files import check_file, check_plain, is_named
from keras_bert_impl.layers import kernels
from keras_bert_impl.serving.clients import TextSignature
from keras_bert_impl.serving.digests import check_digests

Function = Callable[..., dict[str, tf.Tensor]]

_ASKED_FIRST = ("embed", "raw_text", "serving_default")
"""Of several signatures that take as many texts, a client asks the one that says the most."""


def ids_specs(*names: str) -> list[tf.TensorSpec]:
    """Inputs of ids: int32 [batch, length] each, both of any size.

    Example:
        >>> ids_specs("input_ids")
        [TensorSpec(shape=(None, None), dtype=tf.int32, name='input_ids')]
    """
    return [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]


def text_specs(*names: str) -> list[tf.TensorSpec]:
    """Inputs of texts: UTF-8 strings [batch] each.

    Example:
        >>> text_specs("text")
        [TensorSpec(shape=(None,), dtype=tf.string, name='text')]
    """
    return [tf.TensorSpec([None], tf.string, name=name) for name in names]


def graph_function(function: Callable[..., Any], specs: list[tf.TensorSpec]) -> Any:
    """Makes a function a graph that is traced once, for inputs of any size."""

    def traced(*inputs: tf.Tensor) -> Any:
        # A SavedModel goes to other machines: no kernels that suit this one.
        with kernels.use(kernels.PLAIN):
            return function(*inputs)

    return tf.function(traced, input_signature=specs, autograph=False)


class ServedModel(tf.Module):
    """A model as a SavedModel holds it: its weights and one function a signature.

    A subclass adds its functions by `add_signature`.

    Args:
        model: a built model; signatures run it without dropout.
    """

    def __init__(self, model: keras.Model) -> None:
        super().__init__()
        need_tensorflow("a SavedModel")
        # The variables themselves, and the model only inside a function: what is loaded later
        # needs nothing of Keras.
        self.weights = [variable.value for variable in model.variables]
        self._signatures: dict[str, Any] = {}
        self._specs: dict[str, list[tf.TensorSpec]] = {}

    def add_signature(self, name: str, function: Function, specs: list[tf.TensorSpec]) -> Function:
        """Serves `function`, which takes tensors in the order of `specs`, under `name`.

        Returns:
            The function as a graph of its own. Signatures that call it share that graph, so that a
            SavedModel holds it once.
        """
        graph = graph_function(function, specs)
        self._signatures[name], self._specs[name] = graph, specs
        return graph

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the signatures."""
        return tuple(self._signatures)

    def call(self, name: str, inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        """Calls a signature with arrays or tensors by the names of its inputs."""
        return self._signatures[name](*(tf.constant(inputs[s.name]) for s in self._specs[name]))

    def specs(self, name: str) -> list[tf.TensorSpec]:
        """Gives a signature's inputs."""
        return self._specs[name]

    def signatures(self) -> dict[str, Any]:
        """Gives the functions that `tf.saved_model.save` takes, by signature name."""
        return dict(self._signatures)

    def interface(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Gives the names of each signature's inputs and outputs."""
        return {
            name: (
                tuple(spec.name for spec in self._specs[name]),
                tuple(sorted(function.get_concrete_function().structured_outputs)),
            )
            for name, function in self._signatures.items()
        }

    def text_signatures(self) -> list[TextSignature]:
        """Gives the signatures that a client asks with texts: one for each number of inputs."""
        interface, found = self.interface(), dict[int, TextSignature]()
        for name in sorted(self.names, key=lambda name: name not in _ASKED_FIRST):
            specs = self._specs[name]
            if all(spec.dtype == tf.string for spec in specs):
                inputs, outputs = interface[name]
                endings = specs[-1].shape[1] if specs[-1].shape.rank > 1 else 0
                signature = TextSignature(name, inputs, frozenset(outputs), endings)
                found.setdefault(len(inputs), signature)
        return list(found.values())


def load_signature(
    folder: Path, name: str, what_has_it: str, *, trusted: bool, answers: Sequence[str] = ()
) -> Callable[..., dict[str, Any]]:
    """Loads a SavedModel and gives one of its signatures.

    A SavedModel is a program: its graph may read, write and delete files. It is loaded only where
    the caller says that it comes from somebody who is trusted.

    Returns:
        A function of tensors by the names of the inputs; it holds the weights.
    """
    return load_signatures(folder, trusted=trusted).ask(name, what_has_it, answers)


class LoadedSignatures(NamedTuple):
    """A SavedModel that is loaded.

    Attributes:
        folder: where it lies, for messages.
        model: what TensorFlow loaded.
    """

    folder: Path
    model: Any

    def outputs(self) -> dict[str, frozenset[str]]:
        """The names of what each signature gives, by its name."""
        signatures = self.model.signatures
        return {name: frozenset(signatures[name].structured_outputs) for name in sorted(signatures)}

    def inputs(self, name: str) -> dict[str, Any]:
        """The specifications of what a signature takes, by the names of its inputs."""
        return dict(self.model.signatures[name].structured_input_signature[1])

    def ask(
        self, name: str, what_has_it: str = "", answers: Sequence[str] = ()
    ) -> Callable[..., dict[str, Any]]:
        """Gives a signature; see `load_signature`."""
        folder, loaded, known = self.folder, self.model, sorted(self.model.signatures)
        has_it = name in known
        if not has_it or not set(answers) <= set(loaded.signatures[name].structured_outputs):
            lacks = f" that gives {', '.join(answers)}" if has_it else ""
            raise UserError(
                f"{folder}: has no signature {name}{lacks} (it has {shown(', '.join(known))[1:-1]}"
                f"); export {what_has_it}."
            )

        def ask(**inputs: Any) -> dict[str, Any]:
            # `loaded` stays in the function: a signature alone would let the weights go.
            try:
                return loaded.signatures[name](**inputs)
            except (tf.errors.InvalidArgumentError, TypeError) as error:
                raise _damaged(folder, f"its signature {name} fails: {reason_of(error)}") from error

        return ask


def load_signatures(folder: Path, *, trusted: bool) -> LoadedSignatures:
    """Loads a SavedModel with all its signatures; see `load_signature`."""
    if not trusted:
        raise UserError(
            f"{folder}: is a SavedModel, a program that can do with your files whatever you can; "
            "if you made it or trust who did, give `trust_saved_model=True`, else name a model "
            "directory, which holds numbers and text only."
        )
    check_plain(Path(folder).rglob("*"))
    check_digests(Path(folder), ("saved_model.pb", "variables/variables.index"))
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    _check_undamaged(folder)
    try:
        loaded = tf.saved_model.load(str(folder))
        sorted(loaded.signatures)
    except _FAULTS as error:
        raise _damaged(folder, reason_of(error)) from error
    return LoadedSignatures(folder, loaded)


# What TensorFlow's loader raises at what is no SavedModel.
_FAULTS = (
    OSError,
    tf.errors.OpError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    AttributeError,
)
_MOST_BYTES = 2**31 - 1  # protocol buffers hold no more


def _check_undamaged(folder: Path) -> None:
    """Holds the files against the fingerprint that TensorFlow wrote with them.

    Its loader believes a graph: some damaged ones end the process. The variables' own checksums it
    checks itself.
    """
    from tensorflow.core.protobuf import fingerprint_pb2, saved_model_pb2

    files = [
        folder / "saved_model.pb",
        folder / "fingerprint.pb",
        *(folder / "variables").glob("*"),
    ]
    if not is_named(files[1]):
        raise _damaged(folder, "it has no fingerprint.pb, which TensorFlow writes from 2.12 on")
    if any(check_file(file).stat().st_size > _MOST_BYTES for file in files[:2]):
        raise _damaged(folder, "a file of it is too large")
    for file in files[2:]:
        check_file(file)
    parse = fingerprint_pb2.FingerprintDef.FromString
    try:
        written = parse(files[1].read_bytes())
        graphs = saved_model_pb2.SavedModel.FromString(files[0].read_bytes()).meta_graphs
        if not graphs or not all(_has_attributes(node) for node in graphs[0].graph_def.node):
            raise ValueError("no graph, or one of incomplete nodes")
        now = parse(saved_model_fingerprint(folder))
    except (ValueError, DecodeError) as error:
        raise _damaged(folder, "it is damaged") from error
    for one in (written, now):
        one.ClearField("uuid")  # drawn each time
    # Another release of TensorFlow may count otherwise; the hash of the index it counts alike.
    same_way = written.version == now.version
    if written.checkpoint_hash != now.checkpoint_hash or (same_way and written != now):
        raise _damaged(folder, "its files are not those that were exported together")


def _has_attributes(node: Any) -> bool:
    """Whether a node has the attributes that counting its fingerprint asks for unchecked."""
    return all(name in node.attr for name in _ASKED_FOR.get(node.op, ()))


_ASKED_FOR = {
    "Const": ("dtype", "value"),
    "PartitionedCall": ("f", "config_proto"),
    "StatefulPartitionedCall": ("f", "config_proto"),
}


def _damaged(folder: Path, reason: str) -> UserError:
    return UserError(f"{folder}: cannot be loaded ({reason}); export it again.")
