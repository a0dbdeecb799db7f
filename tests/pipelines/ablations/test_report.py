import json
import math

import pytest

from pipelines.ablations.report import Report, run_ablations
from pipelines.ablations.study import Study
from pipelines.many_runs import commands
from pipelines.many_runs.commands import once
from tests.support.toy_study import PretendingTools, toy_recipe


@pytest.fixture(autouse=True)
def no_models(monkeypatch):
    """Tools that pretend make no models; to forget none takes a second among many objects."""
    monkeypatch.setattr(commands, "forget_models", lambda: None)


def small_recipe(folder, **changes):
    """One task, and the tables that share most."""
    tasks = toy_recipe(folder).task[:1]
    return toy_recipe(folder, task=tasks, tables=("pretraining_tasks", "steps"), **changes)


def test_a_study_runs_everything_once_and_a_second_call_nothing(tmp_path):
    recipe, tools = small_recipe(tmp_path), PretendingTools()
    lines, files = run_ablations(recipe, tools)
    folders = [path.name for path in recipe.output_dir.glob("cells/*")]
    assert sorted(tools.started) == sorted(folders)
    assert [path.name for path in files] == ["ablations.md", "ablations.json", "steps.png"]
    again = PretendingTools()
    assert run_ablations(recipe, again)[0] == lines
    assert again.started == []


def test_stopped_twice_a_study_goes_on_in_the_same_folder_and_ends_with_the_same_tables(tmp_path):
    def table(lines):
        return [line for line in lines if line.startswith("|")]

    whole = PretendingTools()
    wanted, _ = run_ablations(small_recipe(tmp_path / "whole"), whole)
    recipe, first, second, rest = (
        small_recipe(tmp_path),
        PretendingTools(stop_at=9),
        PretendingTools(stop_at=3),
        PretendingTools(),
    )
    for tools in (first, second):
        with pytest.raises(KeyboardInterrupt):
            run_ablations(recipe, tools)
    lines, _ = run_ablations(recipe, rest)
    assert (first.started[-1], second.started[-1]) == (second.started[0], rest.started[0])
    started = [*first.started, *second.started, *rest.started]
    assert len(started) == len(whole.started) + 2
    assert len(table(lines)) > 10
    assert table(lines) == table(wanted)


def test_a_dry_run_lists_every_command_with_its_tables_and_starts_none(tmp_path):
    recipe, tools = toy_recipe(tmp_path, dry_run=True), PretendingTools()
    lines, files = run_ablations(recipe, tools)
    assert (tools.started, files, recipe.output_dir.exists()) == ([], [], False)
    commands = [line for line in lines if line.startswith("    keras-bert ")]
    headers = [line for line in lines if line.startswith("[")]
    assert len(commands) == len({*commands}) == len(headers)
    shared = next(line for line in headers if "] MRPC-bert-seed-1-1 " in line)
    assert shared.endswith("(for check, pretraining_tasks, sizes, masking, steps)")
    assert lines[-1] == f"{len(headers)} runs"


@pytest.fixture
def made(tmp_path):
    return Study(toy_recipe(tmp_path), PretendingTools())


def scored(study, scores):
    """The report once the commands are finished whose names begin as said."""
    for name, command in study.commands.items():
        for start, score in scores.items():
            if name.startswith(start):
                figures = {"eval_f1": score, "masked_lm_loss": math.log(20)}
                values = {"figures": figures, "seconds": 60.0}
                once(command.folder, lambda values=values: values)
    return Report(study)


def test_fields_are_mean_and_deviation_and_open_ones_are_empty(made):
    scores = {"MRPC-bert-seed-1-1": 0.90, "MRPC-bert-seed-1-2": 0.92}
    scores |= {"MRPC-no-nsp-seed-1-1": 0.91, "MRPC-no-nsp-seed-1-2": 0.92}
    lines = scored(made, {**scores, "MRPC-left-to-right-seed-1-1": 0.1}).lines()
    first = lines.index("## The pre-training tasks (table 5 of the paper)") + 4
    cells = [[part.strip() for part in line.split("|")[1:-1]] for line in lines[first:][:4]]
    assert cells == [
        ["BERT", "0.9100 ± 0.0141", "–"],
        ["No NSP", "0.9150 ± 0.0071", "–"],
        ["LTR & No NSP", "0.1000", "–"],  # of a single run nothing is known
        ["LTR & No NSP + BiLSTM", "–", "–"],
    ]


def test_json_has_the_scores_and_null_for_nan(made, tmp_path):
    report = scored(made, {"MRPC-bert-seed-1": 0.9, "MRPC-no-nsp-seed-1-1": 0.8})
    written = report.write(tmp_path, draws=True)
    values = json.loads(written[1].read_text())
    rows = {(row["row"], row["column"]): row for row in values["tables"]["pretraining_tasks"]}
    assert rows["BERT", "MRPC"]["scores"] == [0.9, 0.9]
    assert rows["No NSP", "MRPC"]["sigma"] is None
    assert written[2].read_bytes().startswith(b"\x89PNG")
