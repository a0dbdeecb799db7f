"""Says what a pre-training run takes: parameters, memory, the largest batch, operations, time.

Example:
  keras-bert plan_run --model_size=base --train_batch_size=256 --num_train_steps=1000000
      --num_warmup_steps=10000 --device_memory_gb=80 --precision=bfloat16
      --examples_per_second=480 --price_per_hour=2.50 --num_examples=50000000
"""

import sys

from keras_bert_impl.progress import format_bytes
from pipelines.runs.plan_run import PlanRunConfig, PlanRunResults, plan
from tools.config_flags import ConfigFlags, add_tpu_flags

FLAGS = ConfigFlags(__doc__, PlanRunConfig)
add_tpu_flags(FLAGS)


def _run(config: PlanRunConfig) -> None:
    _show(plan(config))


def _show(results: PlanRunResults) -> None:
    plan = results.plan
    _row("parameters", f"{plan.parameters:,}")
    for name, count in results.parts.items():
        _row(f"  {name}", f"{count:,}")
    _row("memory of a device", format_bytes(sum(plan.memory.values())))
    for name, size in plan.memory.items():
        # Gradients take the place of activations where these are larger.
        _row(f"  {name}", format_bytes(size) if size else "in activations")
    if plan.largest_batch is not None:
        _row("largest batch that fits", f"{plan.largest_batch:,}")
    _row("examples", f"{plan.examples:,}")
    _row("tokens", f"{plan.tokens:,}")
    _row("operations", f"{plan.flops:.3g}")
    if results.epochs:
        _row("epochs", f"{results.epochs.number:,.1f}")
    if results.examples_per_second and plan.hours is not None:
        _row("examples a second", f"{results.examples_per_second:.1f}")
        _row("operations a second", f"{plan.flops / plan.hours / 3600:.3g}")
        _row(*_time(plan.hours))
    if results.price is not None:
        _row("price", f"{results.price:,.2f}")
    for remark in results.remarks:
        print(FLAGS.in_flags(f"Note: {remark}"))


def _row(name: str, value: str) -> None:
    print(f"{name:24} {value:>15}")


def _time(hours: float) -> tuple[str, str]:
    """The duration's unit that fits, and its number.

    Example:
        >>> _time(148.1), _time(0.5), _time(0.002)
        (('hours', '148.1'), ('minutes', '30.0'), ('seconds', '7.2'))
    """
    if hours >= 1:
        return "hours", f"{hours:,.1f}"
    return (
        ("minutes", f"{hours * 60:.1f}") if hours * 60 >= 1 else ("seconds", f"{hours * 3600:.1f}")
    )


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
