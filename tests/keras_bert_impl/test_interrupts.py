import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from keras_bert_impl.interrupts import (
    STOPS,
    TERMINAL_STOPS,
    StopRequestedError,
    Stops,
    TerminatedError,
    held_back,
    kept_so_far,
    on_stop,
    stops_raise,
    take_stop,
    what_is_kept,
)

pytestmark = pytest.mark.usefixtures("keyboard")


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_raises_once_and_the_handlers_are_those_from_before(number):
    error = KeyboardInterrupt if number == signal.SIGINT else TerminatedError
    before = [signal.getsignal(one) for one in STOPS]
    with stops_raise() as stops:
        assert stops.number is None
        with pytest.raises(error) as raised:
            signal.raise_signal(number)
        assert type(raised.value) is error
        signal.raise_signal(signal.SIGTERM)  # while files are removed, say
        assert stops.number == number
    assert [signal.getsignal(one) for one in STOPS] == before


def test_a_stop_that_comes_while_garbage_is_collected_is_not_lost(capsys):
    """Python drops what is raised there; JAX, for one, has a callback in each collection."""
    come = iter([signal.SIGTERM])

    def collecting(*_):
        for number in come:
            signal.raise_signal(number)

    def work():
        gc.collect()
        time.sleep(10)

    gc.callbacks.append(collecting)
    try:
        with stops_raise() as stops, pytest.raises(TerminatedError):
            work()
        assert stops.number == signal.SIGTERM
    finally:
        gc.callbacks.remove(collecting)
    assert "Traceback" not in capsys.readouterr().err


def test_a_stop_that_comes_while_an_object_is_deleted_is_not_lost(capsys):
    class Closing:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def work():
        Closing()  # deleted at once
        time.sleep(10)

    with stops_raise() as stops, pytest.raises(TerminatedError):
        work()
    assert stops.number == signal.SIGTERM
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("number", TERMINAL_STOPS)
def test_what_a_process_ignores_it_goes_on_ignoring(number):
    signal.signal(number, signal.SIG_IGN)
    with stops_raise() as stops, on_stop() as stop:
        signal.raise_signal(number)
        assert stops.number is None
        assert not stop.requested


def test_training_takes_the_signals_over_and_gives_them_back():
    with stops_raise() as stops:
        with on_stop() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert stop.requested
        assert stops.number is None
        with pytest.raises(TerminatedError):
            signal.raise_signal(signal.SIGTERM)


def test_held_back_lets_what_begins_come_to_its_end():
    done = []

    def begin():
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with stops_raise(), pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["started"]


def test_held_back_keeps_a_stop_for_the_training_as_well():
    with on_stop() as stop:
        with held_back():
            signal.raise_signal(signal.SIGTERM)
            assert not stop.requested
        assert stop.number == signal.SIGTERM


def test_held_back_in_another_thread_leaves_the_main_thread_its_stop():
    inside, go_on, ended = threading.Event(), threading.Event(), []

    def begin():
        try:
            with held_back():
                inside.set()
                go_on.wait(10)
            ended.append("whole")
        except KeyboardInterrupt:
            ended.append("interrupted")

    thread = threading.Thread(target=begin)
    with stops_raise():
        thread.start()
        inside.wait(10)
        with pytest.raises(TerminatedError):
            signal.raise_signal(signal.SIGTERM)
        go_on.set()
        thread.join()
    assert ended == ["whole"]


def test_held_back_holds_to_the_end_of_the_outermost_block():
    done = []

    def begin():
        with held_back():
            with held_back():
                signal.raise_signal(signal.SIGTERM)
            done.append("started")

    with stops_raise(), pytest.raises(TerminatedError):
        begin()
    assert done == ["started"]


def test_held_back_holds_ctrl_c_of_a_program_without_our_handlers():
    done = []

    def begin():
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["started"]


def test_the_innermost_sentence_tells_what_is_kept():
    with pytest.raises(KeyboardInterrupt) as raised, kept_so_far("all"), kept_so_far("a part"):
        raise KeyboardInterrupt
    assert what_is_kept(raised.value) == "a part"
    assert what_is_kept(KeyboardInterrupt()) is None


def test_sigterm_asks_for_a_stop_inside_the_block_only():
    before = signal.getsignal(signal.SIGTERM)
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with on_stop() as stop:
        assert signal.getsignal(signal.SIGTERM) is not before
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_handler_that_another_library_set_inside_does_not_hide_the_next_block():
    with on_stop():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with on_stop() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_block_that_ends_late_leaves_the_handler_of_a_later_one():
    forgotten = on_stop()
    forgotten.__enter__()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with on_stop() as stop:
        forgotten.__exit__(None, None, None)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested


def test_an_inner_block_has_the_signal_of_the_outer_one():
    with on_stop() as outer:
        os.kill(os.getpid(), signal.SIGTERM)
        with on_stop() as inner:
            assert inner is outer
            assert inner.requested
    with on_stop() as later:
        assert not later.requested


def test_work_that_may_be_interrupted_is_and_other_work_is_not():
    stop = Stops(saves=True)
    with pytest.raises(StopRequestedError), stop.interrupting():
        stop(signal.SIGTERM)
    stop(signal.SIGTERM)  # outside of the block it only waits
    with pytest.raises(StopRequestedError), stop.interrupting():
        pytest.fail("a stop that was asked for before must not begin the work")


def test_with_several_workers_no_work_is_interrupted():
    stop = Stops(saves=True)
    with stop.interrupting(allowed=False):
        stop(signal.SIGTERM)
    assert stop.requested


def test_a_thread_that_may_not_handle_signals_gets_one_that_never_comes():
    seen = []

    def run():
        with on_stop() as stop:
            seen.append(stop.requested)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False]


def test_a_stop_for_the_sake_of_another_process_counts_as_sigterm():
    with on_stop() as stop:
        stop.note()
    assert take_stop() == signal.SIGTERM


TWICE = """
import signal, time
from keras_bert_impl.interrupts import on_stop, stops_raise
with stops_raise() as outer, on_stop() as stop:
    signal.raise_signal(signal.SIGINT)
    assert stop.number == signal.SIGINT and outer.number is None
    print("saves", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("goes on", flush=True)
"""


def test_a_second_ctrl_c_ends_the_process_at_once():
    ended = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGINT, b"saves\n")
    assert b"Ended at once." in ended.stderr
