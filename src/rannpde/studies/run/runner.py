"""Running cells: only the missing ones, in this process or in several, each with the same number of threads.

Every cell runs with ``threads`` BLAS threads, one by default, whatever the number of workers, so that its result does
not depend on that number; only the last bits may, where a sum depends on the address of an array. The cores are shared
by running several cells at once, which also scales better than threads within small fits.

With a Dask scheduler the cells run on its workers, and come back to the one process that writes records.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

from rannpde.cluster import cluster_errors, connect, killed
from rannpde.errors import InputError, positive_integer
from rannpde.studies.cell import StudyCell
from rannpde.studies.run.cell import Result, run_cell
from rannpde.studies.run.environment import facts, limit_threads, limited_threads
from rannpde.studies.run.fit import warm_up
from rannpde.studies.run.records import Records
from rannpde.threads import one_core


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result."""

    reason: str


Finished = tuple[StudyCell, Result | Failure]
RESERVE = 2
"""Cells sent for each thread of the workers: one that runs, and one so that it need not wait for the next."""
CENSUS_SECONDS = 5.0
"""How often the workers are counted: some join late, some go."""


def missing_cells(cells: Sequence[StudyCell], records: Records) -> list[StudyCell]:
    """The cells without a record, each once."""
    finished = records.keys()
    return list({cell.key: cell for cell in cells if cell.key not in finished}.values())


def run_cells(
    cells: Sequence[StudyCell],
    records: Records,
    *,
    workers: int = 1,
    threads: int = 1,
    scheduler: str | None = None,
    notice: Callable[[StudyCell, Result | Failure], None] | None = None,
) -> list[tuple[StudyCell, Failure]]:
    """Run the missing cells and record each as soon as it is done; failures are returned, the others go on.

    scheduler : address of a Dask scheduler, whose workers run the cells instead of ``workers`` processes here
    """
    positive_integer("workers", workers)
    positive_integer("threads", threads)
    work = missing_cells(cells, records)
    failures = []
    for cell, outcome, environment in _outcomes(work, workers, threads, scheduler):
        if isinstance(outcome, Failure):
            failures.append((cell, outcome))
        else:
            records.add(cell, outcome, environment)
        if notice is not None:
            notice(cell, outcome)
    return failures


def _outcomes(
    work: Sequence[StudyCell], workers: int, threads: int, scheduler: str | None
) -> Iterator[tuple[StudyCell, Result | Failure, dict[str, Any]]]:
    """Cells with what came of them and the facts of the machine that ran them."""
    if scheduler is not None and work:
        yield from _on_cluster(work, scheduler, threads)
        return
    environment = facts() | {"threads": threads}
    finished = _in_this_process(work, threads) if workers == 1 else _in_processes(work, workers, threads)
    for cell, outcome in finished:
        yield cell, outcome, environment


def attempt(cell: StudyCell) -> Result | Failure:
    """Run a cell; an exception becomes a Failure that names it and the line."""
    try:
        return run_cell(cell)
    except InputError as error:
        return Failure(str(error))
    except Exception as error:  # whatever one cell does, the others must finish
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}, line {frame.lineno})")


def _in_this_process(work: Sequence[StudyCell], threads: int) -> Iterator[Finished]:
    with limited_threads(threads):
        if work:
            warm_up()
        for cell in work:
            yield cell, attempt(cell)


def _in_processes(work: Sequence[StudyCell], workers: int, threads: int) -> Iterator[Finished]:
    """Feed a pool of processes; cells in flight when a process dies are tried again, each alone in a new one.

    The longest go first, so that no process works on alone in the end.
    """
    queue = deque(sorted(work, key=lambda cell: -cell.cost))
    while queue:
        lost: list[StudyCell] = []
        yield from _one_pool(queue, workers, threads, lost)
        for cell in lost:
            alone: list[StudyCell] = []
            yield from _one_pool(deque([cell]), 1, threads, alone)
            if alone:
                yield (
                    cell,
                    Failure("its process died twice, perhaps for want of memory; use --workers 1 or a smaller width"),
                )


def _one_pool(queue: deque[StudyCell], workers: int, threads: int, lost: list[StudyCell]) -> Iterator[Finished]:
    """Outcomes until the queue is empty or the pool breaks; then ``lost`` holds what was in flight."""
    flight: dict[Future[Result | Failure], StudyCell] = {}
    with _pool(workers, threads) as pool:
        try:
            while queue or flight:
                while queue and len(flight) < workers + 1:  # one in reserve, so that no process waits
                    flight[pool.submit(attempt, queue[0])] = queue[0]
                    queue.popleft()
                for future in wait(flight, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    yield flight.pop(future), outcome
        except BrokenProcessPool:
            lost.extend(flight.values())


def _on_cluster(
    work: Sequence[StudyCell], scheduler: str, threads: int
) -> Iterator[tuple[StudyCell, Result | Failure, dict[str, Any]]]:
    """Feed the workers of a scheduler, a few cells ahead; a cell whose workers die again and again has failed."""
    client = connect(scheduler)
    from distributed import as_completed

    queue, flight = deque(work), dict[Any, StudyCell]()
    completed = as_completed(loop=client.loop, with_results=True, raise_errors=False)  # fetched while others are kept
    room, asked = 1, -inf
    try:
        with cluster_errors(client, "finished cells are kept"):
            while queue or flight:
                if time.monotonic() - asked > CENSUS_SECONDS:
                    room, asked = max(1, RESERVE * sum(client.nthreads().values())), time.monotonic()
                for cell in [queue.popleft() for _ in range(min(room - len(flight), len(queue)))]:
                    future = client.submit(_on_worker, cell, threads, key=f"cell-{cell.key}", pure=False)
                    flight[future] = cell
                    completed.add(future)
                future, result = next(completed)
                cell = flight.pop(future)
                yield cell, *(result if future.status == "finished" else _trouble(future))
    finally:
        if client.status == "running":
            client.cancel(list(flight))
        client.close()


def _trouble(future: Any) -> tuple[Failure, dict[str, Any]]:
    """A cell whose workers died has failed; anything else, such as a lost scheduler, ends the run."""
    from distributed.scheduler import KilledWorker

    try:
        future.result()
    except KilledWorker as error:
        return Failure(f"{killed(error)}; use a smaller width"), {}
    raise AssertionError("a future that failed has an exception")


def _on_worker(cell: StudyCell, threads: int) -> tuple[Result | Failure, dict[str, Any]]:
    """Run a cell as a task. More threads than one are for workers that run one task at a time: --nthreads 1."""
    with one_core() if threads == 1 else limited_threads(threads):
        environment = _warm_facts()
        return attempt(cell), environment | {"threads": threads}


@cache
def _warm_facts() -> dict[str, Any]:
    """The facts of this machine, once the first cell has warmed it up: to find them takes longer than a small cell."""
    warm_up()
    return facts()


@contextmanager
def _pool(workers: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end at once when the work is interrupted, whatever they are doing."""
    others = set(multiprocessing.active_children())
    # 'spawn': a forked child would inherit locked OpenMP and numba thread pools
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (threads,))
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(threads: int) -> None:
    """Keep the thread limit for the life of the process; leave Ctrl-C to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_threads(threads)
    warm_up()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
