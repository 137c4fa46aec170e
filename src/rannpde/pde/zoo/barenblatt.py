"""The Barenblatt–Kompaneets–Zeldovich profile, the exact solution of ∂_t u = Δ(u^m) (eq. barenblatt)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, isfinite, lgamma, log, pi
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import finite_points, positive_integer, reject, require
from rannpde.network.features import multi_index


@dataclass(frozen=True)
class Barenblatt:
    """u(t, x) = t^-α (b - k |x - centre|² / t^(2β))_+^(1/(m-1)), k = (m-1)β/(2m), α = dβ, β = 1/(d(m-1) + 2).

    Compactly supported, smooth inside its support and only Hölder continuous (of exponent 1/(m-1), Lipschitz for m ≤ 2)
    across its edge. Its mass does not change in time.

    centre : the d coordinates of the centre of mass
    mass_parameter : b > 0
    exponent : m > 1

    >>> profile = Barenblatt.with_radius(0.3, time=0.1, space_dim=2)
    >>> profile([[0.1, 0.5, 0.5], [0.1, 0.5, 0.81]]).round(4)
    array([0.0562, 0.    ])
    >>> profile.derivative([[0.1, 0.5, 0.5]], (0, 2, 0)).round(4)
    array([-1.25])
    """

    centre: tuple[float, ...]
    mass_parameter: float
    exponent: float = 2.0

    def __post_init__(self) -> None:
        centre = tuple(float(c) for c in np.atleast_1d(np.asarray(self.centre, dtype=float)))
        require(len(centre) >= 1 and all(map(isfinite, centre)), "centre", self.centre, "d ≥ 1 finite coordinates")
        require(0 < self.mass_parameter < np.inf, "mass_parameter", self.mass_parameter, "a finite number > 0")
        require(1 < self.exponent < np.inf, "exponent", self.exponent, "a finite number m > 1")
        object.__setattr__(self, "centre", centre)

    @classmethod
    def with_radius(
        cls,
        radius: float,
        *,
        time: float,
        space_dim: int = 1,
        exponent: float = 2.0,
        centre: Sequence[float] | None = None,
    ) -> Barenblatt:
        """The profile whose support has that radius at that time; centred at (1/2, …, 1/2) by default."""
        require(0 < radius < np.inf, "radius", radius, "a finite number > 0")
        require(0 < time < np.inf, "time", time, "a finite number > 0")
        middle = (0.5,) * positive_integer("space_dim", space_dim) if centre is None else tuple(centre)
        unit = cls(middle, 1.0, exponent)
        return cls(middle, (radius / unit.radius(time)) ** 2, exponent)

    @property
    def space_dim(self) -> int:
        """d, the number of space coordinates."""
        return len(self.centre)

    @property
    def dim(self) -> int:
        """n = 1 + d, the number of coordinates of a point (t, x)."""
        return 1 + self.space_dim

    @property
    def spreading_rate(self) -> float:
        """β: the support grows like t^β."""
        return 1.0 / (self.space_dim * (self.exponent - 1.0) + 2.0)

    @property
    def decay_rate(self) -> float:
        """α = dβ: the height falls like t^-α."""
        return self.space_dim * self.spreading_rate

    @property
    def curvature(self) -> float:
        """k = (m-1)β/(2m)."""
        return (self.exponent - 1.0) * self.spreading_rate / (2.0 * self.exponent)

    @property
    def mass(self) -> float:
        """∫ u(t, x) dx, the same for every t: b^(p + d/2) (π/k)^(d/2) Γ(p+1)/Γ(p+1+d/2) with p = 1/(m-1)."""
        power, half = 1.0 / (self.exponent - 1.0), 0.5 * self.space_dim
        logarithm = (power + half) * log(self.mass_parameter) + half * log(pi / self.curvature)
        return float(np.exp(logarithm + lgamma(power + 1.0) - lgamma(power + 1.0 + half)))

    def radius(self, time: Any) -> Any:
        """Radius √(b/k) t^β of the support."""
        return (self.mass_parameter / self.curvature) ** 0.5 * time**self.spreading_rate

    def inside(self, points: Array) -> Array:
        """(M,) bool: whether the point (t, x) lies in the open support."""
        return self._base(*self._split(points)) > 0

    def __call__(self, points: Array) -> Array:
        """Values (M,) at the points (M, 1 + d), all with t > 0."""
        time, offset = self._split(points)
        base = np.maximum(self._base(time, offset), 0.0)
        return time**-self.decay_rate * (base if self.exponent == 2.0 else base ** (1.0 / (self.exponent - 1.0)))

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """A partial derivative of order ≤ 2, shape (M,): exact inside the support, 0 outside it.

        u = A(t) q^p, so that ∂_t^j is Leibniz's rule over A = t^-α and the derivatives of q^p.
        """
        index = multi_index(derivative, self.dim)
        if sum(index) > 2:
            reject("derivative", index, "of total order at most 2")
        time, offset = self._split(points)
        base = self._base(time, offset)
        value = np.zeros(len(base))
        inside = base > 0
        time, offset, base = time[inside], offset[inside], base[inside]
        axes = [axis for axis, order in enumerate(index) for _ in range(order)]
        in_time, in_space = axes[: index[0]], axes[index[0] :]
        falling, total = 1.0, np.zeros(len(base))
        for j in range(len(in_time) + 1):  # j derivatives fall on A
            rest = in_time[j:] + in_space
            total = total + comb(len(in_time), j) * falling * time**-j * self._power(time, offset, base, rest)
            falling *= -(self.decay_rate + j)
        value[inside] = time**-self.decay_rate * total
        return value

    def _split(self, points: Array) -> tuple[Array, Array]:
        points = finite_points("points", points, self.dim)
        time = points[:, 0]
        require(bool((time > 0).all()), "time of the first bad point", _first(time, time <= 0), "> 0", "u(0) is a mass")
        return time, points[:, 1:] - np.array(self.centre)

    def _base(self, time: Array, offset: Array) -> Array:
        """q = b - k |x - centre|² / t^(2β)."""
        squares = np.einsum("ij,ij->i", offset, offset)
        return self.mass_parameter - self.curvature * squares * time ** (-2.0 * self.spreading_rate)

    def _power(self, time: Array, offset: Array, base: Array, axes: list[int]) -> Array:
        """∂_axes q^p for at most two axes (0 is time), where q > 0."""
        power = 1.0 / (self.exponent - 1.0)
        if not axes:
            return base**power
        first = power * base ** (power - 1.0)
        if len(axes) == 1:
            return first * self._slope(time, offset, axes[0])
        i, j = axes
        product = self._slope(time, offset, i) * self._slope(time, offset, j)
        return (power - 1.0) * first / base * product + first * self._bend(time, offset, i, j)

    def _slope(self, time: Array, offset: Array, axis: int) -> Array:
        """∂_axis q."""
        rate = 2.0 * self.spreading_rate
        if axis == 0:
            return rate * self.curvature * np.einsum("ij,ij->i", offset, offset) * time ** -(rate + 1.0)
        return -2.0 * self.curvature * offset[:, axis - 1] * time**-rate

    def _bend(self, time: Array, offset: Array, i: int, j: int) -> Array:
        """∂_i ∂_j q for i ≤ j."""
        rate = 2.0 * self.spreading_rate
        if i == 0:  # ∂_j q is a power of t: -(rate + 1) for j = 0, -rate for a space coordinate
            return -(rate + (j == 0)) * self._slope(time, offset, j) / time
        return np.full(len(time), -2.0 * self.curvature * (i == j)) * time**-rate


def _first(values: Array, bad: Array) -> float | None:
    where = np.flatnonzero(bad)
    return float(values[where[0]]) if len(where) else None
