import numpy as np
import pytest

from keras_bert_impl.layers.kernels import PLAIN, PlainKernels
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.training.state import TrainingState, make_optimizer
from keras_bert_impl.training.strategy import make_devices
from tests.support.tiny_bert import TINY
from tests.support.toy_training import toy_config, toy_model


@pytest.mark.parametrize(("name", "kind"), [("adamw", "BertAdamW"), ("lamb", "Lamb")])
def test_the_configuration_names_the_optimizer(name, kind):
    optimizer = make_optimizer(toy_config(optimizer=name, weight_decay=0.5))
    assert type(optimizer).__name__ == kind
    assert optimizer.get_config()["weight_decay"] == 0.5


def test_a_new_state_is_at_step_0_with_empty_moments():
    model = toy_model()
    state = TrainingState(model, toy_config())
    variables = state.variables()
    assert state.step == 0
    assert set(variables) == {"weights", "adam_m", "adam_v", "loss_scale"}
    assert len(variables["weights"]) == len(variables["adam_m"]) == len(model.weights)
    assert all(not np.any(moment) for moment in variables["adam_m"] + variables["adam_v"])


def test_the_order_of_the_variables_follows_from_the_model_alone():
    shapes = [
        [tuple(v.shape) for v in TrainingState(toy_model(), toy_config()).variables()["adam_v"]]
        for _ in range(2)
    ]
    assert shapes[0] == shapes[1] == [tuple(w.shape) for w in toy_model().trainable_variables]


def test_only_float16_scales_its_loss():
    scales = [
        float(TrainingState(toy_model(), toy_config(precision=precision)).loss_scale.value())
        for precision in ("float32", "bfloat16", "float16")
    ]
    assert scales == [1.0, 1.0, 2.0**15]


def test_a_model_gets_the_kernels_of_the_devices_that_it_trains_on_and_no_other_does():
    config = toy_config(kernels="fast")
    other = BertEncoder(TINY)
    devices = make_devices(config)
    with devices.strategy.scope():
        trained = BertEncoder(TINY)
    assert (trained.kernels, other.kernels) == (PLAIN, PLAIN)
    TrainingState(trained, config, devices)
    assert (trained.kernels.name, other.kernels) == ("fast", PLAIN)


def test_without_devices_a_model_keeps_its_own_kernels():
    model, chosen = BertEncoder(TINY), PlainKernels()
    model.kernels = chosen
    TrainingState(model, toy_config(kernels="fast"))
    assert model.kernels is chosen
