"""A model's outputs for a split, computed once: by any engine, or by several models together."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine, real_features
from keras_bert_impl.engines.quantized_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.locks import scratch_folder
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
        config: says which.
        head: the task's model with its weights.
        source: where they come from; the scales of int8 are kept there.
        rows: rows of a split; some of them give the scales of int8.

    Raises:
        UserError: the engine is not installed, or cannot compute the model.
    """
    if head.frozen is not None:
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


def other_members(config: FineTuningConfig, first: ModelSource) -> list[ModelSource]:
    """The models of an ensemble after the first one.

    Args:
        config: names them.
        first: whose tokens all of them read.

    Raises:
        UserError: there is no such model, or it reads other tokens or shorter rows.
    """
    sources = []
    for path in config.members[1:]:
        source = find_model(path, default_lower_case=first.text.do_lower_case)
        if source.text != first.text:
            raise UserError(
                f"{path}: has another vocabulary or casing than {config.members[0]}; models that "
                "answer together must read the same tokens."
            )
        source.config.check_length(config.max_seq_length, at_least=5)
        _tell_of_others(config, first, source)
        sources.append(source)
    return sources


def _tell_of_others(config: FineTuningConfig, first: ModelSource, other: ModelSource) -> None:
    """Warns where a model keeps other options than the first one, whose options all answer with."""
    used, kept = config.kept(first.config), config.kept(other.config)
    differing = sorted(name for name in {*used, *kept} if used.get(name) != kept.get(name))
    if differing:
        _LOGGER.warning(
            "%s was trained with another %s than %s; together they answer with those of the "
            "latter, or those that are given.",
            *(other.checkpoint, ", ".join(differing), first.checkpoint),
        )


def compute_outputs(
    split: str, outputs: RowOutputs, rows: RowEvaluation, models: Sequence[Callable[[], Predicts]]
) -> None:
    """Computes the outputs of all rows, of several models their mean.

    Args:
        split: what the rows are of, for the line of progress.
        outputs: where they are kept.
        rows: one pass over all rows.
        models: make the models, each after the one before it has answered and is let go.
    """
    progress = Progress(f"compute {split}", rows.num_rows * len(models), "rows")
    for make in models:
        predict = make()
        before = _times_compiled(predict)
        for numbers, values in zip(rows.numbers(), predict(rows), strict=True):
            outputs.add(numbers, values, 1 / len(models))
            compiled, before = _times_compiled(predict) - before, _times_compiled(predict)
            progress.advance(len(numbers), compiled=compiled > 0)
        del predict
    progress.close()


def _times_compiled(predict: Predicts) -> int:
    return predict.num_compiled if isinstance(predict, Prediction) else 0


@dataclass
class SplitOutputs:
    """Computes outputs, and keeps those that are asked for again; leave it as a context manager.

    Attributes:
        folder: where files of outputs stand as long as they are needed.
        rows: the rows of each split.
        inputs: what the model reads of them.
        models: make what answers, one or several; see `compute_outputs`.
        head: says which outputs are of tokens.
        fixed_length: pads all batches to it; otherwise each to one of a few lengths.
    """

    folder: Path
    rows: Mapping[str, RowSet]
    inputs: Mapping[str, BatchRows]
    models: Sequence[Callable[[], Predicts]]
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
        """The outputs for a split, in files that are gone after the block.

        Args:
            split: its name.
            batch_size: rows computed at once.
            keep: the same outputs, of the same weights, will be asked for again.
        """
        if split in self._kept:
            yield self._kept[split]
            return
        source = RowEvaluation(self.inputs[split], batch_size, self.fixed_length)
        if split not in self._padding_told:
            self._padding_told.add(split)
            log_padding(split, source.padding_share())
        with ExitStack() as folders:
            folder = folders.enter_context(scratch_folder(self.folder, ".outputs"))
            outputs = RowOutputs(folder, self.rows[split], self.head.token_outputs)
            compute_outputs(split, outputs, source, self.models)
            if keep:
                self._kept[split] = outputs
                self._folders.push(folders.pop_all())
            yield outputs
