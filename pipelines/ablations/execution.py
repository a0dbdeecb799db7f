"""The needs of a cell, and its run: a tool with a log, its figures, its time."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.planning.plan import plan_run
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell
from pipelines.ablations.experiments import ConfigOf
from pipelines.corpora.unpacking import open_unpacked
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.many_runs.runs import Cores, Run, Values
from pipelines.runs.pretraining_config import RunPretrainingConfig
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.tagging.options import RunNerConfig

_BYTES_OF_A_TOKEN = 4  # of a task's files, labels and columns included
_READ_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Needs:
    """Parameters, memory and operations of a run.

    Attributes:
        parameters: numbers of the pre-training model.
        memory: bytes, by plan_run's estimate.
        operations: of the matrix products; None where a task's files are not there.
    """

    parameters: int
    memory: float
    operations: float | None


def needs_of(cell: Cell, config_of: ConfigOf) -> Needs | None:
    """`plan_run`'s estimate for a cell; None for one that trains nothing.

    Fine-tuning has no padding here, a token for every four bytes of its files, and for questions
    rows of the full length: an estimate, good to a factor of about two.

    Raises:
        UserError: the tool refuses its flags.
    """
    if cell.kind == PRETRAINING:
        return _pretraining(config_of(cell.tool, cell.arguments), model_of(cell))
    if cell.kind == FINE_TUNING:
        return _fine_tuning(config_of(cell.tool, cell.arguments), model_of(cell))
    return None


def model_of(cell: Cell) -> BertConfig:
    """The configuration of the model that a cell trains."""
    holders = [one for one in (cell, *cell.needs) if "bert_config.json" in one.files]
    return BertConfig.from_google(json.loads(holders[0].files["bert_config.json"]))


def _pretraining(config: RunPretrainingConfig, model: BertConfig) -> Needs:
    config.check_model(model)
    plans = []
    for phase in config.phases():
        training = replace(
            config.training,
            num_train_steps=phase.num_train_steps,
            train_batch_size=phase.train_batch_size,
        )
        lengths = (phase.max_seq_length, phase.max_predictions_per_seq)
        model.check_length(phase.max_seq_length)
        plans.append(plan_run(model, training, *lengths, on_cpu=True))
    memory = max(sum(plan.memory.values()) for plan in plans)
    return Needs(plans[0].parameters, memory, sum(plan.flops for plan in plans))


def _fine_tuning(config: FineTuningConfig, model: BertConfig) -> Needs:
    length = config.max_seq_length
    model.check_length(length)
    one_step = replace(config.training, num_train_steps=1)
    plan = plan_run(model, one_step, length, 0, on_cpu=True)
    tokens = training_tokens(config)
    a_token = plan.flops / plan.tokens
    operations = None if tokens is None else tokens * a_token * config.num_train_epochs
    return Needs(plan.parameters, sum(plan.memory.values()), operations)


def training_tokens(config: FineTuningConfig) -> float | None:
    """About how many tokens an epoch of a task has; None where its files are not there."""
    try:
        if isinstance(config, RunSquadConfig):
            questions = _count(config.train_file, b'"question"')
            return float(questions * config.max_seq_length)
        return sum(_count(path, b"") for path in _files(config)) / _BYTES_OF_A_TOKEN
    except (UserError, OSError):
        return None


def _files(config: Any) -> list[Path]:
    if isinstance(config, RunClassifierConfig):
        task = task_of(config)
        return list(task.files(task.train_split))
    if isinstance(config, RunNerConfig):
        files = config.files
        return [files.train_file or Path(files.data_dir or "") / "train.txt"]
    return [config.file("train") or Path("train.csv")]  # SWAG's


def _count(path: Path | None, words: bytes) -> int:
    """How often words stand in a file, plain or packed; b"" counts its bytes."""
    if path is None:
        raise UserError("the task names no file to train on.")
    found, rest = 0, b""
    with open_unpacked(str(path)) as file:
        while block := file.read(_READ_AT_ONCE):
            text = rest + block
            found += text.count(words) if words else len(block)
            rest = text[-(len(words) - 1) :] if len(words) > 1 else b""
    return found


_CALLS, _LOG = "calls.txt", "log.txt"


class Programs(Protocol):
    """The tools, as a study uses them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """Gives the config of a tool's job, without starting it.

        Raises:
            UserError: the tool refuses its flags.
        """
        ...

    def run(self, tool: str, flags: Sequence[str], log: Path, cores: Cores) -> int:
        """Runs a tool to its end; gives its exit code.

        Args:
            tool: its name.
            flags: its flags.
            log: the file that gets what it prints.
            cores: the processors that it may use; None: those of this process.
        """
        ...


@dataclass(frozen=True)
class Result:
    """Result of a cell.

    Attributes:
        figures: those of its `eval_results.txt`; none of data.
        seconds: that its calls took, but for calls that were killed.
        calls: how often it was started; above 1 it was stopped or killed in between.
    """

    figures: dict[str, float]
    seconds: float
    calls: int

    @classmethod
    def of(cls, values: Values) -> "Result":
        """The result in the file of a finished cell."""
        return cls(**{one.name: values[one.name] for one in fields(cls)})

    @classmethod
    def kept(cls, run: Run) -> "Result | None":
        """The result of a cell's run; None of one that is not finished."""
        values = run.kept(*(one.name for one in fields(cls)))
        return None if values is None else cls.of(values)


def run_of(cell: Cell, programs: Programs, keep_models: bool) -> Run:
    """The run of a cell; its folder's name says what its result follows from.

    Args:
        cell: what runs.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
    """
    return Run(
        cell.name,
        cell.folder,
        partial(_work, cell, programs),
        needs=frozenset(one.name for one in cell.needs),
        tidy=partial(_tidy, cell, keep_models),
    )


def _work(cell: Cell, programs: Programs, cores: Cores) -> Values | None:
    """Runs a cell's command; gives what its result file says, None where it was stopped.

    Raises:
        UserError: the tool failed.
    """
    for name, text in cell.files.items():
        with open_whole(cell.folder / name) as file:
            file.write(text)
    start = time.monotonic()
    _note(cell, "started")
    code = programs.run(cell.tool, cell.arguments, cell.folder / _LOG, cores)
    _note(cell, f"ended {time.monotonic() - start:.1f}")
    if code != 0:
        raise UserError(
            f"{cell.folder / _LOG}: the run {cell.name} failed, and its last line was: "
            f"{_last_line(cell.folder / _LOG)} Mend it; the same command continues there."
        )
    figures = _figures(cell)
    if figures is None:
        return None
    seconds, calls = _calls(cell)
    result = Result(figures, seconds, calls)
    return {"command": cell.command, "seeds": list(cell.seeds), **vars(result)}


def _tidy(cell: Cell, keep_models: bool) -> None:
    """Removes what a finished run only needs to resume, and a score's model."""
    if cell.kind not in (PRETRAINING, FINE_TUNING) or (cell.kind == FINE_TUNING and keep_models):
        return
    run = RunDirectory.open(cell.folder)
    leftovers = [run.checkpoints, run.best_checkpoint]
    for folder in leftovers + ([run.model] if cell.kind == FINE_TUNING else []):
        shutil.rmtree(folder, ignore_errors=True)


def _figures(cell: Cell) -> dict[str, float] | None:
    """The figures of `eval_results.txt`; None where a run that scores was stopped before its end.

    Data has none.
    """
    path = cell.folder / "eval_results.txt"
    if not path.exists():
        return None if cell.kind in (PRETRAINING, FINE_TUNING) else {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def _note(cell: Cell, words: str) -> None:
    with (cell.folder / _CALLS).open("a", encoding="utf-8") as file:
        file.write(f"{words}\n")


def _calls(cell: Cell) -> tuple[float, int]:
    lines = (cell.folder / _CALLS).read_text(encoding="utf-8").split("\n")
    seconds = [float(line.split()[1]) for line in lines if line.startswith("ended ")]
    return sum(seconds), lines.count("started")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "(nothing).")
