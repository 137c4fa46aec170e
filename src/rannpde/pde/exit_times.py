"""Flows that leave a domain nowhere where its solution is prescribed: exponentially ill-conditioned problems.

A solution of ε Δu = x·∇u is an average of its prescribed values over the exits of the process dX = -X dt + √(2ε) dW,
whose paths stay near the origin for a time of the order exp(1/2ε). Residuals are integrated along these paths: the
longest expected time of exit, the maximum of w with L w = -1 and w = 0 where values are prescribed, is the norm of L⁻¹
between maximum norms. Diffusion alone takes a time of the order L²/ε, and so does, up to a constant, every flow without
divergence (Iyer, Novikov, Ryzhik, Zlatoš, SIAM J. Math. Anal. 42, 2010). Where a flow takes much longer, it is trapped
(Freidlin, Wentzell, Random Perturbations of Dynamical Systems), and the problem is exponentially ill-conditioned.

The time of exit of the adjoint operator is the norm of L⁻¹ between L¹ norms. It is what is large where a conservation
law collects inside: at a shock of ε u'' = u u', whose place is decided by the distance of the boundary through
exp(-distance/ε) (Laforgue, O'Malley, SIAM J. Appl. Math. 55, 1995), the linearised flow leaves, and its adjoint is
trapped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import sympy
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import LinearOperator, onenormest, splu
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import SpaceTime
from rannpde.pde.functions import State
from rannpde.pde.intrinsic import axis_coefficients, symbol_roots
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of, root_mean_square, term_residual
from rannpde.pde.statement.expression import Jet, differentiate, evaluate
from rannpde.pde.tolerance import COMPARABLE
from rannpde.rounding import EPS, ROOT_ROUNDED

EXIT_GRID_POINTS = 1681
"""Points of the grid on a bounding box, and points of each condition that tell where it stands."""
LARGEST_EXPONENT = float(np.log(np.finfo(float).max))
"""The largest number whose exponential is finite."""
LARGEST_AMPLIFICATION = 1 / EPS
"""Times of exit are computed up to this factor: beyond, rounding lets paths exit."""


def turning_amplification(problem: Problem, state: State) -> float:
    """Return the factor by which a flow that is trapped amplifies residuals: see ``trapping``."""
    return trapping(problem, state).amplification


@dataclass(frozen=True, eq=False)
class Trapping:
    """How much a flow that is trapped amplifies residuals in the solution of a problem.

    amplification : the factor for residuals relative to the flow, 1 where none is trapped
    points (M, n) : of a grid; response : residuals (M,) of the equation there → what they change in its solution (M,);
        None where it is not known
    """

    amplification: float = 1.0
    points: Array | None = None
    response: Callable[[Array], Array] | None = None

    def error(self, problem: Problem, state: State) -> float | None:
        """Return the relative error that the residuals of a function leave, L⁻¹ r; None where it is not known."""
        if self.points is None or self.response is None:
            return None
        (term,) = (term for term in problem.interior if term.expression.jets)
        left = self.response(term_residual(term, state, problem.vocabulary, self.points))
        size = root_mean_square(state.derivative(self.points, (0,) * self.points.shape[1]))
        return root_mean_square(left) / size if size > 0 and np.isfinite(left).all() else np.inf


def trapping(problem: Problem, state: State) -> Trapping:
    """Return how much a flow that is trapped amplifies residuals in the solution of a problem.

    state : where non-linear equations are linearised

    For a scalar equation of second order on a shape of up to three coordinates it is the longest expected time of exit
    over the time that the flow takes to cross the domain. On an interval, equations of other orders and systems have
    the exponential of a barrier instead (see ``wronskian_barrier``).

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
    """
    domain = problem.domain
    if isinstance(domain, SpaceTime) or domain.dim > 3:  # too few points along each axis
        return Trapping()
    if domain.dim == 1 and not all(_ends_with_conditions(problem)):
        return Trapping()
    grid = ExitGrid.of(problem)
    operator = scalar_operator(problem, state, grid.points)
    if operator is not None:
        adjoint = adjoint_operator(problem, state, grid.points)
        either = [trapping_of(operator, grid)]
        if adjoint is not None and grid.same_conditions(operator, adjoint):
            either.append(trapping_of(adjoint, grid, transposed=True))
        return max(either, key=lambda one: one.amplification)
    return Trapping(float(np.exp(wronskian_barrier(problem, state, grid)))) if domain.dim == 1 else Trapping()


@dataclass(frozen=True, eq=False)
class ScalarOperator:
    """L = Σ_i a_i ∂_ii + b_i ∂_i + c at points: diffusion, drift (M, n) and reaction (M,), with a > 0."""

    diffusion: Array
    drift: Array
    reaction: Array


def scalar_operator(problem: Problem, state: State, points: Array) -> ScalarOperator | None:
    """Return the linearised equation at points (M, n); None where it is no elliptic equation of second order."""
    coefficients = axis_coefficients(problem, state, points)
    if coefficients is None or coefficients.shape[1] != 3 or coefficients.shape[-1] != 1:
        return None
    values = coefficients[..., 0, 0]  # (n, 3, M)
    values = values * np.sign(values[0, 2, 0])
    if not np.isfinite(values).all() or not (values[:, 2] > 0).all():
        return None
    return ScalarOperator(values[:, 2].T, values[:, 1].T, values[0, 0])


def adjoint_operator(problem: Problem, state: State, points: Array) -> ScalarOperator | None:
    """Return the adjoint of the linearised equation at points (M, n); None where it is not known.

    With L u = Σ_i a_i ∂_ii u + b_i ∂_i u + c u it is L* φ = Σ_i ∂_ii (a_i φ) - ∂_i (b_i φ) + c φ. The derivatives of
    the coefficients along the solution are formulas, in which a conservation law leaves no reaction: Σ_i ∂_ii a_i -
    ∂_i b_i + c is the Euler operator of the equation, which vanishes for a divergence.
    """
    (term,) = (term for term in problem.interior if term.expression.jets)
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

    orders = {jet.index: partial for jet, partial in zip(expression.jets, expression.partials, strict=True)}
    coefficients = [
        [orders.get(tuple(k * (axis == own) for own in range(dim)), sympy.Integer(0)) for k in range(3)]
        for axis in range(dim)
    ]
    if sum(orders.values()) - sum(sum(own[1:]) for own in coefficients) - coefficients[0][0] != 0:
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


@dataclass(frozen=True, eq=False)
class ExitGrid:
    """The points of a uniform grid in a domain, and where paths leave it.

    spacing (n,) : the distance of neighbours along each axis; points (M, n)
    neighbours : for each axis the numbers (M,) of the neighbours below and above, -1 where they are not in the domain
    exits : likewise, whether values are prescribed where there is no neighbour
    """

    spacing: Array
    points: Array
    neighbours: tuple[tuple[Array, Array], ...]
    exits: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, problem: Problem) -> ExitGrid:
        """The grid of a problem on an interval or a shape."""
        domain = problem.domain
        bounds = np.asarray(domain.bounds, dtype=float)
        lengths, dim = np.ptp(bounds, axis=1), domain.dim
        counts = np.maximum(np.round(lengths * (EXIT_GRID_POINTS / lengths.prod()) ** (1 / dim)), dim + 1).astype(int)
        spacing = lengths / counts
        every = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, dim)
        cells = every[domain.contains(bounds[:, 0] + spacing * (every + 0.5))]
        numbers = np.full(counts + 2, -1)  # with a layer of points outside around the box
        numbers[tuple(cells.T + 1)] = np.arange(len(cells))
        steps = np.eye(dim, dtype=int)
        neighbours = tuple((numbers[tuple((cells + 1 - one).T)], numbers[tuple((cells + 1 + one).T)]) for one in steps)
        points = bounds[:, 0] + spacing * (cells + 0.5)
        return cls(spacing, points, neighbours, _exits(problem, spacing, points, neighbours))

    @cached_property
    def closed(self) -> bool:
        """Whether no value is prescribed anywhere."""
        return not any(one.any() for pair in self.exits for one in pair)

    def same_conditions(self, operator: ScalarOperator, adjoint: ScalarOperator) -> bool:
        """Whether an operator and its adjoint have the same conditions: values, or slopes where no flow passes."""
        passing = [np.abs(one.drift) > ROOT_ROUNDED * np.abs(one.drift).max() for one in (operator, adjoint)]
        return not any(
            ((numbers < 0) & ~leaves & one[:, axis]).any()
            for one in passing
            for axis, sides in enumerate(zip(self.neighbours, self.exits, strict=True))
            for numbers, leaves in zip(*sides, strict=True)
        )

    def exit_time(self, operator: ScalarOperator) -> float:
        """Return the longest expected time of exit; infinite where rounding decides. A reaction that lets solutions
        grow is left out."""
        solve = self.inverse(operator, np.maximum(-operator.reaction, 0.0))
        if solve is None:
            return np.inf
        times = solve(np.ones(len(self.points)))
        return float(times.max()) if np.isfinite(times).all() and times.min() > 0 else np.inf

    def inverse_norm(self, operator: ScalarOperator) -> float:
        """Return the norm of L⁻¹ between maximum norms, whatever the reaction; infinite where rounding decides."""
        solve, count = self.inverse(operator, -operator.reaction), len(self.points)
        if solve is None:
            return np.inf
        adjoint = LinearOperator((count, count), matvec=partial(solve, trans="T"), rmatvec=solve, dtype=float)
        norm = float(onenormest(adjoint))
        return norm if np.isfinite(norm) else np.inf

    @property
    def accuracy(self) -> float:
        """Relative accuracy of eigenvalues: rates are of first order in the spacing where it resolves no layer."""
        return float(np.max(self.spacing / np.ptp(self.points, axis=0)))

    def inverse(self, operator: ScalarOperator, decay: Array) -> Callable[..., Array] | None:
        """Return the solution operator of -L with a decay (M,) instead of the reaction; None where it is singular.

        Rates between neighbours are those of Scharfetter and Gummel, which are exact along an axis for a constant
        drift: without growth the matrix is an M-matrix for every drift, and the barriers are those of the flow.
        """
        count = len(self.points)
        here, diagonal = np.arange(count), decay
        rows, columns, entries = [], [], []
        for axis, (pair, leaves) in enumerate(zip(self.neighbours, self.exits, strict=True)):
            for sign, numbers, leave in zip((-1, 1), pair, leaves, strict=True):
                inside = numbers >= 0
                other = np.where(inside, numbers, here)
                diffusion = 0.5 * (operator.diffusion[:, axis] + operator.diffusion[other, axis])
                drift = 0.5 * (operator.drift[:, axis] + operator.drift[other, axis])
                step = self.spacing[axis]
                rates = diffusion / step**2 * bernoulli(-sign * drift * step / diffusion)
                diagonal = diagonal + np.where(inside | leave, rates, 0.0)
                rows.append(here[inside])
                columns.append(numbers[inside])
                entries.append(-rates[inside])
        indices = np.concatenate([*rows, here]), np.concatenate([*columns, here])
        matrix = csc_matrix((np.concatenate([*entries, diagonal]), indices), shape=(count, count))
        checkpoint()
        try:
            solve: Callable[..., Array] = splu(matrix, diag_pivot_thresh=0.0).solve
        except RuntimeError:  # an exactly singular matrix
            return None
        return solve


def trapping_of(operator: ScalarOperator, grid: ExitGrid, transposed: bool = False) -> Trapping:
    """Return the longest time of exit of a flow, and it over the time in which it crosses the domain, where it is
    trapped.

    transposed : whether it is the adjoint of the equation

    A reaction that lets solutions grow moves the small eigenvalue of a trapped flow away from zero, as for a shock of
    ε u'' = u u' - u, or another one to zero, as in ε u'' = x u' - u. The norm of the inverse on the grid tells, up to
    the accuracy of its eigenvalues.
    """
    if grid.closed or not operator.drift.any():
        return Trapping()
    still = ScalarOperator(operator.diffusion, 0 * operator.drift, 0 * operator.reaction)
    longest = grid.exit_time(operator)
    if COMPARABLE * longest <= grid.exit_time(still):
        return Trapping()
    rate = float((np.abs(operator.drift) / np.ptp(grid.points, axis=0)).sum(axis=1).max())
    decay = np.maximum(-operator.reaction, 0.0)
    if (operator.reaction > 0).any():
        norm = grid.inverse_norm(operator)
        if rate * norm * grid.accuracy < 1.0:
            longest, decay = norm, -operator.reaction
    solve = grid.inverse(operator, decay)
    response = solve if solve is None or not transposed else partial(solve, trans="T")
    return Trapping(float(np.clip(rate * longest, 1.0, LARGEST_AMPLIFICATION)), grid.points, response)


def bernoulli(z: Array) -> Array:
    """Return the Bernoulli function z / (exp(z) - 1), which is 1 at 0.

    >>> bernoulli(np.array([-1e9, -1.0, 0.0, 1.0, 1e9])).round(6).tolist()
    [1000000000.0, 1.581977, 1.0, 0.581977, 0.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(z == 0, 1.0, z / np.expm1(np.where(z == 0, 1.0, z)))


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


def _conditions(problem: Problem) -> list[tuple[Array, bool]]:
    """Points (M, n) of each condition, and whether it is one on values."""
    samples = []
    for term in problem.terms:
        if term.kind in ("boundary", "initial") and term.region is not None:
            values = any(jet.order == 0 for jet in term.expression.jets)
            samples.append((np.asarray(term.region.sample(EXIT_GRID_POINTS, rng=0)), values))
    return samples


def _ends_with_conditions(problem: Problem) -> tuple[bool, bool]:
    """Whether conditions stand at the lower and the upper end of an interval."""
    positions = np.concatenate([np.zeros(0), *(points[:, 0] for points, _ in _conditions(problem))])
    (ends,) = np.asarray(problem.domain.bounds, dtype=float)
    near = np.abs(positions[:, None] - ends) <= 1e-9 * (ends[1] - ends[0])
    return bool(near[:, 0].any()), bool(near[:, 1].any())


def _exits(
    problem: Problem, spacing: Array, points: Array, neighbours: tuple[tuple[Array, Array], ...]
) -> tuple[tuple[Array, Array], ...]:
    """For each axis, whether there is no neighbour below and above (M,), and the nearest condition is one on values."""
    conditions = _conditions(problem)
    if not conditions:
        return tuple((np.zeros(len(points), bool),) * 2 for _ in neighbours)
    nearest = cKDTree(np.concatenate([samples / spacing for samples, _ in conditions]))
    on_values = np.concatenate([np.full(len(samples), values) for samples, values in conditions])
    exits = []
    for axis, pair in enumerate(neighbours):
        both = []
        for sign, numbers in zip((-1, 1), pair, strict=True):
            faces = points / spacing
            faces[:, axis] += 0.5 * sign
            both.append((numbers < 0) & on_values[nearest.query(faces)[1]])
        exits.append((both[0], both[1]))
    return tuple(exits)
