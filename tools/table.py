"""The table of the tools: a row is a manual page, a config, a job and a group.

`keras-bert NAME` runs one; a program has its `flags` and its `main` from `tool_named`, or from
`from tools import NAME`. TensorFlow and what imports it are imported within the functions.
"""

import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keras_bert_impl.backend import choose_products_for_batches
from tools.config_flags import ConfigFlags, add_compile_cache

USE, TUNE, EXPORT = "Use a model", "Fine-tune it on labelled text", "Export it"
PRETRAIN, SCORE = "Pre-train on your own text", "Score and submit"
STUDY = "Study, check"
GROUPS = (USE, TUNE, EXPORT, PRETRAIN, SCORE, STUDY)
"""What a person wants to do, in the order in which the tools are listed."""

Job = Callable[[Any, ConfigFlags], Any]


@dataclass(frozen=True)
class Tool:
    """A row of the table; `module:name` is imported when it is needed."""

    group: str
    page: str  # the manual page
    job: Job  # takes the config and the flags, and gives what is printed
    config: str  # the config class as `module:name`
    continues: bool = False  # whether the same command continues where it was stopped
    # Adds flags that no option of the config is, such as google's.
    more_flags: Callable[[ConfigFlags], None] | None = None
    compiles: bool = False  # whether it trains, so that what it compiles is worth keeping
    alone: bool = False  # whether texts come one at a time, for which other products are quicker
    # Whether flags that the tool does not know are for another program.
    passes_on: Callable[[ConfigFlags, list[str]], bool] | None = None
    task_of: str = ""  # what makes the task of a fine-tuning, as `module:name`

    @property
    def gives(self) -> str:
        """What a person gets from it, as its manual page begins."""
        return re.split("[,.:;]", self.page)[0]

    @functools.cached_property
    def flags(self) -> ConfigFlags:
        flags = ConfigFlags(self.page, named(self.config))
        if self.more_flags:
            self.more_flags(flags)
        if self.compiles:
            add_compile_cache(flags)
        return flags

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Runs it by a command line, or else by that of the program; gives its exit code."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        passes_on = self.passes_on is not None and self.passes_on(self.flags, words)
        main = self.flags.main_of(lambda config: self.job(config, self.flags))
        if not self.alone:
            choose_products_for_batches()
        return main(words, keep_unknown=passes_on, continues=self.continues and not passes_on)


def named(name: str) -> Any:
    """What `module:name` names."""
    module, _, own = name.partition(":")
    return getattr(importlib.import_module(module), own)


_ROWS: dict[str, Tool] = {}


def tool(
    group: str, config: str, job: Job | str | None = None, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function a row of the table, whose manual page is its docstring; see `Tool`.

    The function is the job itself, unless another one is given: as `module:name`, or as `:name` of
    the config's module, one of the config alone.
    """
    if isinstance(job, str):
        where = config.partition(":")[0] + job if job.startswith(":") else job
        job = functools.partial(_named_job, where)

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        page = str(function.__doc__)
        _ROWS[function.__name__] = Tool(group, page, job or function, config, **more)
        return function

    return add


def _named_job(name: str, config: Any, _: ConfigFlags) -> Any:
    return named(name)(config)


def _rows() -> dict[str, Tool]:
    for room in ("models", "training", "studies"):
        importlib.import_module(f"{__package__}.{room}")
    return _ROWS


def tool_named(name: str) -> Tool:
    """The tool of a name."""
    return _rows()[name]


def tools_of(group: str) -> dict[str, Tool]:
    """The tools of a group, by their names."""
    return {name: one for name, one in _rows().items() if one.group == group}


def tool_names() -> list[str]:
    """The tools there are."""
    return sorted(_rows())


def written(files: Iterable[Any]) -> Iterator[str]:
    """The lines about files that a tool wrote."""
    return (f"wrote {path}" for path in files)


class ToolPrograms:
    """The other tools, for one that runs some of them in its process: configs, and runs."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        flag_set = tool_named(tool).flags
        flag_set.parse(list(flags))
        config = flag_set.config()
        # Who gives a default means it, whatever a trained model keeps.
        return replace(config, given=flag_set.given()) if hasattr(config, "given") else config

    def task_of(self, tool: str) -> Callable[[Any], Any]:
        task_of: Callable[[Any], Any] = named(tool_named(tool).task_of)
        return task_of

    def check(self, tool: str, flags: Sequence[str]) -> None:
        from pipelines.fine_tuning.start import check_run

        check_run(self.config_of(tool, flags), self.task_of(tool))

    def run(self, tool: str, flags: Sequence[str]) -> int:
        """Runs a tool; what it prints goes to standard error, beside what it logs."""
        with contextlib.redirect_stdout(sys.stderr):
            return tool_named(tool).main(list(flags))
