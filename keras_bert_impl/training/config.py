"""Everything that a training run is told, in one flat record."""

import dataclasses

from keras_bert_impl.errors import UserError

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


def dtype_policy(precision: str) -> str:
    """Gives the Keras dtype policy of a precision, for a model's `dtype`.

    Raises:
        UserError: an unknown precision.

    Example:
        >>> dtype_policy("bfloat16")
        'mixed_bfloat16'
    """
    if precision not in _POLICIES:
        raise UserError(f"--precision={precision} is unknown; choose {' or '.join(_POLICIES)}.")
    return _POLICIES[precision]


STRATEGIES = ("one_device", "mirrored", "multi_worker_mirrored", "tpu")
PRECISIONS = ("float32", "bfloat16", "float16")
KERNELS = ("auto", "plain", "fast")
OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "constant", "cosine", "inverse_sqrt")

# A change of these does not change what is computed, but for rounding and, where it cuts a batch in
# another way, dropout's draws: a run may be resumed with other values of them.
FREE_TO_CHANGE = frozenset(
    {
        "distribution_strategy",
        "num_logical_devices",
        "use_xla",
        "kernels",
        "accumulation_steps",
        "recompute",
        "iterations_per_loop",
        "save_checkpoints_steps",
        "keep_checkpoint_max",
        "log_steps",
        "eval_steps",
        "profile_steps",
        "peak_tflops",
        "stop_after_step",
        "allow_changed_flags",
        "tpu_name",
        "tpu_zone",
        "gcp_project",
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained; the defaults are the original's for pre-training.

    Attributes:
        learning_rate: the peak learning rate.
        num_train_steps: optimizer steps of the whole run.
        num_warmup_steps: steps over which the learning rate rises from 0 to its peak.
        batch_size: examples of one optimizer step, over all replicas and micro-batches.
        optimizer: "adamw" or "lamb".
        schedule: how the learning rate falls after the warm-up; see `optimizers.schedules`.
        layer_decay: factor on the learning rate for each layer further from the head; 1 is off.
        weight_decay: decoupled weight decay (not for biases and LayerNorm).
        bias_correction: Adam's bias correction, which the original leaves out.
        clip_norm: largest global norm of the reduced gradient; a huge one clips nothing.
        distribution_strategy: one of `STRATEGIES`.
        num_logical_devices: split the CPU into so many devices (to try mirrored without GPUs).
        use_xla: compile the step with XLA; None decides by device (not on CPU).
        kernels: how layers compute: "plain", "fast" (on CPUs), or "auto" by device.
        precision: what layers compute in; one of `PRECISIONS`. Weights stay float32.
        accumulation_steps: micro-batches whose gradients make one step.
        recompute: recompute activations in the backward pass instead of keeping them.
        iterations_per_loop: steps inside one compiled call.
        save_checkpoints_steps: steps between two checkpoints.
        keep_checkpoint_max: how many of the newest checkpoints are kept.
        log_steps: steps between two lines of `metrics.jsonl`.
        eval_steps: steps between two held-out evaluations; 0 evaluates at the end only.
        peak_tflops: what the machine can do, in 10^12 operations a second, to be compared with.
        profile_steps: first and last step to profile, or None.
        stop_after_step: save and stop after this step, or None (a run in instalments).
        seed: fixes dropout (and, by the same number, initial weights and the order of the data).
        allow_changed_flags: resume although settings that change the mathematics differ.
        tpu_name: the TPU to use.
        tpu_zone: its zone.
        gcp_project: its project.

    Raises:
        UserError: a value out of range.

    Example:
        >>> config = TrainingConfig(
        ...     learning_rate=1e-4, num_train_steps=10, num_warmup_steps=2, batch_size=8
        ... )
        >>> config.optimizer
        'adamw'
    """

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int
    batch_size: int
    optimizer: str = "adamw"
    schedule: str = "linear"
    layer_decay: float = 1.0
    weight_decay: float = 0.01
    bias_correction: bool = False
    clip_norm: float = 1.0
    distribution_strategy: str = "one_device"
    num_logical_devices: int = 1
    use_xla: bool | None = None
    kernels: str = "auto"
    precision: str = "float32"
    accumulation_steps: int = 1
    recompute: bool = False
    iterations_per_loop: int = 1
    save_checkpoints_steps: int = 1000
    keep_checkpoint_max: int = 5
    log_steps: int = 100
    eval_steps: int = 0
    peak_tflops: float | None = None
    profile_steps: tuple[int, int] | None = None
    stop_after_step: int | None = None
    seed: int = 12345
    allow_changed_flags: bool = False
    tpu_name: str | None = None
    tpu_zone: str | None = None
    gcp_project: str | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise UserError(
                    f"--{name}={getattr(self, name)} is too small; give {least} or more."
                )
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise UserError(f"--{name}={value} is unknown; choose {' or '.join(allowed)}.")
        for name in ("learning_rate", "clip_norm", "layer_decay"):
            if not getattr(self, name) > 0:
                raise UserError(f"--{name}={getattr(self, name)} must be more than 0.")
        if not 0 <= self.seed < 2**32:
            raise UserError(f"--seed={self.seed} must lie from 0 to {2**32 - 1}.")
        if not self.weight_decay >= 0:
            raise UserError(f"--weight_decay={self.weight_decay} must be 0 or more.")
        if self.layer_decay > 1:
            raise UserError(f"--layer_decay={self.layer_decay} must be 1 (off) or less.")

    def mathematics(self) -> dict[str, object]:
        """The settings that fix what is computed: a resumed run must have the same."""
        everything = dataclasses.asdict(self)
        everything["train_batch_size"] = everything.pop("batch_size")  # as the flag is called
        return {name: value for name, value in everything.items() if name not in FREE_TO_CHANGE}


_LEAST = {
    "num_train_steps": 1,
    "num_warmup_steps": 0,
    "batch_size": 1,
    "accumulation_steps": 1,
    "num_logical_devices": 1,
    "iterations_per_loop": 1,
    "save_checkpoints_steps": 1,
    "keep_checkpoint_max": 1,
    "log_steps": 1,
    "eval_steps": 0,
}
_ALLOWED = {
    "distribution_strategy": STRATEGIES,
    "kernels": KERNELS,
    "precision": PRECISIONS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
