"""One checkpoint of a run as a model: its weights under our names, and what describes them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from keras_bert_impl.checkpoints.formats.google_tf1 import reading_variables
from keras_bert_impl.checkpoints.names import BILSTM, HEADS, Names, head_names
from keras_bert_impl.checkpoints.run_folder import AVERAGES, NAMES_FILE, STATE, variable_key
from keras_bert_impl.checkpoints.sources import FoundTensor, TensorSource, parts_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath
from keras_bert_impl.json_files import read_typed
from keras_bert_impl.models.adapters import Adapter
from keras_bert_impl.models.head_settings import LabelUnits

_WEIGHTS = "weights"
_ROOT = "embeddings/token_embeddings"
_WHAT, _ANOTHER = "a checkpoint of a run", "name another checkpoint of the run"


def weights_description(
    names: Sequence[str],
    label_units: Sequence[float] | None = None,
    adapter_scales: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The content of `weights.json`, without which only the run itself can read a checkpoint."""
    units = {} if label_units is None else {"label_units": [*label_units]}
    scales = {"adapter_scales": dict(adapter_scales)} if adapter_scales else {}
    return {"names": [*names], **units, **scales}


class _Description(TypedDict):
    names: list[str]
    label_units: NotRequired[tuple[float, float] | None]
    adapter_scales: NotRequired[dict[str, float]]


class RunCheckpointSource(TensorSource):
    """The weights of a run's checkpoint, averaged where the run keeps averages."""

    def __init__(self, folder: StrPath) -> None:
        self.location, folder = str(folder), Path(folder)
        self.files = parts_of(folder / STATE)
        names, self._units, self._scales = _read_names(folder)
        with reading_variables(folder, _WHAT, _ANOTHER) as load:
            self._reader = load(str(folder / STATE))
            self._shapes = self._reader.get_variable_to_shape_map()
            averages = variable_key(AVERAGES, 0) in self._shapes
            group = AVERAGES if averages else _WEIGHTS
            if variable_key(group, len(names)) in self._shapes:
                raise ValueError(f"{NAMES_FILE} names {len(names)} of its weights, not all")
            self._keys = {name: variable_key(group, n) for n, name in enumerate(names)}
            # The data file is opened now: what the run removes later can still be read.
            smallest = min(self._keys.values(), key=lambda key: math.prod(self._shapes[key]))
            self._reader.get_tensor(smallest)
        self.shapes = {name: tuple(self._shapes[key]) for name, key in self._keys.items()}
        rows = (row for head in (BILSTM, *HEADS) for row in head_names(head))
        self._others = {row.hugging_face: row.ours for row in rows if row.ours in self._keys}

    def find(self, names: Names) -> FoundTensor | None:
        """As in a model directory, a tagger's head answers to a classifier's names, too."""
        ours = names.ours if names.ours in self._keys else self._others.get(names.hugging_face)
        return None if ours is None else FoundTensor(ours, transposed=False)

    def read(self, name: str) -> np.ndarray:
        """A weight, of its own type, as the run's model directory will hold it."""
        array, layer = self._variable(name), name.removesuffix("/kernel")
        if layer != name and layer in self._scales:
            a, b = (self._variable(f"{layer}/lora_{part}") for part in "ab")
            array = array + Adapter(a, b, self._scales[layer]).change
        return array if self._units is None else self._units.fold(name, array)

    def _variable(self, name: str) -> np.ndarray:
        with reading_variables(self.location, _WHAT, _ANOTHER):
            return np.asarray(self._reader.get_tensor(self._keys[name]))


def _read_names(folder: Path) -> tuple[list[str], LabelUnits | None, dict[str, float]]:
    path = folder / NAMES_FILE
    if not path.exists():
        raise UserError(
            f"{path}: no such file, so that only its run can read this checkpoint; resume the run, "
            "whose next checkpoint has the file, or name its finished model/."
        )
    values = read_typed(path, _Description, _ANOTHER)
    names, units = values["names"], values.get("label_units")
    if _ROOT not in names:
        fault = "holds only the head that learns over a frozen encoder"
        raise UserError(f"{folder}: {fault}; name the model/ of the run when it is finished.")
    scales = values.get("adapter_scales", {})
    if not {f"{one}/lora_{part}" for one in scales for part in "ab"} <= {*names}:
        raise UserError(f"{path}: lacks the adapter of a scale; {_ANOTHER}.")
    return names, None if units is None else LabelUnits(*units), scales
