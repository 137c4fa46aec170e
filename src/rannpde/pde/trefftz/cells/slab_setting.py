"""Solids whose coefficients jump at parallel planes, as cells of Trefftz networks: least squares of jumps in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.interfaces import interface_levels, smooth_levels
from rannpde.pde.statement.reading import read
from rannpde.pde.trefftz.adaptive import TrefftzResult
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.cells.coupling import CellResolutions, CoupledNetworks
from rannpde.pde.trefftz.cells.elimination import RowBlock
from rannpde.pde.trefftz.cells.faces import FaceConditions, jump_conditions, one_sided, side_of, smooth_conditions
from rannpde.pde.trefftz.cells.slabs import Slab, SlabArrangement, plane_across, slabs_of
from rannpde.pde.trefftz.drawbacks import space_drawbacks
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, canonical_form, linear_equation
from rannpde.pde.trefftz.particular import Particular, box_particulars, particulars
from rannpde.pde.trefftz.rows import ConditionPoints, FacePoints, TrefftzRows
from rannpde.pde.trefftz.space import SpaceLaw
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class SlabSetting:
    """The slabs of a problem: equation and canonical form of each, and the conditions at each plane."""

    arrangement: SlabArrangement
    slabs: tuple[Slab, ...]
    equations: tuple[tuple[LinearEquation, ...], ...]
    forms: tuple[CanonicalForm, ...]
    conditions: tuple[FaceConditions, ...]
    fluxes: bool
    """Whether normal fluxes of the statement are continuous at planes, or normal derivatives."""

    @property
    def singular(self) -> bool:
        """Whether fluxes jump where a plane meets the boundary at an angle: there the solution is like a power of the
        distance, which no feature is."""
        return self.fluxes and any(slab.meets_obliquely for slab in self.slabs)

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Reasons to prefer another method."""
        if self.singular:
            return ("fluxes jump at planes that meet the boundary at an angle, and no feature is singular there",)
        return space_drawbacks(problem, self.forms)

    def boundary_errors(
        self, problem: Problem, result: TrefftzResult, parts: Sequence[Sequence[Particular]]
    ) -> BoundaryErrors | None:
        """None: jumps on faces give no bound."""
        return None

    def particulars(self, problem: Problem, tol: float) -> list[list[Particular]]:
        """Particular solutions in each slab, of one function on the bounding box where its sides are homogeneous."""
        axis, own = self.arrangement.axis, [equations[0] for equations in self.equations]
        if any(one.load != 0 for one in own):
            ends = problem.domain.bounds[axis]
            planes = np.concatenate([ends[:1], self.arrangement.planes, ends[1:]])
            boxed = box_particulars(problem, own, axis, planes, self.fluxes, tol)
            if boxed is not None:
                return [[part] for part in boxed]
        return [particulars(problem, equations, tol) for equations in self.equations]

    def discretisation(
        self, problem: Problem, tol: float, tuning: TrefftzTuning, parts: Sequence[Sequence[Particular]]
    ) -> CoupledNetworks:
        """A law for every slab, with their particular solutions."""
        laws = tuple(
            SpaceLaw(slab, slab.terms, form, tol, tuning) for slab, form in zip(self.slabs, self.forms, strict=True)
        )
        own = tuple(tuple(one.part for one in slab) for slab in parts)
        faces = SlabFaces(self.arrangement.axis, laws, tuple(slab.faces for slab in self.slabs), self.conditions)
        return CoupledNetworks(faces, self.arrangement, laws, own, problem.vocabulary)


def slab_setting(problem: Problem) -> SlabSetting | str:
    """Slabs within which all coefficients are constant, or the reason why there are none."""
    if problem.domain.dim != 3 or len(problem.fields) != 1:
        return "coefficients jump, and it is no equation of one field in the plane or in space"
    symbols, expressions = problem.vocabulary.symbols, problem.expressions.values()
    jumps = smooth_levels((jump for one in expressions for jump in one.jumps), symbols)
    levels = interface_levels((one.formula for one in expressions), symbols)
    across = [plane_across(level, symbols) for level in {*levels, *jumps}]
    axes = {plane[0] for plane in across if plane is not None}
    if None in across or len(axes) != 1:
        return "coefficients jump in space on others than parallel planes across an axis"
    axis, bounds = axes.pop(), problem.domain.bounds
    slack = COMPUTED * float(np.ptp(bounds[axis]))
    planes = np.unique([plane[1] for plane in across if plane is not None])
    planes = planes[(planes > bounds[axis, 0] + slack) & (planes < bounds[axis, 1] - slack)]
    arrangement = SlabArrangement(axis, planes)
    pinned = [term for term in problem.constraints if term.kind != "boundary"]
    if pinned or not len(planes):
        return "coefficients jump in space, and values are given at single points" if pinned else "no plane divides it"
    inside = problem.domain.sample(1000, rng=7, method="sobol")
    homes, equations, forms, middles = arrangement.locate(inside), [], [], []
    for number in range(arrangement.count):
        if not (homes == number).any():
            return "a slab is too thin to be seen"
        own = inside[homes == number]
        middles.append(own[0])
        read_here = [linear_equation(name, one_sided(one, side_of(problem, own[0]))) for name, one in
                     problem.expressions.items()]  # fmt: skip
        for one in read_here:
            if isinstance(one, str):
                return one
        equations.append(tuple(one for one in read_here if isinstance(one, LinearEquation)))
        form = canonical_form(equations[-1][0].symbols[problem.fields[0]], own.mean(axis=0))
        if form is None:
            return "the equation is not elliptic of order two"
        forms.append(form)
    fluxes = bool(jumps)
    conditions = tuple(
        jump_conditions(problem, middles[k : k + 2]) if fluxes else smooth_conditions(problem, None)
        for k in range(len(planes))
    )
    continuity = Term("face", "boundary", read(f"{problem.fields[0]} = 0", problem.vocabulary), None)
    slabs = slabs_of(problem.domain, arrangement, problem.constraints, continuity)
    return SlabSetting(arrangement, tuple(slabs), tuple(equations), tuple(forms), conditions, fluxes)


@dataclass(frozen=True, eq=False)
class SlabFaces:
    """The faces between slabs.

    laws, planes : of each slab, and the plane of each of its terms, -1 on the boundary
    conditions : the combinations of derivatives that are continuous at each plane
    """

    axis: int
    laws: tuple[SpaceLaw, ...]
    planes: tuple[tuple[int, ...], ...]
    conditions: tuple[FaceConditions, ...]

    sampled: ClassVar[bool] = True
    copies: ClassVar[int] = 1

    def continuous(self, face: FacePoints) -> FaceConditions:
        """The combinations of derivatives that are continuous at a plane."""
        return self.conditions[face.curve]

    def assembled(self, blocks: Sequence[RowBlock], widths: Sequence[int]) -> TrefftzRows:
        """One dense matrix: slabs are few."""
        ends = np.cumsum([0, *widths])
        rhs = np.concatenate([one.rhs for one in blocks])
        matrix, row = np.zeros((len(rhs), int(ends[-1])), order="F"), 0
        for block in blocks:
            for cell, own in zip(block.cells, block.matrices, strict=True):
                matrix[row : row + len(own), ends[cell] : ends[cell + 1]] = own
            row += len(block.rhs)
        return TrefftzRows(matrix, rhs, np.concatenate([one.weights for one in blocks]))

    def dense(self, widths: Sequence[int]) -> int:
        """All features."""
        return sum(widths)

    def tube(self) -> tuple[Array, Array]:
        """No thin layers in space."""
        return np.empty((0, 3)), np.empty(0)

    def points(
        self, resolution: CellResolutions, shift: float, factor: float
    ) -> tuple[list[list[ConditionPoints]], list[FacePoints]]:
        """Points of the conditions of each slab, and of planes, on both sides of which points are drawn."""
        areas = np.array([float(law.patches.areas.sum()) for law in self.laws])
        conditions, faces, start = [], [], 0
        for number, (law, own) in enumerate(zip(self.laws, resolution, strict=True)):
            share, here = np.sqrt(areas[number] / areas.sum()), []
            for one, plane in zip(law.conditions(own, shift, factor), self.planes[number], strict=True):
                groups, weights = one.groups + start, share * one.weights
                if plane < 0:
                    here.append(ConditionPoints(one.term, one.points, weights, one.scales, groups))
                else:  # each side has one half of the weight
                    normals = np.broadcast_to(np.eye(3)[self.axis], one.points.shape)
                    weights = weights * np.sqrt(0.5)
                    cells = (plane, plane + 1)
                    faces.append(FacePoints(cells, plane, one.points, normals, weights, one.scales, groups))
            conditions.append(here)
            start += len(law.patches.sides)
        return conditions, faces

    def errors_of(self, cell: int, errors: Mapping[int, float]) -> dict[int, float]:
        """The errors of the groups of one slab, numbered from 0, from those of the groups of all slabs."""
        ends = np.cumsum([0, *(len(law.patches.sides) for law in self.laws)]).tolist()
        return {key - ends[cell]: error for key, error in errors.items() if ends[cell] <= key < ends[cell + 1]}
