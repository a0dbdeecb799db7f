"""How a model is trained, in one flat record."""

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import FREE, MOST_COUNTED, ONCE, Options, option, settings_of

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


def dtype_policy(precision: str) -> str:
    """Gives the Keras dtype policy of a precision, for a model's `dtype`.

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
MOST_EXAMPLES = 2**24
"""The largest batch: the numbers of its examples alone have 128 MB."""
LOW_IS_GOOD = ("loss", "error")
"""The ends of the names of figures that are to be low."""
SCHEDULES = ("linear", "constant", "cosine", "inverse_sqrt", "wsd")
WSD = SCHEDULES[-1]
_HOUR = 3600.0  # seconds


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(Options):
    """How a model is trained; the defaults are the original's.

    A resumed run may change what is FREE: it changes nothing in what is computed but the rounding
    and, where it divides a batch in another way, dropout's draws.

    Example:
        >>> TrainingConfig(num_train_steps=10, num_warmup_steps=2).optimizer
        'adamw'
    """

    num_train_steps: int = option(100_000, "Optimizer steps of the whole run.", at_least=1)
    num_warmup_steps: int = option(
        10_000,
        "Steps over which the learning rate rises from 0 to its peak; with train_hours "
        "warmup_proportion says how long.",
        at_least=0,
    )
    warmup_proportion: float | None = option(
        None,
        "Share of the run over which the learning rate rises, in place of num_warmup_steps; with "
        "train_hours 0.1 by default.",
        at_least=0,
        at_most=0.99,
    )
    train_hours: float | None = option(
        None,
        "End after so many hours, whatever the number of steps or epochs. They count from the "
        "start of the command, with evaluations and saves; the schedule runs over them.",
        more_than=0,
        at_most=1e5,
    )
    train_batch_size: int = option(
        32,
        "Examples of one optimizer step, over all devices and micro-batches.",
        at_least=1,
        at_most=MOST_EXAMPLES,
    )
    learning_rate: float = option(
        5e-5, "The peak learning rate, reached at the end of the warm-up.", more_than=0
    )
    optimizer: str = option(
        "adamw", "How weights are updated; lamb is for huge batches.", choices=OPTIMIZERS
    )
    schedule: str = option(
        "linear",
        "How the learning rate falls after the warm-up. wsd stays at the peak until the decay at "
        "the end; the same command with a later end goes on from before the decay.",
        choices=SCHEDULES,
    )
    decay_share: float = option(
        0.2, "Share of the run that the decay of wsd takes, down to 0.", more_than=0, at_most=1
    )
    batch_ramp: float | None = option(
        None,
        "Share of the run over which the batch grows, from one of its accumulation_steps "
        "micro-batches to all of them; by default every batch has all.",
        more_than=0,
        at_most=1,
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
        1.0, "Largest global norm of the gradient, after the sum over devices.", more_than=0
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
        at_most=1024,
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
        "The number format in which the layers compute; weights stay float32. int8 is for "
        "evaluating and predicting by openvino.",
        choices=(*PRECISIONS, "int8"),
    )
    accumulation_steps: int = option(
        1,
        "Compute each device's share of a batch in this many micro-batches, to save memory.",
        at_least=1,
        at_most=2**20,
        resume=FREE,
    )
    recompute: bool = option(
        False, "Recompute activations in the backward pass, to save memory.", resume=FREE
    )
    iterations_per_loop: int = option(
        1, "How many steps run inside one compiled call.", at_least=1, at_most=2**20, resume=FREE
    )
    tpu_name: str | None = option(None, "The TPU's name or address.", resume=FREE)
    tpu_zone: str | None = option(None, "The TPU's zone.", resume=FREE)
    gcp_project: str | None = option(None, "The TPU's project.", resume=FREE)
    save_checkpoints_steps: int | None = option(
        None,
        "Steps between two checkpoints; by default a tenth of the run, at least 100 and at most "
        "1000.",
        at_least=1,
        resume=FREE,
    )
    keep_checkpoint_max: int = option(
        5, "How many of the newest checkpoints to keep.", at_least=1, resume=FREE
    )
    log_steps: int | None = option(
        None,
        "Steps between two lines of metrics.jsonl, each with the means since the line before; by "
        "default a hundredth of the run, at most 100.",
        at_least=1,
        resume=FREE,
    )
    eval_steps: int | None = option(
        None,
        "Steps between two held-out evaluations during training; 0 evaluates at the end only. By "
        "default one epoch, where the run also evaluates at its end.",
        at_least=0,
        resume=FREE,
    )
    save_best: bool = option(
        False,
        "End with the weights of the best held-out evaluation, in place of those of the last step.",
        resume=FREE,
    )
    early_stopping_evals: int = option(
        0,
        "End training after this many evaluations in a row without a better one; 0 never does.",
        at_least=0,
        resume=FREE,
    )
    ema_decay: float = option(
        0.0,
        "Evaluate and write an exponential moving average of the weights, which keeps this share "
        "of itself at every step (0.999, say; less in the first steps); 0 uses the weights "
        "themselves.",
        at_least=0,
        at_most=0.999999,
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
        super().__post_init__()
        steps = self.profile_steps
        if steps is not None and not (len(steps) == 2 and 0 < steps[0] <= steps[1]):
            raise UserError("`profile_steps` needs two rising step numbers, e.g. 100,110.")
        several = self.distribution_strategy == "multi_worker_mirrored"
        for name in ("train_hours", "batch_ramp") if several else ():
            if getattr(self, name):
                raise UserError(
                    f"`{name}` is for one machine; leave it out with "
                    "`distribution_strategy=multi_worker_mirrored`."
                )
        parts = self.accumulation_steps
        if self.batch_ramp and (parts == 1 or self.train_batch_size % parts):
            raise UserError(
                f"`batch_ramp={self.batch_ramp}` needs a `train_batch_size` of equal micro-batches;"
                f" {self.train_batch_size} in `accumulation_steps={parts}` is none."
            )

    @property
    def length(self) -> float:
        """What the schedule runs over: steps, or the seconds of `train_hours`."""
        return self.train_hours * _HOUR if self.train_hours else self.num_train_steps

    @property
    def warmup(self) -> float:
        """What the warm-up takes of the `length`."""
        share = self.warmup_proportion
        if share is None and self.train_hours:
            share = 0.1
        return self.num_warmup_steps if share is None else share * self.length

    @property
    def plateau_end(self) -> float:
        """Where in the `length` the decay of wsd begins; that of others lies beyond any end."""
        # Rounded: 100 * (1 - 0.9) is a little less than 10.
        end = round(self.length * (1 - self.decay_share), 6)
        return end if self.schedule == WSD else MOST_COUNTED

    def parts_at(self, position: float) -> int:
        """The micro-batches of the batch at a position of the `length`.

        Example:
            >>> ramp = TrainingConfig(num_train_steps=10, batch_ramp=0.5, accumulation_steps=2)
            >>> [ramp.parts_at(step) for step in (0, 2, 3, 9)]
            [1, 1, 2, 2]
        """
        if not self.batch_ramp:
            return self.accumulation_steps
        return 1 + sum(position >= growth for growth in self._growths)

    @property
    def turns(self) -> tuple[int, ...]:
        """The steps at which what a call computes changes; with hours the clock says when."""
        return () if self.train_hours else tuple(map(math.ceil, (self.plateau_end, *self._growths)))

    @property
    def _growths(self) -> list[float]:
        """Where in the `length` the batch gets one more micro-batch."""
        parts, ramp = self.accumulation_steps, (self.batch_ramp or 0.0) * self.length
        return [round(ramp * part / parts, 6) for part in range(1, parts)] if ramp else []

    @property
    def rows_read_at_once(self) -> int:
        """The rows that the data are read in: batches, or the parts of which a ramp joins some."""
        whole = self.train_batch_size
        return whole // self.accumulation_steps if self.batch_ramp else whole

    @property
    def steps_between_saves(self) -> int:
        """After how many steps a checkpoint is due.

        Example:
            >>> [TrainingConfig(num_train_steps=n).steps_between_saves for n in (5, 200, 10**6)]
            [100, 100, 1000]
        """
        return self.save_checkpoints_steps or max(100, _share_of(self.num_train_steps, 10, 1000))

    @property
    def steps_between_logs(self) -> int:
        """After how many steps a line of figures is due.

        Example:
            >>> [TrainingConfig(num_train_steps=n).steps_between_logs for n in (5, 200, 10**6)]
            [1, 2, 100]
        """
        usual = 10 if self.train_hours else _share_of(self.num_train_steps, 100, 100)
        return self.log_steps or usual

    @property
    def steps_between_evaluations(self) -> int:
        """After how many steps a held-out evaluation is due; 0: never during training."""
        return self.eval_steps or 0

    @property
    def chooses_best(self) -> bool:
        """Whether the best evaluation matters: for the model, the end, or the user."""
        return bool(self.save_best or self.early_stopping_evals or self.eval_steps)

    def check_evaluates(self, evaluates: bool) -> None:
        """Refuses to choose among evaluations where there are none."""
        for name in ("save_best", "early_stopping_evals"):
            value = getattr(self, name)
            if value and not (evaluates and self.eval_steps != 0):
                raise UserError(
                    f"`{name}={value}` needs held-out evaluations during training; add "
                    "`do_eval=True`, and leave `eval_steps=0` out."
                )
        if self.early_stopping_evals and self.train_hours and not self.eval_steps:
            raise UserError(
                f"`early_stopping_evals={self.early_stopping_evals}`: a run of `train_hours` is "
                "evaluated at most three times before its end, or once where that takes long; say "
                "by `eval_steps` how often."
            )

    def evaluated_each(self, steps: int) -> "TrainingConfig":
        """The same with an evaluation every so many steps, unless the user said how many."""
        told = self.eval_steps is not None
        return self if told else dataclasses.replace(self, eval_steps=max(1, steps))

    def mathematics(self) -> dict[str, object]:
        """The settings that fix what is computed: a resumed run must have the same."""
        of_ramp = {"accumulation_steps": self.accumulation_steps} if self.batch_ramp else {}
        return {**settings_of(self), **of_ramp}

    def check_trains(self) -> None:
        """Refuses the precision that only an engine computes in."""
        if self.precision not in PRECISIONS:
            raise UserError(
                f"`precision={self.precision}` trains nothing; choose {', '.join(PRECISIONS)}."
            )

    def check_plateau(self) -> None:
        """Refuses a warm-up that reaches into the decay of wsd."""
        if self.schedule == WSD and round(self.warmup, 6) > self.plateau_end:
            raise UserError(
                f"The warm-up takes {self.warmup / self.length:.3g} of the run and the decay of "
                f"`schedule=wsd` `decay_share={self.decay_share}`, together more than all of it; "
                "shorten one of them."
            )


_LENGTHS = ("num_train_steps", "train_hours")


def with_later_end(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any] | None:
    """A run's settings with the later end that a command gives it, if its rate had a plateau.

    None where the command does not give it a later end. What follows from the end changes, too.
    """
    if bool(before.get("train_hours")) != bool(now.get("train_hours")):
        return None
    ends = [(before.get(name), now.get(name)) for name in _LENGTHS]
    later = [old < new for old, new in ends if old and new and old != new]
    if not (before.get("schedule") == now["schedule"] == WSD and later and all(later)):
        return None
    names = ("num_train_steps", "schedule", "decay_share")
    plateau_end = TrainingConfig(**{name: before[name] for name in names}).plateau_end
    if before["num_train_steps"] - before.get("phase2_num_train_steps", 0) < plateau_end:
        return None  # the second phase had begun: more of the first one would follow it
    return {**before, **{name: now[name] for name in (*_LENGTHS, "num_warmup_steps")}}


def former_lengths(settings: Mapping[str, Any], used: Collection[str] = ()) -> dict[str, float]:
    """What the warm-up of a run with these settings takes, and the length that a ramp is part of.

    A later end changes neither: a warm-up would begin again, and batches shrink. What other
    settings were made of is `used` up.
    """
    names = {*_LENGTHS, "num_warmup_steps", "warmup_proportion"} - {*used}
    before = TrainingConfig(**{name: settings[name] for name in names if name in settings})
    return {"warmup": before.warmup, "ramped_length": before.length}


def _share_of(steps: int, parts: int, at_most: int) -> int:
    return min(max(steps // parts, 1), at_most)
