import dataclasses
import logging

import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import (
    GrowConfig,
    PortableModel,
    grow_checkpoint,
    grow_vocabulary,
)
from keras_bert_impl.checkpoints.restore import RestoreReport
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from tests.support.model_folders import write_encoder

TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##hap", "##py"]


def model(rows=9):
    config = BertConfig(vocab_size=rows, hidden_size=2, num_attention_heads=1)
    table = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
    weights = {
        "embeddings/token_embeddings": table,
        "masked_lm/output_bias": table[:, 0] * 10,
        "pooler/dense/bias": np.ones(2, np.float32),
    }
    text = TextSettings(Vocabulary(TOKENS))
    return PortableModel(weights, config, text, RestoreReport("x", (), (), ()))


def test_unused_entries_are_filled_first_and_then_the_tables_grow():
    before = model()
    grown, new = grow_vocabulary(before, ["unhappy", "happyun"])
    assert [(entry.id, entry.token) for entry in new] == [(1, "unhappy"), (9, "happyun")]
    assert grown.text.vocabulary.tokens[1] == "unhappy"
    assert grown.config.vocab_size == 10
    table = grown.weights["embeddings/token_embeddings"]
    assert table[1].tolist() == [14.0, 15.0]  # the mean of rows 6, 7 and 8
    assert table[9].tolist() == [4.0, 5.0]  # cannot be cut: the row of [UNK]
    assert grown.weights["masked_lm/output_bias"][1] == 140.0
    old = [n for n in range(9) if n != 1]
    assert np.array_equal(table[old], before.weights["embeddings/token_embeddings"][old])
    assert before.text.vocabulary.tokens[1] == "[unused0]"
    assert before.weights["embeddings/token_embeddings"][1].tolist() == [2.0, 3.0]
    assert grown.weights["pooler/dense/bias"] is before.weights["pooler/dense/bias"]


def test_unused_entries_can_be_left_alone():
    grown, new = grow_vocabulary(model(), ["unhappy"], fill_unused=False)
    assert new[0].id == 9
    assert grown.text.vocabulary.tokens[1] == "[unused0]"


def test_rows_without_a_token_are_used_before_the_table_grows():
    grown, new = grow_vocabulary(model(rows=12), ["unhappy"], fill_unused=False)
    assert (new[0].id, grown.config.vocab_size) == (9, 12)
    assert grown.weights["embeddings/token_embeddings"].shape == (12, 2)


def test_a_token_that_continues_words_is_made_from_such_tokens():
    _, new = grow_vocabulary(model(), ["##happy", "##un"])
    assert [entry.made_from for entry in new] == [("##hap", "##py"), ("[UNK]",)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "`words` has none"),
        (["un", "un"], "`words` has none to add: every one of them is in the vocabulary"),
        (["two words"], "'two words' is no single word"),
        (["##"], "'##' is no single word"),
    ],
)
def test_words_that_cannot_be_added_are_named(words, sentence):
    with pytest.raises(UserError, match=sentence):
        grow_vocabulary(model(), words)


def test_words_that_are_there_are_skipped_and_counted(caplog):
    """A whole vocabulary that was learned on other text may be given."""
    words = ["[PAD]", "[UNK]", "new", "un", "new", "##hap", "##new"]
    with caplog.at_level(logging.INFO):
        grown, new = grow_vocabulary(model(), words)
    assert [entry.token for entry in new] == ["new", "##new"]
    assert caplog.messages == [
        "of 7 words 2 are new; skipped: 4 that are in the vocabulary, 1 given twice"
    ]
    assert len(set(grown.text.vocabulary.tokens)) == len(grown.text.vocabulary)


@pytest.mark.parametrize("word", ["Dogs", "##QQ", "##a.b", "##東"])
def test_words_that_the_tokenizer_never_gives_are_refused(tmp_path, word):
    folder = write_encoder(tmp_path / "model")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    grow = GrowConfig(input=str(folder), output=str(tmp_path / "grown"), words=[word])
    with pytest.raises(UserError, match=f"new word '{word}': the tokenizer would never give it"):
        grow_checkpoint(grow)
    assert grow_checkpoint(dataclasses.replace(grow, words=["dogcat", "##qq"]))
