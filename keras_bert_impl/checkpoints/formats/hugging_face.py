"""Hugging Face directories: `model.safetensors`, whole or in shards."""

import re
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints.formats import safetensors_file
from keras_bert_impl.checkpoints.formats.transformers_tf import listed_parts
from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.sources import (
    INDEX_FILE,
    PICKLE_FILES,
    WEIGHTS_FILE,
    FoundTensor,
    TensorSource,
    encoder_prefix,
    pickle_refused,
    spellings,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath, is_named

_OLD_NORM_NAMES = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
# A file holds one of two tied tensors or both.
_TWINS = {
    "bert.embeddings.word_embeddings.weight": "cls.predictions.decoder.weight",
    "cls.predictions.bias": "cls.predictions.decoder.bias",
}
_ENCODER, _ROOTS = "bert.", ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight")


class HuggingFaceSource(TensorSource):
    """The tensors of a Hugging Face directory."""

    reasons = (
        (re.compile(r"embeddings\.(position_ids|token_type_ids)$"), "constant"),
        (re.compile(r"(^|\.)cls\.predictions\.decoder\.weight$"), "tied to the token embeddings"),
        (re.compile(r"(^|\.)cls\.predictions\.decoder\.bias$"), "tied to cls.predictions.bias"),
    )

    def __init__(self, folder: StrPath) -> None:
        self.location, self.files = str(folder), weight_files(Path(folder))
        parts = {file: safetensors_file.read_shapes(file) for file in self.files}
        self._files = {name: file for file, shapes in parts.items() for name in shapes}
        self.shapes = {name: one for shapes in parts.values() for name, one in shapes.items()}
        self._prefix = encoder_prefix(self.location, self.shapes, _ROOTS, _ENCODER)

    def find(self, names: Names) -> FoundTensor | None:
        """Before its name may stand "bert.", nothing, or what a wrapper such as "module." adds."""
        spelled = [
            one
            for twin in filter(None, (names.hugging_face, _TWINS.get(names.hugging_face)))
            for one in spellings(twin, _ENCODER, self._prefix)
        ]
        for new, old in _OLD_NORM_NAMES:
            spelled += [one.replace(new, old) for one in spelled if new in one]
        found = next((one for one in spelled if one in self.shapes), None)
        return None if found is None else FoundTensor(found, names.hugging_face_transposed)

    def read(self, name: str) -> np.ndarray:
        return safetensors_file.read_tensor(self._files[name], name)


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights of a model directory: one, or its parts."""
    if is_named(folder / WEIGHTS_FILE):
        return [folder / WEIGHTS_FILE]
    if (folder / INDEX_FILE).exists():
        return listed_parts(folder / INDEX_FILE, safetensors_file.read_shapes)
    for name in PICKLE_FILES:
        if (folder / name).exists():
            raise pickle_refused(folder / name, f"download the model's {WEIGHTS_FILE}")
    fault = f"holds neither {WEIGHTS_FILE} nor {INDEX_FILE}"
    raise UserError(f"{folder}: {fault}; name a model directory or a TF1 checkpoint's prefix.")
