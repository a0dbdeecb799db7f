"""run_squad as a user runs it: trained until it knows, scored, answered, refused in a sentence."""

import json

import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.training.checkpoints import read_description
from tests.support.model_folders import write_encoder
from tests.support.squad_files import write_squad
from tools import run_squad

RATES = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_encoder(folder / "encoder", max_position_embeddings=16, **RATES)
    write_squad(folder / "train.json", 160)
    write_squad(folder / "dev.json", 24, seed=2)
    write_squad(folder / "train2.json", 160, negative=True)
    write_squad(folder / "dev2.json", 24, seed=2, negative=True)
    return folder


def words(inputs, output, *flags):
    return [
        f"--init_checkpoint={inputs}/encoder",
        f"--train_file={inputs}/train.json",
        f"--predict_file={inputs}/dev.json",
        f"--output_dir={output}",
        "--max_seq_length=16",
        "--doc_stride=4",
        "--max_query_length=4",
        "--train_batch_size=16",
        "--notrim_padding",  # each length of a batch costs seconds of tracing
        "--learning_rate=5e-3",
        "--num_train_epochs=12",
        "--do_train",
        "--do_predict",
        "--do_eval",
        *flags,
    ]


def figures(folder):
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


@pytest.mark.slow
def test_it_learns_scores_and_answers(inputs, tmp_path):
    run = tmp_path / "run"
    more = [f"--train_file={inputs}/train2.json", f"--predict_file={inputs}/dev2.json"]
    more += ["--version_2_with_negative", "--null_score_diff_threshold=auto", "--eval_steps=60"]
    assert run_squad.main(words(inputs, run, *more)) == 0
    found = figures(run)
    assert found["eval_f1"] > 90
    assert found["eval_best_f1"] == pytest.approx(found["eval_f1"])
    questions = json.loads((inputs / "dev2.json").read_text())
    identifiers = [x["qas"][0]["id"] for x in questions["data"][0]["paragraphs"]]
    for name in ("predictions.json", "nbest_predictions.json", "null_odds.json"):
        assert list(json.loads((run / name).read_text())) == identifiers
    assert "" in json.loads((run / "predictions.json").read_text()).values()
    kept = task_settings(find_model(run / "model").config)["null_score_diff_threshold"]
    assert kept == found["eval_null_score_diff_threshold"]
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    on_the_way = [json.loads(line) for line in (run / "evaluations.jsonl").open()]
    assert [line["step"] for line in on_the_way][:2] == [60, 120]
    best = max(on_the_way, key=lambda line: line["f1"])["step"]
    assert read_description(run / "best_checkpoint")["step"] == best
    assert len((run / "answers.tsv").read_text().splitlines()) == len(identifiers) + 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--predict_file=/no/dev.json"], "/no/dev.json: no such file"),
        (["--max_query_length=13"], "--max_seq_length=16 must be more than --max_query_length=13"),
        (["--nodo_train"], "holds no trained head for squad"),
        (["--metric=korquad", "--version_2_with_negative"], "--metric=korquad has no figures"),
        (["--null_score_diff_threshold=high"], "--null_score_diff_threshold=high is no number"),
        (["--null_score_diff_threshold=auto"], "add --version_2_with_negative, or"),
    ],
)
def test_a_bad_flag_is_named(inputs, tmp_path, capsys, flags, sentence):
    assert run_squad.main([*words(inputs, tmp_path / "run"), *flags]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


def test_a_file_with_unanswerable_questions_needs_the_flag(inputs, tmp_path, capsys):
    flags = [f"--train_file={inputs}/train2.json"]
    assert run_squad.main([*words(inputs, tmp_path / "run"), *flags]) == 1
    error = capsys.readouterr().err
    assert "question 'q1' (article 'Made') is impossible to answer" in error
    assert "set --version_2_with_negative" in error
