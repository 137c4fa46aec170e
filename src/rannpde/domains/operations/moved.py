"""Domains that were translated, turned or scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, sin
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.solids import Branch, Leaf, Solid, Tree
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.shapes.base import Domain
from rannpde.domains.shapes.boxes import Ball, Box
from rannpde.domains.shapes.cutting import Cut
from rannpde.errors import finite_array, positive_number, require

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Similarity:
    """x → factor · rotation · x + shift."""

    factor: float
    rotation: Matrix
    shift: tuple[float, ...]

    def apply(self, points: Array) -> Array:
        """Points (M, n) moved."""
        return self.factor * points @ np.array(self.rotation).T + self.shift

    def back(self, points: Array) -> Array:
        """Points (M, n) moved back."""
        return (points - self.shift) @ np.array(self.rotation) / self.factor

    def turn(self, vectors: Array) -> Array:
        """Directions (M, n) turned."""
        return vectors @ np.array(self.rotation).T

    def after(self, first: Similarity) -> Similarity:
        """The motion that does another one first, then this one."""
        rotation = np.array(self.rotation) @ np.array(first.rotation)
        shift = self.apply(np.array([first.shift]))[0]
        return Similarity(self.factor * first.factor, _matrix(rotation), tuple(shift.tolist()))


def _matrix(array: Array) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in array)


@dataclass(frozen=True, eq=False)
class MovedWall(Wall):
    """A wall moved along."""

    wall: Wall
    move: Similarity

    def both(self, points: Array) -> tuple[Array, Array]:
        value, gradient = self.wall.both(self.move.back(points))
        return self.move.factor * value, self.move.turn(gradient)


@dataclass(frozen=True, eq=False)
class MovedChart(Chart):
    """A chart moved along."""

    label: str
    chart: Chart
    move: Similarity

    @property
    def count(self) -> int:
        return self.chart.count

    def place(self, piece: Array, unit: Array) -> Array:
        return self.move.apply(self.chart.place(piece, unit))

    def tangents(self, piece: Array, unit: Array) -> Array:
        tangents: Array = self.move.factor * np.array(self.move.rotation) @ self.chart.tangents(piece, unit)
        return tangents

    def offset(self, points: Array) -> Array:
        return self.move.factor * self.chart.offset(self.move.back(points))

    def outward(self, points: Array) -> Array:
        return self.move.turn(self.chart.outward(self.move.back(points)))

    def locate(self, points: Array) -> tuple[Array, Array]:
        return self.chart.locate(self.move.back(points))


@dataclass(frozen=True, eq=False)
class MovedSolid(Solid):
    """A solid moved along. Faces that were named by coordinates are ``side1``, ``side2``, … from then on."""

    solid: Solid
    move: Similarity

    @property
    def rate(self) -> float:
        return self.solid.rate

    @property
    def name(self) -> str | None:
        return getattr(self.solid, "name", None)

    @property
    def kind(self) -> str:
        return str(getattr(self.solid, "kind", "shape"))

    @property
    def optional(self) -> bool:
        return bool(getattr(self.solid, "optional", False))

    def __repr__(self) -> str:
        return f"{self.solid!r}, moved,"

    @property
    def bounds(self) -> Array:
        bounds = self.solid.bounds
        if not np.isfinite(bounds).all():
            return np.tile([-np.inf, np.inf], (len(bounds), 1))
        corners = np.stack([grid.ravel() for grid in np.meshgrid(*bounds, indexing="ij")], axis=1)
        moved = self.move.apply(corners)
        return np.stack([moved.min(axis=0), moved.max(axis=0)], axis=1)

    @property
    def walls(self) -> tuple[Wall, ...]:
        return tuple(MovedWall(wall, self.move) for wall in self.solid.walls)

    def level(self, points: Array) -> Array:
        return self.move.factor * self.solid.level(self.move.back(points))

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        corners = np.stack([grid.ravel() for grid in np.meshgrid(*clip, indexing="ij")], axis=1)
        back = self.move.back(corners)
        inner = np.stack([back.min(axis=0), back.max(axis=0)], axis=1)
        charts = self.solid.charts(inner)
        labels = [f"side{k}" if "=" in chart.label else chart.label for k, chart in enumerate(charts, start=1)]
        return tuple(MovedChart(label, chart, self.move) for label, chart in zip(labels, charts, strict=True))


@dataclass(frozen=True, repr=False)
class Moved(Cut):
    """A domain moved by a similarity."""

    domain: Domain
    move: Similarity

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.domain.names

    @property
    def tree(self) -> Tree:
        return _moved_tree(self.domain.tree, self.move)

    def __repr__(self) -> str:
        move = self.move
        return f"Moved({self.domain!r}, Similarity({move.factor}, {move.rotation}, {move.shift}))"

    def with_names(self, names: Sequence[str]) -> Moved:
        return replace(self, domain=self.domain.with_names(names))


def _moved_tree(tree: Tree, move: Similarity) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(MovedSolid(tree.solid, move))
    return Branch(tree.operation, tuple(_moved_tree(part, move) for part in tree.parts))


def moved(domain: Domain, move: Similarity) -> Domain:
    """The domain moved; moves of moves become one."""
    domain.require_space()
    require(domain.dim in (2, 3), "the dimension of the domain", domain.dim, "2 or 3")
    if isinstance(domain, Moved):
        return Moved(domain.domain, move.after(domain.move))
    return Moved(domain, move)


def translated(domain: Domain, shift: Any) -> Domain:
    """The domain moved by a vector."""
    vector = _vector("shift", shift, domain.dim)
    if isinstance(domain, Box):
        ends = [(lower + by, upper + by) for (lower, upper), by in zip(domain.intervals, vector, strict=True)]
        named: dict[str, Any] = dict(zip(domain.names, ends, strict=True))
        return Box(**named) if domain.name is None else Box(**named, name=domain.name)
    if isinstance(domain, Ball):
        return Ball(np.array(domain.centre) + vector, domain.radius, domain.names, domain.name)
    return moved(domain, Similarity(1.0, _matrix(np.eye(domain.dim)), vector))


def scaled(domain: Domain, factor: float, centre: Any) -> Domain:
    """The domain enlarged about a centre."""
    factor, middle = positive_number("factor", factor), np.array(_centre(centre, domain.dim))
    if isinstance(domain, Ball):
        centre_of_ball = middle + factor * (np.array(domain.centre) - middle)
        return Ball(centre_of_ball, factor * domain.radius, domain.names, domain.name)
    if isinstance(domain, Box):
        ends = (middle[:, None] + factor * (domain.bounds - middle[:, None])).tolist()
        named: dict[str, Any] = dict(zip(domain.names, ends, strict=True))
        return Box(**named) if domain.name is None else Box(**named, name=domain.name)
    shift = tuple(((1 - factor) * middle).tolist())
    return moved(domain, Similarity(factor, _matrix(np.eye(domain.dim)), shift))


def rotated(domain: Domain, angle: float, axis: Any, centre: Any) -> Domain:
    """The domain turned about a centre, in space about an axis."""
    turn, middle = float(finite_array("angle", angle, 0)), np.array(_centre(centre, domain.dim))
    if domain.dim == 3:
        require(axis is not None, "axis", axis, "given in space", "e.g. axis=(0, 0, 1)")
        u = np.array(_vector("axis", axis, 3))
        require(bool(u.any()), "axis", axis, "a vector that is not 0")
        u = u / np.linalg.norm(u)
        cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        matrix = np.eye(3) + sin(turn) * cross + (1 - cos(turn)) * cross @ cross
    else:
        require(axis is None, "axis", axis, "left out in the plane")
        require(domain.dim == 2, "the dimension of the domain", domain.dim, "2 or 3")
        matrix = np.array([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]])
    shift = middle - matrix @ middle
    if isinstance(domain, Ball):
        return Ball(matrix @ np.array(domain.centre) + shift, domain.radius, domain.names, domain.name)
    return moved(domain, Similarity(1.0, _matrix(matrix), tuple(shift.tolist())))


def _vector(argument: str, value: Any, dim: int) -> tuple[float, ...]:
    vector = tuple(finite_array(argument, value, 1).tolist())
    require(len(vector) == dim, argument, vector, f"{dim} numbers, one for each coordinate")
    return vector


def _centre(value: Any, dim: int) -> tuple[float, ...]:
    return (0.0,) * dim if value is None else _vector("centre", value, dim)
