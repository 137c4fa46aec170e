"""Collocation as a whole: accuracy, estimates, every kind of condition, subdomains, slabs, failure that is loud,
files."""

from __future__ import annotations

import numpy as np
import pytest

from draws import some
from helpers import inked
from rannpde.domains import Ball, Box, Interval, SpaceTime
from rannpde.errors import InputError
from rannpde.loading import load
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import Uniform
from rannpde.pde.adaptivity.loop import ERROR_SHARE
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.collocation.method import Collocation
from rannpde.pde.gauss_newton import GaussNewton
from rannpde.pde.monitor import Status
from rannpde.pde.problem.conditions import Data, On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual
from rannpde.pde.solution import ConvergenceWarning
from rannpde.pde.solve import solve
from rannpde.pde.solve_table import settings_from
from rannpde.pde.zoo import zoo


def worst(solution):
    return max(solution.errors().values())


def found(problem, tol=1e-6, rng=0, **settings):
    return solve(problem, tol=tol, rng=rng, method=Collocation(**settings))


# Bounds are 10 to 100 times what these seeds give: the law's spread over seeds, not the method's limit.
@pytest.mark.parametrize(
    ("name", "settings", "width", "scale", "bound"),
    some(
        [
            ("heat", {}, 120, 1.0, 1e-6),
            ("wave", {}, 200, 1.0, 1e-4),
            ("helmholtz", {"length": 2.0}, 150, 10.0, 1e-8),
            ("poisson", {"dim": 2}, 150, 1.0, 1e-9),
            ("poisson", {"dim": 5}, 400, 0.6, 1e-9),
            ("nonlinear_poisson", {}, 300, 1.5, 1e-8),
            ("porous_medium", {}, 120, (2.0, 0.2), 1e-4),
            ("porous_medium", {"exponent": 3.0}, 120, (2.0, 0.2), 1e-4),
            ("allen_cahn", {}, 150, (0.5, 3.5), 1e-4),
            ("kovasznay", {}, 150, 1.5, 1e-3),
            ("advection", {}, 120, (9.0, 2.0), 1e-8),
            ("navier_stokes_eulerian", {"gamma": 1.4}, 80, (1.0, 3.0), 1e-5),
        ],
        7,
    ),
    ids=lambda value: str(value),
)
def test_solutions_are_accurate_and_the_estimate_is_true(name, settings, width, scale, bound):
    solution = found(zoo(name, **settings), bound, width=width, scale=scale, placement="uniform")
    error = worst(solution)
    assert solution.converged, solution.reason
    assert error < bound
    assert error / 10 < solution.estimate < 10 * max(error, bound / 100)  # far below the tolerance it need not be sharp


# what the default tolerance of 1e-8 asks, with no setting at all
@pytest.mark.parametrize(
    "problem",
    some(
        [
            zoo("poisson"),
            zoo("poisson", dim=5),
            zoo("nonlinear_poisson"),
            zoo("helmholtz"),
            Problem(
                "-0.01*u_xx + u_x = 1",
                Interval(0, 1),
                {"ends": On("boundary", "u = 0")},
                exact={"u": "x - (exp((x - 1)/0.01) - exp(-100))/(1 - exp(-100))"},
                name="layer of a hundredth",
            ),
            Problem(
                "u_xx = -(2*pi)**2*sin(2*pi*x) - 250*pi**2*sin(50*pi*x)",
                Interval(0, 1),
                {"ends": On("boundary", "u = 0")},
                exact={"u": "sin(2*pi*x) + sin(50*pi*x)/10"},
                name="two frequencies",
            ),
        ],
        3,
    ),
    ids=lambda problem: problem.name,
)
def test_stationary_problems_reach_the_wanted_error_with_no_setting(problem):
    solution = solve(problem)
    error = worst(solution)
    assert solution.converged
    assert error < 1e-8
    assert error / 10 < solution.estimate
    if solution.method.name != "trefftz":  # which gives bounds, for the worst case
        # cells trust that the last iteration gained min_gain, not more
        trusted = 1.01 * ERROR_SHARE * CellsTuning().min_gain * solution.history.iterations[-1].difference
        least = trusted if solution.method.name == "cells" else 0.0
        assert solution.estimate < max(10 * error, 1e-9, least)


def test_fast_data_set_the_first_width_and_scale():
    """Ten periods a side: a search that began at width 100 saw nothing but noise, and gave up."""
    problem = Problem(
        "-laplace(u) = 200*pi**2*sin(10*pi*x)*sin(10*pi*y)",
        Box(x=(0, 1), y=(0, 1)),
        {"sides": On("boundary", "u = 0")},
        exact={"u": "sin(10*pi*x)*sin(10*pi*y)"},
    )
    solution = solve(problem, tol=1e-5)
    assert solution.converged
    assert worst(solution) < 1e-5


def test_gauss_newton_takes_few_steps_and_linear_problems_one_solve():
    nonlinear = found(zoo("nonlinear_poisson"), 1e-7, width=200, scale=1.5)
    assert 2 <= len(nonlinear.history.newton_steps) <= 8
    norms = [one.norm for one in nonlinear.history.newton_steps]
    assert norms == sorted(norms, reverse=True)
    assert len(found(zoo("poisson"), width=100, scale=1.0).history.newton_steps) == 1


def test_the_same_seed_gives_the_same_solution_and_another_does_not():
    first, again, other = (found(zoo("heat"), 1e-2, width=60, scale=1.0, rng=rng) for rng in (3, 3, 4))
    points = zoo("heat").domain.sample(20, rng=0)
    assert np.array_equal(first(points), again(points))
    assert not np.array_equal(first(points), other(points))


def test_losses_are_the_sums_of_the_paper():
    problem = zoo("heat")
    solution = found(problem, 1e-2, width=40, scale=1.0)
    assert set(solution.losses) == {"equation", "start", "walls"}
    points = problem.domain.sample(20_000, rng=1)
    mean_square = np.mean(solution.residual(points)["equation"] ** 2)
    # two Monte-Carlo means of one integral, 170 and 20,000 points: within a factor of 4
    assert mean_square / 4 < solution.losses["equation"] < mean_square * 4
    assert solution.integrals["walls"] == pytest.approx(solution.losses["walls"] * 2)


# ------------------------------------------------------------------------------------------------- conditions


def test_neumann_robin_and_normal_derivative_on_a_disc():
    problem = Problem(
        "-laplace(u) = 4",
        Ball((0, 0), 1, names=("x", "y")),
        {"rim": On("boundary", "dn(u) + u = -1")},
        exact={"u": "2 - x**2 - y**2"},
    )
    assert worst(found(problem, width=120, scale=1.0)) < 1e-6
    mixed = Problem(
        "u_xx = -sin(x)",
        Interval(0, 1),
        {"left": On("x=0", "u_x = 1"), "right": On("x=1", "u_x + 2*u = cos(x) + 2*sin(x)")},
        exact={"u": "sin(x)"},
    )
    assert worst(found(mixed, width=60, scale=1.0)) < 1e-9


def test_periodic_features_are_exactly_periodic():
    solution = found(zoo("advection"), 0.1, width=60, scale=(9.0, 2.0))
    times = np.linspace(0, 1, 9)
    left, right = (np.column_stack([times, np.full(9, x)]) for x in (0.0, 1.0))
    for order in range(3):
        gap = solution.derivative(left, (0, order)) - solution.derivative(right, (0, order))
        size = np.abs(solution.function.coefficients[0]).sum() * (9 * np.pi) ** order
        assert np.abs(gap).max() < 100 * np.finfo(float).eps * size  # rounding of cos at phases up to 100


def test_periodicity_of_one_field_only_is_matched():
    problem = Problem(
        {"first": "u_t + u_x = 0", "second": "v_t + v_x = 0"},
        SpaceTime(t=(0, 0.5), x=(0, 1)),
        {
            "u0": On("t=0", "u = sin(2*pi*x)"),
            "v0": On("t=0", "v = x"),
            "circle": Periodic("x", ("u",)),
            "inflow": On("x=0", "v = -t"),
        },
        exact={"u": "sin(2*pi*(x - t))", "v": "x - t"},
    )
    solution = found(problem, 1e-3, width=150, scale=3.0, placement="uniform")
    assert "circle" in solution.losses
    assert worst(solution) < 1e-3


def test_measured_data_replace_a_missing_condition():
    points = np.array([[0.2], [0.5], [0.9]])
    problem = Problem(
        "u_xx = -u", Interval(0, 1), {"sensors": Data(points, np.sin(points[:, 0]))}, exact={"u": "sin(x)"}
    )
    assert worst(found(problem, width=60, scale=1.0)) < 1e-8


def test_declared_bounds_are_respected():
    problem = Problem(
        "u_xx = 2",
        Interval(-1, 1),
        {"ends": On("boundary", "u = 1/2")},
        exact={"u": "x**2 - 1/2"},
        bounds={"u": (0, None)},
    )
    points = np.linspace(-1, 1, 101)[:, None]
    with pytest.warns(ConvergenceWarning):  # the equation and the bound contradict each other: neither holds exactly
        with_bound = found(problem, width=60, scale=2.0, weights={"bounds of u": 100.0})
    assert with_bound(points).min() > -0.05  # the unbounded solution reaches -0.5
    assert "bounds of u" in with_bound.losses


def test_weights_by_name_move_the_balance():
    problem = zoo("heat")
    light, heavy = (found(problem, 1e-2, width=40, scale=1.0, weights={"start": w}) for w in (1e-2, 1e2))
    assert heavy.losses["start"] < 0.1 * light.losses["start"]
    with pytest.raises(InputError, match="did you mean 'start'"):
        found(problem, width=60, weights={"stat": 1.0})


# ----------------------------------------------------------------------------------- subdomains, slabs, placement


def test_subdomains_are_coupled_smoothly():
    problem = zoo("helmholtz", length=4.0)
    one = found(problem, 1e-3, width=100, scale=10.0)
    four = found(problem, 1e-3, width=100, scale=4.0, subdomains={"x": 4})
    assert worst(four) < 0.1 * worst(one)
    near = np.nextafter(2.0, [0.0, 4.0])[:, None]
    jump = np.ptp(four(near))
    assert jump < 1e-6
    assert "continuity" in four.losses


@pytest.mark.slow
def test_slabs_continue_each_other():
    problem = zoo("wave", duration=1.0)
    solution = found(problem, 1e-3, width=200, scale=1.2, slabs=2, placement="uniform")
    assert len(solution.function.subdomains) == 2
    assert worst(solution) < 1e-3


def test_placed_features_follow_a_front():
    problem = zoo("burgers", viscosity=0.03)
    placed = found(problem, 0.05, width=200, placement="placed")
    assert worst(placed) < 0.02


@pytest.mark.slow
def test_placed_features_are_better_than_uniform_ones_at_a_front():
    problem = zoo("burgers", viscosity=0.03)
    placed = found(problem, 0.05, width=200, placement="placed")
    with pytest.warns(ConvergenceWarning):
        uniform = found(problem, 1e-3, width=200, scale=2.0, placement="uniform")
    assert worst(placed) < 0.2 * worst(uniform)


def test_scale_and_width_are_chosen_and_reported():
    solution = found(zoo("heat"), 1e-3)
    assert solution.estimate < 1e-3
    assert len(solution.history.tried) >= 2
    assert all(2 * score >= solution.score for _, score in solution.history.tried)
    assert "tried" in solution.report()
    assert len(solution.history.iterations) >= 2


def test_given_features_have_an_error_estimate_too():
    domain = zoo("poisson").domain
    features = RandomFeatures.sample(width=200, law=Uniform(1.0), domain=domain, rng=0, constant=True)
    solution = found(zoo("poisson"), features=features)
    assert solution.converged
    assert worst(solution) < 1e-6
    assert solution.widths == (201,)


def test_held_out_residual_is_small_for_the_exact_solution_and_one_for_nothing():
    problem = zoo("burgers")
    assert max(held_out_residual(problem, problem.exact_solution).values()) < 1e-10

    class Nothing:
        def derivative(self, points, derivative):
            return np.zeros((len(points), 1))

    assert max(held_out_residual(problem, Nothing()).values()) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------- bad endings


def test_a_result_that_did_not_converge_is_loud():
    with pytest.warns(ConvergenceWarning, match=r"did not converge.*estimated as.*rp.Collocation may help"):
        solution = found(zoo("burgers", viscosity=0.05), width=60, scale=2.0, placement="uniform")
    assert not solution.converged
    assert "DID NOT CONVERGE" in solution.report()
    assert solution.estimate > 1e-3


def test_iterations_that_end_too_early_say_so():
    newton = GaussNewton(iterations=1, tolerance=1e-6)
    with pytest.warns(ConvergenceWarning, match="1 iterations"):
        solution = found(zoo("burgers", viscosity=0.02), width=60, scale=2.0, placement="uniform", newton=newton)
    assert solution.status is Status.NEWTON


def test_a_logarithm_that_leaves_its_domain_keeps_the_last_good_iterate():
    ends = {"ends": On("boundary", "u = 2 + sin(x)")}
    force = {"f": lambda x: -np.sin(x) + np.log(2 + np.sin(x))}
    problem = Problem("u_xx + log(u) = f(x)", Interval(0, 1), ends, functions=force, exact={"u": "2 + sin(x)"})
    with pytest.raises(InputError, match="guess"):
        found(problem, width=40, scale=1.0)
    near = found(problem, width=40, scale=1.0, guess={"u": "2"})
    assert worst(near) < 1e-8
    again = found(problem, width=40, scale=1.0, guess=near)
    assert worst(again) < 1e-8


@pytest.mark.parametrize(
    ("equation", "conditions", "hint"),
    [
        ("u_xx = cos(pi*x)", "u_x = 0", "a constant in u"),
        ("u_xx + pi**2*u = sin(pi*x)", "u = 0", "a mode"),
    ],
)
def test_what_the_equations_do_not_determine_is_named(equation, conditions, hint):
    problem = Problem(equation, Interval(0, 1), {"ends": On("boundary", conditions)})
    with pytest.warns(ConvergenceWarning, match=hint):
        solution = solve(problem)
    assert solution.status is Status.UNDETERMINED


def test_a_load_between_the_points_is_not_missed():
    problem = Problem(
        "-u_xx = exp(-((x - 0.3)/0.0001)**2)/(0.0001*sqrt(pi))", Interval(0, 1), {"ends": On("boundary", "u = 0")}
    )
    solution = solve(problem, tol=1e-4)
    assert solution.converged
    # Green's function of a unit load at 0.3: 0.3 (1 - x) to its right, 0.7 x to its left, far from the load
    assert solution(np.array([[0.5], [0.1]])) == pytest.approx([0.15, 0.07], rel=1e-4)


def test_a_time_limit_returns_the_best_result_so_far():
    with pytest.warns(ConvergenceWarning, match="time allowed"):
        solution = solve(zoo("kovasznay"), tol=1e-12, seconds=1)
    assert solution.status is Status.BUDGET
    assert np.isfinite(solution(solution.stated.domain.sample(5, rng=0))).all()


def test_ctrl_c_returns_the_best_result_so_far():
    def stop(progress):
        if progress.number > 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = solve(zoo("kovasznay"), tol=1e-10, progress=stop)
    assert solution.status is Status.INTERRUPTED


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"width": 0}, "width"),
        ({"width": 2.5}, "width"),
        ({"scale": -1.0}, "scale"),
        ({"scale": (1.0, 2.0, 3.0)}, "scale"),
        ({"scale": "large"}, "scale"),
        ({"slabs": 0}, "slabs"),
        ({"subdomains": {"z": 2}}, "no coordinate"),
        ({"placement": "clever"}, "placement"),
        ({"guess": 3}, "guess"),
        ({"weights": {"start": 0.0}}, "weights"),
        ({"activation": "tahn"}, "did you mean 'tanh'"),
        ({"law": Uniform(1.0)}, "scale .*left out with law"),
        ({"placement": "placed"}, "scale .*left out with placement='placed'"),
    ],
)
def test_bad_settings_are_named(settings, hint):
    with pytest.raises(InputError, match=hint):
        found(zoo("heat"), **({"width": 20, "scale": 1.0} | settings))


def test_settings_that_a_problem_cannot_use_are_refused():
    with pytest.raises(InputError, match="no time"):
        found(zoo("poisson"), width=20, scale=1.0, slabs=2)
    with pytest.raises(InputError, match=r"activation.*periodic"):
        found(zoo("advection"), activation="tanh")
    with pytest.raises(InputError, match="weight"):
        Problem("u_t + u_x = 0", zoo("advection").domain, {"a": On("t=0", "u = 0"), "p": Periodic("x", weight=2.0)})


def test_settings_of_a_file_are_checked_like_arguments():
    assert settings_from({"tol": 1e-3, "rng": 4}) == {"tol": 1e-3, "rng": 4}
    assert settings_from({"method": "lines", "windows": 2})["method"].windows == 2
    for table, hint in (
        ({"width": 100}, "name its method"),
        ({"tool": 1}, "did you mean 'tol'"),
        ({"method": "line"}, "did you mean 'lines'"),
        ({"method": []}, "method"),
        ({"method": "lines", "scale": 2}, "known: integrator, width, windows"),
        ({"method": "collocation", "slabs": "two"}, "slabs"),
        ({"rng": -1}, "rng"),
        ({"rng": True}, "rng"),
    ):
        with pytest.raises(InputError, match=hint):
            settings_from(table)


# ------------------------------------------------------------------------------------------------------- files


def test_saved_solutions_come_back_bit_for_bit(tmp_path):
    problem = Problem(
        "u_xx = -u",
        Interval(0, 1),
        {"ends": On("boundary", "u = sin(x)")},
        exact={"u": "sin(x)"},
        bounds={"u": (-2, None)},
    )
    solution = found(problem, width=30, scale=1.0)
    again = load(solution.save(tmp_path / "solution.npz"))
    points = np.linspace(0, 1, 7)[:, None]
    assert np.array_equal(solution(points), again(points))
    assert again.errors() == solution.errors()
    assert str(again.report()) == str(solution.report())


def test_arrays_for_other_tools():
    solution = found(zoo("poisson"), 1e-3, width=60, scale=1.0)
    arrays = solution.to_arrays(9)
    assert arrays["u"].shape == (9, 9)
    corner = np.array([[arrays["x1"][2], arrays["x2"][5]]])
    assert arrays["u"][2, 5] == pytest.approx(solution(corner)[0])
    disc = Problem("laplace(u) = 0", Ball((0, 0), 1), {"rim": On("boundary", "u = x")})
    assert np.isnan(found(disc, 1e-2, width=40, scale=1.0).to_arrays(5)["u"][0, 0])
    with pytest.raises(InputError, match="too fine"):
        solution.to_arrays(100_000)


@pytest.mark.parametrize(
    "problem",
    some(
        [
            zoo("helmholtz", length=1.0),
            zoo("heat"),
            zoo("poisson", dim=3),
            zoo("heat", dim=2),
            Problem("laplace(u) = 0", Box(x=(0, 1), y=(0, 1)), {"sides": On("boundary", "u = x*y")}),
        ],
        3,
    ),
    ids=lambda problem: problem.name or "without exact solution",
)
def test_every_dimension_has_its_picture(problem, tmp_path):
    solution = found(problem, 0.1, width=150, scale=1.0 if problem.domain.dim > 1 else 5.0)
    figure = solution.plot(tmp_path / "picture.png")
    assert min(inked(figure, tmp_path / "picture.png")) > 0.005
    assert len(figure.axes) >= 2 or problem.exact_solution is None


def test_unknown_settings_and_methods_are_answered_with_the_known_ones():
    with pytest.raises(TypeError, match="widht"):
        Collocation(widht=100)
    with pytest.raises(InputError, match=r"method is 'line'.*did you mean 'lines'"):
        solve(zoo("heat"), method="line")
    with pytest.raises(InputError, match=r"rp\.Lines"):
        solve(zoo("heat"), method=3)
