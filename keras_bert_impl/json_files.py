"""JSON from anywhere: bounded, and of the types that are expected.

A file that says it is JSON may be anything: a gigabyte long, a number where a name is expected.
`parse_json` bounds what is read, `typed` checks it against Python's own types, and every fault is
one sentence with the file and the entry.
"""

import contextlib
import dataclasses
import functools
import json
import logging
import math
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import is_there, open_input, read_small
from keras_bert_impl.options import Rules

_LOGGER = logging.getLogger(__name__)

_MOST_MEBIBYTES = 64  # of a configuration, description or tokenizer file
_LARGEST = 1 << 63  # NumPy and TensorFlow hold nothing beyond

_HALF_PAIR = re.compile("[\ud800-\udfff]")  # of surrogates: no text in any encoding

_Value = TypeVar("_Value")


class _FileName(Rules):
    """The rule that a text names a file of the folder that it is read in, and nothing outside."""

    def broken_by(self, value: Any) -> str | None:
        """See `Rules.broken_by`."""
        plain = value and value.isprintable() and Path(value).name == value
        return None if plain else "must be the name of a file beside it"


Count = typing.Annotated[int, Rules(sentence="", at_least=0)]
"""A whole number from 0 on."""

FileName = typing.Annotated[str, _FileName(sentence="")]
"""The name of a file in the same folder."""


def read_json_value(path: str | os.PathLike[str]) -> Any:
    """Reads a small JSON file."""
    content = read_small(path, _MOST_MEBIBYTES, "no such file needs; name another file")
    return parse_json(content, str(path), "fix it, or name another file")


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a small JSON file that holds one object."""
    values = read_json_value(path)
    if not isinstance(values, dict):
        raise UserError(f"{path}: holds no JSON object; fix it, or name another file.")
    return values


def read_typed(path: str | os.PathLike[str], wanted: type[_Value], remedy: str) -> _Value:
    """Reads a JSON file: what it holds has the types that `wanted` says."""
    return typed(read_json_value(path), wanted, str(path), remedy)


def json_text(value: Any, **how: Any) -> str:
    """JSON as text, for whatever this project writes; `how` is as `json.dumps` has it.

    NaN and infinity, which JSON has not, raise a `ValueError`; see `without_nan`.
    """
    return json.dumps(value, allow_nan=False, **how)


def without_nan(value: Any) -> Any:
    """A JSON value with null for numbers that are not finite: a figure that has no value.

    Example:
        >>> without_nan({"sigma": math.nan, "scores": (0.5, math.inf)})
        {'sigma': None, 'scores': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    r"""Reads a log of ours: lines of JSON objects, each with its `step`.

    A half-written last line is left out, and so is any other that is damaged.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "metrics.jsonl"
        >>> _ = path.write_text('{"step": 1}\n{"step": 3}\n{"step": 4, "lo')
        >>> read_log(path)
        [{'step': 1}, {'step': 3}]
    """
    if not is_there(path):
        return []
    with open_input(path, may_be_empty=True) as file:
        lines = [line for line in file if line.endswith(b"\n")]
    found = list[dict[str, Any]]()
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError, UserError):
            found.append(typed(bounded_loads(line), _LogLine, str(path)))
    if len(found) < len(lines):
        _LOGGER.warning("%s: %d lines cannot be read.", path, len(lines) - len(found))
    return found


class _LogLine(typing.TypedDict):
    step: Count


def parse_json(text: str | bytes, origin: str, remedy: str, *, first_line: int | None = 1) -> Any:
    """Parses JSON text, which begins on `first_line` of its file; see `fault_of_json`.

    Example:
        >>> parse_json('{"a": [1, 2]}', "x.json", "fix it")
        {'a': [1, 2]}
        >>> parse_json("[" * 9999, "x.json", "fix it")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: x.json: is not JSON (nested too deeply); fix it.
    """
    escape = b"\\ud" if isinstance(text, bytes) else "\\ud"
    try:
        value = bounded_loads(text)
        if escape in text.lower():  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = shown(error.object[error.start])
        raise UserError(f"{origin}: holds {half}, which is no character; {remedy}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{origin}: {fault_of_json(error, first_line)}; {remedy}.") from error
    return value


def bounded_loads(
    text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """`json.loads`, of bytes in UTF-8, too; the only place that calls it."""
    content = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    return json.loads(content, object_pairs_hook=object_pairs_hook)


def fault_of_json(
    error: ValueError | RecursionError, first_line: int | None = 1, first_column: int = 1
) -> str:
    r"""Says where a text stops being JSON, and why.

    It begins on `first_line`; None where it is one line, which the message names already.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"is not JSON (byte {error.start} is not UTF-8)"
    if not isinstance(error, json.JSONDecodeError):
        deep = isinstance(error, RecursionError)
        return f"is not JSON ({'nested too deeply' if deep else shown(str(error))[1:-1]})"
    column = error.colno + (first_column - 1 if error.lineno == 1 else 0)
    line = "" if first_line is None else f"line {first_line + error.lineno - 1}, "
    return f"is not JSON from {line}column {column} on ({error.msg})"


def typed(value: Any, wanted: Any, origin: str, remedy: str = "fix it") -> Any:
    """Checks a parsed JSON value against a type, and gives it as that type.

    Types are `int` (of 64 bits), `float` (finite; whole numbers count), `str`, `bool`, `None`,
    `Any`, unions, `Literal`, `list[...]`, `tuple[...]`, `dict[str, ...]` (or `Mapping`),
    `TypedDict`, and dataclasses, whose fields are the entries of an object: those with a default
    may be missing, others may not be there. `Annotated` with `Rules` has their bounds and choices.

    Example:
        >>> typed({"stride": 128}, dict[str, int], "config.json")
        {'stride': 128}
        >>> typed({"stride": [1]}, dict[str, int], "x.json")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: x.json: stride is [1]; it must be a whole number; fix it.
    """
    try:
        return _typed(value, wanted, ())
    except _MismatchError as error:
        raise UserError(f"{origin}: {error}; {remedy}.") from None
    except UserError as error:  # of a dataclass, which checks itself
        raise UserError(f"{origin}: {str(error).removesuffix('.')}; {remedy}.") from error


def argument(name: str, value: Any, wanted: Any) -> Any:
    """Checks an argument of a function against a type, as `typed` does; NumPy's numbers count."""
    try:
        return _typed(value.item() if isinstance(value, np.generic) else value, wanted, (name,))
    except _MismatchError as error:
        raise UserError(f"{error}.") from None


def typed_entries(
    values: Mapping[str, Any], types: Mapping[str, Any], origin: str, remedy: str = "fix it"
) -> dict[str, Any]:
    """Checks those entries of an object that `types` names; the others stay as they are."""
    try:
        return {
            name: _typed(one, types[name], (name,)) if name in types else one
            for name, one in values.items()
        }
    except _MismatchError as error:
        raise UserError(f"{origin}: {error}; {remedy}.") from None


class _MismatchError(Exception):
    """A value of another type than the expected one."""

    def __init__(self, path: tuple[str, ...], value: Any, must: str) -> None:
        self.path = path
        name = shown(".".join(path))[1:-1] if path else "its content"
        super().__init__(f"{name} is {shown(value)}; it must be {must}")


def _typed(value: Any, wanted: Any, path: tuple[str, ...]) -> Any:
    if wanted is int or wanted is str or wanted is float:  # vocabularies have ten thousands
        return _plain(value, wanted, path)
    origin, arms = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any or wanted is object:
        return value
    if origin is typing.NotRequired:
        return _typed(value, arms[0], path)
    if origin is typing.Annotated:
        return _within(_typed(value, arms[0], path), wanted.__metadata__, path)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, arms, path)
    if origin is typing.Literal:
        # `in` alone would take True for 1.
        if not any(type(value) is type(arm) and value == arm for arm in arms):
            raise _MismatchError(path, value, _in_words(wanted))
        return value
    return _container(value, wanted, path)


def _container(value: Any, wanted: Any, path: tuple[str, ...]) -> Any:
    origin, arms = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (list, Sequence):
        return _items(value, arms[0], path)
    if origin is tuple:
        return _tuple(value, arms, path)
    if origin in (dict, Mapping):
        return {name: _typed(one, arms[1], (*path, name)) for name, one in _object(value, path)}
    if dataclasses.is_dataclass(wanted):
        return _dataclass(value, wanted, path)
    if typing.is_typeddict(wanted):
        return _entries(value, wanted, path)
    return _plain(value, wanted, path)


def _within(value: Any, rules: Iterable[Rules], path: tuple[str, ...]) -> Any:
    """A value of the right type, which keeps to the bounds or choices of an option."""
    items = value if isinstance(value, list | tuple) else [value]
    for rule in rules:
        for one in items if value is not None else ():
            if (wrong := rule.broken_by(one)) is not None:
                known = f"one of {', '.join(rule.choices)}" if rule.choices else None
                raise _MismatchError(path, value, known or wrong.removeprefix("must be "))
    return value


def _plain(value: Any, wanted: Any, path: tuple[str, ...]) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted is float and number and abs(value) <= sys.float_info.max:
        return float(value)
    if wanted is int and type(value) is int and -_LARGEST <= value < _LARGEST:
        return value
    if wanted is str and isinstance(value, str) and not _HALF_PAIR.search(value):
        return value
    if wanted in (bool, list, dict) and type(value) is wanted:
        return value
    if wanted in (None, types.NoneType) and value is None:
        return None
    raise _MismatchError(path, value, _in_words(wanted))


def _one_of(value: Any, arms: Sequence[Any], path: tuple[str, ...]) -> Any:
    deepest = _MismatchError(path, value, " or ".join(map(_in_words, arms)))
    # Exact types first: 1 fits `float | int` twice.
    for arm in sorted(arms, key=lambda arm: arm is not type(value)):
        try:
            return _typed(value, arm, path)
        except _MismatchError as error:
            deepest = max(deepest, error, key=lambda mismatch: len(mismatch.path))
    raise deepest


def _items(value: Any, wanted: Any, path: tuple[str, ...]) -> list[Any]:
    if not isinstance(value, list):
        raise _MismatchError(path, value, "a list")
    return [_typed(one, wanted, (*path, str(at))) for at, one in enumerate(value)]


def _tuple(value: Any, arms: Sequence[Any], path: tuple[str, ...]) -> tuple[Any, ...]:
    if len(arms) == 2 and arms[1] is Ellipsis:
        return tuple(_items(value, arms[0], path))
    if not isinstance(value, list) or len(value) != len(arms):
        raise _MismatchError(path, value, f"a list of {len(arms)} items")
    each = enumerate(zip(value, arms, strict=True))
    return tuple(_typed(one, arm, (*path, str(at))) for at, (one, arm) in each)


def _object(value: Any, path: tuple[str, ...]) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise _MismatchError(path, value, "an object")
    return value.items()


def _entries(value: Any, wanted: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """The entries of a `TypedDict`; others are left as they are."""
    hints = typing.get_type_hints(wanted, include_extras=True)
    values = dict(_object(value, path))
    for name in sorted(wanted.__required_keys__ - values.keys()):
        raise _MismatchError(path, value, f"an object with the entry {name}")
    known = {name: hints[name] for name in values.keys() & hints.keys()}
    checked = {name: _typed(values[name], hint, (*path, name)) for name, hint in known.items()}
    return {**values, **checked}


def _dataclass(value: Any, wanted: Any, path: tuple[str, ...]) -> Any:
    values, hints = dict(_object(value, path)), _hints(wanted)
    for name in values.keys() - hints.keys():
        raise _MismatchError((*path, name), values[name], "left out: no such entry is known")
    for field in dataclasses.fields(wanted):
        bare = field.default is field.default_factory is dataclasses.MISSING
        if bare and field.name not in values:
            raise _MismatchError(path, value, f"an object with the entry {field.name}")
    return wanted(**{name: _typed(one, hints[name], (*path, name)) for name, one in values.items()})


@functools.cache
def _hints(wanted: type) -> dict[str, Any]:
    hints = typing.get_type_hints(wanted, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(wanted)}


_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    None: "null",
    types.NoneType: "null",
}


def _in_words(wanted: Any) -> str:
    origin, arms = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_in_words, arms))
    if origin is typing.Literal:
        return f"one of {', '.join(map(str, arms))}"
    if origin in (list, tuple, Sequence):
        return "a list"
    if origin is typing.Annotated:
        return _in_words(arms[0])
    return _WORDS.get(wanted, "an object")
