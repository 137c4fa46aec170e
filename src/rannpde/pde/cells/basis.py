"""Functions on one cell: random cosines and sines on its box, made orthonormal on its points.

A draw of frequencies in [-scale, scale]^n, the same for all cells of an iteration, spans on [-1, 1]^n about what
polynomials of a degree span. The columns are nearly dependent; their singular functions on the cell's points are not,
and those below rounding are left out. For whole boxes this is done once for all cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from math import comb, pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array, MultiIndex
from rannpde.network.features import FourierFeatures
from rannpde.pde.cells.tuning import CellsTuning


@dataclass(frozen=True, eq=False)
class Draw:
    """The hidden layer of one iteration, on [-1, 1]^n, and what whole boxes share.

    degree : of the polynomials that the functions of a cell stand comparison with
    """

    features: FourierFeatures
    degree: int
    tuning: CellsTuning
    _tables: dict[MultiIndex, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def sample(cls, dim: int, degree: int, tuning: CellsTuning, rng: np.random.Generator) -> Draw:
        """Frequencies uniform in a cube, phases uniform."""
        count = round(0.5 * tuning.columns * comb(degree + dim, dim)) + 1
        scale = tuning.frequency[dim - 1] * degree * rng.uniform(*tuning.spread)
        weights, phases = rng.uniform(-scale, scale, (dim, count)), rng.uniform(0.0, 2 * pi, count)
        return cls(FourierFeatures(weights, phases, np.zeros(dim), np.ones(dim)), degree, tuning)

    @property
    def dim(self) -> int:
        return self.features.dim

    @property
    def nodes(self) -> int:
        """Nodes along an axis of a cell."""
        return self.degree + self.tuning.more_nodes

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Points (M, n) and weights (M,), sum 1, of a whole box."""
        return gauss_grid(np.array([(-1.0, 1.0)] * self.dim), self.nodes)

    @cached_property
    def transform(self) -> Array:
        """(columns, functions): output weights of the functions on a whole box."""
        return self.orthonormal(*self.grid)

    def orthonormal(self, points: Array, weights: Array) -> Array:
        """Output weights (columns, r) of functions that are orthonormal on scaled points with weights (sum 1).

        The first is 1, and the others have the mean 0: a field that hardly varies, as where it diffuses a million times
        faster than beside, is then known with all digits of its derivatives.
        """
        columns = waves(self.features, points)[:, :-1] / sqrt(self.features.width)
        _, values, rows = np.linalg.svd((columns - weights @ columns) * np.sqrt(weights)[:, None], full_matrices=False)
        kept = int((values > self.tuning.cutoff).sum())  # beside 1, the size of the first
        found = np.zeros((self.features.columns, kept + 1))
        found[-1, 0] = 1.0
        found[:-1, 1:] = (rows[:kept] / values[:kept, None]).T
        found[-1, 1:] = -weights @ (columns @ found[:-1, 1:])
        return found

    def table(self, index: MultiIndex) -> Array:
        """∂^index of the functions of a whole box at the grid, (M, functions), in scaled coordinates."""
        if index not in self._tables:
            self._tables[index] = waves(self.features, self.grid[0]) @ turned(self.features, index, self.transform)
        return self._tables[index]


@dataclass(frozen=True, eq=False)
class Cell:
    """A box (n, 2), the points (M, n) of the domain in it with weights (M,), sum 1, and functions on it.

    transform (columns, functions); whole : whether the box lies in the domain
    """

    draw: Draw
    bounds: Array
    points: Array
    weights: Array
    transform: Array
    whole: bool

    @property
    def functions(self) -> int:
        return int(self.transform.shape[1])

    @cached_property
    def halfwidth(self) -> Array:
        return 0.5 * (self.bounds[:, 1] - self.bounds[:, 0])

    def factor(self, index: MultiIndex) -> float:
        """What a derivative in scaled coordinates is multiplied by."""
        return float(np.prod(self.halfwidth ** -np.array(index, dtype=float)))

    def tables(self, indices: Iterable[MultiIndex]) -> Mapping[MultiIndex, Array]:
        """∂^index of the functions at the cell's own points, each (M, functions)."""
        return Shared(self, tuple(indices)) if self.whole else self.at(self.points, indices)

    def at(self, points: Array, indices: Iterable[MultiIndex]) -> dict[MultiIndex, Array]:
        """∂^index of the functions at points (P, n), each (P, functions)."""
        found = self.waves(points)
        return {index: found @ self.outputs(index) for index in indices}

    def waves(self, points: Array) -> Array:
        """What every derivative of the functions is made of, (P, columns)."""
        return waves(self.draw.features, (points - self.bounds.mean(axis=1)) / self.halfwidth)

    def outputs(self, index: MultiIndex) -> Array:
        """Weights (columns, functions) of these that give ∂^index of the functions."""
        return turned(self.draw.features, index, self.transform) * self.factor(index)


@dataclass(frozen=True, eq=False)
class Shared(Mapping[MultiIndex, Array]):
    """The tables of a whole box, made of those that all whole boxes share when they are asked for.

    In space those of one cell fill megabytes, and there are hundreds of cells.
    """

    cell: Cell
    indices: tuple[MultiIndex, ...]

    def __getitem__(self, index: MultiIndex) -> Array:
        return self.cell.draw.table(index) * self.cell.factor(index)

    def __iter__(self) -> Iterator[MultiIndex]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


def waves(features: FourierFeatures, scaled: Array) -> Array:
    """cos and sin of all phases, and 1, (P, columns): every derivative of every column is made of these."""
    phase = scaled @ features.weights + features.phases
    return np.concatenate([np.cos(phase), np.sin(phase), np.ones((len(phase), 1))], axis=1)


def turned(features: FourierFeatures, index: MultiIndex, transform: Array) -> Array:
    """Weights (columns, r) of ``waves`` that give ∂^index of the functions with output weights ``transform``.

    >>> layer = FourierFeatures.sample(width=3, dim=2, scale=1.0, rng=0)
    >>> points, outputs = np.array([[0.1, 0.2]]), np.ones((7, 1))
    >>> bool(np.allclose(waves(layer, points) @ turned(layer, (1, 2), outputs), layer(points, (1, 2)) @ outputs))
    True
    """
    width, order = features.width, sum(index)
    factor = features.factor(index)[:, None] / sqrt(width)
    cosine, sine = (factor[k : k + width] * transform[k : k + width] for k in (0, width))
    constant = np.zeros_like(transform[-1:]) if order else transform[-1:]
    turns = ((cosine, sine), (sine, -cosine), (-cosine, -sine), (-sine, cosine))
    return np.concatenate([*turns[order % 4], constant])


def gauss_grid(bounds: Array, count: int) -> tuple[Array, Array]:
    """Nodes (count^k, n) of the product Gauss–Legendre rule of a box, k of whose n sides have length; weights, sum 1.

    >>> points, weights = gauss_grid(np.array([(0.0, 2.0), (1.0, 1.0)]), 3)
    >>> points.shape, round(float(weights @ points[:, 0] ** 4), 12)
    ((3, 2), 3.2)
    """
    nodes, weights = _gauss(count)
    axes, shares = [], []
    for lower, upper in bounds:
        flat = lower == upper
        axes.append(np.array([lower]) if flat else lower + 0.5 * (upper - lower) * (1 + nodes))
        shares.append(np.ones(1) if flat else 0.5 * weights)
    grid = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
    return grid, np.prod([part.ravel() for part in np.meshgrid(*shares, indexing="ij")], axis=0)


@lru_cache(maxsize=64)
def _gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1], which every cell and face asks for."""
    return leggauss(count)


def polynomials(points: Array, bounds: Array, degree: int) -> Array:
    """Products of Legendre polynomials of total degree at most ``degree`` on a flat box, (P, columns)."""
    free = [axis for axis, (lower, upper) in enumerate(bounds) if lower < upper]
    tables = [legvander((2 * points[:, a] - bounds[a].sum()) / (bounds[a, 1] - bounds[a, 0]), degree) for a in free]
    powers = [index for index in product(range(degree + 1), repeat=len(free)) if sum(index) <= degree]
    columns = [
        np.prod([table[:, k] for table, k in zip(tables, index, strict=True)], axis=0, initial=1.0) for index in powers
    ]
    return np.stack([np.broadcast_to(column, len(points)) for column in columns], axis=1)
