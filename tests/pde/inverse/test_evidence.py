"""Noise and priors by evidence: against the formulas of a linear Gaussian model, written out."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.inverse.evidence import Evidence, Prior, posterior
from rannpde.pde.inverse.rows import DataRows, Noise
from rannpde.pde.inverse.unknowns import FunctionBasis, Unknowns

PLACES = np.linspace(0, 1, 200)[:, None]


def source(smoothness=None):
    """An unknown function of x; what is measured is u."""
    conditions = {"ends": rp.On(("x=0", "x=1"), "u_x = 0"), "s": rp.Data(np.array([[0.5]]), [1.0], "u")}
    unknown = {"f": rp.UnknownFunction(of=("x",), guess=0.0, smoothness=smoothness, degree=12)}
    problem = rp.Problem("-u_xx + u = f", rp.Interval(0, 1), conditions, unknown=unknown)
    return Unknowns(problem, np.random.default_rng(0))


def direct(unknowns, truth, sigma, rng, count=80):
    """Rows of f measured directly at places, and noise of that size, guessed at ten times."""
    places = np.linspace(0.01, 0.99, count)[:, None]
    basis: FunctionBasis = unknowns.bases["f"]
    values = truth(places[:, 0]) + sigma * rng.standard_normal(count)
    noise = Noise((10 * sigma,), (np.ones(count),), (True,))
    table = basis.table(places, (0,)) / (10 * sigma)
    empty = np.empty((0, unknowns.count))
    return DataRows((values / (10 * sigma),), (table,), np.empty(0), empty, ("squares",), ()), noise


def test_the_noise_of_direct_measurements_is_found():
    unknowns, sigma = source(), 0.05
    found = []
    for seed in range(10):
        rows, noise = direct(unknowns, lambda x: np.sin(3 * x), sigma, np.random.default_rng(seed))
        evidence = Evidence(unknowns, PLACES)
        learned, priors, _ = evidence.learned(np.zeros(unknowns.count), rows, noise, evidence.plain())
        found.append(learned.scales[0])
        assert priors["f"].strength > 0
    # each is good to 1/√(2 · 80), their mean to 3 %; four standard deviations
    assert np.mean(found) == pytest.approx(sigma, rel=4 / np.sqrt(2 * 80 * 10))


def test_the_prior_is_that_of_the_largest_evidence():
    """log p(values | λ) of a Gaussian with covariance Φ (K + λP)⁻¹ Φᵀ + 1, on a grid of λ, by its definition."""
    unknowns = source(smoothness=2)
    rows, noise = direct(unknowns, lambda x: 1 + np.sin(6 * x), 0.1, np.random.default_rng(1))
    noise = Noise((1.0,), noise.shapes, (False,))
    rows = rows.scaled([10.0])
    evidence = Evidence(unknowns, PLACES)
    start = {"f": Prior(2, 1e-2)}
    vector = np.zeros(unknowns.count)
    _, priors, _ = evidence.learned(vector, rows, noise, start)
    bends, table = unknowns.bases["f"].bends(2), rows.slopes[0]

    def log_evidence(strength):
        size = float(np.mean((evidence.tables["f"][0] + evidence.tables["f"][1] @ vector) ** 2)) or 1.0
        precision = np.eye(unknowns.count) / (100 * size) + strength * bends.T @ bends
        covariance = table @ np.linalg.solve(precision, table.T) + np.eye(len(table))
        right = rows.residuals[0]
        return -0.5 * (np.linalg.slogdet(covariance)[1] + right @ np.linalg.solve(covariance, right))

    grid = 1e-2 * np.logspace(-2, 2, 81)
    best = grid[np.argmax([log_evidence(strength) for strength in grid])]
    # the weak bound on the function's size is no part of the fit, and the pseudo-observation moves it a little
    assert priors["f"].strength == pytest.approx(best, rel=0.5)


def test_a_stated_smoothness_stays_and_an_unstated_one_is_chosen():
    for stated, allowed in ((3, {3}), (None, {2, 3, 4})):
        unknowns = source(smoothness=stated)
        rows, noise = direct(unknowns, lambda x: np.exp(x), 0.05, np.random.default_rng(2))
        evidence = Evidence(unknowns, PLACES)
        _, priors, _ = evidence.learned(np.zeros(unknowns.count), rows, noise, evidence.plain())
        assert priors["f"].order in allowed


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_priors_are_integrals_of_squared_derivatives(order):
    """Of the function itself on [0, 1], in coordinates scaled to [-1, 1]: the mean of |f^(order) / 2^order|²."""
    basis = source().bases["f"]
    weights = np.random.default_rng(order).standard_normal(basis.count) / (1 + basis.roughness) ** 0.5
    nodes, shares = np.polynomial.legendre.leggauss(60)
    slope = basis.function(weights).derivative(0.5 * (nodes + 1)[:, None], (order,)) / 2**order
    wanted = 0.5 * shares @ slope**2
    # polynomials below the order count as having none: what is cut is SMOOTH of the roughest
    assert np.sum((basis.bends(order) @ weights) ** 2) == pytest.approx(wanted, rel=1e-3)


def test_what_nothing_determines_is_left_out_of_the_covariance():
    matrix = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    covariance, free = posterior(matrix, np.ones(3, dtype=bool))
    assert covariance[2, 2] == pytest.approx(0.25)
    assert len(free) == 1
    assert free[0] @ [1.0, 1.0, 0.0] == pytest.approx(0.0, abs=1e-12)
    held, _ = posterior(matrix, np.array([True, False, True]))
    np.testing.assert_allclose(held, np.diag([1.0, 0.0, 0.25]), atol=1e-15)
