"""Which features: the law of a plane domain and an operator, as families with a number of features for every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.analytic import AnalyticFamily, LaurentFamily, LogarithmFamily, PolynomialFamily
from rannpde.pde.trefftz.corners import (
    corner_families,
    poles_at_first,
    powers_at_corners,
    surely_singular,
    value_jumps,
)
from rannpde.pde.trefftz.families import CanonicalFamily, ExponentialFamily, FeatureFamily, evanescent_degrees
from rannpde.pde.trefftz.geometry import PlaneBoundary, PlaneSet
from rannpde.pde.trefftz.holes import hole_columns, hole_rate, hole_rows, image_degree
from rannpde.pde.trefftz.layers import layer_directions, side_frequencies
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.multipoles import MultipoleFamily
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.plane_points import boundary_tube, plane_conditions
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily, PotentialModel
from rannpde.pde.trefftz.refinement import plane_refined
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.segments import BoundarySegment
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.symmetric_least_squares import FeatureOrbits
from rannpde.pde.trefftz.symmetry import MirrorGroup, SymmetricFamily
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import ROUNDED

ROUND_HOLE = 0.6
"""Inner over outer radius of a hole above which multipoles about its centre converge fast enough."""


@dataclass(frozen=True)
class PlaneResolution:
    """The numbers of features of all groups.

    regular : degree of the functions that are smooth everywhere
    holes : degree of the multipoles in each hole
    corners : poles at each singular point
    sources : sources along each segment of the boundary
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
        outer = [segment for segment in self.boundary.segments if segment.loop == 0]
        total = sum(segment.length for segment in outer)
        points = []
        for segment in outer:
            count = ceil(self.tuning.oversampling * (degree + 8) * segment.length / total) + 8
            units = (np.arange(count) + 0.5) / count
            if max(segment.corners) >= 0:  # polynomials vary fastest at corners, as Chebyshev's do at the ends
                units = 0.5 * (1 - np.cos(np.pi * units))
            points.append(self.form.to(segment.points(units)))
        return np.concatenate(points)

    @cached_property
    def outline(self) -> Array:
        """Points (M, 2) of the boundary, canonical."""
        return self._outline(self.boundary.segments)

    @cached_property
    def outer_outline(self) -> Array:
        """Points (M, 2) of the outer boundary, canonical."""
        return self._outline([segment for segment in self.boundary.segments if segment.loop == 0])

    def _outline(self, segments: Sequence[BoundarySegment]) -> Array:
        units = np.concatenate([[0.0, 1.0], (np.arange(48) + 0.5) / 48])
        return np.concatenate([self.form.to(segment.points(units)) for segment in segments])

    def round_hole(self, number: int) -> bool:
        """Whether multipoles about the centre of a hole serve it."""
        _, inner, outer = self.boundary.holes[number]
        return inner >= ROUND_HOLE * outer and not self._bent_holes[number]

    @cached_property
    def _bent_holes(self) -> tuple[bool, ...]:
        """Whether the centroids of holes lie in the domain."""
        middles = np.array([middle for middle, _, _ in self.boundary.holes]).reshape(-1, 2)
        return tuple(self.domain.contains(self.form.back(middles)).tolist())

    @property
    def regular_at_first(self) -> int:
        """The degree of smooth functions at first."""
        digits = -np.log10(self.tol)
        reach = self.reach if self.form.kappa > 0 else 0.0
        return ceil(4 + reach + max(2 * digits, evanescent_degrees(reach, digits)))

    def first(self) -> PlaneResolution:
        """Where the iteration begins: from the digits that are wanted and the distances of holes."""
        digits, regular = -np.log10(self.tol), self.regular_at_first
        holes = []
        for number, (_, _, outer) in enumerate(self.boundary.holes):
            start = ceil(log(self.tol) / log(hole_rate(self, number))) + 2 if self.round_hole(number) else 0
            holes.append(max(start, 6) + ceil(self.form.wave_number * outer * (self.form.kappa > 0)))
        numbers = range(len(self.boundary.corners))
        corners = [self.poles if self._poles_from_the_start(k) else 0 for k in numbers]
        sources = []
        for segment in self.boundary.segments:
            start = ceil(3 * digits) + 12
            alone = segment.loop > 0 and not self.round_hole(segment.loop - 1)
            layered = self.layered and segment.straight
            sources.append(start if (alone or layered) and segment.image is None else 0)
        return PlaneResolution(regular, tuple(holes), tuple(corners), tuple(sources))

    def _poles_from_the_start(self, number: int) -> bool:
        return surely_singular(self, number) and self.own_corner(number) and not len(self.powers[number])

    @property
    def poles(self) -> int:
        """Poles at a corner at first."""
        return poles_at_first(self.tol, self.tuning.crowding)

    def own_corner(self, number: int) -> bool:
        """Whether a corner is one of the domain itself, not an image: averaged features serve all images of it."""
        return any(number in segment.corners for segment in self.boundary.segments if segment.image is None)

    @cached_property
    def jumps(self) -> tuple[bool, ...]:
        """For every corner, whether the values that are given on its two sides differ there."""
        return value_jumps(self)

    @cached_property
    def image_degree(self) -> int:
        """The degree of polynomials that resolves the images of holes in the outer boundary."""
        return image_degree(self)

    @cached_property
    def powers(self) -> tuple[Array, ...]:
        """For every corner the exponents of its powers."""
        return powers_at_corners(self)

    # -------------------------------------------------------------------------------------------------- families

    def families(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """The features: a realisation of the law."""
        families = self._scalar(resolution, rng)
        if self.model is not None:
            families = [
                GoursatFamily(one, self.model) if isinstance(one, AnalyticFamily) else PotentialFamily(one, self.model)
                for one in families
                if isinstance(one, CanonicalFamily)
            ]
        if self.mirrors is None:
            return families
        return [SymmetricFamily.of(one, self.mirrors, self._own_boundary(one.columns)) for one in families]

    def _own_boundary(self, count: int) -> Array:
        """Points (M, 2), at least ``count``, of the boundary that is no image, denser at its corners."""
        own = [segment for segment in self.boundary.segments if segment.image is None]
        each = ceil(count / len(own)) + 8
        units = 0.5 * (1 - np.cos(np.pi * (np.arange(each) + 0.5) / each))
        return np.concatenate([segment.points(units) for segment in own])

    def _scalar(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        families: list[FeatureFamily] = []
        families += self._regular(resolution, rng)
        # a hole that bends around its own centroid is served by sources alone
        holes = [k for k, bent in enumerate(self._bent_holes) if not bent]
        if self.harmonic and holes:
            middles, inner = zip(*(self.boundary.holes[k][:2] for k in holes), strict=True)
            families.append(LogarithmFamily(self.form, np.array(middles), np.array(inner)))
        for k in holes:
            middle, radius, _ = self.boundary.holes[k]
            own = resolution.holes[k] if self.round_hole(k) else 0
            if self.harmonic:
                families += [LaurentFamily(self.form, middle, radius, own)] if own else []
            else:
                families.append(
                    MultipoleFamily(self.form, middle, radius, own, False, self.growth_about(middle, False))
                )
        families += self.at_corners(resolution, rng)
        families += self.along(resolution, rng)
        return families

    def growth_about(self, centre: Array, regular: bool = True) -> float:
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
            turn = layer_directions(self, 6 * degree, rng)
            return [self._exponentials(self.form.wave_number * np.stack([np.cos(turn), np.sin(turn)], axis=1) + 0j)]
        if self.form.kappa > 0 and self.reach > self.tuning.plane_waves:
            turn = (np.arange(degree) + rng.uniform(0, 1, degree)) * np.pi / degree
            directions = np.stack([np.cos(turn), np.sin(turn)], axis=1)
            return [self._exponentials(1j * self.form.wave_number * directions)]
        centre = self.boundary.centre
        if self.harmonic:
            return [self.polynomials(degree)]
        family: CanonicalFamily = MultipoleFamily(
            self.form, centre, self.boundary.radius, degree, True, self.growth_about(centre, True)
        )
        return [family]

    def polynomials(self, degree: int) -> PolynomialFamily:
        """Polynomials up to a degree that are orthonormal on the outer boundary."""
        centre, radius = self.boundary.centre, self.boundary.radius
        return PolynomialFamily.orthonormal(self.form, centre, radius, degree, self._around(degree))

    def _exponentials(self, canonical: Array) -> ExponentialFamily:
        """exp(λ·y) exp(-drift·y) for λ (K, 2) with λ·λ = -κ, in the coordinates of the problem."""
        frequencies = (canonical - self.form.drift) @ self.form.matrix
        exponents = (self.outline @ (canonical - self.form.drift).T).real
        return ExponentialFamily(frequencies, exponents.max(axis=0), self.form.origin)

    def at_corners(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """Powers, poles that crowd at corners, and angles."""
        return corner_families(self, resolution, rng)

    def along(self, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """Sources along segments of the boundary, or exponentials where there are layers."""
        families: list[FeatureFamily] = []
        sources, lengths = [], []
        for segment, count in zip(self.boundary.segments, resolution.sources, strict=True):
            if not count:
                continue
            if self.layered and segment.straight:
                continue
            unit = (np.arange(count) + 0.5 + rng.uniform(-0.1, 0.1, count)) / count
            slopes = segment.slopes(unit)
            normals = np.stack([slopes[:, 1], -slopes[:, 0]], axis=1)
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            away = self.tuning.offset * segment.length / count
            own = self.form.to(segment.points(unit)) + away * normals
            outside = ~self.domain.contains(self.form.back(own))
            gap = np.array([np.linalg.norm(self.outline - one, axis=1).min() for one in own])
            # nearer to another part of the boundary, as many points as there are leave more than the tolerance
            least = np.log(self.tol) / (self.tuning.oversampling * np.log(ROUNDED))
            valid = outside & (gap > least * away)
            sources.append(own[valid])
            lengths.append(np.full(int(valid.sum()), away))
        families += [self._exponentials(one) for one in side_frequencies(self, resolution)] if self.layered else []
        if sources and sum(map(len, sources)):
            everywhere = self.form, np.concatenate(sources), np.concatenate(lengths)
            families.append(
                LogarithmFamily(*everywhere) if self.harmonic else SourceFamily(*everywhere, np.zeros((1, 2)))
            )
        return families

    # --------------------------------------------------------------------------------------- points and refinement

    def conditions(self, resolution: PlaneResolution, shift: float, factor: float = 1.0) -> list[ConditionPoints]:
        """Collocation points of all segments; another ``shift`` in (0, 1) gives fresh ones, ``factor`` as many."""
        return plane_conditions(self, resolution, shift, factor)

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundary with their shares of the domain, where layers are thin."""
        return boundary_tube(self)

    def orbits(self, families: Sequence[FeatureFamily]) -> FeatureOrbits | None:
        """None: symmetries of plane domains are used by unfolding them."""
        return None

    def hole_columns(self, families: Sequence[FeatureFamily]) -> dict[int, Array]:
        """Hole → the columns (C,) of its multipoles beyond dipoles, which hardly reach other boundaries."""
        return hole_columns(self, families)

    def hole_rows(self, conditions: Sequence[ConditionPoints]) -> dict[int, Array]:
        """Hole → the rows (R,) of its conditions, where rows follow each other as conditions do."""
        return hole_rows(self, conditions)

    def refined(
        self,
        resolution: PlaneResolution,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
        gains: Sequence[ColumnGains] = (),
    ) -> PlaneResolution:
        """More features for the groups whose error is above the target."""
        return plane_refined(self, resolution, errors, target, slow, weights)
