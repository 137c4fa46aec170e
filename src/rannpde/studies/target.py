"""Targets of fits: functions of (t, x) with the points at which they are learnt and tested.

A target is a frozen dataclass of plain numbers and texts, so that a study can be written down, hashed and sent to
another process. Everything drawn comes from the generator that is passed in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.errors import finite_array, is_real, positive_integer, positive_number, require
from rannpde.grammar import Call, Node, children, parse
from rannpde.pde.functions import Formula
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.pde.zoo.travelling_wave import TravellingWave
from rannpde.theory.targets import GaussianMixture, RidgeletTarget

Generator = np.random.Generator

LARGEST_DIMENSION = 1000
"""d at most: a hundred times what the studies use; a study file that asks for more is a mistake or an attack."""

LARGEST_TABLE = 10**6
"""Entries of a table of the wave: two hundred times the paper's."""
MOST_COMPARED = 32
"""Arguments of max and min in a formula: SymPy compares all pairs, which took 82 s for 400 and takes 0.3 s for 32."""


@runtime_checkable
class Target(Protocol):
    """A function on a box of R^dim, dim = 1 + space_dim, with a law for points near where it is difficult."""

    @property
    def space_dim(self) -> int: ...

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the values, one per column."""
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


class PlainTarget(ABC):
    """A single field on a box, nowhere more difficult than elsewhere: focused points are uniform ones."""

    @property
    @abstractmethod
    def bounds(self) -> Array: ...

    @property
    def fields(self) -> tuple[str, ...]:
        return ("u",)

    def uniform(self, count: int, rng: Generator) -> Array:
        return uniform_points(self.bounds, count, rng)

    def focused(self, count: int, rng: Generator) -> Array:
        return self.uniform(count, rng)


@dataclass(frozen=True)
class PorousMedium:
    """The Barenblatt profile on (t₀, t₀ + duration) × (0, 1)^d (section "Experiments for PME").

    start : t₀, by default the paper's 0.1 for d ≤ 3 and 0.01 beyond
    radius : radius of the support at t₀, which fixes b; ``radius_for`` gives the one of a given b
    centre : every coordinate of the centre, 1/2 by default; 0 is the formula read literally, with the cube (0, 1)^d
        in one orthant of the profile
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
    centre: float = 0.5

    def __post_init__(self) -> None:
        _dimension(self.space_dim)
        require(is_real(self.centre), "centre", self.centre, "a finite number")
        positive_number("start", self.first_time)
        positive_number("duration", self.duration)
        focus = (self.focus_low, self.focus_high)
        require(0 <= focus[0] < focus[1] <= 1, "focus_low, focus_high", focus, "increasing, in [0, 1]")
        require(self.inside is None or 0 < self.inside < 1, "inside", self.inside, "left out, or a fraction in (0, 1)")
        central = self.inside is None or self.centre == 0.5
        require(central, "centre", self.centre, "1/2 with inside, whose ball must lie in the cube")
        self.exact  # noqa: B018  (its own checks of exponent and radius)

    @property
    def first_time(self) -> float:
        """The first time t₀."""
        return self.start if self.start is not None else (0.1 if self.space_dim <= 3 else 0.01)

    @property
    def exact(self) -> Barenblatt:
        """The profile itself."""
        centre = (float(self.centre),) * self.space_dim
        return Barenblatt.with_radius(
            self.radius, time=self.first_time, space_dim=self.space_dim, exponent=self.exponent, centre=centre
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

    table_points : 0, or the paper's 5,000: linear interpolation of this number of values of the profile on the interval
    printed_velocity : u = -v/s, as the paper prints, in place of u = u₋ - s (v - v₋)
    """

    wave: TravellingWave = field(default_factory=TravellingWave)
    duration: float = 1.0
    half_length: float = 5.0
    spread: float = 1.0
    table_points: int = 0
    printed_velocity: bool = False

    def __post_init__(self) -> None:
        for name in ("duration", "half_length", "spread"):
            positive_number(name, getattr(self, name))
        table = isinstance(self.table_points, int) and not isinstance(self.table_points, bool)
        few = table and (self.table_points == 0 or 2 <= self.table_points <= LARGEST_TABLE)
        require(few, "table_points", self.table_points, f"0, or a whole number from 2 to {LARGEST_TABLE}")
        require(isinstance(self.printed_velocity, bool), "printed_velocity", self.printed_velocity, "true or false")

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
        wave = _tabulated(self.wave)
        exact = wave(points)
        if self.table_points:
            grid = np.linspace(-self.half_length, self.half_length, self.table_points)
            xi = points[:, 1] - wave.position - wave.speed * points[:, 0]
            exact[:, 0] = np.interp(xi, grid, wave.profile(grid))
            exact[:, 1] = wave.left_velocity - wave.speed * (exact[:, 0] - wave.left_state)
        if self.printed_velocity:
            exact[:, 1] = -exact[:, 0] / wave.speed
        return exact


@dataclass(frozen=True)
class GaussianBump(PlainTarget):
    """exp(-|z - c|² / (2 breadth²)) on (0, 1)^(1+d), c its centre: analytic, and alike in every dimension."""

    space_dim: int = 1
    breadth: float = 0.5

    def __post_init__(self) -> None:
        _dimension(self.space_dim)
        positive_number("breadth", self.breadth)

    @property
    def bounds(self) -> Array:
        return np.tile([0.0, 1.0], (1 + self.space_dim, 1))

    def values(self, points: Array) -> Array:
        return np.asarray(np.exp(-0.5 * np.square((points - 0.5) / self.breadth).sum(axis=1)))


@runtime_checkable
class TheoremTarget(Target, Protocol):
    """A target to which Theorem 1 applies, with the function's transform and norms."""

    @property
    def function(self) -> RidgeletTarget: ...

    @property
    def domain(self) -> SpaceTime: ...


@dataclass(frozen=True)
class SmoothBump(PlainTarget):
    """u(t, x) = exp(-(t² + |x|²)/2 spread²) on (0, 1) × (-1, 1)^d, a function to which Theorem 1 applies."""

    space_dim: int = 1
    spread: float = 1.0

    def __post_init__(self) -> None:
        _dimension(self.space_dim)
        positive_number("spread", self.spread)

    @property
    def function(self) -> GaussianMixture:
        return GaussianMixture.gaussian(self.space_dim + 1, width=self.spread)

    @property
    def domain(self) -> SpaceTime:
        return SpaceTime(t=(0.0, 1.0), x=[(-1.0, 1.0)] * self.space_dim)

    @property
    def bounds(self) -> Array:
        return self.domain.bounds

    def values(self, points: Array) -> Array:
        return self.function(points)


@dataclass(frozen=True)
class WrittenFunction(PlainTarget):
    """An expression in t, x1, …, xd on the box ``low`` ≤ (t, x1, …, xd) ≤ ``high`` (the unit cube by default).

    The language is that of equations (docs/solving.md) without unknown functions; nothing in it is ever executed.

    >>> WrittenFunction("exp(-t) * sin(pi * x1)").values(np.array([[0.0, 0.5]]))
    array([1.])
    """

    expression: str
    space_dim: int = 1
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        dim = 1 + _dimension(self.space_dim)
        for name, default in (("low", 0.0), ("high", 1.0)):
            corner = tuple(float(c) for c in finite_array(name, getattr(self, name), 1)) or (default,) * dim
            require(len(corner) == dim, name, corner, f"{dim} numbers, time first")
            object.__setattr__(self, name, corner)
        ordered = all(a < b for a, b in zip(self.low, self.high, strict=True))
        require(ordered, "low", self.low, f"below high = {self.high} in every coordinate")
        left, right = parse(self.expression)
        require(right is None, "expression", self.expression, "one side only", "leave out the '='")
        compared = _compared(left)
        require(compared <= MOST_COMPARED, "arguments of max and min", compared, f"at most {MOST_COMPARED}")
        remedy = "write an expression of real numbers, and a box on which it is finite"
        try:
            finite = bool(np.isfinite(self.values(self.bounds.mean(axis=1)[None, :])).all())
        except (TypeError, ArithmeticError):  # a constant in it is complex or too large for a float
            finite = False
        require(finite, "expression", self.expression, "finite on its box, but at the centre it is not", remedy)

    @property
    def bounds(self) -> Array:
        return np.column_stack([self.low, self.high])

    @cached_property
    def _formula(self) -> Formula:
        words = Vocabulary(("t", *(f"x{i}" for i in range(1, 1 + self.space_dim))), "t")
        return Formula(read(self.expression, words), words.symbols)

    def values(self, points: Array) -> Array:
        return self._formula(points)


@lru_cache(maxsize=8)
def _tabulated(wave: TravellingWave) -> TravellingWave:
    """The first of all equal waves, so that a process tabulates each profile once."""
    return wave


def uniform_points(bounds: Array, count: int, rng: Generator) -> Array:
    """Points (count, dim) uniform on the box bounds (dim, 2)."""
    return bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) * rng.random((count, len(bounds)))


def _dimension(value: Any) -> int:
    """space_dim, refused unless it is a whole number from 1 to LARGEST_DIMENSION."""
    dimension = positive_integer("space_dim", value)
    require(dimension <= LARGEST_DIMENSION, "space_dim", value, f"at most {LARGEST_DIMENSION}")
    return dimension


def _compared(tree: Node) -> int:
    """How many arguments all max and min of a formula have."""
    count, stack = 0, [tree]
    while stack:
        node = stack.pop()
        count += len(children(node)) if isinstance(node, Call) and node.name in ("max", "min") else 0
        stack.extend(children(node))
    return count


def _in_unit_ball(count: int, dim: int, rng: Generator) -> Array:
    direction = rng.standard_normal((count, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.random((count, 1)) ** (1.0 / dim)
