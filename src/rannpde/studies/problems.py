"""What is fitted: functions of (t, x) with the points at which they are learnt and tested.

A problem is a frozen dataclass of plain numbers, so that a study can be written down, hashed and sent to another
process. Everything drawn comes from the generator that is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from rannpde.errors import positive_integer, require
from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.pde.zoo.travelling_wave import TravellingWave

Array = np.ndarray
Generator = np.random.Generator


@runtime_checkable
class Problem(Protocol):
    """A function on a box of R^dim, dim = 1 + space_dim, with a law for points near where it is difficult."""

    @property
    def space_dim(self) -> int: ...

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the values, one a column."""
        ...

    @property
    def bounds(self) -> Array:
        """The box (dim, 2) in which the points lie, time first."""
        ...

    def uniform(self, count: int, rng: Generator) -> Array:
        """Points (count, dim), uniform on the domain of the function."""
        ...

    def focused(self, count: int, rng: Generator) -> Array:
        """Points (count, dim) near the difficult part."""
        ...

    def values(self, points: Array) -> Array:
        """(M,), or (M, number of fields)."""
        ...


@dataclass(frozen=True)
class PorousMedium:
    """The Barenblatt profile on (t₀, t₀ + duration) × (0, 1)^d (section "Experiments for PME").

    start : t₀, by default the paper's 0.1 for d ≤ 3 and 0.01 beyond
    radius : of the support at t₀; the centre is (1/2, …, 1/2)
    inside : None for the whole cube; a fraction c < 1 restricts the problem to the ball of radius c·radius, a compact
        set inside the support at every time, where the profile is smooth and the theorem applies
    """

    space_dim: int = 1
    exponent: float = 2.0
    radius: float = 0.3
    start: float | None = None
    duration: float = 1.0
    focus_low: float = 0.2
    focus_high: float = 0.8
    inside: float | None = None

    def __post_init__(self) -> None:
        positive_integer("space_dim", self.space_dim)
        require(0 < self.first_time < np.inf, "start", self.start, "a finite time > 0")
        require(0 < self.duration < np.inf, "duration", self.duration, "a finite time > 0")
        focus = (self.focus_low, self.focus_high)
        require(0 <= focus[0] < focus[1] <= 1, "focus_low, focus_high", focus, "increasing, in [0, 1]")
        require(self.inside is None or 0 < self.inside < 1, "inside", self.inside, "left out, or a fraction in (0, 1)")
        self.exact  # noqa: B018  (its own checks of exponent and radius)

    @property
    def first_time(self) -> float:
        """t₀."""
        return self.start if self.start is not None else (0.1 if self.space_dim <= 3 else 0.01)

    @property
    def exact(self) -> Barenblatt:
        """The profile itself."""
        return Barenblatt.with_radius(
            self.radius, time=self.first_time, space_dim=self.space_dim, exponent=self.exponent
        )

    @property
    def fields(self) -> tuple[str, ...]:
        return ("u",)

    @property
    def bounds(self) -> Array:
        reach = 0.5 if self.inside is None else self.inside * self.radius
        space = np.tile([0.5 - reach, 0.5 + reach], (self.space_dim, 1))
        return np.vstack([[self.first_time, self.first_time + self.duration], space])

    def uniform(self, count: int, rng: Generator) -> Array:
        points = uniform_points(self.bounds, count, rng)
        if self.inside is not None:
            points[:, 1:] = 0.5 + self.inside * self.radius * _in_unit_ball(count, self.space_dim, rng)
        return points

    def focused(self, count: int, rng: Generator) -> Array:
        if self.inside is not None:
            return self.uniform(count, rng)
        box = np.vstack([self.bounds[0], np.tile([self.focus_low, self.focus_high], (self.space_dim, 1))])
        return uniform_points(box, count, rng)

    def values(self, points: Array) -> Array:
        return self.exact(points)


@dataclass(frozen=True)
class NavierStokes:
    """The travelling wave (v, u) on (0, duration) × (-half_length, half_length) (appendix "Navier-Stokes").

    Focused points are N(x₀ + s t, spread²) around the shock, which moves with it; a few fall outside the interval.
    """

    wave: TravellingWave = field(default_factory=TravellingWave)
    duration: float = 1.0
    half_length: float = 5.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        for name in ("duration", "half_length", "spread"):
            require(0 < getattr(self, name) < np.inf, name, getattr(self, name), "a finite number > 0")

    @property
    def space_dim(self) -> int:
        return 1

    @property
    def fields(self) -> tuple[str, ...]:
        return ("v", "u")

    @property
    def bounds(self) -> Array:
        return np.array([[0.0, self.duration], [-self.half_length, self.half_length]])

    def uniform(self, count: int, rng: Generator) -> Array:
        return uniform_points(self.bounds, count, rng)

    def focused(self, count: int, rng: Generator) -> Array:
        points = np.empty((count, 2))
        points[:, 0] = rng.uniform(0.0, self.duration, count)
        points[:, 1] = self.wave.position + self.wave.speed * points[:, 0] + self.spread * rng.standard_normal(count)
        return points

    def values(self, points: Array) -> Array:
        return _tabulated(self.wave)(points)


@dataclass(frozen=True)
class GaussianBump:
    """exp(-|z - c|² / (2 breadth²)) on (0, 1)^(1+d), c its centre: analytic, and alike in every dimension."""

    space_dim: int = 1
    breadth: float = 0.5

    def __post_init__(self) -> None:
        positive_integer("space_dim", self.space_dim)
        require(0 < self.breadth < np.inf, "breadth", self.breadth, "a finite number > 0")

    @property
    def fields(self) -> tuple[str, ...]:
        return ("u",)

    @property
    def bounds(self) -> Array:
        return np.tile([0.0, 1.0], (1 + self.space_dim, 1))

    def uniform(self, count: int, rng: Generator) -> Array:
        return uniform_points(self.bounds, count, rng)

    def focused(self, count: int, rng: Generator) -> Array:
        return self.uniform(count, rng)

    def values(self, points: Array) -> Array:
        return np.exp(-0.5 * np.square((points - 0.5) / self.breadth).sum(axis=1))


@lru_cache(maxsize=8)
def _tabulated(wave: TravellingWave) -> TravellingWave:
    """The first of all equal waves, so that a process tabulates each profile once."""
    return wave


def uniform_points(bounds: Array, count: int, rng: Generator) -> Array:
    """Points (count, dim) uniform on the box bounds (dim, 2)."""
    return bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) * rng.random((count, len(bounds)))


def _in_unit_ball(count: int, dim: int, rng: Generator) -> Array:
    direction = rng.standard_normal((count, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.random((count, 1)) ** (1.0 / dim)
