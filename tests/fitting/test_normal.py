"""Normal equations: identities of ridge regression, merging, the penalty path and cross-validation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from helpers import EPS
from rannpde.errors import InputError
from rannpde.fitting import NormalEquations, NotPositiveDefinite, OrthogonalEquations

KINDS = [NormalEquations, OrthogonalEquations]


def data(rows=80, columns=7, outputs=2, seed=0, constant=False):
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((rows, columns))
    if constant:
        design[:, -1] = 1.0
    return design, rng.standard_normal((rows, outputs)) + 3.0


def equations(kind, design, values, weights=None, constant=False, cuts=()):
    system = kind(design.shape[1], values.shape[1], constant)
    for rows in np.split(np.arange(len(design)), cuts):
        system.add(design[rows].copy(), values[rows], None if weights is None else weights[rows])
    return system


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 10.0])
def test_matches_scikit_learn(kind, penalty):
    design, values = data()
    coefficients = equations(kind, design, values).solve(penalty).coefficients
    reference = Ridge(alpha=penalty * len(design), fit_intercept=False).fit(design, values).coef_.T
    np.testing.assert_allclose(coefficients, reference, rtol=500 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_column_has_no_penalty(kind):
    design, values = data(constant=True)
    coefficients = equations(kind, design, values, constant=True).solve(0.5).coefficients
    reference = Ridge(alpha=0.5 * len(design)).fit(design[:, :-1], values)
    np.testing.assert_allclose(coefficients[:-1], reference.coef_.T, rtol=500 * EPS)
    np.testing.assert_allclose(coefficients[-1], reference.intercept_, rtol=100 * EPS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [False, True])
@given(cuts=st.lists(st.integers(0, 80), max_size=6).map(sorted), penalty=st.floats(1e-8, 1e3))
@settings(max_examples=25)
def test_blocks_do_not_matter(kind, constant, cuts, penalty):
    design, values = data(constant=constant)
    whole = equations(kind, design, values, constant=constant).solve(penalty)
    parts = equations(kind, design, values, constant=constant, cuts=cuts).solve(penalty)
    np.testing.assert_allclose(parts.coefficients, whole.coefficients, rtol=500 * EPS, atol=100 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_merge_is_associative_and_commutative(kind):
    design, values = data(rows=90)
    a, b, c = (equations(kind, design[i::3], values[i::3]) for i in range(3))
    left, right, swapped = a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(b).merge(a)
    whole = equations(kind, design, values).solve(1e-3).coefficients
    for system in (left, right, swapped):
        assert system.count == 90
        np.testing.assert_allclose(system.solve(1e-3).coefficients, whole, rtol=500 * EPS)
    # merging does not touch its parts
    np.testing.assert_allclose(
        a.solve(1e-3).coefficients, equations(kind, design[::3], values[::3]).solve(1e-3).coefficients, rtol=100 * EPS
    )


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(kind):
    """An integer weight is a repeated row, a weight of zero a missing one."""
    design, values = data()
    weights = np.random.default_rng(3).integers(0, 4, len(design)).astype(float)
    repeated = np.repeat(np.arange(len(design)), weights.astype(int))
    weighted = equations(kind, design, values, weights).solve(0.1)
    explicit = equations(kind, design[repeated], values[repeated]).solve(0.1)
    np.testing.assert_allclose(weighted.coefficients, explicit.coefficients, rtol=100 * EPS, atol=10 * EPS)
    assert weighted.training_error == pytest.approx(explicit.training_error, rel=100 * EPS, abs=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [False, True])
def test_training_error_is_the_residual(kind, constant):
    design, values = data(constant=constant)
    for penalty in (1e-6, 1.0):
        for result in (
            equations(kind, design, values, constant=constant).solve(penalty),
            equations(kind, design, values, constant=constant).path().solve(penalty),
        ):
            error = np.linalg.norm(design @ result.coefficients - values) / np.linalg.norm(values)
            assert result.training_error == pytest.approx(error, rel=100 * EPS, abs=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [False, True])
def test_path_is_every_single_solution(kind, constant):
    design, values = data(constant=constant)
    system = equations(kind, design, values, constant=constant)
    for fit in system.path().solve_all([1e-6, 1e-3, 1.0, 100.0]):
        single = system.solve(fit.penalty).coefficients
        np.testing.assert_allclose(fit.coefficients, single, rtol=100 * EPS, atol=20 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_gcv_is_leave_one_out_of_the_rotated_problem(kind):
    """GCV from the definition: (1/M)|(I - H) y|² / (1 - tr H / M)² with the hat matrix H formed explicitly."""
    design, values = data(constant=True)
    values = values + design[:, :2]
    path = equations(kind, design, values, constant=True).path()
    rows = len(design)
    for penalty in (1e-3, 0.1, 2.0):
        ridge = np.diag([penalty * rows] * 6 + [0.0])
        hat = design @ np.linalg.solve(design.T @ design + ridge, design.T)
        score = np.square(values - hat @ values).sum() / rows / (1 - np.trace(hat) / rows) ** 2
        assert path.gcv(np.array([penalty]))[0] == pytest.approx(score, rel=500 * EPS, abs=0)
    best = path.best()
    nearby = path.gcv(best.penalty * np.array([0.5, 1.0, 2.0]))
    assert nearby[1] == nearby.min()


@pytest.mark.parametrize("kind", KINDS)
def test_gcv_finds_the_noise(kind):
    """Noise in 40 columns: over 20 draws the chosen ridge beats both ends of the path out of sample, on average."""
    rng = np.random.default_rng(0)
    risk = np.zeros(3)
    for _ in range(20):
        design, truth = rng.standard_normal((60, 40)), rng.standard_normal(40) / 6
        path = equations(kind, design, (design @ truth + rng.standard_normal(60))[:, None]).path()
        fits = path.best(), path.solve(1e-10), path.solve(1e4)
        risk += [np.square(fit.coefficients[:, 0] - truth).sum() for fit in fits]
    assert risk[0] < 0.9 * risk[1:].min()


def test_sums_can_go_on_after_a_solution():
    design, values = data()
    system = equations(NormalEquations, design[:50], values[:50])
    before = system.gram
    system.solve(1e-2)
    np.testing.assert_array_equal(system.gram, before)
    system.add(design[50:].copy(), values[50:])
    whole = equations(NormalEquations, design, values)
    np.testing.assert_allclose(system.solve(1e-2).coefficients, whole.solve(1e-2).coefficients, rtol=100 * EPS)


def test_large_systems_mirror_in_blocks():
    # more columns than one block of the triangle copy
    design, values = data(rows=1500, columns=1100, outputs=1)
    system = equations(NormalEquations, design, values)
    # a unit in the last place of 1500 is 1e3 EPS
    np.testing.assert_allclose(system.gram, design.T @ design, atol=1e4 * EPS, rtol=0)
    result = system.solve(0.1)
    normal = design.T @ design + 0.1 * 1500 * np.eye(1100)
    # sums of 1100 terms up to 30, on both sides
    np.testing.assert_allclose(normal @ result.coefficients, design.T @ values, atol=3e4 * EPS, rtol=0)
    # the estimate of LAPACK is a lower bound of the true condition in the 1-norm, rarely below a third of it
    true = np.linalg.cond(normal, 1)
    assert true / 4 < result.condition <= true * (1 + 1e-8)


def test_singular_systems_are_refused_with_a_remedy():
    design, values = data()
    design[:, 1] = design[:, 0]
    with pytest.raises(NotPositiveDefinite, match="larger penalty, or method='orthogonal'"):
        equations(NormalEquations, design, values).solve(0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_named(kind):
    design, values = data()
    system = equations(kind, design, values)
    for bad in (-1.0, np.nan, np.inf, "much", True, None):
        with pytest.raises(InputError, match="penalty is"):
            system.solve(bad)
    with pytest.raises(InputError, match="same columns and outputs"):
        system.merge(kind(3, 2))
    with pytest.raises(InputError, match="points is empty"):
        kind(3, 1).solve(1.0)
    with pytest.raises(InputError, match="points is empty"):
        kind(3, 1).path()
