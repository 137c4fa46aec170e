"""Cells of Trefftz networks in the plane: points on their segments and on the curves between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.cells.arrangement import Arrangement
from rannpde.pde.trefftz.cells.coupling import CellResolutions
from rannpde.pde.trefftz.cells.elimination import BlockRows, RowBlock
from rannpde.pde.trefftz.cells.faces import FaceConditions
from rannpde.pde.trefftz.geometry import JOINED_ENDS
from rannpde.pde.trefftz.plane_points import SegmentPoints, segment_points
from rannpde.pde.trefftz.rows import ConditionPoints, FacePoints


@dataclass(frozen=True, eq=False)
class PlaneFaces:
    """The faces between plane cells.

    laws, curves : of each cell, and the dividing curve of each of its segments
    conditions : (curve, first cell) → the combinations of derivatives that are continuous; pins : values at points
    """

    arrangement: Arrangement
    laws: tuple[PlaneLaw, ...]
    curves: tuple[tuple[int, ...], ...]
    conditions: Mapping[tuple[int, int], FaceConditions]
    pins: tuple[ConditionPoints, ...] = ()

    sampled: ClassVar[bool] = False
    copies: ClassVar[int] = 6

    def continuous(self, face: FacePoints) -> FaceConditions:
        """The combinations of derivatives that are continuous at a face."""
        return self.conditions[face.curve, face.cells[0]]

    def assembled(self, blocks: Sequence[RowBlock], widths: Sequence[int]) -> BlockRows:
        """Rows of blocks, for elimination cell by cell."""
        return BlockRows(tuple(blocks), tuple(widths))

    def dense(self, widths: Sequence[int]) -> int:
        """Features of a cell and its neighbours."""
        fronts = list(widths)
        for curve, cell in self.conditions:
            other = self.arrangement.neighbour(cell, curve)
            assert other is not None
            fronts[cell] += widths[other]
            fronts[other] += widths[cell]
        return max(fronts)

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundaries of cells with their shares of the domain, where layers are thin."""
        tubes = [law.tube() for law in self.laws]
        whole = sum(law.domain.measure for law in self.laws)
        shares = [own * law.domain.measure / whole for (_, own), law in zip(tubes, self.laws, strict=True)]
        return np.concatenate([points for points, _ in tubes]), np.concatenate(shares)

    def points(
        self, resolution: CellResolutions, shift: float, factor: float
    ) -> tuple[list[list[ConditionPoints]], list[FacePoints]]:
        """Points of the conditions of each cell, and of all faces."""
        sampled = [
            list(segment_points(law, own, shift, factor)) for law, own in zip(self.laws, resolution, strict=True)
        ]
        length = sum(segment.length for law in self.laws for segment in law.boundary.segments if segment.terms)
        homes = [int(self.arrangement.locate(pin.points)[0]) for pin in self.pins]
        conditions = []
        for number, law in enumerate(self.laws):
            share = np.sqrt(law.boundary.length / length)
            own = [
                ConditionPoints(term, one.points, share * one.weights, one.scales, self._group(number, one.groups))
                for one in sampled[number]
                for term in law.boundary.segments[one.number].terms
            ]
            conditions.append(own + [pin for pin, home in zip(self.pins, homes, strict=True) if home == number])
        return conditions, self._face_points(sampled, length)

    def _group(self, cell: int, groups: Array) -> Array:
        """The groups of a cell as numbers of the groups of all cells."""
        return groups + self._offsets[cell]

    @property
    def _offsets(self) -> Array:
        sizes = [len(law.boundary.corners) + len(law.boundary.segments) for law in self.laws]
        return np.concatenate([[0], np.cumsum(sizes)])

    def _face_points(self, sampled: Sequence[Sequence[SegmentPoints]], length: float) -> list[FacePoints]:
        """The points of each face, from the cell that has more of them there."""
        face_points = []
        for curve, cell in self.conditions:
            other = self.arrangement.neighbour(cell, curve)
            assert other is not None
            both = [
                [one for one in sampled[k] if self.curves[k][one.number] == curve and self._beside(k, one, j)]
                for k, j in ((cell, other), (other, cell))
            ]
            counts = [sum(len(one.points) for one in own) for own in both]
            chosen = int(counts[1] > counts[0])
            k = (cell, other)[chosen]
            law = self.laws[k]
            for one in both[chosen]:
                slopes = np.linalg.solve(law.form.matrix, law.boundary.segments[one.number].slopes(one.units).T).T
                normals = np.stack([slopes[:, 1], -slopes[:, 0]], axis=1)
                normals *= (-1) ** chosen / np.linalg.norm(normals, axis=1, keepdims=True)
                weights = one.weights * np.sqrt(law.boundary.length / length)
                groups = self._group(k, one.groups)
                face_points.append(FacePoints((cell, other), curve, one.points, normals, weights, one.scales, groups))
        return face_points

    def _beside(self, cell: int, one: SegmentPoints, other: int) -> bool:
        curve = self.curves[cell][one.number]
        return curve >= 0 and self.arrangement.neighbour(cell, curve) == other

    def errors_of(self, cell: int, errors: Mapping[int, float]) -> dict[int, float]:
        """The errors of the groups of one cell from those of all cells; a jump is an error of both cells."""
        low, high = (int(one) for one in self._offsets[cell : cell + 2])
        mine = {group - low: error for group, error in errors.items() if low <= group < high}
        for curve, first in self.conditions:
            other = self.arrangement.neighbour(first, curve)
            if cell in (first, other):
                mine = _larger(mine, self._across(cell, first if cell == other else other, curve, errors))
        return mine

    def _across(self, cell: int, other: int | None, curve: int, errors: Mapping[int, float]) -> dict[int, float]:
        """Errors that were assigned to segments of the other cell at a face, as errors of the segments of this one."""
        assert other is not None
        first = [len(self.laws[k].boundary.corners) for k in (cell, other)]
        theirs = [
            errors.get(int(self._offsets[other]) + first[1] + k, 0.0)
            for k, face in enumerate(self.curves[other])
            if face == curve
        ]
        mine = [first[0] + k for k, face in enumerate(self.curves[cell]) if face == curve]
        own_errors = dict.fromkeys(mine, max(theirs, default=0.0))
        for number, point in enumerate(self._corner_points(cell)):
            for their, other_point in enumerate(self._corner_points(other)):
                if np.linalg.norm(point - other_point) <= JOINED_ENDS * self.laws[cell].boundary.size:
                    own_errors[number] = errors.get(int(self._offsets[other]) + their, 0.0)
        return own_errors

    def _corner_points(self, cell: int) -> list[Array]:
        law = self.laws[cell]
        return [law.form.back(corner.point[None, :])[0] for corner in law.boundary.corners]


def _larger(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {group: max(one.get(group, 0.0), other.get(group, 0.0)) for group in one.keys() | other.keys()}
