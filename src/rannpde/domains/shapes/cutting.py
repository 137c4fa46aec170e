"""Domains that are cut out of others or bounded by curves: everything about them follows from their tree of solids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains.boundary.creases import NONE, Creases, reentrant_creases
from rannpde.domains.boundary.naming import side_names
from rannpde.domains.boundary.pieces import BOUNDARY_SLACK, Border, Curves, CutSide
from rannpde.domains.boundary.planar import SMOOTH_JOIN_ANGLE, Corner, Planar
from rannpde.domains.boundary.solids import Leaf, padded, tree_bounds, tree_leaves, tree_level
from rannpde.domains.quadrature.plane import planar_rule
from rannpde.domains.region import rejected
from rannpde.domains.shapes.base import Domain
from rannpde.domains.streams import PointStream
from rannpde.errors import InputError, finite_points, require

if TYPE_CHECKING:
    from rannpde.domains.boundary.sides import Side
    from rannpde.domains.operations.surfaces import Spatial

LEAST = 1e-12
"""Area or volume, relative to that of the bounds, below which a set is called empty."""

EDGE_SEARCH_POINTS, LEAST_SEEN = 4000, 50
"""Points of the boundary, and of each side, among which the edges of a solid are searched."""

INWARD_PROBE = 1e-7
"""How far beside a point of the rim points inside are looked for, as a share of the size of the shape."""


class Cut(Domain):
    """A domain of two or three dimensions whose sides are pieces of curves or surfaces."""

    exact = False

    @property
    def extent(self) -> int:
        return self.dim

    @property
    def columns(self) -> int:
        return self.dim

    @cached_property
    def engine(self) -> Planar | Spatial:
        """The boundary, cut out of those of all shapes; an InputError where the set cannot be right."""
        require(self.dim in (2, 3), "the dimension of the shape", self.dim, "2 or 3")
        if self.dim == 2:
            planar = Planar.of(self.tree)
            self._refuse_useless([labelled.leaf for labelled in planar.labelled_arcs], planar.leaves, planar.area)
            planar.refuse_touching()
            return planar
        from rannpde.domains.operations.surfaces import Spatial
        from rannpde.domains.operations.touching import refuse_touching_solids

        spatial = Spatial.of(self.tree)
        refuse_touching_solids(self.tree, spatial.size)
        # the volume asks for rules on all faces, which takes seconds where walls cut each other: it is left for later
        measure = (self.has_rule and self._volume_of_a_ball_inside()) or spatial.volume
        self._refuse_useless([sheet.leaf for sheet in spatial.sheets], spatial.leaves, measure)
        return spatial

    def _volume_of_a_ball_inside(self) -> float:
        """The volume of a ball inside, around the deepest point of a grid: levels change at most at their rate.

        0 where it is too small to be distinguished from an empty set.
        """
        axes = [np.linspace(lower, upper, round(EDGE_SEARCH_POINTS ** (1 / 3))) for lower, upper in self._clip]
        deepest = -float(tree_level(self.tree, combinations(axes)).min())
        radius = max(deepest, 0.0) / max(leaf.solid.rate for leaf in tree_leaves(self.tree))
        volume = 4 / 3 * pi * radius**3
        return volume if volume > self._least else 0.0

    @property
    def _least(self) -> float:
        return LEAST * float(np.prod(self._clip[:, 1] - self._clip[:, 0]))

    def _refuse_useless(self, used: Sequence[int], leaves: Sequence[Leaf], measure: float) -> None:
        if not used or not measure > self._least:
            raise InputError(f"the shape {self!r} is empty: nothing of it is left; look at what is taken away")
        for number, leaf in enumerate(leaves):
            if number not in used and not getattr(leaf.solid, "optional", False):
                raise InputError(
                    f"{leaf.solid!r} has no part in the boundary: it lies outside of what it is taken from or meets, "
                    "or inside of what it is joined to; move it or leave it out"
                )

    @property
    def _clip(self) -> Array:
        return padded(tree_bounds(self.tree))

    @property
    def size(self) -> float:
        """The largest coordinate, to which rounding is relative."""
        return float(np.abs(self._clip).max())

    @property
    def measure(self) -> float:
        return self.engine.area if isinstance(self.engine, Planar) else self.engine.volume

    @property
    def bounds(self) -> Array:
        return self.engine.bounds

    def level(self, points: Array) -> Array:
        return tree_level(self.tree, finite_points("points", points, self.dim))

    def contains(self, points: Array) -> Array:
        level = self.level(points)
        inside: Array = level <= BOUNDARY_SLACK * self.size
        rim = np.flatnonzero(inside & (level >= -BOUNDARY_SLACK * self.size))
        if len(rim):  # faces that two shapes share bound nothing: a point of the rim has points inside beside it
            ways = combinations([np.array([-1.0, 0.0, 1.0])] * self.dim)
            beside = points[rim, None] + INWARD_PROBE * self.size * ways
            deep = self.level(beside.reshape(-1, self.dim)).reshape(len(rim), -1) < -BOUNDARY_SLACK * self.size
            inside[rim] = deep.any(axis=1)
        return inside

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        lower, upper = self.bounds.T

        def trial(unit: Array) -> tuple[Array, Array]:
            points = lower + (upper - lower) * unit[:, carried:]
            return np.concatenate([unit[:, :carried], points], axis=1), self.level(points) <= 0

        return rejected(count, stream, trial, "the domain")

    @property
    def has_rule(self) -> bool:  # type: ignore[override]
        return self.dim == 2 or all(leaf.solid.walls for leaf in tree_leaves(self.tree))

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        if isinstance(self.engine, Planar):
            return planar_rule(self.engine, count, panels)
        return self.engine.rule(count, panels)

    @cached_property
    def _borders(self) -> dict[str, Border]:
        engine = self.engine
        if isinstance(engine, Planar):
            names = side_names(engine.leaves, [(s.leaf, s.label) for s in engine.labelled_arcs])
            grouped: dict[str, list[Any]] = {}
            for labelled in engine.labelled_arcs:
                grouped.setdefault(names[labelled.leaf, labelled.label], []).append(labelled.arcs)
            return {name: Curves(tuple(arcs)) for name, arcs in grouped.items()}
        names = side_names(engine.leaves, [(s.leaf, s.label) for s in engine.sheets])
        chosen: dict[str, list[int]] = {}
        for number, sheet in enumerate(engine.sheets):
            chosen.setdefault(names[sheet.leaf, sheet.label], []).append(number)
        return {name: engine.border(numbers) for name, numbers in chosen.items()}

    @cached_property
    def border(self) -> Border:
        """The whole boundary."""
        if isinstance(self.engine, Planar):
            return Curves(tuple(labelled.arcs for labelled in self.engine.labelled_arcs))
        return self.engine.border()

    @cached_property
    def sides(self) -> dict[str, Side]:
        return {name: CutSide(name, self, border) for name, border in self._borders.items()}

    @cached_property
    def corners(self) -> tuple[Corner, ...]:
        if not isinstance(self.engine, Planar):
            return ()
        names = side_names(self.engine.leaves, [(s.leaf, s.label) for s in self.engine.labelled_arcs])
        return tuple(
            Corner(
                (float(v.point[0]), float(v.point[1])),
                v.angle,
                (float(v.leaving[0]), float(v.leaving[1])),
                (names[v.labels[0]], names[v.labels[1]]),
            )
            for v in self.engine.vertices
            if v.angle > np.pi + SMOOTH_JOIN_ANGLE
        )

    @cached_property
    def creases(self) -> Creases:
        if self.dim != 3:
            return NONE
        sides, whole = self.sides.values(), sum(side.measure for side in self.sides.values())
        points = [
            side.sample(max(LEAST_SEEN, round(EDGE_SEARCH_POINTS * side.measure / whole)), rng=0) for side in sides
        ]
        normals = [side.normals(own) for side, own in zip(sides, points, strict=True)]
        return reentrant_creases(self.level, np.concatenate(points), np.concatenate(normals), self.size)
