"""Commands: runs of tools in folders of their own, one after the other, each done once.

A folder's name ends in a digest of the command and of the files that it reads. Commands name the
folders of those that they build on, so a digest stands for everything that a result follows from:
changed flags find the commands again that they do not concern. A command with a `result.json` is
finished; one that was stopped or killed continues from what its tool keeps.
"""

import contextlib
import gc
import glob
import hashlib
import logging
import math
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.checkpoints.model_directory import CARD_FILE, CONFIG_FILE, GRAPHS_FOLDER
from keras_bert_impl.checkpoints.sources import PART_OF_DIRECTORY
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole, without_links
from keras_bert_impl.interrupts import EXIT_SIGNAL, TerminatedError, kept_so_far
from keras_bert_impl.json_files import json_text, read_json_object, without_nan
from keras_bert_impl.options import as_list_text, items_of, options_of
from keras_bert_impl.training.run_directory import RunDirectory

_LOGGER = logging.getLogger(__name__)

_OF_MODELS = ("init_checkpoint", "teacher")
FINE_TUNING_TOOLS = ("run_classifier", "run_ner", "run_reranker", "run_squad", "run_swag")


class Tools(Protocol):
    """The tools, as a study uses them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """Gives the config that a tool makes of its flags; a `UserError` if it refuses them."""

    def task_of(self, tool: str) -> Callable[[Any], Any]:
        """Gives what makes the task of a config of a fine-tuning."""

    def check(self, tool: str, flags: Sequence[str]) -> None:
        """Looks at the files and the model of a fine-tuning, as its run does first."""

    def run(self, tool: str, flags: Sequence[str]) -> int:
        """Runs a tool in this process; gives its exit code."""


@dataclass(frozen=True)
class Command:
    """A tool's run, under a name that is unique in a study."""

    name: str
    tool: str
    flags: tuple[str, ...]  # in which {out} stands for the command's folder
    root: Path  # the study's folder
    files: Mapping[str, str] = field(default_factory=dict)  # written there before the start
    free: tuple[str, ...] = ()  # further flags, from which nothing of the result follows

    @cached_property
    def folder(self) -> Path:
        """Where the command works."""
        root = re.compile(rf'(?<![^=,"]){re.escape(str(self.root))}/')
        flags = [root.sub("{study}/", one) for one in self.flags]
        read = [_contents(one, f"{self.root / 'cells'}/") for one in self.flags]
        facts = json_text([self.tool, flags, read, dict(self.files)], sort_keys=True)
        digest = hashlib.sha256(facts.encode()).hexdigest()[:8]
        return self.root / "cells" / f"{self.name}-{digest}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags with the command's folder in them."""
        return tuple(one.replace("{out}", str(self.folder)) for one in (*self.flags, *self.free))

    def __str__(self) -> str:
        return shlex.join(["keras-bert", self.tool, *self.arguments])

    def figures(self, tools: Tools, keep_model: bool = False) -> dict[str, float]:
        """Does the command once; gives the figures of its `eval_results.txt`, and tidies up."""
        found = once(self.folder, lambda: self._run(tools))
        for run in map(RunDirectory, (self.folder, *self.folder.glob("seed-*"))):
            tuned = [run.model] if self.tool in FINE_TUNING_TOOLS and not keep_model else []
            for folder in (run.checkpoints, run.best_checkpoint, *tuned):
                shutil.rmtree(folder, ignore_errors=True)
        return dict(found["figures"])

    def finished(self) -> Mapping[str, Any] | None:
        """The content of `result.json`; None before the command is finished."""
        return _kept(self.folder)

    def sentences(self, part: str, count: int) -> str:
        """The flag for the files of sentences: those to "train" on, or the last, held out."""
        names = [f"{self.folder}/sentences-{n:05d}-of-{count:05d}.txt" for n in range(count)]
        return flag("input_file", as_list_text(names[:-1] if part == "train" else names[-1:]))

    def _run(self, tools: Tools) -> Mapping[str, Any]:
        for name, text in self.files.items():
            with open_whole(self.folder / name) as file:
                file.write(text)
        _LOGGER.info("%s:\n  %s", self.name, self)
        seconds = run_step(f"{self.name} in {self.folder}", tools.run, self.tool, self.arguments)
        figures = RunDirectory(self.folder).read_eval_results()
        return {"command": str(self), "figures": figures, "seconds": seconds}


def run_step(name: str, run: Callable[..., int], *arguments: Any) -> float:
    """Runs a tool by `run`, which gives its exit code; gives its seconds. Its stop stops us too."""
    start = time.monotonic()
    with kept_so_far(f"{name} is not finished, and the same command continues there"):
        code = run(*arguments)
        if (number := code - EXIT_SIGNAL) > 0:
            raise KeyboardInterrupt if number == signal.SIGINT else TerminatedError(number)
    if code != 0:
        raise UserError(f"{name} failed: see the message above. The same command continues there.")
    forget_models()
    return round(time.monotonic() - start, 1)


def once(folder: Path, work: Callable[[], Mapping[str, Any]], of: Any = None) -> Mapping[str, Any]:
    """Gives the JSON values of work in a folder, done once; the result also follows from `of`."""
    if (before := _kept(folder, of)) is not None:
        return before
    for path in make_folder(without_links(folder, names=2)).iterdir():
        without_links(path)  # the work would take it for what its user names
    values, facts = work(), {} if of is None else {"of": of}
    with open_whole(folder / "result.json") as file:
        file.write(json_text(without_nan({**facts, **values}), indent=1))
    return values


def _kept(folder: Path, of: Any = None) -> Mapping[str, Any] | None:
    """The result that `once` wrote, if there is one of the same facts."""
    path = folder / "result.json"
    found = read_json_object(path) if path.is_file() else {}
    if isinstance(figures := found.get("figures"), dict):
        found["figures"] = {name: math.nan if x is None else x for name, x in figures.items()}
    return found if found and found.get("of") == of else None


def forget_models() -> None:
    """Frees the memory of the models of a job that has ended."""
    if keras := sys.modules.get("keras"):
        keras.backend.clear_session()
    gc.collect()


def flag(name: str, value: object) -> str:
    """A flag of a command with its value, which may be True."""
    return f"--{name}={value}"


def flags(**values: object) -> list[str]:
    """The flags of a command by their names; True and False are switches.

    Example:
        >>> flags(do_train=True, shuffle=False, seed=3)
        ['--do_train', '--noshuffle', '--seed=3']
    """
    return [
        f"--{'' if value else 'no'}{name}" if isinstance(value, bool) else flag(name, value)
        for name, value in values.items()
    ]


def given(config: Any, options: type) -> list[str]:
    """The flags of those options of a class that a config has and that are not the defaults."""
    values = ((one, reduce(getattr, one.path, config)) for one in options_of(options))
    return [flag(one.name, value) for one, value in values if value != one.default]


def words_of(name: str, text: str, form: str = "") -> list[str]:
    """The words of an option such as `task`, as a shell splits them: those of `form`, then flags.

    Example:
        >>> words_of("task", "MRPC run_classifier --data_dir='my data'", "NAME TOOL")
        ['MRPC', 'run_classifier', '--data_dir=my data']
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"`{name}={text}`: {error}; close the quotation.") from error
    count = len(form.split())
    if len(words) < count or not all(one.startswith("-") for one in words[count:]):
        wanted = f"{form}, then flags" if form else "flags"
        raise UserError(f"`{name}={text}`: give it as {wanted}; quote what has blanks.")
    return words


def overriding(*groups: Sequence[str]) -> list[str]:
    """Flags of which those of a later group replace an earlier one's of the same name.

    Example:
        >>> overriding(["-a=1", "-b=1"], ["-a=2", "-a=3"])
        ['-b=1', '-a=2', '-a=3']
    """
    flags = list[str]()
    for group in groups:
        names = {one.partition("=")[0] for one in group}
        flags = [*(one for one in flags if one.partition("=")[0] not in names), *group]
    return flags


def _contents(words: str, made: str) -> list[tuple[str, str]]:
    """The names and the digests of the files that a flag names, but for those below `made`.

    The prefix of a TF1 checkpoint, or any file of a model, stands for the others, too, where a
    model is named. A model's card and the graphs that are kept in its folder are no part of it.
    """
    found, (name, _, text) = list[tuple[str, str]](), words.partition("=")
    parts = PART_OF_DIRECTORY if name.lstrip("-") in _OF_MODELS else ()
    values = [text]
    with contextlib.suppress(UserError):  # it is no list
        values += items_of(text)
    at_home = (os.path.expanduser(one) if one[:2] == "~/" else one for one in values)  # noqa: PTH111
    for value in dict.fromkeys(at_home):
        # A value may be too long for a name, which `Path.exists` does not forgive.
        there = [value] if os.path.exists(value) else glob.glob(value, recursive=True)  # noqa: PTH110,PTH207
        # An index of TensorFlow's has a checksum of every tensor.
        there = there or glob.glob(f"{glob.escape(value)}.index")  # noqa: PTH207
        for path in map(Path, [] if value.startswith(made) else there):
            beside = map(path.with_name, () if path.is_dir() else parts)
            for one in dict.fromkeys([*sorted(path.rglob("*")), path, *beside]):
                card = one.name == CARD_FILE and one.with_name(CONFIG_FILE).is_file()
                if one.is_file() and not card and GRAPHS_FOLDER not in one.parts:
                    found.append((os.path.relpath(one, path), _sha256(one)))
    return found


@cache
def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
