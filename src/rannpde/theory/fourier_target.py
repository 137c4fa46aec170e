"""Functions given by their Fourier transform: R_ψ u is one oscillatory integral along the ray ωw.

    R_ψ u(w, b) = (1/2π) ∫ e^(iωb) conj(ψ̂(ω)) û(ωw) dω = (1/π) Re ∫_0^∞ e^(iωb) conj(ψ̂(ω)) û(ωw) dω.

The integrand is cut where ψ̂ or û is negligible. R_ψ u(w, ·) lives on |b - w·centre| ≤ |w| radius + reach of ψ, so the
trapezoidal rule is exact to rounding once its period 2π/h clears that interval; columns of like length share one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import inf, pi, sqrt

import finufft
import numpy as np

from rannpde.arrays import Array, row_blocks
from rannpde.errors import finite_array, finite_points, positive_integer, reject, require
from rannpde.network.features import multi_index
from rannpde.theory.ridgelet_function import RidgeletFunction

Transform = Callable[[Array], Array]

BLOCK = 2**20
"""Evaluations of û at a time: 16 MB of complex values."""
LARGEST_RULE = 2**22
"""Nodes on one ray: more would take seconds for a single weight, and says that radius or bandwidth is infinite."""
GRID_DIMENSIONS = 3
"""Most dimensions in which values and norms are summed over a grid of frequencies, whose size is a power of it."""


@dataclass(frozen=True, eq=False)
class FourierTarget:
    """u(z) = (2π)^(-n) ∫ û(ξ) e^(iξ·z) dξ, real, known through û.

    transform : frequencies (M, n) → û, complex (M,), with û(-ξ) = conj û(ξ)
    bandwidth : û is negligible for |ξ| > bandwidth; infinite where û decays slowly
    radius : u is negligible outside |z - centre| < radius, which is also how fast û oscillates
    smoothness : the largest Sobolev orders of u in time and space

    >>> def transform(xi):  # of exp(-|z|²/2)
    ...     return 2 * np.pi * np.exp(-0.5 * (xi**2).sum(axis=1)) + 0j
    >>> u = FourierTarget(2, transform, bandwidth=9.0, radius=7.0)
    >>> bool(abs(u(np.zeros((1, 2)))[0] - 1) < 1e-12)
    True
    """

    dim: int
    transform: Transform = field(repr=False)
    bandwidth: float
    radius: float
    centre: Array = field(default_factory=lambda: np.zeros(0))
    smoothness: tuple[float, float] = (inf, inf)

    def __post_init__(self) -> None:
        positive_integer("dim", self.dim)
        require(self.bandwidth > 0, "bandwidth", self.bandwidth, "> 0")
        require(0 < self.radius < inf, "radius", self.radius, "a finite number > 0")
        centre = finite_array("centre", self.centre, 1)
        object.__setattr__(self, "centre", centre if len(centre) else np.zeros(self.dim))
        require(len(self.centre) == self.dim, "centre with shape", self.centre.shape, f"of shape ({self.dim},)")

    def fourier(self, frequencies: Array) -> Array:
        """û at the frequencies (M, n), complex, shape (M,)."""
        return np.asarray(self.transform(finite_points("frequencies", frequencies, self.dim)), dtype=complex)

    def ridgelet(self, psi: RidgeletFunction, weights: Array, biases: Array) -> Array:
        weights, biases = np.asarray(weights, float), np.asarray(biases, float)
        length = np.sqrt(np.square(weights).sum(axis=0))
        # ψ and ψ̂, both He-like times a Gaussian, are below rounding of their largest values beyond √k + 9
        tail = sqrt(psi.order) + 9.0
        cut = np.minimum(tail, self.bandwidth / np.maximum(length, 1e-300))
        support, distance = length * self.radius + tail, np.abs(biases - self.centre @ weights)
        count = _round_up(cut * (distance + support) / (2 * pi))
        result = np.zeros(weights.shape[1])
        inside = distance <= support
        for nodes in np.unique(count[inside]):
            remedy = "give the target a finite bandwidth or a smaller radius, or drop the largest weights"
            require(nodes <= LARGEST_RULE, "nodes of the ray integral", int(nodes), f"≤ {LARGEST_RULE}", remedy)
            columns = np.flatnonzero(inside & (count == nodes))
            for block in row_blocks(len(columns), max(1, BLOCK // int(nodes))):
                chosen = columns[block]
                result[chosen] = self._along_rays(psi, weights[:, chosen], biases[chosen], cut[chosen], int(nodes))
        return result

    def _along_rays(self, psi: RidgeletFunction, w: Array, b: Array, cut: Array, nodes: int) -> Array:
        """Trapezoidal sums over (0, cut]; ψ̂ vanishes at 0."""
        omega = cut[:, None] * (np.arange(1, nodes + 1) / nodes)
        frequencies = omega[:, :, None] * w.T[:, None, :]
        values = self.transform(frequencies.reshape(-1, self.dim)).reshape(omega.shape)
        values = values * np.exp(1j * omega * b[:, None])
        # conj(ψ̂) is (-i)^k times a real function
        real = (values * (-1j) ** psi.order).real * (omega**psi.order * np.exp(-0.5 * omega**2))
        return np.asarray(psi.amplitude * cut / (pi * nodes) * real.sum(axis=1))

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """The derivative by a sum over a grid of frequencies (NUFFT), in up to 3 dimensions with a finite bandwidth."""
        points, index = finite_points("points", points, self.dim), multi_index(derivative, self.dim)
        frequencies, values, step = self._grid
        powers = [(1j * xi) ** power for xi, power in zip(frequencies, index, strict=True)]
        modes = values * reduce(np.multiply.outer, powers) * (step / (2 * pi)) ** self.dim
        scaled = [np.ascontiguousarray(column) for column in (step * points).T]
        evaluate = {1: finufft.nufft1d2, 2: finufft.nufft2d2, 3: finufft.nufft3d2}[self.dim]
        return np.asarray(evaluate(*scaled, np.ascontiguousarray(modes), eps=1e-13, isign=1).real)

    def squared_norm(self, p: float, q: float) -> float:
        """(2π)^(-n) ∫ |û|² (1+s²)^p (1+|ξ|²)^q over the grid of frequencies: spectrally accurate for smooth û."""
        frequencies, values, step = self._grid
        time = (1 + frequencies[0] ** 2) ** p
        space = reduce(np.add.outer, [xi**2 for xi in frequencies[1:]]) if self.dim > 1 else np.zeros(())
        weight = np.multiply.outer(time, (1 + space) ** q)
        return float((np.abs(values) ** 2 * weight).sum() * (step / (2 * pi)) ** self.dim)

    def times_coordinate(self, axis: int) -> FourierTarget:
        """z_axis u has the transform i ∂û/∂ξ_axis, taken by a central difference of order 8."""
        # u lives within the radius, so û is of exponential type: the step makes (radius · step)^8 / 630 about 1e-10
        step = 0.14 / (self.radius + float(np.linalg.norm(self.centre)))
        stencil = [(1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)]

        def derivative(frequencies: Array) -> Array:
            unit = np.eye(self.dim)[axis] * step
            moved = [
                (f, self.transform(frequencies + j * unit), self.transform(frequencies - j * unit)) for j, f in stencil
            ]
            return np.asarray(
                1j / step * np.sum([factor * (ahead - behind) for factor, ahead, behind in moved], axis=0)
            )

        return replace(self, transform=derivative)

    @cached_property
    def _grid(self) -> tuple[list[Array], Array, float]:
        """Frequencies of each axis, û on their grid, and the spacing: fine enough for |z| within the radius."""
        few = self.dim <= GRID_DIMENSIONS and self.bandwidth < inf
        if not few:
            reject(
                "target",
                f"of dimension {self.dim} and bandwidth {self.bandwidth:g}",
                f"of at most {GRID_DIMENSIONS} dimensions and finite bandwidth for values and norms on a grid",
            )
        step = pi / (2 * (self.radius + float(np.linalg.norm(self.centre))))
        half = int(np.ceil(self.bandwidth / step))
        axis = step * np.arange(-half, half + 1)
        grid = np.stack(np.meshgrid(*[axis] * self.dim, indexing="ij"), axis=-1)
        values = self.transform(grid.reshape(-1, self.dim)).reshape(grid.shape[:-1])
        return [axis] * self.dim, values, step


def _round_up(count: Array) -> Array:
    """The next number of a geometric sequence of ratio about 1.2: few distinct rules, little waste."""
    return np.asarray(np.ceil(1.2 ** np.ceil(np.log(np.maximum(count, 8.0)) / np.log(1.2))).astype(int))
