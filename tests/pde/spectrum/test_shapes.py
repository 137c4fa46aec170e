"""Eigenvalues on shapes and boxes by the weak form: closed forms in random units and places, counted by inertia."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jn_zeros, jnp_zeros

import rannpde as rp

FIXED = {"boundary": "u = 0"}
L_SHAPE = np.array([9.6397238440219, 15.197251926454, 2 * np.pi**2, 29.521481114145, 31.912635957138])
"""Three unit squares; Trefethen and Betcke 2006."""


def drum(domain, conditions=FIXED, equation: str = "-laplace(u) = lam*u", **more) -> rp.Problem:
    return rp.Problem(equation, domain, conditions, eigenvalue="lam", **more)


def disc(radius: float, place: tuple[float, float]) -> rp.Ball:
    return rp.Ball(place, radius, names=("x", "y"))


def known_disc(count: int, free: bool) -> np.ndarray:
    zeros = [(m, z) for m in range(8) for z in (jnp_zeros(m, 6) if free else jn_zeros(m, 6))]
    values = [z**2 for m, z in zeros for _ in range(1 if m == 0 else 2)] + ([0.0] if free else [])
    return np.sort(values)[:count]


def within(found: rp.Spectrum, known: np.ndarray, factor: float = 10.0) -> bool:
    return bool((np.abs(found.values - known[: len(found)]) <= factor * found.bounds).all())


@pytest.mark.parametrize("seed", range(4))
def test_rectangles_anywhere_in_any_unit(seed: int) -> None:
    draw = np.random.default_rng(seed)
    unit = 10 ** draw.uniform(-4, 4)
    a, b = (unit * np.round(draw.uniform(0.4, 2.3, 2), 3)).tolist()
    x, y = (unit * np.round(draw.uniform(-5, 5, 2), 3)).tolist()
    factor, tol, count = 10 ** draw.uniform(-3, 3), 10 ** draw.uniform(-9, -2), int(draw.integers(1, 7))
    sides = [bool(draw.integers(0, 2)) for _ in range(2)]  # fixed or free at x = const
    conditions = {"left": rp.On(f"x={x!r}", "u = 0" if sides[0] else "dn(u) = 0"),
                  "right": rp.On(f"x={x + a!r}", "u = 0" if sides[1] else "dn(u) = 0"),
                  "rest": rp.On((f"y={y!r}", f"y={y + b!r}"), "u = 0")}  # fmt: skip
    problem = drum(rp.Box(x=(x, x + a), y=(y, y + b)), conditions, "-c*laplace(u) = lam*u", parameters={"c": factor})
    found = rp.eigen(problem, count, tol=tol, rng=seed)
    m = np.arange(30) + (1.0 if all(sides) else 0.0 if not any(sides) else 0.5)
    known = factor * np.pi**2 * np.sort(((m / a) ** 2 + (np.arange(1, 31)[:, None] / b) ** 2).ravel())
    assert found.converged
    assert "none is missing" in found.counted
    assert within(found, known)


@pytest.mark.parametrize(("free", "sign"), [(False, 1), (True, -1)])
def test_discs_have_zeros_of_bessel_functions(free: bool, sign: int) -> None:
    radius = 0.37
    equation = "-laplace(u) = lam*u" if sign > 0 else "laplace(u) = lam*u"
    problem = drum(disc(radius, (1.3, -0.4)), {"boundary": "dn(u) = 0" if free else "u = 0"}, equation)
    found = rp.eigen(problem, 6, tol=1e-8)
    known = sign * known_disc(6, free) / radius**2
    assert found.converged
    assert within(found, known)
    assert found.multiplicities[1:3] == (2, 2)


def test_the_l_shape_to_nine_digits() -> None:
    found = rp.eigen(drum(rp.Polygon([(0, 0), (1, 0), (1, -1), (-1, -1), (-1, 1), (0, 1)])), 3, tol=1e-9)
    assert found.converged
    assert (np.abs(found.values / L_SHAPE[:3] - 1) < 1e-9).all()


def test_eigenvalues_in_a_condition_on_the_boundary() -> None:
    """Steklov: 0, 1, 1, 2, 2 on the unit disc."""
    found = rp.eigen(drum(disc(1.0, (0, 0)), {"boundary": "dn(u) = lam*u"}, "laplace(u) = 0"), 5, tol=1e-7)
    assert within(found, np.array([0.0, 1, 1, 2, 2]))


def test_advection_makes_it_unsymmetric() -> None:
    found = rp.eigen(drum(rp.Box(x=(0, 1), y=(0, 1)), equation="-laplace(u) + 6*u_x - 2*u_y = lam*u"), 3, tol=1e-7)
    assert within(found, 10 + np.pi**2 * np.array([2.0, 5, 5]))


def test_mass_that_varies_and_a_well_below_zero() -> None:
    """u = sin(πx) sin(πy) e^{…} is no mode; the shift must go below a negative potential, and inertia says so."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    plain = rp.eigen(drum(square, equation="-laplace(u) = lam*u"), 3, tol=1e-8)
    sunk = rp.eigen(drum(square, equation="-laplace(u) - 500*u = lam*u"), 3, tol=1e-8)
    assert np.allclose(sunk.values, plain.values - 500, atol=1e-4)
    heavy = rp.eigen(drum(square, equation="-laplace(u) = lam*(1 + x)*u"), 1, tol=1e-8)
    assert plain.values[0] / 2 < heavy.values[0] < plain.values[0]


def test_near_a_number_on_a_shape() -> None:
    found = rp.eigen(drum(rp.Box(x=(0, 1), y=(0, 1))), 2, near=100.0, tol=1e-7)
    assert np.allclose(found.values, 10 * np.pi**2, rtol=1e-7)


def test_elastic_vibration_of_a_square_held_at_its_sides() -> None:
    """Two fields; the stiffness is 3 along, 1 across: bounds of the scalar problems enclose the eigenvalues."""
    plate = rp.Problem(
        ["-(3*u_xx + u_yy + 2*v_xy) = lam*u", "-(v_xx + 3*v_yy + 2*u_xy) = lam*v"], rp.Box(x=(0, 1), y=(0, 1)),
        {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam",
    )  # fmt: skip
    found = rp.eigen(plate, 2, tol=1e-4)
    assert np.allclose(found.values, 37.2660722, rtol=1e-4)
    assert found.multiplicities == (2, 2)


def test_modes_vanish_at_the_boundary_and_satisfy_the_equation(tmp_path) -> None:
    found = rp.eigen(drum(disc(1.0, (0, 0))), 2, tol=1e-8)
    angle = np.linspace(0, 6, 9)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = 0.7 * circle
    for mode in found:
        assert np.abs(mode(circle)).max() < 1e-5
        left = -mode.derivative(inside, (2, 0)) - mode.derivative(inside, (0, 2))
        assert np.allclose(left, mode.value * mode(inside), atol=1e-3)
    again = rp.load(found.save(tmp_path / "disc.npz"))
    assert (again.modes[1](inside) == found.modes[1](inside)).all()
    assert found.plot(tmp_path / "disc.png").axes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"equation": "-laplace(u) = lam**2*u"}, "power 2"),
        ({"equation": "-laplace(u) + i*u = lam*u", "parameters": {"i": 1j}}, "complex"),
        ({"equation": "-laplace(u) = lam*u_x"}, "derivative"),
        ({"equation": "u_xx - u_yy = lam*u"}, "elliptic"),
    ],
)
def test_what_shapes_cannot_do_is_refused(change: dict, message: str) -> None:
    with pytest.raises(rp.InputError, match=message):
        rp.eigen(drum(disc(1.0, (0, 0)), **change))


def test_the_wrong_end_and_too_little_time_are_refused() -> None:
    square = drum(rp.Box(x=(0, 1), y=(0, 1)))
    with pytest.raises(rp.InputError, match="which"):
        rp.eigen(square, which="highest")
    with pytest.raises(rp.InputError, match="seconds"):
        rp.eigen(drum(disc(1.0, (0, 0))), seconds=1e-6)
