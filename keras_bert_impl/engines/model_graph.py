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
    """A graph in float32, and what tells it apart."""

    graph: Any
    sha256: str


def model_graph(model: Any, precision: str, folder: Path | None, calibration: Calibration) -> Any:
    """The graph of a model.

    That of an `UnbuiltModel` is kept for the next start. Scales of int8 are kept for any model that
    lies in a folder: what was made for the same graph is taken as it is, whatever its texts were.

    Args:
        model: one of this project's models, of the dtype policy float32, or an `UnbuiltModel`.
        precision: "int8", or another one, which all have the same graph.
        folder: the model's, where graphs are kept; None keeps nothing.
        calibration: gives inputs of a row each, some hundred of them; called where nothing is kept.

    Returns:
        An `openvino.Model`.

    Raises:
        UserError: the weights cannot be read, or there are no calibration texts.
    """
    name = model.name if isinstance(model, UnbuiltModel) else type(model).__name__
    source = _source_of(model, places_of(folder, name))
    if precision != INT8:
        return _plain(model, places_of(folder, name), source).graph
    places = places_of(folder, f"{name}_{INT8}")
    wanted = {**source, _QUANTIZATION: _FORM_OF_INT8}
    kept = read_graph(places, wanted) if source else None
    if kept is None:
        plain = _plain(model, places_of(folder, name), source, keep=False)
        return _quantized(plain, places, wanted, calibration)
    _log.info("%s: the scales of int8 are there.", kept.folder)
    return kept.graph


def quantized_graph(graph: Any, name: str, folder: Path | None, calibration: Calibration) -> Any:
    """A graph in 8-bit integers, kept or made now; see `model_graph`.

    Args:
        graph: an `openvino.Model`, float32; it is changed.
        name: that its quantized form is kept under.
        folder: the model's.
        calibration: as in `model_graph`.

    Raises:
        UserError: there are no calibration texts.
    """
    places = places_of(folder, f"{name}_{INT8}")
    plain = _Plain(graph, graph_sha256(graph))
    return _quantized(plain, places, {_QUANTIZATION: _FORM_OF_INT8}, calibration)


def _source_of(model: Any, places: Sequence[Path]) -> dict[str, str]:
    return {_SOURCE: model.fingerprint} if isinstance(model, UnbuiltModel) and places else {}


def _plain(model: Any, places: list[Path], source: Mapping[str, str], keep: bool = True) -> _Plain:
    kept = read_graph(places, source) if source else None
    if kept is not None:
        return _Plain(kept.graph, str(kept.description.get(_OF)))
    made = openvino_graph(model.build() if isinstance(model, UnbuiltModel) else model)
    plain = _Plain(made, graph_sha256(made))
    if source and keep:
        keep_graph(places, made, {**source, _OF: plain.sha256})
    return plain


def _quantized(
    plain: _Plain, places: list[Path], wanted: Mapping[str, Any], calibration: Calibration
) -> Any:
    of_graph = {_QUANTIZATION: _FORM_OF_INT8, _OF: plain.sha256}
    kept = read_graph(places, of_graph)
    if kept is not None:
        _log.info("%s: the scales of int8 are there.", kept.folder)
        graph = kept.graph
    else:
        graph = quantize(plain.graph, calibration())
    if kept is None or _SOURCE in wanted:  # the next start finds it without the plain graph
        keep_graph(places, graph, {**wanted, **of_graph})
    return graph
