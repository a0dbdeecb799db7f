import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import TERMINAL_STOPS
from pipelines import processes
from pipelines.processes import in_order

_JOB = """
import multiprocessing, os, time
from pipelines.processes import worker_pool
if __name__ == "__main__":
    with worker_pool(2) as pool:
        tasks = [pool.submit(time.sleep, 0.5) for _ in range(2)]
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        time.sleep(600)
"""


def lives(process):
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def gone_within(seconds, processes):
    deadline = time.monotonic() + seconds
    while any(map(lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(lives, processes))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to look at processes")
def test_workers_end_soon_after_the_process_that_started_them_is_killed(tmp_path):
    (tmp_path / "job.py").write_text(_JOB)
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "job.py")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as job:
        workers = [int(word) for word in job.stdout.readline().split()]
        try:
            assert len(workers) == 2
            time.sleep(0.3)
            assert all(map(lives, workers))
            job.kill()
            assert gone_within(20, workers)
        finally:
            for worker in filter(lives, workers):
                os.kill(worker, signal.SIGKILL)


_INTERRUPTED = """
import multiprocessing, signal, sys, time
from pathlib import Path
from pipelines.processes import worker_pool

def meet(own, other):
    Path(own).touch()
    while not Path(other).exists():
        time.sleep(0.02)

if __name__ == "__main__":
    # A shell starts `make test &` with SIGINT ignored, and every child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with worker_pool(2) as pool:
            met = [pool.submit(meet, "a", "b"), pool.submit(meet, "b", "a")]
            [task.result() for task in met]
            busy = pool.submit(time.sleep, 600)
            print(*(child.pid for child in multiprocessing.active_children()), flush=True)
            busy.result()
    except KeyboardInterrupt:
        sys.exit("interrupted")
"""


@pytest.mark.parametrize("number", TERMINAL_STOPS)
def test_a_terminal_s_stop_ends_busy_and_idle_workers_without_a_traceback(tmp_path, number):
    (tmp_path / "job.py").write_text(_INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, "job.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        start_new_session=True,  # Ctrl-C reaches all processes of a terminal
    ) as job:
        try:
            workers = [int(word) for word in job.stdout.readline().split()]
            time.sleep(0.3)
            os.killpg(job.pid, number)
            said = job.communicate(timeout=30)[1]
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    assert said == "interrupted\n"
    assert len(workers) == 2
    assert gone_within(20, workers)


def refuse(name):
    raise UserError(f"{name}: is bad; fix it.")


def test_results_come_in_the_order_of_the_work():
    for num_workers in (1, 2):
        assert list(in_order(abs, range(-50, 0), num_workers)) == list(range(50, 0, -1))


def test_a_workers_error_reaches_the_user():
    with pytest.raises(UserError, match="x: is bad; fix it"):
        list(in_order(refuse, ["x"] * 20, num_workers=2))


def test_work_is_read_as_it_is_needed():
    read = []
    results = in_order(abs, (read.append(n) or n for n in range(100)), num_workers=2)
    next(results)
    assert len(read) <= 6
    results.close()


def be_killed_at_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_a_sentence_that_asks_for_fewer():
    sentence = (
        r"^A worker process was killed, perhaps for want of memory; "
        r"run the same command again with a smaller `num_workers`\.$"
    )
    with pytest.raises(UserError, match=sentence):
        list(in_order(be_killed_at_three, range(50), num_workers=2))


def test_by_default_there_are_as_many_workers_as_cores_that_may_be_used(monkeypatch):
    monkeypatch.setattr(processes, "usable_cores", lambda: 1)
    assert list(in_order(lambda _: os.getpid(), [None])) == [os.getpid()]
