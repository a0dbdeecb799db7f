import json
import shutil

import pytest

from tests.support.model_folders import write_pretrainer
from tests.support.tiny_bert import GOLDEN
from tools import convert_checkpoint

PREFIX = GOLDEN / "pretrain" / "init" / "bert_model.ckpt"
BESIDE = [
    f"--bert_config_file={GOLDEN / 'pretrain' / 'bert_config.json'}",
    f"--vocab_file={GOLDEN / 'pretrain' / 'vocab.txt'}",
]


def test_there_and_back_gives_the_same_bytes(tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    arguments = [f"--input={PREFIX}", f"--output={first}", "--do_lower_case", *BESIDE]
    assert convert_checkpoint.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "converted          46  embeddings (5), layer_0 (16), layer_1 (16)" in shown
    assert shown.endswith(f"written to {first} (hugging_face, float32)\n")
    google = tmp_path / "google" / "bert_model.ckpt"
    assert convert_checkpoint.main([f"--input={first}", f"--output={google}"]) == 0
    again = [f"--input={google}", f"--output={second}", "--do_lower_case"]
    assert convert_checkpoint.main(again) == 0
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--input=/no/such", "--output=x"], "/no/such: no such file or folder; check the path"),
        (
            [f"--input={PREFIX}", "--output=x"],
            "bert_config.json: no such file; name the configuration",
        ),
        (
            [f"--input={PREFIX}", "--output=x", *BESIDE],
            "give --do_lower_case for an uncased model or --nodo_lower_case",
        ),
        ([f"--input={PREFIX}"], "--output"),
    ],
)
def test_a_mistake_gives_one_sentence_and_writes_nothing(
    tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    assert convert_checkpoint.main(arguments) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_is_refused_with_the_way_out(tmp_path, capsys):
    shutil.copy(GOLDEN / "pretrain" / "vocab.txt", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert convert_checkpoint.main([f"--input={tmp_path}", "--output=x"]) == 1
    assert "safe_serialization=True" in capsys.readouterr().err


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    arguments = [f"--input={PREFIX}", "--do_lower_case", *BESIDE, f"--output={tmp_path}"]
    assert convert_checkpoint.main(arguments) == 1
    assert "exists and is no model directory; name another output" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_weights_with_another_tokenizer_go_to_tf1_but_are_not_called_bert_s(tmp_path, capsys):
    folder = write_pretrainer(tmp_path / "model")
    path = folder / "tokenizer_config.json"
    settings = {**json.loads(path.read_text()), "tokenizer_class": "BertJapaneseTokenizer"}
    path.write_text(json.dumps(settings))
    google = tmp_path / "google" / "bert_model.ckpt"
    assert convert_checkpoint.main([f"--input={folder}", f"--output={google}"]) == 0
    assert convert_checkpoint.main([f"--input={folder}", f"--output={tmp_path / 'copy'}"]) == 1
    assert "its text is cut by BertJapaneseTokenizer" in capsys.readouterr().err
