"""Compares our training step or encoder on JAX with PyTorch's on one GPU.

Each contender has a process of its own. All sequences are full and nothing is dropped: no contender
gains by padding, and each takes its fastest attention. PyTorch runs Hugging Face's BERT compiled,
with fused AdamW. A step's share of the peak counts matrix products alone, a backward pass as two
forward ones, and the scores of masked positions only.

Example:
  python -m tools.benchmarks.gpu --task=train --batch_size=64 --max_seq_length=512
"""

import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from keras_bert_impl.backend import JAX
from keras_bert_impl.config import BertConfig
from keras_bert_impl.options import check_options, option
from tools.benchmarks.measuring import in_child, in_turns, report
from tools.benchmarks.model import Workload, torch_model
from tools.config_flags import ConfigFlags

_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class GpuConfig(Workload):
    """The options of the comparison."""

    task: str = option("train", "What to measure.", choices=("train", "inference"))
    peak: float = option(989.0, "TFLOP/s of the card in bfloat16 (989: an H100 SXM).")
    contenders: tuple[str, ...] = option(("ours", "ours_plain", "torch"), "Who takes part.")
    child: str | None = option(None, "Measures one of them here (used by the tool itself).")

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def config(self) -> BertConfig:
        """The model's configuration, without dropout."""
        return super().config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


FLAGS = ConfigFlags(__doc__, GpuConfig)
Run = Callable[[], Any]
Way = tuple[Run, Callable[[Any], Any]]
"""What takes a step, without waiting for the GPU, and what waits for a step's result."""


def our_training_step(workload: Workload, kernels: str) -> Way:
    """Our model, loss and optimizer, by Keras' stateless calls."""
    import jax

    from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.optimizers.bert_adamw import BertAdamW
    from keras_bert_impl.training.objectives import PretrainingObjective

    model = BertPretrainer(workload.config, dtype=workload.policy)
    model.kernels = choose_kernels(kernels)
    optimizer, objective = BertAdamW(1e-4, global_clipnorm=1.0), PretrainingObjective()
    optimizer.build(model.trainable_variables)
    normalizers = objective.normalizers(workload.features())
    batch = jax.device_put(workload.features())
    inputs = {name: batch[name] for name in objective.input_names}

    def loss_of(weights: Any, batch: Any, inputs: Any) -> Any:
        outputs, _ = model.stateless_call(weights, [], inputs, training=True)
        return objective.loss(outputs, batch, normalizers)[0]

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Any, moments: Any, batch: Any, inputs: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch, inputs)
        return loss, *optimizer.stateless_apply(moments, gradients, weights)

    # Copies: the variables keep their own arrays, and a step takes those that it is given.
    state = [
        [variable.value + 0 for variable in variables]
        for variables in (model.trainable_variables, optimizer.variables)
    ]

    def run() -> Any:
        loss, *state[:] = step(*state, batch, inputs)
        return loss

    return run, float


def our_inference(workload: Workload, kernels: str) -> Way:
    """Our encoder with weights in the precision that is computed in."""
    import jax

    from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels
    from keras_bert_impl.models.encoder import BertEncoder

    model = BertEncoder(workload.config, dtype=workload.precision)
    model.kernels = choose_kernels(kernels)
    batch = jax.device_put({name: workload.features()[name] for name in model.input})
    weights = [variable.value for variable in model.trainable_variables]
    compute = jax.jit(lambda weights, batch: model.stateless_call(weights, [], batch)[0])
    return lambda: compute(weights, batch)["pooled_output"], jax.block_until_ready


def torch_training_step(workload: Workload, mode: str) -> Way:
    """Hugging Face's model compiled, under bfloat16 autocast; no mask, so that it may use flash."""
    import torch
    from torch.nn.functional import cross_entropy

    model = _torch_model(workload, "BertForPreTraining").train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    batch = _torch_batch(workload)
    positions = batch["masked_lm_positions"][..., None]

    @torch.compile(mode=mode)
    def loss_of(batch: Any, positions: Any) -> Any:
        with torch.autocast(_DEVICE, torch.bfloat16, enabled=workload.precision == "bfloat16"):
            outputs = model.bert(batch["input_ids"], token_type_ids=batch["segment_ids"])
            sequence = outputs.last_hidden_state
            masked = torch.gather(sequence, 1, positions.expand(-1, -1, sequence.shape[-1]))
            scores, next_sentence = model.cls(masked, outputs.pooler_output)
            loss = cross_entropy(scores.float().flatten(0, 1), batch["masked_lm_ids"].flatten())
            labels = batch["next_sentence_labels"].flatten()
            return loss + cross_entropy(next_sentence.float(), labels)

    def run() -> Any:
        loss = loss_of(batch, positions)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return run, float


def torch_inference(workload: Workload, mode: str) -> Way:
    """Hugging Face's encoder compiled, its weights in the precision that is computed in."""
    import torch

    model = _torch_model(workload, "BertModel").eval().to(getattr(torch, workload.precision))
    compiled = torch.compile(model, mode=mode)
    batch = _torch_batch(workload)

    @torch.no_grad()
    def run() -> Any:
        outputs = compiled(batch["input_ids"], token_type_ids=batch["segment_ids"])
        return outputs.pooler_output[0, 0]

    return run, float


_DEVICE = "cuda"


def _torch_model(workload: Workload, name: str) -> Any:
    nothing_dropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = torch_model(workload, name, hidden_act="gelu_pytorch_tanh", **nothing_dropped)
    return model.to(_DEVICE)


def _torch_batch(workload: Workload) -> dict[str, Any]:
    import torch

    features = workload.features()
    return {name: torch.tensor(array).long().to(_DEVICE) for name, array in features.items()}


CONTENDERS: dict[str, dict[str, Callable[[Workload], Way]]] = {
    "train": {
        "ours": partial(our_training_step, kernels="auto"),
        "ours_plain": partial(our_training_step, kernels="plain"),
        "torch": partial(torch_training_step, mode="default"),
        "torch_max": partial(torch_training_step, mode="max-autotune-no-cudagraphs"),
    },
    "inference": {
        "ours": partial(our_inference, kernels="auto"),
        "ours_plain": partial(our_inference, kernels="plain"),
        "torch": partial(torch_inference, mode="default"),
        "torch_max": partial(torch_inference, mode="max-autotune"),
    },
}


def measure(config: GpuConfig, contender: str) -> dict[str, float]:
    """Measures a contender in this process: the median step of some rounds, and their spread."""
    run, wait = CONTENDERS[config.task][contender](config)
    for _ in range(3):
        wait(run())
    rounds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(config.steps - 1):
            run()
        wait(run())
        rounds.append((time.perf_counter() - start) / config.steps)
    median = statistics.median(rounds)
    rate = config.flops(training=config.task == "train") / median / 1e12
    return {
        "seq/s": config.batch_size / median,
        "s/step": median,
        "spread": (max(rounds) - min(rounds)) / median,
        "TFLOP/s": rate,
        "% of peak": 100 * rate / config.peak,
    }


def _run(config: GpuConfig) -> None:
    if config.child:
        os.environ["KERAS_BACKEND"] = JAX  # nothing has imported Keras yet
        print(json.dumps(measure(config, config.child)))
        return
    fields = {**dataclasses.asdict(config), "contenders": None, "child": None}
    flags = [f"--{name}={value}" for name, value in fields.items() if value is not None]
    module = "tools.benchmarks.gpu"
    ways = {name: partial(in_child, module, name, *flags) for name in config.contenders}
    report(in_turns(ways), **fields)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
