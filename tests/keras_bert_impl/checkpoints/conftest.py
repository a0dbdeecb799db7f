import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY, scatter_weights


@pytest.fixture
def pretrained(tmp_path):
    """A pre-trained model and its directory."""
    model = scatter_weights(BertPretrainer(TINY))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    return model, tmp_path / "model"
