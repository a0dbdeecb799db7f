"""What every tool shares: its own flags, its help, and one sentence for a user's mistake."""

import difflib
import functools
import inspect
import itertools
import logging
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from keras_bert_impl.errors import UserError
from keras_bert_impl.quiet_tensorflow import import_tensorflow_quietly

_INDENT = " " * 6
_NEARLY = 0.86  # likeness from which a flag is another one mistyped; Beam's own are less alike

_SAME_FLAGS = (("init_checkpoint", "model", "model_dir"), ("seed", "random_seed"))
"""Names of one thing: a tool that has one of them understands the others in its place."""

_PARAMETER = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]*))?`")

EXIT_DONE, EXIT_USER_ERROR, EXIT_INTERRUPTED = 0, 1, 130


class FlagSet:
    """The absl flags of one tool, kept apart from those of every other tool.

    Args:
        usage: the tool's module docstring; `--help` shows it above the flags.

    Example:
        >>> flag_set = FlagSet("Counts things.")
        >>> count = flag_set.integer("count", 3, "How many things to count.", lower_bound=1)
        >>> flag_set.parse(["--count=5"])
        >>> count.value
        5
    """

    def __init__(self, usage: str | None) -> None:
        self._usage = inspect.cleandoc(usage or "")
        self._values = flags.FlagValues()
        self._sentences: dict[str, str] = {}
        self._required: set[str] = set()
        self._aliases: dict[str, str] = {}
        self._shorthands: dict[str, Mapping[str, Any]] = {}
        self._parameters: dict[str, str] = {}
        self.extra_arguments: list[str] = []

    def string(
        self,
        name: str,
        default: str | None,
        sentence: str,
        *,
        required: bool = False,
    ) -> flags.FlagHolder:
        """A flag that holds text."""
        return self._define(flags.DEFINE_string, name, sentence, default=default, required=required)

    def integer(
        self,
        name: str,
        default: int | None,
        sentence: str,
        *,
        lower_bound: int | None = None,
        required: bool = False,
    ) -> flags.FlagHolder:
        """A flag that holds a whole number."""
        return self._define(
            flags.DEFINE_integer,
            name,
            sentence,
            default=default,
            lower_bound=lower_bound,
            required=required,
        )

    def number(
        self,
        name: str,
        default: float | None,
        sentence: str,
        *,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
    ) -> flags.FlagHolder:
        """A flag that holds a real number."""
        return self._define(
            flags.DEFINE_float,
            name,
            sentence,
            default=default,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
        )

    def switch(self, name: str, default: bool | None, sentence: str) -> flags.FlagHolder:
        """A flag that is on or off: `--name`, `--noname`, `--name=true`."""
        return self._define(flags.DEFINE_bool, name, sentence, default=default)

    def choice(
        self,
        name: str,
        default: str | None,
        choices: Sequence[str],
        sentence: str,
    ) -> flags.FlagHolder:
        """A flag that holds one of a few words."""
        return self._define(
            flags.DEFINE_enum, name, sentence, default=default, enum_values=list(choices)
        )

    def words(self, name: str, default: Sequence[str], sentence: str) -> flags.FlagHolder:
        """A flag that holds a comma-separated list."""
        return self._define(flags.DEFINE_list, name, sentence, default=list(default))

    def texts(self, name: str, sentence: str) -> flags.FlagHolder:
        """A flag that may be given several times: None, or the list of its values."""
        return self._define(flags.DEFINE_multi_string, name, sentence, default=None)

    def shorthand(self, name: str, sentence: str, means: Mapping[str, Any]) -> flags.FlagHolder:
        """A switch that, turned on, sets other flags: `means` gives their values by name."""
        self._shorthands[name] = means
        return self.switch(name, False, sentence)

    def parse(self, arguments: Sequence[str], *, keep_unknown: bool = False) -> None:
        """Reads the command line (without the program's name).

        Args:
            arguments: the words of the command line; `--flagfile=FILE` is read as well.
            keep_unknown: leave flags that this tool does not know in `extra_arguments` (Beam's
                own options) instead of refusing them.

        Raises:
            UserError: an unknown flag, a bad value, a missing required flag or a stray word.
        """
        self._add_aliases()
        try:
            self._values.unparse_flags()  # a second call in one process starts from the defaults
            rest = self._values(["tool", *arguments], known_only=keep_unknown)[1:]
        except (flags.Error, OSError, ValueError) as error:  # the last: --noswitch=true
            message = str(error).strip().splitlines()[0].removeprefix("FATAL Flags ")
            raise UserError(f"{message.rstrip('.')}; --help lists the flags.") from error
        if rest and not keep_unknown:
            raise UserError(
                f"'{rest[0]}' is not a flag; write values as --flag=value (--help lists the flags)."
            )
        self._read_aliases()
        for shorthand, means in self._shorthands.items():
            for name, value in means.items() if self._values[shorthand].value else ():
                self._values[name].value = value
        for name in sorted(self._required):
            if self._values[name].value is None:
                raise UserError(f"--{name} is missing; --help lists the flags.")
        self.extra_arguments = rest

    def value_of(self, name: str) -> Any:
        """The present value of a flag."""
        return self._values[name].value

    def refuse_mistyped(self, arguments: Sequence[str]) -> None:
        """Refuses what `keep_unknown` would pass on though it is meant for this tool.

        Args:
            arguments: the words of the command line.

        Raises:
            UserError: a word after a switch, or an unknown flag that is nearly one of this tool's.

        Example:
            >>> flag_set = FlagSet("Counts things.")
            >>> count = flag_set.integer("count", 3, "How many things to count.")
            >>> flag_set.refuse_mistyped(["--temp_location=gs://bucket/temp"])
            >>> flag_set.refuse_mistyped(["--counts=5"])
            Traceback (most recent call last):
            ...
            keras_bert_impl.errors.UserError: '--counts' is not a flag; --count is (see --help).
        """
        switches = {name for name in self._sentences if self._values[name].boolean}
        names = {*self._sentences, *self._aliases, *(f"no{n}" for n in switches), "flagfile"}
        for word, following in itertools.pairwise([*arguments, "--"]):
            name = word.lstrip("-").partition("=")[0]
            if not word.startswith("-") or not name:
                continue
            if word.lstrip("-").removeprefix("no") in switches and not following.startswith("-"):
                raise UserError(
                    f"'{following}' is not a flag; write values as --flag=value (--help lists the "
                    "flags)."
                )
            near = difflib.get_close_matches(name, names, n=1, cutoff=_NEARLY)
            if near and name not in names:
                raise UserError(f"'--{name}' is not a flag; --{near[0]} is (see --help).")

    def changed(self) -> list[str]:
        """The names of the flags whose value is not their default.

        Example:
            >>> flag_set = FlagSet("Counts things.")
            >>> _ = flag_set.integer("first", 3, "Where to begin.")
            >>> _ = flag_set.integer("last", 9, "Where to end.")
            >>> flag_set.parse(["--first=3", "--last=5"])
            >>> flag_set.changed()
            ['last']
        """
        return [n for n in self._sentences if self._values[n].value != self._values[n].default]

    def given(self) -> frozenset[str]:
        """The names of the flags that were typed, or stood in a flag file, whatever their values.

        Example:
            >>> flag_set = FlagSet("Counts things.")
            >>> _ = flag_set.integer("first", 3, "Where to begin.")
            >>> _ = flag_set.integer("last", 9, "Where to end.")
            >>> flag_set.parse(["--first=3"])
            >>> sorted(flag_set.given())
            ['first']
        """
        return frozenset(name for name in self._sentences if self._values[name].present)

    def as_flagfile(self, without: Sequence[str] = ()) -> str:
        """All flags with their present values, in the form that `--flagfile` reads.

        Args:
            without: flags of this one call, which a repetition must not have.
        """
        names = [name for name in self._sentences if name not in without]
        lines = [self._values[name].serialize() for name in names]
        return "".join(f"{line}\n" for line in lines if line)

    def help_text(self) -> str:
        """The usage text, then every flag with its default and its sentence."""
        self._add_aliases()
        parts = [self._usage, "", "Flags:"]
        for name, sentence in self._sentences.items():
            required = " (required)" if name in self._required else ""
            others = [f"--{alias}" for alias, of in self._aliases.items() if of == name]
            also = f" (also {', '.join(others)})" if others else ""
            parts.append(f"  --{name}{_describe_value(self._values[name])}{required}{also}")
            parts += textwrap.wrap(sentence, 96, initial_indent=_INDENT, subsequent_indent=_INDENT)
        parts += ["  --flagfile=FILE", f"{_INDENT}Reads more flags from FILE, one a line."]
        return "\n".join(parts) + "\n"

    def in_flags(self, message: str) -> str:
        """Turns the parameters that a message of the library names into flags of this tool.

        Example:
            >>> flag_set = FlagSet("Counts things.")
            >>> _ = flag_set.integer("count", 3, "How many things to count.")
            >>> _ = flag_set.switch("fast", False, "Hurry.")
            >>> flag_set.in_flags("`count=5` needs `fast=True`, and `steps` is no flag.")
            '--count=5 needs --fast, and `steps` is no flag.'
        """
        self._add_aliases()
        return _PARAMETER.sub(self._in_flags, message)

    def _in_flags(self, parameter: re.Match[str]) -> str:
        name, value = parameter.groups()
        name = self._parameters.get(name, name)
        name = self._aliases.get(name, name)
        if name not in self._sentences:
            return parameter.group()
        if self._values[name].boolean and value in ("True", "False"):
            return f"--{'no' * (value == 'False')}{name}"
        return f"--{name}" if value is None else f"--{name}={value}"

    def _define(
        self,
        define: Callable[..., Any],
        name: str,
        sentence: str,
        *,
        required: bool = False,
        **kwargs: Any,
    ) -> Any:
        self._sentences[name] = sentence
        if required:
            self._required.add(name)
        return define(name, help=sentence, flag_values=self._values, **kwargs)

    def _add_aliases(self) -> None:
        """Lets the tool understand the other names of its flags."""
        for group in _SAME_FLAGS:
            ours = [name for name in group if name in self._sentences]
            for alias in group if len(ours) == 1 else ():
                if alias not in self._values:
                    self._aliases[alias] = ours[0]
                    flag = self._values[ours[0]]
                    twin = flags.Flag(flag.parser, flag.serializer, alias, None, flag.help)
                    flags.DEFINE_flag(twin, self._values)

    def _read_aliases(self) -> None:
        for alias, name in self._aliases.items():
            given, flag = self._values[alias], self._values[name]
            if not given.present:
                continue
            if flag.present and flag.value != given.value:
                raise UserError(
                    f"--{alias}={given.value} and --{name}={flag.value} differ, but they are two "
                    "names of one flag; give one of them."
                )
            flag.value, flag.present = given.value, given.present


def _describe_value(flag: flags.Flag) -> str:
    """What stands after a flag's name in the help: its choices, its default."""
    if isinstance(flag, flags.EnumFlag):
        default = f" (default {flag.default})" if flag.default is not None else ""
        return f"={'|'.join(flag.parser.enum_values)}{default}"
    if flag.boolean:
        return f" (on by default; --no{flag.name} turns it off)" if flag.default else ""
    if flag.default in (None, "", []):
        return ""
    return f" (default {str(flag.default_as_str).strip(chr(39))})"


def _show_warning(
    flag_set: FlagSet, message: Warning | str, category: type[Warning], *_: Any
) -> None:
    """Shows a warning for the user in one line; warnings for programmers have no place here."""
    if issubclass(category, UserWarning):
        sys.stderr.write(f"Warning: {flag_set.in_flags(str(message))}\n")


class _InFlags(logging.Formatter):
    """Shows a log record as its message alone, with this tool's flags for parameters."""

    def __init__(self, flag_set: FlagSet) -> None:
        super().__init__("%(message)s")
        self._flag_set = flag_set

    def format(self, record: logging.LogRecord) -> str:
        return self._flag_set.in_flags(super().format(record))


def show_lines(flag_set: FlagSet) -> None:
    """Sends to stderr what the library and the jobs log (what was loaded, what was repaired).

    TensorFlow's own lines about its start are not shown. `run` does this; a process that a tool
    starts does it for itself.
    """
    import_tensorflow_quietly()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_InFlags(flag_set))
    logging.basicConfig(handlers=[handler], force=True)
    warnings.showwarning = functools.partial(_show_warning, flag_set)
    for room in ("keras_bert_impl", "pipelines"):
        logging.getLogger(room).setLevel(logging.INFO)
    # Batches of a few lengths are compiled one length at a time; that is meant.
    logging.getLogger("tensorflow").addFilter(_is_no_retracing)


def _is_no_retracing(record: logging.LogRecord) -> bool:
    return "triggered tf.function retracing" not in record.getMessage()


def run(
    flag_set: FlagSet,
    main: Callable[[], None],
    arguments: Sequence[str] | None = None,
    *,
    keep_unknown: bool = False,
    continues: bool = False,
) -> int:
    """Parses the flags, runs `main` and gives the exit code.

    A `UserError` is printed as one line on standard error (exit code 1). Any other exception is a
    bug and keeps its traceback.

    Args:
        flag_set: the tool's flags.
        main: does the work; reads the flags' values.
        arguments: the command line without the program's name; `sys.argv[1:]` by default.
        keep_unknown: see `FlagSet.parse`.
        continues: whether the same command continues where it was interrupted; the user is told.

    Example:
        >>> run(FlagSet("Says hello."), lambda: print("hello"), [])
        hello
        0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if any(word in ("--help", "-h", "-help", "--helpfull", "--helpshort") for word in words):
            sys.stdout.write(flag_set.help_text())
            return EXIT_DONE
        flag_set.parse(words, keep_unknown=keep_unknown)
        if keep_unknown:
            flag_set.refuse_mistyped(words)
        show_lines(flag_set)
        main()
    except UserError as error:
        sys.stderr.write(f"Error: {' '.join(flag_set.in_flags(str(error)).split())}\n")
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        sys.stderr.write(f"\nInterrupted{'; the same command continues' * continues}.\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): that is no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    return EXIT_DONE
