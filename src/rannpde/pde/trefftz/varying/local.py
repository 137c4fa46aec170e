"""The solutions of an equation in a cell, among polynomials: features that depend on its coefficients.

The operator maps polynomials of degree p to functions whose projection on polynomials of degree p - 2 is computed by
Gauss' rule. The kernel of that map has 2p + 1 dimensions, as many as there are harmonic polynomials of degree p, and
its elements satisfy L u = 0 up to what is beyond degree p - 2 of a smooth function, which falls exponentially with p.
It is the embedded Trefftz method (Lehrenfeld and Stocker, 2023): the law of the features is read off the operator by
linear algebra where no formula is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from rannpde.arrays import Array
from rannpde.pde.trefftz.least_squares import PANEL, Householder
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.mesh import BoxMesh
from rannpde.pde.trefftz.varying.polynomials import SquarePolynomials


@dataclass(frozen=True, eq=False)
class LocalSolutions:
    """Coefficients (N, 1 + m) of polynomials in a cell: of the solution of L u = f that is nearest to the state at
    which L is linearised, then of orthonormal solutions of L u = 0.

    size : by which the operator was divided
    factors : of the adjoint of the projected operator; None where no other sources are asked for
    """

    columns: Array
    size: float
    factors: Householder | None = None

    @property
    def homogeneous(self) -> Array:
        return self.columns[:, 1:]

    def coefficients(self, weights: Array) -> Array:
        """The coefficients (N,) of the function with weights (m,)."""
        return np.asarray(self.homogeneous @ weights + self.columns[:, 0])

    def response(self, tested: Array) -> Array:
        """The least coefficients (N,) for which the image has the projection ``tested`` (T,)."""
        assert self.factors is not None
        known = solve_triangular(
            self.factors.reflections[: len(tested)], tested / self.size, trans="T", check_finite=False
        )
        return self.factors.spanned(known[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class LocalOperator:
    """The projected operator on the cells of a mesh.

    start : coefficients (C, N) of the state at which an equation that is not linear is linearised
    """

    equation: VaryingEquation
    square: SquarePolynomials
    mesh: BoxMesh
    start: Array | None = None

    def solutions(self, cell: int) -> LocalSolutions:
        """The solutions in one cell."""
        square, halves = self.square, self.mesh.halves[cell]
        points = self.mesh.middles[cell] + halves * square.points
        values, source = self.equation.coefficients(points)
        size = max(float(np.abs(one).max()) / np.prod(halves ** np.array(index)) for index, one in values.items())
        if not (np.isfinite(size) and np.isfinite(source).all() and size > 0):
            raise np.linalg.LinAlgError("a coefficient or the source is not finite")
        rows = np.zeros((len(source), square.count))
        for index, one in values.items():
            rows += (one / (size * np.prod(halves ** np.array(index))))[:, None] * square.table(index)
        given = source / size
        if self.start is not None:
            given = given - rows @ self.start[cell]
        factors = Householder.of(np.asfortranarray((square.tests @ rows).T))
        tested = square.count - square.solutions
        known = solve_triangular(factors.reflections[:tested], square.tests @ given, trans="T", check_finite=False)
        start = np.zeros((square.count, square.solutions + 1), order="F")
        start[:tested, 0], start[tested:, 1:] = known, np.eye(square.solutions)
        (ormqr,) = get_lapack_funcs(("ormqr",), (start,))
        columns = ormqr("L", "N", factors.reflections, factors.factors, start, PANEL * start.shape[1])[0]
        if self.start is None:
            return LocalSolutions(columns, size)
        columns[:, 0] += self.start[cell]
        return LocalSolutions(columns, size, factors)

    def residual(self, cell: int, coefficients: Array) -> Array:
        """The projection (T,) of the residual of the polynomial with coefficients (N,) in a cell."""
        square, halves, term = self.square, self.mesh.halves[cell], self.equation.term
        points = self.mesh.middles[cell] + halves * square.points
        jets = {
            jet: square.table(jet.index) @ coefficients / np.prod(halves ** np.array(jet.index))
            for jet in term.expression.jets
        }
        value = term.expression.value(term.known(points, self.equation.problem.vocabulary), jets)
        return np.asarray(square.tests @ np.broadcast_to(np.asarray(value, dtype=float), (len(points),)))

    def defect(self, cell: int, coefficients: Array) -> tuple[float, float]:
        """The root mean squares of the residual of the equation and of the sum of sizes of its terms, between nodes."""
        square, halves = self.square, self.mesh.halves[cell]
        nodes = square.rule[0]
        between = 0.5 * (nodes[1:] + nodes[:-1])
        unit = np.stack(np.meshgrid(between, between, indexing="ij"), axis=-1).reshape(-1, 2)
        values, source = self.equation.coefficients(self.mesh.middles[cell] + halves * unit)
        matrix = square.square_coefficients(coefficients)
        left, size = -source, np.abs(source)
        along = {order: square.along(between, order) for order in {k for index in values for k in index}}
        for index, one in values.items():
            part = (along[index[0]] @ matrix @ along[index[1]].T).ravel() * one / np.prod(halves ** np.array(index))
            left, size = left + part, size + np.abs(part)
        return float(np.sqrt(np.mean(left**2))), float(np.sqrt(np.mean(size**2)))
