"""The flags of every tool that trains."""

from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import (
    KERNELS,
    OPTIMIZERS,
    PRECISIONS,
    SCHEDULES,
    STRATEGIES,
    TrainingConfig,
)
from tools.command_line import FlagSet

ONE_CALL_ONLY = ("stop_after_step", "dry_run", "allow_changed_flags")
"""Flags that are not kept in a run's `flags.cfg`: repeating the run must not repeat them."""


class TrainingFlags:
    """Adds the training flags to a tool's flags and reads them back as one record.

    Args:
        flag_set: the tool's flags.
        batch_size: default of `--train_batch_size`.
        learning_rate: default of `--learning_rate`.

    Example:
        >>> flag_set = FlagSet("Trains.")
        >>> training = TrainingFlags(flag_set, batch_size=32, learning_rate=5e-5)
        >>> flag_set.parse(["--accumulation_steps=2"])
        >>> training.config(num_train_steps=10, num_warmup_steps=1).accumulation_steps
        2
    """

    def __init__(self, flag_set: FlagSet, batch_size: int, learning_rate: float) -> None:
        self._flags: dict[str, Any] = {}
        self._batch_size = flag_set.integer(
            "train_batch_size",
            batch_size,
            "How many examples one optimizer step sees, over all devices and micro-batches.",
            lower_bound=1,
        )
        self._add_optimizer_flags(flag_set, learning_rate)
        self._add_device_flags(flag_set)
        self._add_run_flags(flag_set)
        self._use_tpu = flag_set.switch(
            "use_tpu", False, "The original's way to say --distribution_strategy=tpu."
        )
        flag_set.string("master", None, "Taken for the original's sake; TF_CONFIG says it now.")
        flag_set.integer(
            "num_tpu_cores", 8, "Taken for the original's sake; the TPU says it itself."
        )
        self._profile = flag_set.words(
            "profile_steps", [], "First and last step to profile for TensorBoard, e.g. 100,110."
        )

    def config(self, num_train_steps: int, num_warmup_steps: int) -> TrainingConfig:
        """Reads the flags into a `TrainingConfig`.

        Raises:
            UserError: a value out of range.
        """
        values = {name: holder.value for name, holder in self._flags.items()}
        if self._use_tpu.value:
            values["distribution_strategy"] = "tpu"
        profile = None
        if self._profile.value:
            first, _, last = ",".join(self._profile.value).partition(",")
            if not (first.isdigit() and last.isdigit() and 0 < int(first) <= int(last)):
                raise UserError("--profile_steps needs two rising step numbers, e.g. 100,110.")
            profile = (int(first), int(last))
        return TrainingConfig(
            num_train_steps=num_train_steps,
            num_warmup_steps=num_warmup_steps,
            train_batch_size=self._batch_size.value,
            profile_steps=profile,
            **values,
        )

    def _add_optimizer_flags(self, flag_set: FlagSet, learning_rate: float) -> None:
        add = self._flags
        add["learning_rate"] = flag_set.number(
            "learning_rate", learning_rate, "The highest learning rate, reached after the warm-up."
        )
        add["optimizer"] = flag_set.choice(
            "optimizer", "adamw", OPTIMIZERS, "How weights are updated; lamb is for huge batches."
        )
        add["schedule"] = flag_set.choice(
            "schedule", "linear", SCHEDULES, "How the learning rate falls after the warm-up."
        )
        add["weight_decay"] = flag_set.number(
            "weight_decay", 0.01, "Decoupled weight decay of all but biases and LayerNorm."
        )
        add["bias_correction"] = flag_set.switch(
            "bias_correction", False, "Correct Adam's moments for their start at 0."
        )
        add["layer_decay"] = flag_set.number(
            "layer_decay",
            1.0,
            "Factor on the learning rate from each layer to the one below it; 1 is off.",
            lower_bound=0.0,
            upper_bound=1.0,
        )
        add["clip_norm"] = flag_set.number(
            "clip_norm", 1.0, "Largest global norm of the gradient, after the sum over devices."
        )

    def _add_device_flags(self, flag_set: FlagSet) -> None:
        add = self._flags
        add["distribution_strategy"] = flag_set.choice(
            "distribution_strategy",
            "one_device",
            STRATEGIES,
            "Which devices train: the first, all of this machine, those of several machines "
            "(TF_CONFIG names them), or a TPU.",
        )
        add["num_logical_devices"] = flag_set.integer(
            "num_logical_devices",
            1,
            "Split the CPU into so many devices, to try --distribution_strategy=mirrored.",
            lower_bound=1,
        )
        add["use_xla"] = flag_set.switch(
            "use_xla", None, "Compile the step with XLA; by default on GPUs only."
        )
        add["kernels"] = flag_set.choice(
            "kernels", "auto", KERNELS, "How layers compute; fast is for CPUs, auto by device."
        )
        add["precision"] = flag_set.choice(
            "precision", "float32", PRECISIONS, "What layers compute in; weights stay float32."
        )
        add["accumulation_steps"] = flag_set.integer(
            "accumulation_steps",
            1,
            "Compute each device's share of a batch in so many micro-batches, to save memory.",
            lower_bound=1,
        )
        add["recompute"] = flag_set.switch(
            "recompute", False, "Recompute activations in the backward pass, to save memory."
        )
        add["iterations_per_loop"] = flag_set.integer(
            "iterations_per_loop", 1, "How many steps run inside one compiled call.", lower_bound=1
        )
        add["tpu_name"] = flag_set.string("tpu_name", None, "The TPU's name or address.")
        add["tpu_zone"] = flag_set.string("tpu_zone", None, "The TPU's zone.")
        add["gcp_project"] = flag_set.string("gcp_project", None, "The TPU's project.")

    def _add_run_flags(self, flag_set: FlagSet) -> None:
        add = self._flags
        add["save_checkpoints_steps"] = flag_set.integer(
            "save_checkpoints_steps", 1000, "Steps between two checkpoints.", lower_bound=1
        )
        add["keep_checkpoint_max"] = flag_set.integer(
            "keep_checkpoint_max", 5, "How many of the newest checkpoints to keep.", lower_bound=1
        )
        add["log_steps"] = flag_set.integer(
            "log_steps", 100, "Steps between two lines of metrics.jsonl.", lower_bound=1
        )
        add["eval_steps"] = flag_set.integer(
            "eval_steps",
            0,
            "Steps between two held-out evaluations while training; 0 is only at the end.",
            lower_bound=0,
        )
        add["peak_tflops"] = flag_set.number(
            "peak_tflops",
            None,
            "What the machine can do, in 10^12 operations a second; metrics then show the share.",
            lower_bound=0.0,
        )
        add["stop_after_step"] = flag_set.integer(
            "stop_after_step",
            None,
            "Save and stop after this step; the same command without it continues.",
            lower_bound=1,
        )
        add["seed"] = flag_set.integer(
            "seed", 12345, "Fixes initial weights, dropout and the order of the data."
        )
        add["allow_changed_flags"] = flag_set.switch(
            "allow_changed_flags",
            False,
            "Resume although flags that change the result differ from the checkpoint's.",
        )
