"""The boundary of a domain in space as small patches: errors are known for each, and points are drawn in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.trefftz.sign_group import SignGroup

PATCHES = 200
"""Patches of the whole boundary."""
SURFACE_POOL = 4096
"""Points of a side from which areas of patches are counted, and among which points are chosen at first."""
GOLDEN = (sqrt(5) - 1) / 2
"""Multiples of it, modulo one, are spread most evenly."""
DOUBLINGS = 4
"""How often more points are drawn where patches need more of them."""


@dataclass(frozen=True, eq=False)
class SurfacePatches:
    """Points of each side that are nearest to one of its anchors; sides (P,) : which side a patch belongs to.

    samples : many points of every side
    group : symmetries of the boundary; there are patches in one fundamental domain of it alone
    """

    every: tuple[Side, ...]
    samples: tuple[Array, ...]
    anchors: tuple[Array, ...]
    sides: Array
    group: SignGroup

    @classmethod
    def of(cls, sides: Sequence[Side], group: SignGroup) -> SurfacePatches:
        """Patches of about the same area."""
        total = sum(side.measure for side in sides)
        samples = tuple(side.sample(SURFACE_POOL, rng=2, method="sobol") for side in sides)
        anchors = []
        for side, points in zip(sides, samples, strict=True):
            inside = points[group.fundamental(points)]
            anchors.append(inside[: ceil(PATCHES * side.measure / total * len(inside) / len(points))])
        numbers = np.repeat(np.arange(len(sides)), list(map(len, anchors)))
        return cls(tuple(sides), samples, tuple(anchors), numbers, group)

    @cached_property
    def _trees(self) -> tuple[cKDTree, ...]:
        return tuple(cKDTree(own) for own in self.anchors)

    @cached_property
    def _adjacent(self) -> tuple[tuple[tuple[cKDTree, float], ...], ...]:
        """For every side the points of those that meet it at an edge, with their spacing."""
        trees = [cKDTree(points) for points in self.samples]
        spacings = [sqrt(side.measure / SURFACE_POOL) for side in self.every]
        adjacent = []
        for number, points in enumerate(self.samples):
            others = [k for k in range(len(trees)) if k != number]
            gaps = {k: trees[k].query(points, distance_upper_bound=spacings[number] + spacings[k])[0] for k in others}
            adjacent.append(tuple((trees[k], spacings[k]) for k in others if np.isfinite(gaps[k]).any()))
        return tuple(adjacent)

    def densities(self, number: int, points: Array) -> Array:
        """The density (M,), up to a factor, with which points (M, n) of a side serve functions that are smooth on it.

        It is that of the zeros of polynomials of high degree, of which the arcsine law on an interval is the simplest
        case: it grows like the inverse root of the distance from each edge, until that is the spacing of the samples
        from which it is measured.
        """
        density = np.ones(len(points))
        for tree, spacing in self._adjacent[number]:
            density /= np.sqrt(np.maximum(tree.query(points)[0], spacing))
        return density

    @cached_property
    def _counted(self) -> tuple[Array, Array, Array]:
        """Area, integral of the density, and largest density of every patch (P,)."""
        areas, integrals, largest = (np.zeros(len(self.sides)) for _ in range(3))
        for number, side in enumerate(self.every):
            if not len(self.anchors[number]):
                continue
            points = self.samples[number]
            points = points[self.group.fundamental(points)]
            homes, density = self._homes(number, points), self.densities(number, points)
            share = side.measure / SURFACE_POOL
            areas += share * np.bincount(homes, minlength=len(areas))
            integrals += share * np.bincount(homes, weights=density, minlength=len(areas))
            np.maximum.at(largest, homes, density)
        return np.maximum(areas, 1e-300), np.maximum(integrals, 1e-300), np.maximum(largest, 1e-300)

    @property
    def areas(self) -> Array:
        """(P,)."""
        return self._counted[0]

    @cached_property
    def shares(self) -> Array:
        """The areas (P,) that patches would have if all points were drawn with the density, those of a side together
        being its area."""
        areas, integrals, _ = self._counted
        whole = np.bincount(self.sides, weights=areas) / np.bincount(self.sides, weights=integrals).clip(1e-300)
        return np.asarray(integrals * whole[self.sides])

    def _homes(self, number: int, points: Array) -> Array:
        """The patches (M,) of points (M, n) of a side."""
        start = int(np.argmax(self.sides == number))
        return start + np.asarray(self._trees[number].query(points)[1])

    def collocation(self, counts: Array, seed: int) -> tuple[Array, Array, Array]:
        """``counts`` (P,) points of the patches, sampled with the density, their patches (M,), and weights (M,)."""
        points, homes, _ = self.drawn(counts, seed, dense=True)
        _, integrals, _ = self._counted
        density = np.empty(len(points))
        for number in range(len(self.every)):
            mine = self.sides[homes] == number
            density[mine] = self.densities(number, points[mine])
        numbers = np.bincount(homes, minlength=len(counts)).clip(1)
        return points, homes, (integrals / numbers)[homes] / density

    def drawn(self, counts: Array, seed: int, dense: bool = False) -> tuple[Array, Array, Array]:
        """``counts`` (P,) points of the patches, sampled evenly or with the density, their patches (M,), and normals.

        A patch that is so small that it has fewer points among very many of its side gets those that it has.
        """
        points, homes, normals = [], [], []
        areas, integrals, largest = self._counted
        accepted = integrals / (areas * largest) if dense else np.ones(len(areas))
        for number, side in enumerate(self.every):
            wanted = np.where(self.sides == number, counts, 0)
            if not wanted.any():
                continue
            densest = float((wanted / (areas * accepted)).max())
            most = max(SURFACE_POOL, SURFACE_POOL // PATCHES * self.group.order * int(wanted.sum()))
            size = int(np.clip(2 * densest * side.measure, 64, most))
            for _ in range(DOUBLINGS):
                pool = side.sample(size, rng=seed, method="sobol")
                chance = np.arange(size) * GOLDEN % 1  # evenly spread beside the points
                fundamental = self.group.fundamental(pool)
                pool, chance = pool[fundamental], chance[fundamental]
                own = self._homes(number, pool)
                if dense and self._adjacent[number]:
                    accept = chance * largest[own] < self.densities(number, pool)
                    pool, own = pool[accept], own[accept]
                if (np.bincount(own, minlength=len(counts)) >= wanted).all():
                    break
                size *= 2
            order = np.argsort(own, kind="stable")
            starts = np.searchsorted(own[order], np.arange(len(counts)))
            rank = np.empty(len(own), dtype=int)
            rank[order] = np.arange(len(own)) - starts[own[order]]
            chosen = rank < wanted[own]
            points.append(pool[chosen])
            homes.append(own[chosen])
            normals.append(np.empty((0, pool.shape[1])) if dense else side.normals(pool[chosen]))
        return np.concatenate(points), np.concatenate(homes), np.concatenate(normals)
