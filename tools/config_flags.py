"""A tool's flags, made of the options of its config dataclass."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import (
    ONCE,
    REQUIRED,
    Option,
    as_list_text,
    items_of,
    nested_configs,
    options_named,
    options_of,
)
from tools import command_line
from tools.command_line import FlagSet

Config = TypeVar("Config")
Main = Callable[..., int]

_NUMBERS = {int: "whole numbers", float: "numbers"}


class ConfigFlags(FlagSet, Generic[Config]):
    """The flags of one tool, one for each option of a config dataclass, and its `main`.

    Args:
        usage: the tool's module docstring; `--help` shows it above the flags.

    Example:
        >>> import dataclasses
        >>> from keras_bert_impl.options import option
        >>> @dataclasses.dataclass(frozen=True)
        ... class Walk:
        ...     pace: float = option(1.0, "Metres a second.", more_than=0)
        ...     via: tuple[str, ...] = option((), "Where to pass.")
        >>> flags = ConfigFlags("Takes a walk.", Walk)
        >>> flags.parse(["--via=mill,bridge"])
        >>> flags.config()
        Walk(pace=1.0, via=('mill', 'bridge'))
    """

    def __init__(self, usage: str | None, config_class: type[Config]) -> None:
        super().__init__(usage)
        self._config_class = config_class
        # What must be given stands first in the help.
        self._options = sorted(
            options_of(config_class), key=lambda one: one.default is not REQUIRED
        )
        for one in self._options:
            self._parameters.setdefault(one.path[-1], one.name)
        for one in self._options:
            self._parameters[".".join(one.path)] = one.name
            self._add(one)

    def config(self, **more: Any) -> Config:
        """Reads the flags into the config dataclass."""
        values = {one.path: _from_flag(one, self._values[one.name].value) for one in self._options}
        made: Config = _made(self._config_class, values, more)
        return made

    def main_of(self, job: Callable[[Config], Any], *, continues: bool = False) -> Main:
        """The tool's `main`: takes a command line, or else `sys.argv[1:]`, and gives the exit code.

        It prints what the job gives: nothing, a text, lines as they come, or named figures.

        Example:
            >>> import dataclasses
            >>> from keras_bert_impl.options import option
            >>> @dataclasses.dataclass(frozen=True)
            ... class Walk:
            ...     pace: float = option(1.0, "Metres a second.")
            >>> main = ConfigFlags("Takes a walk.", Walk).main_of(lambda walk: [str(walk)])
            >>> main(["--pace=2"])
            Walk(pace=2.0)
            0
        """

        def main(
            arguments: Sequence[str] | None = None,
            *,
            keep_unknown: bool = False,
            continues: bool = continues,
        ) -> int:
            return command_line.run(
                self,
                lambda: _print(job(self.config())),
                arguments,
                keep_unknown=keep_unknown,
                continues=continues,
            )

        return main

    def as_flagfile(self, without: Sequence[str] = ()) -> str:
        """All flags that a repetition of the run has, in the form that `--flagfile` reads."""
        once = [one.name for one in self._options if one.rules.resume == ONCE]
        return super().as_flagfile((*once, *without))

    def _add(self, one: Option) -> None:
        default = None if one.default is REQUIRED else one.default
        required = one.default is REQUIRED
        name, sentence, choices = one.name, one.rules.sentence, one.rules.choices
        if one.rules.repeated:
            self.texts(name, sentence)
        elif one.element is not None:
            items = items_of(default or "") if one.rules.listed else map(str, default or ())
            self.words(name, list(items), sentence, required=required)
        elif choices is not None:
            self.choice(name, default, choices, sentence)
        elif one.type is bool:
            self.switch(name, default, sentence)
        elif one.type is int:
            self.integer(name, default, sentence, required=required)
        elif one.type is float:
            self.number(name, default, sentence)
        else:
            text = None if default is None else str(default)
            self.string(name, text, sentence, required=required)


def _print(given: Any) -> None:
    if isinstance(given, Mapping):
        given = [f"{name} = {value}" for name, value in given.items()]
    for line in [given] if isinstance(given, str) else given or ():
        print(line)


def _made(
    config_class: type, values: Mapping[tuple[str, ...], Any], more: Mapping[str, Any]
) -> Any:
    """A config, and those within it, of values by the paths of their options."""
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    for name, nested in nested_configs(config_class).items():
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        paths = (".".join(path) for path in inner)
        with options_named({path: f"{name}.{path}" for path in paths}):
            defaults = {one: value for one, value in nested.defaults.items() if (one,) not in inner}
            own[name] = _made(nested.config_class, inner, defaults)
    return config_class(**{**own, **more})


def _from_flag(one: Option, value: Any) -> Any:
    """Turns a flag's value into the option's."""
    element = one.element
    if element is not None:
        if not value and not one.default:
            return one.default
        if one.rules.listed:
            return as_list_text(value)
        return _numbers(one, value, element) if element in _NUMBERS else tuple(value)
    if one.type is not Path or value is None:
        return value
    if not value:
        raise UserError(f"`{one.name}` is empty; give a path, or leave it out.")
    return Path(value)


def _numbers(one: Option, words: Sequence[str], kind: type) -> tuple:
    try:
        return tuple(kind(word) for word in words)
    except ValueError as error:
        example = f" such as {','.join(map(str, one.default))}" if one.default else ""
        raise UserError(
            f"`{one.name}={','.join(words)}`: give {_NUMBERS[kind]} separated by commas{example}."
        ) from error


def add_tpu_flags(flag_set: FlagSet) -> None:
    """Adds the flags for TPUs of google-research/bert, so that its commands run as they are.

    Example:
        >>> flag_set = FlagSet("Trains.")
        >>> devices = flag_set.string("distribution_strategy", "one_device", "Which devices.")
        >>> add_tpu_flags(flag_set)
        >>> flag_set.parse(["--use_tpu"])
        >>> devices.value
        'tpu'
    """
    flag_set.shorthand(
        "use_tpu",
        "The original's way to say --distribution_strategy=tpu.",
        {"distribution_strategy": "tpu"},
    )
    flag_set.string("master", None, "Accepted for the original's sake; TF_CONFIG says it now.")
    flag_set.integer(
        "num_tpu_cores", 8, "Accepted for the original's sake; the TPU says it itself."
    )


def add_ignored_flags(flag_set: FlagSet) -> None:
    """Adds the flags of google-research/bert that mean nothing where nothing is trained."""
    sentence = "Accepted for the original's sake; it changes nothing here."
    flag_set.switch("use_tpu", False, sentence)
    flag_set.switch("use_one_hot_embeddings", False, sentence)
    flag_set.string("master", None, sentence)
    flag_set.integer("num_tpu_cores", 8, sentence)
