"""All of R^d, whose points are one vector: the space of problems in many dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.shapes.base import Domain
from rannpde.domains.streams import PointStream
from rannpde.errors import finite_points, positive_integer, reject, require

if TYPE_CHECKING:
    from rannpde.domains.boundary.planar import Corner
    from rannpde.domains.boundary.solids import Tree

DIMENSION_LIMIT = 1_000_000
"""Largest dimension: one path of one step is then eight megabytes."""


@dataclass(frozen=True, init=False, repr=False)
class Euclidean(Domain):
    """R^d as the domain of a vector coordinate, without sides; ``SpaceTime(t=(0, 1), x=Euclidean(100))``.

    >>> from rannpde.domains import SpaceTime
    >>> SpaceTime(t=(0, 1), x=Euclidean(100)).dim
    101
    """

    size: int
    vector: str
    exact: ClassVar[bool] = False  # type: ignore[misc]
    has_rule: ClassVar[bool] = False  # type: ignore[misc]

    def __init__(self, size: int, vector: str = "x") -> None:
        require(positive_integer("dimension", size) <= DIMENSION_LIMIT, "dimension", size, f"at most {DIMENSION_LIMIT}")
        require(isinstance(vector, str) and vector.isidentifier(), "vector", vector, "the name of a coordinate")
        object.__setattr__(self, "size", int(size))
        object.__setattr__(self, "vector", vector)

    def __repr__(self) -> str:
        return f"Euclidean({self.size})" if self.vector == "x" else f"Euclidean({self.size}, {self.vector!r})"

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The components, as a list of intervals would name them."""
        return tuple(f"{self.vector}{k}" for k in range(1, self.size + 1))

    @property
    def dim(self) -> int:
        return self.size

    @property
    def extent(self) -> int:
        return self.size

    @property
    def columns(self) -> int:
        return self.size

    @property
    def measure(self) -> float:
        return np.inf

    @property
    def bounds(self) -> Array:
        return np.tile([-np.inf, np.inf], (self.size, 1))

    @property
    def sides(self) -> dict[str, Side]:
        return {}

    @property
    def tree(self) -> Tree:
        reject("domain", self, "bounded", "shapes are made of bounded domains")

    @property
    def corners(self) -> tuple[Corner, ...]:
        return ()

    def contains(self, points: Array) -> Array:
        return np.ones(len(finite_points("points", points, self.size)), dtype=bool)

    def level(self, points: Array) -> Array:
        return np.full(len(finite_points("points", points, self.size)), -np.inf)

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        reject("domain", self, "bounded", "there are no uniform points in all of space; sample a Box or a Ball of it")

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        reject("domain", self, "bounded", "integrate over a Box or a Ball of it")

    def with_names(self, names: Sequence[str]) -> Euclidean:
        return replace(self)

    def called(self, vector: str) -> Euclidean:
        """The same space with another name of its vector."""
        return Euclidean(self.size, vector)
