"""Exponents of corners: the powers of the distance that satisfy homogeneous conditions on both sides.

Between two rays that open by ω, harmonic functions r^λ (A e^{iλθ} + B e^{-iλθ}) satisfy one condition on each ray for
some λ only, λ = kπ/ω for values (or slopes) on both and λ = (k - 1/2) π/ω for one of each. In elasticity and flow the
potentials of Goursat's formula have four coefficients, and the conditions are a system of four equations, whose
determinant vanishes at the exponents of Williams (1952) and of Moffatt's eddies (1964). It is an analytic function of
λ, of which Newton's iteration finds the zeros.

With z and its conjugate as independent variables, φ = A z^λ and its conjugate B z̄^λ are independent too, and every
field is a sum of c z^a z̄^b, in which c is a polynomial of λ, a and b are linear: derivatives are exact, whatever the
conditions are. On a ray of angle θ every entry of the system is therefore a polynomial of λ times e^{±iλθ}, which is
expanded once and then evaluated at all iterates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import Polynomial

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.tolerance import SAME_SOLUTION
from rannpde.pde.trefftz.potentials import PotentialModel
from rannpde.rounding import ROUNDED

NEWTON_STEPS = 16
"""Steps of Newton's iteration at most."""
SAME_EXPONENT = 1e-8
"""Distance at which two exponents are one; those so near to whole numbers belong to polynomials."""

PowerSum = list[tuple[Polynomial, Polynomial, Polynomial]]
"""Σ c z^a z̄^b as (c, a, b), each a polynomial of the exponent λ."""


@dataclass(frozen=True)
class RayCondition:
    """Σ coefficient ∂^index field = 0 on the ray of an angle: (coefficient, field, index), of which all have one order.

    fields : 0 for the only one of a scalar equation; 0, 1, 2 for u, v, p of systems
    """

    angle: float
    jets: tuple[tuple[float, int, MultiIndex], ...]


def without_rounding(numbers: Array) -> Array:
    """Numbers of the size of one, of which those that differ by rounding become the same."""
    return np.asarray(np.round(numbers / ROUNDED) * ROUNDED + 0.0)


def turned_conditions(
    conditions: Sequence[RayCondition], middle: float, model: PotentialModel | None
) -> tuple[RayCondition, ...]:
    """The conditions in the frame whose first axis is the bisector, the same for corners that differ by a rotation.

    Those of one ray are reduced to echelon form, so that they do not depend on how they were combined.

    >>> one, other = (RayCondition(0.5, ((2.0, 0, (1, 0)),)), RayCondition(0.5, ((1.0, 0, (1, 0)), (1.0, 0, (0, 1)))))
    >>> turned_conditions([one, other], 0.0, None)[1].jets
    ((1.0, 0, (1, 0)),)
    """
    cosine, sine = float(np.cos(middle)), float(np.sin(middle))
    turned = []
    for angle in dict.fromkeys(condition.angle for condition in conditions):
        rows: list[dict[tuple[int, MultiIndex], float]] = []
        for condition in conditions:
            if condition.angle == angle:
                row: dict[tuple[int, MultiIndex], float] = {}
                for coefficient, field, (a, b) in condition.jets:
                    shares = {field: 1.0}
                    if model is not None and model.system != "plate" and field < 2:  # u = c u' - s v', v = s u' + c v'
                        shares = {0: cosine, 1: -sine} if field == 0 else {0: sine, 1: cosine}
                    slopes = np.ones(1)  # ∂₁ = c ∂₁' - s ∂₂' and ∂₂ = s ∂₁' + c ∂₂', by powers of ∂₂'
                    for factor in ([cosine, -sine],) * a + ([sine, cosine],) * b:
                        slopes = np.convolve(slopes, factor)
                    for own, share in shares.items():
                        for order, slope in enumerate(slopes.tolist()):
                            key = own, (a + b - order, order)
                            row[key] = row.get(key, 0.0) + coefficient * share * slope
                rows.append(row)
        keys = sorted({key for row in rows for key in row})
        table = _echelon(np.array([[row.get(key, 0.0) for key in keys] for row in rows]))
        ray = float(without_rounding(np.remainder(angle - middle + np.pi, 2 * np.pi) - np.pi))
        for values in table.tolist():
            jets = tuple((value, *key) for value, key in zip(values, keys, strict=True) if value)
            turned.append(RayCondition(ray, jets))
    return tuple(turned)


def _echelon(table: Array) -> Array:
    """The reduced echelon form of rows, rounded; rows that others contain vanish."""
    table, first = table / np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300), 0
    for column in range(table.shape[1]):
        if first == len(table):
            break
        pivot = first + int(np.argmax(np.abs(table[first:, column])))
        if abs(table[pivot, column]) <= SAME_EXPONENT:
            continue
        table[[first, pivot]] = table[[pivot, first]]
        table[first] /= table[first, column]
        others = np.arange(len(table)) != first
        table[others] -= table[others, column, None] * table[first]
        first += 1
    return without_rounding(table)


@lru_cache(maxsize=256)
def corner_exponents(
    conditions: tuple[RayCondition, ...], middle: float, opening: float, model: PotentialModel | None, top: float
) -> Array:
    """The exponents λ (K,), 0 < Re λ ≤ top, that are no whole numbers, by growing real part; conjugate pairs together.

    middle : the angle of the bisector; opening : ω. Whole numbers are left out: polynomials have them.

    >>> sides = tuple(RayCondition(angle, ((1.0, 0, (0, 0)),)) for angle in (0.0, 1.5 * np.pi))
    >>> np.round(3 * corner_exponents(sides, 0.75 * np.pi, 1.5 * np.pi, None, 3.0), 9).real.tolist()
    [2.0, 4.0, 8.0]
    """
    system = _corner_system(conditions, middle, model)
    gap = np.pi / opening
    # both families of zeros of sin λω = ±cλ have the distance 2π/ω, and imaginary parts of about log(2c Re λ)/ω
    real = np.arange(gap / 8, top + gap, gap / 4)
    height = np.log(4 * (1 + top)) / opening
    imaginary = np.arange(0.0, height + gap / 4, gap / 4)
    roots = (real[:, None] + 1j * (imaginary + SAME_SOLUTION * gap)).ravel()
    step = np.full(len(roots), np.inf, dtype=complex)
    width = np.sqrt(SAME_EXPONENT)
    for number in range(NEWTON_STEPS):
        if number and number % 4 == 0:  # those that go the same way from now on
            here = (np.abs(roots.real - 0.5 * top) < 0.5 * top + gap) & (np.abs(roots.imag) < height + gap)
            roots = np.unique(np.round(roots[here] / width)) * width
        matrices = system.at(roots + np.array([[0.0], [width], [-width]]))
        sizes = np.abs(matrices[0]).max(axis=2, keepdims=True)
        sizes[sizes < SAME_EXPONENT] = 1.0  # derivatives of λ = 0
        here, above, below = np.linalg.det(matrices / sizes)
        with np.errstate(all="ignore"):
            step = -2 * width * here / (above - below)
            step = step * np.minimum(1.0, 0.5 * gap / np.abs(step))
        step[~np.isfinite(step)] = 0.0
        roots = roots + step
        if number % 4 == 3 and (np.abs(step) < SAME_EXPONENT).all():
            break
    settled = (np.abs(step) < SAME_EXPONENT) & (roots.real > SAME_EXPONENT) & (roots.real <= top)
    roots = roots[settled & (roots.imag > -SAME_EXPONENT)]
    roots = np.where(np.abs(roots.imag) < SAME_EXPONENT, roots.real, roots)
    roots = roots[np.abs(roots - np.round(roots.real)) > np.sqrt(SAME_EXPONENT)]  # double zeros are known less well
    chosen: list[complex] = []
    for one in roots[np.argsort(roots.real)]:
        if all(abs(one - other) > 10 * SAME_EXPONENT for other in chosen):
            chosen += [one, one.conjugate()] if one.imag else [one]
    return np.array(chosen, dtype=complex)


class _CornerSystem:
    """The conditions on the coefficients A, B, … of powers, turned to the bisector, as functions of the exponent λ.

    coefficients (rows, columns, n) : polynomials of λ by rising powers; phases (rows, columns) : each is multiplied by
    exp(i phase λ)
    """

    def __init__(self, conditions: Sequence[RayCondition], middle: float, model: PotentialModel | None) -> None:
        columns = _scalar() if model is None else _system(model)
        polynomials = [[_on_ray(condition, fields) for fields, _ in columns] for condition in conditions]
        length = max(len(one) for row in polynomials for one in row)
        self.coefficients = np.array([[np.pad(one, (0, length - len(one))) for one in row] for row in polynomials])
        self.phases = np.array([[turn * (own.angle - middle) for _, turn in columns] for own in conditions])

    def at(self, exponents: Array) -> Array:
        """The matrices (…, rows, columns) at exponents (…)."""
        power = exponents[..., None, None]
        values = np.zeros((*exponents.shape, *self.phases.shape), dtype=complex)
        for coefficient in np.moveaxis(self.coefficients, 2, 0)[::-1]:
            values = values * power + coefficient
        return np.asarray(values * np.exp(1j * self.phases * power))


@lru_cache(maxsize=256)
def _corner_system(conditions: tuple[RayCondition, ...], middle: float, model: PotentialModel | None) -> _CornerSystem:
    """The system of a corner, which is the same however many of its exponents are wanted."""
    return _CornerSystem(conditions, middle, model)


def _on_ray(condition: RayCondition, fields: list[PowerSum]) -> Array:
    """A condition on a ray as a polynomial of λ, without the factor exp(±iλθ) that all its terms share."""
    total = Polynomial([0.0])
    for coefficient, field, index in condition.jets:
        for c, a, b in _derived(fields[field], index):
            total = total + coefficient * np.exp(1j * (a - b).coef[0] * condition.angle) * c
    return np.asarray(total.coef, dtype=complex)


def _scalar() -> list[tuple[list[PowerSum], int]]:
    """z^λ and its conjugate."""
    one, zero, power = (Polynomial(own) for own in ([1.0], [0.0], [0.0, 1.0]))
    return [([[(one, power, zero)]], 1), ([[(one, zero, power)]], -1)]


def _system(model: PotentialModel) -> list[tuple[list[PowerSum], int]]:
    """u, v, p, or the deflection of a plate, for φ = z^λ, its conjugate, ψ = z^λ (z^{λ+1}) and its conjugate."""
    one, zero, power = (Polynomial(own) for own in ([1.0], [0.0], [0.0, 1.0]))
    factor = model.alpha - 1
    if model.system == "plate":
        sums = [(one, power, one), (one, one, power), (one, power + 1, zero), (one, zero, power + 1)]
        return [([[own]], turn) for own, turn in zip(sums, (1, -1, 1, -1), strict=True)]
    # u + iv, u - iv and p
    both: list[tuple[PowerSum, PowerSum, PowerSum]] = [
        ([(factor * one, power, zero)], [(-power, power - 1, one)], [(model.pressure * power, power - 1, zero)]),
        ([(-power, one, power - 1)], [(factor * one, zero, power)], [(model.pressure * power, zero, power - 1)]),
        ([], [(-one, power, zero)], []),
        ([(-one, zero, power)], [], []),
    ]
    solutions: list[tuple[list[PowerSum], int]] = []
    for (plus, minus, pressure), turn in zip(both, (1, -1, 1, -1), strict=True):
        u: PowerSum = [(c / 2, a, b) for c, a, b in (*plus, *minus)]
        v: PowerSum = [(c / 2j, a, b) for c, a, b in plus] + [(-c / 2j, a, b) for c, a, b in minus]
        solutions.append(([u, v, pressure], turn))
    return solutions


def _derived(terms: PowerSum, index: MultiIndex) -> PowerSum:
    """∂₁ = ∂ + ∂̄ and ∂₂ = i (∂ - ∂̄), as often as the index says."""
    for factor, times in ((1.0, index[0]), (1j, index[1])):
        sign = 1.0 if factor == 1.0 else -1.0
        for _ in range(times):
            terms = [
                one for c, a, b in terms for one in ((factor * c * a, a - 1, b), (sign * factor * c * b, a, b - 1))
            ]
    return terms
