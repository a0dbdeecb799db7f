from keras_bert_impl.training.rates import Rates, log_line
from tests.support.toy_training import toy_chunk


def counted(rates, first_step, steps, now, **sizes):
    """Counts the steps of one compiled call that was over at `now`."""
    chunk = toy_chunk(first_step, steps, **sizes)
    for step in range(first_step + 1, first_step + steps + 1):
        rates.count(step, chunk, now)


def test_steps_of_one_call_share_its_time():
    rates = Rates()
    rates.start(0.0)
    counted(rates, 0, 4, now=8.0, examples=10)
    assert rates.read() == {"examples_per_second": 5.0}


def test_compiling_enters_the_first_line_only():
    rates = Rates()
    rates.start(0.0)
    counted(rates, 0, 1, now=60.0, examples=10)
    counted(rates, 1, 1, now=61.0, examples=10)
    counted(rates, 2, 1, now=62.0, examples=10)
    assert rates.read()["examples_per_second"] == 10.0
    rates = Rates()
    rates.start(0.0)
    counted(rates, 0, 1, now=50.0, examples=10)
    assert rates.read()["examples_per_second"] == 0.2


def test_each_reading_is_of_what_was_done_since_the_last_one():
    rates = Rates()
    rates.start(0.0)
    counted(rates, 0, 1, now=1.0, tokens=640)
    rates.read()
    counted(rates, 1, 1, now=3.0, tokens=640)
    assert rates.read() == {"examples_per_second": 15.0, "tokens_per_second": 320.0}


def test_a_line_has_the_losses_first_and_no_votes():
    metrics = {"loss": 2.0, "accuracy": 0.5, "stop_votes": 0.0, "gradient_norm": 3.0}
    line = log_line(metrics, toy_chunk(4, 2, tokens=9), 6, {"examples_per_second": 1.0})
    assert line == {
        "loss": 2.0,
        "learning_rate": 0.005,
        "gradient_norm": 3.0,
        "examples_per_second": 1.0,
        "accuracy": 0.5,
        "padding_share": 0.25,
    }
    assert list(line)[:2] == ["loss", "learning_rate"]
