"""The benchmark of tokenizers and data, whole but tiny."""

import json
from itertools import islice

import pytest

from keras_bert_impl.tokenization import certificate
from tests.support.pretraining_corpus import make_config, write_vocabulary
from tools.benchmarks import tokenizer

LINES = ["the fox ran home.", "A slowly hen saw Foxes", "", "the unknown word"] * 256


def printed_rows(text):
    return [json.loads(row) for row in text.splitlines() if row[:1] == "{"]


@pytest.mark.long
@pytest.mark.slow
def test_every_tokenizer_is_timed_and_held_to_the_reference(tmp_path, monkeypatch, capsys):
    for name in ("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"):
        monkeypatch.setattr(f"tensorflow.config.threading.{name}", lambda count: None)
    for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "")  # set anew, and given back at the end
    vocab_file = write_vocabulary(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES))
    words = [f"--vocab_file={vocab_file}", f"--input_file={text}", "--num_lines=1024"]
    assert tokenizer.main([*words, "--rounds=2"]) == 0
    rows = printed_rows(capsys.readouterr().out)
    differing = {row["who"]: row["differing lines"] for row in rows}
    assert len(differing) == 4
    assert differing["this project"] == differing["this project, in a graph"] == [0, 0]
    assert [len(row["MB/s"]) for row in rows] == [2] * 4


def test_a_line_that_comes_out_differently_is_counted(tmp_path):
    config = tokenizer.TokenizerConfig(
        vocab_file=str(write_vocabulary(tmp_path)), input_file=("a",)
    )
    cuts = {"drops a token": (lambda lines: lines, lambda lines: [[] for _ in lines])}
    assert tokenizer.differing_lines(cuts, [["the fox", "", "a hen"]], config.settings) == {
        "drops a token": 2
    }


@pytest.fixture
def certify(tmp_path, monkeypatch, capsys):
    """Certifies with the first code points only; gives the exit code and the rows printed."""
    lines = certificate.code_point_lines
    monkeypatch.setattr(certificate, "code_point_lines", lambda: islice(lines(), 3000))
    vocab_file = write_vocabulary(tmp_path)

    def call(*words):
        code = tokenizer.main(["--task=certify", f"--vocab_file={vocab_file}", *words])
        return code, printed_rows(capsys.readouterr().out)

    return call


def test_a_certificate_covers_code_points_and_ones_own_lines(certify, tmp_path):
    (tmp_path / "mine.txt").write_bytes(b"the words\n\xff\n")
    code, (code_points, lines) = certify(f"--input_file={tmp_path}/mine.txt")
    assert code == 0
    assert code_points["compared"] + code_points["left_out"] == 3000
    assert (lines["compared"], lines["differing"]) == (2, 0)
    assert len(certify()[1]) == 1


def test_a_difference_ends_with_an_error(certify, monkeypatch):
    monkeypatch.setattr(certificate.RememberingReference, "encode", lambda self, line: [])
    code, (code_points,) = certify()
    assert code == 1
    assert code_points["differing"] == code_points["compared"]


@pytest.mark.slow
def test_a_run_is_timed_from_text_to_shards(tmp_path, capsys):
    config = make_config(tmp_path)
    arguments = [
        "--task=creation", f"--input_file={config.input_file}", f"--vocab_file={config.vocab_file}",
        "--workers=1", "--max_seq_length=32", "--dupe_factor=2",
    ]  # fmt: skip
    assert tokenizer.main(arguments) == 0
    (row,) = printed_rows(capsys.readouterr().out)
    assert row["who"] == "ours, 1 workers"
    assert row["examples"][0] > 50
    assert row["peak_mib"][0] > 5
