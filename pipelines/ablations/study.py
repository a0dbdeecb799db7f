"""A study: the list of its commands, and which of their scores stand in which field of a table."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from keras_bert_impl.options import as_list_text
from pipelines.ablations.config import (
    MASKING_TABLE,
    MODELS_TABLE,
    SIZES_TABLE,
    STEPS_FIGURE,
    TASKS_TABLE,
    RunAblationsConfig,
    Size,
    TaskRun,
)
from pipelines.many_runs.commands import Command, Tools, flag, overriding
from pipelines.pretraining_data.masking import NEXT_TOKEN, PREVIOUS_TOKEN
from pipelines.runs.pretraining_config import RunPretrainingConfig, kept_model

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
_RANDOM = "random"
_NO_NSP = (flag("nonext_sentence"),)
_BILSTM = (flag("encoder_bilstm"),)


@dataclass(frozen=True)
class Start:
    """The model that fine-tuning starts from: one of ours after `step`, or at `checkpoint`.

    `key` names it in the commands' names; `_RANDOM` is no pre-training at all. `settings` are those
    of its configuration, `flags` those of its pre-training.
    """

    key: str
    size: Size
    settings: Mapping[str, bool] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    step: int | None = None
    checkpoint: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table, or a point of the figure: a model, and flags of its fine-tuning.

    `notes` are further cells of text, after the label.
    """

    label: str
    start: Start
    flags: Sequence[str] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows, a column a task, and for each row its fields: commands that differ in their seeds."""

    name: str
    title: str
    notes: tuple[str, ...]
    rows: Sequence[Row]
    tasks: Sequence[TaskRun]
    fields: Sequence[Sequence[Sequence[Command]]]


class Study:
    """The commands and tables of a recipe.

    Attributes:
        commands: by their names, each after those that it builds on; those of the check first.
        users: the tables that each command was made for.
        check: BERT beside random weights, on every task of the tables.
        tables: in the paper's order, the figure last.
    """

    def __init__(self, config: RunAblationsConfig, tools: Tools) -> None:
        self.config, self._tools = config, tools
        self.commands: dict[str, Command] = {}
        self.users: dict[str, list[str]] = {}
        self._user = CHECK
        main = config.sizes[0]
        self._bert = Row("BERT", Start("bert", main))
        self._random = Row("random weights", Start(_RANDOM, main))
        forwards = (flag("objective", NEXT_TOKEN), *_NO_NSP)
        self._ltr = Start("left-to-right", main, {"causal": True}, forwards)
        made = {
            TASKS_TABLE: self._pretraining_tasks,
            SIZES_TABLE: self._sizes,
            MASKING_TABLE: self._masking,
            MODELS_TABLE: self._models,
            STEPS_FIGURE: self._steps,
        }
        names = [name for name in made if name in config.tables]
        used = {task.name for name in names for task in self._tasks_of(name)}
        self.check = self._table(
            "BERT beside random weights",
            [self._bert, self._random],
            [task for task in config.tasks if task.name in used],
        )
        self.tables = list[Table]()
        for self._user in names:
            self.tables.append(made[self._user]())
        for command in self.commands.values():
            tools.config_of(command.tool, command.arguments)

    def pretraining_of(self, row: Row) -> list[Command]:
        """The commands that pre-train a row's model, one a seed."""
        return [self._pretrained(row.start, seed) for seed in self.config.pretraining_seeds]

    def _tasks_of(self, table: str) -> Sequence[TaskRun]:
        config = self.config
        return config.tasks if table in (TASKS_TABLE, MODELS_TABLE) else config.tasks_of(table)

    def _pretraining_tasks(self) -> Table:
        main = self.config.sizes[0]
        backwards = (flag("objective", PREVIOUS_TOKEN), *_NO_NSP)
        rows = [
            self._bert,
            Row("No NSP", Start("no-nsp", main, flags=_NO_NSP)),
            Row("LTR & No NSP", self._ltr),
            Row("LTR & No NSP + BiLSTM", self._ltr, _BILSTM),
            Row("RTL & No NSP", Start("right-to-left", main, {"anticausal": True}, backwards)),
        ]
        return self._table("The pre-training tasks (table 5 of the paper)", rows)

    def _sizes(self) -> Table:
        main, *others = self.config.sizes
        starts = [self._bert.start, *(Start(f"bert-{one.name}", one) for one in others)]
        rows = [
            Row(size.name, start, notes=(str(size.layers), str(size.hidden), str(size.heads)))
            for size, start in zip((main, *others), starts, strict=True)
        ]
        title = "The size of the model (table 6 of the paper)"
        return self._table(title, rows, notes=("layers", "hidden", "heads"))

    def _masking(self) -> Table:
        rows = [Row(_percent(MIXES[0], "/"), self._bert.start)]
        for shares in MIXES[1:]:
            flags = (flag("mask_probabilities", ",".join(map(str, shares))),)
            key = f"bert-masks-{_percent(shares, '-')}"
            rows.append(Row(_percent(shares, "/"), Start(key, self.config.sizes[0], flags=flags)))
        title = (
            "What stands at masked tokens: [MASK] / the same / a random one, in percent (table 8 "
            "of the paper)"
        )
        return self._table(title, rows)

    def _models(self) -> Table:
        rows = [self._bert, self._random]
        for one in self.config.other_models:
            words = "-".join(re.findall(r"\w+", one.name))
            start = Start(f"other-{words}", self.config.sizes[0], checkpoint=one.checkpoint)
            rows.append(Row(one.name, start, one.flags))
        return self._table("BERT beside other models", rows)

    def _steps(self) -> Table:
        every, last = self._spacing
        rows = [
            Row(label, replace(start, step=None if step == last else step), notes=(str(step),))
            for label, start in (("Masked LM", self._bert.start), ("Left-to-Right", self._ltr))
            for step in (*range(every, last, every), last)
        ]
        return self._table("Steps of pre-training (figure 5 of the paper)", rows, notes=("steps",))

    def _table(
        self,
        title: str,
        rows: Sequence[Row],
        tasks: Sequence[TaskRun] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Table:
        tasks = self._tasks_of(self._user) if tasks is None else tasks
        fields = [[self._field(row, task) for task in tasks] for row in rows]
        return Table(self._user, title, notes, rows, tasks, fields)

    def _field(self, row: Row, task: TaskRun) -> list[Command]:
        """The fine-tunings of a model for a task, one for each pair of seeds."""
        ours = row.start.key != _RANDOM and row.start.checkpoint is None
        firsts = self.config.pretraining_seeds if ours else (None,)
        return [
            self._fine_tuned(row, task, first, seed)
            for first in firsts
            for seed in self.config.seeds
        ]

    def _fine_tuned(self, row: Row, task: TaskRun, first: int | None, seed: int) -> Command:
        start, config = row.start, self.config
        files: Mapping[str, str] = {}
        if start.checkpoint is not None:
            source = config.filled([flag("init_checkpoint", start.checkpoint)])
        elif first is not None:
            folder = self._pretrained(start, first).folder
            model = kept_model(folder, start.step) if start.step else folder / "model"
            source = (flag("init_checkpoint", model),)
        else:
            casing = [one for one in config.flags("data_flags") if one.endswith("do_lower_case")]
            shape = (flag("bert_config_file", "{out}/bert_config.json"), self._vocab_file())
            source, files = (*shape, *casing), self._model_files(start)
        words = [task.name, start.key, *(["bilstm"] if row.flags is _BILSTM else [])]
        words += [f"step-{start.step}"] if start.step else []
        words += ["seed", *([] if first is None else [str(first)]), str(seed)]
        own = overriding(config.flags("fine_tuning_flags"), config.filled(task.flags), row.flags)
        return self._command(
            "-".join(words),
            task.tool,
            flag("output_dir", "{out}"),
            *source,
            flag("do_train"),
            flag("do_eval"),
            flag("seed", seed),
            *own,
            files=files,
        )

    def _pretrained(self, start: Start, seed: int) -> Command:
        config, phases = self.config, ["data"]
        phases += ["phase2_data"] if config.phase2_data_flags else []
        train = [self._shards(phase, "train") for phase in phases]
        held_out = self._shards(phases[-1], "held_out")
        in_the_figure = start.key in (self._bert.start.key, self._ltr.key)
        every = [flag("save_model_steps", self._spacing[0])] if in_the_figure else []
        return self._command(
            f"pretrain-{start.key}-seed-{seed}",
            "run_pretraining",
            *map(flag, ("input_file", "phase2_input_file"), train),
            flag("eval_input_file", held_out),
            flag("bert_config_file", "{out}/bert_config.json"),
            self._vocab_file(),
            flag("output_dir", "{out}"),
            flag("do_train"),
            flag("do_eval"),
            flag("seed", seed),
            *overriding(config.flags("pretraining_flags"), every, start.flags),
            files=self._model_files(start),
        )

    def _shards(self, phase: str, part: str) -> str:
        """Where the shards of a phase are, to train on or held out."""
        made = self._command(
            f"{phase}-{part}".replace("_", "-"),
            "create_pretraining_data",
            self._sentences(part),
            flag("output_file", f"{{out}}/{part}.tfrecord"),
            self._vocab_file(),
            *self.config.flags(f"{phase}_flags"),
            flag("masking", "dynamic"),
        )
        return f"{made.folder}/{part}.tfrecord"

    def _vocab_file(self) -> str:
        config = self.config
        if config.vocab_file:
            return config.filled([flag("vocab_file", config.vocab_file)])[0]
        learned = self._command(
            "vocabulary",
            "learn_vocabulary",
            self._sentences("train"),
            flag("vocab_file", "{out}/vocab.txt"),
            flag("vocab_size", config.vocab_size),
            *config.flags("vocabulary_flags"),
        )
        return flag("vocab_file", f"{learned.folder}/vocab.txt")

    def _sentences(self, part: str) -> str:
        """The files of sentences to train on: all but the last one, which is held out."""
        count = self.config.num_shards
        text = self._command(
            "text",
            "split_sentences",
            *self.config.filled([flag("input_file", self.config.input_file)]),
            flag("output_dir", "{out}"),
            flag("num_shards", count),
            *self.config.flags("text_flags"),
        )
        names = [f"{text.folder}/sentences-{n:05d}-of-{count:05d}.txt" for n in range(count)]
        return flag("input_file", as_list_text(names[:-1] if part == "train" else names[-1:]))

    def _command(
        self, name: str, tool: str, *flags: str, files: Mapping[str, str] | None = None
    ) -> Command:
        """The command of this name, made once; arguments make those that it builds on first."""
        made = Command(name, tool, flags, self.config.output_dir, files or {})
        users = self.users.setdefault(name, [])
        users += [] if self._user in users else [self._user]
        return self.commands.setdefault(name, made)

    def _model_files(self, start: Start) -> Mapping[str, str]:
        model = self.config.model(start.size, **start.settings).to_google()
        return {"bert_config.json": json.dumps(model, indent=1) + "\n"}

    @cached_property
    def _spacing(self) -> tuple[int, int]:
        """The steps between two models that are kept, at checkpoints, and those of the last one."""
        # Flags of a second phase are refused without its shards, which are not made yet.
        shards = [flag("phase2_input_file", "shards")] if self.config.phase2_data_flags else []
        flags = [flag("output_dir", "."), *shards, *self.config.flags("pretraining_flags")]
        config: RunPretrainingConfig = self._tools.config_of("run_pretraining", flags)
        steps, unit = config.training.num_train_steps, config.training.steps_between_saves
        return max(1, round(steps / self.config.num_models / unit)) * unit, steps


def _percent(shares: Sequence[float], between: str) -> str:
    """Shares in whole percent.

    Example:
        >>> _percent((0.8, 0.1, 0.1), "/")
        '80/10/10'
    """
    return between.join(f"{100 * share:.0f}" for share in shares)
