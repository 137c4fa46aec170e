"""Coefficients of highest derivatives that change their sign at a solution, so that the problem does not determine it.

For u_xx u_x = f, (u_x)² is a primitive of 2f, and u_x one of its two roots. Where u_x passes through zero it may keep
its sign, and next to the solution without a kink there is a whole family with one: a primitive that is larger by any
constant, and a jump of u_x to the other root just where the values at the ends ask for it. Each leaves nothing in the
equation but at one point, where all discretisations make a steep slope of the jump, in ever smaller cells. So it is
wherever the coefficient of the highest derivative depends on the solution and changes its sign: |u_x| = 1, u u_x = f,
u Δu = f. A coefficient that vanishes and keeps its sign, as in the p-Laplacian or in porous media, does no harm.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import HELD_OUT, Term, jets_of, root_mean_square
from rannpde.pde.statement.expression import Jet, evaluate
from rannpde.pde.tolerance import ESTIMATOR_FACTOR
from rannpde.rounding import EPS


def sign_change(problem: Problem, state: State, estimate: float, residual: float) -> str | None:
    """Return a sentence that says where the leading coefficient of a scalar stationary equation changes its sign.

    None where it does not, as far as is known: what has the other sign must exceed what errors of the solution cause.

    estimate : of the relative error of the state; residual : relative, which bounds errors of the highest derivative

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.functions import Analytic
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


def several_solutions(change: str) -> str:
    """Return what users are told where ``sign_change`` says something."""
    return (
        f"the equation has several solutions: {change}, where a solution may go on along another branch, with a kink "
        "there or nearby; state the branch that is meant, solved for its highest derivative, or add diffusion"
    )


def _scalar_equation(problem: Problem) -> Term | None:
    """Return the one equation of a non-linear stationary problem with one field; None of other problems."""
    other = problem.linear or problem.functionals or len(problem.fields) > 1 or isinstance(problem.domain, SpaceTime)
    if other or problem.parabolic is not None:
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
