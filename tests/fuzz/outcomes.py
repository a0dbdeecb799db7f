"""How a case may end, and which of the ends are wrong."""

import re
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.errors import escaped

SUCCESS, SENTENCE = "success", "sentence"
TRACEBACK, CRASH, HANG, MEMORY = "traceback", "crash", "hang", "memory"
UNCLEAR, HALF = "unclear", "half"

OUTCOMES = {
    SUCCESS: "exit code 0, and what came of it is as it should be",
    SENTENCE: "exit code 1 and a clear sentence",
    TRACEBACK: "an exception that is no `UserError`",
    CRASH: "a signal, or an exit code that means nothing",
    HANG: "no end within the time that such work takes",
    MEMORY: "more memory than such work needs",
    UNCLEAR: "exit code 1 without one printable sentence that says where",
    HALF: "something half-written is left, or looks whole",
}

LONGEST = 600  # characters of a sentence, paths aside
_MOST_TYPED = 60
_SENTENCE = re.compile(r"^Error: .+[.!?)]$")
_PLACE = re.compile(r"--[a-z]|`[a-z_]+")


class Judged(NamedTuple):
    """An outcome with the lines that show it."""

    outcome: str
    detail: str = ""


def judge(code: int, said: str, folder: Path, places: list[str]) -> Judged:
    """Judges what a process said and how it ended.

    Args:
        code: its exit code, or minus the signal.
        said: its standard error.
        folder: of the case; paths in it are not counted as words of a sentence.
        places: names one of which a sentence has to mention, besides flags.
    """
    if "Traceback (most recent call last)" in said:
        return Judged(TRACEBACK, last_lines(said, 14))
    if code not in (0, 1):
        return Judged(CRASH, f"{code}: {last_lines(said)}")
    if code == 0:
        return Judged(SUCCESS)
    said = said.replace(str(folder), ".")
    for place in places:
        said = said.replace(place, place[:_MOST_TYPED])  # what somebody typed is told whole
    return _judge_sentences(said, [escaped(place[:_MOST_TYPED]) for place in places])


def _judge_sentences(said, places):
    lines = [line for line in said.splitlines() if line.startswith("Error: ")]
    if not 0 < len(lines) <= 6:
        return Judged(UNCLEAR, f"{len(lines)} sentences: {last_lines(said)}")
    for line in lines:
        if len(line) > LONGEST:
            return Judged(UNCLEAR, f"{len(line)} characters: {line[:LONGEST]}")
        if escaped(line) != line or "\t" in line:
            return Judged(UNCLEAR, f"not printable: {line!a}")
        if not _SENTENCE.match(line):
            return Judged(UNCLEAR, f"no sentence: {line}")
        if not _PLACE.search(line) and not any(place in line for place in places):
            return Judged(UNCLEAR, f"names no place: {line}")
    return Judged(SENTENCE, lines[-1])


def last_lines(said: str, count: int = 4) -> str:
    """The end of what was said."""
    return "\n".join(said.strip().splitlines()[-count:])[-3000:]


def left_behind(folder: Path, before: set[Path], failed: bool) -> Judged | None:
    """What is wrong with the files that are new in a folder: a failure leaves no result."""
    for path in sorted(set(folder.rglob("*")) - before):
        told = path.relative_to(folder)
        if path.name.endswith(".incomplete"):
            return Judged(HALF, f"{told} is left")
        if failed and told.parts[0].startswith("out"):
            return Judged(HALF, f"{told} stands, but the exit code is 1")
    return None
