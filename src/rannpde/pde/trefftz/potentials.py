"""Stokes flow, plane elasticity and plates by harmonic potentials (Papkovich and Neuber, Goursat).

With harmonic B = (B₁, B₂) and B₀ the fields

    u = α B - ∇((x - o)·B + B₀)

satisfy a Δu + b ∇ div u = 0 for α = 2 (1 + a/b), and for α = 2 the equations of Stokes, a Δu + s ∇p = 0 and div u =
0, with p = (2a/s) div B. A plate, ΔΔu = 0, takes B₀, x B₁ and y B₂ themselves. So every harmonic feature h gives three
features of these systems, each about an origin o of its own, where it is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.families import (
    AngleFamily,
    CanonicalFamily,
    FeatureFamily,
    MultipoleFamily,
    SourceFamily,
    unpack_family,
)
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, biharmonic, laplacian

SAME = 1e-12
"""Relative difference up to which two coefficients are the same."""


@dataclass(frozen=True)
class PotentialModel:
    """Which system: ``plate``, ``elastic`` or ``stokes``; alpha and pressure of the formulas above.

    fields : numbers of the components u, v (and of p) among the fields of the problem
    """

    system: str
    fields: tuple[int, ...]
    alpha: float = 2.0
    pressure: float = 0.0


@dataclass(frozen=True, eq=False)
class PotentialFamily(FeatureFamily):
    """Three features of a system for each feature of a harmonic family."""

    kind: ClassVar[str] = "potentials"
    base: CanonicalFamily
    model: PotentialModel

    @property
    def columns(self) -> int:
        return 3 * self.base.columns

    @property
    def origins(self) -> Array:
        """About which point (N, 2) each harmonic feature is multiplied by coordinates."""
        base = self.base
        if isinstance(base, SourceFamily):
            places = np.repeat(base.sources, len(base.moments), axis=0)
        elif isinstance(base, MultipoleFamily):
            places = np.tile(base.centre, (base.columns, 1))
        else:
            assert isinstance(base, AngleFamily)
            places = base.corners
        return base.form.back(places)

    def values(self, points: Array, index: MultiIndex) -> Array:
        known: dict[MultiIndex, Array] = {}
        arrows = points[:, None, :] - self.origins

        def harmonic(a: int, b: int) -> Array:
            if (a, b) not in known:
                known[a, b] = self.base.values(points, (a, b))[:, 0]
            return known[a, b]

        def times(axis: int, a: int, b: int) -> Array:
            """∂^(a, b) of (x - o) h or (y - o) h."""
            found = arrows[:, :, axis] * harmonic(a, b)
            order = (a, b)[axis]
            if order:
                found = found + order * (harmonic(a - 1, b) if axis == 0 else harmonic(a, b - 1))
            return found

        a, b = index
        if self.model.system == "plate":
            return np.concatenate([harmonic(a, b), times(0, a, b), times(1, a, b)], axis=1)[:, None, :]
        count = 2 if self.model.system == "elastic" else 3
        total = np.zeros((len(points), count, self.columns))
        n = self.base.columns
        first, second = self.model.fields[:2]
        for field, (up, across) in zip((first, second), ((a + 1, b), (a, b + 1)), strict=True):
            total[:, field, :n] = -harmonic(up, across)
            total[:, field, n : 2 * n] = -times(0, up, across)
            total[:, field, 2 * n :] = -times(1, up, across)
        total[:, first, n : 2 * n] += self.model.alpha * harmonic(a, b)
        total[:, second, 2 * n :] += self.model.alpha * harmonic(a, b)
        if count == 3:
            total[:, self.model.fields[2], n : 2 * n] = self.model.pressure * harmonic(a + 1, b)
            total[:, self.model.fields[2], 2 * n :] = self.model.pressure * harmonic(a, b + 1)
        return total

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header, arrays = self.base.pack()
        model = [self.model.system, list(self.model.fields), self.model.alpha, self.model.pressure]
        return {"kind": self.kind, "base": header, "model": model}, arrays


def unpack_potentials(header: Mapping[str, Any], arrays: Mapping[str, Array], form: CanonicalForm) -> FeatureFamily:
    """A family of a file, also one of potentials."""
    if header["kind"] != PotentialFamily.kind:
        return unpack_family(header, arrays, form)
    system, fields, alpha, pressure = header["model"]
    base = unpack_family(header["base"], arrays, form)
    assert isinstance(base, CanonicalFamily)
    model = PotentialModel(str(system), tuple(map(int, fields)), float(alpha), float(pressure))
    return PotentialFamily(base, model)


def potential_model(equations: tuple[LinearEquation, ...], fields: tuple[str, ...]) -> PotentialModel | None:
    """The system that equations in the plane are, None where they are none of these."""
    if len(equations) != len(fields):
        return None
    if len(fields) == 1:
        symbol = equations[0].symbols.get(fields[0], {})
        return None if biharmonic(symbol) is None else PotentialModel("plate", (0,))
    if len(fields) == 2:
        return _elastic(equations, fields)
    return _stokes(equations, fields) if len(fields) == 3 else None


def _close(*values: float) -> bool:
    return max(values) - min(values) <= SAME * max(map(abs, values))


def _elastic(equations: tuple[LinearEquation, ...], fields: tuple[str, ...]) -> PotentialModel | None:
    for u, v in (fields, fields[::-1]):
        for one, other in (equations, equations[::-1]):
            own, cross = one.symbols.get(u, {}), one.symbols.get(v, {})
            own2, cross2 = other.symbols.get(v, {}), other.symbols.get(u, {})
            shapes = [set(own), set(own2), set(cross), set(cross2)]
            if shapes != [{(2, 0), (0, 2)}, {(2, 0), (0, 2)}, {(1, 1)}, {(1, 1)}]:
                continue
            a, b = own[0, 2], cross[1, 1]
            a2, b2 = own2[2, 0], cross2[1, 1]
            balanced = _close(own[2, 0], a + b) and _close(own2[0, 2], a2 + b2) and _close(a / b, a2 / b2)
            if balanced and a * (a + b) > 0:
                return PotentialModel("elastic", (fields.index(u), fields.index(v)), 2 * (1 + a / b))
    return None


def _stokes(equations: tuple[LinearEquation, ...], fields: tuple[str, ...]) -> PotentialModel | None:
    divergences = [
        one
        for one in equations
        if len(one.symbols) == 2 and sorted(list(symbol) for symbol in one.symbols.values()) == [[(0, 1)], [(1, 0)]]
    ]
    if len(divergences) != 1 or not _close(*(v for s in divergences[0].symbols.values() for v in s.values())):
        return None
    if divergences[0].load != 0:
        return None
    u = next(name for name, symbol in divergences[0].symbols.items() if (1, 0) in symbol)
    v = next(name for name, symbol in divergences[0].symbols.items() if (0, 1) in symbol)
    p = next(name for name in fields if name not in (u, v))
    ratios = []
    for velocity, index in ((u, (1, 0)), (v, (0, 1))):
        mine = [one for one in equations if one is not divergences[0] and velocity in one.symbols]
        if len(mine) != 1 or set(mine[0].symbols) != {velocity, p} or set(mine[0].symbols[p]) != {index}:
            return None
        viscous = laplacian(mine[0].symbols[velocity], 2)
        if viscous is None:
            return None
        ratios.append(viscous / mine[0].symbols[p][index])
    if not _close(*ratios):
        return None
    numbers = tuple(fields.index(name) for name in (u, v, p))
    return PotentialModel("stokes", numbers, 2.0, 2 * ratios[0])
