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
from pathlib import Path

from tests.fuzz.kinds import KINDS
from tests.fuzz.outcomes import OUTCOMES
from tests.fuzz.runner import Case, Kind, Runner, import_all


def plan(count: int, seed: int, kinds: list[Kind]) -> list[Case]:
    """The cases of a run: valid files for all readers, then kinds by weight in a random order."""
    valid = [Case(kind, -1 - at) for kind in kinds for at in range(len(kind.readers))]
    total = sum(kind.weight for kind in kinds)
    each = ((kind, round(count * kind.weight / total)) for kind in kinds)
    cases = [Case(kind, number) for kind, some in each for number in range(some)]
    random.Random(seed).shuffle(cases)
    return [*valid, *cases]


def report(cases: list[Case]) -> str:
    """Kinds and outcomes as a table in Markdown; the bad cases with the lines that show them."""
    counts = collections.Counter((case.kind.name, case.judged.outcome) for case in cases)
    lines = [f"| kind | {' | '.join(OUTCOMES)} |", f"|---|{'---:|' * len(OUTCOMES)}"]
    for name in sorted({case.kind.name for case in cases}):
        row = (str(counts[name, outcome] or "") for outcome in OUTCOMES)
        lines.append(f"| {name} | {' | '.join(row)} |")
    for case in (case for case in cases if case.bad):
        lines += ["", f"## {case.name} {case.judged.outcome}", "", f"{case.told()!a}", ""]
        lines += [f"{case.seconds:.1f} s, {case.megabytes:.0f} MB, {case.folder}", ""]
        lines += ["```", case.judged.detail, "```"]
    return "\n".join([*lines, ""])


def main(words: list[str] | None = None) -> int:
    """Runs what the command line says; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cases", type=int, default=300, help="spoiled files, of all kinds")
    parser.add_argument("--case", help="one case again, and its folder is kept: KIND:NUMBER")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some kinds only")
    parser.add_argument("--report", type=Path, help="a file for the table and the bad cases")
    given = parser.parse_args(words)
    cases = plan(given.cases, given.seed, [KINDS[name] for name in given.kinds.split(",")])
    if given.case:
        name, _, number = given.case.partition(":")
        cases = [Case(KINDS[name], int(number))]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    import_all()
    runner, done = Runner(folder, given.seed), []
    with contextlib.suppress(KeyboardInterrupt):
        for case in cases:
            runner.run(case)
            done.append(case)
            if case.bad:
                sys.stderr.write(f"{case.name} {case.judged.outcome}: {case.told()[:150]!a}\n")
            elif not given.case:
                runner.clear(case)
            if len(done) % 500 == 0:
                sys.stderr.write(f"{len(done)} of {len(cases)}\n")
    told, bad = report(done), sum(case.bad for case in done)
    sys.stdout.write(f"{told}\n{len(done)} cases of seed {given.seed}, {bad} bad\n")
    if given.report:
        given.report.write_text(told, encoding="utf-8")
    if not (bad or given.case):
        shutil.rmtree(folder)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
