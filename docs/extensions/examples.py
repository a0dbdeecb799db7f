"""The directive `run`: a page's examples are executed when the site is built, and their output shown.

A page works in a folder of its own, `_run/PAGE`, which is emptied before its first example. Blocks of
`sh` are commands as a reader types them; blocks of `python` share their names along the page, and the
value of a last expression is shown. A command that fails fails the build.

TensorFlow takes five seconds to import, more than most examples take. So `keras-bert` is not started
anew for every command: each one is a fork of one process that has imported it.
"""

import ast
import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tests.support.programs import Program

_LOG = logging.getLogger(__name__)
_PYTHON_FOLDER = str(Path(sys.executable).parent)


class Session:
    """What the examples of one page share: a folder, Python's names, programs in the background."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._background: list[Program] = []
        self._start = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def python(self, code: str) -> str:
        """Runs Python code; gives what it printed, and the value of a last expression."""
        tree, printed, value = ast.parse(code), io.StringIO(), None
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed), contextlib.chdir(self.folder):
            exec(compile(tree, "<example>", "exec"), self._names)  # noqa: S102 - our own pages
            if isinstance(last, ast.Expr):
                value = eval(  # noqa: S307 - our own pages
                    compile(ast.Expression(last.value), "<example>", "eval"), self._names
                )
        return printed.getvalue() + ("" if value is None else f"{value!r}\n")

    def shell(self, code: str, show_errors: bool, exit_code: int) -> str:
        """Runs commands, one after the other; gives what they printed."""
        return "".join(
            self._command(command, show_errors, exit_code) for command in commands_of(code)
        )

    def _command(self, command: str, show_errors: bool, exit_code: int) -> str:
        if not command.startswith("keras-bert "):
            done = subprocess.run(
                ["bash", "-euc", command], cwd=self.folder, capture_output=True, text=True, check=False
            )
            code, out, error = done.returncode, done.stdout, done.stderr
        elif command.endswith("&"):
            program = self._program(command[:-1])
            self._background.append(program)
            return _first_words(program)
        else:
            program = self._program(command)
            out, error = program.communicate(timeout=300)
            code = program.returncode
        if code != exit_code:
            raise ExtensionError(f"{command}\nended with {code}:\n{out}{error}")
        return error + out if show_errors else out

    def _program(self, command: str) -> Program:
        return Program(["keras_bert_impl", *shlex.split(command)[1:]], cwd=self.folder)

    def end(self) -> float:
        """Ends what still runs in the background; gives the page's seconds."""
        for program in self._background:
            program.send_signal(2)
            program.communicate(timeout=60)
        self._background = []
        return time.monotonic() - self._start


def commands_of(code: str) -> list[str]:
    r"""The commands of a block of shell; a command goes on after a backslash at a line's end.

    A command that is not `keras-bert` takes all lines up to the next one that is.

    Example:
        >>> commands_of("keras-bert embed \\\n  --model=m\nhead -1 a |\n  sort\nkeras-bert serve &")
        ['keras-bert embed    --model=m', 'head -1 a |\n  sort', 'keras-bert serve &']
    """
    commands: list[str] = []
    for line in code.replace("\\\n", " ").splitlines():
        ours = line.startswith("keras-bert ")
        if ours or not commands or commands[-1].startswith("keras-bert "):
            commands.append(line)
        else:
            commands[-1] += "\n" + line
    return [command for command in commands if command.strip()]


def _first_words(program: Program, timeout: float = 60) -> str:
    """Waits until a program in the background has said that it is there; gives what it printed."""
    give_up = time.monotonic() + timeout
    while "http://" not in program.printed("out") + program.printed("error"):
        if program.poll() is not None or time.monotonic() > give_up:
            raise ExtensionError(f"a server did not start:\n{program.printed('error')}")
        time.sleep(0.05)
    return program.printed("out")


class Run(SphinxDirective):
    """Runs its content and shows it with its output."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {
        "errors": directives.flag,  # shows standard error as well
        "exit": directives.nonnegative_int,  # the exit code that the command must have
        "lines": directives.positive_int,  # shows so many lines of the output's beginning
        "last": directives.positive_int,  # shows so many lines of the output's end
    }

    def run(self) -> list[nodes.Node]:
        """The code, and what it printed."""
        code = "\n".join(self.content)
        language = self.arguments[0]
        shown: list[nodes.Node] = [_literal(code, language, "code")]
        try:
            output = self._output(code, language)
        except Exception as error:
            raise ExtensionError(
                f"{self.env.doc2path(self.env.docname)}:{self.lineno}: {error}"
            ) from error
        if output.strip():
            shown.append(_literal(self._cut(output), "text", "output"))
        return shown

    def _output(self, code: str, language: str) -> str:
        session = _session(self.env.app, self.env.docname)
        if language == "python":
            return session.python(code)
        return session.shell(code, "errors" in self.options, self.options.get("exit", 0))

    def _cut(self, output: str) -> str:
        lines = output.rstrip("\n").splitlines()
        first, last = self.options.get("lines"), self.options.get("last")
        if first and len(lines) > first:
            lines = [*lines[:first], "…"]
        if last and len(lines) > last:
            lines = ["…", *lines[-last:]]
        return "\n".join(lines)


def _literal(text: str, language: str, kind: str) -> nodes.literal_block:
    block = nodes.literal_block(text, text, language=language, classes=[kind])
    return block


_SESSIONS: dict[str, Session] = {}


def _session(app: Sphinx, page: str) -> Session:
    if page not in _SESSIONS:
        _end_sessions()
        _SESSIONS[page] = Session(Path(app.srcdir) / "_run" / Path(page).name)
    return _SESSIONS[page]


def _end_sessions(*_: Any) -> None:
    while _SESSIONS:
        page, session = _SESSIONS.popitem()
        _LOG.info("examples of %s: %.0f s", page, session.end())


def _prepare(app: Sphinx) -> None:
    """Examples see no accelerator and no network, and say nothing of TensorFlow's own."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        CUDA_VISIBLE_DEVICES="-1",
        TF_CPP_MIN_LOG_LEVEL="3",
        PATH=os.pathsep.join([_PYTHON_FOLDER, os.environ["PATH"]]),
        PYTHONPATH=str(Path(app.srcdir).parent),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive to Sphinx."""
    app.add_directive("run", Run)
    app.connect("builder-inited", _prepare)
    app.connect("env-updated", _end_sessions)
    app.connect("build-finished", _end_sessions)
    return {"parallel_read_safe": False}
