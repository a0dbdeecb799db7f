"""The plan of a study: all its commands, and what each takes before it is started."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import parse_json
from keras_bert_impl.planning import plan_run
from keras_bert_impl.progress import format_duration
from pipelines.ablations.study import Study
from pipelines.corpora.unpacking import open_unpacked
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.many_runs.cells import FINE_TUNING, PRETRAINING, Cell, ConfigOf
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
        model = model_of(cell)
        assert model is not None
        return _pretraining(config_of(cell.tool, cell.arguments), model)
    if cell.kind == FINE_TUNING:
        config = config_of(cell.tool, cell.arguments)
        return _fine_tuning(config, model_of(cell) or _other_model(config))
    return None


def model_of(cell: Cell) -> BertConfig | None:
    """The configuration of the model that a cell trains; None of one that is not of the study."""
    holders = [one for one in (cell, *cell.needs) if "bert_config.json" in one.files]
    if not holders:
        return None
    content = holders[0].files["bert_config.json"]
    return BertConfig.from_google(parse_json(content, cell.name, "mend `model_settings`"))


def _other_model(config: FineTuningConfig) -> BertConfig:
    return find_model(config.init_checkpoint, needs_text=False).config


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


def plan_lines(study: Study, config_of: ConfigOf) -> list[str]:
    """All runs with their commands, the tables that they are for, and what they take.

    Raises:
        UserError: a tool refuses its flags.
    """
    lines, operations, unknown = list[str](), 0.0, 0
    users, cells = study.users(), study.cells
    for number, cell in enumerate(cells, start=1):
        lines += [f"[{number}/{len(cells)}] {cell.name} (for {', '.join(users[cell.name])})"]
        lines += [f"    {cell.command}"]
        needs = needs_of(cell, config_of)
        if needs is None:
            config_of(cell.tool, cell.arguments)  # only to see that the flags are right
            continue
        lines.append(
            f"    {needs.parameters:,} parameters, {needs.memory / 1e9:.2f} GB"
            + _work(needs.operations, study.config.operations_per_second)
        )
        operations += needs.operations or 0.0
        unknown += needs.operations is None
    missing = f" (without {unknown} runs whose files are not there)" if unknown else ""
    total = _work(operations, study.config.operations_per_second)
    return [*lines, f"{len(cells)} runs{total}{missing}"]


def _work(operations: float | None, rate: float | None) -> str:
    if operations is None:
        return ""
    words = f", {operations:.3g} operations"
    return words + (f", {format_duration(operations / rate)}" if rate else "")
