"""Long runs of many random problems: each in a process of its own, results in a file as they come.

A process of its own is limited to so many seconds of the processor's time, whatever it does: a solve that never returns
is seen and counted, and so is one that takes its process with it. Budgets within it are measured by the processor's
time too, so that the result does not depend on what else the machine does. A run that was stopped goes on where it
ended.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import process_time
from typing import Any

from rannpde.pde.budget import timed_by

Row = dict[str, Any]
"""What is kept of one problem: numbers and text."""


class Endless(Exception):
    """The work used up the time of its process."""


class Died(Exception):
    """The process ended without an answer."""


def _child(work: Callable[[int], Row], seed: int, seconds: float, answer: Connection) -> None:
    limit = int(process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    with timed_by(process_time):
        answer.send(work(seed))


@cache
def _copies() -> ForkServerContext:
    """Processes that are copies of one which has loaded all solvers: loading takes longer than most solves.

    That one is told where modules lie by its environment, as Python 3.11 does not hand it the path of this one before
    it loads them.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["loaded"])
    return context


def apart(work: Callable[[int], Row], seed: int, seconds: float) -> Row:
    """work(seed) in a process that has so many seconds of the processor's time; Endless or Died where none comes back.

    ``work`` is at the top of its module, or a partial of such a function.
    """
    context = _copies()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, seed, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        return ours.recv()  # at the latest when the process has ended
    except EOFError:
        process.join()
        code = process.exitcode
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            raise Endless(f"no answer within {seconds:g} s of the processor's time") from None
        raise Died(f"the process ended with code {code} and without an answer") from None
    finally:
        process.kill()
        process.join()
        ours.close()


@dataclass(frozen=True)
class Record:
    """Rows of a run by seed, in a file of lines of JSON where there is one."""

    path: Path | None = None

    def rows(self) -> dict[int, Row]:
        """What is in the file already."""
        if self.path is None or not self.path.exists():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {row.pop("seed"): row for row in map(json.loads, lines)}

    def add(self, seed: int, row: Row) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": seed, **row}) + "\n")


def run(
    work: Callable[[int], Row],
    seeds: Iterable[int],
    seconds: float,
    failed: Callable[[Exception], Row],
    record: Record | None = None,
    workers: int = 1,
) -> Iterator[tuple[int, Row]]:
    """The row of every seed: those of the record first, then the others as they are done.

    failed : the row of a problem whose process was Endless or Died
    """
    record = record or Record()
    seeds, known = list(seeds), record.rows()
    yield from ((seed, known[seed]) for seed in seeds if seed in known)

    def one(seed: int) -> tuple[int, Row]:
        try:
            row = apart(work, seed, seconds)
        except (Endless, Died) as failure:
            row = failed(failure)
        record.add(seed, row)
        return seed, row

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, (seed for seed in seeds if seed not in known))
