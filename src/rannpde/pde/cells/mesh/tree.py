"""The tree of boxes of a mesh: the bounding box of a domain, bisected recursively (h-refinement).

The leaves are the cells. Two leaves touch in the plane of the one inner node that separates them, so every face between
cells belongs to one node. Eliminating the traces on the faces of a node after those of its children is nested
dissection.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError

MAX_NODES, MAX_DEPTH = 10**6, 200
"""Limits on a tree that is read from a file."""


class Divider(Protocol):
    """A level-set function, which divides a box into the points where it is negative and the others."""

    def value(self, points: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class CellNode:
    """A box (n, 2): a leaf, a box split across ``axis`` into a lower and an upper one, or a box divided by a level set.

    fraction : the fraction of the length that the lower box gets; None where the position of the split is fixed
    level : both children have this node's box; the first holds the points where the level is negative, the second the
        others
    """

    bounds: Array
    axis: int = -1
    children: tuple[CellNode, CellNode] | None = None
    fraction: float | None = 0.5
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

    def split(self, axis: int, fraction: float = 0.5, at: float | None = None) -> CellNode:
        """Return the box split across an axis: in the middle, at a fraction of its length, or at ``at``."""
        position = float(self.bounds[axis] @ (1 - fraction, fraction)) if at is None else at
        lower, upper = self.bounds.copy(), self.bounds.copy()
        lower[axis, 1] = upper[axis, 0] = position
        return CellNode(self.bounds, axis, (CellNode(lower), CellNode(upper)), fraction if at is None else None)

    def divided(self, level: Divider) -> CellNode:
        """Return the box divided along the zeros of a level-set function."""
        return CellNode(self.bounds, -1, (CellNode(self.bounds), CellNode(self.bounds)), None, level)

    def refined(
        self, splits: Mapping[CellNode, tuple[int, ...]], fractions: Mapping[CellNode, Array] | None = None
    ) -> CellNode:
        """Return the tree with these leaves split across the given axes, one axis after the other.

        fractions : for each leaf, the fractions (n,) of its lengths that the lower boxes get; one half by default
        """
        if self.children is not None:
            lower, upper = (child.refined(splits, fractions) for child in self.children)
            return self if (lower, upper) == self.children else replace(self, children=(lower, upper))
        axes = splits.get(self, ())
        if not axes:
            return self
        shares = np.full(len(self.bounds), 0.5) if fractions is None else fractions[self]
        tree = self.split(axes[0], float(shares[axes[0]]))
        rest = dict.fromkeys(tree.leaves, axes[1:])
        return tree.refined(rest, dict.fromkeys(tree.leaves, shares)) if axes[1:] else tree

    def refined_leaves(self, axes: tuple[int, ...]) -> CellNode:
        """Return the tree with all leaves split across these axes."""
        return self.refined(dict.fromkeys(self.leaves, axes)) if axes else self

    def split_at(self, axis: int, at: float, slack: float = 0.0) -> CellNode:
        """Return a tree none of whose leaves extends across the plane {x_axis = at} by more than ``slack``.

        A plane within the slack of a leaf's end is taken for that end: rounding must not create a sliver.
        """
        if not self.bounds[axis, 0] + slack < at < self.bounds[axis, 1] - slack:
            return self
        if self.children is None:
            return self.split(axis, at=at)
        lower, upper = (child.split_at(axis, at, slack) for child in self.children)
        return replace(self, children=(lower, upper))

    def split_near(self, point: Array, axis: int, slack: float) -> CellNode:
        """Split the leaves that contain a point, up to some slack, across the axis at the point's coordinate."""
        lower, upper = self.bounds.T
        if not ((lower - slack <= point) & (point <= upper + slack)).all():
            return self
        if self.children is not None:
            one, other = (child.split_near(point, axis, slack) for child in self.children)
            return replace(self, children=(one, other))
        return (
            self.split(axis, at=float(point[axis])) if lower[axis] + slack < point[axis] < upper[axis] - slack else self
        )

    def jittered(self, amount: float, rng: np.random.Generator, aligned: bool = False) -> CellNode:
        """Move every split by up to ``amount`` times the length of the shortest leaf beside it (jittered mesh).

        Splits whose position is fixed stay where they are.

        aligned : whether splits in one plane move by the same amount, and none of them if one is fixed; faces keep
            their sizes
        """
        space: dict[Hashable, float] = {}
        for node in self._inner():
            position, key = node._plane(aligned)
            ends = ((node.children[0], 1), (node.children[1], 0)) if node.children is not None else ()
            leaves = [(leaf, end) for child, end in ends for leaf in child.leaves]
            beside = [leaf.lengths[node.axis] for leaf, end in leaves if leaf.bounds[node.axis, end] == position]
            available = 0.0 if node.fraction is None else float(min(beside))
            space[key] = min(available, space.get(key, np.inf))
        moves = {key: amount * length * rng.uniform(-1, 1) if length else 0.0 for key, length in space.items()}
        return self._moved(self.bounds, moves, aligned)

    def _inner(self) -> Iterator[CellNode]:
        """Iterate over the inner nodes, each before its children."""
        if self.children is not None:
            yield self
            for child in self.children:
                yield from child._inner()

    def _plane(self, aligned: bool) -> tuple[float, Hashable]:
        """Return the position of a node's split, and a key that is the same for splits that move together."""
        assert self.children is not None
        position = float(self.children[1].bounds[self.axis, 0])
        return position, (self.axis, position) if aligned else self

    def _moved(self, box: Array, moves: Mapping[Hashable, float], aligned: bool) -> CellNode:
        if self.children is None:
            return CellNode(box)
        position, key = self._plane(aligned)
        split = CellNode(box).split(self.axis, at=position + moves[key])
        assert split.children is not None
        pairs = zip(self.children, split.children, strict=True)
        one, other = (old._moved(new.bounds, moves, aligned) for old, new in pairs)
        return CellNode(box, self.axis, (one, other), self.fraction)

    def locate(self, points: Array) -> Array:
        """Return the number of the leaf that contains each point (M,): the upper one on a split, the nearest one
        outside."""
        numbers = np.zeros(len(points), dtype=int)
        self._locate(points, np.arange(len(points)), 0, numbers)
        return numbers

    def _locate(self, points: Array, rows: Array, first: int, numbers: Array) -> None:
        if self.children is None or not len(rows):
            numbers[rows] = first
            return
        lower, upper = self.children
        if self.level is None:
            above = points[rows, self.axis] >= upper.bounds[self.axis, 0]
        else:
            above = self.level.value(points[rows]) >= 0
        lower._locate(points, rows[~above], first, numbers)
        upper._locate(points, rows[above], first + len(lower.leaves), numbers)


@dataclass(frozen=True, eq=False)
class BoxFace:
    """The common face of two leaves: their numbers (lower, upper), the axis normal to it, and its flat box (n, 2)."""

    cells: tuple[int, int]
    axis: int
    bounds: Array


def box_faces(node: CellNode, first: int = 0) -> Iterator[BoxFace]:
    """Iterate over the faces in the plane of an inner node whose leaves are numbered from ``first``."""
    if node.children is None or node.level is not None:
        return
    lower, upper = node.children
    axis, at = node.axis, upper.bounds[node.axis, 0]
    below = [(k, leaf) for k, leaf in enumerate(lower.leaves, first) if leaf.bounds[axis, 1] == at]
    above = [(k, leaf) for k, leaf in enumerate(upper.leaves, first + len(lower.leaves)) if leaf.bounds[axis, 0] == at]
    yield from touching(below, above, axis)


def touching(below: list[tuple[int, CellNode]], above: list[tuple[int, CellNode]], axis: int) -> Iterator[BoxFace]:
    """Iterate over the common faces of boxes ``below`` and ``above`` a plane: pairs whose projections overlap."""
    for one, left in below:
        for other, right in above:
            lower = np.maximum(left.bounds[:, 0], right.bounds[:, 0])
            upper = np.minimum(left.bounds[:, 1], right.bounds[:, 1])
            rest = np.arange(len(lower)) != axis
            if (lower[rest] < upper[rest]).all():
                bounds = np.stack([lower, upper], axis=1)
                bounds[axis] = left.bounds[axis, 1]
                yield BoxFace((one, other), axis, bounds)


def packed_tree(tree: CellNode, levels: Sequence[Divider] = ()) -> tuple[Array, Array]:
    """Return axis and position of every split, depth first, as two arrays.

    A leaf has the axis -1; a division by level k of a tree in n coordinates has the axis n + k.
    """
    if tree.children is None:
        return np.array([-1.0]), np.zeros(1)
    lower, upper = tree.children
    parts = [packed_tree(lower, levels), packed_tree(upper, levels)]
    axis, position = tree.axis, upper.bounds[tree.axis, 0]
    if tree.level is not None:
        axis, position = len(tree.bounds) + [level is tree.level for level in levels].index(True), 0.0
    axes = np.concatenate([[axis], parts[0][0], parts[1][0]])
    return axes, np.concatenate([[position], parts[0][1], parts[1][1]])


def unpacked_tree(bounds: Array, axes: Array, positions: Array, levels: Sequence[Divider] = ()) -> CellNode:
    """Return the tree of arrays that ``packed_tree`` made; FileError where they do not describe a tree.

    >>> tree = CellNode(np.array([(0.0, 1.0), (0.0, 2.0)])).split(1).refined_leaves((0,))
    >>> len(unpacked_tree(tree.bounds, *packed_tree(tree)).leaves)
    4
    """
    if len(axes) != len(positions) or not len(axes) or len(axes) > MAX_NODES:
        raise FileError("the tree of the cells is damaged")
    rest = iter(zip(axes.tolist(), positions.tolist(), strict=True))

    def build(box: Array, depth: int) -> CellNode:
        number, position = next(rest, (np.nan, 0.0))
        if number == -1:
            return CellNode(box)
        axis = int(number) if number in range(len(box) + len(levels)) else -1
        flat = axis < len(box)
        if axis < 0 or (flat and not box[axis, 0] < position < box[axis, 1]) or depth > MAX_DEPTH:
            raise FileError("the tree of the cells is damaged")
        node = CellNode(box).split(axis, at=position) if flat else CellNode(box).divided(levels[axis - len(box)])
        assert node.children is not None
        lower, upper = (build(child.bounds, depth + 1) for child in node.children)
        return replace(node, children=(lower, upper))

    tree = build(bounds, 0)
    if next(rest, None) is not None:
        raise FileError("the tree of the cells is damaged")
    return tree
