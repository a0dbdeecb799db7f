"""google's TF1 checkpoints: `PREFIX.index` and `PREFIX.data-00000-of-00001`."""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.sources import (
    FoundTensor,
    TensorSource,
    encoder_prefix,
    parts_of,
    spellings,
)
from keras_bert_impl.errors import reading, reason_of
from keras_bert_impl.files import StrPath, check_parts, not_written, whole_files

_SLOT = re.compile(r"/(adam_m|adam_v|lamb_m|lamb_v|Adam|Adam_1|LAMB|LAMB_1)$")
_STATE = re.compile(r"^(global_step|beta[12]_power|loss_scale|good_steps|current_loss_scale)$")
_ENCODER, _ROOT = "bert/", "embeddings/word_embeddings"
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # what makes a checkpoint one of objects
_REMEDY = "name its prefix (the path without '.index'), beside which '.data-…' lies, too"


@contextlib.contextmanager
def reading_variables(path: StrPath, what: str, remedy: str) -> Iterator[Callable[[str], Any]]:
    """Gives what opens TensorFlow's files of variables; what goes wrong inside is one sentence."""
    import tensorflow as tf  # late: importing it takes seconds

    def load(prefix: str) -> Any:
        reader = tf.train.load_checkpoint(prefix)
        types, needed = reader.get_variable_to_dtype_map(), 0
        for name, shape in reader.get_variable_to_shape_map().items():
            needed += 0 if types[name] == tf.string else math.prod(shape) * types[name].size
        # Sizes stand in the index alone, and a model is made by them before a number is read.
        if needed > sum(part.stat().st_size for part in parts_of(prefix)):
            raise ValueError("its tensors are larger than its data files")
        return reader

    with reading(path, what, remedy):
        try:
            yield load
        except tf.errors.OpError as error:
            raise ValueError(reason_of(error)) from error


def is_of_objects(prefix: StrPath) -> bool:
    """Whether a checkpoint is TF2's, of a graph of objects, and not TF1's of named variables."""
    check_parts(prefix)
    with reading_variables(prefix, "a TensorFlow checkpoint", _REMEDY) as load:
        return bool(load(str(prefix)).has_tensor(OBJECT_GRAPH))


class GoogleSource(TensorSource):
    """The tensors of a TF1 checkpoint."""

    reasons = ((_SLOT, "optimizer slot"), (_STATE, "training state"))

    def __init__(self, prefix: StrPath) -> None:
        self.location, self.files = str(prefix), parts_of(prefix)
        check_parts(prefix)
        with reading_variables(prefix, "a TF1 checkpoint", _REMEDY) as load:
            self._reader = load(self.location)
            found = self._reader.get_variable_to_shape_map()
        self.shapes = {name: tuple(shape) for name, shape in found.items()}
        self._prefix = encoder_prefix(self.location, self.shapes, (_ROOT,), _ENCODER)

    def find(self, names: Names) -> FoundTensor | None:
        """Before its name may stand "bert/", nothing, or an outer scope."""
        spelled = spellings(names.google, _ENCODER, self._prefix)
        found = next((one for one in spelled if one in self.shapes), None)
        return None if found is None else FoundTensor(found, names.google_transposed)

    def read(self, name: str) -> np.ndarray:
        with reading_variables(self.location, "a TF1 checkpoint", "download it again"):
            return np.asarray(self._reader.get_tensor(name))


def write_google_checkpoint(prefix: StrPath, variables: Mapping[str, np.ndarray]) -> None:
    """Writes a TF1 checkpoint; its index, without which it is none, appears last."""
    import tensorflow as tf

    final, names = Path(prefix), sorted(variables)
    ending = (".data-00000-of-00001", ".index")
    with whole_files(final.parent, *(f"{final.name}{suffix}" for suffix in ending)) as aside:
        try:
            with tf.device("CPU"):
                tf.raw_ops.SaveV2(
                    prefix=str(aside / final.name),
                    tensor_names=names,
                    shape_and_slices=[""] * len(names),
                    tensors=[tf.constant(variables[name]) for name in names],
                )
        except tf.errors.OpError as error:
            reason = reason_of(error).rpartition("; ")[2].partition(" [Op:")[0]
            raise not_written(final, reason) from error
        # No older index may stand beside new data, whenever the process is killed.
        final.with_name(f"{final.name}{ending[1]}").unlink(missing_ok=True)
