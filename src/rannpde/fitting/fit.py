"""fit(): output weights in closed form, by the cheapest way that keeps the wanted digits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from rannpde.errors import InputError, choose, reject, require
from rannpde.fitting.adaptive import adaptive_features
from rannpde.fitting.data import Data
from rannpde.fitting.normal import NormalEquations, NotPositiveDefinite
from rannpde.fitting.nufft import LARGEST_DIM, normal_sums, prefers_nufft
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.fitting.path import LinearFit, check_penalty
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import Rng
from rannpde.network.network import Network, block_rows, row_blocks

Array = np.ndarray
Method = Literal["auto", "dense", "nufft", "orthogonal"]


def fit(
    features: RandomFeatures | FourierFeatures | Literal["adaptive"],
    points: Array | Iterable[tuple[Array, Array]],
    values: Array | None = None,
    *,
    penalty: float | Literal["gcv"] = 1e-5,
    method: Method = "auto",
    cutoff: float | None = None,
    weights: Array | None = None,
    width: int = 300,
    rng: Rng = 0,
) -> Network:
    """Fit u(z_i) ≈ y_i: minimise (1/M) Σ |u(z_i) - y_i|² + penalty · ‖W‖² over the output weights W.

    points (M, dim) and values (M,) or (M, outputs); or, as ``points`` alone, an iterable of such (points, values)
    pairs that is read once and never held in memory. The constant column, where there is one, has no penalty.

    penalty : ridge λ ≥ 0, or "gcv" to choose it by generalised cross-validation; 0 asks for plain least squares
    method : "dense" (blocks of features into dsyrk), "nufft" (Fourier features in ≤ 3 dimensions), "orthogonal" (QR and
        truncated SVD, for many digits), or "auto": orthogonal for penalty 0 or when a cutoff is given, else the cheaper
        of the others
    cutoff : relative singular-value cut of the orthogonal method with penalty 0
    weights : (M,) weights ≥ 0 of the squared errors, 1 by default; with arrays only
    width, rng : of features="adaptive" only, which draws them where the data vary (see ``fitting.adaptive``)

    The result is a Network whose ``about`` tells path, points, columns, rank, condition, penalty, training_error
    (relative, root mean square), outside (share of points outside the box of scaled features) and seconds.

    >>> features = FourierFeatures.sample(width=20, dim=1, scale=3.0, rng=0)
    >>> x = np.linspace(0, 1, 200)
    >>> network = fit(features, x, np.exp(x), penalty=1e-10)
    >>> bool(np.abs(network(x) - np.exp(x)).max() < 1e-3)
    True
    """
    started = time.perf_counter()
    if isinstance(features, str):
        choose("features", features, {"adaptive": None})
        require(values is not None, "values", values, "given, as an array, with features='adaptive'")
        features = adaptive_features(np.asarray(points), np.asarray(values), width, rng)
    _check_options(features, penalty, method, cutoff)
    data = Data(features, points, values, weights)
    orthogonal = method == "orthogonal" or (method == "auto" and (penalty == 0 or cutoff is not None))
    if orthogonal:
        path, result = "orthogonal", _solve_orthogonal(features, data, penalty, cutoff)
    else:
        path, result = _solve_normal(features, data, penalty, method)
    about = {
        "path": path,
        "points": data.rows,
        "columns": features.columns,
        "rank": result.rank,
        "condition": result.condition,
        "penalty": result.penalty,
        "training_error": result.training_error,
        "outside": data.outside / data.rows,
        "seconds": time.perf_counter() - started,
    }
    return Network(features, result.coefficients[:, 0] if data.scalar else result.coefficients, about)


def _solve_orthogonal(features: Any, data: Data, penalty: float | str, cutoff: float | None) -> LinearFit:
    equations = None
    rows = max(4 * features.columns, 4096)
    for points, values, weights in data:
        equations = equations or OrthogonalEquations(features.columns, values.shape[1], features.constant)
        for block in row_blocks(len(points), rows):
            design = features.ridge(points[block], 0)
            equations.add(design, values[block], None if weights is None else weights[block])
    equations = _filled(equations)
    if penalty == "gcv":
        return equations.path().best()
    return equations.solve(float(penalty), cutoff)


def _solve_normal(features: Any, data: Data, penalty: float | str, method: Method) -> tuple[str, LinearFit]:
    equations, path = None, ""
    for points, values, weights in data:
        equations = equations or NormalEquations(features.columns, values.shape[1], features.constant)
        path = path or _normal_path(features, points, values, method)
        if path == "nufft":
            gram, moment = normal_sums(features, points, values, weights)
            scale = 1.0 if weights is None else weights[:, None]
            count = len(points) if weights is None else weights.sum()
            equations.add_sums(gram, moment, (scale * np.square(values)).sum(axis=0), float(count))
        else:
            add_dense(equations, features, points, values, weights)
    equations = _filled(equations)
    if penalty == "gcv":
        return path, equations.path().best()
    if data.rows < features.columns and penalty == 0:
        raise InputError(
            f"points has {data.rows} rows for {features.columns} columns, too few with penalty 0; "
            "give more points, a smaller width or a penalty > 0"
        )
    try:
        return path, equations.solve(float(penalty))
    except NotPositiveDefinite:
        if method != "auto" or not data.repeatable:
            raise
    return "orthogonal", _solve_orthogonal(features, data, penalty, None)


def add_dense(equations: NormalEquations, features: Any, points: Array, values: Array, weights: Array | None) -> None:
    """Add points to the normal equations through blocks of the design matrix."""
    rows = min(block_rows(features.columns), len(points))
    buffer = np.empty((rows, features.columns))
    for block in row_blocks(len(points), rows):
        design = features.ridge(points[block], 0, buffer[: block.stop - block.start])
        equations.add(design, values[block], None if weights is None else weights[block])


def _normal_path(features: Any, points: Array, values: Array, method: Method) -> str:
    if method != "auto":
        return method
    fast = isinstance(features, FourierFeatures) and prefers_nufft(features, points, values.shape[1])
    return "nufft" if fast else "dense"


def _filled(equations: Any) -> Any:
    if equations is None:
        raise InputError("points is empty; give at least one point")
    return equations


def _check_options(features: Any, penalty: Any, method: str, cutoff: float | None) -> None:
    choose("method", method, dict.fromkeys(("auto", "dense", "nufft", "orthogonal")))
    if penalty != "gcv":
        check_penalty(penalty)
    if cutoff is not None:
        require(0 < cutoff < 1, "cutoff", cutoff, "a number in (0, 1)")
        require(penalty == 0, "cutoff", cutoff, "left out when there is a penalty", "pass penalty=0 with a cutoff")
        require(method in ("auto", "orthogonal"), "cutoff", cutoff, f"left out with method {method!r}")
    if method == "nufft" and not (isinstance(features, FourierFeatures) and features.dim <= LARGEST_DIM):
        reject(
            "method", method, f"'dense' or 'orthogonal' unless the features are Fourier in ≤ {LARGEST_DIM} dimensions"
        )
