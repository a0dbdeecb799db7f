"""Stops tools at random moments, lets the same command finish, and compares what came of it.

`python -m tests.support.random_stops --tool=run_classifier,embed --stops=10 --seed=1` runs a tiny
job of each tool undisturbed once. Then, so many times for each signal, it starts the job in a new
folder, stops it at a random moment (start-up included) once or several times in a row, and runs the
same command to its end. Signals: `int` is Ctrl-C (the whole process group), `twice` a second one
behind it, `term` is SIGTERM, `kill` is SIGKILL, of the group and of the main process by turns.

A line a tool and signal says how often the final bytes were the same, and what share of the work
was done again. The exit code is 1 where anything is not as it should be; every such finding is
printed, and its folder is kept.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.programs import Program, start_server

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = {"int": signal.SIGINT, "twice": signal.SIGINT, "term": signal.SIGTERM}
SECONDS_TO_END = 60  # a stopped process that is not gone by then hangs
SECONDS_FOR_CHILDREN = 5  # workers see within half a second that their parent was killed
MOST_STOPS_IN_A_ROW = 3

_SENTENCE = re.compile(r"^(Interrupted|Terminated|Stopped|Ended at once)\b", re.MULTILINE)
_RESUMED = re.compile(r"resuming from step ([\d,]+) of")
_OF_THE_CLOCK = re.compile(r"second|_per_|time|bytes_in_use")  # in the names of logged figures
_LEFT_OUT = ("saves.jsonl", "*tfevents*", "*.png", "saved_model.pb", "fingerprint.pb")
_PYTHONS_OWN = ("__init__.py", "__main__.py")  # imported before any line of ours can be careful


@dataclass(frozen=True)
class Job:
    """A tiny job of a tool.

    Attributes:
        name: of the tool, and of the part of it that is meant.
        words: the command behind `python`, run in the trial's folder, next to `inputs`.
        prepare: writes what the command reads into a folder.
        left_out: patterns of files that need not be the same, besides those of every job.
        prints: whether standard output is a result, all but its lines about the clock.
        sentences: how many a stop may say; of a tool that runs others, theirs too.
        trains: whether work is measured in the steps of its one training run, not in seconds.
    """

    name: str
    words: list
    prepare: object = lambda folder: None
    left_out: tuple = ()
    prints: bool = False
    sentences: tuple = (1,)
    trains: bool = False


@dataclass
class Ended:
    """How a process ended.

    Attributes:
        code: the exit code.
        seconds: that it ran.
        to_end: seconds from the stop to the end.
        out, error: what it printed.
        children: processes that it left.
        last_step: the last training step that is logged.
        trained: whether it has logged any.
    """

    code: int
    seconds: float
    to_end: float = 0.0
    out: str = ""
    error: str = ""
    children: int = 0
    last_step: int = 0
    trained: bool = False

    @property
    def stopped(self):
        return self.code != 0

    @property
    def traceback(self):
        """Whether a traceback shows a file of ours: Python's own start may be interrupted, too."""
        if "Traceback" not in self.error:
            return False
        files = re.findall(r'File "([^"]+)"', self.error)
        ours = [file for file in files if file.startswith(str(ROOT))]
        ours = [file for file in ours if not file.startswith(str(ROOT / "tests"))]
        ours = [file for file in ours if "site-packages" not in file]  # an environment in ROOT
        return any(Path(file).name not in _PYTHONS_OWN for file in ours)

    @property
    def within_pythons_start(self):
        return self.code < 0 or ("Traceback" in self.error and not self.traceback)


@dataclass
class Row:
    """What all trials of a tool with one signal gave."""

    tool: str
    signal: str
    stops: int = 0
    trials: int = 0
    same: int = 0
    codes: collections.Counter = field(default_factory=collections.Counter)
    lost: list = field(default_factory=list)
    slowest: float = 0.0
    children: int = 0
    tracebacks: int = 0
    findings: list = field(default_factory=list)

    def line(self):
        codes = " ".join(f"{code}×{count}" for code, count in sorted(self.codes.items()))
        lost = sum(self.lost) / max(1, len(self.lost))
        return (
            f"{self.tool:26} {self.signal:6} {self.stops:5}  {self.same:3} of {self.trials:<3} "
            f"{lost:6.0%} {self.slowest:7.1f} {self.children:8} {self.tracebacks:10}  {codes}"
        )


HEADER = (
    f"{'tool':26} {'signal':6} {'stops':>5}  {'same bytes':10} {'lost':>6} {'to end':>7} "
    f"{'children':>8} {'tracebacks':>10}  exit codes"
)


class Series:
    """The trials of one job.

    Args:
        job: what runs.
        folder: for all trials.
        draw: random numbers.
        log: called with lines about the way.
        forked: whether programs are forks of a process with TensorFlow, which start sooner.
    """

    def __init__(self, job, folder, draw, log, forked=False):
        self._forked = forked
        if forked:
            start_server()  # no part of the first run's seconds, in which stops are drawn
        self.job, self.folder, self.draw, self.log = job, Path(folder), draw, log
        (self.folder / "inputs").mkdir(parents=True)
        job.prepare(self.folder / "inputs")
        whole = self.folder / "undisturbed"
        done = self._run(whole)
        assert done.code == 0, f"{job.name} fails undisturbed:\n{done.error[-3000:]}"
        self.seconds, self.steps = done.seconds, done.last_step
        self.whole = self._results(whole, done)
        assert self.whole, f"{job.name} leaves no results to compare"
        log(f"{job.name}: {self.seconds:.1f} s undisturbed, {len(self.whole)} results")

    def row(self, kind, trials):
        """Trials with one kind of signal."""
        row = Row(self.job.name, kind)
        for number in range(trials):
            trial = self.folder / f"{kind}-{number}"
            before = len(row.findings)
            self._trial(row, trial, kind, group=kind in ("int", "twice") or number % 2 == 0)
            if len(row.findings) == before:
                shutil.rmtree(trial)
        return row

    def _trial(self, row, trial, kind, group):
        stopped, planned = [], self.draw.choice([1, 1, 2, MOST_STOPS_IN_A_ROW])
        while len(stopped) < planned:
            moment = self.draw.uniform(0, self.seconds)
            ended = self._run(trial, kind, moment, group)
            if not ended.stopped and stopped:
                break  # what was left was done before the stop came
            if not ended.stopped:
                shutil.rmtree(trial)  # nothing was stopped: another moment
                continue
            stopped.append(ended)
            self._judge(row, trial, kind, moment, ended)
        final = ended if not ended.stopped else self._run(trial)
        row.trials += 1
        row.stops += len(stopped)
        if final.code != 0 or final.traceback:
            row.findings.append(f"{trial}: the same command fails: {final.error[-600:]}")
            return
        different = self._different(self._results(trial, final))
        row.same += not different
        if different:
            row.findings.append(f"{trial}: differs: {', '.join(different[:5])}")
        row.lost.append(self.lost([*stopped, final]))

    def _judge(self, row, trial, kind, moment, ended):
        """Takes down how a stopped process ended."""
        row.codes[ended.code] += 1
        row.slowest = max(row.slowest, ended.to_end)
        row.children += ended.children
        row.tracebacks += ended.traceback
        wrong = []
        if ended.children:
            wrong.append(f"left {ended.children} processes")
        if ended.traceback:
            wrong.append(f"printed a traceback: {ended.error[-1500:]}")
        if kind != "kill":
            number = SIGNALS[kind]
            if ended.code not in (128 + number, -number) and not ended.within_pythons_start:
                wrong.append(f"exit code {ended.code}")
            said = _SENTENCE.findall(ended.out + ended.error)
            if (
                len(said) not in self.job.sentences
                and kind != "twice"
                and not ended.within_pythons_start
            ):
                wrong.append(f"said {said}: {ended.out[-300:]} {ended.error[-1500:]}")
        row.findings += [f"{trial} at {moment:.2f} s: {one}" for one in wrong]

    def lost(self, runs):
        """The share of work that was done again: of steps, or else of time."""
        if not self.job.trains:
            again = sum(one.seconds for one in runs) - self.seconds
            return max(0.0, again / self.seconds)
        again = reached = 0
        for one in runs:
            found = _RESUMED.search(one.error)
            if found or one.trained:
                resumed = int(found[1].replace(",", "")) if found else 0
                again += max(0, reached - resumed)
                reached = one.last_step
        return again / self.steps

    def _run(self, trial, kind=None, moment=None, group=True):
        """Runs the command in a folder, to its end or to a stop."""
        trial.mkdir(parents=True, exist_ok=True)
        logs = trial / ".logs"
        logs.mkdir(exist_ok=True)
        out, error = logs / "out", logs / "error"
        words = [word.replace("INPUTS", "../inputs") for word in map(str, self.job.words)]
        start, logged = time.monotonic(), _logged(trial)
        with out.open("w") as out_file, error.open("w") as error_file:
            environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONPATH": str(ROOT)}
            if self._forked:
                process = Program(words[1:], environment, trial, own_session=True)
            else:
                process = subprocess.Popen(
                    [sys.executable, *words],
                    cwd=trial,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out_file,
                    stderr=error_file,
                    start_new_session=True,
                )
            asked = time.monotonic()
            if moment is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(moment)
                asked = time.monotonic()
                if process.poll() is None:
                    self._stop(process, kind, group)
            code = _code_of(process, SECONDS_TO_END if kind else None)
        end = time.monotonic()
        return Ended(
            code,
            end - start,
            end - asked if kind else 0.0,
            process.printed("out") if self._forked else out.read_text(errors="replace"),
            process.printed("error") if self._forked else error.read_text(errors="replace"),
            _children_left(process.pid),
            _last_step(trial),
            _logged(trial) != logged,
        )

    def _stop(self, process, kind, group):
        number = SIGNALS.get(kind, signal.SIGKILL)
        send = _send_to_group if group and kind != "term" else os.kill
        with contextlib.suppress(ProcessLookupError):
            send(process.pid, number)
            if kind == "twice":
                time.sleep(self.draw.uniform(0.05, 0.5))
                send(process.pid, number)

    def _results(self, trial, ended):
        """The bytes of every result by its name."""
        found = {}
        for path in sorted(trial.rglob("*")):
            name = path.relative_to(trial).as_posix()
            if path.is_file() and not self._is_left_out(name):
                found[name] = _comparable(path)
        if self.job.prints:
            found["standard output"] = _without_times(ended.out)
        return found

    def _is_left_out(self, name):
        parts = name.split("/")
        always = ("checkpoints", "best_checkpoint")
        if any(part.startswith(".") or part in always for part in parts):
            return True
        return any(Path(name).match(pattern) for pattern in (*self.job.left_out, *_LEFT_OUT))

    def _different(self, results):
        names = {*results, *self.whole}
        return sorted(name for name in names if results.get(name) != self.whole.get(name))


def _send_to_group(pid, number):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)  # a fork that leads no group yet


def _code_of(process, seconds):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            _send_to_group(process.pid, signal.SIGKILL)
        process.wait()
        return 999  # it hung


def _children_left(session):
    """How many processes of a session are still there after a while; they are killed."""
    give_up = time.monotonic() + SECONDS_FOR_CHILDREN
    while (left := _alive(session)) and time.monotonic() < give_up:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def _alive(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def _logged(trial):
    """The logs of training. A run with no step left writes its log again, with the same lines."""
    return {path: path.read_bytes() for path in trial.rglob("metrics.jsonl")}


def _last_step(trial):
    """The last step that any training run of a trial has logged."""
    steps = [0]
    for path in trial.rglob("metrics.jsonl"):
        for line in path.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError, KeyError):
                steps.append(json.loads(line)["step"])
    return max(steps)


def _comparable(path):
    """A file's bytes; of logs, the figures that do not depend on the clock."""
    data = path.read_bytes()
    if path.suffix != ".jsonl" or b'"step"' not in data:
        return data
    lines = [json.loads(line) for line in data.decode().splitlines()]
    kept = [
        {name: value for name, value in line.items() if not _OF_THE_CLOCK.search(name)}
        for line in lines
    ]
    return json.dumps(kept).encode()


def _without_times(printed):
    return [line for line in printed.splitlines() if not _OF_THE_CLOCK.search(line)]


def run_series(jobs, kinds, trials, seed, folder, log, forked=False):
    """Gives a row for each job and kind of signal."""
    for job in jobs:
        draw = random.Random(f"{seed} {job.name}")
        series = Series(job, Path(folder) / job.name, draw, log, forked)
        for kind in kinds:
            yield series.row(kind, trials)


def main(arguments=None):
    """Prints the table; gives 1 where something is not as it should be."""
    from tests.support.stopped_jobs import JOBS, QUICK

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default=",".join(JOBS), help="names, separated by commas")
    parser.add_argument("--stops", type=int, default=5, help="trials for each tool and signal")
    parser.add_argument("--signals", default="int,term,kill", help="of int, twice, term, kill")
    parser.add_argument("--quick", action="store_true", help="shorter jobs, where there are any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--forked", action="store_true", help="start from a process with TensorFlow: sooner"
    )
    parser.add_argument("--folder", help="where trials go; a temporary folder by default")
    given = parser.parse_args(arguments)
    folder = given.folder or tempfile.mkdtemp(prefix="random-stops-")
    # What is started in the background ignores Ctrl-C, and its processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _show(HEADER)
    findings = []
    known = {**JOBS, **(QUICK if given.quick else {})}
    jobs = [known[name] for name in given.tool.split(",")]
    kinds = given.signals.split(",")
    for row in run_series(jobs, kinds, given.stops, given.seed, folder, _say, given.forked):
        _show(row.line())
        for finding in row.findings:
            _say(finding)
        findings += row.findings
    if not findings and not given.folder:
        shutil.rmtree(folder)
    _show(f"{len(findings)} findings" + (f"; their folders are in {folder}" if findings else ""))
    return 1 if findings else 0


def _show(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say(line):
    sys.stderr.write(f"  {line}\n")


if __name__ == "__main__":
    sys.exit(main())
