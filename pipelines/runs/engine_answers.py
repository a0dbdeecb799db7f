"""Answers of a fine-tuned model that another engine than TensorFlow computes."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.open_engine import open_engine
from keras_bert_impl.engines.prediction import EnginePrediction, real_features
from keras_bert_impl.engines.quantized_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import EvaluationSource
from pipelines.inputs.row_batches import BatchRows
from pipelines.runs.fine_tuning_config import FineTuningConfig
from pipelines.tasks.task import Head

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
