import html
import re

import pytest

import keras_bert_impl as kb
from keras_bert_impl.serving.attention import AttentionModel
from tests.support.model_folders import write_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("notebook") / "model")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(folder):
    shown = kb.show_attention(folder, "the dog")
    frame = shown._repr_html_()
    assert re.match(r'<iframe title="Attention" sandbox="allow-scripts allow-downloads" ', frame)
    assert html.unescape(re.search('srcdoc="(.*?)"', frame, re.DOTALL)[1]) == shown.page()


@pytest.mark.parametrize(
    "arguments",
    [(("the dog", "runs"),), ("the dog", "runs"), ([("the dog", "runs")],)],
    ids=["a tuple", "two arguments", "a list"],
)
def test_a_pair_may_be_given_in_three_ways(folder, arguments):
    shown = kb.show_attention(AttentionModel.open(folder), *arguments)
    assert shown.attentions[0].tokens == ("[CLS]", "the", "dog", "[SEP]", "runs", "[SEP]")
