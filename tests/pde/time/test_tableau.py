"""Tableaux of Radau IIA: differentiation, decoupling, Legendre series, and the error estimate by their decay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rannpde.pde.time.tableau import LEAST_RATIO, lagrange_matrix, radau_tableau, stages_for, truncation_estimate


@pytest.mark.parametrize("count", [1, 3, 5, 7])
def test_stages_differentiate_their_polynomials_and_decouple(count: int) -> None:
    tableau = radau_tableau(count)
    for power in range(1, count + 1):
        derivative = tableau.derivative @ tableau.nodes**power
        assert np.allclose(derivative, power * tableau.nodes ** (power - 1), atol=1e-11)
    some_values = np.random.default_rng(0).normal(size=(count, 4))
    parts = [
        tableau.from_eigenbasis(k, tableau.shift(k) * tableau.to_eigenbasis(k, some_values))
        for k in range(tableau.distinct)
    ]
    assert np.allclose(np.sum(parts, axis=0), tableau.derivative @ some_values, atol=1e-9)
    assert tableau.distinct == (count + 1) // 2


@settings(max_examples=30, deadline=None)
@given(some.lists(some.floats(-1, 1), min_size=2, max_size=6), some.floats(0, 1), some.integers(0, 2))
def test_lagrange_polynomials_reproduce_polynomials(series: list[float], at: float, order: int) -> None:
    nodes = np.linspace(0, 1, len(series))
    wanted = np.polynomial.Polynomial(series)
    values = lagrange_matrix(nodes, np.array([at]), order) @ wanted(nodes)
    assert np.allclose(values, (wanted.deriv(order) if order else wanted)(at), atol=1e-8)


@pytest.mark.parametrize("count", [3, 5, 9])
def test_legendre_coefficients_of_a_step_are_those_of_its_polynomial(count: int) -> None:
    tableau = radau_tableau(count)
    series = np.random.default_rng(1).normal(size=count + 1)
    values = np.polynomial.legendre.legval(2 * np.append(0.0, tableau.nodes) - 1, series)
    assert np.allclose(tableau.legendre @ values, series, atol=1e-10)


@settings(max_examples=50, deadline=None)
@given(some.floats(1e-12, 1.0), some.floats(0.0, 0.9))
def test_the_truncation_estimate_continues_a_geometric_decay(last: float, ratio: float) -> None:
    """Coefficients last/ratio, last are followed by last·ratio; below the least ratio the estimate is not believed."""
    earlier = last / ratio if ratio > 0 else np.inf
    estimate = float(truncation_estimate(np.asarray(last), np.asarray(earlier)))
    assert estimate == pytest.approx(last * max(ratio, LEAST_RATIO))
    assert float(truncation_estimate(np.asarray(0.0), np.asarray(0.0))) < 1e-299


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-6, 1e-8, 1e-9, 1e-13])
def test_smaller_tolerances_take_more_stages(tol: float) -> None:
    assert stages_for(tol) % 2 == 1
    assert stages_for(tol / 10) >= stages_for(tol)
