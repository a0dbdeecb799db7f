"""Options that do not go together are told before anything is opened."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.answering.config import AnsweringConfig, PredictConfig


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "nothing is asked"),
        ({"text": ["a"], "context": "b", "ending": ["c"]}, "`text` and `context` exclude"),
        ({"text": ["a"], "text_pair": ["b", "c"]}, "give as many"),
        ({"question": ["a"]}, "`question` and `passage_file` belong together"),
        ({"context": "a"}, "`context` and `ending` belong together"),
    ],
)
def test_what_is_asked_must_be_plain(options, sentence):
    with pytest.raises(UserError, match=sentence):
        PredictConfig(model="m", **options)


def test_an_engine_has_certain_precisions():
    AnsweringConfig(model="m", engine="openvino", precision="int8")
    AnsweringConfig(model="m", precision="int8")  # an export is computed by OpenVINO
    with pytest.raises(UserError, match="`precision=int8` needs `engine=openvino`"):
        AnsweringConfig(model="m", engine="tensorflow", precision="int8")
