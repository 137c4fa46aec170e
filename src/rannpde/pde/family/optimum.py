"""Design: the values of the parameters at which a quantity is least or largest, by exact gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rannpde.arrays import Array
from rannpde.errors import choose, is_real, require
from rannpde.pde.family.estimate import judged_values
from rannpde.pde.family.polynomial import ParameterPolynomial

SEARCHES, SCANNED = 8, 4096
"""Searches by gradients, each from one of the best of the scanned values: polynomials have many minima."""


@dataclass(frozen=True)
class Optimum:
    """The optimum of a quantity.

    values : parameter → value; value : value of the quantity there; error : its estimated error
    gradient : parameter → derivative there; at_bound : parameters that end at a bound, where it need not vanish
    """

    values: Mapping[str, float]
    value: float
    error: float
    gradient: Mapping[str, float]
    at_bound: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value:.8g}" for name, value in self.values.items())
        held = f" ({', '.join(self.at_bound)} at a bound)" if self.at_bound else ""
        return f"{self.value:.8g} ± {self.error:.1e} at {where}{held}"


def optimise(
    polynomial: ParameterPolynomial, bounds: Mapping[str, Any], fixed: Mapping[str, Any], maximise: bool
) -> Optimum:
    """The least (or largest) value of a polynomial in the parameters, within bounds."""
    require(polynomial.values.ndim == 1, "the quantity", f"of shape {polynomial.values.shape[1:]}", "one number")
    require(isinstance(maximise, bool), "maximise", maximise, "True or False")
    lower, upper = _box(polynomial, bounds, fixed)
    sign = -1.0 if maximise else 1.0
    scale = float(np.ptp(polynomial.values)) or 1.0
    dim = len(lower)

    def objective(reduced: Array) -> tuple[float, Array]:
        rows = reduced[None]
        value = float(polynomial.grid.weights(rows)[0] @ polynomial.values)
        slopes = [polynomial.grid.weights(rows, tuple(int(k == j) for k in range(dim)))[0] for j in range(dim)]
        return sign * value / scale, sign * np.array(slopes) @ polynomial.values / scale

    scanned = lower + (upper - lower) * (judged_values(dim, SCANNED) + 1) / 2
    corners = np.array(np.meshgrid(*np.stack([lower, upper], axis=1), indexing="ij")).reshape(dim, -1).T[:256]
    scanned = np.concatenate([scanned, corners])
    order = np.argsort(sign * (polynomial.grid.weights(scanned) @ polynomial.values))[:SEARCHES]
    minima = [
        minimize(objective, scanned[k], jac=True, method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True)),
                 options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 500})
        for k in order
    ]  # fmt: skip
    best = np.clip(min(minima, key=lambda one: float(one.fun)).x, lower, upper)
    values = {name: one.value(float(y)) for (name, one), y in zip(polynomial.ranges.items(), best, strict=True)}
    slack = 1e-9
    at_bound = tuple(
        name for k, name in enumerate(polynomial.ranges)
        if lower[k] < upper[k] and (best[k] - lower[k] < slack or upper[k] - best[k] < slack)
    )  # fmt: skip
    return Optimum(values, float(polynomial(**values)), polynomial.error, polynomial.gradient(**values), at_bound)


def _box(polynomial: ParameterPolynomial, bounds: Mapping[str, Any], fixed: Mapping[str, Any]) -> tuple[Array, Array]:
    """Bounds of the reduced coordinates."""
    require(isinstance(bounds, Mapping), "bounds", bounds, "a mapping of parameters to (lower, upper)")
    require(isinstance(fixed, Mapping), "fixed", fixed, "a mapping of parameters to values")
    for name in (*bounds, *fixed):
        choose("the parameter", name, polynomial.ranges)
    for name in bounds:
        require(name not in fixed, f"bounds[{name!r}]", bounds[name], "left out", f"fixed[{name!r}] gives its value")
    lower, upper = -np.ones(len(polynomial.ranges)), np.ones(len(polynomial.ranges))
    for k, (name, one) in enumerate(polynomial.ranges.items()):
        if name in fixed:
            value = fixed[name]
            inside = is_real(value) and one.contains(value)
            require(inside, f"fixed[{name!r}]", value, f"from {one.lower:g} to {one.upper:g}")
            lower[k] = upper[k] = float(one.reduced(value))
        elif name in bounds:
            pair = bounds[name]
            listed = isinstance(pair, (tuple, list, np.ndarray)) and np.shape(pair) == (2,)
            ordered = listed and all(map(is_real, pair)) and pair[0] < pair[1]
            expected = f"(lower, upper) within the range from {one.lower:g} to {one.upper:g}"
            require(ordered and one.contains(pair), f"bounds[{name!r}]", pair, expected)
            lower[k], upper[k] = one.reduced(list(pair))
    return lower, upper
