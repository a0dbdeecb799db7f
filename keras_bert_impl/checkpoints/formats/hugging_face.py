"""Hugging Face directories: `model.safetensors`, whole or in shards."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import numpy as np

from keras_bert_impl.checkpoints.formats import safetensors_file
from keras_bert_impl.checkpoints.formats.transformers_tf import is_tensorflows, pytorch_names
from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.sources import (
    INDEX_FILE,
    PICKLE_FILES,
    WEIGHTS_FILE,
    FoundTensor,
    TensorSource,
    pickle_refused,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import FileName, read_typed

_OLD_NORM_NAMES = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
# A file holds one of two tied tensors or both.
_TWINS = {
    "bert.embeddings.word_embeddings.weight": "cls.predictions.decoder.weight",
    "cls.predictions.bias": "cls.predictions.decoder.bias",
}
_ENCODER, _ROOTS = "bert.", ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight")
_REASONS = (
    (re.compile(r"embeddings\.(position_ids|token_type_ids)$"), "constant"),
    (re.compile(r"(^|\.)cls\.predictions\.decoder\.weight$"), "tied to the token embeddings"),
    (re.compile(r"(^|\.)cls\.predictions\.decoder\.bias$"), "tied to cls.predictions.bias"),
)


class _Index(TypedDict):
    weight_map: dict[str, FileName]


class HuggingFaceSource(TensorSource):
    """The tensors of a Hugging Face directory."""

    reasons = _REASONS

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.location = str(folder)
        self._files: dict[str, Path] = {}
        self._entries: dict[str, safetensors_file.TensorEntry] = {}
        self.files = weight_files(Path(folder))
        for file in self.files:
            for name, entry in safetensors_file.read_header(file).items():
                self._files[name], self._entries[name] = file, entry
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}
        self._prefix = _encoder_prefix(self._entries)

    def find(self, names: Names) -> FoundTensor | None:
        """The tensor that answers to a weight.

        Before its name may stand "bert.", nothing, or what a wrapper such as "module." adds.
        """
        for candidate in self._candidates(names.hugging_face):
            if candidate in self._entries:
                return FoundTensor(candidate, names.hugging_face_transposed)
        return None

    def _candidates(self, name: str) -> list[str]:
        outer = self._prefix.removesuffix(_ENCODER)
        spellings = []
        for twin in filter(None, (name, _TWINS.get(name))):
            in_encoder = twin.startswith(_ENCODER)
            given = self._prefix + twin.removeprefix(_ENCODER) if in_encoder else outer + twin
            spellings += [given, twin, twin.removeprefix(_ENCODER)]
        for new, old in _OLD_NORM_NAMES:
            spellings += [spelling.replace(new, old) for spelling in spellings if new in spelling]
        return spellings

    def read(self, name: str) -> np.ndarray:
        return safetensors_file.read_tensor(self._files[name], self._entries[name])


def _encoder_prefix(names: Iterable[str]) -> str:
    """Finds the prefix of the encoder's names in a file; "bert." where there is no sign of it."""
    found = [name.removesuffix(root) for name in names for root in _ROOTS if name.endswith(root)]
    return min(found, key=len, default=_ENCODER)


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights of a model directory: one, or its parts."""
    if (folder / WEIGHTS_FILE).exists():
        return [folder / WEIGHTS_FILE]
    if (folder / INDEX_FILE).exists():
        return _shards(folder)
    for name in PICKLE_FILES:
        if (folder / name).exists():
            raise pickle_refused(folder / name, f"download the model's {WEIGHTS_FILE}")
    raise UserError(
        f"{folder}: holds neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a model directory or the "
        "prefix of a TF1 checkpoint."
    )


def _shards(folder: Path) -> list[Path]:
    index = folder / INDEX_FILE
    weight_map = read_typed(index, _Index, "download it again")["weight_map"]
    names = sorted({*weight_map.values()})
    held = {key for name in names for key in safetensors_file.read_header(folder / name)}
    named = set(weight_map)
    if is_tensorflows(held):  # whose index has the model's own name in front
        named, held = {*pytorch_names(named)}, {*pytorch_names(held)}
    if missing := sorted(named - held):
        raise UserError(
            f"{index}: lists tensor {shown(missing[0])}, which no shard holds; download the "
            "shards again."
        )
    return [folder / name for name in names]
