"""Elimination of formulas: against SymPy's own solution, singular matrices, and the end of the budget."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from rannpde.grammar import StatementError
from rannpde.pde.statement.expansion import solve_linear

A, B, C = sympy.symbols("a b c", real=True)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_solution_solves(count):
    rng = np.random.default_rng(count)
    matrix = [[A ** int(rng.integers(0, 3)) * sympy.cos(i + B) + j for j in range(count)] for i in range(count)]
    matrix[0][0] = sympy.Integer(0) if count > 1 else matrix[0][0]
    right = [sympy.sin(C + i) for i in range(count)]
    found = solve_linear(matrix, right)
    point = {A: 0.7, B: 0.3, C: 1.1}
    left = np.array([[float(entry.subs(point)) for entry in row] for row in map(list, sympy.Matrix(matrix).tolist())])
    wanted = np.linalg.solve(left, [float(entry.subs(point)) for entry in right])
    assert np.allclose([float(entry.subs(point)) for entry in found], wanted, rtol=1e-12 * np.linalg.cond(left))


def test_a_singular_matrix_is_found_without_simplifying():
    assert solve_linear([[A, B], [A * C, B * C]], [1, 1]) is None
    assert solve_linear([[sympy.sin(A) ** 2 + sympy.cos(A) ** 2 - 1]], [1]) is None
    assert solve_linear([[A, B], [A, B + 1]], [0, 1]) is not None


def test_dense_coupling_is_refused_within_the_budget():
    names = sympy.symbols("w0:8", real=True)
    matrix = [[sympy.exp(i * name + j * A) for j, name in enumerate(names)] for i in range(8)]
    with pytest.raises(StatementError, match="coupled"):
        solve_linear(matrix, list(names))
