import tensorflow as tf

from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.kernels import cut_tokens, replace_characters
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

MODELS = load_kernel_models(
    TextSettings(Vocabulary([*SPECIAL_TOKENS, "deja", "vu", "##s", "!", "-"]))
)
LINES = ["D\u00e9j\u00e0-vus!", "", "vu vu"]


def rows(values, row_splits):
    return tf.RaggedTensor.from_row_splits(values, row_splits).to_list()


def test_characters_are_replaced_and_say_where_they_came_from():
    replaced = replace_characters(tf.constant(LINES[:1]), MODELS.normalizer, with_places=True)
    assert replaced.lines.numpy().tolist() == [b"deja-vus!"]
    # The accented letters have two bytes each in the line; the last position is its end.
    assert rows(replaced.positions, replaced.row_splits) == [[0, 1, 3, 4, 6, 7, 8, 9, 10, 11]]


def test_positions_are_given_only_where_they_are_asked_for():
    replaced = replace_characters(tf.constant(LINES), MODELS.normalizer)
    assert len(replaced.lines) == 3
    assert tf.size(replaced.positions) == 0


def test_lines_are_cut_into_the_longest_tokens_with_their_spans():
    cut = cut_tokens(tf.constant(["deja - vus !", "", "vu xx"]), MODELS.wordpiece)
    assert rows(cut.ids, cut.row_splits) == [[5, 9, 6, 7, 8], [], [6, 1]]
    assert rows(cut.starts, cut.row_splits) == [[0, 5, 7, 9, 11], [], [0, 3]]
    assert rows(cut.ends, cut.row_splits) == [[4, 6, 9, 10, 12], [], [2, 5]]
