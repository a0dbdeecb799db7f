"""Tries spoiled files of every kind on what reads them, and tells what went wrong.

  python -m tests.fuzz --cases=10000 --seed=1 --report=report.md
  python -m tests.fuzz --seed=1 --case=labels:17

Ends with 1 where an outcome is bad; the folders of those cases are kept.
"""

import argparse
import collections
import contextlib
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.corpus import keep
from tests.fuzz.kinds import KINDS
from tests.fuzz.outcomes import BAD, OUTCOMES, SUCCESS
from tests.fuzz.runner import Case, Kind, Runner, Seeds, cases_of_corpus, import_all

_TOLD_EVERY = 15  # seconds


def plan(count: int, seed: int, kinds: list[Kind]) -> list[Case]:
    """The cases of a run: kinds by their weights, in a random order."""
    total = sum(kind.weight for kind in kinds)
    each = ((kind, max(1, round(count * kind.weight / total))) for kind in kinds)
    cases = [Case(kind, number) for kind, some in each for number in range(some)]
    random.Random(seed).shuffle(cases)
    return cases


def table(cases: list[Case]) -> str:
    """Kinds and outcomes as a table in Markdown."""
    counts = collections.Counter((case.kind.name, case.judged.outcome) for case in cases)
    names = dict.fromkeys(case.kind.name for case in sorted(cases, key=lambda one: one.kind.name))
    lines = [f"| kind | tried | {' | '.join(OUTCOMES)} |", f"|---|{'---:|' * (len(OUTCOMES) + 1)}"]
    for name in [*names, "all"]:
        row = [sum(counts[one, outcome] for one in names if name in (one, "all"))
               for outcome in OUTCOMES]  # fmt: skip
        lines.append(f"| {name} | {sum(row)} | {' | '.join(str(one or '') for one in row)} |")
    return "\n".join(lines)


def findings(cases: list[Case]) -> str:
    """The bad cases, each with the lines that show it."""
    parts = (
        f"## {case.name} {case.judged.outcome}\n\n{case.told()!a}\n\n"
        f"{case.seconds:.1f} s, {case.megabytes:.0f} MB, {case.folder}\n\n"
        f"```\n{case.judged.detail}\n```\n"
        for case in cases
    )
    return "\n".join(parts)


def main(words: list[str] | None = None) -> int:
    """Runs what the command line says; gives the exit code."""
    given = _given(words)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    (folder / "cases").mkdir(parents=True, exist_ok=True)
    import_all()
    runner = Runner(folder / "cases", given.seed, Seeds(folder / "seeds"))
    done = _run(runner, _cases(given), given)
    bad = [case for case in done if case.judged.outcome in BAD or _refused(case)]
    sys.stdout.write(f"{table(done)}\n\n{len(done)} cases of seed {given.seed}, {len(bad)} bad\n")
    if given.case:
        sys.stdout.write(f"{done[0].told()!a}\n{done[0].judged}\n")
    if given.keep:
        for case in bad:
            keep(case)
    if given.folder is None and not (bad or given.case):
        shutil.rmtree(folder)
    return int(bool(bad))


def _given(words):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--cases", type=int, default=300, help="how many cases, of all kinds")
    what.add_argument("--case", help="one case again, and its folder is kept: KIND:NUMBER")
    what.add_argument("--corpus", action="store_true", help="the cases that once failed")
    what.add_argument("--valid", action="store_true", help="every reader on the valid files")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--keep", action="store_true", help="put bad cases into the corpus")
    parser.add_argument("--report", type=Path, help="a file for the table and the bad cases")
    parser.add_argument("--folder", type=Path, help="where the cases and the valid files stand")
    given = parser.parse_args(words)
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"--kinds: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return given


def _cases(given):
    kinds = {name: KINDS[name] for name in given.kinds}
    if given.case:
        name, _, number = given.case.partition(":")
        return [Case(KINDS[name], int(number))]
    if given.corpus:
        return cases_of_corpus(kinds)
    if given.valid:
        each = [(kind, at) for kind in kinds.values() for at in range(len(kind.readers))]
        return [Case(kind, -1 - at) for kind, at in each]
    return plan(given.cases, given.seed, list(kinds.values()))


def _refused(case):
    """Whether a valid file was not read."""
    return case.number < 0 and case.judged.outcome != SUCCESS


def _run(runner, cases, given):
    """Runs the cases, tells how it goes, and removes what ended well; Ctrl-C ends it early."""
    done, bad, start = [], [], time.monotonic()
    told = start
    with contextlib.suppress(KeyboardInterrupt):
        for case in cases:
            runner.run(case)
            done.append(case)
            if case.judged.outcome in BAD or _refused(case):
                bad.append(case)
                sys.stderr.write(f"{case.name} {case.judged.outcome}: {case.told()[:150]!a}\n")
            elif not given.case:
                runner.clear(case)
            if time.monotonic() - told > _TOLD_EVERY:
                told = time.monotonic()
                rate = len(done) / (told - start)
                left = (len(cases) - len(done)) / rate
                sys.stderr.write(f"{len(done)} of {len(cases)}, {rate:.1f}/s, {left:.0f} s left\n")
                _report(given, done, bad)
    _report(given, done, bad)
    return done


def _report(given, done, bad):
    if given.report:
        given.report.write_text(f"{table(done)}\n\n{findings(bad)}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
