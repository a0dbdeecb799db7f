"""Runs the cells of a study, several at once where the machine has the processors for it."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain, pairwise

from pipelines.ablations.cells import Cell
from pipelines.ablations.execution import Programs, Result, run_cell

Share = tuple[int, ...]
"""The numbers of some of the processors."""

_SECONDS_BETWEEN_CALLS_TO_END = 0.5


def run_cells(
    cells: Sequence[Cell],
    programs: Programs,
    keep_models: bool,
    at_once: int,
    started: Callable[[Cell], None],
) -> Iterator[tuple[Cell, Result]]:
    """Runs cells, each after those of them that it needs.

    Several cells at once share the processors: each has its own part of them, and a cell that no
    other can run beside has all. Small models gain by it, since a second thread helps a small
    matrix little. Where a cell fails, those that run beside it are finished first.

    Args:
        cells: in an order in which each stands behind those that it needs.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
        at_once: how many run at once at most.
        started: called with each cell when it starts.

    Yields:
        Each cell with its result, as soon as it is there.

    Raises:
        UserError: a tool failed.
    """
    if at_once == 1:
        for cell in cells:
            started(cell)
            yield cell, run_cell(cell, programs, keep_models)
        return
    with ThreadPoolExecutor(at_once) as threads:
        queue = _Queue(list(cells), _shares(at_once))
        try:
            while queue.waiting or queue.running:
                for cell, shares in queue.next_cells():
                    started(cell)
                    cores = frozenset(chain.from_iterable(shares))
                    future = threads.submit(run_cell, cell, programs, keep_models, cores)
                    queue.running[future] = cell, shares
                for done in wait(queue.running, return_when=FIRST_COMPLETED).done:
                    yield queue.finish(done), done.result()
        except (KeyboardInterrupt, GeneratorExit):  # the cells' own processes ignore Ctrl-C
            _end_all(list(queue.running))
            raise


@dataclass
class _Queue:
    """Which cells wait, which run, and which parts of the processors are free."""

    waiting: list[Cell]
    free: list[Share]
    running: dict[Future[Result], tuple[Cell, list[Share]]] = field(default_factory=dict)

    def next_cells(self) -> list[tuple[Cell, list[Share]]]:
        """The cells that can start now, with their processors."""
        unfinished = {cell.name for cell in self.waiting}
        unfinished |= {cell.name for cell, _ in self.running.values()}
        ready = [x for x in self.waiting if not unfinished & {one.name for one in x.needs}]
        # What others wait for goes first: a long pre-training that starts last would end alone.
        needed = {one.name for cell in self.waiting for one in cell.needs}
        ready.sort(key=lambda cell: cell.name not in needed)
        chosen = ready[: len(self.free)]
        for cell in chosen:
            self.waiting.remove(cell)
        if len(chosen) == 1 and not self.running:
            whole, self.free = [*self.free], []
            return [(chosen[0], whole)]
        return [(cell, [self.free.pop(0)]) for cell in chosen]

    def finish(self, future: Future[Result]) -> Cell:
        """Takes a cell off; its processors are free again."""
        cell, shares = self.running.pop(future)
        self.free += shares
        return cell


def _shares(count: int) -> list[Share]:
    """This process' processors in so many parts; where there are fewer, several use one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < count:
        return [(cores[number % len(cores)],) for number in range(count)]
    bounds = [len(cores) * number // count for number in range(count + 1)]
    return [tuple(cores[a:b]) for a, b in pairwise(bounds)]


def _end_all(running: list[Future[Result]]) -> None:
    """Ends the processes of cells; one that is only about to start, too."""
    while wait(running, timeout=_SECONDS_BETWEEN_CALLS_TO_END).not_done:
        for process in multiprocessing.active_children():
            process.terminate()
