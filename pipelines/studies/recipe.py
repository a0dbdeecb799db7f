"""The options of a study: one command that stands for all runs of the paper's ablations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import parse_json, typed
from keras_bert_impl.options import FREE, ONCE, REQUIRED, Options, option
from pipelines.studies.commands import FINE_TUNING_TOOLS, words_of

TASKS_TABLE, SIZES_TABLE, MASKING_TABLE = "pretraining_tasks", "sizes", "masking"
STEPS_FIGURE = "steps"
TABLES = (TASKS_TABLE, SIZES_TABLE, MASKING_TABLE, STEPS_FIGURE)
"""Tables 5, 6 and 8 of Devlin et al. 2019 and figure 5."""

MODELS_TABLE = "models"
"""What the study's own model is worth beside others; of no paper."""


class Size(NamedTuple):
    """A size of model; the feed-forward layer is four times as wide."""

    name: str
    layers: int
    hidden: int
    heads: int


class OtherModel(NamedTuple):
    """A model trained elsewhere, and flags of its fine-tuning."""

    name: str
    checkpoint: str
    flags: Sequence[str]


class TaskRun(NamedTuple):
    """A task, and the figure of `eval_results.txt` for the tables."""

    name: str
    figure: str
    tool: str
    flags: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RunAblationsConfig(Options):
    """Options of a study; a recipe is a flag file of them.

    `{data}` in flags stands for `data_dir`.
    """

    output_dir: Path = option(REQUIRED, "The study's folder.", resume=FREE)
    data_dir: Path = option(Path(), "The folder that {data} stands for in the recipe.")
    input_file: str = option(
        REQUIRED, "Text to pre-train on, as split_sentences reads it; see {data}.", listed=True
    )
    text_flags: str = option("", "Flags of split_sentences.")
    num_shards: int = option(
        20, "Files of sentences; the last one is held out.", at_least=2, at_most=99_999
    )
    vocab_file: str | None = option(
        None, "The vocabulary; by default one is learned from the text. See {data}."
    )
    vocabulary_flags: str = option("", "Flags of learn_vocabulary.")
    vocab_size: int = option(16384, "Tokens of the vocabulary.", at_least=5, at_most=2**24)
    data_flags: str = option(
        "", "Flags of create_pretraining_data; masking is dynamic, so that all models share shards."
    )
    phase2_data_flags: str = option(
        "", "Flags of create_pretraining_data for a second phase of longer sequences; none without."
    )
    model_settings: str = option(
        "{}", "What every model's configuration says besides its size, as JSON."
    )
    size: tuple[str, ...] = option(
        (),
        "A size of model: its name, layers, width and heads. The first one is that of all tables "
        "but that of sizes. May be given several times.",
        repeated=True,
    )
    pretraining_flags: str = option("", "Flags of run_pretraining, the same for every model.")
    task: tuple[str, ...] = option(
        (),
        "A task: its name, the figure of eval_results.txt that counts (more is better), the tool "
        "(run_classifier, run_ner, run_squad or run_swag) and its flags. May be given several "
        "times.",
        repeated=True,
    )
    fine_tuning_flags: str = option("", "Flags of every task; those of a task override them.")
    other_model: tuple[str, ...] = option(
        (),
        "A model to compare with in the table `models`: its name, where it is (see {data}), and "
        "perhaps flags for its fine-tuning. May be given several times.",
        repeated=True,
    )
    tables: tuple[str, ...] = option(
        TABLES,
        f"Which tables and figure to make, of {', '.join(TABLES)}: 5, 6 and 8 and figure 5 of "
        f"the paper; {MODELS_TABLE} compares the first size with random weights and `other_model`.",
        choices=(*TABLES, MODELS_TABLE),
        resume=FREE,
    )
    sizes_tasks: tuple[str, ...] = option((), "Tasks of the table of sizes; by default all.")
    masking_tasks: tuple[str, ...] = option((), "Tasks of the table of masks; by default all.")
    steps_tasks: tuple[str, ...] = option((), "Tasks of the figure; by default all.")
    seeds: tuple[int, ...] = option((1, 2, 3), "Seeds of fine-tuning.")
    pretraining_seeds: tuple[int, ...] = option((1,), "Seeds of pre-training.")
    num_models: int = option(
        5, "Points of the figure: models at equal distances.", at_least=2, at_most=10_000
    )
    keep_models: bool = option(False, "Keep the models of fine-tuning too.", resume=FREE)
    dry_run: bool = option(False, "List all runs with their commands, start none.", resume=ONCE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.size or not self.task:
            raise UserError("give `size` and `task`, each at least once, or a recipe that does.")
        if self.other_models and MODELS_TABLE not in self.tables:
            raise UserError(f"`other_model` is for the table {MODELS_TABLE}; add it to `tables`.")
        for listed in fields(self):
            found = getattr(self, listed.name)
            missing = listed.default and not found
            if isinstance(found, tuple) and (missing or len({*found}) < len(found)):
                raise UserError(f"`{listed.name}` needs at least one value, and each only once.")
        for one in self.tasks:
            if one.tool not in FINE_TUNING_TOOLS:
                known = ", ".join(FINE_TUNING_TOOLS)
                raise UserError(f"`task`: {one.tool} trains no task; choose from {known}.")
        self.model(self.sizes[0])

    @property
    def sizes(self) -> Sequence[Size]:
        """The sizes; the first is that of all tables but one."""
        form, found = "NAME LAYERS WIDTH HEADS", []
        for name, *numbers in self._named("size", form):
            if len(numbers) != 3 or not all(re.fullmatch("[1-9][0-9]{0,8}", x) for x in numbers):
                raise UserError(f"`size={name} {' '.join(numbers)}`: give it as {form}.")
            found.append(Size(name, *map(int, numbers)))
        return found

    @property
    def other_models(self) -> Sequence[OtherModel]:
        """The models to compare with."""
        found = self._named("other_model", "NAME CHECKPOINT")
        return [OtherModel(name, checkpoint, flags) for name, checkpoint, *flags in found]

    @property
    def tasks(self) -> Sequence[TaskRun]:
        """The tasks."""
        found = self._named("task", "NAME FIGURE TOOL")
        return [TaskRun(name, figure, tool, flags) for name, figure, tool, *flags in found]

    def _named(self, option_name: str, form: str) -> list[list[str]]:
        """The words of an option that is given several times, each with a name of its own."""
        found = [words_of(option_name, text, form) for text in getattr(self, option_name)]
        if len({name for name, *_ in found}) < len(found):
            raise UserError(f"`{option_name}`: a name is given twice; give each its own.")
        return found

    def tasks_of(self, table: str) -> Sequence[TaskRun]:
        """The tasks that an option such as `sizes_tasks` names; all where it names none."""
        known = {task.name: task for task in self.tasks}
        chosen = getattr(self, f"{table}_tasks", ()) or [*known]
        for name in sorted({*chosen} - known.keys()):
            raise UserError(f"`{table}_tasks={name}` is no task; choose from {', '.join(known)}.")
        return [known[name] for name in chosen]

    def flags(self, name: str) -> tuple[str, ...]:
        """The flags that an option such as `data_flags` holds."""
        return self.filled(words_of(name, getattr(self, name)))

    def filled(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Puts the folder of data into flags."""
        return tuple(flag.replace("{data}", str(self.data_dir)) for flag in flags)

    def model(self, size: Size, **settings: Any) -> BertConfig:
        """The configuration of a model."""
        about = (f"`model_settings={self.model_settings}`", "give a JSON object")
        given = typed(parse_json(self.model_settings, *about, first_line=None), dict, *about)
        values = {
            "vocab_size": self.vocab_size,
            "num_hidden_layers": size.layers,
            "hidden_size": size.hidden,
            "num_attention_heads": size.heads,
            "intermediate_size": 4 * size.hidden,
        }
        return BertConfig.from_google({**given, **values, **settings}, "`model_settings`")
