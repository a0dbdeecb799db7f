"""Makes small models of a trained one: cut, taught, in eight bits, and compared in one table."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.checkpoints.model_directory import write_tensors_directory
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.checkpoints.sentence_modules import read_dense, read_sentence_settings
from keras_bert_impl.engines.config import FLOAT32, INT8, OPENVINO, need_openvino
from keras_bert_impl.engines.kept_graph import places_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, without_links
from keras_bert_impl.options import FREE, REQUIRED, Rules, check_options, nested, option
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.config import dtype_policy
from pipelines.fine_tuning.row_batches import LengthRule, RowEvaluation
from pipelines.fine_tuning.row_set import (
    AnsweredSplit,
    Predicts,
    RowSet,
    Split,
    compute_outputs,
    engine_prediction,
)
from pipelines.fine_tuning.run import fine_tune_checked
from pipelines.fine_tuning.start import CheckedRun, check_run, with_kept_options
from pipelines.fine_tuning.task import Head
from pipelines.fine_tuning.teaching import TaughtTask, Teacher, TeachingConfig, Unlabelled
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.studies.commands import Tools, flag, forget_models, overriding, words_of
from pipelines.studies.scores import Spread, markdown_table, number, write_report
from pipelines.tasks.register import task_of
from pipelines.vectors.texts import open_texts

_EMBEDDER = "run_embedder"
_DRAWS, _SECONDS_OF_DRAWS = 100, 20  # samples of the bootstrap, and their time
_TIMED_ROWS, _TURNS, _ROWS_AT_ONCE = 512, 5, 32
_PRECISIONS = (FLOAT32, INT8)  # of a student

_Layers = Annotated[int, Rules(sentence="", at_least=1)]
_Layer = Annotated[int, Rules(sentence="", at_least=0)]


@dataclass(frozen=True, kw_only=True)
class DistillConfig:
    """The options of making small models."""

    teacher: str = option(
        REQUIRED,
        "The trained model: the directory of a fine-tuned one (classes, numbers, tags, answers, "
        "endings), one of vectors (also sentence-transformers'), or a name on the Hugging Face "
        "hub.",
    )
    output_dir: Path = option(REQUIRED, "The folder for everything.", resume=FREE)
    train_file: str | None = option(
        None, "What to learn from, as the task's own tool reads it (run_classifier, run_ner, ...)."
    )
    dev_file: str | None = option(None, "What all models are compared on, likewise.")
    unlabelled_file: tuple[str, ...] = option(
        (),
        "More to learn from, without labels: files that the task's tool predicts; for vectors "
        "texts, one a line, or a column of a table. Several are separated by commas.",
    )
    num_layers: tuple[_Layers, ...] = option(
        (3,), "The layers of each student: one number, or several, separated by commas."
    )
    layers: tuple[_Layer, ...] = option(
        (),
        "Which layers of the teacher, from 0, make the student, separated by commas; by default "
        "evenly spread ones, the last among them.",
    )
    teaching: TeachingConfig = nested(TeachingConfig)
    num_train_epochs: float = option(4.0, "Passes over all rows.", at_least=0, at_most=1e6)
    learning_rate: float = option(2e-4, "The peak learning rate.", more_than=0)
    train_batch_size: int = option(32, "Rows of an optimizer step.", at_least=1)
    seed: int = option(12345, "Fixes dropout and the order of the rows.", at_least=0)
    num_seeds: int = option(
        1, "Train each student so many times, with the seeds from this one on.", at_least=1
    )
    task_flags: str = option(
        "", "Further flags of the task's tool (its columns, its lengths); they override ours."
    )
    flags: str = ""

    def __post_init__(self) -> None:
        check_options(self)
        words_of("task_flags", self.task_flags)
        if self.layers and self.num_layers not in ((3,), (len(self.layers),)):
            raise UserError(
                f"`layers={','.join(map(str, self.layers))}` are {len(self.layers)}, but "
                f"`num_layers={','.join(map(str, self.num_layers))}`; give one of them."
            )

    def cuts(self, depth: int) -> list[tuple[int, ...]]:
        """The layers of each student of a teacher that has so many."""
        if self.layers:
            found = [self.layers]
        else:
            found = [evenly_spread_layers(depth, count) for count in self.num_layers]
        for layers in found:
            if max(layers) >= depth or len(layers) > depth or min(layers) < 0:
                raise UserError(
                    f"`num_layers={len(layers)}` of {self.teacher}, which has {depth} (numbered "
                    "from 0 in `layers`); give fewer."
                )
        return found


def evenly_spread_layers(depth: int, count: int) -> tuple[int, ...]:
    """The layers that a student is cut from, the last one always.

    Example:
        >>> evenly_spread_layers(6, 3), evenly_spread_layers(12, 4), evenly_spread_layers(6, 4)
        ((1, 3, 5), (2, 5, 8, 11), (1, 2, 4, 5))
    """
    return tuple(math.ceil((number + 1) * depth / count) - 1 for number in range(count))


def tool_of(source: ModelSource) -> str:
    """The tool that trains models of a teacher's kind."""
    if read_sentence_settings(source.folder) is not None:
        return _EMBEDDER
    task = task_of(source.config)
    if task is None and not source.labels:
        raise UserError(
            f"{source.checkpoint}: has no head of a task and is no model of vectors; name a "
            "fine-tuned model as `teacher`."
        )
    return "run_classifier" if task is None else f"run_{task.name}"


def cut(teacher: str, layers: Sequence[int], folder: Path) -> None:
    """Writes a model directory with some layers of a model, and all else of it."""
    model = read_portable(teacher)
    places = {old: new for new, old in enumerate(layers)}
    weights = {}
    for name, array in model.weights.items():
        number = re.match(r"layer_(\d+)(/.+)", name)
        if number is None:
            weights[name] = array
        elif (place := places.get(int(number[1]))) is not None:
            weights[f"layer_{place}{number[2]}"] = array
    source = find_model(teacher)
    sentence = read_sentence_settings(source.folder)
    if sentence is not None:
        width = model.config.hidden_size
        kernel, bias = read_dense(source.folder) or (np.zeros([width, width]), np.zeros(width))
        for name, array in {"kernel": kernel, "bias": bias}.items():
            weights.setdefault(f"pooler/dense/{name}", np.asarray(array, np.float32))
    config = model.config.replace(num_hidden_layers=len(layers))
    write_tensors_directory(folder, weights, config, model.text, sentence)


@dataclass(frozen=True)
class Measured:
    """A model of the table.

    Attributes:
        layers: how many it has.
        values: the figure of each seed.
        sigma: of these, or of a bootstrap over the dev set; NaN where there is none.
        milliseconds: of a row, computed with others.
        megabytes: of its weights as they lie on the disk.
    """

    name: str
    layers: int
    precision: str
    values: Sequence[float]
    sigma: float
    milliseconds: float
    megabytes: float


@dataclass(frozen=True)
class Distillation:
    """What there is to report: the teacher first, then each student and its int8."""

    figure: str
    models: Sequence[Measured]
    rows: int
    folders: Sequence[Path] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The table, and what its figures are."""
        teacher, rows = self.models[0], list[list[str]]()
        for one in self.models:
            mean, kept = Spread.of(one.values).mean, Spread.of(teacher.values).mean
            sigma = "" if math.isnan(one.sigma) else f" ± {one.sigma:.4f}"
            rows.append(
                [
                    one.name,
                    f"{one.layers}",
                    one.precision,
                    f"{mean:.4f}{sigma}",
                    f"{mean / kept:.1%}" if kept else "",
                    f"{one.milliseconds:.2f}",
                    f"{teacher.milliseconds / one.milliseconds:.2f}",
                    f"{one.megabytes:.1f}",
                ]
            )
        header = ["model", "layers", "precision", self.figure, "of the teacher's", "ms a text"]
        seeds = len(self.models[-1].values)
        deviation = f"of a bootstrap over the {self.rows:,} examples of the dev set"
        if seeds > 1:
            deviation = f"of {seeds} seeds; the teacher's {deviation}"
        return [
            *markdown_table([*header, "× as fast", "MB"], rows),
            "",
            f"± is σ {deviation}. Times are of OpenVINO on this machine, {_ROWS_AT_ONCE} texts at "
            f"once, the best of {_TURNS} turns.",
        ]

    def write(self, folder: Path) -> list[Path]:
        """Writes `results.md` and `results.json`."""
        values = {
            "figure": self.figure,
            "models": [vars(one) for one in self.models],
            "folders": list(map(str, self.folders)),
        }
        return write_report(folder / "results.md", self.lines(), folder / "results.json", values)


@dataclass(frozen=True)
class _Opened:
    """A model that is ready to answer the dev set."""

    name: str
    precision: str
    checked: CheckedRun[Any]
    head: Head
    predict: Predicts

    def seconds(self, rows: RowSet) -> float:
        """How long the rows take now."""
        source, began = RowEvaluation(rows, _ROWS_AT_ONCE, LengthRule()), time.perf_counter()
        for _ in self.predict(source):
            pass
        return time.perf_counter() - began

    def answered(self, split: Split) -> list[tuple[Any, Any]]:
        """The examples of the dev set with this model's answers."""
        source = RowEvaluation(split.rows, _ROWS_AT_ONCE, LengthRule())
        outputs = compute_outputs(self.name, split.rows, source, self.predict, self.head)
        return list(AnsweredSplit(self.checked.task, split, outputs))

    @property
    def megabytes(self) -> float:
        """The size of its weights as they lie on the disk."""
        files = [*self.checked.start.tensors().files]
        if self.precision == INT8:
            name = f"{type(self.head.model).__name__}_{INT8}"
            kept = next(x for x in places_of(self.checked.start.folder, name) if x.is_dir())
            files = [*kept.iterdir()]
        return sum(one.stat().st_size for one in files) / 1e6


class Study:
    """The students of a teacher, trained one after the other; what was stopped goes on."""

    def __init__(self, config: DistillConfig, tools: Tools) -> None:
        need_openvino()
        self._config, self._tools = config, tools
        self._teacher = find_model(config.teacher)
        self._tool = tool_of(self._teacher)
        self._cuts = config.cuts(self._teacher.config.num_hidden_layers)
        self._task_of = tools.task_of(self._tool)
        # The teacher's own options (lengths, windows, columns) are those of its students.
        self._known = with_kept_options(self._asked("compared", "do_eval"), self._teacher)

    def _asked(self, folder: str, *switches: str, **files: str) -> Any:
        """The config of the task's tool with the teacher as its model."""
        config, squad = self._config, self._tool == "run_squad"
        named = {"train_file": config.train_file, "dev_file": config.dev_file, **files}
        if squad:
            named["predict_file"] = named.pop("test_file", None) or named.pop("dev_file")
        ours = [
            flag("init_checkpoint", config.teacher),
            flag("output_dir", config.output_dir / folder),
            *map(flag, switches),
            *(flag(name, file) for name, file in named.items() if file),
            flag("num_train_epochs", config.num_train_epochs),
            flag("learning_rate", config.learning_rate),
            flag("train_batch_size", config.train_batch_size),
            flag("eval_steps", 0),
        ]
        more = words_of("task_flags", config.task_flags)
        return self._tools.config_of(self._tool, overriding(ours, more))

    def run(self) -> Distillation | None:
        """Trains, measures and compares; None where it was stopped."""
        students = dict[tuple[int, ...], list[Path]]()
        for layers in self._cuts:
            for seed in range(self._config.seed, self._config.seed + self._config.num_seeds):
                folder = self._taught(layers, seed)
                if folder is None:
                    return None
                students.setdefault(layers, []).append(folder)
        return self._compared(students)

    def _taught(self, layers: Sequence[int], seed: int) -> Path | None:
        """The model directory of a trained student; None where its training was stopped."""
        name, folder = f"layers-{'-'.join(map(str, layers))}", self._config.output_dir
        start = without_links(folder / f"{name}-cut")
        if not start.is_dir():
            make_folder(folder)
            cut(self._config.teacher, layers, start)
        asked = replace(
            self._known,
            do_train=True,
            init_checkpoint=str(start),
            output_dir=without_links(folder / f"{name}-seed-{seed}"),
            training=replace(self._known.training, seed=seed),
            flags=self._config.flags,
        )
        checked = check_run(asked, partial(self._taught_task, layers=layers))
        training = fine_tune_checked(checked).training
        forget_models()
        return asked.output_dir / "model" if training and training.finished else None

    def _taught_task(self, config: Any, layers: Sequence[int]) -> TaughtTask:
        # Vectors need no table of texts that belong together: any texts do.
        has_rows = self._tool != _EMBEDDER or bool(self._config.train_file)
        task = self._task_of(config if has_rows else replace(config, do_train=False))
        teacher = Teacher(task, self._teacher, self._config.output_dir / "teacher")
        unlabelled = partial(self._unlabelled, task)
        return TaughtTask(task, teacher, self._config.teaching, layers, has_rows, unlabelled)

    def _unlabelled(self, task: Any) -> Iterator[Unlabelled]:
        for name in self._config.unlabelled_file:
            if self._tool == _EMBEDDER:
                for line, text in enumerate(open_texts(name), 1):
                    yield Unlabelled(task, TextExample(name, text, line=line))
                continue
            asked = with_kept_options(
                self._asked("unlabelled", "do_predict", test_file=name), self._teacher
            )
            reads = self._task_of(asked)
            for example in reads.examples(reads.test_splits[0]):
                yield Unlabelled(reads, example)

    def _compared(self, students: Mapping[tuple[int, ...], Sequence[Path]]) -> Distillation:
        """Measures all models in turn, so that other work on the machine slows all alike."""
        checked = self._checked(self._config.teacher)
        task, start, length = checked.task, checked.start, checked.config.max_seq_length
        split = Split.make(task, task.evaluation_splits[0], Tokenizer(start.text), length)
        opened = [[_opened("teacher", checked, FLOAT32, split.rows)]]
        for layers, folders in students.items():
            name, runs = f"layers {', '.join(map(str, layers))}", map(str, folders)
            of_seeds = [self._checked(one) for one in runs]
            opened += [
                [_opened(name, one, precision, split.rows) for one in of_seeds]
                for precision in _PRECISIONS
            ]
        some = np.arange(0, len(split.rows), max(1, len(split.rows) // _TIMED_ROWS))
        timed = RowSet([split.rows.read(some)])
        turns = [[group[0].seconds(timed) for group in opened] for _ in range(_TURNS)]
        models, figure = list[Measured](), ""
        for group, best in zip(opened, np.min(turns, axis=0), strict=True):
            one, values, sigma = group[0], list[float](), math.nan
            for model in group:
                answered, own = model.answered(split), model.checked.task
                scores = own.score(answered)
                figure = next(x for x in (*own.compared_figures, *scores) if x in scores)
                values.append(number(scores[figure]))
                sigma = _deviation(own, answered, figure) if len(group) == 1 else math.nan
            sigma = sigma if len(group) == 1 else Spread.of(values).sigma
            layers, of_row = one.head.model.config.num_hidden_layers, 1000 * best / len(timed)
            size = one.megabytes
            models.append(Measured(one.name, layers, one.precision, values, sigma, of_row, size))
        all_folders = [folder for folders in students.values() for folder in folders]
        return Distillation(figure, models, split.rows.num_examples, all_folders)

    def _checked(self, model: str) -> CheckedRun[Any]:
        training = replace(self._known.training, precision=FLOAT32)
        asked = replace(self._known, init_checkpoint=model, engine=OPENVINO, training=training)
        return check_run(asked, self._task_of)


def _opened(name: str, checked: CheckedRun[Any], precision: str, rows: RowSet) -> _Opened:
    """Opens a model; the rows give the scales of int8."""
    config, task, start = checked.config, checked.task, checked.start
    head = task.head(task.configure(config.configure(start.config)), dtype_policy(FLOAT32))
    restore(head.model, start.tensors())
    task.restored(head.model, start)
    config = replace(config, engine_precision=precision)
    predict = engine_prediction(config, head, start, rows)
    return _Opened(name, precision, checked, head, predict)


def _deviation(task: Any, answered: Sequence[Any], figure: str) -> float:
    """The deviation of a figure over dev sets drawn from this one; NaN where none is known."""
    draws, values = np.random.default_rng(0), list[float]()
    end = time.monotonic() + _SECONDS_OF_DRAWS
    while len(values) < _DRAWS and time.monotonic() < end:
        other, drawn = task.resampled(answered, draws)
        values.append(number(other.score(drawn)[figure]))
    return float(np.std(values, ddof=1)) or math.nan if len(values) > 1 else math.nan
