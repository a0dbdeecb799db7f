"""JSON of anybody: bounded, typed, one sentence for every fault."""

import dataclasses
import json
import math
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import (
    json_text,
    parse_json,
    read_json_value,
    read_typed,
    typed,
    without_nan,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@dataclasses.dataclass(frozen=True)
class Shard:
    file: str
    bytes: int
    share: float = 1.0


class Settings(TypedDict, total=False):
    stride: int
    pooling: Literal["mean", "pooler"]


@given(ANY_JSON)
def test_what_json_writes_is_read(value):
    text = json.dumps(value)
    assert json.dumps(parse_json(text, "x.json", "fix it")) == text


@given(st.binary())
def test_any_bytes_are_json_or_one_sentence(content):
    fault = _fault_of(parse_json, content, "x.json", "fix it")
    assert fault is None or fault.startswith("x.json: is not JSON")
    assert fault is None or "\n" not in fault


@pytest.mark.parametrize("text", ["[" * 99_999, '{"a":' * 9_999])
def test_deep_nesting_is_refused(text):
    with pytest.raises(UserError, match="nested too deeply"):
        parse_json(text, "x.json", "fix it")


def test_a_file_larger_than_the_bound_is_refused_unread(tmp_path):
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(UserError, match="has more than 64 MiB, which no such file needs"):
        read_json_value(tmp_path / "x.json")


def test_half_a_surrogate_pair_is_told_and_a_whole_one_is_a_character():
    assert parse_json(rb'{"a": "\ud83d\ude00"}', "x.json", "fix it") == {"a": "\U0001f600"}
    for text in (rb'{"a": ["\uD83d"]}', r'{"\ude00": 1}'):
        with pytest.raises(UserError, match=r"x\.json: holds '\\ud.*, which is no character"):
            parse_json(text, "x.json", "fix it")


@given(ANY_JSON)
def test_a_typed_value_is_of_its_type_or_refused(value):
    wanted = dict[str, list[int | None] | Shard]
    if fault := _fault_of(typed, value, wanted, "x.json"):
        assert fault.startswith("x.json: ")
        assert len(fault) < 400
        return
    for one in typed(value, wanted, "x.json").values():
        whole = all(inner is None or type(inner) is int for inner in one)
        assert isinstance(one, Shard) or whole


def _fault_of(function, *arguments):
    try:
        function(*arguments)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("value", "wanted", "names"),
    [
        (True, int, "must be a whole number"),
        (1 << 63, int, "must be a whole number"),
        (float("nan"), float, "must be a number"),
        ("1", float, "must be a number"),
        ({"a": {"b": [1, "x"]}}, dict[str, dict[str, list[int]]], "a.b.1 is 'x'"),
        ({"file": "a", "bytes": 1.5}, Shard, "bytes is 1.5"),
        ({"file": "a"}, Shard, "the entry bytes"),
        ({"file": "a", "bytes": 1, "size": 2}, Shard, "size is 2; it must be left out"),
        ({"pooling": "max"}, Settings, "pooling is 'max'; it must be one of mean, pooler"),
        ([1], tuple[int, int], "a list of 2 items"),
        ([1, "a"], tuple[int, int], "1 is 'a'; it must be a whole number"),
        ([{"file": 1}], list[Shard] | None, "0"),
        (1, Literal[True], "one of True"),
    ],
)
def test_the_entry_of_another_type_is_named(value, wanted, names):
    with pytest.raises(UserError) as error:
        typed(value, wanted, "x.json", "delete it")
    assert names in str(error.value)
    assert str(error.value).endswith("; delete it.")


def test_values_become_what_is_wanted(tmp_path):
    (tmp_path / "x.json").write_text('[{"file": "a", "bytes": 3}]')
    assert read_typed(tmp_path / "x.json", list[Shard], "fix it") == [Shard("a", 3)]
    assert typed({"stride": 1, "more": [2]}, Settings, "x.json") == {"stride": 1, "more": [2]}
    assert typed([1, 2.5], tuple[float, ...], "x.json") == (1.0, 2.5)
    assert typed({"a": [None]}, Any, "x.json") == {"a": [None]}


def test_a_byte_order_mark_is_no_json(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json_value(tmp_path / "x.json") == [1]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_of_ours_holds_no_number_that_is_not_finite(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"score": number})
    assert json_text(without_nan({"score": [number, 1.5]})) == '{"score": [null, 1.5]}'
