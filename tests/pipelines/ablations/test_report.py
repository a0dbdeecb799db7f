import json
import math

import pytest

from keras_bert_impl.errors import UserError
from pipelines.ablations.report import DIFFERENCE, Report
from pipelines.ablations.study import Study
from pipelines.many_runs.cells import Result
from tests.support.toy_study import PretendingTools, toy_recipe


@pytest.fixture
def made(tmp_path):
    return Study(toy_recipe(tmp_path), PretendingTools().config_of)


def scored(made, scores):
    """Results for the cells whose names begin as said."""
    return {
        cell.name: Result({"eval_f1": score, "masked_lm_loss": math.log(20)}, 60.0, 1)
        for cell in made.cells
        for start, score in scores.items()
        if cell.name.startswith(start)
    }


def test_fields_are_mean_and_deviation_with_letters_and_open_ones_are_empty(made):
    results = scored(made, {"MRPC-bert-seed-1-1": 0.90, "MRPC-bert-seed-1-2": 0.92})
    results |= scored(made, {"MRPC-no-nsp-seed-1-1": 0.91, "MRPC-no-nsp-seed-1-2": 0.92})
    results |= scored(made, {"MRPC-left-to-right-seed-1-1": 0.1})
    lines = Report(made, results).lines()
    first = lines.index("## The pre-training tasks (table 5 of the paper)") + 4
    cells = [[part.strip() for part in line.split("|")[1:-1]] for line in lines[first:][:4]]
    assert cells == [
        ["BERT", "0.9100 ± 0.0141 a", "–"],
        ["No NSP", "0.9150 ± 0.0071 a", "–"],
        ["LTR & No NSP", "0.1000 a", "–"],  # of a single run nothing is known
        ["LTR & No NSP + BiLSTM", "–", "–"],
    ]


def test_a_score_that_is_nan_counts_as_nothing_learned(made):
    results = scored(made, {"MRPC-bert-seed-1-1": math.nan})
    table = made.tables[0]
    assert Report(made, results).scores(table, table.rows[0], table.columns[0]) == [0.0]


def test_the_table_of_sizes_has_parameters_and_the_perplexity_of_held_out_text(made):
    lines = Report(made, scored(made, {"pretrain-bert-seed": 0})).lines()
    row = next(line for line in lines if line.startswith("| small"))
    cells = [part.strip() for part in row.split("|")[1:-1]]
    assert cells == ["small", "2", "16", "2", "0.0 M", "20.00", "–", "–"]


def test_every_run_stands_there_with_its_command_and_its_time(made):
    lines = Report(made, scored(made, {"MRPC-bert-seed-1-1": 0.9})).lines()
    (cell,) = (one for one in made.cells if one.name == "MRPC-bert-seed-1-1")
    place = lines.index("- MRPC-bert-seed-1-1: 1m00s")
    assert lines[place + 1] == f"  `{cell.command}`"
    assert "All runs took 1m00s." in lines
    assert sum(line.startswith("- ") for line in lines) == len(made.cells)


def test_the_files_are_json_markdown_and_a_picture(made, tmp_path):
    results = scored(made, {"MRPC-bert-seed-1": 0.9, "MRPC-bert-step": 0.8})
    report = Report(made, results)
    written = [*report.write(tmp_path / "report"), *report.draw(tmp_path / "report")]
    assert [path.suffix for path in written] == [".md", ".json", ".png"]
    values = json.loads(written[1].read_text())
    assert {*values["tables"]} == {table.name for table in made.tables}
    step = values["tables"]["steps"][0]
    assert (step["row"], step["steps"], step["scores"], step["letters"]) == (
        "Masked LM", "10", [0.8, 0.8], "b",
    )  # fmt: skip
    assert written[2].read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_a_task_does_not_have_is_named(tmp_path):
    task = "MRPC eval_f2 run_classifier --task_name=MRPC --data_dir={data}/MRPC"
    made = Study(
        toy_recipe(tmp_path, task=(task,), tables=("masking",)), PretendingTools().config_of
    )
    report = Report(made, scored(made, {"MRPC-bert-seed-1-1": 0.9}))
    with pytest.raises(
        UserError, match=r"no eval_f2, the figure of the task MRPC; name one of eval"
    ):
        report.lines()


def test_the_check_waits_for_all_runs_of_a_task(made):
    results = scored(made, {"MRPC-bert-seed-1-1": 0.9, "MRPC-bert-seed-1-2": 0.91})
    assert Report(made, results).checks() == []
    results |= scored(made, {"MRPC-random-seed-1": 0.5, "MRPC-random-seed-2": 0.52})
    (check,) = Report(made, results).checks()
    assert (check.task, check.holds) == ("MRPC", True)


def test_what_bert_has_more_than_other_models_has_an_interval(tmp_path):
    changes = {"tables": ("models",), "other_model": ("theirs {data}/theirs",)}
    study = Study(toy_recipe(tmp_path, **changes), PretendingTools().config_of)
    results = scored(study, {"MRPC-bert-seed-1-1": 0.90, "MRPC-bert-seed-1-2": 0.92})
    results |= scored(study, {"MRPC-random-seed-1": 0.70, "MRPC-random-seed-2": 0.72})
    results |= scored(study, {"MRPC-other-theirs-seed-1": 0.9})
    lines = Report(study, results).lines()
    first = lines.index(DIFFERENCE) + 4
    cells = [[part.strip() for part in line.split("|")[1:-1]] for line in lines[first:][:2]]
    assert cells == [
        ["random weights", "+0.2000 (+0.1392 to +0.2608)", "–"],
        ["theirs", "–", "–"],  # of a single run nothing is known
    ]
