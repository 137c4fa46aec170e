"""Reflection symmetry: boxes on which an evolution has an odd or even periodic extension.

Where u = 0 (and u_xx = 0, … for higher orders), u is extended beyond the wall as an odd function; where ∂_n u = 0, as
an even one. If the rates and the initial values, as formulas, change by the same signs when a coordinate is reflected
about either of its walls, the extension solves the equations on the whole space and is periodic with twice the length
of the box. It is as smooth as the data, and its Fourier modes are sines and cosines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array
from rannpde.domains.domain import Box
from rannpde.pde.problem.evolution import Evolution, Parity, wall_rows
from rannpde.pde.statement.expression import Jet
from rannpde.rounding import COMPUTED

SYMMETRY_POINTS = 40
"""Random points and states at which signs are compared; formulas that agree there, also outside the box, are equal."""
MAX_FREE_AXES = 6
"""Limit on the axes of fields without conditions, for which both parities are tried."""

Numbers = Mapping[sympy.Expr, sympy.Symbol]


def reflection_parities(evolution: Evolution, unknown: Numbers | None = None) -> dict[str, Parity] | None:
    """Return the parities of each field, or None where the problem has no reflection symmetry about its walls.

    unknown : a symbol for each unknown number; the symmetry must hold for all of their values
    """
    problem, space = evolution.problem, evolution.domain.space
    plain = isinstance(space, Box) and not problem.periodic and not problem.bounds and not evolution.constraints
    if not plain:
        return None
    stated = {name: _stated_parities(evolution, name) for name in evolution.orders}
    if any(parities is None for parities in stated.values()):
        return None
    formulas = list(_formulas(evolution, unknown or {}))
    if any(formula.atoms(AppliedUndef) for _, _, formula in formulas):  # not defined beyond the walls
        return None
    free = [(name, axis) for name, own in stated.items() for axis, sign in enumerate(own or ()) if sign is None]
    if len(free) > MAX_FREE_AXES:
        return None
    for signs in product((0, 1), repeat=len(free)):
        chosen = dict(zip(free, signs, strict=True))
        parities = {
            name: tuple(chosen[name, axis] if sign is None else sign for axis, sign in enumerate(own or ()))
            for name, own in stated.items()
        }
        if _symmetric(evolution, formulas, parities, list((unknown or {}).values())):
            return parities
    return None


def _stated_parities(evolution: Evolution, name: str) -> tuple[int | None, ...] | None:
    """Return the parities that the conditions of a field imply; None for an axis along which it needs no conditions.

    The result is None where the conditions do not imply a parity, or are not as many as the derivatives need.
    """
    faces = wall_rows(evolution, name)
    if faces is None or any(not face.value.is_zero or len(face.row.coefficients) > 1 for face in faces):
        return None
    parities: list[int | None] = []
    for axis, (lower, upper) in enumerate(evolution.domain.space.bounds):
        highest = _highest(evolution, name, axis)
        ends = [
            sorted(k for face in faces if face.axis == axis and face.row.position == end for k in face.row.coefficients)
            for end in (lower, upper)
        ]
        if highest == 0 and not any(ends):
            parities.append(None)
            continue
        wanted = [list(range(parity, highest, 2)) for parity in (1, 0)]  # odd derivatives of even functions vanish
        if highest % 2 or ends[0] != ends[1] or ends[0] not in wanted:
            return None
        parities.append(wanted.index(ends[0]))
    return tuple(parities)


def _highest(evolution: Evolution, name: str, axis: int) -> int:
    """Return the highest derivative of a field along an axis of space in any rate."""
    orders = [0]
    for rate in evolution.rates.values():
        for along, part in [(None, rate.source), *rate.flux.items()]:
            orders += [jet.index[axis + 1] + int(along == axis) for jet in part.jets if jet.field == name]
    return max(orders)


def _formulas(evolution: Evolution, unknown: Numbers) -> Iterator[tuple[str, int | None, sympy.Expr]]:
    """Iterate over (field, axis of a flux, formula): each formula must have the parity of its field, a flux the
    opposite one."""
    for name, rate in evolution.rates.items():
        yield name, None, rate.source.formula.xreplace(unknown)
        for axis, part in rate.flux.items():
            yield name, axis, part.formula.xreplace(unknown)
    for component, formula in evolution.initial.items():
        yield component.field, None, formula.xreplace(unknown)


def _symmetric(
    evolution: Evolution,
    formulas: list[tuple[str, int | None, sympy.Expr]],
    parities: Mapping[str, Parity],
    numbers: list[sympy.Symbol],
) -> bool:
    """Return whether all formulas change by their signs under every reflection, at random points and states."""
    rng, (start, end) = np.random.default_rng(17), evolution.domain.time
    points = evolution.domain.space.sample(SYMMETRY_POINTS, rng=rng)
    times = np.append(start, rng.uniform(start, end, SYMMETRY_POINTS - 1))  # initial values hold at the start
    states = {symbol: rng.standard_normal(SYMMETRY_POINTS) for symbol in evolution.symbols}
    states |= {symbol: rng.uniform(0.5, 1.5) * np.ones(SYMMETRY_POINTS) for symbol in numbers}
    here = _values(evolution, formulas, times, points, states)
    for axis, ends in enumerate(evolution.domain.space.bounds):
        signs = {s: _sign(parities[jet.field], axis, jet) for s, jet in evolution.symbols.items()}
        there = {symbol: signs.get(symbol, 1.0) * values for symbol, values in states.items()}
        for wall in ends:
            mirrored = points.copy()
            mirrored[:, axis] = 2.0 * wall - points[:, axis]
            reflected = _values(evolution, formulas, times, mirrored, there)
            for (name, along, _), one, other in zip(formulas, here, reflected, strict=True):
                sign = (-1.0) ** (parities[name][axis] + int(along == axis))
                if not _same(sign * one, other):
                    return False
    return True


def _sign(parity: Parity, axis: int, jet: Jet) -> float:
    return float((-1.0) ** (parity[axis] + jet.index[axis + 1]))


def _values(
    evolution: Evolution,
    formulas: list[tuple[str, int | None, sympy.Expr]],
    times: Array,
    points: Array,
    states: Mapping[sympy.Symbol, Array],
) -> list[Array]:
    known = evolution.known(times, points) | dict(states)
    values = evolution.values([formula for _, _, formula in formulas], known)
    return [np.broadcast_to(value, (SYMMETRY_POINTS,)) for value in values]


def _same(one: Array, other: Array) -> bool:
    """Return whether values agree to rounding; both must be NaN where a state is outside the domain of a formula."""
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)) or finite.sum() < SYMMETRY_POINTS // 4:
        return False
    return bool(np.abs(one[finite] - other[finite]).max() <= COMPUTED * np.abs(one[finite]).max())
