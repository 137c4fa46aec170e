"""Fourier symbols: small matrices, one for every wave vector, that act on tables of coefficients; their φ functions.

A linear operator with constant coefficients is such a matrix, since a derivative is a number (i k)^α. Entries that
vanish for all wave vectors are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.rounding import EPS

TAYLOR_TERMS = 13
"""Highest power of the Taylor series of φ functions."""
TAYLOR_RADIUS = (EPS * factorial(TAYLOR_TERMS + 1)) ** (1 / (TAYLOR_TERMS + 1))
"""0.46: the radius within which the first omitted power is below rounding; beyond it, arguments are halved."""
SCALAR_TERMS = 18
"""Terms of the Taylor series of a number within radius 1."""


@dataclass(frozen=True, eq=False)
class FourierSymbol:
    """entries: (row, column) → array (*shape) over the wave vectors, of ``dim`` axes; entries that are absent vanish.

    >>> turn = FourierSymbol(2, 2, {(0, 1): np.ones(3), (1, 0): -np.ones(3)})
    >>> turn.apply(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).tolist()
    [[4.0, 5.0, 6.0], [-1.0, -2.0, -3.0]]
    """

    rows: int
    columns: int
    entries: Mapping[tuple[int, int], Array]
    dim: int = 1

    @classmethod
    def identity(cls, size: int, shape: tuple[int, ...]) -> FourierSymbol:
        return cls(size, size, {(k, k): np.ones(shape) for k in range(size)}, len(shape))

    @classmethod
    def of(cls, dense: Array, shape: tuple[int, ...]) -> FourierSymbol:
        """The symbol of matrices (wave vectors, rows, columns)."""
        rows, columns = dense.shape[1:]
        entries = {}
        for row in range(rows):
            for column in range(columns):
                entry = dense[:, row, column]
                if np.any(entry):
                    real = not np.iscomplexobj(entry) or not np.any(entry.imag)
                    entries[row, column] = np.ascontiguousarray(entry.real if real else entry).reshape(shape)
        return cls(rows, columns, entries, len(shape))

    def dense(self, count: int) -> Array:
        """The matrices (wave vectors, rows, columns)."""
        matrices = np.zeros((count, self.rows, self.columns), dtype=complex)
        for (row, column), entry in self.entries.items():
            matrices[:, row, column] = np.broadcast_to(entry, entry.shape).ravel()
        return matrices

    @cached_property
    def diagonal(self) -> bool:
        return all(row == column for row, column in self.entries)

    def apply(self, tables: Array) -> Array:
        """(…, columns, *shape) → (…, rows, *shape)."""
        front = tables.shape[: tables.ndim - self.dim - 1]
        result = np.zeros((*front, self.rows, *tables.shape[len(front) + 1 :]), dtype=tables.dtype)
        before: tuple[Any, ...] = (slice(None),) * len(front)
        for (row, column), entry in self.entries.items():
            result[(*before, row)] += entry * tables[(*before, column)]
        return result

    def __matmul__(self, other: FourierSymbol) -> FourierSymbol:
        entries: dict[tuple[int, int], Array] = {}
        for (row, middle), left in self.entries.items():
            for (above, column), right in other.entries.items():
                if above == middle:
                    product = left * right
                    entries[row, column] = entries[row, column] + product if (row, column) in entries else product
        return FourierSymbol(self.rows, other.columns, entries, self.dim)

    def __add__(self, other: FourierSymbol) -> FourierSymbol:
        entries = dict(self.entries)
        for position, entry in other.entries.items():
            entries[position] = entries[position] + entry if position in entries else entry
        return FourierSymbol(self.rows, self.columns, entries, self.dim)

    def __mul__(self, factor: complex) -> FourierSymbol:
        entries = {position: factor * entry for position, entry in self.entries.items()}
        return FourierSymbol(self.rows, self.columns, entries, self.dim)

    def at(self, numbers: Array) -> FourierSymbol:
        """The symbol at some of the wave vectors, of one flat axis."""
        return FourierSymbol(
            self.rows, self.columns, {position: entry[numbers] for position, entry in self.entries.items()}
        )

    def inverse(self) -> FourierSymbol:
        """The inverse of every matrix; they are square."""
        if self.diagonal:
            entries = {position: 1.0 / entry for position, entry in self.entries.items()}
            return FourierSymbol(self.rows, self.rows, entries, self.dim)
        shape = next(iter(self.entries.values())).shape
        return FourierSymbol.of(np.linalg.inv(self.dense(int(np.prod(shape)))), shape)


def phi_functions(matrix: FourierSymbol, shape: tuple[int, ...], highest: int = 3) -> tuple[FourierSymbol, ...]:
    """φ_0 = exp, …, φ_highest of square matrices: φ_l(z) = Σ_m z^m / (m + l)!, φ_l(0) = 1/l!.

    By the Taylor series of z/2^s and s doublings (Skaflestad & Wright 2009), with s for each wave vector by itself:
    φ_l(2z) = 2^(-l) (φ_0(z) φ_l(z) + Σ_{j=1}^{l} φ_j(z)/(l - j)!). There is no cancellation.

    >>> z = FourierSymbol(1, 1, {(0, 0): np.array([0.0, -1e-9, -30.0])})
    >>> np.round(phi_functions(z, (3,))[1].entries[0, 0], 6).tolist()
    [1.0, 1.0, 0.033333]
    """
    size, count = matrix.rows, int(np.prod(shape))
    if matrix.diagonal:
        scalars = [_scalar_phi(matrix.entries.get((k, k), np.zeros(shape)), highest) for k in range(size)]
        diagonals = [{(k, k): scalars[k][order] for k in range(size)} for order in range(highest + 1)]
        return tuple(FourierSymbol(size, size, entries, len(shape)) for entries in diagonals)
    flat = FourierSymbol(size, size, {position: entry.ravel() for position, entry in matrix.entries.items()})
    rows = np.zeros((size, count))
    for (row, _), entry in flat.entries.items():
        rows[row] += np.abs(entry)
    norms = rows.max(axis=0)
    halvings = np.ceil(np.log2(np.maximum(norms / TAYLOR_RADIUS, 1.0))).astype(int)
    small = FourierSymbol(size, size, {position: entry * 0.5**halvings for position, entry in flat.entries.items()})
    one = FourierSymbol.identity(size, (count,))
    functions = []
    for order in range(highest + 1):
        total = one * (1.0 / factorial(TAYLOR_TERMS + order))
        for power in range(TAYLOR_TERMS - 1, -1, -1):
            total = small @ total + one * (1.0 / factorial(power + order))
        functions.append(total)
    for doubling in range(1, int(halvings.max(initial=0)) + 1):
        doubled = np.flatnonzero(halvings >= doubling)
        part = [function.at(doubled) for function in functions]
        for order in range(highest + 1):
            total = part[0] @ part[order]
            for lower in range(1, order + 1):
                total = total + part[lower] * (1.0 / factorial(order - lower))
            for position, entry in (total * 0.5**order).entries.items():
                target = functions[order].entries[position]
                target[doubled] = entry
    shaped = [
        {position: entry.reshape(shape) for position, entry in function.entries.items()} for function in functions
    ]
    return tuple(FourierSymbol(size, size, entries, len(shape)) for entries in shaped)


def _scalar_phi(z: Array, highest: int) -> list[Array]:
    """φ_0, …, φ_highest of numbers, by φ_l = z φ_{l+1} + 1/l!: upwards where |z| > 1, else downwards from a series.

    Both recurrences are stable there.
    """
    functions = [np.exp(z)]
    far = np.abs(z) > 1.0
    near, safe = ~far, np.where(far, z, 1.0)
    for order in range(highest):
        functions.append((functions[-1] - 1.0 / factorial(order)) / safe)
    small = z[near]
    total: Array = np.full(small.shape, 1.0 / factorial(SCALAR_TERMS + highest), dtype=z.dtype)
    for power in range(SCALAR_TERMS - 1, -1, -1):
        total = small * total + 1.0 / factorial(power + highest)
    for order in range(highest, 0, -1):
        functions[order][near] = total
        total = small * total + 1.0 / factorial(order - 1)
    return functions
