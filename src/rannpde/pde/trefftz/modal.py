"""Linear evolutions in eigenfunctions: features exp(s(t - t₀)) φ(x) with (s, φ) on the characteristic variety.

Where ∂_t c = M(w) c + f for the coefficients c of the eigenfunction of frequency w, with M(w) the symbol of the
evolution, every eigenvalue s of M(w) gives a feature exp(s t) φ_w(x) that satisfies equation and walls exactly:
caloric features exp(-|w|²t) cos(w·x), waves cos(w·x ± |w|t), Schrödinger's exp(-i|w|²t) cos(w·x). Only initial values
are fitted, by projection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import choose
from rannpde.network.storage import floats
from rannpde.pde.tolerance import NEARBY
from rannpde.pde.trefftz.box_modes import AxisModes, BoxModes
from rannpde.pde.trefftz.disc_modes import DiscModes
from rannpde.pde.trefftz.modes import SpatialModes
from rannpde.pde.trefftz.parts import ParticularPart, unpack_part

MODAL_ROUNDING = 1e-13
"""Relative differences below which rates are sums over the axes, a double eigenvalue has one eigenvector only, and a
matrix is singular.
"""


@dataclass(frozen=True, eq=False)
class ModalPart:
    """Re Σ_j weights_j (t - t₀)^power exp(rates_j (t - t₀)) φ_j(x); rates (N,), weights (N, fields), complex or not.

    axes : rates of each axis, of which the rates are sums, where they are: then sums over axes can be separated
    """

    rates: Array
    weights: Array
    power: int = 0
    axes: tuple[Array, ...] | None = None

    @cached_property
    def chosen(self) -> Array:
        """The numbers of the eigenfunctions with weights that matter."""
        sizes = np.abs(self.weights).max(axis=1)
        return np.flatnonzero(sizes > NEARBY * np.finfo(float).eps * sizes.max(initial=0.0))

    def derived(self, order: int) -> list[ModalPart]:
        """∂_t^order, as parts."""
        parts = []
        for k in range(min(order, self.power) + 1):  # Leibniz
            falls = factorial(self.power) // factorial(self.power - k)
            share = falls * factorial(order) // (factorial(k) * factorial(order - k))
            weights = share * self.weights * (self.rates ** (order - k))[:, None]
            parts.append(ModalPart(self.rates, weights, self.power - k, self.axes))
        return parts


@dataclass(frozen=True, eq=False)
class ModalNetwork:
    """Fields of a linear evolution as a sum of parts over the same eigenfunctions, and a stationary part for each."""

    modes: SpatialModes
    parts: tuple[ModalPart, ...]
    stationary: tuple[ParticularPart, ...]
    start: float
    dim: int

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(len(part.rates) for part in self.parts) or (0,)

    @property
    def contents(self) -> str:
        """The features in words."""
        return f"{sum(self.widths)} eigenfunctions of space with their rates in time"

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^derivative (M, fields) at points (t, x)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several at once, each (M, fields): exponentials are computed once for all of them."""
        totals = {
            index: np.stack([one.derivative(points, index) for one in self.stationary], axis=1) for index in indices
        }
        for part in self.parts:
            if part.axes is not None and isinstance(self.modes, BoxModes):
                self._add_separated(self.modes, part, points, totals)
            else:
                self._add(part, points, totals)
        return totals

    def _add_separated(
        self, modes: BoxModes, part: ModalPart, points: Array, totals: Mapping[MultiIndex, Array]
    ) -> None:
        time = points[:, 0] - self.start
        factors = [np.exp(time[:, None] * rates) for rates in part.axes or ()]
        for index, total in totals.items():
            for one in part.derived(index[0]):
                own = modes.separated(points[:, 1:], index[1:], factors, one.weights)
                total += own * time[:, None] ** one.power if one.power else own

    def _add(self, part: ModalPart, points: Array, totals: Mapping[MultiIndex, Array]) -> None:
        time, chosen = points[:, 0] - self.start, part.chosen
        for rows in self.modes.blocks(len(points), len(chosen)):
            now = time[rows, None]
            waves = np.exp(now * part.rates[chosen])
            for index, total in totals.items():
                columns = self.modes.columns(points[rows, 1:], index[1:], chosen)
                for one in part.derived(index[0]):
                    for field, weights in enumerate(one.weights[chosen].T):
                        own = np.einsum("mn,mn->m", columns, (waves * weights).real)
                        total[rows, field] += own * now[:, 0] ** one.power if one.power else own

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        arrays = {f"modes.{name}": array for name, array in self.modes.pack().items()}
        for number, part in enumerate(self.parts):
            arrays |= {f"part{number}.rates": part.rates, f"part{number}.weights": part.weights}
        for number, one in enumerate(self.stationary):
            arrays |= {f"stationary{number}.{name}": array for name, array in one.pack().items()}
        arrays["start"] = np.array([self.start])
        header = {
            "function": "trefftz", "modes": self.modes.kind, "powers": [part.power for part in self.parts],
            "stationary": [one.kind for one in self.stationary], "dim": self.dim,
        }  # fmt: skip
        return header, arrays


def unpack_modal(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> ModalNetwork:
    """The inverse of ``ModalNetwork.pack``."""

    def under(prefix: str) -> dict[str, Array]:
        return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

    modes = unpack_modes(str(header["modes"]), under("modes."))
    parts = []
    for number, power in enumerate(header["powers"]):
        own = under(f"part{number}.")
        parts.append(ModalPart(own["rates"], own["weights"], int(power), additive(modes, own["rates"])))
    stationary = tuple(unpack_part(str(kind), under(f"stationary{k}.")) for k, kind in enumerate(header["stationary"]))
    return ModalNetwork(modes, tuple(parts), stationary, float(floats(arrays, "start", (1,))[0]), int(header["dim"]))


def additive(modes: SpatialModes, rates: Array) -> tuple[Array, ...] | None:
    """The rates of each axis whose sums the rates (N,) on a box are; None where they are none."""
    if not isinstance(modes, BoxModes):
        return None
    grid, axes = rates.reshape(modes.shape), []
    first = grid.ravel()[0]
    for axis in range(grid.ndim):
        along = grid[tuple(slice(None) if k == axis else 0 for k in range(grid.ndim))]
        axes.append(along - first * (axis > 0))
    total: Array = axes[0]
    for own in axes[1:]:
        total = np.add.outer(total, own)
    size = float(np.abs(rates).max(initial=0.0))
    return tuple(axes) if np.abs(total - grid).max(initial=0.0) <= MODAL_ROUNDING * size else None


@dataclass(frozen=True, eq=False)
class ModalFlow:
    """exp(M(w)t) for every eigenfunction in closed form, and how much it amplifies initial values.

    rates (J, N), vectors and inverse (N, J, J): eigenvalues and eigenvectors of M(w) (N, J, J)
    double (N,) : where one eigenvector is missing, so that exp(Mt) = exp(st)(1 + (M - s)t)
    """

    matrices: Array
    rates: Array
    vectors: Array
    inverse: Array
    double: Array

    @classmethod
    def of(cls, matrices: Array) -> ModalFlow:
        count, size = matrices.shape[:2]
        if size == 1:
            one = np.ones((count, 1, 1))
            return cls(matrices, matrices[:, :, 0].T, one, one, np.zeros(count, dtype=bool))
        values, vectors = np.linalg.eig(matrices)
        middle = np.trace(matrices, axis1=1, axis2=2) / size
        rest = matrices - middle[:, None, None] * np.eye(size)
        square = np.linalg.norm(rest @ rest, axis=(1, 2))
        double = square <= MODAL_ROUNDING * np.maximum(np.linalg.norm(matrices, axis=(1, 2)) ** 2, 1e-300)
        double &= np.linalg.norm(rest, axis=(1, 2)) > 0
        double |= np.linalg.cond(vectors) > 1 / MODAL_ROUNDING
        vectors = np.where(double[:, None, None], np.eye(size), vectors)
        values = np.where(double[:, None], middle[:, None], values)
        return cls(matrices, values.T, vectors, np.linalg.inv(vectors), double)

    def parts(self, initial: Array, load: Array, modes: SpatialModes, fields: Array) -> list[ModalPart]:
        """The solution from coefficients initial (N, J) with constant loads (N, J); fields : components shown."""
        size = self.matrices.shape[1]
        steady, growing = np.zeros_like(initial), np.zeros_like(initial)
        loaded = np.flatnonzero(np.abs(load).max(axis=1) > 0)
        if len(loaded):
            own = self.matrices[loaded]
            singular = np.linalg.cond(own) > 1 / MODAL_ROUNDING
            plain = loaded[~singular]
            steady[plain] = -np.linalg.solve(self.matrices[plain], load[plain][:, :, None])[:, :, 0]
            growing[loaded[singular]] = load[loaded[singular]]
        left = initial - steady
        parts = []
        shares = self.vectors * np.einsum("njk,nk->nj", self.inverse, left)[:, None, :]  # (N, component, eigenvalue)
        for j in range(size):
            rates, weights = self.rates[j], shares[:, fields, j]
            if np.iscomplexobj(rates):  # of two conjugates one is enough, twice
                upper = np.where(rates.imag > 0, 2.0, np.where(rates.imag < 0, 0.0, 1.0))
                weights = weights * upper[:, None]
            if np.abs(weights).max(initial=0.0) > 0:
                parts.append(ModalPart(rates, weights, 0, additive(modes, rates)))
        rest = self.matrices - self.rates[0][:, None, None] * np.eye(size)
        linear = np.where(self.double[:, None], np.einsum("njk,nk->nj", rest, left), 0.0)
        if np.abs(linear).max(initial=0.0) > 0:
            parts.append(ModalPart(self.rates[0], linear[:, fields], 1))
        for power, weights in ((0, steady), (1, growing)):
            if np.abs(weights[:, fields]).max(initial=0.0) > 0:
                zero = np.zeros(len(weights))
                parts.append(ModalPart(zero, weights[:, fields], power, additive(modes, zero)))
        return parts

    def defective_load(self, load: Array) -> bool:
        """Whether a load acts on a singular matrix of several components, which has no closed form here."""
        loaded = np.abs(load).max(axis=1) > 0
        return self.matrices.shape[1] > 1 and bool((np.linalg.cond(self.matrices[loaded]) > 1 / MODAL_ROUNDING).any())

    def amplification(self, duration: float, fields: Array) -> Array:
        """For every component, a bound of |fields(t)| for a unit of its initial value, at all times: (J,)."""
        growth = np.exp(np.minimum(np.maximum(self.rates.T.real, 0.0) * duration, 700))  # (N, J)
        both = np.einsum("njk,nk,nkl->njl", np.abs(self.vectors), growth, np.abs(self.inverse))
        rest = np.abs(self.matrices - self.rates[0][:, None, None] * np.eye(self.matrices.shape[1])) * duration
        both = both + np.where(self.double[:, None, None], rest * growth[:, :1, None], 0.0)
        return np.asarray(both[:, fields].max(axis=(0, 1)))


def unpack_modes(kind: str, arrays: Mapping[str, Array]) -> SpatialModes:
    """The inverse of ``pack``."""

    def box() -> SpatialModes:
        ends = arrays["ends"]
        axes = [
            AxisModes(arrays[f"frequencies{k}"], arrays[f"phases{k}"], float(start), float(length))
            for k, (start, length) in enumerate(ends)
        ]
        return BoxModes(tuple(axes))

    def disc() -> SpatialModes:
        x, y, radius = map(float, arrays["disc"])
        return DiscModes(np.array([x, y]), radius, arrays["orders"].astype(int), arrays["zeros"])

    makers: dict[str, Any] = {"box": box, "disc": disc}
    modes = choose("eigenfunctions", kind, makers)()
    assert isinstance(modes, SpatialModes)
    return modes
