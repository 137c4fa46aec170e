"""The boundary of a domain in space as small patches: errors are known for each, and points are drawn in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.trefftz.sign_group import SignGroup

PATCHES = 200
"""Patches of the whole boundary."""
SURFACE_POOL = 4096
"""Points of a side from which areas of patches are counted, and among which points are chosen at first."""
DOUBLINGS = 4
"""How often more points are drawn where patches need more of them."""


@dataclass(frozen=True, eq=False)
class SurfacePatches:
    """Points of each side that are nearest to one of its anchors; sides (P,) : which side a patch belongs to.

    group : symmetries of the boundary; there are patches in one fundamental domain of it alone
    """

    every: tuple[Side, ...]
    anchors: tuple[Array, ...]
    sides: Array
    group: SignGroup

    @classmethod
    def of(cls, sides: Sequence[Side], group: SignGroup) -> SurfacePatches:
        """Patches of about the same area."""
        total = sum(side.measure for side in sides)
        counts = [max(1, ceil(PATCHES * side.measure / total)) for side in sides]
        if group.order > 1:  # few points of a side may miss its share of the fundamental domain
            counts = [max(n, SURFACE_POOL // PATCHES * group.order) for n in counts]
        every = [side.sample(n, rng=1, method="sobol") for side, n in zip(sides, counts, strict=True)]
        anchors = tuple(own[group.fundamental(own)] for own in every)
        return cls(tuple(sides), anchors, np.repeat(np.arange(len(sides)), list(map(len, anchors))), group)

    @cached_property
    def _trees(self) -> tuple[cKDTree, ...]:
        return tuple(cKDTree(own) for own in self.anchors)

    @cached_property
    def areas(self) -> Array:
        """(P,)."""
        found = np.zeros(len(self.sides))
        for number, side in enumerate(self.every):
            if not len(self.anchors[number]):
                continue
            points = side.sample(SURFACE_POOL, rng=2, method="sobol")
            homes = self._homes(number, points[self.group.fundamental(points)])
            shares = np.bincount(homes, minlength=len(self.sides)) / SURFACE_POOL
            found += shares * side.measure
        return np.maximum(found, 1e-300)

    def _homes(self, number: int, points: Array) -> Array:
        """The patches (M,) of points (M, n) of a side."""
        start = int(np.argmax(self.sides == number))
        return start + np.asarray(self._trees[number].query(points)[1])

    def drawn(self, counts: Array, seed: int, with_normals: bool = False) -> tuple[Array, Array, Array]:
        """So many points of every patch (P,), their patches (M,), and their normals if they are wanted.

        A patch that is so small that it has fewer points among very many of its side gets those that it has.
        """
        points, homes, normals = [], [], []
        for number, side in enumerate(self.every):
            wanted = np.where(self.sides == number, counts, 0)
            if not wanted.any():
                continue
            densest = float((wanted / self.areas).max())
            size = int(np.clip(2 * densest * side.measure, 64, SURFACE_POOL))
            for _ in range(DOUBLINGS):
                pool = side.sample(size, rng=seed, method="sobol")
                pool = pool[self.group.fundamental(pool)]
                own = self._homes(number, pool)
                if (np.bincount(own, minlength=len(counts)) >= wanted).all():
                    break
                size *= 2
            order = np.argsort(own, kind="stable")
            starts = np.searchsorted(own[order], np.arange(len(counts)))
            rank = np.empty(len(own), dtype=int)
            rank[order] = np.arange(len(own)) - starts[own[order]]
            kept = rank < wanted[own]
            points.append(pool[kept])
            homes.append(own[kept])
            normals.append(side.normals(pool[kept]) if with_normals else np.empty((0, pool.shape[1])))
        return np.concatenate(points), np.concatenate(homes), np.concatenate(normals)
