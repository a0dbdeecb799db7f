"""Says what a pre-training run takes: parameters, memory, the largest batch, operations, hours.

Example:
  keras-bert plan_run --model_size=base --train_batch_size=256 --num_train_steps=1000000
      --device_memory_gb=80 --precision=bfloat16 --examples_per_second=480
"""

import sys

from pipelines.runs.plan_run import PlanRunConfig, PlanRunResults, plan
from tools.config_flags import ConfigFlags, add_tpu_flags

FLAGS = ConfigFlags(__doc__, PlanRunConfig)
add_tpu_flags(FLAGS)


def _run(config: PlanRunConfig) -> None:
    _show(plan(config))


def _show(results: PlanRunResults) -> None:
    plan = results.plan
    print(f"{'parameters':24} {plan.parameters:>15,}")
    for name, count in results.parts.items():
        print(f"  {name:22} {count:>15,}")
    print(f"{'memory of a device':24} {sum(plan.memory.values()) / 1e9:>12.2f} GB")
    for name, size in plan.memory.items():
        print(f"  {name:22} {size / 1e9:>12.2f} GB")
    if plan.largest_batch is not None:
        print(f"{'largest batch that fits':24} {plan.largest_batch:>15,}")
    print(f"{'examples':24} {plan.examples:>15,}")
    print(f"{'tokens':24} {plan.tokens:>15,}")
    print(f"{'operations':24} {plan.flops:>15.3g}")
    if results.examples_per_second and plan.hours is not None:
        print(f"{'examples a second':24} {results.examples_per_second:>15.1f}")
        print(f"{'operations a second':24} {plan.flops / plan.hours / 3600:>15.3g}")
        print(f"{'hours':24} {plan.hours:>15.1f}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
