"""Random problems with known solutions: are errors within what Trefftz networks say of them, and are cells slower?

Each problem is solved in a process of its own, which keeps its row in a file, so that a run that was stopped goes on
where it ended. Cells get four times the seconds that the chosen method took, and one at least: that is enough to tell
which of the two was faster. Seconds are those of the processor.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import rannpde as rp
from benchmarks.linear_draws import SHAPES, drawn
from long_runs import Endless, Record, Row, run

BUDGET = 60.0
"""Seconds that a solve has."""
DECIDED = 4.0
"""Cells that took so many times as long are slower, whatever they would have found."""
ROUNDING = 1e-12
"""Relative errors below which nothing is claimed."""


def raced(number: int, seed: int, race: bool) -> Row:
    """The problem of a number by the method that is chosen for it, and by cells: what was claimed, what is true."""
    warnings.simplefilter("ignore")
    unit = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = x*y"})
    rp.solve(unit, tol=1e-3)  # what the first solve of a process loads is no part of any time
    draw = drawn(np.random.default_rng([seed, number]))
    tol = float(10.0 ** -np.random.default_rng([seed, number, 1]).integers(3, 10))
    begin = time.process_time()
    solution = rp.solve(draw.problem, tol=tol, seconds=BUDGET)
    seconds = time.process_time() - begin
    bound = getattr(solution.history, "bound", None)
    points = draw.problem.domain.sample(2000, rng=2)
    exact = draw.problem.exact_solution
    assert exact is not None
    row: Row = {
        "shape": draw.shape,
        "operator": draw.operator,
        "statement": f"{draw.problem.name} ({draw.kind}, source {draw.source}), tol {tol:g}",
        "tol": tol,
        "method": solution.method.name,
        "converged": solution.converged,
        "reason": solution.reason,
        "error": solution.errors()["u"],
        "estimate": solution.estimate,
        "bound": bound,
        "largest": float(np.abs(solution(points) - exact(points)[:, 0]).max()),
        "scale": float(np.abs(exact(points)).max()),
        "seconds": seconds,
    }
    if race:
        begin = time.process_time()
        other = rp.solve(draw.problem, tol=tol, seconds=DECIDED * max(seconds, 0.25), method="cells")
        row |= {
            "cells seconds": time.process_time() - begin,
            "cells converged": other.converged,
            "cells error": other.errors()["u"],
        }
    return row


def verdict(row: Row) -> str:
    """What became of a problem."""
    if "failure" in row:
        return str(row["failure"])
    if row["converged"] and row["error"] > max(row["tol"], 10 * row["estimate"], ROUNDING):
        return "WRONG"
    if row["bound"] is not None and row["largest"] > row["bound"] + ROUNDING * row["scale"]:
        return "BOUND BROKEN"
    if row["error"] > max(row["estimate"], ROUNDING):
        return "above its estimate"
    if not row["converged"]:
        return "not converged"
    return "solved" if row["method"] == "trefftz" else "by another method"


def faster(row: Row) -> bool:
    """Whether cells took longer for the same tolerance, or did not reach it."""
    return row["converged"] and (not row["cells converged"] or row["cells seconds"] > row["seconds"])


def races(count: int, seed: int, first: int, race: bool, path: Path | None) -> None:
    """Problems ``first`` to ``first + count``; whatever is not simply solved is printed, and a table at the end."""

    def failed(failure: Exception) -> Row:
        return {"failure": "HUNG" if isinstance(failure, Endless) else "CRASHED", "reason": str(failure)}

    rows = []
    work = partial(raced, seed=seed, race=race)
    for number, row in run(work, range(first, first + count), 6 * BUDGET, failed, Record(path)):
        rows.append(row)
        if verdict(row) != "solved":
            print(f"  {number}: {verdict(row)}: {told(row)}", flush=True)
        elif race and not faster(row):
            print(f"  {number}: slower than cells ({row['cells seconds']:.2f} s): {told(row)}", flush=True)
        if len(rows) % 50 == 0:
            print(f"{len(rows)}: {dict(Counter(map(verdict, rows)))}", flush=True)
    print(table(rows, race))


def told(row: Row) -> str:
    if "failure" in row:
        return str(row["reason"])
    figures = f"error {row['error']:.1e}, estimate {row['estimate']:.1e}, bound {row['bound']}, {row['largest']:.1e}"
    return f"{row['statement']}: {figures}, {row['method']}, {row['seconds']:.2f} s: {row['reason']}"


def table(rows: Sequence[Row], race: bool) -> str:
    """Counts by shape: problems, those within estimates and bounds, those faster than cells, and times."""
    lines = [
        "| shape | problems | solved | above tol or estimate | bounds, broken | largest error / estimate | "
        "s, median (largest) | faster than cells | s of cells / s, median |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ended = [row for row in rows if "failure" not in row]
    for shape in (*SHAPES, "all"):
        own = [row for row in ended if shape in (row["shape"], "all")]
        if own:
            lines.append(f"| {shape} | {len(own)} | {' | '.join(_figures(own, race))} |")
    return "\n".join([*lines, f"{len(rows)} problems: {dict(Counter(map(verdict, rows)))}"])


def _figures(rows: Sequence[Row], race: bool) -> Iterable[str]:
    seconds = np.array([row["seconds"] for row in rows])
    kinds = Counter(map(verdict, rows))
    yield str(kinds["solved"] + kinds["by another method"])
    yield str(kinds["WRONG"] + kinds["above its estimate"])
    yield f"{sum(row['bound'] is not None for row in rows)}, {kinds['BOUND BROKEN']}"
    yield f"{max(row['error'] / max(row['estimate'], ROUNDING) for row in rows):.2f}"
    yield f"{np.median(seconds):.2f} ({seconds.max():.2f})"
    if race:
        yield f"{sum(map(faster, rows))} ({100 * np.mean([faster(row) for row in rows]):.0f} %)"
        yield f"{np.median([row['cells seconds'] / row['seconds'] for row in rows]):.1f}"
    else:
        yield from ("", "")
