"""Compares our model's training step or inference with KerasHub's and PyTorch's in one run.

Contenders take turns, each in a process of its own. All sequences are full: no contender gains by
skipping padding. The peers run in their best settings for CPUs. Peak memory is the process's.

train: a pre-training step with forward and backward pass, clipping and AdamW; the encoder with the
masked-LM head (ours computes the next-sentence head, too).
inference: the encoder alone; ours_fast is the fused inference graph.
products are the matrix products of either alone, by TensorFlow: the least that a step can take.

Example:
  python -m tools.benchmarks.model --task=train --size=base --batch_size=16 --rounds=2
"""

import dataclasses
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from keras_bert_impl.backend import choose_products_for_batches
from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.options import Options, option
from pipelines.runs.plan_run import encoder_flops, made_up_examples, training_flops
from tools.benchmarks.measuring import in_child, in_turns, machine, report, seconds_of
from tools.config_flags import ConfigFlags

_WARM_UP = 2
_SIZES = (
    *("vocab_size", "num_hidden_layers", "num_attention_heads", "hidden_size"),
    "intermediate_size",
)
_OF_KERAS_HUB = ("token_ids", "padding_mask", "segment_ids")
_OF_TORCH = ("input_ids", "attention_mask", "token_type_ids")
Step = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Workload(Options):
    """The options of the comparison: the same sizes, data and precision for every contender.

    Example:
        >>> Workload(size="tiny", batch_size=2).features()["masked_lm_positions"].shape
        (2, 19)
    """

    task: str = option("train", "What to measure.", choices=("train", "inference"))
    size: str = option("base", "The model: tiny, mini, small, medium, base or large.")
    batch_size: int = option(16, "Sequences a step.", at_least=1)
    max_seq_length: int = option(128, "Tokens a sequence.", at_least=8)
    precision: str = option("bfloat16", "What to compute in.", choices=("bfloat16", "float32"))
    steps: int = option(4, "Timed steps a round, after two untimed ones.", at_least=1)
    vocab_size: int = option(30522, "Tokens in the model's vocabulary.", at_least=10)
    rounds: int = option(2, "How often the contenders take turns.", at_least=1)
    contenders: tuple[str, ...] = option(
        ("ours_fast", "ours_plain", "keras_hub", "torch"), "Who takes part."
    )
    child: str | None = option(None, "Measures one of them here (used by the tool itself).")

    @property
    def predictions(self) -> int:
        """Masked positions a sequence."""
        return max(1, round(self.max_seq_length * 0.15))

    @property
    def policy(self) -> str:
        return "mixed_bfloat16" if self.precision == "bfloat16" else "float32"

    @property
    def config(self) -> BertConfig:
        return named_config(self.size, self.vocab_size)

    def features(self) -> dict[str, np.ndarray]:
        length, predictions = self.max_seq_length, self.predictions
        return made_up_examples(self.batch_size, length, predictions, self.vocab_size)

    def flops(self) -> float:
        """Floating-point operations of all matrix products of one step."""
        length = self.max_seq_length
        if self.task == "train":
            return self.batch_size * training_flops(self.config, length, self.predictions)
        return self.batch_size * encoder_flops(self.config, length)

    def figures(self, seconds: Sequence[float]) -> dict[str, float]:
        """The median of some steps or rounds of steps, and their spread."""
        median = statistics.median(seconds)
        return {
            "seq/s": self.batch_size / median,
            "s/step": median,
            "spread": (max(seconds) - min(seconds)) / median,
            "GFLOP/s": self.flops() / median / 1e9,
        }


FLAGS = ConfigFlags(__doc__, Workload)


def our_training_step(workload: Workload, kernels: str) -> Step:
    """Takes one step of the real trainer each time it is called (TensorFlow)."""
    choose_products_for_batches()  # as the tools that train
    from keras_bert_impl.training.config import TrainingConfig
    from pipelines.runs.plan_run import training_step

    config = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=1000,
        num_warmup_steps=10,
        train_batch_size=workload.batch_size,
        precision=workload.precision,
        kernels=kernels,
    )
    return training_step(workload.config, config, workload.max_seq_length, workload.predictions)


def inference(workload: Workload, kernels: str) -> Step:
    """Computes the encoder's outputs of one batch each time it is called."""
    import tensorflow as tf

    from keras_bert_impl.cpu_kernels.inference import inference_function
    from keras_bert_impl.models.encoder import BertEncoder

    model = BertEncoder(workload.config, dtype=workload.policy)
    features = {name: workload.features()[name] for name in model.input}
    # Called like this, a model computes outside of training.
    compute = inference_function(model) if kernels == "fused" else tf.function(model)
    batch = {name: tf.constant(array) for name, array in features.items()}
    return lambda: np.asarray(compute(batch)["pooled_output"])


def products_of(workload: Workload) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shapes of the matrices that a forward pass multiplies."""
    config, rows, length = workload.config, workload.batch_size, workload.max_seq_length
    hidden, wide, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    tokens, masked, of_head = rows * length, rows * workload.predictions, hidden // heads
    layer = [
        ((tokens, hidden), (hidden, 3 * hidden)),
        ((rows, heads, length, of_head), (rows, heads, of_head, length)),
        ((rows, heads, length, length), (rows, heads, length, of_head)),
        ((tokens, hidden), (hidden, hidden)),
        ((tokens, hidden), (hidden, wide)),
        ((tokens, wide), (wide, hidden)),
    ]
    if workload.task == "inference":
        return config.num_hidden_layers * layer
    tops = [(masked, hidden, config.vocab_size), (rows, hidden, 2)]  # transforms, logits
    steps = [((n, size), (size, out)) for n, size, end in tops for out in (size, end)]
    return config.num_hidden_layers * layer + steps


def matrix_products(workload: Workload) -> Step:
    """Multiplies what a step multiplies, and nothing else."""
    choose_products_for_batches()
    import tensorflow as tf

    kind = tf.as_dtype(workload.precision)

    def matrix(shape: tuple[int, ...]) -> Any:
        return tf.Variable(tf.cast(tf.random.normal(shape), kind))

    pairs = [(matrix(left), matrix(right)) for left, right in products_of(workload)]

    def compute() -> Any:
        corners = []
        for left, right in pairs:
            product = tf.matmul(left, right)
            found = [product]
            if workload.task == "train":  # the gradients of both, from one of the product's shape
                found += [tf.matmul(product, right, transpose_b=True)]
                found += [tf.matmul(left, product, transpose_a=True)]
            corners += [one[..., 0, 0] for one in found]
        return corners

    compute = tf.function(compute)
    return lambda: [corner.numpy() for corner in compute()]


def keras_hub_training_step(workload: Workload) -> Step:
    """KerasHub's BERT with its masked-LM head, Keras' AdamW and compiled graph (no XLA on CPU)."""
    import keras
    import keras_hub

    encoder = _keras_hub_encoder(workload)
    positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=workload.vocab_size,
        token_embedding=encoder.token_embedding,
        intermediate_activation=lambda inputs: keras.activations.gelu(inputs, approximate=True),
    )
    scores = head(encoder.output["sequence_output"], mask_positions=positions)
    scores = keras.layers.Activation("linear", dtype="float32")(scores)
    model = keras.Model({**encoder.input, "masked_lm_positions": positions}, scores)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    features = workload.features()
    inputs = _renamed(features, *_OF_KERAS_HUB)
    inputs["masked_lm_positions"] = features["masked_lm_positions"]
    return lambda: model.train_on_batch(inputs, features["masked_lm_ids"])


def keras_hub_inference(workload: Workload) -> Step:
    """KerasHub's encoder on one batch."""
    import tensorflow as tf

    compute = tf.function(_keras_hub_encoder(workload))  # outside of training
    inputs = _renamed(workload.features(), *_OF_KERAS_HUB)
    inputs = {name: tf.constant(array) for name, array in inputs.items()}
    return lambda: np.asarray(compute(inputs)["pooled_output"])


def torch_training_step(
    workload: Workload, device: str = "cpu", compiled: Any = lambda f: f, **more: Any
) -> Step:
    """Hugging Face's BERT under bfloat16 autocast, fused AdamW, masked positions only."""
    import torch

    model = _torch_model(workload, "BertForMaskedLM", **more).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    features = _torch_features(workload, device)
    positions = features["masked_lm_positions"][..., None]

    def loss_of(features: Any, positions: Any) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=workload.precision == "bfloat16"):
            sequence = model.bert(**_renamed(features, *_OF_TORCH)).last_hidden_state
            masked = torch.gather(sequence, 1, positions.expand(-1, -1, sequence.shape[-1]))
            scores = model.cls(masked).float()
            return torch.nn.functional.cross_entropy(
                scores.view(-1, workload.vocab_size), features["masked_lm_ids"].view(-1)
            )

    loss_of = compiled(loss_of)

    def run() -> Any:
        loss = loss_of(features, positions)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return run


def torch_inference(
    workload: Workload, device: str = "cpu", compiled: Any = lambda f: f, **more: Any
) -> Step:
    """Hugging Face's encoder on one batch, its weights in bfloat16 (faster than autocast)."""
    import torch

    model = _torch_model(workload, "BertModel", **more).to(device).eval()
    if workload.precision == "bfloat16":
        model = model.to(torch.bfloat16)
    model, features = compiled(model), _torch_features(workload, device)

    def run() -> Any:
        with torch.no_grad():
            return model(**_renamed(features, *_OF_TORCH)).pooler_output.float()

    return run


def _torch_features(workload: Workload, device: str) -> dict[str, Any]:
    import torch

    features = workload.features().items()
    return {name: torch.tensor(array).long().to(device) for name, array in features}


def _keras_hub_encoder(workload: Workload) -> Any:
    import keras
    import keras_hub

    if workload.precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    sizes = (getattr(workload.config, one) for one in _SIZES)
    return keras_hub.models.BertBackbone(*sizes, dropout=0.1, max_sequence_length=512)


def _renamed(features: dict[str, Any], ids: str, mask: str, segments: str) -> dict[str, Any]:
    """The inputs of an encoder by a peer's names."""
    return {
        ids: features["input_ids"],
        mask: features["input_mask"],
        segments: features["segment_ids"],
    }


def _torch_model(workload: Workload, name: str, **more: Any) -> Any:
    import transformers

    sizes = {one: getattr(workload.config, one) for one in _SIZES}
    config = transformers.BertConfig(**{"attn_implementation": "sdpa", **sizes, **more})
    return getattr(transformers, name)(config)


CONTENDERS: dict[str, dict[str, Callable[[Workload], Step]]] = {
    "train": {
        "ours_fast": partial(our_training_step, kernels="fast"),
        "ours_plain": partial(our_training_step, kernels="plain"),
        "keras_hub": keras_hub_training_step,
        "torch": torch_training_step,
        "products": matrix_products,
    },
    "inference": {
        "ours_fast": partial(inference, kernels="fused"),
        "ours_plain": partial(inference, kernels="plain"),
        "keras_hub": keras_hub_inference,
        "torch": torch_inference,
        "products": matrix_products,
    },
}


def measure(workload: Workload, contender: str) -> dict[str, float]:
    """Measures a contender in this process: its median step, their spread, its peak memory."""
    step = CONTENDERS[workload.task][contender](workload)
    for _ in range(_WARM_UP):
        step()
    seconds = [seconds_of(step) for _ in range(workload.steps)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {**workload.figures(seconds), "peak GB": peak}


def compare(
    config: Workload, module: str, measure: Callable[..., dict[str, float]], **about: str
) -> None:
    """Measures contenders in processes of their own, which call this with one of them."""
    if config.child:
        print(json.dumps(measure(config, **json.loads(config.child))))
        return
    own = {x: y for x, y in dataclasses.asdict(config).items() if x not in ("contenders", "child")}
    flags = [f"--{name}={value}" for name, value in own.items()]
    ways = {
        name: partial(in_child, module, {"contender": name}, *flags) for name in config.contenders
    }
    report(in_turns(ways, config.rounds), **own, **about)


def _run(config: Workload) -> None:
    compare(config, "tools.benchmarks.model", measure, machine=machine(), commit=_commit())


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
