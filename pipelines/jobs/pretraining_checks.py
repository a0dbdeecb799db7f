"""What is looked at before a long run starts."""

import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.planning.memory import ESTIMATE_WITHIN, training_memory
from keras_bert_impl.planning.model_size import count_parameters
from keras_bert_impl.training.batches import Batch
from keras_bert_impl.training.config import TrainingConfig
from pipelines.jobs.pretraining_phases import PhaseConfig
from pipelines.metrics.frequency_baseline import count_masked_pieces, frequency_baseline


def check_length(config: BertConfig, max_seq_length: int, flag: str = "max_seq_length") -> None:
    """Refuses sequences that are longer than the model's positions.

    Raises:
        UserError: they are.
    """
    if max_seq_length > config.max_position_embeddings:
        raise UserError(
            f"--{flag}={max_seq_length} is more than the {config.max_position_embeddings} "
            "positions of the model (max_position_embeddings); lower it or take another "
            "configuration."
        )


def check_batch(batch: Batch, config: BertConfig, where: str) -> None:
    """Refuses ids that the model's tables do not have.

    Args:
        batch: the features of a pre-training batch.
        config: the model.
        where: the shards, for the sentence.

    Raises:
        UserError: an id, a segment or a masked place out of range.

    Example:
        >>> batch = {"input_ids": np.array([[2, 99]])}
        >>> check_batch(batch, BertConfig(vocab_size=50), "a.tfrecord")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: a.tfrecord: record 0 of the first batch has input_ids up
        to 99, but the model only knows 0 to 49 (vocab_size); use the vocabulary and configuration
        that the shards were made with.
    """
    length = batch["input_ids"].shape[1]
    limits = {
        "input_ids": (config.vocab_size, "vocab_size"),
        "masked_lm_ids": (config.vocab_size, "vocab_size"),
        "segment_ids": (config.type_vocab_size, "type_vocab_size"),
        "masked_lm_positions": (length, "the sequence length"),
        "next_sentence_labels": (2, "next or random"),
    }
    for name, (limit, meaning) in limits.items():
        if name not in batch:
            continue
        values = batch[name]
        wrong = np.flatnonzero(((values < 0) | (values >= limit)).any(axis=-1))
        if len(wrong):
            raise UserError(
                f"{where}: record {wrong[0]} of the first batch has {name} up to "
                f"{values[wrong[0]].max()}, but the model only knows 0 to {limit - 1} ({meaning}); "
                "use the vocabulary and configuration that the shards were made with."
            )


def check_disk(folder: Path, config: BertConfig, keep: int) -> None:
    """Refuses a folder that has no room for the run's checkpoints.

    Args:
        folder: the run directory.
        config: the model.
        keep: how many checkpoints are kept; one more is written before the oldest goes.

    Raises:
        UserError: too little space is free.
    """
    needed = checkpoint_bytes(config) * (keep + 1)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{folder}: {keep} checkpoints and one being written need {needed / 1e9:.1f} GB, but "
            f"{free / 1e9:.1f} GB are free; lower --keep_checkpoint_max or name another "
            "--output_dir."
        )


def check_memory(
    config: BertConfig,
    training: TrainingConfig,
    phases: Sequence[PhaseConfig],
    replicas: int,
    machine_bytes: float,
) -> None:
    """Refuses a run that this machine's memory cannot hold, where the CPU trains.

    Args:
        config: the model.
        training: batch, micro-batches, precision.
        phases: lengths and batches.
        replicas: CPU devices that share the machine's memory.
        machine_bytes: that memory.

    Raises:
        UserError: the estimate of a phase is over it, by more than the estimate's own error.
    """
    for phase in phases:
        tried = dataclasses.replace(training, batch_size=phase.batch_size)
        lengths = (phase.max_seq_length, phase.max_predictions_per_seq)
        parts = training_memory(config, tried, *lengths, on_cpu=True, replicas=replicas)
        shared = parts["runtime"] + parts["checkpoint_copy"]
        needed = shared + replicas * (sum(parts.values()) - shared)
        if needed > machine_bytes * (1 + ESTIMATE_WITHIN):
            raise UserError(
                f"--train_batch_size={phase.batch_size} at length {phase.max_seq_length} needs "
                f"about {needed / 1e9:.1f} GB, but this machine has {machine_bytes / 1e9:.1f} GB; "
                "lower it, raise --accumulation_steps or add --recompute (plan_run says what fits)."
            )


def machine_memory() -> float:
    """This machine's memory in bytes."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def checkpoint_bytes(config: BertConfig) -> int:
    """The size of one checkpoint: weights and two moments in float32.

    Example:
        >>> checkpoint_bytes(BertConfig(vocab_size=30522)) // 10**6
        1321
    """
    return 12 * count_parameters(config)


def frequency_loss(batches: list[Mapping[str, np.ndarray]], vocab_size: int) -> float:
    """The masked-LM loss that guessing by word frequency reaches, in nats.

    Shares are counted on one half of the batches and tried on the other.

    Example:
        >>> batch = {"masked_lm_ids": np.array([[1, 2]]), "masked_lm_weights": np.ones([1, 2])}
        >>> round(frequency_loss([batch] * 400, 3), 2)
        0.7
    """
    counts = [count_masked_pieces(batches[half::2], vocab_size) for half in (0, 1)]
    return frequency_baseline(*counts).loss
