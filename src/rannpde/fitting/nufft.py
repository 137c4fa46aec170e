"""Normal equations of Fourier features in near-linear time, in up to three input dimensions.

Products of cosines are sums of cosines: with z_i = w_i·x + b_i,

    Σ_m e^{i(z_i ± z_j)} = e^{i(b_i ± b_j)} Σ_m e^{i(w_i ± w_j)·x_m},

so every entry of the Gram matrix is one value of a type-3 non-uniform FFT of the points at the frequencies w_i ± w_j,
and the right-hand side is another with the values as strengths at w_i. The cost is M + N² instead of M N².
"""

from __future__ import annotations

from math import isqrt, log2, pi, prod

import finufft
import numpy as np

from rannpde.arrays import Array
from rannpde.network.features import FourierFeatures
from rannpde.threads import openmp_threads

NUFFT_TOLERANCE = 3e-13
"""Relative accuracy asked of the transform: about the rounding of a sum over a million points."""

LARGEST_DIM = 3
"""Dimensions that the transform has."""
_TARGETS = 2**21
"""Frequencies that a transform takes at once: bounds the memory, 2^21 targets need about 150 MB in three dimensions."""

# Seconds, empirical, two cores with AVX-512; only their ratios matter for the choice of the solver.
_DENSE_SECONDS_PER_FLOP = 1.0e-11
_FEATURE_SECONDS = 2.5e-9
_SPREAD_SECONDS = {1: 2.5e-8, 2: 1.2e-7, 3: 1.2e-6}
_GRID_SECONDS = 4.0e-9


def prefers_nufft(features: FourierFeatures, points: Array, outputs: int) -> bool:
    """Whether the transform is expected to beat the dense sums on these points."""
    if features.dim > LARGEST_DIM:
        return False
    rows, columns, width = len(points), features.columns, features.width
    dense = rows * (columns**2 * _DENSE_SECONDS_PER_FLOP + width * _FEATURE_SECONDS)
    targets = (width + 1) ** 2
    passes = 1 + targets // _TARGETS
    grid = _grid_size(features, points)
    fast = _SPREAD_SECONDS[features.dim] * (rows * (passes + (outputs + 1) // 2) + targets)
    fast += _GRID_SECONDS * grid * log2(grid + 2) * (passes + (outputs + 1) // 2)
    return fast < dense and grid * 16 < 2**31


def _grid_size(features: FourierFeatures, points: Array) -> float:
    """Points of the grid inside a type-3 transform: (4/π) · half-width in space · half-width in frequency."""
    space = 0.5 * np.ptp(points, axis=0) / features.halfwidth
    frequency = 2.0 * np.abs(features.weights).max(axis=1)
    return prod(float(4.0 / pi * a * b) + 40.0 for a, b in zip(space, frequency, strict=True))


def normal_sums(
    features: FourierFeatures,
    points: Array,
    values: Array,
    weights: Array | None = None,
    only_moment: bool = False,
) -> tuple[Array, Array]:
    """Lower triangle of Σ φφᵀ (columns, columns), upper triangle zero, and Σ φy (columns, outputs).

    points (M, n ≤ 3), values (M, outputs), weights (M,) of the rows; only_moment leaves the first of them empty
    """
    scaled = (points - features.centre) / features.halfwidth
    middle = scaled.mean(axis=0)  # the transform is cheapest around the origin; the phases absorb the shift
    axes = [np.ascontiguousarray(column) for column in (scaled - middle).T]
    # a zero frequency with phase zero is the constant column: cos(0) = 1
    frequencies = np.concatenate([features.weights, np.zeros((features.dim, 1))], axis=1)
    phases = np.append(features.phases + middle @ features.weights, 0.0)
    ones = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=float)
    gram = np.zeros((0, 0)) if only_moment else _gram(features, axes, frequencies, phases, ones)
    sums = _real_sums(axes, (values * ones[:, None]).T, frequencies) * np.exp(1j * phases)
    width, root = features.width, np.sqrt(features.width)
    moment = np.concatenate([sums.real[:, :width] / root, sums.imag[:, :width] / root, sums.real[:, width:]], axis=1)
    return gram, moment[:, : features.columns].T


def _gram(features: FourierFeatures, axes: list[Array], frequencies: Array, phases: Array, ones: Array) -> Array:
    width, columns = features.width, features.columns
    gram = np.zeros((columns, columns), order="F")
    strengths = ones.astype(complex)
    rows = width + features.constant
    norm = np.append(np.full(width, width**-0.5), 1.0)
    start = 0
    while start < rows:
        stop = min(rows, max(start + 1, isqrt(start**2 + _TARGETS)))  # rows start … stop have stop² - start² targets
        i, j = _lower_pairs(start, stop)
        targets = np.concatenate([frequencies[:, i] - frequencies[:, j], frequencies[:, i] + frequencies[:, j]], axis=1)
        sums = _transform(axes, strengths, targets)
        scale = 0.5 * norm[i] * norm[j]
        difference = sums[: len(i)] * np.exp(1j * (phases[i] - phases[j])) * scale
        total = sums[len(i) :] * np.exp(1j * (phases[i] + phases[j])) * scale
        _scatter(gram, width, i, j, difference, total)
        start = stop
    return gram


def _scatter(gram: Array, width: int, i: Array, j: Array, difference: Array, total: Array) -> None:
    """Write cos·cos, sin·sin and both mixed products of the pairs i ≥ j into the lower triangle.

    Column i < width is cos_i, column width + i is sin_i, and index i = width is the constant, the last column.
    """
    constant = i == width
    row = np.where(constant, 2 * width, i)
    column = np.where(j == width, 2 * width, j)
    gram[row, column] = difference.real + total.real
    inner = ~constant
    a, b, minus, plus = i[inner], j[inner], difference[inner], total[inner]
    gram[width + a, width + b] = minus.real - plus.real
    gram[width + a, b] = plus.imag + minus.imag  # sin_a cos_b
    gram[width + b, a] = plus.imag - minus.imag  # cos_a sin_b
    edge = constant & (j < width)
    gram[row[edge], width + j[edge]] = total[edge].imag - difference[edge].imag  # 1 · sin_j


def _lower_pairs(start: int, stop: int) -> tuple[Array, Array]:
    """Index pairs i ≥ j with start ≤ i < stop."""
    lengths = np.arange(start, stop) + 1
    i = np.repeat(np.arange(start, stop), lengths)
    j = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return i, j


def _real_sums(axes: list[Array], strengths: Array, targets: Array) -> Array:
    """_transform for real strengths (outputs, M), two at a time: y₁ + i y₂ at ± targets gives both sums.

    S₁ + i S₂ = F(ω) and S₁ - i S₂ = conj F(-ω), so that half as many points are spread for a few more targets.
    """
    pairs = np.zeros(((len(strengths) + 1) // 2, strengths.shape[1]), dtype=complex)
    pairs.real, pairs.imag[: len(strengths) // 2] = strengths[0::2], strengths[1::2]
    count = targets.shape[1]
    both = _transform(axes, pairs, np.concatenate([targets, -targets], axis=1)).reshape(len(pairs), -1)
    plus, minus = both[:, :count], both[:, count:].conj()
    sums = np.empty((2 * len(pairs), count), dtype=complex)
    sums[0::2], sums[1::2] = 0.5 * (plus + minus), -0.5j * (plus - minus)
    return sums[: len(strengths)]


def _transform(axes: list[Array], strengths: Array, targets: Array) -> Array:
    """Σ_m strengths_m e^{i targets·x_m} at every column of targets."""
    call = (finufft.nufft1d3, finufft.nufft2d3, finufft.nufft3d3)[len(axes) - 1]
    columns = (np.ascontiguousarray(t) for t in targets)
    sums: Array = call(*axes, strengths, *columns, eps=NUFFT_TOLERANCE, isign=1, nthreads=openmp_threads())
    return sums
