"""A model's graph for OpenVINO in a precision: one that is kept, or made now and kept."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.engines.config import INT8
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.kept_graph import UnbuiltModel, keep_graph, places_of, read_graph
from keras_bert_impl.engines.openvino_graph import graph_sha256, openvino_graph
from keras_bert_impl.engines.quantized_graph import quantize

_log = logging.getLogger(__name__)

_SOURCE, _OF, _QUANTIZATION = "source", "of", "quantization"
_FORM_OF_INT8 = 3  # raised when the same graph would be quantized in another way

Calibration = Callable[[], Sequence[Features]]


class _Plain(NamedTuple):
    """A graph in float32, what tells it apart, and what is noted of the files that it is of."""

    graph: Any
    sha256: str
    source: Mapping[str, str]


def model_graph(model: Any, precision: str, folder: Path | None, calibration: Calibration) -> Any:
    """The graph of a model.

    That of an `UnbuiltModel` is kept for the next start. Scales of int8 are kept for any model that
    lies in a folder: what was made for the same graph is taken as it is, whatever its texts were.

    Args:
        folder: the model's, where graphs are kept; None keeps nothing.
        calibration: gives inputs of a row each, some hundred of them; called where nothing is kept.

    Returns:
        An `openvino.Model`.
    """
    name = model.name if isinstance(model, UnbuiltModel) else type(model).__name__
    source = _source_of(model, places_of(folder, name))
    if precision != INT8:
        return _plain(model, places_of(folder, name), source).graph
    places = places_of(folder, f"{name}_{INT8}")
    kept = read_graph(places, {**source, _QUANTIZATION: _FORM_OF_INT8}) if source else None
    if kept is None:
        plain = _plain(model, places_of(folder, name), source, keep=False)
        return _quantized(plain, places, calibration)
    _log.info("%s: the scales of int8 are there.", kept.folder)
    return kept.graph


def quantized_graph(graph: Any, name: str, folder: Path | None, calibration: Calibration) -> Any:
    """A graph in 8-bit integers, kept or made now; see `model_graph`.

    Args:
        graph: an `openvino.Model`, float32; it is changed.
    """
    places = places_of(folder, f"{name}_{INT8}")
    return _quantized(_Plain(graph, graph_sha256(graph), {}), places, calibration)


def _source_of(model: Any, places: Sequence[Path]) -> dict[str, str]:
    return {_SOURCE: model.fingerprint()} if isinstance(model, UnbuiltModel) and places else {}


def _plain(model: Any, places: list[Path], source: Mapping[str, str], keep: bool = True) -> _Plain:
    kept = read_graph(places, source) if source else None
    if kept is not None:
        return _Plain(kept.graph, str(kept.description.get(_OF)), source)
    made = openvino_graph(model.build() if isinstance(model, UnbuiltModel) else model)
    # The weights may have been replaced while they were read: nobody knows whose graph it is then.
    source = source if _source_of(model, places) == source else {}
    plain = _Plain(made, graph_sha256(made), source)
    if source and keep:
        keep_graph(places, made, {**source, _OF: plain.sha256})
    return plain


def _quantized(plain: _Plain, places: list[Path], calibration: Calibration) -> Any:
    wanted = {_QUANTIZATION: _FORM_OF_INT8, _OF: plain.sha256}
    kept = read_graph(places, wanted)
    if kept is not None:
        _log.info("%s: the scales of int8 are there.", kept.folder)
    graph = quantize(plain.graph, calibration()) if kept is None else kept.graph
    if kept is None or plain.source:  # so the next start finds it without the plain graph
        keep_graph(places, graph, {**plain.source, **wanted})
    return graph
