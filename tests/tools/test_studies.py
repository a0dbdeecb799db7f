"""The tools that score, make studies and show what there is; and the recipes."""

import json
from pathlib import Path

import pytest

from pipelines.tasks.labels.glue import COLA
from tests.pipelines.tasks.labels.test_submission import write_answers
from tests.support.squad_files import write_squad
from tools import glue_submission, score_answers, score_tags, tokenize_text
from tools.table import tool_named

RECIPES = Path(__file__).parents[2] / "tools" / "recipes"
SMALL = str(RECIPES / "ablations_small.cfg")


def plan(capsys, recipe, *flags):
    words = [f"--recipe={RECIPES / recipe}", "--output_dir=study", "--data_dir=data", *flags]
    assert tool_named("run_ablations").main([*words, "--dry_run"]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_recipe_of_the_paper_has_its_sizes_and_keeps_its_models(capsys):
    lines = plan(capsys, "ablations_paper.cfg", "--seeds=1")
    text = "\n".join(lines)
    for name in ("pretrain-bert", "pretrain-bert-3x768", "pretrain-bert-large"):
        assert f"\n{name}-seed-1\n" in text
    kept = next(line for line in lines if "--output_dir=study/cells/pretrain-bert-seed-1" in line)
    assert "--save_model_steps=100000 " in f"{kept} "


def test_the_small_recipe_shares_runs_between_its_tables(capsys):
    lines = plan(capsys, "ablations_small.cfg", "--seeds=1,2")
    pretrained = [line for line in lines if line.startswith("pretrain-")]
    assert len(pretrained) == 12  # BERT, no NSP, two directions, three more sizes, five more masks


@pytest.mark.parametrize("recipe", [["--recipe", SMALL], [f"-recipe={SMALL}"]])
def test_what_the_command_line_says_stands_over_the_recipe_wherever_it_stands(recipe):
    flags = tool_named("run_ablations").flags
    flags.parse(["--output_dir=x", "--seeds=7", "--vocab_size=99", *recipe])
    config = flags.config()
    assert (config.seeds, config.vocab_size, config.num_shards) == ((7,), 99, 20)


def test_a_recipe_that_is_not_there_or_wrong_is_one_sentence(capsys, tmp_path):
    assert tool_named("run_ablations").main(["--output_dir=x", "--recipe=/nowhere"]) == 1
    (tmp_path / "recipe.cfg").write_text("--input_file=a\n--size=wide\n--task=a b run_ner\n")
    assert (
        tool_named("run_ablations").main(
            [f"--output_dir={tmp_path}", f"--recipe={tmp_path}/recipe.cfg"]
        )
        == 1
    )
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 2
    assert error[0].startswith("Error: --recipe=/nowhere: ")
    assert error[1].startswith("Error: --size=wide: give it as NAME LAYERS WIDTH HEADS")


def test_a_recipe_is_of_a_study_alone(capsys):
    assert "--recipe" in tool_named("run_ablations").flags.help_text()
    assert tokenize_text.main([f"--recipe={SMALL}"]) == 1
    assert "--recipe is not a flag" in capsys.readouterr().err


def test_the_archive_is_written_and_what_is_missing_is_said(tmp_path, capsys):
    write_answers(tmp_path / "runs" / "cola", COLA)
    words = [f"--run_dir={tmp_path}/runs", f"--output_file={tmp_path}/submission.zip"]
    assert glue_submission.main(words) == 0
    output = capsys.readouterr().out
    assert f"{tmp_path}/runs/cola/CoLA.tsv" in output
    assert "missing: AX.tsv, MNLI-m.tsv, MNLI-mm.tsv, MRPC.tsv" in output
    assert (tmp_path / "submission.zip").exists()


def test_answers_are_scored(tmp_path, capsys):
    data = write_squad(tmp_path / "dev.json", 4)
    (tmp_path / "predictions.json").write_text(json.dumps({f"q{n}": "dog" for n in range(4)}))
    words = [f"--data_file={data}", f"--predictions_file={tmp_path}/predictions.json"]
    assert score_answers.main(words) == 0
    figures = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert set(figures) == {"exact_match", "f1"}
    assert score_answers.main([*words, "--null_odds_file=odds.json"]) == 1
    assert "add --version_2_with_negative" in capsys.readouterr().err


def test_tags_are_scored(tmp_path, capsys):
    path = tmp_path / "dev_predictions.txt"
    path.write_text("Ada B-PER B-PER\nByron I-PER O\n\nIt O O\n")
    assert score_tags.main([f"--predictions_file={path}"]) == 0
    assert "f1 = 0.0" in capsys.readouterr().out.splitlines()
