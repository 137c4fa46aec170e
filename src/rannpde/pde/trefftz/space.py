"""Features in space: solid harmonics for Laplace's operator, spherical waves for others, sources along the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.boundary.solids import tree_leaves
from rannpde.domains.domain import Ball, Domain
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.families import FeatureFamily, degree_needed
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.patches import SurfacePatches
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.tuning import TrefftzTuning

SURFACE_SAMPLES = 3000
"""Points of the boundary from which distances are measured."""


@dataclass(frozen=True)
class SpaceResolution:
    """How many features every group has.

    regular : degree of the harmonics or waves about the middle
    holes : degree of the multipoles about the middle of each spherical hole
    sources : sources behind each patch of the boundary
    """

    regular: int
    holes: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SpaceLaw:
    """The sampling law of features for an operator on a domain of space."""

    domain: Domain
    terms: tuple[Term, ...]
    form: CanonicalForm
    tol: float
    tuning: TrefftzTuning

    @cached_property
    def outline(self) -> Array:
        """Points of the boundary, canonical, for distances."""
        count = max(64, SURFACE_SAMPLES // len(self.terms))
        return self.form.to(np.concatenate([self._side(t).sample(count, rng=1, method="sobol") for t in self.terms]))

    @cached_property
    def radius(self) -> float:
        return float(np.linalg.norm(self.outline, axis=1).max())

    @property
    def reach(self) -> float:
        return self.form.wave_number * self.radius

    def _side(self, term: Term) -> Side:
        assert isinstance(term.region, Side)
        return term.region

    @property
    def harmonic(self) -> bool:
        """Whether features are solid harmonics: Laplace's operator, in some coordinates."""
        return self.form.kappa == 0 and not self.form.moves

    @property
    def layered(self) -> bool:
        """Whether there are no regular functions: layers are thin against the domain, or a drift meets κ = 0."""
        thin = self.form.kappa < 0 and self.reach >= self.tuning.layers
        return thin or (self.form.kappa == 0 and self.form.moves)

    def _about(self, centre: Array, radius: float, degree: int, regular: bool) -> FeatureFamily:
        """Harmonics or waves about a point."""
        return SphericalFamily(self.form, centre, radius, degree, regular)

    def _waves(self, radius: float) -> float:
        """Degrees that waves need before they decay."""
        return self.form.wave_number * radius if self.form.kappa > 0 else 0.0

    @cached_property
    def holes(self) -> tuple[tuple[Array, float], ...]:
        """Centres and radii, canonical, of spherical holes, about which multipoles converge exponentially."""
        scale = float(np.linalg.norm(self.form.matrix, 2))
        if not np.allclose(self.form.matrix, scale * np.eye(3), rtol=0, atol=1e-12 * scale):
            return ()
        found, inside = [], self.form.to(self.domain.sample(64, rng=1))
        for leaf in tree_leaves(self.domain.tree):
            if isinstance(leaf.solid, Ball):
                centre, radius = self.form.to(np.array([leaf.solid.centre]))[0], scale * leaf.solid.radius
                away = np.linalg.norm(np.concatenate([self.outline, inside]) - centre, axis=1)
                if away.min() > (1 - 1e-9) * radius and away[-len(inside) :].max() > radius:  # it lies outside
                    found.append((centre, radius))
        return tuple(found)

    @cached_property
    def nearest(self) -> tuple[int, ...]:
        """For every side the number of the hole that it bounds, -1 for others."""
        found = []
        for term in self.terms:
            here = self.form.to(self._side(term).sample(16, rng=1))
            fits = [np.ptp(np.linalg.norm(here - centre, axis=1)) < 1e-9 * radius for centre, radius in self.holes]
            found.append(fits.index(True) if True in fits else -1)
        return tuple(found)

    @cached_property
    def centre(self) -> Array:
        """The middle of the bounding box, canonical."""
        return (self.outline.min(axis=0) + self.outline.max(axis=0)) / 2

    @cached_property
    def span(self) -> float:
        """The largest distance of the boundary from the middle."""
        return float(np.linalg.norm(self.outline - self.centre, axis=1).max())

    @cached_property
    def patches(self) -> SurfacePatches:
        """The boundary in small patches, whose errors tell where sources are needed."""
        return SurfacePatches.of([self._side(term) for term in self.terms])

    @cached_property
    def _areas(self) -> Array:
        """The areas (P,) of patches, canonical."""
        return self.patches.areas * float(np.linalg.det(self.form.matrix)) ** (2 / 3)

    def first(self) -> SpaceResolution:
        digits, waves = -np.log10(self.tol), self._waves(self.span)
        degree = ceil(max(digits, 0.9 * digits ** (2 / 3) * waves ** (1 / 3))) + 4  # Rokhlin: half of the worst case
        holes = [ceil(digits) + 2 + ceil(self._waves(radius)) for _, radius in self.holes]
        sources = np.zeros(len(self._areas), dtype=int)
        if self.layered:
            sources = np.ceil(60 * degree * self._areas / self._areas.sum()).astype(int)
        return SpaceResolution(degree + ceil(waves), tuple(holes), tuple(sources.tolist()))

    def families(self, resolution: SpaceResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """A realisation of the law."""
        found: list[FeatureFamily] = []
        if not self.layered:
            found.append(self._about(self.centre, self.span, resolution.regular, True))
            for (centre, radius), degree in zip(self.holes, resolution.holes, strict=True):
                found.append(self._about(centre, radius, degree, False))
        if any(resolution.sources):
            found.append(self._sources(np.array(resolution.sources), rng))
        return found

    def _sources(self, counts: Array, rng: np.random.Generator) -> SourceFamily:
        """So many sources behind each patch (P,), at a few times their spacing, in directions around the normal.

        At edges and corners sources of all directions between the normals of the sides are needed.
        """
        points, homes, normals = self.patches.drawn(counts, int(rng.integers(2**31)), with_normals=True)
        here = self.form.to(points)
        outward = normals @ np.linalg.inv(self.form.matrix)
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        outward += 0.5 * rng.normal(size=outward.shape)
        wanted = np.minimum(self.tuning.offset * np.sqrt(self._areas / np.maximum(counts, 1))[homes], 0.5 * self.span)
        own, near = wanted.copy(), np.ones(len(here), dtype=bool)
        tree = cKDTree(self.outline)
        for _ in range(12):  # nearer where the other side of the domain, or of a hole, is in the way
            place = here + own[:, None] * outward
            near = (tree.query(place)[0] < 0.6 * own) | self.domain.contains(self.form.back(place))
            if not near.any():
                break
            own = np.where(near, 0.7 * own, own)
        kept = ~near & (own > 0.1 * wanted)
        return SourceFamily(self.form, place[kept], own[kept], np.zeros((1, 3)))

    def places(self, resolution: SpaceResolution, shift: float, factor: float = 1.0) -> list[ConditionPoints]:
        """Collocation points of all sides; the shift seeds them, so that another gives fresh ones."""
        hole = np.array(self.nearest)[self.patches.sides]
        areas, total = self.patches.areas, float(self.patches.areas.sum())
        outer = float(areas[hole < 0].sum()) or total
        regular = 0 if self.layered else (resolution.regular + 1) ** 2
        own = regular * areas / np.where(hole < 0, outer, total)
        for number, degree in enumerate(resolution.holes):
            mine = hole == number
            own[mine] = np.maximum(own[mine], (degree + 1) ** 2 * areas[mine] / areas[mine].sum())
        rows = factor * (self.tuning.oversampling - 0.5) * (np.array(resolution.sources) + own)
        counts = np.ceil(rows + 20 * len(self.terms) / len(areas)).astype(int)
        scale = min(self.radius, 1 / max(self.form.wave_number, 1e-300))
        scale *= float(np.abs(np.linalg.inv(self.form.matrix)).max())
        points, homes, _ = self.patches.drawn(counts, int(1e6 * shift))
        shares = np.sqrt(areas / total / np.bincount(homes, minlength=len(areas)).clip(1))[homes]
        found = []
        for number, term in enumerate(self.terms):
            mine = self.patches.sides[homes] == number
            scales = np.full(int(mine.sum()), scale)
            found.append(ConditionPoints(term, points[mine], shares[mine], scales, homes[mine]))
        return found

    def tube(self) -> tuple[Array, Array]:
        """No layers in space."""
        return np.empty((0, 3)), np.empty(0)

    def hole_columns(self, families: Sequence[FeatureFamily]) -> dict[int, Array]:
        """None: features of the whole are most of all."""
        return {}

    def hole_rows(self, places: Sequence[ConditionPoints]) -> dict[int, Array]:
        """None either."""
        return {}

    def refined(
        self,
        resolution: SpaceResolution,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
    ) -> SpaceResolution:
        """More features where the error is above the target: multipoles by their decay, or sources that are drawn with
        the error as their density."""
        holes, smooth = list(resolution.holes), 1.0
        needed = self._degrees(weights, target)
        patches, hole = self.patches, np.array(self.nearest)[self.patches.sides]
        every = np.array([errors.get(k, 0.0) for k in range(len(hole))])
        sizes = [float(np.linalg.norm(every[patches.sides == number])) for number in range(len(self.terms))]
        for number, own in zip(self.nearest, sizes, strict=True):
            if number >= 0 and own > target and own >= max(sizes) / len(sizes):
                degree = resolution.holes[number]
                holes[number] = max(degree, min(ceil(1.5 * degree), needed.get(number, degree)))
        sources, outside = np.array(resolution.sources), np.where(hole < 0, every, 0.0)
        if (outside > target).any():
            if not (self.layered or slow or sources.any()):
                smooth = 1.5
            else:
                density = np.where(outside > target, outside, 0.0) * np.sqrt(patches.areas)
                more = (self.tuning.growth - 1) / 2 * sum(family.columns for family, _ in weights)
                sources = sources + np.ceil(more * density / density.sum()).astype(int)
        waves = ceil(self._waves(self.span))
        most = waves + ceil((resolution.regular - waves) * smooth)
        regular = max(resolution.regular + 2, min(most, needed.get(-1, most))) if smooth > 1 else most
        return SpaceResolution(regular, tuple(holes), tuple(sources.tolist()))

    def _degrees(self, weights: Sequence[tuple[FeatureFamily, Array]], target: float) -> dict[int, int]:
        """Hole, or -1 for the whole → the degree at which its harmonics or waves have fallen below the target."""
        found: dict[int, int] = {}
        for family, own in weights:
            if isinstance(family, SphericalFamily):
                sizes = np.zeros(int(family.degree) + 1)
                np.maximum.at(sizes, family.orders, np.abs(own))
                first = min(int(self._waves(float(family.radius))), len(sizes) - 1)  # before, waves do not decay
                needed = first + degree_needed(sizes[first:], target)
                found[-1 if family.regular else sum(key >= 0 for key in found)] = ceil(min(needed, 10.0 * len(sizes)))
        return found


def space_law(
    domain: Domain, terms: Sequence[Term], form: CanonicalForm, tol: float, tuning: TrefftzTuning
) -> SpaceLaw | str:
    """The law; a reason where conditions do not cover the boundary once."""
    measure = sum(side.measure for side in domain.sides.values())
    if abs(sum(term.measure for term in terms) - measure) > 1e-6 * measure:
        return "the conditions do not cover the boundary exactly once"
    if any(not isinstance(term.region, Side) for term in terms):
        return "a condition holds inside the domain"
    return SpaceLaw(domain, tuple(terms), form, tol, tuning)
