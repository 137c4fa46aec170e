"""Hidden layers whose neurons look at polynomials of the coordinates instead of linear functions.

A column is σ(p_j(s)) with s = (z - centre) / halfwidth and p_j(s) = b_j + Σ_m w_mj s^(e_m) over a fixed list of
monomials. Ridges are the case of degree one; with squares, neurons can be radial about any centre, which a solution in
many dimensions may need: exp(-|x|²) in five coordinates is one such neuron, and thousands of ridges. Derivatives are
Faà di Bruno's sum over the partitions of the axes of the derivative,

    ∂_{i_1} … ∂_{i_k} σ(p) = Σ_{partitions π} σ^(|π|)(p) Π_{B ∈ π} ∂_B p .
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import finite_array, finite_points, positive_integer, require
from rannpde.network.activations import Activation, as_activation
from rannpde.network.features import ScaledLayer, multi_index

Monomials = tuple[MultiIndex, ...]
"""The blocks of a partition, each as the multi-index of its axes."""


@dataclass(frozen=True, eq=False)
class PolynomialFeatures(ScaledLayer):
    """Columns σ(b_j + Σ_m w_mj s^(e_m)), and 1 at the end if ``constant``.

    exponents (monomials, dim), whole numbers; weights (monomials, width); biases (width,); centre and halfwidth (dim,)

    >>> from rannpde.network.activations import tanh
    >>> radial = PolynomialFeatures([[2, 0], [0, 2]], [[1.0], [1.0]], [0.0], tanh, np.zeros(2), np.ones(2))
    >>> points = np.array([[3.0, 4.0]])
    >>> bool(radial(points)[0, 0] == np.tanh(25.0)), radial(points, derivative=(1, 0)).shape
    (True, (1, 1))
    """

    exponents: Array
    weights: Array
    biases: Array
    activation: Activation
    centre: Array
    halfwidth: Array
    constant: bool = False

    def __post_init__(self) -> None:
        exponents = finite_array("exponents", self.exponents, 2)
        whole = bool((exponents == np.round(exponents)).all() and (exponents >= 0).all())
        require(whole and 0 not in exponents.shape, "exponents", exponents, "whole numbers ≥ 0, (monomials, dim)")
        weights = finite_array("weights", self.weights, 2)
        fitting = len(weights) == len(exponents) and weights.shape[1] > 0
        require(fitting, "weights with shape", weights.shape, f"of {len(exponents)} rows, one per monomial")
        object.__setattr__(self, "exponents", exponents.astype(int))
        object.__setattr__(self, "weights", weights)
        self._settle(exponents.shape[1], biases=weights.shape[1])
        object.__setattr__(self, "activation", as_activation(self.activation))

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    def __call__(self, points: Array, derivative: Sequence[int] | None = None) -> Array:
        """Design matrix (M, columns) of that partial derivative at the points (M, dim)."""
        return self.at(points).combine([multi_index(derivative, self.dim)], [np.asarray(1.0)])

    def at(self, points: Array) -> PolynomialJets:
        """All derivatives at fixed points (M, dim)."""
        return PolynomialJets(self, finite_points("points", points, self.dim), {})

    def inner(self, points: Array, derivative: Sequence[int]) -> Array:
        """∂^derivative p_j at the points, (M, width)."""
        index = np.array(multi_index(derivative, self.dim))
        values = monomials((points - self.centre) / self.halfwidth, self.exponents, index)
        alive = values.any(axis=0)
        polynomials: Array = values[:, alive] @ self.weights[alive] / np.prod(self.halfwidth**index)
        return polynomials if index.any() else polynomials + self.biases


@dataclass(frozen=True, eq=False)
class PolynomialJets:
    """The derivatives of all columns at fixed points; σ^(k)(p) is evaluated once for each order k, and kept."""

    features: PolynomialFeatures
    points: Array
    _profiles: dict[int, Array]

    def profile(self, order: int) -> Array:
        """σ^(order)(p_j) at the points, (M, width)."""
        if order not in self._profiles:
            if -1 not in self._profiles:
                self._profiles[-1] = self.features.inner(self.points, (0,) * self.features.dim)
            self._profiles[order] = self.features.activation(self._profiles[-1], order)
        return self._profiles[order]

    def columns(self, indices: Sequence[MultiIndex]) -> Iterator[tuple[MultiIndex, Array]]:
        """Each derivative with its design matrix (M, columns), one after the other."""
        for index in indices:
            yield index, self.combine([index], [np.asarray(1.0)])

    def combine(self, indices: Sequence[MultiIndex], partials: Sequence[Array]) -> Array:
        """Σ_α partial_α(z) ∂^α column_j(z), (M, columns); a partial is (M,) or a scalar."""
        features = self.features
        total = np.zeros((len(self.points), features.columns))
        inner: dict[int, Array] = {}  # order of σ → what stands before it
        for index, partial in zip(indices, partials, strict=True):
            share = partial[:, None] if partial.ndim else partial
            for blocks, count in partitions(index).items():
                product = np.asarray(count * share)
                for block, power in Counter(blocks).items():
                    product = product * features.inner(self.points, block) ** power
                order = len(blocks)
                inner[order] = inner[order] + product if order in inner else product
            if features.constant and not any(index):
                total[:, -1:] += share
        for order, before in inner.items():
            total[:, : features.width] += self.profile(order) * before
        return total


@cache
def partitions(index: MultiIndex) -> dict[Monomials, int]:
    """The partitions of the axes of a derivative, each with how often it occurs.

    >>> partitions((2,))
    {((1,), (1,)): 1, ((2,),): 1}
    """
    axes = [axis for axis, order in enumerate(index) for _ in range(order)]
    dim, counts = len(index), Counter[Monomials]()
    for partition in _set_partitions(axes):
        counts[tuple(sorted(tuple(block.count(axis) for axis in range(dim)) for block in partition))] += 1
    return dict(counts)


def _set_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    *rest, last = items
    for partition in _set_partitions(rest):
        yield [*partition, [last]]
        for position, block in enumerate(partition):
            yield [*partition[:position], [*block, last], *partition[position + 1 :]]


def monomials(points: Array, exponents: Array, derivative: Array | None = None) -> Array:
    """∂^derivative of s^(e_m) at the points (M, dim), (M, monomials)."""
    values = np.ones((len(points), len(exponents)))
    for axis in range(points.shape[1]):
        order = 0 if derivative is None else int(derivative[axis])
        powers = exponents[:, axis]
        for power in np.unique(powers):
            if power == order == 0:
                continue
            chosen = powers == power
            if power < order:
                values[:, chosen] = 0.0
                continue
            falling = float(np.prod(np.arange(power - order + 1, power + 1)))
            values[:, chosen] *= falling * points[:, axis : axis + 1] ** (power - order)
    return values


def exponents_up_to(dim: int, degree: int) -> Array:
    """The exponents of all monomials of degree 1 to ``degree``, (monomials, dim).

    >>> exponents_up_to(2, 2).tolist()
    [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    dim, degree = positive_integer("dim", dim), positive_integer("degree", degree)
    chosen = [axes for total in range(1, degree + 1) for axes in combinations_with_replacement(range(dim), total)]
    return np.array([[axes.count(axis) for axis in range(dim)] for axes in chosen])
