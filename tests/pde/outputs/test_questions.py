"""Questions to solutions: integrals, means, extrema, values, first times, on random neighbours of known problems."""

from dataclasses import replace

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.evaluate import integral
from rannpde.pde.outputs.quantity import Quantity, with_bound
from rannpde.pde.outputs.settings import OutputSettings


def within(quantity, exact, most=np.inf):
    """Whether the true error is within the bound, and the bound is of use."""
    error = np.abs(np.asarray(quantity.value) - exact)
    assert (error <= quantity.bound).all(), (quantity, exact)
    assert (np.asarray(quantity.bound) <= most * np.maximum(np.abs(exact), 1e-300)).all(), (quantity, exact)
    return True


def harmonic(seed):
    """A problem with the solution e^{ax} sin(ay + b) on a random box, in random units, at a random place."""
    rng = np.random.default_rng(seed)
    unit = 10.0 ** int(rng.integers(-2, 3))
    x, y = (np.round(rng.uniform(-3, 3, 2), 1) * unit).tolist()
    w, h = (np.round(rng.uniform(0.4, 1.6, 2), 2) * unit).tolist()
    a, b = round(rng.uniform(0.5, 2), 2) / unit, round(rng.uniform(0, 3), 2)
    exact = f"exp({a!r}*(x - ({x!r})))*sin({a!r}*(y - ({y!r})) + {b!r})"
    problem = rp.Problem(
        "laplace(u) = 0", rp.Box(x=(x, x + w), y=(y, y + h)), {"boundary": f"u = {exact}"}, exact={"u": exact}
    )
    return problem, (x, y, w, h, a, b)


@pytest.fixture(scope="module", params=some(range(4), 2))
def solved(request):
    problem, numbers = harmonic(request.param)
    return rp.solve(problem, tol=[1e-4, 1e-6, 1e-8, 1e-10][request.param]), numbers


def test_integrals_means_and_fluxes(solved):
    solution, (x, y, w, h, a, b) = solved
    across, along = (np.exp(a * w) - 1) / a, (np.cos(b) - np.cos(a * h + b)) / a
    size = np.exp(a * w) * w * h
    assert within(solution.integral("u"), across * along)
    assert solution.integral("u").bound <= 1e-2 * size
    assert within(solution.mean("u"), across * along / (w * h))
    left = f"x={x:g}"
    assert within(solution.integral("dn(u)", on=left), -a * along)
    assert within(solution.integral("u*nx", on=left), -along)
    assert within(solution.integral("dn(u)", on="boundary"), 0.0)
    line = ((x, y + h / 3), (x + w, y + h / 3))
    assert within(solution.integral("u", on=line), across * np.sin(a * h / 3 + b))
    assert within(solution.integral("u", on=f"x={x + w / 2!r}"), np.exp(a * w / 2) * along)


def test_a_disc_has_the_mean_of_its_centre(solved):
    solution, (x, y, w, h, a, b) = solved
    disc = rp.Ball((x + w / 2, y + h / 2), 0.3 * min(w, h))
    value = np.exp(a * w / 2) * np.sin(a * h / 2 + b)
    assert within(solution.mean("u", on=disc), value)


def test_values_and_derivatives_at_points(solved):
    solution, (x, y, w, h, a, b) = solved
    points = np.array([[x + 0.3 * w, y + 0.6 * h], [x + 0.9 * w, y + 0.1 * h]])
    phase, growth = a * (points[:, 1] - y) + b, np.exp(a * (points[:, 0] - x))
    assert within(solution.probe(points), growth * np.sin(phase))
    assert within(solution.probe(points, "u_y + 2*u"), growth * (a * np.cos(phase) + 2 * np.sin(phase)))
    one = solution.probe(points[0])
    assert np.ndim(one.value) == 0
    assert within(one, growth[0] * np.sin(phase[0]))


def test_harmonic_functions_are_largest_on_the_boundary(solved):
    solution, (_x, _y, w, h, a, b) = solved
    grid = np.linspace(0, 1, 20_001)
    sides = [(1, grid), (0, grid), (grid, 0 * grid), (grid, 0 * grid + 1)]
    exact = max(np.max(np.exp(a * w * np.asarray(s)) * np.sin(a * h * np.asarray(t) + b)) for s, t in sides)
    found = solution.maximum("u")
    assert abs(found.value - exact) <= found.bound + 1e-8 * abs(exact)
    at = np.array([found.location])
    assert solution.stated.domain.level(at)[0] > -1e-6 * w
    assert solution(at)[0] == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("seed", range(1))
def test_an_extremum_inside_is_found_with_its_place(seed):
    rng = np.random.default_rng(seed)
    cx, cy = np.round(rng.uniform(0.35, 0.65, 2), 2)
    exact = f"2 - (x - {cx})**2 - 3*(y - {cy})**2 + (x - {cx})**3/2"
    problem = rp.Problem(
        f"laplace(u) = -8 + 3*(x - {cx})",
        rp.Box(x=(0, 1), y=(0, 1)) - rp.Ball((0.15, 0.15), 0.1),
        {"boundary": f"u = {exact}"},
    )
    solution = rp.solve(problem, tol=1e-7)
    found = solution.maximum("u")
    assert found.location == pytest.approx((cx, cy), abs=1e-5)
    assert within(found, 2.0, 1e-5)
    steep = solution.maximum("sqrt(u_x**2 + u_y**2)", on=rp.Ball((cx, cy), 0.1))
    angle = np.linspace(0, 2 * np.pi, 100_001)
    dx, dy = 0.1 * np.cos(angle), 0.1 * np.sin(angle)
    assert steep.value == pytest.approx(np.hypot(-2 * dx + 1.5 * dx**2, -6 * dy).max(), abs=steep.bound + 1e-7)


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_heat_in_time(seed):
    """u = e^{-kπ²t} sin(πx/L) + c: series, slices, fluxes at a time, first times."""
    rng = np.random.default_rng(seed)
    size, end = round(rng.uniform(0.3, 3), 2), round(rng.uniform(0.2, 2), 2)
    k, c = 0.3 * size**2 / (np.pi**2 * end) * rng.uniform(1, 5), round(rng.uniform(-1, 1), 2)
    rate = k * np.pi**2 / size**2
    wave = f"sin(pi*x/{size!r})"
    problem = rp.Problem(
        "u_t = k*u_xx",
        rp.SpaceTime(t=(0, end), x=(0, size)),
        {"t=0": f"u = {c} + {wave}", "boundary": f"u = {c}"},
        parameters={"k": k},
    )
    solution = rp.solve(problem, tol=10.0 ** -rng.integers(4, 10))
    times = np.linspace(0, end, 5).tolist()
    heat = c * size + np.exp(-rate * np.array(times)) * 2 * size / np.pi
    series = solution.integral("u", t=times)
    assert within(series, heat)
    assert series.times == pytest.approx(times)
    assert within(solution.integral("u", on=f"t={times[2]!r}"), heat[2])
    assert within(solution.integral("u"), c * size * end + (1 - np.exp(-rate * end)) / rate * 2 * size / np.pi)
    assert within(solution.mean("dn(u)", on="x=0", t=times[1]), -np.pi / size * np.exp(-rate * times[1]))
    level = round(float(0.5 * (1 + np.exp(-rate * end))), 3)
    when = solution.first_time(f"u({size / 2!r}) = {c + level!r}")
    assert within(when, -np.log(level) / rate)
    assert within(solution.maximum("u", t=times[3]), c + np.exp(-rate * times[3]))
    with pytest.raises(rp.InputError, match="does not happen"):
        solution.first_time(f"u({size / 2!r}) = {c + 2}")


def test_one_coordinate_has_values_at_its_ends():
    problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"boundary": "u = sin(x)"})
    solution = rp.solve(problem, tol=1e-8)
    assert within(solution.integral("dn(u)", on="x=1"), np.cos(1), 1e-5)
    assert within(solution.integral("dn(u)", on="boundary"), np.cos(1) - 1, 1e-5)
    assert within(solution.integral("u**2"), 0.5 - np.sin(2) / 4, 1e-6)
    assert within(solution.maximum("u"), np.sin(1), 1e-6)


@pytest.mark.parametrize("method", ["trefftz", pytest.param("cells", marks=pytest.mark.slow)])
def test_a_cuboid(method):
    problem = rp.Problem(
        "laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 2), z=(-1, 0)), {"boundary": "u = x*y*z"}, exact={"u": "x*y*z"}
    )
    solution = rp.solve(problem, tol=1e-4, method=method)
    assert within(solution.integral("u"), -0.5, 1e-2)
    assert within(solution.integral("u_x*nx", on="x=1"), -1.0, 0.1)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.integral("v"), "unknown"),
        (lambda s: s.integral("dn(u)"), "name a side"),
        (lambda s: s.integral("u", on="z=1"), "does not exist"),
        (lambda s: s.integral("u", on=rp.Ball((0, 0), 1)), "outside"),
        (lambda s: s.integral("u", on=3), "the two ends of a line"),
        (lambda s: s.integral("u", t=1), "no time"),
        (lambda s: s.probe([[0.5, 3.0]]), "outside"),
        (lambda s: s.probe([[0.5]]), "shape"),
        (lambda s: s.probe([0.5, 0.5], "dn(u)"), "normal"),
        (lambda s: s.first_time("u(0.5, 0.5) = 1"), "problem in time"),
        (lambda s: s.integral("u(5, 5)"), "outside"),
        (lambda s: s.integral("u(x, 1)"), "unknown"),
    ],
)
def test_bad_questions_are_answered_with_what_is_wrong(ask, words):
    problem = rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    solution = rp.solve(problem, tol=1e-2)
    with pytest.raises(rp.InputError, match=words):
        ask(solution)


def test_a_solution_that_did_not_converge_is_not_called_so():
    problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"boundary": "u = sin(x)"})
    solution = replace(rp.solve(problem, tol=1e-6), status=rp.Status.STALLED)
    found = solution.integral("u")
    assert not found.converged
    assert "NOT CONVERGED" in repr(found)


def test_a_solution_without_a_second_one_has_no_bound():
    problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"boundary": "u = sin(x)"})
    solution = rp.solve(problem, tol=1e-6)
    pair = SolutionPair(solution, None, OutputSettings())
    found = integral(pair, "u")
    assert np.isinf(found.bound)
    assert not found.converged
    assert str(found).endswith("± unknown")


def test_arithmetic_of_quantities_is_that_of_intervals():
    rng = np.random.default_rng(1)
    for _ in range(200):
        (a, b), (da, db) = rng.normal(size=(2, 2))
        one, other = Quantity(a, abs(da) * 0.01), Quantity(b, abs(db) * 0.01)
        x, y = a + 0.01 * da, b + 0.01 * db
        for found, exact in ((one + other, x + y), (one - other, x - y), (one * other, x * y), (one / other, x / y)):
            assert abs(found.value - exact) <= found.bound * (1 + 1e-12)
        assert (2 * one).bound == pytest.approx(2 * one.bound)
        assert (1 / one).value == pytest.approx(1 / a)
    with pytest.raises(rp.InputError, match="quantity"):
        Quantity(1.0, 0.1) + "x"


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (0.14057701, 1.2e-6, "0.1405770 ± 1.2e-06"),
        (3.8375e-7, 2e-13, "3.8375000e-07 ± 2.0e-13"),
        (92.7, 0.05, "92.700 ± 5.0e-02"),
        (1.0, np.inf, "1 ± unknown"),
        (np.inf, np.nan, "infinite"),
        (0.0, 1e-9, "0.0000000000 ± 1.0e-09"),
    ],
)
def test_values_have_the_digits_that_their_bounds_leave(value, bound, text):
    assert with_bound(value, bound) == text
    table = Quantity(value, bound, how="x", location=(1.0,)).to_table()
    again = Quantity.from_table(table)
    assert str(again) == str(Quantity(value, bound, how="x", location=(1.0,)))
