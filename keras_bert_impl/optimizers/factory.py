"""From a run's settings to its optimizer."""

from typing import Any

from keras_bert_impl.optimizers.bert_adamw import BertAdamW
from keras_bert_impl.optimizers.lamb import Lamb
from keras_bert_impl.training.config import TrainingConfig


def make_optimizer(config: TrainingConfig) -> Any:
    """Makes the optimizer that `config` names.

    Example:
        >>> config = TrainingConfig(
        ...     learning_rate=1e-4, num_train_steps=10, num_warmup_steps=2, batch_size=8
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
