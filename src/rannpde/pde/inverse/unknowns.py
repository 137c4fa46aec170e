"""All unknowns as one vector: numbers, and the weights of unknown functions in random bases ordered by roughness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import factorial, prod

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import eigh

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.pde.cells.basis.basis import BasisSample, Cell
from rannpde.pde.cells.basis.quadrature import gauss_grid
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import Formula
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import Unknown, UnknownFunction
from rannpde.pde.statement.expression import Jet
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import HALF_DIGITS

DEGREES = (20, 14, 7)
"""Degrees of unknown functions of one, two and three coordinates: more than data determine; the prior does the rest."""
DEFAULT_ORDER = 2
"""Order of the derivatives by which basis functions are sorted, where the smoothness is not stated."""
EXTRA_DEGREE = 10
"""Chebyshev polynomials beyond the degree, with which they represent the random layer to rounding."""
POLYNOMIAL_ROUGHNESS = HALF_DIGITS
"""Roughness, relative to the largest, below which a function counts as a polynomial that is not penalised."""
CUTOFF = 1e-13
"""Relative singular value below which functions are left out: priors penalise their derivatives, which are rounding."""


@dataclass(frozen=True, eq=False)
class FunctionBasis:
    """guess + Σ c_k φ_k on the box of some coordinates, φ_k orthonormal there, the smooth ones first.

    A random layer of cosines and sines, made orthonormal, then turned so that ∫ |∂^s f|² = Σ roughness_k c_k² (in
    coordinates scaled to [-1, 1]).
    """

    unknown: UnknownFunction
    cell: Cell
    turn: Array
    roughness: Array
    _seminorms: dict[int, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def guess(self) -> Formula:
        return self.unknown.formula

    @classmethod
    def sample(cls, unknown: UnknownFunction, bounds: Array, rng: np.random.Generator) -> FunctionBasis:
        dim = len(bounds)
        degree = unknown.degree or DEGREES[dim - 1]
        sample = BasisSample.sample(dim, degree, CellsTuning(singular_value_cutoff=CUTOFF), rng)
        nodes, weights = sample.grid
        middle, half = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
        cell = Cell(sample, bounds, middle + half * nodes, weights, sample.transform, uncut=True)
        rough = np.zeros((cell.functions, cell.functions))
        for index, share in _derivatives(unknown.smoothness or DEFAULT_ORDER, dim):
            table = sample.table(index) * np.sqrt(weights)[:, None]
            rough += share * (table.T @ table)
        roughness, turn = eigh(rough)
        count = min(_polynomials(dim, degree), len(roughness))  # the other functions of the layer are rough
        roughness = np.where(roughness > POLYNOMIAL_ROUGHNESS * roughness[count - 1], roughness, 0.0)
        return cls(unknown, cell, turn[:, :count], roughness[:count])

    @property
    def count(self) -> int:
        return len(self.roughness)

    @property
    def order(self) -> int:
        """The order of the derivatives that ``roughness`` measures."""
        return self.unknown.smoothness or DEFAULT_ORDER

    def polynomials(self, degree: int) -> int:
        """The dimension of the polynomials up to that degree."""
        return _polynomials(len(self.cell.bounds), degree)

    def seminorm(self, order: int) -> Array:
        """Rows (count, count) with |rows · c|² = ∫ |∂^order f|², in coordinates scaled to [-1, 1]; cached.

        By QR of the derivatives themselves: in the Gram matrix those of low degree would be lost beside the roughest.
        """
        if order not in self._seminorms:
            nodes, weights = gauss_grid(self.cell.bounds, len(self.series))
            blocks = [
                np.sqrt(share * weights)[:, None] * self.table(nodes, index) / self.cell.factor(index)
                for index, share in _derivatives(order, len(self.cell.bounds))
            ]
            self._seminorms[order] = np.linalg.qr(np.concatenate(blocks), mode="r")  # type: ignore[assignment]
        return self._seminorms[order]

    @cached_property
    def series(self) -> Array:
        """The functions as Chebyshev series on the box, (K, …, K, count).

        They are cheaper than the random layer, and free of its cancellation, which would make rough functions noisy.
        """
        size, dim = self.cell.basis.degree + EXTRA_DEGREE, len(self.cell.bounds)
        nodes = chebyshev.chebpts1(size)
        points = self.cell.bounds.mean(axis=1) + self.cell.halfwidth * combinations([nodes] * dim)
        values = self.cell.at(points, [(0,) * dim])[(0,) * dim] @ self.turn
        coefficients, back = values.reshape(*(size,) * dim, -1), np.linalg.inv(chebyshev.chebvander(nodes, size - 1))
        for axis in range(dim):
            coefficients = np.moveaxis(np.tensordot(back, coefficients, (1, axis)), 0, axis)
        return coefficients

    def waves(self, points: Array, index: MultiIndex) -> list[Array]:
        """∂^index of the Chebyshev polynomials of each coordinate at points (M, k): (M, K) each."""
        size, polynomials = len(self.series), []
        scaled = (points - self.cell.bounds.mean(axis=1)) / self.cell.halfwidth
        for x, order, half in zip(scaled.T, index, self.cell.halfwidth, strict=True):
            lower = chebyshev.chebder(np.eye(size), order, scl=1.0 / half)
            polynomials.append(chebyshev.chebvander(x, len(lower) - 1) @ lower)
        return polynomials

    def table(self, points: Array, index: MultiIndex) -> Array:
        """∂^index φ_k at points (M, k) of its coordinates: (M, count)."""
        products = np.ones((len(points), 1))
        for waves in self.waves(points, index):
            products = (products[:, :, None] * waves[:, None, :]).reshape(len(points), -1)
        return products @ self.series.reshape(-1, self.count)

    def function(self, weights: Array) -> Expanded:
        """The function with these weights (count,)."""
        return Expanded(self, weights)


def _derivatives(order: int, dim: int) -> Iterator[tuple[MultiIndex, float]]:
    """Every derivative of that order, with the number of times that it stands in |∂^order f|²."""
    for index in product(range(order + 1), repeat=dim):
        if sum(index) == order:
            yield index, factorial(order) / prod(map(factorial, index))


def _polynomials(dim: int, degree: int) -> int:
    """The dimension of the polynomials up to that degree."""
    return prod(degree + k for k in range(1, dim + 1)) // factorial(dim)


@dataclass(frozen=True, eq=False)
class Expanded:
    """A function of points (M, k) with derivatives: the guess and a sum of basis functions."""

    basis: FunctionBasis
    weights: Array
    _last: dict[MultiIndex, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * points.shape[1])

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Values (M,); cached, since time integration asks for the same points again and again, and repeated points are
        evaluated once."""
        fresh = np.append(True, (np.diff(points, axis=0) != 0).any(axis=1)) if len(points) else np.ones(0, dtype=bool)
        apart = points[fresh]
        before = self._last.get(derivative)
        if before is None or not np.array_equal(before[0], apart):
            before = self._last[derivative] = apart, self._values(apart, derivative)
        return before[1][np.cumsum(fresh) - 1]

    def _values(self, points: Array, derivative: MultiIndex) -> Array:
        first, *rest = self.basis.waves(points, derivative)
        own = np.tensordot(first, self.basis.series @ self.weights, 1)
        for waves in rest:
            own = np.einsum("mk,mk...->m...", waves, own)
        return self.basis.guess.derivative(points, derivative) + own


class Unknowns:
    """The vector of all unknowns of a problem: their slices, guesses and bounds.

    names : names of the numbers and functions, in order; bases : function → basis
    """

    def __init__(
        self, problem: Problem, rng: np.random.Generator, known: Mapping[str, FunctionBasis] | None = None
    ) -> None:
        """known : bases of functions that are not to be sampled"""
        self.coordinates, self.unknown = tuple(problem.domain.names), problem.unknown
        self.names = tuple(problem.unknown)
        self.bases: dict[str, FunctionBasis] = {}
        self.slices: dict[str, slice] = {}
        start = 0
        for name, one in problem.unknown.items():
            if isinstance(one, UnknownFunction):
                bounds = problem.domain.bounds[[self.coordinates.index(c) for c in one.of]]
                self.bases[name] = known[name] if known else FunctionBasis.sample(one, bounds, rng)
            size = self.bases[name].count if name in self.bases else 1
            self.slices[name] = slice(start, start + size)
            start += size
        self.count = start

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.bases)

    @cached_property
    def guess(self) -> Array:
        """(p,): the guesses of numbers, and zeros for the weights of functions, to which their guess is added."""
        return np.concatenate(
            [np.atleast_1d(float(one.guess)) if isinstance(one, Unknown) else np.zeros(self.bases[name].count)
             for name, one in self.unknown.items()]
        )  # fmt: skip

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper bounds (p,), of numbers."""
        lower, upper = np.full(self.count, -np.inf), np.full(self.count, np.inf)
        for name in self.numbers:
            lower[self.slices[name]], upper[self.slices[name]] = self.unknown[name].limits
        return lower, upper

    def values(self, vector: Array) -> dict[str, float | Expanded]:
        """Name → number or function, for ``Problem.at``."""
        return {
            name: self.bases[name].function(vector[part]) if name in self.bases else float(vector[part][0])
            for name, part in self.slices.items()
        }

    def table(self, jet: Jet, points: Array) -> Array:
        """∂^index of an unknown at points (M, n), by its part of the vector: (M, size); ones for a number itself."""
        if jet.field not in self.bases:
            return np.full((len(points), 1), 0.0 if jet.order else 1.0)
        chosen = [self.coordinates.index(c) for c in self.unknown[jet.field].of]
        return self.bases[jet.field].table(points[:, chosen], tuple(jet.index[k] for k in chosen))

    def value(self, jet: Jet, points: Array, vector: Array) -> Array:
        """∂^index of an unknown at points (M, n): (M,)."""
        own = self.values(vector)[jet.field]
        if isinstance(own, float):
            return np.full(len(points), 0.0 if jet.order else own)
        chosen = [self.coordinates.index(c) for c in self.unknown[jet.field].of]
        return own.derivative(points[:, chosen], tuple(jet.index[k] for k in chosen))

    def step_to_bounds(self, name: str, points: Array, vector: Array, step: Array) -> float:
        """The largest share of a step after which an unknown function is still between its bounds at the points."""
        lower, upper = self.unknown[name].limits
        plain = Jet(name, (0,) * len(self.coordinates))
        now, change = self.value(plain, points, vector), self.table(plain, points) @ step[self.slices[name]]
        with np.errstate(divide="ignore", invalid="ignore"):
            rooms = np.where(change < 0, (lower - now) / change, np.where(change > 0, (upper - now) / change, np.inf))
        return float(np.clip((1 - MUCH_SMALLER) * np.nanmin(rooms), 0.0, 1.0))
