import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import read_log
from keras_bert_impl.training.metric_writers import MetricWriter, Rates, log_line
from keras_bert_impl.training.run_directory import RunDirectory
from tests.support.toy_training import toy_chunk


def test_lines_after_the_resumed_step_and_a_half_written_one_are_forgotten(tmp_path):
    run = RunDirectory.open(tmp_path)
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    writer = MetricWriter(run)
    value = 0.1000000014901161193847656  # a float32 survives the file to the bit
    with writer.open(2):
        writer.write("train", 3, {"loss": value})
    assert read_log(run.metrics) == [{"step": 1}, {"step": 2}, {"step": 3, "loss": value}]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (tf.errors.ResourceExhaustedError(None, None, "disk is full\nat a line"), "disk is full"),
        (tf.errors.UnknownError(None, None, ""), "UnknownError"),
        (OSError("gone"), "gone"),
    ],
)
def test_a_failure_is_a_sentence_with_the_remedy(tmp_path, monkeypatch, failure, reason):
    def fail(*_):
        raise failure

    monkeypatch.setattr(MetricWriter, "_write_events", fail)
    writer = MetricWriter(RunDirectory.open(tmp_path))
    with (
        writer.open(0),
        pytest.raises(UserError, match=rf"cannot be written \({reason}\); free some space"),
    ):
        writer.write("train", 1, {"loss": 1.0})


def scalars_of(folder):
    """(step, tag, value) of all that TensorBoard reads."""
    (path,) = folder.glob("events.out.tfevents.*")
    records = tf.data.TFRecordDataset(str(path))
    events = [tf.compat.v1.Event.FromString(record.numpy()) for record in records]
    return [
        (event.step, value.tag, float(tf.make_ndarray(value.tensor)))
        for event in events
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == "scalars"
    ]


def test_each_kind_has_a_file_and_tensorboard_gets_the_numbers(tmp_path):
    run = RunDirectory.open(tmp_path)
    writer = MetricWriter(run)
    with writer.open(0):
        writer.write("train", 1, {"loss": 2.0})
        writer.write("eval", 2, {"loss": 1.5, "held_out": "set a"})
    assert read_log(run.metrics) == [{"step": 1, "loss": 2.0}]
    assert read_log(run.evaluations) == [{"step": 2, "loss": 1.5, "held_out": "set a"}]
    assert scalars_of(run.events) == [(1, "train/loss", 2.0), (2, "eval/loss", 1.5)]


def test_a_worker_that_only_computes_writes_nothing(tmp_path):
    writer = MetricWriter(RunDirectory.open(tmp_path), writes=False)
    with writer.open(0):
        writer.write("train", 1, {"loss": 2.0})
    assert not list(tmp_path.iterdir())


def counted(rates, first_step, steps, now, **sizes):
    """Counts the steps of one compiled call that was over at `now`."""
    chunk = toy_chunk(first_step, steps, **sizes)
    for step in range(first_step + 1, first_step + steps + 1):
        rates.count(step, chunk, now)


def test_steps_of_one_call_share_its_time():
    rates = Rates(0.0)
    counted(rates, 0, 4, now=8.0, examples=10)
    assert rates.read() == {"examples_per_second": 5.0}


def test_compiling_enters_the_first_line_only():
    rates = Rates(0.0)
    counted(rates, 0, 1, now=60.0, examples=10)
    counted(rates, 1, 1, now=61.0, examples=10)
    counted(rates, 2, 1, now=62.0, examples=10)
    assert rates.read()["examples_per_second"] == 10.0
    rates = Rates(0.0)
    counted(rates, 0, 1, now=50.0, examples=10)
    assert rates.read()["examples_per_second"] == 0.2


def test_each_reading_is_of_what_was_done_since_the_last_one():
    rates = Rates(0.0)
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
