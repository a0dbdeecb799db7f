"""The fuzzer over a few cases, over those that once failed, and with mends taken back."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.__main__ import plan
from tests.fuzz.kinds import KINDS
from tests.fuzz.outcomes import (
    BAD,
    CRASH,
    HALF,
    HANG,
    REPLACED,
    SENTENCE,
    SUCCESS,
    TRACEBACK,
    UNCLEAR,
    End,
    Traces,
    judge,
)
from tests.fuzz.runner import _places_in, _times_of, hangs

ROOT = Path(__file__).resolve().parents[2]

# What opens a model in TensorFlow takes seconds a case: ten thousand cases have some of each.
QUICK = [kind.name for kind in KINDS.values() if kind.weight >= 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all, for making the valid files takes as long as many cases."""
    return tmp_path_factory.mktemp("fuzz")


def fuzz(folder, *words):
    """Runs the command; gives the exit code, and the report's text."""
    report = folder / "report.md"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", f"--report={report}", f"--folder={folder}", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert report.exists(), done.stderr[-3000:]
    return done.returncode, report.read_text(encoding="utf-8")


@pytest.mark.slow
def test_three_hundred_cases_end_well(folder):
    code, report = fuzz(folder, "--cases=300", f"--kinds={','.join(QUICK)}", "--whole=0.01")
    assert code == 0, report


@pytest.mark.slow
def test_what_once_failed_ends_well(folder):
    code, report = fuzz(folder, "--corpus")
    assert code == 0, report


@pytest.mark.long
def test_every_reader_reads_the_valid_files(folder):
    code, report = fuzz(folder, "--valid")
    assert code == 0, report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mend", "kinds", "outcome"),
    [
        ("special_files", "vocabulary", HANG),
        ("types", "labels_model,tags_model,questions_model", TRACEBACK),
    ],
)
def test_a_mend_that_is_taken_back_is_found(folder, mend, kinds, outcome):
    words = ["--corpus", f"--kinds={kinds}", f"--take_back={mend}", "--seconds=15"]
    code, report = fuzz(folder, *words)
    assert code == 1
    assert re.search(rf"^## \w+:\d+ {outcome}$", report, re.MULTILINE), report


def test_the_corpus_is_small_and_of_kinds_that_there_are():
    files = list(corpus.FOLDER.glob("*.json"))
    assert sum(path.stat().st_size for path in files) < 300_000
    assert {values["kind"] for values in corpus.kept().values()} <= set(KINDS)


def test_a_plan_has_cases_of_every_kind_and_is_the_same_again():
    cases = plan(1000, 3, list(KINDS.values()), 0.1)
    assert {case.kind.name for case in cases} == set(KINDS)
    assert [case.name for case in cases] == [
        case.name for case in plan(1000, 3, list(KINDS.values()), 0.1)
    ]
    assert 0 < sum(case.whole for case in cases) < 200


def test_parts_of_a_plan_are_the_whole():
    kinds = list(KINDS.values())
    parts = [case.name for part in (1, 2, 3) for case in plan(500, 3, kinds, 0.1, (part, 3))]
    assert sorted(parts) == sorted(case.name for case in plan(500, 3, kinds, 0.1))


@pytest.mark.parametrize(
    ("elapsed", "used", "queued", "hanging"),
    [
        (39, 39, 0, False),
        (41, 0.1, 0, True),  # it waits for what does not come
        (41, 0.1, 5, False),
        (46, 0.1, 5, True),
        (200, 1, 190, False),  # it waits for a core
        (200, 39, 160, False),
        (200, 41, 150, True),
        (1201, 1, 1200, True),
    ],
)
def test_a_busy_machine_is_no_hang(elapsed, used, queued, hanging):
    assert hangs(elapsed, 40, lambda: (used, queued)) == hanging


def test_the_times_of_a_group_are_those_of_all_its_processes():
    work = "import os, time; os.fork()\nwhile time.process_time() < 0.3: pass\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", work], process_group=0)
    try:
        end = time.monotonic() + 60
        while (used := _times_of(process.pid)[0]) < 0.5 and time.monotonic() < end:
            time.sleep(0.02)
        assert used >= 0.5
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (End(0, ""), SUCCESS),
        (End(1, "reading\nError: x.json: is empty; name another.\n"), SENTENCE),
        (End(1, "Error: --top_k=0 must be 1 or more.\n"), SENTENCE),
        (End(1, "Traceback (most recent call last):\nKeyError: 'a'\n"), TRACEBACK),
        (End(0, "Traceback (most recent call last):\nKeyError: 'a'\n"), TRACEBACK),
        (End(-11, ""), CRASH),
        (End(3, ""), CRASH),
        (End(-9, "", HANG), HANG),
        (End(1, ""), UNCLEAR),
        (End(1, "Error: nothing was found.\n"), UNCLEAR),
        (End(1, f"Error: x.json: {'y' * 700}.\n"), UNCLEAR),
        (End(1, "Error: x.json: has \x1b[31m.\n"), UNCLEAR),
        (End(1, "Error: x.json: has no end\n"), UNCLEAR),
    ],
)
def test_an_end_is_judged_by_its_code_and_what_was_said(end, outcome, tmp_path):
    assert judge(end, tmp_path, ["x.json"]).outcome == outcome
    assert (outcome in BAD) == (outcome not in (SUCCESS, SENTENCE))


@pytest.mark.parametrize(
    ("word", "sentence", "outcome"),
    [
        ("--input=\x1b[31mred", "\\x1b[31mred: no such file; check the path.", SENTENCE),
        ("--input=", "the model's name is empty; give one.", SENTENCE),
        ("--input=x", "the model's name is empty; give one.", UNCLEAR),
        ("--input=1,,2", "nothing was found.", UNCLEAR),
    ],
)
def test_a_sentence_may_name_a_value_escaped_or_say_that_it_is_empty(
    word, sentence, outcome, tmp_path
):
    places = _places_in(["tool", "--do_train", word])
    assert judge(End(1, f"Error: {sentence}\n"), tmp_path, places).outcome == outcome


def test_what_is_left_in_the_folder_counts(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    traces, ours = Traces(tmp_path), Traces(tmp_path, ["p*"])
    assert traces.wrong(0, ["out*"]) is None
    (tmp_path / "out.txt").write_text("half")
    assert traces.wrong(0, ["out*"]) is None
    assert traces.wrong(1, ["out*"]).outcome == HALF
    (tmp_path / "out.txt").rename(tmp_path / ".out.txt.incomplete")
    assert traces.wrong(0, ["out*"]).outcome == HALF
    (tmp_path / ".out.txt.incomplete").unlink()
    (tmp_path / "pipe").unlink()
    (tmp_path / "pipe").write_text("a file")
    assert traces.wrong(0, []).outcome == REPLACED
    assert ours.wrong(0, []) is None
