"""How a case may end, and which of the ends are wrong."""

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.errors import escaped

SUCCESS, SENTENCE = "success", "sentence"
TRACEBACK, CRASH, HANG, MEMORY = "traceback", "crash", "hang", "memory"
UNCLEAR, WRONG, HALF, REPLACED = "unclear", "wrong", "half", "replaced"

OUTCOMES = {
    SUCCESS: "exit code 0, and what came of it is as it should be",
    SENTENCE: "exit code 1 and a clear sentence",
    TRACEBACK: "an exception that is no `UserError`",
    CRASH: "a signal, or an exit code that means nothing",
    HANG: "no end within the time that such work takes",
    MEMORY: "more memory than such work needs",
    UNCLEAR: "exit code 1 without one printable sentence that says where",
    WRONG: "exit code 0 although the input cannot be used",
    HALF: "something half-written is left, or looks whole",
    REPLACED: "a device or a pipe became a file",
}
BAD = tuple(name for name in OUTCOMES if name not in (SUCCESS, SENTENCE))

LONGEST = 600  # characters of a sentence, paths aside
_MOST_TYPED = 60
_SENTENCE = re.compile(r"^Error: .+[.!?)]$")
_SPECIAL = (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK)
_PLACE = re.compile(r"--[a-z]|`[a-z_]+")


class End(NamedTuple):
    """How the process of a case ended.

    Attributes:
        code: its exit code, or minus the signal.
        said: its standard error.
        limit: `HANG` or `MEMORY` where it was stopped for that, else "".
    """

    code: int
    said: str
    limit: str = ""


class Judged(NamedTuple):
    """An outcome with the lines that show it."""

    outcome: str
    detail: str = ""


def judge(end: End, folder: Path, places: list[str]) -> Judged:
    """Judges what a process said and how it ended.

    Args:
        end: of the process.
        folder: of the case; paths in it are not counted as words of a sentence.
        places: names one of which a sentence has to mention, besides flags.
    """
    if end.limit:
        return Judged(end.limit, _last_lines(end.said))
    if end.code < 0:
        return Judged(CRASH, f"signal {-end.code}: {_last_lines(end.said)}")
    if "Traceback (most recent call last)" in end.said:
        return Judged(TRACEBACK, _last_lines(end.said, 14))
    if end.code == 0:
        return Judged(SUCCESS)
    if end.code != 1:
        return Judged(CRASH, f"exit code {end.code}: {_last_lines(end.said)}")
    said = end.said.replace(str(folder), ".")
    for place in places:
        said = said.replace(place, place[:_MOST_TYPED])  # what somebody typed is told whole
    return _judge_sentences(said, [escaped(place[:_MOST_TYPED]) for place in places])


def _judge_sentences(said, places):
    lines = [line for line in said.splitlines() if line.startswith("Error: ")]
    if not lines:
        return Judged(UNCLEAR, f"no sentence: {_last_lines(said)}")
    for line in lines:
        if len(line) > LONGEST:
            return Judged(UNCLEAR, f"{len(line)} characters: {line[:LONGEST]}")
        if escaped(line) != line or "\t" in line:
            return Judged(UNCLEAR, f"not printable: {line!a}")
        if not _SENTENCE.match(line):
            return Judged(UNCLEAR, f"no sentence: {line}")
        if not _PLACE.search(line) and not any(place in line for place in places):
            return Judged(UNCLEAR, f"names no place: {line}")
    if len(lines) > 6:
        return Judged(UNCLEAR, f"{len(lines)} sentences: {lines[0]}")
    return Judged(SENTENCE, lines[-1])


def _last_lines(said, count=4):
    return "\n".join(said.strip().splitlines()[-count:])[-3000:]


class Traces:
    """What a folder holds before a case, to be compared with what it holds afterwards.

    Args:
        folder: the case's.
        made_again: patterns of files in it that are made again, whatever stands there.
    """

    def __init__(self, folder: Path, made_again: Sequence[str] = ()) -> None:
        self._folder = folder
        self._before = dict(self._look())
        self._made_again = {path for pattern in made_again for path in folder.glob(pattern)}

    def _look(self):
        """The kind of every file, that of what a link leads to."""
        for path in sorted(self._folder.rglob("*")):
            try:
                yield path, stat.S_IFMT(path.stat().st_mode)
            except OSError:
                yield path, stat.S_IFLNK

    def wrong(self, code: int, outputs: list[str]) -> Judged | None:
        """What is wrong with the folder now.

        Args:
            code: the exit code.
            outputs: patterns of the results, none of which a failure leaves behind.
        """
        now = dict(self._look())
        for path, kind in self._before.items():
            is_file = now.get(path) == stat.S_IFREG
            if kind in _SPECIAL and is_file and path not in self._made_again:
                return Judged(REPLACED, f"{path.relative_to(self._folder)} is replaced")
        new = [path for path in now if path not in self._before]
        for path in new:
            if path.name.endswith(".incomplete"):
                return Judged(HALF, f"{path.relative_to(self._folder)} is left")
        if code != 0:
            written = {one for pattern in outputs for one in self._folder.glob(pattern)}
            for path in sorted(written & set(new)):
                return Judged(
                    HALF, f"{path.relative_to(self._folder)} stands, but exit code {code}"
                )
        return None
