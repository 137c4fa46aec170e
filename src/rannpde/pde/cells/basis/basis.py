"""Basis functions of a cell: random cosines and sines on its box, orthonormal on its points.

Frequencies are sampled in [-scale, scale]^n, the same for all cells of an iteration. On [-1, 1]^n their cosines and
sines span nearly the polynomials of a degree. They are nearly linearly dependent; their singular functions on the
cell's points are not, and those with singular values at the level of rounding are left out. Cells that the boundary
does not cut share one such basis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, pi, sqrt

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.network.features import FourierFeatures
from rannpde.pde.cells.basis.quadrature import gauss_grid
from rannpde.pde.cells.tuning import CellsTuning


@dataclass(frozen=True, eq=False)
class BasisSample:
    """The hidden layer of one iteration, on [-1, 1]^n, and the tables that uncut cells share.

    degree : the polynomial degree whose approximation power the functions of a cell are chosen to match
    """

    features: FourierFeatures
    degree: int
    tuning: CellsTuning
    _tables: dict[MultiIndex, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def sample(cls, dim: int, degree: int, tuning: CellsTuning, rng: np.random.Generator) -> BasisSample:
        """Sample frequencies uniformly in a cube, and phases uniformly."""
        count = round(0.5 * tuning.columns_per_polynomial * comb(degree + dim, dim)) + 1
        spread = tuning.variation[0]
        scale = tuning.frequency_per_degree[dim - 1] * degree * rng.uniform(1 - spread, 1 + spread)
        weights, phases = rng.uniform(-scale, scale, (dim, count)), rng.uniform(0.0, 2 * pi, count)
        return cls(FourierFeatures(weights, phases, np.zeros(dim), np.ones(dim)), degree, tuning)

    @property
    def dim(self) -> int:
        return self.features.dim

    @property
    def nodes(self) -> int:
        """Number of quadrature nodes along an axis of a cell."""
        return self.degree + self.tuning.extra_nodes

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Quadrature points (M, n) and weights (M,), sum 1, of the reference box."""
        return gauss_grid(np.array([(-1.0, 1.0)] * self.dim), self.nodes)

    @cached_property
    def transform(self) -> Array:
        """Output weights (columns, functions) of the basis on an uncut cell."""
        return self.orthonormal(*self.grid)

    def orthonormal(self, points: Array, weights: Array) -> Array:
        """Return output weights (columns, r) of functions that are orthonormal on scaled points with weights of sum 1.

        The first function is 1, and the others have zero mean. A field that is almost constant, for instance where its
        diffusion is a million times larger than next to it, then has derivatives with full relative accuracy.
        """
        columns = fourier_columns(self.features, points)[:, :-1] / sqrt(self.features.width)
        _, values, rows = np.linalg.svd((columns - weights @ columns) * np.sqrt(weights)[:, None], full_matrices=False)
        # absolute: the largest singular value is about 1
        rank = int((values > self.tuning.singular_value_cutoff).sum())
        transform = np.zeros((self.features.columns, rank + 1))
        transform[-1, 0] = 1.0
        transform[:-1, 1:] = (rows[:rank] / values[:rank, None]).T
        transform[-1, 1:] = -weights @ (columns @ transform[:-1, 1:])
        return transform

    def table(self, index: MultiIndex) -> Array:
        """Return ∂^index of the functions of an uncut cell at the grid, (M, functions), in scaled coordinates."""
        if index not in self._tables:
            self._tables[index] = fourier_columns(self.features, self.grid[0]) @ derivative_weights(
                self.features, index, self.transform
            )
        return self._tables[index]


@dataclass(frozen=True, eq=False)
class Cell:
    """A box (n, 2), quadrature points (M, n) of the domain in it with weights (M,), sum 1, and its basis functions.

    transform : output weights (columns, functions) of the functions; uncut : whether the box lies in the domain
    """

    basis: BasisSample
    bounds: Array
    points: Array
    weights: Array
    transform: Array
    uncut: bool

    @property
    def functions(self) -> int:
        return int(self.transform.shape[1])

    @cached_property
    def halfwidth(self) -> Array:
        return 0.5 * (self.bounds[:, 1] - self.bounds[:, 0])

    def factor(self, index: MultiIndex) -> float:
        """Return the factor from a derivative in scaled coordinates to the one in physical coordinates."""
        return float(np.prod(self.halfwidth ** -np.array(index, dtype=float)))

    def tables(self, indices: Iterable[MultiIndex]) -> Mapping[MultiIndex, Array]:
        """Return ∂^index of the functions at the cell's own points, each (M, functions)."""
        return SharedTables(self, tuple(indices)) if self.uncut else self.at(self.points, indices)

    def at(self, points: Array, indices: Iterable[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return ∂^index of the functions at points (P, n), each (P, functions)."""
        columns = self.fourier_columns(points)
        return {index: columns @ self.outputs(index) for index in indices}

    def fourier_columns(self, points: Array) -> Array:
        """Return the cosines, sines and 1 of which all derivatives are linear combinations, (P, columns)."""
        return fourier_columns(self.basis.features, (points - self.bounds.mean(axis=1)) / self.halfwidth)

    def outputs(self, index: MultiIndex) -> Array:
        """Return the weights (columns, functions) of ``fourier_columns`` that give ∂^index of the functions."""
        return derivative_weights(self.basis.features, index, self.transform) * self.factor(index)


@dataclass(frozen=True, eq=False)
class SharedTables(Mapping[MultiIndex, Array]):
    """The tables of an uncut cell, computed on request from those that all uncut cells share.

    In three dimensions the tables of one cell take megabytes, and there are hundreds of cells.
    """

    cell: Cell
    indices: tuple[MultiIndex, ...]

    def __getitem__(self, index: MultiIndex) -> Array:
        return self.cell.basis.table(index) * self.cell.factor(index)

    def __iter__(self) -> Iterator[MultiIndex]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


def fourier_columns(features: FourierFeatures, scaled: Array) -> Array:
    """Return cos and sin of all phases, and 1, (P, columns): every derivative is a linear combination of them."""
    phase = scaled @ features.weights + features.phases
    return np.concatenate([np.cos(phase), np.sin(phase), np.ones((len(phase), 1))], axis=1)


def derivative_weights(features: FourierFeatures, index: MultiIndex, transform: Array) -> Array:
    """Return the weights (columns, r) of ``fourier_columns`` that give ∂^index of functions with weights ``transform``.

    >>> layer = FourierFeatures.sample(width=3, dim=2, scale=1.0, rng=0)
    >>> points, outputs = np.array([[0.1, 0.2]]), np.ones((7, 1))
    >>> derivative = fourier_columns(layer, points) @ derivative_weights(layer, (1, 2), outputs)
    >>> bool(np.allclose(derivative, layer(points, (1, 2)) @ outputs))
    True
    """
    width, order = features.width, sum(index)
    factor = features.factor(index)[:, None] / sqrt(width)
    cosine, sine = (factor[k : k + width] * transform[k : k + width] for k in (0, width))
    constant = np.zeros_like(transform[-1:]) if order else transform[-1:]
    turns = ((cosine, sine), (sine, -cosine), (-cosine, -sine), (-sine, cosine))
    return np.concatenate([*turns[order % 4], constant])
