"""What agreement of two iterations cannot show: ill-conditioning, residuals of one sign, several solutions."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.network import DiscreteSolution, cell_network
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of


def quadrature(solution: DiscreteSolution, degree: int) -> tuple[Array, Array]:
    """Return Gauss points (M, 1) of all cells of an interval, and square roots of weights (M, 1) with sum 1.

    There are twice as many in a cell as its functions have degrees: a collocation solution is far more accurate at as
    many Gauss points as it has degrees than between them.
    """
    nodes, weights = np.polynomial.legendre.leggauss(2 * degree)
    bounds = np.concatenate([leaf.bounds for leaf in solution.mesh.tree.leaves])
    centres, halves = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
    points = (centres[:, None] + halves[:, None] * nodes).reshape(-1, 1)
    shares = (halves[:, None] * weights).reshape(-1, 1)
    return points, np.sqrt(shares / shares.sum())


def may_be_ill_conditioned(problem: Problem) -> bool:
    """Return whether the operator need not be coercive.

    The second derivatives of one field alone, as in Poisson's equation, are coercive whatever the domain, unless
    conditions are missing, as with Cauchy data.
    """
    orders = {jet.order for term in problem.interior for jet in term.expression.jets}
    return orders != {2} or len(problem.fields) > 1 or problem.incomplete


def stability_constant(
    system: CellsSystem, solution: DiscreteSolution, sizes: Array, points: Array, rng: np.random.Generator
) -> float:
    """Return the largest change of a field, relative to its size, by residuals of size 1 with random signs.

    Above 1/√eps, agreement of two iterations shows nothing: both leave residuals, and often of one sign. Normal
    equations have lost all digits at such a stability constant.
    """
    response = cell_network(solution.mesh, system.perturbed(solution.weights, rng))
    return float((np.sqrt(np.mean(response(points) ** 2, axis=0)) / sizes).max())


def defect_error(
    system: CellsSystem, solution: DiscreteSolution, sizes: Array, degree: int, rng: np.random.Generator
) -> float:
    """Return the relative error that residuals of the present size can leave on an interval: defect times stability.

    Two iterations share the signs of their residuals where one cell is like the other, and agree on a wrong solution: a
    flame that ignites too early.
    """
    response = system.perturbed(solution.weights, rng, solution.indicators)
    points, roots = quadrature(solution, degree)
    values = roots * cell_network(solution.mesh, response)(points)
    return float((np.sqrt(np.sum(values**2, axis=0)) / sizes).max())


def several_slopes(problem: Problem, solution: DiscreteSolution, points: Array) -> bool:
    """Return whether the highest derivative of a scalar equation jumps between several values that satisfy it.

    The coefficient of the highest derivative in the linearised equation then changes its sign, and it depends on that
    derivative, as in |u_x| = 1: every zigzag satisfies the equation.
    """
    if len(problem.fields) > 1 or problem.linear:
        return False
    (term,) = problem.interior
    highest = max(term.expression.jets, key=lambda jet: jet.order)
    slope = term.expression.partials[term.expression.jets.index(highest)]
    symbol = next(symbol for symbol, jet in term.expression.symbols.items() if jet == highest)
    if symbol not in slope.free_symbols:
        return False
    jets = jets_of(solution.network, problem.fields, points, term.expression.jets)
    _, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
    values = np.broadcast_to(partials[term.expression.jets.index(highest)], len(points))
    return bool(values.min() < 0 < values.max())
