"""Compares our training step or encoder on JAX with PyTorch's on one GPU.

All sequences are full and nothing is dropped, so that each takes its fastest attention. A step's
share of the peak counts matrix products alone, a backward pass as two forward ones, and the scores
of masked positions only.

Example:
  python -m tools.benchmarks.gpu --batch_size=64 --max_seq_length=512
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from keras_bert_impl.backend import JAX
from keras_bert_impl.config import BertConfig
from keras_bert_impl.options import option
from tools.benchmarks.measuring import seconds_of
from tools.benchmarks.model import Step, Workload, compare, torch_inference, torch_training_step
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class GpuConfig(Workload):
    """The options of the comparison."""

    peak: float = option(989.0, "TFLOP/s of the card in bfloat16 (989: an H100 SXM).")
    rounds: int = option(1, "How often the contenders take turns.", at_least=1)
    contenders: tuple[str, ...] = option(("ours", "ours_plain", "torch"), "Who takes part.")

    @property
    def config(self) -> BertConfig:
        """The model's configuration, without dropout."""
        return super().config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


FLAGS = ConfigFlags(__doc__, GpuConfig)


def ours(config: GpuConfig, kernels: str) -> Step:
    """Our model, loss and optimizer by Keras' stateless calls, or the encoder in one precision."""
    import jax

    from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels
    from keras_bert_impl.models.encoder import BertEncoder
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.optimizers.bert_adamw import BertAdamW
    from keras_bert_impl.training.objectives import PretrainingObjective

    training = config.task == "train"
    kind = BertPretrainer if training else BertEncoder
    model = kind(config.config, dtype=config.policy if training else config.precision)
    model.kernels = choose_kernels(kernels)
    optimizer, objective = BertAdamW(1e-4, global_clipnorm=1.0), PretrainingObjective()
    optimizer.build(model.trainable_variables)
    normalizers = objective.normalizers(config.features())
    # Copies: the variables keep their own arrays, and a step takes those that it is given.
    weights = [variable.value + 0 for variable in model.trainable_variables]
    moments = [variable.value + 0 for variable in optimizer.variables]
    batch = jax.device_put(config.features())
    inputs = {name: batch[name] for name in model.input}

    def loss_of(weights: Any, batch: Any, inputs: Any) -> Any:
        outputs, _ = model.stateless_call(weights, [], inputs, training=True)
        return objective.loss(outputs, batch, normalizers)[0]

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Any, moments: Any, batch: Any, inputs: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch, inputs)
        return loss, *optimizer.stateless_apply(moments, gradients, weights)

    def train() -> Any:
        nonlocal weights, moments
        loss, weights, moments = step(weights, moments, batch, inputs)
        return loss

    encode = jax.jit(lambda weights, inputs: model.stateless_call(weights, [], inputs)[0])
    return train if training else lambda: encode(weights, inputs)["pooled_output"]


def torch_compiled(config: GpuConfig) -> Step:
    """PyTorch's side of the comparison on CPUs, compiled, with our activation and no dropout."""
    import torch
    import transformers

    # Transformers' own "sdpa" gives a compiled model a mask, with which there is no flash.
    def attend(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> Any:
        context = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return context.transpose(1, 2).contiguous(), None

    transformers.AttentionInterface.register("full", attend)
    transformers.AttentionMaskInterface.register("full", lambda *_, **__: None)
    torch.set_float32_matmul_precision("high")
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    more = {"hidden_act": "gelu_pytorch_tanh", "attn_implementation": "full", **rates}
    make = torch_training_step if config.task == "train" else torch_inference
    return make(config, device="cuda", compiled=torch.compile, **more)


CONTENDERS: dict[str, Callable[[GpuConfig], Step]] = {
    "ours": partial(ours, kernels="auto"),
    "ours_plain": partial(ours, kernels="plain"),
    "torch": torch_compiled,
}


def measure(config: GpuConfig, contender: str) -> dict[str, float]:
    """Measures a contender in this process: the median of some rounds, and their spread."""
    run = CONTENDERS[contender](config)

    def steps() -> None:
        *_, last = (run() for _ in range(config.steps))
        float(last.flatten()[0])  # waits for the GPU, which the steps do not

    steps()  # compiles
    rounds = [seconds_of(steps) / config.steps for _ in range(5)]
    figures = config.figures(rounds)
    rate = figures.pop("GFLOP/s") / 1000
    return {**figures, "TFLOP/s": rate, "% of peak": 100 * rate / config.peak}


def _run(config: GpuConfig) -> None:
    if config.child:
        os.environ["KERAS_BACKEND"] = JAX  # nothing has imported Keras yet
    compare(config, "tools.benchmarks.gpu", measure)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
