"""Balls and boxes in space that touch: in one point, or along an edge.

The boundary is no surface there, and no solution near it can be resolved. Found in closed form for these two, pair by
pair; other shapes in space are not looked at.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.planar import JOINED, touching_message
from rannpde.domains.boundary.solids import Solid, Tree, tree_leaves, tree_level
from rannpde.domains.shapes.boxes import Ball, Box
from rannpde.errors import InputError


def refuse_touching_solids(tree: Tree, size: float) -> None:
    """An InputError where two balls or boxes of a tree touch in a point of its boundary; size is that of the set."""
    solids = [leaf.solid for leaf in tree_leaves(tree)]
    for one, other in combinations([solid for solid in solids if isinstance(solid, Ball | Box)], 2):
        for point in _contacts(one, other, JOINED * size):
            if abs(float(tree_level(tree, point[None, :])[0])) <= JOINED * size:
                raise InputError(touching_message(point))


def _contacts(one: Solid, other: Solid, slack: float) -> list[Array]:
    """Points where the surfaces touch without crossing."""
    if isinstance(one, Ball) and isinstance(other, Ball):
        return _balls(one, other, slack)
    if isinstance(one, Box) and isinstance(other, Box):
        return _boxes(one, other, slack)
    box, ball = (one, other) if isinstance(one, Box) else (other, one)
    return _faces(box, ball, slack) if isinstance(box, Box) and isinstance(ball, Ball) else []


def _balls(one: Ball, other: Ball, slack: float) -> list[Array]:
    first, arrow = np.array(one.centre), np.array(other.centre) - np.array(one.centre)
    distance = float(np.linalg.norm(arrow))
    if distance <= slack:
        return []
    outside = abs(distance - one.radius - other.radius) <= slack
    inside = abs(distance - abs(one.radius - other.radius)) <= slack
    if not (outside or inside):
        return []
    # one inside the other touches on the far side of the smaller ball
    reach = one.radius if outside or one.radius > other.radius else -one.radius
    return [first + reach * arrow / distance]


def _faces(box: Box, ball: Ball, slack: float) -> list[Array]:
    """The feet of the centre on faces whose plane the ball touches, on the nearest edge or in the nearest corner."""
    centre, (lower, upper) = np.array(ball.centre), box.bounds.T
    feet = []
    for axis in range(box.dim):
        for end in box.bounds[axis]:
            foot = centre.copy()
            foot[axis] = end
            on_face = bool(((foot >= lower - slack) & (foot <= upper + slack)).all())
            if on_face and abs(abs(centre[axis] - end) - ball.radius) <= slack:
                feet.append(foot)
    nearest = np.clip(centre, lower, upper)
    if abs(float(np.linalg.norm(centre - nearest)) - ball.radius) <= slack:
        feet.append(nearest)
    return feet


def _boxes(one: Box, other: Box, slack: float) -> list[Array]:
    """The middle of what two boxes share, if that is an edge or a corner."""
    lower = np.maximum(one.bounds[:, 0], other.bounds[:, 0])
    upper = np.minimum(one.bounds[:, 1], other.bounds[:, 1])
    width = upper - lower
    flat = np.abs(width) <= slack
    return [0.5 * (lower + upper)] if (width >= -slack).all() and flat.sum() >= 2 else []
