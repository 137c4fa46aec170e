"""Features in space: solid harmonics for Laplace's operator, spherical waves for others, sources along the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Protocol

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array, Rng
from rannpde.domains.boundary.sides import Side
from rannpde.domains.boundary.solids import Tree, tree_leaves
from rannpde.domains.domain import Ball, Domain
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.families import FeatureFamily, coefficient_decay, evanescent_degrees
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.patches import SurfacePatches
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.sign_group import SignGroup
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.symmetric_least_squares import FeatureOrbits
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import ROOT_ROUNDED

SURFACE_SAMPLES = 3000
"""Points of the boundary from which distances are measured."""


class SolidSet(Protocol):
    """A domain in space, or a part of it."""

    @property
    def tree(self) -> Tree: ...

    def sample(self, count: int, *, rng: Rng = None) -> Array: ...

    def contains(self, points: Array) -> Array: ...


@dataclass(frozen=True)
class SpaceIteration:
    """The number of all features, the degree of the regular ones, and the error on the outer boundary."""

    features: int
    regular: int
    error: float

    def rate(self, later: SpaceIteration) -> float:
        """The decrease of the logarithm of the error per degree until a later iteration; 0 if it has not fallen."""
        if later.regular == self.regular or later.error >= self.error:
            return 0.0
        return float(np.log(self.error / later.error)) / (later.regular - self.regular)

    def growth(self, before: SpaceIteration | None, wanted: float, most: float) -> float:
        """The factor by which the number of features should grow, as errors fall with a power of their number.

        Work grows with the third power of the number. Where nothing is known of the number n that is needed, growth by
        g until it is passed costs g³/(3 log g) solves with n in the mean, which is least for g = exp(1/3).
        """
        if before is None or before.features >= self.features or before.error <= self.error:
            return float(np.exp(1 / 3))
        power = np.log(before.error / self.error) / np.log(self.features / before.features)
        return float(np.clip((self.error / wanted) ** (1 / power), 1.0, most))


@dataclass(frozen=True)
class SpaceResolution:
    """The numbers of features of all groups.

    regular : degree of the harmonics or waves about the middle
    holes : degree of the multipoles about the middle of each spherical hole
    sources : sources behind each patch of the boundary, and as many behind each of its images
    before : the iteration before
    """

    regular: int
    holes: tuple[int, ...]
    sources: tuple[int, ...]
    before: SpaceIteration | None = None


@dataclass(frozen=True, eq=False)
class SpaceLaw:
    """The sampling law of features for an operator on a domain of space."""

    domain: SolidSet
    terms: tuple[Term, ...]
    form: CanonicalForm
    tol: float
    tuning: TrefftzTuning
    symmetries: SignGroup | None = None

    @cached_property
    def group(self) -> SignGroup:
        """The symmetries of the domain and of its conditions that are used."""
        return self.symmetries or SignGroup.trivial(self.form.dim, len(self.terms))

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
        spheres, inside = [], self.form.to(self.domain.sample(64, rng=1))
        for leaf in tree_leaves(self.domain.tree):
            if isinstance(leaf.solid, Ball):
                centre, radius = self.form.to(np.array([leaf.solid.centre]))[0], scale * leaf.solid.radius
                away = np.linalg.norm(np.concatenate([self.outline, inside]) - centre, axis=1)
                if away.min() > (1 - 1e-9) * radius and away[-len(inside) :].max() > radius:  # it lies outside
                    spheres.append((centre, radius))
        return tuple(spheres)

    @cached_property
    def nearest(self) -> tuple[int, ...]:
        """For every side the number of the hole that it bounds, -1 for others."""
        numbers = []
        for term in self.terms:
            here = self.form.to(self._side(term).sample(16, rng=1))
            fits = [np.ptp(np.linalg.norm(here - centre, axis=1)) < 1e-9 * radius for centre, radius in self.holes]
            numbers.append(fits.index(True) if True in fits else -1)
        return tuple(numbers)

    @cached_property
    def centre(self) -> Array:
        """The middle of the bounding box, canonical; a point that symmetries do not move."""
        middle = (self.outline.min(axis=0) + self.outline.max(axis=0)) / 2
        return np.where(self.group.moved, 0.0, middle)

    @cached_property
    def span(self) -> float:
        """The largest distance of the boundary from the middle."""
        return float(np.linalg.norm(self.outline - self.centre, axis=1).max())

    @cached_property
    def patches(self) -> SurfacePatches:
        """The boundary in small patches, whose errors show where sources are needed."""
        return SurfacePatches.of([self._side(term) for term in self.terms], self.group)

    @cached_property
    def _areas(self) -> Array:
        """The areas (P,) of patches, canonical."""
        return self.patches.areas * float(np.linalg.det(self.form.matrix)) ** (2 / 3)

    def first(self) -> SpaceResolution:
        digits, waves = -np.log10(self.tol), self._waves(self.span)
        degree = ceil(max(digits, evanescent_degrees(waves, digits))) + 4
        holes = [ceil(digits) + 2 + ceil(self._waves(radius)) for _, radius in self.holes]
        sources = np.zeros(len(self._areas), dtype=int)
        if self.layered:
            sources = np.ceil(60 * degree / self.group.order * self._areas / self._areas.sum()).astype(int)
        return SpaceResolution(degree + ceil(waves), tuple(holes), tuple(sources.tolist()))

    def families(self, resolution: SpaceResolution, rng: np.random.Generator) -> list[FeatureFamily]:
        """A realisation of the law."""
        families: list[FeatureFamily] = []
        if not self.layered:
            families.append(self._about(self.centre, self.span, resolution.regular, True))
            for (centre, radius), degree in zip(self.holes, resolution.holes, strict=True):
                families.append(self._about(centre, radius, degree, False))
        if any(resolution.sources):
            families.append(self._sources(np.array(resolution.sources), rng))
        return families

    def _sources(self, counts: Array, rng: np.random.Generator) -> SourceFamily:
        """``counts`` (P,) sources behind the patches, at a few times their spacing, in directions around the normal.

        At edges and corners sources of all directions between the normals of the sides are needed.
        """
        points, homes, normals = self.patches.drawn(counts, int(rng.integers(2**31)))
        here = self.form.to(points)
        outward = normals @ np.linalg.inv(self.form.matrix)
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        outward += 0.5 * rng.normal(size=outward.shape)
        spacing = np.sqrt(self._areas / np.maximum(counts, 1))[homes]
        wanted = np.minimum(self.tuning.offset * spacing, 0.5 * self.span)
        own, near = wanted.copy(), np.ones(len(here), dtype=bool)
        tree = cKDTree(self.outline)
        # no nearer to any side than one in a direction of 45° to the normal is to its own: flatter ones
        # stand over points that do not resolve them
        least = 0.5**0.5
        for _ in range(12):  # nearer where the other side of the domain, or of a hole, is in the way
            position = here + own[:, None] * outward
            near = (tree.query(position)[0] < least * own) | self.domain.contains(self.form.back(position))
            if not near.any():
                break
            own = np.where(near, least * own, own)
        resolved = ~near & (2 * own > spacing)  # points would not resolve the peaks of nearer ones
        flips = self.group.flips
        sources = (flips[:, None, :] * position[resolved]).reshape(-1, 3)
        return SourceFamily(self.form, sources, np.tile(own[resolved], len(flips)), np.zeros((1, 3)))

    @cached_property
    def _hole_images(self) -> Array:
        """The number (G, holes) of the hole that every hole becomes by each symmetry."""
        images = np.empty((self.group.order, len(self.holes)), dtype=int)
        centres = np.array([centre for centre, _ in self.holes]).reshape(-1, 3)
        for row, flip in zip(images, self.group.flips, strict=True):
            row[:] = [np.argmin(np.linalg.norm(centres - flip * centre, axis=1)) for centre in centres]
        return images

    def orbits(self, families: Sequence[FeatureFamily]) -> FeatureOrbits:
        """How symmetries act on the features, be it the identity alone."""
        flips, hole = self.group.flips, 0
        starts = np.cumsum([0, *(family.columns for family in families)])
        numbers, signs = np.empty((len(flips), starts[-1]), dtype=int), np.ones((len(flips), starts[-1]))
        for k, family in enumerate(families):
            own = np.arange(family.columns)
            here = slice(starts[k], starts[k + 1])
            if isinstance(family, SphericalFamily):
                signs[:, here] = [family.signs(flip) for flip in flips]
                images = np.full(len(flips), k)
                if not family.regular:  # holes follow the regular functions
                    images, hole = 1 + self._hole_images[:, hole], hole + 1
                numbers[:, here] = starts[images][:, None] + own
            else:  # images of sources follow each other, and so do those of images: all changes of signs commute
                image, source = np.divmod(own, family.columns // len(flips))
                products = flips[:, None, :] * flips[None, :, :]
                table = np.argmin(np.abs(products[:, :, None, :] - flips).sum(axis=3), axis=2)
                numbers[:, here] = starts[k] + table[:, image] * (family.columns // len(flips)) + source
        return FeatureOrbits(self.group, numbers, signs, _degrees(families))

    def conditions(self, resolution: SpaceResolution, shift: float, factor: float = 1.0) -> list[ConditionPoints]:
        """Collocation points of all sides; the shift seeds them, so that another gives fresh ones.

        First come all points in one fundamental domain, then their images by one symmetry after the other.
        """
        hole = np.array(self.nearest)[self.patches.sides]
        areas, total = self.patches.shares, float(self.patches.areas.sum())  # of one fundamental domain
        outer = float(areas[hole < 0].sum()) or total
        regular = 0 if self.layered else (resolution.regular + 1) ** 2
        own = regular * areas / np.where(hole < 0, outer, total)
        for number, degree in enumerate(resolution.holes):
            images = np.unique(self._hole_images[:, number])  # of which the fundamental domain has one, or parts
            mine = np.isin(hole, images)
            columns = len(images) * (degree + 1) ** 2
            own[mine] = np.maximum(own[mine], columns * areas[mine] / areas[mine].sum())
        rows = factor * (self.tuning.oversampling - 0.5) * (np.array(resolution.sources) + own / self.group.order)
        counts = np.ceil(rows + 20 * len(self.terms) / len(areas)).astype(int)
        scale = min(self.radius, 1 / max(self.form.wave_number, 1e-300))
        scale *= float(np.abs(np.linalg.inv(self.form.matrix)).max())
        points, homes, shares = self.patches.collocation(counts, int(10**6 * shift))
        weights = np.sqrt(shares / (total * self.group.order))
        conditions = []
        for images, sides in zip(self.group.images(points), self.group.sides, strict=True):
            for number, image in enumerate(sides):
                mine = self.patches.sides[homes] == number
                scales = np.full(int(mine.sum()), scale)
                conditions.append(ConditionPoints(self.terms[image], images[mine], weights[mine], scales, homes[mine]))
        return conditions

    def tube(self) -> tuple[Array, Array]:
        """No layers in space."""
        return np.empty((0, 3)), np.empty(0)

    def hole_columns(self, families: Sequence[FeatureFamily]) -> dict[int, Array]:
        """None: features of the whole are most of all."""
        return {}

    def hole_rows(self, conditions: Sequence[ConditionPoints]) -> dict[int, Array]:
        """None either."""
        return {}

    def refined(
        self,
        resolution: SpaceResolution,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
        gains: Sequence[ColumnGains] = (),
    ) -> SpaceResolution:
        """More features where the error is above the target: multipoles by their decay, or sources that are drawn with
        the error as their density."""
        patches, hole = self.patches, np.array(self.nearest)[self.patches.sides]
        every = np.array([errors.get(k, 0.0) for k in range(len(hole))])
        sizes = [float(np.linalg.norm(every[patches.sides == number])) for number in range(len(self.terms))]
        outside = np.where(hole < 0, every, 0.0)
        wanted, boundary = target * np.sqrt(len(errors)), float(np.linalg.norm(outside))
        now = SpaceIteration(sum(family.columns for family, _ in weights), resolution.regular, boundary)
        holes = list(resolution.holes)
        for number, own in zip(self.nearest, sizes, strict=True):
            if number >= 0 and own > target and own >= max(sizes) / len(sizes):
                holes[number] += self._degrees(weights, number, own / wanted)
        if holes:
            holes = np.array(holes)[self._hole_images].max(axis=0).tolist()
        regular, sources, before = resolution.regular, np.array(resolution.sources), resolution.before
        if boundary > wanted:
            known = self._rate([family for family, _ in weights], gains)
            rate = known or (before.rate(now) if before is not None else 0.0)
            more = ceil(np.log(boundary / wanted) / rate) if rate else 0
            most = self._most_degrees(regular, known > 0)
            enough = known > 0 and more <= most
            if self.layered or sources.any() or (slow and not enough):
                density = np.where(outside > target, outside, 0.0) * np.sqrt(patches.areas)
                more = now.growth(before if sources.any() else None, wanted, self.tuning.growth) - 1
                more *= now.features / self.group.order
                sources = sources + np.ceil(more * density / density.sum()).astype(int)
            else:
                more = more or self._degrees(weights, -1, boundary / wanted)
                # two degrees more cost less than one more iteration, if the error falls a little slower
                regular += min(more + 2, most)
        return SpaceResolution(regular, tuple(holes), tuple(sources.tolist()), now)

    def _most_degrees(self, degree: int, known: bool = False) -> int:
        """The largest increase of the degree of functions about one point from one iteration to the next.

        It is limited by what one factorisation can hold and, unless errors are known to fall, by the usual growth.
        """
        if not known:
            return int((np.sqrt(self.tuning.growth) - 1) * (degree + 1))
        room = np.sqrt((self.form.dim - 1) * self.tuning.columns * self.group.order)
        return max(min(degree + 1, int(room) - degree - 1), 0)

    def _rate(self, families: Sequence[FeatureFamily], gains: Sequence[ColumnGains]) -> float:
        """The decrease of the logarithm of the error with each degree of the regular functions, 0 if that is not
        known: over the last quarter of the degrees from which waves decay on, two at least, of which one may serve
        even functions and the other odd ones."""
        orders = _degrees(families)
        most = int(orders.max(initial=-1))
        decaying = most - int(self._waves(self.span))
        if not gains or decaying < 2:
            return 0.0
        squares = np.sum([own.truncated(orders, most) for own in gains], axis=0)
        steps = 2 * ceil(decaying / 8)
        return max(float(np.log(squares[most - steps] / squares[most])) / (2 * steps), 0.0)

    def _degrees(self, weights: Sequence[tuple[FeatureFamily, Array]], hole: int, factor: float) -> int:
        """The number of degrees, two at least, over which the coefficients of harmonics or waves about a hole, or the
        middle (-1), fall by a factor."""
        about = self.centre if hole < 0 else self.holes[hole][0]
        for family, own in weights:
            if isinstance(family, SphericalFamily) and np.array_equal(family.centre, about):
                sizes = np.zeros(int(family.degree) + 1)
                np.maximum.at(sizes, family.orders, np.abs(own))
                decaying = sizes[min(int(self._waves(float(family.radius))), len(sizes) - 1) :]  # waves do not, before
                rate, most = -coefficient_decay(decaying)[2], self._most_degrees(int(family.degree))
                return max(2, min(ceil(np.log(max(factor, 1.0)) / rate), most) if rate > 0 else most)
        raise AssertionError("no features about this point")


def _degrees(families: Sequence[FeatureFamily]) -> Array:
    """The degree (N,) of every feature that is regular about the middle, -1 for others."""
    own = [
        family.orders if isinstance(family, SphericalFamily) and family.regular else np.full(family.columns, -1)
        for family in families
    ]
    return np.concatenate([np.empty(0, dtype=int), *own])


def space_law(
    domain: Domain, terms: Sequence[Term], form: CanonicalForm, tol: float, tuning: TrefftzTuning
) -> SpaceLaw | str:
    """The law; a reason where conditions do not cover the boundary once."""
    measure = sum(side.measure for side in domain.sides.values())
    if abs(sum(term.measure for term in terms) - measure) > ROOT_ROUNDED * measure:
        return "the conditions do not cover the boundary exactly once"
    if any(not isinstance(term.region, Side) for term in terms):
        return "a condition holds inside the domain"
    return SpaceLaw(domain, tuple(terms), form, tol, tuning)
