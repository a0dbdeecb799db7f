"""Graphs kept next to the model that they were made of, so that the next start needs no TensorFlow.

A kept graph is derived: it counts only where it is of these weights, this configuration and this
code, and every byte is as it was written; else it is made again. It lies in a folder of its own
next to the model, or in the user's cache where nothing can be written there, or something else lies
there than was written, or a link, which may have come with the model.
"""

import contextlib
import dataclasses
import functools
import glob
import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.destination import GRAPHS_FOLDER
from keras_bert_impl.checkpoints.hugging_face import weight_files
from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.run_folder import is_run_checkpoint
from keras_bert_impl.checkpoints.sentence_modules import module_files
from keras_bert_impl.engines.openvino_core import openvino_core
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, is_named, whole_folder, without_links, writing
from keras_bert_impl.json_files import read_sealed, sealed
from keras_bert_impl.user_cache import keep_newest, own_folder

_log = logging.getLogger(__name__)

GRAPH_FILE, WEIGHTS_FILE, DESCRIPTION_FILE = "model.xml", "model.bin", "description.json"
_FILES = (GRAPH_FILE, WEIGHTS_FILE)
_MOST_BYTES_CACHED = 8 << 30
_FORM = 1  # raised when what a description says changes
_PACKAGE = Path(__file__).parent.parent
_SHAPED_BY = ("checkpoints", "cpu_kernels", "engines", "layers", "models")  # folders of our code
_CONVERTERS = ("keras", "openvino", "tensorflow")
_PART = re.compile(r"\.(index|data-\d{5}-of-\d{5})")


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
        parts = [json.dumps(shape, sort_keys=True)]
        parts += [f"{path.name} {file_sha256(path)}" for path in _files_of(self.source)]
        return hashlib.sha256("\n".join([*parts, code_sha256()]).encode()).hexdigest()


def _files_of(source: ModelSource) -> list[Path]:
    """The files that hold the numbers, and those that say what is done with them."""
    folder, checkpoint = source.folder, source.checkpoint
    if checkpoint != folder:  # the prefix of a TF1 checkpoint
        parts = folder.glob(f"{glob.escape(Path(str(checkpoint)).name)}.*")
        return sorted(path for path in parts if _PART.fullmatch(path.suffix))
    return [*weight_files(folder), *module_files(folder)]


@functools.cache
def code_sha256() -> str:
    """Tells apart versions of whatever turns weights into a graph: our code and the converters."""
    digest = hashlib.sha256()
    for folder in _SHAPED_BY:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            digest.update(f"{path.name} ".encode() + path.read_bytes())
    digest.update(" ".join(map(_version, _CONVERTERS)).encode())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def places_of(folder: Path | None, name: str) -> list[Path]:
    """Where the graph of a model is looked for and kept: next to it, then in the user's cache.

    Args:
        folder: the model's; nothing is put into a checkpoint of a run, which comes and goes.
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
    """The first graph that is what is wanted, every byte of it as it was written.

    Args:
        places: folders; see `places_of`.

    Returns:
        None where there is none.
    """
    return next(filter(None, (_read(folder, wanted) for folder in places)), None)


def _read(folder: Path, wanted: Mapping[str, Any]) -> KeptGraph | None:
    noted = read_sealed(folder / DESCRIPTION_FILE, dict[str, Any])
    if noted is None or any(noted.get(name) != value for name, value in wanted.items()):
        return None
    before = _identities(folder)
    if noted.get("form") != _FORM or noted.get("files") != _digests(folder):
        _log.info("%s: is damaged or of another version; it is made again.", folder)
        return None
    try:
        graph = openvino_core().read_model(folder / GRAPH_FILE)
    except RuntimeError:  # gone meanwhile: another process replaces it
        return None
    # Files are replaced, never changed: the same ones are what the digests are of.
    return KeptGraph(graph, noted, folder) if _identities(folder) == before else None


def _identities(folder: Path) -> list[tuple[int, int, int]]:
    try:
        found = [(folder / name).stat() for name in _FILES]
    except OSError:
        return []
    return [(one.st_dev, one.st_ino, one.st_mtime_ns) for one in found]


def _digests(folder: Path) -> dict[str, str]:
    try:
        return {name: file_sha256(folder / name) for name in _FILES}
    except UserError:
        return {}


def keep_graph(places: list[Path], graph: Any, description: Mapping[str, Any]) -> None:
    """Writes a graph to the first of some folders that can be written to.

    Where there is none, one line of the log says so.

    Args:
        places: folders, see `places_of`; an older graph there is replaced. What is no such graph
            is left alone in the first of them, next to the model.
    """
    reason: UserError | None = None
    for folder in places:
        try:
            if folder == places[0]:
                _check_is_free(folder)
            _write(folder, graph, description)
        except UserError as error:  # somebody else's folder, for example
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
            noted = read_sealed(folder / DESCRIPTION_FILE, dict[str, Any]) or {}
            found = {path.name for path in folder.iterdir()}
            if found != {*_FILES, DESCRIPTION_FILE} or noted.get("files") != _digests(folder):
                raise UserError(f"{folder}: is not a graph as it was kept, and is left alone.")


def _write(folder: Path, graph: Any, description: Mapping[str, Any]) -> None:
    import openvino

    with whole_folder(folder) as aside:
        openvino.save_model(graph, aside / GRAPH_FILE, compress_to_fp16=False)
        note = sealed({**description, "form": _FORM, "files": _digests(aside)})
        (aside / DESCRIPTION_FILE).write_text(note, encoding="utf-8")
