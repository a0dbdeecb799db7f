"""Programs as users start them, in processes that are forked from one that has TensorFlow imported.

Importing TensorFlow is five seconds of work, more than most programs of the tests take. So each
worker of the tests keeps one process (`python -m tests.support.programs`) that has imported it, and
used it for nothing; a program is a fork of it that becomes `python -m MODULE WORDS...`: it has its
own environment, streams, exit code, and dies of signals like any other.

The tests that are about the start itself (what is imported, the exit code of the interpreter) start
a whole process.
"""

import atexit
import contextlib
import functools
import gc
import json
import math
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """A running program with the members of `subprocess.Popen` that tests use.

    `processor_seconds` is what it and the processes that it waited for have used, at its end.

    Args:
        words: the module and its arguments, or `-c` and a program and its arguments.
        env: the whole environment; None for this process' own.
        cwd: the folder that it works in.
        own_session: whether it leads a session, and so a group of processes, of its own.
    """

    def __init__(self, words, env=None, cwd=ROOT, own_session=False):
        self._folder = Path(tempfile.mkdtemp(dir=_folder().name))
        order = {
            "words": [str(word) for word in words],
            "cwd": str(cwd),
            "env": dict(os.environ if env is None else env),
            "folder": str(self._folder),
            "own_session": own_session,
        }
        server = _server()
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        self.pid = int(server.stdout.readline())
        self.returncode = None
        self.processor_seconds = 0.0

    def poll(self):
        """The exit code, minus the signal that ended it, or None while it runs."""
        if self.returncode is None:
            with contextlib.suppress(FileNotFoundError):
                code, seconds = (self._folder / "code").read_text().split()
                self.returncode, self.processor_seconds = int(code), float(seconds)
        return self.returncode

    def send_signal(self, number):
        """Sends a signal, if the program is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        """Ends it without warning."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=1200):
        """Waits for the end; gives what was printed and what was said of errors."""
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self.printed("out"), self.printed("error")

    def wait(self, timeout=None):
        """Waits for the end; gives the exit code."""
        give_up = time.monotonic() + (math.inf if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > give_up:
                raise subprocess.TimeoutExpired("a program", timeout)
            time.sleep(0.01)
        return self.returncode

    def printed(self, stream="error"):
        """What it has written so far to "out" or "error"."""
        return (self._folder / stream).read_text(errors="replace")


def run(words, env=None, cwd=ROOT, check=False):
    """Runs a program to its end; gives an object with returncode, stdout and stderr."""
    program = Program(words, env, cwd)
    out, error = program.communicate()
    assert not check or program.returncode == 0, error[-3000:]
    return subprocess.CompletedProcess(words, program.returncode, out, error)


@functools.cache
def _folder():
    """Where the programs of this process write; removed at its end."""
    return tempfile.TemporaryDirectory(prefix="programs-")


@functools.cache
def _server():
    """The process that programs are forked from."""
    server = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.stdin.close)  # at its end of input it ends
    return server


def _serve():
    """Forks a program for every line of the input, until there are no more."""
    # What this process is for; nothing of it starts a thread.
    import matplotlib.backends.backend_agg
    import matplotlib.figure
    import matplotlib.font_manager  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_text  # noqa: F401

    import pipelines.fine_tuning.run
    import pipelines.runs.pretraining
    import pipelines.tasks.labels.own_texts
    import pipelines.vectors.embed  # noqa: F401
    import tools.training  # noqa: F401

    gc.collect()
    gc.freeze()  # a program's collector need not look through what is imported
    folders = {}

    def bury(*_):
        """Writes down how children ended."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            folder = folders.pop(pid)
            code = Path(folder) / "code.new"
            seconds = used.ru_utime + used.ru_stime
            code.write_text(f"{os.waitstatus_to_exitcode(status)} {seconds}")
            code.rename(code.with_name("code"))

    signal.signal(signal.SIGCHLD, bury)
    for line in sys.stdin:
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # As in a terminal, even where the tests were started in the background.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            _become(order)
        folders[pid] = order["folder"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _become(order):
    """Is the program from here on; does not return."""
    folder, words = Path(order["folder"]), order["words"]
    if order["own_session"]:
        os.setsid()
    for number, name in ((1, "out"), (2, "error")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    module = ["-m"] if words[0] != "-c" else []
    sys.orig_argv[:] = [sys.executable, *module, *words]  # what execs itself is a whole process
    sys.argv[:] = words
    code = 0
    try:
        if module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            del sys.argv[1]
            exec(words[1], {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As the interpreter ends: threads are waited for, then what is registered is done.
    sys.exit(code)


if __name__ == "__main__":
    _serve()
