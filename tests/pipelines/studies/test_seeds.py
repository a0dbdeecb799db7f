"""Many runs of one command. Most tests have a run that is a line of code in place of a training."""

import dataclasses
import json
import math
import statistics
from types import SimpleNamespace

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.options import ManyRunsConfig, Setting
from pipelines.studies import seeds
from pipelines.studies.seeds import RunsReport, SeedRun
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from tests.support.glue_files import write_cola
from tests.support.model_folders import tiny_config, write_start


def as_flags(changes):
    return "".join(f"{name}={value}\n" for name, value in changes.items())


def configuration(folder, many, **changes):
    start = folder / "start"
    return RunClassifierConfig(
        **{
            "task_name": "CoLA",
            "data_dir": folder / "cola",
            "output_dir": folder / "runs",
            "do_train": True,
            "do_eval": True,
            "many": many,
            "init_checkpoint": str(start if start.is_dir() else write_start(start)),
            **changes,
        }
    )


class Runs:
    """Stands for the training: notes each config, and scores seed / 10 or does `instead`."""

    def __init__(self):
        self.started, self.instead = [], {}

    def __call__(self, config, task_of, traced):
        self.started.append(config)
        score = config.training.seed / 10
        figures = {"eval_loss": 1.0, "eval_matthews_correlation": score, "eval_accuracy": 0.5}
        outcome = self.instead.get(config.training.seed)
        figures = outcome() if outcome else figures
        training = SimpleNamespace(finished=figures is not None)
        return SimpleNamespace(training=training, evaluation=figures)


@pytest.fixture
def runs(monkeypatch, tmp_path):
    write_cola(tmp_path / "cola")
    started = Runs()
    monkeypatch.setattr("pipelines.fine_tuning.run.fine_tune", started)
    return started


def run(config):
    return seeds.run_many(config, task_of, as_flags)


def test_each_seed_is_a_run_in_its_own_folder_that_shares_the_rows(tmp_path, runs):
    config = configuration(tmp_path, ManyRunsConfig(num_seeds=3), training=TrainingConfig(seed=4))
    report = run(config)
    assert [one.training.seed for one in runs.started] == [4, 5, 6]
    assert [one.output_dir.name for one in runs.started] == ["seed-4", "seed-5", "seed-6"]
    assert not any(one.many.are_many for one in runs.started)
    assert "seed=5\n" in runs.started[1].flags
    assert report.finished
    assert report.best.folder == "seed-6"
    assert [report.score(one) for one in report.runs] == pytest.approx([0.4, 0.5, 0.6])
    files = {path.name for path in (tmp_path / "runs").glob("runs.*")}
    assert files == {"runs.json", "runs.md"}


def test_the_search_runs_every_setting_of_the_paper(tmp_path, runs):
    report = run(configuration(tmp_path, ManyRunsConfig(search="paper")))
    tried = {
        (c.training.train_batch_size, c.training.learning_rate, c.num_train_epochs)
        for c in runs.started
    }
    assert len(runs.started) == len(tried) == 18
    assert (32, 2e-5, 4.0) in tried
    folder = tmp_path / "runs" / "batch-16_rate-5e-5_epochs-2" / "seed-12345"
    assert runs.started[0].output_dir == folder
    assert len(report.settings()) == 18


def test_a_search_that_was_stopped_goes_on_where_it_stopped(tmp_path, runs):
    outcomes = iter([{"eval_matthews_correlation": 0.1}] * 4 + [None])
    runs.instead[12345] = lambda: next(outcomes)
    config = configuration(tmp_path, ManyRunsConfig(search="paper"))
    assert not run(config).finished
    runs.instead.clear()
    assert run(config).finished
    assert len(runs.started) == 4 + 1 + 14
    again = [(c.training.train_batch_size, c.output_dir) for c in runs.started[4:6]]
    assert again[0] == again[1]


def test_a_changed_option_or_file_calls_the_run_again(tmp_path, runs):
    many = ManyRunsConfig(num_seeds=2)
    run(configuration(tmp_path, many))
    run(configuration(tmp_path, many, max_seq_length=64))
    assert len(runs.started) == 4
    with (tmp_path / "cola" / "dev.tsv").open("a") as file:
        file.write("src\t1\t\tthe dog\n")
    run(configuration(tmp_path, many, max_seq_length=64))
    assert len(runs.started) == 6


@pytest.mark.parametrize(
    ("name", "old", "new", "trained"),
    [
        ("model.safetensors", b"", b"x", True),
        ("vocab.txt", "é".encode(), "è".encode(), True),
        ("vocab.txt", "é".encode(), "è".encode(), False),
        ("tokenizer_config.json", b'"do_lower_case": true', b'"do_lower_case": false', True),
        ("tokenizer_config.json", b'"strip_accents": null', b'"strip_accents": false', True),
    ],
)
def test_a_model_that_was_made_anew_in_place_calls_the_run_again(
    tmp_path, runs, name, old, new, trained
):
    start = tmp_path / "start"
    named = {"init_checkpoint": None, "bert_config_file": f"{start}/bert_config.json"}
    config = configuration(tmp_path, ManyRunsConfig(num_seeds=2), **({} if trained else named))
    (start / "bert_config.json").write_text(json.dumps(tiny_config().to_google()))
    run(config)
    run(config)
    assert len(runs.started) == 2
    before = (start / name).read_bytes()
    assert old in before
    (start / name).write_bytes(before.replace(old, new) if old else before[:-1] + new)
    run(config)
    assert len(runs.started) == 4


def test_a_failing_run_leaves_the_finished_ones_and_their_report(tmp_path, runs):
    def fail():
        raise UserError("the disk is full.")

    config = configuration(tmp_path, ManyRunsConfig(num_seeds=3), training=TrainingConfig(seed=1))
    runs.instead[2] = fail
    with pytest.raises(UserError, match="the disk is full"):
        run(config)
    assert json.loads((tmp_path / "runs" / "runs.json").read_text())["complete"] is False
    runs.instead.clear()
    assert run(config).finished
    assert [one.training.seed for one in runs.started] == [1, 2, 2, 3]


SMALL, LARGE = Setting(16, 5e-5, 3.0), Setting(32, 2e-5, 4.0)


def scored(seed, accuracy, setting=SMALL, f1=0.5):
    figures = {
        "eval_loss": 0.1 * seed,
        "eval_accuracy": accuracy,
        "eval_f1": f1,
        "eval_mismatched_loss": 0.3,
        "global_step": 9,
    }
    return SeedRun(f"{setting.folder}/seed-{seed}", seed, setting, figures)


def report(*runs, constant=0.5, expected=None):
    return RunsReport("MRPC", runs, {"eval_accuracy": constant}, expected or len(runs))


def test_a_run_at_or_under_the_constant_answer_failed():
    runs = [scored(1, 0.5), scored(2, 0.51), scored(3, 0.4), scored(4, math.nan)]
    found = report(*runs)
    assert [found.failed([one]) for one in runs] == [1, 0, 1, 1]
    assert found.as_json()["failed"] == 3


def test_settings_are_ranked_by_their_mean_and_not_by_their_luckiest_run():
    found = report(scored(1, 0.9), scored(2, 0.5), scored(1, 0.75, LARGE), scored(2, 0.75, LARGE))
    assert [setting for setting, _ in found.settings()] == [LARGE, SMALL]
    assert found.best.folder == "batch-16_rate-5e-5_epochs-3/seed-1"


def test_a_figure_that_some_runs_lack_and_the_best_step_are_not_compared():
    first, second = scored(1, 0.9), scored(2, 0.5)
    more = {"best_step": 7, "eval_other": 0.1}
    found = report(first, dataclasses.replace(second, figures={**second.figures, **more}))
    assert found.metrics == report(*reversed(found.runs)).metrics == ["eval_accuracy", "eval_f1"]


def test_the_files_hold_the_same_figures(tmp_path):
    accuracies = [0.6, 0.7, 0.9]
    found = report(*(scored(seed, a) for seed, a in enumerate(accuracies)), expected=4)
    files = found.write(tmp_path)
    assert [path.name for path in files] == ["runs.md", "runs.json"]
    values = json.loads(files[1].read_text())
    (setting,) = values["settings"]
    spread = setting["spread"]["eval_accuracy"]
    assert spread["mean"] == pytest.approx(statistics.fmean(accuracies))
    assert spread["sigma"] == pytest.approx(statistics.stdev(accuracies))
    assert (spread["median"], spread["minimum"], spread["runs"]) == (0.7, 0.6, 3)
    assert not values["complete"]
    assert [one["eval_accuracy"] for one in values["runs"]] == accuracies
    assert "0.7333 ± 0.1528" in files[0].read_text()
    assert "1 of 4 runs are missing." in files[0].read_text()
    assert not list(tmp_path.glob(".*"))
