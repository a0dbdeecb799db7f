"""A tool's flags, as google-research/bert has them, made of the options of its config dataclass."""

import difflib
import functools
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from keras_bert_impl.errors import UserError, cut, nearest
from keras_bert_impl.files import read_small
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
from tools.command_line import run
from tools.gone import FLAGS as GONE_FLAGS
from tools.gone import without_defaults

Config = TypeVar("Config")
Main = Callable[..., int]

_INDENT = " " * 6
_NEARLY = 0.86  # likeness from which a flag is another one mistyped; Beam's own are less alike
_WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_TRUTH = {**dict.fromkeys(("true", "t", "1"), True), **dict.fromkeys(("false", "f", "0"), False)}
_FILES = ("flagfile", "recipe")  # one flag: of a study its file is called a recipe
_TWO_SCREENS = 100  # lines of help

_SAME_FLAGS = (
    *(("init_checkpoint", "model", "model_dir"), ("seed", "random_seed")),
    ("precision", "engine_precision"),
)
"""Names of one thing: a tool that has one of them understands the others in its place."""

_OF_FEW = {
    *("allow_changed_flags", "allow_unknown_words", "bias_correction", "clip_norm", "dev_seed"),
    *("distribution_strategy", "early_stopping_evals", "ema_decay", "encoder_bilstm", "encoding"),
    *("eval_steps", "evidence_words", "gcp_project", "header", "iterations_per_loop"),
    *("keep_checkpoint_max", "kernels", "layer_decay", "log_steps", "num_logical_devices"),
    *("optimizer", "pooling", "predict_batch_size", "profile_steps", "recompute", "save_best"),
    *("save_checkpoints_steps", "schedule", "search", "stop_after_step", "tpu_name", "tpu_zone"),
    *("train_encoder", "trim_padding", "unicode_form", "use_tpu", "use_xla", "warmup_proportion"),
    *("weight_decay", "window_answers"),
}
"""Flags that `--help` leaves to `--helpfull` where all would be more than two screens."""

_OF_GOOGLE = {"master", "num_tpu_cores", "use_one_hot_embeddings", "verbose_logging"}
"""Flags of google-research/bert that mean nothing here: accepted, and not shown."""

_PARAMETER = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]*))?`")

_ABOUT_LISTS = (
    "Flags that hold a list: commas separate its items, and the flag given again adds to them. An "
    "item with a comma is put in double quotation marks, as in CSV: --flag='\"a,b\",c'. Flags for "
    "texts take one text each time. What the command line says of a list replaces what a flag file "
    "says of it."
)


@dataclass
class Flag:
    """A flag and its value.

    A list that is given again is added to. What a flag file says of it stands for itself: of
    several places that say something, the command line's words being one, the one that speaks last
    is believed.

    Attributes:
        kind: `str`, `int`, `float`, `bool` (`--name`, `--noname`), `Path` or `list`.
        element: the kind of a list's items.
        separated: whether commas separate them; otherwise each time gives one.
        given: whether it was typed, or stood in a flag file.
    """

    name: str
    kind: type
    default: Any
    sentence: str
    required: bool = False
    choices: Sequence[str] | None = None
    element: type = str
    separated: bool = True
    value: Any = None
    given: bool = False
    _said: dict[str, list[Any]] = field(default_factory=dict)

    def forget(self) -> None:
        """Goes back to the default."""
        self.value, self.given, self._said = self.default, False, {}

    @property
    def alone(self) -> str | None:
        """The value of the flag without one."""
        return "true" if self.kind is bool else None

    def read(self, text: str | None, source: str = "") -> None:
        """Takes the value that a place gives: the command line (""), or a flag file."""
        self.given = True
        if text is None:
            raise UserError(f"--{self.name} needs a value; --help lists the flags.")
        if self.kind is Path and not text:
            raise UserError(f"`{self.name}` is empty; give a path, or leave it out.")
        try:
            value = self._read(text)
        except UserError as error:
            raise UserError(f"--{self.name}: {error}") from error
        except (KeyError, ValueError) as error:
            several = f"{_WANTED[self.element]}s separated by commas".removeprefix("a ")
            wanted = several if self.kind is list else _WANTED.get(self.kind)
            wanted = f"one of {', '.join(self.choices)}" if self.choices else wanted
            given = cut(f"--{self.name}={text}")
            raise UserError(f"{given} must be {wanted}; --help lists the flags.") from error
        if self.kind is list:
            value = self._said[source] = [*self._said.get(source, ()), *value]
        self.value = value

    def _read(self, text: str) -> Any:
        if self.kind is list:
            return [self.element(one) for one in (items_of(text) if self.separated else [text])]
        if self.choices:
            return {one: one for one in self.choices}[text]
        return _TRUTH[text.lower()] if self.kind is bool else self.kind(text)

    def described(self) -> str:
        """Its choices and its default, as they follow its name in the help."""
        if self.kind is bool:
            return f" (on by default; --no{self.name} turns it off)" if self.default else ""
        default = as_list_text(map(str, self.default or ())) if self.kind is list else self.default
        choices = f"={'|'.join(self.choices)}" if self.choices else ""
        return choices + (f" (default {default})" if default not in (None, "") else "")

    def lines(self) -> list[str]:
        """Its lines of a flag file."""
        if self.value is None:
            return []
        if self.kind is bool:
            return [f"--{'' if self.value else 'no'}{self.name}\n"]
        if self.kind is list and self.separated:
            return [_line_of(self.name, as_list_text(map(str, self.value)))]
        return [
            line_of(self.name, one) for one in (self.value if self.kind is list else [self.value])
        ]


def line_of(name: str, value: Any) -> str:
    r"""A flag with a value, as a line of a flag file: `--count=5\n`."""
    text = str(value)
    keeps_blanks = text == text.strip() and not _is_marked(text)
    return _line_of(name, text if keeps_blanks else f'"{text}"')


class ConfigFlags(Generic[Config]):
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
        >>> flags.in_flags("`pace=5` needs `via`, and `steps` is no flag.")
        '--pace=5 needs --via, and `steps` is no flag.'
    """

    def __init__(self, usage: str | None, config_class: type[Config] | None = None) -> None:
        self._usage = inspect.cleandoc(usage or "")
        self._flags: dict[str, Flag] = {}
        self.means: dict[str, tuple[str, Any]] = {}  # what switches set other flags to
        self._parameters: dict[str, str] = {}
        self.extra_arguments: list[str] = []
        self._config_class = config_class
        # What must be given stands first in the help.
        found = options_of(config_class) if config_class else []
        self._options = sorted(found, key=lambda one: one.default is not REQUIRED)
        for one in self._options:
            self._parameters.setdefault(one.path[-1], one.name)
        for one in self._options:
            self._parameters[".".join(one.path)] = one.name
            self._add(one)

    def define(self, name: str, kind: type, default: Any, sentence: str, **more: Any) -> Flag:
        """Defines a flag; see `Flag`."""
        self._flags[name] = flag = Flag(name, kind, default, sentence, **more)
        flag.forget()
        return flag

    def parse(self, arguments: Sequence[str], *, keep_unknown: bool = False) -> None:
        """Reads the command line (without the program's name), `--flagfile=FILE` as well."""
        for flag in self._flags.values():
            flag.forget()  # a second call in one process starts from the defaults
        rest = self._read(arguments, keep_unknown)
        self._check_rest(rest, keep_unknown)
        for switch, (name, value) in self.means.items():
            if self._flags[switch].value:
                self._flags[name].read(value)
        for name in sorted(name for name, flag in self._flags.items() if flag.required):
            if self._flags[name].value is None:
                raise UserError(f"--{name} is missing; --help lists the flags.")
        self.extra_arguments = rest

    def _read(
        self,
        words: Sequence[str],
        keep_unknown: bool,
        source: str = "",
        within: tuple[str, ...] = (),
    ) -> list[str]:
        """Reads words, and those of flag files in their places; gives those that are no flags."""
        rest, left, aliases = list[str](), iter(words), self._aliases()
        switches = {f"no{one.name}": one for one in self._flags.values() if one.kind is bool}
        for word in left:
            name, joined, text = word.lstrip("-").partition("=")
            flag = self._flags.get(aliases.get(name, name))
            if word == "--":
                rest += left
            elif name in _FILES and word.startswith("-"):
                file = os.path.expanduser(text if joined else next(left, ""))  # noqa: PTH111
                if file in within:
                    raise UserError(f"{file}: is a flag file that names itself; remove that line.")
                more = without_defaults(self._words_of(file))
                rest += self._read(more, keep_unknown, file, (*within, file))
            elif flag and word.startswith("-"):
                flag.read(text if joined else flag.alone or next(left, None), source)
            elif word.removeprefix("-").removeprefix("-") in switches:
                switches[name].read("false", source)
            elif keep_unknown or not word.startswith("-"):
                rest.append(word)
            else:
                raise UserError(self._unknown(name))
        return rest

    def _check_rest(self, rest: Sequence[str], keep_unknown: bool) -> None:
        """Refuses words that are no flags, and what is passed on but meant for this tool."""
        if rest and not keep_unknown:
            raise UserError(
                f"'{rest[0]}' is not a flag; write values as --flag=value (--help lists the flags)."
            )
        for name in (word.lstrip("-").partition("=")[0] for word in rest if word[:1] == "-"):
            if near := difflib.get_close_matches(name, self._flags, 1, _NEARLY):
                raise UserError(f"'--{name}' is not a flag; --{near[0]} is (see --help).")

    def config(self) -> Config:
        """Reads the flags into the config dataclass."""
        given = (one for one in self._options if self._flags[one.name].given)
        values = {one.path: _of_option(one, self.value_of(one.name)) for one in given}
        made: Config = _made(self._config_class, values, {})
        return made

    def main_of(self, job: Callable[[Config], Any], **how: Any) -> Main:
        """The tool's `main`: `run` for a job, with more of its arguments.

        It prints what the job gives: nothing, a text, lines as they come, or named figures.
        """
        return functools.partial(run, self, lambda: _print(job(self.config())), **how)

    def lists(self) -> list[Flag]:
        """The flags that hold several items."""
        return [flag for flag in self._flags.values() if flag.kind is list]

    def value_of(self, name: str) -> Any:
        """The present value of a flag."""
        return self._flags[name].value

    def names(self) -> set[str]:
        """The names by which a flag is known, on the command line and in messages."""
        return {*self._flags, *self._aliases(), *self._parameters}

    def given(self) -> frozenset[str]:
        """The names of the flags that were typed, or stood in a flag file."""
        return frozenset(name for name, flag in self._flags.items() if flag.given)

    def as_flagfile(self, without: Sequence[str] = ()) -> str:
        """All flags that a repetition of the run has, in the form that `--flagfile` reads."""
        left_out = {*without, *(one.name for one in self._options if one.rules.resume == ONCE)}
        kept = (flag for name, flag in self._flags.items() if name not in left_out)
        return "".join(line for flag in kept for line in flag.lines())

    def help_text(self, full: bool = True) -> str:
        """The usage text, then every flag with its default and its sentence.

        Args:
            full: otherwise two screens at most hold all, or what most people need.
        """
        about = ["", *textwrap.wrap(_ABOUT_LISTS, 98)] if self.lists() else []
        last = ["  --flagfile=FILE", "Reads more flags from FILE, one a line."]
        text = self._help(_OF_GOOGLE, last, about)
        if full or text.count("\n") <= _TWO_SCREENS:
            return text
        return self._help({*_OF_GOOGLE, *_OF_FEW}, ["  --helpfull", "Lists the other flags, too."])

    def _help(self, without: set[str], last: Sequence[str], about: Sequence[str] = ()) -> str:
        lines = [self._usage, "", "Flags:"]
        for name in self._flags:
            lines += self._about(name) if name not in without else []
        return "\n".join([*lines, f"\n{_INDENT}".join(last), *about]) + "\n"

    def _about(self, name: str) -> list[str]:
        flag = self._flags[name]
        required = " (required)" if flag.required else ""
        others = [f"--{alias}" for alias, of in self._aliases().items() if of == name]
        also = f" (also {', '.join(others)})" if others else ""
        first = f"  --{name}{flag.described()}{required}{also}"
        indents = (_INDENT, _INDENT)
        return [first, *textwrap.TextWrapper(96, *indents).wrap(flag.sentence)]

    def in_flags(self, message: str) -> str:
        """Turns the parameters that a message of the library names into flags of this tool."""
        return _PARAMETER.sub(self._in_flags, message)

    def _in_flags(self, parameter: re.Match[str]) -> str:
        name, value = parameter.groups()
        name = self._parameters.get(name, name)
        name = self._aliases().get(name, name)
        if name not in self._flags:
            return parameter.group()
        if self._flags[name].kind is bool and value in ("True", "False"):
            return f"--{'no' * (value == 'False')}{name}"
        return f"--{name}" if value is None else f"--{name}={value}"

    def _unknown(self, flag: str) -> str:
        if (instead := GONE_FLAGS.get(flag.removeprefix("no"))) is not None:
            return f"--{flag} is gone; {instead}."
        name = nearest(flag, [*self._flags, *self._aliases()])
        mean = f" did you mean --{name}?" if name else " --help lists them."
        return f"--{flag} is not a flag;{mean}"

    def _words_of(self, file: str) -> list[str]:
        """The flags of a flag file."""
        try:
            needs = "no flag file needs; name a flag file"
            text = read_small(file, 1, needs, stream_or_empty=True).decode("utf-8-sig")
        except UserError as error:
            raise UserError(f"--flagfile={error}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"--flagfile={file}: is not UTF-8 ({error.reason}).") from error
        lines = (line.strip() for line in text.split("\n"))
        words = [line for line in lines if line and not line.startswith(("#", "//"))]
        lists = {f"--{flag.name}" for flag in self.lists() if flag.separated}
        for at, word in enumerate(words):
            name, _, value = word.partition("=")
            if _is_marked(value) and name not in lists:
                words[at] = f"{name}={value[1:-1]}"
        return words

    def _add(self, one: Option) -> None:
        kind: type = one.type if one.type in (int, float, bool, Path) else str
        default, rules = None if one.default is REQUIRED else one.default, one.rules
        is_list = rules.repeated or one.element is not None
        if is_list and default is not None:
            default = items_of(default) if rules.listed else list(default)
        self.define(
            one.name,
            list if is_list else kind,
            default,
            rules.sentence,
            required=one.default is REQUIRED,
            choices=None if is_list else rules.choices,
            element=one.element if one.element in (int, float) else str,
            separated=not rules.repeated,
        )

    def _aliases(self) -> dict[str, str]:
        """The other names of flags, with the flags that they mean."""
        ours = [(group, [name for name in group if name in self._flags]) for group in _SAME_FLAGS]
        return {
            alias: names[0]
            for group, names in ours
            for alias in (group if len(names) == 1 else ())
            if alias not in names
        }


def add_tpu_flags(tool: ConfigFlags[Any]) -> None:
    """Adds the flags for TPUs of google-research/bert, so that its commands run as they are."""
    sentence = "The original's way to say --distribution_strategy=tpu."
    tool.define("use_tpu", bool, False, sentence)
    tool.means["use_tpu"] = ("distribution_strategy", "tpu")
    tool.define("master", str, None, "TF_CONFIG says it now.")
    tool.define("num_tpu_cores", int, 8, "The TPU says it itself.")


def add_ignored_flags(tool: ConfigFlags[Any]) -> None:
    """Adds the flags of google-research/bert that mean nothing where nothing is trained."""
    sentence = "Accepted for the original's sake; it changes nothing here."
    tool.define("use_tpu", bool, False, sentence)
    tool.define("use_one_hot_embeddings", bool, False, sentence)
    tool.define("master", str, None, sentence)
    tool.define("num_tpu_cores", int, 8, sentence)


def _print(given: Any) -> None:
    if isinstance(given, Mapping):
        given = [f"{name} = {value}" for name, value in given.items()]
    for line in [given] if isinstance(given, str) else given or ():
        print(line)


def _line_of(name: str, text: str) -> str:
    if "\n" in text:
        raise UserError(
            f"`{name}` holds a line end, which no flag file can repeat; remove it from {text!r}."
        )
    return f"--{name}={text}\n"


def _is_marked(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _made(config_class: Any, values: Mapping[tuple[str, ...], Any], more: Mapping[str, Any]) -> Any:
    """A config, and those within it, of values by the paths of their options."""
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    for name, nested in nested_configs(config_class).items():
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        paths = map(".".join, (one.path for one in options_of(nested.config_class)))
        with options_named({path: f"{name}.{path}" for path in paths}):
            own[name] = _made(nested.config_class, inner, nested.defaults)
    return config_class(**{**more, **own})


def _of_option(one: Option, value: Any) -> Any:
    """An option's value, of that of its flag."""
    if one.rules.listed:
        return as_list_text(value)
    if not isinstance(value, list):
        return value
    return tuple(value) or one.default or ()
