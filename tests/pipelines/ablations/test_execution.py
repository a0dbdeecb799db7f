import json

import pytest

from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell
from pipelines.ablations.execution import Result, run_of
from tests.support.toy_study import PretendingTools


def cell(root, kind=FINE_TUNING, tool="run_ner", **more):
    flags = ("--output_dir={out}", "--data_dir=.") if tool == "run_ner" else ("--output_dir={out}",)
    return Cell("MRPC-bert-seed-1-1", kind, tool, flags, root, **more)


def test_a_finished_cell_has_its_figures_its_time_and_its_command(tmp_path):
    made = cell(tmp_path, files={"bert_config.json": "{}"})
    run = run_of(made, PretendingTools(), keep_models=False)
    assert Result.kept(run) is None
    result = Result.of(run.do())
    assert result.figures["eval_f1"] == pytest.approx(0.901)
    assert (result.calls, result.seconds >= 0) == (1, True)
    assert Result.kept(run) == result
    values = json.loads((made.folder / "result.json").read_text())
    assert values["command"] == made.command
    assert (made.folder / "bert_config.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("kind", "tool", "keep", "left"),
    [
        (FINE_TUNING, "run_ner", False, set()),
        (FINE_TUNING, "run_ner", True, {"model", "checkpoints"}),
        (PRETRAINING, "run_pretraining", False, {"model"}),
    ],
)
def test_what_only_resuming_needs_is_removed(tmp_path, kind, tool, keep, left):
    made = cell(tmp_path, kind, tool)
    run_of(made, PretendingTools(), keep).do()
    assert {path.name for path in made.folder.iterdir() if path.is_dir()} == left


def test_a_result_that_is_not_whole_is_none(tmp_path):
    made = cell(tmp_path)
    run = run_of(made, PretendingTools(), keep_models=False)
    run.do()
    (made.folder / "result.json").write_text('{"figures": {}}')
    assert Result.kept(run) is None


def test_a_run_that_was_asked_to_stop_is_not_finished(tmp_path):
    class Stopping(PretendingTools):
        def run(self, tool, flags, log, cores):
            return 0

    run = run_of(cell(tmp_path), Stopping(), keep_models=False)
    assert run.do() is None
    assert Result.kept(run) is None
