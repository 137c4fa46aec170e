"""Initial value problems whose solution reaches an equilibrium in finite time and is not unique from then on."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.equilibria import reached_equilibrium
from rannpde.pde.initial import integrated
from rannpde.pde.monitor import Status


def passing(rng, exponent):
    """±c |u - u*|^p in any unit, from a distance that is gone at half of the interval; the problem, u*, the time."""
    rest, rate, distance = rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2)
    side = float(rng.choice([-1.0, 1.0]))
    needed = distance ** (1 - exponent) / (rate * (1 - exponent))
    begin = float(rng.uniform(-2, 2)) * needed
    return (
        rp.Problem(
            f"u_t = ({-side * rate!r})*abs(u - ({rest!r}))**({exponent!r})",
            rp.Interval(begin, begin + 2 * needed, name="t"),
            {f"t={begin!r}": f"u = {rest + side * distance!r}"},
        ),
        rest,
        begin + needed,
        needed,
    )


@pytest.mark.parametrize("seed", range(draws(8, 60)))
def test_an_equilibrium_reached_in_finite_time_is_seen_with_its_exponent(seed):
    rng = np.random.default_rng([71, seed])
    exponent = float(rng.uniform(0.25, 0.85))
    problem, rest, time, needed = passing(rng, exponent)
    tolerance = float(10.0 ** -rng.uniform(5, 9))
    paths = [integrated(problem, one) for one in (tolerance, tolerance / 10)]  # as in the check of a solution
    reached = reached_equilibrium([path for path in paths if path is not None][-1])
    assert reached is not None
    assert reached.value == pytest.approx(rest, abs=1e-9 * (1 + abs(rest)))
    # the steps of an integration at a loose tolerance jump over the moment, not over the state
    assert abs(reached.time - time) < 0.3 * needed
    assert reached.exponent == pytest.approx(exponent, abs=0.02)


@pytest.mark.parametrize(
    ("equation", "start", "end"),
    [
        ("u_t = -u", 1, 40),  # the equilibrium is never reached
        ("u_t = u*(1 - u)", 1e-6, 60),  # from beside one to beside the other
        ("u_t = u**2 + 1e-4", -1, 150),  # slow where there almost is one
        ("u_t = -sqrt(abs(u)) + cos(t)/2", 1, 6),  # the rate vanishes there only for a moment
        ("u_t = -sqrt(abs(u)) + 0.1", 1, 10),  # a Lipschitz continuous equilibrium before the other one
        ("u_t = -abs(u)*sqrt(abs(u))", 1, 30),
        ("u_t = sin(3*t)*u**3 - u", 0.7, 9),
    ],
)
def test_other_solutions_are_unique(equation, start, end):
    path = integrated(rp.Problem(equation, rp.Interval(0, end, name="t"), {"t=0": f"u = {start}"}))
    assert reached_equilibrium(path) is None


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_a_solution_that_is_not_unique_is_not_called_converged(tol):
    """u = t³ - 1 … : the example of every course, u' = 3 u^(2/3)."""
    problem = rp.Problem("u_t = 3*abs(u)**(2/3)", rp.Interval(0, 3, name="t"), {"t=0": "u = -1"})
    with pytest.warns(rp.ConvergenceWarning, match="not unique"):
        solution = rp.solve(problem, tol=tol)
    assert solution.status is Status.UNDETERMINED
    assert solution.estimate == np.inf
    before = rp.Problem("u_t = 3*abs(u)**(2/3)", rp.Interval(0, 0.9, name="t"), {"t=0": "u = -1"})
    solution = rp.solve(before, tol=tol)
    assert solution.converged
    assert solution(0.5) == pytest.approx(-(0.5**3), rel=2 * tol)
