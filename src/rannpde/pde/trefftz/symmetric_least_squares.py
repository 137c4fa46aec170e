"""Least squares on a symmetric solid: one small problem for every character of the group instead of one large one.

Let a group of G commuting symmetries r map the boundary, the conditions and the features onto themselves, φ_j(r x) =
± φ_k(x). The combinations of features that belong to a character χ, Σ_r χ(r) φ_j∘r, are orthogonal to those of all
other characters on every set of points that the group maps onto itself, and so are the parts Σ_r χ(r) g(r x) of the
data. What is left are G problems with one G-th of the columns, at one G-th of the points: features are evaluated at G
times fewer points, and factorisations are G² times less work in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix, diags

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.trefftz.least_squares import ColumnGains, LeastSquares, Minimiser, least_squares, sampling_deviation
from rannpde.pde.trefftz.sign_group import SignGroup


@dataclass(frozen=True, eq=False)
class FeatureOrbits:
    """How a group acts on features: φ_j at the image of a point is signs_j times φ_k at the point, k = numbers_j.

    numbers, signs (G, N); orders (N,) : the degree of each feature in an expansion, -1 for others. Combinations are in
    the order of degrees, so that one factorisation shows how errors fall with the degree.
    """

    group: SignGroup
    numbers: Array
    signs: Array
    orders: Array

    @cached_property
    def combinations(self) -> tuple[csr_matrix, ...]:
        """For every character the orthonormal combinations (N_χ, N) of features that belong to it."""
        first = np.flatnonzero(self.numbers.min(axis=0) == np.arange(self.numbers.shape[1]))
        first = first[np.argsort(self.orders[first], kind="stable")]
        columns, rows = self.numbers[:, first], np.broadcast_to(np.arange(len(first)), (self.group.order, len(first)))
        combinations = []
        for character in self.group.characters:
            values = character[:, None] * self.signs[:, first]
            shape = (len(first), self.numbers.shape[1])
            matrix = csr_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=shape)
            sizes = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
            own = np.flatnonzero(sizes > 0)  # sums of ±1: those of other characters vanish exactly
            combinations.append(csr_matrix(diags(1 / sizes[own]) @ matrix[own]))
        return tuple(combinations)


@dataclass(frozen=True, eq=False)
class SymmetricLeastSquares(Minimiser):
    """The minimiser over all features, from one problem for each character; combinations : of the features of each."""

    combinations: tuple[csr_matrix, ...]
    blocks: tuple[LeastSquares, ...]

    @cached_property
    def coefficients(self) -> Array:
        """(N,)."""
        parts = [own.T @ block.coefficients for own, block in zip(self.combinations, self.blocks, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    @property
    def gains(self) -> tuple[ColumnGains, ...]:
        """The part of the data that columns explain, by blocks; a combination has the number of its first feature."""
        pairs = zip(self.combinations, self.blocks, strict=True)
        return tuple(block.gains_of(own.indices[own.indptr[:-1]]) for own, block in pairs)

    @property
    def rank(self) -> int:
        return sum(block.rank for block in self.blocks)

    def responses(self, interior: Array) -> Array:
        """The gain (N, K) of boundary errors inside, as in ``LeastSquares.responses``."""
        pairs = zip(self.combinations, self.blocks, strict=True)
        return np.concatenate([block.responses((own @ interior.T).T) for own, block in pairs])

    def deviation(self, responses: Array) -> float:
        """The standard deviation inside for a unit of boundary error; the images of a point are one sample."""
        ends = np.cumsum([own.shape[0] for own in self.combinations])[:-1]
        return sampling_deviation(list(zip(self.blocks, np.split(responses, ends), strict=True)))


@dataclass(frozen=True, eq=False)
class SymmetricRows:
    """Rows of the conditions at all images of M points: matrix (M, N) at the points themselves, rhs (G, M) at all
    images, weights (M,), which are not applied."""

    matrix: Array
    rhs: Array
    weights: Array
    orbits: FeatureOrbits

    @property
    def count(self) -> int:
        return int(self.rhs.size)

    @property
    def data(self) -> float:
        """The L² norm of the right-hand side."""
        return float(np.linalg.norm(self.rhs * self.weights))

    def solved(self, accuracy: float = 0.0) -> SymmetricLeastSquares:
        """The minimiser of the weighted residual, by orthogonal factorisations; no accuracy is needed."""
        group, blocks = self.orbits.group, []
        root = float(np.sqrt(group.order))
        for character, own in zip(group.characters, self.orbits.combinations, strict=True):
            checkpoint()
            columns = (own @ self.matrix.T).T
            columns *= root * self.weights[:, None]
            blocks.append(least_squares(columns, (character @ self.rhs) * self.weights / root))
        return SymmetricLeastSquares(self.orbits.combinations, tuple(blocks))
