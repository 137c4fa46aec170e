"""The frozen hidden layer: columns that are ridge functions, and the design matrix of any partial derivative.

Every column is a function of w·s, where s = (z - centre) / halfwidth are the scaled inputs (s = z by default, as in
the paper). A partial derivative of multi-index α is therefore one evaluation of a higher derivative of the profile
times one factor per column:

    ∂^α column_j(z) = ridge(z, |α|)_j · factor(α)_j,        factor(α)_j = Π_l (w_lj / halfwidth_l)^α_l .

Solvers that need many derivatives at the same points evaluate ``ridge`` once for each order and combine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex, Rng
from rannpde.errors import finite_array, finite_points, positive_integer, positive_number, reject, require
from rannpde.network.activations import Activation, as_activation
from rannpde.network.laws import WeightLaw


class HasBounds(Protocol):
    """Anything with a bounding box, such as a domain."""

    @property
    def bounds(self) -> Array:
        """Lower and upper corner of each coordinate, shape (dim, 2)."""
        ...


class Features(Protocol):
    """A frozen hidden layer with ``columns`` outputs on R^dim."""

    @property
    def dim(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def constant(self) -> bool:
        """Whether the last column is the constant 1, which fits leave without penalty."""
        ...

    def __call__(self, points: Array, derivative: Sequence[int] | None = None, out: Array | None = None) -> Array:
        """Design matrix (M, columns) of that partial derivative at the points (M, dim)."""
        ...

    def ridge(self, points: Array, order: int, out: Array | None = None) -> Array:
        """(M, columns): the profile's derivative of that order, before the factor of the chain rule."""
        ...

    def factor(self, derivative: Sequence[int]) -> Array:
        """(columns,): the chain rule's factor Π_l (w_lj / halfwidth_l)^α_l."""
        ...


class ScaledLayer(ABC):
    """The base of all kinds of layers: scaled inputs (z - centre) / halfwidth, a constant column at the end."""

    centre: Array
    halfwidth: Array
    constant: bool

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of neurons."""

    @property
    def copies(self) -> int:
        """The number of columns of each neuron: blocks of ``width`` columns, one after the other."""
        return 1

    @property
    def dim(self) -> int:
        return len(self.centre)

    @property
    def columns(self) -> int:
        return self.copies * self.width + self.constant

    def _settle(self, dim: int, **lengths: int) -> None:
        """Vectors as float64 of these lengths, or refused: a layer is also built from files."""
        for name, length in {**lengths, "centre": dim, "halfwidth": dim}.items():
            array = finite_array(name, getattr(self, name), 1)
            require(array.shape == (length,), f"{name} with shape", array.shape, f"of shape ({length},)")
            object.__setattr__(self, name, array)
        require(bool((self.halfwidth > 0).all()), "halfwidth", self.halfwidth, "> 0 in every coordinate")
        require(isinstance(self.constant, bool | np.bool_), "constant", self.constant, "True or False")
        object.__setattr__(self, "constant", bool(self.constant))


class RidgeLayer(ScaledLayer):
    """Columns that are functions of w·s: the chain rule is one factor per column."""

    weights: Array

    @abstractmethod
    def _fill(self, scaled: Array, order: int, out: Array) -> None:
        """Write the profile's derivative of that order at the scaled points into the leading columns of out."""

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    @property
    def raw(self) -> bool:
        """Whether the coordinates enter as they are."""
        return not self.centre.any() and bool((self.halfwidth == 1.0).all())

    def __call__(self, points: Array, derivative: Sequence[int] | None = None, out: Array | None = None) -> Array:
        points = finite_points("points", points, self.dim)
        index = multi_index(derivative, self.dim)
        out = self.ridge(points, sum(index), out)
        if any(index):
            out *= self.factor(index)
        return out

    def ridge(self, points: Array, order: int, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((len(points), self.columns))
        elif out.shape != (len(points), self.columns):
            reject("out with shape", out.shape, f"of shape {(len(points), self.columns)}")
        scaled = np.ascontiguousarray(points, dtype=float) if self.raw else (points - self.centre) / self.halfwidth
        self._fill(scaled, order, out)
        if self.constant:
            out[:, -1] = 0.0 if order else 1.0
        return out

    def factor(self, derivative: Sequence[int]) -> Array:
        index = np.array(multi_index(derivative, self.dim))
        factor = np.tile(np.prod((self.weights / self.halfwidth[:, None]) ** index[:, None], axis=0), self.copies)
        return np.append(factor, 1.0) if self.constant else factor

    def _settle_ridges(self, phases: str) -> None:
        weights = finite_array("weights", self.weights, 2)
        dim, width = weights.shape
        require(dim >= 1 and width >= 1, "weights with shape", (dim, width), "at least 1 × 1")
        object.__setattr__(self, "weights", weights)
        self._settle(dim, **{phases: width})


@dataclass(frozen=True, eq=False, repr=False)
class RandomFeatures(RidgeLayer):
    """Columns σ(w_j·z + b_j), the random network of Definition 1, with an optional constant column at the end.

    weights (dim, width), biases (width,), centre and halfwidth (dim,): the inputs enter as (z - centre)/halfwidth.

    >>> from rannpde.network.laws import Gaussian
    >>> features = RandomFeatures.sample(width=3, dim=2, law=Gaussian(1.0), activation="tanh", rng=0)
    >>> features(np.zeros((4, 2)), derivative=(0, 2)).shape
    (4, 3)
    """

    weights: Array
    biases: Array
    activation: Activation
    centre: Array
    halfwidth: Array
    constant: bool = False

    def __post_init__(self) -> None:
        self._settle_ridges("biases")
        object.__setattr__(self, "activation", as_activation(self.activation))

    def __repr__(self) -> str:
        return f"<RandomFeatures: {self.width} × {self.activation.name} of {self.dim} coordinates>"

    @classmethod
    def sample(
        cls,
        *,
        width: int,
        dim: int | None = None,
        law: WeightLaw,
        activation: str | Activation = "tanh",
        rng: Rng = None,
        domain: HasBounds | None = None,
        constant: bool = False,
    ) -> RandomFeatures:
        """Draw the hidden layer from a law. With ``domain`` its box is mapped to [-1, 1]^dim before the weights act."""
        centre, halfwidth = _scaling(dim, domain)
        weights, biases = law.sample(positive_integer("width", width), len(centre), rng=rng)
        return cls(weights, biases, as_activation(activation), centre, halfwidth, constant)

    def _fill(self, scaled: Array, order: int, out: Array) -> None:
        phase = scaled @ self.weights
        phase += self.biases
        out[:, : self.width] = self.activation(phase, order)


@dataclass(frozen=True, eq=False, repr=False)
class FourierFeatures(RidgeLayer):
    """Columns N^(-1/2) cos(w_j·z + b_j), N^(-1/2) sin(w_j·z + b_j), and 1 (appendix "Random Feature Neural Networks").

    weights (dim, width), phases (width,) in [0, 2π), centre and halfwidth (dim,) as for RandomFeatures.

    >>> features = FourierFeatures.sample(width=4, dim=2, scale=10.0, rng=0)
    >>> features(np.zeros((5, 2))).shape
    (5, 9)
    """

    weights: Array
    phases: Array
    centre: Array
    halfwidth: Array
    constant: bool = True

    def __post_init__(self) -> None:
        self._settle_ridges("phases")

    def __repr__(self) -> str:
        return f"<FourierFeatures: {self.width} × cos and sin of {self.dim} coordinates>"

    @classmethod
    def sample(
        cls,
        *,
        width: int,
        dim: int | None = None,
        scale: float,
        rng: Rng = None,
        domain: HasBounds | None = None,
        constant: bool = True,
    ) -> FourierFeatures:
        """Frequencies N(0, scale²) in every coordinate, phases uniform on [0, 2π)."""
        positive_number("scale", scale)
        centre, halfwidth = _scaling(dim, domain)
        width = positive_integer("width", width)
        rng = np.random.default_rng(rng)
        weights = scale * rng.standard_normal((len(centre), width))
        return cls(weights, rng.uniform(0.0, 2 * pi, width), centre, halfwidth, constant)

    @property
    def copies(self) -> int:
        return 2

    def _fill(self, scaled: Array, order: int, out: Array) -> None:
        from rannpde.network.kernels import REDUCTION_LIMIT, cosine_sine_block  # heavy: compiled by numba

        reach = np.abs(scaled).max(axis=0, initial=0.0) @ np.abs(self.weights).max(axis=1, initial=0.0)
        if reach + 2 * pi < REDUCTION_LIMIT:
            cosine_sine_block(scaled, self.weights, self.phases, 1 / sqrt(self.width), float(order % 4), out)
            return
        phase = scaled @ self.weights + (self.phases + 0.5 * pi * (order % 4))
        out[:, : self.width] = np.cos(phase) / sqrt(self.width)
        out[:, self.width : 2 * self.width] = np.sin(phase) / sqrt(self.width)


def multi_index(derivative: Sequence[int] | None, dim: int) -> MultiIndex:
    """derivative as a tuple of dim whole numbers ≥ 0; None is the function itself."""
    if derivative is None:
        return (0,) * dim
    index = tuple(derivative)
    whole = all(isinstance(k, (int, np.integer)) and k >= 0 for k in index)
    example = (1,) + (0,) * (dim - 1)
    remedy = f"one order per coordinate, e.g. {example} for the first derivative in the first coordinate"
    require(len(index) == dim and whole, "derivative", index, f"a tuple of {dim} whole numbers ≥ 0", remedy)
    return tuple(int(k) for k in index)


def _scaling(dim: int | None, domain: HasBounds | None) -> tuple[Array, Array]:
    """Centre and half-width of the inputs: 0 and 1 for raw coordinates, those of the box of the domain otherwise."""
    if domain is None:
        if dim is None:
            reject("dim", dim, "given when there is no domain", "pass dim=… or domain=…")
        dim = positive_integer("dim", dim)
        return np.zeros(dim), np.ones(dim)
    bounds = np.asarray(domain.bounds, dtype=float)
    require(dim in (None, len(bounds)), "dim", dim, f"{len(bounds)}, as the domain has", "leave dim out")
    return bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
