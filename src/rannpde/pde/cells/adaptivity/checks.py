"""Checks that agreement of two iterations cannot replace: of ill-conditioning, and of residuals of one sign."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from rannpde.arrays import Array, ArrayMap
from rannpde.pde.cells.network import DiscreteSolution, cell_network
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.functions import State
from rannpde.pde.intrinsic import axis_coefficients
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import field_sizes, jets_of, term_residual
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER


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


def transported_error(problem: Problem, state: State, points: Array, lengths: Array | None = None) -> float:
    """Return a bound of the relative error that residuals leave where hardly anything smooths them, as in transport.

    They add up along characteristics. An equation that is solved for the highest derivative in time, of order m, has
    ‖e‖ ≤ (2T/π)^m ‖r‖ in the L² norm over space and time, with equality for m = 1 where r has one sign along each
    characteristic. At a kink it does: least squares smooth it, by the same amount at all times and in all iterations.
    Diffusion damps what varies over the length of a cell in a time of its own, if that is shorter.

    points (M, n) : held-out points; lengths (M,) : of the cells around them, in space
    """
    values = state.derivative(points, (0,) * points.shape[1])
    sizes = dict(zip(problem.fields, field_sizes(np.sqrt(np.mean(values**2, axis=0))), strict=True))
    duration = 2 / np.pi * float(np.ptp(problem.domain.bounds[0]))
    damping = np.zeros(len(points)) if lengths is None else damping_rates(problem, state, points, np.pi / lengths)
    squares: dict[str, float] = {}
    for term in problem.interior:
        jets = jets_of(state, problem.fields, points, term.expression.jets)
        residual, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        rates = [(jet.index[0], k) for k, jet in enumerate(jets) if jet.order == jet.index[0] > 0]
        if rates:  # an equation without a derivative in time holds at every time alike
            order, k = max(rates)
            field, rate = list(jets)[k].field, np.broadcast_to(partials[k], len(points))
            left = np.divide(residual, rate, out=np.zeros(len(points)), where=rate != 0)
            left = left * (duration / np.maximum(1.0, duration * damping)) ** order / sizes[field]
            squares[field] = squares.get(field, 0.0) + float(np.mean(left**2))
    return float(np.sqrt(max(squares.values(), default=0.0)))


def damping_rates(problem: Problem, state: State, points: Array, wavenumbers: Array) -> Array:
    """Return the rates (M,) at which waves of these wavenumbers (M,) are damped at points (M, 2) of time and one
    coordinate, the least of several fields: the real part of the symbol with frozen coefficients; infinite where the
    equations are not of first order in time in every field, and 0 where waves grow."""
    coefficients = axis_coefficients(problem, state, points)  # of time and space, by order
    if coefficients is None or coefficients.shape[1] < 2:
        return np.full(len(points), np.inf)
    in_time, space = coefficients[0, 1], coefficients[1, 1:]
    symbol = sum((space[k] * (1j * wavenumbers[:, None, None]) ** (k + 1) for k in range(len(space))), 0j * in_time)
    try:
        rates = np.linalg.eigvals(np.linalg.solve(in_time.astype(complex), symbol)).real.min(axis=1)
    except np.linalg.LinAlgError:
        return np.full(len(points), np.inf)
    return np.maximum(rates, 0.0)


@dataclass(frozen=True)
class MeanDefect:
    """The means of residuals over the cells of an interval, as an estimate of the error.

    error : the relative error that they leave, L⁻¹ r, solved for
    remainder : the part of them that no change of the solution removes, relative to the terms of the equations
    share : the remainder over the means
    """

    error: float = 0.0
    remainder: float = 0.0
    share: float = 0.0

    def irremovable(self, tol: float) -> float:
        """Return the remainder where it is most of the means and exceeds a tolerance; 0 elsewhere."""
        return self.remainder if self.remainder > tol and self.share > COMPARABLE else 0.0


def cell_means(function: ArrayMap, bounds: Array, degree: int) -> Array:
    """Return the means (C,) over intervals (C, 2) of a function of points (M, 1) that may be singular in them.

    Where Gauss quadrature and the interpolatory rule at every other of its nodes disagree by more than a negligible
    part of the largest integral, the interval is bisected towards the half on which they disagree most, until two
    bisections in a row change no more than that, or down to the spacing of numbers. Bisections towards a power
    |x - c|^-p change the integral by a geometric sequence, whose remaining sum is added.

    >>> means = cell_means(lambda points: np.abs(points[:, 0] - 0.3) ** -0.5, np.array([[0.0, 1.0]]), 8)
    >>> bool(abs(means[0] / (2 * 0.3**0.5 + 2 * 0.7**0.5) - 1) < 0.01)
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(2 * degree)
    sparse = np.polynomial.legendre.legvander(nodes[::2], degree - 1).T
    embedded = np.linalg.solve(sparse, 2.0 * np.eye(degree)[0])

    def integrals(lower: Array, upper: Array) -> tuple[Array, Array]:
        """The integrals (K,) over intervals, and the differences of the two rules."""
        halves = 0.5 * (upper - lower)[:, None]
        values = function((0.5 * (lower + upper)[:, None] + halves * nodes).reshape(-1, 1)).reshape(-1, len(nodes))
        values = halves * np.where(np.isfinite(values), values, 0.0)
        whole = values @ weights
        return whole, np.abs(whole - values[:, ::2] @ embedded)

    total, doubt = integrals(*bounds.T)
    matters = MUCH_SMALLER**3 * np.abs(total).max()
    number = np.flatnonzero(doubt > matters)  # of the intervals that are bisected
    (lower, upper), part, change = bounds[number].T, total[number], np.full(len(number), np.inf)
    while len(number):
        middle = 0.5 * (lower + upper)
        (left, left_doubt), (right, right_doubt) = integrals(lower, middle), integrals(middle, upper)
        before, change = change, left + right - part
        total[number] += change
        to_the_left = left_doubt > right_doubt
        lower, upper = np.where(to_the_left, lower, middle), np.where(to_the_left, middle, upper)
        part = np.where(to_the_left, left, right)
        going = np.maximum(np.abs(change), np.abs(before)) > matters
        going &= upper - lower > len(nodes) * np.spacing(np.abs(middle))
        geometric = ~going & (np.abs(change) < np.abs(before))
        total[number[geometric]] += (change**2 / (before - change))[geometric]
        number, lower, upper, part, change = (values[going] for values in (number, lower, upper, part, change))
    return total / np.ptp(bounds, axis=1)


def mean_defect(system: CellsSystem, solution: DiscreteSolution, sizes: Array, degree: int) -> MeanDefect:
    """Solve the linearised equations with the means of the residuals over cells on an interval.

    A residual that oscillates within a cell changes the solution there alone, in proportion to the length of the cell
    to the power of the order of the equation, but a mean changes it on the whole interval. A residual that is smaller
    than the one before may have a larger mean: that of a load narrower than a cell, whose integral is missed. Where a
    change of the solution removes the means, it is the error; where none does, as for a linearised equation whose
    leading coefficient vanishes inside, there is no solution near this function, and small residuals (in rows that are
    relative to what they would be for a field that varies over the length of a cell) show nothing. The points are not
    collocation points.
    """
    problem = system.problem
    points, roots = quadrature(solution, degree)
    present = list(system.mesh.present)
    shares = (roots**2).reshape(len(present), -1)
    lengths = shares.sum(axis=1)

    def means(values: Array) -> Array:
        return np.asarray((shares * values.reshape(shares.shape)).sum(axis=1) / lengths)

    bounds = np.concatenate([leaf.bounds for leaf in solution.mesh.tree.leaves])
    left = {
        id(term): cell_means(partial(term_residual, term, solution.network, problem.vocabulary), bounds, degree)
        for term in problem.interior
    }
    noise = [[np.zeros(len(one.points)) for one in own] for own in system.collocations]
    for position, (number, cell) in enumerate(present):
        for row, one in enumerate(system.collocations[number]):
            if id(one.term) in left:
                natural = system.linearised(cell, one, system.jets(one, solution.weights.cells[number]))[2]
                noise[number][row] += left[id(one.term)][position] / natural
    response = cell_network(solution.mesh, system.response(solution.weights, noise))
    remainder = share = 0.0
    for term in problem.interior:
        jets = jets_of(solution.network, problem.fields, points, term.expression.jets)
        moved = jets_of(response, problem.fields, points, term.expression.jets)
        _, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        parts = list(zip(partials, term.expression.jets, strict=True))
        changed = means(sum((factor * moved[jet] for factor, jet in parts), np.zeros(len(points))))
        terms = sum((np.abs(factor * jets[jet]) for factor, jet in parts), np.zeros(len(points)))
        kept = float(np.sqrt(lengths @ (changed - left[id(term)]) ** 2))
        remainder = max(remainder, kept / max(float(np.sqrt(lengths @ means(terms**2))), np.finfo(float).tiny))
        share = max(share, kept / max(float(np.sqrt(lengths @ left[id(term)] ** 2)), np.finfo(float).tiny))
    values = roots * response(points)
    return MeanDefect(float((np.sqrt(np.sum(values**2, axis=0)) / sizes).max()), remainder, share)
