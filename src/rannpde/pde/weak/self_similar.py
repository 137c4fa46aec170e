"""Geometric meshes continued to infinity: infinitely many rings of cells round a crossing of interfaces.

Near a crossing a solution is like r^λ, and λ is small where the contrast is high: 0.013 for 10⁴, so that halving cells
until coordinates are rounding leaves most of the error. But the mesh round such a point is self-similar. With diffusion
that is constant in each sector, the matrices of a ring of cells do not change when it is halved (in the plane energies
are invariant under scaling), and so the response S of everything inside a ring, on the traces of its boundary, is that
of everything inside the next: the fixed point of

    S  =  d - c (a + S)⁻¹ b ,        [[a, b], [c, d]]  the ring on its inner and its outer boundary.

Doubling finds it: two rings are one of the same form, four, eight, … After twelve steps the mesh ends at 2⁻⁴⁰⁹⁶.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.mesh import WeakMesh


@dataclass(frozen=True, eq=False)
class CondensedCells:
    """Matrices of cells (B,) on their traces: numbers (B, T) of the unknowns, kinds (U, T, T), kind (B,) of each."""

    cells: Array
    dofs: Array
    kinds: Array
    same: Array


@dataclass(frozen=True, eq=False)
class SelfSimilarRings:
    """The last rings of cells round a point: cells inside a boundary, the ring of cells round it, the inner and the
    outer boundary of that ring, as numbers of faces in the same order."""

    inside: Array
    ring: Array
    inner: Array
    outer: Array


def self_similar_rings(mesh: WeakMesh, point: Sequence[float]) -> SelfSimilarRings | None:
    """The last rings round a point inside a mesh; None where cells there are not halved alike, or reach a boundary."""
    centre = np.asarray(point, dtype=float)
    low, high = mesh.boxes[:, :, 0] - centre, mesh.boxes[:, :, 1] - centre
    slack = 1e-9 * (high - low)
    at = np.flatnonzero(((low <= slack) & (high >= -slack)).all(axis=1))
    middle = 0.5 * (low + high)
    quadrant = (middle > 0) @ (1, 2)
    if len(at) != 4 or len(set(quadrant[at].tolist())) != 4:
        return None
    lengths = np.empty((4, 2))
    lengths[quadrant[at]] = (high - low)[at]
    far = np.maximum(np.abs(low), np.abs(high)) / lengths[quadrant]
    rounding = float(np.cbrt(np.finfo(float).eps))  # coordinates within the last cells have few digits
    level = np.ceil(np.log2(np.maximum(far.max(axis=1), 1.0)) - rounding).astype(int)
    # cells beside each other may differ by several levels, where quadrants have cells of different sizes
    beside = np.sort(level[mesh.beside], axis=1)
    spread = max(int(beside[beside[:, 0] == 0, 1].max(initial=1)), 1)
    last = 3 * spread
    counts = np.bincount(level, minlength=last + 1)[: last + 1]
    deep = beside[:, 0] <= 2 * spread
    if (counts != [4] + [12] * last).any() or (beside[deep, 1] - beside[deep, 0] > spread).any():
        return None
    if np.isin(mesh.patches.cell, np.flatnonzero(level <= last)).any():
        return None
    boundaries, keys = [], []
    for k in (spread, 2 * spread):
        boundary = np.flatnonzero((beside[:, 0] <= k) & (beside[:, 1] > k))
        spans = (mesh.spans[boundary] - centre[:, None]) / (2.0**k * lengths.max())
        key = np.concatenate(
            [mesh.axis[boundary][:, None], np.round(spans.reshape(len(boundary), -1) / rounding)], axis=1
        )
        order = np.lexsort(key.T)
        boundaries.append(boundary[order])
        keys.append(key[order])
    if keys[0].shape != keys[1].shape or np.abs(keys[0] - keys[1]).max() > 2:
        return None
    ring = np.flatnonzero((level > spread) & (level <= 2 * spread))
    return SelfSimilarRings(np.flatnonzero(level <= spread), ring, boundaries[0], boundaries[1])


def continued_response(rings: SelfSimilarRings, parts: Sequence[CondensedCells], block: int) -> tuple[Array, Array]:
    """Unknowns (T,) of the inner boundary, and what to add there (T, T): infinitely many rings inside.

    parts : the matrices of all cells; block : unknowns of a face
    """
    inner, outer = ((faces[:, None] * block + np.arange(block)).ravel() for faces in (rings.inner, rings.outer))
    count = len(inner)
    finite = _response(rings.inside, parts, inner)
    ring = _response(rings.ring, parts, np.concatenate([inner, outer]))
    a, b, c, d = ring[:count, :count], ring[:count, count:], ring[count:, :count], ring[count:, count:]
    scale = float(np.abs(d).max())
    endless = finite
    # rings conduct constants, which have no exponent, inversely to their number: rounding grows in proportion to that,
    # and half of the digits are left at the end
    for halving in range(np.finfo(float).nmant // 2):
        left = np.linalg.solve(d + a, np.concatenate([c, b], axis=1))
        to_inner, to_outer = left[:, :count], left[:, count:]
        a, b, c, d = a - b @ to_inner, -b @ to_outer, -c @ to_inner, d - c @ to_outer
        fewer, endless = endless, d - c @ np.linalg.solve(a + finite, b)
        if np.abs(endless - fewer).max() <= 2.0**halving * np.finfo(float).eps * scale:  # twice as many change nothing
            break
    return inner, endless - finite


def _response(cells: Array, parts: Sequence[CondensedCells], boundary: Array) -> Array:
    """The matrix of some cells on the unknowns of a boundary, the others eliminated."""
    blocks = [(one.dofs[mine], one.kinds[one.same[mine]]) for one in parts
             if len(mine := np.flatnonzero(np.isin(one.cells, cells)))]  # fmt: skip
    every = np.unique(np.concatenate([dofs.ravel() for dofs, _ in blocks]))
    inside = np.setdiff1d(every, boundary)
    order = np.concatenate([inside, boundary])
    number = np.empty(int(order.max()) + 1, dtype=int)
    number[order] = np.arange(len(order))
    matrix = np.zeros((len(order), len(order)))
    for dofs, kinds in blocks:
        own = number[dofs]
        np.add.at(matrix, (own[:, :, None], own[:, None, :]), kinds)
    k = len(inside)
    return np.asarray(matrix[k:, k:] - matrix[k:, :k] @ np.linalg.solve(matrix[:k, :k], matrix[:k, k:]))
