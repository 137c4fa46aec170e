"""Noise and priors by evidence: against the formulas of a linear Gaussian model, written out."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.inverse.evidence import Evidence, Prior, posterior, prior_widths
from rannpde.pde.inverse.regularisation import ConstrainedWeights, RegularisationPath
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
        with_hyperparameters, priors, _ = evidence.with_hyperparameters(
            np.zeros(unknowns.count), rows, noise, evidence.plain()
        )
        found.append(with_hyperparameters.scales[0])
        assert priors["f"].regularisation > 0
    # each is good to 1/√(2 · 80), their mean to 3 %; four standard deviations
    assert np.mean(found) == pytest.approx(sigma, rel=4 / np.sqrt(2 * 80 * 10))


def by_definition(path, basis, table, size, rows, right, regularisation, pins=None, known=None):
    """log evidence, mean and covariance of the weights: a Gaussian, conditioned on what is known and measured.

    Polynomials below the order have the standard deviation of ten sizes.
    """
    bends = basis.seminorm(path.order)
    _, _, vectors = np.linalg.svd(bends)
    free = vectors[-basis.polynomials(path.order - 1) :]
    flat = np.sqrt(np.mean((table @ free.T) ** 2, axis=0))[:, None] * free / (10 * size)
    covariance, mean = np.linalg.inv(regularisation * bends.T @ bends + flat.T @ flat), np.zeros(basis.count)
    if pins is not None:
        gain = covariance @ pins.T @ np.linalg.inv(pins @ covariance @ pins.T)
        mean, covariance = gain @ known, covariance - gain @ pins @ covariance
    whole, left = rows @ covariance @ rows.T + np.eye(len(rows)), right - rows @ mean
    evidence = -0.5 * (np.linalg.slogdet(whole)[1] + left @ np.linalg.solve(whole, left))
    gain = covariance @ rows.T @ np.linalg.inv(whole)
    return evidence, mean + gain @ left, covariance - gain @ rows @ covariance


@pytest.mark.parametrize("pinned", [False, True])
def test_a_ladder_is_the_gaussian_posterior_at_every_strength(pinned):
    unknowns = source()
    basis: FunctionBasis = unknowns.bases["f"]
    rows, _ = direct(unknowns, lambda x: 1 + np.sin(6 * x), 0.1, np.random.default_rng(1), count=30)
    matrix, right = 10 * rows.slopes[0], 10 * rows.residuals[0]
    table, grid = basis.table(PLACES, (0,)), np.array([1e-6, 1e-4, 1e-2])
    pins = basis.table(np.linspace(0, 1, 5)[:, None], (0,)) if pinned else np.empty((0, basis.count))
    known = 1 + np.sin(6 * np.linspace(0, 1, 5)) if pinned else np.empty(0)
    shift = []
    for order in (2, 3, 4):
        path = RegularisationPath.of(
            basis,
            order,
            table,
            1.2,
            ConstrainedWeights.of(pins, known),
            slice(0, basis.count),
            matrix,
            right,
            start=1e-4,
        )
        for k, regularisation in enumerate(grid):
            given = (pins, known) if pinned else (None, None)
            wanted, mean, covariance = by_definition(path, basis, table, 1.2, matrix, right, regularisation, *given)
            shift.append(path.evidence(grid)[k] - wanted)
            found = path.covariance(grid, np.eye(3)[k])
            # weak as they are, the free polynomials are held about the smoothest function, not about nothing
            np.testing.assert_allclose(table @ path.means(grid)[k], table @ mean, atol=1e-4 if pinned else 1e-6)
            spread = np.sqrt(np.einsum("ij,jk,ik->i", table, covariance, table).clip(0))
            own = np.sqrt(np.einsum("ij,jk,ik->i", table, found, table).clip(0))
            np.testing.assert_allclose(own, spread, atol=0.01 * spread.max())  # the definition subtracts
    np.testing.assert_allclose(shift, shift[0], atol=0.05 if pinned else 1e-6)


def test_unknowns_are_averaged_over_priors():
    """Σ w (covariance + (mean - average)²), with weights from the evidence and the half-Cauchy prior of widths."""
    unknowns = source(smoothness=2)
    basis: FunctionBasis = unknowns.bases["f"]
    rows, _ = direct(unknowns, lambda x: 1 + np.sin(6 * x), 0.3, np.random.default_rng(1), count=25)
    rows, evidence = rows.scaled([10.0]), Evidence(unknowns, PLACES)
    matrix, right, vector = rows.slopes[0], rows.residuals[0], np.zeros(unknowns.count)
    priors = {"f": Prior(2, 1e-2)}
    covariance, _ = posterior(evidence.with_prior(vector, rows, priors)[1], np.ones(unknowns.count, dtype=bool))
    change, whole = evidence.marginalised(vector, rows, priors, covariance)
    table = evidence.tables["f"][1]
    nothing, part = ConstrainedWeights.of(np.empty((0, basis.count)), np.empty(0)), slice(0, basis.count)
    path = RegularisationPath.of(basis, 2, table, 1.0, nothing, part, matrix, right, start=1.0)
    every = [by_definition(path, basis, table, 1.0, matrix, right, path.unit / w**2) for w in prior_widths()]
    weights = (
        np.exp([e - max(one[0] for one in every) for e, _, _ in every]) * prior_widths() / (1 + prior_widths() ** 2)
    )
    weights /= weights.sum()
    mean = sum(w * m for w, (_, m, _) in zip(weights, every, strict=True))
    wanted = sum(w * (c + np.outer(m - mean, m - mean)) for w, (_, m, c) in zip(weights, every, strict=True))
    np.testing.assert_allclose(table @ change, table @ mean, atol=1e-5)
    np.testing.assert_allclose(
        np.einsum("ij,jk,ik->i", table, whole, table), np.einsum("ij,jk,ik->i", table, wanted, table), rtol=1e-3
    )


def test_a_stated_smoothness_stays_and_an_unstated_one_is_chosen():
    for stated, allowed in ((3, {3}), (None, {2, 3, 4})):
        unknowns = source(smoothness=stated)
        rows, noise = direct(unknowns, lambda x: np.exp(x), 0.05, np.random.default_rng(2))
        evidence = Evidence(unknowns, PLACES)
        _, priors, _ = evidence.with_hyperparameters(np.zeros(unknowns.count), rows, noise, evidence.plain())
        assert priors["f"].order in allowed


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_priors_are_integrals_of_squared_derivatives(order):
    """Of the function itself on [0, 1], in coordinates scaled to [-1, 1]: the mean of |f^(order) / 2^order|²."""
    basis = source().bases["f"]
    weights = np.random.default_rng(order).standard_normal(basis.count) / (1 + basis.roughness) ** 0.5
    nodes, shares = np.polynomial.legendre.leggauss(60)
    slope = basis.function(weights).derivative(0.5 * (nodes + 1)[:, None], (order,)) / 2**order
    wanted = 0.5 * shares @ slope**2
    assert np.sum((basis.seminorm(order) @ weights) ** 2) == pytest.approx(wanted, rel=1e-6)


def test_a_parabola_of_fourth_degree_bends_beside_the_roughest_function():
    """Of x⁴ on [-1, 1] the fourth derivative is 24; squares of those of the roughest function are 10¹⁵ times larger."""
    basis = source().bases["f"]
    nodes = np.linspace(0, 1, 200)[:, None]
    weights = np.linalg.lstsq(basis.table(nodes, (0,)), (2 * nodes[:, 0] - 1) ** 4, rcond=None)[0]
    assert np.sum((basis.seminorm(4) @ weights) ** 2) == pytest.approx(24**2, rel=1e-4)


def test_what_nothing_determines_is_left_out_of_the_covariance():
    matrix = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    covariance, free = posterior(matrix, np.ones(3, dtype=bool))
    assert covariance[2, 2] == pytest.approx(0.25)
    assert len(free) == 1
    assert free[0] @ [1.0, 1.0, 0.0] == pytest.approx(0.0, abs=1e-12)
    held, _ = posterior(matrix, np.array([True, False, True]))
    np.testing.assert_allclose(held, np.diag([1.0, 0.0, 0.25]), atol=1e-15)
