import dataclasses
import json
import os
import shutil
import signal

import keras
import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import read_log
from keras_bert_impl.training.batches import one_phase
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.strategy import present_devices
from pipelines.runs.training_run import TrainingRun, is_finished
from tests.support.array_batches import ArrayBatches
from tests.support.model_folders import write_classifier
from tests.support.toy_training import ToyObjective, toy_config, toy_features, toy_model


class Encoder:
    recompute = False


def make(policy):
    model = toy_model(policy)
    model.encoder = Encoder()
    return model


def run_of(folder, flags="--a=1\n", chief=True, **changes):
    config = toy_config(**changes)
    devices = dataclasses.replace(present_devices(config), is_chief=chief)
    return TrainingRun(RunDirectory.open(folder), config, devices, flags)


def trained(run, write_results=lambda _result: None, **options):
    model, _ = run.build_model(make)
    batches = ArrayBatches(toy_features(), run.config.train_batch_size, seed=1)
    phases = one_phase(batches, run.config)
    return run.train(model, ToyObjective(), phases, {}, write_results, standard_hooks(), **options)


def write_model(folder):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")


def test_the_same_seed_builds_the_same_model_in_the_runs_precision(tmp_path):
    run = run_of(tmp_path, precision="bfloat16", recompute=True)

    def make_anew(policy):
        layer = keras.layers.Dense(3, dtype=policy)
        model = keras.Sequential([keras.Input([8]), layer])
        model.encoder = Encoder()
        return model

    (one, report), (other, _) = run.build_model(make_anew), run.build_model(make_anew)
    assert report is None
    assert one.layers[-1].compute_dtype == "bfloat16"
    assert one.encoder.recompute
    np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])


def test_a_finished_run_has_its_model_marked_and_an_unfinished_one_has_none(tmp_path):
    run = run_of(tmp_path, stop_after_step=5)
    result = trained(run, lambda result: run.write_model(result, write_model))
    assert (result.step, result.finished) == (5, False)
    assert not is_finished(run.directory, run.config)
    assert not run.directory.model.exists()
    assert run.directory.newest_step() == 5
    run = run_of(tmp_path)
    result = trained(run, lambda result: run.write_model(result, write_model))
    assert (result.resumed_from, result.step, result.finished) == (5, 20, True)
    assert run.directory.finished_step() == 20
    assert is_finished(run.directory, run.config)
    (run.directory.checkpoints / "step-00000020" / "checkpoint.json").write_text("{")
    assert is_finished(run.directory, run.config)


def test_a_model_that_was_written_before_stays_as_its_user_left_it(tmp_path):
    run = run_of(tmp_path)
    trained(run, lambda result: run.write_model(result, write_model))
    (run.directory.model / "config.json").write_text("mine")
    result = trained(run, lambda result: run.write_model(result, write_model))
    assert result.resumed_from == result.step == 20
    assert (run.directory.model / "config.json").read_text() == "mine"


def test_sigterm_while_results_are_written_leaves_them_whole_and_the_run_unfinished(tmp_path):
    run = run_of(tmp_path)

    def stopped(result):
        os.kill(os.getpid(), signal.SIGTERM)
        run.write_model(result, write_model)

    result = trained(run, stopped)
    assert (result.step, result.finished) == (20, False)
    assert run.directory.is_written(20)


def test_flags_are_kept_when_the_checkpoint_fits_them(tmp_path):
    trained(run_of(tmp_path, flags="--a=1\n", stop_after_step=5))
    with pytest.raises(UserError, match="made with other settings"):
        trained(run_of(tmp_path, flags="--a=2\n", seed=7))
    assert (tmp_path / "flags.cfg").read_text() == "--a=1\n"
    trained(run_of(tmp_path, flags="--a=3\n", stop_after_step=6))
    assert (tmp_path / "flags.cfg").read_text() == "--a=3\n"


def test_the_card_says_the_hours_of_a_run_whose_batches_are_of_several_sizes(tmp_path):
    run = run_of(tmp_path)
    card = write_classifier(run.directory.model, ["no", "yes"]) / "README.md"
    card.touch()
    run.directory.metrics.write_text(
        '{"step": 900, "examples_per_second": 10.0, "examples_per_step": 40}\n'
        '{"step": 1000, "examples_per_second": 10.0, "examples_per_step": 360.0}\n'
        '{"step": 1120, "examples_per_second": 1.0}\n'
    )
    run.write_eval_results({"eval_accuracy": 0.75})
    assert " in 3 hours" in card.read_text()
    assert "| eval_accuracy | 0.75 |" in card.read_text()


def test_only_the_first_of_several_workers_writes(tmp_path):
    run = run_of(tmp_path, chief=False)
    result = trained(run, pytest.fail)
    run.write_eval_results({"loss": 1.0})
    assert result.finished
    assert list(tmp_path.iterdir()) == []


def losses_in_turn(*losses):
    left = list(losses)
    return lambda: {"loss": left.pop(0)}


def finished_weights(run, measure=None, held_out=None):
    """The weights when results are written, and the result."""
    model, _ = run.build_model(make)
    batches = ArrayBatches(toy_features(), run.config.train_batch_size, seed=1)
    seen = []
    result = run.train(
        model,
        ToyObjective(),
        one_phase(batches, run.config),
        {},
        lambda _result: seen.extend(model.get_weights()),
        hooks=standard_hooks(measure, held_out),
    )
    return seen, result


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_result_has_the_weights_of_the_best_evaluation(tmp_path):
    wanted = {"eval_steps": 5, "save_best": True}
    tenth, _ = finished_weights(run_of(tmp_path / "tenth", stop_after_step=10))
    run = run_of(tmp_path / "best", **wanted)
    weights, result = finished_weights(run, losses_in_turn(3.0, 1.0, 2.0, 2.5))
    assert (result.step, result.weights_step, result.finished) == (20, 10, True)
    assert equal(weights, tenth)
    again, result = finished_weights(run_of(tmp_path / "best", **wanted), pytest.fail)
    assert (result.resumed_from, result.weights_step) == (20, 10)
    assert equal(again, tenth)


def test_the_result_is_the_average_where_the_run_averages_also_that_of_the_best(tmp_path):
    average = {"ema_decay": 0.5, "eval_steps": 10}
    _, last = finished_weights(run_of(tmp_path / "last", **average), losses_in_turn(2.0, 1.0))
    weights, _ = finished_weights(run_of(tmp_path / "last", **average), pytest.fail)
    assert equal(weights, [np.array(one) for one in last.state.averages])
    stopped = run_of(tmp_path / "stopped", stop_after_step=10, **average)
    _, tenth = finished_weights(stopped, losses_in_turn(1.0))
    best = run_of(tmp_path / "best", save_best=True, **average)
    weights, result = finished_weights(best, losses_in_turn(1.0, 2.0))
    assert result.weights_step == 10
    assert equal(weights, [np.array(one) for one in tenth.state.averages])


def test_the_final_evaluation_stands_with_those_during_training(tmp_path):
    run = run_of(tmp_path, eval_steps=10)
    finished_weights(run, losses_in_turn(2.0, 1.0))
    run.log_final_evaluation(20, {"loss": 9.0})  # of the same weights: the first one stays
    run.log_final_evaluation(21, {"loss": 0.5})
    lines = read_log(tmp_path / "evaluations.jsonl")
    assert [(line["step"], line["loss"]) for line in lines] == [(10, 2.0), (20, 1.0), (21, 0.5)]


@pytest.mark.parametrize(
    ("losses", "chosen", "is_told"),
    [
        ((0.9, 0.3, 0.5), {}, True),
        ((0.9, 0.5, 0.3), {}, False),
        ((0.9, 0.3, 0.5), {"eval_steps": 24, "save_best": True}, False),
    ],
)
def test_an_evaluation_that_was_better_than_the_last_is_told(
    tmp_path, caplog, losses, chosen, is_told
):
    run = run_of(tmp_path, **chosen)
    lines = ({"step": 24 * n, "loss": x, "held_out": "dev"} for n, x in enumerate(losses, 1))
    run.directory.evaluations.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run.log_final_evaluation(72, {"loss": losses[-1], "held_out": "dev"})
    best = "The best evaluation was that of step 48 (loss 0.3, at the end 0.5); `save_best` keeps"
    assert (best in caplog.text) == is_told


def test_a_finished_model_keeps_the_weights_that_were_chosen_for_it(tmp_path, caplog, monkeypatch):
    """`save_best` given or left out afterwards: model, figures and sentence stay of one step.

    So they do with another held-out set, and without the best checkpoint.
    """
    for name, first in (("last", False), ("best", True)):
        run = run_of(tmp_path / name, eval_steps=5, save_best=first)
        model, _ = run.build_model(make)
        phases = one_phase(ArrayBatches(toy_features(), 30, seed=1), run.config)
        write = lambda result, run=run: run.write_model(result, write_model)  # noqa: E731
        measure = standard_hooks(losses_in_turn(3.0, 1.0, 2.0, 2.5), "a set")
        run.train(model, ToyObjective(), phases, {}, write, hooks=measure)
        caplog.clear()
        written = model.get_weights()
        restored = lambda model, _folder, written=written: model.set_weights(written)  # noqa: E731
        monkeypatch.setattr("pipelines.runs.training_run.restore_merged", restored)
        shutil.rmtree(run.directory.best_checkpoint, ignore_errors=True)
        again = run_of(tmp_path / name, eval_steps=5, save_best=not first)
        weights, result = finished_weights(again, pytest.fail, held_out="another set")
        assert not run.directory.best_checkpoint.exists()
        assert equal(weights, written)
        assert result.best_step == run.directory.best_step() == (10 if first else None)
        assert "stays so; `save_best` is for runs that still train" in caplog.text
