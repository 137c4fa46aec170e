"""Mirror symmetry: straight sides whose conditions allow the continuation of the solution by reflection.

On x = c the condition ∂_x u = 0 continues u evenly to the other side, and u = 0 continues it oddly. In elasticity and
flow a vanishing normal displacement with vanishing shear stress is the symmetric continuation, and a vanishing
tangential one with vanishing normal stress the antisymmetric one. The equation holds across the side then, which is no
boundary at all: the domain is unfolded, its features are averaged over the reflections, and what looked like a corner,
where such a side meets another one, is none. Quarters of symmetric parts, as engineers state them, have no singular
points left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import qr

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.region import composite_gauss
from rannpde.domains.shapes.base import Domain
from rannpde.errors import FileError
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.analytic import LaurentFamily, PolynomialFamily
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.geometry import JOINED_ENDS, PlaneBoundary, assembled_boundary
from rannpde.pde.trefftz.multipoles import MultipoleFamily
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.potentials import PotentialModel, unpack_trefftz_family
from rannpde.pde.trefftz.rows import condition_coefficients
from rannpde.pde.trefftz.segments import AxisImage, BoundarySegment
from rannpde.rounding import COMPUTED, ROUNDED, difference_step

CENTRED = (PolynomialFamily, LaurentFamily, MultipoleFamily)
"""Families of functions about one centre."""
MIRROR_SAMPLES = composite_gauss(np.array([0, 1]), 3)[0]
"""Parameters of the points of a side at which the coefficients of its conditions are compared."""


@dataclass(frozen=True, eq=False)
class Mirror:
    """A line x_axis = position at which fields are continued with signs (fields,): 1 evenly, -1 oddly."""

    axis: int
    position: float
    signs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MirrorGroup:
    """One mirror, or two that are orthogonal, with all images that they make."""

    mirrors: tuple[Mirror, ...]

    @property
    def images(self) -> list[tuple[AxisImage, Array]]:
        """Every image of the plane, the plane itself first, with the signs (fields,) of the fields there."""
        images = []
        for chosen in product((False, True), repeat=len(self.mirrors)):
            used = [mirror for mirror, yes in zip(self.mirrors, chosen, strict=True) if yes]
            flips = tuple((mirror.axis, mirror.position) for mirror in used)
            signs = np.prod([mirror.signs for mirror in used], axis=0) if used else np.ones(len(self.mirrors[0].signs))
            images.append((AxisImage(flips), np.asarray(signs, dtype=float)))
        return images


@dataclass(frozen=True, eq=False)
class SymmetricFamily(FeatureFamily):
    """The means of the features of another family over all images of a group, those that are independent.

    chosen (N,) : their columns in the other family. Of families about one centre, most means vanish or repeat each
    other where the mirrors pass through it. Poles and sources outside of the domain are not repeated by their images.
    """

    kind: ClassVar[str] = "symmetric"
    base: FeatureFamily
    group: MirrorGroup
    chosen: Array

    @classmethod
    def of(cls, base: FeatureFamily, group: MirrorGroup, points: Array) -> SymmetricFamily:
        """The means that are independent on points (M, 2), up to rounding of the features themselves."""
        still = (0, 0)
        sizes = np.sqrt(np.mean(np.square(base.values(points, still)), axis=(0, 1)))
        whole = cls(base, group, np.arange(base.columns))
        table = whole.values(points, still).reshape(-1, base.columns) / np.where(sizes > 0, sizes, np.inf)
        rounding = base.columns * np.finfo(float).eps * np.sqrt(len(table))
        if not isinstance(getattr(base, "base", base), CENTRED):
            return cls(base, group, np.flatnonzero(np.linalg.norm(table, axis=0) > rounding))
        triangle, order = qr(table, mode="r", pivoting=True, check_finite=False)
        rank = int(np.count_nonzero(np.abs(np.diag(triangle)) > rounding))
        return cls(base, group, np.sort(order[:rank]))

    @property
    def label(self) -> str:
        return self.base.label

    @property
    def columns(self) -> int:
        return len(self.chosen)

    def multipoles(self, weights: Array) -> tuple[Array, Array] | None:
        return self.base.multipoles(self.spread(weights))

    def values(self, points: Array, index: MultiIndex) -> Array:
        total: Any = 0.0
        images = self.group.images
        for image, signs in images:
            own = self.base.values(image.points(points), index)[:, :, self.chosen]
            total = total + (image.sign(index) * signs)[:, None] * own
        return np.asarray(total / len(images))

    def spread(self, weights: Array) -> Array:
        """Output weights (N,) as those of all features of the other family, 0 for those that were not chosen."""
        whole = np.zeros(self.base.columns)
        whole[self.chosen] = weights
        return whole

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header, arrays = self.base.pack()
        mirrors = [[one.axis, one.position, list(one.signs)] for one in self.group.mirrors]
        table = {"kind": self.kind, "base": header, "mirrors": mirrors, "chosen": [int(k) for k in self.chosen]}
        return table, arrays


def unpack_symmetric(header: Mapping[str, Any], arrays: Mapping[str, Array], form: CanonicalForm) -> FeatureFamily:
    """The family that a file holds, symmetric or not."""
    if header["kind"] != SymmetricFamily.kind:
        return unpack_trefftz_family(header, arrays, form)
    mirrors = tuple(
        Mirror(int(axis), float(position), tuple(int(s) for s in signs)) for axis, position, signs in header["mirrors"]
    )
    base = unpack_trefftz_family(header["base"], arrays, form)
    chosen = np.array(header["chosen"], dtype=int)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < base.columns:
        raise FileError("the symmetric features of the file are none of its features")
    return SymmetricFamily(base, MirrorGroup(mirrors), chosen)


@dataclass(frozen=True, eq=False)
class UnfoldedDomain:
    """A domain and its images: where features may have no poles."""

    domain: Domain
    group: MirrorGroup

    @property
    def measure(self) -> float:
        return float(self.domain.measure) * len(self.group.images)

    def contains(self, points: Array) -> Array:
        """Whether points (M, 2) lie in the domain or in one of its images: bool (M,)."""
        inside = [np.asarray(self.domain.contains(image.points(points))) for image, _ in self.group.images]
        return np.asarray(np.logical_or.reduce(inside))


@dataclass(frozen=True, eq=False)
class Unfolding:
    """The unfolded domain with its boundary."""

    group: MirrorGroup
    domain: UnfoldedDomain
    boundary: PlaneBoundary


def unfolded(
    domain: Domain,
    boundary: PlaneBoundary,
    form: CanonicalForm,
    fields: tuple[str, ...],
    words: Vocabulary,
    model: PotentialModel | None,
) -> Unfolding | None:
    """The domain unfolded at those of its sides that are mirrors, where that removes singular points; None else."""
    diagonal = bool(np.abs(form.matrix - np.diag(np.diag(form.matrix))).max() <= 1e-14 * np.abs(form.matrix).max())
    if form.moves or not diagonal:
        return None
    best: tuple[int, Unfolding] | None = None
    mirrors = _mirrors(boundary, fields, words, model)
    for group in _groups(mirrors):
        unfolding = _unfolding(domain, boundary, form, group)
        if unfolding is None:
            continue
        removed = len(boundary.corners) * len(group.images) - len(unfolding.boundary.corners)
        if best is None or removed > best[0]:
            best = removed, unfolding
    return best[1] if best is not None and best[0] > 0 else None


def _groups(mirrors: Sequence[Mirror]) -> list[MirrorGroup]:
    pairs = [(a, b) for a in mirrors for b in mirrors if a.axis < b.axis]
    return [MirrorGroup((one,)) for one in mirrors] + [MirrorGroup(pair) for pair in pairs]


def _mirrors(
    boundary: PlaneBoundary, fields: tuple[str, ...], words: Vocabulary, model: PotentialModel | None
) -> list[Mirror]:
    """Lines along an axis that bound the domain, on all of whose sides the conditions are those of one continuation.

    Only those with an end where the kind of condition changes: elsewhere nothing is gained.
    """
    mirrors = []
    outline = np.concatenate([segment.points(np.linspace(0, 1, 33)) for segment in boundary.segments])
    slack = JOINED_ENDS * float(np.ptp(outline, axis=0).max())
    for axis in (0, 1):
        for position in (float(outline[:, axis].min()), float(outline[:, axis].max())):
            own = [
                p
                for p in boundary.segments
                if np.abs(p.points(np.linspace(0, 1, 5))[:, axis] - position).max() <= slack
            ]
            if not own or not any(boundary.kind_changes(corner) for segment in own for corner in segment.corners):
                continue
            for parity in (1, -1):
                mirror = Mirror(axis, position, _signs(axis, parity, fields, model))
                continued = all(
                    _continues(segment.terms, segment.points(MIRROR_SAMPLES), mirror, words) for segment in own
                )
                if continued and _smooth_ends(boundary, own, mirror, words):
                    mirrors.append(mirror)
    return mirrors


def _smooth_ends(boundary: PlaneBoundary, own: Sequence[BoundarySegment], mirror: Mirror, words: Vocabulary) -> bool:
    """Whether the conditions of sides that meet the mirror at a right angle continue smoothly to their images.

    On the image, the coefficient of a derivative has the sign of that derivative under reflection, and the data are the
    same, or all of these change their signs. Each must be smooth as a function of the distance along the side then:
    u = x beside ∂_x u = 0 is not, since it becomes |x|.
    """
    corners = {corner for segment in own for corner in segment.corners if corner >= 0}
    for segment in boundary.segments:
        for end, corner in enumerate(segment.corners):
            if segment in own or corner not in corners:
                continue
            units = difference_step() * np.arange(3)
            points = segment.points(units if end == 0 else 1 - units)
            for term in segment.terms:
                jets, table = condition_coefficients([term], points, words)
                signs = np.array([1 if not _odd(jet, mirror, words) else -1 for jet in jets] + [1])
                rows = table[:, 0]
                if not any(_continues_along(sign * signs, rows) for sign in (1, -1)):
                    return False
    return True


def _continues_along(signs: Array, rows: Array) -> bool:
    """Whether functions with the values (3, K) at the distances 0, h, 2h continue smoothly with signs (K,).

    The slope of those that continue evenly vanishes at the end, up to O(h²), and so do those that continue oddly.
    """
    size = np.abs(rows).max()
    slopes = np.abs(4 * rows[1] - rows[2] - 3 * rows[0])[signs > 0].max(initial=0.0)  # 2h times the slope at the end
    ends = np.abs(rows[0, signs < 0]).max(initial=0.0)
    return bool(slopes <= COMPUTED * size and ends <= ROUNDED * size)


def _signs(axis: int, parity: int, fields: tuple[str, ...], model: PotentialModel | None) -> tuple[int, ...]:
    """How every field is continued: the component along the axis of a vector changes its sign."""
    signs = [parity] * len(fields)
    if model is not None and model.system != "plate":
        signs[model.fields[axis]] *= -1
    return tuple(signs)


def _continues(terms: Sequence[Term], points: Array, mirror: Mirror, words: Vocabulary) -> bool:
    """Whether homogeneous conditions hold exactly for the fields that are continued with these signs.

    A derivative of a field vanishes on the mirror where it is odd. All that the conditions contain must vanish, and
    they must say that as many of the odd values and normal derivatives vanish as there are conditions.
    """
    jets, table = condition_coefficients(terms, points, words)
    if np.any(table[:, :, -1] != 0):
        return False
    table = table[:, :, :-1]
    rounding = ROUNDED * np.abs(table).max()
    even = [k for k, jet in enumerate(jets) if not _odd(jet, mirror, words)]
    across = [k for k, jet in enumerate(jets) if _odd(jet, mirror, words) and not jet.index[1 - mirror.axis]]
    if np.abs(table[:, :, even]).max(initial=0.0) > rounding or len(across) < len(terms):
        return False
    return all(np.linalg.matrix_rank(one[:, across], tol=rounding) == len(terms) for one in table)


def _odd(jet: Jet, mirror: Mirror, words: Vocabulary) -> bool:
    """Whether a derivative of a field changes its sign under reflection."""
    return mirror.signs[words.fields.index(jet.field)] * (-1) ** jet.index[mirror.axis] < 0


def _unfolding(domain: Domain, boundary: PlaneBoundary, form: CanonicalForm, group: MirrorGroup) -> Unfolding | None:
    """The segments that are no mirrors with all their images, joined to the boundary of the unfolded domain."""
    slack = JOINED_ENDS * boundary.size
    left = [segment for segment in boundary.segments if not any(_lies_on(segment, one, slack) for one in group.mirrors)]
    segments: list[BoundarySegment] = []
    for image, _ in group.images:
        segments += [replace(segment, image=image if image.flips else None) for segment in left]
    whole = UnfoldedDomain(domain, group)
    joined = assembled_boundary(whole, segments, form)
    return None if isinstance(joined, str) else Unfolding(group, whole, joined)


def _lies_on(segment: BoundarySegment, mirror: Mirror, slack: float) -> bool:
    return bool(np.abs(segment.points(np.linspace(0, 1, 5))[:, mirror.axis] - mirror.position).max() <= slack)
