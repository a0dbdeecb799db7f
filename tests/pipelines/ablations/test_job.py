import json
import signal
import threading

import pytest

from keras_bert_impl.errors import UserError
from pipelines.ablations.job import run_ablations
from tests.support.toy_study import PretendingTools, toy_recipe


def small_recipe(folder, **changes):
    """One task, and the tables that share most."""
    tasks = toy_recipe(folder).task[:1]
    return toy_recipe(folder, task=tasks, tables=("pretraining_tasks", "steps"), **changes)


def test_a_study_runs_everything_once_and_a_second_call_nothing(tmp_path):
    recipe, tools = small_recipe(tmp_path), PretendingTools()
    results = run_ablations(recipe, tools)
    folders = [path.name for path in recipe.output_dir.glob("cells/*")]
    assert sorted(tools.started) == sorted(folders)
    assert [path.name for path in results.files] == [
        "ablations.md", "ablations.json", "steps.png",
    ]  # fmt: skip
    again = PretendingTools()
    assert run_ablations(recipe, again).lines == results.lines
    assert again.started == []


def test_runs_side_by_side_make_the_same_tables(tmp_path):
    alone, beside = (
        run_ablations(small_recipe(tmp_path / str(n), runs_at_once=n), PretendingTools()).lines
        for n in (1, 3)
    )
    rows = [line for line in alone if line.startswith("|")]
    assert len(rows) > 10
    assert [line for line in beside if line.startswith("|")] == rows


def test_after_a_stop_finished_runs_stay_and_the_other_goes_on_in_its_folder(tmp_path):
    recipe, whole = small_recipe(tmp_path), PretendingTools()
    run_ablations(small_recipe(tmp_path / "whole"), whole)
    stopped, rest = PretendingTools(stop_at=9), PretendingTools()
    with pytest.raises(KeyboardInterrupt):
        run_ablations(recipe, stopped)
    run_ablations(recipe, rest)
    assert stopped.started[-1] == rest.started[0]
    assert len(stopped.started) + len(rest.started) == len(whole.started) + 1
    report = json.loads((recipe.output_dir / "ablations.json").read_text())
    calls = {run["name"]: run["calls"] for run in report["runs"]}
    assert sorted(calls.values())[-2:] == [1, 2]


def test_a_run_that_was_asked_to_stop_is_named_and_goes_on_in_its_folder(tmp_path):
    class Stopping(PretendingTools):
        def run(self, tool, flags, log, cores):
            return 0 if tool == "run_pretraining" else super().run(tool, flags, log, cores)

    with pytest.raises(UserError, match=r"cells/pretrain-\S+: the run pretrain-.* was stopped"):
        run_ablations(small_recipe(tmp_path), Stopping())
    rest = PretendingTools()
    run_ablations(small_recipe(tmp_path), rest)
    assert rest.started[0].startswith("pretrain-")


def test_sigterm_between_two_runs_is_a_sentence_and_the_same_call_continues(tmp_path):
    class Terminated(PretendingTools):
        def run(self, tool, flags, log, cores):
            signal.raise_signal(signal.SIGTERM)
            return super().run(tool, flags, log, cores)

    stopped, rest = Terminated(), PretendingTools()
    with pytest.raises(UserError, match="study was stopped between two runs; the same command"):
        run_ablations(small_recipe(tmp_path), stopped)
    assert len(stopped.started) == 1
    run_ablations(small_recipe(tmp_path), rest)
    assert stopped.started[0] not in rest.started


def test_a_changed_recipe_keeps_the_runs_that_it_did_not_change(tmp_path):
    tools = PretendingTools()
    run_ablations(small_recipe(tmp_path), tools)
    more = PretendingTools()
    run_ablations(small_recipe(tmp_path, seeds=(1, 2, 3)), more)
    assert more.started
    assert all("-3-" in name for name in more.started)  # the new seed


def test_where_bert_is_no_better_than_random_weights_the_study_stops(tmp_path):
    tools = PretendingTools(random=0.9)
    with pytest.raises(UserError, match=r"does not beat random weights by 3 standard .*on MRPC"):
        run_ablations(small_recipe(tmp_path), tools)
    assert len(tools.started) == 9  # the text, the vocabulary, the shards, BERT, four scores
    assert "| NO" in (tmp_path / "study" / "ablations.md").read_text()
    on = PretendingTools(random=0.9)
    run_ablations(small_recipe(tmp_path, ignore_check=True), on)
    assert not {*on.started} & {*tools.started}


class MeetingTools(PretendingTools):
    """Pre-trainings that only end when four of them run at the same time."""

    def __init__(self):
        super().__init__()
        self._meeting = threading.Barrier(4, timeout=20)

    def run(self, tool, flags, log, cores):
        if tool == "run_pretraining":
            self._meeting.wait()
        return super().run(tool, flags, log, cores)


def test_without_the_check_no_run_waits_for_it_and_it_can_be_asked_for_afterwards(tmp_path):
    tools = MeetingTools()
    run_ablations(small_recipe(tmp_path, ignore_check=True, runs_at_once=9), tools)
    assert sum(name.startswith("pretrain-") for name in tools.started) == 4
    checked = PretendingTools(random=0.9)
    run_ablations(small_recipe(tmp_path), checked)
    assert checked.started == []


def test_a_run_that_fails_is_named_with_its_last_line(tmp_path):
    with pytest.raises(UserError, match=r"log\.txt: the run vocabulary failed.*no such thing"):
        run_ablations(small_recipe(tmp_path), PretendingTools(fails="learn_vocabulary"))


def test_a_dry_run_lists_every_command_with_its_needs_and_starts_none(tmp_path):
    (tmp_path / "MRPC").mkdir()
    (tmp_path / "MRPC" / "train.tsv").write_text("a line of the file\n" * 100)
    recipe = toy_recipe(tmp_path, dry_run=True, operations_per_second=1e9)
    lines = run_ablations(recipe, PretendingTools()).lines
    assert not recipe.output_dir.exists()
    commands = [line for line in lines if line.startswith("    keras-bert ")]
    headers = [line for line in lines if line.startswith("[")]
    assert len(commands) == len({*commands}) == len(headers)
    shared = next(line for line in headers if "] MRPC-bert-seed-1-1 " in line)
    assert shared.endswith("(for check, pretraining_tasks, sizes, masking, steps)")
    needs = lines[lines.index(headers[4]) + 2]
    assert "parameters, " in needs
    assert " GB, " in needs
    assert " operations, " in needs
    assert lines[-1].startswith(f"{len(headers)} runs, ")
    assert "runs whose files are not there" in lines[-1]  # of NER
