"""One optimizer step of a loss that compares all vectors of a batch with one another.

Such a loss is no sum over parts of a batch: in-batch negatives see every row. Its gradient with
respect to the vectors is computed once, on the vectors of the whole batch, and then given to the
texts part by part, which are a sum again (the chain rule; GradCache, Gao et al., 2021). So N
replicas, M parts and one big batch are the same step, and memory need not grow with the batch.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.layers.dropout import random_address
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.batches import Batch, distribute, stack_batches
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import Arrays, Figures, Objective
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import OF_THE_STEP, TrainingStep

PLACES, LABELS = "places", "labels"
"""Features of a batch of vectors: see `VectorObjective`."""


def part_feature(name: str, part: int) -> str:
    """How a batch calls a feature of one of its parts.

    Example:
        >>> part_feature("input_ids", 2)
        'input_ids/2'
    """
    return f"{name}/{part}"


class VectorObjective(Objective):
    """A loss of `keras_bert_impl.losses` over the vectors of a batch.

    A batch is parts of texts of like length, `part_feature(name, p)` int32 [replicas, texts of a
    part, length], and `places` int32 [rows, columns]: where each text's vector stands among all of
    them, those of a replica one part after the other. `labels` [rows] are there where the loss
    needs them. With `one_column` all columns are one, row after row, with a label each.
    """

    couples_rows = True

    def __init__(self, loss: Any, one_column: bool = False) -> None:
        self._loss, self._one_column = loss, one_column

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        return {"examples": np.float32(len(batch[PLACES]))}

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        """The loss of the whole batch; `outputs` has the vectors of all texts, [texts, size]."""
        del normalizers
        places, labels = batch[PLACES], batch.get(LABELS)
        count = places.shape[1]
        if self._one_column:
            places = tf.reshape(places, [-1, 1])
            labels, count = tf.repeat(labels, count), 1
        columns = [tf.gather(outputs["embedding"], places[:, one]) for one in range(count)]
        return self._loss(columns, labels), {}


class VectorStep(TrainingStep):
    """Embeds the parts, takes the loss of all vectors together, and sends its gradient back.

    With `accumulation_steps` of 1 all that the gradients need is kept from the first pass. With
    more each part is embedded a second time, with the same draws of dropout: the same numbers in
    the memory of one part.
    """

    def __init__(
        self,
        state: TrainingState,
        objective: Objective,
        config: TrainingConfig,
        open_features: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(state, objective, config, open_features)
        compiled = self.devices.use_xla or None
        # Parts differ in length: one trace of an open length serves all.
        options: dict[str, Any] = {"autograph": False, "reduce_retracing": True}
        self._embed = tf.function(self._vectors_of, jit_compile=compiled, **options)
        self._push = tf.function(self._pushed_back, jit_compile=compiled, **options)
        self._slopes = tf.function(self._loss_slopes, jit_compile=compiled, **options)

    def prepare(
        self,
        batches: Sequence[Batch],
        first_step: int,
        learning_rates: Sequence[float],
        whole: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        del whole  # every worker has the whole batch, and takes its replicas' texts
        replicas, shared = self.devices.replicas, (PLACES, LABELS)
        arrays = stack_batches(batches)
        for name in shared:
            if name in arrays:
                arrays[name] = np.repeat(arrays[name][:, None], replicas, axis=1)
        numbers = {
            "examples": tf.constant([len(batch[PLACES]) for batch in batches], tf.float32),
            **self._of_all_replicas(first_step, learning_rates),
        }
        # [steps, replicas, texts, length] -> a replica gets [steps, texts, length]
        return distribute(self.devices.strategy, arrays, axis=1), numbers

    def _replica_gradients(self, features: Any, numbers: Any, replica: Any) -> tuple[list, Any]:
        shared = {name: features[name] for name in (PLACES, LABELS) if name in features}
        replica = tf.cast(replica, tf.int64)
        parts = [
            (
                {name: features[part_feature(name, part)] for name in ENCODER_INPUTS},
                tf.stack([numbers["seed"], numbers["step"], replica, tf.constant(part, tf.int64)]),
            )
            for part in range(sum(name.startswith(ENCODER_INPUTS[0]) for name in features))
        ]
        cached = self.config.accumulation_steps > 1
        with contextlib.nullcontext() if cached else tf.GradientTape() as tape:
            own = self._vectors_in_turn(parts)
        slopes, loss = self._slopes(self._gathered(own), shared, self._loss_scale.value())
        slopes = tf.split(slopes, self.devices.replicas)  # of all texts, by replica
        slopes = slopes[0] if len(slopes) == 1 else tf.stack(slopes)[tf.cast(replica, tf.int32)]
        if tape is not None:
            gradients = self._dense(tape.gradient(own, self._variables, output_gradients=slopes))
        else:
            ends = tf.split(slopes, len(parts))
            gradients = []
            for part, end in zip(parts, ends, strict=True):
                # Each part is added before the next begins: memory is that of one.
                with tf.control_dependencies(gradients):
                    more = self._push(*tf.nest.map_structure(tf.identity, (*part, end)))
                sums = [tf.add(*two) for two in zip(gradients, more, strict=False)]
                gradients = sums or more
        self._metric_names = ["loss", *OF_THE_STEP]
        # Every replica has the loss of the whole batch; their sum is taken next.
        return gradients, tf.reshape(loss / self.devices.replicas, [1])

    def _vectors_in_turn(self, parts: Sequence[tuple[Any, Any]]) -> Any:
        """The vectors of this replica's texts, [texts, size], one part after the other."""
        done: list[Any] = []
        for part in parts:
            with tf.control_dependencies(done[-1:]):
                done.append(self._embed(*tf.nest.map_structure(tf.identity, part)))
        return tf.concat(done, axis=0)

    def _vectors_of(self, rows: Any, address: Any) -> Any:
        """The vectors of a part's texts: float32 [texts, size]."""
        with random_address(address):
            return tf.cast(self._model(rows, training=True)["embedding"], tf.float32)

    def _gathered(self, own: Any) -> Any:
        """The vectors of all replicas' texts, one replica after the other."""
        if self.devices.replicas == 1:
            return own
        return tf.distribute.get_replica_context().all_gather(own, axis=0)

    def _loss_slopes(self, vectors: Any, shared: Any, scale: Any) -> tuple[Any, Any]:
        """The gradient of the scaled loss with respect to all vectors, and the loss."""
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            loss, _ = self._objective.loss({"embedding": vectors}, shared, {})
            scaled = loss * scale
        return tf.convert_to_tensor(tape.gradient(scaled, vectors)), loss

    def _pushed_back(self, rows: Any, address: Any, slopes: Any) -> list[Any]:
        """The gradients of the weights by those of a part's vectors, which are embedded again."""
        with tf.GradientTape() as tape:
            vectors = self._vectors_of(rows, address)
        return self._dense(tape.gradient(vectors, self._variables, output_gradients=slopes))
