"""The result of ``solve`` for a problem with ranges of parameters: the solution for every value of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows
from rannpde.errors import choose, finite_points, require
from rannpde.network.features import multi_index
from rannpde.pde.family.combined import CombinedFunction
from rannpde.pde.family.estimate import ErrorModel, judged_values
from rannpde.pde.family.parametric import ParametricSolution
from rannpde.pde.family.polynomial import ParameterPolynomial
from rannpde.pde.problem.output_region import check_points_inside
from rannpde.pde.problem.ranges import Range, parameter_values
from rannpde.pde.residual import held_out_residual, mean_squares
from rannpde.pde.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class Family(ParametricSolution):
    """The solution for every value of the parameters with a range: ``family(points, nu=0.03)``.

    cached : values of all members at the points of the last evaluation
    """

    cached: dict[tuple[MultiIndex, bytes], Array] = field(default_factory=dict, init=False)

    # ------------------------------------------------------------------------------------------------ values

    def __call__(self, points: Array, *unnamed: float, **values: float) -> Array:
        """The fields at points (M, n) for one value of every parameter: (M,) for a single field, else (M, fields)."""
        example = ", ".join(f"{name}={span.middle:g}" for name, span in self.ranges.items())
        require(not unnamed, "values", unnamed, "named", f"family(points, {example})")
        return self.derivative(points, None, None, **values)

    def derivative(
        self, points: Array, derivative: Sequence[int] | None, by: str | None = None, **values: float
    ) -> Array:
        """∂^α of the fields in the coordinates, and by one parameter if that is named, at points (M, n).

        by : name of a parameter, whose first derivative is taken
        """
        points = finite_points("points", points, self.dim)
        index, weights = multi_index(derivative, self.dim), self._weights(values, by)
        quick = self.table is not None and by is None and not any(index) and self._inside(points)
        if quick:
            assert self.table is not None
            derivatives = self.table(weights, points)
        else:
            derivatives = self._combined(points, index, weights)
        return derivatives[:, 0] if len(self.fields) == 1 else derivatives

    def _combined(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        """∂^index (M, fields) from the values of all members, which are cached for the points of the last evaluation:
        at the same points, other values of the parameters cost a product of matrices."""
        if len(self.members) * len(points) > block_rows(len(self.fields)):  # too many to cache
            functions = tuple(member.function for member in self.members)
            return CombinedFunction(functions, weights).derivative(points, index)
        key = (index, points.tobytes())
        if key not in self.cached:
            values = np.stack([member.function.derivative(points, index) for member in self.members])
            self.cached.clear()
            self.cached[key] = values
        return np.asarray(np.tensordot(weights, self.cached[key], axes=1))

    def field(self, name: str, points: Array, **values: float) -> Array:
        """The values (M,) of one field."""
        choose("field", name, dict.fromkeys(self.fields))
        return np.reshape(self(points, **values), (-1, len(self.fields)))[:, self.fields.index(name)]

    def at(self, **values: float) -> Solution:  # type: ignore[override]  # of a family, values are of parameters
        """The Solution at one value of every parameter, with its own estimate and residuals.

        Its estimate is that at these values, which may be below the tolerance where those at other values are not.
        """
        stated = parameter_values(self.ranges, values)
        problem = self.stated.with_parameters(stated)
        used = [k for k, weight in enumerate(self._weights(stated)) if weight != 0]
        function = CombinedFunction(tuple(self.members[k].function for k in used), self._weights(stated)[used])
        shown = ", ".join(f"{name} = {value:g}" for name, value in stated.items())
        points = problem.domain.sample(1000, rng=20_233)
        losses = mean_squares(problem, function, points)
        return Solution(
            problem=problem, fields=self.fields, function=function,
            method=replace(self.method, why=f"at {shown}"), status=self.status, detail=self.detail,
            estimate=self.error(**stated), held_out=held_out_residual(problem, function), losses=losses,
            integrals={term.name: losses[term.name] * term.measure for term in problem.interior},
            history=self.history, seconds=self.seconds,
        )  # fmt: skip

    def errors(self, count: int = 4000, rng: int = 7) -> dict[str, float]:
        """Field → largest relative L² error at eight values of the parameters, where an exact solution is known."""
        if not self.stated.exact:
            return {}
        largest = dict.fromkeys(self.fields, 0.0)
        for reduced in judged_values(len(self.ranges), 8):
            values = {name: span.value(y) for (name, span), y in zip(self.ranges.items(), reduced, strict=True)}
            problem = self.stated.with_parameters(values)
            points = problem.domain.sample(count, rng=rng)
            exact = problem.exact_solution
            assert exact is not None
            known, approximate = exact(points), np.reshape(self(points, **values), (count, -1))
            for k, name in enumerate(self.fields):
                size = max(float(np.linalg.norm(known[:, k])), float(self.model.floor[k]) * count**0.5)
                largest[name] = max(largest[name], float(np.linalg.norm(approximate[:, k] - known[:, k])) / size)
        return largest

    # ------------------------------------------------------------------------------------------------ quantities

    def on(self, points: Array) -> ParameterPolynomial:
        """The fields at these points as polynomials in the parameters: (M,) for a single field, else (M, fields).

        Evaluations at thousands of values then cost a product of matrices.
        """
        points = finite_points("points", points, self.dim)
        check_points_inside(points, self.stated.domain, "the point")
        values = np.stack([member(points) for member in self.members])
        return self._polynomial(values, 0.0)

    def _weights(self, values: Mapping[str, float], by: str | None = None) -> Array:
        """Weights (n,) of the members at values of the parameters, or their derivatives by one of them."""
        reduced = self._reduced(values)[None]
        if by is None:
            return self.model.grid.weights(reduced)[0]
        span = choose("by", by, self.ranges)
        orders: MultiIndex = tuple(int(name == by) for name in self.ranges)
        return np.asarray(float(span.slope(values[by])) * self.model.grid.weights(reduced, orders)[0])

    def _inside(self, points: Array) -> bool:
        lower, upper = np.asarray(self.stated.domain.bounds, dtype=float).T
        return bool(((points >= lower) & (points <= upper)).all())


def middle_of(ranges: Mapping[str, Range], model: ErrorModel, members: Sequence[Solution]) -> CombinedFunction:
    """The combination of solutions at the middle of all ranges."""
    reduced = np.array([[float(span.reduced(span.middle)) for span in ranges.values()]])
    return CombinedFunction(tuple(member.function for member in members), model.grid.weights(reduced)[0])
