"""Where a family satisfies its equations worst: residuals of combinations of solutions at any values, without a solve.

At the nodes the residual is that of the solves. Between them a combination leaves A(y) (u_h(y) - u(y)): a kink or a
needle in a coefficient, a source or a condition shows there, however far all nodes are from it. As in the greedy
construction of reduced bases, the value with the largest residual is where the next solve tells most (Prud'homme et
al., Reliable real-time solution of parametrized partial differential equations, 2002).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.family.nodes import SparseGrid
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import Unknown
from rannpde.pde.residual import Term, jets_of
from rannpde.pde.solution import SolvedFunction
from rannpde.pde.statement.expression import Jet
from rannpde.rounding import EPS

RESIDUAL_POINTS = 128
"""Points of the region of an equation or condition at which residuals are compared: a root mean square from them has an
error of a tenth, which changes no order of magnitude."""


@dataclass(frozen=True, eq=False)
class ParametricResidual:
    """The equations and conditions of a problem as functions of its parameters too.

    problem : the statement, with the parameters as unknown numbers, so that it is read once for all their values
    ranged : the same problem with its ranges
    """

    problem: Problem
    ranged: Problem

    @classmethod
    def of(cls, ranged: Problem) -> ParametricResidual | None:
        """None where the statement does not allow it, such as with parameters that stand in no equation."""
        unknown = {name: Unknown(one.middle, (one.lower, one.upper)) for name, one in ranged.ranges.items()}
        fixed = {name: value for name, value in ranged.parameters.items() if name not in unknown}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                stated = replace(ranged, parameters=fixed, unknown=unknown, outputs={}, exact={})
        except InputError:
            return None
        return cls(stated, ranged)

    @cached_property
    def terms(self) -> list[tuple[Term, Array]]:
        """Equations and conditions on regions, each with points of its region (M, n)."""
        terms: list[tuple[Term, Array]] = []
        rng = np.random.default_rng(20_234)
        for term in self.problem.terms:
            region: Any = self.problem.domain if term.kind == "interior" else term.region
            if region is None or term.points is not None or term.expression.functionals:
                continue
            terms.append((term, np.asarray(region.sample(1 if region.is_point else RESIDUAL_POINTS, rng=rng))))
        return terms

    def worst(self, functions: Sequence[SolvedFunction], grid: SparseGrid, reduced: Array) -> Array | None:
        """Which of these reduced coordinates (K, d) has the largest residual (d,), relative to what the solves leave at
        the nodes; None where no residual is a number.

        functions : the solutions at the nodes of the grid
        """
        coordinates = np.concatenate([reduced, grid.nodes])
        weights = grid.weights(coordinates)
        values = {
            name: one.value(coordinates[:, axis]) for axis, (name, one) in enumerate(self.ranged.ranges.items())
        }  # fmt: skip
        largest = np.zeros(len(reduced))
        for term, points in self.terms:
            residuals, rounding = self._residuals(term, points, functions, weights, values)
            at_nodes = max(float(np.max(residuals[len(reduced) :])), rounding)
            if np.isfinite(at_nodes) and at_nodes > 0:
                largest = np.fmax(largest, residuals[: len(reduced)] / at_nodes)
        return reduced[int(np.argmax(largest))] if largest.any() else None

    def _residuals(
        self, term: Term, points: Array, functions: Sequence[SolvedFunction], weights: Array, values: dict[str, Array]
    ) -> tuple[Array, float]:
        """Root mean squares (K,) of the residual of a term for every row of weights (K, n), and their rounding."""
        count, jets = len(weights), term.expression.jets
        own = [jet for jet in jets if jet.field in self.problem.fields]
        solved = [jets_of(function, self.problem.fields, points, own) for function in functions]
        combined: dict[Jet, Array] = {jet: (weights @ np.stack([one[jet] for one in solved])).ravel() for jet in own}
        combined |= {jet: np.repeat(values[jet.field], len(points)) for jet in jets if jet.field in values}
        known = {
            symbol: np.tile(column, count) for symbol, column in term.known(points, self.problem.vocabulary).items()
        }  # fmt: skip
        with np.errstate(all="ignore"):
            residual, partials = term.expression.linearised(known, combined)
            summands = [
                np.broadcast_to(p * combined[jet], count * len(points)) for jet, p in zip(jets, partials, strict=True)
            ]
        residual = np.broadcast_to(residual, count * len(points)).reshape(count, -1)
        size = np.sqrt(np.mean(np.square(summands))) if summands else 0.0
        return np.sqrt(np.mean(np.square(residual), axis=1)), EPS * float(size)
