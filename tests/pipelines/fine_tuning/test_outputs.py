"""Outputs of splits with a model that only pretends; whole runs are tested with the tools."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipelines.fine_tuning.outputs import SplitOutputs
from pipelines.records.row_set import make_rows
from pipelines.records.rows import Rows


@pytest.fixture
def rows(tmp_path):
    tokens = {"input_ids": np.arange(6, dtype=np.int32)}
    return make_rows(tmp_path / "rows", {}, [Rows(np.arange(3), np.array([2, 3, 1]), tokens)])


@pytest.fixture
def computed(rows, tmp_path):
    """Outputs of two splits with the same rows, and how often the model was asked."""
    passes = []

    def predict(source):
        passes.append(source.batch_size)
        for batch in source.batches():
            yield {"logits": batch["input_ids"].sum(axis=1, keepdims=True)[: source.batch_size]}

    def trimmed(source):
        for numbers, values in zip(source.numbers(), predict(source), strict=True):
            yield {name: array[: len(numbers)] for name, array in values.items()}

    both = {"dev": rows, "test": rows}
    head, work = SimpleNamespace(token_outputs=()), tmp_path / "work"
    work.mkdir()
    outputs = SplitOutputs(work, both, trimmed, head, None)
    return outputs, passes


def folders(tmp_path):
    return [path for path in (tmp_path / "work").iterdir() if path.is_dir()]


def logits(outputs, split, **options):
    with outputs.of(split, 2, **options) as found:
        return found.read(0, 3)["logits"].tolist()


def test_outputs_are_computed_for_each_block_and_their_files_go(computed, tmp_path):
    outputs, passes = computed
    with outputs:
        assert logits(outputs, "dev") == [[1], [9], [5]]
        assert logits(outputs, "dev") == [[1], [9], [5]]
        assert folders(tmp_path) == []
    assert len(passes) == 2


def test_outputs_that_are_kept_are_computed_once_and_go_at_the_end(computed, tmp_path):
    outputs, passes = computed
    with outputs:
        assert logits(outputs, "dev", keep=True) == logits(outputs, "dev") == [[1], [9], [5]]
        assert len(passes) == 1
        assert logits(outputs, "test") == [[1], [9], [5]]
        assert len(passes) == 2
        assert len(folders(tmp_path)) == 1
    assert folders(tmp_path) == []
