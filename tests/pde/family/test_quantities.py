"""Uncertainty propagation, design and identification through a family."""

import numpy as np
import pytest
from scipy import stats

import rannpde as rp
from draws import draws, some
from rannpde.pde.family.adaptive import Sample, interpolate_adaptively
from rannpde.pde.family.optimum import optimise
from rannpde.pde.family.polynomial import ParameterPolynomial
from rannpde.pde.family.posterior import sample_posterior
from rannpde.pde.family.propagation import propagate
from rannpde.pde.family.quadrature import law_rule
from rannpde.pde.family.sampler import sample_density
from rannpde.pde.family.settings import FamilySettings
from rannpde.pde.monitor import Monitor


def interpolated(function, ranges, tol=1e-9):
    """A function of parameters, as a polynomial."""

    def evaluate(nodes):
        values = [[one.value(y) for one, y in zip(ranges.values(), node, strict=True)] for node in nodes]
        return [Sample(np.reshape(function(*row), (-1, 1))) for row in values]

    found = interpolate_adaptively(
        evaluate, len(ranges), tol, FamilySettings(), np.random.default_rng(0), Monitor()
    ).interpolant
    values = found.values[:, :, 0]
    return ParameterPolynomial(ranges, found.grid, values[:, 0] if values.shape[1] == 1 else values, tol)


@pytest.fixture(scope="module")
def ishigami():
    ranges = {f"x{k}": rp.Range(-np.pi, np.pi) for k in (1, 2, 3)}
    return interpolated(lambda a, b, c: np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a), ranges, 1e-8)


def test_ishigami(ishigami):
    """Mean, variance and all Sobol indices are known (Ishigami and Homma 1990)."""
    found = propagate(ishigami, dict.fromkeys(ishigami.ranges, stats.uniform(-np.pi, 2 * np.pi)))
    a, b = 7.0, 0.1
    first = 0.5 * (1 + b * np.pi**4 / 5) ** 2
    second, mixed = a**2 / 8, b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = first + second + mixed
    assert found.mean == pytest.approx(a / 2, abs=1e-6)
    assert found.std**2 == pytest.approx(variance, rel=1e-6)
    assert found.first["x1"] == pytest.approx(first / variance, abs=1e-6)
    assert found.first["x2"] == pytest.approx(second / variance, abs=1e-6)
    assert found.first["x3"] == pytest.approx(0, abs=1e-6)
    assert found.total["x1"] == pytest.approx((first + mixed) / variance, abs=1e-6)
    assert found.total["x3"] == pytest.approx(mixed / variance, abs=1e-6)


def test_quantiles_and_moments_against_monte_carlo(ishigami):
    laws = {"x1": stats.uniform(-1, 2), "x2": stats.truncnorm(-2, 2, loc=0.5, scale=0.7), "x3": stats.beta(2, 5)}
    found = propagate(ishigami, laws)
    rng = np.random.default_rng(0)
    a, b, c = (law.rvs(size=400_000, random_state=rng) for law in laws.values())
    drawn = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)
    error = drawn.std() / len(drawn) ** 0.5
    assert abs(found.mean - drawn.mean()) < 5 * error  # a false alarm has probability 6e-7
    assert found.std == pytest.approx(drawn.std(), rel=0.01)
    assert np.allclose(found.quantiles((0.05, 0.5, 0.95)), np.quantile(drawn, (0.05, 0.5, 0.95)), atol=0.02)
    assert found.sample(1000).shape == (1000,)


@pytest.mark.parametrize(
    "law",
    [
        stats.uniform(1, 2), stats.triang(0.2, 1, 2), stats.beta(0.5, 0.5, 1, 2), stats.beta(3, 8, 1, 2),
        stats.truncnorm(-3, 3, 2, 0.3), stats.truncexpon(5, 1, 0.4), stats.loguniform(1, 3),
    ],
    ids=["uniform", "triangular", "arcsine", "beta", "normal", "exponential", "log-uniform"],
)  # fmt: skip
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_moments_of_laws(law, scale):
    one = rp.Range(0.9, 3.1, scale)
    nodes, weights = law_rule(law, one)
    values = one.value(nodes)
    assert weights.sum() == pytest.approx(1, abs=1e-13)
    assert weights @ values == pytest.approx(float(law.mean()), rel=1e-7)
    assert weights @ (values - law.mean()) ** 2 == pytest.approx(float(law.var()), rel=1e-6)


def test_fields_and_fixed_parameters():
    x = np.linspace(0, 1, 5)
    polynomial = interpolated(lambda a, b: a * x + b * x**2, {"a": rp.Range(0, 1), "b": rp.Range(0, 2)})
    found = propagate(polynomial, {"a": stats.uniform(0, 1), "b": 1.5})
    assert np.allclose(found.mean, 0.5 * x + 1.5 * x**2)
    assert np.allclose(found.std, x / 12**0.5, atol=1e-7)
    assert set(found.first) == {"a"}
    lower, upper = found.band(0.9)
    assert np.allclose(upper - lower, 0.9 * x, atol=2e-3)


def test_laws_that_do_not_fit(ishigami):
    inside = stats.uniform(-1, 2)
    for laws, match in (
        ({"x1": inside, "x2": inside}, "x3"),
        ({"x1": stats.norm(0, 3), "x2": inside, "x3": inside}, "outside the range"),
        ({"x1": stats.poisson(2), "x2": inside, "x3": inside}, "continuous"),
        ({"x1": 9.0, "x2": inside, "x3": inside}, "from"),
        ({"y": inside}, "unknown"),
    ):
        with pytest.raises(rp.InputError, match=match):
            propagate(ishigami, laws)


@pytest.mark.parametrize("seed", range(draws(2, 4)))
def test_minimum_of_a_shifted_bowl(seed):
    rng = np.random.default_rng(seed)
    centre = rng.uniform((0.2, 3), (0.9, 30))
    ranges = {"a": rp.Range(0, 1), "b": rp.Range(1, 100, "log")}
    polynomial = interpolated(lambda a, b: 2 + (a - centre[0]) ** 2 + np.log(b / centre[1]) ** 2, ranges)
    found = optimise(polynomial, {}, {}, False)
    assert found.value == pytest.approx(2, abs=1e-8)
    assert found.values["a"] == pytest.approx(centre[0], abs=1e-4)
    assert found.values["b"] == pytest.approx(centre[1], rel=1e-4)
    assert max(map(abs, found.gradient.values())) < 1e-4
    held = optimise(polynomial, {"a": (0.0, 0.1)}, {"b": 50.0}, False)
    assert held.values == pytest.approx({"a": 0.1, "b": 50.0})
    assert held.at_bound == ("a",)
    assert optimise(polynomial, {}, {}, True).value > found.value


def test_wrong_bounds():
    polynomial = interpolated(lambda a: a**2, {"a": rp.Range(0, 1)})
    for bounds in ({"a": (0.5, 2)}, {"a": (0.5, 0.2)}, {"a": 3}, {"q": (0, 1)}):
        with pytest.raises(rp.InputError):
            optimise(polynomial, bounds, {}, False)


def test_the_sampler_on_a_sheared_normal_law():
    """Affine invariance: a condition number of 1e6 costs nothing."""
    shear = np.array([[1.0, 0.0], [0.999, 1e-3]])
    inverse = np.linalg.inv(shear)

    def log_density(points):
        return -0.5 * np.sum(np.square(points @ inverse.T), axis=1)

    rng = np.random.default_rng(0)
    chain = sample_density(log_density, rng.normal(size=(32, 2)) * 0.1, 3000, 500, rng)
    flat = chain.samples.reshape(-1, 2)
    spread = flat.std(axis=0) / np.array([1.0, (0.999**2 + 1e-6) ** 0.5])
    assert np.all(np.abs(spread - 1) < 5 / chain.effective**0.5)
    assert np.all(np.abs(flat.mean(axis=0)) < 5 / chain.effective**0.5)
    assert 0.2 < chain.acceptance < 0.9


@pytest.mark.parametrize("law", some([stats.norm(0, 0.02), stats.laplace(0, 0.02), 0.02, stats.t(3, 0, 0.02)], 2))
def test_the_posterior_of_a_linear_model(law):
    """Of Gaussian noise the posterior is known; heavy tails must not spoil the others."""
    x = np.linspace(0, 1, 60)
    polynomial = interpolated(lambda a, b: a * x + b * x**2, {"a": rp.Range(0, 2), "b": rp.Range(-1, 3)})
    rng = np.random.default_rng(4)
    noise = stats.norm(0, 0.02) if isinstance(law, float) else law
    measured = 0.7 * x + 1.1 * x**2 + noise.rvs(size=60, random_state=rng)
    found = sample_posterior(polynomial, measured, law, {}, 4000, 1)
    assert found.converged
    for name, exact in (("a", 0.7), ("b", 1.1)):
        assert abs(found.mean[name] - exact) < 5 * found.std[name]
    if law == 0.02 or law.dist.name == "norm":
        design = np.stack([x, x**2], axis=1)
        covariance = 0.02**2 * np.linalg.inv(design.T @ design)
        best = np.linalg.lstsq(design, measured, rcond=None)[0]
        spread = np.sqrt(np.diag(covariance))
        assert np.allclose(list(found.mean.values()), best, atol=0.3 * spread.min())
        assert np.allclose(list(found.std.values()), spread, rtol=0.15)
    lower, upper = found.interval("a")
    assert lower < found.mean["a"] < upper


def test_a_prior_moves_the_posterior():
    polynomial = interpolated(lambda a: a, {"a": rp.Range(0, 2)})
    found = sample_posterior(polynomial, [1.0], 0.1, {"a": stats.norm(1.5, 0.1)}, 4000, 0)
    assert found.mean["a"] == pytest.approx(1.25, abs=0.02)
    assert found.std["a"] == pytest.approx(0.1 / 2**0.5, rel=0.15)


def test_quantities_of_a_family():
    problem = rp.Problem(
        "-u_xx = a", rp.Interval(0, 1), {"x=0": "u = 0", "x=1": "u = b"},
        parameters={"a": rp.Range(1, 4), "b": rp.Range(0, 1)},
    )  # fmt: skip
    family = rp.solve(problem, tol=1e-7)
    middle = np.array([[0.5]])
    height = family.output(lambda solution: float(solution(middle)[0]))
    assert height(a=2.0, b=0.5) == pytest.approx(0.5, abs=1e-7)  # a/8 + b/2
    assert height.gradient(a=2.0, b=0.5) == pytest.approx({"a": 1 / 8, "b": 1 / 2}, abs=1e-5)
    laws = {"a": stats.uniform(1, 3), "b": stats.uniform(0, 1)}
    spread = family.propagate(laws, height)
    assert spread.std**2 == pytest.approx(9 / 12 / 64 + 1 / 48, rel=1e-5)
    band = family.propagate(laws, points=np.linspace(0, 1, 9)[:, None])
    assert band.mean.shape == (9,)
    assert family.minimise(height).values == pytest.approx({"a": 1.0, "b": 0.0})
    points = np.linspace(0.1, 0.9, 9)[:, None]
    measured = family(points, a=2.5, b=0.3) + np.random.default_rng(0).laplace(0, 1e-3, 9)
    found = family.posterior(measured, stats.laplace(0, 1e-3), points=points)
    assert abs(found.mean["a"] - 2.5) < 5 * found.std["a"]
    with pytest.raises(rp.InputError, match="either"):
        family.propagate(laws)
    with pytest.raises(rp.InputError, match="output"):
        family.output("drag")


@pytest.mark.slow
def test_outputs_of_the_problem(tmp_path):
    problem = rp.Problem(
        "-u_xx = a", rp.Interval(0, 1), {"boundary": "u = 0"}, parameters={"a": rp.Range(1, 4)},
        outputs={"heat": rp.Output("u")},
    )  # fmt: skip
    family = rp.solve(problem, tol=1e-6)
    silent = rp.load(family.save(tmp_path / "silent.npz"))
    assert silent.outputs["heat"](a=3.0) == pytest.approx(3 / 12, abs=1e-6)
    heat = family.outputs["heat"]
    assert heat(a=2.5) == pytest.approx(2.5 / 12, abs=1e-6)
    assert abs(heat(a=2.5) - 2.5 / 12) <= heat.error
    assert family.minimise("heat").value == pytest.approx(1 / 12, abs=1e-6)
    told = rp.load(family.save(tmp_path / "told.npz"))
    assert told.outputs["heat"](a=3.0) == pytest.approx(heat(a=3.0), rel=1e-12)
    with pytest.raises(rp.InputError, match="ranges"):
        rp.solve(problem, tol={"heat": 1e-3})
