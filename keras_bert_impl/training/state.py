"""The state that a run changes step by step: everything that a checkpoint must keep.

In float16 the scale of the loss belongs to it: gradients are kept away from 0, and steps skipped
where it overflows.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_bert_impl.checkpoints.run_folder import AVERAGES
from keras_bert_impl.optimizers.bert_adamw import BertAdamW, Lamb
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.strategy import Devices, present_devices

_START, _PATIENCE, _HIGHEST = 2.0**15, 2000, 2.0**24


class LossScale:
    """Multiplies the loss, divides the gradients, and finds the largest scale that holds.

    After `patience` good steps in a row the scale doubles; a step whose gradients are not finite
    is skipped and halves it. Other precisions than float16 use scale 1 and change nothing.

    Example:
        >>> scale = LossScale(dynamic=True, patience=1)
        >>> scale.update(tf.constant(False))
        >>> float(scale.value()), float(scale.skipped)
        (16384.0, 1.0)
    """

    FIGURES = ("loss_scale", "skipped_steps")

    def __init__(self, dynamic: bool, patience: int = _PATIENCE) -> None:
        self.dynamic, self._patience = dynamic, patience
        start = _START if dynamic else 1.0
        self.scale = _scalar(start, "loss_scale")
        self.good_steps = _scalar(0.0, "good_steps")
        self.skipped = _scalar(0.0, "skipped_steps")

    @property
    def variables(self) -> list[Any]:
        return [self.scale, self.good_steps, self.skipped]

    def value(self) -> Any:
        """The factor on the loss, float32 scalar."""
        return self.scale.read_value() if self.dynamic else tf.constant(1.0)

    def unscale(self, gradients: list[Any]) -> list[Any]:
        """Divides gradients of the scaled loss."""
        if not self.dynamic:
            return gradients
        factor = 1.0 / self.value()
        return [gradient * factor for gradient in gradients]

    def figures(self, used: Any) -> Any:
        """The scale that a step used and the number of skipped steps, float32 [2]."""
        if not self.dynamic:
            return tf.constant([1.0, 0.0])
        return tf.stack([used, self.skipped.read_value()])

    def reset(self) -> None:
        """Starts anew: another precision had no use for the scale."""
        self.scale.assign(_START if self.dynamic else 1.0)
        self.good_steps.assign(0.0)

    def update(self, finite: Any) -> None:
        """Counts a step; called once a step outside of the replicas."""
        good = tf.where(finite, self.good_steps + 1.0, 0.0)
        grow = good >= self._patience
        larger = tf.minimum(self.scale * 2.0, _HIGHEST)
        kept = tf.where(grow, larger, self.scale + 0.0)
        self.scale.assign(tf.where(finite, kept, tf.maximum(self.scale * 0.5, 1.0)))
        self.good_steps.assign(tf.where(grow, 0.0, good))
        self.skipped.assign_add(tf.where(finite, 0.0, 1.0))


def _scalar(value: float, name: str) -> Any:
    return tf.Variable(
        value,
        name=name,
        dtype=tf.float32,
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def make_optimizer(config: TrainingConfig) -> Any:
    """Makes the optimizer that `config` names.

    Example:
        >>> config = TrainingConfig(
        ...     learning_rate=1e-4, num_train_steps=10, num_warmup_steps=2, train_batch_size=8
        ... )
        >>> make_optimizer(config).name
        'bert_adamw'
    """
    kind = {"adamw": BertAdamW, "lamb": Lamb}[config.optimizer]
    return kind(
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        bias_correction=config.bias_correction,
        layer_decay=config.layer_decay,
    )


class TrainingState:
    """A model's weights, its optimizer's moments, the loss scale and the number of steps done.

    There is no random state: dropout and the order of the data are functions of (seed, step). The
    model was built in the scope of the devices' strategy, and gets their kernels. With `ema_decay`
    there are `averages`, one of every weight of the model.
    """

    def __init__(self, model: Any, config: TrainingConfig, devices: Devices | None = None) -> None:
        self.model, self.step = model, 0
        self.step_of: tuple[Any, Any] | None = None  # the `TrainingStep`, and what it was made for
        self.devices = devices = devices or present_devices(config)
        devices.set_kernels(model)
        with devices.strategy.scope():
            self.optimizer = make_optimizer(config)
            self.optimizer.build(model.trainable_variables)
            self.loss_scale = LossScale(dynamic=config.precision == "float16")
            self.averages = [
                tf.Variable(tf.zeros(weight.shape, weight.value.dtype), trainable=False)
                for weight in (model.weights if config.ema_decay else ())
            ]
        self.start_averages()

    def begin_anew(self) -> None:
        """The state before the first step, with the present weights of the model."""
        self.step = 0
        for moment in (*self.optimizer.first_moments, *self.optimizer.second_moments):
            moment.value.assign(tf.zeros(moment.shape, moment.dtype))
        self.loss_scale.reset()
        self.loss_scale.skipped.assign(0.0)
        self.start_averages()

    def variables(self) -> dict[str, list[Any]]:
        """The `tf.Variable`s by group, in an order that follows from the model alone."""
        return {
            "weights": [weight.value for weight in self.model.weights],
            "adam_m": [moment.value for moment in self.optimizer.first_moments],
            "adam_v": [moment.value for moment in self.optimizer.second_moments],
            "loss_scale": self.loss_scale.variables,
            **({AVERAGES: self.averages} if self.averages else {}),
        }

    def start_averages(self) -> None:
        """Gives the averages the present weights, as before the first step."""
        for average, weight in self._averaged_weights():
            average.assign(local_copy(weight))

    def take_averages(self) -> None:
        """Gives the model the averaged weights, for good; nothing where there are none."""
        for average, weight in self._averaged_weights():
            weight.assign(local_copy(average))

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside the block the model has the averaged weights, where there are any."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        """Weights become averages and averages weights, one tensor after the other."""
        for average, weight in self._averaged_weights():
            held = tf.identity(local_copy(weight))
            weight.assign(local_copy(average))
            average.assign(held)

    def _averaged_weights(self) -> list[tuple[Any, Any]]:
        """Each average with its weight."""
        weights = [weight.value for weight in self.model.weights] if self.averages else []
        return list(zip(self.averages, weights, strict=True))


def local_copy(variable: Any) -> Any:
    """This process's copy of a variable; all replicas hold the same."""
    distributed = isinstance(variable, tf.distribute.DistributedValues)
    return variable.values[0] if distributed else variable
