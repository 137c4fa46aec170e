"""Solids, given by a level function, walls and charts of the boundary, and their combinations: trees of set operations.

Such trees are known as constructive solid geometry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.tracing import Wall, trace
from rannpde.errors import InputError

SetOperation = Literal["union", "intersection", "difference"]


class Solid(ABC):
    """A closed set of R^n that is described by a level function and by charts of its boundary."""

    @property
    def rate(self) -> float:
        """A Lipschitz constant of the level: how much faster than the distance it may vary, 1 for a distance."""
        return 1.0

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Lower and upper end of each coordinate (n, 2); infinite for half-spaces."""

    @abstractmethod
    def level(self, points: Array) -> Array:
        """(M,) < 0 inside, > 0 outside, close to the signed distance near the boundary."""

    @property
    @abstractmethod
    def walls(self) -> tuple[Wall, ...]:
        """Smooth functions of which all are negative inside; none where the solid has no such form."""

    @abstractmethod
    def charts(self, clip: Array) -> tuple[Chart, ...]:
        """The whole boundary, one chart for each label, as far as it lies within clip (n, 2)."""


@dataclass(frozen=True, eq=False)
class SublevelSet(Solid):
    """The sublevel set of one wall: the points where this smooth function is negative, within given bounds."""

    wall: Wall
    within: Array
    size: float

    @property
    def rate(self) -> float:
        return 3.0

    @property
    def bounds(self) -> Array:
        return self.within

    @property
    def walls(self) -> tuple[Wall, ...]:
        return (self.wall,)

    def level(self, points: Array) -> Array:
        from rannpde.domains.boundary.tracing import regularised

        return regularised(*self.wall.both(points), self.size)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        curve = trace(self.wall, clip)
        return () if curve is None else (curve,)


@dataclass(frozen=True, eq=False)
class AllOrNothing(Solid):
    """Everything or nothing: what a solid becomes on a surface that it does not cut."""

    full: bool
    dim: int = 2

    @property
    def bounds(self) -> Array:
        return np.tile([-np.inf, np.inf], (self.dim, 1))

    @property
    def walls(self) -> tuple[Wall, ...]:
        return ()

    def level(self, points: Array) -> Array:
        return np.full(len(points), -np.inf if self.full else np.inf)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Leaf:
    """One solid of a tree."""

    solid: Solid


@dataclass(frozen=True, eq=False)
class Branch:
    """A set operation on trees; a difference takes all but the first away."""

    operation: SetOperation
    parts: tuple[Tree, ...]


Tree = Leaf | Branch


def tree_level(tree: Tree, points: Array) -> Array:
    """min and max of the levels: < 0 inside, > 0 outside, continuous."""
    if isinstance(tree, Leaf):
        return tree.solid.level(points)
    levels = [tree_level(part, points) for part in tree.parts]
    if tree.operation == "difference":
        levels[1:] = [-level for level in levels[1:]]
    combined: Array = (np.minimum if tree.operation == "union" else np.maximum).reduce(levels)
    return combined


def without_constants(tree: Tree) -> Tree:
    """The same set without solids that are everything or nothing, unless the whole set is: fewer curves to cut.

    >>> everything, nothing = (Leaf(AllOrNothing(full)) for full in (True, False))
    >>> without_constants(Branch("difference", (everything, Branch("union", (nothing, nothing))))).solid.full
    True
    """
    if isinstance(tree, Leaf):
        return tree
    parts = [without_constants(part) for part in tree.parts]
    constants = [part.solid.full if isinstance(part, Leaf) and isinstance(part.solid, AllOrNothing) else None
                 for part in parts]  # fmt: skip
    union, difference = tree.operation == "union", tree.operation == "difference"
    # a union with everything is everything; an intersection with nothing, and a set without everything, are empty
    if any(full is (union or (difference and number > 0)) for number, full in enumerate(constants)):
        return Leaf(AllOrNothing(union))
    kept = [parts[k] for k, full in enumerate(constants) if full is None or (difference and k == 0)]
    return Branch(tree.operation, tuple(kept)) if len(kept) > 1 else (kept or parts)[0]


def tree_leaves(tree: Tree) -> Iterator[Leaf]:
    """All solids of a tree, in the order in which they were written."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for part in tree.parts:
            yield from tree_leaves(part)


def tree_bounds(tree: Tree) -> Array:
    """Bounds (n, 2) that hold the set; an InputError where it is empty."""
    if isinstance(tree, Leaf):
        return tree.solid.bounds
    if tree.operation == "difference":
        return tree_bounds(tree.parts[0])
    parts = np.stack([tree_bounds(part) for part in tree.parts])
    if tree.operation == "union":
        return np.stack([parts[:, :, 0].min(axis=0), parts[:, :, 1].max(axis=0)], axis=1)
    common = np.stack([parts[:, :, 0].max(axis=0), parts[:, :, 1].min(axis=0)], axis=1)
    if not (common[:, 0] < common[:, 1]).all():
        raise InputError("the intersection of shapes is empty: they do not meet; move or enlarge one of them")
    return common


def padded(bounds: Array) -> Array:
    """The bounds with a margin, so that no boundary of a shape lies on theirs; an InputError if they are infinite."""
    if not np.isfinite(bounds).all():
        raise InputError("the shape is not bounded; intersect it with a Box, e.g. HalfSpace(…) & Box(…)")
    margin = 0.01 * (bounds[:, 1] - bounds[:, 0]).max()
    return bounds + np.array([-margin, margin])


@dataclass(frozen=True, eq=False)
class Clipped(ABC):
    """The boundary of a tree of solids within the box clip (n, 2): the base of boundaries in the plane and in space."""

    tree: Tree
    clip: Array

    @classmethod
    def of(cls, tree: Tree) -> Self:
        """The boundary of a tree within its bounds and a margin."""
        return cls(tree, padded(tree_bounds(tree)))

    @property
    def size(self) -> float:
        """The diagonal, to which distances are relative."""
        return float(np.linalg.norm(self.clip[:, 1] - self.clip[:, 0]))

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All solids, in the order in which they were written."""
        return tuple(tree_leaves(self.tree))
