"""One-dimensional bases: orthonormal functions on an interval, whose tensor products span functions on a box.

Along a bounded axis the functions are singular vectors of adapted random features, as in ``galerkin``: ``rank`` of them
satisfy the homogeneous conditions at both ends, and one more for each condition lifts its value. Along a periodic axis
they are cosines and sines of whole frequencies. With the functions and the liftings together,

    E = [φ_1 … φ_r, ℓ_1 … ℓ_m],      B φ = 0,  B ℓ = 1,

the last m coefficients of a function are its boundary values B u, whatever the others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod, sqrt

import numpy as np
from scipy.linalg import svd

from rannpde.arrays import Array, combinations
from rannpde.errors import InputError
from rannpde.fitting.orthogonal import null_and_lifting
from rannpde.network.features import RandomFeatures
from rannpde.pde.problem.evolution import Constraint, EndRow, Evolution, WallRow
from rannpde.rounding import ROUNDED

FEW_COLUMNS = 16
"""Columns up to which ``along`` multiplies them one by one: 5 times faster for 2 of them, no slower for 16
(measured)."""

AXIS_ARRAYS = ("nodes", "weights", "left", "mixing")
"""The arrays of a file."""


@dataclass(frozen=True, eq=False)
class AxisBasis:
    """Functions E on an interval; nodes (Q,) and weights (Q,) of its quadrature.

    features, mixing (columns, R) : E = features · mixing; periodic axes have none
    left (Q, r) : φ at the nodes, orthonormal to rounding
    """

    bounds: tuple[float, float]
    nodes: Array
    weights: Array
    left: Array
    mixing: Array
    features: RandomFeatures | None = None
    _cache: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def rank(self) -> int:
        """r: functions that satisfy the homogeneous conditions."""
        return int(self.left.shape[1])

    @property
    def functions(self) -> int:
        """R = r + m: with the liftings."""
        return self.rank if self.features is None else int(self.mixing.shape[1])

    @property
    def columns(self) -> int:
        """Random features of the basis."""
        return self.rank if self.features is None else self.features.columns

    def truncated(self, rank: int) -> AxisBasis:
        """The basis with the first ``rank`` of φ only; an odd number along a periodic axis."""
        if self.features is None:
            return replace(self, left=self.left[:, : rank - (rank + 1) % 2], _cache={})
        mixing = np.concatenate([self.mixing[:, :rank], self.mixing[:, self.rank :]], axis=1)
        return replace(self, left=self.left[:, :rank], mixing=mixing, _cache={})

    def at(self, positions: Array, order: int = 0) -> Array:
        """(M, R): that derivative of E at positions (M,)."""
        if self.features is not None:
            return self.features(positions[:, None], (order,)) @ self.mixing
        return _waves(positions, self.bounds, self.rank, order)

    def values(self, order: int = 0) -> Array:
        """(Q, R): that derivative of E at the nodes; cached."""
        if order not in self._cache:
            values = self.at(self.nodes, order)
            if order == 0:
                values[:, : self.rank] = self.left  # features times mixing would lose digits
            self._cache[order] = values
        return self._cache[order]

    @cached_property
    def tests(self) -> Array:
        """(r, Q): node values → inner products with φ."""
        return np.ascontiguousarray((self.left * self.weights[:, None]).T)

    @cached_property
    def fit(self) -> Array:
        """(R, Q): node values → coefficients in E, by least squares."""
        if self.functions == self.rank:
            return self.tests
        roots = np.sqrt(self.weights)
        return np.linalg.pinv(roots[:, None] * self.values(), rcond=1e-14) * roots


def _waves(positions: Array, bounds: tuple[float, float], count: int, order: int) -> Array:
    """(M, count): a derivative of 1, cos, sin, cos 2, sin 2, … over the interval, orthonormal there; count is odd."""
    length = bounds[1] - bounds[0]
    frequencies = 2 * np.pi * np.arange(1, count // 2 + 1) / length
    phase = (positions - bounds[0])[:, None] * frequencies + 0.5 * np.pi * order
    values = np.empty((len(positions), count))
    values[:, 0] = sqrt(1.0 / length) if order == 0 else 0.0
    size = sqrt(2.0 / length) * frequencies**order
    values[:, 1::2], values[:, 2::2] = size * np.cos(phase), size * np.sin(phase)
    return values


def periodic_axis(bounds: tuple[float, float], highest: int) -> AxisBasis:
    """All frequencies up to ``highest``, and nodes that make the projection of quadratic terms exact."""
    count = 3 * highest + 2
    nodes = bounds[0] + (bounds[1] - bounds[0]) * np.arange(count) / count
    left = _waves(nodes, bounds, 2 * highest + 1, 0)
    weights = np.full(count, (bounds[1] - bounds[0]) / count)
    return AxisBasis(bounds, nodes, weights, left, np.zeros((0, 0)))


def random_axis(
    bounds: tuple[float, float],
    features: RandomFeatures,
    rule: tuple[Array, Array],
    rows: Sequence[EndRow],
    *,
    cutoff: float,
    most: int,
) -> AxisBasis:
    """At most ``most`` singular vectors of the features that satisfy the rows, and a lifting of each row."""
    nodes, weights = rule
    design = features(nodes[:, None])
    null, lifting = np.eye(features.columns), np.zeros((features.columns, 0))
    if rows:
        matrix = np.concatenate([_row(features, row) for row in rows])
        null, lifting = null_and_lifting(matrix, ROUNDED)
    if null.shape[1] == 0:
        raise InputError(f"{features.columns} features are too few for the boundary conditions; give a larger width")
    roots = np.sqrt(weights)[:, None]
    left, singular, right = svd(roots * (design @ null), full_matrices=False, overwrite_a=True, check_finite=False)
    rank = min(int((singular > cutoff * singular[0]).sum()), most)
    mixing = np.concatenate([null @ (right[:rank].T / singular[:rank]), lifting], axis=1)
    return AxisBasis(bounds, nodes, weights, left[:, :rank] / roots, mixing, features)


def _row(features: RandomFeatures, row: EndRow) -> Array:
    position = np.array([[row.position]])
    values: Array = sum(c * features(position, (k,)) for k, c in row.coefficients.items())  # type: ignore[assignment]
    return values


def along(matrix: Array, tensor: Array, axis: int) -> Array:
    """The matrix (a, b) times the tensor (…, b, …) along that axis."""
    before, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
    lead, trail = prod(before), prod(after)
    stack = tensor.reshape(lead, tensor.shape[axis], trail)
    if lead == 1 or trail > FEW_COLUMNS:
        product = np.matmul(matrix, stack)
    else:  # a few large products are faster than many with few columns each
        product = np.empty((lead, len(matrix), trail), dtype=np.result_type(matrix, tensor))
        for k in range(trail):
            np.matmul(stack[:, :, k], matrix.T, out=product[:, :, k])
    return product.reshape(*before, len(matrix), *after)


# --------------------------------------------------------------------------------------------- boundary conditions


def values_on(face: WallRow, evolution: Evolution, name: str, axes: tuple[AxisBasis, ...]) -> Constraint:
    """The prescribed values at the product of the nodes of the other axes."""
    coordinates = [np.array([face.row.position]) if k == face.axis else axis.nodes for k, axis in enumerate(axes)]
    points = combinations(coordinates)
    normals: Array = np.zeros_like(points)
    normals[:, face.axis] = face.normal
    return Constraint(name, points, normals, {}, face.value, evolution)
