"""Runs, one after the other and side by side, most of them a line of code in place of a tool."""

import contextlib
import json
import os
import signal
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.stop_signal import StopSignal
from pipelines.many_runs import runs
from pipelines.many_runs.runs import Run, do_runs, in_own_process, stop_on_signal


class Meeting:
    """Makes runs that wait until so many others run; keeps who met, and on which processors."""

    def __init__(self, root, **waits_for):
        self.cores, self.started, self.finished = {}, [], []
        self._root, self._waits_for = root, waits_for
        self._changed = threading.Condition()
        self._running, self.most = 0, 0

    def run(self, name, *needs):
        def work(cores):
            return self._meet(name, cores)

        needed = frozenset(one.name for one in needs)
        return Run(name, self._root / name, work, needs=needed)

    def _meet(self, name, cores):
        with self._changed:
            self.cores[name] = cores
            self.started.append(name)
            self._running += 1
            self.most = max(self.most, self._running)
            self._changed.notify_all()
            wanted = self._waits_for.get(name, 1)
            met = self._changed.wait_for(lambda: self.most >= wanted, timeout=20)
            self._running -= 1
        if not met or name == "broken":
            raise UserError(f"the run {name} failed.")
        return None if name == "stopped" else {"name": name}

    def four(self):
        first = self.run("first")
        return [first, *(self.run(name, first) for name in "abc")]

    def do(self, made, at_once):
        for done, values in do_runs(made, StopSignal(), at_once=at_once):
            self.finished.append(done.name)
            assert done.kept() == values


def test_a_result_is_of_its_inputs_and_whole(tmp_path):
    run = Run("one", tmp_path / "one", lambda _: {"score": 1}, of={"seed": 1})
    assert run.kept() is None
    assert run.do() == {"score": 1}
    assert run.kept(score=int) == {"of": {"seed": 1}, "score": 1}
    assert run.kept(score=int, seconds=float) is None
    assert run.kept(score=str) is None
    other = Run("one", tmp_path / "one", lambda _: None, of={"seed": 2})
    assert other.kept() is None
    result = tmp_path / "one" / "result.json"
    result.write_text(result.read_text()[:20])
    assert run.kept() is None


def test_the_bytes_of_both_forms_of_the_result_file_are_those_of_older_versions(tmp_path):
    values = {"figures": {"eval_f1": 0.5}}
    Run("a", tmp_path / "a", lambda _: values, of=[1]).do()
    Run("b", tmp_path / "b", lambda _: values).do()
    first, second = ((tmp_path / name / "result.json").read_text() for name in "ab")
    assert first == json.dumps({"of": [1], **values}, indent=1)
    assert second == json.dumps(values, indent=1) + "\n"


def test_a_stopped_run_has_no_result_and_keeps_what_it_needs_to_go_on(tmp_path):
    tidied = []
    stopped, done = (
        Run(name, tmp_path / name, lambda _, given=given: given, tidy=lambda: tidied.append(1))
        for name, given in (("stopped", None), ("done", {}))
    )
    assert stopped.do() is None
    assert (stopped.kept(), tidied) == (None, [])
    done.do()
    assert (done.kept(), tidied) == ({}, [1])


@pytest.mark.parametrize("at_once", [1, 2])
def test_after_a_run_that_was_stopped_no_other_starts(tmp_path, at_once):
    meeting = Meeting(tmp_path)
    stopped = meeting.run("stopped")
    made = [stopped, meeting.run("upon", stopped)]
    meeting.do(made, at_once)
    assert meeting.started == meeting.finished == ["stopped"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_sigterm_starts_no_other_run_and_keeps_the_one_that_ends(tmp_path, at_once):
    meeting, finished = Meeting(tmp_path), []
    with stop_on_signal() as stop:
        for run, _ in do_runs(meeting.four(), stop, at_once=at_once):
            finished.append(run.name)
            signal.raise_signal(signal.SIGTERM)
    assert meeting.started == finished == ["first"]


def test_a_run_whose_process_ends_before_it_could_save_was_stopped(tmp_path):
    def be_terminated(_):
        signal.raise_signal(signal.SIGTERM)
        raise UserError("A worker process was killed.")

    before = signal.getsignal(signal.SIGTERM)
    run = Run("one", tmp_path, be_terminated)
    with stop_on_signal() as stop:
        assert list(do_runs([run], stop)) == [(run, None)]
        with stop_on_signal() as inner:
            assert inner is stop
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_before_a_run_has_its_process_reaches_it(monkeypatch):
    children, terminated = [], []

    class Child:
        def terminate(self):
            terminated.append(self)

    class Pool:
        def submit(self, *_):
            signal.raise_signal(signal.SIGTERM)
            children.append(Child())
            done = Future()
            done.set_result(None)
            return done

    monkeypatch.setattr(runs, "worker_pool", lambda *_: contextlib.nullcontext(Pool()))
    monkeypatch.setattr(runs.multiprocessing, "active_children", lambda: children)
    with stop_on_signal():
        in_own_process(abs, -1, remedy="")
    assert terminated == children


@pytest.mark.slow
def test_a_run_has_a_process_of_its_own_and_its_error_is_a_sentence(tmp_path):
    assert in_own_process(os.getpid, remedy="") != os.getpid()
    with pytest.raises(UserError, match=r"A worker process was killed.*; call again\."):
        in_own_process(os._exit, 1, remedy="call again")


def test_runs_side_by_side_start_after_what_they_need(tmp_path):
    meeting = Meeting(tmp_path, a=2, b=2)
    meeting.do(meeting.four(), 2)
    assert [meeting.started[0], *sorted(meeting.started[1:])] == ["first", *"abc"]
    assert [meeting.finished[0], *sorted(meeting.finished[1:])] == ["first", *"abc"]
    assert meeting.most == 2


def test_a_run_that_others_wait_for_starts_before_those_that_nobody_needs(tmp_path):
    meeting = Meeting(tmp_path)
    base = meeting.run("base")
    meeting.do([*(meeting.run(name) for name in "abc"), base, meeting.run("upon", base)], 2)
    assert "base" in meeting.started[:2]
    assert len(meeting.finished) == 5


def test_runs_side_by_side_share_the_processors_and_one_alone_has_all(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5})
    meeting = Meeting(tmp_path, a=3, b=3, c=3)
    meeting.do(meeting.four(), 3)
    assert meeting.cores["first"] == {0, 1, 2, 5}
    shares = [meeting.cores[name] for name in "abc"]
    assert sorted(core for share in shares for core in share) == [0, 1, 2, 5]


def test_more_runs_than_processors_take_one_each(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    meeting = Meeting(tmp_path, a=3, b=3, c=3)
    meeting.do(meeting.four(), 3)
    assert {*meeting.cores.values()} == {frozenset({3})}


def test_one_after_the_other_nothing_is_said_about_processors(tmp_path):
    meeting = Meeting(tmp_path)
    meeting.do(meeting.four(), 1)
    assert {*meeting.cores.values()} == {None}
    assert meeting.most == 1


def test_what_runs_next_to_a_run_that_fails_is_finished(tmp_path):
    meeting = Meeting(tmp_path, broken=2, other=2)
    broken, other, later = (meeting.run(name) for name in ("broken", "other", "later"))
    with pytest.raises(UserError, match="the run broken failed"):
        meeting.do([broken, other, later], 2)
    assert other.kept() is not None
    assert broken.kept() is None
    assert "later" not in meeting.cores or later.kept() is not None
    assert not list(Path(tmp_path).glob("broken/*"))
