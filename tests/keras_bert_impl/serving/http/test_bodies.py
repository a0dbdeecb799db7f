import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from keras_bert_impl.serving.http import bodies
from keras_bert_impl.serving.http.bodies import BodyReader, RequestError, _check_values, to_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_json_of_the_same_value_or_refused(value):
    try:
        assert json.loads(to_json(value)) == value
    except ValueError:
        written = json.dumps(value)
        assert "NaN" in written or "Infinity" in written


@pytest.mark.parametrize("values", [b"[]", b"{}", b"1,"])
def test_values_without_number_are_refused_and_those_in_texts_are_not(values):
    text = b'["' + values * 200_001 + b'\\"' + values * 9 + b'"]'
    _check_values(text)
    with pytest.raises(RequestError) as refused:
        _check_values(b"[" + (values + b",") * 200_001 + b"1]")
    assert refused.value.status == 413


def asked(content):
    async def receive():
        return {"type": "http.request", "body": content, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_a_turn_of_the_loop_reads_one_large_body_at_most(monkeypatch):
    turns, read_in = 0, []
    parse = bodies.parse_json
    monkeypatch.setattr(
        bodies, "parse_json", lambda *some, **more: read_in.append(turns) or parse(*some, **more)
    )

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read():
        reader = BodyReader(seconds=5)
        counting = asyncio.create_task(count())
        large = json.dumps(["a" * 100_000]).encode()
        values = await asyncio.gather(*(reader.json(asked(large)) for _ in range(5)))
        assert reader.held == 0
        counting.cancel()
        return values

    assert asyncio.run(read()) == [["a" * 100_000]] * 5
    assert len(set(read_in)) == 5
