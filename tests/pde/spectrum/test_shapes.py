"""Eigenvalues on shapes and boxes by the weak form: closed forms in random units and places, counted by inertia."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jn_zeros, jnp_zeros

import rannpde as rp
from draws import draws
from rannpde.domains.shapes.meshes import surface_mesh

FIXED = {"boundary": "u = 0"}
CLAMPED = {"boundary": ("u = 0", "dn(u) = 0")}
PLATE = "laplace(laplace(u)) = lam*u"
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


@pytest.mark.parametrize("seed", range(draws(2, 4)))
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
        ({"equation": "-laplace(u) = lam*u_x"}, "derivative"),
        ({"equation": "-i*laplace(u) = lam*u", "parameters": {"i": 1j}}, "complex number"),
        ({"equation": "-laplace(u) = lam*u", "conditions": {"boundary": "u = lam*u"}}, "condition without"),
        ({"equation": "u_xx - u_yy = lam*u"}, "elliptic"),
        ({"equation": "laplace(laplace(u)) = lam*laplace(u)", "conditions": CLAMPED}, "derivative"),
        ({"equation": "u_xxxx + u_yyyy = lam*u", "conditions": CLAMPED}, "laplace"),
        ({"equation": PLATE, "conditions": {"boundary": ("dn(u) = 0", "laplace(u) = 0")}}, "held or guided"),
        ({"equation": PLATE, "conditions": {"boundary": ("u = 0", "u_xx = 0")}}, "none of"),
    ],
)
def test_what_shapes_cannot_do_is_refused(change: dict, message: str) -> None:
    with pytest.raises(rp.InputError, match=message):
        rp.eigen(drum(disc(1.0, (0, 0)), **change))


def test_solids_of_triangles_are_refused_with_the_way_round() -> None:
    pytest.importorskip("trimesh")
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    solid = surface_mesh(corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], None, None, None)
    with pytest.raises(rp.InputError, match=r"4 flat triangles.*on its section"):
        rp.eigen(drum(solid))


@pytest.mark.slow
def test_a_prism_with_a_re_entrant_edge_in_another_unit_and_place() -> None:
    """L-shape times an interval: the sum of both eigenvalues."""
    unit, height, at, corner = 0.07, 0.05, (1.3, -0.4, 5.0), (1, -1)
    sides = [(at[k] - unit, at[k] + unit) for k in range(2)]
    missing = [(at[k], at[k] + unit) if corner[k] > 0 else (at[k] - unit, at[k]) for k in range(2)]
    span = (at[2], at[2] + height)
    solid = rp.Box(x=sides[0], y=sides[1], z=span) - rp.Box(x=missing[0], y=missing[1], z=span)
    found = rp.eigen(drum(solid), 1, tol=1e-2)
    assert found.converged
    assert within(found, np.array([L_SHAPE[0] / unit**2 + (np.pi / height) ** 2]))


def test_a_torus_by_its_section() -> None:
    """u = f(r, z) cos(mφ): a thin ring has the eigenvalues of the disc, shifted by (m² - 1/4)/r²."""
    text = "-div(x*grad(u)) + 9/x*u = lam*x*u"
    found = rp.eigen(drum(rp.Ball((50.0, 0.0), 1.0, names=("x", "z")), equation=text), 1, tol=1e-9)
    assert found.converged
    assert np.isclose(found.values[0], known_disc(1, False)[0] + 8.75 / 50**2, rtol=1e-6)


def test_the_wrong_end_and_too_little_time_are_refused() -> None:
    square = drum(rp.Box(x=(0, 1), y=(0, 1)))
    with pytest.raises(rp.InputError, match="which"):
        rp.eigen(square, which="highest")
    with pytest.raises(rp.InputError, match="seconds"):
        rp.eigen(drum(disc(1.0, (0, 0))), seconds=1e-6)


def test_modes_of_flows_are_free_of_divergence_and_satisfy_momentum(tmp_path) -> None:
    """Stokes on a disc: zeros of J₁, J₂; the pressure of the first, radial one is constant."""
    text = ["-laplace(u) + p_x = lam*u", "-laplace(v) + p_y = lam*v", "u_x + v_y = 0"]
    walls = {"boundary": ("u = 0", "v = 0")}
    flow = rp.Problem(
        text, disc(1.0, (0, 0)), walls, fields=("u", "v", "p"), eigenvalue="lam", incomplete=True
    )  # fmt: skip
    found = rp.eigen(flow, 3, tol=1e-5)
    assert "none is missing" in found.counted
    assert within(found, np.array([jn_zeros(1, 1)[0], *[jn_zeros(2, 1)[0]] * 2]) ** 2)
    points = 0.6 * np.stack([np.cos(np.arange(5.0)), np.sin(np.arange(5.0))], axis=1)
    for mode in found:
        x, y, xx, yy = (mode.derivative(points, index) for index in ((1, 0), (0, 1), (2, 0), (0, 2)))
        assert np.abs(x[:, 0] + y[:, 1]).max() < 1e-10
        assert np.allclose(-xx[:, 0] - yy[:, 0] + x[:, 2], mode.value * mode(points)[:, 0], atol=1e-2)
    again = rp.load(found.save(tmp_path / "flow.npz"))
    assert (again[0](points) == found[0](points)).all()


def test_flows_with_powers_or_in_space_are_refused() -> None:
    text = ["-laplace(u) + p_x = lam**2*u", "-laplace(v) + p_y = lam**2*v", "u_x + v_y = 0"]
    flow = rp.Problem(text, disc(1.0, (0, 0)), {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam", incomplete=True)
    with pytest.raises(rp.InputError, match="once"):
        rp.eigen(flow)


@pytest.mark.slow
def test_plates_on_a_foundation_under_tension_and_turned() -> None:
    """Supported: c μ² + t μ + k with the eigenvalues μ of the membrane; also a moment on straight edges."""
    turned = rp.Polygon([(0, 0), (0.6, 0.8), (-0.2, 1.4), (-0.8, 0.6)])  # the unit square, turned
    held = {"boundary": ("u = 0", "laplace(u) = 0")}
    found = rp.eigen(drum(turned, held, "3*laplace(laplace(u)) - 40*laplace(u) + 7*u = lam*2*u"), 2, tol=1e-3)
    squares = np.pi**2 * np.array([2.0, 5.0])
    assert np.allclose(found.values, (3 * squares**2 + 40 * squares + 7) / 2, rtol=1e-8)
    assert within(found, (3 * squares**2 + 40 * squares + 7) / 2)


@pytest.mark.slow
def test_clamped_and_supported_corners_of_an_l_shape() -> None:
    """A re-entrant supported corner is refused with the system to state; that system has the squares."""
    shape = rp.Polygon([(0, 0), (1, 0), (1, -1), (-1, -1), (-1, 1), (0, 1)])
    with pytest.raises(rp.InputError, match="re-entrant"):
        rp.eigen(drum(shape, {"boundary": ("u = 0", "laplace(u) = 0")}, PLATE))
    system = rp.Problem(["-laplace(u) = w", "-laplace(w) = lam*u"], shape, {"boundary": ("u = 0", "w = 0")},
                        eigenvalue="lam")  # fmt: skip
    found = rp.eigen(system, 2, tol=1e-4)
    assert within(found, L_SHAPE[:2] ** 2)


def test_elastic_vibration_of_a_clamped_disc() -> None:
    """Modes that only turn or only stretch: J₁ of √(λ/μ) r and of √(λ/(λ + 2μ)) r vanish at the edge."""
    text = ["-(3*u_xx + u_yy + 2*v_xy) = lam*u", "-(v_xx + 3*v_yy + 2*u_xy) = lam*v"]
    body = rp.Problem(text, disc(1.0, (0, 0)), {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam")
    found = rp.eigen(body, 8, tol=1e-6)
    assert found.converged
    turning = jn_zeros(1, 1)[0] ** 2
    assert np.abs(found.values / turning - 1).min() < 1e-6
