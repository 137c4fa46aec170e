"""Quantities of interest: numbers computed from a solution, each with a bound of its error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, is_real


@dataclass(frozen=True, eq=False)
class Quantity:
    """A value, or an array of values, with a bound of its error. ``float(quantity)`` is its value.

    value : the number, or an array of numbers such as a time series
    bound : bound of |value - exact|, of the same shape; infinite where nothing is known
    converged : whether the solutions behind the bound converged, and the integrals too
    how : what the bound rests on, in words
    location : where an extremum is, as a row of coordinates; empty elsewhere
    times : times (N,) of a time series; None elsewhere

    Sums, differences, products and quotients carry their bounds with them, as if all errors had the worst signs:

    >>> print(Quantity(2.0, 1e-3) * Quantity(3.0, 1e-3))
    6.0000 ± 5.0e-03
    """

    value: float | Array
    bound: float | Array
    converged: bool = True
    how: str = ""
    location: tuple[float, ...] = ()
    times: Array | None = None

    def __float__(self) -> float:
        return float(np.asarray(self.value).item())

    def __len__(self) -> int:
        return len(np.asarray(self.value))

    @property
    def relative_bound(self) -> float | Array:
        """bound / |value|; infinite for a value of zero with an error."""
        return _same(_ratio(np.asarray(self.bound, dtype=float), np.abs(np.asarray(self.value, dtype=float))))

    def __str__(self) -> str:
        if np.ndim(self.value) == 0:
            text = with_bound(float(self.value), float(self.bound))
            return text + (f" at {_shown(self.location)}" if self.location else "")
        value, bound = np.asarray(self.value), np.asarray(self.bound)
        shown = [with_bound(float(v), float(b)) for v, b in zip(value.ravel()[:4], bound.ravel()[:4], strict=True)]
        return "[" + ", ".join(shown) + (f", … {value.size} values]" if value.size > 4 else "]")

    def __repr__(self) -> str:
        doubt = "" if self.converged else ", NOT CONVERGED"
        return f"{self}{doubt}" + (f" ({self.how})" if self.how else "")

    # ------------------------------------------------------------------------------------------------ arithmetic

    def __neg__(self) -> Quantity:
        return Quantity(-self.value, self.bound, self.converged, self.how, times=self.times)

    def __add__(self, other: Any) -> Quantity:
        other = _quantity(other)
        return self._with(other, self._v + other._v, self._b + other._b)

    def __sub__(self, other: Any) -> Quantity:
        other = _quantity(other)
        return self._with(other, self._v - other._v, self._b + other._b)

    def __mul__(self, other: Any) -> Quantity:
        other = _quantity(other)
        error = np.abs(self._v) * other._b + np.abs(other._v) * self._b + self._b * other._b
        return self._with(other, self._v * other._v, error)

    def __truediv__(self, other: Any) -> Quantity:
        other = _quantity(other)
        least = np.abs(other._v) - other._b
        with np.errstate(all="ignore"):
            value = self._v / other._v
            error = np.where(least > 0, (self._b + np.abs(value) * other._b) / least, np.inf)
        return self._with(other, value, error)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Quantity:
        return _quantity(other) - self

    def __rtruediv__(self, other: Any) -> Quantity:
        return _quantity(other) / self

    @property
    def _v(self) -> Array:
        return np.asarray(self.value, dtype=float)

    @property
    def _b(self) -> Array:
        return np.asarray(self.bound, dtype=float)

    def _with(self, other: Quantity, value: Array, bound: Array) -> Quantity:
        how = "; ".join(dict.fromkeys(part for part in (self.how, other.how) if part))
        times = self.times if self.times is not None else other.times
        return Quantity(_same(value), _same(bound), self.converged and other.converged, how, times=times)

    # ------------------------------------------------------------------------------------------------ files

    def to_table(self) -> dict[str, Any]:
        """The quantity as data that JSON can hold."""
        table: dict[str, Any] = {
            "value": _plain(self.value),
            "bound": _plain(self.bound),
            "converged": self.converged,
            "how": self.how,
            "location": list(self.location),
        }
        return table | ({} if self.times is None else {"times": self.times.tolist()})

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Quantity:
        """The inverse of ``to_table``."""
        times = np.asarray(table["times"], dtype=float) if "times" in table else None
        location = tuple(map(float, table["location"]))
        return cls(
            _read(table["value"]), _read(table["bound"]), bool(table["converged"]), str(table["how"]), location, times
        )


def with_bound(value: float, bound: float) -> str:
    """``0.140577 ± 1.2e-06``: no more digits of a value than its bound leaves.

    >>> with_bound(0.14057701495, 1.234e-6), with_bound(1234.5, 20.0), with_bound(float("inf"), float("nan"))
    ('0.1405770 ± 1.2e-06', '1234 ± 2.0e+01', 'infinite')
    """
    if np.isnan(value):
        return "unknown"
    if np.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if not np.isfinite(bound):
        return f"{value:.10g} ± unknown"
    if bound <= 0:
        return f"{value!r} ± 0"
    lowest = floor(log10(bound)) - 1
    leading = floor(log10(abs(value))) if value else 0
    if -5 <= leading < 16:
        return f"{value:.{min(max(-lowest, 0), 20)}f} ± {bound:.1e}"
    return f"{value:.{min(max(leading - lowest, 0), 17)}e} ± {bound:.1e}"


def _quantity(other: Any) -> Quantity:
    if isinstance(other, Quantity):
        return other
    if is_real(other) or isinstance(other, np.ndarray):
        return Quantity(other, np.zeros(np.shape(other)))
    raise InputError(f"a quantity can be combined with a quantity or a number, not with {other!r}")


def _ratio(error: Array, size: Array) -> Array:
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


def _same(values: Array) -> float | Array:
    return float(values) if np.ndim(values) == 0 else np.asarray(values)


def _plain(values: float | Array) -> Any:
    """Numbers as text where JSON has none for them."""
    if np.ndim(values) == 0:
        number = float(values)
        return number if np.isfinite(number) else str(number)
    return [_plain(one) for one in np.asarray(values)]


def _read(values: Any) -> float | Array:
    return np.array([_read(one) for one in values]) if isinstance(values, list) else float(values)


def _shown(location: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in location) + ")"
