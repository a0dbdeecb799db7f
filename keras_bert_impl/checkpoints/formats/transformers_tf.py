"""What transformers' TensorFlow classes saved: `tf_model.h5`, whole or in parts, and safetensors.

transformers 5 has no TensorFlow classes any more; version 4 was the last one that wrote these.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from keras_bert_impl.checkpoints.formats import hdf5_file
from keras_bert_impl.checkpoints.sources import (
    TF_INDEX_FILE,
    TF_WEIGHTS_FILE,
    TensorSource,
    TranslatedSource,
    encoder_prefix,
)
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import FileName, read_typed

# In front of a variable's name stand the layer's group in the file and the model's own name.
_SCOPE = re.compile(r"^(?:.*/)?(?=(?:bert|classifier|qa_outputs|(?:mlm___|nsp___)?cls)/)")
_ROOTS = ("encoder/layer_._0/output/dense/kernel:0",)  # embeddings stand at a head, too
_SPELLINGS = (
    (re.compile(r":0$"), ""),
    (re.compile(r"^(mlm|nsp)___"), ""),
    (re.compile(r"/layer_\._(\d+)/"), r"/layer/\1/"),
    (re.compile(r"/(kernel|gamma|embeddings)$"), "/weight"),
    (re.compile(r"/beta$"), "/bias"),
)


class _Index(TypedDict):
    weight_map: dict[str, FileName]


def open_hdf5(folder: Path) -> TranslatedSource:
    """Opens the `tf_model.h5` of a folder, or its parts."""
    parts = [folder / TF_WEIGHTS_FILE]
    if not parts[0].exists():
        parts = listed_parts(folder / TF_INDEX_FILE, hdf5_file.read_hdf5_shapes)
    files = {
        name: (path, shape)
        for path in parts
        for name, shape in hdf5_file.read_hdf5_shapes(path).items()
    }
    return TranslatedSource(
        str(folder),
        parts,
        {name: shape for name, (_, shape) in files.items()},
        _names_of_one(str(folder), files),
        lambda name: hdf5_file.read_hdf5_tensor(files[name][0], name),
    )


def translated(source: TensorSource) -> TranslatedSource:
    """Safetensors that a TensorFlow class wrote, whole or in parts, under Hugging Face's names."""
    names = _names_of_one(source.location, source.shapes)
    return TranslatedSource(source.location, source.files, source.shapes, names, source.read)


def is_tensorflows(names: Iterable[str]) -> bool:
    """Whether the tensors of a safetensors file have the names of TensorFlow's variables."""
    return any(name.endswith("/kernel:0") for name in names)


def _names_of_one(location: str, variables: Mapping[str, object]) -> dict[str, str]:
    encoder_prefix(location, variables, _ROOTS, "")  # of several encoders the last would be taken
    return pytorch_names(variables)


def pytorch_names(variables: Iterable[str]) -> dict[str, str]:
    """The names of variables by those that transformers' PyTorch classes give the same weights.

    Example:
        >>> pytorch_names(["bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0"])
        {'bert.encoder.layer.0.output.dense.weight': \
'bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0'}
    """
    found = {}
    for variable in variables:
        name = _SCOPE.sub("", variable)
        for pattern, spelling in _SPELLINGS:
            name = pattern.sub(spelling, name)
        found[name.replace("/", ".")] = variable
    return found


def listed_parts(index: Path, names_in: Callable[[Path], Iterable[str]]) -> list[Path]:
    """The files that an index lists; they must hold all tensors that it lists.

    The index of a TensorFlow model has the model's own name in front of the tensors' names.
    """
    weight_map = read_typed(index, _Index, "download it again")["weight_map"]
    parts = [index.parent / name for name in sorted({*weight_map.values()})]
    held = Counter(name for part in parts for name in pytorch_names(names_in(part)))
    if twice := [name for name, count in held.items() if count > 1]:
        fault = f"lists shards of which several hold tensor {shown(twice[0])}"
        raise UserError(f"{index}: {fault}; download the shards again.")
    if missing := sorted({*pytorch_names(weight_map)} - held.keys()):
        fault = f"lists tensor {shown(missing[0])}, which no shard holds"
        raise UserError(f"{index}: {fault}; download the shards again.")
    return parts
