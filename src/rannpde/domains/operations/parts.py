"""Parts of a boundary: the whole boundary of a tree of solids, and where a condition on points holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.pieces import Border, Curves, CutSide
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.boundary.solids import Tree, tree_leaves
from rannpde.domains.domain import SpaceTime
from rannpde.domains.operations.surfaces import Spatial
from rannpde.domains.shapes.base import Domain
from rannpde.errors import InputError, require


def border_of(tree: Tree) -> Border:
    """The whole boundary of a tree in the plane or in space."""
    if tree_dimension(tree) == 2:
        return Curves(tuple(labelled.arcs for labelled in Planar.of(tree).labelled_arcs))
    return Spatial.of(tree).border()


def tree_dimension(tree: Tree) -> int:
    """The dimension of the space in which a tree of solids lies."""
    return len(next(tree_leaves(tree)).solid.bounds)


def part_of(domain: Domain, where: Callable[[Array], Any], name: str) -> Side:
    """The part of the boundary of a domain where a condition on points holds."""
    require(callable(where), "where", where, "a function of points (M, n) to true or false")
    timed = isinstance(domain, SpaceTime)
    space = domain.space if isinstance(domain, SpaceTime) else domain

    def at(points: Array, time: float | None) -> Array:
        whole = points if time is None else np.insert(points, 0, time, axis=1)
        holds = np.asarray(where(whole))
        fits = holds.shape == (len(points),) and holds.dtype == bool
        require(
            fits, "the condition on points", f"{holds.dtype} of shape {holds.shape}", f"bool of shape ({len(points)},)"
        )
        return holds

    start, end = domain.time if isinstance(domain, SpaceTime) else (None, None)

    def condition(points: Array) -> Array:
        holds = at(points, start)
        if timed and not np.array_equal(holds, at(points, end)):
            raise InputError("the condition on points changes with time; a side is the same at all times")
        return holds

    if space.dim == 1:
        ends = [side for side in domain.sides.values() if isinstance(side, FlatSide)]
        chosen = [side for side in ends if condition(np.array([[side.value]]))[0]]
        require(
            len(chosen) == 1, "the condition on points", f"true at {len(chosen)} ends", "true at one of the two ends"
        )
        return chosen[0]
    whole = getattr(space, "border", None)
    border = (border_of(space.tree) if whole is None else whole).where(condition)
    if not border.measure > 0:
        raise InputError("the condition on points holds nowhere on the boundary; a slack helps: points[:, 0] < 1e-9")
    time = (domain.time,) if isinstance(domain, SpaceTime) else ()
    return CutSide(name, domain, border, time, condition)
