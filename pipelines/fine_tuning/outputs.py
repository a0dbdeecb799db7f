"""A model's outputs for a split, computed once, by any engine."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine, real_features
from keras_bert_impl.engines.quantized_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.locks import scratch_folder
from keras_bert_impl.models.head_settings import frozen_features
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.batches import EvaluationSource
from keras_bert_impl.training.evaluation import Prediction
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.task import Head
from pipelines.inputs.row_batches import BatchRows, RowEvaluation
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.row_set import RowSet

_LOGGER = logging.getLogger(__name__)


def log_padding(split: str, share: float) -> None:
    """Logs the share of padding in what is computed for a split."""
    _LOGGER.info("%s: %.1f %% of the computed positions are padding", split, 100 * share)


Predicts = Callable[[EvaluationSource], Iterator[Mapping[str, NDArray]]]


def engine_prediction(
    config: FineTuningConfig, head: Head, source: ModelSource, rows: BatchRows
) -> Predicts:
    """The outputs of a task's model, by the engine of the options.

    Args:
        source: where they come from; the scales of int8 are kept there.
        rows: rows of a split; some of them give the scales of int8.
    """
    if frozen_features(source.config) is not None:
        raise UserError(
            f"`engine={config.engine}` computes no BiLSTM over frozen layers; leave it out."
        )
    names = head.objective.input_names
    folder: Path = source.folder
    engine = open_engine(
        head.model,
        config.engine,
        config.engine_precision,
        folder,
        partial(_calibration, rows, names),
    )
    return EnginePrediction(engine, names)


def _calibration(rows: BatchRows, names: tuple[str, ...]) -> list[Features]:
    features: list[Features] = []
    for number in evenly_spread(range(len(rows)), CALIBRATION_ROWS):
        one = np.array([number])
        batch = rows.read(one).padded(int(rows.lengths[number]))
        features.append(real_features(batch, names))
    return features


def compute_outputs(
    split: str, outputs: RowOutputs, rows: RowEvaluation, predict: Predicts
) -> None:
    """Computes the outputs of all rows."""
    progress, before = Progress(f"compute {split}", rows.num_rows, "rows"), _times_compiled(predict)
    for numbers, values in zip(rows.numbers(), predict(rows), strict=True):
        outputs.add(numbers, values)
        compiled, before = _times_compiled(predict) - before, _times_compiled(predict)
        progress.advance(len(numbers), compiled=compiled > 0)
    progress.close()


def _times_compiled(predict: Predicts) -> int:
    return predict.num_compiled if isinstance(predict, Prediction) else 0


@dataclass
class SplitOutputs:
    """Computes outputs, and keeps those that are asked for again; leave it as a context manager.

    Attributes:
        folder: where files of outputs stand as long as they are needed.
        rows: the rows of each split.
        predict: the model.
        head: says which outputs are of tokens.
        fixed_length: pads all batches to it; otherwise each to one of a few lengths.
    """

    folder: Path
    rows: Mapping[str, RowSet]
    predict: Predicts
    head: Head
    fixed_length: int | None
    _kept: dict[str, RowOutputs] = field(default_factory=dict)
    _folders: ExitStack = field(default_factory=ExitStack)
    _padding_told: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept.clear()
        self._folders.close()

    @contextmanager
    def of(self, split: str, batch_size: int, *, keep: bool = False) -> Iterator[RowOutputs]:
        """The outputs for a split, in files that are gone after the block."""
        if split in self._kept:
            yield self._kept[split]
            return
        source = RowEvaluation(self.rows[split], batch_size, self.fixed_length)
        if split not in self._padding_told:
            self._padding_told.add(split)
            log_padding(split, source.padding_share())
        with ExitStack() as folders:
            folder = folders.enter_context(scratch_folder(self.folder, ".outputs"))
            outputs = RowOutputs(folder, self.rows[split], self.head.token_outputs)
            compute_outputs(split, outputs, source, self.predict)
            if keep:
                self._kept[split] = outputs
                self._folders.push(folders.pop_all())
            yield outputs
