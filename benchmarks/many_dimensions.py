"""High dimensions: values with intervals by rp.Paths, against references, and a peer written for this page.

    python benchmarks/many_dimensions.py               all rows, then coverage
    python benchmarks/many_dimensions.py hjb stopping   rows whose name contains one of these
    python benchmarks/many_dimensions.py coverage       coverage of the intervals over 200 seeds

Every row states its problem in a line or two, and is solved to its tolerance without a limit of time. Seconds are
those of all processors together (time.process_time), which a busy machine changes little, and of the clock.
The references are derived in tests/path_references.py. Peers in benchmarks/peers: random deep splitting and, where
torch is installed, deep BSDE.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from peers.deep_splitting import deep_splitting

import rannpde as rp

HJB, ALLEN_CAHN = 4.59016172460488, 0.0527813574
"""Cole–Hopf, and the radial equation; both in tests/path_references.py."""
HJB_10, ALLEN_CAHN_10 = 2.157022464824727, 0.3165127134183108
"""The same in ten dimensions, for coverage."""
DIFFERENT_RATES = 21.1675
"""Between 21.155 and 21.180, each ± 0.003 (two_rates_bounds in tests/path_references.py); 21.299 was published."""


@dataclass(frozen=True)
class Case:
    """problem, where its value is asked, the reference with what is known of its error, tolerance and seconds."""

    name: str
    problem: Callable[[], rp.Problem]
    at: Any
    reference: float
    goal: str
    tol: float


def space(dim: int, length: float) -> rp.SpaceTime:
    return rp.SpaceTime(t=(0, length), x=rp.Euclidean(dim))


def hjb(dim: int = 100) -> rp.Problem:
    return rp.Problem("u_t + laplace(u) = dot(grad(u), grad(u))", space(dim, 1), {"t=1": "u = log((1 + norm(x)**2)/2)"})


def allen_cahn(dim: int = 100) -> rp.Problem:
    return rp.Problem("u_t + laplace(u) + u - u**3 = 0", space(dim, 0.3), {"t=0.3": "u = 1/(2 + 0.4*norm(x)**2)"})


def default_risk(dim: int = 100, *, growth: float = 0.02, spread: float = 0.2, length: float = 1.0,
                 low: float = 50.0, high: float = 70.0) -> rp.Problem:  # fmt: skip
    intensity = "max(0.02, min(0.2, 0.2 - 0.18*(u - low)/(high - low)))"
    return rp.Problem(
        f"u_t + growth*dot(x, grad(u)) + trace(diag((spread*x)**2)*hessian(u))/2 = {intensity}*u/3 + 0.02*u",
        space(dim, length), {f"t={length!r}": "u = min(x)"},
        parameters={"growth": growth, "spread": spread, "low": low, "high": high},
    )  # fmt: skip


def second_default_risk(dim: int) -> rp.Problem:
    return default_risk(dim, growth=-0.01 + 0.15**2 / 2, spread=0.15, length=1 / 3, low=25.0, high=50.0)


def different_rates(dim: int = 100) -> rp.Problem:
    return rp.Problem(
        "u_t + 0.06*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 - 0.04*u - 0.02*dot(x, grad(u))"
        " + 0.02*max(dot(x, grad(u)) - u, 0) = 0",
        space(dim, 0.5), {"t=0.5": "u = max(max(x) - 120, 0) - 2*max(max(x) - 150, 0)"},
    )  # fmt: skip


def reaction_diffusion(dim: int = 100) -> rp.Problem:
    return rp.Problem(
        "u_t + laplace(u)/2 + min(1, (u - 1.6 - sin(k*sum(x))*exp((t - 1)/2))**2) = 0",
        space(dim, 1), {"t=1": "u = 1.6 + sin(k*sum(x))"}, parameters={"k": dim**-0.5},
    )  # fmt: skip


def additive(dim: int = 50) -> rp.Problem:
    """u = Σ sin(x_i) exp((t - 1)/2)/d solves the heat equation, and the added terms cancel on it."""
    return rp.Problem(
        "u_t + laplace(u)/2 + u**2 - (sum(sin(x))/d0*exp((t - 1)/2))**2 = 0", space(dim, 1),
        {"t=1": "u = sum(sin(x))/d0"}, parameters={"d0": dim}, exact={"u": "sum(sin(x))/d0*exp((t - 1)/2)"},
    )  # fmt: skip


def riccati(dim: int = 100) -> rp.Problem:
    """u = ½ Σ q_i x_i²/(1 + q_i(1 - t)) + ½ Σ log(1 + q_i(1 - t)): linear-quadratic control, anisotropic."""
    return rp.Problem(
        "u_t + laplace(u)/2 = dot(grad(u), grad(u))/2", space(dim, 1), {"t=1": "u = dot(diag(q)*x, x)/2"},
        parameters={"q": np.linspace(0.2, 1.0, dim)},
    )  # fmt: skip


def riccati_value(point: np.ndarray) -> float:
    q = np.linspace(0.2, 1.0, len(point))
    return float(0.5 * np.sum(q * point**2 / (1 + q)) + 0.5 * np.sum(np.log1p(q)))


def three_ridges(dim: int = 20) -> rp.Problem:
    """u = log Σ_k exp(a_k·x + ½|a_k|²(1 - t)), three vectors a_k: Cole–Hopf, neither radial nor a ridge."""
    a, b, c = np.random.default_rng(4).normal(0, 0.3, (3, dim))
    return rp.Problem(
        "u_t + laplace(u)/2 + dot(grad(u), grad(u))/2 = 0", space(dim, 1),
        {"t=1": "u = log(exp(dot(a, x)) + exp(dot(b, x)) + exp(dot(c, x)))"}, parameters={"a": a, "b": b, "c": c},
    )  # fmt: skip


def three_ridges_value(dim: int) -> float:
    vectors = np.random.default_rng(4).normal(0, 0.3, (3, dim))
    return float(np.log(np.sum(np.exp(0.5 * np.sum(vectors**2, axis=1)))))


def max_call(dim: int) -> rp.Problem:
    payoff = "max(max(x) - 100, 0)"
    dates = tuple(f"t={k / 10}" for k in range(1, 11))
    return rp.Problem(
        "u_t + 0.02*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 - 0.02*u = 0", space(dim, 1),
        {"t=1": f"u = {payoff}", "exercise": rp.On(dates, f"u >= {payoff}")},
    )  # fmt: skip


def largest_call(dim: int) -> float:
    """The max call: without dividends it is not exercised early, so that its value is that of the European one,
    e^{-0.02} E[max(max_i X_i - 100, 0)], by the density of the largest of d normals.
    """
    from scipy.integrate import quad
    from scipy.stats import norm

    def density(z: float) -> float:
        return float(100 * np.expm1(0.2 * z) * dim * np.exp(norm.logpdf(z) + (dim - 1) * norm.logcdf(z)))

    return float(np.exp(-0.02) * quad(density, 0, 9, points=[1, 2, 3], limit=500, epsabs=1e-11)[0])


def smallest_discounted(dim: int) -> float:
    """exp(-(0.2/3 + 0.02)/3) E[min_i X_i] of the second default risk, by the density of the smallest of d normals.

    As Q ≤ 0.2 it is a lower bound of u, and in d ≥ 1000, where u stays below 25 so that Q = 0.2, it is u itself.
    The values published for this case (23.36, 21.88, 20.726) lie below it: they agree with twelve steps of Euler's.
    """
    from scipy.integrate import quad
    from scipy.stats import norm

    def density(z: float) -> float:
        return float(dim * np.exp(0.15 * np.sqrt(1 / 3) * z + norm.logpdf(z) + (dim - 1) * norm.logsf(z)))

    mean = quad(density, -9, 0, points=[-4, -3, -2], limit=500, epsabs=1e-12)[0]
    return float(30 * np.exp(-0.01 / 3) * mean * np.exp(-(0.2 / 3 + 0.02) / 3))


START = np.random.default_rng(5).uniform(0, 2, 50)
ADDITIVE = float(np.sum(np.sin(START)) / 50 * np.exp(-0.5))
CASES = (
    Case("hjb 5 s", hjb, 0.0, HJB, "1e-4 in 5 s", 1e-4),
    Case("hjb 60 s", hjb, 0.0, HJB, "1e-5 in 60 s", 1e-5),
    Case("allen-cahn 5 s", allen_cahn, 0.0, ALLEN_CAHN, "3e-4 in 5 s", 3e-4),
    Case("allen-cahn 60 s", allen_cahn, 0.0, ALLEN_CAHN, "1e-4 in 60 s", 1e-4),
    Case("default risk", default_risk, 100.0, 57.300, "57.300 ± 0.02 in 5 s", 3.5e-4),
    Case("different rates", different_rates, 100.0, DIFFERENT_RATES, "± 0.02 in 10 s", 9.4e-4),
    Case("reaction-diffusion", reaction_diffusion, 0.0, 1.6, "1e-3 in 10 s", 1e-3),
    Case(
        "second default risk 100",
        lambda: second_default_risk(100),
        30.0,
        smallest_discounted(100),
        "23.36 ± 0.014 in 3 s",
        4e-4,
    ),
    Case(
        "second default risk 1000",
        lambda: second_default_risk(1000),
        30.0,
        smallest_discounted(1000),
        "21.88 in 10 s",
        5e-4,
    ),
    Case(
        "second default risk 10000",
        lambda: second_default_risk(10000),
        30.0,
        smallest_discounted(10000),
        "± 0.010 in 60 s",
        5e-4,
    ),
    Case("additive, d = 50", additive, START, ADDITIVE, "1e-3", 1e-3),
    Case("riccati, d = 100", riccati, 0.5, riccati_value(np.full(100, 0.5)), "1e-3", 1e-3),
    Case("three ridges, d = 20", three_ridges, 0.0, three_ridges_value(20), "1e-3", 1e-3),
    Case(
        "stopping, max call d = 5", lambda: max_call(5), 100.0, largest_call(5), "lower ≥ 26.8, gap 0.5 %, 10 s", 2e-3
    ),
    Case(
        "stopping, max call d = 50",
        lambda: max_call(50),
        100.0,
        largest_call(50),
        "lower ≥ 55.1, gap 0.5 %, 10 s",
        2e-3,
    ),
    Case(
        "stopping, max call d = 100",
        lambda: max_call(100),
        100.0,
        largest_call(100),
        "lower ≥ 62.8, gap 0.5 %, 10 s",
        2e-3,
    ),
)


def run(case: Case) -> None:
    problem = case.problem()
    processor, clock = time.process_time(), time.perf_counter()
    found = rp.solve(problem, at=case.at, tol=case.tol)
    processor, clock = time.process_time() - processor, time.perf_counter() - clock
    extra = ""
    if problem.parabolic is not None and problem.parabolic.obstacle is not None:
        lower, upper = found.bounds
        extra = f", bounds {lower:.3f} {upper:.3f}, gap {100 * (upper / lower - 1):.2f} %"
    error = abs(found.value / case.reference - 1)
    verdict = "converged" if found.converged else "not converged"
    print(
        f"{case.name:<27}{found.value:.7g} ± {found.half_width:.1e} ({verdict}; reference {case.reference:.9g}, "
        f"{error:.1e}; goal {case.goal}) {processor:.1f} s of processors, clock {clock:.1f} s{extra}", flush=True,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ regions


def heat_region(dim: int = 50) -> None:
    """The heat equation as a network on a box, on fresh points."""
    heat = rp.Problem("u_t = laplace(u)/2", space(dim, 0.5), {"t=0": "u = exp(-norm(x)**2/50)"})
    box = rp.Box([(-1, 1)] * dim)
    _region("heat on a box, d = 50", heat, box, lambda x: 1.02 ** (-dim / 2) * np.exp(-np.sum(x**2, axis=1) / 51))


def basket_region(dim: int = 50) -> None:
    """A call on the geometric mean of 50 assets as a network on a box, on fresh points."""
    basket = rp.Problem(
        "u_t + 0.03*dot(x, grad(u)) + trace(diag((0.3*x)**2)*hessian(u))/2 = 0.03*u", space(dim, 1),
        {"t=1": "u = max(exp(sum(log(x))/50) - 95, 0)"},
    )  # fmt: skip
    _region("geometric basket, d = 50", basket, rp.Box([(90, 110)] * dim), geometric_basket)


def geometric_basket(x: np.ndarray) -> np.ndarray:
    """The mean of logarithms is Gaussian: Black and Scholes's formula of one asset."""
    from scipy.stats import norm

    dim, rate, spread, strike = x.shape[1], 0.03, 0.3, 95.0
    deviation = spread / np.sqrt(dim)
    mean = np.log(x).mean(axis=1) + rate - spread**2 / 2
    forward = np.exp(mean + deviation**2 / 2)
    first = (np.log(forward / strike) + deviation**2 / 2) / deviation
    return np.exp(-rate) * (forward * norm.cdf(first) - strike * norm.cdf(first - deviation))


def _region(name: str, problem: rp.Problem, box: rp.Box, exact: Callable[[np.ndarray], np.ndarray]) -> None:
    processor, clock = time.process_time(), time.perf_counter()
    found = rp.solve(problem, at=box, tol=1e-3)
    processor, clock = time.process_time() - processor, time.perf_counter() - clock
    points = box.sample(5000, rng=99)
    difference, size = found(points) - exact(points), exact(points)
    error = np.sqrt(np.mean(difference**2) / np.mean(size**2))
    inside = np.mean(np.abs(difference) <= found.half_width)
    verdict = "converged" if found.converged else "not converged"
    print(
        f"{name:<27}relative error {error:.1e}, estimate {found.estimate:.1e} ({verdict}; goal 1e-3), "
        f"{100 * inside:.0f} % of fresh values inside their intervals; {processor:.1f} s of processors, "
        f"clock {clock:.1f} s",
        flush=True,
    )


# ----------------------------------------------------------------------------------------------------- coverage


def coverage(seeds: int = 200) -> None:
    """How many of the 95 % intervals hold the reference, at fixed settings, over independent seeds; and the mean error
    over its standard deviation, which tells a bias from noise.
    """
    method = rp.Paths(steps=4, width=6, training=800, paths=1024)
    cases = {
        "hjb, d = 10": (hjb(10), 0.0, HJB_10),
        "allen-cahn, d = 10": (allen_cahn(10), 0.0, ALLEN_CAHN_10),
        "reaction-diffusion, d = 10": (reaction_diffusion(10), 0.0, 1.6),
    }
    for name, (problem, at, reference) in cases.items():
        processor, held, errors = time.process_time(), 0, []
        for seed in range(seeds):
            found = rp.solve(problem, at=at, tol=1e-9, method=method, rng=seed)
            held += found.interval[0] <= reference <= found.interval[1]
            errors.append((found.value - reference) / found.standard_error)
        spent = time.process_time() - processor
        print(
            f"coverage, {name:<27}{held} of {seeds}: {100 * held / seeds:.1f} %; errors over standard errors: mean "
            f"{np.mean(errors):.2f}, deviation {np.std(errors):.2f} ({spent:.0f} s of processors)",
            flush=True,
        )


# --------------------------------------------------------------------------------------------------------- peers

PEER_SECONDS = 200
"""Of processors, for every problem of the deep BSDE method, which has its result of the paper's iterations before."""


def peers() -> None:
    def square(x: np.ndarray) -> np.ndarray:
        return np.sum(x**2, axis=1)

    deep_splitting(lambda x: np.log((1 + square(x)) / 2), lambda u, z: -(z**2), 1.0, HJB, "hjb")
    deep_splitting(lambda x: 1 / (2 + 0.4 * square(x)), lambda u, z: u - u**3, 0.3, ALLEN_CAHN, "allen-cahn")
    if importlib.util.find_spec("torch") is None:
        print("peer, deep BSDE: torch is not installed")
        return
    program = Path(__file__).parent / "peers" / "deep_bsde.py"
    for name in ("hjb", "allen-cahn", "different rates"):
        print(f"peer, deep BSDE, {name}", flush=True)
        subprocess.run([sys.executable, str(program), name, "0", str(PEER_SECONDS)], check=False)


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore", rp.ConvergenceWarning)
    for case in CASES:
        if not words or any(word in case.name for word in words):
            run(case)
    for name, action in {
        "heat region": heat_region,
        "basket region": basket_region,
        "peer": peers,
        "coverage": coverage,
    }.items():
        if not words or any(word in name for word in words):
            action()


if __name__ == "__main__":
    main(sys.argv[1:])
