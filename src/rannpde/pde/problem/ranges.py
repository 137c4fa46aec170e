"""Ranges of parameters: what makes a problem a parametric family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, is_real, reject, require, suggestion
from rannpde.pde.statement.vocabulary import plain_parameters

SCALES = ("linear", "log")


@dataclass(frozen=True)
class Range:
    """All values of a parameter from lower to upper: ``Range(0.01, 0.1, scale="log")``.

    scale : "linear", or "log" for a parameter that varies over decades; the solutions are interpolated by polynomials
        in the parameter itself, or in its logarithm

    >>> Range(0.01, 1, scale="log").middle
    0.1
    """

    lower: float
    upper: float
    scale: str = "linear"

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            require(is_real(value) and bool(np.isfinite(value)), name, value, "a finite number")
            object.__setattr__(self, name, float(value))
        remedy = "give a single value as a number, parameters={…: 0.5}"
        require(self.lower < self.upper, "the range", (self.lower, self.upper), "(lower, upper), lower < upper", remedy)
        require(self.scale in SCALES, "scale", self.scale, '"linear" or "log"')
        if self.scale == "log":
            require(self.lower > 0, "lower", self.lower, "> 0 on a logarithmic scale", 'use scale="linear"')

    @property
    def middle(self) -> float:
        """The middle on its scale."""
        return float(np.clip(float(f"{self.value(0.0):.14g}"), self.lower, self.upper))

    def value(self, reduced: Any) -> Any:
        """The parameter at a reduced coordinate in [-1, 1], or at an array of them."""
        share = (np.asarray(reduced, dtype=float) + 1) / 2
        if self.scale == "log":
            value = np.exp((1 - share) * np.log(self.lower) + share * np.log(self.upper))
        else:
            value = (1 - share) * self.lower + share * self.upper
        value = np.clip(value, self.lower, self.upper)  # the ends are not left by rounding
        return float(value) if np.ndim(reduced) == 0 else value

    def reduced(self, value: Any) -> Array:
        """The reduced coordinate in [-1, 1] of a value of the parameter, or of an array of them."""
        value = np.asarray(value, dtype=float)
        if self.scale == "log":
            share = np.log(value / self.lower) / np.log(self.upper / self.lower)
        else:
            share = (value - self.lower) / (self.upper - self.lower)
        return np.asarray(np.clip(2 * share - 1, -1.0, 1.0))

    def slope(self, value: Any) -> Array:
        """The derivative of the reduced coordinate by the parameter."""
        if self.scale == "log":
            return np.asarray(2 / (np.asarray(value, dtype=float) * np.log(self.upper / self.lower)))
        return np.asarray(np.full(np.shape(value), 2 / (self.upper - self.lower)))

    def contains(self, value: Any) -> bool:
        """Whether all of the values lie in the range, up to rounding."""
        slack = 16 * np.finfo(float).eps * max(abs(self.lower), abs(self.upper))
        inside = (np.asarray(value) >= self.lower - slack) & (np.asarray(value) <= self.upper + slack)
        return bool(np.all(inside))


def stated_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as Python's own numbers, and ranges as they are."""
    require(isinstance(parameters, Mapping), "parameters", parameters, "a mapping of names to numbers")
    numbers = plain_parameters({name: value for name, value in parameters.items() if not isinstance(value, Range)})
    return {name: value if isinstance(value, Range) else numbers[name] for name, value in parameters.items()}


def parameter_values(ranges: Mapping[str, Range], values: Mapping[str, Any]) -> dict[str, float]:
    """One value for every range, in their order; an InputError for a missing, unknown or outlying one."""
    for name in values:
        if name not in ranges:
            raise InputError(f"{name!r} is no parameter with a range; {suggestion(name, ranges)}")
    checked: dict[str, float] = {}
    for name, one in ranges.items():
        if name not in values:
            raise InputError(f"the parameter {name!r} has no value; give {name}=… from {one.lower:g} to {one.upper:g}")
        value = values[name]
        require(is_real(value), name, value, "a number")
        if not one.contains(value):
            reject(name, value, f"from {one.lower:g} to {one.upper:g}", "solve again with a wider range")
        checked[name] = float(np.clip(value, one.lower, one.upper))
    return checked
