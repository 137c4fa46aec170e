"""The solutions of an equation in a cell, among polynomials: features that know its coefficients.

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
    """Coefficients of polynomials in a cell: homogeneous (N, m), orthonormal solutions of L u = 0; particular (N,), the
    solution of L u = f with the least coefficients."""

    homogeneous: Array
    particular: Array

    def coefficients(self, weights: Array) -> Array:
        """Those (N,) of the function with weights (m,)."""
        return np.asarray(self.homogeneous @ weights + self.particular)


@dataclass(frozen=True, eq=False)
class LocalOperator:
    """The projected operator on the cells of a mesh."""

    equation: VaryingEquation
    square: SquarePolynomials
    mesh: BoxMesh

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
        factors = Householder.of(np.asfortranarray((square.tests @ rows).T))
        tested = square.count - square.solutions
        known = solve_triangular(
            factors.triangle[:tested, :tested], square.tests @ (source / size), trans="T", check_finite=False
        )
        start = np.zeros((square.count, square.solutions + 1), order="F")
        start[:tested, 0], start[tested:, 1:] = known, np.eye(square.solutions)
        (ormqr,) = get_lapack_funcs(("ormqr",), (start,))
        columns = ormqr("L", "N", factors.reflections, factors.factors, start, PANEL * start.shape[1])[0]
        return LocalSolutions(columns[:, 1:], columns[:, 0])

    def defect(self, cell: int, coefficients: Array) -> tuple[float, float]:
        """The root mean square of what is left of the equation, and of the sum of sizes of its terms, between nodes."""
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
