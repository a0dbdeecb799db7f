"""The checks before a long run starts."""

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.compat import gpu_memory_limits
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.planning import (
    ESTIMATE_WITHIN,
    checkpoint_bytes,
    count_parameters,
    machine_bytes,
    training_memory,
)
from keras_bert_impl.progress import format_bytes
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.phases import Phase
from keras_bert_impl.training.strategy import Devices
from pipelines.records.check import described_words, find_shards
from pipelines.records.paths import with_local_copies
from pipelines.runs.phases import PhaseConfig
from pipelines.runs.remarks import Epochs, RunFacts, find_hidden_gpu, names_cluster

RECORDS_CHECKED = 2**18
"""How many records of a phase are looked at before a run: a few seconds' worth."""

_ERROR_ON_OTHERS = 0.5


def check_records(phases: Sequence[Phase], report: Callable[[str], None]) -> None:
    """Looks at the records of every phase, before anything is computed from them.

    Up to `RECORDS_CHECKED` of a phase: all of most sets, else so many spread evenly. Those left
    out are checked with their batch when it is read.

    Args:
        phases: their batches are `PretrainingBatches`.
        report: called with one line: how many were looked at.

    Raises:
        UserError: a record does not fit the model, or cannot be read.
    """
    for number, phase in enumerate(phases, start=1):
        batches: Any = phase.batches
        checked, everything = batches.check(RECORDS_CHECKED), batches.num_examples
        which = f"all {checked:,}" if checked == everything else f"{checked:,} of {everything:,}"
        rest = "" if checked == everything else "; the others are checked when they are read"
        report(f"Phase {number}: looked at {which} records{rest}.")


def epochs_of(phases: Sequence[Phase]) -> list[Epochs]:
    """How often each phase reads its data.

    Args:
        phases: their batches are `PretrainingBatches`.
    """
    found = []
    for phase in phases:
        batches: Any = phase.batches
        size = (batches.batch_size, batches.num_examples, batches.copies_of_text)
        found.append(Epochs(phase.num_steps, *size))
    return found


def facts_of(training: TrainingConfig, devices: Devices, epochs: Sequence[Epochs] = ()) -> RunFacts:
    """What remarks are made of, once the devices are there.

    Args:
        training: how the run trains.
        devices: its devices. A CPU that is split is meant, whatever GPU is there.
        epochs: from `epochs_of`.
    """
    by_chance = devices.on_cpu and training.num_logical_devices == 1
    hidden = find_hidden_gpu() if by_chance else None
    return RunFacts(
        training,
        replicas=devices.replicas,
        unused_gpus=devices.unused_gpus,
        hidden_gpu=hidden,
        epochs=epochs,
        has_cluster=names_cluster(),
    )


def check_words(input_files: Sequence[str], warn: Callable[[str], None]) -> None:
    """Tells of shards whose vocabulary does not fit the text that they were made of.

    Args:
        input_files: the shards of a phase, as `find_shards` takes them.
        warn: called with one line where more than 5 % of the words are [UNK].
    """
    words = described_words(find_shards(with_local_copies(input_files)))
    if words is not None and words.is_large:
        warn(
            f"{', '.join(input_files)}: {words} are [UNK], which the model can learn nothing from: "
            "the vocabulary does not fit the text. create_pretraining_data names the likely reason."
        )


def check_disk(folder: Path, config: BertConfig, training: TrainingConfig) -> None:
    """Refuses a folder that has no room for what the run will still write.

    Args:
        folder: the run directory; what it holds already needs no more room.
        config: the model.
        training: how many checkpoints are kept (one more is written before the oldest goes), and
            whether a best one is.

    Raises:
        UserError: too little space is free.
    """
    keep, one = training.keep_checkpoint_max, checkpoint_bytes(config, training.ema_decay > 0)
    saves = -(-training.num_train_steps // training.steps_between_saves)
    if training.save_checkpoints_secs:
        saves = max(saves, keep)  # more come by time
    wanted = min(keep, saves) + 1 + (1 if training.chooses_best else 0)
    there = len(list(folder.glob("checkpoints/step-*"))) + (folder / "best_checkpoint").is_dir()
    needed = one * max(wanted - there, 1) + 4 * count_parameters(config)  # and the model itself
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{folder}: {wanted} checkpoints of {format_bytes(one)} (one of them being written) "
            f"and the model still need {format_bytes(needed)}, but {format_bytes(free)} are free; "
            "lower `keep_checkpoint_max` or name another `output_dir`."
        )


def check_memory(
    config: BertConfig,
    training: TrainingConfig,
    phases: Sequence[PhaseConfig],
    devices: Devices,
    memory: float | None,
) -> None:
    """Refuses a run that does not fit the memory of a device, by `plan_run`'s estimate.

    Args:
        config: the model.
        training: batch, micro-batches, precision.
        phases: lengths and batches.
        devices: CPU devices share the machine's memory; each GPU has its own.
        memory: bytes of it, from `device_memory`; None (nobody knows) checks nothing.

    Raises:
        UserError: the estimate of a phase is over it, by more than the estimate's own error.
    """
    cpu = devices.on_cpu
    for phase in phases if memory else ():
        tried = dataclasses.replace(training, train_batch_size=phase.train_batch_size)
        lengths = (phase.max_seq_length, phase.max_predictions_per_seq)
        parts = training_memory(config, tried, *lengths, on_cpu=cpu, replicas=devices.replicas)
        needed = machine_bytes(parts, devices.own_replicas) if cpu else sum(parts.values())
        # The estimate was compared with runs on CPUs only.
        error = ESTIMATE_WITHIN if cpu else _ERROR_ON_OTHERS
        if memory and needed > memory * (1 + error):
            raise UserError(
                f"`train_batch_size={phase.train_batch_size}` at length {phase.max_seq_length} "
                f"needs about {needed / 1e9:.1f} GB, but "
                f"{'this machine' if cpu else 'a device'} has {memory / 1e9:.1f} GB; lower it, "
                "raise `accumulation_steps` or add `recompute=True` (plan_run says what fits)."
            )


def device_memory(devices: Devices) -> float | None:
    """The bytes that one device (for CPUs: the machine) can use; None where nobody knows.

    For a GPU it is what TensorFlow will take of it, for a CPU the smaller one of the machine's
    memory and the limit of this process's container.
    """
    if devices.on_cpu:
        return machine_memory()
    limits = gpu_memory_limits()
    return float(min(limits)) if limits else None


def machine_memory(root: str = "/sys/fs/cgroup") -> float:
    """This machine's memory in bytes, or the container's limit where that is less."""
    memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = Path(root, name)
        if limit.is_file() and (text := limit.read_text().strip()).isdigit():
            memory = min(memory, float(text))
    return memory
