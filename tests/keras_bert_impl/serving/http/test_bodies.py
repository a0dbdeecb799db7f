import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.http.bodies import RequestError, _parsed, to_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=30)
@given(VALUES)
def test_what_is_written_is_json_of_the_same_value_or_refused(value):
    try:
        assert json.loads(to_json(value)) == value
    except ValueError:
        written = json.dumps(value)
        assert "NaN" in written or "Infinity" in written


@pytest.mark.parametrize("values", [b"[]", b"{}", b"1,"])
def test_values_without_number_are_refused_and_those_in_texts_are_not(values):
    assert _parsed(bytearray(b'["' + values * 200_001 + b'\\"' + values * 9 + b'"]'))
    with pytest.raises(RequestError) as refused:
        _parsed(bytearray(b"[" + (values + b",") * 200_001 + b"1]"))
    assert refused.value.status_code == 413
