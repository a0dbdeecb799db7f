import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.plan_run import PlanRunConfig, plan


def test_a_run_that_cannot_exist_is_not_planned():
    training = TrainingConfig(
        learning_rate=1e-4, num_train_steps=10, num_warmup_steps=1, train_batch_size=4
    )
    config = PlanRunConfig(model_size="base", max_seq_length=1024, training=training)
    with pytest.raises(UserError, match="`max_seq_length=1024` is more than the 512 positions"):
        plan(config)
