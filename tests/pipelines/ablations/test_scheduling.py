import os
import threading

import pytest

from keras_bert_impl.errors import UserError
from pipelines.ablations.cells import SHARDS, Cell
from pipelines.ablations.execution import run_cells, stored_result


def cell(root, name, *needs):
    return Cell(name, SHARDS, "create_pretraining_data", (), root, needs)


class Meeting:
    """Programs that wait until so many others run; keeps who met, and on which processors."""

    def __init__(self, **waits_for):
        self.cores, self._waits_for = {}, waits_for
        self._changed = threading.Condition()
        self._running, self.most = 0, 0

    def run(self, tool, flags, log, cores):
        name = log.parent.name.rpartition("-")[0]
        with self._changed:
            self.cores[name] = cores
            self._running += 1
            self.most = max(self.most, self._running)
            self._changed.notify_all()
            wanted = self._waits_for.get(name, 1)
            met = self._changed.wait_for(lambda: self.most >= wanted, timeout=20)
            self._running -= 1
        return 0 if met and name != "broken" else 1


def four(root):
    first = cell(root, "first")
    return [first, *(cell(root, name, first) for name in "abc")]


def test_cells_run_side_by_side_after_what_they_need(tmp_path):
    programs, started, finished = Meeting(a=2, b=2), [], []
    for done, result in run_cells(four(tmp_path), programs, False, 2, started.append):
        finished.append(done.name)
        assert stored_result(done) == result
    assert [one.name for one in started] == ["first", *"abc"]
    assert finished[0] == "first"
    assert sorted(finished[1:]) == [*"abc"]
    assert programs.most == 2


def test_a_cell_that_others_wait_for_starts_before_those_that_nobody_needs(tmp_path):
    alone = [cell(tmp_path, name) for name in "abc"]
    base = cell(tmp_path, "base")
    cells, started = [*alone, base, cell(tmp_path, "upon", base)], []
    assert len(list(run_cells(cells, Meeting(), False, 2, started.append))) == 5
    assert started[0] is base


def test_cells_side_by_side_share_the_processors_and_one_alone_has_all(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5})
    programs = Meeting(a=3, b=3, c=3)
    assert len(list(run_cells(four(tmp_path), programs, False, 3, lambda _: None))) == 4
    assert programs.cores["first"] == {0, 1, 2, 5}
    shares = [programs.cores[name] for name in "abc"]
    assert sorted(core for share in shares for core in share) == [0, 1, 2, 5]


def test_more_cells_than_processors_take_one_each(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    programs = Meeting(a=3, b=3, c=3)
    assert len(list(run_cells(four(tmp_path), programs, False, 3, lambda _: None))) == 4
    assert {*programs.cores.values()} == {frozenset({3})}


def test_one_after_the_other_nothing_is_said_about_processors(tmp_path):
    programs = Meeting()
    assert len(list(run_cells(four(tmp_path), programs, False, 1, lambda _: None))) == 4
    assert {*programs.cores.values()} == {None}
    assert programs.most == 1


def test_what_runs_beside_a_cell_that_fails_is_finished(tmp_path):
    broken, other, later = (cell(tmp_path, name) for name in ("broken", "other", "later"))
    programs = Meeting(broken=2, other=2)
    with pytest.raises(UserError, match="the run broken failed"):
        list(run_cells([broken, other, later], programs, False, 2, lambda _: None))
    assert stored_result(other) is not None
    assert stored_result(broken) is None
    assert "later" not in programs.cores or stored_result(later) is not None
