"""Options: what a job can be told. Each is stated once, as a field of the job's config dataclass.

The field holds the option's name, type and default; `option` adds the sentence that explains it,
the values it may have, and what becomes of it when a run is resumed. Checks, settings to compare
and the flags of the command-line tools are all made of these fields.

Messages name an option in backquotes, as a caller in Python writes it: `max_seq_length=64`. An
option of a nested config may be named with its path: `phase2.max_seq_length=64`.
"""

import contextlib
import dataclasses
import math
import os
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, shown

SAME, FREE, ONCE = "same", "free", "once"
"""The ways of an option when a run is resumed: kept (a change would change the result); free to
change; or given anew each time, because it is about one call only."""

REQUIRED: Any = dataclasses.MISSING
"""The default of an option that must be given."""

MOST_COUNTED = 2**31 - 1
"""The most of anything that an option counts: TensorFlow's sizes have 32 bits."""

_LARGEST = 2**63 - 1  # NumPy and TensorFlow hold nothing beyond

# An option in backquotes, with its value or without.
_NAME = re.compile(r"(?<=`)[a-z][a-z0-9_.]*(?=[=`])")

_RULES, _NESTED = "option", "nested options"

# An item up to its comma: as it stands, or in quotation marks with those inside it doubled. The
# possessive \s*+ gives no blank back: it would begin an item whose quotation marks are wrong.
_ITEM = re.compile(r'\s*+(?:"((?:[^"]|"")*)"\s*|([^",][^,]*|))(,|\Z)')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """The explanation and the rules of an option, as `option` takes them.

    Where no `at_most` is said, a count (a whole number with `at_least`) is at most `MOST_COUNTED`,
    other whole numbers have 64 bits, and other numbers are finite. What a job `makes` of a `FREE`
    option is a setting that a resumed run must have the same; a message names the option.
    """

    sentence: str  # explains the option to a user
    at_least: float | None = None
    more_than: float | None = None
    at_most: float | None = None
    choices: Sequence[str] | None = None
    resume: str = SAME  # or `FREE`, or `ONCE`
    makes: str | None = None
    repeated: bool = False  # several values are given one by one, not separated by commas
    listed: bool = False  # the text holds several items, as `items_of` reads them

    def broken_by(self, value: Any) -> str | None:
        """Says what `value` must be; None where it is allowed. NaN is never within bounds."""
        if self.choices is not None:
            *most, last = self.choices
            words = f"{', '.join(most)} or {last}" if most else last
            return None if value in self.choices else f"is unknown; choose {words}"
        # Every comparison with NaN is false: it falls out of any bounds.
        holds = (
            (self.at_least is None or value >= self.at_least)
            and (self.more_than is None or value > self.more_than)
            and (self.at_most is None or value <= self.at_most)
        )
        if not holds:
            return f"must be {self._range()}"
        counts = self.at_least is not None and self.at_most is None
        return _beyond(value, MOST_COUNTED if counts else _LARGEST)

    def _range(self) -> str:
        """The allowed values in words: "1 or more", "0 to 1", "more than 0"."""
        most = "" if self.at_most is None else _in_digits(self.at_most)
        if self.more_than is not None:
            return f"more than {_in_digits(self.more_than)}" + (f" and at most {most}" * bool(most))
        if self.at_least is None:
            return f"at most {most}"
        return f"{_in_digits(self.at_least)} " + (f"to {most}" if most else "or more")


def _in_digits(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:.15g}"


def _beyond(value: Any, most: int) -> str | None:
    """Says what a number must be that no rule expects: infinite, NaN, or of too many digits."""
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= most:
        return f"must be at most {most}" if value > 0 else f"must be {-_LARGEST - 1} or more"
    return None


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a config class or of a config nested in it."""

    name: str  # the same in flags, in messages and in a run's settings
    path: tuple[str, ...]  # the fields that lead to it: ("phase2", "max_seq_length")
    type: Any  # without `None`
    default: Any  # or `REQUIRED`
    rules: Rules

    @property
    def json_type(self) -> Any:
        """What a value of it is in a JSON file, as `json_files.typed` understands it."""
        within: Any = typing.Annotated[self.type, self.rules]
        return within | None if self.default is None else within

    @property
    def element(self) -> Any:
        """The type of its items, `int` of `tuple[int, ...]`; None where it holds one value."""
        if self.rules.listed:
            return str
        arms = typing.get_args(self.type)
        return arms[0] if arms else None


class Nested(typing.NamedTuple):
    """A config within another one, as `nested` takes it."""

    config_class: type
    prefix: str
    defaults: Mapping[str, Any]
    without: Sequence[str]


def option(default: Any, sentence: str, **rules: Any) -> Any:
    """A dataclass field that a user can set, or must, if its default is `REQUIRED`.

    One without a sentence is accepted, and not shown.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Painting:
        ...     color: str = option("red", "The color.", choices=("red", "blue"))
        ...     coats: int = option(1, "How many coats of it.", at_least=1)
        ...
        ...     def __post_init__(self):
        ...         check_options(self)
        >>> Painting(coats=0)
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: `coats=0` must be 1 or more.
    """
    rule = Rules(sentence=sentence, **rules)
    return dataclasses.field(default=default, metadata={_RULES: rule})


def nested(
    config_class: type,
    *,
    prefix: str = "",
    defaults: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
) -> Any:
    """A dataclass field that holds another config, whose options are options of this one too.

    Their names begin with `prefix`; `defaults` differ from those of the class; options `without`
    which the outer config does are not offered.
    """
    given = dict(defaults or {})
    description = Nested(config_class, prefix, given, without)
    return dataclasses.field(
        default_factory=lambda: config_class(**given), metadata={_NESTED: description}
    )


def options_of(config_class: type) -> list[Option]:
    """The options of a config class in the order of its fields, nested ones included.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Wall:
        ...     height: float | None = option(None, "In metres.")
        >>> @dataclasses.dataclass(frozen=True)
        ... class House:
        ...     name: str = option(REQUIRED, "What it is called.")
        ...     north: Wall = nested(Wall, prefix="north_", defaults={"height": 2.5})
        >>> [(one.name, one.path, one.type.__name__) for one in options_of(House)]
        [('name', ('name',), 'str'), ('north_height', ('north', 'height'), 'float')]
        >>> options_of(House)[1].default
        2.5
    """
    # The fields' own types may be strings (`from __future__ import annotations`).
    hints = typing.get_type_hints(config_class)
    found = []
    for field in dataclasses.fields(config_class):
        if _RULES in field.metadata:
            kind, rules = _without_none(hints[field.name]), field.metadata[_RULES]
            found.append(Option(field.name, (field.name,), kind, field.default, rules))
        elif _NESTED in field.metadata:
            outer: Nested = field.metadata[_NESTED]
            found += [
                dataclasses.replace(
                    inner,
                    name=outer.prefix + inner.name,
                    path=(field.name, *inner.path),
                    default=outer.defaults.get(inner.name, inner.default),
                )
                for inner in options_of(outer.config_class)
                if inner.name not in outer.without
            ]
    return found


def nested_configs(config_class: type) -> dict[str, Nested]:
    """The configs within a config class, by the names of their fields."""
    fields = dataclasses.fields(config_class)
    return {field.name: field.metadata[_NESTED] for field in fields if _NESTED in field.metadata}


def bounded(kind: Any, **rules: Any) -> Any:
    """A type with bounds or choices, as `json_files.typed` understands it."""
    return typing.Annotated[kind, Rules(sentence="", **rules)]


def items_of(text: str) -> list[str]:
    """The items of a list that is written as text.

    Commas separate them; blanks around them do not count. An item that has a comma, a quotation
    mark in front or blanks at its ends is in quotation marks, with those inside it doubled.

    Example:
        >>> items_of("a, b")
        ['a', 'b']
        >>> items_of('"a, b",c')
        ['a, b', 'c']
        >>> items_of("")
        []
    """
    items, start = list[str](), 0 if text.strip() else None
    while start is not None:
        found = _ITEM.match(text, start)
        if found is None:
            raise UserError(
                f"{text!r} is no list: quotation marks enclose a whole item, and those inside it "
                'are doubled, as in "a,b",c.'
            )
        quoted, plain, comma = found.groups()
        items.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        start = found.end() if comma else None
    return items


def as_list_text(items: Iterable[str]) -> str:
    """The text of which `items_of` makes these items."""
    return ",".join(
        item
        if item and item == item.strip() and not re.search('[,"]', item)
        else '"' + item.replace('"', '""') + '"'
        for item in items
    )


_OF_FILES = re.compile("file|dir|input|output|html")
_HOME = re.compile(r"(?<![^,])~(?=/)")


def check_options(config: Any) -> None:
    """Holds a config's own options against their rules; nested configs check themselves.

    In paths and names of files "~/" becomes the home, as in a model's: no shell does so after "=".
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - where there is none it stays
    for field in dataclasses.fields(config):
        rules, value = field.metadata.get(_RULES), getattr(config, field.name)
        if rules is None or value is None:  # None is "not given"
            continue
        is_list = isinstance(value, (tuple, list))
        items = list(value) if is_list else [value]
        of_files = (str, Path) if _OF_FILES.search(field.name) else (Path,)
        if items and all(isinstance(x, of_files) for x in items):
            items = [type(x)(_HOME.sub(lambda _: home, str(x))) for x in items]
            object.__setattr__(config, field.name, type(value)(items) if is_list else items[0])
        for one in items:
            if wrong := rules.broken_by(one):
                raise UserError(f"`{field.name}={_written(one)}` {wrong}.")


class Options:
    """Base of all configs: dataclasses of options that are held against their rules."""

    def __post_init__(self) -> None:
        check_options(self)


def _written(value: Any) -> str:
    # Python refuses to write a number of more than 4300 digits.
    return shown(value) if type(value) is int else str(value)


@contextlib.contextmanager
def options_named(names: Mapping[str, str]) -> Iterator[None]:
    """Gives options other names in a `UserError` raised inside, as the caller knows them."""
    try:
        yield
    except UserError as error:
        message = _NAME.sub(lambda found: names.get(found.group(), found.group()), str(error))
        raise UserError(message) from error


def settings_of(config: Any) -> dict[str, Any]:
    """The values of a config's own options that a resumed run must have the same, as in JSON."""
    values = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if _RULES in field.metadata and field.metadata[_RULES].resume == SAME
    }
    return {name: list(one) if isinstance(one, tuple) else one for name, one in values.items()}


def default_settings(config_class: type) -> dict[str, Any]:
    """The defaults of all options, nested ones too, that a resumed run must have the same."""
    return {
        one.name: list(one.default) if isinstance(one.default, tuple) else one.default
        for one in options_of(config_class)
        if one.rules.resume == SAME and one.default is not REQUIRED
    }


def made_settings(config_class: type) -> dict[str, str]:
    """The settings that a job makes of its options, by the options' names."""
    return {one.name: one.rules.makes for one in options_of(config_class) if one.rules.makes}


def changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Names what differs between two sets of settings, with the old and the new value."""
    # A setting that one of both lacks is None there: versions of a job differ in their options.
    pairs = [(name, before.get(name), now.get(name)) for name in sorted({*before, *now})]
    return [(name, old, new) for name, old, new in pairs if old != new]


def _without_none(annotation: Any) -> Any:
    """`int` of `int | None`; `str` of a `Literal` of words."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        (annotation,) = (arm for arm in typing.get_args(annotation) if arm is not types.NoneType)
    return str if typing.get_origin(annotation) is typing.Literal else annotation
