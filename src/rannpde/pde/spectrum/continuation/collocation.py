"""Stationary problems with a parameter as F(u, λ) = 0: collocation at Gauss–Lobatto points of an interval or a box.

The unknowns are values at products of Chebyshev points. The equations hold at inner points, the conditions at points of
sides, and the mean of the conditions of both sides at a corner of the plane. Derivatives by the parameter are exact,
since it stays a symbol of the statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.domains.boundary.sides import FlatSide
from rannpde.domains.domain import Box
from rannpde.errors import InputError, is_real, reject, require
from rannpde.pde.problem.conditions import Data
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet


@lru_cache(maxsize=32)
def chebyshev_points(count: int) -> tuple[Array, Array]:
    """Points (n,) of [-1, 1] from left to right, and the matrix (n, n) of the derivative of the interpolant.

    >>> points, slopes = chebyshev_points(5)
    >>> bool(np.allclose(slopes @ points**3, 3 * points**2))
    True
    """
    points = -np.cos(np.pi * np.arange(count) / (count - 1))
    signs = (-1.0) ** np.arange(count)
    signs[[0, -1]] *= 2
    angles = np.pi * np.arange(count) / (count - 1)
    middle, half = 0.5 * (angles[:, None] + angles), 0.5 * (angles[:, None] - angles)
    away = 2 * np.sin(middle) * np.sin(half)  # x_i - x_j without cancellation
    np.fill_diagonal(away, 1.0)
    matrix = np.outer(signs, 1 / signs) / away
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return points, matrix


@dataclass(frozen=True, eq=False)
class TensorPolynomial:
    """Fields as products of Chebyshev polynomials on a box: values (n, …, fields) at products of Chebyshev points."""

    bounds: Array
    values: Array

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def widths(self) -> tuple[int, ...]:
        return (int(np.prod(self.values.shape[:-1])),)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """A derivative of the fields, (M, fields), at points (M, n)."""
        tables = []
        for axis, order in enumerate(derivative):
            count = self.values.shape[axis]
            low, high = self.bounds[axis]
            nodes, slopes = chebyshev_points(count)
            scaled = (2 * points[:, axis] - (low + high)) / (high - low)
            table = chebvander(scaled, count - 1) @ np.linalg.inv(chebvander(nodes, count - 1))
            tables.append(table @ np.linalg.matrix_power(slopes * 2 / (high - low), order))
        if self.dim == 1:
            return np.asarray(tables[0] @ self.values)
        return np.asarray(np.einsum("mi,mj,ijf->mf", *tables, self.values, optimize=True))

    def pack(self) -> tuple[dict[str, object], dict[str, Array]]:
        """Header and arrays for a file."""
        return {"function": "tensor"}, {"bounds": self.bounds, "values": self.values}


class StationarySystem:
    """F(u, λ) = 0 with ``count`` points along each axis; unknowns are ordered by points, then by fields."""

    def __init__(self, problem: Problem, parameter: str, count: int) -> None:
        self.problem, self.parameter, self.count = problem, parameter, count
        self.bounds = np.asarray(problem.domain.bounds, dtype=float)
        self.dim, self.fields = len(self.bounds), problem.fields
        nodes, slopes = chebyshev_points(count)
        axes = [0.5 * (low + high) + 0.5 * (high - low) * nodes for low, high in self.bounds]
        self.points = combinations(axes)
        self.shape = (count,) * self.dim
        unit = np.eye(count)
        self._slopes = [slopes * 2 / (high - low) for low, high in self.bounds]
        self._unit = unit
        self._tables: dict[MultiIndex, Array] = {}
        self.size = len(self.points) * len(self.fields)
        self._assign()

    def table(self, index: MultiIndex) -> Array:
        """The matrix (P, P) of a derivative."""
        if index not in self._tables:
            parts = [np.linalg.matrix_power(self._slopes[axis], order) for axis, order in enumerate(index)]
            self._tables[index] = parts[0] if self.dim == 1 else np.kron(parts[0], parts[1])
        return self._tables[index]

    def _assign(self) -> None:
        """Assign equations and conditions to points: ``interior``, numbers of points, and ``rows``, each (condition,
        number of its row at a point, points, shares)."""
        grid = np.stack(np.unravel_index(np.arange(len(self.points)), self.shape), axis=1)
        low, high = grid == 0, grid == self.count - 1
        sides = low.sum(axis=1) + high.sum(axis=1)
        self.interior = np.flatnonzero(sides == 0)
        self.rows: list[tuple[Term, int, Array, Array]] = []
        filled = np.zeros(len(self.points), dtype=int)
        seen: dict[tuple[int, int], int] = {}
        for term in self.problem.constraints:
            region = term.region
            if not isinstance(region, FlatSide) or not region.outward:
                raise InputError(f"condition {term.name!r} is not on a side of the box; continuation needs it there")
            key = (region.axis, region.outward)
            number = seen.get(key, 0)
            seen[key] = number + 1
            if number >= len(self.fields):
                raise InputError(
                    f"more than {len(self.fields)} conditions on {region.name}; continuation needs as many"
                )
            on = np.flatnonzero((low if region.outward < 0 else high)[:, region.axis])
            self.rows.append((term, number, on, 1.0 / sides[on]))
            filled[on] += 1
        if (filled != len(self.fields) * sides).any():
            raise InputError("continuation needs one condition for each field on every side of the box")

    def _jets(self, terms: tuple[Term, ...] | list[Term], values: Array, rows: Array) -> dict[Jet, Array]:
        by_point = values.reshape(len(self.points), len(self.fields))
        jets: dict[Jet, Array] = {}
        for term in terms:
            for jet in term.expression.jets:
                if jet.field in self.fields and jet not in jets:
                    jets[jet] = self.table(jet.index)[rows] @ by_point[:, self.fields.index(jet.field)]
        return jets

    def residual(self, values: Array, parameter: float) -> Array:
        """The residual F (N,) of a state."""
        return self._assembled(values, parameter, matrices=False)[0]

    def linearised(self, values: Array, parameter: float) -> tuple[Array, Array, Array]:
        """F (N,), ∂F/∂u (N, N) and ∂F/∂λ (N,)."""
        assembled = self._assembled(values, parameter, matrices=True)
        assert assembled[1] is not None
        return assembled[0], assembled[1], assembled[2]

    def _assembled(self, values: Array, parameter: float, matrices: bool) -> tuple[Array, Array | None, Array]:
        fields = len(self.fields)
        residual, slope = np.zeros(self.size), np.zeros(self.size)
        matrix = np.zeros((self.size, self.size)) if matrices else None
        ones = np.ones(len(self.interior))
        parts = [(term, k, self.interior, ones) for k, term in enumerate(self.problem.interior)] + self.rows
        for term, number, rows, share in parts:
            jets = self._jets([term], values, rows)
            for jet in term.expression.jets:
                if jet.field not in self.fields:
                    jets[jet] = np.full(len(rows), parameter)
            known = term.known(self.points[rows], self.problem.vocabulary)
            target = rows * fields + number
            if matrix is None:
                np.add.at(residual, target, share * np.broadcast_to(term.expression.value(known, jets), (len(rows),)))
                continue
            value, partials = term.expression.linearised(known, jets)
            np.add.at(residual, target, share * np.broadcast_to(value, (len(rows),)))
            for jet, partial in zip(term.expression.jets, partials, strict=True):
                factor = share * np.broadcast_to(partial, (len(rows),))
                if jet.field not in self.fields:
                    np.add.at(slope, target, factor)
                    continue
                columns = np.arange(len(self.points)) * fields + self.fields.index(jet.field)
                matrix[np.ix_(target, columns)] += factor[:, None] * self.table(jet.index)[rows]
        return residual, matrix, slope

    @cached_property
    def constrained(self) -> Array:
        """Rows (bool, (N,)) that are conditions."""
        conditions = np.ones((len(self.points), len(self.fields)), dtype=bool)
        conditions[self.interior] = False
        return conditions.ravel()

    def function(self, values: Array) -> TensorPolynomial:
        return TensorPolynomial(self.bounds, values.reshape(*self.shape, len(self.fields)))

    def tail(self, values: Array) -> float:
        """The last Chebyshev coefficients over the largest, which are small where the grid resolves a solution."""
        coefficients = values.reshape(*self.shape, len(self.fields))
        inverse = np.linalg.inv(chebvander(chebyshev_points(self.count)[0], self.count - 1))
        for axis in range(self.dim):
            coefficients = np.moveaxis(np.tensordot(inverse, coefficients, axes=(1, axis)), 0, axis)
        largest = max(float(np.abs(coefficients).max()), 1e-300)
        ends = [np.take(coefficients, [self.count - 2, self.count - 1], axis=axis) for axis in range(self.dim)]
        return max(float(np.abs(end).max()) for end in ends) / largest


def with_parameter(problem: Problem, parameter: str) -> Problem:
    """The problem in which a parameter stays a symbol; an InputError where continuation cannot follow it."""
    require(isinstance(problem, Problem), "problem", problem, "a Problem")
    require(not problem.eigenvalue and not problem.unknown, "problem", problem, "one without eigenvalue and unknowns")
    require(isinstance(parameter, str) and parameter in problem.parameters, "parameter", parameter,
            f"one of the problem's: {', '.join(problem.parameters) or 'it has none'}")  # fmt: skip
    if not isinstance(problem.domain, Box) or problem.domain.dim > 2:
        reject("domain", problem.domain, "an interval or a box of two coordinates", "other shapes have no such grid")
    if problem.periodic or problem.pairings:
        raise InputError(
            "fields are periodic, so that their position is free; continuation needs conditions that fix it"
        )
    if any(isinstance(condition, Data) for condition in problem.conditions.values()):
        raise InputError("the problem holds measured values; continuation follows equations and conditions only")
    for name in problem.fields:
        require(problem.order(name) <= 2, f"the order of {name}", problem.order(name), "at most 2",
                "state higher derivatives as a system")  # fmt: skip
    require(len(problem.expressions) == len(problem.fields), "equations", list(problem.equations), "as many as fields")
    rest = {name: value for name, value in problem.parameters.items() if name != parameter}
    return replace(problem, parameters=rest, eigenvalue=parameter, exact={}, bounds={})


def guessed(system: StationarySystem, guess: Any) -> Array:
    """Values (N,) of an initial guess: zero, a solution or any function of points (M, n), or field → number."""
    if guess is None:
        return np.zeros(system.size)
    if isinstance(guess, Mapping):
        for name in guess:
            require(name in system.fields, "guess", name, f"one of {', '.join(system.fields)}")
        columns = [np.broadcast_to(_at(guess.get(name, 0.0), system.points, name), (len(system.points),))
                   for name in system.fields]  # fmt: skip
        return np.stack(columns, axis=1).ravel()
    require(callable(guess), "guess", guess, "a function of points, a solution, or a mapping of fields")
    values = np.asarray(guess(system.points), dtype=float).reshape(len(system.points), -1)
    require(values.shape[1] == len(system.fields), "guess", values.shape, f"of {len(system.fields)} fields")
    return values.ravel()


def _at(given: Any, points: Array, name: str) -> Array:
    if callable(given):
        return np.asarray(given(points), dtype=np.float64).reshape(len(points))
    require(is_real(given), f"guess[{name!r}]", given, "a number or a function of points")
    return np.full(len(points), float(given))
