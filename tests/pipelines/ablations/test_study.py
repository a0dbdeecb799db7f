from pipelines.ablations.config import TABLES
from pipelines.ablations.study import MIXES, Study
from tests.support.toy_study import PretendingTools, toy_recipe


def study(folder, **changes):
    return Study(toy_recipe(folder, **changes), PretendingTools())


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


def test_what_tables_share_is_one_command(tmp_path):
    made = study(tmp_path)
    bert = [one.fields[0][0] for one in made.tables]
    assert bert[0] == bert[1] == bert[2]
    assert table(made, "steps").fields[3][0] == bert[0]  # of the last step
    assert made.users["pretrain-bert-seed-1"] == ["check", *TABLES]
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
