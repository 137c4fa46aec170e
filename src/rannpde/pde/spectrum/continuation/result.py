"""The result of ``rp.continuation``: branches with folds and branch points, a report and the bifurcation diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.storage import floats
from rannpde.pde.monitor import EndedSolve, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.toml import from_table, to_table
from rannpde.pde.solution import Report
from rannpde.pde.spectrum.continuation.collocation import TensorPolynomial
from rannpde.pde.tolerance import SAME_SOLUTION

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A fold, a branch point or a Hopf point.

    kind : "fold", "branch point" or "Hopf point"; parameter, bound : its position and what two grids leave open of it
    extreme : the value of largest size of the first field; function : the solution there
    frequency : at a Hopf point, the angular frequency of the oscillation that begins; zero at others
    """

    kind: str
    parameter: float
    bound: float
    extreme: float
    function: TensorPolynomial
    frequency: float = 0.0


@dataclass(frozen=True, eq=False)
class SolutionBranch:
    """Solutions along a branch, in the order in which they were passed.

    parameters, extremes (K,) : of the points; the value of largest size of the first field
    unstable (K,) : perturbations that grow, -1 where it is not known; rates (K,) : the largest rate of growth
    functions : the solutions; special : folds and branch points; ended : why it ends, in words
    """

    parameters: Array
    extremes: Array
    unstable: Array
    rates: Array
    functions: tuple[TensorPolynomial, ...]
    special: tuple[SpecialPoint, ...]
    ended: str

    def __len__(self) -> int:
        return len(self.parameters)


@dataclass(frozen=True, eq=False)
class Continuation(EndedSolve):
    """Branches of stationary solutions over a parameter; the first is the one that was started on.

    >>> import rannpde as rp
    >>> bratu = rp.Problem("u_xx + lam*exp(u) = 0", rp.Interval(0, 1), {"boundary": "u = 0"}, parameters={"lam": 0.0})
    >>> curve = rp.continuation(bratu, "lam", 0.1, 4.0)
    >>> [round(fold.parameter, 9) for fold in curve.folds], curve.converged
    ([3.513830719], True)
    """

    problem: Problem
    parameter: str
    branches: tuple[SolutionBranch, ...]
    status: Status
    detail: str
    tol: float
    points: int
    seconds: float

    @property
    def special(self) -> tuple[SpecialPoint, ...]:
        """Folds and branch points of all branches."""
        return tuple(one for branch in self.branches for one in branch.special)

    @property
    def folds(self) -> tuple[SpecialPoint, ...]:
        return tuple(one for one in self.special if one.kind == "fold")

    @property
    def branch_points(self) -> tuple[SpecialPoint, ...]:
        return tuple(one for one in self.special if one.kind == "branch point")

    @property
    def hopf_points(self) -> tuple[SpecialPoint, ...]:
        """Where a pair of complex rates crosses the imaginary axis: oscillations begin."""
        return tuple(one for one in self.special if one.kind == "Hopf point")

    def report(self) -> Report:
        """A page of text: branches, folds and branch points with their errors."""
        verdict = "converged" if self.converged else "DID NOT CONVERGE"
        title = self.problem.name or ", ".join(self.problem.fields)
        lines = [f"{title}: {verdict} ({self.reason})", f"  {self.points} points along each axis"]
        for number, branch in enumerate(self.branches, start=1):
            ends = f"{self.parameter} from {branch.parameters[0]:.6g} to {branch.parameters[-1]:.6g}"
            known = branch.unstable[branch.unstable >= 0]
            stable = f", {int((known == 0).sum())} of {len(known)} stable" if len(known) else ""
            lines.append(f"  branch {number}: {len(branch)} points{stable}, {ends}; {branch.ended}")
            lines += [
                f"    {one.kind} at {self.parameter} = {one.parameter:.12g} ± {one.bound:.1e}, value {one.extreme:.8g}"
                + (f", frequency {one.frequency:.8g}" if one.frequency else "")
                for one in branch.special
            ]
        lines.append(f"  {self.seconds:.2f} s")
        return Report("\n".join(lines))

    def __repr__(self) -> str:
        """One line: how many branches, folds and branch points, and how it ended."""
        title = self.problem.name or ", ".join(self.problem.fields)
        counts = (
            f"{len(self.branches)} branch(es), {len(self.folds)} fold(s), {len(self.branch_points)} branch point(s)"
        )
        return f"<Continuation of {title} in {self.parameter}: {counts}; {self.reason}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, folds and branch points with their errors, and the diagram."""
        from rannpde.plotting.notebook import continuation_html  # loads when a notebook asks for it

        return continuation_html(self)

    def save(self, path: PathLike) -> Path:
        """One file that ``rp.load`` reads back, from which ``rp.continuation(…, resume=…)`` goes on."""
        header, arrays = self.pack()
        return storage.write(path, "continuation", header, arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of that file."""
        arrays: dict[str, Array] = {"bounds": np.asarray(self.problem.domain.bounds, dtype=float)}
        branches = []
        for number, branch in enumerate(self.branches):
            arrays[f"{number}.points"] = np.stack(
                [branch.parameters, branch.extremes, branch.unstable.astype(float), np.nan_to_num(branch.rates)], axis=1
            )
            arrays[f"{number}.values"] = np.stack([one.values for one in branch.functions])
            special = []
            for k, one in enumerate(branch.special):
                arrays[f"{number}.special{k}"] = one.function.values
                bound = one.bound if isfinite(one.bound) else None
                special.append([one.kind, one.parameter, bound, one.extreme, one.frequency])
            branches.append({"ended": branch.ended, "special": special})
        header = {
            "problem": to_table(self.problem), "parameter": self.parameter, "branches": branches,
            "status": self.status.name, "detail": self.detail, "tol": self.tol, "points": self.points,
            "seconds": self.seconds,
        }  # fmt: skip
        return header, arrays

    def plot(self, path: PathLike | None = None) -> Figure:
        """The bifurcation diagram: stable solutions as lines, unstable ones dashed, folds and branch points marked."""
        from rannpde.plotting.bifurcation import plot_continuation  # pictures load when they are wanted

        return plot_continuation(self, path)


def unpack_continuation(
    header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None
) -> Continuation:
    """The inverse of ``Continuation.pack``; ``problem`` where the file holds none made of text."""
    if problem is None and header["problem"] is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    stated = problem if problem is not None else from_table(header["problem"])
    bounds = floats(arrays, "bounds", (None, 2))
    branches = []
    for number, about in enumerate(header["branches"]):
        points = floats(arrays, f"{number}.points", (None, 4))
        functions = tuple(TensorPolynomial(bounds, one) for one in floats(arrays, f"{number}.values"))
        if len(functions) != len(points):
            raise FileError("the points and solutions of a branch are not as many")
        special = tuple(
            SpecialPoint(str(kind), float(at), np.inf if bound is None else float(bound), float(extreme),
                         TensorPolynomial(bounds, floats(arrays, f"{number}.special{k}")), float(frequency))
            for k, (kind, at, bound, extreme, frequency) in enumerate(about["special"])
        )  # fmt: skip
        unstable = points[:, 2].astype(int)
        rates = np.where(unstable < 0, np.nan, points[:, 3])
        branches.append(
            SolutionBranch(points[:, 0], points[:, 1], unstable, rates, functions, special, str(about["ended"]))
        )
    return Continuation(
        stated, str(header["parameter"]), tuple(branches), Status[header["status"]], str(header["detail"]),
        float(header["tol"]), int(header["points"]), float(header["seconds"]),
    )  # fmt: skip


def extreme_of(function: TensorPolynomial, before: float = 0.0) -> float:
    """The value of largest size of the first field, on a grid four times as fine as its points.

    before : that of the point before, whose sign is kept where both extremes are of about the same size
    """
    counts = [4 * count + 1 for count in function.values.shape[:-1]]
    axes = [np.linspace(low, high, n) for (low, high), n in zip(function.bounds, counts, strict=True)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = function(grid)[:, 0]
    low, high = float(values.min()), float(values.max())
    if before and abs(high + low) < SAME_SOLUTION * (high - low):
        return high if before > 0 else low
    return high if high >= -low else low
