"""Stokes flow, plane elasticity and plates by harmonic potentials (Papkovich and Neuber) and analytic ones (Goursat).

With harmonic B = (B₁, B₂) and B₀ the fields

    u = α B - ∇((x - o)·B + B₀)

satisfy a Δu + b ∇ div u = 0 for α = 2 (1 + a/b), and for α = 2 the equations of Stokes, a Δu + s ∇p = 0 and div u =
0, with p = (2a/s) div B. A plate, ΔΔu = 0, takes B₀, x B₁ and y B₂ themselves. So every harmonic feature h gives three
features of these systems, each about an origin o of its own, where it is large.

Where h is a part of an analytic function, B₁ + i B₂ = φ and B₀ = Re χ with χ' = ψ suffice, which is Goursat's formula

    u₁ + i u₂ = (α - 1) φ - (z - o) conj(φ') - conj(ψ),      p = (2a/s) 2 Re φ',      plate: Re(conj(z - o) φ + ψ).

Every analytic function gives four features then, where its two parts would give six, of which two are redundant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.analytic import ANALYTIC, AnalyticFamily, LogarithmFamily, complex_numbers
from rannpde.pde.trefftz.families import CanonicalFamily, ExponentialFamily, FeatureFamily, unpack_family
from rannpde.pde.trefftz.multipoles import AngleFamily, MultipoleFamily
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, biharmonic, laplacian
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.rounding import ROUNDED


@dataclass(frozen=True)
class PotentialModel:
    """Which system: ``plate``, ``elastic`` or ``stokes``; alpha and pressure of the formulas above.

    fields : numbers of the components u, v (and of p) among the fields of the problem
    """

    system: str
    fields: tuple[int, ...]
    alpha: float = 2.0
    pressure: float = 0.0

    def packed(self, kind: str, base: CanonicalFamily | AnalyticFamily) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of features that a family has for this system."""
        header, arrays = base.pack()
        model = [self.system, list(self.fields), self.alpha, self.pressure]
        return {"kind": kind, "base": header, "model": model}, arrays


@dataclass(frozen=True, eq=False)
class PotentialFamily(FeatureFamily):
    """Three features of a system for each feature of a harmonic family."""

    kind: ClassVar[str] = "potentials"
    base: CanonicalFamily
    model: PotentialModel

    @property
    def label(self) -> str:
        return self.base.label

    @property
    def columns(self) -> int:
        return 3 * self.base.columns

    @property
    def origins(self) -> Array:
        """About which point (N, 2) each harmonic feature is multiplied by coordinates."""
        assert isinstance(self.base, AngleFamily | LogarithmFamily)
        return self.base.form.back(self.base.corners if isinstance(self.base, AngleFamily) else self.base.centres)

    def values(self, points: Array, index: MultiIndex) -> Array:
        known: dict[MultiIndex, Array] = {}
        arrows = points[:, None, :] - self.origins

        def harmonic(a: int, b: int) -> Array:
            if (a, b) not in known:
                known[a, b] = self.base.values(points, (a, b))[:, 0]
            return known[a, b]

        def times(axis: int, a: int, b: int) -> Array:
            """∂^(a, b) of (x - o) h or (y - o) h."""
            product = arrows[:, :, axis] * harmonic(a, b)
            order = (a, b)[axis]
            if order:
                product = product + order * (harmonic(a - 1, b) if axis == 0 else harmonic(a, b - 1))
            return product

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
        return self.model.packed(self.kind, self.base)


@dataclass(frozen=True, eq=False)
class GoursatFamily(FeatureFamily):
    """Four features of a system for each function f of an analytic family: φ = f, φ = i f, ψ = f, ψ = i f."""

    kind: ClassVar[str] = "goursat"
    base: AnalyticFamily
    model: PotentialModel

    @property
    def label(self) -> str:
        return self.base.label

    @property
    def columns(self) -> int:
        return 4 * self.base.functions

    def multipoles(self, weights: Array) -> tuple[Array, Array] | None:
        return self.base.multipoles(weights)

    def values(self, points: Array, index: MultiIndex) -> Array:
        z = complex_numbers(self.base.form.to(points))
        a, b = index
        n = a + b
        away = z[:, None] - self.base.origins
        if self.model.system == "plate":
            f = self.base.powers(z, n)
            own = 1j**b * f[n]
            moved = away.conj() * own
            if n:  # ∂₁ conj(z) = 1 and ∂₂ conj(z) = -i; i^(b-1) (-i) = -i^b
                moved = moved + (a - b) * 1j**b * f[n - 1]
            columns = [moved.real, -moved.imag, own.real, -own.imag]
            return np.concatenate(columns, axis=1)[:, None, :]
        f = self.base.powers(z, n + 1)
        own, mirrored = 1j**b * f[n], ((-1j) ** b) * f[n].conj()
        bent = away * (-1j) ** b * f[n + 1].conj()
        if n:  # ∂₁ z = 1 and ∂₂ z = i; (-i)^(b-1) i = -(-i)^b
            bent = bent + (a - b) * (-1j) ** b * f[n].conj()
        own *= self.model.alpha - 1
        count, K = (2 if self.model.system == "elastic" else 3), self.base.functions
        total = np.zeros((count, len(points), self.columns))  # one table for each field
        first, second = total[self.model.fields[0]], total[self.model.fields[1]]
        for number, (real, imaginary) in enumerate(
            ((own.real - bent.real, own.imag - bent.imag), (-own.imag - bent.imag, own.real + bent.real),
             (-mirrored.real, -mirrored.imag), (-mirrored.imag, mirrored.real))
        ):  # fmt: skip
            first[:, number * K : (number + 1) * K] = real
            second[:, number * K : (number + 1) * K] = imaginary
        if self.model.system == "stokes":
            slope = 2 * self.model.pressure * 1j**b * f[n + 1]
            third = total[self.model.fields[2]]
            third[:, :K], third[:, K : 2 * K] = slope.real, -slope.imag
        return total.transpose(1, 0, 2)

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """The same by sums of analytic functions: φ = Σ c_j f_j and ψ = Σ d_j f_j, then Goursat's formula."""
        z = complex_numbers(self.base.form.to(points))
        parts = weights.reshape(4, -1)
        phi, psi = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        sums = np.stack([phi, psi, phi * self.base.origins.conj()], axis=1)
        plate = self.model.system == "plate"
        f = [power @ sums for power in self.base.powers(z, max(map(sum, indices)) + (not plate))]
        return [(self._deflection if plate else self._vector)(z, f, index) for index in indices]

    def _deflection(self, z: Array, f: list[Array], index: MultiIndex) -> Array:
        """Re(conj(z - o) φ + ψ) (M, 1) from derivatives (M, 3) of φ, ψ and the sum of conj(o) φ."""
        a, b = index
        n = a + b
        whole = 1j**b * (z.conj() * f[n][:, 0] - f[n][:, 2] + f[n][:, 1])
        if n:
            whole = whole + (a - b) * 1j**b * f[n - 1][:, 0]
        return np.asarray(whole.real[:, None])

    def _vector(self, z: Array, f: list[Array], index: MultiIndex) -> Array:
        """u, v (and p) (M, fields) from derivatives (M, 3) of φ, ψ and the sum of conj(o) φ."""
        a, b = index
        n = a + b
        turn = (-1j) ** b
        bent = turn * (z * f[n + 1][:, 0].conj() - f[n + 1][:, 2].conj())
        if n:
            bent = bent + (a - b) * turn * f[n][:, 0].conj()
        whole = (self.model.alpha - 1) * 1j**b * f[n][:, 0] - bent - turn * f[n][:, 1].conj()
        total = np.zeros((len(z), 2 if self.model.system == "elastic" else 3))
        total[:, self.model.fields[0]], total[:, self.model.fields[1]] = whole.real, whole.imag
        if self.model.system == "stokes":
            total[:, self.model.fields[2]] = (2 * self.model.pressure * 1j**b * f[n + 1][:, 0]).real
        return total

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return self.model.packed(self.kind, self.base)


SCALAR_FAMILIES = (ExponentialFamily, SourceFamily, MultipoleFamily, AngleFamily, SphericalFamily)
ALL_FAMILIES: dict[str, type[Any]] = {one.kind: one for one in SCALAR_FAMILIES} | ANALYTIC | {"solid": SphericalFamily}
"""By the names that files have for them; solid harmonics were a family of their own once."""
SYSTEM_FAMILIES: dict[str, type[PotentialFamily] | type[GoursatFamily]] = {
    PotentialFamily.kind: PotentialFamily,
    GoursatFamily.kind: GoursatFamily,
}


def unpack_trefftz_family(header: Mapping[str, Any], arrays: Mapping[str, Array], form: CanonicalForm) -> FeatureFamily:
    """The family that a file holds, of whatever kind."""
    kind = SYSTEM_FAMILIES.get(header["kind"])
    if kind is None:
        return unpack_family(header, arrays, form, ALL_FAMILIES)
    system, fields, alpha, pressure = header["model"]
    base: Any = unpack_family(header["base"], arrays, form, ALL_FAMILIES)
    return kind(base, PotentialModel(str(system), tuple(map(int, fields)), float(alpha), float(pressure)))


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
    return max(values) - min(values) <= ROUNDED * max(map(abs, values))


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
