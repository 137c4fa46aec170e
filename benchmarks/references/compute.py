"""Compute the reference solutions of the PINNacle cases with independent solvers, and their convergence tables.

    python -m benchmarks.references.compute                  # all of them; hours on two cores
    python -m benchmarks.references.compute ns-2d-c          # some of them

Each case is solved by a classical solver (Fourier, Chebyshev, sines, cosines, or finite elements: pip install ngsolve)
on finer and finer grids, at the same points. ``benchmarks/data/<case>.npz`` keeps the finest values and what
they are known to; ``<case>.txt`` beside this script keeps the table. The library's own solvers are not used.

"Known to" is the error of the finest grid, not the distance of the two finest: where distances fall by a ratio r from
grid to grid, what is left is the geometric sum of those to come, distance · r/(1 - r). r is the larger of the last two
ratios, and never less than LEAST; where it exceeds MOST, convergence is too slow for that, and the distance is stated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.harness.case import relative_error
from benchmarks.harness.coefficients import DATA
from benchmarks.pinnacle.burgers import waves_on_a_cell
from benchmarks.pinnacle.heat import SMALL_PLATE, long_time, varying
from benchmarks.pinnacle.table import CASES
from benchmarks.pinnacle.waves import chaotic, reacting, reflected
from rannpde.arrays import ArrayMap

HERE = Path(__file__).parent
COUNT, FEW = 3000, 400
SMALL, EARLY = "-small", (0.125, 0.25)
"""Small versions that are no part of the whole problem have their own; times of those that end early."""
LEAST, MOST = 0.1, 0.5
"""Ratios of distances that are believed: a single lucky one must not promise more than a digit beyond the distance."""


def by_elements(name: str) -> Callable[..., ArrayMap]:
    """A solver of the module that needs NGSolve."""
    from benchmarks.pinnacle import by_elements as module

    return getattr(module, name)


LEVELS: dict[str, tuple[str, Callable[[], Callable[..., ArrayMap]], Sequence[tuple]]] = {
    "burgers-2d": (
        "Fourier, ETDRK4: modes a side of the unit cell, steps", lambda: waves_on_a_cell,
        [(192, 800), (256, 1200), (384, 1600)],
    ),
    "poisson-2d-c": (
        "NGSolve: spacing, order", lambda: by_elements("discs_elements"), [(0.15, 9), (0.12, 11), (0.1, 13)]
    ),
    "poisson-2d-cg": (
        "NGSolve: spacing, order", lambda: by_elements("uneven_elements"),
        [(0.25, 11), (0.2, 15), (0.15, 16), (0.12, 18)],
    ),
    "poisson-3d-cg": (
        "NGSolve: spacing, order", lambda: by_elements("balls_elements"), [(0.2, 6), (0.2, 8), (0.2, 10)]
    ),
    "poisson-2d-ms": (
        "NGSolve: spacing, order, refinements to corners", lambda: by_elements("block_elements"),
        [(2.0, 6, 1), (2.0, 8, 2), (1.5, 10, 3), (1.5, 12, 4)],
    ),
    "heat-2d-vc": ("Chebyshev: nodes a side, exact in time", lambda: varying, [(20,), (26,), (32,), (38,)]),
    "heat-2d-cg": (
        "NGSolve: spacing, order, steps in each stretch of time", lambda: by_elements("plate"),
        [(1.5, 5, 6), (1.2, 6, 10), (1.0, 7, 16), (0.85, 8, 24)],
    ),
    "heat-2d-lt": (
        "sines, ETDRK4: nodes a side, steps", lambda: long_time,
        [(64, 2000), (96, 4000), (128, 8000), (192, 16000), (256, 32000)],
    ),
    "ns-2d-c": (
        "NGSolve: spacing, order, refinements to corners", lambda: by_elements("cavity_elements"),
        [(0.25, 6, 2), (0.2, 8, 3), (0.15, 9, 4), (0.125, 10, 5), (0.1, 11, 5)],
    ),
    "ns-2d-cg": (
        "NGSolve: spacing, order, refinements to the corner", lambda: by_elements("step_elements"),
        [(0.4, 5, 3), (0.35, 6, 4), (0.3, 8, 5), (0.25, 9, 6), (0.25, 11, 7)],
    ),
    "ns-2d-lt": (
        "NGSolve: quadrilaterals along, across, refinements, order, steps between two of 20 times",
        lambda: by_elements("channel_elements"),
        [(6, 3, 2, 6, 100), (8, 4, 3, 7, 140)],
    ),
    "wave-2d-cg": ("cosines: modes a side, exact in time", lambda: reflected, [(128,), (192,), (256,), (384,)]),
    "gray-scott": ("Fourier, ETDRK4: modes a side, steps", lambda: reacting, [(384, 320), (448, 640), (512, 1280)]),
    "kuramoto-sivashinsky": (
        "Fourier, ETDRK4: modes, steps", lambda: chaotic, [(96, 4000), (128, 16000), (160, 32000), (192, 64000)]
    ),
    "poisson-3d-cg-small": (
        "NGSolve: spacing, order, balls, waves along y and z", lambda: by_elements("balls_elements"),
        [(0.35, order, 0, (1, 1)) for order in (4, 6, 8)],
    ),
    "heat-2d-cg-small": (
        "NGSolve: spacing, order, steps in each stretch of time, a smaller plate", lambda: by_elements("plate"),
        [(*grid, *SMALL_PLATE.values()) for grid in ((1.0, 4, 4), (0.8, 5, 8), (0.6, 6, 12))],
    ),
    "heat-2d-lt-small": (
        "sines, ETDRK4: nodes a side, steps, times", lambda: long_time,
        [(64, 80, EARLY), (96, 160, EARLY), (128, 320, EARLY), (192, 640, EARLY)],
    ),
    "ns-2d-lt-small": (
        "NGSolve: quadrilaterals along, across, refinements, order, steps between two times, viscosity, times",
        lambda: by_elements("channel_elements"),
        [(4, 2, 1, 4, 30, 0.2, EARLY), (4, 2, 2, 5, 40, 0.2, EARLY), (4, 2, 3, 6, 60, 0.2, EARLY)],
    ),
}  # fmt: skip


def places(name: str) -> np.ndarray:
    """Points (M, n) of the case's domain that no solver knows; of an evolution at the times of the case."""
    case, small = CASES[name.removesuffix(SMALL)], name.endswith(SMALL)
    domain = case.problem(small).domain
    points = domain.sample(FEW if small else COUNT, rng=2024)
    if case.times:
        times = [moment for moment in case.times if moment <= domain.bounds[0, 1]] or EARLY
        points[:, 0] = np.resize(times, len(points))
    return points


def known_to(distances: Sequence[float]) -> tuple[float, str]:
    """The error of the finest grid from the distances between one grid and the next, and how that was concluded.

    >>> known_to([8e-3, 4e-4, 8e-5])[0]
    2e-05
    >>> known_to([4e-4, 3e-4])
    (0.0003, 'the last distance, since distances fall too slowly to sum what is left')
    """
    last = distances[-1]
    ratios = [after / before for before, after in pairwise(distances)][-2:]
    if not ratios or max(ratios) > MOST:
        why = "since distances fall too slowly to sum what is left" if ratios else "of two grids"
        return last, f"the last distance, {why}"
    ratio = max(*ratios, LEAST)
    return last * ratio / (1 - ratio), f"the last distance times r/(1 - r), r = {ratio:.2f} from grid to grid"


def compute(name: str) -> None:
    """The reference solution of one case: both files, after every level that was finished."""
    label, solver, levels = LEVELS[name]
    case, points = CASES[name.removesuffix(SMALL)], places(name)
    goal = case.small_tol if name.endswith(SMALL) else case.goal
    make = solver()
    lines = [
        f"{case.title}: {label}",
        f"{len(points)} points, fields that count: {case.fields or 'all'}; goal {goal:.0e}",
        "",
    ]
    lines.append(f"{'grid':<24}{'distance to the one before':>28}{'seconds':>10}")
    before, distances = None, []
    for level in levels:
        begin = time.perf_counter()
        values = np.asarray(make(*level)(points), dtype=float).reshape(len(points), -1)[:, : case.fields]
        seconds = time.perf_counter() - begin
        gap = float("nan") if before is None else relative_error(before, values)
        lines.append(f"{', '.join(map(str, level)):<24}{gap:>28.2e}{seconds:>10.1f}")
        print(f"{name}: {lines[-1]}", flush=True)
        if before is not None:
            distances.append(gap)
            accuracy, why = known_to(distances)
            found = np.isfinite(values).all(axis=1)  # a curved element may miss a point within rounding of a circle
            kept = {"points": points[found], "values": values[found], "accuracy": np.array(accuracy)}
            np.savez_compressed(DATA / f"{name}.npz", **kept)
            message = [*lines, "", f"The finest is known to {accuracy:.2e}: {why}.", ""]
            (HERE / f"{name}.txt").write_text("\n".join(message), encoding="utf-8")
        before = values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(LEVELS))
    options = parser.parse_args()
    unknown = sorted(set(options.cases) - set(LEVELS))
    if unknown:
        parser.error(f"unknown cases {unknown}; known: {', '.join(LEVELS)}")
    for name in options.cases or LEVELS:
        compute(name)


if __name__ == "__main__":
    main()
