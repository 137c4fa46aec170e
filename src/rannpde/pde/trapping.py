"""Flows that are trapped in a domain: exponentially ill-conditioned problems.

Diffusion alone takes a time of the order L²/ε to leave, and so does, up to a constant, every flow without divergence
(Iyer, Novikov, Ryzhik, Zlatoš, SIAM J. Math. Anal. 42, 2010). Where a flow takes much longer, it is trapped (Freidlin,
Wentzell, Random Perturbations of Dynamical Systems), and residuals are amplified by the time of exit.

The time of exit of the adjoint operator is the norm of L⁻¹ between L¹ norms. It is what is large where a conservation
law collects inside: at a shock of ε u'' = u u', whose place is decided by the distance of the boundary through
exp(-distance/ε) (Laforgue, O'Malley, SIAM J. Appl. Math. 55, 1995), the linearised flow leaves, and its adjoint is
trapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import sympy
from scipy.linalg import matrix_balance
from scipy.sparse import bmat, csc_matrix, diags
from scipy.sparse.linalg import LinearOperator, onenormest

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.exit_times import ExitGrid, ScalarOperator, ends_with_conditions, factorised
from rannpde.pde.functions import State
from rannpde.pde.intrinsic import axis_coefficients, symbol_roots
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, jets_of, root_mean_square, term_residual
from rannpde.pde.statement.expression import Jet, differentiate, evaluate
from rannpde.pde.tolerance import COMPARABLE
from rannpde.rounding import EPS

LARGEST_EXPONENT = float(np.log(np.finfo(float).max))
"""The largest number whose exponential is finite."""
LARGEST_AMPLIFICATION = 1 / EPS
"""Times of exit are computed up to this factor: beyond, rounding lets paths exit."""


def turning_amplification(problem: Problem, state: State) -> float:
    """Return the factor by which a flow that is trapped amplifies residuals: see ``trapping``."""
    return trapping(problem, state).amplification


@dataclass(frozen=True, eq=False)
class TrappedField:
    """A field whose flow is trapped, and what residuals of its equation change in it.

    term, field : the equation, and the number of its field; points (M, n) : of a grid
    solve : residuals (M,) there → the change of the field (M,)
    """

    term: Term
    field: int
    points: Array
    solve: Callable[[Array], Array]

    def error(self, problem: Problem, state: State) -> float:
        """Return the relative error that the residuals of a function leave, L⁻¹ r."""
        left = self.solve(term_residual(self.term, state, problem.vocabulary, self.points))
        size = root_mean_square(state.derivative(self.points, (0,) * self.points.shape[1])[:, self.field])
        return root_mean_square(left) / size if size > 0 and np.isfinite(left).all() else np.inf


@dataclass(frozen=True, eq=False)
class Trapping:
    """How much a flow that is trapped amplifies residuals in the solution of a problem.

    amplification : the factor for residuals relative to the flow, 1 where none is trapped
    fields : those that are trapped, as far as their responses are known
    """

    amplification: float = 1.0
    fields: tuple[TrappedField, ...] = ()

    def error(self, problem: Problem, state: State) -> float | None:
        """Return the relative error that the residuals of a function leave; None where no response is known."""
        return max((one.error(problem, state) for one in self.fields), default=None)


def trapping(problem: Problem, state: State) -> Trapping:
    """Return how much a flow that is trapped amplifies residuals in the solution of a problem.

    state : where non-linear equations are linearised

    For equations of second order on a shape of up to three coordinates it is the longest expected time of exit over the
    time that the flow takes to cross the domain, of the field that is trapped longest. On an interval, equations of
    other orders and systems have the exponential of a barrier instead (see ``wronskian_barrier``).

    >>> from rannpde.domains import Ball, Box, Interval
    >>> from rannpde.pde.functions import Zero
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = {"ends": On("boundary", "u = x")}
    >>> line = [Problem(f"0.05*u_xx = {flow}*u_x", Interval(-1, 1), ends) for flow in ("x", "(-x)", "1")]
    >>> [round(np.log(turning_amplification(problem, Zero(1)))) for problem in line]  # exp(1/(2 · 0.05)) = 22026
    [8, 0, 0]
    >>> flows = ("x*u_x + y*u_y", "9*x*u_y - 9*y*u_x")
    >>> disc = [Problem(f"0.05*laplace(u) = {flow}", Ball((0, 0), 1), ends) for flow in flows]
    >>> [round(np.log(turning_amplification(problem, Zero(1)))) for problem in disc]
    [7, 0]
    >>> conserved = Problem("d(0.05*u_x + x*u, x) = 0", Interval(-1, 1), ends)
    >>> round(np.log(turning_amplification(conserved, Zero(1))))
    8
    >>> both = {"circle": On("boundary", ["u = x", "v = 1"])}
    >>> system = ["0.05*laplace(u) = x*u_x + y*u_y + v", "0.05*laplace(v) = v - x*v_x"]
    >>> round(np.log(turning_amplification(Problem(system, Ball((0, 0), 1), both), Zero(2))))
    7
    """
    domain = problem.domain
    if isinstance(domain, SpaceTime) or domain.dim > 3:  # too few points along each axis
        return Trapping()
    if domain.dim == 1 and not all(ends_with_conditions(problem)):
        return Trapping()
    grid = ExitGrid.of(problem)
    blocks = None if domain.dim == 1 and len(problem.fields) > 1 else elliptic_blocks(problem, state, grid)
    if blocks is None:
        return Trapping(float(np.exp(wronskian_barrier(problem, state, grid)))) if domain.dim == 1 else Trapping()
    adjoints = [one.adjoint(problem, state, blocks) for one in blocks]
    known = [one for one in adjoints if one is not None]
    sides = [blocks, known] if len(known) == len(blocks) else [blocks]
    return max((trapping_of(own) for own in sides), key=lambda one: one.amplification)


@dataclass(frozen=True, eq=False)
class EllipticBlock:
    """An equation of a system that determines one field, with the others given.

    field : the number of its field; grid : with the exits of that field
    coupling : numbers of other fields → their coefficients (M,); transposed : whether it is the adjoint of the equation
    """

    term: Term
    field: int
    grid: ExitGrid
    operator: ScalarOperator
    coupling: dict[int, Array]
    transposed: bool = False

    def adjoint(self, problem: Problem, state: State, blocks: Sequence[EllipticBlock]) -> EllipticBlock | None:
        """Return the block of the adjoint of these; None where it is not known, or has other conditions."""
        operator = adjoint_operator(problem, self.term, problem.fields[self.field], state, self.grid.points)
        if operator is None or not self.grid.same_conditions(self.operator, operator):
            return None
        coupling = {one.field: one.coupling[self.field] for one in blocks if self.field in one.coupling}
        return EllipticBlock(self.term, self.field, self.grid, operator, coupling, transposed=True)


def elliptic_blocks(problem: Problem, state: State, grid: ExitGrid) -> list[EllipticBlock] | None:
    """Return the linearised equations in the order of the fields; None where they are not elliptic of second order, or
    coupled by derivatives in a circle.

    Where an equation has derivatives of other fields, and these do not depend on its own, the operator is triangular,
    and its inverse contains those of the blocks.
    """
    coefficients = axis_coefficients(problem, state, grid.points)
    if coefficients is None or coefficients.shape[1] != 3 or not np.isfinite(coefficients).all():
        return None
    derivatives = (coefficients[:, 1:] != 0).any(axis=(0, 1, 2))  # in an equation (row) of a field (column)
    rows = matched_equations(derivatives)
    if rows is None:
        return None
    triangular = int(derivatives.sum()) > len(rows)
    if triangular and matched_equations(derivatives | (coefficients[0, 0] != 0).any(axis=0)) is None:
        return None
    terms = [term for term in problem.interior if term.expression.jets]
    blocks = []
    for field, name in enumerate(problem.fields):
        row = rows[field]
        values = coefficients[..., row, field]  # (n, 3, M)
        sign = np.sign(values[0, 2, 0])
        if not (sign * values[:, 2] > 0).all():
            return None
        operator = ScalarOperator(sign * values[:, 2].T, sign * values[:, 1].T, sign * values[0, 0])
        others = [] if triangular else [k for k in range(len(rows)) if k != field]
        coupling = {k: sign * coefficients[0, 0, :, row, k] for k in others if coefficients[0, 0, :, row, k].any()}
        own = grid.of_field(problem, name) if field else grid
        blocks.append(EllipticBlock(terms[row], field, own, operator, coupling))
    return blocks


def matched_equations(occurs: Array) -> list[int] | None:
    """Return for each field the equation that holds no other but those that are matched before; None where there is
    none.

    occurs (F, F) : whether an equation (row) holds a field (column)

    >>> matched_equations(np.array([[True, True], [False, True]]))
    [0, 1]
    >>> matched_equations(np.array([[False, True], [True, False]]))
    [1, 0]
    >>> matched_equations(np.array([[True, True], [True, True]]))
    """
    left, rows = occurs.copy(), [-1] * len(occurs)
    for _ in rows:
        alone = np.flatnonzero(left.sum(axis=1) == 1)
        if not len(alone):
            return None
        field = int(np.argmax(left[alone[0]]))
        rows[field] = int(alone[0])
        left[:, field] = left[alone[0]] = False
    return rows


def adjoint_operator(problem: Problem, term: Term, field: str, state: State, points: Array) -> ScalarOperator | None:
    """Return the adjoint of an equation, linearised in one field, at points (M, n); None where it is not known.

    With L u = Σ_i a_i ∂_ii u + b_i ∂_i u + c u it is L* φ = Σ_i ∂_ii (a_i φ) - ∂_i (b_i φ) + c φ. The derivatives of
    the coefficients along the solution are formulas, in which a conservation law leaves no reaction: Σ_i ∂_ii a_i -
    ∂_i b_i + c is the Euler operator of the equation, which vanishes for a divergence.
    """
    expression, dim = term.expression, problem.domain.dim
    symbols = dict(expression.symbols)
    jets = {jet: symbol for symbol, jet in symbols.items()}

    def slope(formula: sympy.Expr, axis: int) -> sympy.Expr:
        """The derivative of a formula along an axis, with those of the jets in it."""
        total = differentiate(formula, problem.vocabulary.symbols[axis])
        for symbol in formula.free_symbols & symbols.keys():
            index = tuple(order + (k == axis) for k, order in enumerate(symbols[symbol].index))
            jet = Jet(symbols[symbol].field, index)
            if jet not in jets:
                jets[jet] = sympy.Dummy()
                symbols[jets[jet]] = jet
            total += differentiate(formula, symbol) * jets[jet]
        return total

    partials = zip(expression.jets, expression.partials, strict=True)
    orders = {jet.index: partial for jet, partial in partials if jet.field == field}
    coefficients = [
        [orders.get(tuple(k * (axis == own) for own in range(dim)), sympy.Integer(0)) for k in range(3)]
        for axis in range(dim)
    ]
    if any(max(index) < sum(index) for index in orders):
        return None  # mixed derivatives
    drift = [2 * slope(second, axis) - first for axis, (_, first, second) in enumerate(coefficients)]
    reaction = coefficients[0][0] + sum(slope(own, axis) for axis, own in enumerate(drift))
    reaction -= sum(slope(slope(own[2], axis), axis) for axis, own in enumerate(coefficients))
    formulas = [*drift, reaction, *(own[2] for own in coefficients)]
    if any(formula.has(sympy.Derivative, sympy.Subs) for formula in formulas):
        return None  # a function of the user
    known = jets_of(state, problem.fields, points, symbols.values())
    values = term.known(points, problem.vocabulary) | {symbol: known[jet] for symbol, jet in symbols.items()}
    numbers = [np.broadcast_to(one, len(points)) for one in evaluate(formulas, values, expression.functions)]
    sign = np.sign(numbers[-1][0])
    if not np.isfinite(numbers).all():
        return None
    return ScalarOperator(
        sign * np.stack(numbers[dim + 1 :], axis=1), sign * np.stack(numbers[:dim], axis=1), sign * numbers[dim]
    )


def trapping_of(blocks: Sequence[EllipticBlock]) -> Trapping:
    """Return the longest time of exit of the fields, over the time in which the flow crosses the domain, where it is
    trapped.

    A reaction that lets solutions grow, or a coupling of fields, moves the small eigenvalue of a trapped flow away from
    zero, as for a shock of ε u'' = u u' - u, or another one to zero, as in ε u'' = x u' - u. The norm of the inverse on
    the grid tells, up to the accuracy of its eigenvalues.
    """
    largest, fields = 1.0, []
    for block in blocks:
        operator, grid = block.operator, block.grid
        if grid.closed or not operator.drift.any():
            continue
        still = ScalarOperator(operator.diffusion, 0 * operator.drift, 0 * operator.reaction)
        longest = grid.exit_time(operator)
        if COMPARABLE * longest <= grid.exit_time(still):
            continue
        rate = float((np.abs(operator.drift) / np.ptp(grid.points, axis=0)).sum(axis=1).max())
        decay = np.maximum(-operator.reaction, 0.0)
        if (operator.reaction > 0).any() or any(one.coupling for one in blocks):
            norm = inverse_norm(blocks)
            if rate * norm * grid.accuracy < 1.0:
                longest, decay = norm, -operator.reaction
        solve = grid.inverse(operator, decay)
        if solve is not None:
            response = partial(solve, trans="T") if block.transposed else solve
            fields.append(TrappedField(block.term, block.field, grid.points, response))
        largest = max(largest, float(np.clip(rate * longest, 1.0, LARGEST_AMPLIFICATION)))
    return Trapping(largest, tuple(fields))


def inverse_norm(blocks: Sequence[EllipticBlock]) -> float:
    """Return the norm of the inverse of coupled equations between maximum norms, whatever their reactions; infinite
    where rounding decides. The fields are in units in which they act on each other alike."""
    magnitudes = np.eye(len(blocks))
    for block in blocks:
        for k, values in block.coupling.items():
            magnitudes[block.field, k] = np.abs(values).max()
    units = matrix_balance(magnitudes, permute=False, separate=True)[1][0]
    rows: list[list[csc_matrix | None]] = []
    for block in blocks:
        couplings = {k: diags(-values * units[k] / units[block.field]) for k, values in block.coupling.items()}
        own = block.grid.matrix(block.operator, -block.operator.reaction)
        rows.append([own if k == block.field else couplings.get(k) for k in range(len(blocks))])
    matrix = csc_matrix(bmat(rows))
    solve = factorised(matrix)
    if solve is None:
        return np.inf
    adjoint = LinearOperator(matrix.shape, matvec=partial(solve, trans="T"), rmatvec=solve, dtype=float)
    norm = float(onenormest(adjoint))
    return norm if np.isfinite(norm) else np.inf


def wronskian_barrier(problem: Problem, state: State, grid: ExitGrid) -> float:
    """Return the largest barrier of the modes of a system or an equation of any order on an interval.

    With S the integral of Σ Re λ along the interval, the logarithm of the Wronskian, λ being the roots of the symbol
    with frozen coefficients, it is the largest max S - S(y) between a point y and the nearer of both ends. It is 0
    where the modes that grow and those that decay balance.
    """
    (roots,) = symbol_roots(problem, state, grid.points)
    rates, step = roots.real.sum(axis=1), grid.spacing[0]
    integral = np.concatenate([[0.0], np.cumsum(0.5 * step * (rates[1:] + rates[:-1]))])
    below, above = np.maximum.accumulate(integral), np.maximum.accumulate(integral[::-1])[::-1]
    return float(min((np.minimum(below, above) - integral).max(), LARGEST_EXPONENT))
