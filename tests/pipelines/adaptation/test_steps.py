from dataclasses import replace

import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from pipelines.adaptation.steps import Steps
from tests.support.adaptation import PretendingTrainers, toy_adaptation

CONFIG_OF = PretendingTrainers().config_of


def steps_of(folder, **changes):
    config = toy_adaptation(folder, **changes)
    return Steps(config, find_model(config.init_checkpoint), grows=config.words.num_new_tokens > 0)


def test_every_command_is_one_that_its_tool_understands(tmp_path):
    steps = steps_of(tmp_path, task="run_classifier --train_file=a.tsv --dev_file=b.tsv")
    asked = steps.check(CONFIG_OF)
    assert asked.pretraining.training.early_stopping_evals == 3
    assert asked.pretraining.training.save_best
    assert [task.training.seed for task in asked.tasks] == [1, 2, 3] * 2
    assert [cell.name for cell in steps.cells()] == [
        "text", "data-original-held-out", "evaluated-original",
        *(f"task-original-seed-{seed}" for seed in (1, 2, 3)),
        "grown", "data-grown-held-out", "evaluated-grown", "data-grown-train", "trained",
        *(f"task-adapted-seed-{seed}" for seed in (1, 2, 3)),
    ]  # fmt: skip


def test_the_last_file_of_sentences_is_held_out_from_words_and_training(tmp_path):
    steps = steps_of(tmp_path)
    train, held_out = (steps.sentences(held_out=part) for part in (False, True))
    assert [path.name for path in held_out] == ["sentences-00003-of-00004.txt"]
    assert len(train) == 3
    assert not {*train} & {*held_out}
    asked = CONFIG_OF("run_pretraining", steps.trained.arguments)
    assert asked.input_file != asked.eval_input_file
    assert "data-grown-train-" in asked.input_file[0]


def test_held_out_words_are_masked_whole_and_once_whatever_the_flags_of_the_data(tmp_path):
    steps = steps_of(tmp_path, data_flags="--dupe_factor=9 --masked_lm_prob=0.2")
    train, held_out = (
        CONFIG_OF("create_pretraining_data", steps.shards("grown", held_out=part).arguments).recipe
        for part in (False, True)
    )
    assert (train.dupe_factor, train.masking) == (9, "dynamic")
    assert (held_out.dupe_factor, held_out.masking) == (1, "static")
    assert train.do_whole_word_mask
    assert train.masked_lm_prob == held_out.masked_lm_prob == 0.2


def test_a_model_whose_casing_nobody_knows_is_described_in_every_command_that_opens_it(tmp_path):
    steps = steps_of(tmp_path)
    (tmp_path / "model" / "tokenizer_config.json").unlink()
    config = toy_adaptation(tmp_path, do_lower_case=False)
    steps = Steps(config, find_model(config.init_checkpoint, do_lower_case=False), grows=True)
    opens = [steps.grown, steps.evaluated("original"), steps.shards("original", held_out=True)]
    assert all("--nodo_lower_case" in cell.flags for cell in opens)


def test_what_changes_no_result_changes_no_folder(tmp_path):
    names = {
        tuple(cell.folder.name for cell in steps_of(tmp_path, **changes).cells())
        for changes in ({}, {"num_workers": 3}, {"examples_per_second": 2.0})
    }
    assert len(names) == 1


def test_a_changed_number_of_steps_trains_anew_on_the_same_words_and_shards(tmp_path):
    before, after = steps_of(tmp_path), steps_of(tmp_path, num_train_steps=30)
    differ = [
        one.name
        for one, other in zip(before.cells(), after.cells(), strict=True)
        if one.folder != other.folder
    ]
    assert differ == ["trained"]
    assert before.words_folder == after.words_folder


def test_another_text_or_model_makes_everything_anew(tmp_path):
    steps = steps_of(tmp_path)
    (tmp_path / "text.txt").write_text("Another text.\n")
    other = Steps(replace(steps.config, held_out_every=5), steps.source, grows=True)
    assert not {cell.folder for cell in steps.cells()} & {cell.folder for cell in other.cells()}
    assert steps.words_folder != other.words_folder


def test_without_new_tokens_the_model_as_it_came_is_trained(tmp_path):
    steps = replace(steps_of(tmp_path), grows=False)
    names = [cell.name for cell in steps.cells()]
    assert names == [
        "text", "data-original-held-out", "evaluated-original", "data-original-train", "trained",
    ]  # fmt: skip
    assert f"--init_checkpoint={tmp_path}/model" in steps.trained.flags


def test_new_heads_learn_alone_before_the_encoder_that_has_learned(tmp_path):
    steps = replace(steps_of(tmp_path), lacks_words=True)
    asked = steps.check(CONFIG_OF)
    assert asked.head_steps == 2  # a tenth of all
    names = [cell.name for cell in steps.cells()]
    assert names.index("heads") + 1 == names.index("trained")
    heads, trained = (
        CONFIG_OF("run_pretraining", steps.cells()[names.index(name)].arguments)
        for name in ("heads", "trained")
    )
    assert (heads.train_encoder, trained.train_encoder) == (False, True)
    assert heads.init_checkpoint == str(steps.start_folder / "model")
    assert trained.init_checkpoint == str(steps.heads.folder / "model")
    assert heads.training.bias_correction
    assert trained.training.bias_correction


def test_without_steps_for_heads_all_of_a_model_learns_from_the_first_one(tmp_path):
    steps = replace(steps_of(tmp_path, num_head_steps=0), lacks_words=True)
    assert "heads" not in [cell.name for cell in steps.cells()]
    trained = CONFIG_OF("run_pretraining", steps.trained.arguments)
    assert trained.init_checkpoint == str(steps.start_folder / "model")
    assert steps.check(CONFIG_OF).head_steps == 0


def test_many_seeds_of_the_task_are_asked_for_in_one_way_only(tmp_path):
    steps = steps_of(tmp_path, task="run_classifier --train_file=a.tsv --num_seeds=2")
    with pytest.raises(UserError, match="`task`: leave `num_seeds` and `search` out"):
        steps.check(CONFIG_OF)


def test_a_length_beyond_the_model_s_positions_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(UserError, match="`max_seq_length=64` is more than the 32 positions"):
        steps_of(tmp_path, max_seq_length=64).check(CONFIG_OF)
