import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import changed_settings
from keras_bert_impl.training.checkpoints import Checkpoints, check_settings
from tests.support.toy_training import toy_run


def variables(*values):
    return {"weights": [tf.Variable(value) for value in values]}


def saved(folder, state, step, settings=None, **options):
    """The checkpoints of a folder, after one was saved."""
    checkpoints = Checkpoints(folder, state, **{"keep": 5, **options})
    checkpoints.save(step, settings or {})
    checkpoints.wait()
    return checkpoints


def test_what_is_restored_is_what_was_saved(tmp_path):
    saved(tmp_path, variables(1.0, [2.0, 3.0]), 7, {"seed": 1})
    state = variables(0.0, [0.0, 0.0])
    assert Checkpoints(tmp_path, state, keep=5).restore_newest() == {
        "step": 7,
        "settings": {"seed": 1},
        "kept": {},
    }
    assert [np.asarray(v).tolist() for v in state["weights"]] == [1.0, [2.0, 3.0]]


def test_a_refused_checkpoint_leaves_the_variables_alone(tmp_path):
    saved(tmp_path, variables(1.0), 7)
    state = variables(0.0)

    def refuse(description):
        assert description["step"] == 7
        raise UserError("made with other settings")

    with pytest.raises(UserError, match="other settings"):
        Checkpoints(tmp_path, state, keep=5).restore_newest(refuse)
    assert float(state["weights"][0]) == 0.0


def test_the_same_step_is_saved_once_and_a_best_one_stands_beside_it(tmp_path):
    checkpoints = saved(tmp_path / "all", variables(1.0), 7)
    checkpoints.save(7, {})
    checkpoints.save(7, {}, regular=False, best=tmp_path / "best")
    checkpoints.wait()
    assert (tmp_path / "best" / "checkpoint.json").exists()
    assert checkpoints.steps() == [7]


def test_a_worker_that_only_reads_writes_nothing(tmp_path):
    saved(tmp_path / "none", variables(1.0), 7, writes=False)
    assert not (tmp_path / "none").exists()


def test_what_a_kill_left_half_written_goes_when_the_run_goes_on(tmp_path):
    (tmp_path / ".step-00000007.host.1.incomplete").mkdir()
    Checkpoints(tmp_path, variables(1.0), keep=5, writes=False)
    assert len(list(tmp_path.iterdir())) == 1
    Checkpoints(tmp_path, variables(1.0), keep=5)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_shape_is_refused_and_not_called_broken(tmp_path):
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(4)])
    weights = {"weights": [weight.value for weight in model.weights]}
    run = toy_run(tmp_path, step=7)
    run.save()
    run.checkpoints.wait()
    reports = []
    found = Checkpoints(tmp_path / "checkpoints", weights, keep=1, log=reports.append)
    with pytest.raises(UserError, match=r"step-00000007: was made with a model of another shape"):
        found.restore_newest()
    assert reports == []
    assert found.steps() == [7]


def test_checkpoints_of_which_none_can_be_read_are_no_new_run(tmp_path):
    for step in (7, 14):
        (tmp_path / f"step-{step:08d}").mkdir(parents=True)
    logged = []
    with pytest.raises(UserError, match="none of the 2 checkpoints can be read"):
        Checkpoints(tmp_path, variables(1.0), keep=5, log=logged.append).restore_newest()
    assert len(logged) == 2


def test_added_removed_and_changed_settings_are_named():
    changed = changed_settings({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert changed == [("a", 1, None), ("b", 2, 3), ("c", None, 4)]


def test_a_setting_that_a_checkpoint_is_too_old_to_name_was_its_default():
    before, defaults = {"seed": 1}, {"seed": 5, "shuffle": False, "gone": 1}
    check_settings(before, {"seed": 1, "shuffle": False}, "run", defaults)
    with pytest.raises(UserError, match="`shuffle` was False and is True"):
        check_settings(before, {"seed": 1, "shuffle": True}, "run", defaults)
    with pytest.raises(UserError, match="`seed` was 1 and is 5"):
        check_settings(before, {"seed": 5}, "run", defaults)
    with pytest.raises(UserError, match="`other` was None and is 2"):
        check_settings(before, {"seed": 1, "other": 2}, "run", defaults)


MADE = {"epochs": "steps", "share": "warm_up"}
TRAINED = {"steps": 9, "warm_up": 3, "epochs": 3.0, "share": 0.3, "seed": 1}


def test_an_option_that_makes_the_same_setting_may_change():
    check_settings(TRAINED, TRAINED | {"epochs": 3.01, "share": 0.31}, "run", made=MADE)


def test_a_save_that_fails_without_a_word_is_still_a_sentence(tmp_path, monkeypatch):
    def fail(*_arguments):
        raise OSError

    monkeypatch.setattr("keras_bert_impl.training.checkpoints.write_checkpoint", fail)
    checkpoints = Checkpoints(tmp_path, variables(1.0), keep=5)
    checkpoints.save(7, {})
    with pytest.raises(UserError, match=r"cannot be written \(OSError\); free some space"):
        checkpoints.wait()
