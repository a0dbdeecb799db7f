"""Measuring a model on a finite set."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.batches import (
    EXAMPLE_WEIGHTS,
    EvaluationSource,
    distribute,
    split_batch,
    traced_open,
)
from keras_bert_impl.training.objectives import Objective


class Evaluation:
    """Measures the loss and the objective's metrics over whole sets; compiled once.

    A set is read twice: first to count what the sums are divided by, then to add them up. So the
    figures are exact means over the set, not means of batches' means. A model is built in the scope
    of its strategy, which shares each batch over its replicas.
    """

    def __init__(self, model: Any, objective: Objective, strategy: Any = None) -> None:
        self._model, self._objective = model, objective
        self._strategy = strategy or tf.distribute.get_strategy()
        self._measure = tf.function(self._measure_batch, autograph=False)

    def __call__(self, source: EvaluationSource) -> dict[str, float]:
        """The `loss` and the objective's metrics of one set; its padding rows count nowhere."""
        counts: dict[str, Any] = {}
        for batch in source.batches():
            for name, count in self._objective.normalizers(batch).items():
                counts[name] = counts.get(name, np.float64(0)) + count
        normalizers = {name: tf.constant(count, tf.float32) for name, count in counts.items()}
        totals: dict[str, float] = {}
        for batch in source.batches():
            rows = _shared(self._strategy, batch)
            names = source.open_features
            measure = traced_open(self._measure, self._strategy, names, rows, normalizers)
            values = measure(rows, normalizers)
            for name, value in values.items():
                totals[name] = totals.get(name, 0.0) + float(value)
        return totals

    def _measure_batch(self, rows: Any, normalizers: Any) -> dict[str, Any]:
        values = self._strategy.run(self._measure_part, args=(rows, normalizers))
        return {
            name: self._strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)
            for name, value in values.items()
        }

    def _measure_part(self, rows: Any, normalizers: Any) -> dict[str, Any]:
        inputs = {name: rows[name] for name in self._objective.input_names}
        outputs = self._model(inputs, training=False)
        loss, metrics = self._objective.loss(outputs, rows, normalizers)
        return {"loss": loss, **metrics}


class Prediction:
    """Runs a model over whole sets, batch by batch; compiled once for each shape of a batch."""

    def __init__(
        self, model: Any, input_names: tuple[str, ...] = ENCODER_INPUTS, strategy: Any = None
    ) -> None:
        self._model, self._input_names = model, input_names
        self._strategy = strategy or tf.distribute.get_strategy()
        self._outputs = tf.function(self._outputs_of_batch, autograph=False)

    def __call__(self, source: EvaluationSource) -> Iterator[dict[str, np.ndarray]]:
        """Gives the outputs for the real rows of each batch, [rows, ...] by name."""
        for batch in source.batches():
            count = len(next(iter(batch.values())))
            real = np.asarray(batch.get(EXAMPLE_WEIGHTS, np.ones(count))) > 0
            rows = _shared(self._strategy, batch)
            compute = traced_open(self._outputs, self._strategy, source.open_features, rows)
            outputs = compute(rows)
            yield {name: value.numpy()[: len(real)][real] for name, value in outputs.items()}

    def _outputs_of_batch(self, rows: Any) -> dict[str, Any]:
        values = self._strategy.run(self._outputs_of_part, args=(rows,))
        return {name: self._strategy.gather(value, axis=0) for name, value in values.items()}

    def _outputs_of_part(self, rows: Mapping[str, Any]) -> Any:
        inputs = {name: rows[name] for name in self._input_names}
        return self._model(inputs, training=False)


def _shared(strategy: Any, batch: Mapping[str, np.ndarray]) -> Any:
    parts = split_batch(batch, strategy.num_replicas_in_sync, 1)
    return distribute(strategy, {name: array[:, 0] for name, array in parts.items()})
