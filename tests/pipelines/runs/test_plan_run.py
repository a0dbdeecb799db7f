import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.plan_run import PlanRunConfig, plan
from tests.support.pretraining_corpus import make_shards


def test_a_run_that_cannot_exist_is_not_planned():
    training = TrainingConfig(
        learning_rate=1e-4, num_train_steps=10, num_warmup_steps=1, train_batch_size=4
    )
    config = PlanRunConfig(model_size="base", max_seq_length=1024, training=training)
    with pytest.raises(UserError, match="`max_seq_length=1024` is more than the 512 positions"):
        plan(config)


def test_shards_whose_vocabulary_does_not_fit_are_named(tmp_path, caplog):
    (tmp_path / "corpus.txt").write_text("The fox saw a dog. It barks\n\nthe hen ran.\n" * 20)
    shards = make_shards(tmp_path).output_file
    caplog.clear()
    plan(PlanRunConfig(model_size="tiny", input_file=[shards]))
    assert [message[: len(shards) + 7] for message in caplog.messages] == [f"{shards}: 25.0 "]
