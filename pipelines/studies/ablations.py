"""The paper's ablations: a recipe as the list of its commands, and the tables of their results."""

import logging
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import json_text
from keras_bert_impl.pictures import write_png
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.pretraining_data.masking import NEXT_TOKEN, PREVIOUS_TOKEN
from pipelines.runs.plan_run import parameters_by_part
from pipelines.runs.pretraining_config import RunPretrainingConfig, kept_model
from pipelines.studies import recipe
from pipelines.studies.commands import FINE_TUNING_TOOLS, Command, Tools, flag, flags, overriding
from pipelines.studies.scores import (
    Spread,
    differs_significantly,
    markdown_table,
    number,
    write_report,
)

_LOGGER = logging.getLogger(__name__)

# Table 8 of the paper: shares of masked tokens that become [MASK], stay, become a random token.
MIXES = (
    (0.8, 0.1, 0.1),
    (1.0, 0.0, 0.0),
    (0.8, 0.0, 0.2),
    (0.8, 0.2, 0.0),
    (0.0, 0.2, 0.8),
    (0.0, 0.0, 1.0),
)
CHECK = "check"
RULE = (
    "Mean ± standard deviation of one run over the seeds. A star says that a figure differs "
    "significantly from the first of its column: Welch's 95 % interval of the difference of their "
    "means does not hold 0 (without correction for the number of pairs). With several seeds of "
    "pre-training the means of their models are compared. With one, stars speak of these very "
    "models: another seed is not in the deviation."
)
_RANDOM, _MISSING = "random", "–"
_MODEL_FILE = flags(bert_config_file="{out}/bert_config.json")
_NO_NSP = flags(next_sentence=False)
_BILSTM = flags(encoder_bilstm=True)


@dataclass(frozen=True)
class Start:
    """The model that fine-tuning starts from: one of ours after `step`, or at `checkpoint`."""

    key: str  # its part of the commands' names; `_RANDOM` is no pre-training at all
    size: recipe.Size
    settings: Mapping[str, bool] = field(default_factory=dict)  # of its configuration
    flags: Sequence[str] = ()  # of its pre-training
    step: int | None = None
    checkpoint: str | None = None


class Row(NamedTuple):
    """A row of a table, or a point of the figure: a model, and flags of its fine-tuning."""

    label: str
    start: Start
    flags: Sequence[str] = ()
    notes: tuple[str, ...] = ()  # further cells of text, after the label


class Table(NamedTuple):
    """Rows, a column a task, and for each row its fields: commands that differ in their seeds."""

    name: str
    title: str
    notes: tuple[str, ...]
    rows: Sequence[Row]
    tasks: Sequence[recipe.TaskRun]
    fields: Sequence[Sequence[Sequence[Command]]]


class Study:
    """The commands and tables of a recipe.

    Attributes:
        commands: by their names, each after those that it builds on.
        tables: BERT beside random weights on every task, then those of the paper, the figure last.
    """

    def __init__(self, config: recipe.RunAblationsConfig, tools: Tools) -> None:
        self.config, self._tools = config, tools
        self.commands: dict[str, Command] = {}
        size, *others = config.sizes
        bert, random = Start("bert", size), Start(_RANDOM, size)
        ltr_flags = [*flags(objective=NEXT_TOKEN), *_NO_NSP]
        rtl_flags = [*flags(objective=PREVIOUS_TOKEN), *_NO_NSP]
        self._ltr = ltr = Start("left-to-right", size, {"causal": True}, ltr_flags)
        rtl = Start("right-to-left", size, {"anticausal": True}, rtl_flags)
        check = [Row("BERT", bert), Row("random weights", random)]
        sizes = (bert, *(Start(f"bert-{one.name}", one) for one in others))
        every, last = self._spacing
        shares = "What stands at masked tokens: [MASK] / the same / a random one, in percent"
        rows: dict[str, tuple[Sequence[str], list[Row]]] = {
            recipe.TASKS_TABLE: (
                ["The pre-training tasks (table 5 of the paper)"],
                [
                    check[0],
                    Row("No NSP", Start("no-nsp", size, flags=_NO_NSP)),
                    Row("LTR & No NSP", ltr),
                    Row("LTR & No NSP + BiLSTM", ltr, _BILSTM),
                    Row("RTL & No NSP", rtl),
                ],
            ),
            recipe.SIZES_TABLE: (
                ["The size of the model (table 6 of the paper)", *recipe.Size._fields[1:]],
                [Row(one.size.name, one, notes=tuple(map(str, one.size[1:]))) for one in sizes],
            ),
            recipe.MASKING_TABLE: (
                [f"{shares} (table 8 of the paper)"],
                [Row(_percent(mix, "/"), _masked(bert, mix)) for mix in MIXES],
            ),
            recipe.MODELS_TABLE: (
                ["BERT beside other models"],
                [*check, *map(self._other, config.other_models)],
            ),
            recipe.STEPS_FIGURE: (
                ["Steps of pre-training (figure 5 of the paper)", "steps"],
                [
                    Row(label, replace(one, step=None if n == last else n), notes=(str(n),))
                    for label, one in (("Masked LM", bert), ("Left-to-Right", ltr))
                    for n in (*range(every, last, every), last)
                ],
            ),
        }
        asked = {name: config.tasks_of(name) for name in rows if name in config.tables}
        used = [task for task in config.tasks if any(task in one for one in asked.values())]
        self.tables = [self._table(CHECK, ["BERT beside random weights"], check, used)]
        self.tables += [self._table(name, *rows[name], tasks) for name, tasks in asked.items()]
        for command in self.commands.values():
            asked = tools.config_of(command.tool, command.arguments)
            if command.tool in FINE_TUNING_TOOLS and asked.many.are_many:
                raise UserError("in flags of tasks leave num_seeds and search out; give `seeds`.")

    def pretraining_of(self, row: Row) -> list[Command]:
        """The commands that pre-train a row's model, one a seed."""
        return [self._pretrained(row.start, seed) for seed in self.config.pretraining_seeds]

    def _other(self, model: recipe.OtherModel) -> Row:
        words = "-".join(re.findall(r"\w+", model.name))
        start = Start(f"other-{words}", self.config.sizes[0], checkpoint=model.checkpoint)
        return Row(model.name, start, model.flags)

    def _table(
        self, name: str, title: Sequence[str], rows: Sequence[Row], tasks: Sequence[recipe.TaskRun]
    ) -> Table:
        fields = [[self._field(row, task) for task in tasks] for row in rows]
        return Table(name, title[0], tuple(title[1:]), rows, tasks, fields)

    def _field(self, row: Row, task: recipe.TaskRun) -> list[Command]:
        """The fine-tunings of a model for a task, one for each pair of seeds."""
        ours = row.start.key != _RANDOM and row.start.checkpoint is None
        firsts = self.config.pretraining_seeds if ours else (None,)
        return [
            self._fine_tuned(row, task, first, seed)
            for first in firsts
            for seed in self.config.seeds
        ]

    def _fine_tuned(self, row: Row, task: recipe.TaskRun, first: int | None, seed: int) -> Command:
        start, config = row.start, self.config
        files: Mapping[str, str] = {}
        if start.checkpoint is not None:
            source = [*config.filled(flags(init_checkpoint=start.checkpoint))]
        elif first is not None:
            folder = self._pretrained(start, first).folder
            model = kept_model(folder, start.step) if start.step else folder / "model"
            source = flags(init_checkpoint=model)
        else:
            source = [*_MODEL_FILE, self._vocab_file()]
            # The sets that `task_name` names are read as they are.
            own = "" if any("task_name" in one for one in task.flags) else "|unicode_form"
            text = re.compile(rf"--?(no)?(do_lower_case{own})\b")
            source += filter(text.match, config.flags("data_flags"))
            files = self._model_files(start)
        words = [task.name, start.key, *(["bilstm"] if row.flags is _BILSTM else [])]
        words += [f"step-{start.step}"] if start.step else []
        words += ["seed", *([] if first is None else [str(first)]), str(seed)]
        return self._command(
            "-".join(words),
            task.tool,
            *flags(output_dir="{out}"),
            *source,
            *flags(do_train=True, do_eval=True, seed=seed),
            *overriding(config.flags("fine_tuning_flags"), config.filled(task.flags), row.flags),
            files=files,
        )

    def _pretrained(self, start: Start, seed: int) -> Command:
        config, phases = self.config, ["data"]
        phases += ["phase2_data"] if config.phase2_data_flags else []
        train = [self._shards(phase, "train") for phase in phases]
        in_the_figure = start.key in ("bert", self._ltr.key)
        every = flags(save_model_steps=self._spacing[0]) if in_the_figure else []
        return self._command(
            f"pretrain-{start.key}-seed-{seed}",
            "run_pretraining",
            *map(flag, ("input_file", "phase2_input_file"), train),
            *flags(eval_input_file=self._shards(phases[-1], "held_out")),
            *_MODEL_FILE,
            self._vocab_file(),
            *flags(output_dir="{out}", do_train=True, do_eval=True, seed=seed),
            *overriding(config.flags("pretraining_flags"), every, start.flags),
            files=self._model_files(start),
        )

    def _shards(self, phase: str, part: str) -> str:
        """Where the shards of a phase are, to train on or held out."""
        made = self._command(
            f"{phase}-{part}".replace("_", "-"),
            "create_pretraining_data",
            self._sentences(part),
            *flags(output_file=f"{{out}}/{part}.tfrecord"),
            self._vocab_file(),
            *self.config.flags(f"{phase}_flags"),
            *flags(masking="dynamic"),
        )
        return f"{made.folder}/{part}.tfrecord"

    def _vocab_file(self) -> str:
        config = self.config
        if config.vocab_file:
            return config.filled(flags(vocab_file=config.vocab_file))[0]
        learned = self._command(
            "vocabulary",
            "learn_vocabulary",
            self._sentences("train"),
            *flags(vocab_file="{out}/vocab.txt", vocab_size=config.vocab_size),
            *config.flags("vocabulary_flags"),
        )
        return flag("vocab_file", f"{learned.folder}/vocab.txt")

    def _sentences(self, part: str) -> str:
        text = self._command(
            "text",
            "split_sentences",
            *self.config.filled(flags(input_file=self.config.input_file)),
            *flags(output_dir="{out}", num_shards=self.config.num_shards),
            *self.config.flags("text_flags"),
        )
        return text.sentences(part, self.config.num_shards)

    def _command(
        self, name: str, tool: str, *flags: str, files: Mapping[str, str] | None = None
    ) -> Command:
        """The command of this name, made once; arguments make those that it builds on first."""
        made = Command(name, tool, flags, self.config.output_dir, files or {})
        found = self.commands.setdefault(name, made)
        if found != made:
            raise UserError(
                f"two runs would be called {name}; give tasks and models names of other letters."
            )
        return found

    def _model_files(self, start: Start) -> Mapping[str, str]:
        model = self.config.model(start.size, **start.settings).to_google()
        return {"bert_config.json": json_text(model, indent=1) + "\n"}

    @cached_property
    def _spacing(self) -> tuple[int, int]:
        """The steps between two models that are kept, at checkpoints, and those of the last one."""
        # Flags of a second phase are refused without its shards, which are not made yet.
        asked = flags(output_dir=".")
        asked += flags(phase2_input_file="shards") if self.config.phase2_data_flags else []
        asked += self.config.flags("pretraining_flags")
        config: RunPretrainingConfig = self._tools.config_of("run_pretraining", asked)
        for name in ("train_hours", "early_stopping_evals"):
            if recipe.STEPS_FIGURE in self.config.tables and getattr(config.training, name):
                raise UserError(
                    f"`pretraining_flags`: the figure of steps needs all of them; leave `{name}` "
                    "out, or the figure."
                )
        steps, unit = config.training.num_train_steps, config.training.steps_between_saves
        return max(1, round(steps / self.config.num_models / unit)) * unit, steps


def run_ablations(config: recipe.RunAblationsConfig, tools: Tools) -> tuple[list[str], list[Path]]:
    """Does what is not finished of a study; gives the report's lines (dry: commands) and files."""
    study = Study(config, tools)
    commands, folder = study.commands, config.output_dir
    if config.dry_run:
        lines = [line for name, one in commands.items() for line in (name, f"    {one}")]
        return [*lines, f"{len(commands)} runs"], []
    with RunDirectory.open(folder).taken():
        for place, (name, command) in enumerate(commands.items(), start=1):
            finished = command.finished() is not None
            if not finished:
                _LOGGER.info("run %d of %d: %s", place, len(commands), name)
            # Also where a kill came before it tidied up; models may have been kept by an old call.
            command.figures(tools, config.keep_models or finished)
            if not finished:
                write_study(study, folder)
        files = write_study(study, folder)
        for table in study.tables:
            if table.name == recipe.STEPS_FIGURE:
                files.append(folder / "steps.png")
                _draw(table, files[-1])
        return study_lines(study), files


def write_study(study: Study, folder: Path) -> list[Path]:
    """Writes `ablations.md` and `ablations.json`, as far as the commands are finished."""
    values = {
        "rule": RULE,
        "tables": {table.name: list(_records(table)) for table in study.tables},
        "runs": [
            {"name": name, "command": str(command), **(command.finished() or {})}
            for name, command in study.commands.items()
        ],
    }
    lines = study_lines(study)
    return write_report(folder / "ablations.md", lines, folder / "ablations.json", values)


def study_lines(study: Study) -> list[str]:
    """The report in Markdown."""
    lines, seconds = ["# Ablations", "", RULE], 0.0
    for table in study.tables:
        cells: dict[str, list[str]] = {}
        for record in _records(table):
            star = " *" if record.get("differs") else ""
            cell = f"{Spread.of(record['scores'])}{star}" if record["scores"] else _MISSING
            cells.setdefault(record["column"], []).append(cell)
        about = ["parameters", "perplexity"] if table.name == recipe.SIZES_TABLE else []
        header = ["", *table.notes, *about, *cells]
        rows = [
            [row.label, *row.notes, *(_about_size(study, row) if about else ()), *of_row]
            for row, of_row in zip(table.rows, zip(*cells.values(), strict=True), strict=True)
        ]
        lines += ["", f"## {table.title}", "", *markdown_table(header, rows)]
        lines += (
            ["", "![scores against steps](steps.png)"] if table.name == recipe.STEPS_FIGURE else []
        )
    runs = list[str]()
    for name, command in study.commands.items():
        found = command.finished()
        seconds += found["seconds"] if found else 0.0
        took = format_duration(found["seconds"]) if found else "not run yet"
        runs += [f"- {name}: {took}", f"  `{command}`"]
    total = f"The calls that finished them took {format_duration(seconds)}."
    return [*lines, "", "## Runs", "", total, "", *runs]


def _records(table: Table) -> Iterator[dict[str, Any]]:
    """The fields of a table, column by column, as JSON values; NaN counts as 0."""
    for column, task in enumerate(table.tasks):
        first: list[float] = []
        for row, fields in zip(table.rows, table.fields, strict=True):
            commands = fields[column]
            models: dict[str, list[float]] = {}
            for one in commands:
                start = one.name.rpartition("-")[0]  # before the seed of fine-tuning
                models.setdefault(start, []).extend(map(number, _scores(one, task)))
            scores = [score for model in models.values() for score in model]
            means = [statistics.fmean(model) for model in models.values() if model]
            compared = means if len(models) > 1 else scores  # runs from the same model are alike
            first = compared if row is table.rows[0] else first
            record: dict[str, Any] = {"row": row.label}
            record |= zip(table.notes, row.notes, strict=True)
            record |= {"column": task.name, "figure": task.figure, "scores": scores}
            record["runs"] = [command.name for command in commands]
            if scores:
                spread, differs = Spread.of(scores), differs_significantly(first, compared)
                record |= {"mean": spread.mean, "sigma": spread.sigma, "differs": differs}
            yield record


def _scores(command: Command, task: recipe.TaskRun) -> Iterator[float]:
    if found := command.finished():
        figures = found["figures"]
        if task.figure not in figures:
            raise UserError(
                f"{command.folder}: has no {task.figure}, the figure of the task {task.name}; name "
                f"one of {', '.join(figures)} in `task`: finished runs stay."
            )
        yield figures[task.figure]


def _about_size(study: Study, row: Row) -> list[str]:
    """The encoder's parameters, and the perplexity of masked tokens of the held-out text."""
    parts = parameters_by_part(study.config.model(row.start.size))
    encoder = sum(parts[name] for name in ("embeddings", "layers", "pooler"))
    results = [command.finished() for command in study.pretraining_of(row)]
    found = [math.exp(one["figures"]["masked_lm_loss"]) for one in results if one]
    return [f"{encoder / 1e6:.1f} M", f"{Spread.of(found).mean:.2f}" if found else _MISSING]


def _draw(table: Table, path: Path) -> None:
    """A picture a task: scores against steps, a line a model."""
    from matplotlib.figure import Figure

    count, records = len(table.tasks), [one for one in _records(table) if one["scores"]]
    figure = Figure(figsize=(5.0 * count, 4.0), layout="constrained")
    for task, axes in zip(table.tasks, figure.subplots(1, count, squeeze=False)[0], strict=True):
        for label in dict.fromkeys(row.label for row in table.rows):
            line = [one for one in records if (one["column"], one["row"]) == (task.name, label)]
            points = [(int(one["steps"]), one["mean"], number(one["sigma"])) for one in line]
            axes.errorbar(*zip(*points, strict=True), marker="o", capsize=3, label=label)
        axes.set(xlabel="steps of pre-training", ylabel=task.figure, title=task.name)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    write_png(path, figure)


def _masked(bert: Start, shares: Sequence[float]) -> Start:
    """BERT with another mix of what stands at masked tokens; the paper's own is BERT."""
    if shares == MIXES[0]:
        return bert
    mix = flags(mask_probabilities=",".join(map(str, shares)))
    return replace(bert, key=f"bert-masks-{_percent(shares, '-')}", flags=mix)


def _percent(shares: Sequence[float], between: str) -> str:
    return between.join(f"{100 * share:.0f}" for share in shares)
