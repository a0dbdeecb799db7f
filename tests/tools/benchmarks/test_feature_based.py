import json
import signal
from pathlib import Path

from pipelines.fine_tuning.options import Setting
from pipelines.many_runs import seeds
from pipelines.many_runs.seeds import ManyRunsResults
from pipelines.many_runs.seeds_report import RunsReport, ScoredRun
from tools.benchmarks import feature_based

WORDS = ["--data_dirs=ner/wnut17,ner/gum", "--init_checkpoint=model", "--features=last,fine_tuning"]


def write_runs(folder, *scores, test=True):
    """What `run_ner` leaves of runs with these scores."""
    setting = Setting(16, 1e-3, 20.0)
    runs = []
    for seed, score in enumerate(scores):
        figures = {"eval_loss": 1.0, "eval_f1": score}
        figures |= {"eval_test_f1": score - 10} if test else {}
        runs.append(ScoredRun(f"seed-{seed}", seed, setting, figures))
    folder.mkdir(parents=True)
    values = RunsReport("ner", runs, {}, len(runs)).as_json()
    (folder / "runs.json").write_text(json.dumps(values))


def test_the_table_is_made_of_the_files_of_the_runs(tmp_path):
    write_runs(tmp_path / "wnut17" / "last", 40.0, 44.0)
    write_runs(tmp_path / "gum" / "last", 30.0, test=False)
    lines = feature_based.table(tmp_path, ["wnut17", "gum"], ["last", "fine_tuning"])
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[0] == ["features", "wnut17 dev", "wnut17 test", "gum dev"]
    assert cells[2] == ["last", "42.00 ± 2.83 (2)", "32.00 ± 2.83 (2)", "30.00 (1)"]
    assert cells[3] == ["fine_tuning", "", "", ""]


def test_every_cell_is_a_command_of_its_own_that_shares_the_kept_layers(
    tmp_path, monkeypatch, capsys
):
    seen = []

    def run(config, task_of, flags_of, set_up):
        seen.append(config)
        write_runs(config.output_dir, 50.0)
        return ManyRunsResults(None, finished=True, files=[])

    monkeypatch.setattr(seeds, "run_many", run)
    assert feature_based.main([*WORDS, f"--output_dir={tmp_path}", "--num_seeds=2"]) == 0
    assert [(c.files.data_dir, c.features) for c in seen] == [
        (Path(f"ner/{name}"), features) for name in ("wnut17", "gum") for features in ("last", None)
    ]
    assert [c.work_dir.parent.name for c in seen] == ["wnut17", "wnut17", "gum", "gum"]
    assert [c.learning.learning_rate for c in seen[:2]] == [1e-3, 5e-5]
    assert {c.many.num_seeds for c in seen} == {2}
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[0])["flags"][0] == "--data_dir=ner/wnut17"
    assert "50.00 (1)" in printed[-1]
    assert (tmp_path / "table.md").read_text() == "\n".join(printed[4:]) + "\n"


def test_a_stop_in_the_last_run_of_a_cell_starts_no_other_cell(tmp_path, monkeypatch, capsys):
    seen = []

    def run(config, *_):
        seen.append(config)
        signal.raise_signal(signal.SIGTERM)
        return ManyRunsResults(None, finished=True, files=[])

    monkeypatch.setattr(seeds, "run_many", run)
    assert feature_based.main([*WORDS, f"--output_dir={tmp_path}"]) == 143
    assert len(seen) == 1
    cell, said = capsys.readouterr().out.splitlines()
    assert json.loads(cell)["cell"] == f"{tmp_path}/wnut17/last"
    assert said == "Stopped; the same command continues."
