"""Orthogonal factorisations: many digits, truncation, least-norm solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import EPS, relative
from rannpde.errors import InputError
from rannpde.fitting import OrthogonalEquations, fit, solve_orthogonal
from rannpde.network import RandomFeatures, Uniform


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_solution_is_that_of_least_norm(rows, columns, seed):
    rng = np.random.default_rng(seed)
    matrix, rhs = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    result = solve_orthogonal(matrix, rhs)
    assert result.rank == min(rows, columns)
    if rows >= columns:
        reference = np.linalg.lstsq(matrix, rhs)[0]
        scale = result.condition**2 * 100 * EPS * max(np.abs(reference).max(), 1)
        np.testing.assert_allclose(result.solution, reference, rtol=0, atol=scale)
    residual = np.linalg.norm(matrix @ result.solution - rhs)
    assert result.residual == pytest.approx(residual, rel=1e-6, abs=1e-10)


def test_column_scaling_does_not_matter():
    rng = np.random.default_rng(0)
    matrix, rhs = rng.standard_normal((50, 8)), rng.standard_normal(50)
    scales = np.logspace(-9, 9, 8)
    plain, scaled = solve_orthogonal(matrix, rhs).solution, solve_orthogonal(matrix * scales, rhs)
    assert scaled.rank == 8
    np.testing.assert_allclose(scaled.solution * scales, plain, rtol=1e-12)


def test_truncation_drops_what_is_below_the_cut():
    rng = np.random.default_rng(0)
    left, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    right, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    matrix = left * np.array([1, 1, 1, 1e-3, 1e-9, 1e-13]) @ right.T
    ranks = [solve_orthogonal(matrix, left[:, 0], cutoff=c).rank for c in (1e-1, 1e-6, 1e-11, 1e-15)]
    assert ranks == sorted(ranks)
    assert ranks[0] < 5 <= ranks[-1]


@pytest.mark.parametrize(
    "function",
    [lambda x: np.exp(np.sin(3 * x)), lambda x: 1 / (1 + 9 * x * x), lambda x: np.cos(12 * x)],
    ids=["exp-sin", "runge", "cos12"],
)
def test_eleven_digits_in_one_dimension(function):
    """The figure promised for many-digit fits: tanh features, smooth function, relative error 1e-11 or better."""
    x = np.linspace(-1, 1, 1500)
    fresh = np.random.default_rng(5).uniform(-1, 1, 800)
    features = RandomFeatures.sample(width=200, dim=1, law=Uniform(12.0), rng=0)
    network = fit(features, x, function(x), penalty=0)
    assert relative(network(fresh), function(fresh)) < 1e-11
    assert network.about["path"] == "orthogonal"
    assert network.about["rank"] <= 200
    assert network.about["training_error"] < 1e-11


def test_underdetermined_systems_need_a_remedy():
    design = np.random.default_rng(0).standard_normal((5, 9))
    system = OrthogonalEquations(9, 1)
    system.add(design, design[:, :1])
    with pytest.raises(InputError, match="5 independent rows cannot determine 9 columns"):
        system.solve()
    least = system.solve(cutoff=1e-12).coefficients
    assert least.shape == (9, 1)
    np.testing.assert_allclose(design @ least, design[:, :1], atol=1e-12)
    assert system.solve(1e-3).coefficients.shape == (9, 1)
    with pytest.raises(InputError, match="cutoff is 2"):
        system.solve(cutoff=2.0)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="rhs with shape"):
        solve_orthogonal(np.ones((3, 2)), np.ones(4))
    with pytest.raises(InputError, match="matrix has a NaN"):
        solve_orthogonal(np.array([[np.nan]]), np.ones(1))
