"""Least squares along a tree: the traces of a node are eliminated after those of its children.

Rows of a leaf hold weights of its own and traces of its faces. A factorisation makes the leading rows free of
everything but what they determine, and leaves rows in traces alone; those of two children are put together, the traces
between them eliminated, and so on to the root: nested dissection.

Traces are few, well scaled and nearly independent, so of their rows A the products A*A are enough: sums in place of
stacks, and Cholesky factors, with a tenth of the work. Where these would lose digits (a triangle of a bad condition, as
where something is left free, or rows weigh a million times more than others), the rows themselves are factorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array
from rannpde.pde.cells.condensation.blocks import (
    IllConditioned,
    PivotBlock,
    SchurComplement,
    gram,
    schur,
    triangular_factor,
)
from rannpde.pde.cells.mesh.tree import CellNode

REFINEMENT_TOLERANCE, ROUNDING_LEVEL, CONTRACTION, MAX_REFINEMENTS = 1e-13, 1e-10, 0.1, 6
"""Corrections of traces end where they are smaller, relative to these; or smaller than the second number and no longer
falling, which is rounding; each is to be smaller than the one before by this factor; and so many are made at most."""


EliminationOrder = list[tuple[Sequence[int], PivotBlock]]
"""The faces whose traces are eliminated together, and the rows that determine them; from the leaves to the root."""


def solve_traces(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[PivotBlock, SchurComplement] | None],
    checkpoint: Callable[[], None],
) -> tuple[list[Array], bool]:
    """The traces (width, sides) of all faces, and whether something was left free; arguments as of ``factorise``.

    Products square a condition. What the traces then leave of the rows themselves is solved for again until it is
    rounding, after which they are as good as by an orthogonal factorisation, which takes over where that fails.
    """
    elimination, squared = factorise(tree, owners, widths, leaves, checkpoint)
    traces, rank_deficient = _back_substituted(elimination, widths)
    if squared and elimination:
        parts = [leaf[1] for leaf in leaves if leaf is not None]
        try:
            return _refined_traces(elimination, parts, traces, checkpoint), rank_deficient
        except IllConditioned:
            return _back_substituted(
                _dissect(tree, owners, widths, _complements(leaves), checkpoint, _merge_orthogonal), widths
            )
    return traces, rank_deficient


def _refined_traces(
    elimination: EliminationOrder,
    parts: Sequence[SchurComplement],
    traces: Sequence[Array],
    checkpoint: Callable[[], None],
) -> list[Array]:
    """The traces after corrections, until these are rounding; IllConditioned where they do not become smaller."""
    refined, before = list(traces), 1.0
    for _ in range(MAX_REFINEMENTS):
        checkpoint()
        correction = _correction(elimination, parts, refined)
        refined = [one + more for one, more in zip(refined, correction, strict=True)]
        change_norm, trace_norm = (
            np.sqrt(sum(np.square(np.abs(part)).sum(axis=0) for part in many)) for many in (correction, refined)
        )
        change = float((change_norm / np.maximum(trace_norm, 1e-300)).max(initial=0.0))
        if change < REFINEMENT_TOLERANCE or (change < ROUNDING_LEVEL and change > CONTRACTION * before):
            return refined
        if not change < CONTRACTION * before:
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
    """The traces of what given traces leave of the right sides of rows, with the factors that are there."""
    values = [np.zeros_like(trace) for trace in traces]  # right sides, then what they give
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
        turned = solve_triangular(pivot.rows[:, : pivot.own], rhs_block, trans="C", check_finite=False)
        for j, value in of(mine, turned):
            values[j] = value
        if pivot.faces:
            for j, more in of(pivot.faces, pivot.rows[:, pivot.own : -rhs].conj().T @ turned):
                values[j] = values[j] - more
    for mine, pivot in reversed(elimination):
        rows = np.hstack([pivot.rows[:, :-rhs], np.concatenate([values[j] for j in mine])])
        for j, value in of(mine, PivotBlock(pivot.own, pivot.faces, rows).solve(values)[0]):
            values[j] = value
    return values


def factorise(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[PivotBlock, SchurComplement] | None],
    checkpoint: Callable[[], None],
) -> tuple[EliminationOrder, bool]:
    """The traces eliminated along the tree, and whether by products.

    widths : numbers per face; leaves : what the leaves have kept and left; checkpoint : called between factorisations
    """
    try:
        return dissect_normal(tree, owners, widths, _normal_products(leaves), checkpoint), True
    except IllConditioned:
        return _dissect(tree, owners, widths, _complements(leaves), checkpoint, _merge_orthogonal), False


def _complements(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """What the leaves have left."""
    return [None if leaf is None else leaf[1] for leaf in leaves]


def dissect_normal(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    products: Sequence[SchurComplement | None],
    checkpoint: Callable[[], None],
) -> EliminationOrder:
    """The same of leaves that have left products of rows; IllConditioned where these do not tell enough."""
    return _dissect(tree, owners, widths, products, checkpoint, _merge_normal)


Merge = Callable[
    [Sequence[SchurComplement], Sequence[int], Sequence[int], Sequence[int]], tuple[PivotBlock, SchurComplement]
]
"""Parts, the faces whose traces go, the faces that stay, and the widths → rows of the former, what is left."""


def _dissect(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[SchurComplement | None],
    checkpoint: Callable[[], None],
    merge: Merge,
) -> EliminationOrder:
    elimination: EliminationOrder = []
    numbers = iter(leaves)

    def merged(parts: list[SchurComplement], mine: Sequence[int]) -> SchurComplement:
        shared = set(mine)
        rest = [j for j in dict.fromkeys(j for part in parts for j in part.faces) if j not in shared]
        pivot, complement = merge(parts, mine, rest, widths)
        if mine:
            elimination.append((mine, pivot))
        return complement

    def visit(node: CellNode) -> SchurComplement | None:
        if node.children is None:
            return next(numbers)
        parts = [part for part in map(visit, node.children) if part is not None]
        mine = owners.get(node, [])
        if len(parts) == 1 and not mine:
            return parts[0]
        if not parts:
            return None
        checkpoint()
        return merged(parts, mine)

    last = visit(tree)
    if last is not None and last.faces:  # a single cell, joined to itself by periodicity
        merged([last], last.faces)
    return elimination


def _normal_products(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """A*A in the place of the rows A that leaves have left; IllConditioned where these are beyond what can be squared."""
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
    """By a Cholesky factor of products of rows; IllConditioned where that is not accurate."""
    faces = [*mine, *rest]
    starts = dict(zip(faces, np.cumsum([0, *(widths[j] for j in faces)]), strict=False))
    own, total, rhs = sum(widths[j] for j in mine), sum(widths[j] for j in faces), _rhs_count(parts[0], widths)
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
    return schur(matrix, own, tuple(rest))


def _merged_spans(spans: Sequence[tuple[int, int]]) -> list[slice]:
    """Spans as slices, those that follow each other as one: fewer and larger blocks to add.

    >>> _runs([(4, 6), (6, 9), (0, 2)])
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
    """By an orthogonal factorisation of the rows, which is backward stable."""
    own = sum(widths[j] for j in mine)
    triangle = triangular_factor(_stacked_rows(parts, [*mine, *rest], widths))
    return PivotBlock(own, tuple(rest), triangle[:own]), SchurComplement(tuple(rest), triangle[own:, own:])


def _rhs_count(rows: SchurComplement | PivotBlock, widths: Sequence[int]) -> int:
    """How many right sides there are."""
    own = rows.own if isinstance(rows, PivotBlock) else 0
    return int(rows.rows.shape[1]) - own - sum(widths[j] for j in rows.faces)


def _stacked_rows(parts: Sequence[SchurComplement], faces: Sequence[int], widths: Sequence[int]) -> Array:
    """The rows of parts below each other, in the columns of these faces."""
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
