"""Laws learned from a solution: what they find in exact functions, and in problems of many dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import legendre

from rannpde.domains import Ball, Box, SpaceTime
from rannpde.loading import load
from rannpde.network.polynomial import PolynomialFeatures, exponents_up_to, monomials
from rannpde.network.product import ProductFeatures
from rannpde.pde.collocation.feature_learning import (
    FeatureLearner,
    LearnedLaw,
    active_subspace,
    aligned,
    line_functions,
)
from rannpde.pde.collocation.method import Collocation
from rannpde.pde.collocation.subdomains import Subdomain, SubdomainNetwork, unpack_subdomains
from rannpde.pde.collocation.tuning import LearningTuning
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solve import solve

EPS = np.finfo(float).eps
SUM, SQUARES = "(x1 + x2 + x3 + x4)", "(x1**2 + x2**2 + x3**2 + x4**2)"


def poisson(exact, load, dim=4):
    sides = {"sides": On("boundary", f"u = {exact}")}
    return Problem(f"-laplace(u) = {load}", Box([(0, 1)] * dim), sides, exact={"u": exact})


RIDGE = poisson(f"sin{SUM}", f"4*sin{SUM}")
GAUSSIAN = poisson(f"exp(-{SQUARES})", f"(8 - 4*{SQUARES})*exp(-{SQUARES})")


# ----------------------------------------------------------------------------------------- what the laws find


def test_the_subspace_of_a_ridge_is_its_direction():
    rng = np.random.default_rng(0)
    direction = np.array([1.0, -2.0, 0.5, 3.0]) / np.linalg.norm([1.0, -2.0, 0.5, 3.0])
    basis = active_subspace(np.cos(rng.uniform(0, 3, 200))[:, None] * direction)
    weights = basis @ rng.standard_normal((4, 50))
    across = weights - np.outer(direction, direction @ weights)
    assert np.abs(across).max() < 100 * EPS
    assert np.linalg.norm(basis, 2) == pytest.approx(1.0)


def test_neurons_align_with_the_levels_of_a_quadratic():
    """All quadratics drawn for exp(q) are multiples of q: the misalignment of squares is λ ~ eps, its root 1e-8."""
    rng = np.random.default_rng(0)
    points, exponents = rng.uniform(-1, 1, (500, 4)), exponents_up_to(4, 2)
    truth = rng.standard_normal(len(exponents))
    inner = np.stack([monomials(points, exponents, axis) @ truth for axis in np.eye(4, dtype=int)], axis=1)
    slopes = np.exp(monomials(points, exponents) @ truth)[:, None] * inner
    basis = aligned(slopes, points, exponents)
    leading = basis[:, 0] / np.linalg.norm(basis[:, 0])
    assert abs(leading @ truth) / np.linalg.norm(truth) == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.norm(basis[:, 1:]) < 1e-5 * np.linalg.norm(basis[:, 0])


def test_a_function_of_no_quadratic_leaves_the_law_broad():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (500, 4))
    basis = aligned(rng.standard_normal((500, 4)), points, exponents_up_to(4, 2))
    assert np.linalg.svd(basis, compute_uv=False)[-1] > 0.05 * np.linalg.norm(basis, 2)


def test_lines_of_a_product_carry_one_function():
    nodes, quadrature = legendre.leggauss(12)
    values = np.outer(np.random.default_rng(0).standard_normal(40), np.exp(nodes))
    basis = line_functions(values, nodes, quadrature)
    found = legendre.legval(nodes, basis[:, 0])
    assert np.allclose(found / found[0], np.exp(nodes) / np.exp(nodes[0]), rtol=1e-12)
    assert found @ (quadrature * found) == pytest.approx(1.0)
    assert np.abs(basis[:, 1:]).max() < 1e3 * EPS


def test_constants_teach_nothing_and_break_nothing():
    assert np.array_equal(active_subspace(np.zeros((5, 3))), np.eye(3))
    assert np.array_equal(aligned(np.zeros((5, 2)), np.ones((5, 2)), exponents_up_to(2, 1)), np.eye(2))
    nodes, quadrature = legendre.leggauss(3)
    assert np.array_equal(line_functions(np.zeros((5, 3)), nodes, quadrature), np.eye(3))


class TwoFields:
    """u = x1, v = exp(x2)."""

    def derivative(self, points, index):
        one = points[:, 0] if not any(index) else np.full(len(points), float(index == (1, 0, 0, 0)))
        other = np.exp(points[:, 1]) * (not any(index[:1] + index[2:]))
        return np.stack([one, other], axis=1)


def test_every_field_has_its_share_and_products_need_a_box():
    box, ball = Box([(0, 1)] * 4), SpaceTime(t=(0, 1), x=Ball((0,) * 3, 1, names=("x1", "x2", "x3")))
    kinds = [[law.kind for law in FeatureLearner(d, LearningTuning()).candidate_laws(1.0)] for d in (box, ball)]
    assert kinds == [["subspace", "quadratic", "products"], ["subspace", "quadratic"]]
    rng = np.random.default_rng(0)
    learner = FeatureLearner(box, LearningTuning())
    ridges = learner.layer(LearnedLaw("subspace", 1.0, free=0.0), TwoFields(), 11, rng)
    assert isinstance(ridges, PolynomialFeatures)
    seen = np.abs(ridges.weights) > 1e-6
    assert seen[0].tolist() == [True] * 6 + [False] * 5
    assert seen[1].tolist() == [False] * 6 + [True] * 5
    drawn = learner.layer(LearnedLaw("products", 1.0, free=0.0), TwoFields(), 11, rng)
    assert isinstance(drawn, ProductFeatures)
    assert drawn.columns == 12


# ------------------------------------------------------------------------------------------------ in solutions


def ball():
    squares = "(x1**2 + x2**2 + x3**2)"
    exact = f"exp({squares}/2 + t)"
    conditions = {"start": On("t=0", f"u = {exact}"), "edge": On("boundary", f"dn(u) = {exact}")}
    domain = SpaceTime(t=(0, 1), x=Ball((0,) * 3, 1, names=("x1", "x2", "x3")))
    return Problem(f"u_t = laplace(u)/3 - {squares}/3*{exact}", domain, conditions, exact={"u": exact})


@pytest.mark.parametrize(("problem", "kind"), [(RIDGE, "subspace"), (GAUSSIAN, "products"), (ball(), "quadratic")])
def test_fitted_structure_gives_many_digits(problem, kind):
    solution = solve(problem, tol=1e-8, method=Collocation())
    error = solution.errors()["u"]
    assert solution.converged
    assert error < 1e-8
    assert error < 10 * solution.estimate
    assert f"learned {kind}" in str(solution.method)
    assert sum(solution.function.widths) <= 401  # ridges that know nothing need thousands


def test_a_structure_that_is_not_quite_there_is_not_believed():
    """A ridge and, a thousand times smaller, another function: the error is known whatever the neurons were."""
    exact = f"sin{SUM} + exp(-{SQUARES})/1000"
    problem = poisson(exact, f"4*sin{SUM} + (8 - 4*{SQUARES})*exp(-{SQUARES})/1000")
    solution = solve(problem, tol=1e-5, method=Collocation())
    error = solution.errors()["u"]
    assert error < 1e-5
    assert error / 10 < solution.estimate


@pytest.mark.parametrize("kind", ["subspace", "quadratic", "products"])
def test_learned_layers_are_stored_whole(kind, tmp_path):
    rng = np.random.default_rng(0)
    box = Box([(0, 2)] * 4)
    layer = FeatureLearner(box, LearningTuning()).layer(LearnedLaw(kind, 1.0, 0.2), TwoFields(), 12, rng)
    network = SubdomainNetwork((Subdomain(box.bounds, layer),), (rng.standard_normal((13, 2)),))
    again = unpack_subdomains(*network.pack())
    points = box.sample(50, rng=0)
    for index in [(0, 0, 0, 0), (0, 2, 0, 1)]:
        assert np.array_equal(again.derivative(points, index), network.derivative(points, index))


def test_a_learned_solution_is_saved_and_loaded(tmp_path):
    solution = solve(RIDGE, tol=1e-3, method=Collocation())
    assert isinstance(solution.function.subdomains[0].features, PolynomialFeatures)
    points = RIDGE.domain.sample(50, rng=0)
    assert np.array_equal(load(solution.save(tmp_path / "solution"))(points), solution(points))


def test_given_settings_are_kept():
    """Whoever names a scale gets ridges of that scale."""
    with pytest.warns(UserWarning, match="did not converge"):
        solution = solve(RIDGE, tol=1e-12, method=Collocation(width=50, scale=0.4))
    assert "learned" not in str(solution.method)
