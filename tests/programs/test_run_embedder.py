"""run_embedder, whole: trained, stopped and resumed, evaluated, opened."""

import json
import math
import shutil

import numpy as np
import pytest

from keras_bert_impl.serving.embedder import Embedder
from tests.support.model_folders import WORDS, write_start
from tools import run_embedder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Questions and answers of a few words, and a model that knows the words."""
    folder = tmp_path_factory.mktemp("embedder")
    write_start(folder / "start")
    words = [word for word in WORDS if word.isalpha()]
    draws = np.random.default_rng(1)
    rows = [" ".join(draws.choice(words, 5)) for _ in range(24)]
    lines = [{"query": " ".join(row.split()[:2]), "document": row} for row in rows]
    for name, some in (("train", lines), ("dev", lines[:8])):
        text = "".join(json.dumps(line) + "\n" for line in some)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    def run(output, *flags, train=True, start="start"):
        given = {
            "train_file": folder / "train.jsonl" if train else None,
            "dev_file": folder / "dev.jsonl",
            "init_checkpoint": folder / start if start else None,
            "output_dir": folder / output,
            "train_batch_size": 4 if train else None,
            "learning_rate": 1e-3 if train else None,
            "num_train_epochs": 4 if train else None,
            "max_seq_length": 10 if train else None,
        }
        words = [f"--{name}={value}" for name, value in given.items() if value is not None]
        assert run_embedder.main([*words, "--do_eval", *(["--do_train"] * train), *flags]) == 0
        return folder / output

    return run


PROMPTS = ("--query_prompt=the ", "--document_prompt=a list . ", "--matryoshka_dims=16,8")


@pytest.fixture(scope="module")
def whole(run):
    return run("whole", *PROMPTS, "--mine_negatives=1", "--save_checkpoints_steps=4")


def figures_of(folder):
    lines = (folder / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def test_figures_of_the_start_the_end_and_each_size_stand_beside_one_another(whole):
    figures = figures_of(whole)
    assert {"eval_ndcg@10", "start_ndcg@10", "eval_ndcg@10_of_8", "eval_mrr@10"} <= figures.keys()
    assert figures["eval_ndcg@10"] > figures["start_ndcg@10"]
    guesses = json.loads((whole / "guesses.json").read_text(encoding="utf-8"))
    assert guesses["ndcg@10"]["words"] == "BM25, by words alone"
    steps = [json.loads(line)["step"] for line in (whole / "evaluations.jsonl").open()]
    assert steps[0] == 0
    assert steps[-1] == 24


def test_the_model_keeps_prompts_length_and_sizes(whole):
    embedder = Embedder.from_pretrained(whole / "model")
    settings = embedder.settings
    assert dict(settings.prompts) == {"query": "the ", "document": "a list . "}
    assert (settings.max_seq_length, settings.dimensions) == (10, (16, 8))
    assert np.array_equal(embedder.embed(["dog"], "query"), embedder.embed(["the dog"]))


def test_a_stopped_run_gives_the_bytes_of_one_that_was_not(whole, run):
    flags = (*PROMPTS, "--mine_negatives=1", "--save_checkpoints_steps=4")
    resumed = run("resumed", *flags, "--stop_after_step=4")
    assert not (resumed / "model").exists()
    for checkpoint in (resumed / "checkpoints").iterdir():
        if checkpoint.is_dir():
            kept = Embedder.from_pretrained(checkpoint).settings
            assert dict(kept.prompts) == {"query": "the ", "document": "a list . "}
    run("resumed", *flags)
    weights = [(one / "model" / "model.safetensors").read_bytes() for one in (whole, resumed)]
    assert weights[0] == weights[1]
    assert figures_of(whole) == figures_of(resumed)


def test_a_kept_model_is_evaluated_as_it_was_at_the_end_of_its_training(whole, run, folder):
    shutil.copytree(whole / "model", folder / "kept")
    figures = figures_of(run("again", train=False, start="kept"))
    trained = figures_of(whole)
    assert figures
    assert all(trained[name] == pytest.approx(value, abs=1e-6) for name, value in figures.items())


def test_the_figures_of_the_start_are_those_of_this_dev_file(whole, run, folder):
    lines = (folder / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    shutil.copytree(whole, folder / "other")
    (folder / "few.jsonl").write_text("\n".join(lines[:4]), encoding="utf-8")
    again = run("other", *PROMPTS, "--mine_negatives=1", f"--dev_file={folder}/few.jsonl")
    assert not {"start_ndcg@10"} & figures_of(again).keys()


def test_classes_are_trained_and_judged_by_what_is_near(folder, tmp_path):
    both = [(more, word) for word in ("dog", "cat") for more in ("a", "the")]
    rows = [{"text": f"{more} {word}", "label": word} for more, word in both]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")
    words = f"--train_file={tmp_path}/rows.jsonl --dev_file={tmp_path}/rows.jsonl --do_train"
    words += f" --init_checkpoint={folder}/start --output_dir={tmp_path}/run --do_eval"
    words += " --train_batch_size=2 --num_train_epochs=1 --max_seq_length=8"
    assert run_embedder.main(words.split()) == 0
    assert math.isfinite(figures_of(tmp_path / "run")["eval_nearest_accuracy"])


def test_random_weights_are_trained(folder, tmp_path):
    of_start = {"bert_config_file": "config.json", "vocab_file": "vocab.txt"}
    config = [f"--{name}={folder}/start/{file}" for name, file in of_start.items()]
    scratch = [*config, f"--train_file={folder}/train.jsonl", f"--output_dir={tmp_path}/new"]
    steps = ["--do_train", "--train_batch_size=4", "--num_train_epochs=0.2", "--max_seq_length=7"]
    assert run_embedder.main([*scratch, *steps]) == 0
    assert Embedder.from_pretrained(tmp_path / "new" / "model").max_seq_length == 7


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--loss=cosent"], "--loss=cosent is not for pairs"),
        (["--loss_margin=2"], "--loss_margin is not for --loss=mnrl; leave it out"),
        (["--do_predict"], "--do_predict: vectors are written by the tool embed"),
        (["--train_batch_size=64"], "--train_batch_size=64: there are not so many rows"),
        (["--loss=triplet", "--mine_negatives=2"], "--loss=triplet takes rows of 3 texts"),
        (["--matryoshka_dims=16,99"], "--matryoshka_dims=99 must be at most the model's 16"),
    ],
)
def test_what_does_not_fit_is_one_sentence(folder, capsys, flags, sentence):
    files = [f"--train_file={folder}/train.jsonl", f"--init_checkpoint={folder}/start"]
    given = [*files, f"--output_dir={folder}/refused", "--do_train", "--num_train_epochs=9"]
    given.append("--max_seq_length=10")
    assert run_embedder.main([*given, *flags]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
