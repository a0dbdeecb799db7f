import numpy as np
import pytest

from keras_bert_impl.serving.verify import Call, ReloadError, _load, _save, call_in_fresh_process


def test_calls_and_outputs_survive_their_files(tmp_path):
    entries = [
        ("text", {"text": np.array([b"caf\xc3\xa9", b""])}),
        ("masked_lm", {"input_ids": np.array([[1, 2]], np.int32), "x": np.zeros([1, 0])}),
    ]
    _save(tmp_path / "calls.npz", entries)
    for (name, arrays), (read_name, read) in zip(
        entries, _load(tmp_path / "calls.npz"), strict=True
    ):
        assert name == read_name
        assert list(arrays) == list(read)
        for key, array in arrays.items():
            np.testing.assert_array_equal(array, read[key])
            assert array.dtype == read[key].dtype


@pytest.mark.slow
def test_a_folder_without_a_saved_model_fails_with_the_last_line_of_the_reason(tmp_path):
    with pytest.raises(ReloadError, match="SavedModel file does not exist"):
        call_in_fresh_process(tmp_path, [], Call("text", {"text": np.array([b"a"])}))
