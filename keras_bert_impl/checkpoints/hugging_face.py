"""Hugging Face directories: `model.safetensors`, whole or in shards."""

import os
import re
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints import safetensors_file
from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.tensor_source import FoundTensor
from keras_bert_impl.config import read_json_object
from keras_bert_impl.errors import UserError

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model.pt")
_OLD_NORM_NAMES = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
_REASONS = (
    (re.compile(r"position_ids$"), "constant"),
    (re.compile(r"(^|\.)cls\.predictions\.decoder\.weight$"), "tied to the token embeddings"),
    (re.compile(r"(^|\.)cls\.predictions\.decoder\.bias$"), "tied to cls.predictions.bias"),
)


class HuggingFaceSource:
    """The tensors of a Hugging Face directory.

    Args:
        folder: holds `model.safetensors` or `model.safetensors.index.json` with its shards.

    Raises:
        UserError: neither is there, only a pickle is, or a file is not whole.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.location = str(folder)
        self._files: dict[str, Path] = {}
        self._entries: dict[str, safetensors_file.TensorEntry] = {}
        for file in _weight_files(Path(folder)):
            for name, entry in safetensors_file.read_header(file).items():
                self._files[name], self._entries[name] = file, entry

    def find(self, names: Names) -> FoundTensor | None:
        """The tensor that answers to a weight: with "bert." before it or without, old or new."""
        for candidate in _candidates(names.hugging_face):
            if candidate in self._entries:
                return FoundTensor(candidate, names.hugging_face_turned)
        return None

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self._entries[name].shape

    def read(self, name: str) -> np.ndarray:
        """A tensor, of its own type."""
        return safetensors_file.read_tensor(self._files[name], self._entries[name])

    def reason_to_ignore(self, name: str) -> str | None:
        """Why a tensor that no model needs is there."""
        return next((reason for pattern, reason in _REASONS if pattern.search(name)), None)


def _candidates(name: str) -> list[str]:
    bare = name.removeprefix("bert.")
    spellings = [name, bare] if bare != name else [name]
    for new, old in _OLD_NORM_NAMES:
        spellings += [spelling.replace(new, old) for spelling in spellings if new in spelling]
    return spellings


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS_FILE).exists():
        return [folder / WEIGHTS_FILE]
    if (folder / INDEX_FILE).exists():
        return _shards(folder)
    for name in _PICKLES:
        if (folder / name).exists():
            raise UserError(
                f"{folder / name}: is a pickle, which can run any code and is never opened here; "
                "save the model again with transformers' save_pretrained(..., "
                "safe_serialization=True) where you trust it, or download its model.safetensors."
            )
    raise UserError(
        f"{folder}: holds neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a model directory or the "
        "prefix of a TF1 checkpoint."
    )


def _shards(folder: Path) -> list[Path]:
    index = folder / INDEX_FILE
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: has no weight_map; download it again.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(f"{index}: names the shard {name!r}, which is no file of this folder.")
    held = {key for name in names for key in safetensors_file.read_header(folder / name)}
    missing = sorted(set(weight_map) - held)
    if missing:
        raise UserError(
            f"{index}: lists tensor {missing[0]!r}, which no shard holds; download the "
            "shards again."
        )
    return [folder / name for name in names]
