"""Parts that every tool shares: its own flags, its help, and one sentence for a user's mistake."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from keras_bert_impl.backend import choose_tensorflow
from keras_bert_impl.errors import UserError, cut, escaped, nearest, shown
from keras_bert_impl.files import appeared, read_small
from keras_bert_impl.interrupts import EXIT_SIGNAL, Stops, take_stop
from keras_bert_impl.options import as_list_text
from keras_bert_impl.quiet_tensorflow import import_tensorflow_quietly, is_no_retracing
from tools import gone
from tools.endings import EXIT_DONE, EXIT_USER_ERROR, end_of_stopped, run_to_an_end
from tools.list_flags import SeveralFlag, define_several

_INDENT = " " * 6
_NEARLY = 0.86  # likeness from which a flag is another one mistyped; Beam's own are less alike

_SAME_FLAGS = (("init_checkpoint", "model", "model_dir"), ("seed", "random_seed"))
"""Names of one thing: a tool that has one of them understands the others in its place."""

_WANTED: Sequence[tuple[type, Callable[[Any], str]]] = (
    (flags.BooleanParser, lambda _: "true or false"),
    (flags.IntegerParser, lambda flag: flag.parser.syntactic_help),
    (flags.FloatParser, lambda flag: flag.parser.syntactic_help),
    (flags.EnumParser, lambda flag: f"one of {', '.join(flag.parser.enum_values)}"),
)
"""What a flag takes, by how it is read."""

_PARAMETER = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]*))?`")
_NO_TEXT = re.compile("[\ud800-\udfff]")  # Python's way to keep bytes that are not of the encoding
_PATH = re.compile(
    r"--?(html|picture|input|output|recipe|(\w+_)?(model|file|dir|folder|checkpoint))\b"
)
_MOST_FILES = 100  # flag files of a command

_ABOUT_LISTS = (
    "Flags that hold a list: commas separate its items, and the flag given again adds to them. An "
    "item with a comma stands in double quotation marks, as in CSV: --flag='\"a,b\",c'. Flags for "
    "texts take one text each time. What the command line says of a list replaces what a flag file "
    "says of it."
)


class FlagSet:
    """The absl flags of one tool, kept apart from those of every other tool.

    Args:
        usage: the tool's module docstring; `--help` shows it above the flags.

    Example:
        >>> flag_set = FlagSet("Counts things.")
        >>> count = flag_set.integer("count", 3, "How many things to count.")
        >>> flag_set.parse(["--count=5"])
        >>> count.value
        5
    """

    def __init__(self, usage: str | None) -> None:
        self._usage = inspect.cleandoc(usage or "")
        self._values = flags.FlagValues()
        # A value that follows its flag, as Beam takes it, hides nothing that comes after it.
        self._values.set_gnu_getopt(True)
        self._sentences: dict[str, str] = {}
        self._required: set[str] = set()
        self._aliases: dict[str, str] = {}
        self._shorthands: dict[str, Mapping[str, Any]] = {}
        self._parameters: dict[str, str] = {}
        self.extra_arguments: list[str] = []
        self._files_left = 0

    def string(
        self, name: str, default: str | None, sentence: str, *, required: bool = False
    ) -> flags.FlagHolder:
        """A flag that holds text."""
        return self._define(flags.DEFINE_string, name, sentence, default=default, required=required)

    def integer(
        self,
        name: str,
        default: int | None,
        sentence: str,
        *,
        required: bool = False,
    ) -> flags.FlagHolder:
        """A flag that holds a whole number."""
        return self._define(
            flags.DEFINE_integer, name, sentence, default=default, required=required
        )

    def number(self, name: str, default: float | None, sentence: str) -> flags.FlagHolder:
        """A flag that holds a real number."""
        return self._define(flags.DEFINE_float, name, sentence, default=default)

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

    def words(
        self, name: str, default: Sequence[str], sentence: str, *, required: bool = False
    ) -> flags.FlagHolder:
        """A flag that holds a list: commas separate its items, and given again it adds to them.

        An item with a comma stands in quotation marks, as `items_of` reads it.
        """
        given = None if required else list(default)
        return self._define(
            define_several, name, sentence, default=given, separated=True, required=required
        )

    def texts(self, name: str, sentence: str) -> flags.FlagHolder:
        """A flag that may be given several times: None, or the list of its values as they are."""
        return self._define(define_several, name, sentence, default=None, separated=False)

    def shorthand(self, name: str, sentence: str, means: Mapping[str, Any]) -> flags.FlagHolder:
        """A switch that, turned on, sets other flags: `means` gives their values by name."""
        self._shorthands[name] = means
        return self.switch(name, False, sentence)

    def parse(self, arguments: Sequence[str], *, keep_unknown: bool = False) -> None:
        """Reads the command line (without the program's name).

        Args:
            arguments: the words of the command line; `--flagfile=FILE` is read as well.
        """
        self._add_aliases()
        try:
            self._files_left = _MOST_FILES
            self._values.unparse_flags()  # a second call in one process starts from the defaults
            rest = list[str]()
            for source, words in self._parts(arguments):
                _check_characters(source, words)
                for several in self.lists():
                    several.source = source
                rest += self._values(["tool", *words], known_only=keep_unknown)[1:]
        except flags.UnrecognizedFlagError as error:
            if error.flagname.removeprefix("no") in gone.FLAGS:
                instead = gone.FLAGS[error.flagname.removeprefix("no")]
                raise UserError(f"--{error.flagname} is gone; {instead}.") from error
            name = nearest(error.flagname, [*self._sentences, *self._aliases])
            mean = f" did you mean --{name}?" if name else ""
            raise UserError(
                f"--{error.flagname} is not a flag;{mean or ' --help lists them.'}"
            ) from error
        except (flags.Error, OSError, ValueError) as error:  # the last: --noswitch=true
            raise UserError(f"{self._illegal(error)}; --help lists the flags.") from error
        if rest and not keep_unknown:
            raise UserError(
                f"'{rest[0]}' is not a flag; write values as --flag=value (--help lists the flags)."
            )
        self._read_aliases()
        self._read_shorthands()
        for name in sorted(self._required):
            if self._values[name].value is None:
                raise UserError(f"--{name} is missing; --help lists the flags.")
        self.extra_arguments = rest

    def _illegal(self, error: Exception) -> str:
        """Says what value a flag takes, instead of how absl failed to read the given one."""
        message = str(error).strip()
        found = re.match(r"flag --(\w+)=", message)
        if found and isinstance(error.__context__, (TypeError, ValueError)):
            flag = self._values[found[1]]
            given = message.removeprefix("flag ").removesuffix(f": {error.__context__}")
            for kind, wanted in _WANTED:
                if isinstance(flag.parser, kind):
                    return f"{cut(given.splitlines()[0])} must be {wanted(flag)}"
        return cut(message.splitlines()[0].removeprefix("FATAL Flags ").rstrip("."))

    def _read_shorthands(self) -> None:
        """Sets what the shorthands that are turned on stand for."""
        for shorthand, means in self._shorthands.items():
            for name, value in means.items() if self._values[shorthand].value else ():
                flag = self._values[name]
                if flag.present and flag.value != value:
                    raise UserError(
                        f"--{shorthand} means --{name}={value}, but --{name}={flag.value} is given "
                        "too; leave one of them out."
                    )
                flag.value = value

    def _parts(
        self, words: Sequence[str], source: str = "", within: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, list[str]]]:
        """The words of a command line, and those of flag files in their places."""
        part, rest = list[str](), iter(words)
        for word in rest:
            name, joined, file = word.partition("=")
            if name not in ("--flagfile", "-flagfile"):
                part.append(word)
                if word == "--":
                    part += rest
                continue
            yield source, part
            part, file = [], os.path.expanduser(file if joined else next(rest, ""))  # noqa: PTH111
            self._files_left -= 1
            if self._files_left < 0:
                raise UserError(f"{file}: is one flag file too many; write the flags into one.")
            if file in within:
                raise UserError(f"{file}: is a flag file that names itself; remove its --flagfile.")
            words_of_file = gone.without_defaults(self._words_of(file))
            yield from self._parts(words_of_file, file, (*within, file))
        yield source, part

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
            if value == f'"{(inner := value[1:-1])}"' and name not in lists and _needs_marks(inner):
                words[at] = f"{name}={inner}"
        return words

    def lists(self) -> list[SeveralFlag]:
        """The flags that hold several items."""
        flags_here = (self._values[name] for name in self._sentences)
        return [flag for flag in flags_here if isinstance(flag, SeveralFlag)]

    def value_of(self, name: str) -> Any:
        """The present value of a flag."""
        return self._values[name].value

    def refuse_mistyped(self, arguments: Sequence[str]) -> None:
        """Refuses what `keep_unknown` would pass on though it is meant for this tool.

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
        """All flags with their present values, in the form that `--flagfile` reads."""
        names = [name for name in self._sentences if name not in without]
        return "".join(line for name in names for line in self._lines_of(name))

    def line(self, name: str, value: Any) -> str:
        r"""A flag with a value, as a line of a flag file.

        Example:
            >>> FlagSet("Counts things.").line("count", 5)
            '--count=5\n'
        """
        text = str(value)
        return _line_of(name, f'"{text}"' if _needs_marks(text) else text)

    def _lines_of(self, name: str) -> list[str]:
        flag = self._values[name]
        if flag.value is None:
            return []
        if flag.boolean:
            return [f"{flag.serialize()}\n"]
        if not isinstance(flag, SeveralFlag):
            return [self.line(name, flag.value)]
        if flag.separated:
            return [_line_of(name, as_list_text(flag.value))]
        return [self.line(name, text) for text in flag.value]

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
        parts += ["", *textwrap.wrap(_ABOUT_LISTS, 98)] if self.lists() else []
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


def _check_characters(source: str, words: Sequence[str]) -> None:
    """Refuses words that are no text; names of files may be any bytes, as for the system."""
    flag = ""
    for word in words:
        flag = word if word.startswith("-") else flag
        if "\0" in word:
            raise UserError(f"{source}: {shown(word)} holds a NUL character; remove it.")
        if _NO_TEXT.search(word) and not _PATH.match(flag):
            encoding = sys.getfilesystemencoding().upper()
            raise UserError(f"{shown(os.fsencode(word))[1:]} is not in {encoding}; type it anew.")


def _line_of(name: str, text: str) -> str:
    if "\n" in text:
        raise UserError(
            f"`{name}` holds a line end, which no flag file can repeat; remove it from {text!r}."
        )
    return f"--{name}={text}\n"


def _needs_marks(text: str) -> bool:
    """Whether a value stands in quotation marks in a flag file, so that its blanks are kept."""
    within = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else ""
    return text != text.strip() or (within != "" and _needs_marks(within))


def _describe_value(flag: flags.Flag) -> str:
    """Gives a flag's choices and default, as they follow its name in the help."""
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
        sys.stderr.write(f"Warning: {escaped(flag_set.in_flags(str(message)))}\n")


class _InFlags(logging.Formatter):
    """Shows a log record as its message alone, with this tool's flags for parameters."""

    def __init__(self, flag_set: FlagSet) -> None:
        super().__init__("%(message)s")
        self._flag_set = flag_set

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self._flag_set.in_flags(super().format(record)))


def _is_new(record: logging.LogRecord, told: set[str]) -> bool:
    if record.levelno != logging.WARNING:
        return True
    before = len(told)
    told.add(record.getMessage())
    return len(told) > before


def show_lines(flag_set: FlagSet) -> None:
    """Sends to stderr what the library and the jobs log (what was loaded, what was repaired).

    TensorFlow's own lines about its start are not shown. `run` does this; a process that a tool
    starts does it for itself.
    """
    import_tensorflow_quietly()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_InFlags(flag_set))
    told = set[str]()
    handler.addFilter(lambda record: _is_new(record, told))  # files are read more than once
    logging.basicConfig(handlers=[handler], force=True)
    warnings.showwarning = functools.partial(_show_warning, flag_set)
    for room in ("keras_bert_impl", "pipelines"):
        logging.getLogger(room).setLevel(logging.INFO)
    # Batches of a few lengths are compiled one length at a time; that is meant.
    logging.getLogger("tensorflow").addFilter(is_no_retracing)


def run(
    flag_set: FlagSet,
    main: Callable[[], None],
    arguments: Sequence[str] | None = None,
    *,
    keep_unknown: bool = False,
    continues: bool = False,
) -> int:
    """Parses the flags, runs `main` and gives the exit code.

    A `UserError` is printed on standard error, one line a sentence (exit code 1). A stop by Ctrl-C
    gives 130 and one by SIGTERM 143, whether or not the work could be saved first: `&&` goes on
    after what is finished only. Any other exception is a bug and keeps its traceback.

    Args:
        main: does the work; reads the flags' values.
        arguments: the command line without the program's name; `sys.argv[1:]` by default.
        continues: whether the same command continues where it was interrupted; the user is told.

    Example:
        >>> run(FlagSet("Says hello."), lambda: print("hello"), [])
        hello
        0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    appeared.clear()
    return run_to_an_end(lambda stops: _run(flag_set, main, words, keep_unknown, stops), continues)


def _run(
    flag_set: FlagSet, main: Callable[[], None], words: list[str], keep_unknown: bool, stops: Stops
) -> int:
    """What `run` does where nothing stops it."""
    try:
        if any(word in ("--help", "-h", "-help", "--helpfull", "--helpshort") for word in words):
            sys.stdout.write(flag_set.help_text())
            return EXIT_DONE
        flag_set.parse(words, keep_unknown=keep_unknown)
        if keep_unknown:
            flag_set.refuse_mistyped(words)
        show_lines(flag_set)
        take_stop()  # of an earlier call in this process
        choose_tensorflow()
        main()
    except UserError as error:
        if stops.number is not None:
            raise  # the stop reached a worker first, say
        number = take_stop()
        how = "Error" if number is None else "Stopped"
        for sentence in error.sentences:
            sys.stderr.write(f"{how}: {' '.join(flag_set.in_flags(sentence).split())}\n")
        return EXIT_USER_ERROR if number is None else EXIT_SIGNAL + number
    number = take_stop()
    return EXIT_DONE if number is None else end_of_stopped(number)
