"""What a user can do wrong before training starts, each answered in one sentence."""

import contextlib
import io
import json
import shutil

import pytest

from tests.support.pretraining_run import GOLDEN, RECORDED, config_with_dropout
from tools.run_pretraining import main

EVALUATED = {"do_eval": True, "max_eval_steps": 2}


def words(output_dir, **changes):
    flags = {**RECORDED, "output_dir": output_dir, **changes}
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in flags.items()
        if value is not None
    ]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Flags of a model that is ready to train sooner than the recorded one."""
    path = config_with_dropout(tmp_path_factory.mktemp("small"))
    return {"bert_config_file": path, "init_checkpoint": None}


@pytest.fixture(scope="module")
def once_begun(small, tmp_path_factory):
    """A run of two steps that was stopped after the first."""
    run = tmp_path_factory.mktemp("begun") / "run"
    assert main(words(run, **small, num_train_steps=2, stop_after_step=1)) == 0
    return run


@pytest.fixture(scope="module")
def once_finished(small, tmp_path_factory):
    """A run of two steps that was evaluated, and what was printed."""
    run, said = tmp_path_factory.mktemp("finished") / "run", io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(words(run, **small, **EVALUATED, num_train_steps=2)) == 0
    return run, said.getvalue()


@pytest.fixture
def begun(once_begun, tmp_path):
    """A test's own copy of the run that was stopped."""
    return shutil.copytree(once_begun, tmp_path / "run")


@pytest.fixture
def finished(once_finished, tmp_path):
    """A test's own copy of the run that was finished."""
    return shutil.copytree(once_finished[0], tmp_path / "run")


def sentence(capsys, output_dir, **changes):
    assert main(words(output_dir, **changes)) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("Error: ")
    return error


def changed_config(folder, **changes):
    values = json.loads((GOLDEN / "bert_config.json").read_text())
    path = folder / "bert_config.json"
    path.write_text(json.dumps({**values, **changes}))
    shutil.copy(GOLDEN / "vocab.txt", folder)
    return path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"do_train": False}, "nothing to do; give --do_train or --do_eval"),
        ({"input_file": None}, "--input_file is missing"),
        ({"input_file": "nowhere*"}, "'nowhere*' matches no file"),
        ({"bert_config_file": None}, "name the configuration with --bert_config_file"),
        ({"model_size": "tiny"}, "--model_size=tiny is for a new model"),
        ({"init_checkpoint": "no.ckpt"}, "no.ckpt: no such file or folder; check the path"),
        ({"max_seq_length": 256}, "--max_seq_length=256 is more than the 128 positions"),
        ({"max_seq_length": 32}, "max_seq_length=64, which does not fit"),
        ({"max_predictions_per_seq": 5}, "--max_predictions_per_seq=10"),
        ({"phase2_input_file": "x", "phase2_num_train_steps": 40}, "leaves no steps"),
        (
            {"phase2_input_file": "x", "phase2_max_seq_length": 256},
            "--phase2_max_seq_length=256 is",
        ),
        (
            {"phase2_input_file": "none*", "phase2_max_seq_length": 64},
            "--phase2_input_file: 'none*' matches no file",
        ),
        ({"phase2_num_train_steps": 4}, "--phase2_num_train_steps is given, but --phase2_input_f"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(capsys, tmp_path, changes, expected):
    assert expected in sentence(capsys, tmp_path / "run", **changes)


def test_a_checkpoint_of_another_shape_is_refused(capsys, tmp_path):
    config = changed_config(tmp_path, hidden_size=32)
    assert "bert_model.ckpt" in sentence(capsys, tmp_path / "run", bert_config_file=config)


def test_a_vocabulary_larger_than_the_models_table_is_noticed_in_the_shards(capsys, tmp_path):
    config = changed_config(tmp_path, vocab_size=500)
    error = sentence(capsys, tmp_path / "run", bert_config_file=config, init_checkpoint=None)
    assert "has 1000 tokens, but the model only knows 500" in error


def poisoned_shard(folder, record, name, value):
    """The recorded shard, one number of one record changed."""
    import tensorflow as tf

    shard = folder / "poisoned.tfrecord"
    with tf.io.TFRecordWriter(str(shard)) as writer:
        for number, content in enumerate(tf.data.TFRecordDataset(str(GOLDEN / "train.tfrecord"))):
            example = tf.train.Example.FromString(content.numpy())
            if number == record:
                feature = example.features.feature[name]
                (feature.float_list.value or feature.int64_list.value)[0] = value
            writer.write(example.SerializeToString())
    return shard


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("input_ids", 1000, "record 401 has 1000 in input_ids, but the model only knows 0 to 999"),
        ("masked_lm_weights", float("nan"), "record 401 has nan in masked_lm_weights"),
    ],
)
def test_every_record_is_looked_at_before_the_first_step(capsys, tmp_path, name, value, expected):
    shard = poisoned_shard(tmp_path, 401, name, value)
    error = sentence(capsys, tmp_path / "run", input_file=shard)
    assert f"poisoned.tfrecord: {expected}" in error
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_records_are_checked_when_they_are_read(capsys, tmp_path):
    shard = poisoned_shard(tmp_path, 11, "input_ids", 1000)
    error = sentence(capsys, tmp_path / "run", input_file=shard)  # 8 a step, in file order
    assert "poisoned.tfrecord: record 11 has 1000 in input_ids" in error


def test_a_loss_that_is_no_number_is_answered_with_step_shard_records_and_remedy(
    capsys, tmp_path, small
):
    error = sentence(capsys, tmp_path / "run", **small, learning_rate=1e30, clip_norm=1e30)
    assert "Step 3: the loss is nan" in error  # step 1 has rate 0, step 2 throws the weights away
    assert "records 16, 17, 18, 19, 20, 21, 22, 23 of " in error
    assert "train.tfrecord; try a smaller --learning_rate" in error


def test_a_dry_run_takes_a_step_of_each_phase_and_leaves_nothing(capsys, tmp_path):
    flags = {
        "dry_run": True,
        "phase2_input_file": GOLDEN / "train.tfrecord",
        "phase2_max_seq_length": 64,
        "phase2_max_predictions_per_seq": 10,
        "phase2_train_batch_size": 4,
    }
    assert main(words(tmp_path / "run", **flags)) == 0
    recorded = json.loads((GOLDEN / "losses.json").read_text())["steps"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Dry run: a step of phase 1 gives loss {recorded[0]['loss']:.4f}."
    assert lines[1].startswith("Dry run: a step of phase 2 gives loss ")
    assert list(tmp_path.iterdir()) == []


def test_a_stop_of_the_start_says_that_nothing_was_begun(capsys, tmp_path, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.runs.pretraining_start.check_start", stop)
    assert main(words(tmp_path / "run")) == 130
    error = capsys.readouterr().err.strip()
    assert error == "Interrupted; training had not begun, and the same command begins it."


def test_a_finished_run_names_the_flags_that_differ(capsys, once_finished, finished, small):
    run, printed = once_finished
    assert f"\nwrote {run}/model\n" in printed
    given = {**small, **EVALUATED, "num_train_steps": 2}
    assert main(words(finished, **given, log_steps=2)) == 0
    printed = capsys.readouterr().out
    assert "is finished; its model is in model/." in printed
    assert "wrote" not in printed
    error = sentence(capsys, finished, **given, seed=7)
    assert "--seed was 12345 and is 7" in error
    error = sentence(capsys, finished, **{**given, "num_train_steps": 4})
    assert "--num_train_steps was 2 and is 4" in error


def test_a_run_that_was_made_longer_is_finished_at_its_new_end_only(capsys, finished, small):
    longer = {**small, **EVALUATED, "num_train_steps": 6}
    assert main(words(finished, **longer, allow_changed_flags=True, stop_after_step=4)) == 0
    before = (finished / "model" / "model.safetensors").read_bytes()
    assert main(words(finished, **longer)) == 0  # the old model and its figures are there, but old
    assert "global_step = 6" in (finished / "eval_results.txt").read_text()
    assert (finished / "model" / "model.safetensors").read_bytes() != before
    capsys.readouterr()
    assert main(words(finished, **longer)) == 0
    assert "is finished" in capsys.readouterr().out


def test_an_evaluation_with_another_model_than_the_runs_is_refused_and_blames_no_checkpoint(
    capsys, begun, tmp_path
):
    run, evaluate = begun, {"do_train": False, "do_eval": True, "init_checkpoint": None}
    for name, value in (("num_attention_heads", 2), ("num_hidden_layers", 1)):
        config = changed_config(tmp_path, **{name: value})
        error = sentence(capsys, run, bert_config_file=config, **evaluate)
        assert "made with other settings: --bert_config_file was" in error
    flags = {**evaluate, "allow_changed_flags": True}
    config = changed_config(tmp_path, hidden_size=32)
    error = sentence(capsys, run, bert_config_file=config, **flags)
    assert "step-00000001: was made with a model of another shape" in error


def test_without_a_checkpoint_the_runs_model_is_evaluated_and_without_that_nothing(
    capsys, tmp_path, finished, small
):
    evaluate = {**small, **EVALUATED, "do_train": False}
    error = sentence(capsys, tmp_path / "typo", **evaluate)
    assert "typo: holds no checkpoint that --do_eval could measure" in error
    results = finished / "eval_results.txt"
    before = results.read_text()
    results.unlink()
    shutil.rmtree(finished / "checkpoints")
    assert main(words(finished, num_train_steps=2, **evaluate)) == 0
    assert results.read_text() == before


def test_shards_may_move_but_not_change_and_a_refusal_leaves_the_flags(
    capsys, tmp_path, begun, small
):
    flags = (begun / "flags.cfg").read_text()
    assert "--num_train_steps=2" in flags
    assert "--stop_after_step" not in flags  # a repetition shall not stop there again
    other = poisoned_shard(tmp_path, 3, "next_sentence_labels", 1)
    error = sentence(capsys, begun, **small, num_train_steps=2, input_file=other)
    assert "--input_file was '1 shard, " in error
    assert (begun / "flags.cfg").read_text() == flags
    moved = tmp_path / "moved.tfrecord"
    shutil.copy(GOLDEN / "train.tfrecord", moved)
    assert main(words(begun, **small, num_train_steps=2, input_file=moved)) == 0
