import json

import pytest

from pipelines.many_runs.cells import (
    FINE_TUNING,
    PRETRAINING,
    TEXT,
    Cell,
    Result,
    in_order,
    run_of,
)
from tests.support.toy_study import PretendingTools


def cell(root, name="one", flags=("--seed=1",), needs=(), **more):
    return Cell(name, PRETRAINING, "run_pretraining", flags, root, needs, **more)


def test_a_cell_is_known_by_all_that_its_result_follows_from(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one")
    flags = (f"--input_file={text}", "--output_dir={out}")
    first = cell(tmp_path / "study", flags=flags)
    assert cell(tmp_path / "elsewhere", flags=flags).digest == first.digest
    others = [
        cell(tmp_path / "study", flags=(*flags, "--seed=2")),
        cell(tmp_path / "study", flags=flags, needs=(cell(tmp_path / "study", "other"),)),
        cell(tmp_path / "study", flags=flags, files={"bert_config.json": "{}"}),
    ]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text.txt").write_text("two")
    others.append(cell(tmp_path / "study", flags=(f"--input_file={tmp_path}/other", flags[1])))
    assert len({first.digest, *(other.digest for other in others)}) == 5


def test_a_changed_file_makes_another_cell(tmp_path):
    text = tmp_path / "text.txt"
    digests = set()
    for content in ("one", "two"):
        text.write_text(content)
        made = cell(tmp_path / content, flags=(f"--input_file={text}",))
        digests.add(made.digest)
    digests.add(cell(tmp_path / "again", flags=(f"--input_file={text}",)).digest)
    assert len(digests) == 2


def test_a_pattern_stands_for_the_files_that_it_means(tmp_path):
    digests = []
    for name in ("a.txt", "b.txt", "c.csv"):
        (tmp_path / name).write_text("text")
        made = cell(tmp_path / "study", flags=(f"--input_file={tmp_path}/*.txt",))
        digests.append(made.digest)
    assert digests[0] != digests[1] == digests[2]


def test_flags_from_which_nothing_follows_are_in_the_command_and_not_in_the_digest(tmp_path):
    made = cell(tmp_path, free=("--num_workers=3",))
    assert made.digest == cell(tmp_path).digest
    assert made.arguments == ("--seed=1", "--num_workers=3")


def test_a_change_anywhere_in_a_file_makes_another_cell(tmp_path):
    text, content = tmp_path / "text.txt", bytearray(3 << 20)
    digests = set()
    for place in (0, (1 << 20) + 1, len(content) - 1):
        content[place] += 1
        text.write_bytes(content)
        made = cell(tmp_path / str(place), flags=(f"--input_file={text}",))
        digests.add(made.digest)
    assert len(digests) == 3


def test_the_command_names_the_cell_s_own_folder_and_is_one_for_a_shell(tmp_path):
    made = cell(tmp_path, flags=("--output_dir={out}", "--name=two words"))
    assert made.command == (
        f"keras-bert run_pretraining --output_dir={made.folder} '--name=two words'"
    )
    assert made.folder == tmp_path / "cells" / f"one-{made.digest}"


def test_what_is_needed_comes_first_and_everything_once(tmp_path):
    text = Cell("text", TEXT, "split_sentences", (), tmp_path)
    shards = cell(tmp_path, "shards", needs=(text,))
    models = [cell(tmp_path, name, needs=(shards, text)) for name in ("a", "b")]
    assert [one.name for one in in_order([*models, shards])] == ["text", "shards", "a", "b"]


def test_two_cells_of_one_name_are_a_mistake_of_the_programmer(tmp_path):
    with pytest.raises(ValueError, match="two different cells are called one"):
        in_order([cell(tmp_path), cell(tmp_path, flags=("--seed=2",))])


def score(root, kind=FINE_TUNING, tool="run_ner", **more):
    flags = ("--output_dir={out}", "--data_dir=.") if tool == "run_ner" else ("--output_dir={out}",)
    return Cell("MRPC-bert-seed-1-1", kind, tool, flags, root, **more)


def test_a_finished_cell_has_its_figures_its_time_and_its_command(tmp_path):
    made = score(tmp_path, files={"bert_config.json": "{}"})
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
    made = score(tmp_path, kind, tool)
    run_of(made, PretendingTools(), keep).do()
    assert {path.name for path in made.folder.iterdir() if path.is_dir()} == left


def test_a_result_that_is_not_whole_is_none(tmp_path):
    made = score(tmp_path)
    run = run_of(made, PretendingTools(), keep_models=False)
    run.do()
    (made.folder / "result.json").write_text('{"figures": {}}')
    assert Result.kept(run) is None


def test_a_run_that_was_asked_to_stop_is_not_finished(tmp_path):
    class Stopping(PretendingTools):
        def run(self, tool, flags, log, cores):
            return 0

    run = run_of(score(tmp_path), Stopping(), keep_models=False)
    assert run.do() is None
    assert Result.kept(run) is None
