from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.remarks import Epochs, remarks


def training(**changes):
    return TrainingConfig(**{"num_train_steps": 200, "num_warmup_steps": 20, **changes})


def told(epochs=(), replicas=1, **changes):
    return remarks(training(**changes), replicas, epochs)


def test_a_usual_run_has_nothing_to_be_told():
    assert told(epochs=[Epochs(200, 32, 6400)]) == []
    assert told(distribution_strategy="mirrored", replicas=2) == []
    assert "with one device computes as" in told(distribution_strategy="mirrored")[0]
    assert "trains alone; set TF_CONFIG" in told(distribution_strategy="multi_worker_mirrored")[0]


def test_a_warm_up_that_is_as_long_as_the_run_is_named_with_both_numbers_and_a_better_one():
    (line,) = told(num_warmup_steps=10_000, learning_rate=1e-4)
    assert line.startswith("`num_warmup_steps=10000` with `num_train_steps=200`: the warm-up")
    assert "never passes 2e-06 (the peak is 0.0001)" in line
    assert told(num_warmup_steps=199) == []
    assert "(`num_warmup_steps=20`)" in line


def test_forty_epochs_over_the_text_are_as_many_as_berts_own_and_more_are_told():
    assert told(epochs=[Epochs(steps=4000, batch_size=10, examples=1000)]) == []
    (line,) = told(epochs=[Epochs(steps=4025, batch_size=10, examples=1000)])
    assert line.startswith("4,025 steps of 10 examples are 40 epochs over 1,000 examples: BERT")
    assert "fewer steps (about 4,000)" in line


def test_copies_of_the_text_in_the_shards_count():
    """Ten masked copies of each text, as the original makes them: four epochs are forty."""
    assert told(epochs=[Epochs(steps=400, batch_size=10, examples=1000, copies=10)]) == []
    (line,) = told(epochs=[Epochs(steps=800, batch_size=10, examples=1000, copies=10)])
    assert "8.0 epochs over 1,000 examples (80 over the text)" in line
    assert "fewer steps (about 400)" in line
