"""Which conditions are natural, and for which split of mixed derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde import Box, On, Problem
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.form import weak_formulation

LAM, MU = 1.7, 0.6
WORDS = {"lam": LAM, "mu": MU}
BODY = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = 1"]
ACROSS_X = ["(lam+2*mu)*u_x + lam*v_y = 0", "mu*(u_y + v_x) = 0"]
ACROSS_Y = ["mu*(u_y + v_x) = 0", "(lam+2*mu)*v_y + lam*u_x = 0"]
SQUARE = Box(x=(0, 1), y=(0, 1))


def body(**sides):
    conditions = {"left": On("x=0", ["u = 0", "v = 0"]), "right": On("x=1", ACROSS_X)}
    conditions |= {"rest": On(("y=0", "y=1"), ACROSS_Y)} | sides
    return Problem(BODY, SQUARE, conditions, parameters=WORDS)


def hooke(diffusion, lam=LAM, mu=MU):
    """The elastic tensor: σ_ij = λ δ_ij div u + μ (∂_i u_j + ∂_j u_i)."""
    expected = np.zeros((2, 2, 2, 2))
    for k in range(2):
        for f in range(2):
            for i in range(2):
                for j in range(2):
                    expected[k, f, i, j] = lam * (k == i) * (f == j) + mu * ((k == f) * (i == j) + (k == j) * (f == i))
    return np.allclose(diffusion, expected)


def test_tractions_choose_the_elastic_split():
    form = weak_formulation(body())
    assert form.symmetric
    assert hooke(form.at(np.zeros((1, 2))).diffusion[0])


def test_equations_in_any_order_and_scale_of_conditions():
    conditions = {"left": On("x=0", ["v = 0", "u = 0"])}
    scaled = [text.replace("= 0", "= 0").replace("mu*(u_y + v_x)", "-3*mu*(u_y + v_x)") for text in ACROSS_X]
    conditions |= {"right": On("x=1", scaled), "rest": On(("y=0", "y=1"), ACROSS_Y[::-1])}
    form = weak_formulation(Problem(BODY[::-1], SQUARE, conditions, parameters=WORDS, fields=("u", "v")))
    assert form.symmetric
    assert hooke(form.at(np.zeros((1, 2))).diffusion[0])


def test_without_tractions_the_form_is_symmetric_and_positive():
    clamped = Problem(BODY, SQUARE, {"rim": On("boundary", ["u = 0", "v = 0"])}, parameters={"lam": 9.0, "mu": 0.3})
    form = weak_formulation(clamped)
    flat = form.at(np.zeros((1, 2))).diffusion[0].transpose(0, 2, 1, 3).reshape(4, 4)
    assert form.symmetric
    assert np.linalg.eigvalsh(flat).min() > -1e-9


def test_rows_of_rollers_inclined_walls_and_springs():
    form = weak_formulation(body(right=On("x=1", ["u = 0.25", "mu*(u_y + v_x) + 2*v = 3"])))
    points, normals = np.array([[1.0, 0.5]]), np.array([[1.0, 0.0]])
    numbers = [k for k, term in enumerate(form.terms) if term.name.startswith("right")]
    rows = form.rows(numbers, points, normals)
    assert np.allclose(rows.projection[0], [[1, 0], [0, 0]])
    assert np.allclose(rows.values[0], [0.25, 0.0])
    assert np.allclose(rows.natural[0], [0.0, 3.0])
    assert np.allclose(rows.robin[0], [[0, 0], [0, 2.0]])


def test_oblique_derivatives_are_natural_for_a_skew_split():
    oblique = {"left": On("x=0", "u_x + 0.5*u_y = 1"), "rest": On("boundary except x=0", "u = x")}
    form = weak_formulation(Problem("laplace(u) = 0", SQUARE, oblique))
    assert not form.symmetric
    assert np.allclose(form.at(np.zeros((1, 2))).diffusion[0, 0, 0], [[1.0, 0.5], [-0.5, 1.0]])


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        (["(lam+2*mu)*u_x + lam*v_y = 0", "u_y = 0"], "no derivative along the normal|no combination"),
        (["u_x + 5*v_y = 0", "mu*(u_y + v_x) = 0"], "no combination of the normal fluxes"),
        (["u_x*u = 0", "v = 0"], "no combination of the normal fluxes"),
    ],
)
def test_conditions_that_are_not_natural_say_so(right, reason):
    with pytest.raises(NoDivergenceForm, match=reason):
        weak_formulation(body(right=On("x=1", right)))
