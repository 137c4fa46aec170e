"""Bases of random features that satisfy boundary conditions and are orthonormal in a quadrature product.

The basis consists of combinations of random features that satisfy the boundary conditions and are orthonormal at the
nodes of a quadrature. With features φ_j, nodes x_i, weights ω_i and boundary rows B (the conditions, applied to each
feature) it is computed in three steps:

1. null space of B: coefficients Z with B Z = 0, and a lifting L with B L = 1 for given boundary values;
2. singular values of diag(√ω) φ(x) Z = U S Vᵀ, truncated at ``cutoff`` · S_1;
3. the basis at the nodes is U/√ω *itself*, orthonormal in the quadrature product (features times V/S would lose seven
   digits); derivatives, and values elsewhere, are features times W = Z V/S.

A function with boundary values g(t) is u = basis · (z - ⟨basis, φL⟩ g) + φL g, so that z = ⟨basis, u⟩ for every g, and
z' needs no derivative of g. The difference is formed first: its last entries are small, although those of z and of the
lifting, which do not decay, are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt

import numpy as np
import sympy
from scipy.linalg import qr, solve_triangular, svd

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, affordable, checkpoint, factorising, reserve
from rannpde.errors import InputError
from rannpde.fitting.orthogonal import null_and_lifting
from rannpde.network.features import Features
from rannpde.pde.problem.evolution import Constraint, Evolution, constraints_of
from rannpde.rounding import EPS, ROUNDED

TABLE_BLOCK = 2**16
"""Entries of a table of features that are computed at once, so that intermediate arrays stay in the cache."""
SVD_FLOPS = (6, 20)
"""Operations of a singular value decomposition with vectors of an m × n matrix: 6 m n² + 20 n³ (Golub & Van Loan,
8.6)."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Quadrature in space: nodes (Q, d), weights (Q,); then nodes on the boundary (B, d), weight × normal (B, d)."""

    points: Array
    weights: Array
    boundary: Array
    outward: Array

    @property
    def nodes(self) -> Array:
        """(Q + B, d): inside first."""
        return np.concatenate([self.points, self.boundary])


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    """rank functions Σ_j weights[j, k] φ_j, orthonormal at the nodes of the rule, and a lifting of m boundary values.

    weights (columns, rank), lifting (columns, m), left (Q, rank): the basis at the nodes inside
    lifted (rank, m): projection of the lifting on the basis
    singular_values : those above the cutoff, relative to the largest
    constraints : the boundary conditions, each side at ``boundary_points`` points along every axis
    finer : the rule at whose nodes the features were orthogonalised, if it is not the one of the basis
    """

    features: Features
    rule: Rule
    weights: Array
    lifting: Array
    lifted: Array
    left: Array
    singular_values: Array
    constraints: tuple[Constraint, ...]
    boundary_points: int
    finer: Rule | None = None
    _cache: dict[MultiIndex, tuple[Array, Array]] = field(default_factory=dict, repr=False)
    _last_data: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @property
    def rank(self) -> int:
        return self.weights.shape[1]

    def values(self, index: MultiIndex) -> tuple[Array, Array]:
        """(Q + B, rank) and (Q + B, m): that space derivative of the basis and of the lifting, at all nodes; cached."""
        if index not in self._cache:
            basis, lifting = self.at(self.rule.nodes, index)
            if not any(index):
                basis[: len(self.left)] = self.left
                basis[len(self.left) :][self._prescribed] = 0.0
            self._cache[index] = basis, lifting
        return self._cache[index]

    @property
    def _prescribed(self) -> Array:
        """(B,): boundary nodes where the condition gives the value itself, so that the basis is exactly 0 there."""
        fixed = np.zeros(len(self.rule.boundary), dtype=bool)
        for constraint in self.constraints:
            if all(not any(index) for index in constraint.coefficients):
                along = self.rule.outward @ constraint.normals[0]
                same = along >= (1.0 - 1e-9) * np.linalg.norm(self.rule.outward, axis=1)
                fixed |= same | (
                    len(self.rule.boundary) > 0 and len(np.unique(constraint.normals.round(9), axis=0)) > 1
                )
        return fixed

    def at(self, points: Array, index: MultiIndex) -> tuple[Array, Array]:
        """(M, rank) and (M, m) at points of space."""
        design = feature_table(self.features, points, index)
        return product(design, self.weights), product(design, self.lifting)

    def on(self, rule: Rule) -> FeatureBasis:
        """The functions of this basis, orthonormal at the nodes of another rule; those nodes must determine them."""
        design = feature_table(self.features, rule.points)
        roots = np.sqrt(rule.weights)[:, None]
        values = roots * product(design, self.weights)
        with factorising("qr", 4 * len(values) * self.rank**2, 2 * values.nbytes):
            left, triangle = qr(values, mode="economic", overwrite_a=True, check_finite=False)
        left = left / roots
        weights = solve_triangular(triangle, self.weights.T, trans="T", check_finite=False).T
        lifted = (left * rule.weights[:, None]).T @ product(design, self.lifting)
        finer = self.finer or self.rule
        return replace(
            self, rule=rule, weights=weights, lifted=lifted, left=left, finer=finer, _cache={}, _last_data={}
        )

    def data(self, times: Array, order: int = 0) -> Array:
        """(m, s): boundary values, or their time derivatives.

        Those of the last times are cached, since the Newton iterations of a step ask for the same times.
        """
        if not self.constraints:
            return np.zeros((0, len(times)))
        last = self._last_data.get(order)
        if last is None or not np.array_equal(last[0], times):
            values = np.empty((self.lifting.shape[1], len(times)))
            for constraint, rows in self._joined_constraints:
                values[rows] = constraint.values(times, order)
            last = self._last_data[order] = np.array(times), values
        return last[1]

    @cached_property
    def _joined_constraints(self) -> list[tuple[Constraint, Array]]:
        """Conditions whose values have the same formula, joined, with their rows."""
        ends = np.cumsum([0, *(len(one.points) for one in self.constraints)])
        joined: dict[sympy.Expr, list[int]] = {}
        for number, one in enumerate(self.constraints):
            joined.setdefault(one.value, []).append(number)
        result = []
        for numbers in joined.values():
            same = [self.constraints[k] for k in numbers]
            sides = [np.concatenate([getattr(one, name) for one in same]) for name in ("points", "normals")]
            rows = np.concatenate([np.arange(*ends[k : k + 2]) for k in numbers])
            result.append((replace(same[0], points=sides[0], normals=sides[1], coefficients={}), rows))
        return result

    def coefficients(self, states: Array, data: Array) -> Array:
        """(rank, s): what multiplies the basis for states z (rank, s) and boundary values (m, s)."""
        return states - self.lifted @ data if len(data) else states

    def project(self, values: Array) -> Array:
        """z (rank, …) = ⟨basis, values⟩ of node values (Q, …)."""
        return (self.left * self.rule.weights[:, None]).T @ values


def feature_table(features: Features, points: Array, index: MultiIndex | None = None) -> Array:
    """(M, columns): that derivative of the features, in blocks between which the limits of the solve are asked."""
    reserve(FLOAT_BYTES * len(points) * features.columns, f"{features.columns} features at {len(points)} points")
    table = np.empty((len(points), features.columns))
    block = max(1, TABLE_BLOCK // features.columns)
    for first in range(0, len(points), block):
        checkpoint()
        features(points[first : first + block], index, out=table[first : first + block])
    return table


def product(one: Array, other: Array) -> Array:
    """one @ other, whose time is predicted: with thousands of features it takes a share of that of factorisations."""
    (rows, inner), columns = one.shape, other.shape[1]
    with factorising("product", 2.0 * rows * inner * columns, FLOAT_BYTES * rows * columns):
        return one @ other


def affordable_width(rows: int, share: float) -> int:
    """The number of features whose basis at the given nodes takes this share of the time that is left."""
    return int(min(np.sqrt(affordable(share, "svd") / (sum(SVD_FLOPS) * rows)), 1e9))


def build_basis(
    features: Features,
    rule: Rule,
    evolution: Evolution,
    name: str,
    *,
    cutoff: float,
    boundary_cutoff: float = ROUNDED,
    boundary_points: int,
) -> FeatureBasis:
    """The basis of a field: null space, lifting and singular vectors, steps 1 to 3 of the module."""
    constraints = constraints_of(evolution, name, boundary_points)
    null, lifting = _split(features, constraints, boundary_cutoff)
    design = feature_table(features, rule.points)
    roots = np.sqrt(rule.weights)[:, None]
    if null.shape[1] == 0:
        raise InputError(f"{features.columns} features are too few for the boundary conditions; give a larger width")
    left, singular, right = leading_svd(roots * product(design, null))
    keep = singular > cutoff * singular[0]
    left = left[:, keep] / roots
    weights = product(null, right[keep].T / singular[keep])
    lifted = (left * rule.weights[:, None]).T @ product(design, lifting)
    relative = singular[keep] / singular[0]
    return FeatureBasis(features, rule, weights, lifting, lifted, left, relative, constraints, boundary_points)


def leading_svd(matrix: Array) -> tuple[Array, Array, Array]:
    """The singular value decomposition of a matrix (m, n), all of it or as much as is not rounding.

    Singular values of smooth features fall exponentially, and most are rounding. The range of half as many random
    combinations of the columns (Halko, Martinsson & Tropp 2011) holds the others, if what the projection on it leaves
    is of the size of what the decomposition itself rounds, √n eps; that is tested, and the whole is decomposed where it
    is not so.

    >>> hilbert = 1 / (1 + np.arange(60)[:, None] + np.arange(40))
    >>> left, singular, right = leading_svd(hilbert)
    >>> len(singular), bool(np.abs((left * singular) @ right - hilbert).max() < 1e-14)
    (20, True)
    """
    (rows, columns), count = matrix.shape, min(matrix.shape)
    size, half = 3 * FLOAT_BYTES * rows * columns, count // 2
    with factorising("range", 2 * rows * half * (3 * columns + 2 * half), size):
        sketch = matrix @ np.random.default_rng(0).standard_normal((columns, half))
        span = qr(sketch, mode="economic", overwrite_a=True, check_finite=False)[0]
        part = span.T @ matrix
        left_out = float(np.linalg.norm(matrix - span @ part))
    suffices = left_out <= EPS * sqrt(count) * float(np.linalg.norm(part))
    # the time of the two is predicted separately: a range that does not suffice has taken as long as one that does
    chosen = part if suffices else matrix
    longer, shorter = max(chosen.shape), min(chosen.shape)
    with factorising("svd", (SVD_FLOPS[0] * longer + SVD_FLOPS[1] * shorter) * float(shorter) ** 2, size):
        left, singular, right = svd(chosen, full_matrices=False, overwrite_a=True, check_finite=False)
    return (span @ left if suffices else left), singular, right


def _split(features: Features, constraints: Sequence[Constraint], cutoff: float) -> tuple[Array, Array]:
    """Z (columns, columns - rank) with B Z = 0 and L (columns, m) with B L = 1, both well conditioned."""
    if not constraints:
        return np.eye(features.columns), np.zeros((features.columns, 0))
    rows = []
    for constraint in constraints:
        parts = [c[:, None] * features(constraint.points, index) for index, c in constraint.coefficients.items()]
        rows.append(sum(parts[1:], parts[0]))
    return null_and_lifting(np.concatenate(rows), cutoff)
