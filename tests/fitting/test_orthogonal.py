"""Orthogonal factorisations: many digits, truncation, least-norm solutions, damping."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import EPS, relative
from rannpde.errors import InputError
from rannpde.fitting import Factor, OrthogonalEquations
from rannpde.fitting.fit import fit
from rannpde.network import RandomFeatures, Uniform


def by_svd(matrix, right, cutoff=1e-14):
    """solution, rank and condition through the equations that stream."""
    equations = OrthogonalEquations(matrix.shape[1], 1)
    equations.add(matrix, right[:, None])
    result = equations.solve(cutoff=cutoff)
    return result.coefficients[:, 0], result.rank, result.condition


def by_pivots(matrix, right, cutoff=1e-14):
    """The same through the factor of one step."""
    step = Factor.of(matrix, right).solve(cutoff)
    return step.solution, step.rank, step.condition


SOLVERS = pytest.mark.parametrize("solver", [by_svd, by_pivots])


@SOLVERS
@given(rows=st.integers(1, 60), columns=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_solution_is_that_of_least_norm_in_equilibrated_columns(solver, rows, columns, seed):
    rng = np.random.default_rng(seed)
    matrix, right = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    solution, rank, condition = solver(matrix, right)
    norms = np.linalg.norm(matrix, axis=0)
    reference = np.linalg.pinv(matrix / norms) @ right / norms
    assert rank == min(rows, columns)
    # perturbation of least squares: EPS times the condition, its square for the residual's part; 20 for dimensions
    scale = 20 * EPS * condition**2 * np.linalg.norm(right) / norms.min()
    np.testing.assert_allclose(solution, reference, rtol=0, atol=scale)


@SOLVERS
def test_column_scaling_does_not_matter(solver):
    rng = np.random.default_rng(0)
    matrix, right = rng.standard_normal((50, 8)), rng.standard_normal(50)
    scales = np.logspace(-9, 9, 8)
    plain, (scaled, rank, _) = solver(matrix, right)[0], solver(matrix * scales, right)
    assert rank == 8
    np.testing.assert_allclose(scaled * scales, plain, rtol=0, atol=50 * EPS)


@SOLVERS
def test_truncation_drops_what_is_below_the_cut(solver):
    rng = np.random.default_rng(0)
    left, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    right, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    matrix = left * np.array([1, 1, 1, 1e-3, 1e-9, 1e-13]) @ right.T
    # the columns have lengths of order 1, so that equilibrating them moves no singular value by a factor of ten
    ranks = [solver(matrix, left[:, 0], c)[1] for c in (3e-2, 1e-6, 1e-11, 1e-15)]
    assert ranks == [3, 4, 5, 6]


@SOLVERS
def test_equal_columns_share_their_coefficient(solver):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((40, 8))
    solution, rank, _ = solver(np.column_stack([matrix, matrix[:, 0]]), matrix[:, 0] * 6, 1e-12)
    assert rank == 8
    assert solution[[0, 8]] == pytest.approx([3.0, 3.0], rel=20 * EPS, abs=0)


@SOLVERS
def test_a_matrix_of_zeros_has_rank_zero(solver):
    solution, rank, condition = solver(np.zeros((4, 3)), np.ones(4))
    assert rank == 0
    assert condition == np.inf
    assert not solution.any()


def test_damping_is_ridge_in_equilibrated_columns():
    rng = np.random.default_rng(0)
    matrix, right = rng.standard_normal((30, 5)) * [1, 10, 100, 1, 1], rng.standard_normal(30)
    norms = np.linalg.norm(matrix, axis=0)
    wanted = np.linalg.solve(matrix.T @ matrix + 0.01 * np.diag(norms**2), matrix.T @ right)
    # the matrix of the reference has a condition of 1e4
    assert np.allclose(Factor.of(matrix, right).damped(0.1).solution, wanted, rtol=1e4 * 10 * EPS, atol=0)


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
    assert network.about["solver"] == "orthogonal"
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
    np.testing.assert_allclose(design @ least, design[:, :1], atol=100 * EPS, rtol=0)
    assert system.solve(1e-3).coefficients.shape == (9, 1)
    with pytest.raises(InputError, match="cutoff is 2"):
        system.solve(cutoff=2.0)
