import signal
import subprocess
import sys
import time

import pytest

from keras_bert_impl.interrupts import (
    STOPS,
    TERMINAL_STOPS,
    TerminatedError,
    held_back,
    kept_so_far,
    signal_of,
    stops_raise,
    what_is_kept,
)
from keras_bert_impl.training.stop_signal import on_stop

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
        assert stops.number == number == signal_of(raised.value)
    assert [signal.getsignal(one) for one in STOPS] == before


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


class StopsWhenItGoes:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)  # Python cannot raise out of here


def test_a_stop_that_python_swallows_comes_again():
    with stops_raise() as stops:
        StopsWhenItGoes()
        assert stops.number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)


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


def test_the_innermost_sentence_tells_what_is_kept():
    with pytest.raises(KeyboardInterrupt) as raised, kept_so_far("all"), kept_so_far("a part"):
        raise KeyboardInterrupt
    assert what_is_kept(raised.value) == "a part"
    assert what_is_kept(KeyboardInterrupt()) is None


COMPUTES = """
import hashlib, sys
from keras_bert_impl.interrupts import stops_raise
with stops_raise():
    print("computes", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000)  # a minute in which no handler runs
"""


def test_a_second_ctrl_c_ends_a_process_whose_main_thread_hears_nothing():
    with subprocess.Popen([sys.executable, "-c", COMPUTES], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"computes\n"
        time.sleep(0.3)  # until it does
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 128 + signal.SIGINT
