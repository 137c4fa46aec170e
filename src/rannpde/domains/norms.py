"""L², relative L² and mixed Sobolev norms of functions, networks and differences.

The norm of H^p_t H^q_x (Theorem 1) is taken as

    ‖u‖² = Σ_{l ≤ p} Σ_{|β| ≤ q} ‖∂_t^l D_x^β u‖²_{L²},

every multi-index β once. It is equivalent to the Fourier form ∫ |û|² (1 + s²)^p (1 + |ξ|²)^q of the appendix, and equal
to it up to the factor (2π)^n for p, q ≤ 1 on the whole space. Functions of several outputs have the product norm
‖(f, g)‖² = ‖f‖² + ‖g‖².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, Unpack

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.domains.quadrature.integrals import Estimate, Options, checked_region, integrate
from rannpde.domains.region import Region
from rannpde.errors import InputError, finite_array, finite_points, reject, require

RATIO_TOLERANCE = 1e-3
"""Relative accuracy of a relative error: more digits of an error are rarely worth their points."""


class Differentiable(Protocol):
    """A function with known derivatives, such as a Network."""

    def derivative(self, points: Array, derivative: MultiIndex, /) -> Array:
        """The partial derivative of that multi-index at the points (M, n): shape (M,) or (M, outputs)."""
        ...


Function = Differentiable | Mapping[MultiIndex, Callable[[Array], Any]] | Callable[[Array], Any]
"""A network or its like, a table of derivatives by multi-index, or a plain callable (the function alone)."""


@dataclass(frozen=True)
class Difference:
    """left - right, with all derivatives that both have.

    >>> square = {(0,): lambda z: z[:, 0] ** 2, (1,): lambda z: 2 * z[:, 0]}
    >>> Difference(square, np.sin).derivative(np.zeros((1, 1)), (0,)).tolist()
    [[0.0]]
    """

    left: Function
    right: Function

    def __call__(self, points: Array) -> Array:
        """Values (M, outputs)."""
        return self.derivative(points, (0,) * np.shape(points)[1])

    def derivative(self, points: Array, derivative: MultiIndex, /) -> Array:
        """The partial derivative of that multi-index, shape (M, outputs)."""
        left, right = (evaluate(function, points, tuple(derivative)) for function in (self.left, self.right))
        require(left.shape == right.shape, "shapes of the two functions' values", (left.shape, right.shape), "equal")
        return left - right


def evaluate(function: Function, points: Array, index: MultiIndex) -> Array:
    """∂^index function at the points (M, n), always of shape (M, outputs)."""
    if isinstance(function, Mapping):
        if index not in function:
            reject("derivatives", sorted(function), f"a table with {index}", "add it, or lower the orders of the norm")
        values = function[index](points)
    elif hasattr(function, "derivative"):
        values = function.derivative(points, index)
    elif not callable(function):
        reject(
            "function", type(function).__name__, "callable, a table of derivatives, or have .derivative(points, index)"
        )
    elif any(index):
        reject("function", "a plain callable", f"given with its derivative {index}", "pass {multi-index: callable}")
    else:
        values = function(points)
    return _column_values("values of the function", values, len(points))


def l2_norm(function: Function, region: Region, *, per_output: bool = False, **options: Unpack[Options]) -> Estimate:
    """(∫ |u|²)^(1/2) over a domain or a side, over all outputs together or for each of them.

    The options are those of ``integrate``.

    >>> from rannpde.domains import SpaceTime
    >>> norm = l2_norm(lambda z: np.sin(np.pi * z[:, 1]), SpaceTime(t=(0, 1), x=(0, 1)))
    >>> abs(float(norm) - 0.5**0.5) < 1e-14
    True
    """
    return _norm(function, region, [(0,) * checked_region(region).dim], per_output, options)


def sobolev_norm(
    function: Function,
    domain: Domain,
    *,
    time_order: int = 0,
    space_order: int = 0,
    per_output: bool = False,
    **options: Unpack[Options],
) -> Estimate:
    """The norm of H^p_t H^q_x, p = time_order and q = space_order, as defined at the top of this module.

    A domain without time has p = 0. The options are those of ``integrate``.

    >>> from rannpde.domains import Interval
    >>> wave = {(0,): lambda z: np.sin(z[:, 0]), (1,): lambda z: np.cos(z[:, 0])}
    >>> abs(float(sobolev_norm(wave, Interval(0, 2), space_order=1)) - 2**0.5) < 1e-14
    True
    """
    return _norm(function, domain, derivative_indices(domain, time_order, space_order), per_output, options)


def relative_l2(
    approximation: Function | Array,
    exact: Function | Array,
    where: Region | Array,
    *,
    per_output: bool = False,
    **options: Unpack[Options],
) -> Estimate:
    """‖approximation - exact‖ / ‖exact‖ in L² of a region, or at given points (M, n), where arrays of values do too.

    On a region the options are those of ``integrate``, but three digits are enough unless a tolerance is given. At
    points the ratio is that of root mean squares, and its error the standard error for independent uniform points.

    >>> points = np.linspace(0, 1, 5)[:, None]
    >>> round(float(relative_l2(1.1 * points, points, points)), 12)
    0.1
    """
    if isinstance(where, Region):
        return _relative_on_region(approximation, exact, where, per_output, options)
    require(not options, "options", sorted(options), "left out when points are given")
    points = finite_points("points", where, None)
    terms = [_at_points(name, f, points) for name, f in (("approximation", approximation), ("exact", exact))]
    wrong, size = _squares(terms[0], terms[1], per_output)
    ratio = wrong.mean(axis=0) / _nonzero(size.mean(axis=0))
    # Delta method: the ratio of two means has the variance of (wrong - ratio·size) / mean(size).
    spread = (wrong - ratio * size).std(axis=0) / np.sqrt(len(points)) / size.mean(axis=0)
    return _root(Estimate(ratio, spread, len(points), "points"), per_output)


def relative_errors(approximation: Array, exact: Array) -> Array:
    """|approximation - exact| / |exact| in l² of each column: (M, K) and (M, K) give (K,).

    Where the exact column is 0, it is the root mean square of the approximation.

    For values at given points, unchecked; ``relative_l2`` checks, and estimates the error of the number.

    >>> relative_errors(np.array([[1.0, 0.5], [1.0, 0.5]]), np.array([[2.0, 0.0], [2.0, 0.0]])).tolist()
    [0.5, 0.5]
    """
    norms = np.linalg.norm(exact, axis=0)
    errors: Array = np.linalg.norm(approximation - exact, axis=0) / np.where(norms > 0, norms, np.sqrt(len(exact)))
    return errors


def derivative_indices(domain: Domain, time_order: int, space_order: int) -> list[MultiIndex]:
    """The multi-indices of H^p_t H^q_x on that domain, each once."""
    require(
        isinstance(domain, Domain), "domain", type(domain).__name__, "a Box, Ball or SpaceTime", "sides have l2_norm"
    )
    timed = isinstance(domain, SpaceTime)
    for name, order in (("time_order", time_order), ("space_order", space_order)):
        require(isinstance(order, (int, np.integer)) and order >= 0, name, order, "a whole number ≥ 0")
    require(timed or time_order == 0, "time_order", time_order, "0 on a domain without time", "use a SpaceTime")
    space = [beta for beta in product(range(space_order + 1), repeat=domain.dim - timed) if sum(beta) <= space_order]
    return [(order, *beta) for order in range(time_order + 1) for beta in space] if timed else space


# --------------------------------------------------------------------------------------------------- internals


def _norm(
    function: Function, region: Region, indices: list[MultiIndex], per_output: bool, options: Options
) -> Estimate:
    def density(points: Array) -> Array:
        total: Array = np.sum([evaluate(function, points, index) ** 2 for index in indices], axis=0)
        return total if per_output else np.asarray(total.sum(axis=1))

    return _root(integrate(density, region, **options), per_output)


def _relative_on_region(approximation: Any, exact: Any, region: Region, per_output: bool, options: Options) -> Estimate:
    index = (0,) * region.dim

    def density(points: Array) -> Array:
        parts = _squares(evaluate(approximation, points, index), evaluate(exact, points, index), per_output)
        return np.concatenate(parts, axis=1)

    settings: Options = {"tolerance": RATIO_TOLERANCE}
    settings.update(options)
    both = integrate(density, region, **settings)
    wrong, size = np.split(np.asarray(both.value), 2)
    wrong_error, size_error = np.split(np.asarray(both.error), 2)
    ratio = wrong / _nonzero(size)
    return _root(Estimate(ratio, (wrong_error + ratio * size_error) / size, both.points, both.rule), per_output)


def _squares(approximation: Array, exact: Array, per_output: bool) -> tuple[Array, Array]:
    """Squared error and squared size at each point, (M, outputs) or summed to (M, 1)."""
    shapes = (approximation.shape, exact.shape)
    require(shapes[0] == shapes[1], "shapes of approximation and exact", shapes, "equal")
    wrong, size = (approximation - exact) ** 2, exact**2
    return (wrong, size) if per_output else (wrong.sum(axis=1, keepdims=True), size.sum(axis=1, keepdims=True))


def _at_points(name: str, function: Any, points: Array) -> Array:
    if isinstance(function, (np.ndarray, list, tuple)):
        return _column_values(name, function, len(points))
    return evaluate(function, points, (0,) * points.shape[1])


def _column_values(name: str, values: Any, count: int) -> Array:
    array = finite_array(name, values, (0, 1, 2))
    if array.ndim == 0:
        array = np.full(count, array)
    require(len(array) == count, f"number of {name}", len(array), f"{count}, one per point")
    return array.reshape(count, -1)


def _nonzero(size: Array) -> Array:
    if not np.all(size > 0):
        raise InputError("exact is 0 everywhere, so that no relative error exists; use l2_norm(Difference(…), …)")
    return size


def _root(square: Estimate, per_output: bool) -> Estimate:
    """The estimate of √I from I ± δ: the error √I - √(I - δ), which is the larger of both ways, and √δ when δ ≥ I."""
    value, error = np.sqrt(square.value), np.asarray(square.error)
    roots = np.sqrt(np.maximum(square.value, error)) + np.sqrt(np.maximum(square.value - error, 0.0))
    error = np.divide(error, roots, out=np.zeros_like(roots), where=roots > 0)
    if per_output:
        return Estimate(np.atleast_1d(value), np.atleast_1d(error), square.points, square.rule)
    return Estimate(np.asarray(value).item(), error.item(), square.points, square.rule)
