"""The command `keras-bert` as the pages' examples find it: each one is a fork of one process.

TensorFlow takes five seconds to import, more than most examples take. So a small program called
`keras-bert` comes first on the examples' PATH: it hands its words, folder and environment to
a thread of this process, which has them run by a process that has imported TensorFlow, and ends as
that run ends. Pipes, `&`, `VARIABLE=value` and `timeout` work as with the command itself.
"""

import json
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from tests.support.programs import Program

_CLIENT = """#!{python} -SE
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
file = server.makefile("rw", encoding="utf-8")
order = {{"words": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}
file.write(json.dumps(order) + "\\n")
file.flush()
pid = json.loads(file.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
out, error, code = json.loads(file.readline())
sys.stderr.write(error)  # first, as a tool prints its results last
sys.stderr.flush()
sys.stdout.write(out)
sys.exit(code if code >= 0 else 128 - code)
"""


class Commands:
    """A folder with a command `keras-bert`, for the examples' PATH."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="examples-")
        self.folder = self._folder.name
        self._running: list[Program] = []
        self._listener = socket.socket(socket.AF_UNIX)
        address = f"{self.folder}/socket"
        self._listener.bind(address)
        self._listener.listen()
        client = Path(self.folder) / "keras-bert"
        client.write_text(_CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        client.chmod(0o755)
        threading.Thread(target=self._accept, daemon=True).start()

    def end(self) -> float:
        """Ends what still runs; gives the processor seconds of all commands since the last end."""
        for program in self._running:
            program.send_signal(15)
        for program in self._running:
            program.wait(timeout=60)
        seconds = sum(program.processor_seconds for program in self._running)
        self._running = []
        return seconds

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            file = connection.makefile("rw", encoding="utf-8")
            order = json.loads(file.readline())
            words = ["keras_bert_impl", *order["words"]]
            program = Program(words, env=order["env"], cwd=order["cwd"])
            self._running.append(program)
            threading.Thread(target=_answer, args=(file, program), daemon=True).start()


def _answer(file: IO[str], program: Program) -> None:
    """Tells a command's process, and at its end what it printed and how it ended."""
    file.write(json.dumps(program.pid) + "\n")
    file.flush()
    out, error = program.communicate()
    file.write(json.dumps([out, error, program.returncode]) + "\n")
    file.close()
