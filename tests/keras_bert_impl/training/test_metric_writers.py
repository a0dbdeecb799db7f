import time

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import read_log
from keras_bert_impl.training.metric_writers import (
    JsonLinesFiles,
    MetricWriters,
    Rates,
    TensorBoard,
    log_line,
    standard_writers,
)
from keras_bert_impl.training.run_directory import RunDirectory
from tests.support.toy_training import Recorder, toy_chunk


def test_lines_after_the_resumed_step_and_a_half_written_one_are_forgotten(tmp_path):
    run = RunDirectory.open(tmp_path)
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    files = JsonLinesFiles(run)
    files.open(2)
    value = 0.1000000014901161193847656  # a float32 survives the file to the bit
    files.write("train", 3, {"loss": value})
    files.close()
    assert read_log(run.metrics) == [{"step": 1}, {"step": 2}, {"step": 3, "loss": value}]


def test_figures_of_each_kind_have_a_file_of_their_own(tmp_path):
    run = RunDirectory.open(tmp_path)
    files = JsonLinesFiles(run)
    files.open(0)
    files.write("train", 1, {"loss": 2.0})
    files.write("eval", 1, {"loss": 3.0, "held_out": "set a"})
    files.write("save", 1, {"bytes": 4})
    files.close()
    assert read_log(run.metrics) == [{"step": 1, "loss": 2.0}]
    assert read_log(run.evaluations) == [{"step": 1, "loss": 3.0, "held_out": "set a"}]
    assert read_log(run.saves) == [{"step": 1, "bytes": 4}]


def test_every_writer_gets_every_figure_and_is_closed_though_the_run_fails(tmp_path):
    recorders = [Recorder(), Recorder()]
    writers = MetricWriters(recorders, RunDirectory.open(tmp_path))

    def failing_run():
        with writers.open(7):
            writers.write("train", 8, {"loss": 0.5})
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        failing_run()
    for recorder in recorders:
        assert recorder.opened_at == 7
        assert recorder.lines == [("train", 8, {"loss": 0.5})]
        assert recorder.closed


def test_a_writer_that_finds_no_room_is_a_sentence_with_the_remedy(tmp_path):
    class Full(Recorder):
        def write(self, kind, step, figures):
            raise tf.errors.ResourceExhaustedError(None, None, "disk is full\nat some line")

    writers = MetricWriters([Full()], RunDirectory.open(tmp_path))
    with pytest.raises(UserError, match=r"cannot be written \(disk is full\); free some space"):
        writers.write("train", 1, {"loss": 1.0})


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(tf.errors.UnknownError(None, None, ""), "UnknownError"), (OSError("gone"), "gone")],
)
def test_a_failure_that_says_nothing_or_has_no_number_is_a_sentence_all_the_same(
    tmp_path, failure, reason
):
    class Broken(Recorder):
        def write(self, kind, step, figures):
            raise failure

    writers = MetricWriters([Broken()], RunDirectory.open(tmp_path))
    with pytest.raises(UserError, match=rf"cannot be written \({reason}\); free"):
        writers.write("train", 1, {"loss": 1.0})


def events_of(folder):
    """All events in the order in which TensorBoard reads them."""
    return [
        tf.compat.v1.Event.FromString(record.numpy())
        for path in sorted(folder.glob("events.out.tfevents.*"))
        for record in tf.data.TFRecordDataset(str(path))
    ]


def scalars_of(folder):
    """(step, tag, value) of all scalars."""
    return [
        (event.step, value.tag, float(tf.make_ndarray(value.tensor)))
        for event in events_of(folder)
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == "scalars"
    ]


def test_tensorboard_gets_the_numbers_by_kind(tmp_path):
    board = TensorBoard(tmp_path)
    board.open(0)
    board.write("train", 1, {"loss": 2.0})
    board.write("eval", 1, {"loss": 3.0, "held_out": "a text"})
    board.close()
    assert scalars_of(tmp_path) == [(1, "train/loss", 2.0), (1, "eval/loss", 3.0)]
    assert not any(event.HasField("session_log") for event in events_of(tmp_path))


def test_a_resumed_run_tells_tensorboard_to_forget_what_it_does_again(tmp_path):
    for first_step in (0, 5):
        board = TensorBoard(tmp_path)
        board.open(first_step)
        board.write("train", first_step + 1, {"loss": 2.0})
        board.close()
        time.sleep(1.1)  # names of event files have whole seconds
    marks = [event for event in events_of(tmp_path) if event.HasField("session_log")]
    assert [mark.step for mark in marks] == [6, 6]  # TensorBoard ignores the first one of a folder
    assert {m.session_log.status for m in marks} == {tf.compat.v1.SessionLog.START}
    steps = [event.step for event in events_of(tmp_path) if event.step]
    assert steps == [1, 6, 6, 6]  # the old figure, the marks, the new figure


def test_the_usual_writers_leave_files_and_events(tmp_path):
    run = RunDirectory.open(tmp_path)
    writers = MetricWriters(standard_writers(run), run)
    with writers.open(0):
        writers.write("train", 1, {"loss": 2.0})
        writers.write("eval", 2, {"loss": 1.5})
    assert read_log(run.metrics) == [{"step": 1, "loss": 2.0}]
    assert read_log(run.evaluations) == [{"step": 2, "loss": 1.5}]
    assert scalars_of(run.events)[-1] == (2, "eval/loss", 1.5)


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
