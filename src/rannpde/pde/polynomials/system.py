"""The least-squares system of a problem in a space of polynomials: residual and exact Jacobian.

Rows are the equations at Gauss nodes, the conditions, and continuity between cells of what the order of the equations
asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from scipy.sparse import csr_array, dia_array, vstack

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.domains.boundary.sides import FlatSide
from rannpde.pde.functional_values import FunctionalRule, Linearised, Lookup
from rannpde.pde.polynomials.space import PiecewiseTensor, PolynomialSpace
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet


@dataclass(frozen=True, eq=False)
class PolynomialSystem:
    """The rows of a problem in a space.

    more : Gauss nodes of a cell along each coordinate beyond the number of its functions
    last_only : only the rows of the last cell along the only coordinate
    """

    problem: Problem
    space: PolynomialSpace
    rule: FunctionalRule
    more: int = 0
    last_only: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        return self.problem.fields

    @cached_property
    def _collocation_points(self) -> list[tuple[Term, Array]]:
        collocation = [(term, self._points(term)) for term in self.problem.terms]
        if not self.last_only:
            return collocation
        start, end = self.space.edges[0][-2:]
        inside = [(term, points[(points[:, 0] >= start) & (points[:, 0] <= end)]) for term, points in collocation]
        return [(term, points) for term, points in inside if len(points)]

    def _points(self, term: Term) -> Array:
        if term.points is not None:
            return term.points
        if isinstance(term.region, FlatSide):
            return self.space.nodes({term.region.axis: term.region.value}, self.more)
        return self.space.nodes(more=self.more)

    def linearise(self, coefficients: Array) -> tuple[Array, Array]:
        """Residual (R,) and Jacobian (R, fields · size) at coefficients (fields, size)."""
        values, rows = [], []
        for term, points in self._collocation_points:
            value, own = self._term(term, points, coefficients)
            values.append(term.weight * value)
            rows.append(csr_array(term.weight * own))
        values += [own @ coefficients.ravel() for own in self._continuity]
        stacked = csr_array(vstack([*rows, *self._continuity]))
        reserve(FLOAT_BYTES * stacked.shape[0] * stacked.shape[1], "the system of an integral equation")
        return np.concatenate(values), stacked.toarray()

    def residual(self, coefficients: Array) -> Array:
        """The residual (R,) alone."""
        values = [term.weight * self._values(term, points, coefficients) for term, points in self._collocation_points]
        return np.concatenate([*values, *(own @ coefficients.ravel() for own in self._continuity)])

    def with_more_nodes(self) -> PolynomialSystem:
        """The system at other nodes, with a finer rule for its integrals."""
        return replace(self, more=self.more + 1, rule=replace(self.rule, panels=2 * self.rule.panels))

    def residuals(self, coefficients: Array) -> dict[str, tuple[Array, Array]]:
        """By name of a term: the residual at its points, and the size of its summands there."""
        residuals: dict[str, tuple[Array, Array]] = {}
        for term, points in self._collocation_points:
            value, own = self._term(term, points, coefficients)
            size = np.abs(own) @ np.abs(coefficients.ravel()) + np.abs(value)
            if term.kind == "functional":  # a mean may vanish, of a field that does not
                size = size + np.abs(own).sum(axis=1) * np.abs(coefficients).max()
            before = residuals.get(term.name, (np.empty(0), np.empty(0)))
            residuals[term.name] = (np.append(before[0], value), np.append(before[1], size))
        return residuals

    def _values(self, term: Term, points: Array, coefficients: Array) -> Array:
        state = PiecewiseTensor(self.space, coefficients)
        known = term.known(points, self.problem.vocabulary, term.data)

        def lookup(name: str, positions: Array, index: MultiIndex) -> Linearised:
            return Linearised(state.derivative(positions, index)[:, self.fields.index(name)], None)

        jets = self._jets(term, points, known, lookup)
        value = term.expression.value(known, {jet: own.values for jet, own in jets.items()})
        return np.broadcast_to(value, len(points))

    def _jets(
        self, term: Term, points: Array, known: Mapping[sympy.Symbol, Array], lookup: Lookup
    ) -> dict[Jet, Linearised]:
        checkpoint()
        jets = {}
        for jet in term.expression.jets:
            one = term.expression.functionals.get(jet.field)
            if one is None:
                jets[jet] = lookup(jet.field, points, jet.index)
            else:
                jets[jet] = self.rule.of(one, known, len(points), lookup, self.space.width)
        return jets

    def _term(self, term: Term, points: Array, coefficients: Array) -> tuple[Array, csr_array]:
        expression = term.expression
        known = term.known(points, self.problem.vocabulary, term.data)

        def lookup(name: str, positions: Array, index: MultiIndex) -> Linearised:
            number = self.fields.index(name)
            rows = self.space.rows(positions, index)
            return Linearised(rows @ coefficients[number], self._embedded(rows, number))

        jets = self._jets(term, points, known, lookup)
        value, slopes = expression.linearised(known, {jet: own.values for jet, own in jets.items()})
        total = csr_array((len(points), len(self.fields) * self.space.size))
        for jet, slope in zip(expression.jets, slopes, strict=True):
            own = jets[jet].rows
            if own is not None:
                along = np.broadcast_to(slope, len(points))
                total = total + dia_array((along[None, :], [0]), shape=(len(points),) * 2) @ own
        return np.broadcast_to(value, len(points)), csr_array(total)

    def _embedded(self, rows: csr_array, number: int) -> csr_array:
        """Rows of one field among the coefficients of all."""
        shape = (rows.shape[0], len(self.fields) * self.space.size)
        return csr_array((rows.data, rows.indices + number * self.space.size, rows.indptr), shape=shape)

    @cached_property
    def _continuity(self) -> list[csr_array]:
        return [own for number, name in enumerate(self.fields) for own in self._jumps(number, name)]

    def _jumps(self, number: int, name: str) -> Iterator[csr_array]:
        """Rows of the jumps of one field and its derivatives below the order of the equations."""
        periodic = {self.problem.domain.names.index(key) for key in self.problem.periodic}
        for axis, own in enumerate(self.space.edges):
            inner = own[-2:-1] if self.last_only and len(own) > 2 else own[1:-1]
            pairs = [(edge, edge) for edge in inner] + ([(own[-1], own[0])] if axis in periodic else [])
            for order in range(self.problem.order(name, axis)):
                index = tuple(order if k == axis else 0 for k in range(self.space.dim))
                for left, right in pairs:
                    before = self.space.rows(self.space.nodes({axis: left}, self.more), index, before=axis)
                    after = self.space.rows(self.space.nodes({axis: right}, self.more), index)
                    yield self._embedded(csr_array(before - after), number)


def row_lengths(jacobian: Array) -> Array:
    """Lengths of rows, 1 for a row of zeros."""
    lengths = np.linalg.norm(jacobian, axis=1)
    lengths[lengths == 0] = 1.0
    return lengths


def relative_size(values: Array, sizes: Array) -> float:
    """The length of values over that of the summands that they are the sum of."""
    whole = float(np.linalg.norm(sizes))
    return float(np.linalg.norm(values)) / whole if whole else 0.0


def refused_shape(problem: Problem) -> str:
    """Why the rows of a problem cannot be written down; empty where they can."""
    for term in problem.terms:
        region: Any = term.region
        if term.kind == "interior" or term.points is not None or isinstance(region, FlatSide):
            continue
        return f"condition {term.name!r} holds on a part of a side"
    return ""
