"""The method of particular solutions: eigenvalues of Laplace's operator from features that satisfy Δu + κu = 0.

For a wave number near an eigenvalue some combination of Trefftz features almost satisfies the conditions. It gives
the smallest angle between the features on the boundary and those inside (Betcke and Trefethen 2005). Green's formula
then gives the distance to the eigenvalues: with functions u_i for κ and the eigenfunctions replaced by them,

    (κ* - κ) ∫ u_i u_j = ∮ (∂ₙu_i u_j - u_i ∂ₙu_j) ,

a small eigenvalue problem whose solutions are right to second order, also for clusters. Where u = 0 is the condition,
the largest value on the boundary bounds the error: |κ* - κ| ≤ ε κ*, ε = √area · max |u| / ‖u‖ (Moler and Payne 1968).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from scipy.special import jn_zeros

from rannpde.arrays import Array
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice
from rannpde.pde.spectrum.pencil import Pencil
from rannpde.pde.spectrum.result import BOUNDARY_RESIDUALS, BOUNDARY_VALUES
from rannpde.pde.spectrum.search import EigenResult
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES
from rannpde.pde.spectrum.shapes.boundary_points import condition_kind
from rannpde.pde.spectrum.shapes.cluster import NEWTON_REACH, ModeCluster
from rannpde.pde.spectrum.shapes.solid_boundary import SolidBoundary, solid_boundary
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.geometry import PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, canonical_form, linear_equations
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.space import SpaceLaw
from rannpde.pde.trefftz.tuning import TrefftzTuning

SIGN_POINTS, NORM_POINTS = 256, 4096
"""Points inside at which modes are distinguished from zero, and points that give norms to two digits where no identity
gives them."""


@dataclass(frozen=True, eq=False)
class RefinedModes:
    """Eigenvalues with bounds and their modes (None where it is a constant)."""

    values: Array
    bounds: Array
    networks: tuple[TrefftzNetwork | None, ...]

    def result(self, rough: EigenResult, clamped: bool) -> EigenResult:
        """Eigenvalues in the order in which they are wanted; constants, and how eigenvalues were counted, come from a
        rough solution."""
        functions = [
            old if new is None else (new, None) for old, new in zip(rough.functions, self.networks, strict=True)
        ]
        order = rough.wanted.order(self.values.astype(complex))
        why = "the coefficients are constant and modes are analytic; the weak form counted them"
        return replace(
            rough, values=self.values[order], bounds=self.bounds[order], functions=tuple(functions[k] for k in order),
            method=Choice("particular", "particular solutions", why),
            assurance=BOUNDARY_VALUES if clamped else BOUNDARY_RESIDUALS,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ParticularSolutions:
    """A problem -aΔu + cu = λmu with constant coefficients on a plane shape, ready for any λ; its modes are analytic.

    slope, start : κ = start + slope · λ in canonical coordinates
    """

    problem: Problem
    boundary: PlaneBoundary | SolidBoundary
    slope: float
    start: float
    tol: float
    rng: int
    monitor: Monitor
    sources: dict[Any, SourceFamily] = field(default_factory=dict)

    @classmethod
    def of(cls, pencil: Pencil, tol: float, rng: int, monitor: Monitor) -> ParticularSolutions | None:
        """None where the problem is not of this kind."""
        problem = pencil.problem
        scalar = problem.domain.dim in (2, 3) and len(pencil.fields) == 1 and not problem.slits
        if not scalar or pencil.complex or pencil.degree != 1 or any(one.degree for one in pencil.conditions):
            return None
        forms = [_form(problem.at_eigenvalue(value)) for value in (0.0, 1.0)]
        if any(form is None or form.moves for form in forms):
            return None
        zero, one = forms
        assert zero is not None
        assert one is not None
        isotropic = np.allclose(zero.matrix, zero.matrix[0, 0] * np.eye(len(zero.matrix)), rtol=1e-12, atol=0)
        if not np.allclose(zero.matrix, one.matrix, rtol=1e-14) or one.kappa == zero.kappa or not isotropic:
            return None
        stated = problem.at_eigenvalue(0.0)
        boundary: PlaneBoundary | SolidBoundary | str = (
            plane_boundary(problem.domain, stated.constraints, zero)
            if problem.domain.dim == 2
            else solid_boundary(problem.domain, stated.constraints, zero)
        )
        if isinstance(boundary, str) or any(condition_kind(segment.term) is None for segment in boundary.segments):
            return None
        solutions = cls(stated, boundary, one.kappa - zero.kappa, zero.kappa, tol, rng, monitor)
        return (
            None if any(solutions.poles((1,) * len(boundary.corners))) else solutions
        )  # poles do not end at the corner

    @property
    def clamped(self) -> bool:
        """Whether u = 0 on the whole boundary."""
        return all(condition_kind(segment.term) == 0 for segment in self.boundary.segments)

    @property
    def free(self) -> bool:
        """Whether ∂ₙu = 0 on the whole boundary."""
        return self.plain and all(condition_kind(segment.term) == 1 for segment in self.boundary.segments)

    def refined(self, values: Array, errors: Array) -> RefinedModes | None:
        """Approximate eigenvalues to the tolerance; None where that was not reached or they moved beyond their errors.

        errors (K,) : errors of the approximations, which determine the clusters
        """
        kappas, reach = self.start + self.slope * values, abs(self.slope) * errors
        order = np.argsort(kappas)
        groups: list[list[int]] = []
        for k in order:
            near = groups and kappas[k] - reach[k] <= max(kappas[j] + reach[j] for j in groups[-1])
            if near:
                groups[-1].append(int(k))
            else:
                groups.append([int(k)])
        improved, bounds = np.array(values, dtype=float), np.full(len(values), np.inf)
        networks: list[TrefftzNetwork | None] = [None] * len(values)
        resolution: Any = None
        inside = self.problem.domain.sample(SIGN_POINTS if self.clamped else NORM_POINTS, rng=self.rng)
        for group in groups:
            if len(group) == 1 and self.free and abs(kappas[group[0]]) <= 4 * reach[group[0]]:  # a constant, exactly
                improved[group[0]], bounds[group[0]] = -self.start / self.slope, 0.0
                continue
            if kappas[group].min() <= 0:
                return None
            own = ModeCluster(self, kappas[group], float(reach[group].max()), inside)
            if not own.solve(resolution):
                return None
            resolution = own.resolution
            for k, (kappa, bound, network) in zip(group, own.modes, strict=True):
                if abs(kappa - kappas[k]) > 4 * reach[k] + bound:
                    return None
                improved[k], bounds[k], networks[k] = (
                    (kappa - self.start) / self.slope,
                    bound / abs(self.slope),
                    network,
                )
        return RefinedModes(improved, bounds, tuple(networks))

    def poles(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Poles at corners, none where modes are analytic: where an odd or even reflection continues them."""
        numbers = []
        for number, (count, corner) in enumerate(zip(counts, self.boundary.corners, strict=True)):
            kinds = {condition_kind(segment.term) for segment in self.boundary.segments if number in segment.corners}
            straight = all(segment.straight for segment in self.boundary.segments if number in segment.corners)
            waves = np.pi / corner.angle * (1.0 if len(kinds) == 1 else 0.5)
            analytic = straight and abs(waves - round(waves)) <= 1e-9 * waves and round(waves) > 0
            numbers.append(0 if analytic and self.plain else count)
        return tuple(numbers)

    @property
    def plain(self) -> bool:
        """Whether all conditions are u = 0 or ∂ₙu = 0, which reflections keep."""
        return all(len({jet.order for jet in segment.term.expression.jets}) == 1 for segment in self.boundary.segments)

    def first(self, law: PlaneLaw | SpaceLaw) -> Any:
        """Poles at all corners that need them, and sources behind straight sides where holes are reflected.

        The mirror images of holes are as near to a side as the holes are; sources must be nearer.
        """
        if isinstance(law, SpaceLaw):
            return law.first()
        resolution = law.first()
        corners = self.poles((law.poles,) * len(self.boundary.corners))
        assert isinstance(self.boundary, PlaneBoundary)
        sources = list(resolution.sources)
        unit = (np.arange(48) + 0.5) / 48
        holes = [law.form.to(segment.points(unit)) for segment in self.boundary.segments if segment.loop]
        for number, segment in enumerate(self.boundary.segments):
            if segment.loop == 0 and segment.straight and holes:
                side = law.form.to(segment.points(unit))
                gap = min(float(np.linalg.norm(side[:, None] - hole, axis=2).min()) for hole in holes)
                sources[number] = ceil(law.tuning.offset * segment.length / gap)
        return replace(resolution, corners=corners, sources=tuple(sources))

    def law(self, kappa: float) -> PlaneLaw | SpaceLaw:
        """The law of the features for this κ."""
        form = replace(self.boundary.segments[0].form, kappa=kappa, zeroth=kappa)
        domain, tuning = self.problem.domain, TrefftzTuning()
        if isinstance(self.boundary, SolidBoundary):
            terms = tuple(segment.term for segment in self.boundary.segments)
            return SpaceLaw(domain, terms, form, self.tol, tuning)
        return PlaneLaw(domain, self.boundary, form, self.tol, tuning, self.problem.vocabulary)

    def families(self, law: PlaneLaw | SpaceLaw, resolution: Any) -> list[FeatureFamily]:
        """The features for one κ; sources in space, whose positions do not depend on it, are placed once."""
        rng = np.random.default_rng(self.rng)
        if not isinstance(law, SpaceLaw) or not any(resolution.sources):
            return law.families(resolution, rng)
        if resolution not in self.sources:
            families = law.families(resolution, rng)
            self.sources[resolution] = next(one for one in families if isinstance(one, SourceFamily))
        plain = replace(resolution, sources=(0,) * len(resolution.sources))
        return [*law.families(plain, rng), replace(self.sources[resolution], form=law.form)]

    def searched(self, count: int) -> Array:
        """Approximate eigenvalues, each as often as it is multiple, from the lowest on, without any known before.

        No eigenvalue of u = 0 lies below that of the ball of the same volume (Faber and Krahn), where a search begins.
        Its windows overlap, and multiplicities are dimensions of what vanishes on the boundary.
        """
        inside = self.problem.domain.sample(SIGN_POINTS, rng=self.rng)
        dim = self.problem.domain.dim
        scale = float(self.boundary.segments[0].form.matrix[0, 0])
        unit = (np.pi, 4 * np.pi / 3)[dim - 2]
        radius = (self.problem.domain.measure * scale**dim / unit) ** (1 / dim)
        zero = (jn_zeros(0, 1)[0], np.pi)[dim - 2]
        here = (zero / radius) ** 2 * (1 - NEWTON_REACH)
        eigenvalues: list[float] = []
        while not self.monitor.exhausted:
            known = sorted(eigenvalues)
            if len(known) > count and here * (1 - NEWTON_REACH) > known[count]:
                break
            cluster = ModeCluster(self, np.array([here]), here, inside)
            for near in cluster.neighbours(NEWTON_REACH):
                if all(abs(near - one) > DISTINCT_EIGENVALUES / MUCH_SMALLER * near for one in eigenvalues):
                    eigenvalues += [near] * cluster.multiplicity(near)
            here *= 1 + NEWTON_REACH
        return (np.sort(eigenvalues)[:count] - self.start) / self.slope


def _form(problem: Problem) -> CanonicalForm | None:
    equations = linear_equations(problem)
    if isinstance(equations, str) or len(equations) != 1:
        return None
    symbol = equations[0].symbols.get(problem.fields[0])
    return None if symbol is None else canonical_form(symbol, problem.domain.bounds.mean(axis=1))
