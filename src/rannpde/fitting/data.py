"""Data on its way into a fit: arrays or a stream of blocks, checked as it passes, in chunks of one canonical size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rannpde.errors import InputError, finite_array, finite_points, reject, require
from rannpde.network.features import FourierFeatures, RandomFeatures

Array = np.ndarray
Chunk = tuple[Array, Array, Array | None]

CHUNK_ROWS = 2**20
"""Rows gathered before they are reduced: whatever blocks the caller streams, the sums are formed over these."""


class Data:
    """Iterate to get (points (m, dim), values (m, outputs), weights (m,) or None) with m ≤ CHUNK_ROWS.

    Arrays can be iterated again, a stream only once. ``rows``, ``outside`` and ``scalar`` (values came as one axis)
    describe what the last pass has seen; ``outside`` counts points beyond the box that scaled features were made for.
    """

    def __init__(self, features: RandomFeatures | FourierFeatures, points: Any, values: Any, weights: Any) -> None:
        self.rows, self.outside, self.scalar = 0, 0, True
        self.repeatable = values is not None
        self._features = features
        if self.repeatable:
            points, values = _checked_pair(features.dim, points, values)
            self._blocks: Iterable[Any] = [(points, values, _checked_weights(weights, len(points)))]
            return
        if isinstance(points, np.ndarray) or not isinstance(points, Iterable):
            reject("values", None, "given with an array of points", "or pass an iterable of (points, values) blocks")
        require(weights is None, "weights", type(weights).__name__, "left out with a stream of blocks")
        self._blocks = _checked_blocks(features.dim, points)

    def __iter__(self) -> Iterator[Chunk]:
        self.rows = self.outside = 0
        for points, values, weights in _regrouped(self._blocks):
            self.scalar = values.ndim == 1
            self.rows += len(points)
            self.outside += self._count_outside(points)
            yield points, values[:, None] if self.scalar else values, weights

    def _count_outside(self, points: Array) -> int:
        centre, halfwidth = self._features.centre, self._features.halfwidth
        if self._features.raw:  # no domain was declared
            return 0
        return int((np.abs(points - centre) > halfwidth * (1 + 1e-12)).any(axis=1).sum())


def _checked_blocks(dim: int, blocks: Iterable[Any]) -> Iterator[Chunk]:
    outputs: tuple[int, ...] | None = None
    for number, block in enumerate(blocks):
        if not (isinstance(block, tuple | list) and len(block) == 2):
            reject(f"block {number}", type(block).__name__, "a pair (points, values)")
        try:
            points, values = _checked_pair(dim, *block)
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
            yield _joined([*held, _rows(block, slice(None, cut))])
            held, count, block = [], 0, _rows(block, slice(cut, None))
        if len(block[0]):
            held.append(block)
            count += len(block[0])
    if held:
        yield _joined(held)


def _rows(block: Chunk, rows: slice) -> Chunk:
    points, values, weights = block
    return points[rows], values[rows], None if weights is None else weights[rows]


def _joined(parts: list[Chunk]) -> Chunk:
    if len(parts) == 1:
        return parts[0]
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts if part[2] is not None])
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]), weights


def _checked_pair(dim: int, points: Any, values: Any) -> tuple[Array, Array]:
    points, values = finite_points("points", points, dim), finite_array("values", values, (1, 2))
    require(len(points) == len(values), "values with shape", values.shape, f"of {len(points)} rows, as many as points")
    require(values.ndim == 1 or values.shape[1] > 0, "values with shape", values.shape, "at least one output")
    return points, values


def _checked_weights(weights: Any, rows: int) -> Array | None:
    if weights is None:
        return None
    weights = finite_array("weights", weights, 1)
    require(len(weights) == rows, "weights with shape", weights.shape, f"of shape ({rows},), as many as points")
    require(bool((weights >= 0).all() and weights.sum() > 0), "weights", weights, "≥ 0 and not all 0")
    return weights
