from pathlib import Path

from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.remarks import Epochs, check_words, remarks
from tests.support.pretraining_corpus import make_shards


def told(epochs=(), replicas=1, unused_gpus=0, **changes):
    training = TrainingConfig(**{"num_train_steps": 200, "num_warmup_steps": 20, **changes})
    return remarks(training, replicas, unused_gpus, epochs)


def test_a_usual_run_has_nothing_to_be_told():
    assert told(epochs=[Epochs(200, 32, 6400)], num_warmup_steps=199) == []
    assert told(distribution_strategy="mirrored", replicas=2) == []


def test_devices_that_help_nobody_are_told():
    assert told(unused_gpus=1)[0].startswith("1 more GPU of this machine stays idle; ")
    assert "with one device computes as" in told(distribution_strategy="mirrored")[0]


def test_a_warm_up_that_is_as_long_as_the_run_is_named_with_both_numbers_and_a_better_one():
    (line,) = told(num_warmup_steps=10_000, learning_rate=1e-4)
    assert line.startswith("`num_warmup_steps=10000` with `num_train_steps=200`: the warm-up")
    assert "never passes 2e-06 (the peak is 0.0001)" in line
    assert "(`num_warmup_steps=20`)" in line


def test_forty_epochs_over_the_text_are_as_many_as_berts_own_and_more_are_told():
    """Ten masked copies of each text, as the original makes them: four epochs are forty."""
    assert told(epochs=[Epochs(steps=400, batch_size=10, examples=1000, copies=10)]) == []
    (line,) = told(epochs=[Epochs(steps=800, batch_size=10, examples=1000, copies=10)])
    assert line.startswith("800 steps of 10 examples are 8.0 epochs over 1,000 examples (80 over")
    assert "fewer steps (about 400)" in line


def test_shards_whose_vocabulary_does_not_fit_are_named(tmp_path):
    (tmp_path / "corpus.txt").write_text("The fox saw a dog. It barks\n\nthe hen ran.\n" * 20)
    config, said = make_shards(tmp_path), []
    check_words([config.output_file], said.append)
    (sentence,) = said
    assert sentence.startswith(f"{config.output_file}: 25.0 % of the words are [UNK], which the")


def test_shards_that_fit_or_do_not_say_it_pass_without_a_word(tmp_path):
    config, said = make_shards(tmp_path), []
    check_words([config.output_file], said.append)
    (Path(f"{config.output_file}.recipe.json")).unlink()
    check_words([f"{config.output_file}-*"], said.append)
    assert said == []
