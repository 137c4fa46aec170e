"""Slabs of a solid between parallel planes across an axis: the parts of its sides in each, and the faces between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, Rng
from rannpde.domains.boundary.sides import Side
from rannpde.domains.boundary.solids import Branch, Leaf, Tree, tree_leaves
from rannpde.domains.domain import Domain
from rannpde.domains.region import TRIES, rejected
from rannpde.domains.streams import PointStream
from rannpde.network.storage import floats
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.patches import SURFACE_POOL
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class SlabArrangement:
    """Slabs between planes (K,) across an axis, in their order, of a space of any dimension."""

    axis: int
    planes: Array

    @property
    def count(self) -> int:
        """Slabs: one more than planes."""
        return len(self.planes) + 1

    def locate(self, points: Array) -> Array:
        """The number (M,) of the slab that holds each point."""
        return np.asarray(np.searchsorted(self.planes, points[:, self.axis]))

    def pack(self) -> dict[str, Array]:
        """The arrays of a file."""
        return {"planes": self.planes, "axis": np.array([float(self.axis)])}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array]) -> SlabArrangement:
        """The inverse of ``pack``."""
        return cls(int(floats(arrays, "axis", (1,))[0]), floats(arrays, "planes", (None,)))


@dataclass(frozen=True)
class SlabSide(Side):
    """The part of a side that lies in a slab."""

    name: str
    domain: Domain = field(repr=False)
    whole: Side
    holds: Callable[[Array], Array] = field(repr=False)
    share: float

    exact = False
    has_rule = False

    @property
    def extent(self) -> int:
        return self.whole.extent

    @property
    def columns(self) -> int:
        return self.whole.columns

    @property
    def measure(self) -> float:
        return self.share * self.whole.measure

    def contains(self, points: Array) -> Array:
        return np.asarray(self.whole.contains(points) & self.holds(points))

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        parts, have, tried = [np.empty((0, carried + self.dim))], 0, 0
        while have < count and tried < TRIES:
            points = self.whole.draw(int(count / self.share) + 1, stream, carried)
            parts.append(points[self.holds(points[:, carried:])])
            have, tried = have + len(parts[-1]), tried + len(points)
        return np.concatenate(parts)[:count]

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        raise NotImplementedError("a part of a side has no Gauss rule")

    def normals(self, points: Array) -> Array:
        return self.whole.normals(points)

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        points = self.whole.within(bounds, count, rng)
        return points[self.holds(points)]


@dataclass(frozen=True)
class SlabFace(Side):
    """The part in the domain of a plane between two slabs; outward : the sign of its normal along the axis."""

    name: str
    domain: Domain = field(repr=False)
    axis: int
    value: float
    outward: int

    exact = False
    has_rule = False

    @property
    def extent(self) -> int:
        return self.dim - 1

    @property
    def columns(self) -> int:
        return self.dim - 1

    @cached_property
    def measure(self) -> float:
        unit = np.random.default_rng(0).random((SURFACE_POOL, self.columns))
        lengths = np.delete(np.ptp(self.domain.bounds, axis=1), self.axis)
        return float(np.prod(lengths) * self._inside(self._embedded(unit)).mean())

    def _embedded(self, unit: Array) -> Array:
        low, high = np.delete(self.domain.bounds, self.axis, axis=0).T
        return np.insert(low + (high - low) * unit, self.axis, self.value, axis=1)

    def _inside(self, points: Array) -> Array:
        return np.asarray(self.domain.level(points) < 0)

    def contains(self, points: Array) -> Array:
        return np.asarray((points[:, self.axis] == self.value) & self._inside(points))

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        def trial(unit: Array) -> tuple[Array, Array]:
            points = self._embedded(unit[:, carried:])
            return np.concatenate([unit[:, :carried], points], axis=1), self._inside(points)

        return rejected(count, stream, trial, "a face between slabs")

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        raise NotImplementedError("a face between slabs has no Gauss rule")

    def normals(self, points: Array) -> Array:
        return np.broadcast_to(self.outward * np.eye(self.dim)[self.axis], points.shape)

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        points = self.sample(count, rng=rng)
        box = np.asarray(bounds)
        return points[((points >= box[:, 0]) & (points <= box[:, 1])).all(axis=1)]


@dataclass(frozen=True, eq=False)
class Slab:
    """One slab of a domain as a set of points; terms : the conditions on its part of the boundary, then one for each
    face."""

    domain: Domain
    arrangement: SlabArrangement
    number: int
    terms: tuple[Term, ...]
    faces: tuple[int, ...]
    """The number of the plane of each term, -1 on the boundary."""

    @cached_property
    def meets_obliquely(self) -> bool:
        """Whether a side of the domain ends at a face at another than a right angle."""
        for term in self.terms:
            side = term.region
            if isinstance(side, SlabSide):
                normals = side.normals(side.sample(SURFACE_POOL // 16, rng=1))
                if np.abs(normals[:, self.arrangement.axis]).max() > COMPUTED:
                    return True
        return False

    def contains(self, points: Array) -> Array:
        return np.asarray(self.domain.contains(points) & (self.arrangement.locate(points) == self.number))

    def sample(self, count: int, *, rng: Rng = None) -> Array:
        """Points (count, n)."""
        points = self.domain.within(self.bounds, count, rng)
        return points[self.arrangement.locate(points) == self.number]

    @property
    def bounds(self) -> Array:
        """The box (n, 2) in which it lies."""
        bounds = np.array(self.domain.bounds, dtype=float)
        axis, planes = self.arrangement.axis, self.arrangement.planes
        ends = np.concatenate([bounds[axis, :1], planes, bounds[axis, 1:]])
        bounds[axis] = ends[self.number : self.number + 2]
        return bounds

    @property
    def tree(self) -> Tree:
        """The solids that reach into it."""
        low, high = self.bounds[self.arrangement.axis]
        leaves = (leaf for leaf in tree_leaves(self.domain.tree))
        ends = [(leaf, leaf.solid.bounds[self.arrangement.axis]) for leaf in leaves]
        return Branch("union", tuple(Leaf(leaf.solid) for leaf, (a, b) in ends if a < high and b > low))


def slabs_of(domain: Domain, arrangement: SlabArrangement, terms: Sequence[Term], continuity: Term) -> list[Slab]:
    """All slabs of a domain with conditions on its boundary; continuity : the term of the conditions on faces."""
    slabs = []
    samples = {id(term): _side(term).sample(SURFACE_POOL, rng=1, method="sobol") for term in terms}
    for number in range(arrangement.count):

        def holds(points: Array, number: int = number) -> Array:
            return np.asarray(arrangement.locate(points) == number)

        own, faces = [], []
        for term in terms:
            share = float(holds(samples[id(term)]).mean())
            if share > 0:
                side = _side(term)
                part = side if share == 1 else SlabSide(side.name, domain, side, holds, share)
                own.append(replace(term, region=part))
                faces.append(-1)
        for plane, outward in ((number - 1, -1), (number, 1)):
            if 0 <= plane < len(arrangement.planes):
                face = SlabFace("face", domain, arrangement.axis, float(arrangement.planes[plane]), outward)
                own.append(replace(continuity, region=face))
                faces.append(plane)
        slabs.append(Slab(domain, arrangement, number, tuple(own), tuple(faces)))
    return slabs


def _side(term: Term) -> Side:
    assert isinstance(term.region, Side)
    return term.region


def plane_across(level: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> tuple[int, float] | None:
    """The axis and the coordinate of a plane across an axis on which a formula vanishes, None for other surfaces.

    >>> x, y, z = sympy.symbols("x y z", real=True)
    >>> plane_across(2 * z - 1, (x, y, z)), plane_across(x + y, (x, y, z))
    ((2, 0.5), None)
    """
    free = [axis for axis, symbol in enumerate(symbols) if symbol in level.free_symbols]
    if len(free) != 1 or not level.is_polynomial(symbols[free[0]]):
        return None
    polynomial = sympy.Poly(level, symbols[free[0]])
    if polynomial.degree() != 1:
        return None
    slope, rest = polynomial.all_coeffs()
    return free[0], float(-rest / slope)
