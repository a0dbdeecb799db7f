from dataclasses import replace

from pipelines.ablations.cells import RANDOM, USUAL, CellMaker, Start
from pipelines.many_runs.cells import in_order
from tests.support.toy_study import PretendingTools, toy_recipe


def maker(folder, **changes):
    return CellMaker(toy_recipe(folder, **changes), PretendingTools().config_of)


def test_every_command_is_one_that_its_tool_understands(tmp_path):
    made, config_of = maker(tmp_path), PretendingTools().config_of
    size, task = toy_recipe(tmp_path).sizes[0], toy_recipe(tmp_path).tasks[0]
    for start in (Start("bert", size, keeps_models=True, step=10), Start(RANDOM, size)):
        for cell in in_order([made.fine_tuned(start, task, (USUAL,), 1, 2)]):
            assert config_of(cell.tool, cell.arguments)
            assert f"keras-bert {cell.tool} " in cell.command


def test_the_last_file_of_sentences_is_held_out(tmp_path):
    made = maker(tmp_path, num_shards=3)
    train, held_out = (made.shards("data", part).flags[0] for part in ("train", "held_out"))
    folder = made.text.folder
    assert train == ",".join(
        [f"--input_file={folder}/sentences-0000{n}-of-00003.txt" if n == 0 else
         f"{folder}/sentences-0000{n}-of-00003.txt" for n in (0, 1)]
    )  # fmt: skip
    assert held_out == f"--input_file={folder}/sentences-00002-of-00003.txt"
    assert made.vocabulary.flags[0] == train


def test_random_weights_have_the_model_s_form_the_vocabulary_and_its_casing(tmp_path):
    recipe = toy_recipe(tmp_path)
    cell = maker(tmp_path).fine_tuned(
        Start(RANDOM, recipe.sizes[0]), recipe.tasks[0], (USUAL,), 0, 7
    )
    assert cell.name == "MRPC-random-seed-7"
    assert "--nodo_lower_case" in cell.flags
    assert not [flag for flag in cell.flags if flag.startswith("--init_checkpoint")]
    assert '"hidden_size": 16' in cell.files["bert_config.json"]


def test_models_of_the_figure_lie_at_checkpoints(tmp_path):
    assert maker(tmp_path).kept_steps == [10, 20, 30, 40]
    assert maker(tmp_path, num_models=3).kept_steps == [15, 30, 40]
    recipe = toy_recipe(tmp_path)
    start = Start("bert", recipe.sizes[0], keeps_models=True)
    made = maker(tmp_path)
    assert "--save_model_steps=10" in made.pretrained(start, 1).flags
    early = made.fine_tuned(replace(start, step=20), recipe.tasks[0], (USUAL,), 1, 1)
    assert early.name == "MRPC-bert-step-20-seed-1-1"
    folder = made.pretrained(start, 1).folder
    assert f"--init_checkpoint={folder}/model-20" in early.flags


def test_a_list_of_flags_that_stand_over_others_replaces_theirs(tmp_path):
    recipe = toy_recipe(tmp_path, pretraining_flags="--mask_probabilities=1,0,0 --log_steps=1")
    start = Start("other", recipe.sizes[0], flags=("--mask_probabilities=0,0,1", "--log_steps=2"))
    made = CellMaker(recipe, PretendingTools().config_of)
    flags = [one for one in made.pretrained(start, 1).flags if "mask_p" in one or "log_" in one]
    assert flags == ["--log_steps=1", "--mask_probabilities=0,0,1", "--log_steps=2"]


def test_a_second_phase_has_shards_of_its_own_and_is_measured_on_them(tmp_path):
    made = maker(
        tmp_path,
        phase2_data_flags="--max_seq_length=64",
        pretraining_flags="--max_seq_length=32 --num_train_steps=40 --phase2_max_seq_length=64"
        " --save_checkpoints_steps=5",
    )
    cell = made.pretrained(Start("bert", toy_recipe(tmp_path).sizes[0]), 1)
    assert [one.name for one in cell.needs] == [
        "data-train", "phase2-data-train", "phase2-data-held-out", "vocabulary",
    ]  # fmt: skip
    config = PretendingTools().config_of(cell.tool, cell.arguments)
    assert [phase.max_seq_length for phase in config.phases()] == [32, 64]
    assert "phase2-data-held-out" in config.eval_input_file[0]


def test_a_vocabulary_of_one_s_own_is_not_learned(tmp_path):
    made = maker(tmp_path, vocab_file="{data}/vocab.txt")
    assert made.vocabulary is None
    assert f"--vocab_file={tmp_path}/vocab.txt" in made.shards("data", "train").flags
