"""Our training for questions beside 20 recorded steps of the original's own code."""

import numpy as np
import pytest

from keras_bert_impl.checkpoints.restore import names_of, restore
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.optimizers.schedules import WarmupSchedule
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import SpanObjective
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from tests.support.official_answers import golden_folder, read_json
from tests.support.pretraining_run import GOLDEN

pytestmark = [pytest.mark.data, pytest.mark.slow]

STEPS, ROWS = 20, 8


def tensors_of(model, optimizer):
    """The weights and their moments by the original's names."""
    names = {each.ours: each.google for each in names_of(model)}
    moments = (optimizer.first_moments, optimizer.second_moments)
    return {
        names[weight.path] + suffix: one
        for weight, *group in zip(model.trainable_variables, *moments, strict=True)
        for suffix, one in zip(("", "/adam_m", "/adam_v"), (weight, *group), strict=True)
    }


@pytest.mark.parametrize("kernels", ["plain", "auto"])
def test_losses_norms_and_weights_follow_the_original(data_folder, kernels):
    folder = golden_folder(data_folder, "span_training")
    data = dict(np.load(folder / "data.npz"))
    model = BertSpanLabeler(BertConfig.from_google_file(GOLDEN / "bert_config.json"))
    restore(model, GOLDEN / "init" / "bert_model.ckpt")
    model.span.projection.kernel.assign(data.pop("output_weights").T)
    model.span.projection.bias.assign(data.pop("output_bias"))
    del data["unique_ids"]
    config = TrainingConfig(
        learning_rate=1e-3,
        num_train_steps=STEPS,
        num_warmup_steps=4,
        train_batch_size=ROWS,
        kernels=kernels,
    )
    state = TrainingState(model, config)
    step = TrainingStep(state, SpanObjective(), config)
    schedule = WarmupSchedule(config.learning_rate, STEPS, config.num_warmup_steps)
    for recorded in read_json(folder / "losses_onehot.json")["steps"]:
        number = recorded["step"]
        batch = {name: array[ROWS * number : ROWS * (number + 1)] for name, array in data.items()}
        (row,) = step.run(*step.prepare([batch], number, [schedule.at(number)]))
        figures = step.metrics(row)
        assert schedule.at(number) == pytest.approx(recorded["learning_rate"], rel=1e-5)
        assert figures["loss"] == pytest.approx(recorded["loss"], abs=1e-4)
        assert figures["gradient_norm"] == pytest.approx(recorded["global_norm"], rel=1e-4)
    ours = tensors_of(model, state.optimizer)
    sums = np.load(folder / "losses_onehot_final_sums.npz")
    for name in sums.files:
        weights = np.asarray(ours[name], np.float64)
        # The sum of the absolute values says how large the sums are that are compared.
        scale = max(1.0, sums[name][1])
        found = np.array([weights.sum(), np.abs(weights).sum()])
        # Processors add up in other orders: 2e-5 was seen in a bias on one with AMX.
        np.testing.assert_allclose(found / scale, sums[name] / scale, atol=4e-5, err_msg=name)
