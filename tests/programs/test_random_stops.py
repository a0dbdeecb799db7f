"""Tools that are stopped at random moments, and the harness itself with tools that go wrong."""

import random

import pytest

from tests.support.random_stops import Ended, Job, Series, run_series
from tests.support.stopped_jobs import JOBS, QUICK, SERVERS
from tools.__main__ import tool_names

pytestmark = pytest.mark.usefixtures("keyboard")

PARTS = 15
BEGINNING = f"""
import subprocess, sys, time
from pathlib import Path
out, state, new = Path("result.txt"), Path(".state"), Path(".new")
def done():
    return int(state.read_text()) if state.exists() else 0
def work(part):
    time.sleep(0.02)
    return f"{{part}}\\n"
try:
    for part in range(done(), {PARTS}):
"""
ENDING = """
except KeyboardInterrupt:
    sys.stderr.write("Interrupted; all is well.\\n")
    sys.exit(130)
"""

SOUND = """
        lines = [*(out.read_text().splitlines(True) if out.exists() else [])[:part], work(part)]
        new.write_text("".join(lines))
        new.replace(out)
        new.write_text(str(part + 1))
        new.replace(state)
"""
FORGETS = """
        state.write_text(str(part + 1))
        line = work(part)
        with out.open("a") as file:
            file.write(line)
"""
LEAVES_A_CHILD = """
        if part == 0:
            subprocess.Popen(["sleep", "60"])
        work(part)
    out.write_text("done")
"""
LOGS_AGAIN = """
        new.write_text('{"step": 60}\\n')
        new.replace("metrics.jsonl")
        work(part)
"""
SAYS_NOTHING = ENDING.replace("Interrupted; all is well.", "")


def stopped(folder, body, ending=ENDING, kind="int", trials=3, **job):
    """What is found when a program is stopped."""
    job = Job("made", ["-c", BEGINNING + body + ending], **job)
    (row,) = run_series([job], [kind], trials, 1, folder, log=lambda _: None)
    return row


@pytest.mark.parametrize("kind", ["int", "kill"])
def test_a_sound_tool_passes_and_its_lost_work_is_measured(tmp_path, kind):
    row = stopped(tmp_path, SOUND, kind=kind)
    assert row.findings == []
    assert (row.same, row.trials) == (3, 3)
    assert row.stops >= 3
    assert "3 of 3" in row.line()
    assert not list(tmp_path.glob("made/int-*"))


def test_a_tool_that_loses_what_it_did_is_found(tmp_path):
    row = stopped(tmp_path, FORGETS)
    assert row.same < row.trials
    assert any("differs: result.txt" in finding for finding in row.findings)
    assert list(tmp_path.glob("made/int-*")), "the folder is kept"


@pytest.mark.parametrize(
    ("body", "ending", "found"),
    [
        (SOUND, SAYS_NOTHING, "said []"),
        (SOUND, ENDING.replace("130", "1"), "exit code 1"),
        (LEAVES_A_CHILD, ENDING, "left 1 processes"),
    ],
)
def test_what_a_stop_must_not_do_is_found(tmp_path, monkeypatch, body, ending, found):
    monkeypatch.setattr("tests.support.random_stops.SECONDS_FOR_CHILDREN", 0.3)
    row = stopped(tmp_path, body, ending, kind="term" if body == LEAVES_A_CHILD else "int")
    assert any(found in finding for finding in row.findings)


def test_every_tool_has_a_job():
    assert {tool for job in JOBS.values() for tool in job.words[2:3]} | SERVERS == set(tool_names())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int", "term"])
def test_a_data_tool_is_stopped_at_a_random_moment(tmp_path, kind):
    (row,) = run_series([JOBS["split_sentences"]], [kind], 1, 1, tmp_path, lambda _: None)
    assert row.findings == []
    assert row.same == 1


@pytest.mark.long
@pytest.mark.slow
def test_a_fine_tuning_is_stopped_at_random_moments(tmp_path):
    series = Series(
        QUICK["run_classifier"], tmp_path, random.Random(2), lambda _: None, forked=True
    )
    for kind in ("int", "kill"):
        row = series.row(kind, 1)
        assert row.findings == []
        assert row.same == 1


def test_steps_that_are_done_again_are_counted_across_runs_that_trained_nothing(tmp_path):
    series = Series(Job("made", ["-c", BEGINNING + SOUND + ENDING], trains=True), tmp_path,
                    random.Random(1), lambda _: None)  # fmt: skip
    series.steps = 100
    killed = Ended(-9, 1.0, last_step=47, trained=True)
    early = Ended(130, 1.0, last_step=47)
    resumed = Ended(0, 1.0, error="resuming from step 40 of 100", last_step=100, trained=True)
    anew = Ended(0, 1.0, last_step=100, trained=True)
    assert series.lost([killed, early, resumed]) == pytest.approx(0.07)
    assert series.lost([killed, early, anew]) == pytest.approx(0.47)


def test_a_run_that_had_trained_before_the_stop_loses_no_step(tmp_path):
    row = stopped(tmp_path, LOGS_AGAIN, trains=True)
    assert row.findings == []
    assert row.lost == [0.0] * 3
