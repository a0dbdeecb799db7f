"""The engine of a choice, for a model that is open."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.engines.config import INT8, TENSORFLOW, need_openvino
from keras_bert_impl.engines.engine import Engine, Features, KerasEngine


def no_rows() -> Sequence[Features]:
    """No texts to find scales on."""
    return ()


def open_engine(
    model: Any,
    engine: str = TENSORFLOW,
    precision: str = "float32",
    folder: Path | None = None,
    calibration: Callable[[], Sequence[Features]] = no_rows,
    deterministic: bool = False,
) -> Engine:
    """Gives what computes a model's outputs.

    Args:
        model: one of this project's models; for OpenVINO of the dtype policy float32.
        engine: "tensorflow", whose precision is that of the model, or "openvino".
        precision: "float32", "bfloat16" or "int8".
        folder: the model's, where the scales of int8 are kept.
        calibration: gives inputs of a row each, on which the scales of int8 are found.
        deterministic: compute equal batches in one way, whether they come alone or not.

    Raises:
        UserError: the engine's package is not installed.
    """
    if engine == TENSORFLOW:
        return KerasEngine(model)
    need_openvino(precision)
    from keras_bert_impl.engines.openvino_engine import OpenVinoEngine

    def graph() -> Any:
        from keras_bert_impl.engines.openvino_graph import openvino_graph
        from keras_bert_impl.engines.quantized_graph import quantized_graph

        made = openvino_graph(model)
        return quantized_graph(made, folder, calibration) if precision == INT8 else made

    return OpenVinoEngine(graph, precision, deterministic=deterministic)
