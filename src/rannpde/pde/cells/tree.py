"""A tree of boxes: the bounding box of a domain cut in two, again and again, where the solution asks for it.

The leaves are the cells. Two leaves touch in the plane of the one inner node that separates them, so every face between
cells belongs to one node; eliminating the faces of a node after those of its children is nested dissection.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError

MOST_NODES, DEEPEST = 10**6, 200
"""Of a tree that is read from a file."""


class Divider(Protocol):
    """What divides a box into the points where it is negative and the others."""

    def value(self, points: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class CellNode:
    """A box (n, 2); a leaf, or cut across ``axis`` into a lower and an upper box, or divided along a level.

    share : of the length that the lower box gets; None where the cut is at a place that must stay
    level : its children have the same box, and hold the points of it where the level is negative, and the others
    """

    bounds: Array
    axis: int = -1
    children: tuple[CellNode, CellNode] | None = None
    share: float | None = 0.5
    level: Divider | None = None

    @cached_property
    def leaves(self) -> tuple[CellNode, ...]:
        if self.children is None:
            return (self,)
        lower, upper = self.children
        return lower.leaves + upper.leaves

    @property
    def lengths(self) -> Array:
        return self.bounds[:, 1] - self.bounds[:, 0]

    def split(self, axis: int, share: float = 0.5, at: float | None = None) -> CellNode:
        """The box cut across an axis, in the middle unless a share of its length, or a place, is given."""
        place = float(self.bounds[axis] @ (1 - share, share)) if at is None else at
        lower, upper = self.bounds.copy(), self.bounds.copy()
        lower[axis, 1] = upper[axis, 0] = place
        return CellNode(self.bounds, axis, (CellNode(lower), CellNode(upper)), share if at is None else None)

    def divided(self, level: Divider) -> CellNode:
        """The box divided along a level."""
        return CellNode(self.bounds, -1, (CellNode(self.bounds), CellNode(self.bounds)), None, level)

    def refined(
        self, cuts: Mapping[CellNode, tuple[int, ...]], shares: Mapping[CellNode, Array] | None = None
    ) -> CellNode:
        """A tree in which these leaves are cut across their axes, one axis after the other.

        shares : of a leaf's lengths that the lower boxes get, (n,); a half otherwise
        """
        if self.children is not None:
            lower, upper = (child.refined(cuts, shares) for child in self.children)
            return replace(self, children=(lower, upper))
        axes = cuts.get(self, ())
        if not axes:
            return self
        own = np.full(len(self.bounds), 0.5) if shares is None else shares[self]
        tree = self.split(axes[0], float(own[axes[0]]))
        rest = dict.fromkeys(tree.leaves, axes[1:])
        return tree.refined(rest, dict.fromkeys(tree.leaves, own)) if axes[1:] else tree

    def refined_leaves(self, axes: tuple[int, ...]) -> CellNode:
        """All leaves cut across these axes."""
        return self.refined(dict.fromkeys(self.leaves, axes)) if axes else self

    def cut_at(self, axis: int, at: float, slack: float = 0.0) -> CellNode:
        """A tree whose leaves nowhere reach across the plane of that coordinate by more than some slack.

        A plane within the slack of a leaf's end is that end: rounding must not make a leaf of its own.
        """
        if not self.bounds[axis, 0] + slack < at < self.bounds[axis, 1] - slack:
            return self
        if self.children is None:
            return self.split(axis, at=at)
        lower, upper = (child.cut_at(axis, at, slack) for child in self.children)
        return replace(self, children=(lower, upper))

    def cut_near(self, point: Array, axis: int, slack: float) -> CellNode:
        """A tree in which leaves that hold a point, up to some slack, are cut across the axis where it lies in them."""
        lower, upper = self.bounds.T
        if not ((lower - slack <= point) & (point <= upper + slack)).all():
            return self
        if self.children is not None:
            one, other = (child.cut_near(point, axis, slack) for child in self.children)
            return replace(self, children=(one, other))
        return (
            self.split(axis, at=float(point[axis])) if lower[axis] + slack < point[axis] < upper[axis] - slack else self
        )

    def shaken(self, amount: float, rng: np.random.Generator, together: bool = False) -> CellNode:
        """The same cuts at other places, off by up to that share of the shortest leaf beside them; some must stay.

        together : whether cuts in one plane move alike, and all stay where one must: faces of one size stay that
        """
        room: dict[Hashable, float] = {}
        for node in self._inner():
            place, key = node._plane(together)
            ends = ((node.children[0], 1), (node.children[1], 0)) if node.children is not None else ()
            leaves = [(leaf, end) for child, end in ends for leaf in child.leaves]
            beside = [leaf.lengths[node.axis] for leaf, end in leaves if leaf.bounds[node.axis, end] == place]
            own = 0.0 if node.share is None else float(min(beside))
            room[key] = min(own, room.get(key, np.inf))
        moves = {key: amount * length * rng.uniform(-1, 1) if length else 0.0 for key, length in room.items()}
        return self._moved(self.bounds, moves, together)

    def _inner(self) -> Iterator[CellNode]:
        """Every node that is no leaf, each before its children."""
        if self.children is not None:
            yield self
            for child in self.children:
                yield from child._inner()

    def _plane(self, together: bool) -> tuple[float, Hashable]:
        """Where a node is cut, and what tells the cuts that move alike."""
        assert self.children is not None
        place = float(self.children[1].bounds[self.axis, 0])
        return place, (self.axis, place) if together else self

    def _moved(self, box: Array, moves: Mapping[Hashable, float], together: bool) -> CellNode:
        if self.children is None:
            return CellNode(box)
        place, key = self._plane(together)
        cut = CellNode(box).split(self.axis, at=place + moves[key])
        assert cut.children is not None
        pairs = zip(self.children, cut.children, strict=True)
        one, other = (old._moved(new.bounds, moves, together) for old, new in pairs)
        return CellNode(box, self.axis, (one, other), self.share)

    def locate(self, points: Array) -> Array:
        """The number of the leaf of each point (M,): on a cut the upper one, outside the nearest."""
        found = np.zeros(len(points), dtype=int)
        self._locate(points, np.arange(len(points)), 0, found)
        return found

    def _locate(self, points: Array, rows: Array, first: int, found: Array) -> None:
        if self.children is None or not len(rows):
            found[rows] = first
            return
        lower, upper = self.children
        if self.level is None:
            above = points[rows, self.axis] >= upper.bounds[self.axis, 0]
        else:
            above = self.level.value(points[rows]) >= 0
        lower._locate(points, rows[~above], first, found)
        upper._locate(points, rows[above], first + len(lower.leaves), found)


@dataclass(frozen=True, eq=False)
class Face:
    """The common part of two leaves: their numbers (lower, upper), the axis across, and the flat box (n, 2)."""

    cells: tuple[int, int]
    axis: int
    bounds: Array


def faces_of(node: CellNode, first: int = 0) -> Iterator[Face]:
    """The faces in the plane of an inner node whose leaves are numbered from ``first``."""
    if node.children is None or node.level is not None:
        return
    lower, upper = node.children
    axis, at = node.axis, upper.bounds[node.axis, 0]
    below = [(k, leaf) for k, leaf in enumerate(lower.leaves, first) if leaf.bounds[axis, 1] == at]
    above = [(k, leaf) for k, leaf in enumerate(upper.leaves, first + len(lower.leaves)) if leaf.bounds[axis, 0] == at]
    yield from touching(below, above, axis)


def touching(below: list[tuple[int, CellNode]], above: list[tuple[int, CellNode]], axis: int) -> Iterator[Face]:
    """Pairs of boxes whose projections along the axis overlap; the face lies on the upper side of the first."""
    for one, left in below:
        for other, right in above:
            lower = np.maximum(left.bounds[:, 0], right.bounds[:, 0])
            upper = np.minimum(left.bounds[:, 1], right.bounds[:, 1])
            rest = np.arange(len(lower)) != axis
            if (lower[rest] < upper[rest]).all():
                bounds = np.stack([lower, upper], axis=1)
                bounds[axis] = left.bounds[axis, 1]
                yield Face((one, other), axis, bounds)


def packed_tree(tree: CellNode, levels: Sequence[Divider] = ()) -> tuple[Array, Array]:
    """Axis and place of every cut, depth first; a leaf has the axis -1, level k of n coordinates the axis n + k."""
    if tree.children is None:
        return np.array([-1.0]), np.zeros(1)
    lower, upper = tree.children
    parts = [packed_tree(lower, levels), packed_tree(upper, levels)]
    axis, place = tree.axis, upper.bounds[tree.axis, 0]
    if tree.level is not None:
        axis, place = len(tree.bounds) + [level is tree.level for level in levels].index(True), 0.0
    axes = np.concatenate([[axis], parts[0][0], parts[1][0]])
    return axes, np.concatenate([[place], parts[0][1], parts[1][1]])


def unpacked_tree(bounds: Array, axes: Array, places: Array, levels: Sequence[Divider] = ()) -> CellNode:
    """The inverse of ``packed_tree``; FileError for arrays that are no tree.

    >>> tree = CellNode(np.array([(0.0, 1.0), (0.0, 2.0)])).split(1).refined_leaves((0,))
    >>> len(unpacked_tree(tree.bounds, *packed_tree(tree)).leaves)
    4
    """
    if len(axes) != len(places) or not len(axes) or len(axes) > MOST_NODES:
        raise FileError("the tree of the cells is damaged")
    rest = iter(zip(axes.tolist(), places.tolist(), strict=True))

    def build(box: Array, depth: int) -> CellNode:
        number, place = next(rest, (np.nan, 0.0))
        if number == -1:
            return CellNode(box)
        axis = int(number) if number in range(len(box) + len(levels)) else -1
        flat = axis < len(box)
        if axis < 0 or (flat and not box[axis, 0] < place < box[axis, 1]) or depth > DEEPEST:
            raise FileError("the tree of the cells is damaged")
        cut = CellNode(box).split(axis, at=place) if flat else CellNode(box).divided(levels[axis - len(box)])
        assert cut.children is not None
        lower, upper = (build(child.bounds, depth + 1) for child in cut.children)
        return replace(cut, children=(lower, upper))

    tree = build(bounds, 0)
    if next(rest, None) is not None:
        raise FileError("the tree of the cells is damaged")
    return tree
