"""fit(): output weights in closed form, by the cheapest way that keeps the wanted digits.

Samples come as arrays, as a stream of blocks, or as Dask's arrays on many machines; what they add up to is a ``Part``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from math import frexp, ldexp
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rannpde.arrays import Array, Rng, is_lazy, row_blocks
from rannpde.errors import InputError, choose, finite_array, finite_points, is_real, positive_integer, reject, require
from rannpde.fitting.adaptive import adaptive_features
from rannpde.fitting.mixed import FEWEST_COLUMNS, fit_mixed, worthwhile
from rannpde.fitting.normal import NormalEquations, NotPositiveDefinite, add_dense
from rannpde.fitting.nufft import LARGEST_DIM, normal_sums, prefers_nufft
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.fitting.path import Fitted, LinearFit, check_penalty
from rannpde.fitting.sobolev import DerivativeData, Derivatives, add_derivatives, checked_derivatives
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.network import Network

if TYPE_CHECKING:
    from rannpde.cluster import Blocks

RandomLayer = RandomFeatures | FourierFeatures
FitMethod = Literal["auto", "dense", "nufft", "orthogonal"]
Penalty = float | Literal["gcv", "folds"]
FitEquations = NormalEquations | OrthogonalEquations
Chunk = tuple[Array, Array, Array | None]

CHUNK_ROWS = 2**20
"""Rows gathered before they are reduced: whatever blocks the caller streams, the sums are formed over these."""
ADAPTIVE_WIDTH = 300
"""Neurons of adaptive features when no width is given."""


def fit(
    features: RandomLayer | Literal["adaptive"],
    points: Array | Iterable[tuple[Array, Array]],
    values: Array | None = None,
    *,
    penalty: Penalty = 1e-5,
    method: FitMethod = "auto",
    cutoff: float | None = None,
    weights: Array | None = None,
    derivatives: Derivatives | None = None,
    folds: int | None = None,
    width: int | None = None,
    rng: Rng = None,
    progress: Callable[[Blocks], None] | None = None,
) -> Network:
    """Fit u(z_i) ≈ y_i: minimise (1/M) Σ |u(z_i) - y_i|² + penalty · ‖W‖² over the output weights W.

    points (M, dim) and values (M,) or (M, outputs); or, as ``points`` alone, an iterable of such (points, values)
    pairs that is read once and never held in memory. The constant column, where there is one, has no penalty.
    With Dask all of these may be its arrays, in any chunks of rows, or lists of delayed blocks (docs/scaling.md).

    penalty : ridge λ ≥ 0, or "gcv" to choose it by generalised cross-validation, or "folds" by ordinary
        cross-validation; 0 asks for plain least squares
    method : "dense" (blocks of features into dsyrk), "nufft" (Fourier features in ≤ 3 dimensions), "orthogonal" (QR and
        truncated SVD, for many digits), or "auto": orthogonal for penalty 0 or when a cutoff is given, else the cheaper
        of the others; for thousands of columns the dense sums in single precision, refined to double (``mixed``)
    cutoff : relative singular-value cut of the orthogonal method with penalty 0
    weights : (M,) weights ≥ 0 of the squared errors, 1 by default; not with a stream
    derivatives : {multi-index: values of that derivative, or (values, weight)} at the same points, whose squared errors
        are added with weight 1 or the one given: a fit in a Sobolev norm (``fitting.sobolev``); arrays only
    folds : of penalty "folds" only, 5 by default: row i of an array, or block i of Dask's, is in fold i modulo folds
    width, rng : of features="adaptive" only, which draws them where the data vary (see ``fitting.adaptive``); 300
        neurons and fresh random numbers unless given
    progress : of Dask's data only: called with ``Blocks`` (done, total, seconds); None shows a bar on a terminal

    A setting that the call has no use for is refused. The result is a Network whose ``about`` states solver, points,
    columns, rank, condition, penalty, training_error (relative, root mean square), outside (share of points outside the
    box of scaled features), seconds, and with folds validation_error.

    >>> features = FourierFeatures.sample(width=20, dim=1, scale=3.0, rng=0)
    >>> x = np.linspace(0, 1, 200)
    >>> network = fit(features, x, np.exp(x), penalty=1e-10)
    >>> bool(np.abs(network(x) - np.exp(x)).max() < 1e-3)
    True
    """
    started = time.perf_counter()
    _check_options(features, penalty, method, cutoff, folds)
    if isinstance(features, str):
        features = _draw(features, points, values, weights, width, rng)
    else:
        for name, value in (("width", width), ("rng", rng)):
            require(value is None, name, value, "left out unless features is 'adaptive'", "the features are drawn")
    if method == "auto" and (penalty == 0 or cutoff is not None):
        method = "orthogonal"
    if is_lazy(points) or is_lazy(values):
        from rannpde.fitting.distributed import fit_blocks  # Dask's way is loaded when it is wanted

        require(
            derivatives is None, "derivatives", "given", "left out with Dask's data", "sum the parts on one machine"
        )
        fitted = fit_blocks(features, points, values, weights, penalty, method, cutoff, folds, progress)
    else:
        require(progress is None, "progress", progress, "left out unless the data are Dask's")
        samples = Samples(features, points, values, weights)
        data = None
        if derivatives is not None:
            require(samples.repeatable, "derivatives", "given", "left out with a stream of blocks", "pass arrays")
            require(penalty != "folds", "penalty", penalty, "a number or 'gcv' with derivatives")
            data = checked_derivatives(derivatives, features.dim, np.asarray(values).shape)
        if penalty == "folds":
            from rannpde.fitting.folds import fit_folds

            fitted = fit_folds(features, samples, method, folds)
        else:
            fitted = _fitted(features, samples, penalty, method, cutoff, data)
    about = {
        "solver": fitted.solver,
        "points": fitted.rows,
        "columns": features.columns,
        "rank": fitted.result.rank,
        "condition": fitted.result.condition,
        "penalty": fitted.result.penalty,
        "training_error": fitted.result.training_error,
        "outside": fitted.outside / fitted.rows,
        "seconds": time.perf_counter() - started,
    }
    if fitted.validation_error is not None:
        about["validation_error"] = fitted.validation_error
    return Network(features, fitted.coefficients, about)


def _draw(name: str, points: Any, values: Any, weights: Any, width: int | None, rng: Rng) -> RandomFeatures:
    """The features of that name for these samples."""
    choose("features", name, {"adaptive": None})
    require(values is not None, "values", values, "given, as an array, with features='adaptive'")
    remedy = "draw them from some of the rows, then fit: adaptive_features(…)"
    require(not is_lazy(points), "features", name, "drawn features with Dask's data", remedy)
    points, values = checked_pair(None, points, values)
    weights = checked_weights(weights, len(points))
    width = positive_integer("width", ADAPTIVE_WIDTH if width is None else width)
    return adaptive_features(points, values, width, weights=weights, rng=rng)


def _fitted(
    features: RandomLayer,
    samples: Samples,
    penalty: Any,
    method: FitMethod,
    cutoff: float | None,
    data: list[DerivativeData] | None,
) -> Fitted:
    """Sum the samples on this machine, and solve."""
    if data is None and method == "auto" and _in_two_precisions(features, samples, penalty):
        mixed = fit_mixed(features, samples, penalty)
        if mixed is not None:
            return Fitted(mixed, samples.unit, samples.rows, samples.outside, samples.scalar, "mixed")
    equations, solver = _all_sums(features, samples, method, data)
    try:
        result = solved_weights(equations, samples.rows, penalty, cutoff)
    except NotPositiveDefinite:
        if method != "auto" or not samples.repeatable:
            raise
        equations, solver = _all_sums(features, samples, "orthogonal", data)
        result = solved_weights(equations, samples.rows, penalty, cutoff)
    return Fitted(result, samples.unit, samples.rows, samples.outside, samples.scalar, solver)


def _all_sums(
    features: RandomLayer, samples: Samples, method: FitMethod, data: list[DerivativeData] | None
) -> tuple[FitEquations | None, str]:
    """The equations of the values and, where they are given, of the derivatives."""
    equations, solver = sums(features, samples, method)
    if data is not None and equations is not None:
        points, weights = samples.arrays
        shared = equations.gram if solver == "nufft" and isinstance(equations, NormalEquations) else None
        add_derivatives(equations, features, points, data, weights, samples.unit, shared)
    return equations, solver


def sums(features: RandomLayer, samples: Samples, method: FitMethod) -> tuple[FitEquations | None, str]:
    """The equations of all samples, None where there are none, and the solver that formed them."""
    equations: FitEquations | None = None
    solver = "" if method == "auto" else str(method)
    for points, values, weights in samples:
        solver = solver or _cheaper(features, points, values)
        if equations is None:
            kind = OrthogonalEquations if solver == "orthogonal" else NormalEquations
            equations = kind(features.columns, values.shape[1], features.constant)
        if isinstance(equations, OrthogonalEquations):
            for block in row_blocks(len(points), max(4 * features.columns, 4096)):
                design = features.ridge(points[block], 0)
                equations.add(design, values[block], None if weights is None else weights[block])
        elif solver == "nufft" and isinstance(features, FourierFeatures):
            gram, moment = normal_sums(features, points, values, weights)
            scale = 1.0 if weights is None else weights[:, None]
            count = len(points) if weights is None else weights.sum()
            equations.add_sums(gram, moment, (scale * np.square(values)).sum(axis=0), float(count))
        else:
            add_dense(equations, features, points, values, weights)
    return equations, solver


def solved_weights(
    equations: FitEquations | None, rows: int, penalty: float | Literal["gcv"], cutoff: float | None
) -> LinearFit:
    """The fit of equations over that many rows."""
    if equations is None:
        raise InputError("points is empty; give at least one point")
    if penalty == "gcv":
        return equations.path().best()
    if isinstance(equations, OrthogonalEquations):
        return equations.solve(penalty, cutoff)
    if rows < equations.columns and penalty == 0:
        raise InputError(
            f"points has {rows} rows for {equations.columns} columns, too few with penalty 0; "
            "give more points, a smaller width or a penalty > 0"
        )
    return equations.solve(penalty)


def _in_two_precisions(features: RandomLayer, samples: Samples, penalty: Any) -> bool:
    """Whether a fit may be summed in single precision and refined: arrays of many columns, a sufficient penalty."""
    if isinstance(penalty, str) or not samples.repeatable or features.columns < FEWEST_COLUMNS:
        return False
    points, values, _ = next(iter(samples))
    size = float(np.square(features.ridge(points[:64], 0)[:, : features.columns - features.constant]).sum(axis=1).max())
    return worthwhile(features.columns, penalty, size) and _cheaper(features, points, values) == "dense"


def _cheaper(features: RandomLayer, points: Array, values: Array) -> str:
    fast = isinstance(features, FourierFeatures) and prefers_nufft(features, points, values.shape[1])
    return "nufft" if fast else "dense"


def _check_options(features: Any, penalty: Any, method: str, cutoff: Any, folds: Any) -> None:
    layer = isinstance(features, str | RandomLayer)
    require(layer, "features", type(features).__name__, "RandomFeatures, FourierFeatures or 'adaptive'")
    choose("method", method, dict.fromkeys(("auto", "dense", "nufft", "orthogonal")))
    if not (isinstance(penalty, str) and penalty in ("gcv", "folds")):
        check_penalty(penalty)
    require(folds is None or penalty == "folds", "folds", folds, "left out unless penalty is 'folds'")
    if cutoff is not None:
        require(is_real(cutoff) and 0 < cutoff < 1, "cutoff", cutoff, "a number in (0, 1)")
        require(penalty == 0, "cutoff", cutoff, "left out when there is a penalty", "pass penalty=0 with a cutoff")
        require(method in ("auto", "orthogonal"), "cutoff", cutoff, f"left out with method {method!r}")
    if method == "nufft" and not (isinstance(features, FourierFeatures) and features.dim <= LARGEST_DIM):
        reject(
            "method", method, f"'dense' or 'orthogonal' unless the features are Fourier in ≤ {LARGEST_DIM} dimensions"
        )


# ------------------------------------------------------------------------------------------------------------- samples


class Samples:
    """Iterate to get (points (m, dim), values / unit (m, outputs), weights (m,) or None) with m ≤ CHUNK_ROWS.

    Arrays can be iterated again, a stream only once. ``rows``, ``outside`` and ``scalar`` (values came as one axis)
    describe what the last pass has seen; ``outside`` counts points beyond the box that scaled features were made for.
    ``unit`` is a power of two near ``largest``, the largest of the first values that are not all 0, so that no square
    of a value leaves the range of floating-point numbers; dividing by it is exact. ``whole`` says that these are all
    samples of a fit, whose weights must not all be 0.
    """

    def __init__(self, features: RandomLayer, points: Any, values: Any, weights: Any, *, whole: bool = True) -> None:
        self.rows, self.outside, self.scalar, self.unit, self.largest = 0, 0, True, 1.0, 0.0
        self.repeatable = values is not None
        self._features = features
        if self.repeatable:
            points, values = checked_pair(features.dim, points, values)
            self._blocks: Iterable[Any] = [(points, values, checked_weights(weights, len(points), whole))]
            return
        if isinstance(points, np.ndarray) or not isinstance(points, Iterable):
            reject("values", None, "given with an array of points", "or pass an iterable of (points, values) blocks")
        require(weights is None, "weights", type(weights).__name__, "left out with a stream of blocks")
        self._blocks = _checked_blocks(features.dim, points)

    def __iter__(self) -> Iterator[Chunk]:
        self.rows, self.outside, self.largest = 0, 0, 0.0
        for points, values, weights in _regrouped(self._blocks):
            if self.largest == 0.0:
                self.largest = float(np.abs(values).max())
                self.unit = _power_of_two(self.largest)
            self.scalar = values.ndim == 1
            self.rows += len(points)
            self.outside += count_outside(self._features, points)
            yield points, (values[:, None] if self.scalar else values) / self.unit, weights

    @property
    def arrays(self) -> tuple[Array, Array | None]:
        """Arrays only: all points and weights."""
        [(points, _, weights)] = self._blocks
        return points, weights

    def dealt(self, folds: int) -> list[Samples]:
        """Arrays only: the same samples in that many parts, row i in part i modulo ``folds``."""
        [(points, values, weights)] = self._blocks
        rows = [slice(first, None, folds) for first in range(folds)]
        parts = [_rows((points, values, weights), row) for row in rows]
        return [Samples(self._features, *part, whole=False) for part in parts]


def count_outside(features: RandomLayer, points: Array) -> int:
    """How many of the points (m, dim) lie beyond the box that scaled features were made for; 0 where none was given."""
    if features.raw:
        return 0
    return int((np.abs(points - features.centre) > features.halfwidth * (1 + 1e-12)).any(axis=1).sum())


def _power_of_two(size: float) -> float:
    """The power of two that brings size to [1/2, 1), kept away from the ends of the range; 1 for size 0."""
    return ldexp(1.0, min(max(frexp(size)[1], -1000), 1000)) if size > 0 else 1.0


def _checked_blocks(dim: int, blocks: Iterable[Any]) -> Iterator[Chunk]:
    outputs: tuple[int, ...] | None = None
    for number, block in enumerate(blocks):
        if not (isinstance(block, tuple | list) and len(block) == 2):
            reject(f"block {number}", type(block).__name__, "a pair (points, values)")
        try:
            points, values = checked_pair(dim, *block)
        except InputError as error:
            raise InputError(f"block {number}: {error}") from None
        outputs = values.shape[1:] if outputs is None else outputs
        require(
            values.shape[1:] == outputs,
            f"values of block {number} with shape",
            values.shape,
            f"of shape (m, *{outputs})",
        )
        yield points, values, None


def _regrouped(blocks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Split large blocks and join small ones, so that the sums do not depend on how the data came."""
    held: list[Chunk] = []
    count = 0
    for block in blocks:
        while len(block[0]) + count >= CHUNK_ROWS:
            cut = CHUNK_ROWS - count
            yield joined([*held, _rows(block, slice(None, cut))])
            held, count, block = [], 0, _rows(block, slice(cut, None))
        if len(block[0]):
            held.append(block)
            count += len(block[0])
    if held:
        yield joined(held)


def _rows(block: Chunk, rows: slice) -> Chunk:
    points, values, weights = block
    return points[rows], values[rows], None if weights is None else weights[rows]


def joined(parts: list[Chunk]) -> Chunk:
    """The rows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts if part[2] is not None])
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]), weights


def checked_pair(dim: int | None, points: Any, values: Any) -> tuple[Array, Array]:
    """points (M, dim) and values (M,) or (M, outputs) as arrays, refused unless finite and of as many rows."""
    points, values = finite_points("points", points, dim), finite_array("values", values, (1, 2))
    require(len(points) == len(values), "values with shape", values.shape, f"of {len(points)} rows, as many as points")
    require(values.ndim == 1 or values.shape[1] > 0, "values with shape", values.shape, "at least one output")
    return points, values


def checked_weights(weights: Any, rows: int, whole: bool = True) -> Array | None:
    """weights as an array (rows,) of numbers ≥ 0, of which one must be > 0 where they are those of the whole data."""
    if weights is None:
        return None
    array = finite_array("weights", weights, 1)
    require(len(array) == rows, "weights with shape", array.shape, f"of shape ({rows},), as many as points")
    some = not whole or array.sum() > 0
    require(bool((array >= 0).all() and some), "weights", array, "≥ 0 and not all 0" if whole else "≥ 0")
    return array
