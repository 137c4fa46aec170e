"""A solution of a problem with unknowns: fields, and estimates of the unknowns with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import finite_points
from rannpde.io import PathLike
from rannpde.pde.forward_model import Response
from rannpde.pde.inverse.estimates import FunctionEstimate, Parameter
from rannpde.pde.inverse.rows import predicted
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import Bare
from rannpde.pde.solution import Report, Solution
from rannpde.pde.statement.expression import Jet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Identified(Solution):
    """A solution with the estimates of the unknowns, at which it was computed.

    parameters : name → Parameter with value, std and interval
    functions : name → FunctionEstimate, to be called with points, with std and band
    covariance (k, k) : covariance of the numbers, in the order of ``parameters``
    noise : measurement → standard deviation, given or estimated; misfit : residuals over it (root mean square)
    response : the fields and their derivatives by all unknowns; spread (p, p) : covariance of all of these
    experiments : solutions of the experiments, where several shared the unknowns
    """

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    functions: Mapping[str, FunctionEstimate] = field(default_factory=dict)
    covariance: Array = field(default_factory=lambda: np.empty((0, 0)))
    noise: Mapping[str, float] = field(default_factory=dict)
    misfit: Mapping[str, float] = field(default_factory=dict)
    response: Response | None = None
    spread: Array = field(default_factory=lambda: np.empty((0, 0)))
    factor: float = 1.96
    notes: tuple[str, ...] = ()
    experiments: tuple[Solution, ...] = ()

    def std(self, points: Array) -> Array:
        """Standard deviation of the fields at points (M, n), from that of the unknowns: as the solution's values."""
        points = finite_points("points", points, self.dim)
        assert self.response is not None
        _, slopes = self.response.jets(points, (0,) * self.dim)
        variance = np.maximum(np.einsum("mpf,pq,mqf->mf", slopes, self.spread, slopes), 0.0)
        size = np.sqrt(np.mean(np.square(self.function(points)), axis=0))
        own = self.estimate * size if np.isfinite(self.estimate) else 0.0
        deviation = np.sqrt(variance + own**2)
        return deviation[:, 0] if len(self.fields) == 1 else deviation

    @cached_property
    def plain(self) -> Problem:
        """The problem with the estimates in place of the unknowns."""
        numbers: dict[str, Any] = {name: one.value for name, one in self.parameters.items()}
        return self.stated.at(numbers | {name: one.expanded for name, one in self.functions.items()})

    def residual(self, points: Array) -> dict[str, Array]:
        """Equation name → residual (M,) at the estimates."""
        return self.plain.residual(self.function, points)

    def band(self, points: Array) -> tuple[Array, Array]:
        """Lower and upper ends of pointwise intervals of the fields, also where nothing was measured."""
        return self.predict(points)[1:]

    def predict(self, points: Array) -> tuple[Array, Array, Array]:
        """Values of the fields at points (M, n), and the lower and upper ends of their pointwise intervals."""
        middle, half = self(points), self.factor * self.std(points)
        return middle, middle - half, middle + half

    def report(self) -> Report:
        """The estimates, then the report of the solution."""
        first, *rest = super().report().splitlines()
        lines = [f"  {name} = {one}" for name, one in self.parameters.items()]
        lines += [f"  {one!r}" for one in self.functions.values()]
        known = {name: f"noise {sigma:.3g}, misfit {self.misfit[name]:.2f} of it" for name, sigma in self.noise.items()}
        lines += [f"  measured {name!r}: {text}" for name, text in known.items()]
        lines += [f"  {text}" for text in self.notes]
        return Report("\n".join([first, *lines, *rest]))

    def plot(self, path: PathLike | None = None) -> Figure:
        """The solution, the estimates with intervals and bands, and measured against predicted values."""
        from rannpde.plotting.identified import plot_identified  # pictures load when they are wanted

        return plot_identified(self, path)

    def pack(self, exact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        header, arrays = super().pack(exact)
        own: dict[str, Any] = {
            "parameters": [list(vars(one).values()) for one in self.parameters.values()],
            "noise": dict(self.noise), "misfit": dict(self.misfit), "factor": self.factor, "notes": list(self.notes),
            "functions": [],
        }  # fmt: skip
        arrays |= {"identified.covariance": self.covariance, "identified.spread": self.spread}
        for number, one in enumerate(self.functions.values()):
            about, parts = one.pack()
            own["functions"].append(about)
            arrays |= {f"identified.{number}.{name}": part for name, part in parts.items()}
        if self.response is not None:
            own["response"], parts = self.response.function.pack()  # type: ignore[attr-defined]
            arrays |= {f"response.{name}": part for name, part in parts.items()}
        return header | {"identified": own}, arrays


def residuals_of(solution: Identified) -> dict[str, Array]:
    """Measurement → (measured - predicted) / noise (N,)."""
    problem, residuals = solution.stated, {}
    names = tuple(problem.domain.names)

    def known(jet: Jet, points: Array) -> Array:
        if jet.field in solution.parameters:
            return np.full(len(points), solution.parameters[jet.field].value)
        return Bare(solution.functions[jet.field].expanded, problem.unknown[jet.field].of).at(points, names, jet.index)

    for one in problem.measurements:
        spread = solution.noise.get(one.name, 1.0) if one.noise is None or not one.noise.any() else one.noise
        residuals[one.name] = (one.values - predicted(problem, one, solution.function, known)) / spread
    return residuals
