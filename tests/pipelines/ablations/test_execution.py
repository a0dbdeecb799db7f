import json

import pytest

from keras_bert_impl.errors import UserError
from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell
from pipelines.ablations.execution import run_cell, stored_result
from tests.support.toy_study import PretendingTools


def cell(root, kind=FINE_TUNING, tool="run_ner", **more):
    flags = ("--output_dir={out}", "--data_dir=.") if tool == "run_ner" else ("--output_dir={out}",)
    return Cell("MRPC-bert-seed-1-1", kind, tool, flags, root, **more)


def test_a_finished_cell_has_its_figures_its_time_and_its_command(tmp_path):
    made = cell(tmp_path, files={"bert_config.json": "{}"})
    assert stored_result(made) is None
    result = run_cell(made, PretendingTools(), keep_models=False)
    assert result.figures["eval_f1"] == pytest.approx(0.901)
    assert (result.calls, result.seconds >= 0) == (1, True)
    assert stored_result(made) == result
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
    run_cell(made, PretendingTools(), keep)
    assert {path.name for path in made.folder.iterdir() if path.is_dir()} == left


def test_a_result_that_is_not_whole_is_none(tmp_path):
    made = cell(tmp_path)
    run_cell(made, PretendingTools(), keep_models=False)
    (made.folder / "result.json").write_text('{"figures": {}}')
    assert stored_result(made) is None


def test_a_run_that_was_asked_to_stop_is_not_finished(tmp_path):
    class Stopping(PretendingTools):
        def run(self, tool, flags, log, cores):
            return 0

    with pytest.raises(UserError, match="was stopped before its end"):
        run_cell(cell(tmp_path), Stopping(), keep_models=False)
    assert stored_result(cell(tmp_path)) is None
