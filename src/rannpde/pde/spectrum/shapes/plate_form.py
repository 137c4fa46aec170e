"""Plates on shapes, c Δ²u + t Δu + k u = λ m u, with edges that are held or guided, clamped or supported.

With the energy ∫ c (Δu)² each edge has one of u = 0 and ∂ₙΔu = 0, and one of ∂ₙu = 0 and Δu = 0. On a straight edge
that is held, any moment is a multiple of Δu. A free edge has a moment with Poisson's ratio, which this energy does not
see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.boundary.sides import Side
from rannpde.errors import InputError
from rannpde.pde.problem.problem import Problem
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, LinearTerm, Pencil
from rannpde.pde.weak.plate_form import BIHARMONIC
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class ShapePlate:
    """A plate on a shape; stiffness c > 0 and tension t, after multiplication of the equation with ``sign``.

    kinds : for each condition, the order of its derivative along the normal, 0 to 3
    """

    problem: Problem
    pencil: Pencil
    stiffness: float
    tension: float
    sign: float
    kinds: tuple[int, ...]

    @property
    def equation(self) -> LinearTerm:
        return self.pencil.equations[0]


def is_plate(pencil: Pencil) -> bool:
    """Whether a problem has one equation of fourth order in the plane."""
    return len(pencil.fields) == 1 and pencil.problem.domain.dim == 2 and pencil.order(pencil.fields[0]) == 4


def shape_plate(pencil: Pencil) -> ShapePlate:
    """The plate that a problem is; an InputError, with the reason, where it is none."""
    problem = pencil.problem
    pencil.require_real_derivatives()
    points = problem.domain.sample(PENCIL_SAMPLES, rng=0)
    known = dict(zip(problem.vocabulary.symbols, points.T, strict=True))
    coefficients = {
        jet.index: np.real(own[0]) for jet, own in pencil.equations[0].at(known, len(points)).items() if 0 in own
    }
    lead = coefficients.get((4, 0), np.zeros(1))
    size = float(np.abs(lead).max())
    tension = coefficients.get((2, 0), np.zeros(1))
    wanted = {index: factor * lead[0] for index, factor in BIHARMONIC.items()}
    wanted |= {(2, 0): tension[0], (0, 2): tension[0]} if tension.any() else {}
    fits = size > 0 and set(coefficients) - {(0, 0)} == set(wanted)
    fits = fits and all(np.abs(coefficients[k] - value).max() <= COMPUTED * max(abs(value), size * COMPUTED)
                        for k, value in wanted.items())  # fmt: skip
    if not fits:
        raise InputError("no eigenvalues of this problem: of fourth order, on a shape, there are constants times "
                         "laplace(laplace(u)) and laplace(u), and multiples of u; boxes have no limit")  # fmt: skip
    sign = float(np.sign(lead[0]))
    kinds = tuple(_kind(problem, one) for one in pencil.conditions)
    held = {one.term.region for one, kind in zip(pencil.conditions, kinds, strict=True) if kind == 0}
    for one, kind in zip(pencil.conditions, kinds, strict=True):
        if kind == -1 and not any(_same(one.term.region, other) for other in held):
            raise InputError(f"condition {one.name!r} is the moment of a free edge, or of a curved one; on shapes "
                             "edges are clamped, supported by laplace(u) = 0, or guided")  # fmt: skip
    return ShapePlate(problem, pencil, size, sign * float(tension[0]), sign, tuple(2 if k == -1 else k for k in kinds))


def _same(one: object, other: object) -> bool:
    return one is other or str(one) == str(other)


def _kind(problem: Problem, one: LinearTerm) -> int:
    """Which derivative along the normal a condition prescribes, 0 to 3; -1 for a moment that is no multiple of Δu, on
    a straight edge."""
    region = one.term.region
    refusal = InputError(f"condition {one.name!r} is none of u = 0, dn(u) = 0, laplace(u) = 0 and dn(laplace(u)) = 0, "
                         "which edges of plates on shapes may have")  # fmt: skip
    if one.term.kind != "boundary" or not isinstance(region, Side) or one.degree:
        raise refusal
    points = region.sample(PENCIL_SAMPLES, rng=0)
    normals = region.normals(points)
    known = one.term.known(points, problem.vocabulary)
    coefficients = {jet.index: np.real(own[0]) for jet, own in one.at(known, len(points)).items()}
    orders = {sum(index) for index in coefficients}
    if len(orders) != 1 or (order := orders.pop()) > 3:
        raise refusal
    nx, ny = normals.T
    plain = np.ones(len(points))
    every: tuple[dict[MultiIndex, Array], ...] = (
        {(0, 0): plain}, {(1, 0): nx, (0, 1): ny}, {(2, 0): plain, (0, 2): plain},
        {(3, 0): nx, (1, 2): nx, (2, 1): ny, (0, 3): ny},
    )  # fmt: skip
    if _proportional(coefficients, every[order]):
        return order
    straight = np.ptp(normals, axis=0).max() <= COMPUTED
    if order == 2 and straight:
        xx, xy, yy = (coefficients.get(index, np.zeros(1)) for index in ((2, 0), (1, 1), (0, 2)))
        twisted = 2 * (yy - xx) * nx * ny + xy * (nx**2 - ny**2)
        bent = xx * nx**2 + xy * nx * ny + yy * ny**2
        if np.abs(twisted).max() <= COMPUTED * np.abs(bent).min():
            return -1
    raise refusal


def _proportional(coefficients: dict[MultiIndex, Array], wanted: dict[MultiIndex, Array]) -> bool:
    """Whether coefficients (M,) are a multiple, at each point, of wanted ones."""
    indices = sorted(set(coefficients) | set(wanted))
    one = np.stack([np.broadcast_to(coefficients.get(index, 0.0), (PENCIL_SAMPLES,)) for index in indices], axis=1)
    other = np.stack([np.broadcast_to(wanted.get(index, 0.0), (PENCIL_SAMPLES,)) for index in indices], axis=1)
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return bool((np.abs(np.abs((one * other).sum(axis=1)) - sizes) <= COMPUTED * sizes).all() and (sizes > 0).all())
