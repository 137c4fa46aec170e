"""Fields on a box as sums of products of Legendre polynomials and Fourier modes along the axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.spectrum.boxes.axes import BoxAxis, FourierAxis, LegendreAxis


@dataclass(frozen=True, eq=False)
class ProductFunction:
    """Fields of a box.

    bounds (d, 2); phases : per axis the Bloch phase of Fourier modes, None where the functions are polynomials
    coefficients (n_1, …, n_d, fields) : in Legendre polynomials or Fourier modes; complex ones give the real part
    """

    bounds: Array
    phases: tuple[float | None, ...]
    coefficients: Array

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of products."""
        return (int(np.prod(self.coefficients.shape[:-1])),)

    def axis(self, number: int) -> BoxAxis:
        """The functions along an axis."""
        low, high = map(float, self.bounds[number])
        count, phase = self.coefficients.shape[number], self.phases[number]
        return LegendreAxis(low, high, np.eye(count)) if phase is None else FourierAxis(low, high, count // 2, phase)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """A derivative of the fields, (M, fields), real, at points (M, d)."""
        return np.asarray(self.complex_derivative(points, derivative).real)

    def complex_derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """A derivative of the fields, (M, fields), complex where the coefficients or the modes are."""
        tables = [self.axis(a).raw_table(points[:, a], order) for a, order in enumerate(derivative)]
        total = np.tensordot(tables[0], self.coefficients, axes=(1, 0))
        for table in tables[1:]:
            total = np.einsum("mk,mk...->m...", table, total)
        return np.asarray(total)

    def on_grid(self, nodes: list[Array], derivative: MultiIndex) -> Array:
        """A derivative (Q_1, …, Q_d, fields) on the grid of these nodes."""
        total = self.coefficients
        for a, order in enumerate(derivative):
            total = np.moveaxis(np.tensordot(self.axis(a).raw_table(nodes[a], order), total, axes=(1, a)), 0, a)
        return np.asarray(total)

    def tails(self) -> Array:
        """For each axis the largest of the last coefficients over the largest of all."""
        size = max(float(np.abs(self.coefficients).max()), 1e-300)
        last = []
        for number in range(self.dim):
            own = self.axis(number).tail(np.moveaxis(self.coefficients, number, 0))
            last.append(float(np.abs(own).max()) / size)
        return np.array(last)

    def times(self, factor: complex) -> ProductFunction:
        """The function times a number."""
        return replace(self, coefficients=self.coefficients * factor)

    def pack(self) -> tuple[dict[str, object], dict[str, Array]]:
        """Header and arrays for a file."""
        arrays = {"bounds": self.bounds, "coefficients": self.coefficients}
        return {"function": "product", "phases": list(self.phases)}, arrays
