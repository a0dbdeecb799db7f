"""The vectors of a task's rows by an encoder that does not learn: computed once, kept on disk.

Each layer's vectors stand in a folder of their own, float32, four bytes for each token and each
number of the layer's width, mapped into memory when they are read. A folder's name has a hash of
what its vectors come from: the encoder's weights and sizes, the rows, the precision. So whatever
needs the same layer of the same rows finds it (another seed, another combination of layers), and a
changed model or text makes others. Vectors of other devices differ by rounding and are used again.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

import keras_bert_impl
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, whole_folder
from keras_bert_impl.json_files import read_sealed, sealed
from keras_bert_impl.locks import in_turn, scratch_folder
from keras_bert_impl.progress import Progress, format_count
from pipelines.inputs.row_batches import RowEvaluation
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.description import file_crc32c
from pipelines.records.row_set import RowSet
from pipelines.records.rows import Numbers, Rows

if TYPE_CHECKING:
    from keras_bert_impl.models.encoder import BertEncoder
    from keras_bert_impl.training.strategy import Devices


_LOGGER = logging.getLogger(__name__)

DESCRIPTION, VECTORS = "vectors.json", "vectors.npy"
_LOCK = ".kept-vectors.lock"  # scratch folders have a lock of their own
_NUMBER = np.dtype("<f4")


class RowVectors:
    """Rows with the kept vectors of their tokens beside what they held.

    Args:
        rows: the rows.
        layers: the vectors of each layer, float32 [tokens of all rows, width].
        name: what the vectors are called as a feature of the rows.
    """

    def __init__(self, rows: RowSet, layers: Sequence[NDArray], name: str) -> None:
        self._rows, self._layers, self._name = rows, layers, name
        self.examples, self.lengths = rows.examples, rows.lengths
        self._offsets = np.concatenate([[0], np.cumsum(rows.lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, numbers: Numbers) -> Rows:
        """Reads rows with their vectors, float32 [tokens of these rows, layers, width]."""
        rows = self._rows.read(numbers)
        spans = [slice(*self._offsets[[number, number + 1]]) for number in numbers]
        layers = [np.concatenate([layer[span] for span in spans]) for layer in self._layers]
        return replace(rows, tokens={**rows.tokens, self._name: np.stack(layers, axis=1)})


@dataclass(frozen=True)
class VectorStore:
    """Where an encoder's vectors are kept.

    Attributes:
        folder: several processes may share it.
        encoder: a `BertEncoder` made with `return_all_layers`; its weights do not change.
        devices: what computes.
        precision: in which it does.
        batch_size: rows computed at once.
    """

    folder: Path
    encoder: "BertEncoder"
    devices: "Devices"
    precision: str
    batch_size: int

    def vectors(self, split: str, rows: RowSet, layers: Sequence[int], name: str) -> RowVectors:
        """Computes the vectors of some layers for rows, or finds them computed.

        Args:
            split: what the rows are of, for names and the log.
            rows: they are read in batches of like lengths.
            layers: 0 is the embeddings' output, n that of block n.
            name: what the vectors are called as a feature of the rows.

        Raises:
            UserError: the disk is too small, or the folder cannot be written.
        """
        identity = encoder_identity(self.encoder)
        described = {layer: self._made_from(rows, layer, identity) for layer in layers}
        folders = {
            layer: self.folder / f"vectors-{split}-{_hash(made_from)}"
            for layer, made_from in described.items()
        }
        make_folder(self.folder)
        with in_turn(
            self.folder / _LOCK,
            lambda: _LOGGER.info("%s: waiting for another run's vectors", self.folder),
        ):
            shape = (int(rows.lengths.sum(dtype=np.int64)), self.encoder.config.hidden_size)
            missing = [x for x in layers if not _is_whole(folders[x], described[x], shape)]
            if missing:
                self._check_space(len(missing), shape)
                with scratch_folder(self.folder, ".vectors") as scratch:
                    self._compute(split, rows, missing, scratch)
                    for layer in missing:
                        _keep(_file(scratch, layer), folders[layer], described[layer])
            opened = [np.load(folders[layer] / VECTORS, mmap_mode="r") for layer in layers]
        _LOGGER.info(
            "%s: vectors of %d layers, %d computed now, %sB each",
            *(split, len(layers), len(missing), format_count(opened[0].nbytes)),
        )
        return RowVectors(rows, opened, name)

    def _made_from(self, rows: RowSet, layer: int, encoder: str) -> dict[str, Any]:
        """Everything that the vectors of a layer depend on, as JSON values."""
        return {
            "encoder": encoder,
            "rows": [[shard.crc32c, shard.bytes] for shard in rows.description.shards],
            "layer": layer,
            "precision": self.precision,
            "keras_bert_impl": keras_bert_impl.__version__,
        }

    def _check_space(self, layers: int, shape: tuple[int, int]) -> None:
        """Sees that the disk has room: writing to a mapped file that has none kills a process."""
        needed = layers * shape[0] * shape[1] * _NUMBER.itemsize
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise UserError(
                f"{self.folder}: the vectors of {layers} layers need {format_count(needed)}B, but "
                f"{format_count(free)}B are free; name another `work_dir`, or fewer `features`."
            )

    def _compute(self, split: str, rows: RowSet, layers: Sequence[int], folder: Path) -> None:
        """Writes a file for each layer."""
        from keras_bert_impl.models.feature_tagger import layer_name, layer_outputs
        from keras_bert_impl.training.evaluation import Prediction

        with self.devices.strategy.scope():
            model = layer_outputs(self.encoder, layers)
        self.devices.set_kernels(model)
        outputs = RowOutputs(folder, rows, map(layer_name, layers))
        source = RowEvaluation(rows, self.batch_size)
        progress = Progress(f"vectors of {split}", len(rows), "rows")
        predict = Prediction(model, strategy=self.devices.strategy)
        for numbers, values in zip(source.numbers(), predict(source), strict=True):
            outputs.add(numbers, values)
            progress.advance(len(numbers))
        progress.close()


def encoder_identity(encoder: "BertEncoder") -> str:
    """Tells one encoder from another by its weights and its sizes, wherever it was read from.

    The pooler stands above all layers; where a model comes without one, its weights are random.

    Returns:
        A SHA-256, hexadecimal.
    """
    sizes = {**encoder.config.to_dict(), "extra": None}
    digest = hashlib.sha256(json.dumps(sizes, sort_keys=True).encode())
    for weight in (one for one in encoder.weights if not one.path.startswith("pooler/")):
        digest.update(weight.path.encode())
        digest.update(np.ascontiguousarray(weight).data)
    return digest.hexdigest()


def _hash(made_from: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]


def _file(folder: Path, layer: int) -> Path:
    from keras_bert_impl.models.feature_tagger import layer_name

    return folder / f"{layer_name(layer)}.npy"


def _keep(file: Path, folder: Path, made_from: Mapping[str, Any]) -> None:
    with whole_folder(folder) as aside:
        file.rename(aside / VECTORS)
        note = {"made_from": made_from, "crc32c": file_crc32c(aside / VECTORS)}
        (aside / DESCRIPTION).write_text(sealed(note), encoding="utf-8")


class _Note(TypedDict):
    made_from: dict[str, Any]
    crc32c: str


def _is_whole(folder: Path, made_from: Mapping[str, Any], shape: tuple[int, int]) -> bool:
    """Whether the vectors are there in full, and every byte of them as it was written."""
    noted, file = read_sealed(folder / DESCRIPTION, _Note), folder / VECTORS
    if noted is None or noted["made_from"] != made_from or not file.is_file():
        return False
    if file_crc32c(file) != noted["crc32c"]:
        return False
    vectors = np.load(file, mmap_mode="r")
    return vectors.shape == shape and vectors.dtype == _NUMBER
