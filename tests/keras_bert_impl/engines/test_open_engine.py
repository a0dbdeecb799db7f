"""The engine of a choice."""

import subprocess
import sys

import numpy as np
import pytest

from keras_bert_impl.engines.engine import KerasEngine
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine, open_graph
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.evaluation import Prediction
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.tiny_bert import features


@pytest.fixture
def export(graph, tmp_path):
    import openvino

    openvino.save_model(graph, tmp_path / "model.xml", compress_to_fp16=False)
    return tmp_path


def test_tensorflow_is_the_default(model):
    assert isinstance(open_engine(model), KerasEngine)


def test_openvino_makes_its_graph_at_the_first_use(model, monkeypatch):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    made = "keras_bert_impl.engines.kept_graph.openvino_graph"
    monkeypatch.setattr(made, lambda _: pytest.fail("nothing is computed yet"))
    engine = open_engine(model, "openvino", "bfloat16")
    assert (engine.tokens_at_once, engine.few_lengths) == (1024, False)


@pytest.mark.parametrize("named", [".", "model.xml"])
def test_an_export_gives_what_the_model_gives(model, export, named):
    engine = open_graph(export / named)
    assert engine.input_names == tuple(sorted(inputs()))
    assert engine.output_sizes == {name: x.shape[-1] for name, x in model.output.items()}
    for name, value in model(inputs()).items():
        np.testing.assert_allclose(
            engine.compute_one(inputs())[name], value, atol=1e-5, err_msg=name
        )


_WITHOUT_TENSORFLOW = """
import sys
import numpy as np
from keras_bert_impl.engines.open_engine import open_graph
engine = open_graph(sys.argv[1])
ids = np.ones([1, 4], np.int32)
assert engine.compute_one(dict.fromkeys(engine.input_names, ids))
print(*sorted({"tensorflow", "keras", "tensorflow_text"} & set(sys.modules)))
"""


def test_it_needs_no_tensorflow(export):
    command = [sys.executable, "-c", _WITHOUT_TENSORFLOW, str(export)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_is_no_export_is_one_sentence(export, tmp_path):
    with pytest.raises(UserError, match=r"gone/model\.xml: no such file|gone: no such file"):
        open_graph(tmp_path / "gone")
    (export / "model.xml").write_text("<net")
    with pytest.raises(UserError, match="is no graph that OpenVINO can open; export it again"):
        open_graph(export)
    (export / "model.bin").unlink()
    with pytest.raises(UserError, match=r"model\.bin: no such file"):
        open_graph(export)


@pytest.mark.slow
def test_an_export_in_8_bits_keeps_its_scales_beside_it(model, export):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    rows = [inputs(batch=1, seed=seed) for seed in range(8)]
    first = open_graph(export, "int8", lambda: rows).compute_one(rows[3])
    again = open_graph(export, "int8", lambda: pytest.fail("they are there")).compute_one(rows[3])
    expected = model(rows[3])
    for name, value in first.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)
    np.testing.assert_allclose(
        first["next_sentence_logits"], expected["next_sentence_logits"], atol=0.3
    )


NAMES = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


class Backwards:
    """An engine whose last batch is ready first."""

    tokens_at_once, batches_at_once, few_lengths = 1024, 1, False

    def __init__(self, model):
        self._model, self.shapes = model, []

    def compute(self, batches):
        for key, batch in reversed(list(batches)):
            self.shapes.append(batch["input_ids"].shape)
            yield key, {name: np.array(value) for name, value in self._model(batch).items()}

    def identity(self):
        return None


class Source:
    """Two batches; the second has a row that fills it up and two positions of padding."""

    open_features = frozenset[str]()

    def batches(self):
        padded = features(batch=3, length=8, seed=2)
        padded["input_mask"][:, 6:] = 0
        padded["masked_lm_positions"] %= 6
        yield features(batch=3, length=8, seed=1)
        yield {**padded, "example_weights": np.array([1, 1, 0], np.float32)}


def test_real_rows_get_the_models_outputs_in_order_without_their_padding(model):
    engine = Backwards(model)
    found = list(EnginePrediction(engine, NAMES)(Source()))
    assert engine.shapes == [(2, 6), (3, 8)]
    for outputs, expected in zip(found, Prediction(model, NAMES)(Source()), strict=True):
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)
