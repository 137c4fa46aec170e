"""Small linear systems of formulas, by elimination within a budget: SymPy's determinants simplify without an end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.pde.statement.expansion import EXPANSION_LIMIT, size
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.statement.grammar import StatementError

VANISHING = 1e-12
"""A pivot below this, at a random point and relative to its row, is zero: far above rounding, far below chance."""


def solve_linear(matrix: Sequence[Sequence[sympy.Expr]], right: Sequence[sympy.Expr]) -> list[sympy.Expr] | None:
    """The x with matrix · x = right; None where the matrix is singular, StatementError where the formulas explode.

    >>> a, b = sympy.symbols("a b")
    >>> solve_linear([[0, a], [2, 0]], [b, 1])
    [1/2, b/a]
    """
    rows = [[sympy.sympify(entry) for entry in (*row, value)] for row, value in zip(matrix, right, strict=True)]
    count = len(rows)
    for step in range(count):
        best = _pivot([row[step] for row in rows[step:]])
        if best is None:
            return None
        rows[step], rows[step + best] = rows[step + best], rows[step]
        pivot = rows[step]
        for row in rows[:step] + rows[step + 1 :]:
            if row[step] != 0:
                factor = row[step] / pivot[step]
                row[step:] = [
                    sympy.Integer(0),
                    *(a - factor * b for a, b in zip(row[step + 1 :], pivot[step + 1 :], strict=True)),
                ]
        if sum(size(entry, EXPANSION_LIMIT) for row in rows for entry in row) > EXPANSION_LIMIT:
            raise StatementError(
                f"the {count} equations are coupled so that their solution has more than {EXPANSION_LIMIT} terms; "
                "state them solved for one derivative each"
            )
    return [row[-1] / row[step] for step, row in enumerate(rows)]


def _pivot(column: list[sympy.Expr]) -> int | None:
    """The place of the pivot: a number if there is one, else the shortest entry that does not vanish identically."""
    found = [(not entry.is_number, size(entry), place) for place, entry in enumerate(column) if not _vanishes(entry)]
    return min(found)[2] if found else None


def _vanishes(entry: sympy.Expr) -> bool:
    """Whether an entry is zero, judged by its value at two random points beside the size of its summands."""
    if entry == 0 or entry.is_Number:
        return bool(entry == 0)
    names = {node: sympy.Dummy(real=True) for node in entry.atoms(AppliedUndef, sympy.Derivative)}
    plain = entry.xreplace(names)
    draw = np.random.default_rng(0)
    values = {symbol: draw.uniform(0.5, 1.5, 2) for symbol in sorted(plain.free_symbols, key=str)}
    terms = [np.abs(part) for part in evaluate(sympy.Add.make_args(plain), values)]
    total = np.abs(evaluate([plain], values)[0])
    return bool(np.all(total <= VANISHING * np.sum(np.broadcast_arrays(*terms), axis=0)))
