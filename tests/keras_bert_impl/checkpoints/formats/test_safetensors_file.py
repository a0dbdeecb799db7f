import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import numpy as official

from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_metadata,
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.errors import UserError

TYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.uint8, bool]


def raw(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.lists(st.integers(0, 4), max_size=3)), max_size=5)
)
@settings(max_examples=30, deadline=None)
def test_what_is_written_is_read_here_and_by_the_official_library(tmp_path_factory, tensors):
    path = tmp_path_factory.mktemp("file") / "model.safetensors"
    arrays = {
        f"tensor.{number}": np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        for number, (dtype, shape) in enumerate(tensors)
    }
    write_safetensors(path, arrays)
    assert read_shapes(path) == {name: array.shape for name, array in arrays.items()}
    theirs = official.load_file(path)
    for name, array in arrays.items():
        ours = read_tensor(path, name)
        assert ours.dtype == array.dtype
        assert ours.tobytes() == array.tobytes() == theirs[name].tobytes()
        assert ours.shape == array.shape


def test_the_same_tensors_and_metadata_are_the_same_bytes(tmp_path):
    tensors = {"b": np.arange(3.0), "a": np.arange(2, dtype=np.float32)}
    metadata = {"base": json.dumps({"layer": "0\u00e9"}), "a": "1", "z": "2"}
    written = set()
    for number in range(8):
        write_safetensors(tmp_path / f"{number}", tensors, **metadata)
        written.add((tmp_path / f"{number}").read_bytes())
    assert len(written) == 1
    assert read_metadata(tmp_path / "0") == {"format": "pt", **metadata}
    assert np.array_equal(official.load_file(tmp_path / "0")["b"], tensors["b"])


def test_a_file_of_the_official_library_is_read(tmp_path):
    path = tmp_path / "model.safetensors"
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    official.save_file({"a": array, "b": array[:1].copy()}, path, metadata={"format": "pt"})
    assert np.array_equal(read_tensor(path, "a"), array)


HOSTILE = {
    "shorter than its length field": b"\x01\x00",
    "header longer than the file": raw({}, length=10**6),
    "header of 2**63 bytes": raw({}, length=2**63),
    "no JSON": raw(b"{'a': 1}"),
    "no UTF-8": raw(b'{"\xff": 1}'),
    "deeply nested": raw(b"[" * 100_000),
    "a list": raw([]),
    "two tensors of one name": raw(b'{"a": {}, "a": {}}'),
    "no description": raw({"a": 7}),
    "unknown type": raw({"a": entry(dtype="F4")}, b"\0" * 8),
    "type that is no word": raw({"a": entry(dtype=["F32"])}, b"\0" * 8),
    "negative shape": raw({"a": entry(shape=(-2,))}, b"\0" * 8),
    "shape of fractions": raw({"a": entry(shape=(2.0,))}, b"\0" * 8),
    "huge shape": raw({"a": entry(shape=(2**40, 2**40))}, b"\0" * 8),
    "zero times huge": raw({"a": entry(shape=(0, 2**70), offsets=(0, 0))}),
    "offsets past the end": raw({"a": entry(offsets=(0, 8))}, b"\0" * 4),
    "offsets backwards": raw({"a": entry(offsets=(8, 0))}, b"\0" * 8),
    "offsets of another size": raw({"a": entry(offsets=(0, 4))}, b"\0" * 8),
    "overlap": raw({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12),
    "the same bytes twice": raw({"a": entry(), "b": entry()}, b"\0" * 8),
    "a gap": raw({"a": entry(), "b": entry(offsets=(12, 20))}, b"\0" * 20),
    "bytes left over": raw({"a": entry()}, b"\0" * 9),
    "true as a number": raw({"a": entry(shape=(True, 2))}, b"\0" * 8),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_hostile_file_gives_one_sentence(tmp_path, fault):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[fault])
    with pytest.raises(UserError) as caught:
        read_shapes(path)
    assert str(caught.value).startswith(f"{path}: cannot be read as a whole safetensors file (")
    assert len(str(caught.value).removeprefix(str(path))) < 300


def test_a_tensor_of_more_axes_than_numpy_has_gives_one_sentence(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw({"a": entry(shape=[1] * 1000, offsets=(0, 4))}, b"\0" * 4))
    with pytest.raises(UserError, match="cannot be read as a whole safetensors file"):
        read_tensor(path, "a")


@given(st.binary(min_size=1, max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_bring_anything_but_a_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("file") / "model.safetensors"
    path.write_bytes(content)
    try:
        read_shapes(path)
    except UserError:
        return
    assert json.loads(content[8:])  # only a well-formed file may pass


def test_whoever_may_read_other_files_may_read_the_weights(tmp_path):
    (tmp_path / "other").touch()
    write_safetensors(tmp_path / "x.safetensors", {"a": np.zeros(2)})
    modes = [(tmp_path / name).stat().st_mode for name in ("other", "x.safetensors")]
    assert modes[0] == modes[1]
