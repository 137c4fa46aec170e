"""Initial value problems with several continuations, and with none that a computation can determine."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.initial import PERTURBATION, departure
from rannpde.pde.monitor import Status
from rannpde.pde.singular_points import reached_singular_point
from rannpde.pde.tolerance import COMPARABLE


def crossing(rng):
    """u u' = f with u = a cos(k (x - b)), in any unit; the problem on so many units of x, and the point
    where u and f vanish, the units of u and x, and the phase at the beginning."""
    size, length = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2)
    begin, phase = float(rng.uniform(-3, 3)) * length, float(rng.uniform(0.1, 1.3))
    zero = begin + (np.pi / 2 - phase) * length
    angle = f"((x - ({begin!r}))/{length!r} + {phase!r})"
    factor = float(rng.choice([1.0, -2.0, 0.03]))
    equation = f"{factor!r}*u*u_x = {-factor * size**2 / (2 * length)!r}*sin(2*{angle})"
    start = {"a": rp.On(f"x={begin!r}", f"u = {size * np.cos(phase)!r}")}
    return lambda end: rp.Problem(equation, rp.Interval(begin, begin + end * length), start), zero, size, length, phase


@pytest.mark.parametrize("seed", range(draws(6, 60)))
def test_a_coefficient_that_vanishes_where_branches_meet_is_found(seed):
    problem, zero, _, length, phase = crossing(np.random.default_rng([81, seed]))
    reached = reached_singular_point(problem(2.5))
    assert reached is not None
    assert abs(reached.at - zero) < 1e-4 * length
    assert reached.values == {"u": 0.0}
    assert reached_singular_point(problem(0.98 * (np.pi / 2 - phase))) is None


@pytest.mark.parametrize("seed", range(draws(6, 60)))
def test_a_solution_that_passes_beside_such_a_point_is_unique(seed):
    """u² = c + a² cos²: u comes near zero, and f vanishes there, but the coefficient does not."""
    rng = np.random.default_rng([83, seed])
    distance = 10.0 ** rng.uniform(-4, 0)
    start = {"a": rp.On("x=0", f"u = {float(np.sqrt(1 + distance**2))!r}")}
    assert reached_singular_point(rp.Problem("u*u_x = -sin(2*x)/2", rp.Interval(0, 3), start)) is None


@pytest.mark.parametrize(
    ("equations", "start", "end"),
    [
        (["u*u_x = -1"], ["u = 1"], 0.7),  # a square root, whose end is a singularity and no branching
        (["u*u_x = -u**2"], ["u = 1"], 30),  # the coefficient cancels
        (["u*u_x = -exp(-2*x)"], ["u = 1"], 30),  # u = exp(-x) decays without an end
        (["(1 + u**2)*u_x = cos(x)"], ["u = -1"], 9),  # the coefficient has no zero
        (["u_x = v", "(2 + u)*v_x = -u"], ["u = 0", "v = 1"], 9),
    ],
)
def test_other_problems_have_one_continuation(equations, start, end):
    conditions = {str(k): rp.On("x=0", one) for k, one in enumerate(start)}
    assert reached_singular_point(rp.Problem(equations, rp.Interval(0, end), conditions)) is None


@pytest.mark.parametrize("as_system", [False, True])
def test_an_equation_of_second_order_reaches_it_with_its_slope(as_system):
    """u'' u' = -sin(2x)/2 from u' = 1: the slope is cos(x), or |cos(x)| beyond π/2."""
    equations = ["u_x = v", "v*v_x = -sin(2*x)/2"] if as_system else ["u_xx*u_x = -sin(2*x)/2"]
    slope = "v = 1" if as_system else "u_x = 1"
    conditions = {"a": rp.On("x=0", "u = 0"), "b": rp.On("x=0", slope)}
    reached = reached_singular_point(rp.Problem(equations, rp.Interval(0, 2), conditions))
    assert reached is not None
    assert reached.at == pytest.approx(np.pi / 2, abs=1e-4)
    assert reached.values["u"] == pytest.approx(1, abs=1e-4)
    assert reached.values["v" if as_system else "u_x"] == 0


@pytest.mark.parametrize("seed", range(draws(2, 20)))
def test_branches_are_told_and_the_solution_before_them_is_found(seed):
    rng = np.random.default_rng([87, seed])
    problem, zero, size, length, phase = crossing(rng)
    tol = float(rng.choice([1e-2, 1e-5]))
    with pytest.warns(rp.ConvergenceWarning, match="not unique"):
        solution = rp.solve(problem(2.2), tol=tol, seconds=20, rng=seed)
    assert solution.status is Status.UNDETERMINED
    assert solution.estimate == np.inf
    before = problem(0.9 * (np.pi / 2 - phase))
    solution = rp.solve(before, tol=tol, seconds=20, rng=seed)
    points = before.domain.sample(200, rng=seed)
    exact = size * np.cos((points[:, 0] - zero) / length + np.pi / 2)
    error = np.linalg.norm(solution(points) - exact) / np.linalg.norm(exact)
    assert solution.converged
    assert error <= max(tol, 10 * solution.estimate)


def separatrix(rate: float, periods: float) -> rp.Problem:
    """A pendulum that comes to rest upside down: u'' = k² sin(u) with u = 4 arctan(exp(-k t)), in units of 1/k."""
    start = {"a": rp.On("t=0", f"u = {np.pi!r}"), "b": rp.On("t=0", f"u_t = {-2 * rate!r}")}
    return rp.Problem(f"u_tt = {rate**2!r}*sin(u)", rp.Interval(0, periods / rate, name="t"), start)


@pytest.mark.parametrize("rate", [0.013, 1.0, 370.0])
def test_the_time_from_which_on_perturbations_are_as_large_as_a_solution(rate):
    """Perturbations of a separatrix grow like exp(k t), up to a small factor."""
    expected = np.log(COMPARABLE / PERTURBATION)
    at = departure(separatrix(rate, 100.0))
    assert at is not None
    assert rate * at == pytest.approx(expected, abs=5)
    assert departure(separatrix(rate, 15.0)) is None


@pytest.mark.parametrize("equation", ["u_t = -u**3 + sin(t)", "u_tt = -sin(u)", "u_tt = (1 - u**2)*u_t - u"])
def test_stable_solutions_are_determined_for_a_long_time(equation):
    start = {"a": rp.On("t=0", "u = 0.7")}
    if "u_tt" in equation:
        start["b"] = rp.On("t=0", "u_t = 0")
    assert departure(rp.Problem(equation, rp.Interval(0, 60, name="t"), start)) is None


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_a_solution_that_rounding_decides_is_undetermined(tol):
    with pytest.warns(rp.ConvergenceWarning, match="ill-conditioned"):
        solution = rp.solve(separatrix(1.7, 60.0), tol=tol)
    assert solution.status is Status.UNDETERMINED
    assert solution.estimate == np.inf
    problem = separatrix(1.7, 8.0)
    solution = rp.solve(problem, tol=tol)
    points = problem.domain.sample(200, rng=0)
    exact = 4 * np.arctan(np.exp(-1.7 * points[:, 0]))
    assert solution.converged
    assert np.linalg.norm(solution(points) - exact) <= max(tol, 10 * solution.estimate) * np.linalg.norm(exact)


@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_iterations_that_agree_beyond_a_rest_are_undetermined(tol):
    """u'' = c |u|^p arrives at rest in finite time, and rounding of its speed decides when it leaves: at a tolerance of
    1e-2 the integrations come too coarsely by the equilibrium to see it."""
    p, c, first = 0.437, 0.375, 2.49
    speed = float(np.sqrt(2 * c / (1 + p) * first ** (1 + p)))
    equations = ["u_t = v", f"v_t = {c}*sign(u)*abs(u)**{p}"]
    start = {"place": rp.On("t=0", f"u = {first}"), "speed": rp.On("t=0", f"v = {-speed!r}")}
    for end, determined in ((10.17, False), (5.0, True)):
        solution = rp.solve(rp.Problem(equations, rp.Interval(0, end, name="t"), start), tol=tol)
        assert solution.converged == determined
        assert (solution.status is Status.UNDETERMINED) != determined


def lorenz(end: float) -> rp.Problem:
    """A chaotic system, whose perturbations grow like exp(0.9 t)."""
    equations = ["x_t = 10*(y - x)", "y_t = x*(28 - z) - y", "z_t = x*y - 8*z/3"]
    return rp.Problem(equations, rp.Interval(0, end, name="t"), {"t=0": ["x = 1", "y = 1", "z = 1"]})


def test_rounding_decides_on_a_chaotic_solution_after_a_while():
    assert departure(lorenz(40)) == pytest.approx(np.log(COMPARABLE / PERTURBATION) / 0.9, rel=0.4)
    assert departure(lorenz(5)) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_a_chaotic_solution_is_never_called_converged():
    assert rp.solve(lorenz(40), tol=1e-2, seconds=60).status is Status.UNDETERMINED
