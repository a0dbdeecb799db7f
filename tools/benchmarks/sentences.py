"""Compares ways of cutting paragraphs into sentences: right on hard cases, and how fast.

The hard cases are paragraphs whose sentences were marked by hand (tests/golden/sentences). Speed is
in MB of UTF-8 a second of processor time, in one process. Libraries that are not installed are
left out; all of them: pip install nupunkt pysbd blingfire kiwipiepy

Example:
  python -m tools.benchmarks.sentences --input_file=wiki.jsonl.xz --language=english
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_LANGUAGE = FLAGS.choice("language", "english", ["english", "korean"], "Which hard cases and text.")
_CASES_DIR = FLAGS.string(
    "cases_dir",
    str(Path(__file__).parents[2] / "tests" / "golden" / "sentences"),
    "The folder with english.txt and korean.txt; ‖ stands between two sentences.",
)
_INPUT_FILE = FLAGS.words("input_file", [], "Text for the speed: JSON lines with a field `text`.")
_MEGABYTES = FLAGS.number(
    "megabytes", 4.0, "How much text to read; slow ones get a fraction of it."
)
_SHOW_WRONG = FLAGS.switch("show_wrong", False, "Whether to print the cases that came out wrong.")

_CODES = {"english": "en", "korean": "ko"}
_Split = Callable[[str], list[str]]


def contestants(code: str) -> dict[str, tuple[_Split, float]]:
    """Each way to split, and the share of the text it can be asked to read."""
    from pipelines.corpora.sentences import split_paragraph

    found: dict[str, tuple[_Split, float]] = {
        "this project": (lambda text: split_paragraph(text, code), 1.0)
    }
    for name, make, share in (
        ("sentencex", lambda m: lambda text: m.segment(code, text), 1.0),
        ("nupunkt", lambda m: m.sent_tokenize, 0.1),
        ("blingfire", lambda m: lambda text: m.text_to_sentences(text).split("\n"), 0.3),
        ("pysbd", lambda m: m.Segmenter(language="en", clean=False).segment, 0.005),
        ("kiwipiepy", _kiwi, 0.01),
    ):
        try:
            found[name] = make(importlib.import_module(name)), share
        except ImportError:
            continue
    if code != "ko":
        found.pop("kiwipiepy", None)
    return found


def marked_cases(path: Path) -> list[tuple[str, list[str]]]:
    """The hard cases: a paragraph and its sentences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = (line.replace(" ‖ ", " ").replace("‖", "") for line in lines)
    sentences = ([part.strip() for part in line.split("‖")] for line in lines)
    return list(zip(texts, sentences, strict=True))


def right_cases(split: _Split, cases: list[tuple[str, list[str]]], show_wrong: bool) -> int:
    """How many cases come out as they were marked."""
    right = 0
    for text, sentences in cases:
        found = [part.strip() for part in split(text) if part.strip()]
        right += found == sentences
        if show_wrong and found != sentences:
            print(f"    {found}")
    return right


def megabytes_a_second(split: _Split, paragraphs: list[str]) -> float:
    """MB of UTF-8 split a second of processor time."""
    size = sum(len(paragraph.encode()) for paragraph in paragraphs)
    start = time.process_time()
    for paragraph in paragraphs:
        list(split(paragraph))
    return size / (time.process_time() - start) / 1e6


def _kiwi(module: object) -> _Split:
    kiwi = module.Kiwi()  # type: ignore[attr-defined]
    return lambda text: [sentence.text for sentence in kiwi.split_into_sents(text)]


def _paragraphs(patterns: list[str], megabytes: float) -> list[str]:
    from pipelines.corpora.tokenize_text import read_all_lines

    seen = 0.0

    def fits(line: str | bytes) -> bool:
        nonlocal seen
        seen += len(line) / 1e6
        return seen <= megabytes

    return [str(line) for line in takewhile(fits, read_all_lines(patterns, "text"))]


def _run() -> None:
    language = _LANGUAGE.value
    code = _CODES[language]
    cases = marked_cases(Path(_CASES_DIR.value) / f"{language}.txt")
    patterns = _INPUT_FILE.value
    paragraphs = _paragraphs(patterns, _MEGABYTES.value) if patterns else []
    show_wrong = _SHOW_WRONG.value
    rows = []
    print(f"{'splitter':14} right of {len(cases)}   MB a second")
    for name, (split, share) in contestants(code).items():
        right = right_cases(split, cases, show_wrong)
        part = paragraphs[: max(20, int(len(paragraphs) * share))]
        speed = round(megabytes_a_second(split, part), 2) if part else None
        print(f"{name:14} {right:11} {speed if speed is not None else '-':>13}")
        rows.append({"splitter": name, "right": right, "cases": len(cases), "mb_per_second": speed})
    for row in rows:
        print(json.dumps(row))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
