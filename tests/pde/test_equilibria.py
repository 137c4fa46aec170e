"""Initial value problems whose solution reaches an equilibrium in finite time and is not unique from then on."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.equilibria import _least, reached_equilibrium
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
    assert reached.values["u"] == pytest.approx(rest, abs=1e-9 * (1 + abs(rest)))
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
        ("u_t = 1 + sqrt(abs(u))", -1, 3),  # passes a singular value that is no equilibrium
    ],
)
def test_other_solutions_are_unique(equation, start, end):
    path = integrated(rp.Problem(equation, rp.Interval(0, end, name="t"), {"t=0": f"u = {start}"}))
    assert reached_equilibrium(path) is None


def falling(rng, power):
    """u'' = c |u|^p sign(u) with just the energy that ends at rest in u = 0, in any unit; as a system in half of the
    cases. The problem, and the time at which it rests."""
    rate, height = 10.0 ** rng.uniform(-3, 3), float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-2, 2)
    speed = np.sqrt(2 * rate / (power + 1)) * abs(height) ** ((power + 1) / 2)  # |u'| for u = height
    rest = abs(height) ** ((1 - power) / 2) / np.sqrt(2 * rate / (power + 1)) * 2 / (1 - power)
    line = rp.Interval(0, float(2 * rest), name="t")
    force, slope = f"{rate!r}*sign(u)*abs(u)**({power!r})", -float(np.sign(height) * speed)
    if rng.integers(2):
        start = {"a": rp.On("t=0", f"u = {height!r}"), "b": rp.On("t=0", f"v = {slope!r}")}
        return rp.Problem(["u_t = v", f"v_t = {force}"], line, start), rest
    start = {"a": rp.On("t=0", f"u = {height!r}"), "b": rp.On("t=0", f"u_t = {slope!r}")}
    return rp.Problem(f"u_tt = {force}", line, start), rest


@pytest.mark.parametrize("seed", range(draws(4, 40)))
def test_an_equilibrium_of_a_system_that_is_reached_in_finite_time_is_seen(seed):
    rng = np.random.default_rng([73, seed])
    power = float(rng.uniform(0.2, 0.6))
    problem, rest = falling(rng, power)
    reached = reached_equilibrium(integrated(problem, 1e-11))
    assert reached is not None
    assert set(reached.values.values()) == {0.0}
    assert abs(reached.time - rest) < 0.1 * rest
    assert reached.exponent == pytest.approx((1 + power) / 2, abs=0.1)  # u' = -c u^((1 + p)/2) on the way


@pytest.mark.parametrize(
    ("equations", "start"),
    [
        (["u_t = v", "v_t = 6*abs(v)**(1/3)"], ("u = 0", "v = 0")),
        (["u_t = v", "v_t = 6*abs(u)**(1/3)"], ("u = 0", "v = 0")),
        (["u_t = sqrt(abs(u + v))", "v_t = u + 2*v"], ("u = 0", "v = 0")),
        (["u_t = -sqrt(abs(u))", "v_t = 1 + u - v"], ("u = 0.3", "v = 0.2")),  # one tank runs dry, the other does not
    ],
)
def test_systems_that_begin_or_come_to_rest_and_may_leave(equations, start):
    conditions = {name: rp.On("t=0", value) for name, value in zip("ab", start, strict=True)}
    path = integrated(rp.Problem(equations, rp.Interval(0, 2, name="t"), conditions), 1e-8)
    assert reached_equilibrium(path) is not None


@pytest.mark.parametrize(
    ("equations", "start"),
    [
        (["u_t = v", "v_t = u"], ("u = 0", "v = 0")),  # perturbations grow, but take as long for each digit
        (["u_t = v", "v_t = 0*u"], ("u = 0", "v = 0")),
        (["u_t = v", "v_t = -sign(u)*sqrt(abs(u))"], ("u = 0", "v = 0")),  # they oscillate
        (["u_t = v", "v_t = -sign(u)*sqrt(abs(u))"], ("u = 1", "v = 0")),
        (["u_t = v", "v_t = 6*sign(u)*abs(u)**(1/3)"], ("u = 1", "v = -2.9")),  # turns back before it rests
        (["u_t = u*(1 - v)", "v_t = v*(u - 1)"], ("u = 1", "v = 1")),
        (["u_t = v", "v_t = -sin(u)"], ("u = 3.141592653589793", "v = 0")),  # a pendulum upside down
        (["u_t = 1 + sqrt(abs(u))", "v_t = u - v"], ("u = -1", "v = 0")),  # passes the singular value, does not rest
    ],
)
def test_systems_whose_solution_is_unique(equations, start):
    conditions = {name: rp.On("t=0", value) for name, value in zip("ab", start, strict=True)}
    path = integrated(rp.Problem(equations, rp.Interval(0, 3, name="t"), conditions), 1e-8)
    assert reached_equilibrium(path) is None


def test_a_system_at_rest_that_may_leave_is_refused_with_the_reason():
    conditions = {"a": rp.On("t=0", "u = 0"), "b": rp.On("t=0", "u_t = 0")}
    with pytest.raises(rp.InputError, match="not unique: it reaches u = 0, u_t = 0 at t = 0"):
        rp.solve(rp.Problem("u_tt = 6*u**(1/3)", rp.Interval(0, 2, name="t"), conditions), tol=1e-3)


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


@pytest.mark.parametrize("root", [1 / 3, 0.1, 123.456])
def test_a_search_ends_where_there_are_no_numbers_in_between(root):
    assert abs(_least(lambda values: values - root, 0.0, 1000.0, 0.0) - root) <= 4 * np.spacing(root)
