import json
import lzma

import numpy as np
import pytest

from tests.support.tiny_bert import GOLDEN
from tools import extract_features

FORWARD, PRETRAIN = GOLDEN / "forward", GOLDEN / "pretrain"
MODEL = [
    f"--init_checkpoint={PRETRAIN / 'init' / 'bert_model.ckpt'}",
    f"--bert_config_file={PRETRAIN / 'bert_config.json'}",
    f"--vocab_file={PRETRAIN / 'vocab.txt'}",
    "--do_lower_case",
    "--max_seq_length=64",
]
LINES = FORWARD / "extract_input.txt"


def run(output, *flags):
    return extract_features.main(
        [f"--input_file={LINES}", f"--output_file={output}", *MODEL, *flags]
    )


def original_records():
    with lzma.open(FORWARD / "extract_features_layers_-1_-2.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


def test_the_json_is_the_original_s(tmp_path):
    assert run(tmp_path / "features.jsonl", "--layers=-1,-2") == 0
    records = [json.loads(line) for line in (tmp_path / "features.jsonl").open()]
    originals = original_records()
    assert [sorted(record) for record in records] == [["features", "linex_index"]] * 5
    for record, original in zip(records, originals, strict=True):
        assert record["linex_index"] == original["linex_index"]
        for token, expected in zip(record["features"], original["features"], strict=True):
            assert token["token"] == expected["token"]
            for layer, wanted in zip(token["layers"], expected["layers"], strict=True):
                assert layer["index"] == wanted["index"]
                np.testing.assert_allclose(layer["values"], wanted["values"], atol=1.1e-5)


def test_the_command_of_the_original_s_readme_runs_unchanged(tmp_path):
    (tmp_path / "google").mkdir()
    unsaid = [flag for flag in MODEL if flag != "--do_lower_case"]
    flags = ["--layers=-1", "--batch_size=8", "--nouse_tpu", "--num_tpu_cores=8", "--master=local"]
    here, there = tmp_path / "here.jsonl", tmp_path / "google" / "there.jsonl"
    assert run(here, "--layers=-1") == 0
    lines = [f"--input_file={LINES}", f"--output_file={there}"]
    assert extract_features.main([*lines, *unsaid, *flags]) == 0
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.parametrize(("pooling", "combination"), [("mean", "sum"), ("none", "concat")])
def test_arrays_are_the_same_numbers_pooled(tmp_path, pooling, combination):
    flags = ["--layers=-1,-2", "--output_format=npz", "--batch_size=2"]
    assert run(tmp_path / "a.npz", *flags, f"--pooling={pooling}",
               f"--layer_combination={combination}") == 0  # fmt: skip
    arrays = np.load(tmp_path / "a.npz")
    rows = []
    for record in original_records():
        tokens = np.array([[layer["values"] for layer in t["layers"]] for t in record["features"]])
        joined = tokens.sum(1) if combination == "sum" else tokens.reshape(len(tokens), -1)
        rows.append(joined if pooling == "none" else joined.mean(0)[None])
    np.testing.assert_allclose(arrays["vectors"], np.concatenate(rows), atol=3e-5)
    assert (
        arrays["offsets"].tolist()
        == np.cumsum([0] + [len(record["features"]) for record in original_records()]).tolist()
    )
    assert len(arrays["ids"]) == arrays["offsets"][-1]


def test_bfloat16_is_near_the_original_s_numbers(tmp_path):
    flags = ["--layers=-1", "--output_format=npz", "--precision=bfloat16"]
    assert run(tmp_path / "a.npz", *flags) == 0
    vectors = np.load(tmp_path / "a.npz")["vectors"]
    records = [token["layers"][0]["values"] for r in original_records() for token in r["features"]]
    assert vectors.dtype == np.float32
    assert 0 < np.abs(vectors - np.array(records)).max() < 0.06  # of numbers of size 1


def test_an_empty_line_keeps_its_place(tmp_path):
    lines, output = tmp_path / "lines.txt", tmp_path / "a.npz"
    lines.write_text("the old city\n\nthe river\n")
    arguments = [f"--input_file={lines}", f"--output_file={output}", "--output_format=npz"]
    assert extract_features.main([*arguments, *MODEL, "--pooling=cls", "--layers=-1"]) == 0
    arrays = np.load(output)
    assert arrays["vectors"].shape == (3, 64)
    assert np.diff(arrays["offsets"])[1] == 2  # [CLS] [SEP]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--layers=5"], "there is no layer 5; the model has 2"),
        (["--layers=last"], "give whole numbers separated by commas such as -1,-2"),
        (["--layers=-1", "--max_seq_length=200"], "more than the 128 positions of the model"),
        (["--layers=-1", "--input_file=/no/such/file"], "/no/such/file: no such file"),
    ],
)
def test_a_mistake_gives_one_sentence(tmp_path, capsys, flags, words):
    assert run(tmp_path / "a.jsonl", *flags) == 1
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_text_and_folders_are_not_replaced(tmp_path, capsys):
    assert run(tmp_path) == 1
    assert "is a folder; name a file in it" in capsys.readouterr().err
    lines = tmp_path / "lines.txt"
    lines.write_text("the old city\n")
    assert run(lines, f"--input_file={lines}") == 1
    assert "is input, but the output would take its place" in capsys.readouterr().err
    assert lines.read_text() == "the old city\n"
