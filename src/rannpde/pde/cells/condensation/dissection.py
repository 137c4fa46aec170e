"""Least squares by nested dissection: the traces on the faces of a node are eliminated after those of its children.

The rows of a leaf contain the weights of its cell and the traces on its faces. Static condensation eliminates the
weights and leaves rows in traces alone. At each inner node the rows of its two children are joined, the traces between
them are eliminated, and so on to the root.

Traces are few, well scaled and nearly independent, so that the normal equations A*A of their rows A suffice: they are
added where rows would be stacked, and Cholesky factors cost a tenth of orthogonal ones. Where they would lose accuracy
(rank deficiency, or rows whose weights differ by a factor of a million) the rows themselves are factorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, factorising
from rannpde.pde.cells.condensation.blocks import (
    IllConditioned,
    PivotBlock,
    SchurComplement,
    gram,
    schur,
    triangular_factor,
)
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.tolerance import MUCH_SMALLER

REFINEMENT_TOLERANCE, ROUNDING_LEVEL, MAX_REFINEMENTS = 1e-13, 1e-10, 6
"""Iterative refinement ends at a relative correction below the first number, or below the second if it no longer falls
(rounding); each correction must be much smaller than the last; the third bounds their number.
"""
FRONT_COPIES = 3
"""How many copies of a front are in memory while it is merged: the parts, their sum, and the Schur complement."""

EliminationOrder = list[tuple[Sequence[int], PivotBlock]]
"""The faces whose traces are eliminated together, and the rows that determine them; from the leaves to the root."""


def solve_traces(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[PivotBlock, SchurComplement] | None],
) -> tuple[list[Array], bool]:
    """Return the traces (width, rhs) on all faces, and whether the system is rank deficient.

    Normal equations square the condition number. Iterative refinement with residuals of the rows themselves then makes
    the traces as accurate as an orthogonal factorisation does; where it does not converge, that factorisation is used.
    Arguments are those of ``factorise``.
    """
    elimination, squared = factorise(tree, owners, widths, leaves)
    traces, rank_deficient = _back_substituted(elimination, widths)
    if squared and elimination:
        parts = [leaf[1] for leaf in leaves if leaf is not None]
        try:
            return _refined_traces(elimination, parts, traces), rank_deficient
        except IllConditioned:
            return _back_substituted(_dissect(tree, owners, widths, _complements(leaves), _merge_orthogonal), widths)
    return traces, rank_deficient


def _refined_traces(
    elimination: EliminationOrder,
    parts: Sequence[SchurComplement],
    traces: Sequence[Array],
) -> list[Array]:
    """Return the traces after iterative refinement; IllConditioned where the corrections do not decrease."""
    refined, before = list(traces), 1.0
    for _ in range(MAX_REFINEMENTS):
        checkpoint()
        correction = _correction(elimination, parts, refined)
        refined = [trace + change for trace, change in zip(refined, correction, strict=True)]
        change_norm, trace_norm = (
            np.sqrt(sum(np.square(np.abs(part)).sum(axis=0) for part in many)) for many in (correction, refined)
        )
        change = float((change_norm / np.maximum(trace_norm, 1e-300)).max(initial=0.0))
        if change < REFINEMENT_TOLERANCE or (change < ROUNDING_LEVEL and change > MUCH_SMALLER * before):
            return refined
        if not change < MUCH_SMALLER * before:
            raise IllConditioned
        before = change
    return refined


def _back_substituted(elimination: EliminationOrder, widths: Sequence[int]) -> tuple[list[Array], bool]:
    traces: list[Array] = [np.empty((0, _rhs_count(pivot, widths))) for _, pivot in elimination[:1] for _ in widths]
    rank_deficient = False
    for mine, pivot in reversed(elimination):
        solved, deficient = pivot.solve(traces)
        rank_deficient |= deficient
        for j, part in zip(mine, np.split(solved, np.cumsum([widths[j] for j in mine])[:-1], axis=0), strict=True):
            traces[j] = part
    return traces, rank_deficient


def _correction(
    elimination: EliminationOrder, parts: Sequence[SchurComplement], traces: Sequence[Array]
) -> list[Array]:
    """Return the correction of traces: the least-squares solution for the residual of the rows, by the given
    factors."""
    values = [np.zeros_like(trace) for trace in traces]  # right-hand sides of the normal equations, then the solution
    rhs = values[0].shape[1]

    def of(faces: Sequence[int], values: Array) -> Iterator[tuple[int, Array]]:
        ends = np.cumsum([len(traces[j]) for j in faces])
        return zip(faces, np.split(values, ends[:-1], axis=0), strict=True)

    for part in parts:
        if part.faces:
            known = np.concatenate([traces[j] for j in part.faces])
            rows, rhs_block = part.rows[:, : len(known)], part.rows[:, len(known) :]
            for j, more in of(part.faces, rows.conj().T @ (rhs_block - rows @ known)):
                values[j] += more
    for mine, pivot in elimination:
        rhs_block = np.concatenate([values[j] for j in mine])
        turned = solve_triangular(pivot.rows[:, : pivot.pivots], rhs_block, trans="C", check_finite=False)
        for j, value in of(mine, turned):
            values[j] = value
        if pivot.faces:
            for j, more in of(pivot.faces, pivot.rows[:, pivot.pivots : -rhs].conj().T @ turned):
                values[j] = values[j] - more
    for mine, pivot in reversed(elimination):
        rows = np.hstack([pivot.rows[:, :-rhs], np.concatenate([values[j] for j in mine])])
        for j, value in of(mine, PivotBlock(pivot.pivots, pivot.faces, rows).solve(values)[0]):
            values[j] = value
    return values


def factorise(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[PivotBlock, SchurComplement] | None],
) -> tuple[EliminationOrder, bool]:
    """Eliminate the traces along the tree; also return whether normal equations were used.

    widths : number of trace coefficients per face
    leaves : the pivot block and Schur complement of each leaf
    """
    try:
        return dissect_normal(tree, owners, widths, _normal_products(leaves)), True
    except IllConditioned:
        return _dissect(tree, owners, widths, _complements(leaves), _merge_orthogonal), False


def _complements(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """Return the Schur complements of the leaves."""
    return [None if leaf is None else leaf[1] for leaf in leaves]


def dissect_normal(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    products: Sequence[SchurComplement | None],
) -> EliminationOrder:
    """Eliminate the traces of leaves whose Schur complements are normal equations.

    IllConditioned is raised where their Cholesky factors would not be accurate.
    """
    return _dissect(tree, owners, widths, products, _merge_normal)


Merge = Callable[
    [Sequence[SchurComplement], Sequence[int], Sequence[int], Sequence[int]], tuple[PivotBlock, SchurComplement]
]
"""(parts, faces to eliminate, faces that remain, widths) → pivot block of the former, Schur complement."""


def _dissect(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[SchurComplement | None],
    merge: Merge,
) -> EliminationOrder:
    elimination: EliminationOrder = []
    complements = iter(leaves)

    def merged(parts: list[SchurComplement], mine: Sequence[int]) -> SchurComplement:
        shared = set(mine)
        rest = [j for j in dict.fromkeys(j for part in parts for j in part.faces) if j not in shared]
        pivots, total = (sum(widths[j] for j in some) for some in (mine, [*mine, *rest]))
        with factorising("front", pivots * total**2, FRONT_COPIES * FLOAT_BYTES * total**2):
            pivot, complement = merge(parts, mine, rest, widths)
        if mine:
            elimination.append((mine, pivot))
        return complement

    def visit(node: CellNode) -> SchurComplement | None:
        if node.children is None:
            return next(complements)
        parts = [part for part in map(visit, node.children) if part is not None]
        mine = owners.get(node, [])
        if len(parts) == 1 and not mine:
            return parts[0]
        if not parts:
            return None
        return merged(parts, mine)

    last = visit(tree)
    if last is not None and last.faces:  # a single cell, connected to itself by periodicity
        merged([last], last.faces)
    return elimination


def _normal_products(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """Return the normal equations A*A of the rows A of each leaf; IllConditioned where these overflow."""
    complements: list[SchurComplement | None] = []
    for part in (None if leaf is None else leaf[1] for leaf in leaves):
        with np.errstate(over="ignore", invalid="ignore"):
            product = None if part is None else gram(part.rows)
        if product is not None and not np.isfinite(product).all():
            raise IllConditioned
        complements.append(None if part is None or product is None else SchurComplement(part.faces, product))
    return complements


def _merge_normal(
    parts: Sequence[SchurComplement], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[PivotBlock, SchurComplement]:
    """Merge by a Cholesky factor of normal equations; IllConditioned where that is not accurate."""
    faces = [*mine, *rest]
    starts = dict(zip(faces, np.cumsum([0, *(widths[j] for j in faces)]), strict=False))
    pivots, total, rhs = sum(widths[j] for j in mine), sum(widths[j] for j in faces), _rhs_count(parts[0], widths)
    kind = np.result_type(*(part.rows for part in parts))
    matrix = np.zeros((total + rhs, total + rhs), dtype=kind, order="F")
    for part in parts:
        spans = _merged_spans([(starts[j], starts[j] + widths[j]) for j in part.faces] + [(total, total + rhs)])
        ends = list(pairwise(np.cumsum([0, *(span.stop - span.start for span in spans)])))
        for k, (row, (a, b)) in enumerate(zip(spans, ends, strict=True)):
            for column, (c, d) in zip(spans[k:], ends[k:], strict=True):
                block = part.rows[a:b, c:d]
                if row.start <= column.start:
                    matrix[row, column] += block
                else:
                    matrix[column, row] += block.conj().T
    return schur(matrix, pivots, tuple(rest))


def _merged_spans(spans: Sequence[tuple[int, int]]) -> list[slice]:
    """Return spans as slices, with adjacent ones merged: fewer and larger blocks to add.

    >>> _merged_spans([(4, 6), (6, 9), (0, 2)])
    [slice(4, 9, None), slice(0, 2, None)]
    """
    slices: list[slice] = []
    for lower, upper in spans:
        if slices and slices[-1].stop == lower:
            slices[-1] = slice(slices[-1].start, upper)
        else:
            slices.append(slice(lower, upper))
    return slices


def _merge_orthogonal(
    parts: Sequence[SchurComplement], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[PivotBlock, SchurComplement]:
    """Merge by an orthogonal factorisation of the rows, which is backward stable."""
    pivots = sum(widths[j] for j in mine)
    triangle = triangular_factor(_stacked_rows(parts, [*mine, *rest], widths))
    return PivotBlock(pivots, tuple(rest), triangle[:pivots]), SchurComplement(tuple(rest), triangle[pivots:, pivots:])


def _rhs_count(rows: SchurComplement | PivotBlock, widths: Sequence[int]) -> int:
    """Return the number of right-hand sides."""
    pivots = rows.pivots if isinstance(rows, PivotBlock) else 0
    return int(rows.rows.shape[1]) - pivots - sum(widths[j] for j in rows.faces)


def _stacked_rows(parts: Sequence[SchurComplement], faces: Sequence[int], widths: Sequence[int]) -> Array:
    """Return the rows of parts below each other, in the columns of these faces."""
    starts = dict(zip(faces, np.cumsum([0, *(widths[j] for j in faces)]), strict=False))
    total = sum(widths[j] for j in faces)
    kind = np.result_type(*(part.rows for part in parts))
    height, rhs = sum(len(part.rows) for part in parts), _rhs_count(parts[0], widths)
    matrix = np.zeros((height, total + rhs), dtype=kind, order="F")
    row = 0
    for part in parts:
        rows, begin = slice(row, row + len(part.rows)), 0
        for j in part.faces:
            matrix[rows, starts[j] : starts[j] + widths[j]] = part.rows[:, begin : begin + widths[j]]
            begin += widths[j]
        matrix[rows, total:] = part.rows[:, begin:]
        row += len(part.rows)
    return matrix
