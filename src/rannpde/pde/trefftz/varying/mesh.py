"""Boxes that fill a shape: faces between them, where points lie, and a first mesh that resolves waves and layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, log

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.intrinsic import resolved_growth, resolved_phase
from rannpde.pde.tolerance import SAME_SOLUTION
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.polynomials import SquarePolynomials
from rannpde.rounding import EPS

CELL_OVERHEAD = 10**8
"""Operations of a factorisation that take as long as the calls for one cell and its faces."""
CELL_DEGREES = range(8, 37)
"""Degrees among which the one of least work is chosen; beyond, the matrices of a cell are the whole work."""


@dataclass(frozen=True, eq=False)
class BoxSegment:
    """A segment across an axis between two cells, or of the boundary of the domain, where one of them is -1.

    cells : below and above it along the axis; position : on the axis; ends : along the other one
    """

    axis: int
    position: float
    ends: tuple[float, float]
    cells: tuple[int, int]

    @property
    def length(self) -> float:
        return self.ends[1] - self.ends[0]

    def points(self, nodes: Array) -> Array:
        """Points (K, 2) at nodes (K,) of [-1, 1]."""
        low, high = self.ends
        points = np.full((len(nodes), 2), self.position)
        points[:, 1 - self.axis] = 0.5 * (low + high) + 0.5 * (high - low) * nodes
        return points


@dataclass(frozen=True, eq=False)
class BoxMesh:
    """cells (C, 2, 2) : lower and upper end along each axis, of boxes that fill a shape without overlap."""

    cells: Array

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def halves(self) -> Array:
        """Half the lengths (C, 2) of all cells."""
        return np.asarray(0.5 * (self.cells[:, :, 1] - self.cells[:, :, 0]))

    @cached_property
    def middles(self) -> Array:
        return np.asarray(self.cells.mean(axis=2))

    @cached_property
    def shares(self) -> Array:
        """The share (C,) of the area that each cell has."""
        areas = np.prod(self.halves, axis=1)
        return np.asarray(areas / areas.sum())

    @cached_property
    def lines(self) -> tuple[Array, Array]:
        """Where cells begin and end along each axis."""
        first, second = (np.unique(self.cells[:, axis]) for axis in range(2))
        return first, second

    @cached_property
    def _owners(self) -> Array:
        """The cell of every box between neighbouring lines, -1 outside."""
        table = np.full(tuple(len(one) - 1 for one in self.lines), -1)
        starts, stops = (
            np.stack([np.searchsorted(line, self.cells[:, axis, end]) for axis, line in enumerate(self.lines)], axis=1)
            for end in range(2)
        )
        for number, (low, high) in enumerate(zip(starts, stops, strict=True)):
            table[low[0] : high[0], low[1] : high[1]] = number
        return table

    def locate(self, points: Array) -> Array:
        """The cell (M,) of each point (M, 2); one outside belongs to the nearest."""
        indices = [
            np.clip(np.searchsorted(line, points[:, axis], side="right") - 1, 0, len(line) - 2)
            for axis, line in enumerate(self.lines)
        ]
        homes = self._owners[indices[0], indices[1]]
        for number in np.flatnonzero(homes < 0):
            away = np.maximum(np.abs(points[number] - self.middles) - self.halves, 0)
            homes[number] = np.argmin(np.square(away).sum(axis=1))
        return np.asarray(homes)

    def scaled(self, points: Array, homes: Array) -> Array:
        """Points (M, 2) in the coordinates [-1, 1]² of their cells."""
        return np.asarray((points - self.middles[homes]) / self.halves[homes])

    @cached_property
    def faces(self) -> tuple[BoxSegment, ...]:
        """All segments between two cells or on the boundary."""
        faces = []
        for axis in range(2):
            outside = np.full((1, self._owners.shape[1 - axis]), -1)
            table = np.concatenate([outside, np.moveaxis(self._owners, axis, 0), outside])
            across, along = self.lines[axis], self.lines[1 - axis]
            for row, position in enumerate(across):
                faces += list(_runs(table[row], table[row + 1], axis, float(position), along))
        return tuple(faces)

    def split(self, axes: Sequence[Sequence[int]]) -> BoxMesh:
        """Every cell divided in the middle across the axes (C, …) that are given for it."""
        cells = []
        for cell, own in zip(self.cells, axes, strict=True):
            parts = [cell]
            for axis in own:
                parts = [half for part in parts for half in _halved(part, axis)]
            cells += parts
        return BoxMesh(np.array(cells))


def _runs(below: Array, above: Array, axis: int, position: float, along: Array) -> Iterator[BoxSegment]:
    """The faces on one line: as long as the same two cells meet."""
    pairs = np.stack([below, above], axis=1)
    starts = np.flatnonzero(np.concatenate([[True], (pairs[1:] != pairs[:-1]).any(axis=1)]))
    for start, stop in zip(starts, [*starts[1:], len(pairs)], strict=True):
        first, second = pairs[start].tolist()
        if first != second:
            yield BoxSegment(axis, position, (float(along[start]), float(along[stop])), (first, second))


def _halved(cell: Array, axis: int) -> list[Array]:
    lower, upper = cell.copy(), cell.copy()
    lower[axis, 1] = upper[axis, 0] = cell[axis].mean()
    return [lower, upper]


growth_resolved = lru_cache(maxsize=256)(resolved_growth)
phase_resolved = lru_cache(maxsize=256)(resolved_phase)


def first_mesh(equation: VaryingEquation, tol: float) -> tuple[BoxMesh, int]:
    """A tensor mesh that resolves waves and layers, and the degree for which that is the least work.

    The degrees are those for which functions that a cell does not resolve have died out beyond it.
    """
    fine = min(tol, SAME_SOLUTION)  # with a larger one, the phase of a wave is lost
    plans = {d: _lines(equation, d, fine) for d in CELL_DEGREES if growth_resolved(d, fine) > -log(fine)}
    degree = min(plans, key=lambda one: flops(one, *map(len, plans[one])))
    lines = plans[degree]
    square = SquarePolynomials(degree)
    size = FLOAT_BYTES * square.count * square.solutions
    reserve(float(size) * len(lines[0]) * len(lines[1]), "the features of all cells")
    boxes = [[line[:-1], line[1:]] for line in lines]
    grid = [np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 2) for ends in zip(*boxes, strict=True)]
    cells = np.stack(grid, axis=2)
    cells = cells[equation.problem.domain.contains(cells.mean(axis=2))]
    return _data_resolved(_graded(BoxMesh(cells), equation, fine), equation, degree), degree


def _lines(equation: VaryingEquation, degree: int, tol: float) -> list[Array]:
    """Lines along each axis between which polynomials of a degree resolve waves and layers."""
    allowed = growth_resolved(degree, tol)
    lines = [_with_ends(line, equation, axis) for axis, line in enumerate(_wave_cells(equation, degree, tol))]
    return [_with_layers(line, equation, axis, allowed) for axis, line in enumerate(lines)]


def work(degree: int, cells: int) -> float:
    """Operations of a solve with that number of cells, as many along one axis as along the other."""
    return flops(degree, 1 + cells**0.5, 1 + cells**0.5)


def flops(degree: int, first: float, second: float) -> float:
    """Operations of a solve with that number of lines along each axis: in cells, and for a separator of cells."""
    square = SquarePolynomials(degree)
    local = 2.0 * square.count**2 * (square.count + (degree + 2) ** 2)
    separator = square.solutions * (min(first, second) - 1)
    return (first - 1) * (second - 1) * (local + CELL_OVERHEAD) + 4 * separator**3 * max(first, second) / min(
        first, second
    )


def _wave_cells(equation: VaryingEquation, degree: int, tol: float) -> list[Array]:
    """Lines along each axis between which waves have the phase that polynomials of a degree resolve.

    A wave in the direction of a diagonal has √2 times the phase of one along an axis over the same square. At least
    half a wave stands along each side of the domain. Errors of the phase add up along all waves of a side.
    """
    lengths = np.ptp(equation.bounds, axis=1)
    rates = [np.maximum(own, np.pi / length) for own, length in zip(equation.waves, lengths, strict=True)]
    waves = max(float(own.mean() * length) for own, length in zip(rates, lengths, strict=True)) / np.pi
    allowed = phase_resolved(degree, tol / max(waves, 1.0)) / np.sqrt(2)
    lines = []
    for own, (low, high) in zip(rates, equation.bounds, strict=True):
        phases = np.concatenate([[0.0], np.cumsum(own)]) * (high - low) / len(own)
        cells = max(ceil(phases[-1] / allowed), 1)
        lines.append(np.interp(np.linspace(0, phases[-1], cells + 1), phases, np.linspace(low, high, len(phases))))
    return lines


def _with_layers(line: Array, equation: VaryingEquation, axis: int, allowed: float) -> Array:
    """Lines at distances from all walls that double, from that over which the thinnest layer is resolved.

    A thicker layer, where a coefficient is smaller, is resolved by a cell farther away or has died out before it.
    """
    distances: dict[tuple[int, float], float] = {}
    for wall in equation.walls:
        if wall.axis == axis:
            key = int(np.abs(line - wall.position).argmin()), wall.inward
            distances[key] = min(distances.get(key, np.inf), allowed / max(wall.rate, 1e-300))
    extra = []
    for (at, inward), least in distances.items():
        distance, room = least, abs(line[at + int(inward)] - line[at])
        while 2 * distance < room:
            extra.append(line[at] + inward * distance)
            distance *= 2
    return np.unique(np.concatenate([line, extra]))


def _with_ends(line: Array, equation: VaryingEquation, axis: int) -> Array:
    """Lines with those at which sides end or the condition on a side changes, instead of lines next to them."""
    near = 1e-9 * (line[-1] - line[0])
    ends = np.unique([segment.points(np.array([0.0, 1.0]))[:, axis] for segment in equation.segments])
    ends = ends[np.diff(ends, prepend=-np.inf) > near]
    distinct = np.abs(line[:, None] - ends).min(axis=1) > near
    return np.sort(np.concatenate([line[distinct], ends]))


def _graded(mesh: BoxMesh, equation: VaryingEquation, tol: float) -> BoxMesh:
    """Cells that touch a point where solutions are like r^λ are halved until the effect of their error elsewhere,
    which is like the square of r^λ there, is below ``tol``."""
    whole = float(np.ptp(equation.bounds, axis=1).max())
    for point, exponent in equation.singular:
        while True:
            touching = (np.abs(point - mesh.middles) <= mesh.halves + 4 * EPS * whole).all(axis=1)
            if (float(mesh.halves[touching].max()) / whole) ** (2 * exponent) <= tol:
                break
            checkpoint()
            mesh = mesh.split([(0, 1) if one else () for one in touching])
    return mesh


def _data_resolved(mesh: BoxMesh, equation: VaryingEquation, degree: int) -> BoxMesh:
    """Cells split across axes along which data change by more than polynomials of the degree can follow.

    The Chebyshev series of sin(z x) on [-1, 1] converges from the degree z on: z is at most half of it.
    """
    data = equation.problem.variation
    while data is not None:
        axes = [np.flatnonzero(data.changes(cell) > 0.5 * degree).tolist() for cell in mesh.cells]
        checkpoint()
        if not any(axes):
            break
        mesh = mesh.split(axes)
    return mesh
