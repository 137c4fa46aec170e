"""Features that adapt themselves to data: ``fit("adaptive", points, values, width=…)``.

Passes as in the method of lines: fit, measure the length ℓ of the fitted function place by place,

    1/ℓ(x) = √( 1 + |∇u|²/U² ) + √( |∇²u|/U )        (coordinates scaled to [-1, 1], U half the range of u),

draw the next features by the adapted law of ℓ, and keep the pass that predicts held-out points best. It pays where a
function has layers; in many dimensions centres are too sparse to find them, and the first pass is what remains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rannpde.errors import finite_points, positive_integer, require
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.network.activations import as_activation
from rannpde.network.adapted import Adapted
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import Rng
from rannpde.network.network import row_blocks

Array = np.ndarray

PASSES = 4
MOST_PLACES = 3000
"""Data points at which the length is measured."""
HELD_OUT = 0.1
CUTOFF = 1e-12


def adaptive_features(points: Array, values: Array, width: int, rng: Rng = None) -> RandomFeatures:
    """tanh features for data (M, dim), (M,) or (M, outputs): the draw of the best of a few passes."""
    points = finite_points("points", points, None)
    targets = np.asarray(values, dtype=float).reshape(len(points), -1)
    width = positive_integer("width", width)
    require(len(points) >= 20, "points with rows", len(points), "20 or more, of which some are held out")
    rng = np.random.default_rng(rng)
    lower, upper = points.min(axis=0), points.max(axis=0)
    centre, halfwidth = 0.5 * (lower + upper), np.where(upper > lower, 0.5 * (upper - lower), 1.0)
    order = rng.permutation(len(points))
    held, train = np.split(order, [max(1, int(HELD_OUT * len(points)))])
    places = points[rng.permutation(train)[:MOST_PLACES]]
    lengths = np.full(len(places), 0.5)
    best, least = None, np.inf
    for _ in range(PASSES):
        law = Adapted.to_lengths((places - centre) / halfwidth, lengths)
        weights, biases = law.sample(rng, width, points.shape[1])
        features = RandomFeatures(weights, biases, as_activation("tanh"), centre, halfwidth, True)
        coefficients = _fit(features, points[train], targets[train])
        error = float(np.linalg.norm(features(points[held]) @ coefficients - targets[held]))
        if error < least or best is None:
            best, least = features, error
        lengths = _lengths(features, coefficients, places, halfwidth)
    assert best is not None
    return best


def _fit(features: RandomFeatures, points: Array, targets: Array) -> Array:
    """Output weights (columns, outputs) by truncated least squares."""
    equations = OrthogonalEquations(features.columns, targets.shape[1], True)
    for block in row_blocks(len(points), max(4 * features.columns, 4096)):
        equations.add(features.ridge(points[block], 0), targets[block], None)
    return equations.solve(0.0, CUTOFF).coefficients


def _lengths(features: RandomFeatures, coefficients: Array, places: Array, halfwidth: Array) -> Array:
    """ℓ (G,), the shortest over the outputs."""
    values = features(places) @ coefficients
    span = np.maximum(0.5 * np.ptp(values, axis=0), 1e-300)
    slopes: Any = 0.0
    bends: Any = 0.0
    units = np.eye(features.dim, dtype=int)
    for i in range(features.dim):
        slopes = slopes + (features(places, units[i]) @ coefficients * halfwidth[i] / span) ** 2
        for j in range(features.dim):
            bend = features(places, units[i] + units[j]) @ coefficients * (halfwidth[i] * halfwidth[j])
            bends = bends + (bend / span) ** 2
    return 1.0 / (np.sqrt(1.0 + slopes) + bends**0.25).max(axis=1)
