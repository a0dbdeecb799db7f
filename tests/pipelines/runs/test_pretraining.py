"""The job as a function; what the tool makes of it is told in tests/tools and tests/programs."""

import dataclasses
import json
import re

import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.pretraining import run_pretraining
from pipelines.runs.pretraining_config import RunPretrainingConfig
from tests.support.model_folders import tiny_config
from tests.support.pretraining_corpus import RECIPE, make_shards
from tests.support.pretraining_run import GOLDEN, config_with_dropout

SMALL = {}


@pytest.fixture(scope="module", autouse=True)
def one_layer(tmp_path_factory):
    SMALL["bert_config_file"] = str(config_with_dropout(tmp_path_factory.mktemp("config")))


def config(folder, training=(), **changes):
    options = {
        **SMALL,
        "input_file": (str(GOLDEN / "train.tfrecord"),),
        "output_dir": str(folder),
        "vocab_file": str(GOLDEN / "vocab.txt"),
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "max_eval_steps": 2,
        "training": TrainingConfig(
            **{
                "num_train_steps": 4,
                "num_warmup_steps": 1,
                "train_batch_size": 8,
                "log_steps": 1,
                "kernels": "plain",
                **dict(training),
            }
        ),
    }
    return RunPretrainingConfig(**{**options, **changes})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, run_pretraining(config(folder, do_train=True, do_eval=True, flags="--a=1\n"))


def test_a_run_ends_with_its_model_its_figures_and_its_flags(trained):
    folder, results = trained
    assert (results.training.step, results.training.finished) == (4, True)
    assert results.evaluation["global_step"] == 4
    assert (folder / "model" / "model.safetensors").exists()
    assert (folder / "learning_curve.png").exists()
    assert (folder / "flags.cfg").read_text() == "--a=1\n"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["tokens_per_second"] > 0
    assert 0 < lines[0]["padding_share"] < 1


def test_a_finished_run_is_left_as_it_is(trained):
    folder, _ = trained
    again = config(folder, do_train=True, do_eval=True, flags="--a=2\n")
    results = run_pretraining(again)
    assert results.already_finished
    assert results.training is None
    assert (results.evaluation, results.guesses) == (trained[1].evaluation, trained[1].guesses)


def test_a_finished_run_is_evaluated_on_another_set_and_refuses_one_that_is_not_there(trained):
    folder, results = trained
    other = {"eval_input_file": (str(GOLDEN / "train.tfrecord"),), "max_eval_steps": 1}
    fewer = run_pretraining(config(folder, do_train=True, do_eval=True, **other))
    assert not fewer.already_finished
    assert fewer.evaluation["loss"] != results.evaluation["loss"]
    assert run_pretraining(config(folder, do_train=True, do_eval=True, **other)).already_finished
    typo = config(folder, do_train=True, do_eval=True, eval_input_file=("no.tfrecord",))
    with pytest.raises(UserError, match=r"no\.tfrecord"):
        run_pretraining(typo)
    again = run_pretraining(config(folder, do_train=True, do_eval=True))
    assert again.evaluation == pytest.approx(results.evaluation)


def test_the_log_says_how_many_of_the_held_out_examples_are_read(tmp_path, caplog):
    with caplog.at_level("INFO"):
        run_pretraining(config(tmp_path, do_train=True, do_eval=True, max_eval_steps=1))
    (said,) = [one for one in caplog.messages if "max_eval_steps" in one]
    assert re.fullmatch(r"Evaluated on 8 of \d+ examples \(`max_eval_steps`\)\.", said)


def test_figures_stand_beside_what_guessing_reaches(trained):
    folder, results = trained
    assert set(results.guesses) == set(results.evaluation) - {"global_step", "loss"}
    assert 0.3 < results.guesses["next_sentence_accuracy"].value < 1
    kept = json.loads((folder / "guesses.json").read_text())
    assert {name: guess["value"] for name, guess in kept.items()} == {
        name: guess.value for name, guess in results.guesses.items()
    }
    names = {line.split(" = ")[0] for line in (folder / "eval_results.txt").open()}
    assert names == set(results.evaluation)  # the original's names and no others
    value, guess = results.evaluation["masked_lm_loss"], kept["masked_lm_loss"]["value"]
    card = (folder / "model" / "README.md").read_text()
    assert f"| masked_lm_loss | {value:.6g} | {guess:.4g} |" in card
    assert "_step |" not in card


def test_a_trained_model_is_evaluated_without_training(trained):
    folder, results = trained
    curve = folder / "learning_curve.png"
    curve.unlink()
    again = run_pretraining(config(folder, do_eval=True))
    assert again.evaluation == pytest.approx(results.evaluation)
    assert again.guesses == results.guesses
    assert curve.exists()


def test_a_run_of_hours_is_evaluated_where_that_is_asked_for(tmp_path):
    run_pretraining(config(tmp_path, {"train_hours": 0.0015}, do_train=True))
    assert not (tmp_path / "evaluations.jsonl").read_text()


def test_a_final_evaluation_that_a_stop_cut_short_is_made_up_for(tmp_path):
    training = {"eval_steps": 1, "save_best": True, "ema_decay": 0.9}
    options = {"do_train": True, "do_eval": True, "training": training}
    first = run_pretraining(config(tmp_path, **options)).evaluation
    evaluations, results = tmp_path / "evaluations.jsonl", tmp_path / "eval_results.txt"
    complete = evaluations.read_text()
    results.unlink()
    again = run_pretraining(config(tmp_path, **options)).evaluation
    assert again == pytest.approx(first)
    assert "best_step" in again
    assert [json.loads(line)["step"] for line in evaluations.open()] == [
        json.loads(line)["step"] for line in complete.splitlines()
    ]


def test_a_rehearsal_takes_a_step_tells_mistakes_that_are_paid_for_later_and_leaves_nothing(
    tmp_path, caplog
):
    training = {
        "num_train_steps": 2,
        "num_warmup_steps": 10_000,
        "distribution_strategy": "mirrored",
    }
    results = run_pretraining(config(tmp_path, training, do_train=True, dry_run=True))
    warnings = [line for line in caplog.messages if line.startswith("`")]
    assert [line.partition("=")[0] for line in warnings] == [
        "`num_warmup_steps",
        "`distribution_strategy",
    ]
    (figures,) = results.rehearsal
    assert np.isfinite(figures["loss"])
    assert list(tmp_path.iterdir()) == []


def test_a_left_to_right_model_learns_the_next_token_and_keeps_models_on_its_way(tmp_path):
    shards = make_shards(tmp_path, recipe=dataclasses.replace(RECIPE, masking="dynamic"))
    model = tiny_config(vocab_size=18, max_position_embeddings=32, causal=True).to_google()
    (tmp_path / "bert_config.json").write_text(json.dumps(model))
    run = config(
        tmp_path / "run",
        {"num_train_steps": 30, "learning_rate": 1e-2, "save_checkpoints_steps": 10},
        input_file=(shards.output_file,),
        bert_config_file=str(tmp_path / "bert_config.json"),
        vocab_file=shards.vocab_file,
        max_seq_length=32,
        objective="next_token",
        next_sentence=False,
        save_model_steps=10,
        do_train=True,
        do_eval=True,
    )
    results = run_pretraining(run)
    assert results.evaluation["masked_lm_loss"] < 2.3  # of 18 tokens: guessing is 2.9
    kept = sorted(path.name for path in (tmp_path / "run").glob("model*"))
    assert kept == ["model", "model-10", "model-20", "model-30"]
    assert json.loads((tmp_path / "run/model-10/config.json").read_text())["is_decoder"]


def test_heads_learn_alone_where_the_encoder_is_not_trained(trained, tmp_path):
    before, _ = trained
    run = config(
        tmp_path, init_checkpoint=str(before / "model"), do_train=True, train_encoder=False
    )
    run_pretraining(run)
    old, new = (read_portable(folder / "model").weights for folder in (before, tmp_path))
    moved = {name.partition("/")[0] for name in old if not np.array_equal(old[name], new[name])}
    assert moved == {"masked_lm", "next_sentence"}
