"""`fill_mask` and `answer` by every engine; what they print is tested with the tools."""

import json

import pytest

from keras_bert_impl.errors import SeveralUserError, UserError
from keras_bert_impl.serving.portable_export import export_portable
from pipelines.answering.named import FillMaskConfig, fill_mask
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import write_classifier, write_pretrainer

TEXTS = ("the [MASK] runs. [MASK]", "a cat", "the dog. " * 9 + "[MASK]")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_pretrainer(tmp_path_factory.mktemp("words") / "model")


def records(model, **options):
    config = FillMaskConfig(model=str(model), text=TEXTS[::2], top_k=3, format="json", **options)
    return [json.loads(line) for line in fill_mask(config)]


def test_engines_and_exports_give_the_same_words(model, tmp_path):
    opened, _ = open_and_serve(model)
    export_portable(opened, tmp_path / "export", "openvino", verify=False)
    expected = records(model)
    assert [record["num_truncated"] for record in expected] == [0, 18]
    for name, engine in ((model, "openvino"), (tmp_path / "export", None)):
        for record, other in zip(records(name, engine=engine), expected, strict=True):
            assert record["num_truncated"] == other["num_truncated"]
            for words, others in zip(record["masks"], other["masks"], strict=True):
                assert [word["token"] for word in words] == [word["token"] for word in others]
                shares = [word["probability"] for word in others]
                assert [word["probability"] for word in words] == pytest.approx(shares, abs=1e-5)


def test_a_text_without_mask_is_told_after_the_others(model):
    lines = fill_mask(FillMaskConfig(model=str(model), text=TEXTS, format="json"))
    assert [json.loads(next(lines))["text"] for _ in range(2)] == [*TEXTS[::2]]
    with pytest.raises(SeveralUserError, match="`text` 2: 'a cat' has no"):
        next(lines)


def test_a_model_without_the_head_is_told(tmp_path):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    with pytest.raises(UserError, match="has no masked-LM head"):
        records(model, engine="openvino")


def test_scales_are_not_found_on_a_few_texts(model):
    with pytest.raises(UserError, match="answer an `input_file` with some hundred"):
        records(model, engine="openvino", engine_precision="int8")
