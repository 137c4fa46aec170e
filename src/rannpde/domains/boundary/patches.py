"""Cells in the parameter domains of surfaces, from which points of a boundary in space are sampled by rejection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, density, normals_of
from rannpde.domains.boundary.pieces import Border, PointCondition
from rannpde.domains.streams import PointStream

if TYPE_CHECKING:
    from rannpde.domains.operations.surfaces import Sheet

MANY = 64
"""Surfaces with more pieces than this have one cell for each piece."""
ORDER = 12
"""Gauss nodes along each parameter behind areas and volumes, doubled until they agree."""
FEW_NODES = 5
"""Gauss nodes along each parameter of surfaces with many small pieces, which need no more."""
PATCH_HALVINGS = 18
"""How often cells are halved at most to fit a small box."""
SLENDER = 64
"""The images of cells are no smaller than the longest side of a box over this, however thin the box is."""
MIDPOINT_WEIGHTS = ((1, 1, 1, 1), (2, 2, 0, 0), (2, 0, 2, 0), (0, 0, 2, 2), (0, 2, 0, 2))
"""Four times the weights with which the corners of a flat cell give its centre and the middles of its edges."""
GIVE_UP = 2**15
"""Points that are tried in a box before the side is taken not to meet it."""


def quartered(lower: Array, width: Array) -> tuple[Array, Array]:
    """Lower corners (4C, 2) and widths (4C,) of the quarters of cells."""
    half, shifts = 0.5 * width, np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
    return (lower[:, None, :] + half[:, None, None] * shifts).reshape(-1, 2), np.repeat(half, 4)


def spheres(chart: Chart, piece: Array, lower: Array, width: Array) -> tuple[Array, Array]:
    """Centres (C, 3) and radii (C,) of balls that hold the images of cells: distances of their corners, enlarged."""
    centre = chart.place(piece, lower + 0.5 * width[:, None])
    corners = [lower + width[:, None] * np.array(c, dtype=float) for c in ((0, 0), (0, 1), (1, 0), (1, 1))]
    reach = [np.linalg.norm(chart.place(piece, corner) - centre, axis=1) for corner in corners]
    return centre, 1.2 * np.maximum.reduce(reach)


def overlaps(chart: Chart, piece: Array, lower: Array, width: Array, bounds: Array) -> Array:
    """Whether the images of cells (C,) share more than a line with a box (3, 2); true for all that are not flat."""
    shares = np.array([(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5), (0, 0.5), (0.5, 0), (1, 0.5), (0.5, 1)])
    points = np.stack([chart.place(piece, lower + width[:, None] * share) for share in shares], axis=1)
    low, high = points.min(axis=1), points.max(axis=1)
    slack = 1e-9 * (high - low).max(axis=1, keepdims=True, initial=0.0)
    flat = np.abs(points[:, 4:] - 0.25 * np.array(MIDPOINT_WEIGHTS) @ points[:, :4]).max(axis=(1, 2)) <= slack[:, 0]
    common = np.minimum(high, bounds[:, 1]) - np.maximum(low, bounds[:, 0])
    meets = (common >= -slack).all(axis=1) & ((common > slack).sum(axis=1) >= 2)
    return np.asarray(meets | ~flat)


def converged_value(rule: Callable[[int], tuple[float, float]], charts: list[Chart], doubled: bool = True) -> float:
    """The value of rule(count) → (value, scale), with a count that is doubled until two values agree."""
    if sum(chart.count for chart in charts) > MANY:
        return rule(FEW_NODES)[0]
    count, (value, scale) = ORDER, rule(ORDER)
    while doubled and count < 4 * ORDER:
        count, before = 2 * count, value
        value, scale = rule(count)
        if abs(value - before) <= 1e-11 * scale:
            break
    return value


@dataclass(frozen=True, eq=False)
class Patches:
    """Cells in the parameter domain of a sheet: piece (C,), lower corner (C, 2) and width (C,).

    sure (C,) : whether the whole image of a cell belongs to the boundary, so that its points need no test
    """

    sheet: Sheet
    piece: Array
    lower: Array
    width: Array
    sure: Array

    @classmethod
    def of(cls, sheet: Sheet) -> Patches:
        return cls(sheet, *sheet.cells)

    @cached_property
    def area_bound(self) -> Array:
        """A bound (C,) of the area of a cell's image: the largest density at nine points, with a margin."""
        ends = np.linspace(0.0, 1.0, 3)
        largest = np.zeros(len(self.piece))
        for u in ends:
            for v in ends:
                unit = self.lower + self.width[:, None] * np.array([u, v])
                largest = np.maximum(largest, density(self.sheet.chart, self.piece, unit))
        return 1.1 * largest * self.width**2

    def fitted(self, bounds: Array) -> Patches:
        """Cells halved until they are small beside the box with bounds (3, 2), without those that do not meet it."""
        lengths = bounds[:, 1] - bounds[:, 0]
        aim = max(0.25 * float(lengths.min()), float(lengths.max()) / SLENDER)
        piece, lower, width, sure = self.piece, self.lower, self.width, self.sure
        for _ in range(PATCH_HALVINGS):
            centre, radius = spheres(self.sheet.chart, piece, lower, width)
            beyond = np.maximum(np.maximum(bounds[:, 0] - centre, centre - bounds[:, 1]), 0.0)
            meets = np.linalg.norm(beyond, axis=1) <= radius
            meets[meets] = overlaps(self.sheet.chart, piece[meets], lower[meets], width[meets], bounds)
            piece, lower, width, radius, sure = piece[meets], lower[meets], width[meets], radius[meets], sure[meets]
            large = radius > aim
            if not large.any():
                break
            parts, sizes = quartered(lower[large], width[large])
            piece, sure = (np.concatenate([kept[~large], np.repeat(kept[large], 4)]) for kept in (piece, sure))
            lower, width = np.concatenate([lower[~large], parts]), np.concatenate([width[~large], sizes])
        return Patches(self.sheet, piece, lower, width, sure)


@dataclass(frozen=True, eq=False)
class Surfaces(Border):
    """Parts of surfaces in space: the points at which all conditions hold."""

    patches: tuple[Patches, ...]
    conditions: tuple[PointCondition, ...] = ()
    columns: int = 4
    may_be_empty: bool = False
    """Whether these are the parts in a box, which the surfaces may not meet."""

    @property
    def charts(self) -> list[tuple[Chart, float]]:
        return [(part.sheet.chart, part.sheet.sign) for part in self.patches]

    @cached_property
    def measure(self) -> float:
        def total(count: int) -> tuple[float, float]:
            whole = float(self.rule(count, 1)[1].sum())
            return whole, whole

        return converged_value(total, [chart for chart, _ in self.charts], doubled=not self.conditions)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        rules = [part.sheet.rule(count, panels)[:2] for part in self.patches]
        points, weights = (np.concatenate(arrays) for arrays in zip(*rules, strict=True))
        for condition in self.conditions:
            holds = condition(points)
            points, weights = points[holds], weights[holds]
        return points, weights

    def draw(self, count: int, stream: PointStream, carried: int) -> Array:
        accepted: list[Array] = [np.empty((0, carried + 3))]
        area_bounds = np.concatenate([np.empty(0), *(part.area_bound for part in self.patches)])
        have, tried, batch = 0, 0, max(64, 2 * count)
        if not area_bounds.sum() > 0:
            return accepted[0]
        while have < count and not (self.may_be_empty and have == 0 and tried >= GIVE_UP):
            accepted.append(self._tried(stream(batch), carried, area_bounds))
            have, tried = have + len(accepted[-1]), tried + batch
            batch = int(min(max(64, 1.2 * (count - have) * tried / max(have, 1)), GIVE_UP))
        return np.concatenate(accepted)[:count]

    def _tried(self, unit: Array, carried: int, area_bounds: Array) -> Array:
        """Rejection sampling: the candidates that the area density accepts on the boundary, carried columns first."""
        ends = np.cumsum(area_bounds)
        position = unit[:, carried] * ends[-1]
        index = np.clip(np.searchsorted(ends, position, side="right"), 0, len(ends) - 1)
        rows, first, points, keep = np.arange(len(unit)), 0, np.empty((len(unit), 3)), np.zeros(len(unit), dtype=bool)
        for part in self.patches:
            mine = rows[(index >= first) & (index < first + len(part.piece))]
            cell = index[mine] - first
            first += len(part.piece)
            if not len(mine):
                continue
            at = part.lower[cell] + part.width[cell, None] * unit[mine, carried + 1 : carried + 3]
            chart, piece = part.sheet.chart, part.piece[cell]
            normals = normals_of(chart.tangents(piece, at))
            area = np.linalg.norm(normals, axis=1) * part.width[cell] ** 2
            points[mine] = chart.place(piece, at)
            keep[mine] = unit[mine, carried + 3] * part.area_bound[cell] < area
            doubted = keep[mine] & ~part.sure[cell]
            keep[mine[doubted]] = part.sheet.state(points[mine[doubted]], normals[doubted])[0]
        for condition in self.conditions:
            keep[np.flatnonzero(keep)] = condition(points[keep])
        return np.concatenate([unit[keep, :carried], points[keep]], axis=1)

    def within(self, bounds: Array) -> Surfaces:
        def inside(points: Array) -> Array:
            return np.asarray(((points >= bounds[:, 0]) & (points <= bounds[:, 1])).all(axis=1))

        parts = tuple(part.fitted(bounds) for part in self.patches)
        return Surfaces(parts, (*self.conditions, inside), may_be_empty=True)

    def where(self, condition: PointCondition) -> Surfaces:
        return Surfaces(self.patches, (*self.conditions, condition))
