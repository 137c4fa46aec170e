"""Which cells a problem has for Trefftz networks: those of its materials, or those that divide many holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.interfaces import interface_levels, smooth_levels
from rannpde.pde.trefftz.adaptive import TrefftzResult
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.cells.arrangement import Arrangement, arranged, dividing_curve, line
from rannpde.pde.trefftz.cells.coupling import CoupledNetworks
from rannpde.pde.trefftz.cells.faces import FaceConditions, jump_conditions, one_sided, side_of, smooth_conditions
from rannpde.pde.trefftz.cells.partition import CellBoundary, cell_boundaries
from rannpde.pde.trefftz.cells.plane_faces import PlaneFaces
from rannpde.pde.trefftz.cells.slab_setting import SlabSetting, slab_setting
from rannpde.pde.trefftz.drawbacks import plane_drawbacks
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, canonical_form, linear_equation
from rannpde.pde.trefftz.particular import Particular, particulars
from rannpde.pde.trefftz.potentials import PotentialModel
from rannpde.pde.trefftz.setting import TrefftzSetting, is_pin, pinned
from rannpde.pde.trefftz.tuning import TrefftzTuning

SEEN = 2**13
"""Points of the domain by which its cells are found: a cell without any of them is missed."""


@dataclass(frozen=True, eq=False)
class CellsSetting:
    """The cells of a problem: equations and boundary of each, and the conditions across faces."""

    arrangement: Arrangement
    equations: tuple[tuple[LinearEquation, ...], ...]
    boundaries: tuple[CellBoundary, ...]
    conditions: dict[tuple[int, int], FaceConditions]
    model: PotentialModel | None
    pins: tuple[Term, ...]

    @property
    def forms(self) -> list[CanonicalForm]:
        """The canonical form of each cell."""
        return [one.boundary.segments[0].form for one in self.boundaries]

    @property
    def crossings(self) -> bool:
        """Whether interfaces between materials meet, or turn, inside of the domain."""
        for one in self.boundaries:
            inner = {number for number, corner in enumerate(one.boundary.corners) if corner.singular}
            for face, segment in zip(one.faces, one.boundary.segments, strict=True):
                inner -= set(segment.corners) if face < 0 else set()
            if inner:
                return True
        return False

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Reasons to prefer another method."""
        reasons = plane_drawbacks(problem, [one.boundary for one in self.boundaries], tuning)
        if reasons or not self.crossings:
            return reasons
        return ("interfaces meet inside of the domain, where the weak form resolves what is singular",)

    def boundary_errors(
        self, problem: Problem, result: TrefftzResult, parts: Sequence[Sequence[Particular]]
    ) -> BoundaryErrors | None:
        """None: jumps on faces give no bound."""
        return None

    def particulars(self, problem: Problem, tol: float) -> list[list[Particular]]:
        """Particular solutions of all fields in each cell; NoParticular where there are none."""
        known: dict[object, list[Particular]] = {}
        solutions = []
        for equations in self.equations:
            key = material(equations)
            if key not in known:
                known[key] = particulars(problem, equations, tol)
            solutions.append(known[key])
        return solutions

    def discretisation(
        self, problem: Problem, tol: float, tuning: TrefftzTuning, parts: Sequence[Sequence[Particular]]
    ) -> CoupledNetworks:
        """A law for every cell, with their particular solutions."""
        words = problem.vocabulary
        laws = tuple(
            PlaneLaw(one.cell, one.boundary, one.boundary.segments[0].form, tol, tuning, words, self.model)
            for one in self.boundaries
        )
        own = tuple(tuple(one.part for one in cell) for cell in parts)
        curves = tuple(one.faces for one in self.boundaries)
        faces = PlaneFaces(self.arrangement, laws, curves, self.conditions, pinned(self.pins))
        return CoupledNetworks(faces, self.arrangement, laws, own, words)


def material(equations: Sequence[LinearEquation]) -> object:
    """A key that is equal for equal equations."""
    return tuple(
        (str(one.load), tuple(sorted((name, tuple(sorted(symbol.items()))) for name, symbol in one.symbols.items())))
        for one in equations
    )


def cells_setting(problem: Problem, single: TrefftzSetting | str) -> CellsSetting | SlabSetting | str:
    """Cells of the materials of a problem, or of a domain on which a ``single`` network takes too many features."""
    if isinstance(single, str):
        if not problem.kinked:
            return single
        return material_cells(problem) if problem.domain.dim == 2 else slab_setting(problem)
    curves = dividing_lines(single)
    return divided_cells(problem, single.equations, single.model, curves) if curves else "no line divides its holes"


def dividing_lines(single: TrefftzSetting) -> list[Array]:
    """Lines across a long domain, midway between its corners and holes, where these leave room.

    In a cell the features of its neighbours are smooth functions, which converge slowly if their singularities are
    near the face. A line is drawn where these are at least a quarter of the width of the domain away: for a plate of
    many holes close to each other one network, whose multipoles act everywhere, is better.
    """
    boundary, form = single.features_boundary, single.form
    outline = np.concatenate([form.to(segment.points(np.linspace(0, 1, 33))) for segment in boundary.segments])
    low, high = outline.min(axis=0), outline.max(axis=0)
    axis = int(np.argmax(high - low))
    marks = [(corner.point[axis], corner.point[axis]) for corner in boundary.corners]
    marks += [(middle[axis] - outer, middle[axis] + outer) for middle, _, outer in boundary.holes]
    width, end, lines = float((high - low)[1 - axis]), float(low[axis]), []
    normal = form.matrix.T @ np.eye(2)[axis]
    for start, stop in sorted(marks):
        if start - end > 0.5 * width:
            point = form.back(0.5 * (start + end) * np.eye(2)[axis][None, :])[0]
            lines.append(line(point, normal))
        end = max(end, float(stop))
    return lines


def material_cells(problem: Problem) -> CellsSetting | str:
    """Cells within which all coefficients are constant, or the reason why there are none."""
    if problem.domain.dim != 2 or len(problem.fields) != 1:
        return "coefficients jump, and it is no equation of one field in the plane"
    symbols, expressions = problem.vocabulary.symbols, problem.expressions.values()
    levels = interface_levels((one.formula for one in expressions), symbols)
    for level in (jump for one in expressions for jump in smooth_levels(one.jumps, symbols)):
        levels += [] if level in levels else [level]
    curves = [dividing_curve(level, symbols) for level in levels]
    if any(curve is None for curve in curves):
        return "coefficients jump on a curve that is neither a line nor a circle"
    jumping = set(smooth_levels((jump for one in expressions for jump in one.jumps), symbols))
    inside = problem.domain.sample(SEEN, rng=7, method="sobol")
    arrangement, dividing = arranged([curve for curve in curves if curve is not None], inside)
    fluxes = [level in jumping for level, divides in zip(levels, dividing, strict=True) if divides]
    middles = _middles(arrangement, inside)
    equations = []
    for point in middles:
        own = [
            linear_equation(name, one_sided(one, side_of(problem, point))) for name, one in problem.expressions.items()
        ]
        for one in own:
            if isinstance(one, str):
                return one
        equations.append(tuple(one for one in own if isinstance(one, LinearEquation)))
    return _setting(problem, arrangement, middles, equations, fluxes, None, inside)


def divided_cells(
    problem: Problem, equations: tuple[LinearEquation, ...], model: PotentialModel | None, curves: Sequence[Array]
) -> CellsSetting | str:
    """Cells between dividing curves in one material."""
    inside = problem.domain.sample(SEEN, rng=7, method="sobol")
    arrangement, _ = arranged(curves, inside)
    middles = _middles(arrangement, inside)
    return _setting(
        problem, arrangement, middles, [equations] * len(middles), [False] * len(arrangement.curves), model, inside
    )


def _middles(arrangement: Arrangement, inside: Array) -> list[Array]:
    """For each cell, that of the points (M, 2) in it which is farthest from all dividing curves."""
    homes, depths = arrangement.locate(inside), np.abs(arrangement.values(inside)).min(axis=1, initial=np.inf)
    return [inside[own[np.argmax(depths[own])]] for own in (np.flatnonzero(homes == k) for k in np.unique(homes))]


def _setting(
    problem: Problem,
    arrangement: Arrangement,
    middles: Sequence[Array],
    equations: Sequence[tuple[LinearEquation, ...]],
    fluxes: Sequence[bool],
    model: PotentialModel | None,
    inside: Array,
) -> CellsSetting | str:
    pins = tuple(term for term in problem.constraints if is_pin(problem, term))
    terms = [term for term in problem.constraints if term not in pins]
    homes, forms = arrangement.locate(inside), []
    for number, own in enumerate(equations):
        here = inside[homes == number]
        origin = 0.5 * (here.min(axis=0) + here.max(axis=0))
        plain = CanonicalForm(np.eye(2), origin, np.zeros(2), 0.0, 1.0, 0.0)
        form = plain if model is not None else canonical_form(own[0].symbols[problem.fields[0]], origin)
        if form is None:
            return "the equation is not elliptic of order two"
        forms.append(form)
    kinds = [material(own) for own in equations]
    boundaries = cell_boundaries(problem.domain, arrangement, terms, forms, kinds, 1 if model is None else 2)
    if isinstance(boundaries, str):
        return boundaries
    conditions: dict[tuple[int, int], FaceConditions] = {}
    smooth = smooth_conditions(problem, model)
    for number, one in enumerate(boundaries):
        for curve in sorted(set(one.faces) - {-1}):
            other = arrangement.neighbour(number, curve)
            assert other is not None
            if number < other:
                both = [middles[number], middles[other]]
                conditions[curve, number] = jump_conditions(problem, both) if fluxes[curve] else smooth
    return CellsSetting(arrangement, tuple(equations), tuple(boundaries), conditions, model, pins)
