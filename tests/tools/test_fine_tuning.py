import importlib
import pickle
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from keras_bert_impl.interrupts import what_is_kept
from keras_bert_impl.training.loop import TrainingResult
from pipelines.fine_tuning.run import FineTuningResults
from pipelines.many_runs import seeds
from pipelines.many_runs.seeds import ManyRunsResults
from pipelines.tasks.tagging.options import RunNerConfig
from tools import fine_tuning, run_ner
from tools.config_flags import ConfigFlags
from tools.fine_tuning import run_once_or_often, show_lines_of

TASKS = {
    "run_classifier": "labels",
    "run_ner": "tagging",
    "run_squad": "questions",
    "run_swag": "choices",
}


@dataclass
class Call:
    """Stands for `run_many`: keeps what it was called with, and the flags of seed 7's run."""

    seen: dict = field(default_factory=dict)
    results: ManyRunsResults = field(default_factory=lambda: ManyRunsResults(None, False, []))

    def __call__(self, config, task_of, flags_of, set_up):
        flags = flags_of({"output_dir": Path("runs/seed-7"), "seed": 7})
        self.seen.update(config=config, task_of=task_of, flags=flags)
        return self.results


@pytest.fixture
def call(monkeypatch):
    made = Call()
    monkeypatch.setattr(seeds, "run_many", made)
    return made


def run(*words):
    flags = ConfigFlags("Tags.", RunNerConfig)
    flags.parse(["--output_dir=runs", "--data_dir=conll", *words])
    run_once_or_often("run_ner", flags, flags.config(), task_of=None)
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
    call.results = replace(call.results, finished=True, files=[Path("runs/runs.md")])
    run("--num_seeds=2")
    assert capsys.readouterr().out == "wrote runs/runs.md\n"


@pytest.mark.parametrize("tool", TASKS)
def test_what_a_tool_hands_to_the_process_of_a_run_can_be_handed_over(tool, monkeypatch):
    shown = []
    monkeypatch.setattr(fine_tuning, "show_lines", shown.append)
    task_of = importlib.import_module(f"pipelines.tasks.{TASKS[tool]}.task").task_of
    sent_task_of, set_up = pickle.loads(pickle.dumps((task_of, partial(show_lines_of, tool))))
    set_up()
    assert (sent_task_of, shown) == (task_of, [importlib.import_module(f"tools.{tool}").FLAGS])


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
