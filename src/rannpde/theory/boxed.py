"""Functions given by values on a box: multiplied by a smooth cut-off, sampled, and transformed by NUFFT.

Step 1 of the proof of Theorem 1 extends u by ũ = η(t) χ(x) u with cut-offs that are 1 on the inner box. Here the values
are known a margin beyond it, where the cut-off falls to 0, or are continued there by Hestenes' reflection. ũ is
sampled on a uniform grid, on which the trapezoidal
rule is spectrally accurate for smooth functions of compact support, and û is summed by NUFFT at any frequency.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi

import finufft
import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Domain
from rannpde.errors import InputError, finite_array, positive_integer, require
from rannpde.theory.extension import Reflection, smooth_step
from rannpde.theory.fourier_target import GRID_DIMENSIONS, FourierTarget

CHEBYSHEV_DEGREE = 200
"""Degree of the polynomial whose coefficients show whether a cut-off is smooth or has a kink (1/degree² for a kink)."""
SMOOTH_TAIL = 1e-8
"""Chebyshev coefficients of a smooth cut-off fall below this share of the largest by degree 200 (measured: 1e-13)."""


def box_target(
    values: Callable[[Array], Array] | Array,
    domain: Domain,
    *,
    margin: float | None = None,
    reflection: Reflection | None = None,
    count: int = 96,
    cutoff: Callable[[Array], Array] = smooth_step,
    smoothness: tuple[float, float] = (inf, inf),
) -> FourierTarget:
    """The target ũ that equals ``values`` on the domain's box and is cut off smoothly within ``margin`` outside it.

    values : points (M, n) → (M,), defined on the box enlarged by the margin on every side; or an array of shape
        (count, …, count) with the values at the centres of that many equal cells of the enlarged box
    reflection : in place of a margin, when values are known on the domain alone (a function, not an array): then the
        target has the smoothness of the reflection, ``order`` + 1 derivatives, unless it is given
    count : samples along each axis of the enlarged box; frequencies above π·count/length are lost
    cutoff : x ↦ 1 at x ≤ 0 down to 0 at x ≥ 1, smooth; a step that is not is refused

    >>> from rannpde.domains import Box
    >>> u = box_target(lambda z: np.cos(z[:, 0] * z[:, 1]), Box([(-1, 1)] * 2), margin=1.5)
    >>> bool(abs(u(np.array([[0.5, 0.5]]))[0] - np.cos(0.25)) < 1e-6)
    True
    """
    bounds, count = np.asarray(domain.bounds, dtype=float), positive_integer("count", count)
    few = len(bounds) <= GRID_DIMENSIONS
    require(few, "dimension of the domain", len(bounds), f"at most {GRID_DIMENSIONS}", "the samples fill a grid")
    require((margin is None) != (reflection is None), "margin", margin, "given, or else reflection, but not both")
    if reflection is not None:
        require(callable(values), "values", type(values).__name__, "a function with reflection, which asks for values")
        beyond = reflection.margin * 0.5 * np.diff(bounds, axis=1)[:, 0]
        if smoothness == (inf, inf):
            smoothness = (reflection.order + 1.0, reflection.order + 1.0)
    else:
        assert margin is not None
        require(0 < margin < inf, "margin", margin, "> 0", "a cut-off without margin is a jump, and not smooth")
        check_cutoff(cutoff)
        beyond = np.full(len(bounds), float(margin))
    lower, upper = bounds[:, 0] - beyond, bounds[:, 1] + beyond
    axes = [a + (e - a) * (np.arange(count) + 0.5) / count for a, e in zip(lower, upper, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(bounds))
    if reflection is not None and callable(values):
        samples = reflection.extend(values, domain)(grid)
    else:
        outside = np.maximum(np.maximum(bounds[:, 0] - grid, grid - bounds[:, 1]), 0.0) / beyond
        samples = _values(values, grid, count) * np.prod([cutoff(column) for column in outside.T], axis=0)
    spacing = (upper - lower) / count
    nyquist = float((pi / spacing).min())
    _check_resolution(samples.reshape((count,) * len(bounds)), count)
    centre = 0.5 * (lower + upper)
    radius = float(np.linalg.norm(0.5 * (upper - lower)))
    transform = _sampled_transform(samples.reshape((count,) * len(bounds)), spacing, centre, nyquist)
    return FourierTarget(len(bounds), transform, nyquist, radius, centre, smoothness)


def _values(values: Callable[[Array], Array] | Array, grid: Array, count: int) -> Array:
    if callable(values):
        return finite_array("values", values(grid), 1)
    shape = (count,) * grid.shape[1]
    array = finite_array("values", values, len(shape))
    require(array.shape == shape, "values with shape", array.shape, f"of shape {shape}", "or give count=…")
    return array.ravel()


def check_cutoff(cutoff: Callable[[Array], Array]) -> None:
    """Refuse a cut-off that is not 1 up to x = 0, not 0 from x = 1, or not smooth across them."""
    ends = finite_array("values of cutoff", cutoff(np.array([-0.5, 0.0, 1.0, 1.5])), 1)
    require(bool(np.allclose(ends, [1, 1, 0, 0], atol=1e-12)), "cutoff at -0.5, 0, 1, 1.5", ends.tolist(), "1, 1, 0, 0")
    # the coefficients on an interval across both ends expose a jump in any derivative of low order
    x = np.cos(pi * (np.arange(1024) + 0.5) / 1024)
    coefficients = np.abs(np.polynomial.chebyshev.chebfit(x, cutoff(0.5 + x), CHEBYSHEV_DEGREE))
    tail = coefficients[-20:].max() / coefficients.max()
    if tail > SMOOTH_TAIL:
        raise InputError(
            f"cutoff is not smooth: its Chebyshev coefficients of degree {CHEBYSHEV_DEGREE} are still {tail:.0e} of "
            f"the largest, but must be below {SMOOTH_TAIL:.0e}; use smooth_step, whose derivatives vanish at both ends"
        )


def _check_resolution(samples: Array, count: int) -> None:
    spectrum = np.abs(np.fft.fftn(samples))
    for axis in range(samples.ndim):
        line = spectrum.max(axis=tuple(k for k in range(samples.ndim) if k != axis))
        tail = line[count // 2 - 2 : count // 2 + 2].max() / max(line.max(), 1e-300)
        remedy = "take more samples, a wider margin, or a smoother function"
        require(tail < 1e-3, "count", count, f"large enough for axis {axis} (spectrum ends at {tail:.0e})", remedy)


def _sampled_transform(samples: Array, spacing: Array, centre: Array, nyquist: float) -> Callable[[Array], Array]:
    """ξ ↦ Σ_j ũ(z_j) e^(-iξ·z_j) Π spacing, zero beyond the Nyquist frequency."""
    modes = np.ascontiguousarray(samples, dtype=complex) * np.prod(spacing)
    evaluate = {1: finufft.nufft1d2, 2: finufft.nufft2d2, 3: finufft.nufft3d2}[samples.ndim]
    # type 2 sums over j = -count/2, …; the half-step offset of cell centres goes into the phase
    offset = 0.5 * spacing * (1 - samples.shape[0] % 2)

    def transform(frequencies: Array) -> Array:
        inside = np.linalg.norm(frequencies, axis=1) <= nyquist
        resolved = frequencies[inside]
        result = np.zeros(len(frequencies), dtype=complex)
        scaled = [np.ascontiguousarray(column) for column in (resolved * spacing).T]
        result[inside] = evaluate(*scaled, modes, eps=1e-12, isign=-1) * np.exp(-1j * (resolved @ (centre + offset)))
        return result

    return transform
