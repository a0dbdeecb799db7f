"""What is timed: rows of questions, and a long passage; the peers' part that is ours is checked."""

import json
from types import SimpleNamespace

import pytest

from tests.support.model_folders import write_encoder
from tests.support.squad_files import write_squad
from tools.benchmarks import questions

TOKENIZER = SimpleNamespace(cls_token_id=2)


@pytest.mark.parametrize(
    ("start", "text", "found"),
    [
        (3, "rained", (4, 4)),
        (3, "rained all", (4, 5)),
        (0, "It", (3, 3)),
        (14, "day", (0, 0)),  # after the window
    ],
)
def test_the_peers_positions_are_those_of_the_answers_tokens(start, text, found):
    """[CLS] when [SEP] it rained all [SEP], a window over "It rained all day"."""
    sides = [None, 0, None, 1, 1, 1, None]
    spans = [(0, 0), (0, 4), (0, 0), (0, 2), (3, 9), (10, 13), (0, 0)]
    question = {"answers": [{"text": text, "answer_start": start}]}
    assert questions.span_of(sides, spans, [2, 9, 3, 9, 9, 9, 3], TOKENIZER, question) == found


@pytest.mark.slow
def test_rows_are_timed_and_a_long_passage_is_asked(tmp_path, capsys):
    arguments = [
        f"--train_file={write_squad(tmp_path / 'train.json')}",
        f"--model={write_encoder(tmp_path / 'model')}",
        "--contenders=ours,original", "--sample=4", "--passage_tokens=200", "--max_seq_length=16",
        "--doc_stride=4", "--max_query_length=4",
    ]  # fmt: skip
    assert questions.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("needs --bert_source" in line for line in lines)
    ours, passage = json.loads(lines[-1])["rows"]
    assert (ours["contender"], ours["questions"]) == ("ours", 24)
    assert ours["questions_per_second"] > 0
    assert passage["passage_tokens"] == 200
    assert passage["peak_mib"] >= passage["before"] > 50
