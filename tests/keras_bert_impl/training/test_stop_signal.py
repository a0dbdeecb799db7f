import os
import signal
import threading

import pytest

from keras_bert_impl.training.stop_signal import (
    StopRequestedError,
    StopSignal,
    on_stop,
    stop_requested,
    take_stop,
)


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
    stop = StopSignal()
    with pytest.raises(StopRequestedError), stop.interrupting():
        stop.request()
    stop.request()  # outside of the block it only waits
    with pytest.raises(StopRequestedError), stop.interrupting():
        pytest.fail("a stop that was asked for before must not begin the work")


def test_with_several_workers_no_work_is_interrupted():
    stop = StopSignal()
    with stop.interrupting(allowed=False):
        stop.request()
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


def test_a_signal_of_ones_own_is_asked_and_everybody_may_see_that():
    class Noting(StopSignal):
        asked = 0

        def request(self, number=signal.SIGTERM):
            self.asked += 1
            super().request(number)

    assert not stop_requested()
    with on_stop(Noting()) as stop, on_stop(StopSignal()) as inner:
        assert inner is stop
        assert not stop_requested()
        signal.raise_signal(signal.SIGTERM)
        assert (stop.asked, stop_requested()) == (1, True)
    assert not stop_requested()


def interrupt_twice():
    with on_stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert (stop.requested, stop.number) == (True, signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_asks_for_a_stop_and_a_second_one_ends_at_once():
    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert take_stop() == signal.SIGINT
    assert take_stop() is None


@pytest.mark.usefixtures("keyboard")
def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with on_stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert not stop.requested
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_stop_for_the_sake_of_another_process_counts_as_sigterm():
    with on_stop() as stop:
        stop.note()
    assert take_stop() == signal.SIGTERM
