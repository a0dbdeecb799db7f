import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import options_of, settings_of
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.pretraining_config import RunPretrainingConfig, SecondPhaseConfig


def config(training=(), phase2=(), **changes):
    return RunPretrainingConfig(
        input_file=("a",),
        output_dir="run",
        training=TrainingConfig(**{"num_train_steps": 100, **dict(training)}),
        phase2=SecondPhaseConfig(**dict(phase2)),
        **changes,
    )


def test_a_language_model_predicts_all_tokens_but_those_that_frame_the_text():
    phases = config(phase2={"input_file": ("b",)}, objective="next_token").phases()
    assert [phase.max_predictions_per_seq for phase in phases] == [126, 510]


@pytest.mark.parametrize(
    ("objective", "model", "message"),
    [
        ("next_token", {}, 'objective=next_token.*"causal": true'),
        ("next_token", {"anticausal": True}, '"causal": true'),
        ("previous_token", {"causal": True}, '"anticausal": true'),
        ("masked_lm", {"causal": True}, r"\[CLS\] no other token.*next_sentence=False"),
    ],
)
def test_an_objective_must_suit_the_model_s_attention(objective, model, message):
    with pytest.raises(UserError, match=message):
        config(objective=objective).check_model(BertConfig(vocab_size=9, **model))
    for direction, suits in (("causal", "next_token"), ("anticausal", "previous_token")):
        model = BertConfig(vocab_size=9, **{direction: True})
        config(objective=suits, next_sentence=False).check_model(model)


def test_the_second_phase_takes_over_what_is_not_said_and_a_tenth_of_the_steps():
    training = {"train_batch_size": 16, "learning_rate": 1e-3}
    first, second = config(training, {"input_file": ("b",)}).phases()
    assert (first.num_train_steps, second.num_train_steps) == (90, 10)
    assert (second.input_file, second.train_batch_size, second.learning_rate) == (("b",), 16, 1e-3)
    assert (second.max_seq_length, second.max_predictions_per_seq) == (512, 76)


def test_options_of_a_second_phase_without_shards_are_a_mistake():
    with pytest.raises(UserError, match=r"`num_train_steps` is given, but `input_file` is not"):
        SecondPhaseConfig(num_train_steps=3)


def test_a_second_phase_leaves_steps_to_the_first():
    with pytest.raises(UserError, match=r"`phase2\.num_train_steps=100` leaves no steps"):
        config(phase2={"input_file": ("b",), "num_train_steps": 100}).phases()


def test_what_decides_the_result_must_be_the_same_when_a_run_is_resumed():
    assert set(settings_of(config())) == {
        "init_checkpoint",
        "input_file",
        "mask_probabilities",
        "max_predictions_per_seq",
        "max_seq_length",
        "next_sentence",
        "objective",
        "shuffle",
        "train_encoder",
    }


def test_the_second_phases_options_are_told_apart_by_their_prefix():
    names = [one.name for one in options_of(RunPretrainingConfig)]
    assert len(names) == len({*names})
    assert {"learning_rate", "phase2_learning_rate", "seed", "input_file"} <= {*names}
