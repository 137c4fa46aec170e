"""Eigenvalues on intervals: closed forms, random Sturm–Liouville problems, none missed, none spurious."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import mathieu_a, mathieu_b

import rannpde as rp
from draws import draws
from pde.spectrum.families import potential, transformed
from rannpde.pde.spectrum.settings import SpectrumSettings

TRANSFORMED, POTENTIALS = draws(2, 8), draws(3, 15)
"""Of each family here; two hundred were run by hand."""

ORR_SOMMERFELD = "(u_xxxx - 2*a**2*u_xx + a**4*u)/R - i*a*((1-x**2)*(u_xx - a**2*u) + 2*u) = -i*a*c*(u_xx - a**2*u)"


@pytest.mark.parametrize("seed", range(TRANSFORMED))
def test_transformed_strings_have_the_eigenvalues_of_the_string(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem, known = transformed(seed)
    draw = np.random.default_rng(seed + 1000)
    count, tol = int(draw.integers(1, 13)), 10 ** draw.uniform(-10, -2)
    found = rp.eigen(problem, count, tol=tol)
    assert found.converged
    assert "none is missing" in found.counted
    assert (np.abs(found.values - known[:count]) <= found.bounds).all()
    assert (found.bounds <= tol * np.maximum(np.abs(found.values), found.scale)).all()


@pytest.mark.parametrize("seed", range(POTENTIALS))
def test_random_potentials_none_outside_its_bound_none_missed(seed: int) -> None:
    problem, reference, unit = potential(seed)
    draw = np.random.default_rng(seed + 5000)
    count, tol = int(draw.integers(1, 13)), 10 ** draw.uniform(-10, -2)
    found = rp.eigen(problem, count, tol=tol)
    known = reference.values(count)
    rounding = 1e-12 * (np.maximum(np.abs(known), 10 * unit) + np.abs(known).max())  # of the reference
    assert found.converged
    assert (np.abs(found.values - known) <= found.bounds + rounding).all()


def on(equation: str, ends: tuple[float, float], conditions: dict, **more) -> rp.Problem:
    return rp.Problem(equation, rp.Interval(*ends), conditions, **{"eigenvalue": "lam"} | more)


FIXED = {"boundary": "u = 0"}
BEAM = {"x=0": ("u = 0", "u_x = 0"), "x=1": ("u_xx = 0", "u_xxx = 0")}
KNOWN = {
    "string": (on("-u_xx = lam*u", (0, np.pi), FIXED), np.arange(1.0, 7) ** 2),
    "free ends, downwards": (on("u_xx = lam*u", (0, np.pi), {"boundary": "dn(u) = 0"}), -(np.arange(6.0) ** 2)),
    "harmonic oscillator": (on("-u_xx + x**2*u = lam*u", (-9, 9), FIXED), 2 * np.arange(6.0) + 1),
    "anharmonic oscillator": (
        on("-u_xx + x**4*u = lam*u", (-7, 7), FIXED), [1.0603620904841829, 3.7996730298013942, 7.4556979379867384]
    ),
    "hydrogen": (on("-0.5*u_xx - u/x = lam*u", (0, 80), FIXED), -0.5 / np.arange(1.0, 3) ** 2),
    "hydrogen, l = 1": (on("-0.5*u_xx + u/x**2 - u/x = lam*u", (0, 80), FIXED), -0.5 / np.arange(2.0, 4) ** 2),
    "clamped beam": (on("u_xxxx = lam*u", (0, 1), BEAM), np.array([1.875104068711961, 4.694091132974175]) ** 4),
    "system": (
        rp.Problem(["-u_xx + v = lam*u", "-v_xx + u = lam*v"], rp.Interval(0, 1), {"boundary": ("u = 0", "v = 0")},
                   eigenvalue="lam"), np.pi**2 + np.array([-1, 1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms(name: str) -> None:
    problem, known = KNOWN[name]
    known = np.asarray(known, dtype=float)
    found = rp.eigen(problem, len(known), tol=1e-10)
    assert found.converged
    assert (np.abs(found.values - known) <= 10 * found.bounds + 4e-15 * np.abs(known)).all()


@pytest.mark.parametrize("q", [0.0, 0.3, 5.0, 40.0])
def test_mathieu_functions(q: float) -> None:
    problem = on("-u_xx + 2*q*cos(2*x)*u = lam*u", (0, np.pi), {"x": "periodic"}, parameters={"q": q})
    found = rp.eigen(problem, 5, tol=1e-11)
    known = np.sort([mathieu_a(0, q), mathieu_b(2, q), mathieu_a(2, q), mathieu_b(4, q), mathieu_a(4, q)])
    assert np.allclose(found.values, known, rtol=1e-9, atol=1e-9)  # SciPy's own are good to about ten digits
    assert found.multiplicities == ((1, 2, 2, 2, 2) if q == 0 else (1, 1, 1, 1, 1))


@pytest.mark.parametrize("theta", [0.0, 0.4, np.pi, 5.5])
def test_a_bloch_phase_shifts_free_waves(theta: float) -> None:
    found = rp.eigen(on("-u_xx = lam*u", (1, 3), {"x": "periodic"}), 5, phase={"x": theta}, tol=1e-11)
    waves = np.sort(((theta + 2 * np.pi * np.arange(-4, 5)) / 2) ** 2)[:5]
    assert np.allclose(found.values.real, waves, atol=1e-11 * waves.max())
    assert np.abs(np.imag(found.values)).max() <= 1e-11 * waves.max()
    mode, ends = found.modes[1], np.array([[1.0], [3.0]])
    assert abs(mode(ends)[1] - np.exp(1j * theta) * mode(ends)[0]) < 1e-9


def test_orr_sommerfeld_to_eight_digits() -> None:
    """Orszag 1971: the unstable mode of plane Poiseuille flow at Reynolds number 10,000."""
    walls = {"boundary": ("u = 0", "dn(u) = 0")}
    problem = on(ORR_SOMMERFELD, (-1, 1), walls, parameters={"i": 1j, "a": 1.0, "R": 1e4}, eigenvalue="c")
    found = rp.eigen(problem, 3, which="highest imaginary")
    assert abs(found.values[0] - (0.23752648882 + 0.00373967062j)) < 2e-11
    assert found.values[1].imag < -0.03
    near = rp.eigen(problem, 1, near=0.24 + 0.004j, rng=5)
    assert abs(near.values[0] - found.values[0]) <= near.bounds[0] + found.bounds[0]


@pytest.mark.parametrize("damping", [0.0, 0.3, 7.0])
def test_vibration_with_damping_is_a_quadratic_problem(damping: float) -> None:
    found = rp.eigen(on("u_xx = lam**2*u + c*lam*u", (0, 1), FIXED, parameters={"c": damping}), 6, which="smallest")
    waves = np.pi * np.arange(1, 8)
    roots = np.concatenate([np.roots([1, damping, w**2]) for w in waves])
    roots = roots[np.argsort(np.abs(roots), kind="stable")][:6]
    away = np.abs(found.values[:, None] - roots).min(axis=1)
    assert (away <= 10 * found.bounds + 1e-13).all()


def test_an_eigenvalue_in_a_condition() -> None:
    """A string with a mass at its end: tan k = 1 / (m k)."""
    found = rp.eigen(on("-u_xx = lam*u", (0, 1), {"x=0": "u = 0", "x=1": "u_x = 2*lam*u"}), 4, tol=1e-11)
    waves = np.sqrt(found.values)
    assert np.abs(np.cos(waves) - 2 * waves * np.sin(waves)).max() < 1e-9


def test_jumping_diffusion_keeps_its_flux() -> None:
    """Two strings: k1 cot(k1/2)... by the determinant of the transfer matrix."""
    found = rp.eigen(on("-div(where(x < 0.3, 1, 4)*grad(u)) = lam*u", (0, 1), FIXED), 5, tol=1e-11)
    k, half = np.sqrt(found.values), np.sqrt(found.values) / 2
    left = np.sin(0.3 * k) * np.cos(0.7 * half) * 4 * half + np.cos(0.3 * k) * k * np.sin(0.7 * half)
    assert (np.abs(left) < 1e-8 * k).all()


def test_eigenvalues_near_a_number_know_their_place() -> None:
    found = rp.eigen(on("-u_xx = lam*u", (0, np.pi), FIXED), 3, near=401.0)
    assert found.values[0] == pytest.approx(400.0, rel=1e-9)
    assert "19 to 21" in found.counted


def test_a_deep_narrow_well_is_not_overlooked() -> None:
    """Its bound state is 1/500 of the interval wide, away from any cell of a first mesh."""
    problem = on("-u_xx - 1e6*exp(-((x - 0.37341)/0.001)**2)*u = lam*u", (0, 1), FIXED)
    found = rp.eigen(problem, 3, tol=1e-8)
    assert found.converged
    assert found.values[0] < -1e5 < 0 < found.values[1]


def test_a_discretisation_that_lies_is_refused() -> None:
    """One coarse cell of low degree cannot resolve forty modes; without refinement nothing may be called converged."""
    poor = SpectrumSettings(degree=8, more_degree=2, first_cells=1, most_cells=2, most_iterations=2)
    with pytest.warns(rp.ConvergenceWarning):
        found = rp.eigen(on("-u_xx = lam*u", (0, np.pi), FIXED), 12, tol=1e-9, settings=poor)
    assert not found.converged
    known = np.arange(1.0, 40) ** 2
    for value, bound in zip(found.values, found.bounds, strict=True):
        assert np.abs(known - value).min() <= 10 * bound


def test_modes_satisfy_their_equation_and_nothing_depends_on_units() -> None:
    problem = on("-u_xx + 3*sin(x)*u = lam*(2 + cos(x))*u", (0, 5), {"x=0": "u_x = u", "x=5": "u = 0"})
    found = rp.eigen(problem, 3, tol=1e-10)
    points = np.linspace(0.1, 4.9, 50)[:, None]
    x = points[:, 0]
    for mode in found:
        left = -mode.derivative(points, (2,)) + 3 * np.sin(x) * mode(points)
        assert np.allclose(left, mode.value * (2 + np.cos(x)) * mode(points), atol=1e-7)
    tiny = on(
        "-u_xx + 3e12*sin(x*1e6)*u = lam*(2 + cos(x*1e6))*u", (0, 5e-6), {"x=0": "u_x = 1e6*u", f"x={5e-6!r}": "u = 0"}
    )
    assert np.allclose(rp.eigen(tiny, 3, tol=1e-10).values, 1e12 * found.values, rtol=1e-9)
