"""Sums of least squares over Dask: a block of rows becomes a part on a worker, and a tree of merges makes the whole.

Features travel once to each worker, N² numbers travel in a merge, and N come back. The tree hangs on the number of
blocks alone and every task has one core, so that the same blocks give the same bits whatever workers there are, in
whichever order they finish, and however many die on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rannpde.arrays import Array
from rannpde.cluster import Blocks, Counter, compute, new_topic, shown_progress, tell
from rannpde.errors import InputError, require
from rannpde.fitting.fit import (
    Chunk,
    FitEquations,
    FitMethod,
    Penalty,
    RandomLayer,
    Samples,
    checked_pair,
    checked_weights,
    joined,
)
from rannpde.fitting.folds import Trials, checked_folds, chosen_fit, fold_misfits, others, tree
from rannpde.fitting.lazy import LazyBlock, lazy_blocks, neighbours
from rannpde.fitting.normal import NotPositiveDefinite
from rannpde.fitting.parts import Part, same_outputs
from rannpde.fitting.path import Fitted
from rannpde.threads import one_core

Listener = Callable[[Blocks], None]

LEAF_ROWS = 2**16
"""Rows that make a part, if the blocks are smaller and their sizes known: a merge moves as much as 10⁴ rows compute."""
LEAF_COLUMNS = 16
"""Rows for each column that make an orthogonal part: a merge of triangles then costs a tenth of it."""


def fit_blocks(
    features: RandomLayer,
    points: Any,
    values: Any,
    weights: Any,
    penalty: Penalty,
    method: FitMethod,
    cutoff: float | None,
    folds: int | None,
    progress: Listener | None,
) -> Fitted:
    """``fit`` for Dask's arrays or lists of delayed blocks, solved on a worker; method as in ``Part.of``.

    Where folds choose the penalty, block i is in fold i modulo their number.
    """
    plan = Plan(features, lazy_blocks(points, values, weights, features.dim), method)
    if penalty == "folds":
        return plan.run(plan.cross_validated(checked_folds(folds)), progress)
    try:
        return plan.run(_later(_solve, plan.merged(plan.blocks), penalty, cutoff), progress)
    except NotPositiveDefinite:
        if method != "auto":
            raise
    plan = replace(plan, method="orthogonal")
    return plan.run(_later(_solve, plan.merged(plan.blocks), penalty, cutoff), progress)


def collect_equations(
    features: RandomLayer,
    points: Any,
    values: Any = None,
    *,
    weights: Any = None,
    method: FitMethod = "auto",
    progress: Listener | None = None,
) -> FitEquations:
    """The merged equations of Dask's arrays or delayed blocks, brought here: for paths of penalties and the like.

    The arguments are those of ``fit``; "orthogonal" gives OrthogonalEquations, the other methods NormalEquations.

    >>> import dask.array as da
    >>> from rannpde.network.features import FourierFeatures
    >>> features = FourierFeatures.sample(width=3, dim=1, scale=2.0, rng=0)
    >>> points = da.linspace(0, 1, 100, chunks=25)
    >>> path = collect_equations(features, points, da.exp(points)).path()
    >>> [fit.rank for fit in path.solve_all([1e-2, 1e-6])]
    [5, 5]
    """
    plan = Plan(features, lazy_blocks(points, values, weights, features.dim), method)
    part = _some(plan.run(plan.merged(plan.blocks), progress))
    return part.in_unit(1.0).rescaled(1.0)  # a copy: arrays that came over the wire may be read only


def data_bounds(points: Any, weights: Any = None) -> Array:
    """Least and largest coordinates (dim, 2) of Dask's points, those of weight 0 left out.

    >>> import dask.array as da
    >>> data_bounds(da.arange(10, chunks=3).reshape(-1, 1)).tolist()
    [[0.0, 9.0]]
    """
    blocks = lazy_blocks(points, points, weights, None)
    bounds = [_later(_block_bounds, block.number, block.points, block.weights) for block in blocks]
    box = compute(tree(bounds, _later_of(_wider)))
    if box is None:
        raise InputError("points is empty, or all weights are 0; give at least one point that counts")
    return np.asarray(box)


# -------------------------------------------------------------------------------------------------------------- graph


@dataclass(frozen=True, eq=False)
class Plan:
    """The sums of a fit as tasks that have not run yet; under ``topic`` they report which blocks are done."""

    features: RandomLayer
    blocks: Sequence[LazyBlock]
    method: FitMethod
    topic: str = field(default_factory=new_topic)

    def merged(self, blocks: Sequence[LazyBlock]) -> Any:
        """The Part of those blocks, by the fixed tree."""
        from dask import delayed

        rows = LEAF_COLUMNS * self.features.columns if self.method == "orthogonal" else 0
        features = delayed(self.features, pure=True, traverse=False)  # one key: it travels once to each worker
        leaves = []
        for group in neighbours(blocks, max(LEAF_ROWS, rows)):
            arrays = [[block.points, block.values, block.weights] for block in group]
            leaves.append(_later(_sum, features, [b.number for b in group], arrays, self.method, self.topic))
        return tree(leaves, _later_of(_merge))

    def cross_validated(self, count: int) -> Any:
        """The Fitted of all blocks with the penalty that folds choose."""
        remedy = "use smaller chunks or fewer folds"
        require(len(self.blocks) >= count, "folds", count, f"at most {len(self.blocks)}, the number of blocks", remedy)
        folds = [self.merged(self.blocks[k::count]) for k in range(count)]
        whole = tree(folds, _later_of(_merge))
        trials = _later(_trials, whole)
        rests = [tree(others(folds, k), _later_of(_merge)) for k in range(count)]
        misfits = [_later(_misfits, rest, fold, trials) for rest, fold in zip(rests, folds, strict=True)]
        return _later(_choose, whole, trials, misfits)

    def run(self, lazy: Any, progress: Listener | None) -> Any:
        """Its value, with progress reported or shown."""
        with shown_progress(progress) as listener:
            counter = Counter(len(self.blocks), listener)
            return compute(lazy, self.topic, lambda numbers: counter.notice(set(numbers)))


def _later(task: Callable[..., Any], *arguments: Any) -> Any:
    """The task as one of Dask's, not yet run, with a name of its own so that no other call's result is taken."""
    from dask import delayed

    return delayed(task, pure=False, traverse=False)(*arguments)


def _later_of(task: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: _later(task, *arguments)


# -------------------------------------------------------------------------------------------------------------- tasks


def _sum(
    features: RandomLayer, numbers: list[int], blocks: list[list[Any]], method: FitMethod, topic: str
) -> Part | None:
    """The part of some blocks; None where they have no rows."""
    with one_core():
        chunks = [_checked(features.dim, number, *block) for number, block in zip(numbers, blocks, strict=True)]
        for number, chunk in zip(numbers, chunks, strict=True):
            same_outputs(number, chunk[1].shape[1:], numbers[0], chunks[0][1].shape[1:])
        part = Part.of(features, Samples(features, *joined(chunks), whole=False), method, numbers[0])
    tell(topic, numbers)
    return part


def _checked(dim: int | None, number: int, points: Any, values: Any, weights: Any) -> Chunk:
    """The arrays of a block, refused with its number."""
    if values is None:
        triple = isinstance(points, tuple | list) and len(points) in (2, 3)
        require(triple, f"block {number}", type(points).__name__, "(points, values) or (points, values, weights)")
        points, values, weights = (*points, None)[:3]
    try:
        points, values = checked_pair(dim, points, values)
        return points, values, checked_weights(weights, len(points), whole=False)
    except InputError as error:
        raise InputError(f"block {number}: {error}") from None


def _merge(left: Part | None, right: Part | None) -> Part | None:
    if left is None or right is None:
        return right if left is None else left
    with one_core():
        return left.merge(right)


def _solve(part: Part | None, penalty: float | Literal["gcv"], cutoff: float | None) -> Fitted:
    with one_core():
        return _own(part).fit(penalty, cutoff)


def _trials(whole: Part | None) -> Trials:
    return Trials.of(_some(whole))


def _misfits(rest: Part | None, fold: Part | None, trials: Trials) -> Array:
    with one_core():
        return fold_misfits(_some(rest), _some(fold), trials)


def _choose(whole: Part | None, trials: Trials, misfits: list[Array]) -> Fitted:
    with one_core():
        return chosen_fit(_own(whole), trials, misfits)


def _own(part: Part | None) -> Part:
    """A copy to solve with: the Cholesky factor is written into it, and Dask may give the part to others or again."""
    part = _some(part)
    return replace(part, equations=part.equations.rescaled(1.0))


def _some(part: Part | None) -> Part:
    if part is None:
        raise InputError("points is empty; give at least one point, and one to each fold")
    return part


def _block_bounds(number: int, points: Any, weights: Any) -> Array | None:
    points, _, weights = _checked(None, number, points, points, weights)
    seen = points if weights is None else points[weights > 0]
    return np.stack([seen.min(axis=0), seen.max(axis=0)], axis=1) if len(seen) else None


def _wider(left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return right if left is None else left
    return np.stack([np.minimum(left, right)[:, 0], np.maximum(left, right)[:, 1]], axis=1)
