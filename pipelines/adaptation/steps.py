"""The steps of an adaptation, each a command of a tool in a folder of its own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.checkpoint_options import CheckpointOptions
from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import as_list_text
from pipelines.adaptation.config import AdaptConfig
from pipelines.corpora.split_sentences import SplitSentencesConfig
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
from pipelines.pretraining_data.recipe import PretrainingDataConfig, fingerprint
from pipelines.runs.pretraining_config import RunPretrainingConfig

ORIGINAL, GROWN, ADAPTED = "original", "grown", "adapted"
"""The three models that are compared."""


@dataclass(frozen=True)
class Asked:
    """What the tools are asked for.

    Attributes:
        text: of the text's sentences.
        pretraining: of the training.
        tasks: of all fine-tunings.
        head_steps: steps in which only new heads learn.
    """

    text: SplitSentencesConfig
    pretraining: RunPretrainingConfig
    tasks: Sequence[Any]
    head_steps: int


@dataclass(frozen=True)
class Steps:
    """Makes the commands.

    Attributes:
        config: the options.
        source: the model as it came.
        grows: whether tokens are added.
        lacks_words: whether the model has no head that tells masked words.
    """

    config: AdaptConfig
    source: ModelSource
    grows: bool
    lacks_words: bool = False

    @cached_property
    def text(self) -> Cell:
        """The text as sentences, in several files: the last one is held out."""
        return self._cell(
            "text",
            TEXT,
            "split_sentences",
            flag("input_file", as_list_text(self.config.input_file)),
            flag("output_dir", "{out}"),
            flag("num_shards", self.config.held_out_every),
            *self._form,
            *self.config.flags("text_flags"),
            free=self._workers,
        )

    @cached_property
    def words_folder(self) -> Path:
        """Where the chosen words are; its name says what they follow from."""
        text = self.source.text
        facts = [self.text.digest, text.vocabulary.sha256, *text.as_json().values()]
        digest = fingerprint([*facts, vars(self.config.words)])[:8]
        return self.config.output_dir / "cells" / f"words-{digest}"

    def sentences(self, *, held_out: bool) -> list[Path]:
        """The files of sentences: those to train on, or the one that is held out."""
        count = self.config.held_out_every
        paths = [
            self.text.folder / f"sentences-{number:05d}-of-{count:05d}.txt"
            for number in range(count)
        ]
        return paths[-1:] if held_out else paths[:-1]

    @cached_property
    def grown(self) -> Cell:
        """The model with the words that it lacked."""
        return self._cell(
            "grown",
            VOCABULARY,
            "grow_vocabulary",
            flag("input", self._original),
            flag("output", "{out}/model"),
            flag("words_file", self.words_folder / "words.txt"),
            *self._description,
        )

    @property
    def prepares(self) -> bool:
        """Whether something of the model is made of the text before training begins."""
        return self.grows or self.lacks_words

    @cached_property
    def start_folder(self) -> Path:
        """Where the model is that training starts from, if it `prepares` one."""
        model = self.grown.digest if self.grows else self._original
        facts = [self.text.digest, model, self.lacks_words, self.config.seed]
        return self.config.output_dir / "cells" / f"start-{fingerprint(facts)[:8]}"

    @property
    def before_start(self) -> Path:
        """The model that the one in `start_folder` is made of."""
        return self.grown.folder / "model" if self.grows else Path(self._original)

    def evaluated(self, which: str) -> Cell:
        """A model that nothing was trained of, on the held-out text in its own tokens."""
        return self._cell(
            f"evaluated-{which}",
            PRETRAINING,
            "run_pretraining",
            *self._pretraining(
                which,
                self.shards(which, held_out=True),
                None if which == ORIGINAL else self.start_folder / "model",
            ),
            flag("do_eval"),
        )

    @property
    def trains_heads(self) -> bool:
        """Whether new heads learn alone before the whole model does."""
        return self.lacks_words and self.config.head_steps > 0

    @cached_property
    def heads(self) -> Cell:
        """The training of new heads alone: what they do not know yet changes no encoder."""
        config, which = self.config, self.trains
        ours = [
            flag("do_train"),
            flag("do_eval"),
            flag("eval_steps", 0),
            flag("notrain_encoder"),
            flag("num_train_steps", config.head_steps),
            flag("num_warmup_steps", config.head_steps // 10),
            flag("learning_rate", config.head_learning_rate),
            *self._training,
        ]
        shards = self.shards(which, held_out=False)
        init = self.start_folder / "model"
        return self._cell(
            "heads", PRETRAINING, "run_pretraining", *self._pretraining(which, shards, init, ours)
        )

    @cached_property
    def trained(self) -> Cell:
        """The pre-training that goes on."""
        config, which = self.config, self.trains
        ours = [
            flag("do_train"),
            flag("do_eval"),
            flag("num_train_steps", config.num_train_steps),
            flag("num_warmup_steps", config.warmup_steps),
            flag("learning_rate", config.learning_rate),
            *self._training,
            flag("eval_steps", config.steps_between_evaluations),
            flag("early_stopping_evals", config.early_stopping_evals),
            flag("save_best"),
        ]
        shards, init = self.shards(which, held_out=False), None
        if self.prepares:
            init = (self.heads.folder if self.trains_heads else self.start_folder) / "model"
        return self._cell(
            "trained",
            PRETRAINING,
            "run_pretraining",
            *self._pretraining(which, shards, init, ours),
        )

    def shards(self, which: str, *, held_out: bool) -> Cell:
        """Masked sentence pairs in the tokens of a model.

        Whole words are masked: a token is easy to tell from the other tokens of its word, and the
        more so the finer a vocabulary cuts. Held-out pairs are masked once, so that all
        evaluations are of the same.
        """
        config, part = self.config, "held_out" if held_out else "train"
        vocabulary: dict[str, str] = {}
        vocab_file = self.grown.folder / "model" / "vocab.txt"
        if which == ORIGINAL:
            vocabulary = {
                "vocab.txt": "".join(f"{t}\n" for t in self.source.text.vocabulary.tokens)
            }
            vocab_file = Path("{out}/vocab.txt")
        once = (flag("dupe_factor", 1), flag("masking", "static")) if held_out else ()
        return self._cell(
            f"data-{which}-{part.replace('_', '-')}",
            SHARDS,
            "create_pretraining_data",
            *each_over_the_last(
                PretrainingDataConfig,
                (
                    flag("input_file", as_list_text(map(str, self.sentences(held_out=held_out)))),
                    flag("output_file", f"{{out}}/{part}.tfrecord"),
                    flag("vocab_file", vocab_file),
                    *self._casing,
                    *self._lengths,
                    flag("dupe_factor", config.dupe_factor),
                    flag("masking", "dynamic"),
                    flag("do_whole_word_mask"),
                    # What the model as it came makes of the text is told in the report.
                    flag("allow_unknown_words"),
                ),
                config.flags("data_flags"),
                once,
            ),
            files=vocabulary,
            free=(flag("num_workers", config.num_workers or len(os.sched_getaffinity(0))),),
        )

    def task_runs(self, which: str) -> list[Cell]:
        """The fine-tunings of a model for the task, one a seed; none without a task."""
        if self.config.task_words is None:
            return []
        tool, flags = self.config.task_words
        model = self.trained.folder / "model" if which == ADAPTED else self._original
        return [
            self._cell(
                f"task-{which}-seed-{seed}",
                FINE_TUNING,
                tool,
                *flags,
                flag("init_checkpoint", model),
                *(self._description if which == ORIGINAL else ()),
                flag("output_dir", "{out}"),
                flag("work_dir", self.config.output_dir / "work" / which),
                flag("do_train"),
                flag("do_eval"),
                flag("seed", seed),
                seeds=(seed,),
            )
            for seed in range(1, self.config.task_seeds + 1)
        ]

    @property
    def trains(self) -> str:
        """The model that training starts from."""
        return GROWN if self.grows else ORIGINAL

    def cells(self) -> list[Cell]:
        """All commands in their order.

        The model as it came is fine-tuned before training begins: a mistake in the task shows then.
        """
        grown: Sequence[Cell] = ()
        if self.grows:
            grown = (self.grown, self.shards(GROWN, held_out=True), self.evaluated(GROWN))
        return [
            self.text,
            self.shards(ORIGINAL, held_out=True),
            self.evaluated(ORIGINAL),
            *self.task_runs(ORIGINAL),
            *grown,
            self.shards(self.trains, held_out=False),
            *([self.heads] if self.trains_heads else []),
            self.trained,
            *self.task_runs(ADAPTED),
        ]

    def check(self, config_of: ConfigOf) -> "Asked":
        """Lets every tool look at its flags, before the first is started.

        Raises:
            UserError: a tool refuses its flags.
        """
        configs = [(cell, config_of(cell.tool, cell.arguments)) for cell in self.cells()]
        tasks = [config for cell, config in configs if cell.kind == FINE_TUNING]
        if any(task.many.are_many for task in tasks):
            raise UserError(
                "`task`: leave `num_seeds` and `search` out; `task_seeds` says how many models are "
                "trained."
            )
        by_name = {cell.name: config for cell, config in configs}
        asked = Asked(
            by_name[self.text.name],
            by_name[self.trained.name],
            tasks,
            self.config.head_steps if self.trains_heads else 0,
        )
        self.source.config.check_length(asked.pretraining.max_seq_length)
        return asked

    def _pretraining(
        self, which: str, shards: Cell, prepared: Path | None, ours: Sequence[str] = ()
    ) -> list[str]:
        """The flags of a training or an evaluation of a model that is `prepared`, or as it came."""
        held_out = self.shards(which, held_out=True)
        read = "train" if shards != held_out else "held_out"
        return each_over_the_last(
            RunPretrainingConfig,
            [
                flag("input_file", shards.folder / f"{read}.tfrecord"),
                flag("eval_input_file", held_out.folder / "held_out.tfrecord"),
                flag("init_checkpoint", prepared or self._original),
                *(() if prepared else self._description),
                flag("output_dir", "{out}"),
                *self._lengths,
                flag("eval_batch_size", self.config.eval_batch_size),
                flag("max_eval_steps", self.config.max_eval_steps),
                # The heads that are new are the same before training and at its begin.
                flag("seed", self.config.seed),
                *ours,
            ],
            self.config.flags("pretraining_flags"),
        )

    def _cell(
        self, name: str, kind: str, tool: str, *flags: str, free: Sequence[str] = (), **more: Any
    ) -> Cell:
        # What it needs stands in its flags, by folders whose names have digests of their own.
        return Cell(name, kind, tool, flags, self.config.output_dir, free=tuple(free), **more)

    @property
    def _training(self) -> tuple[str, ...]:
        """What both trainings share."""
        return (
            # Without it the first hundreds of steps go several times as far as the rate says, and
            # a short training never makes good what they cost an encoder that has learned.
            flag("bias_correction"),
            flag("train_batch_size", self.config.train_batch_size),
            flag("keep_checkpoint_max", 1),
        )

    @property
    def _original(self) -> str:
        return str(self.source.checkpoint)

    @property
    def _description(self) -> tuple[str, ...]:
        """What the user says of the model because no file beside it does."""
        said = {one.name: getattr(self.config, one.name) for one in fields(CheckpointOptions)}
        lower = said.pop("do_lower_case")
        casing = () if lower is None else (_switch("do_lower_case", lower),)
        return (*(flag(name, value) for name, value in said.items() if value), *casing)

    @property
    def _casing(self) -> tuple[str, ...]:
        text = self.source.text
        accents = text.strip_accents
        said = () if accents is None else (_switch("strip_accents", accents),)
        return (_switch("do_lower_case", text.do_lower_case), *said, *self._form)

    @property
    def _form(self) -> tuple[str, ...]:
        """What composes the text, for a model that reads it so."""
        text = self.source.text
        return (flag("unicode_form", text.unicode_form),) if text.composes else ()

    @property
    def _lengths(self) -> tuple[str, ...]:
        names = ("max_seq_length", "max_predictions_per_seq")
        return tuple(flag(name, getattr(self.config, name)) for name in names)

    @property
    def _workers(self) -> tuple[str, ...]:
        workers = self.config.num_workers
        return (flag("num_workers", workers),) if workers else ()


def _switch(name: str, on: bool) -> str:
    return flag(name if on else f"no{name}")
