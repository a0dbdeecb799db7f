"""Words at [MASK], by TensorFlow's graph and by an engine: the same words."""

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.config import FillMaskConfig
from keras_bert_impl.serving.portable_export import export_portable
from pipelines.answering.masked_texts import fill_mask
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import write_classifier, write_pretrainer

TEXTS = ("the [MASK] runs. [MASK]", "a cat", "the dog. " * 9 + "[MASK]")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_pretrainer(tmp_path_factory.mktemp("words") / "model")


def filled(model, **options):
    results = fill_mask(FillMaskConfig(model=str(model), text=TEXTS, top_k=3, **options))
    assert [sentence[:9] for sentence in results.refused] == ["`text` 2:"]
    return results.filled


def test_an_engine_gives_the_words_of_the_graph(model, tmp_path):
    opened, _ = open_and_serve(model)
    export_portable(opened, tmp_path / "export", "openvino", verify=False)
    expected = filled(model)
    for name, engine in ((model, "openvino"), (tmp_path / "export", None)):
        found = filled(name, engine=engine)
        assert [one.num_truncated for one in found] == [one.num_truncated for one in expected]
        for text, other in zip(found, expected, strict=True):
            for words, others in zip(text.masks, other.masks, strict=True):
                assert [word.token for word in words] == [word.token for word in others]
                shares = [word.probability for word in others]
                assert [word.probability for word in words] == pytest.approx(shares, abs=1e-5)


@pytest.mark.parametrize("engine", [None, "openvino"])
def test_a_model_without_the_head_is_told(tmp_path, engine):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    with pytest.raises(UserError, match="has no masked-LM head"):
        filled(model, engine=engine)


def test_scales_are_not_found_on_a_few_texts(model):
    with pytest.raises(UserError, match="answer an `input_file` with some hundred"):
        filled(model, engine="openvino", engine_precision="int8")
