"""The Navier–Stokes study of the paper: this package against plain NumPy normal equations, side by side.

    python -m benchmarks.paper           # minutes; the lines are kept in results/paper/paper.txt

First a part: both fit the same cells (both fields, N neurons, M = 2000 N points, λ = 1e-3) from the same draws, in
turn; the errors must agree. NumPy runs in two ways: plain (the whole matrix of cosines and sines, AᵀA, one solve), and
in blocks of rows that stay in the cache, which is the best that NumPy alone can do; each has the better of one BLAS
thread and of all cores, this package one thread, as its studies run. Then the whole study of 125 cells: run as
``rannpde reproduce`` runs it, several cells at once, against NumPy's time, summed over all cells from the part by its
law a N + b N² + c N³ (draws, features, sums).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from rannpde.arrays import Array
from rannpde.domains.norms import relative_errors
from rannpde.fitting.fit import fit
from rannpde.io import prepare_folder, write_whole
from rannpde.network.features import FourierFeatures
from rannpde.studies.cell import Fit
from rannpde.studies.paper import navier_stokes
from rannpde.studies.run.environment import cores, limited_threads
from rannpde.studies.run.fit import training_points, warm_up
from rannpde.studies.run.records import Records
from rannpde.studies.run.runner import run_cells
from rannpde.studies.show.chapter import Size

WIDTHS = (50, 150, 250)
BLOCK_ROWS = 20_000
TARGET_RATIO, TARGET_SECONDS = 20.0, 90.0


def cells_of(size: Size = "default") -> list[Fit]:
    """The fits of the study."""
    return [cell for cell in navier_stokes.study(size).cells if isinstance(cell, Fit)]


def run_paper(folder: Path, size: Size = "default", widths: Sequence[int] = WIDTHS) -> Iterator[str]:
    """The lines of the comparison, as they are found; ``paper.txt`` in the folder keeps them."""
    folder, lines = prepare_folder(folder), []
    for line in measured(cells_of(size), widths):
        lines.append(line)
        yield line
    write_whole(folder / "paper.txt", "\n".join([*lines, ""]))


def measured(cells: Sequence[Fit], widths: Sequence[int]) -> Iterator[str]:
    """A line for each width, and what the whole study takes."""
    warm_up()
    heads = ("N", 5), ("points", 8), ("plain s", 9), ("blocks s", 9), ("ours s", 8), ("ratios", 13), ("error", 9)
    yield " ".join(f"{head:>{width}}" for head, width in (*heads, ("difference", 11)))
    rows = []
    for cell in (c for c in cells if c.seed == cells[0].seed and c.width in widths):
        row, line = compared(cell)
        rows.append(row)
        yield line
    part, fast = np.array(rows), whole(cells)
    yield f"whole study, {len(cells)} cells on {cores()} cores: {fast:.0f} s (target: under {TARGET_SECONDS:g})"
    for name, column in (("plain", 1), ("in blocks", 2)):
        slow = numpy_whole(cells, part[:, 0], part[:, column])
        target = f" (target: at least {TARGET_RATIO:g})" if name == "plain" else ""
        yield f"NumPy {name} would take {slow:.0f} s: {slow / fast:.1f} times ours{target}"


def compared(cell: Fit) -> tuple[tuple[float, ...], str]:
    """N, seconds of NumPy plain and in blocks, seconds of ours; and the line of the table."""
    features = cell.features.sample(cell.width, cell.target.bounds, cell.stream("features"))
    assert isinstance(features, FourierFeatures)
    exact = cell.target.values(judged_points(cell))
    plain, reference = best_numpy(partial(plain_numpy, cell, features.weights, features.phases, cell.points))
    blocks, _ = best_numpy(partial(plain_numpy, cell, features.weights, features.phases, BLOCK_ROWS))
    fast, prediction = timed(partial(ours, cell), 1, 3)
    error, other = (relative_errors(p, exact)[0] for p in (prediction, reference))
    seconds = f"{plain:>9.2f} {blocks:>9.2f} {fast:>8.3f} {plain / fast:>6.1f} {blocks / fast:>6.1f}"
    line = f"{cell.width:>5} {cell.points:>8} {seconds} {error:>9.5f} {abs(error - other):>11.1e}"
    return (cell.width, plain, blocks, fast), line


def plain_numpy(cell: Fit, weights: Array, phases: Array, rows: int) -> Array:
    """Predictions at the test points: cos and sin of the phases, AᵀA over blocks of so many rows, one solve."""
    points = training_points(cell)
    values = cell.target.values(points)
    width = weights.shape[1]
    gram, moment = np.zeros((2 * width + 1, 2 * width + 1)), np.zeros((2 * width + 1, values.shape[1]))
    for start in range(0, len(points), rows):
        design = plain_features(points[start : start + rows], weights, phases)
        gram += design.T @ design
        moment += design.T @ values[start : start + rows]
    ridge = np.append(np.full(2 * width, float(cell.penalty) * len(points)), 0.0)
    return plain_features(judged_points(cell), weights, phases) @ np.linalg.solve(gram + np.diag(ridge), moment)


def plain_features(points: Array, weights: Array, phases: Array) -> Array:
    """(M, 2N + 1): cosines, sines and the constant."""
    z = points @ weights + phases
    return np.hstack([np.cos(z), np.sin(z), np.ones((len(z), 1)) * np.sqrt(len(phases))]) / np.sqrt(len(phases))


def ours(cell: Fit) -> Array:
    """Predictions at the test points by this package."""
    points = training_points(cell)
    features = cell.features.sample(cell.width, cell.target.bounds, cell.stream("features"))
    return fit(features, points, cell.target.values(points), penalty=float(cell.penalty))(judged_points(cell))


def judged_points(cell: Fit) -> Array:
    """The fixed 20,000 points."""
    return cell.target.uniform(cell.sampling.test_points, cell.stream("test"))


def best_numpy(work: Callable[[], Array]) -> tuple[float, Array]:
    """The better of one thread and of all cores."""
    return min((timed(work, threads, 1) for threads in {1, cores()}), key=lambda run: run[0])


def timed(work: Callable[[], Array], threads: int, repeats: int) -> tuple[float, Array]:
    """Best time of several runs, and the last result."""
    best = np.inf
    with limited_threads(threads):
        for _ in range(repeats):
            started = time.perf_counter()
            result = work()
            best = min(best, time.perf_counter() - started)
    return best, result


def numpy_whole(cells: Sequence[Fit], widths: Array, seconds: Array) -> float:
    """Seconds of plain NumPy for all cells, by the law a N + b N² + c N³ through the measured widths."""
    powers = np.arange(1, 4)
    factors, _ = nnls(widths[:, None] ** powers, seconds)
    return float(sum(factors @ (cell.width**powers) for cell in cells))


def whole(cells: Sequence[Fit]) -> float:
    """Seconds for all cells, with the start of the processes."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Records(Path(folder) / "records.sqlite") as records:
        failures = run_cells(cells, records, workers=cores())
        assert not failures, failures
    return time.perf_counter() - started


def main() -> None:
    for line in run_paper(Path("results/paper")):
        print(line, flush=True)


if __name__ == "__main__":
    main()
