"""Unknowns from measurements: against exact solutions, closed-form regression, and each other."""

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import some
from helpers import inked
from rannpde.pde.inverse.estimates import Parameter, factor_of
from rannpde.pde.inverse.identify import OuterIterations
from rannpde.pde.inverse.regression import Regression
from rannpde.pde.monitor import Monitor

TIMES = np.linspace(0.1, 2.0, 20)[:, None]


def decay(values, noise=None, **unknown):
    """u' = -k u, u(0) = A."""
    unknown = unknown or {"k": rp.Unknown(0.5, bounds=(0, None)), "A": rp.Unknown(1.0)}
    conditions = {"start": rp.On("t=0", "u = A"), "sensors": rp.Data(TIMES, values, "u", noise=noise)}
    return rp.Problem("u_t = -k*u", rp.Interval(0, 2, name="t"), conditions, unknown=unknown)


@pytest.mark.parametrize(("rate", "first"), some([(1.3, 3.0), (0.7, 3.3), (1.1, 2.0)], 1))
def test_exact_data_give_all_digits(rate, first):
    solution = rp.solve(decay(first * np.exp(-rate * TIMES[:, 0]), noise=0), tol=1e-10)
    assert solution.converged
    for name, truth in (("k", rate), ("A", first)):
        one = solution.parameters[name]
        assert one.value == pytest.approx(truth, rel=1e-9)
        assert one.interval[0] <= truth <= one.interval[1]


def test_noisy_data_give_the_regression_of_textbooks():
    """Estimate and covariance of a non-linear regression with the closed-form model."""
    from scipy.optimize import curve_fit

    rng = np.random.default_rng(3)
    values = 3 * np.exp(-1.3 * TIMES[:, 0]) + 0.02 * rng.standard_normal(len(TIMES))
    known = curve_fit(
        lambda t, k, a: a * np.exp(-k * t), TIMES[:, 0], values, (0.5, 1),
        sigma=np.full(20, 0.02), absolute_sigma=True,
    )  # fmt: skip
    solution = rp.solve(decay(values, noise=0.02), tol=1e-9)
    found = [solution.parameters[name].value for name in ("k", "A")]
    np.testing.assert_allclose(found, known[0], rtol=1e-6)
    np.testing.assert_allclose(solution.covariance, known[1], rtol=1e-2)
    free = rp.solve(decay(values), tol=1e-9)  # the noise estimated: the same estimate, its scale from the residuals
    np.testing.assert_allclose([free.parameters[name].value for name in ("k", "A")], known[0], rtol=1e-6)
    left = values - known[0][1] * np.exp(-known[0][0] * TIMES[:, 0])
    assert free.noise["sensors"] == pytest.approx(np.sqrt(np.square(left).sum() / 18), rel=1e-3)
    middle = np.array([[1.0]])
    slope = np.exp(-known[0][0]) * np.array([-known[0][1], 1.0])
    assert solution.std(middle)[0] == pytest.approx(np.sqrt(slope @ known[1] @ slope), rel=1e-2)


@pytest.mark.slow
def test_profile_and_bootstrap_agree_with_the_covariance_where_the_model_is_straight():
    rng = np.random.default_rng(4)
    problem = decay(3 * np.exp(-1.3 * TIMES[:, 0]) + 0.02 * rng.standard_normal(len(TIMES)), noise=0.02)
    plain = rp.solve(problem, tol=1e-6).parameters["k"]
    for kind, slack in (("profile", 0.05), ("bootstrap", 0.6)):  # 60 draws: quantiles are good to a few tenths
        way = rp.Identify(uncertainty=kind, draws=60)
        other = rp.solve(problem, tol=1e-6, method=way).parameters["k"]
        half = 0.5 * (plain.interval[1] - plain.interval[0])
        np.testing.assert_allclose(other.interval, plain.interval, atol=slack * half)


def test_a_bound_that_holds_is_told():
    values = 3 * np.exp(0.03 * TIMES[:, 0])  # it grows: k would be negative
    solution = rp.solve(decay(values, noise=0.1), tol=1e-6)
    assert solution.parameters["k"].value == 0.0
    assert "lower bound" in solution.parameters["k"].note


def test_what_the_data_do_not_determine_is_said():
    conditions = {"ends": rp.On(("x=0", "x=1"), "u = 0"), "s": rp.Data(np.array([[0.3], [0.6]]), [0.105, 0.12], "u")}
    problem = rp.Problem(
        "a*u_xx = -b", rp.Interval(0, 1), conditions, unknown={"a": rp.Unknown(2.0), "b": rp.Unknown(1.0)}
    )
    with pytest.warns(rp.ConvergenceWarning, match="do not determine"):
        solution = rp.solve(problem, tol=1e-8)
    assert solution.status is rp.Status.UNDETERMINED
    assert all(np.isinf(one.std) for one in solution.parameters.values())
    assert "not known" in solution.report()


def test_data_that_contradict_the_equations_are_not_called_exact():
    values = 3 * np.exp(-1.3 * TIMES[:, 0]) + 0.1 * np.sin(9 * TIMES[:, 0])
    with pytest.warns(rp.ConvergenceWarning, match="said to be exact"):
        rp.solve(decay(values, noise=0), tol=1e-8)


def test_outliers_are_hardly_followed():
    rng = np.random.default_rng(5)
    values = 3 * np.exp(-1.3 * TIMES[:, 0]) + 0.01 * rng.standard_normal(len(TIMES))
    values[[3, 11]] += 2.0
    conditions = {"start": rp.On("t=0", "u = 3"), "s": rp.Data(TIMES, values, "u", noise=0.01, loss="huber")}
    problem = rp.Problem("u_t = -k*u", rp.Interval(0, 2, name="t"), conditions, unknown={"k": rp.Unknown(1.0)})
    robust = rp.solve(problem, tol=1e-8).parameters["k"]
    assert robust.value == pytest.approx(1.3, abs=0.02)


def test_experiments_share_their_unknowns():
    """Two experiments, each of which leaves a combination free, determine both numbers together."""

    def experiment(load, value):
        conditions = {"ends": rp.On(("x=0", "x=1"), "u = 0"), "s": rp.Data(np.array([[0.5]]), [value], "u", noise=1e-6)}
        return rp.Problem(
            "u_xx = -a - b*load*x", rp.Interval(0, 1), conditions, parameters={"load": load},
            unknown={"a": rp.Unknown(1.0), "b": rp.Unknown(1.0)},
        )  # fmt: skip

    values = [2 / 8 + 3 * load / 16 for load in (1.0, 4.0)]  # -u'' = a + b load x: u(½) = a/8 + b load/16
    solution = rp.solve([experiment(1.0, values[0]), experiment(4.0, values[1])], tol=1e-9)
    assert solution.parameters["a"].value == pytest.approx(2.0, rel=1e-6)
    assert solution.parameters["b"].value == pytest.approx(3.0, rel=1e-6)
    assert len(solution.experiments) == 2


def test_an_unknown_source_has_a_band_that_covers():
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 1, 80)
    conditions = {"ends": rp.On(("x=0", "x=1"), "u_x = 0")}
    conditions["s"] = rp.Data(x[:, None], np.cos(np.pi * x) + 0.01 * rng.standard_normal(80), "u", noise=0.01)
    unknown = {"f": rp.UnknownFunction(of=("x",), guess=0.0)}
    problem = rp.Problem("-u_xx + u = f", rp.Interval(0, 1), conditions, unknown=unknown)
    solution = rp.solve(problem, tol=1e-6)
    line = np.linspace(0, 1, 200)[:, None]
    truth = (1 + np.pi**2) * np.cos(np.pi * line[:, 0])
    lower, upper = solution.functions["f"].band(line)
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.8  # pointwise 95 %, one draw of a correlated error
    assert np.linalg.norm(solution.functions["f"](line) - truth) < 0.08 * np.linalg.norm(truth)


def test_an_unknown_conductivity_from_exact_values():
    """a = 1 + x/2 from u of -(a u')' = 1: to many digits where nothing is noisy."""
    x = np.linspace(0.02, 0.98, 60)
    # -(a u')' = 1, u(0) = u(1) = 0: a u' = c - x, u = ∫ (c - x)/(1 + x/2)
    c = (2 - 4 * np.log(1.5)) / (2 * np.log(1.5))
    exact = (2 * c + 4) * np.log(1 + x / 2) - 2 * x
    conditions = {"ends": rp.On(("x=0", "x=1"), "u = 0"), "rim": rp.On("x=0", "a = 1")}
    conditions["s"] = rp.Data(x[:, None], exact, "u", noise=0)
    unknown = {"a": rp.UnknownFunction(of=("x",), guess=1.0, bounds=(0, None))}
    problem = rp.Problem("div(a*grad(u)) = -1", rp.Interval(0, 1), conditions, fields=("u", "a"), unknown=unknown)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=1e-9)
    line = np.linspace(0, 1, 100)[:, None]
    np.testing.assert_allclose(solution.functions["a"](line), 1 + line[:, 0] / 2, rtol=1e-4)


def test_files_keep_what_was_identified(tmp_path):
    rng = np.random.default_rng(7)
    solution = rp.solve(decay(3 * np.exp(-1.3 * TIMES[:, 0]) + 0.02 * rng.standard_normal(20), noise=0.02), tol=1e-7)
    again = rp.load(solution.save(tmp_path / "decay.npz"))
    assert isinstance(again, rp.Identified)
    assert again.parameters == dict(solution.parameters)
    points = solution.stated.domain.sample(20, rng=0)
    np.testing.assert_allclose(again.std(points), solution.std(points), rtol=1e-12)
    assert again.report() == solution.report()
    figure = solution.plot(tmp_path / "decay.png")
    assert min(inked(figure, tmp_path / "decay.png")) > 0.005


def test_marches_have_exact_sensitivities():
    """Heat: u = A exp(-kπ²t) sin(πx); both numbers to many digits by lines, a file keeps the bands."""
    rng = np.random.default_rng(8)
    points = np.column_stack([rng.uniform(0.05, 1, 60), rng.uniform(0, 1, 60)])
    exact = 1.7 * np.exp(-0.3 * np.pi**2 * points[:, 0]) * np.sin(np.pi * points[:, 1])
    conditions = {"start": rp.On("t=0", "u = A*sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    conditions["s"] = rp.Data(points, exact, "u", noise=0)
    problem = rp.Problem(
        "u_t = k*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions,
        unknown={"k": rp.Unknown(0.6, bounds=(0, None)), "A": rp.Unknown(1.0)},
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-7)
    assert solution.method.name == "lines"
    assert solution.converged
    assert solution.parameters["k"].value == pytest.approx(0.3, rel=1e-7)
    assert solution.parameters["A"].value == pytest.approx(1.7, rel=1e-7)
    best = rp.sensitivity(problem).best(2)
    assert best.shape == (2, 2)


def test_numbers_are_shown_with_as_many_digits_as_are_known():
    assert str(Parameter("a", 1234.6, 10.0, (1214.6, 1254.6))) == "1235 ± 20 (95 %)"
    assert str(Parameter("a", 1.0, 0.1, (0.9, 1.3))).startswith("1 in [0.9, 1.3]")
    assert factor_of(0.68, np.inf) == pytest.approx(0.994, abs=1e-3)


def test_a_search_that_was_cut_short_claims_nothing():
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(decay(3 * np.exp(-1.3 * TIMES[:, 0]), noise=0), tol=1e-10, seconds=1e-3)
    assert not solution.converged
    for name, truth in (("k", 1.3), ("A", 3.0)):
        lower, upper = solution.parameters[name].interval
        assert lower <= truth <= upper


def test_a_step_of_no_finite_size_is_not_called_settled(monkeypatch):
    values = 3 * np.exp(-1.3 * TIMES[:, 0])
    monkeypatch.setattr(Regression, "_step", lambda self, vector, *_: np.full(len(vector), np.nan))
    with pytest.warns(rp.ConvergenceWarning, match="did not converge in"):
        solution = rp.solve(decay(values, noise=0.02), tol=1e-6)
    assert solution.status is rp.Status.NEWTON
    assert not np.isfinite(solution.parameters["k"].std)


@pytest.mark.parametrize("method", [rp.Cells(time_stepping=False), rp.Lines()], ids=["cells", "lines"])
def test_a_solution_alone_is_that_with_derivatives(method):
    """u_t = k u_xx + u(1 - u): what a check for bending asks is what a fit asked."""
    points = np.array([[0.3, 0.2], [0.5, 0.7]])
    conditions = {"start": rp.On("t=0", "u = sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    data = {"s": rp.Data(points, [0.1, 0.1], "u", noise=0.1)}
    domain, unknown = rp.SpaceTime(t=(0, 0.5), x=(0, 1)), {"k": rp.Unknown(0.1), "r": rp.Unknown(1.0)}
    problem = rp.Problem("u_t = k*u_xx + r*u*(1 - u)", domain, conditions | data, unknown=unknown)
    monitor = Monitor()
    forward = rp.Identify(forward=method).solver([problem], monitor)
    search = OuterIterations([problem], 1e-6, forward, np.random.default_rng(0), monitor)
    model = search.model(problem, forward(problem.at({}), 1e-6, np.random.default_rng(0)), 1e-6)
    for vector in (np.array([0.1, 1.0]), np.array([0.11, 1.2]), np.array([0.3, 0.2])):
        alone = model.solution(vector)(points)[:, 0]
        both, _ = model.respond(vector).jets(points, (0, 0))
        np.testing.assert_allclose(alone, both[:, 0], atol=1e-6)


def test_a_number_in_a_boundary_condition_of_an_evolution(tmp_path):
    """u = exp(-k w² t) cos(wx) with u_x = -h u at x = 1, h = w tan w: a march with the sensitivities of cells."""
    w, k = 0.8, 0.5
    domain, h = rp.SpaceTime(t=(0, 1), x=(0, 1)), w * np.tan(w)
    points = domain.sample(40, rng=1)
    exact = np.exp(-k * w**2 * points[:, 0]) * np.cos(w * points[:, 1])
    values = exact + 0.01 * np.random.default_rng(0).standard_normal(40)
    conditions = {
        "start": rp.On("t=0", f"u = cos({w}*x)"), "left": rp.On("x=0", "u_x = 0"), "right": rp.On("x=1", "u_x = -h*u"),
        "sensors": rp.Data(points, values, "u", noise=0.01),
    }  # fmt: skip
    problem = rp.Problem(f"u_t = {k}*u_xx", domain, conditions, unknown={"h": rp.Unknown(0.5)})
    solution = rp.solve(problem, tol=1e-6)
    one = solution.parameters["h"]
    assert solution.converged
    assert one.interval[0] < h < one.interval[1]
    assert 0.005 < one.std / h < 0.05
    solution.save(tmp_path / "rod.npz")
    np.testing.assert_allclose(rp.load(tmp_path / "rod.npz").std(points), solution.std(points), rtol=1e-12)


def test_a_basis_that_cannot_meet_what_is_known_is_not_called_converged():
    """A source that is 0, 1, 0, 1, 0 at five places, sought among parabolas."""
    x = np.linspace(0.02, 0.98, 30)[:, None]
    conditions = {"ends": rp.On(("x=0", "x=1"), "u_x = 0"), "s": rp.Data(x, np.cos(np.pi * x[:, 0]), "u", noise=0.01)}
    for k, value in enumerate((0, 1, 0, 1, 0)):
        conditions[f"known {k}"] = rp.On(f"x={k / 4}", f"f = {value}")
    unknown = {"f": rp.UnknownFunction(of=("x",), guess=0.0, degree=2)}
    with pytest.warns(rp.ConvergenceWarning, match="larger degree"):
        solution = rp.solve(rp.Problem("-u_xx + u = f", rp.Interval(0, 1), conditions, unknown=unknown), tol=1e-5)
    assert not solution.converged


def test_a_model_that_the_data_contradict_is_not_called_converged():
    """A straight line cannot be a source that has a bump: residuals are many times the noise."""
    places = np.linspace(0.02, 0.98, 60)[:, None]
    exact = np.sin(np.pi * places[:, 0]) + np.sin(4 * np.pi * places[:, 0]) / 4
    noise = 1e-3 * np.random.default_rng(5).standard_normal(60)
    problem = rp.Problem(
        "u_xx + f = 0", rp.Interval(0, 1),
        {"boundary": "u = 0", "sensors": rp.Data(places, exact + noise, noise=1e-3)},
        unknown={"f": rp.UnknownFunction(of=("x",), guess=0.0, degree=2)},
    )  # fmt: skip
    with pytest.warns(rp.ConvergenceWarning, match="times the noise given"):
        solution = rp.solve(problem, tol=1e-6)
    assert solution.status is rp.Status.RESIDUAL_TOO_LARGE


@pytest.mark.slow
def test_a_search_from_far_away_follows_an_integrator():
    """Newton's method does not lead from the path of one guess to that of the next; an integrator does."""
    from scipy.integrate import solve_ivp

    a, b, c = truth = (10.0, 15.0, 8 / 3)
    times = np.linspace(0.1, 2.0, 20)
    rate = lambda t, s: [a * (s[1] - s[0]), s[0] * (b - s[2]) - s[1], s[0] * s[1] - c * s[2]]  # noqa: E731
    path = solve_ivp(rate, (0, 2), [-8.0, 7.0, 27.0], t_eval=times, method="DOP853", rtol=1e-12, atol=1e-12).y
    conditions = {f"start {n}": rp.On("t=0", f"{n} = {v}") for n, v in (("x", -8), ("y", 7), ("z", 27))}
    conditions |= {n: rp.Data(times[:, None], row, n, noise=0) for n, row in zip("xyz", path, strict=True)}
    equations = ["x_t = a*(y - x)", "y_t = x*(b - z) - y", "z_t = x*y - c*z"]
    unknown = {name: rp.Unknown(value) for name, value in (("a", 8.0), ("b", 12.0), ("c", 2.0))}
    domain = rp.Interval(0, 2, name="t")
    solution = rp.solve(rp.Problem(equations, domain, conditions, fields=("x", "y", "z"), unknown=unknown), tol=1e-7)
    assert solution.converged
    np.testing.assert_allclose([one.value for one in solution.parameters.values()], truth, rtol=1e-6)


@pytest.fixture(scope="module")
def disc() -> rp.Problem:
    """u = exp(-2kt) cos x cos y on a disc, k in the equation and on the rim; 40 values with noise."""
    domain = rp.SpaceTime(t=(0, 0.2), space=rp.Ball((0, 0), 1.0, names=("x", "y")))
    points = domain.sample(40, rng=1)
    exact = np.exp(-1.4 * points[:, 0]) * np.cos(points[:, 1]) * np.cos(points[:, 2])
    values = exact + 0.01 * np.random.default_rng(0).standard_normal(40)
    conditions = {
        "start": rp.On("t=0", "u = cos(x)*cos(y)"), "rim": rp.On("boundary", "u = exp(-2*k*t)*cos(x)*cos(y)"),
        "sensors": rp.Data(points, values, "u", noise=0.01),
    }  # fmt: skip
    return rp.Problem("u_t = k*laplace(u)", domain, conditions, unknown={"k": rp.Unknown(1.0)})


def test_marches_on_shapes_have_sensitivities(disc):
    points = disc.domain.sample(50, rng=2)
    found = rp.sensitivity(disc, tol=1e-3)(points)["k"]
    wanted = -2 * points[:, 0] * np.exp(-2 * points[:, 0]) * np.cos(points[:, 1]) * np.cos(points[:, 2])
    # half the relative difference of the two marches, 1e-3, times ∂²u/∂k² over ∂u/∂k, which is 2t ≤ 0.4
    np.testing.assert_allclose(found, wanted, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.slow
def test_an_evolution_on_a_shape_is_identified_and_kept(disc, tmp_path):
    solution = rp.solve(disc, tol=1e-4)
    one = solution.parameters["k"]
    assert solution.converged
    assert one.interval[0] < 0.7 < one.interval[1]
    points, k = disc.measurements[0].points, one.value
    slopes = -2 * points[:, 0] * np.exp(-2 * k * points[:, 0]) * np.cos(points[:, 1]) * np.cos(points[:, 2])
    assert one.std == pytest.approx(0.01 / np.linalg.norm(slopes), rel=0.01)
    solution.save(tmp_path / "disc.npz")
    assert (rp.load(tmp_path / "disc.npz").std(points) == solution.std(points)).all()


@pytest.mark.parametrize(("force", "same"), [("sin(9*t)", True), ("sin(w*t)", False)])
def test_the_step_limit_of_data_is_found_once_where_no_unknown_changes_it(force, same):
    from rannpde.pde.lines.sensitivities.dependence import ParametricDependence

    conditions = {"start": rp.On("t=0", "u = 0"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    conditions["sensor"] = rp.Data([[0.5, 0.5], [0.7, 0.5]], [1.0, 1.0], "u", noise=0.1)
    unknown = {"k": rp.Unknown(1.0)} | ({} if same else {"w": rp.Unknown(9.0)})
    problem = rp.Problem(f"u_t = k*u_xx + {force}", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, unknown=unknown)
    assert (ParametricDependence.of(problem, weak=True).step_limit(1e-6) is not None) == same


def test_an_initial_state_that_vanishes_where_it_is_known():
    """From values a little later; the guess is 0, as is what is known of it at the ends."""
    x = np.linspace(0.02, 0.98, 50)
    later = np.exp(-0.002 * np.pi**2) * np.sin(np.pi * x) + 0.5 * np.exp(-0.008 * np.pi**2) * np.sin(2 * np.pi * x)
    values = later + 0.01 * np.random.default_rng(7).standard_normal(50)
    conditions = {
        "start": rp.On("t=0", "u = f"), "ends": rp.On(("x=0", "x=1"), "u = 0"), "known": rp.On(("x=0", "x=1"), "f = 0"),
        "sensors": rp.Data(np.column_stack([np.full(50, 0.02), x]), values, "u", noise=0.01),
    }  # fmt: skip
    unknown = {"f": rp.UnknownFunction(of=("x",), guess=0.0)}
    solution = rp.solve(rp.Problem("u_t = 0.1*u_xx", rp.SpaceTime(t=(0, 0.2), x=(0, 1)), conditions, unknown=unknown))
    found, truth = solution.functions["f"], np.sin(np.pi * x) + 0.5 * np.sin(2 * np.pi * x)
    assert solution.converged
    lower, upper = found.band(x[:, None])
    assert np.mean((lower < truth) & (truth < upper)) > 0.8  # 95 % on average, and neighbours go together
    assert found.std(x[:, None]).max() < 0.05


def test_predictions_go_beyond_the_data():
    exact = np.exp(-1.3 * TIMES[:, 0])
    conditions = {"start": rp.On("t=0", "u = 1"), "sensors": rp.Data(TIMES, exact, "u", noise=0.02)}
    domain = rp.Interval(0, 5, name="t")
    solution = rp.solve(rp.Problem("u_t = -k*u", domain, conditions, unknown={"k": rp.Unknown(0.5)}), tol=1e-6)
    at = np.array([[1.0], [3.0], [5.0]])
    values, lower, upper = solution.predict(at)
    np.testing.assert_allclose(values, np.exp(-1.3 * at[:, 0]), rtol=1e-4)
    half = solution.factor * solution.parameters["k"].std * at[:, 0] * values  # |∂u/∂k| = t u
    np.testing.assert_allclose(upper - values, half, rtol=0.02)
    np.testing.assert_allclose(values - lower, half, rtol=0.02)


def test_a_bound_that_keeps_the_data_away_is_named():
    unknown = {"k": rp.Unknown(0.5, bounds=(0, 1)), "A": rp.Unknown(1.0)}
    with pytest.warns(rp.ConvergenceWarning, match=r"k is held by its upper bound, .* correct the equations or bounds"):
        rp.solve(decay(3 * np.exp(-2.0 * TIMES[:, 0]), noise=0.01, **unknown), tol=1e-6)


def test_no_interval_where_nothing_is_left_to_find_the_noise():
    two = np.array([[0.3], [0.9]])
    values = 3 * np.exp(-1.3 * two[:, 0]) + np.array([0.3, -0.2])
    unknown = {"k": rp.Unknown(0.5, bounds=(0, None)), "A": rp.Unknown(1.0)}

    def identified(noise):
        conditions = {"start": rp.On("t=0", "u = A"), "sensors": rp.Data(two, values, "u", noise=noise)}
        return rp.solve(rp.Problem("u_t = -k*u", rp.Interval(0, 2, name="t"), conditions, unknown=unknown), tol=1e-4)

    with pytest.warns(rp.ConvergenceWarning, match="nothing is left to find their noise; give the noise"):
        solution = identified(None)
    assert solution.status is rp.Status.UNDETERMINED
    for name, truth in (("k", 1.3), ("A", 3.0)):
        lower, upper = solution.parameters[name].interval
        assert lower < truth < upper
    given = identified(0.3)
    assert given.converged
    assert given.parameters["k"].interval[0] <= 1.3 <= given.parameters["k"].interval[1]
