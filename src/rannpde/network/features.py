"""The frozen hidden layer: columns that are ridge functions, and the design matrix of any partial derivative.

Every column is a function of w·s, where s = (z - centre) / halfwidth are the scaled inputs (s = z by default, as in
the paper). A partial derivative of multi-index α is therefore one evaluation of a higher derivative of the profile
times a factor a column:

    ∂^α column_j(z) = ridge(z, |α|)_j · factor(α)_j,        factor(α)_j = Π_l (w_lj / halfwidth_l)^α_l .

Solvers that need many derivatives at the same points evaluate ``ridge`` once for each order and combine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Protocol

import numpy as np

from rannpde.errors import finite_array, finite_points, positive_integer, positive_number, reject, require
from rannpde.network.activations import Activation, as_activation
from rannpde.network.kernels import REDUCTION_LIMIT, cosine_sine_block
from rannpde.network.laws import Rng, WeightLaw

Array = np.ndarray
MultiIndex = tuple[int, ...]


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


@dataclass(frozen=True, eq=False)
class RandomFeatures:
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
        _check_layer(self, self.biases, "biases")

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
        weights, biases = law.sample(rng, positive_integer("width", width), len(centre))
        return cls(weights, biases, as_activation(activation), centre, halfwidth, constant)

    @property
    def dim(self) -> int:
        return self.weights.shape[0]

    @property
    def width(self) -> int:
        return self.weights.shape[1]

    @property
    def columns(self) -> int:
        return self.width + self.constant

    def __call__(self, points: Array, derivative: Sequence[int] | None = None, out: Array | None = None) -> Array:
        return _design_matrix(self, points, derivative, out)

    def ridge(self, points: Array, order: int, out: Array | None = None) -> Array:
        out = _output(points, self.columns, out)
        phase = _scaled(self, points) @ self.weights
        phase += self.biases
        out[:, : self.width] = self.activation(phase, order)
        return _fill_constant(self, order, out)

    def factor(self, derivative: Sequence[int]) -> Array:
        return _chain_rule(self, derivative, copies=1)


@dataclass(frozen=True, eq=False)
class FourierFeatures:
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
        _check_layer(self, self.phases, "phases")

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
    def dim(self) -> int:
        return self.weights.shape[0]

    @property
    def width(self) -> int:
        return self.weights.shape[1]

    @property
    def columns(self) -> int:
        return 2 * self.width + self.constant

    def __call__(self, points: Array, derivative: Sequence[int] | None = None, out: Array | None = None) -> Array:
        return _design_matrix(self, points, derivative, out)

    def ridge(self, points: Array, order: int, out: Array | None = None) -> Array:
        out = _output(points, self.columns, out)
        scaled, phases = _scaled(self, points), self.phases
        reach = np.abs(scaled).max(axis=0, initial=0.0) @ np.abs(self.weights).max(axis=1, initial=0.0)
        if reach + 2 * pi < REDUCTION_LIMIT:
            cosine_sine_block(scaled, self.weights, phases, 1 / sqrt(self.width), float(order % 4), out)
        else:
            phase = scaled @ self.weights + (phases + 0.5 * pi * (order % 4))
            out[:, : self.width] = np.cos(phase) / sqrt(self.width)
            out[:, self.width : 2 * self.width] = np.sin(phase) / sqrt(self.width)
        return _fill_constant(self, order, out)

    def factor(self, derivative: Sequence[int]) -> Array:
        return _chain_rule(self, derivative, copies=2)


# ------------------------------------------------------------------------------- shared by both kinds of layer


def multi_index(derivative: Sequence[int] | None, dim: int) -> MultiIndex:
    """derivative as a tuple of dim whole numbers ≥ 0; None is the function itself."""
    if derivative is None:
        return (0,) * dim
    index = tuple(derivative)
    whole = all(isinstance(k, (int, np.integer)) and k >= 0 for k in index)
    example = (1,) + (0,) * (dim - 1)
    remedy = f"one order a coordinate, e.g. {example} for the first derivative in the first coordinate"
    require(len(index) == dim and whole, "derivative", index, f"a tuple of {dim} whole numbers ≥ 0", remedy)
    return tuple(int(k) for k in index)


def _design_matrix(features: Any, points: Array, derivative: Sequence[int] | None, out: Array | None) -> Array:
    points = finite_points("points", points, features.dim)
    index = multi_index(derivative, features.dim)
    out = features.ridge(points, sum(index), out)
    if any(index):
        out *= features.factor(index)
    return out


def _chain_rule(layer: Any, derivative: Sequence[int], copies: int) -> Array:
    index = np.array(multi_index(derivative, layer.dim))
    factor = np.tile(np.prod((layer.weights / layer.halfwidth[:, None]) ** index[:, None], axis=0), copies)
    return np.append(factor, 1.0) if layer.constant else factor


def _scaled(layer: Any, points: Array) -> Array:
    if not layer.centre.any() and (layer.halfwidth == 1.0).all():
        return np.ascontiguousarray(points, dtype=float)
    return (points - layer.centre) / layer.halfwidth


def _fill_constant(layer: Any, order: int, out: Array) -> Array:
    if layer.constant:
        out[:, -1] = 0.0 if order else 1.0
    return out


def _output(points: Array, columns: int, out: Array | None) -> Array:
    if out is None:
        return np.empty((len(points), columns))
    if out.shape != (len(points), columns):
        reject("out with shape", out.shape, f"of shape {(len(points), columns)}")
    return out


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


def _check_layer(layer: Any, biases: Array, name: str) -> None:
    """Shapes that fit together and finite numbers: a layer is also built from files."""
    weights = finite_array("weights", layer.weights, 2)
    dim, width = weights.shape
    require(dim >= 1 and width >= 1, "weights with shape", weights.shape, "at least 1 × 1")
    for argument, array, length in (
        (name, biases, width),
        ("centre", layer.centre, dim),
        ("halfwidth", layer.halfwidth, dim),
    ):
        array = finite_array(argument, array, 1)
        require(len(array) == length, f"{argument} with shape", array.shape, f"of shape ({length},)")
    require(bool((np.asarray(layer.halfwidth) > 0).all()), "halfwidth", layer.halfwidth, "positive in every coordinate")
