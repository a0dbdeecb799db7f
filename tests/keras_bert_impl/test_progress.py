import io

from keras_bert_impl.progress import Progress, format_count, format_duration


def clock_of(*seconds):
    ticks = iter(seconds)
    return lambda: next(ticks)


def test_lines_come_only_after_the_pause():
    log = io.StringIO()
    progress = Progress("read", 4, "files", stream=log, clock=clock_of(0, 1, 2, 11, 12))
    for _ in range(3):
        progress.advance()
    progress.close()
    assert log.getvalue().splitlines() == [
        "read: 3 of 4 files (75 %), 0.273 files/s, 4s left",
        "read: 3 of 4 files in 12s (0.25 files/s)",
    ]


def test_work_done_earlier_does_not_enter_the_rate():
    log = io.StringIO()
    progress = Progress("train", 100, "steps", stream=log, clock=clock_of(0, 10, 10))
    progress.resume_from(80)
    progress.advance(10, "loss 2.5")
    progress.close()
    assert log.getvalue().splitlines() == [
        "train: 90 of 100 steps (90 %), 1 steps/s, 10s left, loss 2.5",
        "train: 90 of 100 steps, 10 of them in 10s (1 steps/s)",
    ]


def test_units_that_were_compiled_enter_neither_rate_nor_time_left():
    log = io.StringIO()
    clock = clock_of(0, 30, 41, 60, 72)
    progress = Progress("train", 12, "steps", stream=log, clock=clock)
    progress.advance(1, "loss 2.5", compiled=True)
    progress.advance(5)  # in 11 s; 6 are left
    progress.advance(1, compiled=True)
    progress.close()
    assert log.getvalue().splitlines() == [
        "train: 1 of 12 steps (8 %), loss 2.5",
        "train: 6 of 12 steps (50 %), 0.455 steps/s, 13s left",
        "train: 7 of 12 steps (58 %), 0.455 steps/s, 11s left",
        "train: 7 of 12 steps in 1m12s (0.0972 steps/s)",
    ]


def test_without_a_total_there_is_no_time_left():
    log = io.StringIO()
    progress = Progress("read", None, "lines", stream=log, clock=clock_of(0, 20))
    progress.advance(2_000_000)
    assert log.getvalue() == "read: 2.00M lines, 100k lines/s\n"


def test_a_terminal_rewrites_one_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    log = Terminal()
    progress = Progress("read", 10, "lines", stream=log, clock=clock_of(0, 1, 2))
    progress.advance(5)
    progress.close()
    assert log.getvalue().count("\r\x1b[K") == 2
    assert log.getvalue().count("\n") == 1


def test_durations_and_counts_read_as_people_write_them():
    assert [format_duration(s) for s in (0.4, 59.6, 3599, 90_000)] == [
        "0s",
        "1m00s",
        "59m59s",
        "25h00m",
    ]
    assert [format_count(n) for n in (0, 0.25, 9.5, 999, 1000, 5.1e9)] == [
        "0",
        "0.25",
        "9.5",
        "999",
        "1.00k",
        "5.10G",
    ]
