"""A model as a graph of OpenVINO's, converted by TensorFlow, and what tells graphs apart."""

import hashlib
from pathlib import Path
from typing import Any

from keras_bert_impl.backend import need_tensorflow
from keras_bert_impl.engines.openvino_core import openvino_core
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_file


def openvino_graph(model: Any) -> Any:
    """A model with its present weights, float32, as an `openvino.Model`.

    It is converted from the graph that is traced here, as Keras' own export does; here it is
    traced in the forms that OpenVINO computes as one operation.

    Returns:
        A graph whose inputs and outputs have the model's names.
    """
    import openvino

    need_tensorflow("OpenVINO's graph")
    # The graph's own copy of the weights, which no variable changes or takes with it.
    graph = openvino.convert_model(portable_function(model), share_weights=False)
    for port in graph.inputs:
        name = next(iter(port.names)).partition(":")[0]
        port.get_tensor().set_names({name})
        port.get_node().set_friendly_name(name)
    for port in graph.outputs:  # a tensor may have further names, of where it was computed
        port.get_tensor().set_names(port.get_names() & set(model.output))
    return graph


def portable_function(model: Any) -> Any:
    """A model outside of training as a traced function, in forms that other engines know.

    Returns:
        A concrete function from the dict of the model's inputs to the dict of its outputs.
    """
    from keras_bert_impl.cpu_kernels.inference import traced_forward
    from keras_bert_impl.engines.portable_kernels import OpenVinoKernels

    return traced_forward(model, OpenVinoKernels())


def read_graph_file(path: Path) -> Any:
    """Reads a graph that was exported; its weights lie beside it, in a file that ends in `.bin`.

    Returns:
        An `openvino.Model`.
    """
    check_file(path)
    check_file(path.with_suffix(".bin"))
    try:
        return openvino_core().read_model(path)
    except RuntimeError as error:
        raise UserError(f"{path}: is no graph that OpenVINO can open; export it again.") from error


def graph_sha256(graph: Any) -> str:
    """Tells graphs apart by their operations and weights.

    Returns:
        A SHA-256, hexadecimal.
    """
    parts = []
    for operation in graph.get_ops():
        kind = operation.get_type_name()
        data = operation.get_data().tobytes() if kind == "Constant" else b""
        parts.append(hashlib.sha256(kind.encode() + data).digest())
    # Sorted: in which order a graph lists its operations is no promise of it.
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()
