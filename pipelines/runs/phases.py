"""The data of a pre-training run: one phase, or a second one with longer sequences."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.phases import Phase
from pipelines.inputs.pretraining import PretrainingBatches


@dataclass(frozen=True, kw_only=True)
class PhaseConfig:
    """One stretch of the steps and its shards.

    Attributes:
        input_file: shards: paths or glob patterns.
        num_steps: how many optimizer steps.
        batch_size: examples of a step.
        learning_rate: the peak that the run's schedule has while the phase lasts.
        max_seq_length: pieces of a record.
        max_predictions_per_seq: masked places of a record.

    Raises:
        UserError: the learning rate is not more than 0.
    """

    input_file: tuple[str, ...]
    num_steps: int
    batch_size: int
    learning_rate: float
    max_seq_length: int
    max_predictions_per_seq: int

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise UserError(f"--phase2_learning_rate={self.learning_rate} must be more than 0.")


def open_phases(
    configs: Sequence[PhaseConfig],
    text: TextSettings,
    model_config: BertConfig,
    seed: int,
    shuffle: bool,
    worker: int = 0,
    num_workers: int = 1,
) -> list[Phase]:
    """Opens and checks the shards of every phase.

    Args:
        configs: the phases.
        text: vocabulary and casing, compared with the shards'.
        model_config: the model; every batch is compared with its tables.
        seed: of the order and of dynamic masking.
        shuffle: False reads in file order.
        worker: this process's number among the workers; it reads its share of each batch only.
        num_workers: how many workers there are.

    Raises:
        UserError: shards that are missing, broken or made for another model.
    """
    return [
        Phase(
            PretrainingBatches(
                list(config.input_file),
                config.batch_size,
                config.max_seq_length,
                config.max_predictions_per_seq,
                seed,
                shuffle=shuffle,
                vocabulary_sha256=text.vocabulary.sha256,
                do_lower_case=text.do_lower_case,
                worker=worker,
                num_workers=num_workers,
                model_config=model_config,
            ),
            config.num_steps,
            config.learning_rate,
        )
        for config in configs
    ]


def split_steps(
    total: int, first: PhaseConfig, second: PhaseConfig | None
) -> tuple[PhaseConfig, ...]:
    """Gives each phase its steps: the second one takes the last of the run.

    Raises:
        UserError: the second phase leaves no steps to the first.

    Example:
        >>> phase = PhaseConfig(
        ...     input_file=("a",), num_steps=10, batch_size=8, learning_rate=1e-4,
        ...     max_seq_length=128, max_predictions_per_seq=20,
        ... )
        >>> [part.num_steps for part in split_steps(100, phase, phase)]
        [90, 10]
    """
    if second is None:
        return (_with_steps(first, total),)
    if second.num_steps >= total:
        raise UserError(
            f"--phase2_num_train_steps={second.num_steps} leaves no steps of the "
            f"--num_train_steps={total} to the first phase; lower it."
        )
    return _with_steps(first, total - second.num_steps), second


def _with_steps(config: PhaseConfig, steps: int) -> PhaseConfig:
    return PhaseConfig(**{**vars(config), "num_steps": steps})
