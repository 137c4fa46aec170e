"""Outputs by dual-weighted residuals beside outputs by two solutions: cells, seconds of the processor, bound and error.

python -m benchmarks.goal_oriented             # all rows
python -m benchmarks.goal_oriented flux ball   # some
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np

import rannpde as rp
from benchmarks.outputs import plane_stress, tractions
from rannpde.pde.monitor import Monitor
from rannpde.pde.outputs.goal import solve_for_outputs
from rannpde.pde.selection import solve_by_methods
from rannpde.pde.solve import SMALLEST_TOLERANCE

L_SHAPE = rp.Polygon([(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)])


@dataclass(frozen=True)
class Row:
    """A problem with one output, its true value, and the relative error that is asked for."""

    problem: rp.Problem
    exact: float
    tol: float


def _poisson(domain: rp.Domain, output: rp.Output, exact: float, tol: float) -> Row:
    return Row(rp.Problem("laplace(u) = -1", domain, {"boundary": "u = 0"}, outputs={"q": output}), exact, tol)


def flux() -> Row:
    """Through the side x = 1 of an L-shape."""
    return _poisson(L_SHAPE, rp.Output("dn(u)", on="edge4"), -0.275026214990, 1e-6)


def volume() -> Row:
    """∫ u over the L-shape."""
    return _poisson(L_SHAPE, rp.Output("u"), 0.21407580268653, 1e-7)


def ball() -> Row:
    """∫ u over a disc far from the corner."""
    return _poisson(L_SHAPE, rp.Output("u", on=rp.Ball((-0.7, -0.7), 0.15)), 0.00444702722878683, 1e-7)


def point() -> Row:
    """u at a point of the L-shape."""
    return _poisson(L_SHAPE, rp.Output("u(-0.7, 0.3)"), 0.109576026604038, 1e-7)


def torsion() -> Row:
    """4 ∫ u over the unit square."""
    return _poisson(rp.Box(x=(0, 1), y=(0, 1)), rp.Output("4*u"), 0.14057701495515551, 1e-8)


def stress() -> Row:
    """The stress at a point of a plate that is clamped on one side and pulled at the other; nobody knows it exactly."""
    equations, sxx, syy, sxy = plane_stress(1.0, 0.3)
    plate = rp.Box(x=(0, 2), y=(0, 1))
    sides = {
        "clamped": rp.On("x=0", ["u = 0", "v = 0"]),
        "pulled": rp.On("x=2", tractions(sxx, syy, sxy, "1", "0")),
        "free": rp.On(("y=0", "y=1"), tractions(sxx, syy, sxy, "0", "0")),
    }
    return Row(rp.Problem(equations, plate, sides, outputs={"q": rp.Output(sxx, at=(0.6, 0.3))}), np.nan, 1e-6)


ROWS: dict[str, Callable[[], Row]] = {
    "flux": flux, "volume": volume, "ball": ball, "point": point, "torsion": torsion, "stress": stress,
}  # fmt: skip


def by_two_solutions(row: Row) -> rp.Solution:
    """As it is done where there is no adjoint."""

    def solver(problem, tol, rng, monitor):
        return solve_by_methods(problem, tol, "weak", rng, monitor)

    rng = np.random.default_rng(0)
    return solve_for_outputs(row.problem, {"q": row.tol}, solver, rng, Monitor(), SMALLEST_TOLERANCE)


def by_adjoint(row: Row) -> rp.Solution:
    return rp.solve(row.problem, tol={"q": row.tol}, method="weak")


def main(names: list[str]) -> None:
    print("| output | by | value | bound | error | cells, degree | seconds |\n|---|---|---|---|---|---|---|")
    for name in names or ROWS:
        row = ROWS[name]()
        for title, solve in (("two solutions", by_two_solutions), ("adjoint", by_adjoint)):
            begin = process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                solution = solve(row)
                found = solution.outputs["q"]
            spent, last = process_time() - begin, solution.history.iterations[-1]
            error = abs(float(found) - row.exact)
            told = f"{float(found):.12g} | {found.bound:.1e} | {error:.1e} | {last.cells}, {last.degree}"
            doubt = "" if solution.converged else " not converged"
            print(f"| {name}, asked for {row.tol:.0e} | {title} | {told} | {spent:.2f}{doubt} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
