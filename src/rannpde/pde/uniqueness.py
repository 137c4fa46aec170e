"""Is a solution the only one? A linear problem without data is satisfied by zero, also at an eigenvalue.

Neither residuals nor the difference of two solutions show it: both are zero. The same problem with a load is solved
instead. At an eigenvalue it has no solution, and the result is so large that its terms cancel to rounding. Non-linear
problems are not determined where the coefficient of their highest derivative changes its sign (``degeneracy``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rannpde.domains import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.degeneracy import several_solutions
from rannpde.pde.functions import State
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of, root_mean_square
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import EPS

COARSE = EPS**0.125
"""1e-2: two digits of the response tell whether its terms cancel by more."""
ZERO_POINTS = 1000
"""Points at which a solution is zero, or terms are compared with their sum."""


def with_uniqueness(solution: Solution, tol: float, solve: Callable[[Problem, float], Solution]) -> Solution:
    """Return a solution, not converged where the problem does not determine it: where the coefficient of the highest
    derivative changes its sign at it, or it is zero and the problem with a load shows that it is not the only one.

    solve : solves a problem to a tolerance, in the time that is left
    """
    problem = solution.stated
    if problem.parabolic is not None:  # values at points of R^d, by their representation as expectations
        return solution
    if not problem.linear and solution.status not in (Status.UNDETERMINED, Status.BLOW_UP, Status.INTERRUPTED):
        return _with_branches(solution)
    if not solution.converged or not _may_be_singular(problem):
        return solution
    points = problem.domain.sample(ZERO_POINTS, rng=20_071)
    probe = None if np.any(solution.function(points)) else loaded(problem)
    if probe is None:
        return solution
    try:
        response = solve(probe, min(tol**0.5, COARSE))
    except InputError:  # its data do not fit: nothing is shown
        return solution
    error = max(response.estimate, EPS**0.5)  # of the response, which its equations multiply by their cancellation
    if response.converged and error * cancellation(probe, response.function) < 1:
        return solution
    if response.status.by_caller:
        detail = f"{response.status}: zero satisfies the problem; whether it is the only solution was not seen"
        return replace(solution, status=response.status, detail=detail, estimate=np.inf)
    detail = (
        "zero satisfies the problem, but seems not to be its only solution: with a load, none was found, as at an "
        "eigenvalue; rp.eigen finds the others"
    )
    return replace(solution, status=Status.UNDETERMINED, detail=detail, estimate=np.inf)


def _with_branches(solution: Solution) -> Solution:
    """Return a solution of a non-linear problem, without an estimate where its highest derivative changes its sign."""
    problem, branches = solution.stated, None
    if not isinstance(problem.domain, SpaceTime):
        residual = max(solution.held_out.values(), default=np.inf)
        branches = several_solutions(problem, solution.function, solution.estimate, residual)
    if branches is None and solution.converged and may_leave_rest(problem, solution.function):
        branches = (
            "the solution is not unique: it stays where its rate grows infinitely fast with the distance, and may "
            "leave at any time; begin beside it"
        )
    if branches is None:
        return solution
    known = Status.UNDETERMINED if solution.converged or solution.status is Status.STALLED else solution.status
    detail = "; ".join(filter(None, (solution.detail * (known is solution.status), branches)))
    return replace(solution, status=known, detail=detail, estimate=np.inf)


def may_leave_rest(problem: Problem, state: State) -> bool:
    """Return whether a solution in space and time stays where growth rates are infinite, as 0 in u_t = u_xx + √|u|.

    The linearised rate at a distance from the solution then grows like a negative power of the distance, at more than
    isolated points. One field; what is attracted with an infinite rate, as 0 in u_t = u_xx - √|u|, is unique.

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.pde.functions import Zero
    >>> from rannpde.pde.problem.conditions import On
    >>> conditions = {"start": On("t=0", "u = 0"), "ends": On(("x=0", "x=1"), "u_x = 0")}
    >>> texts = ("sqrt(abs(u))", "-sign(u)*sqrt(abs(u))", "u", "u*abs(u)")
    >>> problems = [Problem(f"u_t = u_xx + {text}", SpaceTime(t=(0, 1), x=(0, 1)), conditions) for text in texts]
    >>> [may_leave_rest(problem, Zero(1)) for problem in problems]
    [True, False, False, False]
    """
    domain = problem.domain
    equations = [term for term in problem.interior if term.expression.jets]
    if not isinstance(domain, SpaceTime) or problem.linear or len(problem.fields) > 1 or len(equations) != 1:
        return False
    (term,) = equations
    expression, time = term.expression, domain.names.index(problem.vocabulary.time or "t")
    jets_in_time = [jet for jet in expression.jets if jet.order == jet.index[time] > 0]
    value_jet = next((jet for jet in expression.jets if jet.order == 0), None)
    if not jets_in_time or value_jet is None:
        return False
    points = domain.sample(ZERO_POINTS, rng=20_075)
    jets = jets_of(state, problem.fields, points, expression.jets)
    size = root_mean_square(jets[value_jet]) or 1.0
    highest = max(jets_in_time, key=lambda jet: jet.order)
    distances = size * EPS ** np.array([1 / 4, 1 / 2])
    growth = []
    for distance in distances:
        _, partials = expression.linearised(
            term.known(points, problem.vocabulary), jets | {value_jet: jets[value_jet] + distance}
        )
        slope, inertia = (
            np.broadcast_to(partials[expression.jets.index(jet)], len(points)) for jet in (value_jet, highest)
        )
        with np.errstate(all="ignore"):
            growth.append(np.nan_to_num(-slope / inertia, nan=0.0))
    with np.errstate(all="ignore"):
        power = np.log(growth[1] / growth[0]) / np.log(distances[0] / distances[1])
    leaving = (growth[0] > 0) & (growth[1] > 0) & (power > 1 / 8)
    return bool(np.mean(leaving) > MUCH_SMALLER)


def _may_be_singular(problem: Problem) -> bool:
    """Whether a linear problem without a first time need not have one solution: its terms are of several orders."""
    if isinstance(problem.domain, SpaceTime) or not problem.linear or problem.functionals:
        return False
    orders = {jet.order for term in problem.interior for jet in term.expression.jets}
    return len(orders) > 1 or len(problem.fields) > 1


def loaded(problem: Problem) -> Problem | None:
    """Return the problem with a load to which no eigenfunction is orthogonal by symmetry; None where it has no text.

    >>> from rannpde.domains import Interval
    >>> loaded(Problem("u_xx + u = 0", Interval(0, 2), {"x=0": "u = 0", "x=2": "u = 0"})).equations
    {'equation': 'u_xx + u = 0 + exp(sqrt(2)*(x - (0.0))/(2.0))'}
    """
    lower, lengths = problem.domain.bounds[:, 0].tolist(), np.ptp(problem.domain.bounds, axis=1).tolist()
    parts = zip(problem.domain.names, lower, lengths, strict=True)
    load = " + ".join(f"sqrt({2 + k})*({name} - ({low!r}))/({width!r})" for k, (name, low, width) in enumerate(parts))
    if not all(isinstance(text, str) for text in problem.equations.values()):
        return None
    equations = {
        name: (text if "=" in text else f"{text} = 0") + f" + exp({load})" for name, text in problem.equations.items()
    }
    try:
        return replace(problem, equations=equations, exact={}, outputs={})
    except InputError:
        return None


def cancellation(problem: Problem, state: State) -> float:
    """Return the size of the terms of linear equations relative to that of their sum, the largest over equations."""
    points = problem.domain.sample(ZERO_POINTS, rng=20_072)
    ratios = []
    for term in problem.interior:
        jets = jets_of(state, problem.fields, points, term.expression.jets)
        value, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        summands = np.array([partial * jets[jet] for partial, jet in zip(partials, term.expression.jets, strict=True)])
        load = root_mean_square(summands.sum(axis=0) - value)  # what the equation is without its fields
        ratios.append(root_mean_square(np.abs(summands).sum(axis=0)) / max(load, np.finfo(float).tiny))
    return max(ratios)
