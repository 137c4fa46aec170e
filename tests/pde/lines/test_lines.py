"""The method of lines as a whole: accuracy, honest estimates, every kind of condition, endings, files."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.domains import Ball, SpaceTime
from rannpde.errors import FileError, InputError
from rannpde.pde.lines.method import solve_lines
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.evolution import NotAnEvolution
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, Solution, load_solution
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

EVOLVING = [
    "advection",
    "allen_cahn",
    "burgers",
    "heat",
    "korteweg_de_vries",
    "navier_stokes_eulerian",
    "schroedinger",
    "wave",
    "porous_medium",
]


def worst(solution: Solution) -> float:
    return max(solution.errors().values())


@pytest.mark.parametrize("tol", [1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("name", EVOLVING)
def test_tolerance_is_kept_and_the_estimate_is_honest(name, tol):
    """Within a factor of 10 of the true error, and never below a tenth of it."""
    solution = solve_lines(zoo(name), tol=tol, rng=1)
    error = worst(solution)
    assert solution.converged
    assert error < tol
    assert error / 10 < solution.estimate < 10 * error


def test_burgers_to_twelve_digits():
    solution = solve_lines(zoo("burgers", viscosity=0.01), tol=1e-12, rng=0)
    assert worst(solution) < 2e-12
    assert solution.converged


def test_free_boundary_of_a_porous_medium():
    """Diffusion would run backwards where the density undershoots zero; its declared bound keeps it forward."""
    solution = solve_lines(zoo("porous_medium", radius=0.3), tol=1e-3, rng=0)
    error = worst(solution)
    assert error < 5e-4
    assert error / 10 < solution.estimate < 10 * error
    values = solution(solution.problem.domain.sample(3000, rng=0))
    assert values.min() > -2e-3 * values.max()


def test_travelling_wave_with_a_singular_pressure():
    solution = solve_lines(zoo("navier_stokes_lagrangian"), tol=5e-6, rng=0)
    assert worst(solution) < 5e-6


@pytest.mark.parametrize("name", ["heat", "porous_medium"])
def test_two_space_dimensions(name):
    solution = solve_lines(zoo(name, dim=2), tol=1e-4, rng=0)
    error = worst(solution)
    assert error < 1e-4
    assert error / 10 < solution.estimate < 10 * error


def test_disc_with_a_boundary_flux():
    """u_t = Δu - 4 keeps u = |x|² as it is; its normal derivative on the unit circle is 2."""
    domain = SpaceTime(t=(0, 0.5), x=Ball((0, 0), 1, names=("x", "y")))
    conditions = {"start": On("t=0", "u = x**2 + y**2"), "rim": On("boundary", "dn(u) + u = 3")}
    problem = Problem("u_t = laplace(u) - 4", domain, conditions, exact={"u": "x**2 + y**2"})
    assert worst(solve_lines(problem, tol=1e-4, rng=0)) < 1e-4


def test_periodic_plane():
    domain = SpaceTime(t=(0, 1), x=(0, 1), y=(0, 2))
    exact = "exp(-1.25*pi**2*0.1*t)*sin(2*pi*(x - t))*cos(pi*y)"
    decay = "0.1*laplace(u) + (4 + 1 - 1.25)*0.1*pi**2*u"
    problem = Problem(
        f"u_t + u_x = {decay}",
        domain,
        {"start": On("t=0", "u = sin(2*pi*x)*cos(pi*y)"), "p": Periodic("x"), "q": Periodic("y")},
        exact={"u": exact},
    )
    assert worst(solve_lines(problem, tol=1e-8)) < 1e-8


def test_neumann_and_moving_boundary_values_from_functions():
    exact = "exp(-t)*cos(x) + x*t"
    problem = Problem(
        "u_t = u_xx + f(x)",
        SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": On("t=0", "u = cos(x)"), "left": On("x=0", "u_x = t"), "right": On("x=1", "u = g(t)")},
        functions={"g": lambda t: np.exp(-t) * np.cos(1.0) + t, "f": lambda x: x},
        exact={"u": exact},
    )
    solution = solve_lines(problem, tol=1e-9, rng=0)
    assert worst(solution) < 1e-9
    points = problem.domain.sample(200, rng=3)
    wanted = problem.exact_solution.derivative(points, (1, 0))[:, 0]
    assert solution.derivative(points, (1, 0)) == pytest.approx(wanted, abs=1e-6)


def test_damped_wave_needs_the_velocity_of_its_boundary():
    exact = "exp(-t)*sin(x) + t**2*x"
    problem = Problem(
        "u_tt + u_t = u_xx + exp(-t)*sin(x) + 2*x + 2*t*x",
        SpaceTime(t=(0, 1), x=(0, 2)),
        {
            "start": On("t=0", "u = sin(x)"),
            "speed": On("t=0", "u_t = -sin(x)"),
            "ends": On(("x=0", "x=2"), f"u = {exact}"),
        },
        exact={"u": exact},
    )
    solution = solve_lines(problem, tol=1e-8, rng=0)
    assert worst(solution) < 1e-8
    points = problem.domain.sample(200, rng=3)
    for index, slack in (((1, 0), 1e-7), ((2, 0), 1e-4), ((1, 1), 1e-6), ((0, 2), 1e-5)):
        wanted = problem.exact_solution.derivative(points, index)[:, 0]
        assert np.abs(solution.derivative(points, index) - wanted).max() < slack, index


# ------------------------------------------------------------------------------------------------ endings


def fujita(size: float = 50.0) -> Problem:
    return Problem(
        "u_t = u_xx + u**2",
        SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": On("t=0", f"u = {size}*sin(pi*x)"), "ends": On("boundary", "u = 0")},
    )


def test_blow_up_keeps_the_partial_solution_and_says_why():
    solution = solve_lines(fujita(), tol=1e-5, rng=0)
    assert not solution.converged
    assert "blow up" in solution.reason or "stopped at t" in solution.reason
    assert 0.0238 < solution.network.end < 0.0244  # 0.02408 with finite differences, 2000 points
    values = solution(np.array([[0.0, 0.5], [0.01, 0.5], [0.5, 0.5]]))
    assert values[0] == pytest.approx(50.0, rel=1e-4)
    assert values[1] > values[0]
    assert np.isnan(values[2])
    assert "known up to" in solution.report()
    with pytest.warns(ConvergenceWarning):
        solve(fujita(), tol=1e-3)


def test_events_progress_and_interruption():
    heights = []

    def half(time, u):
        return float(u(np.array([[0.5]]))[0, 0] - 0.5)

    problem = zoo("heat")
    solution = solve_lines(
        problem, tol=1e-8, rng=0, events={"half": half}, progress=lambda n, t: heights.append((n, t))
    )
    when = np.log(2) / (0.2 * np.pi**2)
    assert any(
        "event 'half'" in note and float(note.split("=")[1]) == pytest.approx(when, abs=1e-7) for note in solution.notes
    )
    assert heights[-1][1] == problem.domain.time[1]

    def stop(number, time):
        if time > 0.2:
            raise KeyboardInterrupt

    partial = solve_lines(problem, tol=1e-6, rng=0, progress=stop)
    assert partial.reason.startswith("interrupted")
    assert np.isfinite(partial(np.array([[0.1, 0.5]]))).all()


def test_a_tolerance_below_rounding_is_answered_with_what_is_reachable():
    solution = solve_lines(zoo("allen_cahn"), tol=1e-30, rng=0)
    assert worst(solution) < 1e-11
    assert np.isfinite(solution.estimate)


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan, 2.0])
def test_senseless_tolerances_are_refused(tol):
    with pytest.raises(InputError, match="tol"):
        solve_lines(zoo("heat"), tol=tol)


def test_problems_that_do_not_evolve_go_to_the_other_method():
    mixed = Problem(
        "u_t = laplace(u)",
        SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)),
        {"start": On("t=0", "u = 0"), "p": Periodic("x"), "y": On(("y=0", "y=1"), "u = 0")},
    )
    for problem in (zoo("poisson"), zoo("heat", dim=3), mixed):
        with pytest.raises(NotAnEvolution):
            solve_lines(problem)
        with pytest.raises(NotAnEvolution):
            solve(problem, method="lines")
    assert solve(zoo("poisson"), width=60, rng=0).estimate is None
    assert solve(zoo("heat"), tol=1e-4).estimate is not None


# ------------------------------------------------------------------------------------------------ as a Solution


def test_draws_are_reproducible():
    points = zoo("heat").domain.sample(50, rng=0)
    first, again, other = (solve_lines(zoo("heat"), tol=1e-5, rng=rng)(points) for rng in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_residual_and_report_show_what_is_left():
    solution = solve(zoo("wave"), tol=1e-8)
    points = solution.problem.domain.sample(300, rng=2)
    residual = solution.residual(points)["equation"]
    assert np.abs(residual).max() < 1e-4
    text = solution.report()
    assert "method of lines" in text
    assert "estimated relative L² error" in text
    assert "rank" in text


@pytest.mark.parametrize("name", ["heat", "advection", "wave"])
def test_saved_and_loaded_solutions_are_equal(name, tmp_path):
    solution = solve_lines(zoo(name), tol=1e-6, rng=0)
    loaded = load_solution(solution.save(tmp_path / "solution.rann"))
    points = solution.problem.domain.sample(100, rng=1)
    for index in ((0, 0), (1, 0), (0, 1)):
        assert np.array_equal(loaded.derivative(points, index), solution.derivative(points, index))
    assert loaded.estimate == solution.estimate
    assert loaded.notes == solution.notes


def test_a_solution_without_text_needs_its_problem_to_load(tmp_path):
    problem = zoo("burgers")
    solution = solve_lines(problem, tol=1e-4, rng=0, integrator="BDF")
    path = solution.save(tmp_path / "solution.rann")
    with pytest.raises(FileError, match="problem"):
        load_solution(path)
    points = problem.domain.sample(100, rng=1)
    assert load_solution(path, problem)(points) == pytest.approx(solution(points), abs=1e-12)


@pytest.mark.parametrize(("name", "integrator"), [("heat", "Radau"), ("heat", "BDF"), ("advection", "DOP853")])
def test_other_integrators(name, integrator):
    # SciPy's integrators bound the error of a step, entry by entry: the sum over steps may be many times the tolerance
    assert worst(solve_lines(zoo(name), tol=1e-4, rng=0, integrator=integrator)) < 1e-2


def test_unknown_integrator_is_named():
    with pytest.raises(InputError, match="integrator"):
        solve_lines(zoo("heat"), integrator="Euler")


def test_choice_of_method():
    lines = solve(zoo("heat"), tol=1e-6)
    assert lines.label.startswith("method of lines")
    assert not solve(zoo("heat"), width=60, scale=1.0, rng=0).label.startswith("method of lines")
    assert not solve(zoo("heat"), method="space-time", width=60, scale=1.0).label.startswith("method of lines")
    assert solve(zoo("heat"), method="lines", width=150, tol=1e-6).widths == (151,)
    with pytest.raises(InputError, match="scale"):
        solve(zoo("heat"), method="lines", scale=2.0)
    with pytest.raises(InputError, match="method"):
        solve(zoo("heat"), method="line")


def test_ensembles_have_a_mean_and_a_spread_of_the_size_of_the_error():
    ensemble = solve(zoo("burgers"), tol=1e-5, ensemble=4, rng=0)
    points = ensemble.members[0].problem.domain.sample(400, rng=1)
    exact = ensemble.members[0].problem.exact_solution(points)[:, 0]
    error = np.linalg.norm(ensemble(points) - exact) / np.linalg.norm(exact)
    assert error < 1e-5
    assert ensemble.spread(points).shape == (400,)
    assert 0 < np.linalg.norm(ensemble.spread(points)) / np.linalg.norm(exact) < 1e-5
    assert len(ensemble.errors()["u"]) == 4
    assert ensemble.derivative(points, (0, 1)).shape == (400,)
    with pytest.raises(InputError, match="ensemble"):
        solve(zoo("burgers"), ensemble=0)
