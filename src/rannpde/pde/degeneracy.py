"""Coefficients of highest derivatives that change their sign at a solution, so that the problem does not determine it.

For u_xx u_x = f, (u_x)² is a primitive of 2f, and u_x one of its two roots. Where u_x passes through zero it may keep
its sign, and next to the solution without a kink there is a whole family with one: a primitive that is larger by any
constant, and a jump of u_x to the other root just where the values at the ends ask for it. Each leaves nothing in the
equation but at one point, where all discretisations make a steep slope of the jump, in ever smaller cells. So it is
wherever the coefficient of the highest derivative depends on the solution and changes its sign: |u_x| = 1, u u_x = f,
u Δu = f. A coefficient that vanishes and keeps its sign, as in the p-Laplacian or in porous media, does no harm.

Of (u_x)² = f neither root need be left: each is a solution from the beginning.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import HELD_OUT, Term, jets_of, root_mean_square
from rannpde.pde.statement.expression import Jet, evaluate
from rannpde.pde.tolerance import ESTIMATOR_FACTOR, MUCH_SMALLER
from rannpde.rounding import EPS, ROOT_ROUNDED

BRANCH_POINTS = np.finfo(float).nmant
"""Points at which other branches are looked for, and steps of bisection: one for each bit."""


def sign_change(problem: Problem, state: State, estimate: float, residual: float) -> str | None:
    """Return a sentence that says where the leading coefficient of a scalar stationary equation changes its sign.

    None where it does not, as far as is known: what has the other sign must exceed what errors of the solution cause.

    estimate : of the relative error of the state; residual : relative, which bounds errors of the highest derivative

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = {"ends": On("boundary", "u = cos(3*x)")}
    >>> problem = Problem("u_xx*u_x = 27/2*sin(6*x)", Interval(0.5, 1.5), ends, exact={"u": "cos(3*x)"})
    >>> sign_change(problem, problem.exact_solution, 1e-6, 1e-4)
    'the coefficient of u_xx depends on the solution and changes its sign near x = 1.047'
    """
    term = _scalar_equation(problem)
    if term is None or not np.isfinite(estimate) or not residual < 1:
        return None
    expression = term.expression
    order = max(jet.order for jet in expression.jets)
    leading = {
        jet: slope for jet, slope in zip(expression.jets, expression.partials, strict=True) if jet.order == order
    }
    symbols = dict(expression.symbols)
    slopes = [(slope, symbol) for slope in leading.values() for symbol in symbols if symbol in slope.free_symbols]
    dim = problem.domain.dim
    if not slopes or (dim > 1 and order != 2):
        return None
    points = np.asarray(problem.domain.sample(HELD_OUT, rng=20_073))
    points = points[np.argsort(points[:, 0])]
    jets = jets_of(state, problem.fields, points, expression.jets)
    values = term.known(points, problem.vocabulary) | {symbol: jets[jet] for symbol, jet in symbols.items()}
    several = evaluate(
        [*leading.values(), *(slope.diff(symbol) for slope, symbol in slopes)], values, expression.functions
    )
    every = [np.broadcast_to(value, len(points)) for value in several]
    coefficients, changes = every[: len(leading)], every[len(leading) :]
    if not np.isfinite(coefficients).all():
        return None
    lowest, highest = _range(dict(zip(leading, coefficients, strict=True)), dim)
    above, below = np.maximum(lowest, 0.0), np.maximum(-highest, 0.0)
    accuracy = 0.0
    for change, (_, symbol) in zip(changes, slopes, strict=True):
        jet = symbols[symbol]
        share = jet.order / order
        # between the errors of values and of the highest derivatives, as in the inequality of Gagliardo and Nirenberg
        error = max(estimate, EPS) ** (1 - share) * max(residual, EPS) ** share * root_mean_square(jets[jet])
        accuracy += root_mean_square(np.where(np.isfinite(change), change, 0.0)) * error
    rarer = min(above, below, key=root_mean_square)
    if not root_mean_square(rarer) > ESTIMATOR_FACTOR * accuracy:
        return None
    if dim == 1:
        signs = np.flatnonzero((above[:-1] > 0) != (above[1:] > 0))
        position = 0.5 * (points[signs[0]] + points[signs[0] + 1])
    else:
        position = points[int(np.argmax(rarer))]
    where = ", ".join(f"{name} = {value:.4g}" for name, value in zip(problem.domain.names, position, strict=True))
    names = ", ".join(_name(jet, problem) for jet in leading)
    return f"the coefficient of {names} depends on the solution and changes its sign near {where}"


def several_solutions(problem: Problem, state: State, estimate: float, residual: float) -> str | None:
    """Return a warning where the leading coefficient changes its sign or the equation has other branches, else None."""
    remedy = "state the branch that is meant, solved for its highest derivative, or add diffusion"
    change = sign_change(problem, state, estimate, residual)
    if change is not None:
        change += ", where a solution may go on along another branch, with a kink there or nearby"
    else:
        change = other_branch(problem, state)
    return None if change is None else f"the equation has several solutions: {change}; {remedy}"


def other_branch(problem: Problem, state: State) -> str | None:
    """Return a sentence where other values of the highest derivative satisfy an equation on an interval at all points.

    >>> from rannpde.domains import Interval
    >>> conditions = {"x=0": "u = 1"}
    >>> problems = [Problem(f"{text} = exp(2*x)", Interval(0, 1), conditions, exact={"u": "exp(x)"})
    ...             for text in ("u_x**2", "u_x*u", "u_x**3/exp(x)")]
    >>> [other_branch(problem, problem.exact_solution) for problem in problems]
    ['the equation is satisfied at every point by another value of u_x as well', None, None]
    """
    term = _scalar_equation(problem)
    if term is None or problem.domain.dim > 1:
        return None
    expression = term.expression
    highest = max(expression.symbols, key=lambda symbol: expression.symbols[symbol].order)
    slopes = dict(zip(expression.jets, expression.partials, strict=True))
    if highest not in slopes[expression.symbols[highest]].free_symbols:  # it is linear in its highest derivative
        return None
    points = np.asarray(problem.domain.sample(BRANCH_POINTS, rng=20_074))
    jets = jets_of(state, problem.fields, points, expression.jets)
    values = term.known(points, problem.vocabulary)
    values |= {symbol: jets[jet] for symbol, jet in expression.symbols.items()}
    known = values[highest]
    size = root_mean_square(known)
    if size <= ROOT_ROUNDED * max(map(root_mean_square, jets.values())):  # its sign is that of errors
        return None

    def left(candidates: Array) -> Array:
        """The residuals of the equation for candidates (count, M) of the highest derivative."""
        with np.errstate(all="ignore"):
            (value,) = evaluate([expression.formula], values | {highest: candidates}, expression.functions)
        return np.broadcast_to(value, candidates.shape)

    scale = np.linspace(-1 / MUCH_SMALLER, 1 / MUCH_SMALLER, HELD_OUT)
    candidates = np.repeat(size * scale[:, None], len(points), axis=1)
    signs = np.sign(left(candidates))
    low, high = candidates[:-1], candidates[1:]
    step = 2 * size * (scale[1] - scale[0])
    crossed = (signs[:-1] * signs[1:] < 0) & (low > known + step) | (signs[:-1] * signs[1:] < 0) & (high < known - step)
    if not crossed.any(axis=0).all():
        return None
    first, every = np.argmax(crossed, axis=0), np.arange(len(points))
    below, above = low[first, every], high[first, every]
    before = np.minimum(np.abs(left(below[None])), np.abs(left(above[None])))[0]
    for _ in range(BRANCH_POINTS):
        middle = 0.5 * (below + above)
        lower = np.sign(left(middle[None])[0]) == signs[first, every]
        below, above = np.where(lower, middle, below), np.where(lower, above, middle)
    at_root = np.abs(left(middle[None])[0])
    if not (at_root <= MUCH_SMALLER * before + EPS * np.abs(left(0 * middle[None])[0])).all():  # a pole or a jump
        return None
    name = _name(expression.symbols[highest], problem)
    return f"the equation is satisfied at every point by another value of {name} as well"


def _scalar_equation(problem: Problem) -> Term | None:
    """Return the one equation of a non-linear problem with one field; None of other problems."""
    if problem.linear or problem.functionals or len(problem.fields) > 1:
        return None
    equations = [term for term in problem.interior if term.expression.jets]
    own = len(equations) == 1 and all(jet.field in problem.fields for jet in equations[0].expression.jets)
    return equations[0] if own else None


def _range(leading: dict[Jet, Array], dim: int) -> tuple[Array, Array]:
    """Return the least and the largest value of the form of the leading coefficients over directions, at all points."""
    if dim == 1:
        (coefficient,) = leading.values()
        return coefficient, coefficient
    count = len(next(iter(leading.values())))
    matrices = np.zeros((count, dim, dim))
    for jet, coefficient in leading.items():
        first, *rest = [axis for axis, level in enumerate(jet.index) for _ in range(level)]
        second = rest[0]
        matrices[:, first, second] += 0.5 * coefficient
        matrices[:, second, first] += 0.5 * coefficient
    values = np.linalg.eigvalsh(matrices)
    return values[:, 0], values[:, -1]


def _name(jet: Jet, problem: Problem) -> str:
    letters = "".join(name * level for name, level in zip(problem.domain.names, jet.index, strict=True))
    return f"{jet.field}_{letters}" if letters else jet.field
