"""Features that adapt themselves to data: ``fit("adaptive", points, values, width=…)``.

Adaptive iterations as in the method of lines: fit, measure the local length scale ℓ of the fitted function
(``network.adapted.inverse_length``, in coordinates scaled to [-1, 1]), sample the next features from the law adapted to
ℓ, and keep the iteration that predicts held-out points best. It pays where a function has layers; in many dimensions
samples are too sparse to find them, and the first iteration is what remains.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array, Rng, row_blocks
from rannpde.errors import require
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.network.activations import as_activation
from rannpde.network.adapted import Adapted, inverse_length
from rannpde.network.features import RandomFeatures

PASSES = 4
"""Fit, measure ℓ, draw anew: after four times the lengths hardly change."""
FEWEST_POINTS = 20
"""Fewer leave no length to measure."""
LENGTH_SCALE_POINTS = 3000
"""Data points at which the length is measured."""
FIRST_LENGTH = 0.5
"""ℓ of the first iteration everywhere: that of a constant field on [-1, 1]."""
COMPARED_SHARE = 0.1
"""Share of the points by which iterations are compared."""
PIVOT_CUTOFF = 1e-12
"""Pivots of the factorisation below this share of the largest one are left out."""


def adaptive_features(
    points: Array, values: Array, width: int, *, weights: Array | None = None, rng: Rng = None
) -> RandomFeatures:
    """tanh features for data (M, dim), (M,) or (M, outputs): the draw of the best of a few iterations.

    weights (M,) ≥ 0 of the squared errors, 1 by default; a point of weight 0 does not matter at all.
    """
    targets = values[:, None] if values.ndim == 1 else values
    weights = np.ones(len(points)) if weights is None else weights
    points, targets, weights = (array[weights > 0] for array in (points, targets, weights))
    expected = f"{FEWEST_POINTS} or more, of which some are held out"
    require(len(points) >= FEWEST_POINTS, "points with rows", len(points), expected)
    # so that squares of very small and very large values stay in the range of floating-point numbers
    targets = targets / (np.abs(targets).max() or 1.0)
    rng = np.random.default_rng(rng)
    lower, upper = points.min(axis=0), points.max(axis=0)
    centre, halfwidth = 0.5 * (lower + upper), np.where(upper > lower, 0.5 * (upper - lower), 1.0)
    held, train = np.split(rng.permutation(len(points)), [max(1, int(COMPARED_SHARE * len(points)))])
    samples = points[rng.permutation(train)[:LENGTH_SCALE_POINTS]]
    lengths = np.full(len(samples), FIRST_LENGTH)
    trials: list[tuple[float, RandomFeatures]] = []
    for _ in range(PASSES):
        law = Adapted.to_lengths((samples - centre) / halfwidth, lengths)
        own, biases = law.sample(width, points.shape[1], rng=rng)
        features = RandomFeatures(own, biases, as_activation("tanh"), centre, halfwidth, True)
        coefficients = _fit(features, points[train], targets[train], weights[train])
        misfit = (features(points[held]) @ coefficients - targets[held]) * np.sqrt(weights[held, None])
        trials.append((float(np.linalg.norm(misfit)), features))
        lengths = _lengths(features, coefficients, samples)
    return min(trials, key=lambda trial: trial[0])[1]


def _fit(features: RandomFeatures, points: Array, targets: Array, weights: Array) -> Array:
    """Output weights (columns, outputs) by truncated least squares."""
    equations = OrthogonalEquations(features.columns, targets.shape[1], True)
    for block in row_blocks(len(points), max(4 * features.columns, 4096)):
        equations.add(features.ridge(points[block], 0), targets[block], weights[block])
    return equations.solve(0.0, PIVOT_CUTOFF).coefficients


def _lengths(features: RandomFeatures, coefficients: Array, samples: Array) -> Array:
    """ℓ (G,) in scaled coordinates, the shortest over the outputs."""
    axes = np.eye(features.dim, dtype=int)

    def size(indices: list[Array]) -> Array:
        """Root of the sum of the squared derivatives of those multi-indices, all of one order, (G, outputs)."""
        ridge = features.ridge(samples, int(indices[0].sum()))  # the costly part, which they share
        scaled = [features.factor(tuple(index)) * np.prod(features.halfwidth**index) for index in indices]
        parts = [ridge @ (factor[:, None] * coefficients) for factor in scaled]
        return np.sqrt(np.square(parts).sum(axis=0))

    values: Array = features(samples) @ coefficients
    fields = zip(values.T, size(list(axes)).T, size([a + b for a in axes for b in axes]).T, strict=True)
    rates = [inverse_length(u[:, None], slope[:, None], bend[:, None], 2.0) for u, slope, bend in fields]
    rate: Array = np.max(rates, axis=0)
    return 1.0 / rate
