"""What is timed: rows of questions, and a long passage; the peers' part that is ours is checked."""

import json
from types import SimpleNamespace

import pytest

from tests.support.model_folders import write_encoder
from tests.support.squad_files import write_squad
from tools.benchmarks import questions
from tools.benchmarks.questions import QuestionsConfig

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


@pytest.fixture
def inputs(tmp_path):
    train, model = write_squad(tmp_path / "train.json"), write_encoder(tmp_path / "model")
    lengths = {"max_seq_length": 16, "doc_stride": 4, "max_query_length": 4}
    return QuestionsConfig(train_file=train, model=model, sample=4, **lengths)


def test_all_questions_of_a_file_become_rows(inputs, tmp_path):
    count, seconds = questions.our_features(inputs, inputs.train_file, tmp_path / "rows")
    assert count == 24
    assert seconds > 0


@pytest.mark.slow
def test_a_long_passage_is_asked(inputs, tmp_path):
    found = questions.ask_long_passage(inputs, 200, tmp_path / "served")
    assert found["peak_mib"] >= found["before"] > 50


def test_contenders_stand_in_a_table(inputs, monkeypatch, capsys):
    """Ours gets the whole file, the others a part of it; the original only if it is there."""
    files = {}

    def measured(config, what, file):
        files[what] = file
        if what == "original":
            return in_a_process(config, what, file)
        return {"questions": 8, "seconds": 2.0, "peak_mib": 90.0, "before": 80.0}

    in_a_process = questions._in_a_process
    monkeypatch.setattr(questions, "_in_a_process", measured)
    flags = [f"--train_file={inputs.train_file}", f"--model={inputs.model}", "--passage_tokens=200"]
    assert questions.main(flags) == 0
    printed = capsys.readouterr()
    assert "original is left out: it needs --bert_source" in printed.err
    lines = printed.out.splitlines()
    rows = json.loads(lines[-1])["rows"]
    assert [row.get("contender") for row in rows] == ["ours", "transformers", None]
    assert [row.get("questions_per_second") for row in rows] == [4.0, 4.0, None]
    assert files["ours"] == inputs.train_file != files["transformers"] == files["200"]


@pytest.mark.long
@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own(inputs):
    found = questions._in_a_process(inputs, "ours", inputs.train_file)
    assert found["questions"] == 24
    assert found["peak_mib"] > 50
