import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.optimizers.schedules import learning_rate_schedule


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("linear", [0.0, 0.5, 0.9, 0.5, 0.0]),
        ("constant", [0.0, 0.5, 1.0, 1.0, 1.0]),
        ("cosine", [0.0, 0.5, 1.0, 0.5868, 0.0]),
        ("inverse_sqrt", [0.0, 0.5, 1.0, 0.4472, 0.3162]),
    ],
)
def test_rates_at_start_half_warmup_peak_middle_and_end(name, rates):
    rate = learning_rate_schedule(name, 1.0, num_train_steps=100, num_warmup_steps=10)
    assert [round(rate(step), 4) for step in (0, 5, 10, 50, 100)] == rates


def test_without_warmup_the_first_step_has_the_peak():
    assert learning_rate_schedule("linear", 2.0, 10, 0)(0) == 2.0


def test_an_unknown_schedule_is_refused():
    with pytest.raises(UserError, match="--schedule=square is unknown; choose linear or"):
        learning_rate_schedule("square", 1.0, 10, 0)
