"""The cells of a study, made of a recipe: text, vocabulary, shards, models and scores."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from keras_bert_impl.options import as_list_text
from pipelines.ablations.config import RunAblationsConfig, Size, TaskRun
from pipelines.many_runs.cells import (
    FINE_TUNING,
    PRETRAINING,
    SHARDS,
    TEXT,
    VOCABULARY,
    Cell,
    ConfigOf,
    each_over_the_last,
    flag,
)
from pipelines.runs.pretraining_config import RunPretrainingConfig, kept_model
from pipelines.tasks.choices.options import RunSwagConfig
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.tagging.options import RunNerConfig

_TRAIN, _HELD_OUT = "train", "held_out"
_CONFIGS = {
    "run_classifier": RunClassifierConfig,
    "run_ner": RunNerConfig,
    "run_squad": RunSquadConfig,
    "run_swag": RunSwagConfig,
}
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
        checkpoint: where a model is that somebody else trained.
    """

    key: str
    size: Size
    settings: tuple[tuple[str, bool], ...] = ()
    flags: tuple[str, ...] = ()
    keeps_models: bool = False
    step: int | None = None
    checkpoint: str | None = None

    @property
    def is_pretrained_here(self) -> bool:
        """Whether the study pre-trains it: with each seed there is another one."""
        return self.key != RANDOM and self.checkpoint is None


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
                *each_over_the_last(
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
        words += ["seed", *([str(first)] if start.is_pretrained_here else []), str(seed)]
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
                *each_over_the_last(
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
        if start.checkpoint is not None:
            return (), self._config.filled([flag("init_checkpoint", start.checkpoint)]), {}
        if start.is_pretrained_here:
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
