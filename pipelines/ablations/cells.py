"""Cells: the runs of a study, and how each is made of a recipe.

A cell is a command in a folder of its own: it makes the text, the vocabulary, shards, a model or a
score. The folder is called after what the cell does and, behind it, after a digest of all that its
result follows from: the flags, the files that they name, and the cells that it builds on. So a
changed recipe finds the cells again that it did not change, and never mixes them with others.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from keras_bert_impl.files import open_input
from keras_bert_impl.json_files import Count
from keras_bert_impl.options import as_list_text, bounded, options_of
from pipelines.ablations.config import RunAblationsConfig, Size, TaskRun
from pipelines.many_runs.runs import FIGURES, Run, Values
from pipelines.runs.pretraining_config import RunPretrainingConfig, kept_model
from pipelines.tasks.choices.options import RunSwagConfig
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.tagging.options import RunNerConfig

TEXT, VOCABULARY, SHARDS = "text", "vocabulary", "shards"
PRETRAINING, FINE_TUNING = "pre-training", "fine-tuning"

_TRAIN, _HELD_OUT = "train", "held_out"
_CONFIGS = {
    "run_classifier": RunClassifierConfig,
    "run_ner": RunNerConfig,
    "run_squad": RunSquadConfig,
    "run_swag": RunSwagConfig,
}


@dataclass(frozen=True, eq=False)
class Cell:
    """One run.

    Attributes:
        name: says what it does; unique in a study.
        kind: what sort of run it is.
        tool: the command.
        flags: its flags; {out} stands for the cell's folder.
        root: the study's folder.
        needs: the cells whose results it reads.
        files: what is written into its folder before it starts, by name.
        seeds: of pre-training and of fine-tuning, as far as it has them.
    """

    name: str
    kind: str
    tool: str
    flags: tuple[str, ...]
    root: Path
    needs: tuple["Cell", ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()

    @cached_property
    def digest(self) -> str:
        """A short name for all that the result follows from."""
        return _digest(self)

    @cached_property
    def folder(self) -> Path:
        """Where the cell works."""
        return self.root / "cells" / f"{self.name}-{self.digest}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags with the cell's folder in them."""
        return tuple(flag.replace("{out}", str(self.folder)) for flag in self.flags)

    @property
    def command(self) -> str:
        """The command line that repeats the cell."""
        return shlex.join(["keras-bert", self.tool, *self.arguments])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.name)


def flag(name: str, value: object = None) -> str:
    """A flag of a command.

    Example:
        >>> len(flag("do_train")), flag("seed", 3)[2:]
        (10, 'seed=3')
    """
    return f"--{name}" if value is None else f"--{name}={value}"


def in_order(wanted: Sequence[Cell]) -> list[Cell]:
    """Cells and all that they need, each once, every one behind those that it needs.

    Raises:
        ValueError: two cells that differ have one name.

    Example:
        >>> text = Cell("text", TEXT, "split_sentences", (), Path("study"))
        >>> shards = Cell("shards", SHARDS, "create_pretraining_data", (), Path("study"), (text,))
        >>> [cell.name for cell in in_order([shards, text, shards])]
        ['text', 'shards']
    """
    found: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        if cell.name in found:
            if found[cell.name] != cell:
                raise ValueError(f"two different cells are called {cell.name}")
            return
        for needed in cell.needs:
            add(needed)
        found[cell.name] = cell

    for cell in wanted:
        add(cell)
    return list(found.values())


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
        values = run.kept(figures=FIGURES, seconds=bounded(float, at_least=0), calls=Count)
        return None if values is None else cls.of(values)


def _digest(cell: Cell) -> str:
    own = str(cell.root)
    values = {
        "tool": cell.tool,
        "flags": [flag.replace(own, "{study}") for flag in cell.flags],
        "read": [_content(flag.partition("=")[2], own) for flag in cell.flags],
        "needs": [needed.digest for needed in cell.needs],
        "files": dict(cell.files),
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def _content(value: str, own: str) -> list[list[object]]:
    """The sizes and the content of the files that a flag's value names, but for our own."""
    found: list[list[object]] = []
    for part in value.split(","):
        path = Path(part)
        if not part or part.startswith((own, "{")) or not _exists(path):
            continue
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [_identity(file, path) for file in files if file.is_file()]
    return found


def _identity(file: Path, folder: Path) -> list[object]:
    status = file.stat()
    content = _sha256(file, status.st_size, status.st_mtime_ns)[:16]
    return [file.relative_to(folder).as_posix(), status.st_size, content]


@lru_cache(maxsize=4096)
def _sha256(file: Path, _size: int, _time: int) -> str:
    with open_input(file, may_be_empty=True) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()  # type: ignore[arg-type]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a value that is no path at all: too long, say
        return False


ConfigOf = Callable[[str, Sequence[str]], Any]
"""Gives the config of a tool's job for some flags."""

RANDOM = "random"


@dataclass(frozen=True)
class Start:
    """The model that fine-tuning starts from.

    Attributes:
        key: its name in the cells' names; `RANDOM` is no pre-training at all.
        size: the model's size.
        settings: further settings of its configuration.
        flags: of its pre-training.
        keeps_models: whether models from before the end are kept.
        step: the steps of such a model; None is the last one.
    """

    key: str
    size: Size
    settings: tuple[tuple[str, bool], ...] = ()
    flags: tuple[str, ...] = ()
    keeps_models: bool = False
    step: int | None = None


@dataclass(frozen=True)
class Way:
    """How a model is fine-tuned where it is not the usual way.

    Attributes:
        name: what the cells' names say of it; "" is the usual way.
        flags: of the tool.
    """

    name: str = ""
    flags: tuple[str, ...] = ()


USUAL = Way()
BILSTM = Way("bilstm", (flag("encoder_bilstm"),))


class CellMaker:
    """Makes cells of a recipe.

    Args:
        config: the recipe.
        config_of: gives the config of a tool's job; pre-training's says its steps.
    """

    def __init__(self, config: RunAblationsConfig, config_of: ConfigOf) -> None:
        self._config, self._config_of = config, config_of
        self._root = config.output_dir
        self._made: dict[str, Cell] = {}  # each once: a digest takes time

    @cached_property
    def kept_steps(self) -> list[int]:
        """The steps of the models that are kept, the last one included.

        Raises:
            UserError: run_pretraining refuses its flags.
        """
        steps, every = self._pretraining.training.num_train_steps, self._steps_between
        return [*range(every, steps, every), steps]

    @cached_property
    def text(self) -> Cell:
        """The text as sentences, in several files."""
        return Cell(
            "text",
            TEXT,
            "split_sentences",
            (
                flag("input_file", self._config.filled([self._config.input_file])[0]),
                flag("output_dir", "{out}"),
                flag("num_shards", self._config.num_shards),
                *self._config.flags("text_flags"),
            ),
            self._root,
        )

    @cached_property
    def vocabulary(self) -> Cell | None:
        """The vocabulary; None where the recipe names one."""
        if self._config.vocab_file:
            return None
        return Cell(
            "vocabulary",
            VOCABULARY,
            "learn_vocabulary",
            (
                flag("input_file", self._sentences(_TRAIN)),
                flag("vocab_file", "{out}/vocab.txt"),
                flag("vocab_size", self._config.vocab_size),
                *self._config.flags("vocabulary_flags"),
            ),
            self._root,
            (self.text,),
        )

    def shards(self, phase: str, part: str) -> Cell:
        """The shards of a phase ("data" or "phase2_data"), to train on or held out."""
        return self._once(
            f"{phase.replace('_', '-')}-{part.replace('_', '-')}",
            SHARDS,
            "create_pretraining_data",
            (
                flag("input_file", self._sentences(part)),
                flag("output_file", f"{{out}}/{part}.tfrecord"),
                flag("vocab_file", self._vocab_file),
                *self._config.flags(f"{phase}_flags"),
                flag("masking", "dynamic"),
            ),
            self._root,
            tuple(cell for cell in (self.text, self.vocabulary) if cell),
        )

    def pretrained(self, start: Start, seed: int) -> Cell:
        """The pre-training of a model."""
        phases = ["data", *(["phase2_data"] if self._config.phase2_data_flags else [])]
        train = [self.shards(phase, _TRAIN) for phase in phases]
        held_out = self.shards(phases[-1], _HELD_OUT)
        names = ("input_file", "phase2_input_file")
        every = [flag("save_model_steps", self._steps_between)] if start.keeps_models else []
        return self._once(
            f"pretrain-{start.key}-seed-{seed}",
            PRETRAINING,
            "run_pretraining",
            (
                *(
                    flag(name, f"{cell.folder}/{_TRAIN}.tfrecord")
                    for name, cell in zip(names, train, strict=False)
                ),
                flag("eval_input_file", f"{held_out.folder}/{_HELD_OUT}.tfrecord"),
                flag("bert_config_file", "{out}/bert_config.json"),
                flag("vocab_file", self._vocab_file),
                flag("output_dir", "{out}"),
                flag("do_train"),
                flag("do_eval"),
                flag("seed", seed),
                *_each_over_the_last(
                    RunPretrainingConfig,
                    self._config.flags("pretraining_flags"),
                    every,
                    start.flags,
                ),
            ),
            self._root,
            (*train, held_out, *([self.vocabulary] if self.vocabulary else [])),
            self._model_files(start),
            (seed,),
        )

    def fine_tuned(
        self, start: Start, task: TaskRun, ways: Sequence[Way], first: int, seed: int
    ) -> Cell:
        """The fine-tuning of a model for a task, and its score.

        Args:
            start: the model.
            task: the task.
            ways: how, where not as usual.
            first: the seed of pre-training.
            seed: that of fine-tuning.
        """
        words = [task.name, start.key, *(way.name for way in ways if way.name)]
        words += [f"step-{start.step}"] if start.step else []
        words += ["seed", *([] if start.key == RANDOM else [str(first)]), str(seed)]
        needs, source, files = self._source(start, first)
        return self._once(
            "-".join(words),
            FINE_TUNING,
            task.tool,
            (
                flag("output_dir", "{out}"),
                flag("work_dir", self._root / "work"),
                *source,
                flag("do_train"),
                flag("do_eval"),
                flag("seed", seed),
                *_each_over_the_last(
                    _CONFIGS[task.tool],
                    self._config.flags("fine_tuning_flags"),
                    self._config.filled(task.flags),
                    *(way.flags for way in ways),
                ),
            ),
            self._root,
            needs,
            files,
            (first, seed),
        )

    def _once(self, name: str, kind: str, tool: str, flags: tuple[str, ...], *more: Any) -> Cell:
        """The cell, or the same one from before."""
        cell = Cell(name, kind, tool, flags, *more)
        before = self._made.setdefault(name, cell)
        return before if before.flags == cell.flags and before.files == cell.files else cell

    def _source(
        self, start: Start, seed: int
    ) -> tuple[tuple[Cell, ...], tuple[str, ...], Mapping[str, str]]:
        """The cells that the weights come from, the flags that name them, and files to write."""
        if start.key != RANDOM:
            cell = self.pretrained(start, seed)
            model = kept_model(cell.folder, start.step) if start.step else cell.folder / "model"
            return (cell,), (flag("init_checkpoint", model),), {}
        casing = [one for one in self._config.flags("data_flags") if one.endswith("do_lower_case")]
        named = (
            flag("bert_config_file", "{out}/bert_config.json"),
            flag("vocab_file", self._vocab_file),
        )
        needs = (self.vocabulary,) if self.vocabulary else ()
        return needs, (*named, *casing), self._model_files(start)

    def _model_files(self, start: Start) -> Mapping[str, str]:
        model = self._config.model(start.size, **dict(start.settings)).to_google()
        return {"bert_config.json": json.dumps(model, indent=1) + "\n"}

    def _sentences(self, part: str) -> str:
        """The files of sentences to train on: all but the last one, which is held out."""
        count = self._config.num_shards
        names = [
            f"{self.text.folder}/sentences-{number:05d}-of-{count:05d}.txt"
            for number in range(count)
        ]
        return as_list_text(names[:-1] if part == _TRAIN else names[-1:])

    @property
    def _vocab_file(self) -> str:
        if self.vocabulary:
            return f"{self.vocabulary.folder}/vocab.txt"
        return self._config.filled([str(self._config.vocab_file)])[0]

    @cached_property
    def _pretraining(self) -> RunPretrainingConfig:
        # Flags of a second phase are refused without its shards, which are not made yet.
        shards = [flag("phase2_input_file", "shards")] if self._config.phase2_data_flags else []
        flags = [flag("output_dir", "."), *shards, *self._config.flags("pretraining_flags")]
        config = self._config_of("run_pretraining", flags)
        assert isinstance(config, RunPretrainingConfig)
        return config

    @property
    def _steps_between(self) -> int:
        """Steps between two kept models: about as many models as asked for, at checkpoints."""
        training = self._pretraining.training
        unit = training.steps_between_saves
        return max(1, round(training.num_train_steps / self._config.num_models / unit)) * unit


def _each_over_the_last(config_class: type, *groups: Sequence[str]) -> list[str]:
    """Flags of which those of a later group stand over an earlier one's.

    A tool does that by itself but for lists, to which a flag that is given again would add.
    """
    lists = {one.name for one in options_of(config_class) if one.element is not None}
    kept = list[str]()
    for group in groups:
        named = lists & {_name_of(one) for one in group}
        kept = [*(one for one in kept if _name_of(one) not in named), *group]
    return kept


def _name_of(words: str) -> str:
    return words.lstrip("-").partition("=")[0]
