"""Pseudospectra: where the resolvent of an operator is large, though no eigenvalue is near.

The operator is restricted to the span of the computed modes. With an orthonormal basis of the span, modes = Q R,
it is the matrix T = R Λ R⁻¹, and σ_min(z - T) is the distance from the spectrum if the modes are orthogonal, and less
if they are not (Trefethen and Embree, Spectra and Pseudospectra, chapter 39). More modes give larger pseudospectra, up
to those of the operator: the resolvent norm that is shown is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains.domain import is_box
from rannpde.errors import is_real, positive_integer, reject, require
from rannpde.io import PathLike
from rannpde.pde.spectrum.result import Spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORM_NODES = (400, 60, 20)
"""Gauss nodes along an axis by dimension, for the products of modes."""


@dataclass(frozen=True, eq=False)
class Pseudospectrum:
    """σ_min(z - T) (rows, columns) on a grid of the complex plane, z = real[column] + i imaginary[row].

    values : the eigenvalues that were used; condition : condition of their modes, 1 where they are orthogonal
    """

    real: Array
    imaginary: Array
    distances: Array
    values: Array
    condition: float
    title: str

    def plot(self, path: PathLike | None = None) -> Figure:
        """Contours of log₁₀ σ_min, the eigenvalues as dots; written to ``path`` if given."""
        from rannpde.plotting.spectrum import plot_pseudospectrum  # pictures load when they are wanted

        return plot_pseudospectrum(self, path)


def pseudospectrum(
    spectrum: Spectrum, bounds: tuple[tuple[float, float], tuple[float, float]] | None = None, points: int = 80
) -> Pseudospectrum:
    """The pseudospectra of the operator on the modes of a spectrum, in the L² norm of the fields.

    bounds : ((least, largest) real part, (least, largest) imaginary part); None frames the eigenvalues
    points : along each axis of the plane

    >>> import rannpde as rp
    >>> flow = rp.Problem("-u_xx + 20*u_x = lam*u", rp.Interval(0, 1), {"boundary": "u = 0"}, eigenvalue="lam")
    >>> contours = pseudospectrum(rp.eigen(flow, 8), points=20)
    >>> contours.distances.shape, bool(contours.condition > 100)
    ((20, 20), True)
    """
    require(isinstance(spectrum, Spectrum), "spectrum", spectrum, "what rp.eigen gives back")
    require(len(spectrum) > 1, "spectrum", len(spectrum), "of two eigenvalues at least", "ask for a larger count")
    points = positive_integer("points", points)
    values = np.asarray(spectrum.values, dtype=complex)
    real, imaginary = (np.linspace(*ends, points) for ends in _frame(bounds, values))
    factor = np.linalg.qr(_sampled(spectrum), mode="r")
    matrix = factor @ np.diag(values) @ np.linalg.inv(factor)
    unit = np.eye(len(values))
    distances = np.array([
        [np.linalg.svd((x + 1j * y) * unit - matrix, compute_uv=False)[-1] for x in real] for y in imaginary
    ])  # fmt: skip
    condition = float(np.linalg.cond(factor / np.linalg.norm(factor, axis=0)))
    return Pseudospectrum(real, imaginary, distances, values, condition, spectrum.title)


def _frame(bounds: Any, values: Array) -> list[tuple[float, float]]:
    if bounds is None:
        width = max(float(np.ptp(values.real)), float(np.ptp(values.imag)), 1e-300)
        return [(float(part.min()) - width / 5, float(part.max()) + width / 5) for part in (values.real, values.imag)]
    try:
        (a, b), (c, d) = bounds
    except (TypeError, ValueError):
        reject("bounds", bounds, "two pairs: ends of the real parts and of the imaginary parts")
    finite = all(is_real(one) and np.isfinite(one) for one in (a, b, c, d))
    require(finite and a < b and c < d, "bounds", bounds, "two pairs of finite numbers in rising order")
    return [(float(a), float(b)), (float(c), float(d))]


def _sampled(spectrum: Spectrum) -> Array:
    """The modes (M fields, K) at points, with the roots of their weights: inner products are sums of products."""
    domain = spectrum.stated.domain
    if is_box(domain):
        nodes, shares = np.polynomial.legendre.leggauss(NORM_NODES[domain.dim - 1])
        ends = np.asarray(domain.bounds, dtype=float)
        axes = [low + 0.5 * (high - low) * (nodes + 1) for low, high in ends]
        points = combinations(axes)
        weights = np.prod(combinations([0.5 * (high - low) * shares for low, high in ends]), axis=1)
    else:
        points = domain.sample(NORM_NODES[1] ** 2, rng=0)  # as many as on a square
        weights = np.full(len(points), domain.measure / len(points))
    columns = [np.asarray(mode(points)).reshape(len(points), -1) * np.sqrt(weights)[:, None] for mode in spectrum]
    return np.stack([column.ravel() for column in columns], axis=1)
