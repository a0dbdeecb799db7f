"""The engine of a choice, TensorFlow's or OpenVINO's, for a model that is open."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from keras_bert_impl.backend import JAX, need_tensorflow
from keras_bert_impl.engines.config import FLOAT32, INT8, TENSORFLOW, need_openvino
from keras_bert_impl.engines.engine import Engine, Features, KerasEngine, Outputs
from keras_bert_impl.engines.kept_graph import GRAPH_FILE, UnbuiltModel
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS, EXAMPLE_WEIGHTS

if TYPE_CHECKING:
    from keras_bert_impl.engines.openvino_engine import OpenVinoEngine

_MASK = "input_mask"


class OnePass(Protocol):
    """A finite set in batches, with `example_weights` where the last one is padded."""

    def batches(self) -> Iterator[Mapping[str, np.ndarray]]:
        """Gives the batches of one pass."""
        ...


class EnginePrediction:
    """Does what `training.evaluation.Prediction` does, without a strategy and without padding."""

    def __init__(self, engine: Engine, input_names: Sequence[str] = ENCODER_INPUTS) -> None:
        self._engine, self._input_names = engine, input_names

    def __call__(self, source: OnePass) -> Iterator[dict[str, np.ndarray]]:
        """Gives the outputs for the real rows of each batch, [rows, ...] by name, in order.

        An output with a number for each token ends with the batch's longest row.
        """
        ready: dict[int, Outputs] = {}
        wanted = 0
        for number, outputs in self._engine.compute(self._batches(source)):
            ready[number] = outputs
            while wanted in ready:
                yield ready.pop(wanted)
                wanted += 1

    def _batches(self, source: OnePass) -> Iterator[tuple[int, Features]]:
        for number, batch in enumerate(source.batches()):
            yield number, real_features(batch, self._input_names)


def real_features(batch: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, Any]:
    """A batch without rows that fill it up, and without positions that no row has a token at.

    Example:
        >>> batch = {"input_ids": np.array([[5, 6, 0], [7, 7, 7]]),
        ...          "input_mask": np.array([[1, 1, 0], [1, 1, 1]]),
        ...          "example_weights": np.array([1.0, 0.0])}
        >>> real_features(batch, ["input_ids", "input_mask"])["input_ids"].tolist()
        [[5, 6]]
    """
    rows = len(batch[_MASK])
    real = np.asarray(batch.get(EXAMPLE_WEIGHTS, np.ones(rows))) > 0
    features = {name: np.asarray(batch[name])[real].astype(np.int32) for name in names}
    size = features[_MASK].shape[-1]
    held = np.flatnonzero(features[_MASK].reshape(-1, size).max(axis=0, initial=0))
    longest = int(held[-1]) + 1 if len(held) else 1
    return {
        name: array[..., :longest] if array.shape[-1] == size else array
        for name, array in features.items()
    }


def no_rows() -> Sequence[Features]:
    """No texts to find scales on."""
    return ()


def open_engine(
    model: Any,
    engine: str = TENSORFLOW,
    precision: str = FLOAT32,
    folder: Path | None = None,
    calibration: Callable[[], Sequence[Features]] = no_rows,
    deterministic: bool = False,
) -> Engine:
    """Gives what computes the outputs of a model, for OpenVINO of the dtype policy float32.

    OpenVINO builds an `UnbuiltModel` only where no graph of it is kept.
    """
    if engine == TENSORFLOW:
        need_tensorflow("`engine=tensorflow`", JAX)
        return KerasEngine(model.build() if isinstance(model, UnbuiltModel) else model)
    need_openvino()
    from keras_bert_impl.engines.kept_graph import model_graph
    from keras_bert_impl.engines.openvino_engine import OpenVinoEngine

    make = partial(model_graph, model, precision, folder, calibration)
    return OpenVinoEngine(make, precision, deterministic=deterministic)


def open_graph(
    path: str | os.PathLike[str],
    precision: str = FLOAT32,
    calibration: Callable[[], Sequence[Features]] = no_rows,
    deterministic: bool = False,
) -> "OpenVinoEngine":
    """Gives what computes a graph that was exported for OpenVINO; TensorFlow is not needed."""
    need_openvino()
    from keras_bert_impl.engines.kept_graph import quantized_graph
    from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
    from keras_bert_impl.engines.openvino_graph import read_graph_file

    file = Path(path) / GRAPH_FILE if Path(path).is_dir() else Path(path)
    graph = read_graph_file(file)

    def make() -> Any:
        if precision != INT8:
            return graph
        return quantized_graph(graph, file.stem, file.parent, calibration)

    return OpenVinoEngine(make, precision, deterministic=deterministic)
