"""The exact solution of every problem of the zoo annihilates every equation and condition."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.residual import term_residual
from rannpde.pde.zoo import ZOO, zoo

VARIANTS = [(name, {}) for name in ZOO] + [
    ("heat", {"dim": 3}),
    ("poisson", {"dim": 5}),
    ("porous_medium", {"dim": 3}),
    ("porous_medium", {"exponent": 3.0}),
    ("porous_medium", {"radius": 0.3}),
    ("porous_medium", {"dim": 2, "radius": 0.3, "exponent": 3.0}),
    ("navier_stokes_eulerian", {"gamma": 1.4, "alpha": 0.5}),
    ("burgers", {"viscosity": 0.01}),
]


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=lambda value: str(value))
def test_exact_solution_annihilates_every_term(name, settings):
    problem = zoo(name, **settings)
    exact = problem.exact_solution
    assert exact is not None
    rng = np.random.default_rng(0)
    for term in problem.terms:
        points = term.region.sample(200, rng=rng) if not term.region.is_point else term.region.sample(1, rng=rng)
        if settings.get("radius"):
            # classical derivatives exist away from the edge of the support only
            profile = exact.functions["u"]
            distance = np.linalg.norm(points[:, 1:] - 0.5, axis=1) - profile.radius(points[:, 0])
            points = points[np.abs(distance) > 1e-3]
        residual = term_residual(term, exact, problem.vocabulary, points)
        size = _summands(term, exact, problem, points)
        # rounding of each summand, amplified by the chain of elementary functions in the formulas (measured: < 1e3 eps)
        assert np.abs(residual).max() <= 1e5 * np.finfo(float).eps * max(size, 1.0), term.name


def _summands(term, exact, problem, points):
    import sympy

    from rannpde.pde.residual import jets_of
    from rannpde.pde.statement.expression import evaluate

    jets = jets_of(exact, problem.fields, points, term.expression.jets)
    values = term.known(points, problem.vocabulary) | {s: jets[j] for s, j in term.expression.symbols.items()}
    parts = evaluate(list(sympy.Add.make_args(term.expression.formula)), values, problem.functions)
    return max(float(np.abs(part).max()) for part in parts)


def test_exact_solution_is_periodic_where_the_problem_is():
    for name in ("advection", "navier_stokes_eulerian"):
        problem = zoo(name)
        axis = problem.domain.names.index(problem.periodic[0])
        points = problem.domain.sample(50, rng=1)
        left, right = points.copy(), points.copy()
        left[:, axis], right[:, axis] = problem.domain.bounds[axis]
        for order in range(2):
            index = tuple(order * (k == axis) for k in range(problem.domain.dim))
            gap = problem.exact_solution.derivative(left, index) - problem.exact_solution.derivative(right, index)
            assert np.abs(gap).max() < 1e-13


def test_divergence_form_is_kept():
    form = zoo("navier_stokes_eulerian", gamma=2.0).divergence("momentum")
    assert "x" in form.flux
    assert {jet.index for jet in form.source.jets} <= {
        (0, 0),
        (1, 0),
    }  # only time derivatives are left outside the flux
