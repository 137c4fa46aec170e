"""Shapes bounded by formulas: implicit ones, and closed parametric curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import pi
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.solids import Branch, Leaf, Solid, SublevelSet, Tree
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.coordinates import Pair, checked_shape_name, coordinate_names, pair
from rannpde.domains.shapes.boxes import Box, named
from rannpde.domains.shapes.cutting import Cut
from rannpde.domains.shapes.formula import ShapeFormula
from rannpde.domains.shapes.polygon import crossing_edges
from rannpde.domains.shapes.quadrics import Shape
from rannpde.errors import InputError, require

PIECES = 16
"""Pieces of a parametric curve."""
SAMPLES = 2048
"""Points of a parametric curve from which the nearest one is looked for."""


@dataclass(frozen=True, eq=False)
class FormulaWall(Wall):
    """A formula of the coordinates as a wall."""

    formula: ShapeFormula

    def both(self, points: Array) -> tuple[Array, Array]:
        return self.formula.both(points)


@dataclass(frozen=True, eq=False)
class FormulaSublevelSet(SublevelSet):
    """The sublevel set of a formula, as a named part of an implicit shape."""

    name: str | None = None
    kind: str = "implicit"


@dataclass(frozen=True, eq=False)
class Frame(Solid):
    """The box in which an implicit shape is looked for; it need not cut anything off."""

    box: Box
    optional: bool = True

    @property
    def bounds(self) -> Array:
        return self.box.bounds

    @property
    def walls(self) -> tuple[Wall, ...]:
        return self.box.walls

    def level(self, points: Array) -> Array:
        return self.box.level(points)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return self.box.charts(clip)


@dataclass(frozen=True, init=False, repr=False)
class Implicit(Cut):
    """The points of a box where an inequality holds: ``Implicit("x**2/4 + y**2 < 1", within=Box(…))``.

    The boundary is located on a grid of 128 cells along the longest side of the box (24 in space) and then followed
    exactly; parts smaller than a cell can be missed. The formula must be smooth and have a slope on the boundary.

    >>> disc = Implicit("x**2 + y**2 < 1", within=Box(x=(-2, 2), y=(-2, 2)))
    >>> round(disc.volume, 10), list(disc.sides)
    (3.1415926536, ['implicit1'])
    """

    formula: str
    frame: Box
    name: str | None
    _wall: FormulaWall = field(compare=False)

    def __init__(self, formula: str, within: Box, name: str | None = None) -> None:
        require(isinstance(within, Box), "within", within, "a Box around the shape", "e.g. Box(x=(-1, 1), y=(-1, 1))")
        require(within.dim in (2, 3), "the dimension of within", within.dim, "2 or 3")
        object.__setattr__(self, "formula", formula)
        object.__setattr__(self, "frame", within)
        object.__setattr__(self, "name", checked_shape_name(name))
        wall = FormulaWall(ShapeFormula.negative_where(formula, within.names))
        object.__setattr__(self, "_wall", wall)

    def __repr__(self) -> str:
        return f"Implicit({self.formula!r}, within={self.frame!r}{named(self.name)})"

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.frame.names

    @property
    def tree(self) -> Tree:
        bounds = self.frame.bounds
        size = float(np.linalg.norm(bounds[:, 1] - bounds[:, 0]))
        sublevel = FormulaSublevelSet(self._wall, bounds, size, name=self.name)
        return Branch("intersection", (Leaf(sublevel), Leaf(Frame(self.frame))))

    def with_names(self, names: Sequence[str]) -> Implicit:
        raise InputError(
            f"the coordinates of {self!r} are in its formula; give the other shapes names={self.names} instead"
        )


@dataclass(frozen=True, eq=False)
class ClosedPath(Chart):
    """A closed curve (x(s), y(s)), counter-clockwise, in equal pieces of its parameter."""

    label: str
    x: ShapeFormula
    y: ShapeFormula
    span: Pair
    turned: bool

    @property
    def count(self) -> int:
        return PIECES

    def parameter(self, piece: Array, unit: Array) -> Array:
        """s of pieces at shares of them."""
        share = (piece + unit) / PIECES
        lower, upper = self.span
        return lower + (upper - lower) * (1 - share if self.turned else share)

    def at(self, s: Array) -> tuple[Array, Array]:
        """Points (M, 2) and derivatives with respect to s (M, 2)."""
        both = [formula.both(s[:, None]) for formula in (self.x, self.y)]
        return np.stack([value for value, _ in both], axis=1), np.stack([slope[:, 0] for _, slope in both], axis=1)

    def place(self, piece: Array, unit: Array) -> Array:
        return self.at(self.parameter(piece, unit[:, 0]))[0]

    def tangents(self, piece: Array, unit: Array) -> Array:
        factor = (self.span[1] - self.span[0]) / PIECES * (-1 if self.turned else 1)
        return factor * self.at(self.parameter(piece, unit[:, 0]))[1][:, :, None]

    @cached_property
    def _tree(self) -> tuple[Array, cKDTree]:
        s = self.span[0] + (self.span[1] - self.span[0]) * np.arange(SAMPLES) / SAMPLES
        return s, cKDTree(self.at(s)[0])

    def foot(self, points: Array) -> tuple[Array, Array]:
        """Vector (M, 2) from the nearest point of the curve, and the outward unit normal (M, 2) there."""
        samples, tree = self._tree
        s = samples[tree.query(points)[1]]
        step = (self.span[1] - self.span[0]) / SAMPLES
        for _ in range(20):
            nearest, slope = self.at(s)
            move = ((points - nearest) * slope).sum(axis=1) / (slope**2).sum(axis=1)
            move = np.clip(move, -step, step)
            s = s + move
            if (np.abs(move) <= 1e-15 * (1 + np.abs(s))).all():
                break
        nearest, slope = self.at(s)
        normal = np.stack([slope[:, 1], -slope[:, 0]], axis=1) * (-1 if self.turned else 1)
        return points - nearest, normal / np.linalg.norm(normal, axis=1, keepdims=True)

    def offset(self, points: Array) -> Array:
        return np.linalg.norm(self.foot(points)[0], axis=1)

    def outward(self, points: Array) -> Array:
        return self.foot(points)[1]


@dataclass(frozen=True, init=False, repr=False)
class Curve(Shape):
    """What a smooth closed curve (x(s), y(s)) encloses; s runs over ``span``, one whole turn.

    >>> flower = Curve("(1 + 0.2*cos(5*s))*cos(s)", "(1 + 0.2*cos(5*s))*sin(s)", name="flower")
    >>> round(flower.volume, 10) == round(pi * (1 + 0.2**2 / 2), 10), list(flower.sides)
    (True, ['flower'])
    """

    x: str
    y: str
    span: Pair
    names: tuple[str, ...]
    name: str | None
    kind: ClassVar[str] = "curve"

    def __init__(
        self,
        x: str,
        y: str,
        span: Any = (0.0, 2 * pi),
        names: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "span", pair("span", span))
        object.__setattr__(self, "names", coordinate_names(names, 2))
        object.__setattr__(self, "name", checked_shape_name(name))
        _check_curve(self._path)

    def __repr__(self) -> str:
        return f"Curve({self.x!r}, {self.y!r}, span={self.span}, names={self.names}{named(self.name)})"

    @property
    def rate(self) -> float:
        return 1.5

    @cached_property
    def _path(self) -> ClosedPath:
        x, y = ShapeFormula.read(self.x, ("s",)), ShapeFormula.read(self.y, ("s",))
        path = ClosedPath("", x, y, self.span, turned=False)
        s = np.linspace(*self.span, 513)[:-1]
        (px, py), (dx, dy) = (array.T for array in path.at(s))
        return ClosedPath("", x, y, self.span, turned=bool(np.sum(px * dy - py * dx) < 0))

    @cached_property
    def bounds(self) -> Array:
        from rannpde.domains.boundary.planar import Planar

        points = self._path.at(np.linspace(*self.span, SAMPLES))[0]
        rough = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        return Planar(self.tree, rough + 0.01 * (rough[:, 1] - rough[:, 0]).max() * np.array([-1, 1])).bounds

    @property
    def walls(self) -> tuple[Wall, ...]:
        return ()

    def _level(self, points: Array) -> Array:
        arrow, normal = self._path.foot(points)
        distance = np.linalg.norm(arrow, axis=1)
        return np.where((arrow * normal).sum(axis=1) < 0, -distance, distance)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return (self._path,)

    def with_names(self, names: Sequence[str]) -> Curve:
        return Curve(self.x, self.y, self.span, tuple(names), self.name)


def _check_curve(path: ClosedPath) -> None:
    s = np.linspace(*path.span, 513)
    points, slopes = path.at(s)
    finite = np.isfinite(points).all() and np.isfinite(slopes).all()
    require(bool(finite), "the curve", (path.x.text, path.y.text), "finite for all s")
    size = float(np.abs(points).max())
    speed = np.linalg.norm(slopes, axis=1)
    require(
        bool(speed.min() > 1e-9 * size), "the curve", (path.x.text, path.y.text), "without points where it stands still"
    )
    gap = float(np.abs(points[-1] - points[0]).max())
    require(gap <= 1e-9 * size, "the gap between both ends of the curve", gap, "0", "choose span as one whole turn")
    bend = float(np.abs(slopes[-1] / speed[-1] - slopes[0] / speed[0]).max())
    require(bend <= 1e-6, "the curve", "bent where it closes", "smooth", "combine shapes for corners")
    closed = np.concatenate([points[:-1], points[:1]])
    crossed = crossing_edges(closed[:-1], closed[1:])
    if crossed is not None:
        raise InputError(f"the curve crosses itself, near s = {s[crossed[0]]:.4g} and s = {s[crossed[1]]:.4g}")
