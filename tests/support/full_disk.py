"""Lets the disk run full under each tool, frees it, and lets the same command finish.

`python -m tests.support.full_disk --tool=embed,run_squad` (all tools without `--tool`; as root, who
alone may mount) runs a tiny job of each tool on a small disk of its own in memory, once with room
enough, and then with some shares of the room that it took: it fills while other files are written.
A tool then ends with exit code 1 and one sentence, and with room enough the same command comes to
the same bytes. `--read_only` takes a disk that cannot be written at all.

A line a trial says how it ended. The exit code is 1 where anything is not as it should be.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.support.random_stops import Series

SHARES = (0.02, 0.25, 0.5, 0.75, 0.95)
_ROOM = 2 << 30
_PAGE = 4096
_SECONDS_BETWEEN_LOOKS = 0.01
_ERROR = re.compile(r"^Error: .+", re.MULTILINE)


class FullDisk(Series):
    """The trials of one job; each has a disk of its own in memory, and its logs elsewhere."""

    def __init__(self, job, folder, log):
        self.peak, self._disks = 0, contextlib.ExitStack()
        super().__init__(job, folder, random.Random(job.name), log, forked=True)

    def _run(self, trial, *arguments):
        if not trial.exists():
            self._disks.enter_context(_disk(trial))
        done = threading.Event()
        watching = threading.Thread(target=self._watch, args=(trial, done))
        watching.start()
        try:
            return super()._run(trial, *arguments)
        finally:
            done.set()
            watching.join()

    def _watch(self, trial, done):
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            self.peak = max(self.peak, shutil.disk_usage(trial).used)

    def trial(self, share=None):
        """How a trial ends: a line, and what was wrong with it.

        Args:
            share: of the room that the job takes; None for a disk that cannot be written.
        """
        trial = self.folder / f"{'read-only' if share is None else share}"
        self._disks.enter_context(_disk(trial))
        room = "ro" if share is None else f"size={max(_PAGE, int(share * self.peak))}"
        _mount("-o", f"remount,{room}", trial)
        full = super()._run(trial)
        _mount("-o", f"remount,rw,size={_ROOM}", trial)
        wrong = []
        said = _ERROR.findall(full.error)
        if full.code not in (0, 1) or (full.code == 1 and len(said) != 1):
            wrong.append(f"exit code {full.code}: {full.error[-1500:]}")
        if full.traceback:
            wrong.append(f"a traceback: {full.error[-2500:]}")
        again = super()._run(trial)
        different = self._different(self._results(trial, again)) if again.code == 0 else []
        if again.code != 0:
            wrong.append(f"afterwards exit code {again.code}: {again.error[-1500:]}")
        if different:
            wrong.append(f"afterwards differs: {different[:5]}")
        name = "read-only" if share is None else f"{share:.0%}"
        line = f"{self.job.name:26} {name:>9} {full.code:5} {again.code:5}  {(said or ['-'])[-1]}"
        return line, wrong

    def close(self):
        """Takes the disks away."""
        self._disks.close()


@contextlib.contextmanager
def _disk(folder):
    logs = folder.with_name(f"{folder.name}-logs")
    logs.mkdir(parents=True)
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", folder)
    (folder / ".logs").mkdir()
    _mount("--bind", logs, folder / ".logs")
    try:
        yield
    finally:
        for one in (folder / ".logs", folder):
            subprocess.run(["umount", "--lazy", one], check=False)


def _mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def main(arguments=None):
    """Prints the table; gives 1 where something is not as it should be."""
    from tests.support.stopped_jobs import JOBS, QUICK

    known = {**JOBS, **QUICK}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default=",".join(known), help="names, separated by commas")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="of the room taken")
    parser.add_argument("--read_only", action="store_true", help="also a disk without writing")
    given = parser.parse_args(arguments)
    os.environ["KERAS_BERT_CACHE"] = tempfile.mkdtemp(prefix="cache-")
    folder = Path(tempfile.mkdtemp(prefix="full-disk-"))
    findings = 0
    shares = [*map(float, given.shares.split(",")), *([None] if given.read_only else [])]
    for name in given.tool.split(","):
        with contextlib.ExitStack() as stack:
            try:
                series = FullDisk(known[name], folder / name, lambda line: None)
            except AssertionError as error:
                sys.stdout.write(f"{name}: {str(error)[:300]}\n")
                findings += 1
                continue
            stack.callback(series.close)
            for share in shares:
                line, wrong = series.trial(share)
                findings += len(wrong)
                sys.stdout.write("".join(f"{one}\n" for one in (line, *wrong)))
                sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{findings} findings\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
