"""Values with intervals: exact laws of processes, martingale increments, references, coverage, failure, files."""

import time
import warnings

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

import rannpde as rp
from draws import draws
from helpers import inked
from path_references import (
    allen_cahn_at_origin,
    black_scholes_call,
    capped_call_on_the_largest,
    hjb_at_origin,
    riccati,
    smallest_by_euler,
    two_rates_bounds,
    two_rates_on_a_line,
)
from rannpde.checkpoints import Cause, Ended, guarded
from rannpde.pde.budget import timed_by
from rannpde.pde.monitor import Monitor
from rannpde.pde.paths.grid import NormalDraws, TimeGrid
from rannpde.pde.paths.inner import inner_coordinates
from rannpde.pde.paths.intervals import allowed_error, half_width
from rannpde.pde.paths.layer import LayerLaw
from rannpde.pde.paths.recognition import process_of
from rannpde.pde.paths.statistics import PathSample, SampleMoments

FIVE = 5.0
"""Standard errors: a test with fixed seeds would fail by chance with probability 6e-7."""


def space(dim, length=1.0):
    return rp.SpaceTime(t=(0, length), x=rp.Euclidean(dim))


def hjb(dim=100):
    return rp.Problem("u_t + laplace(u) = dot(grad(u), grad(u))", space(dim), {"t=1": "u = log((1 + norm(x)**2)/2)"})


def allen_cahn(dim=100):
    return rp.Problem("u_t + laplace(u) + u - u**3 = 0", space(dim, 0.3), {"t=0.3": "u = 1/(2 + 0.4*norm(x)**2)"})


QUICK = rp.Paths(steps=4, width=8, training=1000, paths=2048)


def quick(problem, at, rng=0, method=QUICK):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        return rp.solve(problem, at=at, tol=1e-9, method=method, rng=rng)


def contains(found, reference, slack=0.0):
    lower, upper = found.interval
    width = upper - lower
    return lower - slack * width <= reference <= upper + slack * width


# ----------------------------------------------------------------------------------------------------- references


def test_the_published_references_follow_from_their_derivations():
    assert hjb_at_origin(100) == pytest.approx(4.59016172460488, rel=1e-11)
    assert allen_cahn_at_origin(100) == pytest.approx(0.0527813574, rel=1e-7)


@pytest.mark.slow
def test_different_rates_lie_between_bounds_that_exclude_the_published_value():
    lower, upper, error = two_rates_bounds(100, 1000, rng=0)
    assert lower < upper + FIVE * error
    assert upper + FIVE * error < 21.299
    problem = rp.Problem(
        "u_t + 0.06*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 - 0.04*u - 0.02*dot(x, grad(u))"
        " + 0.02*max(dot(x, grad(u)) - u, 0) = 0",
        space(100, 0.5), {"t=0.5": "u = max(max(x) - 120, 0) - 2*max(max(x) - 150, 0)"},
    )  # fmt: skip
    found = quick(problem, 100.0, method=rp.Paths(steps=8, width=16, training=3000, paths=2048))
    assert found.interval[1] > lower - FIVE * error
    assert found.interval[0] < upper + FIVE * error
    assert found.half_width < 0.01 * found.value


def test_the_identity_behind_the_bounds_of_different_rates_holds_for_a_constant_rate():
    # always 0.04 is one policy: its value by quadrature, and from the value of always 0.06 along its paths
    start, paths = np.full((1, 100), np.log(100.0)), 1000
    low, high = (capped_call_on_the_largest(np.zeros(1), start, rate)[0][0] for rate in (0.04, 0.06))
    law = norm.ppf(np.linspace(0, 1, 200_001)[1:-1] ** (1 / 100))  # quantiles of the largest of 100 normals
    largest = 100 * np.exp(0.01 + 0.2 * np.sqrt(0.5) * law)
    payoff = np.maximum(largest - 120, 0) - 2 * np.maximum(largest - 150, 0)
    assert low == pytest.approx(np.exp(-0.02) * payoff.mean(), rel=1e-4)  # of 2e5 quantiles
    random = np.random.default_rng(0)
    time = (random.permutation(paths) + random.uniform(size=paths)) * 0.5 / paths
    moved = 0.2 * np.sqrt(time)[:, None] * random.standard_normal((paths, 100)) + ((0.04 - 0.02) * time)[:, None]
    value, slope = capped_call_on_the_largest(time, start + moved, 0.06)
    gains = 0.5 * np.exp(-0.04 * time) * 0.02 * (value - slope)
    assert abs(high + gains.mean() - low) < FIVE * gains.std() / np.sqrt(paths)


@pytest.mark.parametrize(
    ("dim", "published", "error"), [(100, 23.36, 0.014), (1000, 21.88, 0.01), (10000, 20.726, 0.01)]
)
def test_the_published_second_default_risk_agrees_with_twelve_steps_of_euler(dim, published, error):
    assert abs(smallest_by_euler(dim, 12) - published) < error
    assert smallest_by_euler(dim, 0) > published + 2 * error  # which is a lower bound of the solution


# ------------------------------------------------------------------------------------------------------ intervals


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.3, 1.0, 4.0, 7.99, 8.01, 50.0])
def test_intervals_have_their_probability_for_the_largest_bias(ratio, confidence):
    found = half_width(3.0 * ratio, 3.0, confidence) / 3.0
    assert norm.cdf(found - ratio) - norm.cdf(-found - ratio) == pytest.approx(confidence, abs=1e-9)
    smaller = 0.5 * ratio
    assert norm.cdf(found - smaller) - norm.cdf(-found - smaller) >= confidence - 1e-9
    assert half_width(ratio, allowed_error(ratio, 2.0 + 2 * ratio, confidence), confidence) == pytest.approx(
        2.0 + 2 * ratio, rel=1e-6
    )


@pytest.mark.parametrize(
    ("change", "before", "left"),
    [(1.0, 4.0, 1 / 3), (1.0, 9.0, 1 / 3), (1.0, 2.5, 2 / 3), (-1.0, 1.5, 1.0), (1.0, 0.2, 1.0)],
)
def test_the_error_in_time_follows_from_two_doublings_of_the_step(change, before, left):
    def moments(mean):
        return SampleMoments(100, np.array(mean), np.array(0.0))

    sample = PathSample(moments(1.0), moments(change), moments(before), moments(0.0), moments(0.0), 0.0, 1.0)
    assert sample.time_error(1.0) == pytest.approx(left)


def test_steps_that_are_too_long_for_the_growth_of_the_solution_show_in_the_interval():
    # e^3 in eight steps: their error is that of the whole change, not a third of it
    problem = rp.Problem("u_t + laplace(u) + u - u**3 = 0", space(30, 3.0), {"t=3.0": "u = 1/(2 + 0.4*norm(x)**2)"})
    found = rp.solve(problem, at=0.0, tol=1e-2)
    assert found.converged
    assert contains(found, allen_cahn_at_origin(30, 3.0), 0.25)


class EndsAtCheck:
    """A guard of checkpoints that ends the computation at its n-th question, once."""

    def __init__(self, number):
        self.left = number

    def check(self):
        self.left -= 1
        if self.left == 0:
            raise Ended(Cause.TIME)

    def reserve(self, size, what):
        self.check()

    def begin(self, flops, kind): ...

    def finish(self, flops, kind, seconds): ...

    def affordable(self, share, kind):
        return np.inf

    def now(self):
        return 0.0


@pytest.mark.parametrize("number", [1, 7, 20, 60, 90, 200, 10**9])
def test_wherever_a_solve_is_ended_its_value_is_kept(number):
    # the same run is ended at ever later checkpoints; two points are asked, of which the first may be all there is
    method = rp.Paths(at=np.zeros((2, 3)), steps=4, width=4, training=200, paths=4096)
    try:
        with guarded(EndsAtCheck(number)):
            found = method.solve(hjb(3), 1e-9, np.random.default_rng(0), Monitor(), "")
    except Ended:
        assert number < 30  # before the first models were there
        return
    known = np.isfinite(found.values)
    assert known[0]
    assert np.all(np.abs(found.values[known] - hjb_at_origin(3)) < 3 * found.table.half_widths[known])
    assert np.all(np.isinf(found.table.half_widths[~known]))
    assert not found.converged
    assert known.all() == (number == 10**9 or number > 60)


def test_memory_that_does_not_suffice_is_named():
    with pytest.raises(rp.InputError, match="memory is too small"):
        rp.solve(hjb(100), at=0.0, memory=1e5)


# ------------------------------------------------------------------------------------------------------ processes


@pytest.mark.parametrize(
    ("equation", "mean", "variance"),
    [
        # dX = -2(X - 1) ds + dW from 3: mean 1 + 2e^{-2s}, variance (1 - e^{-4s})/4
        ("u_t + laplace(u)/2 + dot(2 - 2*x, grad(u)) = 0", 1 + 2 * np.exp(-1), (1 - np.exp(-2)) / 4),
        ("u_t + laplace(u)/2 + dot(2 - 0*x, grad(u)) = 0", 4.0, 0.5),
        # dX = 0.3 X ds + 0.4 X dW from 3
        (
            "u_t + 0.08*trace(diag(x**2)*hessian(u)) + 0.3*dot(x, grad(u)) = 0",
            3 * np.exp(0.15), 9 * np.exp(0.3) * (np.exp(0.08) - 1),
        ),
    ],
)  # fmt: skip
def test_exact_processes_have_their_mean_and_variance(equation, mean, variance):
    process = process_of(rp.Problem(equation, space(2), {"t=1": "u = sum(x)"}).parabolic)
    assert process.exact
    state, draws = process.start(np.full((40_000, 2), 3.0)), NormalDraws(1, 40_000, 2, antithetic=False)
    for n in range(2):  # two steps have the law of one
        state = process.step(0.25 * n, 0.25, state, draws.normals(n)).state
    points = process.point(state)
    assert np.abs(points.mean(axis=0) - mean).max() < FIVE * np.sqrt(variance / 40_000)
    assert np.abs(points.var(axis=0) / variance - 1).max() < FIVE * np.sqrt(12 / 40_000)


@pytest.mark.parametrize(
    "data", ["norm(x)", "min(x)", "max(max(x) - 1, 0)", "sum(sin(x)) + x[1]", "log(exp(sum(x)) + exp(2*x[1] - x[2]))"]
)
@pytest.mark.parametrize("second", ["laplace(u)", "trace(diag(x**2)*hessian(u))", "trace(C*hessian(u))"])
def test_martingale_increments_have_mean_zero(data, second):
    covariance = 0.5 * np.eye(6) + 0.5
    form = rp.Problem(
        f"u_t + 0.1*{second} = 0", space(6), {"t=1": f"u = {data}"}, parameters={"C": covariance}
    ).parabolic
    process, rng = process_of(form), np.random.default_rng(3)
    cloud = process.step(0.0, 0.5, process.start(np.full((500, 6), 1.0)), rng.standard_normal((500, 6))).state
    inner = inner_coordinates(form, (0.4, 0.8, 1.6))
    layer = LayerLaw(12, True, 0.3).sample(form, process, inner, 0.5, cloud, cloud.std(axis=0), (0.4, 0.4), rng)
    one = np.tile(cloud[:1], (20_000, 1))
    increments = layer.at(one).increments(process.step(0.5, 0.1, one, rng.standard_normal((20_000, 6))), 0.1)[:, 1:]
    scores = increments.mean(axis=0) / (increments.std(axis=0) / np.sqrt(20_000))
    assert np.abs(scores).max() < FIVE  # of some forty columns: 2e-5 by chance


def test_time_grids_integrate_smooth_functions_to_fourth_order():
    for power in (1, 2):
        errors = []
        for steps in (8, 16, 32):
            grid = TimeGrid(2.0, steps, power)
            errors.append(abs(grid.rule(1) @ np.cos(grid.nodes) - np.sin(2.0)))
        assert np.log2(errors[0] / errors[1]) > 3.7
        assert np.log2(errors[1] / errors[2]) > 3.7


# --------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dim", [4, 100])
def test_hamilton_jacobi_bellman(dim):
    tol = 2e-2 if dim == 4 else 1e-3
    found = rp.solve(hjb(dim), at=0.0, tol=tol, rng=dim)
    assert found.converged
    assert contains(found, hjb_at_origin(dim), 1.0)
    assert found.half_width <= tol * found.value


def test_allen_cahn_and_its_scaled_and_shifted_twins():
    reference = allen_cahn_at_origin(30)
    found = rp.solve(allen_cahn(30), at=0.0, tol=3e-3)
    assert found.converged
    assert contains(found, reference, 1.0)
    # x → 5 + x/1000, t → 7 + 60 t: the same numbers in other units and at another place
    domain = rp.SpaceTime(t=(7, 25), x=rp.Euclidean(30))
    twin = rp.Problem("60*u_t + laplace(u)/1e6 + u - u**3 = 0", domain, {"t=25": "u = 1/(2 + 0.4e6*norm(x - 5)**2)"})
    moved = rp.solve(twin, at=5.0, tol=3e-3)
    assert moved.converged
    assert contains(moved, reference, 1.0)


def test_anisotropic_control_with_gradient():
    q, point = np.linspace(0.2, 1.0, 40), np.linspace(-1, 1, 40)
    problem = rp.Problem(
        "u_t + laplace(u)/2 = dot(grad(u), grad(u))/2", space(40), {"t=1": "u = dot(diag(q)*x, x)/2"},
        parameters={"q": q},
    )  # fmt: skip
    found = rp.solve(problem, at=point, tol=1e-2)
    assert found.converged
    assert contains(found, riccati(point, q, 1.0), 1.0)
    scores = (found.gradient - q * point / (1 + q)) / np.maximum(found.gradient_errors[0], 1e-12)
    assert np.sqrt(np.mean(scores**2)) < 3.0  # within the size that the standard errors and the step state


def control_problems(count, rng):
    """Linear-quadratic control u_t + (a/2)Δu = (c/2)|∇u|², u(T) = ½ Σ q x², in random dimensions, times, units of x and
    of u, at random places: the problem, where it is asked, and u = ½ Σ P x² + (a/2c) Σ log(1 + cqT), P = q/(1 + cqT).
    """
    random = np.random.default_rng(rng)
    for _ in range(count):
        dim = int(random.integers(2, 40))
        length, unit, size = (10 ** random.uniform((-2, -3, -3), (1, 3, 3))).tolist()
        a, c = unit**2 / length, unit**2 / (size * length)  # of order one in the units of x, u and time
        q, point = size / unit**2 * random.uniform(0.1, 1.5, dim), unit * random.normal(0, 1, dim)
        problem = rp.Problem(
            "u_t + a*laplace(u)/2 = c*dot(grad(u), grad(u))/2", space(dim, length),
            {f"t={length!r}": "u = dot(diag(q)*x, x)/2"}, parameters={"a": a, "c": c, "q": q},
        )  # fmt: skip
        grown = 1 + c * q * length
        yield problem, point, float(0.5 * np.sum(q / grown * point**2) + 0.5 * a / c * np.sum(np.log(grown)))


def test_control_problems_in_any_units():
    method, count = rp.Paths(steps=8, width=8, training=1500, paths=1024), draws(6, 12)
    found = [(quick(problem, at, 1, method), exact) for problem, at, exact in control_problems(count, rng=3)]
    assert sum(contains(one, exact) for one, exact in found) >= binom.ppf(1e-4, count, 0.95)
    assert all(contains(one, exact, 1.0) for one, exact in found)
    assert all(one.half_width < 0.05 * exact for one, exact in found)


def test_the_logarithm_of_a_sum_of_three_exponentials():
    # Cole–Hopf: u = log Σ exp(a_k·x + ½|a_k|²(1 - t)), neither radial nor a ridge
    vectors, point = np.random.default_rng(4).normal(0, 0.3, (3, 20)), np.linspace(-0.5, 0.5, 20)
    problem = rp.Problem(
        "u_t + laplace(u)/2 + dot(grad(u), grad(u))/2 = 0", space(20),
        {"t=1": "u = log(exp(dot(a, x)) + exp(dot(b, x)) + exp(dot(c, x)))"},
        parameters=dict(zip("abc", vectors, strict=True)),
    )  # fmt: skip
    found = rp.solve(problem, at=point, tol=6e-3)
    assert found.converged
    assert contains(found, np.log(np.exp(vectors @ point + 0.5 * np.sum(vectors**2, axis=1)).sum()), 1.0)


def test_a_call_and_its_delta_in_one_dimension():
    problem = rp.Problem(
        "u_t + 0.05*dot(x, grad(u)) + 0.02*trace(diag(x**2)*hessian(u)) = 0.05*u", space(1),
        {"t=1": "u = max(sum(x) - 100, 0)"},
    )  # fmt: skip
    found = rp.solve(problem, at=105.0, tol=2e-3)
    price = black_scholes_call(105, 100, 0.05, 0.2, 1.0)
    delta = (black_scholes_call(105.01, 100, 0.05, 0.2, 1.0) - black_scholes_call(104.99, 100, 0.05, 0.2, 1.0)) / 0.02
    assert found.converged
    assert contains(found, price, 1.0)
    assert abs(found.gradient[0] - delta) < FIVE * found.gradient_errors[0][0]


def test_different_rates_on_a_line():
    problem = rp.Problem(
        "u_t + 0.06*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 - 0.04*u - 0.02*dot(x, grad(u))"
        " + 0.02*max(dot(x, grad(u)) - u, 0) = 0",
        space(1, 0.5), {"t=0.5": "u = max(max(x) - 120, 0) - 2*max(max(x) - 150, 0)"},
    )  # fmt: skip
    found = rp.solve(problem, at=120.0, tol=1e-2)
    assert contains(found, two_rates_on_a_line(120.0), 1.0)


def test_general_processes_by_extrapolated_steps():
    # dX = -sin(X)cos(X)³... replaced by Y = atan X: X = tan(W) solves dX = X(1 + X²) ds + (1 + X²) dW before it
    # explodes; a bounded twin: X = sin(W), dX = -X/2 ds + √(1 - X²) dW, for which E[X_s] = x e^{-s/2}
    problem = rp.Problem(
        "u_t + trace(diag(1 - x**2)*hessian(u))/2 - dot(x, grad(u))/2 = 0", space(5, 0.05), {"t=0.05": "u = sum(x**3)"}
    )
    # E[sin³(w + W_s)] by sin³ = (3 sin - sin 3·)/4
    w = np.arcsin(0.3)
    exact = 5 * (3 * np.sin(w) * np.exp(-0.025) - np.sin(3 * w) * np.exp(-9 * 0.025)) / 4
    found = rp.solve(problem, at=0.3, tol=1e-2)
    assert found.converged
    assert contains(found, exact, 1.0)


def test_earlier_times_and_several_points_and_initial_data():
    problem = rp.Problem("u_t = laplace(u)", space(10), {"t=0": "u = norm(x)**2"}, exact={"u": "norm(x)**2 + 20*t"})
    rows = np.column_stack([[0.25, 0.5, 1.0], np.random.default_rng(0).normal(size=(3, 10))])
    found = rp.solve(problem, at=rows, tol=1e-3)
    assert found.converged
    assert found.errors()["u"] < 1e-3
    assert found(rows[1:2])[0] == found.values[1]
    assert "u at 3 points in R^10" in repr(found)
    with pytest.raises(rp.InputError, match="not asked"):
        found(rows[1:2] + 0.1)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ("sin(k*sum(x))", np.sqrt(0.5 * (1 - np.exp(-2)))),  # zero by symmetry
        ("norm(x)**2 - 20", np.sqrt(40)),  # zero, but not by symmetry: E|W|² = d
    ],
)
def test_a_value_of_zero_is_judged_by_the_size_of_the_solution(data, size):
    problem = rp.Problem("u_t + laplace(u)/2 = 0", space(20), {"t=1": f"u = {data}"}, parameters={"k": 20**-0.5})
    found = rp.solve(problem, at=0.0, tol=1e-2)
    assert found.converged
    assert abs(found.value) <= 3 * found.half_width + 1e-9  # zero, up to rounding where paths see it without noise
    assert found.half_width <= 1e-2 * size


def test_gradients_at_coarse_steps_have_no_bias_of_first_order():
    # u = ½ Σ q x²/(1 + q(1 - t)) + …: f at the start left out, the gradient would be 4 % too large along itself
    q, point = np.linspace(0.2, 1.0, 10), np.linspace(0.5, 1.5, 10)
    problem = rp.Problem(
        "u_t + laplace(u)/2 = dot(grad(u), grad(u))/2", space(10), {"t=1": "u = dot(diag(q)*x, x)/2"},
        parameters={"q": q},
    )  # fmt: skip
    found = quick(problem, point, method=rp.Paths(steps=8, width=8, training=2000, paths=8192))
    exact = q * point / (1 + q)
    assert abs(found.gradient @ exact / (exact @ exact) - 1) < 0.02
    assert np.all(np.abs(found.gradient - exact) < FIVE * found.gradient_errors[0])


def test_gradients_of_a_process_that_forgets():
    # dX = -2X ds + dW: E[Σ X²] has the gradient 2x e^{-4s}
    problem = rp.Problem("u_t + laplace(u)/2 - 2*dot(x, grad(u)) = 0", space(5, 0.5), {"t=0.5": "u = norm(x)**2"})
    found = quick(problem, np.full(5, 1.5))
    assert np.all(np.abs(found.gradient - 3 * np.exp(-2)) < FIVE * found.gradient_errors[0] + 1e-6)


def test_steep_gradients_do_not_make_weights_explode():
    # |∇u|² is of order d: weights exp(∫θ dW) would have a variance of e^10
    q = np.linspace(0.2, 1.0, 50)
    problem = rp.Problem(
        "u_t + laplace(u)/2 = dot(grad(u), grad(u))/2", space(50), {"t=1": "u = dot(diag(q)*x, x)/2"},
        parameters={"q": q},
    )  # fmt: skip
    found = quick(problem, 1.0, method=rp.Paths(steps=8, width=8, training=3000, paths=2048))
    assert contains(found, riccati(np.ones(50), q, 1.0), 1.0)
    assert found.half_width < 3e-3 * found.value


def test_no_point_is_no_place_to_ask():
    with pytest.raises(rp.InputError, match="one point or more"):
        rp.solve(hjb(5), at=np.zeros((0, 5)))


# ------------------------------------------------------------------------------------------------------ coverage


@pytest.mark.parametrize("case", ["hjb", "allen_cahn"])
def test_intervals_hold_the_reference_as_often_as_they_say(case):
    problem, reference = {
        "hjb": (hjb(20), hjb_at_origin(20)),
        "allen_cahn": (allen_cahn(20), allen_cahn_at_origin(20)),
    }[case]
    count = draws(12, 30)
    held = sum(contains(quick(problem, 0.0, seed), reference) for seed in range(count))
    assert held >= binom.ppf(1e-4, count, 0.95)  # fewer have probability 1e-4 for honest 95 % intervals


# ------------------------------------------------------------------------------------------------ honest failure


def test_a_spike_that_no_feature_holds_has_an_interval_that_says_so():
    centre = np.random.default_rng(8).normal(size=100)
    problem = rp.Problem(
        "u_t + laplace(u)/2 + u**2 = 0", space(100), {"t=1": "u = spike(x)"},
        functions={"spike": lambda x: 1e3 * (np.sum((x - centre) ** 2, axis=1) < 170.0)},
    )  # fmt: skip
    found = quick(problem, 0.0)
    assert not found.converged
    assert found.status is rp.Status.BLOW_UP or found.half_width > 0.05 * abs(found.value)


def test_a_linear_equation_with_a_spike_has_an_interval_that_holds_it():
    # u = P(χ² < 90): no feature holds the indicator, so that the paths alone give the value, and the interval is wide
    problem = rp.Problem(
        "u_t + laplace(u)/2 = 0", space(100), {"t=1": "u = spike(x)"},
        functions={"spike": lambda x: 1.0 * (np.sum(x**2, axis=1) < 90.0)},
    )  # fmt: skip
    with pytest.warns(rp.ConvergenceWarning, match="paths would be needed"):
        found = rp.solve(problem, at=0.0, tol=1e-6, method=rp.Paths(steps=4, width=8, training=1000, paths=2048))
    assert contains(found, chi2(100).cdf(90.0), 1.0)
    assert found.half_width > 1e-3


def test_paths_that_do_not_suffice_are_counted():
    with pytest.warns(rp.ConvergenceWarning, match="paths would be needed"):
        found = rp.solve(allen_cahn(10), at=0.0, tol=1e-7, method=rp.Paths(paths=4096))
    assert not found.converged
    assert found.estimate > 1e-7


def test_the_time_allowed_is_kept_and_something_comes_back():
    # seconds of the processor, so that a busy machine does not decide
    with timed_by(time.process_time), warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        found = rp.solve(hjb(30), at=0.0, tol=1e-9, seconds=0.6)
    assert found.status is rp.Status.BUDGET
    assert contains(found, hjb_at_origin(30), 1.0)


def test_the_same_seed_gives_the_same_value():
    assert quick(hjb(10), 0.0, 5).value == quick(hjb(10), 0.0, 5).value
    assert quick(hjb(10), 0.0, 5).value != quick(hjb(10), 0.0, 6).value


# ----------------------------------------------------------------------------------------------- optimal stopping


def test_a_put_lies_between_its_bounds():
    # American put, x = K = 100, r = 0.06, σ = 0.4, T = 0.5 with 50 dates: 9.946 (Rogers 2002)
    payoff, dates = "max(100 - x[1], 0)", tuple(f"t={k / 100}" for k in range(51))
    problem = rp.Problem(
        "u_t + 0.06*dot(x, grad(u)) + trace(diag((0.4*x)**2)*hessian(u))/2 = 0.06*u", space(1, 0.5),
        {"t=0.5": f"u = {payoff}", "exercise": rp.On(dates, f"u >= {payoff}")},
    )  # fmt: skip
    found = rp.solve(problem, at=100.0, tol=2e-2)
    lower, upper = found.bounds
    assert found.converged
    assert lower < upper + 1e-9
    assert contains(found, 9.946, 0.5)


def test_a_call_without_dividends_is_not_exercised_early():
    payoff = "max(max(x) - 100, 0)"
    dates = tuple(f"t={k / 5}" for k in range(1, 6))
    stated = {"t=1": f"u = {payoff}"}
    equation = "u_t + 0.02*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 = 0.02*u"
    stopping = rp.Problem(equation, space(5), stated | {"exercise": rp.On(dates, f"u >= {payoff}")})
    bermudan = rp.solve(stopping, at=100.0, tol=5e-3)
    european = rp.solve(rp.Problem(equation, space(5), stated), at=100.0, tol=5e-3)
    assert bermudan.converged
    assert european.converged
    assert abs(bermudan.value - european.value) < bermudan.half_width + european.half_width


def test_nonlinear_equations_with_an_obstacle_are_refused():
    problem = rp.Problem("u_t + laplace(u) + u**2 = 0", space(2), {"t=1": "u = sum(x)", "interior": "u >= sum(x)"})
    with pytest.raises(rp.InputError, match="linear in u"):
        rp.solve(problem, at=0.0)


# ------------------------------------------------------------------------------------------------ regions, files


def test_a_network_on_a_region_and_its_file(tmp_path):
    problem = rp.Problem("u_t = laplace(u)/2", space(20, 0.5), {"t=0": "u = exp(-norm(x)**2/20)"})
    box = rp.Box([(-1, 1)] * 20)
    found = rp.solve(problem, at=box, tol=2e-3)
    points = box.sample(2000, rng=9)
    exact = (1 + 1 / 20) ** (-10) * np.exp(-np.sum(points**2, axis=1) / 21)
    assert found.converged
    assert np.sqrt(np.mean((found(points) - exact) ** 2) / np.mean(exact**2)) < 2e-3
    assert np.mean(np.abs(found(points) - exact) <= found.half_width) > 0.9
    again = rp.load(found.save(tmp_path / "region.npz"))
    assert np.array_equal(again(points), found(points))
    assert "u on a region of R^20, each value within ±" in repr(again)


def test_values_go_into_a_file_a_page_and_a_picture(tmp_path):
    found = quick(hjb(10), 0.0)
    again = rp.load(found.save(tmp_path / "value.npz"))
    assert (again.value, again.interval, again.report()) == (found.value, found.interval, found.report())
    assert "interval" in found.report() or "95 %" in found.report()
    assert f"u = {found.value:.8g} ± {found.half_width:.2g} (95 %) in R^10" in repr(found)
    assert found.to_html(tmp_path / "value.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert all(inked(found.plot(tmp_path / "value.png"), tmp_path / "value.png"))
