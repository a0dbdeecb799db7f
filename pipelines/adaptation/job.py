"""An adaptation: its commands, one after the other, each once, and the model that they end with.

One step is no tool: `start` chooses the words to add and makes the model that training starts from.
"""

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.destination import check_apart, check_folder
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.sources import is_google_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole, whole_folder
from keras_bert_impl.json_files import json_text
from keras_bert_impl.options import as_list_text
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.adaptation.config import AdaptConfig
from pipelines.adaptation.report import (
    ADAPTED,
    ORIGINAL,
    Adaptation,
    task_figures,
    text_figures,
)
from pipelines.adaptation.start import prepare
from pipelines.adaptation.words import Coverage
from pipelines.corpora.split_sentences import check_text
from pipelines.many_runs.commands import Command, Tools, flag, once, overriding

_HEADS = {"masked_lm": "masked words", "next_sentence": "next sentences"}
_HEAD_LEARNING_RATE = 1e-3
GROWN = "grown"
_TASK_SEEDS = (1, 2, 3)


def adapt(config: AdaptConfig, tools: Tools) -> tuple[list[str], list[Path]]:
    """Adapts a model to a text; what is finished is left alone, what was stopped goes on.

    Gives the lines of the report (of a dry run the commands), and the files.
    """
    source = find_model(config.init_checkpoint, **config.description())
    missing = _missing_heads(source)
    steps = Steps(config, source, config.num_new_tokens > 0, _HEADS["masked_lm"] in missing)
    steps.check(tools)
    if config.dry_run:
        return [f"{one.name}\n    {one}" for one in steps.commands()], []
    folder = config.output_dir
    check_apart(config.init_checkpoint, folder / "model")
    check_folder(folder / "model")
    with RunDirectory.open(folder).taken():
        steps.text.figures(tools)
        chosen = steps.prepare()
        steps = dataclasses.replace(steps, grows=chosen["new_tokens"] > 0)
        commands = steps.commands()
        figures = {one.name: one.figures(tools, keep_model=False) for one in commands}
        trained, text = RunDirectory(steps.trained.folder), {}
        vocabularies = {
            ORIGINAL: (steps.evaluated, source.text.vocabulary, chosen["before"]),
            ADAPTED: (steps.trained, find_model(trained.model).text.vocabulary, chosen["after"]),
        }
        for name, (run, vocabulary, cut) in vocabularies.items():
            asked = tools.config_of(run.tool, run.arguments)
            text[name] = text_figures(run.folder, asked, vocabulary, Coverage(**cut))
        report = Adaptation(
            config.init_checkpoint,
            missing,
            chosen["new_tokens"],
            (trained.finished_step() or 0, trained.best_step() or 0),
            text,
            task_figures(
                *([figures[run.name] for run in steps.tasks(name)] for name in (ORIGINAL, ADAPTED))
            ),
            [str(one) for one in commands],
        )
        with whole_folder(folder / "model") as aside:
            shutil.copytree(trained.model, aside, dirs_exist_ok=True)
        with open_whole(folder / trained.learning_curve.name, "wb") as file:
            file.write(trained.learning_curve.read_bytes())
        files = [folder / "model", *report.write(folder), folder / trained.learning_curve.name]
        return report.lines(), files


@dataclasses.dataclass(frozen=True)
class Steps:
    """Makes the commands for a model, which `grows` by new tokens, or `lacks_words`: the head."""

    config: AdaptConfig
    source: ModelSource
    grows: bool
    lacks_words: bool = False

    def commands(self) -> list[Command]:
        """All commands in their order.

        The model as it came is fine-tuned before training begins: a mistake in the task shows then.
        """
        return [
            self.text,
            self.shards(ORIGINAL, "held_out"),
            self.evaluated,
            *self.tasks(ORIGINAL),
            *([self.shards(GROWN, "held_out")] if self.grows else []),
            self.shards(self.trains, "train"),
            *([self.heads] if self.lacks_words else []),
            self.trained,
            *self.tasks(ADAPTED),
        ]

    def check(self, tools: Tools) -> None:
        """Lets every tool look at its flags, and at the text, before the first is started."""
        for one in self.commands():
            asked = tools.config_of(one.tool, one.arguments)
            if one == self.text:
                check_text(asked)
            elif one == self.trained:
                self.source.config.check_length(asked.max_seq_length)
            elif one.name.startswith("task") and asked.many.are_many:
                raise UserError("`task`: leave `num_seeds` and `search` out: it has three seeds.")

    @cached_property
    def text(self) -> Command:
        """The text as sentences, in several files: the last one is held out."""
        workers = self.config.num_workers
        return self._command(
            "text",
            "split_sentences",
            flag("input_file", as_list_text(self.config.input_file)),
            flag("output_dir", "{out}"),
            flag("num_shards", self.config.held_out_every),
            *self._form,
            *self.config.flags("text_flags"),
            free=(flag("num_workers", workers),) if workers else (),
        )

    @property
    def _form(self) -> tuple[str, ...]:
        """What composes the text, for a model that reads it so."""
        text = self.source.text
        return (flag("unicode_form", text.unicode_form),) if text.composes else ()

    def sentences(self, part: str) -> list[str]:
        """The files of sentences to train on, or the one that is held out."""
        count = self.config.held_out_every
        names = [f"{self.text.folder}/sentences-{n:05d}-of-{count:05d}.txt" for n in range(count)]
        return names[:-1] if part == "train" else names[-1:]

    @cached_property
    def start(self) -> Path:
        """The folder of the words to add, and of the model with them that training starts from."""
        facts = [self.evaluated.folder.name, self.config.num_new_tokens]
        digest = hashlib.sha256(json_text(facts).encode()).hexdigest()[:8]
        return self.config.output_dir / "cells" / f"start-{digest}"

    @property
    def vocab_file(self) -> Path:
        """The vocabulary with the new words."""
        return self.start / "model" / "vocab.txt"

    def prepare(self) -> Mapping[str, Any]:
        """Makes what `start` holds, once the text is there; see `start.prepare`."""
        parts = {part: self.sentences(part) for part in ("train", "held_out")}
        return once(
            self.start,
            lambda: prepare(self.source, self.config, self.lacks_words, **parts, folder=self.start),
        )

    @cached_property
    def evaluated(self) -> Command:
        """The model as it came, on the held-out text in its own tokens."""
        shards = self.shards(ORIGINAL, "held_out").folder / "held_out.tfrecord"
        return self._pretraining("evaluated-original", ORIGINAL, shards, None, flag("do_eval"))

    @property
    def trains(self) -> str:
        """The model that training starts from."""
        return GROWN if self.grows else ORIGINAL

    @cached_property
    def heads(self) -> Command:
        """The training of new heads alone: what they do not know yet changes no encoder."""
        steps = max(1, self.config.num_train_steps // 10)
        return self._training(
            "heads",
            self.start,
            fixed=(
                flag("eval_steps", 0),
                flag("early_stopping_evals", 0),
                flag("notrain_encoder"),
                flag("num_train_steps", steps),
                flag("num_warmup_steps", steps // 10),
                flag("learning_rate", _HEAD_LEARNING_RATE),
            ),
        )

    @cached_property
    def trained(self) -> Command:
        """The pre-training that goes on."""
        config = self.config
        return self._training(
            "trained",
            self.heads.folder if self.lacks_words else self.start if self.grows else None,
            flag("num_train_steps", config.num_train_steps),
            flag("num_warmup_steps", config.num_train_steps // 10),
            flag("learning_rate", config.learning_rate),
            flag("eval_steps", max(1, config.num_train_steps // 20)),
            flag("early_stopping_evals", 3),
            flag("save_best"),
        )

    def _training(
        self, name: str, init: Path | None, *ours: str, fixed: Sequence[str] = ()
    ) -> Command:
        return self._pretraining(
            name,
            self.trains,
            self.shards(self.trains, "train").folder / "train.tfrecord",
            init,
            flag("do_train"),
            flag("do_eval"),
            # Without it the first hundreds of steps go several times as far as the rate says, and
            # a short training never makes good what they cost an encoder that has learned.
            flag("bias_correction"),
            flag("train_batch_size", self.config.train_batch_size),
            flag("keep_checkpoint_max", 1),
            *ours,
            fixed=fixed,
        )

    def _pretraining(
        self,
        name: str,
        which: str,
        shards: Path,
        init: Path | None,
        *ours: str,
        fixed: Sequence[str] = (),
    ) -> Command:
        """Pre-training or an evaluation of the model in `init`, or of the one as it came.

        The user's flags override `ours`, and `fixed` ones the user's.
        """
        config = self.config
        flags = [
            flag("input_file", shards),
            flag("eval_input_file", self.shards(which, "held_out").folder / "held_out.tfrecord"),
            flag("init_checkpoint", init / "model" if init else self._original),
            *(() if init else self._description),
            flag("output_dir", "{out}"),
            *self._lengths,
            flag("eval_batch_size", 32),
            flag("max_eval_steps", 100),
            flag("seed", config.seed),  # new heads are the same before training and at its begin
            *ours,
        ]
        own = overriding(flags, config.flags("pretraining_flags"), fixed)
        return self._command(name, "run_pretraining", *own)

    def shards(self, which: str, part: str) -> Command:
        """Masked sentence pairs in the tokens of a model.

        Whole words are masked: a token is easy to tell from the other tokens of its word, and the
        more so the finer a vocabulary cuts. Held-out pairs are masked once, so that all
        evaluations are of the same.
        """
        config, text = self.config, self.source.text
        files, vocab_file = dict[str, str](), Path("{out}/vocab.txt")
        if which == ORIGINAL:
            files[vocab_file.name] = "".join(f"{token}\n" for token in text.vocabulary.tokens)
        else:
            vocab_file = self.vocab_file
        accents = text.strip_accents
        ours = [
            flag("input_file", as_list_text(self.sentences(part))),
            flag("output_file", f"{{out}}/{part}.tfrecord"),
            flag("vocab_file", vocab_file),
            _switch("do_lower_case", text.do_lower_case),
            *(() if accents is None else (_switch("strip_accents", accents),)),
            *self._form,
            *self._lengths,
            flag("dupe_factor", 3),
            flag("masking", "dynamic"),
            flag("do_whole_word_mask"),
            flag("allow_unknown_words"),  # the report tells what the model makes of the text
        ]
        held_out = [flag("dupe_factor", 1), flag("masking", "static")]
        return self._command(
            f"data-{which}-{part.replace('_', '-')}",
            "create_pretraining_data",
            *overriding(ours, config.flags("data_flags"), held_out if part == "held_out" else ()),
            files=files,
            free=(flag("num_workers", config.num_workers or len(os.sched_getaffinity(0))),),
        )

    def tasks(self, which: str) -> list[Command]:
        """The fine-tunings of a model for the task, one a seed; none without a task."""
        if self.config.task is None:
            return []
        tool, flags = self.config.task_words
        model = self.trained.folder / "model" if which == ADAPTED else self._original
        return [
            self._command(
                f"task-{which}-seed-{seed}",
                tool,
                *flags,
                flag("init_checkpoint", model),
                *(self._description if which == ORIGINAL else ()),
                flag("output_dir", "{out}"),
                flag("do_train"),
                flag("do_eval"),
                flag("seed", seed),
            )
            for seed in _TASK_SEEDS
        ]

    def _command(self, name: str, tool: str, *flags: str, **more: Any) -> Command:
        return Command(name, tool, flags, self.config.output_dir, **more)

    @property
    def _original(self) -> str:
        return str(self.source.checkpoint)

    @property
    def _description(self) -> tuple[str, ...]:
        """What the user says of the model because no file beside it does."""
        said = self.config.description()
        lower = said.pop("do_lower_case")
        casing = () if lower is None else (_switch("do_lower_case", lower),)
        return (*(flag(name, value) for name, value in said.items() if value), *casing)

    @property
    def _lengths(self) -> tuple[str, ...]:
        names = ("max_seq_length", "max_predictions_per_seq")
        return tuple(flag(name, getattr(self.config, name)) for name in names)


def _switch(name: str, on: bool) -> str:
    return flag(name if on else f"no{name}")


def _missing_heads(source: ModelSource) -> Sequence[str]:
    """What a model has no head for."""
    if source.checkpoint is None or is_google_checkpoint(source.checkpoint):
        return []  # google's have both; TensorFlow would have to be loaded to look
    tensors = source.tensors()
    return [
        words
        for head, words in _HEADS.items()
        if any(tensors.find(names) is None for names in head_names(head))
    ]
