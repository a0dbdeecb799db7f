"""Records in JSON: an object a line, or one array of objects over as many lines as it likes.

Objects inside a record are columns of their own, with a dot in their names: `{"labels": {"label":
3}}` has the column `labels.label`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.reference import as_name, as_text

Lines = Iterable[tuple[int, str]]
Values = dict[str, Any]

# A whole string, so that a brace inside is none, or what opens or closes.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def objects_of_lines(name: str, lines: Lines) -> Iterator[tuple[int, Values]]:
    r"""Reads an object a line; empty lines are none.

    Args:
        name: the file, for errors.
        lines: its lines with their numbers.

    Raises:
        UserError: a line is no JSON object, or has a column twice.

    Example:
        >>> list(objects_of_lines("t.jsonl", [(1, '{"a": {"b": 1}}\n'), (2, "\n")]))
        [(1, {'a.b': 1})]
    """
    for number, line in lines:
        if not line.isspace():
            yield number, _object(name, number, line)


def objects_of_array(name: str, lines: Lines) -> Iterator[tuple[int, Values]]:
    r"""Reads an array of objects, each with the line on which it begins.

    Args:
        name: the file, for errors.
        lines: its lines with their numbers.

    Raises:
        UserError: it is no array of objects, an object has a column twice, or the file ends early.

    Example:
        >>> list(objects_of_array("t.json", [(1, '[{"a": 1},\n'), (2, '{"a":\n'), (3, "2}]\n")]))
        [(1, {'a': 1}), (2, {'a': 2})]
    """
    depth, begins, parts = 0, 0, list[str]()
    for number, line in lines:
        start = 0  # of the object, within this line
        for found in _STRUCTURE.finditer(line):
            mark = found.group()
            if mark in ("{", "["):
                depth += 1
                if depth == 2:
                    begins, start, parts = number, found.start(), []
            elif mark in ("}", "]"):
                depth -= 1
                if depth == 1:
                    yield begins, _object(name, begins, "".join(parts) + line[start : found.end()])
            elif depth == 1:
                raise UserError(f"{name}: line {number} has text between the array's objects.")
        if depth > 1:
            parts.append(line[start:])
    if depth:
        raise UserError(
            f"{name}: ends inside its JSON array, whose last object begins on line {begins}; get "
            "the file again."
        )


def _object(name: str, line: int, text: str) -> Values:
    try:
        values = json.loads(text, object_pairs_hook=partial(_once_each, name, line))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{name}: line {line} is not JSON ({error}); write one object a line."
        ) from error
    if not isinstance(values, dict):
        raise UserError(f"{name}: line {line} is no JSON object; write one object a line.")
    return values


def _once_each(name: str, line: int, pairs: list[tuple[str, Any]]) -> Values:
    """The columns of an object, with those of the objects in it."""
    flat: list[tuple[str, Any]] = []
    for key, value in pairs:
        if isinstance(value, dict):
            flat += [(f"{_name(key)}.{inner}", one) for inner, one in value.items()]
        else:
            flat.append((_name(key), value))
    values = dict(flat)
    if len(values) < len(flat):
        names = [key for key, _ in flat]
        twice = next(key for key in names if names.count(key) > 1)
        raise UserError(f"{name}: line {line} has the column {twice!r} twice; remove one.")
    return {key: _with_text(value) for key, value in values.items()}


def _name(key: str) -> str:
    # An escape such as \ud83d may be one half of a surrogate pair, which is not text.
    return as_name(as_text(key))


def _with_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_text(one) for one in value]
    return as_text(value) if isinstance(value, str) else value
