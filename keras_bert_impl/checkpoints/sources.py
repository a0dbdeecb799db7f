"""Where a checkpoint lies, and what it can be asked for, whatever its format."""

import abc
import dataclasses
import glob
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.run_folder import (
    MODEL,
    STATE,
    is_run_checkpoint,
    newest_checkpoint,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import StrPath, read_small

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
TF_WEIGHTS_FILE, TF_INDEX_FILE = "tf_model.h5", "tf_model.h5.index.json"  # of transformers 4
KERAS_WEIGHTS_FILE = "model.weights.h5"  # of KerasHub's presets
CONFIG_FILE, GOOGLE_CONFIG_FILE = "config.json", "bert_config.json"
PARAMS_FILE = "params.yaml"  # of TF Model Garden's runs
VOCABULARY_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer_config.json"
FAST_TOKENIZER_FILE = "tokenizer.json"  # all that transformers itself writes of a tokenizer today
ADDED_TOKENS_FILE, SPECIAL_TOKENS_FILE = "added_tokens.json", "special_tokens_map.json"
LENGTH_FILE = "sentence_bert_config.json"  # of sentence-transformers
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model.pt")
SAVE_AGAIN = (
    "save it again with transformers' save_pretrained(..., safe_serialization=True) where you "
    "trust it"
)
"""How a pickle becomes a file that is opened here."""
_PICKLE_ENDINGS = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_PART_OF_TF1 = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
WHOLE_WEIGHTS = (WEIGHTS_FILE, INDEX_FILE, TF_WEIGHTS_FILE, TF_INDEX_FILE, KERAS_WEIGHTS_FILE)
_SPLIT_BY_HEADS = ".attention.self.query.weight"  # [in, heads, size] in some files
_PART_OF_NUMBERS = re.compile(r"\.(index|data-\d{5}-of-\d{5})")
PART_OF_DIRECTORY = (
    *(*WHOLE_WEIGHTS, ADAPTER_CONFIG, ADAPTER_WEIGHTS, CONFIG_FILE, GOOGLE_CONFIG_FILE),
    *(VOCABULARY_FILE, TOKENIZER_FILE, FAST_TOKENIZER_FILE),
)
_SHARD = re.compile(r"(model-\d+-of-\d+\.safetensors|tf_model-\d+-of-\d+\.h5)")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_LATEST = re.compile(r'^model_checkpoint_path:\s*"(.+)"\s*$', re.MULTILINE)


def find_checkpoint(path: StrPath) -> Path:
    """The model directory, the prefix of a TF1 checkpoint or a run's one that a path means.

    A directory stays one. So does a prefix. Any file of a checkpoint stands for the whole, and a
    folder of TF1 checkpoints for the one that its `checkpoint` file calls the latest, or for the
    only one there. `pytorch_model.bin` stands for the `model.safetensors` beside it. The folder of
    a run stands for the `model/` in it, or for its newest checkpoint where that is newer or there
    is no model yet; the folder of checkpoints stands for the newest one.

    Example:
        >>> find_checkpoint("folder/bert_model.ckpt.index").as_posix()
        'folder/bert_model.ckpt'
    """
    path = Path(path)
    if (path.is_file() or path.name == STATE) and is_run_checkpoint(path.parent):
        return path.parent
    named = path.name in PART_OF_DIRECTORY or _SHARD.fullmatch(path.name)
    if named and path.is_file():
        path = path.parent
    if _PART_OF_TF1.search(path.name):
        return path.with_name(_PART_OF_TF1.sub("", path.name))
    if path.name == PICKLE_FILES[0] and _has_weights(path.parent):
        return path.parent
    whole = _has_weights(path) or is_run_checkpoint(path) or not path.is_dir()
    return path if whole else _model_in_folder(path)


def _has_weights(folder: Path) -> bool:
    return any((folder / name).exists() for name in WHOLE_WEIGHTS)


def is_saved_model(path: StrPath) -> bool:
    """Whether a folder holds a SavedModel and no weights of another form."""
    return (Path(path) / "saved_model.pb").is_file() and not _has_weights(Path(path))


def is_pickle(path: Path) -> bool:
    """Whether a file of this name is a pickle."""
    return path.name in PICKLE_FILES or path.suffix in _PICKLE_ENDINGS


def pickle_refused(path: Path, instead: str) -> UserError:
    """The one sentence for a pickle, which is never opened: it can run any code."""
    fault = "is a pickle, which can run any code and is never opened here"
    return UserError(f"{path}: {fault}; {instead}, or {SAVE_AGAIN}.")


def parts_of(prefix: StrPath) -> list[Path]:
    """The files of a TensorFlow checkpoint, by its prefix."""
    path = Path(prefix)
    parts = path.parent.glob(f"{glob.escape(path.name)}.*")
    return sorted(part for part in parts if _PART_OF_NUMBERS.fullmatch(part.suffix))


def is_google_checkpoint(path: StrPath) -> bool:
    """Whether `path` is the prefix of a TF1 checkpoint."""
    return Path(f"{path}.index").is_file()


def _model_in_folder(folder: Path) -> Path:
    found = _tf1_of_folder(folder)
    if found != folder:
        return found
    if newest := newest_checkpoint(folder):
        return newest
    return folder / MODEL if _has_weights(folder / MODEL) else folder


def _tf1_of_folder(folder: Path) -> Path:
    prefixes = sorted(file.with_suffix("") for file in folder.glob("*.index"))
    if len(prefixes) < 2:
        return prefixes[0] if prefixes else folder
    state, content = folder / "checkpoint", b""
    if state.is_file():
        needs = "no list of checkpoints needs; name one of them by its prefix"
        content = read_small(state, 1, needs, stream_or_empty=True)
    if latest := _LATEST.search(content.decode(errors="replace")):
        # The file may name the folder that the checkpoint was trained in: only the name counts.
        named = folder / Path(latest[1]).name
        if named in prefixes:
            return named
    names = ", ".join(prefix.name for prefix in prefixes[:3])
    raise UserError(
        f"{folder}: holds {len(prefixes)} TF1 checkpoints, the first are {names}, "
        "and no 'checkpoint' file that says which is meant; name one by its prefix."
    )


@dataclasses.dataclass(frozen=True)
class FoundTensor:
    """A tensor of a checkpoint that answers to one of our weights."""

    name: str
    transposed: bool


class TensorSource(abc.ABC):
    """An open checkpoint.

    Attributes:
        location: where it lies, for messages.
        files: that hold its numbers.
        shapes: of its tensors as they lie there, by their names.
        reasons: why tensors that no model needs are there ("optimizer slot"), by their names.
        extra: entries of the configuration that only the checkpoint says, such as what its heads
            make of it (`architectures`).
        overrides: entries that replace those of the configuration.
        keeps: the folder that graphs are kept in where it is not that of the model.
        heads: the numbers of attention heads that the shapes of its tensors say.
    """

    location: str
    files: Sequence[Path]
    shapes: Mapping[str, tuple[int, ...]]
    reasons: Sequence[tuple[re.Pattern[str], str]] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    overrides: Mapping[str, Any] = MappingProxyType({})
    keeps: Path | None = None
    heads: Collection[int] = ()

    @abc.abstractmethod
    def find(self, names: Names) -> FoundTensor | None:
        """The tensor that answers to a weight, or None."""

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """A tensor as it lies there, of its own type."""

    def names(self) -> list[str]:
        return sorted(self.shapes)

    def ignored(self, used: Collection[str], otherwise: str) -> tuple[tuple[str, str], ...]:
        """The tensors that are not used, each with the reason."""
        found = []
        for name in self.names():
            if name not in used:
                known = (reason for pattern, reason in self.reasons if pattern.search(name))
                found.append((name, next(known, otherwise)))
        return tuple(found)


class TranslatedSource(TensorSource):
    """A checkpoint of another library, whose tensors are found by Hugging Face's names.

    TensorFlow's libraries write matrices [in, out], as they stand here; some split the width of an
    attention by heads, which is only another shape of the same numbers.

    `stored` has the shapes by the names in the file, `translated` these names by Hugging Face's
    (with "bert." in front); `reader` gives a tensor by its name in the file.
    """

    def __init__(
        self,
        location: str,
        files: Sequence[Path],
        stored: Mapping[str, tuple[int, ...]],
        translated: Mapping[str, str],
        reader: Callable[[str], np.ndarray],
    ) -> None:
        self.location, self.files, self._reader = location, files, reader
        self._translated = {name: theirs for name, theirs in translated.items() if theirs in stored}
        names = {theirs: name for name, theirs in self._translated.items()}
        split = (x for one, x in stored.items() if names.get(one, "").endswith(_SPLIT_BY_HEADS))
        self.heads = {shape[1] for shape in split if len(shape) == 3}
        self.shapes = {one: _without_heads(names.get(one, ""), x) for one, x in stored.items()}

    def find(self, names: Names) -> FoundTensor | None:
        found = self._translated.get(names.hugging_face)
        return None if found is None else FoundTensor(found, transposed=False)

    def read(self, name: str) -> np.ndarray:
        return self._reader(name).reshape(self.shapes[name])


def _without_heads(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the split by heads.

    [in, heads, size] and [heads, size] end in the width; the output's [heads, size, out] begins so.

    Example:
        >>> _without_heads("bert.encoder.layer.0.attention.self.query.weight", (32, 4, 8))
        (32, 32)
    """
    if len(shape) == 3 and name.endswith("attention.output.dense.weight"):
        return (shape[0] * shape[1], shape[2])
    if len(shape) > 1 and ".attention.self." in name:
        kept = 1 if name.endswith(".weight") else 0
        return (*shape[:kept], math.prod(shape[kept:]))
    return shape


def encoder_prefix(location: str, names: Iterable[str], roots: Sequence[str], usual: str) -> str:
    """What stands before an encoder's names in a file; `usual` where there is no sign of it.

    Of several nothing, or what is usual, is taken.
    """
    found = {name.removesuffix(root) for name in names for root in roots if name.endswith(root)}
    first, *others = sorted(found & {"", usual} or found) or [usual]
    if others and first not in ("", usual):
        fault = f"holds several encoders ({shown(first)}, {shown(others[0])})"
        raise UserError(f"{location}: {fault}; write the one that is meant to a file of its own.")
    return first


def spellings(name: str, usual: str, prefix: str) -> list[str]:
    """A name behind a file's prefix, as it stands, and without its usual prefix."""
    bare, outer = name.removeprefix(usual), prefix.removesuffix(usual)
    return [outer + name if bare == name else prefix + bare, name, bare]


def read_weight(source: TensorSource, found: FoundTensor) -> np.ndarray:
    """Reads a found tensor as our weight stands: transposed where it must be, type kept."""
    array = source.read(found.name)
    if array.dtype.name not in _FLOATS:
        fault = f"{found.name} holds {array.dtype.name}; only {', '.join(_FLOATS)} can be read"
        raise UserError(f"{source.location}: {fault}, name the model before it was quantized.")
    return np.ascontiguousarray(array.T) if found.transposed else array


def weight_shape(source: TensorSource, found: FoundTensor) -> tuple[int, ...]:
    """The shape that `read_weight` will give."""
    shape = source.shapes[found.name]
    return shape[::-1] if found.transposed else shape
