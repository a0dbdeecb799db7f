"""Graphs kept next to the model that they were made of, so that the next start needs no TensorFlow.

A kept graph is derived: it counts only where it is of these weights, this configuration and this
code, and every byte is as it was written; else it is made again. Where TensorFlow is missing, so
that none can be made, it counts whatever versions of other packages made it. It lies in a folder
of its own next to the model, or in the user's cache where nothing can be written there, or where
something else lies there than was written, or a link, which may have come with the model.
"""

import contextlib
import dataclasses
import functools
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.backend import need_tensorflow
from keras_bert_impl.checkpoints.model_directory import GRAPHS_FOLDER
from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.run_folder import is_run_checkpoint
from keras_bert_impl.checkpoints.sentence_modules import module_files
from keras_bert_impl.engines.config import INT8
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.openvino_graph import (
    graph_sha256,
    openvino_core,
    openvino_graph,
    quantize,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, is_named, whole_folder, without_links, writing
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.user_cache import keep_newest, own_folder

_log = logging.getLogger(__name__)

GRAPH_FILE, WEIGHTS_FILE, DESCRIPTION_FILE = "model.xml", "model.bin", "description.json"
_FILES = (GRAPH_FILE, WEIGHTS_FILE)
_MOST_BYTES_CACHED = 8 << 30
_FORM = 1  # raised when what a description says changes
_PACKAGE = Path(__file__).parent.parent
_SHAPED_BY = ("checkpoints", "cpu_kernels", "engines", "layers", "models")  # folders of our code
_CONVERTERS = ("keras", "openvino", "tensorflow")  # the packages that make graphs
_SOURCE, _OF, _QUANTIZATION = "source", "of", "quantization"
_FORM_OF_INT8 = 3  # raised when the same graph would be quantized in another way

Calibration = Callable[[], Sequence[Features]]


@dataclasses.dataclass(frozen=True)
class UnbuiltModel:
    """A model that is built only where no graph of it is kept, because that needs TensorFlow.

    Attributes:
        build: builds the model, with its weights.
        source: where the weights are from.
        name: of what is built, the class of the model; its graphs are kept under this name.
        settings: whatever shapes the model besides the source's files and configuration, as JSON
            values.
    """

    build: Callable[[], Any]
    source: ModelSource
    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def fingerprint(self) -> str:
        """Tells apart what the graph depends on: weights, configuration, settings and our code.

        A SHA-256, hexadecimal. Every byte of the weights counts.
        """
        shape = [self.name, self.settings, self.source.config.to_dict()]
        parts = [json_text(shape, sort_keys=True)]
        parts += [f"{path.name} {file_sha256(path)}" for path in files_of_numbers(self.source)]
        return hashlib.sha256("\n".join([*parts, code_sha256()]).encode()).hexdigest()


def files_of_numbers(source: ModelSource) -> list[Path]:
    """The files that hold the numbers, and those that say what is done with them."""
    return [*source.tensors().files, *module_files(source.folder)]


@functools.cache
def code_sha256() -> str:
    """Tells apart versions of our code that turns weights into a graph."""
    digest = hashlib.sha256()
    for folder in _SHAPED_BY:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(f"{path.name} ".encode() + path.read_bytes())
    return digest.hexdigest()


def _made_by() -> dict[str, str]:
    """The versions of the packages that make graphs here; nothing where they are not installed."""
    versions = {name: _version(name) for name in _CONVERTERS}
    return versions if all(versions.values()) else {}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def places_of(folder: Path | None, name: str) -> list[Path]:
    """Where the graph of a model is looked for and kept: next to it, then in the user's cache.

    Nothing is put into a checkpoint of a run, which comes and goes.
    """
    if folder is None or not folder.is_dir() or is_run_checkpoint(folder):
        return []
    places = [folder / GRAPHS_FOLDER / name]
    with contextlib.suppress(UserError):  # another user's cache, for example
        if cache := own_folder(GRAPHS_FOLDER):
            of_model = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
            places.append(cache / f"{of_model}-{name}")
    return places


@dataclasses.dataclass(frozen=True)
class KeptGraph:
    """A graph that was kept, and is sound.

    Attributes:
        graph: an `openvino.Model`.
        description: what was said of it.
        folder: where it lies.
    """

    graph: Any
    description: Mapping[str, Any]
    folder: Path


def read_graph(places: list[Path], wanted: Mapping[str, Any]) -> KeptGraph | None:
    """The first graph of some folders that is what is wanted, with every byte as it was written."""
    return next(filter(None, (_read(folder, wanted) for folder in places)), None)


def _read(folder: Path, wanted: Mapping[str, Any]) -> KeptGraph | None:
    noted = _noted(folder)
    if not noted or any(noted.get(name) != value for name, value in wanted.items()):
        return None
    if noted.get("form") != _FORM or noted.get("files") != _digests(folder):
        _log.info("%s: is damaged or of another version, and is not used.", folder)
        return None
    try:
        return KeptGraph(openvino_core().read_model(folder / GRAPH_FILE), noted, folder)
    except RuntimeError:  # gone meanwhile: another process replaces it
        return None


def _noted(folder: Path) -> dict[str, Any]:
    """What was noted of the graph in a folder; nothing where that cannot be read."""
    with contextlib.suppress(UserError):
        return read_json_object(folder / DESCRIPTION_FILE)
    return {}


def _digests(folder: Path) -> dict[str, str]:
    try:
        return {name: file_sha256(folder / name) for name in _FILES}
    except UserError:
        return {}


def keep_graph(places: list[Path], graph: Any, description: Mapping[str, Any]) -> None:
    """Writes a graph to the first of some folders that can be written to.

    Where there is none, one line of the log says so. An older graph there is replaced; what is no
    such graph is left alone in the first folder, next to the model.
    """
    reason: UserError | None = None
    for folder in places:
        try:
            if folder == places[0]:
                _check_is_free(folder)
            _write(folder, graph, description)
        except UserError as error:  # another user's folder, for example
            reason = reason or error
        else:
            _log.info("%s: the graph is kept for the next start.", folder)
            if folder != places[0]:
                keep_newest(folder.parent, _MOST_BYTES_CACHED)
            return
    if reason:
        _log.warning("The graph is made anew each time: %s", reason)


def _check_is_free(folder: Path) -> None:
    """Checks that a folder holds nothing or a graph as it was kept, so that it may be replaced."""
    with writing(folder):
        if is_named(without_links(folder.absolute(), names=3)):
            found, files = {path.name for path in folder.iterdir()}, _noted(folder).get("files")
            if found != {*_FILES, DESCRIPTION_FILE} or files != _digests(folder):
                raise UserError(f"{folder}: is not a graph as it was kept, and is left alone.")


def _write(folder: Path, graph: Any, description: Mapping[str, Any]) -> None:
    import openvino

    with whole_folder(folder) as aside:
        openvino.save_model(graph, aside / GRAPH_FILE, compress_to_fp16=False)
        note = json_text({**description, "form": _FORM, "files": _digests(aside)}, indent=1)
        (aside / DESCRIPTION_FILE).write_text(note, encoding="utf-8")


class _Plain(NamedTuple):
    """A graph in float32, what tells it apart, and what is noted of the files that it is of."""

    graph: Any
    sha256: str
    source: Mapping[str, str]


def model_graph(model: Any, precision: str, folder: Path | None, calibration: Calibration) -> Any:
    """The graph of a model, an `openvino.Model`; without a `folder` of the model none is kept.

    That of an `UnbuiltModel` is kept for the next start. Scales of int8 are kept for any model that
    lies in a folder: what was made for the same graph is taken as it is, whatever its texts were;
    `calibration`, some hundred inputs of a row each, is called where nothing is kept.
    """
    name = model.name if isinstance(model, UnbuiltModel) else type(model).__name__
    if isinstance(model, UnbuiltModel) and folder is not None:
        folder = model.source.graphs_beside
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
    """A float32 graph, which is changed, in 8-bit integers, kept or made now; see `model_graph`."""
    places = places_of(folder, f"{name}_{INT8}")
    return _quantized(_Plain(graph, graph_sha256(graph), {}), places, calibration)


def _source_of(model: Any, places: Sequence[Path]) -> dict[str, str]:
    if not (isinstance(model, UnbuiltModel) and places):
        return {}
    return {_SOURCE: model.fingerprint(), **_made_by()}


def _plain(model: Any, places: list[Path], source: Mapping[str, str], keep: bool = True) -> _Plain:
    kept = read_graph(places, source) if source else None
    if kept is not None:
        return _Plain(kept.graph, str(kept.description.get(_OF)), source)
    where = f" in {places[0]}" if places else ""
    need_tensorflow(f"a model of which no graph of this version is kept{where}")
    made = openvino_graph(model.build() if isinstance(model, UnbuiltModel) else model)
    # If the weights were replaced while they were read, it is unknown whose graph this is.
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
    graph = quantize(plain.graph, calibration) if kept is None else kept.graph
    if kept is None or plain.source:  # so the next start finds it without the plain graph
        keep_graph(places, graph, {**plain.source, **wanted})
    return graph
