"""The tables of a study: which cells stand in which field."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pipelines.ablations.cells import (
    BILSTM,
    RANDOM,
    USUAL,
    CellMaker,
    Start,
    Way,
)
from pipelines.ablations.config import (
    FEATURES_TABLE,
    MASKING_TABLE,
    MODELS_TABLE,
    SIZES_TABLE,
    STEPS_FIGURE,
    TASKS_TABLE,
    RunAblationsConfig,
    TaskRun,
)
from pipelines.many_runs.cells import Cell, ConfigOf, flag, in_order
from pipelines.pretraining_data.language_model import NEXT_TOKEN, PREVIOUS_TOKEN

# Table 8 of the paper: shares of masked tokens that become [MASK], stay, become a random token.
MIXES = (
    (0.8, 0.1, 0.1),
    (1.0, 0.0, 0.0),
    (0.8, 0.0, 0.2),
    (0.8, 0.2, 0.0),
    (0.0, 0.2, 0.8),
    (0.0, 0.0, 1.0),
)
# Table 7: `run_ner --features=...`, and what the paper calls it; table 8 has the last but one.
FEATURES: Mapping[str, str] = {
    "embeddings": "Embeddings",
    "second_to_last": "Second-to-Last Hidden",
    "last": "Last Hidden",
    "weighted_last_four": "Weighted Sum Last Four Hidden",
    "concat_last_four": "Concat Last Four Hidden",
    "weighted_all": "Weighted Sum All Layers",
}
_NO_NSP = (flag("nonext_sentence"),)


@dataclass(frozen=True)
class Row:
    """A row of a table, or a point of the figure.

    Attributes:
        label: what it is called.
        start: the model.
        way: how it is fine-tuned.
        notes: further cells of text, after the label.
    """

    label: str
    start: Start
    way: Way = USUAL
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column of a table: a task, perhaps learned in another way.

    Attributes:
        label: what it is called.
        task: the task.
        way: how its models are fine-tuned.
    """

    label: str
    task: TaskRun
    way: Way = USUAL


@dataclass(frozen=True)
class Table:
    """A table: rows, columns, and the cells of each field.

    Attributes:
        name: one of `config.TABLES`, `config.MODELS_TABLE` or "check".
        title: what it shows.
        notes: the heads of the rows' notes.
        rows: from top to bottom.
        columns: from left to right.
        fields: the cells, one for each pair of seeds, by row and column.
    """

    name: str
    title: str
    notes: tuple[str, ...]
    rows: Sequence[Row]
    columns: Sequence[Column]
    fields: Mapping[tuple[Row, Column], Sequence[Cell]] = field(hash=False, compare=False)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells that the table is made of, without those that they need."""
        return [cell for cells in self.fields.values() for cell in cells]


class Study:
    """All cells and tables of a recipe.

    Args:
        config: the recipe.
        config_of: gives the config of a tool's job for some flags.

    Raises:
        UserError: a tool refuses its flags.
    """

    def __init__(self, config: RunAblationsConfig, config_of: ConfigOf) -> None:
        self.config = config
        self._maker = CellMaker(config, config_of)
        main = config.sizes[0]
        self._bert = Start("bert", main, keeps_models=True)
        self._left_to_right = Start(
            "left-to-right",
            main,
            (("causal", True),),
            (flag("objective", NEXT_TOKEN), *_NO_NSP),
            keeps_models=True,
        )

    @cached_property
    def tables(self) -> list[Table]:
        """The tables in the paper's order, the figure last."""
        made = {
            TASKS_TABLE: self._pretraining_tasks,
            SIZES_TABLE: self._sizes,
            FEATURES_TABLE: self._features,
            MASKING_TABLE: self._masking,
            MODELS_TABLE: self._models,
            STEPS_FIGURE: self._steps,
        }
        return [make() for name, make in made.items() if name in self.config.tables]

    @cached_property
    def check(self) -> Table:
        """BERT against random weights, on every task of the tables."""
        used = {column.task for table in self.tables for column in table.columns}
        tasks = [task for task in self.config.tasks if task in used]
        return self._table("check", "BERT beside random weights", self._bert_and_random, tasks)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells, each once; those of the check first."""
        return in_order([*self.check.cells, *(c for table in self.tables for c in table.cells)])

    def users(self) -> dict[str, list[str]]:
        """The tables that each cell stands in, or works for, by the cells' names."""
        found: dict[str, list[str]] = {}
        for table in (self.check, *self.tables):
            for cell in in_order(table.cells):
                found.setdefault(cell.name, []).append(table.name)
        return found

    def pretraining_of(self, row: Row) -> list[Cell]:
        """The cells that pre-train a row's model, one a seed."""
        return [self._maker.pretrained(row.start, seed) for seed in self.config.pretraining_seeds]

    @property
    def _bert_and_random(self) -> list[Row]:
        random = Row("random weights", Start(RANDOM, self.config.sizes[0]))
        return [Row("BERT", self._bert), random]

    def _models(self) -> Table:
        others = [
            Row(
                one.name,
                Start(f"other-{_plain(one.name)}", self.config.sizes[0], checkpoint=one.checkpoint),
                Way("", one.flags),
            )
            for one in self.config.other_models
        ]
        rows = [*self._bert_and_random, *others]
        return self._table(MODELS_TABLE, "BERT beside other models", rows, self.config.tasks)

    def _pretraining_tasks(self) -> Table:
        main = self.config.sizes[0]
        right_to_left = Start(
            "right-to-left",
            main,
            (("anticausal", True),),
            (flag("objective", PREVIOUS_TOKEN), *_NO_NSP),
        )
        rows = [
            Row("BERT", self._bert),
            Row("No NSP", Start("no-nsp", main, (), _NO_NSP)),
            Row("LTR & No NSP", self._left_to_right),
            Row("LTR & No NSP + BiLSTM", self._left_to_right, BILSTM),
            Row("RTL & No NSP", right_to_left),
        ]
        title = "The pre-training tasks (table 5 of the paper)"
        return self._table(TASKS_TABLE, title, rows, self.config.tasks)

    def _sizes(self) -> Table:
        main, *others = self.config.sizes
        starts = {main: self._bert, **{one: Start(f"bert-{one.name}", one) for one in others}}
        rows = [
            Row(size.name, start, notes=(str(size.layers), str(size.hidden), str(size.heads)))
            for size, start in starts.items()
        ]
        tasks = self.config.tasks_of("sizes_tasks")
        title = "The size of the model (table 6 of the paper)"
        return self._table(SIZES_TABLE, title, rows, tasks, ("layers", "hidden", "heads"))

    def _features(self) -> Table:
        rows = [Row("Fine-tuning", self._bert)]
        rows += [
            Row(label, self._bert, self._on_features(name)) for name, label in FEATURES.items()
        ]
        title = "Fine-tuning, and features of the frozen model (table 7 of the paper)"
        return self._table(FEATURES_TABLE, title, rows, self._features_tasks())

    def _masking(self) -> Table:
        rows = [Row(_percent(MIXES[0], "/"), self._bert)]
        for shares in MIXES[1:]:
            flags = (flag("mask_probabilities", ",".join(map(str, shares))),)
            start = Start(f"bert-masks-{_percent(shares, '-')}", self.config.sizes[0], (), flags)
            rows.append(Row(_percent(shares, "/"), start))
        tasks = self.config.tasks_of("masking_tasks")
        way = self._on_features("concat_last_four")
        on_features = [
            Column(f"{task.name}, features", task, way)
            for task in self._features_tasks()
            if task in tasks
        ]
        title = (
            "What stands at masked tokens: [MASK] / the same / a random one, in percent (table 8 "
            "of the paper)"
        )
        return self._table(MASKING_TABLE, title, rows, tasks, further=on_features)

    def _steps(self) -> Table:
        rows = [
            Row(label, replace(start, step=None if step == last else step), notes=(str(step),))
            for last in self._maker.kept_steps[-1:]
            for label, start in (("Masked LM", self._bert), ("Left-to-Right", self._left_to_right))
            for step in self._maker.kept_steps
        ]
        tasks = self.config.tasks_of("steps_tasks")
        title = "Steps of pre-training (figure 5 of the paper)"
        return self._table(STEPS_FIGURE, title, rows, tasks, ("steps",))

    def _features_tasks(self) -> Sequence[TaskRun]:
        tasks = self.config.tasks_of("features_tasks")
        return [task for task in tasks if task.tool == "run_ner"]

    def _on_features(self, name: str) -> Way:
        flags = (flag("features", name), *self.config.flags("features_flags"))
        return Way(f"features-{name.replace('_', '-')}", flags)

    def _table(
        self,
        name: str,
        title: str,
        rows: Sequence[Row],
        tasks: Sequence[TaskRun],
        notes: tuple[str, ...] = (),
        further: Sequence[Column] = (),
    ) -> Table:
        columns = [*(Column(one.name, one) for one in tasks), *further]
        fields = {
            (row, column): [
                self._maker.fine_tuned(row.start, column.task, (row.way, column.way), first, seed)
                for first in self._first_seeds(row.start)
                for seed in self.config.seeds
            ]
            for row in rows
            for column in columns
        }
        return Table(name, title, notes, rows, columns, fields)

    def _first_seeds(self, start: Start) -> Sequence[int]:
        """The seeds of pre-training; what is not pre-trained here has only those of fine-tuning."""
        return self.config.pretraining_seeds if start.is_pretrained_here else (0,)


def _plain(name: str) -> str:
    """A name as a part of a folder's name.

    Example:
        >>> _plain("MiniLM, grown")
        'MiniLM-grown'
    """
    return "-".join(re.findall(r"\w+", name))


def _percent(shares: Sequence[float], between: str) -> str:
    """Shares in whole percent.

    Example:
        >>> _percent((0.8, 0.1, 0.1), "/")
        '80/10/10'
    """
    return between.join(f"{100 * share:.0f}" for share in shares)
