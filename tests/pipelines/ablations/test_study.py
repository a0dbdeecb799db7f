from pipelines.ablations.config import TABLES
from pipelines.ablations.study import FEATURES, MIXES, Study
from tests.support.toy_study import PretendingTools, toy_recipe


def study(folder, **changes):
    return Study(toy_recipe(folder, **changes), PretendingTools().config_of)


def table(made, name):
    return next(one for one in made.tables if one.name == name)


def test_the_tables_have_the_rows_of_the_paper(tmp_path):
    made = study(tmp_path)
    assert tuple(one.name for one in made.tables) == TABLES
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


def test_other_models_stand_beside_ours_and_random_weights_with_flags_of_their_own(tmp_path):
    (tmp_path / "minilm").mkdir()
    (tmp_path / "minilm" / "vocab.txt").write_text("first")
    others = ("'MiniLM, grown' {data}/minilm --pooling=mean", "theirs hub/bert")
    made = study(tmp_path, tables=("models",), other_model=others)
    (models,) = made.tables
    labels = ["BERT", "random weights", "MiniLM, grown", "theirs"]
    assert [row.label for row in models.rows] == labels
    mrpc = [models.fields[row, models.columns[0]] for row in models.rows]
    names = [[cell.name for cell in cells] for cells in mrpc]
    assert names[2] == ["MRPC-other-MiniLM-grown-seed-1", "MRPC-other-MiniLM-grown-seed-2"]
    assert f"--init_checkpoint={tmp_path}/minilm" in mrpc[2][0].flags
    assert "--pooling=mean" in mrpc[2][0].flags
    assert not any("--pooling=mean" in mrpc[row][0].flags for row in (0, 1, 3))
    assert mrpc[2][0].needs == ()
    before = [cells[0].digest for cells in mrpc]
    (tmp_path / "minilm" / "vocab.txt").write_text("other")
    again = study(tmp_path, tables=("models",), other_model=others).tables[0]
    digests = [again.fields[row, again.columns[0]][0].digest for row in again.rows]
    same = [one == other for one, other in zip(before, digests, strict=True)]
    assert same == [True, True, False, True]


def test_what_tables_share_is_one_cell(tmp_path):
    made = study(tmp_path)
    bert = [
        one.fields[one.rows[0], one.columns[0]] for one in made.tables if one.name != "features"
    ]
    assert bert[0] == bert[1] == bert[2]
    last = table(made, "steps")
    assert last.fields[last.rows[3], last.columns[0]] == bert[0]  # of the last step
    names = [cell.name for cell in made.cells]
    assert len(names) == len({*names})
    assert made.users()["pretrain-bert-seed-1"] == ["check", *TABLES]
    both = table(made, "pretraining_tasks")
    plain, recurrent = (both.fields[both.rows[row], both.columns[0]][0] for row in (2, 3))
    assert plain.needs == recurrent.needs
    assert "--encoder_bilstm" in recurrent.flags
    assert "--encoder_bilstm" not in plain.flags


def test_the_first_cells_are_those_of_the_check(tmp_path):
    made = study(tmp_path)
    names = [cell.name for cell in made.cells]
    assert names[:5] == [
        "text",
        "vocabulary",
        "data-train",
        "data-held-out",
        "pretrain-bert-seed-1",
    ]
    assert {*names[5:13]} == {
        *(f"{task}-bert-seed-1-{seed}" for task in ("MRPC", "NER") for seed in (1, 2)),
        *(f"{task}-random-seed-{seed}" for task in ("MRPC", "NER") for seed in (1, 2)),
    }


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


def test_every_seed_of_pre_training_meets_every_seed_of_fine_tuning(tmp_path):
    made = study(tmp_path, pretraining_seeds=(5, 6), tables=("pretraining_tasks",))
    (only,) = made.tables
    seeds = [cell.seeds for cell in only.fields[only.rows[0], only.columns[0]]]
    assert seeds == [(5, 1), (5, 2), (6, 1), (6, 2)]
    random = made.check.fields[made.check.rows[1], made.check.columns[0]]
    assert [cell.seeds for cell in random] == [(0, 1), (0, 2)]


def test_only_what_the_chosen_tables_need_is_run(tmp_path):
    made = study(tmp_path, tables=("sizes",), sizes_tasks=("NER",))
    names = [cell.name for cell in made.cells]
    assert [name for name in names if name.startswith("pretrain")] == [
        "pretrain-bert-seed-1",
        "pretrain-bert-tiny-seed-1",
    ]
    assert not [name for name in names if name.startswith("MRPC")]


def test_features_stand_beside_fine_tuning_and_beside_the_masks(tmp_path):
    made = study(tmp_path)
    rows = [row.label for row in table(made, "features").rows]
    columns = [column.label for column in table(made, "masking").columns]
    assert rows == ["Fine-tuning", *FEATURES.values()]
    assert columns == ["MRPC", "NER", "NER, features"]
