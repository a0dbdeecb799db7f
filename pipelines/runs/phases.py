"""The data of a pre-training run: one phase, or a second one with longer sequences."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import options_named
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.phases import Phase
from pipelines.inputs.pretraining import PretrainingBatches
from pipelines.pretraining_data.language_model import Targets


@dataclass(frozen=True, kw_only=True)
class PhaseConfig:
    """One stretch of the steps and its shards.

    Attributes:
        input_file: shards: paths or glob patterns.
        num_train_steps: how many optimizer steps.
        train_batch_size: examples of a step.
        learning_rate: the peak that the run's schedule has while the phase lasts.
        max_seq_length: length of a record in tokens.
        max_predictions_per_seq: most masked positions of a record.
    """

    input_file: tuple[str, ...]
    num_train_steps: int
    train_batch_size: int
    learning_rate: float
    max_seq_length: int
    max_predictions_per_seq: int


def options_of_phase(number: int) -> AbstractContextManager[None]:
    """Lets errors name the options of a phase; the second one's stand under `phase2`.

    Args:
        number: of the phase, from 0.
    """
    names = [field.name for field in fields(PhaseConfig)] if number else []
    return options_named({name: f"phase2.{name}" for name in names})


def open_phases(
    configs: Sequence[PhaseConfig],
    text: TextSettings,
    model_config: BertConfig,
    seed: int,
    shuffle: bool,
    worker: int = 0,
    num_workers: int = 1,
    targets: Targets | None = None,
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
        targets: what is predicted; by default what the shards hold.

    Raises:
        UserError: shards that are missing, broken or made for another model.
    """
    phases = []
    for number, config in enumerate(configs):
        with options_of_phase(number):
            batches = PretrainingBatches(
                list(config.input_file),
                config.train_batch_size,
                config.max_seq_length,
                config.max_predictions_per_seq,
                seed,
                shuffle=shuffle,
                vocabulary_sha256=text.vocabulary.sha256,
                do_lower_case=text.do_lower_case,
                worker=worker,
                num_workers=num_workers,
                model_config=model_config,
                targets=targets,
            )
        phases.append(Phase(batches, config.num_train_steps, config.learning_rate))
    return phases


def split_steps(whole: PhaseConfig, second: PhaseConfig | None) -> tuple[PhaseConfig, ...]:
    """Gives each phase its steps: the second one takes the last steps of the run.

    Args:
        whole: the first phase, with the steps of the whole run.
        second: the second phase, if there is one.

    Raises:
        UserError: the second phase leaves no steps to the first.

    Example:
        >>> run = PhaseConfig(
        ...     input_file=("a",), num_train_steps=100, train_batch_size=8, learning_rate=1e-4,
        ...     max_seq_length=128, max_predictions_per_seq=20,
        ... )
        >>> phases = split_steps(run, replace(run, num_train_steps=10))
        >>> [phase.num_train_steps for phase in phases]
        [90, 10]
    """
    if second is None:
        return (whole,)
    if second.num_train_steps >= whole.num_train_steps:
        raise UserError(
            f"`phase2.num_train_steps={second.num_train_steps}` leaves no steps of the "
            f"`num_train_steps={whole.num_train_steps}` to the first phase; lower it."
        )
    steps = whole.num_train_steps - second.num_train_steps
    return replace(whole, num_train_steps=steps), second
