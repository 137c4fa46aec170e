"""Features in space: solid harmonics for Laplace's operator, spherical waves for others, sources along the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.boundary.solids import tree_leaves
from rannpde.domains.domain import Ball, Domain
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.families import FeatureFamily, SourceFamily, degree_needed
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.solid import SolidFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.tuning import TrefftzTuning

SURFACE_SAMPLES = 3000
"""Points of the boundary from which distances are measured."""


@dataclass(frozen=True)
class SpaceResolution:
    """How many features every group has.

    regular : degree of the harmonics or waves about the middle
    holes : degree of the multipoles about the middle of each spherical hole
    sources : sources along each side
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
        kind = SolidFamily if self.harmonic else SphericalFamily
        return kind(self.form, centre, radius, degree, regular)

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

    def first(self) -> SpaceResolution:
        digits, waves = -np.log10(self.tol), self._waves(self.span)
        degree = ceil(max(digits, 0.9 * digits ** (2 / 3) * waves ** (1 / 3))) + 4  # Rokhlin: half of the worst case
        holes = [ceil(digits) + 2 + ceil(self._waves(radius)) for _, radius in self.holes]
        sources = [0] * len(self.terms)
        if self.layered:
            total = sum(term.measure for term in self.terms)
            sources = [ceil(60 * degree * term.measure / total) + 10 for term in self.terms]
        return SpaceResolution(degree + ceil(waves), tuple(holes), tuple(sources))

    def families(self, resolution: SpaceResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """A realisation of the law."""
        found: list[FeatureFamily] = []
        if not self.layered:
            found.append(self._about(self.centre, self.span, resolution.regular, True))
            for (centre, radius), degree in zip(self.holes, resolution.holes, strict=True):
                found.append(self._about(centre, radius, degree, False))
        places, lengths = [], []
        for term, count in zip(self.terms, resolution.sources, strict=True):
            if not count:
                continue
            side = self._side(term)
            points = side.sample(count, rng=rng, method="sobol")
            normals = side.normals(points) @ np.linalg.inv(self.form.matrix)
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            area = term.measure * float(np.linalg.det(self.form.matrix)) ** (2 / 3)
            away = self.tuning.offset * np.sqrt(area / count)
            here, own = self.form.to(points), np.full(count, away)
            for _ in range(12):  # nearer where the other side of the domain, or of a hole, is in the way
                place = here + own[:, None] * normals
                gap = np.array([np.linalg.norm(self.outline - one, axis=1).min() for one in place])
                near = (gap < 0.6 * own) | self.domain.contains(self.form.back(place))
                if not near.any():
                    break
                own = np.where(near, 0.7 * own, own)
            kept = ~near & (own > 0.1 * away)
            places.append(place[kept])
            lengths.append(own[kept])
        if places:
            found.append(SourceFamily(self.form, np.concatenate(places), np.concatenate(lengths), np.zeros((1, 3))))
        return found

    def places(self, resolution: SpaceResolution, shift: float, factor: float = 1.0) -> list[ConditionPoints]:
        """Collocation points of all sides; the shift seeds them, so that another gives fresh ones."""
        found, total = [], sum(term.measure for term in self.terms)
        outer = sum(t.measure for t, hole in zip(self.terms, self.nearest, strict=True) if hole < 0) or total
        regular = 0 if self.layered else (resolution.regular + 1) ** 2
        for number, (term, count) in enumerate(zip(self.terms, resolution.sources, strict=True)):
            share, hole = term.measure / total, self.nearest[number]
            own = regular * (term.measure / outer if hole < 0 else share)
            if hole >= 0:
                own = max(own, (resolution.holes[hole] + 1) ** 2)
            wanted = ceil(factor * (self.tuning.oversampling - 0.5) * (count + own)) + 20
            points = self._side(term).sample(wanted, rng=int(1e6 * shift), method="sobol")
            scale = np.full(wanted, min(self.radius, 1 / max(self.form.wave_number, 1e-300)))
            scale *= float(np.abs(np.linalg.inv(self.form.matrix)).max())
            weights = np.full(wanted, np.sqrt(share / wanted))
            found.append(ConditionPoints(term, points, weights, scale, np.full(wanted, number)))
        return found

    def tube(self) -> tuple[Array, Array]:
        """No layers in space."""
        return np.empty((0, 3)), np.empty(0)

    def refined(
        self,
        resolution: SpaceResolution,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
    ) -> SpaceResolution:
        """More features for the sides whose error is above the target: multipoles by their decay, or sources."""
        sources, holes, smooth = list(resolution.sources), list(resolution.holes), 1.0
        needed = self._degrees(weights, target)
        worst = max(errors.values(), default=0.0)
        total = sum(term.measure for term, hole in zip(self.terms, self.nearest, strict=True) if hole < 0)
        for number, hole in enumerate(self.nearest):
            if errors.get(number, 0.0) <= target or errors[number] < worst / len(errors):
                continue
            if hole >= 0:
                holes[hole] = max(holes[hole], min(ceil(1.5 * resolution.holes[hole]), needed.get(hole, holes[hole])))
            elif not self.layered and not slow:
                smooth = 1.5
            else:
                start = -60 * np.log10(self.tol) * self.terms[number].measure / total
                sources[number] = ceil(max(1.7 * sources[number], start, 40))
        waves = ceil(self._waves(self.span))
        most = waves + ceil((resolution.regular - waves) * smooth)
        regular = max(resolution.regular + 2, min(most, needed.get(-1, most))) if smooth > 1 else most
        return SpaceResolution(regular, tuple(holes), tuple(sources))

    def _degrees(self, weights: Sequence[tuple[FeatureFamily, Array]], target: float) -> dict[int, int]:
        """Hole, or -1 for the whole → the degree at which its harmonics or waves have fallen below the target."""
        found: dict[int, int] = {}
        for family, own in weights:
            if isinstance(family, SolidFamily | SphericalFamily):
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
