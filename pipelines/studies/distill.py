"""Makes small models of a trained one: cut, taught, in eight bits, and compared in one table."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.checkpoints.model_directory import write_tensors_directory
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.sentence_modules import read_dense, read_sentence_settings
from keras_bert_impl.engines.config import FLOAT32, INT8, OPENVINO, need_openvino
from keras_bert_impl.engines.kept_graph import places_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, without_links
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.time_budget import counting_hours
from pipelines.fine_tuning import row_set
from pipelines.fine_tuning.row_batches import LengthRule, RowEvaluation
from pipelines.fine_tuning.run import fine_tune_checked
from pipelines.fine_tuning.start import CheckedRun, check_run, with_kept_options
from pipelines.fine_tuning.teaching import Lesson, TaughtTask, trained_head
from pipelines.fine_tuning.teaching_options import DistillConfig
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.studies.commands import Tools, flag, flags, forget_models, overriding, words_of
from pipelines.studies.scores import markdown_table, number, write_report
from pipelines.tasks.register import task_of
from pipelines.vectors.texts import open_texts

_EMBEDDER = "run_embedder"
_DRAWS, _SECONDS_OF_DRAWS = 100, 20  # of the bootstrap: samples, and their time at most
_TIMED_ROWS, _TURNS, _ROWS_AT_ONCE = 512, 5, 32
_PRECISIONS = (FLOAT32, INT8)  # of a student
_OURS = {
    *("init_checkpoint", "output_dir", "do_train", "do_eval", "do_predict"),
    *("train_file", "dev_file", "test_file", "predict_file", "engine"),
}
"""The flags of the task's tool that nobody else gives."""


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
    model, source, weights = read_portable(teacher), find_model(teacher), dict[str, Any]()
    for name, array in model.weights.items():
        number = re.match(r"layer_(\d+)(/.+)", name)
        if number is None:
            weights[name] = array
        elif int(number[1]) in layers:
            weights[f"layer_{layers.index(int(number[1]))}{number[2]}"] = array
    sentence = read_sentence_settings(source.folder)
    if sentence is not None:  # whose pooler may lie elsewhere, or nowhere
        width = model.config.hidden_size
        dense = read_dense(source.folder) or (np.zeros([width, width]), np.zeros(width))
        for name, array in zip(("kernel", "bias"), dense, strict=True):
            weights.setdefault(f"pooler/dense/{name}", np.asarray(array, np.float32))
    config = model.config.replace(num_hidden_layers=len(layers))
    write_tensors_directory(folder, weights, config, model.text, sentence)


class Measured(NamedTuple):
    """A row of the table; the deviation is that of a bootstrap over the dev set."""

    model: str
    layers: int
    precision: str
    figure: float
    sigma: float
    milliseconds: float
    megabytes: float


class Distillation:
    """The students of a teacher, trained one after the other; what was stopped goes on."""

    def __init__(self, config: DistillConfig, tools: Tools) -> None:
        need_openvino()
        self._config, self._tools = config, tools
        self._teacher = find_model(config.teacher)
        self._tool = tool_of(self._teacher)
        self._task_of = tools.task_of(self._tool)
        if config.label_weight and self._tool in (_EMBEDDER, "run_squad"):
            raise UserError(
                f"`label_weight={config.label_weight}`: answers in a passage and vectors are "
                "learned from the teacher alone; leave it out."
            )
        one = len(self._teacher.labels) == 1 and not self._teacher.is_multi_label
        is_number = self._tool == "run_classifier" and one
        if (
            is_number or self._tool == _EMBEDDER
        ) and config.temperature != DistillConfig.temperature:
            raise UserError(
                f"`temperature={config.temperature}`: numbers and vectors are learned as they are, "
                "without a softmax; leave it out."
            )
        # The teacher's own options (lengths, windows, columns) are those of its students.
        self._known = self._asked("compared")
        if config.lessons == "hidden_states" and self._known.training.recompute:
            raise UserError(
                "`task_flags`: with recompute nothing is learned from `lessons=hidden_states`, "
                "which stay inside of what is computed again; leave one of them out."
            )
        if self._known.many.are_many:
            raise UserError(
                "`task_flags`: each student is trained once; leave num_seeds and search out."
            )
        depth = self._teacher.config.num_hidden_layers
        layers, counts = config.layers, () if config.layers else config.num_layers or (3,)
        twice = len({*layers}) < len(layers)
        if twice or max([*counts, *(number + 1 for number in layers)]) > depth:
            raise UserError(
                f"`teacher={config.teacher}` has {depth} layers, numbered from 0; give fewer "
                "with `num_layers`, or other `layers`."
            )
        self._cuts = [layers] if layers else [evenly_spread_layers(depth, n) for n in counts]

    def _asked(self, folder: str, **files: str) -> Any:
        """The config of the task's tool with the teacher as its model."""
        config, sentence = self._config, read_sentence_settings(self._teacher.folder)
        ours = {
            "init_checkpoint": config.teacher,
            "output_dir": config.output_dir / folder,
            "max_seq_length": None if sentence is None else sentence.max_seq_length,
            "num_train_epochs": 4,
            "learning_rate": 2e-4,
            "eval_steps": 0,
            "eval_batch_size": _ROWS_AT_ONCE,
            "bias_correction": True,
        }
        if self._tool == "run_squad":
            ours["predict_file"] = files.get("test_file", config.dev_file)
            # Asked for by who trains; what is learned are lessons.
            ours["train_file"] = config.train_file or config.unlabelled_file[0]
        else:
            ours |= {"dev_file": config.dev_file, **files}
        more = words_of("task_flags", config.task_flags)
        names = [one.strip("-").partition("=")[0] for one in more]
        for name in names:
            if name.removeprefix("no") in _OURS:
                raise UserError(f"`task_flags`: {name} follows from other options; leave it out.")
        if {"save_best", "early_stopping_evals"} & {*names}:  # which choose among evaluations
            del ours["eval_steps"]
        given = [flag(name, value) for name, value in ours.items() if value is not None]
        asked = self._tools.config_of(self._tool, overriding([*given, *flags(do_eval=True)], more))
        return with_kept_options(asked, self._teacher)

    def run(self) -> tuple[list[str], list[Path]]:
        """Trains, measures and compares; gives the table's lines and the files, none if stopped."""
        students = dict[tuple[int, ...], Path]()
        for layers in self._cuts:
            if (model := self._taught(layers)) is None:
                return [], []
            students[layers] = model
        figure, models, examples = self._compared(students)
        lines, folder = table(figure, models, examples), self._config.output_dir
        values = {"figure": figure, "models": [one._asdict() for one in models]}
        report = write_report(folder / "results.md", lines, folder / "results.json", values)
        return lines, [*students.values(), *report]

    def _taught(self, layers: tuple[int, ...]) -> Path | None:
        """The model directory of a trained student; None where its training was stopped."""
        folder = make_folder(self._config.output_dir) / f"layers-{'-'.join(map(str, layers))}"
        task = TaughtTask(
            self._task_of(self._known), self._teacher, self._config, layers, self._lessons
        )
        cut_name = f"{folder.name}-cut-{task.teacher_sha256[:8]}"  # another teacher's is another
        start = without_links(folder.with_name(cut_name))
        if not start.is_dir():
            cut(self._config.teacher, layers, start)
        asked = replace(
            self._known,
            do_train=True,
            init_checkpoint=str(start),
            output_dir=without_links(folder),
            flags=self._config.flags,
        )
        checked = check_run(asked, lambda _: task)
        with counting_hours():
            training = fine_tune_checked(checked).training
        task.forget_other_answers()
        forget_models()
        return folder / "model" if training and training.finished else None

    def _lessons(self) -> Iterator[Lesson]:
        """All examples; labels mean what they mean to the teacher, whatever is in the files."""
        train, more = self._config.train_file, self._config.unlabelled_file
        split = "predict" if self._tool == "run_squad" else "test"
        texts = more if self._tool == _EMBEDDER else ()
        first = [(train, self._config.label_weight > 0)] if train else []
        for name, labels in (*first, *((name, False) for name in more if not texts)):
            asked = replace(self._asked("lessons", test_file=name), reads_labels=labels)
            task = self._task_of(asked)
            labelled = labels and split in task.evaluation_splits
            yield from (Lesson(task, one, labelled) for one in task.examples(split))
        task = self._task_of(self._known)
        for name in texts:
            prompt = task.sentence_settings.prompt_of(None)  # as `embed` and others have it
            yield from (Lesson(task, TextExample(name, prompt + x)) for x in open_texts(name))

    def _compared(
        self, students: Mapping[tuple[int, ...], Path]
    ) -> tuple[str, list[Measured], int]:
        """The deciding figure's name, all models measured, and the number of dev examples."""
        checked = config, task, start = self._checked(self._config.teacher)
        tokenizer, main = Tokenizer(start.text), task.evaluation_splits[0]
        split = row_set.Split.make(task, main, tokenizer, config.max_seq_length)
        opened = [_Opened("teacher", checked, FLOAT32, split)]
        for layers, folder in students.items():
            name, of_student = f"layers {', '.join(map(str, layers))}", self._checked(str(folder))
            opened += [_Opened(name, of_student, precision, split) for precision in _PRECISIONS]
        some = np.arange(0, len(split.rows), max(1, len(split.rows) // _TIMED_ROWS))
        rows = row_set.RowSet([split.rows.read(some)])
        # In turn, so that other work on the machine slows all alike.
        turns = [[one.milliseconds(rows) for one in opened] for _ in range(_TURNS)]
        times = np.min(turns, axis=0).tolist()
        models = [one.measured(took) for one, took in zip(opened, times, strict=True)]
        return opened[0].figure, models, split.rows.num_examples

    def _checked(self, model: str) -> CheckedRun:
        training = replace(self._known.training, precision=FLOAT32)
        asked = replace(self._known, init_checkpoint=model, engine=OPENVINO, training=training)
        return check_run(asked, self._task_of)


class _Opened:
    """A model that is ready to answer the dev set, whose rows give the scales of int8."""

    def __init__(
        self, name: str, checked: CheckedRun, precision: str, split: row_set.Split
    ) -> None:
        self._name, self._precision, self._split = name, precision, split
        asked, self._task, self._start = checked
        config = replace(asked, engine_precision=precision)
        described = config.configure(self._start.config)
        self._head = trained_head(self._task, self._start, described)
        self._predict = row_set.engine_prediction(config, self._head, self._start, split.rows)
        self.figure = ""

    def milliseconds(self, rows: row_set.RowSet) -> float:
        """How long a text takes, with its share of all rows, which are computed with others."""
        source, began = RowEvaluation(rows, _ROWS_AT_ONCE, LengthRule()), time.perf_counter()
        for _ in self._predict(source):
            pass
        of_text = len(self._split.rows) / self._split.rows.num_examples
        return 1000 * (time.perf_counter() - began) / len(rows) * of_text

    def measured(self, milliseconds: float) -> Measured:
        """Its figure that decides, with the deviation over dev sets drawn from this one."""
        task, rows, draws = self._task, self._split.rows, np.random.default_rng(0)
        source, values = RowEvaluation(rows, _ROWS_AT_ONCE, LengthRule()), list[float]()
        outputs = row_set.compute_outputs(self._name, rows, source, self._predict, self._head)
        answered = list(row_set.AnsweredSplit(task, self._split, outputs))
        scores, end = task.score(answered), time.monotonic() + _SECONDS_OF_DRAWS
        self.figure = next(x for x in (*task.compared_figures, *scores) if x in scores)
        for drawn in islice(task.drawn_scores(answered, draws), _DRAWS):
            values.append(number(drawn[self.figure]))
            if time.monotonic() > end:
                break
        sigma = float(np.std(values)) or math.nan  # 0 of what no drawing changes
        layers, value = self._head.model.config.num_hidden_layers, number(scores[self.figure])
        where = (milliseconds, self._megabytes())
        return Measured(self._name, layers, self._precision, value, sigma, *where)

    def _megabytes(self) -> float:
        files = [*self._start.tensors().files]
        if self._precision == INT8:
            name = f"{type(self._head.model).__name__}_{INT8}"
            kept = next(filter(Path.is_dir, places_of(self._start.graphs_beside, name)), None)
            if kept is None:
                return math.nan  # nothing could be written there
            files = [*kept.iterdir()]
        return sum(one.stat().st_size for one in files) / 1e6


def table(figure: str, models: Sequence[Measured], examples: int) -> list[str]:
    """The lines about models, the teacher first."""
    teacher, rows = models[0], list[list[str]]()
    for one in models:
        sigma = "" if math.isnan(one.sigma) else f" ± {one.sigma:.4f}"
        kept = f"{one.figure / teacher.figure:.1%}" if teacher.figure else ""
        speed = teacher.milliseconds / one.milliseconds
        size = "" if math.isnan(one.megabytes) else f"{one.megabytes:.1f}"
        numbers = (f"{one.milliseconds:.2f}", f"{speed:.2f}", size)
        name = (one.model, f"{one.layers}", one.precision)
        rows.append([*name, f"{one.figure:.4f}{sigma}", kept, *numbers])
    header = ["model", "layers", "precision", figure, "of the teacher's", "ms a text"]
    return [
        *markdown_table([*header, "× as fast", "MB"], rows),
        "",
        f"± is σ of a bootstrap over the {examples:,} examples of the dev set. Times are of "
        f"OpenVINO on this machine, {_ROWS_AT_ONCE} rows at once, the best of {_TURNS} turns.",
    ]
