"""Equations in divergence form: coefficients from whatever way they were written."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.statement.divergence import NoDivergenceForm, divergence_system
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

BOX = np.array([(0.5, 1.0), (0.5, 2.0)])
POINTS = np.array([[0.7, 0.9], [0.9, 1.7]])


def system(equations, fields=("u",), **more):
    words = Vocabulary(("x", "y"), None, fields, **more)
    stated = {f"equation {k}": read(text, words) for k, text in enumerate(equations)}
    return divergence_system(stated, words, BOX)


@pytest.mark.parametrize(
    "text",
    ["div(x*grad(u)) = y", "d(x*u_x, x) + d(x*u_y, y) = y", "x*u_xx + x*u_yy + u_x = y", "-y = -x*laplace(u) - u_x"],
)
def test_all_ways_to_write_an_equation_give_one_form(text):
    found = system([text]).at(POINTS)
    for point, diffusion, load in zip(POINTS, found.diffusion, found.load, strict=True):
        assert np.allclose(diffusion[0, 0], point[0] * np.eye(2))
        assert np.allclose(load, -point[1])
    assert np.allclose(found.advection, 0.0, atol=1e-15)
    assert np.allclose(found.reaction, 0.0)


def test_lower_order_terms_and_advective_fluxes():
    found = system(["div(grad(u)) - div_free(x, y)*u_x = 3*u + d(y*u, x)"], functions={"div_free": lambda x, y: x + y})
    at = found.at(POINTS)
    assert np.allclose(at.advection[:, 0, 0], np.stack([POINTS.sum(axis=1) + POINTS[:, 1], 0 * POINTS[:, 0]], axis=1))
    assert np.allclose(at.reaction[:, 0, 0], 3.0)


def test_equations_find_their_fields_and_signs():
    found = system(["-v_xx - v_yy + u = 0", "2*u_xx + 3*u_yy = v"], ("u", "v"))
    assert found.names == ("equation 1", "equation 0")
    assert found.signs == (1.0, -1.0)
    at = found.at(POINTS)
    assert np.allclose(at.diffusion[0, 0, 0], np.diag([2.0, 3.0]))
    assert np.allclose(at.diffusion[0, 1, 1], np.eye(2))
    assert np.allclose(at.reaction[0], [[0.0, 1.0], [1.0, 0.0]])


def test_random_coefficients_come_back():
    rng = np.random.default_rng(0)
    for _ in range(10):
        a, b, c, p, q, r = (float(f"{value:.3g}") for value in rng.uniform(0.5, 2, 6))
        text = f"{a}*u_xx + {b}*u_yy + {c}*u_xy*x + {p}*u_x + {q}*y*u_y - {r}*u = sin(x)"
        at = system([text]).at(POINTS)
        split = at.diffusion[:, 0, 0]
        assert np.allclose(split[:, 0, 0], a)
        assert np.allclose(split[:, 0, 1] + split[:, 1, 0], c * POINTS[:, 0])
        # c x u_xy = ∂_y (c x u_x), as x does not depend on y: what is left is as stated
        assert np.allclose(at.advection[:, 0, 0, 0], -p)
        assert np.allclose(at.reaction[:, 0, 0], r)


@pytest.mark.parametrize(
    ("equations", "fields", "reason"),
    [
        (["u_xx + u*u_yy = 0"], ("u",), "not linear"),
        (["u_xxxx + u_yy = 0"], ("u",), "order above two"),
        (["u_x + u_y = 0"], ("u",), "no equation has second derivatives of 'u'"),
        (["where(x < 0.7, 1, 2)*u_xx + u_yy = 0"], ("u",), "jumps outside of a divergence"),
        (["(x - 0.7)*u_xx + (x - 0.7)*u_yy = 0"], ("u",), "changes its sign"),
    ],
)
def test_what_has_no_divergence_form_says_why(equations, fields, reason):
    with pytest.raises(NoDivergenceForm, match=reason):
        system(equations, fields)
