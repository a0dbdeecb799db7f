"""The options of a study: one command that stands for all runs of the paper's ablations."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import parse_json, typed
from keras_bert_impl.options import FREE, ONCE, REQUIRED, check_options, option
from pipelines.many_runs.cells import FINE_TUNING_TOOLS

TASKS_TABLE, SIZES_TABLE, FEATURES_TABLE = "pretraining_tasks", "sizes", "features"
MASKING_TABLE, STEPS_FIGURE = "masking", "steps"
TABLES = (TASKS_TABLE, SIZES_TABLE, FEATURES_TABLE, MASKING_TABLE, STEPS_FIGURE)
"""Tables 5, 6, 7 and 8 of Devlin et al. 2019 and figure 5."""

MODELS_TABLE = "models"
"""What the study's own model is worth beside others; of no paper."""


_COUNT = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Size:
    """One size of model.

    Attributes:
        name: what the tables call it.
        layers: the number of blocks.
        hidden: the width; the feed-forward layer is four times as wide.
        heads: the number of attention heads.
    """

    name: str
    layers: int
    hidden: int
    heads: int

    @classmethod
    def of(cls, words: str) -> "Size":
        """Reads "NAME LAYERS HIDDEN HEADS".

        Raises:
            UserError: it says something else.

        Example:
            >>> Size.of("base 12 768 12")
            Size(name='base', layers=12, hidden=768, heads=12)
        """
        name, *numbers = words.split() or [""]
        if len(numbers) != 3 or not all(map(_COUNT.fullmatch, numbers)):
            raise UserError(
                f"`size={words}`: give a name, layers, width and heads, such as base 12 768 12."
            )
        return cls(name, *map(int, numbers))


@dataclass(frozen=True)
class OtherModel:
    """A model that somebody else trained, to be compared with the study's own.

    Attributes:
        name: what the table calls it.
        checkpoint: where it is.
        flags: of its fine-tuning.
    """

    name: str
    checkpoint: str
    flags: tuple[str, ...]

    @classmethod
    def of(cls, words: str) -> "OtherModel":
        """Reads "NAME CHECKPOINT --FLAG ...".

        Raises:
            UserError: it says something else.

        Example:
            >>> OtherModel.of("MiniLM models/minilm --pooling=mean").checkpoint
            'models/minilm'
        """
        name, checkpoint, *flags = _padded(_words("other_model", words))
        flags = [flag for flag in flags if flag]
        if not checkpoint or not all(flag.startswith("--") for flag in flags):
            raise UserError(
                f"`other_model={words}`: give a name, a checkpoint, and perhaps flags for its "
                "fine-tuning."
            )
        return cls(name, checkpoint, tuple(flags))


@dataclass(frozen=True)
class TaskRun:
    """A task that models are fine-tuned for.

    Attributes:
        name: what the tables call it.
        figure: which figure of `eval_results.txt` stands in the tables.
        tool: the command.
        flags: its flags.
    """

    name: str
    figure: str
    tool: str
    flags: tuple[str, ...]

    @classmethod
    def of(cls, words: str) -> "TaskRun":
        """Reads "NAME FIGURE TOOL --FLAG ...".

        Raises:
            UserError: it says something else.

        Example:
            >>> TaskRun.of("MRPC eval_f1 run_classifier --task_name=MRPC").flags
            ('--task_name=MRPC',)
        """
        name, figure, tool, *flags = _padded(_words("task", words))
        if tool not in FINE_TUNING_TOOLS or not all(flag.startswith("--") for flag in flags):
            raise UserError(
                f"`task={words}`: give a name, a figure of eval_results.txt, one of "
                f"{', '.join(FINE_TUNING_TOOLS)}, and its flags."
            )
        return cls(name, figure, tool, tuple(flags))


@dataclass(frozen=True, kw_only=True)
class RunAblationsConfig:
    """Options of a study; a recipe is a flag file of them.

    `{data}` in flags stands for `data_dir`.

    Raises:
        UserError: a value out of range, or a size or task that cannot be read.
    """

    output_dir: Path = option(REQUIRED, "The study's folder.", resume=FREE)
    data_dir: Path = option(Path(), "The folder that {data} stands for in the recipe.")
    input_file: str = option(
        REQUIRED, "Text to pre-train on, as split_sentences reads it; see {data}.", listed=True
    )
    text_flags: str = option("", "Flags of split_sentences.")
    num_shards: int = option(
        20,
        "Files of sentences; the last one is held out from pre-training.",
        at_least=2,
        at_most=99_999,
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
    features_flags: str = option(
        "", "Flags of run_ner that override the task's where a frozen model gives features."
    )
    other_model: tuple[str, ...] = option(
        (),
        "A model to compare with in the table `models`: its name, where it is (see {data}), and "
        "perhaps flags for its fine-tuning. May be given several times.",
        repeated=True,
    )
    tables: tuple[str, ...] = option(
        TABLES,
        f"Which tables and figure to make, of {', '.join(TABLES)}: 5, 6, 7 and 8 and figure 5 of "
        f"the paper; {MODELS_TABLE} compares the first size with random weights and `other_model`.",
        resume=FREE,
    )
    sizes_tasks: tuple[str, ...] = option((), "Tasks of the table of sizes; by default all.")
    masking_tasks: tuple[str, ...] = option((), "Tasks of the table of masks; by default all.")
    steps_tasks: tuple[str, ...] = option((), "Tasks of the figure; by default all.")
    features_tasks: tuple[str, ...] = option(
        (), "Tasks that features are tried on; by default all of run_ner."
    )
    seeds: tuple[int, ...] = option((1, 2, 3), "Seeds of fine-tuning.")
    pretraining_seeds: tuple[int, ...] = option((1,), "Seeds of pre-training.")
    num_models: int = option(
        5,
        "Points of the figure: models kept at equal distances of steps.",
        at_least=2,
        at_most=10_000,
    )
    runs_at_once: int = option(
        1,
        "How many runs share the machine's processors and its memory; small models take less time "
        "side by side than one after the other with all processors each.",
        at_least=1,
        at_most=1024,
        resume=FREE,
    )
    keep_models: bool = option(
        False, "Keep the models and checkpoints of fine-tuning too.", resume=FREE
    )
    ignore_check: bool = option(
        False,
        "Go on although BERT does not beat random weights by three standard deviations on a task, "
        "and let no run wait for the ones that show it.",
        resume=FREE,
    )
    operations_per_second: float | None = option(
        None,
        "What plan_run printed for this machine; a dry run then says hours.",
        at_least=1,
        at_most=1e21,
    )
    dry_run: bool = option(
        False, "List all runs with their commands and needs, and start none.", resume=ONCE
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not self.sizes:
            raise UserError("no model is named; give `size`, or a recipe that does.")
        if not self.tasks:
            raise UserError("nothing says what to evaluate; give `task`, or a recipe that does.")
        known = (("size", self.sizes), ("task", self.tasks), ("other_model", self.other_models))
        for kind, names in known:
            given = [one.name for one in names]
            if len({*given}) < len(given):
                raise UserError(f"`{kind}`: a name is given twice; give each a name of its own.")
        tables = (*TABLES, MODELS_TABLE)
        unknown = [name for name in self.tables if name not in tables]
        if unknown:
            raise UserError(f"`tables={unknown[0]}` is unknown; choose of {', '.join(tables)}.")
        if self.other_model and MODELS_TABLE not in self.tables:
            raise UserError(f"`other_model` is for the table {MODELS_TABLE}; add it to `tables`.")
        for name in ("sizes_tasks", "masking_tasks", "steps_tasks", "features_tasks"):
            self.tasks_of(name)
        if not self.seeds or not self.pretraining_seeds:
            raise UserError("`seeds` and `pretraining_seeds` need a number each.")
        self.model(self.sizes[0])

    @property
    def sizes(self) -> Sequence[Size]:
        """The sizes; the first is that of all tables but one."""
        return [Size.of(words) for words in self.size]

    @property
    def other_models(self) -> Sequence[OtherModel]:
        """The models to compare with."""
        return [OtherModel.of(words) for words in self.other_model]

    @property
    def tasks(self) -> Sequence[TaskRun]:
        """The tasks."""
        return [TaskRun.of(words) for words in self.task]

    def tasks_of(self, name: str) -> Sequence[TaskRun]:
        """The tasks that an option such as `sizes_tasks` names; all where it names none.

        Raises:
            UserError: there is no such task.
        """
        chosen: Sequence[str] = getattr(self, name)
        known = {task.name: task for task in self.tasks}
        unknown = [one for one in chosen if one not in known]
        if unknown:
            raise UserError(f"`{name}={unknown[0]}` is no task; choose of {', '.join(known)}.")
        return [known[one] for one in chosen or known]

    def flags(self, name: str) -> tuple[str, ...]:
        """The flags that an option such as `data_flags` holds."""
        return self.filled(_words(name, getattr(self, name)))

    def filled(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Puts the folder of data into flags."""
        return tuple(flag.replace("{data}", str(self.data_dir)) for flag in flags)

    def model(self, size: Size, **settings: Any) -> BertConfig:
        """The configuration of a model.

        Raises:
            UserError: there is no such model.
        """
        name, remedy = f"`model_settings={self.model_settings}`", "give a JSON object"
        given = typed(
            parse_json(self.model_settings, name, remedy, first_line=None), dict, name, remedy
        )
        values: Mapping[str, Any] = {
            "vocab_size": self.vocab_size,
            "num_hidden_layers": size.layers,
            "hidden_size": size.hidden,
            "num_attention_heads": size.heads,
            "intermediate_size": 4 * size.hidden,
        }
        return BertConfig.from_google({**given, **values, **settings}, "`model_settings`")


def _padded(words: list[str]) -> list[str]:
    return words + [""] * (3 - len(words))


def _words(name: str, words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise UserError(f"`{name}={words}`: {error}; close the quotation.") from error
