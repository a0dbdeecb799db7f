"""The tools that use a model and those that export it, as a user runs them."""

import base64
import json
import re

import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.model_folders import write_classifier, write_encoder, write_pretrainer
from tests.support.tiny_bert import GOLDEN
from tools import (
    embed,
    explain,
    export_model,
    export_saved_model,
    grow_vocabulary,
    predict,
    similar,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("models") / "model", num_hidden_layers=2)


def test_lines_become_vectors_and_the_nearest_are_found(model, tmp_path, capsys):
    (tmp_path / "lines.txt").write_text("the dog\na cat\n")
    flags = [f"--model={model}", f"--input_file={tmp_path}/lines.txt"]
    assert embed.main([*flags, f"--output_file={tmp_path}/x.npy"]) == 0
    assert capsys.readouterr().out == f"2 vectors of 16 numbers: {tmp_path}/x.npy\n"
    words = [f"--vectors_file={tmp_path}/x.npy", "--query=a cat", "--top_k=1"]
    assert similar.main([*flags, *words]) == 0
    assert capsys.readouterr().out == "a cat\n  1.000  2  a cat\n"


def test_texts_and_pairs_become_one_page(model, tmp_path, capsys):
    page = tmp_path / "page.html"
    flags = [f"--model={model}", "--text=the dog", "--text=a cat", f"--output_file={page}"]
    assert explain.main([*flags, "--text_pair=runs", "--text_pair=sleeps"]) == 0
    assert capsys.readouterr().out == f"2 texts, 2 layers of 2 heads: {page}\n"
    assert page.read_text().count('"probabilities"') == 2
    for more, said in ((["--text_pair=c"], "--text_pair 1 times"), ([], "more than the 12 tokens")):
        assert explain.main([*flags, "--text=" + "the dog " * 40, *more]) == 1
        assert said in capsys.readouterr().err.replace("`", "")


def attention_in(page):
    (found,) = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page.read_text(), re.S)[1])
    return found


def shares_of(attention):
    return np.frombuffer(base64.b64decode(attention["probabilities"]), "<u2") / 65535


def test_either_engine_gives_the_attention(model, tmp_path):
    pages = [tmp_path / "tensorflow.html", tmp_path / "openvino.html"]
    for page in pages:
        flags = [f"--model={model}", f"--engine={page.stem}", f"--output_file={page}"]
        assert explain.main([*flags, "--text=the dog runs"]) == 0
    first, second = (attention_in(page) for page in pages)
    assert first["tokens"] == second["tokens"] == ["[CLS]", "the", "dog", "runs", "[SEP]"]
    # Rounded as the page holds them.
    assert np.abs(shares_of(first) - shares_of(second)).max() < 1e-3


@pytest.mark.parametrize("export", ["openvino", "saved_model", "masked words"])
def test_an_export_says_what_goes_in_and_what_comes_out(tmp_path, capsys, export):
    if export == "openvino":
        pytest.importorskip("openvino", reason="needs the extra `openvino`")
    tool = export_saved_model if export == "masked words" else export_model
    write = write_pretrainer if export == "masked words" else write_classifier
    model = write(tmp_path / "model", *([] if export == "masked words" else [["no", "yes"]]))
    more = ["--format=openvino"] if export == "openvino" else ["--noverify"]
    assert tool.main([f"--model={model}", f"--output_dir={tmp_path}/out", *more]) == 0
    said = {
        "openvino": ": input_ids, input_mask, segment_ids -> logits\n  client.py: text -> label\n",
        "saved_model": "  text: text -> label, logits, probabilities",
        "masked words": "  fill_mask_text: text -> mask_counts, num_truncated, probabilities, tok",
    }
    printed = capsys.readouterr().out
    assert said[export] in printed
    assert ("Loaded again: 2 calls, largest difference" in printed) == (export == "openvino")
    assert (tmp_path / "out" / "saved_model.pb").exists() == (export != "openvino")


def test_an_export_without_a_client_says_what_opens_it(tmp_path, capsys):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    flags = [f"--model={write_pretrainer(tmp_path / 'model')}", f"--output_dir={tmp_path}/out"]
    assert export_model.main([*flags, "--format=openvino", "--noverify"]) == 0
    said, command = capsys.readouterr().out.split("  no client.py: ")[1].split("; ")
    assert said.startswith("the model takes more than texts")
    assert command == f"predict --model={tmp_path}/out opens it\n"
    assert predict.main([f"--model={tmp_path}/out", "--text=the [MASK]"]) == 0
    assert capsys.readouterr().out.startswith("the [MASK]\n")


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


def test_the_input_is_never_replaced(tmp_path, capsys):
    first = tmp_path / "first"
    assert grow_vocabulary.main([*INPUT, f"--output={first}", "--words=stent"]) == 0
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    again = [f"--input={first}", f"--output={first}", "--words=zugzwang"]
    assert grow_vocabulary.main(again) == 1
    assert "lies there and would be replaced; name another output" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
