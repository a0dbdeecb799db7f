import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.tiny_bert import GOLDEN
from tools import grow_vocabulary

PRETRAIN = GOLDEN / "pretrain"
INPUT = [
    f"--input={PRETRAIN / 'init' / 'bert_model.ckpt'}",
    f"--bert_config_file={PRETRAIN / 'bert_config.json'}",
    f"--vocab_file={PRETRAIN / 'vocab.txt'}",
    "--do_lower_case",
]


@pytest.mark.parametrize("output", ["model", "google/model.ckpt"])
def test_new_words_are_one_token_in_every_format(tmp_path, capsys, output):
    (tmp_path / "words.txt").write_text("zugzwang\n")
    flags = [
        f"--output={tmp_path / output}",
        "--words=stent",
        f"--words_file={tmp_path / 'words.txt'}",
    ]
    assert grow_vocabulary.main([*INPUT, *flags, "--nofill_unused"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [["1000", "stent"], ["1001", "zugzwang"]]
    grown = read_portable(tmp_path / output, do_lower_case=True)
    assert Tokenizer(grown.text).encode("Stent, Zugzwang") == [
        1000,
        grown.text.vocabulary.id_of(","),
        1001,
    ]
    table = grown.weights["embeddings/token_embeddings"]
    assert table.shape == (1002, 64)
    sources = [grown.text.vocabulary.id_of(token) for token in lines[0][2].split()]
    np.testing.assert_allclose(table[1000], table[sources].mean(axis=0), atol=1e-8)
    assert grown.weights["masked_lm/output_bias"].shape == (1002,)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("the", "every one of them is in the vocabulary"),
        ("Stent", "would never give it"),
        ("a-b", "never give"),
    ],
)
def test_a_word_that_cannot_be_used_is_refused(tmp_path, capsys, word, sentence):
    assert grow_vocabulary.main([*INPUT, f"--output={tmp_path / 'm'}", f"--words={word}"]) == 1
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_input_is_never_replaced(tmp_path, capsys):
    first = tmp_path / "first"
    assert grow_vocabulary.main([*INPUT, f"--output={first}", "--words=stent"]) == 0
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    again = [f"--input={first}", f"--output={first}", "--words=zugzwang"]
    assert grow_vocabulary.main(again) == 1
    assert "lies there and would be replaced; name another output" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
