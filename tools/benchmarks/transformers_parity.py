"""Fine-tunes the same model here and with transformers (PyTorch), step by step on the same batches.

Both start from the weights of one Hugging Face directory and the same fresh head, without dropout.
Both take google's AdamW: no bias correction, weight decay 0.01 but for LayerNorm and biases, the
gradient clipped to a global norm of 1, a linear warm-up and a linear decay. What is printed for
each task: the largest difference between their losses, and how much of the dev set both predict
alike: a text's label, a tagged word's tag, where a window's answer starts and where it ends (of a
regression the largest difference between their numbers). Beside it stands how far transformers'
losses lie from its own where each batch has its rows in reverse: the sums over rows are rounded
otherwise, and nothing else differs.

Texts with labels (--data_dir, --tasks), questions (--train_file and --predict_file, in SQuAD's
form) and tagged words (--tags_dir) are compared if they are given. In the loss of questions
padding competes with the answer, as it does in transformers; but [PAD]'s vector, which transformers
leaves untrained, is trained on both sides, as in google's code.

It needs torch and transformers beside this package (pip install torch transformers).

Example:
  python -m tools.benchmarks.transformers_parity --data_dir=glue_data --tasks=MRPC,STS-B
      --init_checkpoint=all-MiniLM-L6-v2
"""

import importlib.util
import itertools
import json
import multiprocessing
import operator
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from tools import command_line
from tools.benchmarks.parity_courses import (
    WITHOUT_DROPOUT,
    Peer,
    Work,
    compare,
    our_course,
    their_course,
)
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings
    from keras_bert_impl.training.config import TrainingConfig
    from pipelines.fine_tuning.task import Task


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """What is compared, and for how long.

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


def _run() -> None:
    config = FLAGS.config()
    if missing := [name for name in ("torch", "transformers") if not _is_installed(name)]:
        raise UserError(f"{' and '.join(missing)} not installed; pip install {' '.join(missing)}.")
    for compared in compared_tasks(config):
        with tempfile.TemporaryDirectory() as folder:
            figures = _compare_task(config, compared, Path(folder))
        _show(config, compared.task.name, figures)


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


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
        head = task.head(task.configure(source.config.replace(**WITHOUT_DROPOUT)))
    restore(head.model, str(source.checkpoint))
    projection = operator.attrgetter(compared.last_layer)(head.model)
    kernel, bias = (np.array(weight) for weight in (projection.kernel, projection.bias))
    work = _work(config, task, source.text, compared.peer(len(bias)), folder)
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
    print(json.dumps({"task": name, "num_steps": config.num_steps, **figures}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
