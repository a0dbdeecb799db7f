"""The tool of the ablations and its recipes."""

from pathlib import Path

import pytest

from tools.run_ablations import main, with_recipe

RECIPES = Path(__file__).parents[2] / "tools" / "recipes"


def plan(capsys, recipe, *flags):
    words = [f"--recipe={RECIPES / recipe}", "--output_dir=study", "--data_dir=data", *flags]
    assert main([*words, "--dry_run"]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_recipe_of_the_paper_has_its_sizes_and_keeps_its_models(capsys):
    lines = plan(capsys, "ablations_paper.cfg", "--seeds=1")
    text = "\n".join(lines)
    for name in ("pretrain-bert", "pretrain-bert-3x768", "pretrain-bert-large"):
        assert f"] {name}-seed-1 (for " in text
    kept = next(line for line in lines if "--output_dir=study/cells/pretrain-bert-seed-1" in line)
    assert "--save_model_steps=100000 " in f"{kept} "


def test_the_small_recipe_shares_runs_between_its_tables(capsys):
    lines = plan(capsys, "ablations_small.cfg", "--seeds=1,2")
    headers = [line for line in lines if line.startswith("[")]
    pretrained = [line for line in headers if "] pretrain-" in line]
    assert len(pretrained) == 12  # BERT, no NSP, two directions, three more sizes, five more masks
    assert "pretraining_tasks, sizes, masking, steps" in pretrained[0]


@pytest.mark.parametrize("words", [["--recipe", "a.cfg"], ["-recipe=a.cfg"]])
def test_a_recipe_may_be_named_as_any_flag(words):
    assert with_recipe(words)[0] == "--flagfile=a.cfg"


def test_a_recipe_that_is_not_there_or_wrong_is_one_sentence(capsys, tmp_path):
    assert main(["--output_dir=x", "--recipe=/nowhere"]) == 1
    (tmp_path / "recipe.cfg").write_text("--input_file=a\n--size=wide\n--task=a b run_ner\n")
    assert main([f"--output_dir={tmp_path}", f"--recipe={tmp_path}/recipe.cfg"]) == 1
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 2
    assert error[1].startswith("Error: --size=wide: give it as NAME LAYERS WIDTH HEADS")
