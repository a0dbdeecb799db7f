"""What a run changes, step by step: everything that a checkpoint must keep."""

from typing import Any

from keras_bert_impl.optimizers.bert_adamw import BertAdamW
from keras_bert_impl.optimizers.lamb import Lamb
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.loss_scale import LossScale
from keras_bert_impl.training.strategy import Devices, present_devices


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

    There is no random state: dropout and the order of the data are functions of (seed, step).

    Args:
        model: a Keras model, built in the strategy's scope; gets the kernels of the devices.
        config: names the optimizer and the precision.
        devices: where to compute; by default the present strategy's.

    Attributes:
        step: optimizer steps done.
    """

    def __init__(self, model: Any, config: TrainingConfig, devices: Devices | None = None) -> None:
        self.model, self.step = model, 0
        self.devices = devices = devices or present_devices(config)
        devices.lend_kernels(model)
        with devices.strategy.scope():
            self.optimizer = make_optimizer(config)
            self.optimizer.build(model.trainable_variables)
            self.loss_scale = LossScale(dynamic=config.precision == "float16")

    def variables(self) -> dict[str, list[Any]]:
        """The `tf.Variable`s by group, in an order that follows from the model alone."""
        return {
            "weights": [weight.value for weight in self.model.weights],
            "adam_m": [moment.value for moment in self.optimizer.first_moments],
            "adam_v": [moment.value for moment in self.optimizer.second_moments],
            "loss_scale": self.loss_scale.variables,
        }
