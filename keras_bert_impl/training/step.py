"""One optimizer step, the same mathematics however the batch is split, and its inputs."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from keras_bert_impl.compat import gradients_of_this_graph, merge_call
from keras_bert_impl.cpu_kernels.training import update_step_of
from keras_bert_impl.layers.dropout import random_address
from keras_bert_impl.layers.kernels import PLAIN
from keras_bert_impl.training.batches import (
    Batch,
    PhasedBatches,
    call_length,
    distribute,
    share_of,
    split_batch,
    stack_batches,
    traced_open,
)
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import Objective
from keras_bert_impl.training.state import LossScale, TrainingState

OF_THE_STEP = ("stop_votes", "save_votes", "gradient_norm", *LossScale.FIGURES)
"""What every step says besides what its objective measures; the votes come first."""

_SHARED = ("step", "seed", "learning_rate", "votes")  # numbers that are the same for every replica


class TrainingStep:
    """Forward, backward, sum over replicas and micro-batches, one clip, one update.

    Every part's loss is already divided by what the whole batch counts, so gradients only add up.
    They are clipped by the global norm *after* the sum, and each replica applies the same update.
    """

    def __init__(
        self,
        state: TrainingState,
        objective: Objective,
        config: TrainingConfig,
        open_features: frozenset[str] = frozenset(),
    ) -> None:
        self._model, self._objective = state.model, objective
        self._open_features = open_features
        self._optimizer, self._loss_scale = state.optimizer, state.loss_scale
        self.devices, self.config = state.devices, config
        self._variables = [variable.value for variable in state.model.trainable_variables]
        self._weights = [weight.value for weight in state.model.weights]
        self._averages = state.averages
        self._update_step = update_step_of(state.optimizer, self.devices.kernels or PLAIN)
        self._metric_names: list[str] = []
        # Nothing here needs autograph: branches and loops are TensorFlow's own.
        self._part = tf.function(
            self._part_gradients, jit_compile=self.devices.use_xla or None, autograph=False
        )
        # With a ramp the number of micro-batches is open after two traces.
        ramp = bool(config.batch_ramp)
        self._one = tf.function(self._one_step, autograph=False, reduce_retracing=ramp)
        self._many = tf.function(self._many_steps, autograph=False, reduce_retracing=ramp)

    def run(
        self, features: Any, numbers: Mapping[str, Any], *, stop: bool = False, save: bool = False
    ) -> list[Any]:
        """Takes the steps that `prepare` made ready, all in one compiled call.

        Gives a float32 vector a step, perhaps still being computed; `metrics` reads it. What one
        worker wants, a stop or a save, all see in the sums `stop_votes` and `save_votes`.
        """
        count = len(numbers["step"])
        votes = np.array([[stop, save]], np.float32) / self.devices.replicas
        numbers = {**numbers, "votes": tf.constant(np.repeat(votes, count, axis=0))}
        if count == 1:
            strategy, names = self.devices.strategy, self._open_features
            one = traced_open(self._one, strategy, names, features, numbers)
            return [one(features, numbers)]
        return tf.unstack(self._many(features, numbers), num=count)

    def metrics(self, row: Any) -> dict[str, float]:
        """Gives a step's figures their names, the objective's first; waits until they are computed.

        `gradient_norm` is that before clipping, `skipped_steps` are those so far.
        """
        return dict(zip(self._metric_names, map(float, row.numpy()), strict=True))

    def prepare(
        self,
        batches: Sequence[Batch],
        first_step: int,
        learning_rates: Sequence[float],
        whole: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        """Splits the batches, hands each replica its part, counts what losses are divided by.

        `whole` says that every worker has whole batches, of which it takes its share.
        """
        devices, micro_batches = self.devices, self.config.accumulation_steps
        if self.config.batch_ramp:
            rows = len(next(iter(batches[0].values())))
            micro_batches = rows // self.config.rows_read_at_once
        if whole:
            batches = [share_of(batch, devices.worker, devices.workers) for batch in batches]
        parts = [split_batch(batch, devices.own_replicas, micro_batches) for batch in batches]
        counts = stack_batches([self._objective.normalizers(batch) for batch in batches])
        numbers = {name: tf.constant(array) for name, array in counts.items()}
        if devices.workers > 1:
            numbers |= self._counted_by_worker(counts)
        numbers |= self._of_all_replicas(first_step, learning_rates)
        # [steps, replicas, micro-batches, rows] -> a replica gets [steps, micro-batches, rows]
        first = devices.worker * devices.own_replicas
        return distribute(devices.strategy, stack_batches(parts), axis=1, first=first), numbers

    def _of_all_replicas(self, first_step: int, rates: Sequence[float]) -> dict[str, Any]:
        """The numbers of each step that the data have no part in; the run's seed is one of them.

        As a constant it would make programs of their own for each seed.
        """
        return {
            "step": tf.range(first_step, first_step + len(rates), dtype=tf.int64),
            "seed": tf.constant(self.config.seed, tf.int64, [len(rates)]),
            "learning_rate": tf.constant(rates, tf.float32),
        }

    def _counted_by_worker(self, counts: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Puts a worker's counts on its first replica, so that the sum over replicas is global."""
        devices = self.devices
        own = {
            name: np.stack([array, *[np.zeros_like(array)] * (devices.own_replicas - 1)])
            for name, array in counts.items()
        }
        first = devices.worker * devices.own_replicas
        return dict(distribute(devices.strategy, own, first=first))

    def _many_steps(self, features: Any, numbers: Mapping[str, Any]) -> Any:
        steps = numbers["step"]
        count = steps.shape[0] or tf.shape(steps)[0]  # calls of several lengths share a trace
        _, rows = tf.while_loop(
            lambda index, _rows: index < count,
            lambda index, rows: (index + 1, rows.write(index, self._at(features, numbers, index))),
            (tf.constant(0), tf.TensorArray(tf.float32, size=count)),
            parallel_iterations=1,
        )
        return rows.stack()  # [steps, metrics]

    def _one_step(self, features: Any, numbers: Mapping[str, Any]) -> Any:
        return self._at(features, numbers, 0)

    def _at(self, features: Any, numbers: Mapping[str, Any], index: Any) -> Any:
        shared = {name: numbers[name][index] for name in _SHARED}
        counts = {name: values for name, values in numbers.items() if name not in _SHARED}
        arguments = (features, counts, shared, index)
        with gradients_of_this_graph():
            values = self.devices.strategy.run(self._replica_step, args=arguments)
        return self.devices.strategy.experimental_local_results(values)[0]

    def _replica_step(
        self, features: Any, counts: Mapping[str, Any], shared: Mapping[str, Any], index: Any
    ) -> Any:
        """Runs one replica's part of a step; returns the metrics, the same on every replica."""
        context = tf.distribute.get_replica_context()
        features = {name: values[index] for name, values in features.items()}
        counted = tf.stack([values[index] for values in counts.values()])
        if self.devices.workers > 1:  # each knows the counts of its own share only
            counted = context.all_reduce(tf.distribute.ReduceOp.SUM, counted)
        numbers = {**shared, **dict(zip(counts, tf.unstack(counted), strict=True))}
        gradients, metrics = self._replica_gradients(
            features, numbers, context.replica_id_in_sync_group
        )
        metrics = tf.concat([metrics, numbers["votes"]], axis=0)
        *gradients, metrics = context.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, metrics])
        scale = self._loss_scale.value()  # the one of this step: the update may change it
        gradients = self._loss_scale.unscale(gradients)
        norm = tf.linalg.global_norm(gradients)
        factor = self._clip_factor(norm)
        gradients = [gradient * factor for gradient in gradients]
        merge_call(self._update, self.devices.strategy, gradients, norm, shared)
        return tf.concat([metrics, [norm], self._loss_scale.figures(scale)], axis=0)

    def _replica_gradients(self, features: Any, numbers: Any, replica: Any) -> tuple[list, Any]:
        """Adds up gradients and metrics over this replica's micro-batches."""
        replica = tf.cast(replica, tf.int64)

        def part(index: Any) -> tuple[list[Any], Any]:
            place = (numbers["seed"], numbers["step"], replica, tf.cast(index, tf.int64))
            address = tf.stack(place)
            rows = {name: values[index] for name, values in features.items()}
            return self._part(rows, numbers, address, self._loss_scale.value())

        total = part(tf.constant(0))
        count = self.config.accumulation_steps
        if self.config.batch_ramp:
            count = tf.shape(next(iter(features.values())))[0]
        elif count == 1:
            return total
        # Without this TensorFlow may compute the first two parts at once.
        with tf.control_dependencies([*total[0], total[1]]):
            second = tf.identity(1)
        _, *total = tf.while_loop(
            lambda index, *_: index < count,
            lambda index, *sums: (
                index + 1,
                *tf.nest.map_structure(tf.add, tuple(sums), part(index)),
            ),
            (second, *total),
            parallel_iterations=1,
        )
        return tuple(total)

    def _part_gradients(self, rows: Any, numbers: Any, address: Any, scale: Any) -> tuple:
        """One micro-batch: gradients of the scaled loss, and the metrics as one vector."""
        with random_address(address), tf.GradientTape() as tape:
            inputs = {name: rows[name] for name in self._objective.input_names}
            outputs = self._objective.outputs(self._model, inputs)
            loss, metrics = self._objective.loss(outputs, rows, numbers)
            scaled = loss * scale
            gradients = tape.gradient(scaled, self._variables)
        metrics = {"loss": loss, **metrics}
        self._metric_names = [*metrics, *OF_THE_STEP]
        dense = self._dense(gradients)
        return dense, tf.stack([tf.cast(value, tf.float32) for value in metrics.values()])

    def _dense(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients that there are; a variable that the loss does not reach stays as it is."""
        self._reached = [number for number, one in enumerate(gradients) if one is not None]
        return [tf.convert_to_tensor(gradients[number]) for number in self._reached]

    def _clip_factor(self, norm: Any) -> Any:
        limit = tf.constant(self.config.clip_norm, tf.float32)
        return limit / tf.maximum(norm, limit)

    def _update(self, strategy: Any, gradients: Sequence[Any], norm: Any, numbers: Any) -> None:
        """Applies the update to every replica's copy, unless float16 overflowed."""
        if strategy.num_replicas_in_sync > 1 and not isinstance(norm, tf.Tensor):
            norm = strategy.experimental_local_results(norm)[0]
        # With another precision the loop stops at a value that is not finite: no branch needed.
        if not self._loss_scale.dynamic:
            self._apply(strategy, gradients, numbers)
            return
        finite = tf.math.is_finite(norm)
        tf.cond(finite, lambda: self._apply(strategy, gradients, numbers), tf.no_op)
        self._loss_scale.update(finite)

    def _apply(self, strategy: Any, gradients: Sequence[Any], numbers: Any) -> Any:
        step = tf.cast(numbers["step"], tf.int32)
        if self._loss_scale.dynamic:  # moments know nothing of the steps that were skipped
            step -= tf.cast(self._loss_scale.skipped.read_value(), tf.int32)
        self._optimizer.iterations.assign(step)
        for number, gradient in zip(self._reached, gradients, strict=True):
            strategy.extended.update(
                self._variables[number],
                lambda variable, value, rate: self._update_step(value, variable, rate),
                args=(gradient, numbers["learning_rate"]),
                group=False,
            )
        self._average(strategy, step)
        return tf.no_op()

    def _average(self, strategy: Any, step: Any) -> None:
        """Moves every weight's average towards the weight; `step` counts the steps before this."""
        if not self._averages:
            return
        done = tf.cast(step, tf.float32)
        # The first steps' weights are soon forgotten, as in TensorFlow's own moving average.
        decay = tf.minimum(self.config.ema_decay, (1.0 + done) / (10.0 + done))
        for average, weight in zip(self._averages, self._weights, strict=True):
            strategy.extended.update(
                average,
                lambda old, new, share: old.assign_sub(share * (old - new)),
                args=(weight, 1.0 - decay),
                group=False,
            )


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A few steps' inputs, ready on the devices."""

    first_step: int  # the steps done before
    features: Any  # each replica's part of the batches
    numbers: Any  # learning rates, normalizers and step numbers
    learning_rates: tuple[float, ...]
    examples: int  # rows of each batch, those of other workers included
    tokens: int  # positions of each batch, padding included; 0 where there is no `input_mask`
    padding_share: float  # of this worker's positions
    read: int = 0  # the batches that were read up to its end, or the parts of them with a ramp
    shapes: frozenset[tuple[int, ...]] = frozenset()  # of the features of a batch

    def at_rate(self, rate: float) -> Self:
        """The same with another learning rate."""
        rates = (rate,) * len(self.learning_rates)
        numbers = {**self.numbers, "learning_rate": tf.constant(rates, tf.float32)}
        return dataclasses.replace(self, numbers=numbers, learning_rates=rates)


def chunks(
    step: TrainingStep,
    batches: PhasedBatches,
    config: TrainingConfig,
    rate: Callable[[int], float],
    start: int,
    end: int,
    parts: Callable[[int], int] = lambda _step: 1,
    read: int | None = None,
    longest: Callable[[int], int] = int,
) -> Iterator[Chunk]:
    """Prepares the inputs of the steps from `start` to `end`; a thread may run this.

    With a ramp a batch is several `parts` of the data, of which so many were `read` before. The
    `longest` call may be shorter than `iterations_per_loop`.
    """
    read = start if read is None else read
    stream = batches.batches_from(read)
    devices = step.devices
    whole = batches.num_workers == 1 and devices.workers > 1
    stops = (config.steps_between_saves, config.steps_between_evaluations)
    turns = (*batches.boundaries, *config.turns)
    while start < end:
        steps = longest(config.iterations_per_loop)
        count = call_length(start, end, steps, stops, turns)
        each = parts(start)
        chunk = [_joined(list(itertools.islice(stream, each))) for _ in range(count)]
        rates = tuple(rate(done) for done in range(start, start + count))
        features, numbers = step.prepare(chunk, start, rates, whole)
        positions, padding = _sizes(chunk[0])
        shapes = frozenset(array.shape for array in chunk[0].values())
        examples = each * batches.phase_of(start)[0].batches.batch_size
        if not whole:
            positions *= batches.num_workers  # those of other workers are of about the same length
        read += count * each
        yield Chunk(start, features, numbers, rates, examples, positions, padding, read, shapes)
        start += count


def _joined(parts: Sequence[Batch]) -> Batch:
    """One batch of the rows of several."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _sizes(batch: Batch) -> tuple[int, float]:
    """The positions of a batch (0 where none are known), and the share of padding."""
    masks = [array for name, array in batch.items() if name.startswith("input_mask")]
    positions = sum(mask.size for mask in masks)
    tokens = sum(np.count_nonzero(mask) for mask in masks)
    return positions, 1.0 - tokens / positions if positions else 0.0


def make_step(
    state: TrainingState,
    objective: Objective,
    config: TrainingConfig,
    open_features: frozenset[str] = frozenset(),
) -> TrainingStep:
    """The step of an objective: its own one where rows of a batch are compared with each other.

    A state that was trained before has its step with all that was traced of it, if that is the same
    for this run; a seed, a rate and a number of steps are no part of it.
    """
    learning = tuple(id(weight) for weight in state.model.trainable_variables)
    parts = (config.accumulation_steps, bool(config.batch_ramp))
    traced: tuple[Any, ...] = (objective, open_features, learning, *parts)
    traced += (config.clip_norm, config.ema_decay)
    if objective.couples_rows:
        from keras_bert_impl.training.vector_step import VectorStep

        kind: type[TrainingStep] = VectorStep
        traced += (config.train_batch_size,)  # its parts have as many texts as fit into it
    else:
        kind = TrainingStep
    if state.step_of is None or state.step_of[0] != traced:
        state.step_of = traced, kind(state, objective, config, open_features)
    step: TrainingStep = state.step_of[1]
    step.config = config
    return step
