"""Texts, numbers and JSON values that nobody expects, and trees of JSON with one of them inside."""

import json
import random

WORDS = (
    "",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\u202eright to left\u202c",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\ufffe\uffff",
    "배" * 100,
    "<script>alert(1)</script>",
    "x" * 5000,
    "=1+1",
    "../secret.txt",
    "../../secret.txt",
    "/proc/self/maps",
    "%s%n{0}{x}",
    "nan",
    "NULL",
    "-1",
    "1e309",
    "[MASK]",
    "\r\n\u2028\x85",
    "e\u0301" * 40,
    "\U000e0001\U0001f3f4",
)
"""Texts where others are expected."""

NUMBERS = (
    *(0, 1, -1, 2, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63), -(2**63) - 1, 10**23, 10**400),
    *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e18, 1e308, float("inf"), float("-inf"), float("nan")),
)
"""Numbers where others are expected."""


def hostile_value(rng: random.Random) -> object:
    """A JSON value of any type."""
    number, word = rng.choice(NUMBERS), rng.choice(WORDS)
    other = rng.choice([None, True, False, [], {}, [[]], {"": None}, [1] * 1000])
    trees = [[number, word, None], {word: number}, _nested(rng.choice([20, 70, 500]))]
    return rng.choice([word, word, number, number, other, *trees])


def _nested(depth):
    value: object = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def _places(value, found, path=()):
    """All places of a tree, as (holder, key)."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in list(items):
        found.append((value, key, (*path, str(key)[:20])))
        if isinstance(one, (dict, list)):
            _places(one, found, (*path, str(key)[:20]))
    return found


def spoil_tree(rng: random.Random, value: object) -> tuple[object, str]:
    """Changes one place of a JSON value; gives it with the words for the report."""
    places = _places(value, []) if isinstance(value, (dict, list)) else []
    if not places or rng.random() < 0.04:
        return hostile_value(rng), "another value"
    holder, key, path = rng.choice(places)
    way, where = rng.random(), ".".join(path)[:60]
    if way < 0.12:
        del holder[key]
        return value, f"without {where}"
    holder[key] = new = hostile_value(rng) if way < 0.85 else [holder[key]]
    return value, f"{where} is {json.dumps(new if new != 10**400 else '10**400')[:60]}"
