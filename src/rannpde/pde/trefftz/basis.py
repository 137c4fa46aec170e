"""Which features: the law of a plane domain and an operator, as families with a number of features for every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.analytic import AnalyticFamily, LaurentFamily, LogarithmFamily, PoleFamily, PolynomialFamily
from rannpde.pde.trefftz.families import (
    AngleFamily,
    CanonicalFamily,
    ExponentialFamily,
    FeatureFamily,
    MultipoleFamily,
    SourceFamily,
)
from rannpde.pde.trefftz.geometry import PlaneBoundary, PlaneSet
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.plane_points import boundary_tube, plane_places
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily, PotentialModel
from rannpde.pde.trefftz.refinement import plane_refined
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.symmetry import MirrorGroup, SymmetricFamily
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import ROUNDED

ROUND_HOLE = 0.6
"""Inner over outer radius of a hole above which multipoles about its centre converge fast enough."""


def _given(term: Term, place: Array, words: Vocabulary) -> dict[str, float]:
    """Field → its value at a point (1, 2), where a condition gives one."""
    prescribed = term.prescribed
    if prescribed is None or prescribed[0].order:
        return {}
    value = evaluate([prescribed[1]], term.known(place, words), term.expression.functions)[0]
    return {prescribed[0].field: float(np.ravel(value)[0])}


@dataclass(frozen=True)
class PlaneResolution:
    """How many features every group has.

    regular : degree of the functions that are smooth everywhere
    holes : degree of the multipoles in each hole
    corners : poles at each singular point
    sources : sources along each piece of the boundary
    """

    regular: int
    holes: tuple[int, ...]
    corners: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PlaneLaw:
    """The sampling law of features for an operator on a domain of the plane; with a model, of harmonic potentials."""

    domain: PlaneSet
    boundary: PlaneBoundary
    form: CanonicalForm
    tol: float
    tuning: TrefftzTuning
    words: Vocabulary
    model: PotentialModel | None = None
    mirrors: MirrorGroup | None = None
    """Over whose images features are averaged; domain and boundary are unfolded then."""

    @cached_property
    def reach(self) -> float:
        """√|κ| × radius: wave lengths or layer widths across the domain."""
        return self.form.wave_number * self.boundary.radius

    @property
    def layered(self) -> bool:
        """Whether the solution lives in layers that are thin against the domain."""
        return self.form.kappa < 0 and self.reach > self.tuning.layers

    @property
    def harmonic(self) -> bool:
        """Whether features are parts of analytic functions: Laplace's operator, in some coordinates."""
        return self.form.kappa == 0 and not self.form.moves

    def _around(self, degree: int) -> Array:
        """Points (M, 2) of the outer boundary, canonical, that resolve polynomials of a degree."""
        outer = [piece for piece in self.boundary.pieces if piece.loop == 0]
        total = sum(piece.length for piece in outer)
        found = []
        for piece in outer:
            count = ceil(self.tuning.oversampling * (degree + 8) * piece.length / total) + 8
            units = (np.arange(count) + 0.5) / count
            if max(piece.corners) >= 0:  # polynomials vary fastest at corners, as Chebyshev's do at the ends
                units = 0.5 * (1 - np.cos(np.pi * units))
            found.append(self.form.to(piece.place(units)))
        return np.concatenate(found)

    @cached_property
    def outline(self) -> Array:
        """Points (M, 2) of the boundary, canonical."""
        unit = (np.arange(48) + 0.5) / 48
        ends = np.array([0.0, 1.0])
        units = np.concatenate([ends, unit])
        return np.concatenate([self.form.to(piece.place(units)) for piece in self.boundary.pieces])

    def round_hole(self, number: int) -> bool:
        """Whether multipoles about the centre of a hole serve it."""
        middle, inner, outer = self.boundary.holes[number]
        inside = self.domain.contains(self.form.back(middle[None, :]))[0]
        return inner >= ROUND_HOLE * outer and not inside

    def first(self) -> PlaneResolution:
        """Where the iteration begins: from the digits that are wanted and the distances of holes."""
        digits = -np.log10(self.tol)
        regular = ceil(2 * digits + 4 + (self.reach * 1.05 if self.form.kappa > 0 else 0))
        holes = []
        for number, (middle, _, outer) in enumerate(self.boundary.holes):
            others = [np.linalg.norm(m - middle) - r for k, (m, _, r) in enumerate(self.boundary.holes) if k != number]
            unit = (np.arange(48) + 0.5) / 48
            outside = [self.form.to(p.place(unit)) for p in self.boundary.pieces if p.loop == 0]
            gap = min(map(float, [*others, np.linalg.norm(np.concatenate(outside) - middle, axis=1).min()]))
            rate = min(outer / max(gap, 1e-300), 0.85)
            start = ceil(log(self.tol) / log(rate)) if self.round_hole(number) else 0
            holes.append(min(max(start, 6), 40) + ceil(self.form.wave_number * outer * (self.form.kappa > 0)))
        numbers = range(len(self.boundary.corners))
        corners = [self.poles if self._surely_singular(k) and self._own_corner(k) else 0 for k in numbers]
        sources = []
        for piece in self.boundary.pieces:
            start = ceil(3 * digits) + 12
            alone = piece.loop > 0 and not self.round_hole(piece.loop - 1)
            layered = self.layered and piece.straight
            sources.append(start if (alone or layered) and piece.image is None else 0)
        return PlaneResolution(regular, tuple(holes), tuple(corners), tuple(sources))

    @property
    def poles(self) -> int:
        """Poles at a corner at first: errors fall like exp(-c √n), so that n goes with the square of the digits."""
        return ceil(10 + 0.16 * np.log10(self.tol) ** 2)

    def _own_corner(self, number: int) -> bool:
        """Whether a corner is one of the domain itself, not an image: averaged features serve all images of it."""
        return any(number in piece.corners for piece in self.boundary.pieces if piece.image is None)

    def _surely_singular(self, number: int) -> bool:
        """Re-entrant, or a change of the kind of condition."""
        corner = self.boundary.corners[number]
        if not corner.singular:
            return False
        if corner.angle > np.pi + 1e-6:
            return True
        return self.boundary.kind_changes(number)

    @cached_property
    def jumps(self) -> tuple[bool, ...]:
        """For every corner, whether the values that are given on its two sides differ there."""
        found = []
        for number, corner in enumerate(self.boundary.corners):
            place = self.form.back(corner.point[None, :])
            sides = [
                {field: value for term in piece.terms for field, value in _given(term, place, self.words).items()}
                for piece in self.boundary.pieces
                if number in piece.corners
            ]
            both = set.intersection(*map(set, sides)) if len(sides) > 1 else set()
            size = max((abs(value) for side in sides for value in side.values()), default=0.0)
            spread = [max(side[field] for side in sides) - min(side[field] for side in sides) for field in both]
            found.append(not max(spread, default=0.0) <= ROUNDED * size)
        return tuple(found)

    # -------------------------------------------------------------------------------------------------- families

    def families(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """The features: a realisation of the law."""
        found = self._scalar(resolution, rng)
        if self.model is not None:
            found = [
                GoursatFamily(one, self.model) if isinstance(one, AnalyticFamily) else PotentialFamily(one, self.model)
                for one in found
                if isinstance(one, CanonicalFamily)
            ]
        if self.mirrors is None:
            return found
        return [SymmetricFamily.of(one, self.mirrors, self._own_boundary(one.columns)) for one in found]

    def _own_boundary(self, count: int) -> Array:
        """Points (M, 2), at least so many, of the boundary that is no image, denser at its corners."""
        own = [piece for piece in self.boundary.pieces if piece.image is None]
        each = ceil(count / len(own)) + 8
        units = 0.5 * (1 - np.cos(np.pi * (np.arange(each) + 0.5) / each))
        return np.concatenate([piece.place(units) for piece in own])

    def _scalar(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        found: list[FeatureFamily] = []
        found += self._regular(resolution, rng)
        for number, degree in enumerate(resolution.holes):
            middle, inner, _ = self.boundary.holes[number]
            if self.domain.contains(self.form.back(middle[None, :]))[0]:
                continue  # a hole that bends around its own centroid is served by sources alone
            own = degree if self.round_hole(number) else 0
            if self.harmonic:
                found.append(LogarithmFamily(self.form, middle[None, :], np.array([inner])))
                found += [LaurentFamily(self.form, middle, inner, own)] if own else []
            else:
                found.append(MultipoleFamily(self.form, middle, inner, own, False, self._most(middle, False)))
        found += self.at_corners(resolution, rng)
        found += self.along(resolution, rng)
        return found

    def _most(self, centre: Array, regular: bool) -> float:
        """The largest exponent on the boundary of functions about a centre."""
        away = self.outline - centre
        drift = -(away @ self.form.drift)
        if self.form.kappa < 0:
            radius = self.form.wave_number * np.linalg.norm(away, axis=1)
            drift = drift + (radius if regular else -radius)
        return float(drift.max())

    def _regular(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        degree = resolution.regular
        if self.layered:
            turn = self._layer_directions(4 * degree, rng)
            return [self._exponentials(self.form.wave_number * np.stack([np.cos(turn), np.sin(turn)], axis=1) + 0j)]
        if self.form.kappa > 0 and self.reach > self.tuning.plane_waves:
            turn = (np.arange(degree) + rng.uniform(0, 1, degree)) * np.pi / degree
            directions = np.stack([np.cos(turn), np.sin(turn)], axis=1)
            return [self._exponentials(1j * self.form.wave_number * directions)]
        centre = self.boundary.centre
        if self.harmonic:
            return [PolynomialFamily.orthonormal(self.form, centre, self.boundary.radius, degree, self._around(degree))]
        family: CanonicalFamily = MultipoleFamily(
            self.form, centre, self.boundary.radius, degree, True, self._most(centre, True)
        )
        return [family]

    def _layer_directions(self, count: int, rng: np.random.Generator) -> Array:
        """Random angles (N,) of exponentials exp(k d·y - drift·y), stratified; each is largest at one corner.

        Which corner that is changes where k d - drift is along the normal of a side. Between two such angles the
        exponentials serve one corner, and to be interpolated up to both ends they are spread like Chebyshev's points.
        """
        k, drift = self.form.wave_number, self.form.drift
        turns = []
        for piece in self.boundary.pieces:
            if piece.loop == 0 and piece.straight:
                slope = piece.slopes(np.array([0.5]))[0]
                normal = np.array([slope[1], -slope[0]]) / np.linalg.norm(slope)
                along = drift @ normal
                length = -along + np.sqrt(max(along**2 + k**2 - drift @ drift, 0.0))
                turns.append(float(np.arctan2(*(drift + length * normal)[::-1])))
        ends = np.unique(np.round(np.array(turns), 12))  # sides that are parallel have one normal
        if len(ends) < 2:
            return (np.arange(count) + rng.uniform(0, 1, count)) * 2 * np.pi / count
        found = []
        for low, high in zip(ends, [*ends[1:], ends[0] + 2 * np.pi], strict=True):
            own = ceil(count / len(ends))
            place = np.pi * (np.arange(own) + rng.uniform(0, 1, own)) / own
            found.append(0.5 * (low + high) - 0.5 * (high - low) * np.cos(place))
        return np.concatenate(found)

    def _exponentials(self, canonical: Array) -> ExponentialFamily:
        """exp(λ·y) exp(-drift·y) for λ (K, 2) with λ·λ = -κ, in the coordinates of the problem."""
        frequencies = (canonical - self.form.drift) @ self.form.matrix
        exponents = (self.outline @ (canonical - self.form.drift).T).real
        return ExponentialFamily(frequencies, exponents.max(axis=0), self.form.origin)

    def at_corners(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """Poles that crowd at corners, and angles."""
        places, lengths, angles = [], [], []
        for corner, count, jumps in zip(self.boundary.corners, resolution.corners, self.jumps, strict=True):
            if count:
                angles += [corner] if jumps else []
                steps = np.sqrt(count) - np.sqrt(np.arange(1, count + 1) + rng.uniform(-0.3, 0.3, count))
                reach = corner.reach if not self.layered else min(corner.reach, 4 / self.form.wave_number)
                crowding = min(self.tuning.crowding, log(1 / self.tuning.closest) / max(np.sqrt(count) - 1, 1.0))
                away = reach * np.exp(-crowding * np.maximum(steps, 0.0))
                places.append(corner.point + away[:, None] * corner.outward)
                lengths.append(away)
        if not places:
            return []
        everywhere = self.form, np.concatenate(places), np.concatenate(lengths)
        found: list[FeatureFamily] = [
            PoleFamily(*everywhere) if self.harmonic else SourceFamily(*everywhere, np.eye(2))
        ]
        if not self.layered and angles:
            points, outward = np.array([c.point for c in angles]), np.array([c.outward for c in angles])
            found.append(AngleFamily(self.form, points, outward, np.array([self._most(c.point, True) for c in angles])))
        return found

    def along(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """Sources along pieces of the boundary, or exponentials where there are layers."""
        found: list[FeatureFamily] = []
        places, lengths = [], []
        for piece, count in zip(self.boundary.pieces, resolution.sources, strict=True):
            if not count:
                continue
            if self.layered and piece.straight:
                found.append(self._layers(piece.slopes(np.array([0.5]))[0], piece.length, count))
                continue
            unit = (np.arange(count) + 0.5 + rng.uniform(-0.1, 0.1, count)) / count
            slopes = piece.slopes(unit)
            normals = np.stack([slopes[:, 1], -slopes[:, 0]], axis=1)
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            away = self.tuning.offset * piece.length / count
            own = self.form.to(piece.place(unit)) + away * normals
            outside = ~self.domain.contains(self.form.back(own))
            gap = np.array([np.linalg.norm(self.outline - one, axis=1).min() for one in own])
            kept = outside & (gap > 0.7 * away)
            places.append(own[kept])
            lengths.append(np.full(int(kept.sum()), away))
        if places and sum(map(len, places)):
            everywhere = self.form, np.concatenate(places), np.concatenate(lengths)
            found.append(LogarithmFamily(*everywhere) if self.harmonic else SourceFamily(*everywhere, np.zeros((1, 2))))
        return found

    def _layers(self, slope: Array, length: float, count: int) -> ExponentialFamily:
        """Exponentials with imaginary frequencies along a straight side, and both roots across it."""
        along = slope / np.linalg.norm(slope)
        across = np.array([-along[1], along[0]])
        omega = np.pi / length * np.arange(count)
        tangential = 1j * omega + self.form.drift @ along
        normal = np.sqrt(-self.form.kappa - tangential**2 + 0j)
        both = [tangential[:, None] * along + sign * normal[:, None] * across for sign in (1, -1)]
        return self._exponentials(np.concatenate(both))

    # --------------------------------------------------------------------------------------- points and refinement

    def places(self, resolution: PlaneResolution, shift: float, factor: float = 1.0) -> list[ConditionPoints]:
        """Collocation points of all pieces; another ``shift`` in (0, 1) gives fresh ones, ``factor`` times as many."""
        return plane_places(self, resolution, shift, factor)

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundary with their shares of the domain, where layers are thin."""
        return boundary_tube(self)

    def refined(
        self,
        resolution: PlaneResolution,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
    ) -> PlaneResolution:
        """More features for the groups whose error is above the target."""
        return plane_refined(self, resolution, errors, target, slow, weights)
