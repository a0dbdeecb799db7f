import shutil

import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY, scatter_weights


@pytest.fixture(scope="package")
def written(tmp_path_factory):
    """A pre-trained model and its directory, for all tests that only read them."""
    folder = tmp_path_factory.mktemp("written") / "model"
    model = scatter_weights(BertPretrainer(TINY))
    write_model_directory(folder, model, TextSettings(VOCABULARY))
    return model, folder


@pytest.fixture
def pretrained(written, tmp_path):
    """A pre-trained model, and its directory that a test may change."""
    model, folder = written
    return model, shutil.copytree(folder, tmp_path / "model")
