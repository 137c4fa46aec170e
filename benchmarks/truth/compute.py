"""Compute the truths of the PINNacle cases with independent solvers, and their convergence tables.

    python benchmarks/truth/compute.py                  # all of them; hours on two cores
    python benchmarks/truth/compute.py ns-2d-c          # some of them

Each case is solved by a classical solver (Fourier, Chebyshev, sines, cosines, or finite elements: pip install ngsolve)
on finer and finer grids, at the same points. ``src/rannpde/bench/data/<case>.npz`` keeps the finest values, and as
their accuracy the relative L² distance of the two finest; ``<case>.txt`` beside this script keeps the table. The
library's own solvers are not used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rannpde.bench.case import Function, relative_error
from rannpde.bench.pinnacle.burgers import waves_on_a_cell
from rannpde.bench.pinnacle.heat import long_time, varying
from rannpde.bench.pinnacle.table import CASES
from rannpde.bench.pinnacle.waves import chaotic, reacting, reflected

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "src" / "rannpde" / "bench" / "data"
COUNT = 3000


def by_elements(name: str) -> Callable[..., Function]:
    """A solver of the module that needs NGSolve."""
    from rannpde.bench.pinnacle import by_elements as module

    return getattr(module, name)


LEVELS: dict[str, tuple[str, Callable[[], Callable[..., Function]], Sequence[tuple]]] = {
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
        "NGSolve: spacing, order", lambda: by_elements("balls_elements"), [(0.2, 6), (0.18, 7)]
    ),
    "poisson-2d-ms": (
        "NGSolve: spacing, order, refinements to corners", lambda: by_elements("block_elements"),
        [(2.0, 6, 1), (2.0, 8, 2), (1.5, 10, 3), (1.5, 12, 4)],
    ),
    "heat-2d-vc": ("Chebyshev: nodes a side, exact in time", lambda: varying, [(20,), (26,), (32,), (38,)]),
    "heat-2d-cg": (
        "NGSolve: spacing, order, steps in each stretch of time", lambda: by_elements("plate"),
        [(1.5, 5, 6), (1.2, 6, 10), (1.0, 7, 16)],
    ),
    "heat-2d-lt": (
        "sines, ETDRK4: nodes a side, steps", lambda: long_time, [(64, 2000), (96, 4000), (128, 8000), (192, 16000)]
    ),
    "ns-2d-c": (
        "NGSolve: spacing, order, refinements to corners", lambda: by_elements("cavity_elements"),
        [(0.25, 6, 2), (0.2, 8, 3), (0.15, 9, 4), (0.125, 10, 5)],
    ),
    "ns-2d-cg": (
        "NGSolve: spacing, order, refinements to the corner", lambda: by_elements("step_elements"),
        [(0.4, 5, 3), (0.35, 6, 4), (0.3, 8, 5), (0.25, 9, 6)],
    ),
    "ns-2d-lt": (
        "NGSolve: quadrilaterals along, across, order, steps between two of 20 times",
        lambda: by_elements("channel_elements"),
        [(8, 4, 5, 50), (8, 6, 7, 70), (10, 6, 8, 100)],
    ),
    "wave-2d-cg": ("cosines: modes a side, exact in time", lambda: reflected, [(128,), (192,), (256,), (384,)]),
    "gray-scott": ("Fourier, ETDRK4: modes a side, steps", lambda: reacting, [(384, 320), (448, 640)]),
    "kuramoto-sivashinsky": (
        "Fourier, ETDRK4: modes, steps", lambda: chaotic, [(96, 4000), (128, 16000), (160, 32000), (192, 64000)]
    ),
}  # fmt: skip


def places(name: str) -> np.ndarray:
    """Points (M, n) of the case's domain that no solver knows; of an evolution at the times of the case."""
    case = CASES[name]
    points = case.problem().domain.sample(COUNT, rng=2024)
    if case.times:
        points[:, 0] = np.resize(case.times, COUNT)
    return points


def compute(name: str) -> None:
    """The truth of one case: both files, after every level that was finished."""
    label, solver, levels = LEVELS[name]
    case, points = CASES[name], places(name)
    make = solver()
    lines = [
        f"{case.title}: {label}",
        f"{COUNT} points, fields that count: {case.fields or 'all'}; goal {case.goal:.0e}",
        "",
    ]
    lines.append(f"{'grid':<24}{'distance to the one before':>28}{'seconds':>10}")
    before = None
    for level in levels:
        begin = time.perf_counter()
        values = np.asarray(make(*level)(points), dtype=float).reshape(COUNT, -1)[:, : case.fields]
        seconds = time.perf_counter() - begin
        gap = float("nan") if before is None else relative_error(before, values)
        lines.append(f"{', '.join(f'{part:g}' for part in level):<24}{gap:>28.2e}{seconds:>10.1f}")
        print(f"{name}: {lines[-1]}", flush=True)
        if before is not None:
            known = np.isfinite(values).all(axis=1)  # a curved element may miss a point within rounding of a circle
            kept = {"points": points[known], "values": values[known], "accuracy": np.array(gap)}
            np.savez_compressed(DATA / f"{name}.npz", **kept)
            (HERE / f"{name}.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
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
