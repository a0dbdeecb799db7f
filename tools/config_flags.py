"""A tool's absl flags, made of the options of its config dataclass."""

import functools
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from keras_bert_impl import options
from keras_bert_impl.errors import UserError, cut, nearest, shown
from keras_bert_impl.files import own_descriptor, read_small
from tools.command_line import run

_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # bytes of the command line that are not UTF-8
Main = Callable[..., int]

_INDENT = " " * 6
_DEFINERS: Mapping[type, Callable[..., flags.FlagHolder]] = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
}
_NUMBERS = {int: "whole numbers", float: "numbers"}
_TWO_SCREENS = 100  # lines of help

_SAME_FLAGS = (
    *(("init_checkpoint", "model", "model_dir"), ("seed", "random_seed")),
    ("precision", "engine_precision"),
)
"""Names of one thing: a tool that has one of them understands the others in its place."""

_OF_FEW = {
    *("allow_changed_flags", "allow_unknown_words", "batch_ramp", "bias_correction", "clip_norm"),
    *("compile_cache", "decay_share", "dev_seed", "lora_alpha", "lora_targets", "use_rslora"),
    *("distribution_strategy", "early_stopping_evals", "ema_decay", "encoder_bilstm", "encoding"),
    *("eval_steps", "evidence_words", "gcp_project", "header", "iterations_per_loop"),
    *("keep_checkpoint_max", "kernels", "layer_decay", "log_steps", "loss_margin", "mine_from"),
    *("mine_margin", "mine_relative_margin", "mine_to", "num_logical_devices"),
    *("optimizer", "pooling", "predict_batch_size", "profile_steps", "recompute", "save_best"),
    *("save_checkpoints_steps", "schedule", "score_range", "search", "similarity_scale"),
    *("stop_after_step", "texts_at_once"),
    *("tpu_name", "tpu_zone", "train_encoder", "trim_padding", "unicode_form", "use_tpu"),
    *("use_xla", "warmup_proportion", "weight_decay", "window_answers"),
}
"""Flags that `--help` leaves to `--helpfull` where all would be more than two screens."""

_OF_GOOGLE = {"master", "num_tpu_cores", "use_one_hot_embeddings", "verbose_logging"}
"""Flags of google-research/bert that mean nothing here: accepted, and not shown."""

_PARAMETER = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]*))?`")

_ABOUT_LISTS = (
    "Flags that hold a list: commas separate its items, and the flag given again adds to them. An "
    "item with a comma is put in double quotation marks, as in CSV: --flag='\"a,b\",c'. Flags for "
    "texts take one text each time. What stands later, in a flag file or on the command line, "
    "replaces what was said of a list before; of --recipe the command line always does."
)


class SeveralFlag(flags.Flag):
    """A flag that holds several items, which commas separate; given again it adds to them.

    What a flag file says of it stands for itself: of several places that say something, the
    command line's words being one, the one that speaks last is believed.
    """

    def __init__(self, name: str, default: Any, sentence: str, separated: bool) -> None:
        self.separated = separated  # otherwise each time gives one item
        self.source = ""  # the place whose words are read now
        self._given: dict[str, list[str]] = {}
        parser, serializer = flags.ArgumentParser[str](), flags.ArgumentSerializer[str]()
        super().__init__(parser, serializer, name, None, sentence)
        self.default = self.value = default
        self.default_as_str = options.as_list_text(default or ())

    def parse(self, argument: Any) -> None:
        """Adds the items to those that the same place gave before."""
        try:
            more = options.items_of(argument) if self.separated else [argument]
        except UserError as error:
            raise UserError(f"--{self.name}: {error}") from error
        self.value = self._given[self.source] = [*self._given.get(self.source, ()), *more]
        self.present += 1

    def unparse(self) -> None:
        self.value, self.present = self.default, 0
        self._given.clear()


class ConfigFlags:
    """The flags of one tool, one for each option of a config dataclass, and its `main`.

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

    def __init__(self, usage: str | None, config_class: type | None = None) -> None:
        self._usage = inspect.cleandoc(usage or "")
        self._values = flags.FlagValues()
        # A value that follows its flag, as Beam takes it, hides nothing that comes after it.
        self._values.set_gnu_getopt(True)
        self._sentences: dict[str, str] = {}
        self._required: set[str] = set()
        self.means: dict[str, tuple[str, Any]] = {}  # what switches set other flags to
        self._parameters: dict[str, str] = {}
        self.extra_arguments: list[str] = []
        self._config_class = config_class
        # What must be given stands first in the help.
        found = options.options_of(config_class) if config_class else []
        self._options = sorted(found, key=lambda one: one.default is not options.REQUIRED)
        for one in self._options:
            self._parameters.setdefault(one.path[-1], one.name)
        for one in self._options:
            self._parameters[".".join(one.path)] = one.name
            self._add(one)

    def define(
        self,
        name: str,
        kind: type,
        default: Any,
        sentence: str,
        *,
        required: bool = False,
        choices: Sequence[str] | None = None,
        separated: bool = True,
    ) -> flags.FlagHolder:
        """Defines a flag of a kind of `_DEFINERS`, or of `list`: a `SeveralFlag`."""
        self._sentences[name] = sentence
        self._required |= {name} if required else set()
        if kind is list:
            return flags.DEFINE_flag(SeveralFlag(name, default, sentence, separated), self._values)
        if choices is not None:
            words = list(choices)
            return flags.DEFINE_enum(name, default, words, sentence, flag_values=self._values)
        return _DEFINERS[kind](name, default, sentence, flag_values=self._values)

    def parse(self, arguments: Sequence[str], *, keep_unknown: bool = False) -> None:
        """Reads the command line (without the program's name), `--flagfile=FILE` as well."""
        rest = list[str]()
        _check_utf_8(arguments)
        try:
            self._values.unparse_flags()  # a second call in one process starts from the defaults
            parts = self._parts(arguments)
            # A recipe is read first: the command line's words override it.
            for files, words in sorted(
                parts, key=lambda one: not "".join(one[0]).startswith("--recipe=")
            ):
                for several in self.lists():
                    several.source = files[-1] if files else ""
                rest += self._values(["tool", *words], known_only=keep_unknown)[1:]
        except flags.UnrecognizedFlagError as error:
            raise UserError(self.unknown(error.flagname)) from error
        except (flags.Error, OSError, ValueError) as error:  # the last: --noswitch=true
            raise UserError(f"{self._illegal(error)}; --help lists the flags.") from error
        if rest and not keep_unknown:
            raise UserError(
                f"'{rest[0]}' is not a flag; write values as --flag=value (--help lists the flags)."
            )
        for switch in filter(self.value_of, self.means):
            name, value = self.means[switch]
            flag = self._values[name]
            if flag.present and flag.value != value:
                both = f"--{switch} and --{name}={flag.value}"
                raise UserError(f"{both} exclude each other; give one of them.")
            flag.value = value
        for name in sorted(self._required):
            if self._values[name].value is None:
                raise UserError(f"--{name} is missing; --help lists the flags.")
        self.extra_arguments = rest

    def config(self) -> Any:
        values = {one.path: _from_flag(one, self._values[one.name].value) for one in self._options}
        return _made(self._config_class, values, {})

    def main_of(self, job: Callable[[Any], Any], **how: Any) -> Main:
        """The tool's `main`: `run` for a job, with more of its arguments.

        It prints what the job gives: nothing, a text, lines as they come, or named figures.
        """
        return functools.partial(run, self, lambda: self._print(job(self.config())), **how)

    @property
    def keeps_programs(self) -> bool | None:
        """Whether what is compiled is kept for the next run; None without `add_compile_cache`."""
        return self.value_of("compile_cache") if "compile_cache" in self._sentences else None

    def lists(self) -> list[SeveralFlag]:
        own = (self._values[name] for name in self._sentences)
        return [flag for flag in own if isinstance(flag, SeveralFlag)]

    def value_of(self, name: str) -> Any:
        return self._values[name].value

    def names(self) -> set[str]:
        """The names by which a flag is known, on the command line and in messages."""
        return {*self._sentences, *self._aliases(), *self._parameters}

    def given(self) -> frozenset[str]:
        """The names of the flags that were typed, or stood in a flag file."""
        return frozenset(name for name in self._sentences if self._values[name].present)

    def as_flagfile(self, without: Sequence[str] = ()) -> str:
        """All flags that a repetition of the run has, in the form that `--flagfile` reads."""
        once = {one.name for one in self._options if one.rules.resume == options.ONCE}
        left_out = once.union(without)
        names = (name for name in self._sentences if name not in left_out)
        return "".join(line for name in names for line in self._lines_of(name))

    def line(self, name: str, value: Any) -> str:
        r"""A flag with a value, as a line of a flag file: `--count=5\n`."""
        text = str(value)
        keeps_blanks = text == text.strip() and not _is_marked(text)
        return _line_of(name, text if keeps_blanks else f'"{text}"')

    def _lines_of(self, name: str) -> list[str]:
        flag = self._values[name]
        if flag.value is None:
            return []
        if flag.boolean:
            return [f"{flag.serialize()}\n"]
        if not isinstance(flag, SeveralFlag):
            return [self.line(name, flag.value)]
        if flag.separated:
            return [_line_of(name, options.as_list_text(flag.value))]
        return [self.line(name, text) for text in flag.value]

    def help_text(self, full: bool = True) -> str:
        """The usage text, then every flag; unless `full`, two screens of what most people need."""
        about = ["", *textwrap.wrap(_ABOUT_LISTS, 98)] if self.lists() else []
        last = [
            "  --flagfile=FILE",
            "Reads more flags from FILE, one a line; flags that follow override them.",
        ]
        text = self._help(_OF_GOOGLE, last, about)
        if full or text.count("\n") <= _TWO_SCREENS:
            return text
        return self._help({*_OF_GOOGLE, *_OF_FEW}, ["  --helpfull", "Lists the other flags, too."])

    def _help(self, without: set[str], last: Sequence[str], about: Sequence[str] = ()) -> str:
        lines = [self._usage, "", "Flags:"]
        for name, sentence in self._sentences.items():
            lines += self._about(name) if sentence and name not in without else []
        return "\n".join([*lines, f"\n{_INDENT}".join(last), *about]) + "\n"

    def _about(self, name: str) -> list[str]:
        required = " (required)" if name in self._required else ""
        others = [f"--{alias}" for alias, of in self._aliases().items() if of == name]
        also = f" (also {', '.join(others)})" if others else ""
        first = f"  --{name}{_describe_value(self._values[name])}{required}{also}"
        sentence = self._sentences[name]
        lines = textwrap.wrap(sentence, 96, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return [first, *lines]

    def in_flags(self, message: str) -> str:
        """Turns the parameters that a message of the library names into flags of this tool."""
        return _PARAMETER.sub(self._in_flags, message)

    def _in_flags(self, parameter: re.Match[str]) -> str:
        name, value = parameter.groups()
        name = self._parameters.get(name, name)
        name = self._aliases().get(name, name)
        if name not in self._sentences:
            return parameter.group()
        if self._values[name].boolean and value in ("True", "False"):
            return f"--{'no' * (value == 'False')}{name}"
        return f"--{name}" if value is None else f"--{name}={value}"

    def _print(self, given: Any) -> None:
        if isinstance(given, Mapping):
            given = [f"{name} = {value}" for name, value in given.items()]
        values = (self._values[name].value for name in self._sentences)
        is_output = 1 in [own_descriptor(Path(one)) for one in values if isinstance(one, str)]
        for line in [given] if isinstance(given, str) else given or ():
            print(line, file=sys.stderr if is_output else sys.stdout)  # not into the data

    def unknown(self, flag: str) -> str:
        """What is said of a flag that there is not."""
        first, blank, value = flag.partition(" ")
        if blank and first in self.names():  # a line of a flag file
            return f"--{flag} is not a flag; write --{first}={value.strip()}."
        name = nearest(flag, [*self._sentences, *self._aliases()])
        mean = f" did you mean --{name}?" if name else " --help lists them."
        return f"--{flag} is not a flag;{mean}"

    def _illegal(self, error: Exception) -> str:
        """Says what value a flag takes, instead of how absl failed to read the given one."""
        message = str(error).strip().splitlines()[0]
        found = re.match(r"flag --(\w+)=", message)
        if found and isinstance(error.__context__, (TypeError, ValueError)):
            flag = self._values[found[1]]
            wanted = "true or false" if flag.boolean else flag.parser.syntactic_help
            if isinstance(flag, flags.EnumFlag):
                wanted = f"one of {', '.join(flag.parser.enum_values)}"
            given = message.removeprefix("flag ").removesuffix(f": {error.__context__}")
            return f"{cut(given)} must be {wanted}"
        return cut(message.removeprefix("FATAL Flags ").rstrip("."))

    def _parts(
        self, words: Sequence[str], within: tuple[str, ...] = ()
    ) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """The words of a command line, and those of flag files in their places."""
        part, rest, aliases = list[str](), iter(words), self._aliases()
        files = {"flagfile", "recipe" if "recipe" in self._sentences else "flagfile"}
        for word in rest:
            name, joined, file = word.partition("=")
            bare = name.lstrip("-") if word.startswith("-") else ""
            if bare not in files:
                meant = aliases.get(bare, bare)
                ours = meant in self._sentences
                takes_next = ours and not joined and not self._values[meant].boolean
                if takes_next and (value := next(rest, None)) is not None:
                    joined, file = "=", value  # whatever it looks like
                part.append(f"--{meant}{joined}{file}" if ours else word)
                if word == "--":
                    part += rest
                continue
            yield within, part
            part, file = [], os.path.expanduser(file if joined else next(rest, ""))  # noqa: PTH111
            flag = f"--{bare}"
            if not file:
                raise UserError(f"{flag} is empty; write {flag}=FILE.")
            if f"{flag}={file}" in within:
                raise UserError(f"{file}: is a flag file that names itself; remove its --flagfile.")
            words_of_file = self._words_of(flag, file)
            yield from self._parts(words_of_file, (*within, f"{flag}={file}"))
        yield within, part

    def _words_of(self, flag: str, file: str) -> list[str]:
        try:
            needs = "no flag file needs; name a flag file"
            text = read_small(file, 1, needs, stream_or_empty=True).decode("utf-8-sig")
        except UserError as error:
            raise UserError(f"{flag}={error}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{flag}={file}: is not UTF-8 ({error.reason}).") from error
        lists, words = {flag.name for flag in self.lists() if flag.separated}, list[str]()
        for word in map(str.strip, text.split("\n")):
            name, _, value = word.partition("=")
            if word and not word.startswith(("#", "//")):
                marked = _is_marked(value) and name.lstrip("-") not in lists
                words.append(f"{name}={value[1:-1]}" if marked else word)
        return words

    def _add(self, one: options.Option) -> None:
        several = one.rules.repeated or one.element is not None
        kind = list if several else one.type if one.type in _DEFINERS else str
        default = None if one.default is options.REQUIRED else one.default
        if one.rules.listed and one.default is not options.REQUIRED:
            default = options.items_of(default or "")
        elif several and not one.rules.repeated and one.default is not options.REQUIRED:
            default = [*map(str, default or ())]
        elif kind is str and default is not None:
            default = str(default)
        self.define(
            one.name,
            kind,
            default,
            one.rules.sentence,
            required=one.default is options.REQUIRED,
            choices=None if several else one.rules.choices,
            separated=not one.rules.repeated,
        )

    def _aliases(self) -> dict[str, str]:
        """The other names of flags, with the flags that they mean."""
        found = dict[str, str]()
        for group in _SAME_FLAGS:
            own = [name for name in group if name in self._sentences]
            if len(own) == 1:
                found |= {alias: own[0] for alias in group if alias not in own}
        return found


def _check_utf_8(words: Sequence[str]) -> None:
    """Refuses words that are not UTF-8, but for names of files, which may be any bytes."""
    for word in words:
        name, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if _NO_UTF_8.search(value) and not os.path.lexists(value):
            what = f"{name or 'an argument'}: {shown(value)}"
            raise UserError(f"{what} is not UTF-8; write it in UTF-8.")


def add_recipe(tool: ConfigFlags) -> None:
    """Adds a flag file that all other flags override, wherever they stand."""
    sentence = "A file of these flags, one a line; flags of the command line override it."
    tool.define("recipe", str, None, sentence)


def add_compile_cache(tool: ConfigFlags) -> None:
    """Adds the switch of `keep_programs`, for a tool that trains."""
    sentence = "Keep what is compiled for this processor in your cache; the next run takes it."
    tool.define("compile_cache", bool, True, sentence)


def add_tpu_flags(tool: ConfigFlags) -> None:
    """Adds the flags for TPUs of google-research/bert, so that its commands run as they are."""
    sentence = "The original's way to say --distribution_strategy=tpu."
    tool.define("use_tpu", bool, False, sentence)
    tool.means["use_tpu"] = ("distribution_strategy", "tpu")
    tool.define("master", str, None, "TF_CONFIG says it now.")
    tool.define("num_tpu_cores", int, 8, "The TPU says it itself.")


def add_ignored_flags(tool: ConfigFlags) -> None:
    """Adds the flags of google-research/bert that mean nothing where nothing is trained."""
    sentence = "Accepted for the original's sake; it changes nothing here."
    for name in ("use_tpu", "use_one_hot_embeddings"):
        tool.define(name, bool, False, sentence)
    tool.define("master", str, None, sentence)
    tool.define("num_tpu_cores", int, 8, sentence)


def _line_of(name: str, text: str) -> str:
    if "\n" in text:
        raise UserError(
            f"`{name}` holds a line end, which no flag file can repeat; remove it from {text!r}."
        )
    return f"--{name}={text}\n"


def _is_marked(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _describe_value(flag: flags.Flag) -> str:
    """Gives a flag's choices and default, as they follow its name in the help."""
    if isinstance(flag, flags.EnumFlag):
        default = f" (default {flag.default})" if flag.default is not None else ""
        return f"={'|'.join(flag.parser.enum_values)}{default}"
    if flag.boolean:
        return f" (on by default; --no{flag.name} turns it off)" if flag.default else ""
    if flag.default in (None, "", [], ()):
        return ""
    return f" (default {str(flag.default_as_str).strip(chr(39))})"


def _made(config_class: Any, values: Mapping[tuple[str, ...], Any], more: Mapping[str, Any]) -> Any:
    """A config, and those within it, of values by the paths of their options."""
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    for name, nested in options.nested_configs(config_class).items():
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        paths = (".".join(path) for path in inner)
        with options.options_named({path: f"{name}.{path}" for path in paths}):
            defaults = {one: value for one, value in nested.defaults.items() if (one,) not in inner}
            own[name] = _made(nested.config_class, inner, defaults)
    return config_class(**{**own, **more})


def _from_flag(one: options.Option, value: Any) -> Any:
    element = one.element
    if element is not None:
        if not value and not one.default:
            return one.default
        if one.rules.listed:
            return options.as_list_text(value)
        return _numbers(one, value, element) if element in _NUMBERS else tuple(value)
    if one.type is not Path or value is None:
        return value
    if not value:
        raise UserError(f"`{one.name}` is empty; give a path, or leave it out.")
    return Path(value)


def _numbers(one: options.Option, words: Sequence[str], kind: type) -> tuple:
    try:
        return tuple(kind(word) for word in words)
    except ValueError as error:
        example = f" such as {','.join(map(str, one.default))}" if one.default else ""
        raise UserError(
            f"`{one.name}={','.join(words)}`: give {_NUMBERS[kind]} separated by commas{example}."
        ) from error
