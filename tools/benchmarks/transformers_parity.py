"""Fine-tunes the same model here and with transformers (PyTorch), step by step on the same batches.

Both start from the weights of one Hugging Face directory and the same fresh head, without dropout.
Both take google's AdamW: no bias correction, weight decay 0.01 but for LayerNorm and biases, the
gradient clipped to a global norm of 1, a linear warm-up and a linear decay. What is printed for
each task: the largest difference between their losses, and how many labels of the dev set both
predict alike (of a regression the largest difference between their numbers). Beside it stands how
far transformers' losses lie from its own where each batch has its rows in reverse: the sums over
rows are rounded otherwise, and nothing else differs.

It needs torch and transformers beside this package (pip install torch transformers).

Example:
  python -m tools.benchmarks.transformers_parity --data_dir=glue_data --tasks=MRPC,STS-B
      --init_checkpoint=all-MiniLM-L6-v2
"""

import dataclasses
import importlib.util
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from tools import command_line
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.training.config import TrainingConfig
    from keras_bert_impl.training.strategy import Devices
    from pipelines.tasks.glue import GlueTask
    from pipelines.tasks.task import Head


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """What is compared, and for how long."""

    tasks: tuple[str, ...] = option(("MRPC", "STS-B"), "Tasks of GLUE.")
    data_dir: Path = option(REQUIRED, "The folder with a folder for each of the tasks.")
    init_checkpoint: str = option(REQUIRED, "The encoder: a Hugging Face directory.")
    max_seq_length: int = option(128, "The most tokens of a row.", at_least=5)
    train_batch_size: int = option(16, "Rows of a step.", at_least=1)
    num_steps: int = option(100, "Steps that both take.", at_least=1)
    num_warmup_steps: int = option(10, "Steps of the warm-up.", at_least=0)
    learning_rate: float = option(2e-5, "The peak learning rate.", more_than=0)
    kernels: str = option("auto", "How our layers compute.", choices=("auto", "plain", "fast"))
    seed: int = option(1, "Of the head's weights and the order of the rows.")

    def __post_init__(self) -> None:
        check_options(self)


Batch = Mapping[str, NDArray]

FLAGS = ConfigFlags(__doc__, ParityConfig)

BETAS, EPSILON, WEIGHT_DECAY, CLIP_NORM = (0.9, 0.999), 1e-6, 0.01, 1.0
_NOT_DECAYED = ("bias", "LayerNorm.weight")
_DEV_BATCH = 32
_WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclass(frozen=True)
class Course:
    """What one side of the comparison did.

    Attributes:
        losses: of each step.
        logits: [rows, labels] of the dev set afterwards.
    """

    losses: list[float]
    logits: NDArray


@dataclass(frozen=True)
class Work:
    """What both sides have in common, as arrays: PyTorch and TensorFlow share no process well.

    Attributes:
        batches: what to train on, a batch for each step.
        rates: the learning rate of each step.
        dev: the batches to answer afterwards.
        dev_rows: the numbers of their rows; the last batch is filled up.
        num_labels: how many labels there are; 1 is a regression.
    """

    batches: list[Batch]
    rates: list[float]
    dev: list[Batch]
    dev_rows: list[NDArray]
    num_labels: int

    def in_reverse(self) -> "Work":
        """The same with the rows of each training batch in reverse: nothing but other rounding."""
        batches: list[Batch] = [
            {name: array[::-1].copy() for name, array in b.items()} for b in self.batches
        ]
        return dataclasses.replace(self, batches=batches)

    def course(self, losses: list[float], logits: Iterable[NDArray]) -> Course:
        """What came of it.

        Args:
            losses: of each step.
            logits: of each batch of the dev set, [rows or more, labels].
        """
        parts = zip(self.dev_rows, logits, strict=True)
        found = np.concatenate([some[: len(numbers)] for numbers, some in parts])
        return Course(losses, found[np.argsort(np.concatenate(self.dev_rows))])


def google_adamw(
    weight: Any, gradient: Any, moments: tuple[Any, Any], rate: float, decay: float
) -> None:
    """One update by google's AdamW, in place; arrays of NumPy or PyTorch.

    Args:
        weight: what is updated.
        gradient: the clipped gradient.
        moments: the means of the gradient and of its square.
        rate: the learning rate.
        decay: the weight decay of this weight.

    Example:
        >>> weight, moments = np.array([1.0]), (np.zeros(1), np.zeros(1))
        >>> google_adamw(weight, np.array([2.0]), moments, rate=0.1, decay=0.0)
        >>> round(float(weight[0]), 3)
        0.684
    """
    first, second = moments
    first *= BETAS[0]
    first += (1 - BETAS[0]) * gradient
    second *= BETAS[1]
    second += (1 - BETAS[1]) * gradient * gradient
    weight -= rate * (first / (second**0.5 + EPSILON) + decay * weight)


def our_course(work: Work, head: "Head", training: "TrainingConfig", devices: "Devices") -> Course:
    """Trains and answers with this package; changes the head's model.

    Args:
        work: what to do.
        head: the model, made in the devices' scope, and its objective.
        training: how it is trained.
        devices: where.
    """
    import tensorflow as tf

    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep

    state = TrainingState(head.model, training, devices)
    step = TrainingStep(state, head.objective, training)
    losses = []
    for number, (rate, batch) in enumerate(zip(work.rates, work.batches, strict=True)):
        (row,) = step.run(*step.prepare([batch], number, [rate]))
        losses.append(float(step.metrics(row)["loss"]))
    names = head.objective.input_names
    answer = tf.function(head.model, reduce_retracing=True)
    inputs = ({name: tf.constant(batch[name]) for name in names} for batch in work.dev)
    return work.course(losses, (answer(some)["logits"].numpy() for some in inputs))


def their_course(work: Work, folder: str, kernel: NDArray, bias: NDArray) -> Course:
    """The same with transformers and PyTorch.

    Args:
        work: what to do.
        folder: the Hugging Face directory of the encoder.
        kernel: the head's fresh weights, [hidden, labels].
        bias: [labels].
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    kind = "regression" if work.num_labels == 1 else "single_label_classification"
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=work.num_labels, problem_type=kind, **_WITHOUT_DROPOUT
    )
    weights = dict(model.named_parameters())
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(kernel.T))
        model.classifier.bias.copy_(torch.from_numpy(bias))
    losses = []
    for rate, batch in zip(work.rates, work.batches, strict=True):
        model.zero_grad()
        loss = model(**_torch_inputs(batch), labels=_torch_labels(batch)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), CLIP_NORM)
        with torch.no_grad():
            for name, weight in weights.items():
                decay = 0.0 if name.endswith(_NOT_DECAYED) else WEIGHT_DECAY
                google_adamw(weight, weight.grad, moments[name], rate, decay)
        losses.append(loss.item())
    with torch.no_grad():
        model.eval()
        return work.course(
            losses, [model(**_torch_inputs(batch)).logits.numpy() for batch in work.dev]
        )


def compare(ours: Course, theirs: Course) -> dict[str, float]:
    """What differs between two courses.

    Example:
        >>> one = Course([0.5, 0.25], np.array([[1.0, 2.0], [3.0, 0.0]]))
        >>> other = Course([0.5, 0.5], np.array([[1.0, 2.0], [3.0, 3.5]]))
        >>> compare(one, other)
        {'largest_loss_difference': 0.25, 'largest_logit_difference': 3.5, 'same_predictions': 1,
         'predictions': 2}
    """
    losses = np.abs(np.subtract(ours.losses, theirs.losses))
    figures = {
        "largest_loss_difference": float(losses.max()),
        "largest_logit_difference": float(np.abs(ours.logits - theirs.logits).max()),
    }
    if ours.logits.shape[1] > 1:
        same = ours.logits.argmax(axis=1) == theirs.logits.argmax(axis=1)
        figures |= {"same_predictions": int(same.sum()), "predictions": len(same)}
    return figures


def _torch_inputs(batch: Batch) -> dict[str, Any]:
    import torch

    names = (
        ("input_ids", "input_ids"),
        ("attention_mask", "input_mask"),
        ("token_type_ids", "segment_ids"),
    )
    return {theirs: torch.from_numpy(batch[ours]).long() for theirs, ours in names}


def _torch_labels(batch: Batch) -> Any:
    import torch

    labels = torch.from_numpy(batch["label_ids"])
    return labels if labels.is_floating_point() else labels.long()


def _run() -> None:
    config = FLAGS.config()
    if missing := [name for name in ("torch", "transformers") if not _is_installed(name)]:
        raise UserError(f"{' and '.join(missing)} not installed; pip install {' '.join(missing)}.")
    for name in config.tasks:
        with tempfile.TemporaryDirectory() as folder:
            figures = _compare_task(config, name, Path(folder))
        _show(config, name, figures)


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _compare_task(config: ParityConfig, name: str, folder: Path) -> dict[str, float]:
    import keras

    from keras_bert_impl.checkpoints.model_source import find_model
    from keras_bert_impl.checkpoints.restore import restore
    from keras_bert_impl.training.strategy import make_devices
    from pipelines.processes import worker_pool
    from pipelines.tasks.glue import find_task

    training = _training(config)
    devices = make_devices(training)
    source, task = find_model(config.init_checkpoint), find_task(name)
    keras.utils.set_random_seed(config.seed)
    with devices.strategy.scope():
        head = task.head(task.configure(source.config.replace(**_WITHOUT_DROPOUT)))
    restore(head.model, str(source.checkpoint))
    projection = head.model.classifier.projection
    kernel, bias = (np.array(weight) for weight in (projection.kernel, projection.bias))
    work = _work(config, task.at(config.data_dir / task.name), source.text, len(bias), folder)
    with worker_pool(1, multiprocessing.get_context("spawn"), "run it again") as pool:
        theirs, again = (
            pool.submit(their_course, some, str(source.checkpoint), kernel, bias).result()
            for some in (work, work.in_reverse())
        )
    ours = our_course(work, head, training, devices)
    for number in itertools.chain(range(0, config.num_steps, 10), [config.num_steps - 1]):
        print(f"step {number:4}: loss {ours.losses[number]:.6f} : {theirs.losses[number]:.6f}")
    rounding = compare(again, theirs)["largest_loss_difference"]
    return {**compare(ours, theirs), "rounding": rounding}


def _training(config: ParityConfig) -> "TrainingConfig":
    from keras_bert_impl.training.config import TrainingConfig

    return TrainingConfig(
        learning_rate=config.learning_rate,
        num_train_steps=config.num_steps,
        num_warmup_steps=config.num_warmup_steps,
        train_batch_size=config.train_batch_size,
        kernels=config.kernels,
    )


def _work(
    config: ParityConfig, task: "GlueTask", text: "TextSettings", num_labels: int, folder: Path
) -> Work:
    """The batches of a task; its rows are made in `folder`."""
    from keras_bert_impl.optimizers.schedules import WarmupSchedule
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from pipelines.inputs.row_batches import RowBatches, RowEvaluation
    from pipelines.tasks.task_data import TaskData

    steps = range(config.num_steps)
    data = TaskData(task, Tokenizer(text), config.max_seq_length, folder)
    rows, size = data.rows(task.train_split), config.train_batch_size
    batches = RowBatches(rows, size, config.seed, by_length=True)
    dev = RowEvaluation(data.rows(task.evaluation_splits[0]), _DEV_BATCH)
    schedule = WarmupSchedule(config.learning_rate, config.num_steps, config.num_warmup_steps)
    return Work(
        [batches.batch_at(number) for number in steps],
        [float(schedule.at(number)) for number in steps],
        list(dev.batches()),
        list(dev.numbers()),
        num_labels,
    )


def _show(config: ParityConfig, name: str, figures: Mapping[str, float]) -> None:
    print(
        f"{name}: over {config.num_steps} steps losses differ by "
        f"{figures['largest_loss_difference']:.1e} at most, logits of the dev set afterwards by "
        f"{figures['largest_logit_difference']:.1e} (transformers beside itself, with the rows of "
        f"each batch in reverse: losses by {figures['rounding']:.1e})"
    )
    if "predictions" in figures:
        print(f"{figures['same_predictions']} of {figures['predictions']} predictions are the same")
    print(json.dumps({"task": name, "num_steps": config.num_steps, **figures}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
