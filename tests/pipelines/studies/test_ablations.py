import json
import math

import pytest

from keras_bert_impl.errors import UserError
from pipelines.studies import commands
from pipelines.studies.ablations import MIXES, Study, run_ablations, study_lines, write_study
from pipelines.studies.commands import once
from pipelines.studies.recipe import TABLES
from tests.support.toy_study import PretendingTools, toy_recipe


def study(folder, **changes):
    return Study(toy_recipe(folder, **changes), PretendingTools())


def table(made, name):
    return next(one for one in made.tables if one.name == name)


def test_the_tables_have_the_rows_of_the_paper(tmp_path):
    made = study(tmp_path)
    assert tuple(one.name for one in made.tables) == ("check", *TABLES)
    assert [row.label for row in table(made, "pretraining_tasks").rows] == [
        "BERT",
        "No NSP",
        "LTR & No NSP",
        "LTR & No NSP + BiLSTM",
        "RTL & No NSP",
    ]
    masks = [row.label for row in table(made, "masking").rows]
    assert masks == ["80/10/10", "100/0/0", "80/0/20", "80/20/0", "0/20/80", "0/0/100"]
    assert all(abs(sum(mix) - 1) < 1e-9 for mix in MIXES)
    assert [row.label for row in table(made, "sizes").rows] == ["small", "tiny"]
    steps = [(row.label, *row.notes) for row in table(made, "steps").rows]
    assert steps[:4] == [("Masked LM", str(n)) for n in (10, 20, 30, 40)]
    assert steps[4:] == [("Left-to-Right", str(n)) for n in (10, 20, 30, 40)]


def test_what_tables_share_is_one_command(tmp_path):
    made = study(tmp_path)
    bert = [one.fields[0][0] for one in made.tables[1:]]
    assert bert[0] == bert[1] == bert[2]
    assert table(made, "steps").fields[3][0] == bert[0]  # of the last step
    assert len([name for name in made.commands if name.startswith("pretrain-bert-seed")]) == 1
    both = table(made, "pretraining_tasks")
    plain, recurrent = (both.fields[row][0][0] for row in (2, 3))
    assert {*recurrent.flags} - {*plain.flags} == {"--encoder_bilstm"}


def test_every_command_stands_behind_those_that_it_reads(tmp_path):
    made = study(tmp_path)
    names = [*made.commands]
    assert names[:5] == [
        "text",
        "vocabulary",
        "data-train",
        "data-held-out",
        "pretrain-bert-seed-1",
    ]
    assert {*names[5:13]} == {  # the check's come first
        *(f"{task}-bert-seed-1-{seed}" for task in ("MRPC", "NER") for seed in (1, 2)),
        *(f"{task}-random-seed-{seed}" for task in ("MRPC", "NER") for seed in (1, 2)),
    }
    done = set()
    for command in made.commands.values():
        cells = f"{command.root}/cells/"
        read = {part for flag in command.flags for part in flag.split(cells)[1:]}
        read = {part.split("/")[0].split(",")[0] for part in read}
        assert read <= done
        done.add(command.folder.name)


def test_models_differ_in_what_their_rows_say_and_in_nothing_else(tmp_path):
    made = study(tmp_path)
    models = {row.label: made.pretraining_of(row)[0] for one in made.tables for row in one.rows}
    bert = {*models["BERT"].flags}
    assert {*models["No NSP"].flags} - bert == {"--nonext_sentence"}
    assert {*models["100/0/0"].flags} - bert == {"--mask_probabilities=1.0,0.0,0.0"}
    ltr, rtl = models["LTR & No NSP"], models["RTL & No NSP"]
    assert {*ltr.flags} - bert == {"--nonext_sentence", "--objective=next_token"}
    assert {*rtl.flags} - bert == {"--nonext_sentence", "--objective=previous_token"}
    assert '"causal": true' in ltr.files["bert_config.json"]
    assert '"anticausal": true' in rtl.files["bert_config.json"]
    assert "causal" not in models["BERT"].files["bert_config.json"]


def test_other_models_whose_names_cannot_be_told_apart_are_refused(tmp_path):
    models = ("'BERT+ m1' {data}/m1", "'BERT m1' {data}/m2")
    with pytest.raises(UserError, match="two runs would be called MRPC-other-BERT-m1-seed-1"):
        study(tmp_path, tables=("models",), other_model=models)
    same = study(tmp_path, tables=("models",), other_model=(models[0], "'BERT m2' {data}/m2"))
    assert len(same.tables[-1].rows) == 4


@pytest.mark.parametrize("where", ["task", "fine_tuning_flags"])
@pytest.mark.parametrize("flag", ["--num_seeds=2", "--search=paper"])
def test_tasks_of_many_runs_are_refused_before_anything_is_trained(tmp_path, where, flag):
    before = getattr(toy_recipe(tmp_path), where)
    changed = f"{before} {flag}" if isinstance(before, str) else (f"{before[0]} {flag}",)
    with pytest.raises(UserError, match="leave num_seeds and search out; give `seeds`"):
        study(tmp_path, **{where: changed})


@pytest.mark.parametrize(
    ("given", "of_mrpc", "of_ner"),
    [
        ("--nodo_lower_case", ["--nodo_lower_case"], ["--nodo_lower_case"]),
        ("--do_lower_case=False", ["--do_lower_case=False"], ["--do_lower_case=False"]),
        ("--unicode_form=nfc", [], ["--unicode_form=nfc"]),
    ],
)
def test_random_weights_read_text_as_the_study_s_own_model_does(tmp_path, given, of_mrpc, of_ner):
    made = study(tmp_path, data_flags=f"--max_seq_length=32 {given}")
    for task, wanted in (("MRPC", of_mrpc), ("NER", of_ner)):
        flags = made.commands[f"{task}-random-seed-1"].flags
        assert [one for one in flags if "case" in one or "form" in one] == wanted


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
    assert files[2].read_bytes().startswith(b"\x89PNG")
    again = PretendingTools()
    assert run_ablations(recipe, again)[0] == lines
    assert again.started == []


def test_what_a_kill_left_of_a_finished_run_is_removed_but_no_model_that_was_kept(tmp_path):
    recipe = small_recipe(tmp_path, keep_models=True)
    run_ablations(recipe, PretendingTools())
    (left,) = recipe.output_dir.glob("cells/MRPC-bert-seed-1-1-*")
    (left / "checkpoints").mkdir()
    run_ablations(small_recipe(tmp_path), PretendingTools())
    assert {path.name for path in left.iterdir() if path.is_dir()} == {"model"}


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


def test_the_figure_of_steps_needs_runs_that_take_all_of_them(tmp_path):
    own = toy_recipe(tmp_path).pretraining_flags
    for name in ("train_hours=1", "early_stopping_evals=3"):
        changes = {"pretraining_flags": f"{own} --{name} --do_eval --eval_steps=5"}
        with pytest.raises(UserError, match="the figure of steps needs all of them"):
            Study(toy_recipe(tmp_path, **changes), PretendingTools())


def test_a_dry_run_lists_every_command_once_and_starts_none(tmp_path):
    recipe, tools = toy_recipe(tmp_path, dry_run=True), PretendingTools()
    lines, files = run_ablations(recipe, tools)
    assert (tools.started, files, recipe.output_dir.exists()) == ([], [], False)
    commands = [line for line in lines if line.startswith("    keras-bert ")]
    assert len(commands) == len({*commands})
    assert lines[-1] == f"{len(commands)} runs"


@pytest.fixture
def made(tmp_path):
    return Study(toy_recipe(tmp_path), PretendingTools())


def scored(study, scores):
    """The study once the commands are finished whose names begin as said."""
    for name, command in study.commands.items():
        for start, score in scores.items():
            if name.startswith(start):
                figures = {"eval_f1": score, "masked_lm_loss": math.log(20)}
                values = {"figures": figures, "seconds": 60.0}
                once(command.folder, lambda values=values: values)
    return study


def test_fields_are_mean_and_deviation_and_open_ones_are_empty(made):
    scores = {"MRPC-bert-seed-1-1": 0.90, "MRPC-bert-seed-1-2": 0.92}
    scores |= {"MRPC-no-nsp-seed-1-1": 0.91, "MRPC-no-nsp-seed-1-2": 0.92}
    lines = study_lines(scored(made, {**scores, "MRPC-left-to-right-seed-1-1": 0.1}))
    first = lines.index("## The pre-training tasks (table 5 of the paper)") + 4
    cells = [[part.strip() for part in line.split("|")[1:-1]] for line in lines[first:][:4]]
    assert cells == [
        ["BERT", "0.9100 ± 0.0141", "–"],
        ["No NSP", "0.9150 ± 0.0071", "–"],
        ["LTR & No NSP", "0.1000", "–"],  # of a single run nothing is known
        ["LTR & No NSP + BiLSTM", "–", "–"],
    ]


def test_json_has_the_scores_and_null_for_nan(made, tmp_path):
    finished = scored(made, {"MRPC-bert-seed-1": 0.9, "MRPC-no-nsp-seed-1-1": 0.8})
    written = write_study(finished, tmp_path)
    values = json.loads(written[1].read_text())
    rows = {(row["row"], row["column"]): row for row in values["tables"]["pretraining_tasks"]}
    assert rows["BERT", "MRPC"]["scores"] == [0.9, 0.9]
    assert rows["No NSP", "MRPC"]["sigma"] is None


def test_fine_tunings_of_one_model_are_no_independent_runs(tmp_path):
    made = study(tmp_path, pretraining_seeds=(1, 2), tables=("pretraining_tasks",))
    scores = {
        f"MRPC-{model}-seed-{first}-{second}": base + 0.1 * first + 0.001 * second
        for model, base in (("bert", 0.5), ("no-nsp", 0.4), ("left-to-right", 0.1))
        for first in (1, 2)
        for second in (1, 2)
    }
    scores |= {"MRPC-random-seed-1": 0.1, "MRPC-random-seed-2": 0.102}
    lines = study_lines(scored(made, scores))
    fields = [line.split("|")[2].strip() for line in lines if line.startswith("|")]
    assert "0.6515 ± 0.0577" in fields
    assert "0.5515 ± 0.0577" in fields  # pooled, Welch's interval would leave out 0 here
