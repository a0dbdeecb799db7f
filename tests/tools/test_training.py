import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from keras_bert_impl.interrupts import what_is_kept
from keras_bert_impl.training.loop import TrainingResult
from pipelines.fine_tuning.options import Setting
from pipelines.fine_tuning.run import FineTuningResults
from pipelines.studies import seeds
from pipelines.studies.seeds import RunsReport, SeedRun
from pipelines.tasks.tagging.options import RunNerConfig
from tools import run_ner
from tools.config_flags import ConfigFlags
from tools.training import fine_tuning_job, results_of


@dataclass
class Call:
    """Stands for `run_many`: keeps what it was called with, and the flags of seed 7's run."""

    seen: dict = field(default_factory=dict)
    report: RunsReport = field(default_factory=lambda: RunsReport("ner", [], {}, 2))

    def __call__(self, config, task_of, flags_of):
        flags = flags_of({"output_dir": Path("runs/seed-7"), "seed": 7})
        self.seen.update(config=config, task_of=task_of, flags=flags)
        return self.report


@pytest.fixture
def call(monkeypatch):
    made = Call()
    monkeypatch.setattr(seeds, "run_many", made)
    return made


def run(*words):
    flags = ConfigFlags("Tags.", RunNerConfig)
    flags.parse(["--output_dir=runs", "--data_dir=conll", *words])
    sys.stdout.writelines(f"{line}\n" for line in fine_tuning_job(flags.config(), flags, None))
    return flags


def test_several_seeds_are_runs_whose_flags_repeat_each_alone(call, capsys):
    flags = run("--num_seeds=3", "--seed=7", "--train_batch_size=8")
    assert call.seen["config"].many.num_seeds == 3
    flags.parse(call.seen["flags"].split())
    alone = flags.config()
    assert (alone.many.num_seeds, alone.training.seed) == (1, 7)
    assert (alone.output_dir, alone.training.train_batch_size) == (Path("runs/seed-7"), 8)
    assert capsys.readouterr().out == (
        "Stopped; finished runs and checkpoints are kept, and the same command continues.\n"
    )


def test_the_files_are_named(call, capsys):
    one = SeedRun("seed-1", 1, Setting(8, 1e-3, 3.0), {"eval_f1": 0.5})
    call.report = replace(call.report, runs=[one, one])
    run("--num_seeds=2")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| batch | rate")
    assert lines[-2:] == ["wrote runs/runs.md", "wrote runs/runs.json"]


def test_several_runs_need_scores(tmp_path, capsys):
    words = ["--data_dir=conll", f"--output_dir={tmp_path}", "--do_train", "--num_seeds=2"]
    assert run_ner.main(words) == 1
    assert "give --do_train and --do_eval" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("resumed_from", "printed"),
    [(0, "wrote runs/model"), (9, "Training was finished before; its model is in model/")],
)
def test_a_finished_training_says_where_its_model_is(monkeypatch, capsys, resumed_from, printed):
    results = FineTuningResults(TrainingResult(9, True, resumed_from, {}, None))
    monkeypatch.setattr("pipelines.fine_tuning.start.check_run", lambda *_: None)
    monkeypatch.setattr("pipelines.fine_tuning.run.fine_tune_checked", lambda _: results)
    run("--do_train")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(printed)


def test_a_stop_of_the_start_says_that_nothing_was_begun(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.fine_tuning.start.check_run", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        run("--do_train")
    said = what_is_kept(stopped.value)
    assert said == "training had not begun, and the same command begins it"


def printed(capsys, **results):
    lines = list(results_of(FineTuningResults(**results)))
    return [*capsys.readouterr().out.splitlines(), *lines]


FINISHED = "Training was finished before; its model is in model/ of the output folder."


@pytest.mark.parametrize(
    ("step", "finished", "resumed_from", "lines"),
    [
        (7, False, 0, ["Stopped after step 7, which is saved; the same command continues."]),
        (9, True, 9, [FINISHED]),
        (9, True, 7, []),
    ],
)
def test_it_says_where_the_training_stands(capsys, step, finished, resumed_from, lines):
    training = TrainingResult(step, finished, resumed_from, {}, None)
    assert printed(capsys, training=training) == lines


def test_figures_come_in_the_order_of_their_names_and_then_the_files(capsys):
    lines = printed(
        capsys, evaluation={"eval_loss": 0.5, "eval_f1": 0.9}, prediction_files=[Path("a.tsv")]
    )
    assert lines == ["eval_f1 = 0.9", "eval_loss = 0.5", "wrote a.tsv"]
