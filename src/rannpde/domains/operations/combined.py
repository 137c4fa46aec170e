"""Unions, intersections and differences of domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.solids import Branch, SetOperation, Tree, tree_bounds
from rannpde.domains.coordinates import DefaultNames
from rannpde.domains.shapes.base import Domain
from rannpde.domains.shapes.cutting import Cut
from rannpde.errors import InputError, reject, require

ASIDE = 1e-5
"""Distance from a box, relative to the size of a shape, beyond which a part of it does not change the shape there."""
SIGNS: dict[SetOperation, str] = {"union": " | ", "intersection": " & ", "difference": " - "}


@dataclass(frozen=True, repr=False)
class Combined(Cut):
    """A union, an intersection, or a difference (the first without all others) of domains in two or three dimensions.

    >>> from rannpde.domains import Ball, Box
    >>> plate = Box(x=(0, 4), y=(0, 2)) - Box(x=(0, 2), y=(1, 2)) - Ball((3, 1), 0.2, name="hole")
    >>> list(plate.sides)
    ['x=0', 'x=4', 'y=0', 'y=2', 'x=2', 'y=1', 'hole']
    >>> round(plate.volume, 10), [corner.point for corner in plate.corners]
    (5.8743362939, [(2.0, 1.0)])
    """

    operation: SetOperation
    parts: tuple[Domain, ...]

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.parts[0].names

    @cached_property
    def tree(self) -> Tree:
        return Branch(self.operation, tuple(part.tree for part in self.parts))

    @cached_property
    def _reaches(self) -> Array:
        """Bounds (parts, n, 2) of the parts."""
        return np.stack([tree_bounds(part.tree) for part in self.parts])

    def __repr__(self) -> str:
        return "(" + SIGNS[self.operation].join(repr(part) for part in self.parts) + ")"

    def with_names(self, names: Sequence[str]) -> Combined:
        return Combined(self.operation, tuple(part.with_names(names) for part in self.parts))


def combined(operation: SetOperation, one: Domain, other: Domain) -> Combined:
    """Two domains as one; chains of the same operation become one list."""
    for shape in (one, other):
        if not isinstance(shape, Domain):
            reject("shape", type(shape).__name__, "a domain such as Box(…) or Ball(…)")
        shape.require_space()
    require(one.dim == other.dim, "the dimensions of the shapes", (one.dim, other.dim), "equal")
    require(one.dim in (2, 3), "the dimension of the shapes", one.dim, "2 or 3", "intervals are not combined")
    names = _common(one.names, other.names)
    one, other = (shape if shape.names == names else shape.with_names(names) for shape in (one, other))
    first = one.parts if isinstance(one, Combined) and one.operation == operation else (one,)
    last = other.parts if isinstance(other, Combined) and other.operation == operation != "difference" else (other,)
    return Combined(operation, first + last)


def nearby(domain: Domain, bounds: Array) -> Domain:
    """The same set in a box (n, 2), without the shapes of a union or difference that stay away from it.

    >>> from rannpde.domains import Ball, Box
    >>> plate = Box(x=(0, 4), y=(0, 2)) - Ball((1, 1), 0.5) - Ball((3, 1), 0.2)
    >>> nearby(plate, np.array([(0.0, 1.0), (0.0, 1.0)]))
    (Box(x=(0.0, 4.0), y=(0.0, 2.0)) - Ball(centre=(1.0, 1.0), radius=0.5, names=('x', 'y')))
    """
    if not isinstance(domain, Combined) or domain.operation == "intersection":
        return domain
    slack = ASIDE * domain.size
    reaches = domain._reaches
    disjoint = (reaches[:, :, 0] > bounds[:, 1] + slack) | (bounds[:, 0] - slack > reaches[:, :, 1])
    met = np.asarray(~disjoint.any(axis=1))
    met[0] |= domain.operation == "difference" or not met.any()
    parts = tuple(nearby(domain.parts[k], bounds) for k in np.flatnonzero(met))
    if len(parts) == len(met) and all(one is other for one, other in zip(parts, domain.parts, strict=True)):
        return domain
    return parts[0] if len(parts) == 1 else Combined(domain.operation, parts)


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The coordinate names of a combination of two shapes; default names give way to others."""
    if one == other or isinstance(other, DefaultNames):
        return one
    if isinstance(one, DefaultNames):
        return other
    raise InputError(f"the coordinates of the shapes are {one} and {other}; give both the same names=…")
