"""solve(): accuracy against exact solutions, every kind of condition, pieces, slabs, failure that is loud, files."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.domains import Ball, Box, Interval, SpaceTime
from rannpde.errors import InputError
from rannpde.pde.collocation.attempt import held_out_residual
from rannpde.pde.collocation.newton import GaussNewton
from rannpde.pde.problem.conditions import Data, On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, load_solution
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo


def worst(solution):
    return max(solution.errors().values())


# Bounds are 10 to 100 times what these seeds give: the law's spread over seeds, not the method's limit.
@pytest.mark.parametrize(
    ("name", "settings", "width", "scale", "bound"),
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
        ("schroedinger", {}, 150, (1.0, 6.0), 5e-2),
        ("kovasznay", {}, 150, 1.5, 1e-3),
        ("advection", {}, 120, (9.0, 2.0), 1e-8),
        ("navier_stokes_eulerian", {"gamma": 1.4}, 80, (1.0, 3.0), 1e-5),
    ],
    ids=lambda value: str(value),
)
def test_solutions_are_accurate(name, settings, width, scale, bound):
    solution = solve(zoo(name, **settings), width=width, scale=scale, placement="uniform", rng=0)
    assert solution.converged, solution.reason
    assert worst(solution) < bound


def test_gauss_newton_converges_quadratically_and_linear_problems_take_one_solve():
    solution = solve(zoo("nonlinear_poisson"), width=200, scale=1.5, rng=0)
    assert 2 <= len(solution.history) <= 8
    assert len(solve(zoo("poisson"), width=100, scale=1.0, rng=0).history) == 1


def test_the_same_seed_gives_the_same_solution_and_another_does_not():
    first, again, other = (solve(zoo("heat"), width=60, scale=1.0, rng=rng) for rng in (3, 3, 4))
    points = zoo("heat").domain.sample(20, rng=0)
    assert np.array_equal(first(points), again(points))
    assert not np.array_equal(first(points), other(points))


def test_losses_are_the_sums_of_the_paper():
    problem = zoo("heat")
    solution = solve(problem, width=40, scale=1.0, rng=0)
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
    assert worst(solve(problem, width=120, scale=1.0, rng=0)) < 1e-6
    mixed = Problem(
        "u_xx = -sin(x)",
        Interval(0, 1),
        {"left": On("x=0", "u_x = 1"), "right": On("x=1", "u_x + 2*u = cos(x) + 2*sin(x)")},
        exact={"u": "sin(x)"},
    )
    assert worst(solve(mixed, width=60, scale=1.0, rng=0)) < 1e-9


def test_periodic_features_are_exactly_periodic():
    solution = solve(zoo("advection"), width=60, scale=(9.0, 2.0), rng=0)
    times = np.linspace(0, 1, 9)
    left, right = (np.column_stack([times, np.full(9, x)]) for x in (0.0, 1.0))
    for order in range(3):
        gap = solution.derivative(left, (0, order)) - solution.derivative(right, (0, order))
        size = np.abs(solution.network.coefficients[0]).sum() * (9 * np.pi) ** order
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
    solution = solve(problem, width=150, scale=3.0, rng=0, placement="uniform")
    assert "circle" in solution.losses
    assert worst(solution) < 1e-3


def test_measured_data_replace_a_missing_condition():
    points = np.array([[0.2], [0.5], [0.9]])
    problem = Problem(
        "u_xx = -u", Interval(0, 1), {"sensors": Data(points, np.sin(points[:, 0]))}, exact={"u": "sin(x)"}
    )
    assert worst(solve(problem, width=60, scale=1.0, rng=0)) < 1e-8


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
        with_bound = solve(problem, width=60, scale=2.0, rng=0, weights={"bounds of u": 100.0})
    assert with_bound(points).min() > -0.05  # the unbounded solution reaches -0.5
    assert "bounds of u" in with_bound.losses


def test_weights_by_name_move_the_balance():
    problem = zoo("heat")
    light, heavy = (solve(problem, width=40, scale=1.0, rng=0, weights={"start": w}) for w in (1e-2, 1e2))
    assert heavy.losses["start"] < 0.1 * light.losses["start"]
    with pytest.raises(InputError, match="did you mean 'start'"):
        solve(problem, width=60, weights={"stat": 1.0})


# ----------------------------------------------------------------------------------- pieces, slabs, placement


def test_pieces_are_joined_smoothly():
    problem = zoo("helmholtz", length=4.0)
    one = solve(problem, width=100, scale=10.0, rng=0)
    four = solve(problem, width=100, scale=4.0, rng=0, pieces={"x": 4})
    assert worst(four) < 0.1 * worst(one)
    near = np.nextafter(2.0, [0.0, 4.0])[:, None]
    jump = np.ptp(four(near))
    assert jump < 1e-6
    assert "continuity" in four.losses


def test_slabs_continue_each_other():
    problem = zoo("wave", duration=2.0)
    solution = solve(problem, width=200, scale=1.2, rng=0, slabs=4, placement="uniform")
    assert len(solution.network.pieces) == 4
    assert worst(solution) < 1e-3


def test_placed_features_follow_a_front():
    problem = zoo("burgers", viscosity=0.03)
    placed = solve(problem, width=200, rng=0, placement="placed")
    assert worst(placed) < 0.02
    with pytest.warns(ConvergenceWarning):
        uniform = solve(problem, width=200, rng=0, scale=2.0, placement="uniform")
    assert worst(placed) < 0.2 * worst(uniform)


def test_scale_and_width_are_chosen_and_reported():
    solution = solve(zoo("heat"), method="space-time", rng=0, tol=1e-3)
    assert solution.score < 1e-3
    assert len(solution.tried) >= 2
    assert all(2 * score >= solution.score for _, score in solution.tried)
    assert "tried" in solution.report()


def test_held_out_residual_is_small_for_the_exact_solution_and_one_for_nothing():
    problem = zoo("burgers")
    assert max(held_out_residual(problem, problem.exact_solution).values()) < 1e-10

    class Nothing:
        def derivative(self, points, derivative):
            return np.zeros((len(points), 1))

    assert max(held_out_residual(problem, Nothing()).values()) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------- bad endings


def test_a_result_that_did_not_converge_is_loud():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        solution = solve(zoo("burgers", viscosity=0.01), width=20, scale=1.0, rng=0, placement="uniform")
    assert not solution.converged
    assert "DID NOT CONVERGE" in solution.report()


def test_iterations_that_end_too_early_say_so():
    with pytest.warns(ConvergenceWarning, match="1 iterations"):
        solve(
            zoo("burgers"),
            width=60,
            scale=2.0,
            rng=0,
            placement="uniform",
            newton=GaussNewton(iterations=1, tolerance=1e-6),
        )


def test_a_logarithm_that_leaves_its_domain_keeps_the_last_good_iterate():
    ends = {"ends": On("boundary", "u = 2 + sin(x)")}
    force = {"f": lambda x: -np.sin(x) + np.log(2 + np.sin(x))}
    problem = Problem("u_xx + log(u) = f(x)", Interval(0, 1), ends, functions=force, exact={"u": "2 + sin(x)"})
    with pytest.raises(InputError, match="guess"):
        solve(problem, width=40, scale=1.0, rng=0)
    solution = solve(problem, width=40, scale=1.0, rng=0, guess={"u": "0.001"})
    assert np.isfinite(solution(np.linspace(0, 1, 5))).all()
    assert worst(solve(problem, width=40, scale=1.0, rng=0, guess={"u": "2"})) < 1e-8


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"width": 0}, "width"),
        ({"width": 2.5}, "width"),
        ({"scale": -1.0}, "scale"),
        ({"scale": (1.0, 2.0, 3.0)}, "scale"),
        ({"scale": "large"}, "scale"),
        ({"slabs": 0}, "slabs"),
        ({"pieces": {"z": 2}}, "no coordinate"),
        ({"placement": "clever"}, "placement"),
        ({"guess": 3}, "guess"),
        ({"weights": {"start": 0.0}}, "weights"),
    ],
)
def test_bad_settings_are_named(settings, hint):
    with pytest.raises(InputError, match=hint):
        solve(zoo("heat"), **({"width": 20, "scale": 1.0} | settings))
    with pytest.raises(InputError, match="no time"):
        solve(zoo("poisson"), width=20, scale=1.0, slabs=2)


# ------------------------------------------------------------------------------------------------------- files


def test_saved_solutions_come_back_bit_for_bit(tmp_path):
    problem = Problem(
        "u_xx = -u",
        Interval(0, 1),
        {"ends": On("boundary", "u = sin(x)")},
        exact={"u": "sin(x)"},
        bounds={"u": (-2, None)},
    )
    solution = solve(problem, width=30, scale=1.0, rng=0)
    again = load_solution(solution.save(tmp_path / "solution.npz"))
    points = np.linspace(0, 1, 7)[:, None]
    assert np.array_equal(solution(points), again(points))
    assert again.errors() == solution.errors()
    assert str(again.report()) == str(solution.report())


def test_arrays_for_other_tools():
    solution = solve(zoo("poisson"), width=60, scale=1.0, rng=0)
    arrays = solution.to_arrays(9)
    assert arrays["u"].shape == (9, 9)
    corner = np.array([[arrays["x1"][2], arrays["x2"][5]]])
    assert arrays["u"][2, 5] == pytest.approx(solution(corner)[0])
    disc = Problem("laplace(u) = 0", Ball((0, 0), 1), {"rim": On("boundary", "u = x1")})
    assert np.isnan(solve(disc, width=40, scale=1.0, rng=0).to_arrays(5)["u"][0, 0])
    with pytest.raises(InputError, match="too fine"):
        solution.to_arrays(100_000)


@pytest.mark.parametrize(
    "problem",
    [
        zoo("helmholtz", length=1.0),
        zoo("heat"),
        zoo("poisson", dim=3),
        zoo("heat", dim=2),
        Problem("laplace(u) = 0", Box(x=(0, 1), y=(0, 1)), {"sides": On("boundary", "u = x*y")}),
    ],
    ids=lambda problem: problem.name or "without exact solution",
)
def test_every_dimension_has_its_picture(problem, tmp_path):
    solution = solve(problem, width=150, scale=1.0 if problem.domain.dim > 1 else 5.0, rng=0)
    figure = solution.plot(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert len(figure.axes) >= 2 or problem.exact_solution is None


def test_unknown_settings_and_methods_are_answered_with_the_known_ones():
    with pytest.raises(InputError, match=r"setting is 'widht'.*did you mean 'width'"):
        solve(zoo("heat"), widht=100)
    with pytest.raises(InputError, match=r"method is 'line'.*did you mean 'lines'"):
        solve(zoo("heat"), method="line")
