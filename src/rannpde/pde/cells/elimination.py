"""Least squares along a tree: the traces of a node are eliminated after those of its children.

Rows of a leaf hold weights of its own and traces of its joints. A factorisation makes the leading rows free of
everything but what they determine, and leaves rows in traces alone; those of two children are put together, the traces
between them eliminated, and so on to the root: nested dissection.

Traces are few, well scaled and nearly independent, so of their rows A the products A*A are enough: sums in place of
stacks, and Cholesky factors, with a tenth of the work. Where these would lose digits (a triangle of a bad condition, as
where something is left free, or rows weigh a million times more than others), the rows themselves are factorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import blas, get_lapack_funcs, lapack, solve_triangular

from rannpde.arrays import Array
from rannpde.pde.cells.tree import CellNode

SINGULAR = 1e-13
"""A triangle of smaller reciprocal condition leaves something free, up to rounding."""
BLOCKS = 32
"""Columns that are turned together where rows are added to a triangle."""
DELICATE = 1e-7
"""A Cholesky factor of smaller reciprocal condition, for columns of length 1, has lost all but two digits."""
REFINED, SETTLED, CONTRACTION, ROUNDS = 1e-13, 1e-10, 0.1, 6
"""Corrections of traces end where they are smaller, relative to these; or smaller than the second number and no longer
falling, which is rounding; each is to be smaller than the one before by this factor; and so many are made at most."""


@dataclass(frozen=True, eq=False)
class Remainder:
    """Rows [traces of these joints | right sides] that a subtree leaves for the rest."""

    joints: tuple[int, ...]
    rows: Array


class Delicate(Exception):
    """Products of rows do not tell enough of them."""


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows that determine ``own`` unknowns once the traces of ``joints`` are known."""

    own: int
    joints: tuple[int, ...]
    rows: Array

    def solve(self, traces: Sequence[Array]) -> tuple[Array, bool]:
        """The unknowns (own, sides), and whether something was left free (its smallest solution is taken)."""
        right = self.rows[:, self.own :]
        if self.joints:
            known = np.concatenate([traces[j] for j in self.joints])
            right = right[:, len(known) :] - right[:, : len(known)] @ known
        triangle = self.rows[:, : self.own]
        if not self.own:
            return right[:0], False
        if len(triangle) == self.own and lapack.dtrcon(triangle)[0] > SINGULAR:
            return solve_triangular(triangle, right, check_finite=False), False
        return np.linalg.lstsq(triangle, right, rcond=SINGULAR)[0], True


Order = list[tuple[Sequence[int], Kept]]
"""The joints whose traces are eliminated together, and the rows that determine them; from the leaves to the root."""


def eliminate(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[Kept, Remainder] | None],
    checkpoint: Callable[[], None],
) -> tuple[list[Array], bool]:
    """The traces (width, sides) of all joints, and whether something was left free; arguments as of ``factorise``.

    Products square a condition. What the traces then leave of the rows themselves is solved for again until it is
    rounding, after which they are as good as by an orthogonal factorisation, which takes over where that fails.
    """
    order, squared = factorise(tree, owners, widths, leaves, checkpoint)
    traces, free = _solved(order, widths)
    if squared and order:
        parts = [leaf[1] for leaf in leaves if leaf is not None]
        try:
            return _settled(order, parts, traces, checkpoint), free
        except Delicate:
            return _solved(_along(tree, owners, widths, _rows(leaves), checkpoint, _orthogonal), widths)
    return traces, free


def _settled(
    order: Order, parts: Sequence[Remainder], traces: Sequence[Array], checkpoint: Callable[[], None]
) -> list[Array]:
    """The traces after corrections, until these are rounding; Delicate where they do not become smaller."""
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
            raise Delicate
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


def _further(order: Order, parts: Sequence[Remainder], traces: Sequence[Array]) -> list[Array]:
    """The traces of what given traces leave of the right sides of rows, with the factors that are there."""
    found = [np.zeros_like(trace) for trace in traces]  # right sides, then what they give
    sides = found[0].shape[1]

    def of(joints: Sequence[int], values: Array) -> Iterator[tuple[int, Array]]:
        ends = np.cumsum([len(traces[j]) for j in joints])
        return zip(joints, np.split(values, ends[:-1], axis=0), strict=True)

    for part in parts:
        if part.joints:
            known = np.concatenate([traces[j] for j in part.joints])
            rows, right = part.rows[:, : len(known)], part.rows[:, len(known) :]
            for j, more in of(part.joints, rows.conj().T @ (right - rows @ known)):
                found[j] += more
    for mine, kept in order:
        right = np.concatenate([found[j] for j in mine])
        turned = solve_triangular(kept.rows[:, : kept.own], right, trans="C", check_finite=False)
        for j, value in of(mine, turned):
            found[j] = value
        if kept.joints:
            for j, more in of(kept.joints, kept.rows[:, kept.own : -sides].conj().T @ turned):
                found[j] = found[j] - more
    for mine, kept in reversed(order):
        rows = np.hstack([kept.rows[:, :-sides], np.concatenate([found[j] for j in mine])])
        for j, value in of(mine, Kept(kept.own, kept.joints, rows).solve(found)[0]):
            found[j] = value
    return found


def factorise(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[tuple[Kept, Remainder] | None],
    checkpoint: Callable[[], None],
) -> tuple[Order, bool]:
    """The traces eliminated along the tree, and whether by products.

    widths : numbers per joint; leaves : what the leaves have kept and left; checkpoint : called between factorisations
    """
    try:
        return along_products(tree, owners, widths, _products(leaves), checkpoint), True
    except Delicate:
        return _along(tree, owners, widths, _rows(leaves), checkpoint, _orthogonal), False


def _rows(leaves: Sequence[tuple[Kept, Remainder] | None]) -> list[Remainder | None]:
    """What the leaves have left."""
    return [None if leaf is None else leaf[1] for leaf in leaves]


def along_products(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    products: Sequence[Remainder | None],
    checkpoint: Callable[[], None],
) -> Order:
    """The same of leaves that have left products of rows; Delicate where these do not tell enough."""
    return _along(tree, owners, widths, products, checkpoint, _squared)


Merge = Callable[[Sequence[Remainder], Sequence[int], Sequence[int], Sequence[int]], tuple[Kept, Remainder]]
"""Parts, the joints whose traces go, the joints that stay, and the widths → rows of the former, what is left."""


def _along(
    tree: CellNode,
    owners: dict[CellNode, list[int]],
    widths: Sequence[int],
    leaves: Sequence[Remainder | None],
    checkpoint: Callable[[], None],
    merge: Merge,
) -> Order:
    order: Order = []
    numbers = iter(leaves)

    def merged(parts: list[Remainder], mine: Sequence[int]) -> Remainder:
        shared = set(mine)
        rest = [j for j in dict.fromkeys(j for part in parts for j in part.joints) if j not in shared]
        kept, left = merge(parts, mine, rest, widths)
        if mine:
            order.append((mine, kept))
        return left

    def visit(node: CellNode) -> Remainder | None:
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
    if last is not None and last.joints:  # a single cell, joined to itself by periodicity
        merged([last], last.joints)
    return order


def _products(leaves: Sequence[tuple[Kept, Remainder] | None]) -> list[Remainder | None]:
    """A*A in the place of the rows A that leaves have left; Delicate where these are beyond what can be squared."""
    found: list[Remainder | None] = []
    for part in (None if leaf is None else leaf[1] for leaf in leaves):
        with np.errstate(over="ignore", invalid="ignore"):
            product = None if part is None else gram(part.rows)
        if product is not None and not np.isfinite(product).all():
            raise Delicate
        found.append(None if part is None or product is None else Remainder(part.joints, product))
    return found


def _squared(
    parts: Sequence[Remainder], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[Kept, Remainder]:
    """By a Cholesky factor of products of rows; Delicate where that is not accurate."""
    joints = [*mine, *rest]
    starts = dict(zip(joints, np.cumsum([0, *(widths[j] for j in joints)]), strict=False))
    own, total, sides = sum(widths[j] for j in mine), sum(widths[j] for j in joints), _sides(parts[0], widths)
    kind = np.result_type(*(part.rows for part in parts))
    matrix = np.zeros((total + sides, total + sides), dtype=kind, order="F")
    for part in parts:
        spans = _runs([(starts[j], starts[j] + widths[j]) for j in part.joints] + [(total, total + sides)])
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


def schur(matrix: Array, own: int, rest: tuple[int, ...]) -> tuple[Kept, Remainder]:
    """The first ``own`` unknowns eliminated from products of rows, given by their upper triangle.

    Delicate where that is not accurate.
    """
    if not own:
        return Kept(0, rest, matrix[:0]), Remainder(rest, matrix)
    lengths = np.sqrt(np.abs(np.diag(matrix)[:own]))
    potrf, trcon, trtrs = get_lapack_funcs(("potrf", "trcon", "trtrs"), (matrix,))
    with np.errstate(divide="ignore", invalid="ignore"):
        triangle, failed = potrf(matrix[:own, :own] / lengths / lengths[:, None], clean=1)
        if failed or not trcon(triangle)[0] > DELICATE:
            raise Delicate
    beside = trtrs(triangle, matrix[:own, own:] / lengths[:, None], trans=2)[0]
    left = _rank(beside)(-1.0, beside, beta=1.0, c=np.asfortranarray(matrix[own:, own:]), trans=2, overwrite_c=1)
    return Kept(own, rest, np.hstack([triangle * lengths, beside])), Remainder(rest, np.asarray(left))


def gram(rows: Array) -> Array:
    """The upper triangle of A*A: products of rows are never needed below it.

    >>> for rows in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0j], [3.0, 4.0 + 1j]])):
    ...     print(bool(np.allclose(gram(rows), np.triu(rows.conj().T @ rows))))
    True
    True
    """
    if not rows.size:
        return np.zeros((rows.shape[1],) * 2, dtype=rows.dtype)
    return np.asarray(_rank(rows)(1.0, np.asfortranarray(rows), trans=2))


def _rank(rows: Array) -> Callable[..., Array]:
    """α A*A + β C, of which half is computed."""
    return blas.zherk if np.iscomplexobj(rows) else blas.dsyrk


def _orthogonal(
    parts: Sequence[Remainder], mine: Sequence[int], rest: Sequence[int], widths: Sequence[int]
) -> tuple[Kept, Remainder]:
    """By an orthogonal factorisation of the rows, which is backward stable."""
    own = sum(widths[j] for j in mine)
    triangle = triangle_of(_stacked(parts, [*mine, *rest], widths))
    return Kept(own, tuple(rest), triangle[:own]), Remainder(tuple(rest), triangle[own:, own:])


def _sides(rows: Remainder | Kept, widths: Sequence[int]) -> int:
    """How many right sides there are."""
    own = rows.own if isinstance(rows, Kept) else 0
    return int(rows.rows.shape[1]) - own - sum(widths[j] for j in rows.joints)


def _stacked(parts: Sequence[Remainder], joints: Sequence[int], widths: Sequence[int]) -> Array:
    """The rows of parts below each other, in the columns of these joints."""
    starts = dict(zip(joints, np.cumsum([0, *(widths[j] for j in joints)]), strict=False))
    total = sum(widths[j] for j in joints)
    kind = np.result_type(*(part.rows for part in parts))
    height, sides = sum(len(part.rows) for part in parts), _sides(parts[0], widths)
    matrix = np.zeros((height, total + sides), dtype=kind, order="F")
    row = 0
    for part in parts:
        rows, begin = slice(row, row + len(part.rows)), 0
        for j in part.joints:
            matrix[rows, starts[j] : starts[j] + widths[j]] = part.rows[:, begin : begin + widths[j]]
            begin += widths[j]
        matrix[rows, total:] = part.rows[:, begin:]
        row += len(part.rows)
    return matrix


def triangle_of(matrix: Array) -> Array:
    """R of a QR factorisation, at most as many rows as columns; the matrix (in Fortran order) is overwritten."""
    rows, columns = matrix.shape
    if not rows:
        return np.zeros((0, columns), dtype=matrix.dtype)
    geqrf = lapack.zgeqrf if np.iscomplexobj(matrix) else lapack.dgeqrf
    factored, _, _, _ = geqrf(matrix, lwork=64 * columns, overwrite_a=1)
    return np.triu(factored[: min(rows, columns)])


def added(rows: Array, more: Array, own: int) -> tuple[Array, Array]:
    """Rows [R | C], R a triangle of ``own`` columns, with more rows [B | D] below: R and C of both, and what is left.

    As many rows as were added are left, in the columns of C alone; R is filled up with zeros if it is not whole.
    """
    kind = np.result_type(rows, more)
    upper = np.zeros((own, rows.shape[1]), dtype=kind, order="F")
    upper[: len(rows)] = rows[:own]
    if not len(more):
        return upper, more[:, own:]
    tpqrt, tpmqrt = get_lapack_funcs(("tpqrt", "tpmqrt"), dtype=kind)
    blocks = min(own, BLOCKS)
    triangle, vectors, factors, _ = tpqrt(0, blocks, upper[:, :own], np.asfortranarray(more[:, :own], dtype=kind))
    turn = "C" if np.iscomplexobj(triangle) else "T"
    beside, left, _ = tpmqrt(
        0, vectors, factors, upper[:, own:], np.asfortranarray(more[:, own:], dtype=kind), trans=turn
    )
    return np.hstack([np.triu(triangle), beside]), left
