import json
import math
import statistics

import pytest

from pipelines.fine_tuning.options import Setting
from pipelines.many_runs.seeds_report import RunsReport, ScoredRun, stored_spreads

SMALL, LARGE = Setting(16, 5e-5, 3.0), Setting(32, 2e-5, 4.0)


def run(seed, accuracy, setting=SMALL, f1=0.5):
    figures = {
        "eval_loss": 0.1 * seed,
        "eval_accuracy": accuracy,
        "eval_f1": f1,
        "eval_mismatched_loss": 0.3,
        "global_step": 9,
    }
    return ScoredRun(f"{setting.folder}/seed-{seed}", seed, setting, figures)


def report(*runs, constant=0.5, expected=None):
    return RunsReport("MRPC", runs, {"eval_accuracy": constant}, expected or len(runs))


def test_the_first_metric_chooses_and_a_loss_is_none():
    assert report(run(1, 0.6)).metric == "eval_accuracy"
    assert report(run(1, 0.6)).metrics == ["eval_accuracy", "eval_f1"]


def test_a_run_at_or_under_the_constant_answer_failed():
    runs = [run(1, 0.5), run(2, 0.51), run(3, 0.4), run(4, math.nan)]
    found = report(*runs)
    assert [found.failed(one) for one in runs] == [True, False, True, True]
    assert found.as_json()["failed"] == 3


def test_the_best_run_is_chosen_and_of_equal_ones_the_first():
    assert report(run(1, 0.6), run(2, 0.8), run(3, 0.8)).best.seed == 2


def test_settings_are_ranked_by_their_mean_and_not_by_their_luckiest_run():
    found = report(run(1, 0.9), run(2, 0.5), run(1, 0.75, LARGE), run(2, 0.75, LARGE))
    assert [setting for setting, _ in found.settings()] == [LARGE, SMALL]
    assert found.best.folder == "batch-16_rate-5e-5_epochs-3/seed-1"


def test_the_files_hold_the_same_figures(tmp_path):
    accuracies = [0.6, 0.7, 0.9]
    found = report(*(run(seed, a) for seed, a in enumerate(accuracies)), expected=4)
    files = found.write(tmp_path)
    assert [path.name for path in files] == ["runs.json", "runs.tsv", "runs.md", "runs.png"]
    values = json.loads(files[0].read_text())
    (setting,) = values["settings"]
    spread = setting["spread"]["eval_accuracy"]
    assert spread["mean"] == pytest.approx(statistics.fmean(accuracies))
    assert spread["sigma"] == pytest.approx(statistics.stdev(accuracies))
    assert (spread["median"], spread["minimum"], spread["runs"]) == (0.7, 0.6, 3)
    assert not values["complete"]
    header, *lines = [line.split("\t") for line in files[1].read_text().splitlines()]
    column = header.index("eval_accuracy")
    assert [float(line[column]) for line in lines] == accuracies
    assert "0.7333 ± 0.1528" in files[2].read_text()
    assert "1 of 4 runs are missing." in files[2].read_text()
    assert files[3].read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))


def test_json_has_null_for_nan(tmp_path):
    values = json.loads(report(run(1, math.nan)).write(tmp_path)[0].read_text())
    assert values["runs"][0]["eval_accuracy"] is None
    assert values["settings"][0]["spread"]["eval_accuracy"]["mean"] == 0.0


def test_what_is_read_again_is_what_was_written(tmp_path):
    found = report(run(1, 0.6))
    found.write(tmp_path)
    again = stored_spreads(tmp_path)["eval_accuracy"]
    assert f"{again:.2f}" == f"{found.spread(found.runs):.2f}" == "0.60"
    assert math.isnan(again.sigma)
    report(run(1, 0.6), run(2, 0.6)).write(tmp_path)
    assert f"{stored_spreads(tmp_path)['eval_accuracy']:.2f}" == "0.60 ± 0.00"
    assert stored_spreads(tmp_path / "none") == {}
