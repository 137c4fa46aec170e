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

REFINED, SETTLED, CONTRACTION, ROUNDS = 1e-13, 1e-10, 0.1, 6
"""Corrections of traces end where they are smaller, relative to these; or smaller than the second number and no longer
falling, which is rounding; each is to be smaller than the one before by this factor; and so many are made at most."""


Order = list[tuple[Sequence[int], PivotBlock]]
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
    order, squared = factorise(tree, owners, widths, leaves, checkpoint)
    traces, free = _solved(order, widths)
    if squared and order:
        parts = [leaf[1] for leaf in leaves if leaf is not None]
        try:
            return _settled(order, parts, traces, checkpoint), free
        except IllConditioned:
            return _solved(_along(tree, owners, widths, _rows(leaves), checkpoint, _orthogonal), widths)
    return traces, free


def _settled(
    order: Order, parts: Sequence[SchurComplement], traces: Sequence[Array], checkpoint: Callable[[], None]
) -> list[Array]:
    """The traces after corrections, until these are rounding; IllConditioned where they do not become smaller."""
    found, before = list(traces), 1.0
    for _ in range(ROUNDS):
        checkpoint()
        further = _further(order, parts, found)
        found = [one + more for one, more in zip(found, further, strict=True)]
        gap, size = (np.sqrt(sum(np.square(np.abs(part)).sum(axis=0) for part in many)) for many in (further, found))
        change = float((gap / np.maximum(size, 1e-300)).max(initial=0.0))
        if change < REFINED or (change < SETTLED and change > CONTRACTION * before):
            return found
        if not change < CONTRACTION * before:
            raise IllConditioned
        before = change
    return found


def _solved(order: Order, widths: Sequence[int]) -> tuple[list[Array], bool]:
    traces: list[Array] = [np.empty((0, _sides(kept, widths))) for _, kept in order[:1] for _ in widths]
    free = False
    for mine, kept in reversed(order):
        solved, loose = kept.solve(traces)
        free |= loose
        for j, part in zip(mine, np.split(solved, np.cumsum([widths[j] for j in mine])[:-1], axis=0), strict=True):
            traces[j] = part
    return traces, free


def _further(order: Order, parts: Sequence[SchurComplement], traces: Sequence[Array]) -> list[Array]:
    """The traces of what given traces leave of the right sides of rows, with the factors that are there."""
    found = [np.zeros_like(trace) for trace in traces]  # right sides, then what they give
    sides = found[0].shape[1]

    def of(faces: Sequence[int], values: Array) -> Iterator[tuple[int, Array]]:
        ends = np.cumsum([len(traces[j]) for j in faces])
        return zip(faces, np.split(values, ends[:-1], axis=0), strict=True)

    for part in parts:
        if part.faces:
            known = np.concatenate([traces[j] for j in part.faces])
            rows, right = part.rows[:, : len(known)], part.rows[:, len(known) :]
            for j, more in of(part.faces, rows.conj().T @ (right - rows @ known)):
                found[j] += more
    for mine, kept in order:
        right = np.concatenate([found[j] for j in mine])
        turned = solve_triangular(kept.rows[:, : kept.own], right, trans="C", check_finite=False)
        for j, value in of(mine, turned):
            found[j] = value
        if kept.faces:
            for j, more in of(kept.faces, kept.rows[:, kept.own : -sides].conj().T @ turned):
                found[j] = found[j] - more
    for mine, kept in reversed(order):
        rows = np.hstack([kept.rows[:, :-sides], np.concatenate([found[j] for j in mine])])
        for j, value in of(mine, PivotBlock(kept.own, kept.faces, rows).solve(found)[0]):
            found[j] = value
    return found


def factorise(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[PivotBlock, SchurComplement] | None],
    checkpoint: Callable[[], None],
) -> tuple[Order, bool]:
    """The traces eliminated along the tree, and whether by products.

    widths : numbers per face; leaves : what the leaves have kept and left; checkpoint : called between factorisations
    """
    try:
        return dissect_normal(tree, owners, widths, _products(leaves), checkpoint), True
    except IllConditioned:
        return _along(tree, owners, widths, _rows(leaves), checkpoint, _orthogonal), False


def _rows(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """What the leaves have left."""
    return [None if leaf is None else leaf[1] for leaf in leaves]


def dissect_normal(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    products: Sequence[SchurComplement | None],
    checkpoint: Callable[[], None],
) -> Order:
    """The same of leaves that have left products of rows; IllConditioned where these do not tell enough."""
    return _along(tree, owners, widths, products, checkpoint, _squared)


Merge = Callable[
    [Sequence[SchurComplement], Sequence[int], Sequence[int], Sequence[int]], tuple[PivotBlock, SchurComplement]
]
"""Parts, the faces whose traces go, the faces that stay, and the widths → rows of the former, what is left."""


def _along(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[SchurComplement | None],
    checkpoint: Callable[[], None],
    merge: Merge,
) -> Order:
    order: Order = []
    numbers = iter(leaves)

    def merged(parts: list[SchurComplement], mine: Sequence[int]) -> SchurComplement:
        shared = set(mine)
        rest = [j for j in dict.fromkeys(j for part in parts for j in part.faces) if j not in shared]
        kept, left = merge(parts, mine, rest, widths)
        if mine:
            order.append((mine, kept))
        return left

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
    return order


def _products(leaves: Sequence[tuple[PivotBlock, SchurComplement] | None]) -> list[SchurComplement | None]:
    """A*A in the place of the rows A that leaves have left; IllConditioned where these are beyond what can be squared."""
    found: list[SchurComplement | None] = []
    for part in (None if leaf is None else leaf[1] for leaf in leaves):
        with np.errstate(over="ignore", invalid="ignore"):
            product = None if part is None else gram(part.rows)
        if product is not None and not np.isfinite(product).all():
            raise IllConditioned
        found.append(None if part is None or product is None else SchurComplement(part.faces, product))
    return found


def _squared(
    parts: Sequence[SchurComplement], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[PivotBlock, SchurComplement]:
    """By a Cholesky factor of products of rows; IllConditioned where that is not accurate."""
    faces = [*mine, *rest]
    starts = dict(zip(faces, np.cumsum([0, *(widths[j] for j in faces)]), strict=False))
    own, total, sides = sum(widths[j] for j in mine), sum(widths[j] for j in faces), _sides(parts[0], widths)
    kind = np.result_type(*(part.rows for part in parts))
    matrix = np.zeros((total + sides, total + sides), dtype=kind, order="F")
    for part in parts:
        spans = _runs([(starts[j], starts[j] + widths[j]) for j in part.faces] + [(total, total + sides)])
        ends = list(pairwise(np.cumsum([0, *(span.stop - span.start for span in spans)])))
        for k, (row, (a, b)) in enumerate(zip(spans, ends, strict=True)):
            for column, (c, d) in zip(spans[k:], ends[k:], strict=True):
                block = part.rows[a:b, c:d]
                if row.start <= column.start:
                    matrix[row, column] += block
                else:
                    matrix[column, row] += block.conj().T
    return schur(matrix, own, tuple(rest))


def _runs(spans: Sequence[tuple[int, int]]) -> list[slice]:
    """Spans as slices, those that follow each other as one: fewer and larger blocks to add.

    >>> _runs([(4, 6), (6, 9), (0, 2)])
    [slice(4, 9, None), slice(0, 2, None)]
    """
    found: list[slice] = []
    for lower, upper in spans:
        if found and found[-1].stop == lower:
            found[-1] = slice(found[-1].start, upper)
        else:
            found.append(slice(lower, upper))
    return found


def _orthogonal(
    parts: Sequence[SchurComplement], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[PivotBlock, SchurComplement]:
    """By an orthogonal factorisation of the rows, which is backward stable."""
    own = sum(widths[j] for j in mine)
    triangle = triangular_factor(_stacked(parts, [*mine, *rest], widths))
    return PivotBlock(own, tuple(rest), triangle[:own]), SchurComplement(tuple(rest), triangle[own:, own:])


def _sides(rows: SchurComplement | PivotBlock, widths: Sequence[int]) -> int:
    """How many right sides there are."""
    own = rows.own if isinstance(rows, PivotBlock) else 0
    return int(rows.rows.shape[1]) - own - sum(widths[j] for j in rows.faces)


def _stacked(parts: Sequence[SchurComplement], faces: Sequence[int], widths: Sequence[int]) -> Array:
    """The rows of parts below each other, in the columns of these faces."""
    starts = dict(zip(faces, np.cumsum([0, *(widths[j] for j in faces)]), strict=False))
    total = sum(widths[j] for j in faces)
    kind = np.result_type(*(part.rows for part in parts))
    height, sides = sum(len(part.rows) for part in parts), _sides(parts[0], widths)
    matrix = np.zeros((height, total + sides), dtype=kind, order="F")
    row = 0
    for part in parts:
        rows, begin = slice(row, row + len(part.rows)), 0
        for j in part.faces:
            matrix[rows, starts[j] : starts[j] + widths[j]] = part.rows[:, begin : begin + widths[j]]
            begin += widths[j]
        matrix[rows, total:] = part.rows[:, begin:]
        row += len(part.rows)
    return matrix
