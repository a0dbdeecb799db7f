import pytest

from keras_bert_impl.config import named_config
from keras_bert_impl.errors import UserError
from pipelines.runs.pretraining_start import read_model_config
from tests.support.tiny_bert import GOLDEN

VOCABULARY = GOLDEN / "pretrain" / "vocab.txt"  # 1,000 pieces


def test_a_published_size_takes_the_pieces_of_the_vocabulary():
    config = read_model_config(None, model_size="mini", vocab_file=str(VOCABULARY))
    assert config == named_config("mini", 1000)


def test_a_size_beside_a_configuration_is_refused():
    with pytest.raises(UserError, match="--model_size=mini is for a new model"):
        read_model_config("bert_config.json", None, "mini", str(VOCABULARY))


def test_without_anything_the_three_ways_are_named():
    with pytest.raises(UserError, match="give it, or --model_size, or an --init_checkpoint"):
        read_model_config(None)
