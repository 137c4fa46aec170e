"""Causal equations cell by cell: the method of steps for delays, and its like for integrals up to t.

Where the conditions hold at the beginning and no equation asks for what comes later, the coefficients of a cell depend
on those before it only. Newton's method then has one cell at a time to solve for, and starts from the values at the end
of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.pde.gauss_newton import Descent, GaussNewton, GaussNewtonStep
from rannpde.pde.monitor import Status
from rannpde.pde.polynomials.space import PiecewiseTensor
from rannpde.pde.polynomials.system import PolynomialSystem, row_lengths
from rannpde.pde.problem.checks import SAMPLE
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Functional, evaluate
from rannpde.pde.statement.functionals import DefiniteIntegral, FieldValue


def is_causal(problem: Problem) -> bool:
    """Whether an equation in one coordinate can be solved from its lower end on.

    >>> from rannpde.domains import Box
    >>> is_causal(Problem("u_t = -u(t - 1)", Box(t=(0, 3)), {"t <= 0": "u = 1"}))
    True
    >>> is_causal(Problem("u = 1 + integral(u(s)/2, s, 0, 1)", Box(t=(0, 1))))
    False
    """
    if problem.domain.dim != 1 or problem.periodic:
        return False
    for term in problem.constraints:
        if not isinstance(term.region, FlatSide) or term.region.outward != -1 or term.expression.functionals:
            return False
    (symbol,) = problem.vocabulary.symbols
    lower, upper = map(float, problem.domain.bounds[0])
    points = np.linspace(lower, upper, SAMPLE)
    own = [one for term in problem.interior for one in term.expression.functionals.values()]
    return all(_looks_back(one, symbol, {symbol: points}, problem) for one in own)


def _looks_back(one: Functional, now: sympy.Symbol, known: dict[sympy.Symbol, Array], problem: Problem) -> bool:
    """Whether a functional at these values of the coordinate, and of the variables around it, needs no later ones."""
    slack = 1e-12 * float(np.abs(problem.domain.bounds).max())
    if isinstance(one, FieldValue):
        (argument,) = evaluate(one.arguments, known, problem.functions)
        return bool((argument <= known[now] + slack).all())
    assert isinstance(one, DefiniteIntegral)
    lower, upper = evaluate([one.lower, one.upper], known, problem.functions)
    for share in (0.0, 0.5, 1.0):
        inner = known | {one.variable: lower + share * (upper - lower) + 0.0 * known[now]}
        if not all(_looks_back(part, now, inner, problem) for part in one.integrand.functionals.values()):
            return False
    return True


@dataclass(frozen=True, eq=False)
class _LastCell:
    """The rows and coefficients of the last cell, those before it being known: (fields, cells · (degree + 1))."""

    system: PolynomialSystem
    coefficients: Array
    lengths: Array | None = None

    @property
    def linear(self) -> bool:
        return self.system.problem.linear

    @property
    def own(self) -> Array:
        """Columns of the last cell among those of all fields."""
        width, size = self.system.space.width, self.system.space.size
        starts = np.arange(len(self.coefficients)) * size
        return (starts[:, None] + np.arange(size - width, size)).ravel()

    def table(self, vector: Array) -> Array:
        """All coefficients with these ones of the last cell."""
        whole = self.coefficients.copy().ravel()
        whole[self.own] = vector
        return whole.reshape(self.coefficients.shape)

    def residual(self, vector: Array) -> Array:
        residual = self.system.residual(self.table(vector))
        return residual if self.lengths is None else residual / self.lengths

    def linearise(self, vector: Array) -> tuple[Array, Array]:
        residual, jacobian = self.system.linearise(self.table(vector))
        jacobian = jacobian[:, self.own]
        if self.lengths is None:
            return residual, jacobian
        return residual / self.lengths, jacobian / self.lengths[:, None]


def solve_by_steps(system: PolynomialSystem) -> Descent:
    """Solve cell by cell; where Newton's method fails in a cell, the rest keeps the last values."""
    space, fields = system.space, len(system.fields)
    (edges,), (degree,) = space.edges, space.degrees
    coefficients = np.zeros((fields, 0))
    steps: tuple[GaussNewtonStep, ...] = ()
    rank = 0
    for cell in range(len(edges) - 1):
        part = replace(space, edges=(edges[: cell + 2],))
        rule = replace(system.rule, edges=(tuple(map(float, edges[: cell + 2])),))
        own = replace(system, space=part, rule=rule, last_only=True)
        before = np.zeros(fields)
        if cell:
            earlier = PiecewiseTensor(replace(space, edges=(edges[: cell + 1],)), coefficients)
            before = earlier(edges[cell].reshape(1, 1))[0]
        start = np.zeros((fields, degree + 1))
        start[:, 0] = before
        descent = _solved(own, np.concatenate([coefficients, start], axis=1), start)
        steps += descent.steps
        rank += descent.steps[-1].rank if descent.steps else 0
        coefficients = np.concatenate([coefficients, descent.vector.reshape(fields, -1)], axis=1)
        if descent.status is not Status.CONVERGED:
            reason = f"{descent.reason}, in the cell from {edges[cell]:.4g} to {edges[cell + 1]:.4g}"
            left = np.zeros((fields, (len(edges) - 2 - cell) * (degree + 1)))
            left[:, :: degree + 1] = before[:, None]
            return Descent(np.concatenate([coefficients, left], axis=1).ravel(), steps, descent.status, reason, 0.0)
    if steps:
        steps = (*steps[:-1], replace(steps[-1], rank=rank))
    return Descent(coefficients.ravel(), steps, Status.CONVERGED, "", 0.0)


def _solved(system: PolynomialSystem, coefficients: Array, start: Array) -> Descent:
    """The last cell by Newton's method, from the values at its beginning, or else from 1."""
    ones = np.zeros_like(start)
    ones[:, 0] = 1.0
    descent = None
    for guess in (start, ones):
        residual, jacobian = _LastCell(system, coefficients).linearise(guess.ravel())
        if np.isfinite(residual).all() and np.isfinite(jacobian).all():
            problem = _LastCell(system, coefficients, row_lengths(jacobian))
            descent = GaussNewton().run(problem, guess.ravel())
            if descent.status is Status.CONVERGED:
                return descent
    if descent is not None:
        return descent
    return Descent(start.ravel(), (), Status.NEWTON, "the residual is not finite at the first guesses", 0.0)
