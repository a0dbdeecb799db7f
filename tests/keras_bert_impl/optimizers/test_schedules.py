import keras
import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.optimizers.schedules import WarmupSchedule


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("linear", [0.0, 0.5, 0.9, 0.5, 0.0]),
        ("constant", [0.0, 0.5, 1.0, 1.0, 1.0]),
        ("cosine", [0.0, 0.5, 1.0, 0.5868, 0.0]),
        ("inverse_sqrt", [0.0, 0.5, 1.0, 0.4472, 0.3162]),
        ("wsd", [0.0, 0.5, 1.0, 1.0, 0.0]),
    ],
)
def test_rates_at_start_half_warmup_peak_middle_and_end(name, rates):
    rate = WarmupSchedule(1.0, num_train_steps=100, num_warmup_steps=10, decay=name).at
    assert [round(rate(step), 4) for step in (0, 5, 10, 50, 100)] == rates


def test_without_warmup_the_first_step_has_the_peak():
    assert WarmupSchedule(2.0, 10, 0).at(0) == 2.0


@pytest.mark.parametrize(
    "values", [{"num_train_steps": 0}, {"num_warmup_steps": -1}, {"decay_share": 0.0}]
)
def test_a_run_without_steps_or_decay_is_refused(values):
    with pytest.raises(UserError, match="a run has more than 0 steps, a warm-up 0 or more"):
        WarmupSchedule(1.0, **{"num_train_steps": 10, **values})


@pytest.mark.parametrize("decay", ["linear", "constant", "cosine", "inverse_sqrt", "wsd"])
def test_any_unit_that_grows_may_stand_for_steps(decay):
    steps, hours = WarmupSchedule(1.0, 100, 10, decay), WarmupSchedule(1.0, 1.0, 0.1, decay)
    found = [hours.at(step / 100) for step in (5, 10, 50, 100)]
    assert found == pytest.approx([steps.at(step) for step in (5, 10, 50, 100)], abs=1e-9)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(UserError, match="schedule='square' is unknown; choose linear or"):
        WarmupSchedule(1.0, 10, 0, "square")


def test_wsd_falls_on_a_line_over_its_share_and_with_the_rest_of_a_warmup_is_a_triangle():
    plateau = WarmupSchedule(1.0, 100, 10, "wsd", decay_share=0.4).at
    assert [plateau(step) for step in (60, 70, 90)] == pytest.approx([1.0, 0.75, 0.25])
    triangle = WarmupSchedule(1.0, 100, 30, "wsd", decay_share=0.7).at
    for step in range(100):
        assert triangle(step) == pytest.approx(min(step / 30, (100 - step) / 70))


@pytest.mark.parametrize("decay", ["linear", "constant", "cosine", "inverse_sqrt", "wsd"])
def test_keras_sees_the_rates_of_our_own_loop(decay):
    rate = WarmupSchedule(2e-5, num_train_steps=345, num_warmup_steps=34, decay=decay)
    for step in (0, 1, 33, 34, 35, 200, 344, 345, 400):
        value = np.array(rate(keras.ops.convert_to_tensor(step)))
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, rate.at(step), rtol=1e-6, atol=1e-12)


def test_an_optimizer_keeps_its_schedule_when_it_is_saved():
    rate = WarmupSchedule(1e-3, num_train_steps=20, num_warmup_steps=4, decay="cosine")
    saved = keras.optimizers.serialize(keras.optimizers.SGD(rate))
    again = keras.optimizers.deserialize(saved)._learning_rate
    assert isinstance(again, WarmupSchedule)
    assert again.get_config() == rate.get_config()


def test_an_optimizer_takes_the_rate_of_each_step():
    weight = keras.Variable([0.0])
    optimizer = keras.optimizers.SGD(WarmupSchedule(1.0, 10, 2, "constant"))
    moved = []
    for _ in range(4):
        optimizer.apply([keras.ops.ones(1)], [weight])
        moved.append(float(weight.numpy()[0]))
    assert moved == [0.0, -0.5, -1.5, -2.5]
