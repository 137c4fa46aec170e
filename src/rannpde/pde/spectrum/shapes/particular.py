"""The method of particular solutions: eigenvalues of Laplace's operator from features that satisfy Δu + κu = 0.

For a wave number near an eigenvalue some combination of Trefftz features almost satisfies the conditions. It is found
as the smallest angle between the features on the boundary and those inside (Betcke and Trefethen 2005). Green's formula
then gives the distance to the eigenvalues: with functions u_i for κ and the eigenfunctions replaced by them,

    (κ* - κ) ∫ u_i u_j = ∮ (∂ₙu_i u_j - u_i ∂ₙu_j) ,

a small eigenvalue problem whose solutions are right to second order, also for clusters. Where u = 0 is the condition,
the largest value on the boundary bounds the error: |κ* - κ| ≤ ε κ*, ε = √area · max |u| / ‖u‖ (Moler and Payne 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import jn_zeros

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.spectrum.pencil import Pencil
from rannpde.pde.spectrum.shapes.solid import SolidBoundary, solid_boundary
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.families import FeatureFamily, SourceFamily
from rannpde.pde.trefftz.geometry import PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, canonical_form, linear_equations
from rannpde.pde.trefftz.particular import NoPart
from rannpde.pde.trefftz.rows import ConditionPoints, feature_values
from rannpde.pde.trefftz.space import SpaceLaw
from rannpde.pde.trefftz.tuning import TrefftzTuning

SIGN_POINTS, NORM_POINTS = 256, 4096
"""Points inside that tell modes from zero, and as many as give norms to two digits, where no identity gives them."""
NEWTON_REACH, NEIGHBOURS = 0.1, 9
"""Relative distance at which corrections find an eigenvalue, being of second order; functions that are looked at."""


@dataclass(frozen=True, eq=False)
class RefinedModes:
    """Eigenvalues with bounds and their modes (None where it is a constant)."""

    values: Array
    bounds: Array
    networks: tuple[TrefftzNetwork | None, ...]


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
        if isinstance(boundary, str) or any(_kind(piece.term) is None for piece in boundary.pieces):
            return None
        found = cls(stated, boundary, one.kappa - zero.kappa, zero.kappa, tol, rng, monitor)
        return None if any(found.poles((1,) * len(boundary.corners))) else found  # poles do not end at the corner

    @property
    def clamped(self) -> bool:
        """Whether u = 0 on the whole boundary."""
        return all(_kind(piece.term) == 0 for piece in self.boundary.pieces)

    @property
    def free(self) -> bool:
        """Whether ∂ₙu = 0 on the whole boundary."""
        return self.plain and all(_kind(piece.term) == 1 for piece in self.boundary.pieces)

    def refined(self, values: Array, errors: Array) -> RefinedModes | None:
        """Approximate eigenvalues to the tolerance; None where that was not reached or they moved beyond their errors.

        errors (K,) : of the approximations, which tell clusters
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
        found, bounds = np.array(values, dtype=float), np.full(len(values), np.inf)
        networks: list[TrefftzNetwork | None] = [None] * len(values)
        resolution: Any = None
        inside = self.problem.domain.sample(SIGN_POINTS if self.clamped else NORM_POINTS, rng=self.rng)
        for group in groups:
            if len(group) == 1 and self.free and abs(kappas[group[0]]) <= 4 * reach[group[0]]:  # a constant, exactly
                found[group[0]], bounds[group[0]] = -self.start / self.slope, 0.0
                continue
            if kappas[group].min() <= 0:
                return None
            own = _Cluster(self, kappas[group], float(reach[group].max()), inside)
            if not own.solve(resolution):
                return None
            resolution = own.resolution
            for k, (kappa, bound, network) in zip(group, own.modes, strict=True):
                if abs(kappa - kappas[k]) > 4 * reach[k] + bound:
                    return None
                found[k], bounds[k], networks[k] = (kappa - self.start) / self.slope, bound / abs(self.slope), network
        return RefinedModes(found, bounds, tuple(networks))

    def poles(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Poles at corners, none where modes are analytic: where an odd or even reflection continues them."""
        found = []
        for number, (count, corner) in enumerate(zip(counts, self.boundary.corners, strict=True)):
            kinds = {_kind(piece.term) for piece in self.boundary.pieces if number in piece.corners}
            straight = all(piece.straight for piece in self.boundary.pieces if number in piece.corners)
            waves = np.pi / corner.angle * (1.0 if len(kinds) == 1 else 0.5)
            analytic = straight and abs(waves - round(waves)) <= 1e-9 * waves and round(waves) > 0
            found.append(0 if analytic and self.plain else count)
        return tuple(found)

    @property
    def plain(self) -> bool:
        """Whether all conditions are u = 0 or ∂ₙu = 0, which reflections keep."""
        return all(len({jet.order for jet in piece.term.expression.jets}) == 1 for piece in self.boundary.pieces)

    def first(self, law: PlaneLaw | SpaceLaw) -> Any:
        """Poles at all corners that need them, and sources behind straight sides where holes are reflected.

        The mirror images of holes are as near to a side as the holes are; sources must be nearer.
        """
        if isinstance(law, SpaceLaw):
            return law.first()
        found = law.first()
        corners = self.poles((law.poles,) * len(self.boundary.corners))
        assert isinstance(self.boundary, PlaneBoundary)
        sources = list(found.sources)
        unit = (np.arange(48) + 0.5) / 48
        holes = [law.form.to(piece.place(unit)) for piece in self.boundary.pieces if piece.loop]
        for number, piece in enumerate(self.boundary.pieces):
            if piece.loop == 0 and piece.straight and holes:
                side = law.form.to(piece.place(unit))
                gap = min(float(np.linalg.norm(side[:, None] - hole, axis=2).min()) for hole in holes)
                sources[number] = ceil(law.tuning.offset * piece.length / gap)
        return replace(found, corners=corners, sources=tuple(sources))

    def law(self, kappa: float) -> PlaneLaw | SpaceLaw:
        """Of the features for this κ."""
        form = replace(self.boundary.pieces[0].form, kappa=kappa, zeroth=kappa)
        domain, tuning = self.problem.domain, TrefftzTuning()
        if isinstance(self.boundary, SolidBoundary):
            terms = tuple(piece.term for piece in self.boundary.pieces)
            return SpaceLaw(domain, terms, form, self.tol, tuning)
        return PlaneLaw(domain, self.boundary, form, self.tol, tuning, self.problem.vocabulary)

    def families(self, law: PlaneLaw | SpaceLaw, resolution: Any) -> list[FeatureFamily]:
        """The features for one κ; sources in space, whose places do not depend on it, are placed once."""
        rng = np.random.default_rng(self.rng)
        if not isinstance(law, SpaceLaw) or not any(resolution.sources):
            return law.families(resolution, rng)
        if resolution not in self.sources:
            found = law.families(resolution, rng)
            self.sources[resolution] = next(one for one in found if isinstance(one, SourceFamily))
        plain = replace(resolution, sources=(0,) * len(resolution.sources))
        return [*law.families(plain, rng), replace(self.sources[resolution], form=law.form)]

    def searched(self, count: int) -> Array:
        """Approximate eigenvalues, each as often as it is multiple, from the lowest on, without any known before.

        No eigenvalue of u = 0 lies below that of the ball of the same volume (Faber and Krahn), where a search begins.
        Its windows overlap, and multiplicities are dimensions of what vanishes on the boundary.
        """
        inside = self.problem.domain.sample(SIGN_POINTS, rng=self.rng)
        dim = self.problem.domain.dim
        scale = float(self.boundary.pieces[0].form.matrix[0, 0])
        unit = (np.pi, 4 * np.pi / 3)[dim - 2]
        radius = (self.problem.domain.measure * scale**dim / unit) ** (1 / dim)
        zero = (jn_zeros(0, 1)[0], np.pi)[dim - 2]
        here = (zero / radius) ** 2 * (1 - NEWTON_REACH)
        found: list[float] = []
        while not self.monitor.exhausted:
            known = sorted(found)
            if len(known) > count and here * (1 - NEWTON_REACH) > known[count]:
                break
            cluster = _Cluster(self, np.array([here]), here, inside)
            for near in cluster.neighbours(NEWTON_REACH):
                if all(abs(near - one) > 1e-4 * near for one in found):
                    found += [near] * cluster.multiplicity(near)
            here *= 1 + NEWTON_REACH
        return (np.sort(found)[:count] - self.start) / self.slope


def _form(problem: Problem) -> CanonicalForm | None:
    equations = linear_equations(problem)
    if isinstance(equations, str) or len(equations) != 1:
        return None
    symbol = equations[0].symbols.get(problem.fields[0])
    return None if symbol is None else canonical_form(symbol, problem.domain.bounds.mean(axis=1))


def _kind(term: Any) -> int | None:
    """0 for u = 0, 1 for a condition with the normal derivative, None for others."""
    orders = {jet.order for jet in term.expression.jets}
    if orders == {0}:
        return 0
    return 1 if orders <= {0, 1} else None


@dataclass(frozen=True, eq=False)
class _Sampled:
    """Functions of one κ with small boundary values: coefficients (N, m), and their values on the boundary.

    values, across (M, m) : of the functions and their normal derivatives, canonical; left (M, m) : what the conditions
    leave, as values; inside (K, m)
    """

    families: list[FeatureFamily]
    weights: Array
    values: Array
    across: Array
    left: Array
    inside: Array

    def leading(self, count: int) -> _Sampled:
        """The first of the functions."""
        parts = (self.weights, self.values, self.across, self.left, self.inside)
        return _Sampled(self.families, *(part[:, :count] for part in parts))


class _Cluster:
    """One eigenvalue, or several that the approximations do not tell apart."""

    def __init__(self, of: ParticularSolutions, kappas: Array, reach: float, inside: Array) -> None:
        self.of, self.count, self.reach, self.inside = of, len(kappas), reach, inside
        self.first = np.sort(kappas)
        self.modes: list[tuple[float, float, TrefftzNetwork]] = []
        self.scale = float(of.boundary.pieces[0].form.matrix[0, 0])
        self.area = of.problem.domain.measure * self.scale**of.problem.domain.dim

    def solve(self, resolution: Any) -> bool:
        """Whether every member has a bound below the tolerance; with more features as long as that helps."""
        of = self.of
        law, least = of.law(float(self.first.mean())), np.inf
        self._coarsely(law)
        self.resolution = resolution or of.first(law)
        for _ in range(TrefftzTuning().iterations):
            if of.monitor.exhausted:
                return False
            self.sampled: dict[float, _Sampled] = {}
            self.places = _Places(of, law.places(self.resolution, 0.5), self.scale)
            kappas = self._newton(of.tol)
            if kappas is None:
                return False
            errors, weights = self._bound(kappas, _Places(of, law.places(self.resolution, 0.29, 2.0), self.scale))
            worst = max(bound / max(kappa, 1e-300) for kappa, bound, _ in self.modes)
            if worst <= of.tol:
                return True
            if worst > 0.5 * least:
                return False
            target = 0.1 * of.tol / np.sqrt(len(errors))
            finer: Any = law.refined(self.resolution, errors, target, worst > 0.1 * least, weights)
            plane = isinstance(law, PlaneLaw)
            self.resolution = replace(finer, corners=of.poles(finer.corners)) if plane else finer
            least, self.first = worst, kappas
        return False

    def neighbours(self, window: float) -> list[float]:
        """Eigenvalues within a relative distance of κ, by corrections from there with few features."""
        here = float(self.first[0])
        coarse = replace(self.of.law(here), tol=max(self.of.tol, self.of.tol**0.5))
        self.sampled, self.resolution = {}, self.of.first(coarse)
        self.places = _Places(self.of, coarse.places(self.resolution, 0.5), self.scale)
        near = self._corrections(here, NEIGHBOURS)
        found: list[float] = []
        for start in np.zeros(0) if near is None else near:
            value = float(start)
            if abs(value - here) > 1.5 * window * here or any(abs(value - one) < 0.02 * here for one in found):
                continue
            for _ in range(TrefftzTuning().iterations):
                again = self._corrections(value, 1)
                if again is None or abs(float(again[0]) - here) > 2 * window * here:
                    break
                change, value = abs(float(again[0]) - value), float(again[0])
                if change <= 1e-5 * value:
                    if all(abs(value - one) > 1e-4 * value for one in found):
                        found.append(value)
                    break
        return found

    def multiplicity(self, kappa: float) -> int:
        """How many independent functions of κ almost vanish on the boundary: their values fall by a gap."""
        left = np.linalg.norm(self._small(kappa, NEIGHBOURS).left * self.places.roots[:, None], axis=0)
        return max(1, int((left <= np.sqrt(left[0] * left[-1])).sum()))

    def _coarsely(self, law: PlaneLaw | SpaceLaw) -> None:
        """Begin with few features: errors of eigenvalues are of second order in those of the boundary."""
        coarse = replace(law, tol=max(law.tol, law.tol**0.5))
        if coarse.tol == law.tol:
            return
        self.sampled, self.resolution = {}, self.of.first(coarse)
        self.places = _Places(self.of, coarse.places(self.resolution, 0.5), self.scale)
        found = self._newton(coarse.tol)
        self.first = self.first if found is None else found

    def _small(self, kappa: float, count: int) -> _Sampled:
        """The functions of κ with the smallest boundary values relative to those inside."""
        law, places = self.of.law(kappa), self.places
        families = self.of.families(law, self.resolution)
        both = np.concatenate([places.points, self.inside])
        tables = feature_values(families, both, (0,) * law.form.dim)[:, 0]
        values, inside = tables[: len(places.points)], tables[len(places.points) :]
        across = places.across(lambda index: feature_values(families, places.points, index)[:, 0])
        left = places.left(values, across)
        stacked = np.concatenate([left * places.roots[:, None], inside / np.sqrt(len(inside))])
        sizes = np.linalg.norm(stacked, axis=0)
        sizes[~(sizes > 1e-280)] = np.inf
        first, triangle = scipy.linalg.qr(stacked / sizes, mode="economic", check_finite=False)
        second, triangle, order = scipy.linalg.qr(triangle, pivoting=True, check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > TrefftzTuning().cutoff * np.finfo(float).eps * diagonal[0]).sum())
        # squares of sines: others are far from the smallest, whose vectors have all digits but that distance
        sines = first[: len(left)] @ second[:, :rank]
        last = scipy.linalg.eigh(sines.T @ sines, subset_by_index=[0, min(count, rank) - 1])[1].T
        weights = np.zeros((stacked.shape[1], len(last)))
        weights[order[:rank]] = scipy.linalg.solve_triangular(triangle[:rank, :rank], last.T)
        weights = weights / sizes[:, None]
        return _Sampled(families, weights, values @ weights, across @ weights, left @ weights, inside @ weights)

    def _mass(self, kappa: float, found: _Sampled) -> Array:
        """∫ u_i u_j: by Rellich's identity where u = 0 is the condition, by points inside otherwise."""
        if self.of.clamped:
            share = self.places.lengths * self.places.outwards / (2 * kappa)
            return np.asarray((share[:, None] * found.across).T @ found.across)
        return np.asarray(self.area / len(found.inside) * found.inside.T @ found.inside)

    def _newton(self, tol: float) -> Array | None:
        """The members, by corrections from Green's formula, each cluster at its own middle."""
        kappas, change = self.first, np.inf
        for _ in range(TrefftzTuning().iterations):
            corrected = kappas.copy()
            for group in _split(kappas, 1e-3 * tol):
                near = self._corrections(float(kappas[group].mean()), len(group))
                if near is None:
                    return None
                corrected[group] = near
            corrected = np.sort(corrected)
            change = float(np.abs(corrected - kappas).max() / np.abs(kappas).max())
            kappas = corrected
            if change <= 0.1 * tol:
                return kappas
            if np.abs(kappas - self.first).max() > 4 * self.reach + 0.1 * float(np.abs(self.first).max()):
                return None
        return kappas if change <= tol else None

    def _corrections(self, kappa: float, count: int) -> Array | None:
        """The eigenvalues (count,) nearest to κ; a neighbour or two more are in the small problem."""
        found = self.sampled[kappa] = self._small(kappa, count + 2)
        share = self.places.lengths[:, None]
        held = self.places.held[:, None]
        green = (share * np.where(held, 0.0, found.left / self.places.unit)).T @ found.values
        green -= (share * np.where(held, found.left, 0.0)).T @ found.across
        try:
            values = scipy.linalg.eigvals(green, self._mass(kappa, found))
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        if not np.isfinite(values).all():
            return None
        return np.sort(kappa + np.real(values[np.argsort(np.abs(values))][:count]))

    def _bound(self, kappas: Array, fresh: _Places) -> tuple[dict[int, float], Any]:
        """Every member with its bound and mode; the errors by groups of features, and what refinement needs."""
        modes: list[tuple[float, float, TrefftzNetwork]] = []
        errors: dict[int, float] = {}
        weights: Any = []
        for group in _split(kappas, 1e-2 * self.of.tol):
            value = float(kappas[group].mean())
            middle = min(self.sampled, key=lambda kappa, value=value: abs(kappa - value))  # type: ignore[misc]
            found = self.sampled[middle].leading(len(group))
            norms = np.sqrt(np.abs(np.diag(self._mass(middle, found))) / self.area)
            law, own, total = self.of.law(middle), [], 0.0
            families, own_weights = found.families, found.weights

            def table(index: MultiIndex, families: Any = families, own: Array = own_weights) -> Array:
                return np.asarray(feature_values(families, fresh.points, index)[:, 0] @ own)

            values = table((0,) * law.form.dim)
            left = np.abs(fresh.left(values, fresh.across(table))) / norms
            for k, column in enumerate(found.weights.T):
                network = TrefftzNetwork(tuple(found.families), column, (NoPart(),), law.form)
                largest = float(left[:, k].max())
                largest += fresh.between(values[:, k] / norms[k])
                total += largest**2
                size = found.inside[np.abs(found.inside[:, k]).argmax(), k]
                own.append(replace(network, weights=column / size))
                for g in np.unique(fresh.groups):
                    mine = fresh.groups == g
                    error = float(np.linalg.norm(left[mine, k] * fresh.roots[mine]))
                    errors[int(g)] = max(errors.get(int(g), 0.0), error)
                ends = np.cumsum([family.columns for family in found.families])[:-1]
                weights = list(zip(found.families, np.split(column / norms[k], ends), strict=True))
            share = float(np.sqrt(total))
            bound = middle * share / max(1 - share, 1e-3) + float(np.abs(kappas[group] - middle).max())
            modes += [(kappa, bound + 1e-14 * middle, one) for kappa, one in zip(kappas[group], own, strict=True)]
        self.modes = modes
        return errors, weights


class _Places:
    """Collocation points of all conditions: canonical normals, lengths, and what the conditions ask there."""

    def __init__(self, of: ParticularSolutions, places: list[ConditionPoints], scale: float) -> None:
        self.points = np.concatenate([place.points for place in places])
        self.starts = np.cumsum([len(place.points) for place in places])[:-1]
        self.roots = np.concatenate([place.weights for place in places])
        self.groups = np.concatenate([place.groups for place in places])
        self.lengths = self.roots**2 * of.boundary.length
        regions: list[Any] = [place.term.region for place in places]
        self.normals = np.concatenate([r.normals(p.points) for r, p in zip(regions, places, strict=True)])
        form = of.boundary.pieces[0].form
        self.outwards = (form.to(self.points) * self.normals).sum(axis=1)
        self.held = np.concatenate([np.full(len(p.points), _kind(p.term) == 0) for p in places])
        self.ratios = np.concatenate([_ratio(of.problem, place, scale) for place in places])
        self.unit, self.scale = of.boundary.radius, scale

    def across(self, table: Callable[[MultiIndex], Array]) -> Array:
        """Normal derivatives, canonical, of functions whose derivatives ``table`` gives at the points."""
        dim = self.points.shape[1]
        indices = [tuple(int(a == b) for b in range(dim)) for a in range(dim)]
        parts = [self.normals[:, a, None] * table(index) for a, index in enumerate(indices)]
        return np.asarray(sum(parts[1:], parts[0]) / self.scale)

    def between(self, values: Array) -> float:
        """By how much a function (M,) may exceed its samples between them: h²/8 max |u''|, by divided differences.

        On surfaces points have no order, and nothing is added.
        """
        worst = 0.0
        if self.points.shape[1] > 2:
            return worst
        for own in np.split(np.arange(len(values)), self.starts):
            gaps = np.linalg.norm(np.diff(self.points[own], axis=0), axis=1)
            bends = np.abs(np.diff(np.diff(values[own]) / gaps)) / (0.5 * (gaps[1:] + gaps[:-1]))
            around = np.maximum(np.concatenate([bends[:1], bends]), np.concatenate([bends, bends[-1:]]))
            worst = max(worst, float((gaps**2 / 8 * around).max(initial=0.0)))
        return worst

    def left(self, values: Array, across: Array) -> Array:
        """What the conditions leave (M, m): u, or the radius times ∂ₙu + (b/a) u."""
        free = self.unit * (across + self.ratios[:, None] * values)
        return np.asarray(np.where(self.held[:, None], values, free))


def _ratio(problem: Problem, place: ConditionPoints, scale: float) -> Array:
    """b/a (M,) of a condition a ∂ₙu + b u = 0, in canonical coordinates; zero where there is no derivative."""
    known = place.term.known(place.points, problem.vocabulary)
    expression = place.term.expression
    _, partials = expression.linearised(known, {jet: np.zeros(len(place.points)) for jet in expression.jets})
    slope, plain = np.zeros(len(place.points)), np.zeros(len(place.points))
    region: Any = place.term.region
    normals = region.normals(place.points)
    for jet, partial in zip(expression.jets, partials, strict=True):
        if jet.order:
            slope = slope + partial * normals[:, jet.index.index(1)]
        else:
            plain = plain + partial
    return np.asarray(plain / np.where(slope == 0, np.inf, slope) / scale)


def _split(kappas: Array, same: float) -> list[Array]:
    """Positions of sorted values that differ by less than a share of them."""
    apart = np.flatnonzero(np.diff(kappas) > same * np.abs(kappas[1:])) + 1
    return np.split(np.arange(len(kappas)), apart)
