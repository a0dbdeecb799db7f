"""Fine-tunes the same model here and with transformers (PyTorch), step by step on the same batches.

Both start from the weights of one Hugging Face directory and the same fresh head, without dropout.
Both take google's AdamW: no bias correction, weight decay 0.01 but for LayerNorm and biases, the
gradient clipped to a global norm of 1, a linear warm-up and a linear decay. What is printed for
each task: the largest difference between their losses, and how much of the dev set both predict
alike: a text's label, a tagged word's tag, where a window's answer starts and where it ends (of a
regression the largest difference between their numbers). Next to it stands how far transformers'
losses lie from its own where each batch has its rows in reverse: the sums over rows are rounded
otherwise, and nothing else differs.

Texts with labels (--data_dir, --tasks), questions (--train_file and --predict_file, in SQuAD's
form) and tagged words (--tags_dir) are compared if they are given. In the loss of questions
padding competes with the answer, as it does in transformers; but [PAD]'s vector, which transformers
leaves untrained, is trained on both sides, as in google's code.

It needs torch and transformers in addition (pip install torch transformers).

Example:
  python -m tools.benchmarks.parity --data_dir=glue_data --tasks=MRPC,STS-B
      --init_checkpoint=all-MiniLM-L6-v2
"""

import dataclasses
import itertools
import multiprocessing
import operator
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from tools.benchmarks.measuring import cores, missing, show_json
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.training.config import TrainingConfig
    from keras_bert_impl.training.strategy import Devices
    from pipelines.fine_tuning.task import Head, Task


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """The options of the comparison.

    Raises:
        UserError: a value out of range, or nothing to compare.
    """

    tasks: tuple[str, ...] = option(("MRPC", "STS-B"), "Tasks of GLUE in data_dir.")
    data_dir: Path | None = option(None, "The folder with a folder for each of the tasks.")
    train_file: Path | None = option(None, "Questions to train on, in SQuAD's form.")
    predict_file: Path | None = option(None, "Questions to answer afterwards.")
    tags_dir: Path | None = option(None, "The folder with train.txt and dev.txt, tagged words.")
    init_checkpoint: str = option(REQUIRED, "The encoder: a Hugging Face directory.")
    max_seq_length: int = option(128, "The most tokens of a row.", at_least=5)
    max_query_length: int = option(64, "The most tokens of a question.", at_least=1)
    train_batch_size: int = option(16, "Rows of a step.", at_least=1)
    num_steps: int = option(100, "Steps that both take.", at_least=1)
    num_warmup_steps: int = option(10, "Steps of the warm-up.", at_least=0)
    learning_rate: float = option(2e-5, "The peak learning rate.", more_than=0)
    dev_share: float = option(
        1.0, "Answer this share of the dev set's batches.", more_than=0, at_most=1
    )
    kernels: str = option("auto", "How our layers compute.", choices=("auto", "plain", "fast"))
    seed: int = option(1, "Of the head's weights and the order of the rows.")

    def __post_init__(self) -> None:
        check_options(self)
        if not (self.data_dir or self.train_file or self.tags_dir):
            raise UserError(
                "nothing says what to compare; give `data_dir`, `train_file` or `tags_dir`."
            )
        if bool(self.train_file) != bool(self.predict_file):
            raise UserError("`train_file` and `predict_file` go together; give both of them.")


FLAGS = ConfigFlags(__doc__, ParityConfig)

_DEV_BATCH = 32

Batch = Mapping[str, NDArray]

_WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

_BETAS, _EPSILON, _WEIGHT_DECAY, _CLIP_NORM = (0.9, 0.999), 1e-6, 0.01, 1.0
_NOT_DECAYED = ("bias", "LayerNorm.weight")
_TAGS = "tag_ids"
_SPAN = ("start_logits", "end_logits")
_IGNORED = -100  # a label that PyTorch's loss leaves out


@dataclass(frozen=True)
class Peer:
    """A model of transformers, and what its parts are called.

    Attributes:
        model: its class.
        head: its last layer.
        labels: what it calls the labels, by their names here.
        outputs: its logits; they have the same names here.
        options: further arguments to make it with.
    """

    model: str
    head: str
    labels: Mapping[str, str]
    outputs: tuple[str, ...] = ("logits",)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_texts(cls, num_labels: int) -> "Peer":
        """A classifier of texts; one label is a regression."""
        kind = "regression" if num_labels == 1 else "single_label_classification"
        options = {"num_labels": num_labels, "problem_type": kind}
        names = {"label_ids": "labels"}
        return cls("AutoModelForSequenceClassification", "classifier", names, options=options)

    @classmethod
    def of_tags(cls, num_labels: int) -> "Peer":
        """A classifier of tokens."""
        options = {"num_labels": num_labels}
        names = {_TAGS: "labels"}
        return cls("AutoModelForTokenClassification", "classifier", names, options=options)

    @classmethod
    def of_questions(cls, num_labels: int) -> "Peer":
        """A start and an end for each question."""
        del num_labels  # always two
        names = {name: name for name in ("start_positions", "end_positions")}
        return cls("AutoModelForQuestionAnswering", "qa_outputs", names, _SPAN)

    def load(self, folder: str, **options: Any) -> Any:
        """The model with the weights of a Hugging Face directory."""
        import transformers

        make = operator.attrgetter(self.model)(transformers)
        return make.from_pretrained(folder, **self.options, **options)


@dataclass(frozen=True)
class TrainingRun:
    """The results of one side of the comparison.

    Attributes:
        losses: of each step.
        logits: [decisions, choices] of the dev set afterwards, minus infinity where there is no
            choice. A decision is a text's label, a token's tag, or where an answer starts or ends.
    """

    losses: list[float]
    logits: NDArray


@dataclass(frozen=True)
class Work:
    """The input that both sides share.

    Attributes:
        batches: what to train on, a batch for each step.
        rates: the learning rate of each step.
        dev: the batches to answer afterwards.
        dev_rows: the numbers of their rows; the last batch is filled up.
        peer: the other side's model.
    """

    batches: list[Batch]
    rates: list[float]
    dev: list[Batch]
    dev_rows: list[NDArray]
    peer: Peer

    def in_reverse(self) -> "Work":
        """The same with the rows of each training batch in reverse: nothing but other rounding."""
        batches: list[Batch] = [
            {name: array[::-1].copy() for name, array in b.items()} for b in self.batches
        ]
        return dataclasses.replace(self, batches=batches)

    def finished(self, losses: list[float], outputs: Iterable[Batch]) -> TrainingRun:
        """A run with its decisions in the order of the dev set's rows.

        Args:
            losses: of each step.
            outputs: for each batch of the dev set its logits by name, [rows or more, ...].
        """
        parts, rows = [], []
        for batch, numbers, found in zip(self.dev, self.dev_rows, outputs, strict=True):
            logits, owners = decisions(batch, found, len(numbers))
            parts.append(logits)
            rows.append(numbers[owners])
        width = max(part.shape[1] for part in parts)
        wide = [
            np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-np.inf)
            for part in parts
        ]
        order = np.argsort(np.concatenate(rows), kind="stable")
        return TrainingRun(losses, np.concatenate(wide)[order])


def decisions(batch: Batch, outputs: Batch, count: int) -> tuple[NDArray, NDArray]:
    """The decisions of a model in a batch.

    Args:
        batch: what it read.
        outputs: its logits by name, [rows or more, ...].
        count: how many rows are real.

    Returns:
        The logits [decisions, choices], minus infinity at padding; and the row of each decision.

    Example:
        >>> batch = {"tag_ids": np.array([[0, 2], [1, 0]])}
        >>> logits, rows = decisions(batch, {"logits": np.arange(8).reshape(2, 2, 2)}, 2)
        >>> logits.tolist(), rows.tolist()
        ([[2, 3], [4, 5]], [0, 1])
    """
    if _SPAN[0] in outputs:
        is_token = batch["input_mask"][:count] > 0
        both = [np.where(is_token, outputs[name][:count], -np.inf) for name in _SPAN]
        return np.concatenate(both), np.tile(np.arange(count), 2)
    logits = outputs["logits"][:count]
    if _TAGS not in batch:
        return logits, np.arange(count)
    tagged = np.nonzero(batch[_TAGS][:count] > 0)
    return logits[tagged], tagged[0]


def google_adamw(
    weight: Any, gradient: Any, moments: tuple[Any, Any], rate: float, decay: float
) -> None:
    """One update by google's AdamW, in place; arrays of NumPy or PyTorch.

    The moments are the means of the (clipped) gradient and of its square.

    Example:
        >>> weight, moments = np.array([1.0]), (np.zeros(1), np.zeros(1))
        >>> google_adamw(weight, np.array([2.0]), moments, rate=0.1, decay=0.0)
        >>> round(float(weight[0]), 3)
        0.684
    """
    first, second = moments
    first *= _BETAS[0]
    first += (1 - _BETAS[0]) * gradient
    second *= _BETAS[1]
    second += (1 - _BETAS[1]) * gradient * gradient
    weight -= rate * (first / (second**0.5 + _EPSILON) + decay * weight)


def our_training(
    work: Work, head: "Head", training: "TrainingConfig", devices: "Devices"
) -> TrainingRun:
    """Trains and answers with this package; changes the head's model."""
    import tensorflow as tf

    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep

    state = TrainingState(head.model, training, devices)
    step = TrainingStep(state, head.objective, training)
    losses = []
    for number, (rate, batch) in enumerate(zip(work.rates, work.batches, strict=True)):
        (row,) = step.run(*step.prepare([batch], number, [rate]))
        losses.append(float(step.metrics(row)["loss"]))
    answer = tf.function(head.model, reduce_retracing=True)

    def answered(batch: Batch) -> Batch:
        found = answer({name: tf.constant(batch[name]) for name in head.objective.input_names})
        return {name: found[name].numpy() for name in work.peer.outputs}

    return work.finished(losses, map(answered, work.dev))


def their_training(work: Work, folder: str, kernel: NDArray, bias: NDArray) -> TrainingRun:
    """The same with transformers and PyTorch."""
    import torch

    torch.set_num_threads(len(cores()))
    model = work.peer.load(folder, **_WITHOUT_DROPOUT)
    # [PAD]'s vector has no gradient in transformers. Where padding competes with an answer,
    # google's code trains it, and so do we.
    model.get_input_embeddings().padding_idx = None
    weights = dict(model.named_parameters())
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}
    with torch.no_grad():
        head = operator.attrgetter(work.peer.head)(model)
        head.weight.copy_(torch.from_numpy(kernel.T))
        head.bias.copy_(torch.from_numpy(bias))
    losses = []
    for rate, batch in zip(work.rates, work.batches, strict=True):
        model.zero_grad()
        loss = model(**torch_inputs(batch), **torch_labels(batch, work.peer)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), _CLIP_NORM)
        with torch.no_grad():
            for name, weight in weights.items():
                decay = 0.0 if name.endswith(_NOT_DECAYED) else _WEIGHT_DECAY
                google_adamw(weight, weight.grad, moments[name], rate, decay)
        losses.append(loss.item())
    model.eval()

    def answered(batch: Batch) -> Batch:
        with torch.no_grad():
            found = model(**torch_inputs(batch))
        return {name: found[name].numpy() for name in work.peer.outputs}

    return work.finished(losses, map(answered, work.dev))


def compare(ours: TrainingRun, theirs: TrainingRun) -> dict[str, float]:
    """The differences between two runs.

    Example:
        >>> one = TrainingRun([0.5, 0.25], np.array([[1.0, 2.0], [3.0, 0.0]]))
        >>> other = TrainingRun([0.5, 0.5], np.array([[1.0, 2.0], [3.0, 3.5]]))
        >>> compare(one, other)
        {'largest_loss_difference': 0.25, 'largest_logit_difference': 3.5, 'same_predictions': 1,
         'predictions': 2}
    """
    losses = np.abs(np.subtract(ours.losses, theirs.losses))
    is_choice = np.isfinite(ours.logits)
    figures = {
        "largest_loss_difference": float(losses.max()),
        "largest_logit_difference": float(
            np.abs(ours.logits[is_choice] - theirs.logits[is_choice]).max()
        ),
    }
    if ours.logits.shape[1] > 1:
        same = ours.logits.argmax(axis=1) == theirs.logits.argmax(axis=1)
        figures |= {"same_predictions": int(same.sum()), "predictions": len(same)}
    return figures


def torch_inputs(batch: Batch) -> dict[str, Any]:
    """Gives a batch as the inputs of a model of transformers."""
    import torch

    names = (
        ("input_ids", "input_ids"),
        ("attention_mask", "input_mask"),
        ("token_type_ids", "segment_ids"),
    )
    return {theirs: torch.from_numpy(batch[ours]).long() for theirs, ours in names}


def torch_labels(batch: Batch, peer: Peer) -> dict[str, Any]:
    """Gives the targets of its loss."""
    import torch

    labels = {}
    for name, theirs in peer.labels.items():
        found = torch.from_numpy(batch[name])
        found = found if found.is_floating_point() else found.long()
        # A token without a tag has 0 here.
        labels[theirs] = found if name != _TAGS else torch.where(found > 0, found - 1, _IGNORED)
    return labels


@dataclass(frozen=True)
class Compared:
    """A task with its two models.

    Attributes:
        task: its rows and its head.
        last_layer: where the model has it.
        peer: the other side's model, by the number of labels.
    """

    task: "Task[Any, Any]"
    last_layer: str
    peer: Callable[[int], Peer]


def compared_tasks(config: ParityConfig) -> Iterator[Compared]:
    """Gives what is to be compared.

    Raises:
        UserError: an unknown task, or a file that is not what it should be.
    """
    from pipelines.tasks.labels.glue import find_task
    from pipelines.tasks.questions.task import QuestionTask
    from pipelines.tasks.tagging.options import TaggingConfig
    from pipelines.tasks.tagging.task import open_tagging

    for name in config.tasks if config.data_dir else ():
        task = find_task(name)
        yield Compared(
            task.at(Path(config.data_dir or "") / task.name),
            "classifier.projection",
            Peer.of_texts,
        )
    if config.train_file:
        questions = QuestionTask(
            train_file=config.train_file,
            predict_file=config.predict_file,
            max_query_length=config.max_query_length,
            padding_competes=True,
        )
        yield Compared(questions, "span.projection", Peer.of_questions)
    if config.tags_dir:
        tags = open_tagging(TaggingConfig(data_dir=config.tags_dir))
        yield Compared(tags, "tagger.projection", Peer.of_tags)


def _run(config: ParityConfig) -> None:
    if lacking := missing("torch", "transformers"):
        raise UserError(f"{' and '.join(lacking)} not installed; pip install {' '.join(lacking)}.")
    for compared in compared_tasks(config):
        with tempfile.TemporaryDirectory() as folder:
            figures = _compare_task(config, compared, Path(folder))
        _show(config, compared.task.name, figures)


def _compare_task(config: ParityConfig, compared: Compared, folder: Path) -> dict[str, float]:
    import keras

    from keras_bert_impl.checkpoints.model_source import find_model
    from keras_bert_impl.checkpoints.restore import restore
    from keras_bert_impl.training.strategy import make_devices
    from pipelines.processes import worker_pool

    training = _training(config)
    devices = make_devices(training)
    source, task = find_model(config.init_checkpoint), compared.task
    keras.utils.set_random_seed(config.seed)
    with devices.strategy.scope():
        head = task.head(task.configure(source.config.replace(**_WITHOUT_DROPOUT)))
    restore(head.model, str(source.checkpoint))
    projection = operator.attrgetter(compared.last_layer)(head.model)
    kernel, bias = (np.array(weight) for weight in (projection.kernel, projection.bias))
    work = _work(config, task, source.text, compared.peer(len(bias)), folder)
    with worker_pool(1, multiprocessing.get_context("spawn"), "run it again") as pool:
        theirs, again = (
            pool.submit(their_training, some, str(source.checkpoint), kernel, bias).result()
            for some in (work, work.in_reverse())
        )
    ours = our_training(work, head, training, devices)
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
    config: ParityConfig, task: "Task[Any, Any]", text: "TextSettings", peer: Peer, folder: Path
) -> Work:
    """The batches of a task; its rows are made in `folder`."""
    from keras_bert_impl.optimizers.schedules import WarmupSchedule
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from pipelines.fine_tuning.task_data import TaskData
    from pipelines.inputs.row_batches import RowBatches, RowEvaluation

    steps = range(config.num_steps)
    data = TaskData(task, Tokenizer(text), config.max_seq_length, folder)
    rows, size = data.rows(task.train_split), config.train_batch_size
    batches = RowBatches(rows, size, config.seed, by_length=True)
    dev = RowEvaluation(data.rows(task.evaluation_splits[0]), _DEV_BATCH)
    every = round(1 / config.dev_share)  # short and long rows alike
    dev_rows = list(itertools.islice(dev.numbers(), 0, None, every))
    schedule = WarmupSchedule(config.learning_rate, config.num_steps, config.num_warmup_steps)
    return Work(
        [batches.batch_at(number) for number in steps],
        [float(schedule.at(number)) for number in steps],
        list(map(dev.batch_of, dev_rows)),
        dev_rows,
        peer,
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
    show_json({"task": name, "num_steps": config.num_steps, **figures})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
