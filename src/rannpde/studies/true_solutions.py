"""Targets that solve their equations, smooth on their boxes, as the corollaries assume.

Each knows its equations, its true solution with derivatives, and the ridgelet targets of its fields, which equal the
solution on the domain and are cut off smoothly within a margin where it is still known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains import SpaceTime
from rannpde.errors import positive_integer, positive_number
from rannpde.network.features import multi_index
from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.studies.target import PlainTarget
from rannpde.theory.boxed import box_target
from rannpde.theory.flows import EulerianWave, PeriodicFlow
from rannpde.theory.losses import EquationSystem, Gas, navier_stokes, porous_medium
from rannpde.theory.separable import barenblatt_target
from rannpde.theory.targets import RidgeletTarget

_MARGIN = 1.5
"""Beyond the unit cube in space, where the smooth Barenblatt profile is still far inside its support."""


class TrueSolution(PlainTarget, ABC):
    """A solution on a box of space and time."""

    space_dim: Any  # of the kind: a field, or a property

    @property
    @abstractmethod
    def domain(self) -> SpaceTime: ...

    @property
    @abstractmethod
    def exact(self) -> Any:
        """The solution: values and derivatives at points."""

    @property
    @abstractmethod
    def system(self) -> EquationSystem: ...

    @property
    @abstractmethod
    def functions(self) -> tuple[RidgeletTarget, ...]:
        """One ridgelet target for each field."""

    @property
    def bounds(self) -> Array:
        return self.domain.bounds

    def values(self, points: Array) -> Array:
        return np.asarray(self.exact(points))


@dataclass(frozen=True)
class QuadraticProfile:
    """A Barenblatt profile with m = 2 inside its support, b t^-α - k t^(-α-2β) |x - c|², with derivatives of any
    order."""

    profile: Barenblatt

    def __call__(self, points: Array) -> Array:
        """Values (M,)."""
        return self.derivative(points, (0,) * self.profile.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """A partial derivative, (M,)."""
        in_time, *in_space = multi_index(derivative, self.profile.dim)
        alpha, beta = self.profile.decay_rate, self.profile.spreading_rate
        time, offset = points[:, 0], points[:, 1:] - np.array(self.profile.centre)
        total = np.zeros(len(points))
        if not any(in_space):
            total += self.profile.mass_parameter * _power(time, -alpha, in_time)
        bowl = -self.profile.curvature * _power(time, -alpha - 2 * beta, in_time)
        used = [axis for axis, order in enumerate(in_space) if order]
        if not used:
            return np.asarray(total + bowl * np.square(offset).sum(axis=1))
        if len(used) > 1 or in_space[used[0]] > 2:
            return total
        return np.asarray(bowl * (2 * offset[:, used[0]] if in_space[used[0]] == 1 else 2.0))


def _power(base: Array, exponent: float, order: int) -> Array:
    """d^order/dt^order of t^exponent."""
    return np.asarray(np.prod([exponent - k for k in range(order)]) * base ** (exponent - order))


@dataclass(frozen=True)
class SmoothBarenblatt(TrueSolution):
    """The Barenblatt profile with b = 1 and m = 2 on (start, start + 1) × (0, 1)^d, inside its support and t > 0."""

    space_dim: int = 1
    start: float = 1.0

    def __post_init__(self) -> None:
        positive_integer("space_dim", self.space_dim)
        positive_number("start", self.start)

    @property
    def domain(self) -> SpaceTime:
        space = (0.0, 1.0) if self.space_dim == 1 else [(0.0, 1.0)] * self.space_dim
        return SpaceTime(t=(self.start, self.start + 1.0), x=space)

    @property
    def exact(self) -> QuadraticProfile:
        return QuadraticProfile(Barenblatt((0.5,) * self.space_dim, 1.0))

    @property
    def system(self) -> EquationSystem:
        return porous_medium(1 + self.space_dim, 2)

    @property
    def functions(self) -> tuple[RidgeletTarget, ...]:
        margins = [0.9 * self.start] + [_MARGIN] * self.space_dim
        return (barenblatt_target(self.exact.profile, self.domain, margin=margins),)


@dataclass(frozen=True)
class FlowSolution(TrueSolution):
    """(ρ, u) of the Navier–Stokes equations in Eulerian form on (0, 1/2) × (0, 1); by default without pressure and
    with constant viscosity, as in Corollary NS."""

    viscosity: float = 1.0
    gamma: float = 0.0
    alpha: float = 0.0

    @property
    def space_dim(self) -> int:
        return 1

    @property
    def fields(self) -> tuple[str, ...]:
        return ("rho", "u")

    @property
    def domain(self) -> SpaceTime:
        return SpaceTime(t=(0.0, 0.5), x=(0.0, 1.0))

    @property
    def gas(self) -> Gas:
        return Gas(self.viscosity, self.gamma, self.alpha)

    @property
    @abstractmethod
    def margin(self) -> float: ...

    @property
    def system(self) -> EquationSystem:
        return navier_stokes(self.gas)

    @property
    def functions(self) -> tuple[RidgeletTarget, ...]:
        return tuple(_field_target(self, column) for column in range(2))


def _field_target(flow: FlowSolution, column: int) -> RidgeletTarget:
    return box_target(lambda z: flow.exact(z)[:, column], flow.domain, margin=flow.margin, count=128)


@dataclass(frozen=True)
class WaveSolution(FlowSolution):
    """A travelling wave."""

    @property
    def margin(self) -> float:
        return 0.7

    @property
    def exact(self) -> EulerianWave:
        return _shared(EulerianWave(self.viscosity, self.gamma, self.alpha))


@dataclass(frozen=True)
class PeriodicSolution(FlowSolution):
    """A periodic flow, computed numerically."""

    viscosity: float = 0.2

    @property
    def margin(self) -> float:
        return 0.4

    @property
    def exact(self) -> PeriodicFlow:
        return _shared(PeriodicFlow(self.viscosity, self.gamma, self.alpha, times=(-0.4, 0.9), modes=32, degree=32))


@lru_cache(maxsize=8)
def _shared(flow: Any) -> Any:
    """The first of all equal flows, so that a process computes each once."""
    return flow
