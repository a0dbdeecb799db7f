"""How a model is trained, in one flat record."""

import dataclasses

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, ONCE, check_options, option, settings_of

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
        raise UserError(f"`precision={precision}` is unknown; choose {' or '.join(_POLICIES)}.")
    return _POLICIES[precision]


STRATEGIES = ("one_device", "mirrored", "multi_worker_mirrored", "tpu")
PRECISIONS = tuple(_POLICIES)
KERNELS = ("auto", "plain", "fast")
OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "constant", "cosine", "inverse_sqrt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained; the defaults are the original's.

    A resumed run may change what is FREE: it changes nothing in what is computed but the rounding
    and, where it divides a batch in another way, dropout's draws.

    Raises:
        UserError: a value out of range.

    Example:
        >>> TrainingConfig(num_train_steps=10, num_warmup_steps=2).optimizer
        'adamw'
    """

    num_train_steps: int = option(100_000, "Optimizer steps of the whole run.", at_least=1)
    num_warmup_steps: int = option(
        10_000, "Steps over which the learning rate rises from 0 to its peak.", at_least=0
    )
    train_batch_size: int = option(
        32,
        "Examples of one optimizer step, over all devices and micro-batches.",
        at_least=1,
    )
    learning_rate: float = option(
        5e-5, "The peak learning rate, reached at the end of the warm-up.", more_than=0
    )
    optimizer: str = option(
        "adamw", "How weights are updated; lamb is for huge batches.", choices=OPTIMIZERS
    )
    schedule: str = option(
        "linear", "How the learning rate falls after the warm-up.", choices=SCHEDULES
    )
    weight_decay: float = option(
        0.01, "Decoupled weight decay of all weights but biases and LayerNorm.", at_least=0
    )
    bias_correction: bool = option(
        False, "Correct Adam's moments for starting at 0, which the original does not do."
    )
    layer_decay: float = option(
        1.0,
        "Factor on the learning rate from each layer to the one below it; 1 is off.",
        more_than=0,
        at_most=1,
    )
    clip_norm: float = option(
        1.0,
        "Largest global norm of the gradient, after the sum over devices.",
        more_than=0,
    )
    distribution_strategy: str = option(
        "one_device",
        "Which devices train: the first one, all of this machine, those of several machines "
        "(TF_CONFIG names them), or a TPU.",
        choices=STRATEGIES,
        resume=FREE,
    )
    num_logical_devices: int = option(
        1,
        "Split the CPU into this many devices, to try the mirrored strategy without GPUs.",
        at_least=1,
        resume=FREE,
    )
    use_xla: bool | None = option(
        None, "Compile the step with XLA; by default on GPUs only.", resume=FREE
    )
    kernels: str = option(
        "auto",
        "How the layers compute: fast is for CPUs, plain for everything else; auto chooses by "
        "device.",
        choices=KERNELS,
        resume=FREE,
    )
    precision: str = option(
        "float32",
        "The number format in which the layers compute; weights stay float32.",
        choices=PRECISIONS,
    )
    accumulation_steps: int = option(
        1,
        "Compute each device's share of a batch in this many micro-batches, to save memory.",
        at_least=1,
        resume=FREE,
    )
    recompute: bool = option(
        False, "Recompute activations in the backward pass, to save memory.", resume=FREE
    )
    iterations_per_loop: int = option(
        1, "How many steps run inside one compiled call.", at_least=1, resume=FREE
    )
    tpu_name: str | None = option(None, "The TPU's name or address.", resume=FREE)
    tpu_zone: str | None = option(None, "The TPU's zone.", resume=FREE)
    gcp_project: str | None = option(None, "The TPU's project.", resume=FREE)
    save_checkpoints_steps: int = option(
        1000, "Steps between two checkpoints.", at_least=1, resume=FREE
    )
    keep_checkpoint_max: int = option(
        5, "How many of the newest checkpoints to keep.", at_least=1, resume=FREE
    )
    log_steps: int = option(
        100, "Steps between two lines of metrics.jsonl.", at_least=1, resume=FREE
    )
    eval_steps: int = option(
        0,
        "Steps between two held-out evaluations during training; 0 evaluates at the end only.",
        at_least=0,
        resume=FREE,
    )
    peak_tflops: float | None = option(
        None,
        "The machine's peak in 10^12 operations a second; metrics then show the share reached.",
        at_least=0,
        resume=FREE,
    )
    profile_steps: tuple[int, int] | None = option(
        None, "First and last step to profile for TensorBoard, e.g. 100,110.", resume=FREE
    )
    stop_after_step: int | None = option(
        None,
        "Save and stop after this step; the same command without it continues.",
        at_least=1,
        resume=ONCE,
    )
    seed: int = option(
        12345,
        "Fixes initial weights, dropout and the order of the data.",
        at_least=0,
        at_most=2**32 - 1,
    )
    allow_changed_flags: bool = option(
        False,
        "Resume although options that change the result differ from the checkpoint's.",
        resume=ONCE,
    )

    def __post_init__(self) -> None:
        check_options(self)
        steps = self.profile_steps
        if steps is not None and not (len(steps) == 2 and 0 < steps[0] <= steps[1]):
            raise UserError("`profile_steps` needs two rising step numbers, e.g. 100,110.")

    def mathematics(self) -> dict[str, object]:
        """The settings that fix what is computed: a resumed run must have the same."""
        return settings_of(self)
