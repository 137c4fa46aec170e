"""Solids whose coefficients jump at parallel planes, as cells of Trefftz networks: least squares of jumps in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.interfaces import interface_levels, smooth_levels
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.adaptive import TrefftzResult
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.cells.faces import FaceConditions, jump_conditions, one_sided, side_of, smooth_conditions
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.cells.slabs import Slab, SlabArrangement, plane_across, slabs_of
from rannpde.pde.trefftz.drawbacks import space_drawbacks
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, canonical_form, linear_equation
from rannpde.pde.trefftz.particular import Particular, box_particulars, particulars
from rannpde.pde.trefftz.parts import ParticularPart
from rannpde.pde.trefftz.rows import (
    ConditionPoints,
    FacePoints,
    Misses,
    TrefftzRows,
    boundary_misses,
    boundary_rows,
    condition_rows,
    expression_residual,
    feature_values,
)
from rannpde.pde.trefftz.space import SpaceLaw, SpaceResolution
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import COMPUTED

SlabFamilies = list[list[FeatureFamily]]
"""The families of each slab."""
SlabResolutions = tuple[SpaceResolution, ...]
"""How many features each slab has."""


@dataclass(frozen=True, eq=False)
class SlabSetting:
    """The slabs of a problem: equation and canonical form of each, and what is continuous at each plane."""

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
        distance, and no feature is."""
        return self.fluxes and any(slab.meets_obliquely for slab in self.slabs)

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Reasons to prefer another method."""
        if self.singular:
            return ("fluxes jump at planes that meet the boundary at an angle, and no feature is singular there",)
        return space_drawbacks(problem, self.forms)

    def boundary_errors(
        self, problem: Problem, result: TrefftzResult, parts: Sequence[Sequence[Particular]]
    ) -> BoundaryErrors | None:
        """None: faces are not where the maximum principle holds."""
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
    ) -> SlabDiscretisation:
        """A law for every slab, with their particular solutions."""
        laws = tuple(
            SpaceLaw(slab, slab.terms, form, tol, tuning) for slab, form in zip(self.slabs, self.forms, strict=True)
        )
        own = tuple(tuple(one.part for one in slab) for slab in parts)
        faces = tuple(slab.faces for slab in self.slabs)
        return SlabDiscretisation(self.arrangement, laws, faces, self.conditions, own, problem.vocabulary)


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
class SlabDiscretisation:
    """Features of each slab, fitted to the conditions on its boundary and to continuity across planes.

    laws, faces : of each slab, and the plane of each of its terms, -1 on the boundary; conditions : what is continuous
    at each plane; parts : of each slab, the particular solutions
    """

    arrangement: SlabArrangement
    laws: tuple[SpaceLaw, ...]
    faces: tuple[tuple[int, ...], ...]
    conditions: tuple[FaceConditions, ...]
    parts: tuple[tuple[ParticularPart, ...], ...]
    words: Vocabulary

    @property
    def sampled(self) -> bool:
        """Surfaces are sampled."""
        return True

    def first(self) -> SlabResolutions:
        """Where the iteration begins, slab by slab."""
        return tuple(law.first() for law in self.laws)

    def families(self, resolution: SlabResolutions, rng: np.random.Generator) -> SlabFamilies:
        """A realisation of all laws."""
        return [law.families(own, rng) for law, own in zip(self.laws, resolution, strict=True)]

    def _widths(self, families: SlabFamilies) -> list[int]:
        return [sum(family.columns for family in own) for own in families]

    def columns(self, families: SlabFamilies) -> int:
        """The number N of all features."""
        return sum(self._widths(families))

    def dense(self, families: SlabFamilies) -> int:
        """Columns of the factorisation: all."""
        return self.columns(families)

    def network(self, families: SlabFamilies, weights: Array) -> CellsNetwork:
        """The function with output weights (N,)."""
        ends = np.cumsum(self._widths(families))[:-1]
        own = zip(families, np.split(weights, ends), self.parts, self.laws, strict=True)
        networks = [TrefftzNetwork(tuple(slab), part, parts, law.form) for slab, part, parts, law in own]
        return CellsNetwork(tuple(networks), self.arrangement)

    def values(self, families: SlabFamilies, points: Array) -> Array:
        """All features (M, fields, N), zero outside of their slab."""
        homes, ends = self.arrangement.locate(points), np.cumsum([0, *self._widths(families)])
        total = np.zeros((len(points), len(self.words.fields), int(ends[-1])))
        for number, own in enumerate(families):
            mine = np.flatnonzero(homes == number)
            total[mine, :, ends[number] : ends[number + 1]] = feature_values(own, points[mine], (0, 0, 0))
        return total

    def base(self, points: Array) -> Array:
        """The particular solutions (M, fields)."""
        return self.network([[] for _ in self.laws], np.empty(0))(points)

    def tube(self) -> tuple[Array, Array]:
        """No thin layers in space."""
        return np.empty((0, 3)), np.empty(0)

    def _points(
        self, resolution: SlabResolutions, shift: float, factor: float
    ) -> tuple[list[list[ConditionPoints]], list[FacePoints]]:
        """Points of the conditions of each slab, and of planes, on both sides of which points are drawn."""
        areas = np.array([float(law.patches.areas.sum()) for law in self.laws])
        conditions, faces, start = [], [], 0
        for number, (law, own) in enumerate(zip(self.laws, resolution, strict=True)):
            share, here = np.sqrt(areas[number] / areas.sum()), []
            for one, plane in zip(law.conditions(own, shift, factor), self.faces[number], strict=True):
                groups, weights = one.groups + start, share * one.weights
                if plane < 0:
                    here.append(ConditionPoints(one.term, one.points, weights, one.scales, groups))
                else:  # each side has one half of the weight
                    normals = np.broadcast_to(np.eye(3)[self.arrangement.axis], one.points.shape)
                    weights = weights * np.sqrt(0.5)
                    cells = (plane, plane + 1)
                    faces.append(FacePoints(cells, plane, one.points, normals, weights, one.scales, groups))
            conditions.append(here)
            start += len(law.patches.sides)
        return conditions, faces

    def _known(self, face: FacePoints) -> dict[sympy.Symbol, Array]:
        """Coordinates and normals of the points of a plane."""
        values = np.concatenate([face.points, face.normals], axis=1).T
        return dict(zip((*self.words.symbols, *self.words.normals), values, strict=True))

    def rows(
        self, families: SlabFamilies, resolution: SlabResolutions, shift: float, factor: float = 1.0
    ) -> TrefftzRows:
        """Conditions on the boundary and continuity across planes; ``shift`` and ``factor`` as in ``SpaceLaw``."""
        conditions, faces = self._points(resolution, shift, factor)
        ends = np.cumsum([0, *self._widths(families)])
        empty = [
            TrefftzNetwork((), np.empty(0), part, law.form) for part, law in zip(self.parts, self.laws, strict=True)
        ]
        matrices, rhs, weights = [], [], []
        for number, own in enumerate(conditions):
            rows = boundary_rows(families[number], empty[number], own, self.words)
            matrices.append([(number, rows.matrix)])
            rhs.append(rows.rhs)
            weights.append(rows.weights)
        for face in faces:
            known, pairs = self._known(face), self.conditions[face.curve].pairs
            indices = sorted({jet.index for pair in pairs for one in pair for jet in one.jets})
            tables = [{i: feature_values(families[c], face.points, i) for i in indices} for c in face.cells]
            parts = [empty[cell].derivatives(face.points, indices) for cell in face.cells]
            for pair in pairs:
                (first, left, size), (second, right, other) = (
                    condition_rows(one, known, part, face, table, self.words)
                    for one, part, table in zip(pair, parts, tables, strict=True)
                )
                scale = 0.5 * (size + other)
                matrices.append([(face.cells[0], first / scale[:, None]), (face.cells[1], -second / scale[:, None])])
                rhs.append((right - left) / scale)
                weights.append(face.weights)
        matrix, row = np.zeros((sum(map(len, rhs)), int(ends[-1])), order="F"), 0
        for blocks, right_side in zip(matrices, rhs, strict=True):
            for cell, block in blocks:
                matrix[row : row + len(right_side), ends[cell] : ends[cell + 1]] = block
            row += len(right_side)
        return TrefftzRows(matrix, np.concatenate(rhs), np.concatenate(weights))

    def misses(self, network: CellsNetwork, resolution: SlabResolutions, shift: float, factor: float) -> Misses:
        """What a function misses of the conditions and of the continuity at such points."""
        conditions, faces = self._points(resolution, shift, factor)
        misses = [boundary_misses(one, own, self.words) for one, own in zip(network.networks, conditions, strict=True)]
        for face in faces:
            known, pairs = self._known(face), self.conditions[face.curve].pairs
            indices = sorted({jet.index for pair in pairs for one in pair for jet in one.jets})
            tables = [network.networks[cell].derivatives(face.points, indices) for cell in face.cells]
            for pair in pairs:
                (left, size, _), (right, other, _) = (
                    expression_residual(one, known, table, face, self.words)
                    for one, table in zip(pair, tables, strict=True)
                )
                misses.append(Misses((left - right) / (0.5 * (size + other)), face.weights, face.groups))
        every = [(one.errors, one.weights, one.groups) for one in misses]
        return Misses(*(np.concatenate(parts) for parts in zip(*every, strict=True)))

    def refined(
        self, resolution: SlabResolutions, errors: Mapping[int, float], target: float, slow: bool,
        families: SlabFamilies, weights: Array, gains: Sequence[ColumnGains],
    ) -> SlabResolutions:  # fmt: skip
        """More features in the slabs, and for the patches of these, whose errors are above the target."""
        resolutions, group, start = [], 0, 0
        for law, own, slab in zip(self.laws, resolution, families, strict=True):
            count = len(law.patches.sides)
            mine = {key - group: error for key, error in errors.items() if group <= key < group + count}
            split = []
            for family in slab:
                split.append((family, weights[start : start + family.columns]))
                start += family.columns
            resolutions.append(law.refined(own, mine, target, slow, split))
            group += count
        return tuple(resolutions)
