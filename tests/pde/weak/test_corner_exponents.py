"""Exponents r^λ at corners and crossings, against closed forms and published values."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from scipy.optimize import brentq

import rannpde as rp
from rannpde import On
from rannpde.pde.weak.corner_exponents import corner_exponent
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation

EVEN = np.eye(2).reshape(1, 1, 1, 2, 2)
HELD, FREE = np.eye(2), np.zeros((2, 2))


def elastic(ratio):
    """The tensor (1, 2, 2, 2, 2) of plane strain with μ = 1."""
    lam, one = 2 * ratio / (1 - 2 * ratio), np.eye(2)
    found = lam * np.einsum("ki,fj->kfij", one, one)
    found += np.einsum("ij,kf->kfij", one, one) + np.einsum("kj,fi->kfij", one, one)
    return found[None]


def alone(diffusion, opening, held, start=0.0):
    return corner_exponent(diffusion, np.array([start]), np.array([opening]), held)


@pytest.mark.parametrize("opening", [1.1 * pi, 1.5 * pi, 2 * pi])
@pytest.mark.parametrize("start", [0.0, 2.3])
def test_one_field_between_sides(opening, start):
    held, free = np.eye(1), np.zeros((1, 1))
    for ends, factor in (((held, held), 1.0), ((free, free), 1.0), ((held, free), 0.5)):
        assert alone(EVEN, opening, ends, start) == pytest.approx(factor * pi / opening, rel=1e-7)


@pytest.mark.parametrize("contrast", [2.0, 50.0, 1e4, 1e8])
def test_crossings_of_interfaces(contrast):
    factors = np.array([1.0, contrast, 1.0, contrast])[:, None, None, None, None] * np.eye(2)
    found = corner_exponent(factors, np.arange(4) * pi / 2, np.full(4, pi / 2))
    assert found == pytest.approx(4 / pi * np.arctan(contrast**-0.5), rel=1e-7)


def test_anisotropy_turns_an_opening_into_another_one():
    """u_xx + k² u_yy = 0 in a quadrant of three: x' = x, y' = y/k maps it to an opening with the same right angles."""
    stretched = np.diag([1.0, 9.0]).reshape(1, 1, 1, 2, 2)
    held = np.eye(1)
    assert alone(stretched, 1.5 * pi, (held, held)) == pytest.approx(2 / 3, rel=1e-7)
    turned = 2 * pi - 2 * np.arctan(1 / 3)  # the opening about the line y = x, seen in x', y'
    assert alone(stretched, 2 * pi - pi / 2, (held, held), pi / 4) == pytest.approx(pi / turned, rel=1e-4)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.49, 0.4999, 0.499999])
def test_williams_exponents(ratio):
    free = brentq(lambda k: np.sin(k * 1.5 * pi) + k * np.sin(1.5 * pi), 0.4, 0.7)
    assert alone(elastic(ratio), 1.5 * pi, (FREE, FREE)) == pytest.approx(free, rel=1e-7)
    kolosov = 3 - 4 * ratio
    clamped = brentq(lambda k: kolosov * np.sin(k * 1.5 * pi) + k * np.sin(1.5 * pi), 0.4, 0.8)
    assert alone(elastic(ratio), 1.5 * pi, (HELD, HELD)) == pytest.approx(clamped, rel=1e-7)
    assert alone(elastic(ratio), 2 * pi, (FREE, FREE)) == pytest.approx(0.5, rel=1e-7)
    both = brentq(lambda k: np.sin(k * pi / 2) ** 2 - (4 * (1 - ratio) ** 2 - k**2) / kolosov, 0.4, 0.99)
    assert alone(elastic(ratio), pi / 2, (HELD, FREE)) == pytest.approx(both, rel=1e-7)


def test_a_roller_beside_a_free_side_is_smooth():
    assert alone(elastic(0.3), pi / 2, (np.diag([0.0, 1.0]), FREE)) == 1.0


def test_cells_shrink_towards_clamped_corners_only():
    eqs = ["3*u_xx + u_yy + 2*v_xy = 0", "v_xx + 3*v_yy + 2*u_xy = 1"]
    sides = {
        "left": On("x=0", ["u = 0", "v = 0"]), "right": On("x=1", ["u = 0", "u_y + v_x = 0"]),
        "others": On(("y=0", "y=1"), ["u_y + v_x = 0", "3*v_y + u_x = 0"]),
    }  # fmt: skip
    form = weak_formulation(rp.Problem(eqs, rp.Box(x=(0, 1), y=(0, 1)), sides))
    points = WeakDiscretisation(form, 1e-3, WeakSettings(), np.random.default_rng(0), lambda: None).points
    assert {one.point for one in points if one.exponent < 1} == {(0.0, 0.0), (0.0, 1.0)}
