"""Plates on shapes, c Δ²u + t Δu + k u = λ m u, with edges that are clamped, simply supported or guided.

With the energy ∫ c (Δu)² each edge has one of u = 0 and ∂ₙΔu = 0, and one of ∂ₙu = 0 and Δu = 0. On a straight edge
where u = 0, any moment is a multiple of Δu. The moment of a free edge contains Poisson's ratio, which this energy does
not.
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
    """The problem as a plate; an InputError, with the reason, where it is none."""
    problem = pencil.problem
    pencil.require_real_derivatives()
    points = problem.domain.sample(PENCIL_SAMPLES, rng=0)
    known = problem.vocabulary.at(points)
    coefficients = {
        jet.index: np.real(powers[0])
        for jet, powers in pencil.equations[0].at(known, len(points)).items()
        if 0 in powers
    }
    lead = coefficients.get((4, 0), np.zeros(1))
    size = float(np.abs(lead).max())
    tension = coefficients.get((2, 0), np.zeros(1))
    expected = {index: factor * lead[0] for index, factor in BIHARMONIC.items()}
    expected |= {(2, 0): tension[0], (0, 2): tension[0]} if tension.any() else {}
    fits = size > 0 and set(coefficients) - {(0, 0)} == set(expected)
    fits = fits and all(np.abs(coefficients[k] - value).max() <= COMPUTED * max(abs(value), size * COMPUTED)
                        for k, value in expected.items())  # fmt: skip
    if not fits:
        raise InputError("no eigenvalues of this problem: of fourth order, on a shape, there are constants times "
                         "laplace(laplace(u)) and laplace(u), and multiples of u; boxes have no limit")  # fmt: skip
    sign = float(np.sign(lead[0]))
    kinds = tuple(_kind(problem, condition) for condition in pencil.conditions)
    with_values = {condition.term.region for condition, kind in zip(pencil.conditions, kinds, strict=True) if kind == 0}
    for condition, kind in zip(pencil.conditions, kinds, strict=True):
        if kind == -1 and not any(_same(condition.term.region, other) for other in with_values):
            raise InputError(f"condition {condition.name!r} is the moment of a free edge, or of a curved one; on "
                             "shapes edges are clamped, supported by laplace(u) = 0, or guided")  # fmt: skip
    return ShapePlate(problem, pencil, size, sign * float(tension[0]), sign, tuple(2 if k == -1 else k for k in kinds))


def _same(one: object, other: object) -> bool:
    return one is other or str(one) == str(other)


def _kind(problem: Problem, condition: LinearTerm) -> int:
    """Which derivative along the normal a condition prescribes, 0 to 3; -1 for a moment that is no multiple of Δu, on
    a straight edge."""
    region = condition.term.region
    refusal = InputError(f"condition {condition.name!r} is none of u = 0, dn(u) = 0, laplace(u) = 0 and "
                         "dn(laplace(u)) = 0, which edges of plates on shapes may have")  # fmt: skip
    if condition.term.kind != "boundary" or not isinstance(region, Side) or condition.degree:
        raise refusal
    points = region.sample(PENCIL_SAMPLES, rng=0)
    normals = region.normals(points)
    known = condition.term.known(points, problem.vocabulary)
    coefficients = {jet.index: np.real(powers[0]) for jet, powers in condition.at(known, len(points)).items()}
    orders = {sum(index) for index in coefficients}
    if len(orders) != 1 or (order := orders.pop()) > 3:
        raise refusal
    nx, ny = normals.T
    plain = np.ones(len(points))
    normal_derivatives: tuple[dict[MultiIndex, Array], ...] = (
        {(0, 0): plain}, {(1, 0): nx, (0, 1): ny}, {(2, 0): plain, (0, 2): plain},
        {(3, 0): nx, (1, 2): nx, (2, 1): ny, (0, 3): ny},
    )  # fmt: skip
    if _proportional(coefficients, normal_derivatives[order]):
        return order
    straight = np.ptp(normals, axis=0).max() <= COMPUTED
    if order == 2 and straight:
        xx, xy, yy = (coefficients.get(index, np.zeros(1)) for index in ((2, 0), (1, 1), (0, 2)))
        twisted = 2 * (yy - xx) * nx * ny + xy * (nx**2 - ny**2)
        bent = xx * nx**2 + xy * nx * ny + yy * ny**2
        if np.abs(twisted).max() <= COMPUTED * np.abs(bent).min():
            return -1
    raise refusal


def _proportional(coefficients: dict[MultiIndex, Array], expected: dict[MultiIndex, Array]) -> bool:
    """Whether coefficients (M,) are, at each point, a multiple of the expected ones."""
    indices = sorted(set(coefficients) | set(expected))
    left, right = (
        np.stack([np.broadcast_to(table.get(index, 0.0), (PENCIL_SAMPLES,)) for index in indices], axis=1)
        for table in (coefficients, expected)
    )
    sizes = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return bool((np.abs(np.abs((left * right).sum(axis=1)) - sizes) <= COMPUTED * sizes).all() and (sizes > 0).all())
