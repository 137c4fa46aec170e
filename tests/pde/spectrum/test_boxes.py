"""Eigenvalues on boxes by tensor products: any order, periodic with phases, quadratic, complex, Stokes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import mathieu_a, mathieu_b

import rannpde as rp
from draws import draws
from rannpde.pde.spectrum.bounds import residual_bounds

SQUARE = rp.Box(x=(0, 1), y=(0, 1))
FIXED = {"boundary": "u = 0"}
PLATE = "u_xxxx + 2*u_xxyy + u_yyyy = lam*u"


def stated(equations, conditions=FIXED, domain=SQUARE, **more) -> rp.Problem:
    return rp.Problem(equations, domain, conditions, **{"eigenvalue": "lam"} | more)


def inside(found: rp.Spectrum, known, factor: float = 1.0) -> bool:
    rounding = 1e-12 * np.maximum(np.abs(np.asarray(known)), found.scale)
    return bool((np.abs(found.values - known) <= factor * found.bounds + rounding).all())


@pytest.mark.parametrize("seed", range(draws(3, 6)))
def test_boxes_with_waves_along_each_axis_in_any_unit(seed: int) -> None:
    """Fixed, free, mixed or periodic with a phase along each axis: sums of squares of wave numbers, all in bounds."""
    draw = np.random.default_rng(seed)
    dim, unit = int(draw.integers(2, 4)), 10 ** draw.uniform(-4, 4)
    names = "xyz"[:dim]
    lengths = unit * np.round(draw.uniform(0.4, 2.3, dim), 3)
    starts = unit * np.round(draw.uniform(-5, 5, dim), 3)
    conditions: dict = {}
    phase, waves = {}, []
    numbers = np.arange(40)
    for name, start, length in zip(names, starts, lengths, strict=True):
        kind = int(draw.integers(0, 4))
        if kind == 3:
            conditions[name] = "periodic"
            phase[name] = float(draw.uniform(-3, 3)) * int(draw.integers(0, 2))
            waves.append((2 * np.pi * (np.arange(80) - 40) + phase[name]) / length)
            continue
        ends = [bool(kind & 1), bool(kind & 2)]  # fixed or free
        for place, fixed in zip((start, start + length), ends, strict=True):
            conditions[f"{name}={float(place)!r}"] = "u = 0" if fixed else "dn(u) = 0"
        waves.append(np.pi * (numbers + (1.0 if all(ends) else 0.5 if any(ends) else 0.0)) / length)
    factor, tol, count = 10 ** draw.uniform(-3, 3), 10 ** draw.uniform(-10, -2), int(draw.integers(1, 8))
    box = rp.Box(**{n: (float(a), float(a + b)) for n, a, b in zip(names, starts, lengths, strict=True)})
    found = rp.eigen(stated("-c*laplace(u) = lam*u", conditions, box, parameters={"c": factor}), count, tol=tol,
                     rng=seed, phase=phase)  # fmt: skip
    grid = np.meshgrid(*[w**2 for w in waves], indexing="ij")
    known = factor * np.sort(np.sum(grid, axis=0).ravel())[:count]
    assert found.converged
    assert "none is missing" in found.counted
    assert "guaranteed" in found.assurance
    assert inside(found, known)
    assert (found.bounds <= tol * np.maximum(np.abs(found.values), found.scale)).all()


def test_a_bloch_wave_in_a_separable_potential() -> None:
    """cos x + cos y on a cell: sums of Mathieu's characteristic values."""
    cell = rp.Box(x=(0, np.pi), y=(0, np.pi))
    sides = {"x": "periodic", "y": "periodic"}
    problem = stated("-laplace(u) + 4*(cos(2*x) + cos(2*y))*u = lam*u", sides, cell)
    one = np.array([mathieu_a(0, 2), mathieu_b(2, 2), mathieu_a(2, 2), mathieu_b(4, 2)])
    known = np.sort(np.add.outer(one, one).ravel())[:4]
    assert np.allclose(rp.eigen(problem, 4, tol=1e-10).values, known, rtol=1e-11)  # SciPy has twelve digits
    anti = rp.eigen(problem, 1, tol=1e-10, phase={"x": np.pi, "y": np.pi})
    assert np.allclose(anti.values, 2 * min(mathieu_b(1, 2), mathieu_a(1, 2)), rtol=1e-11)
    turned = anti[0](np.array([[0.2, 0.3], [0.2 + np.pi, 0.3]]))
    assert np.allclose(turned[1], -turned[0])


def test_plates_simply_supported_and_clamped() -> None:
    held = rp.eigen(stated(PLATE, {"boundary": ("u = 0", "laplace(u) = 0")}), 4, tol=1e-9)
    assert inside(held, np.pi**4 * np.array([4.0, 25, 25, 64]))
    clamped = rp.eigen(stated(PLATE, {"boundary": ("u = 0", "dn(u) = 0")}), 3, tol=1e-8)
    assert clamped.converged
    assert inside(clamped, [1294.93397959171, 5386.6565607, 5386.6565607])  # Bjørstad and Tjøstheim 1999
    assert "two discretisations" in clamped.assurance  # fourth derivatives are not square integrable at corners


def test_stokes_on_a_square() -> None:
    """The pressure has no spurious modes; Leriche and Labrosse 2004 for the square of side 2."""
    flow = stated(["-laplace(u) + p_x = lam*u", "-laplace(v) + p_y = lam*v", "u_x + v_y = 0"],
                  {"boundary": ("u = 0", "v = 0")}, incomplete=True)  # fmt: skip
    found = rp.eigen(flow, 3, tol=1e-6)
    assert inside(found, np.array([52.3446911, 92.1243940, 92.1243940]) + 1e-7, 2.0)
    assert found.multiplicities == (1, 2, 2)


def test_damping_makes_a_quadratic_problem_and_absorption_a_complex_one(tmp_path) -> None:
    damped = rp.eigen(stated("lam**2*u + 2*lam*u - laplace(u) = 0"), 2, which="smallest", tol=1e-9)
    assert np.allclose(damped.values, -1 + 1j * np.sqrt(2 * np.pi**2 - 1) * np.array([-1, 1]))
    lossy = rp.eigen(stated("-laplace(u) + i*u = lam*u", parameters={"i": 1j}), 2, tol=1e-9)
    assert np.allclose(lossy.values, np.pi**2 * np.array([2, 5]) + 1j)
    again = rp.load(lossy.save(tmp_path / "lossy.npz"))
    places = SQUARE.sample(5, rng=0)
    assert (again[1](places) == lossy[1](places)).all()
    assert again.assurance == lossy.assurance


def test_a_spurious_mode_is_not_got_from_a_mixed_system() -> None:
    """∇·u and ∇p: equal orders would have spurious pressures; eigenvalues -k² of the Laplacian alone are allowed."""
    system = stated(["p_x = lam*u", "p_y = lam*v", "u_x + v_y = -lam*p"],
                    {"x=0": "u = 0", "x=1": "u = 0", "y=0": "v = 0", "y=1": "v = 0"}, incomplete=True)  # fmt: skip
    with warnings.catch_warnings():  # not converged is an answer here, a wrong number is not
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        found = rp.eigen(system, 4, near=3.0 + 0.1j, tol=1e-6)
    known = np.sqrt(np.pi**2 * np.add.outer(np.arange(6) ** 2, np.arange(6) ** 2)).ravel()
    for value, bound in zip(found.values, found.bounds, strict=True):
        waves = np.concatenate([known, -known, 1j * known, -1j * known])
        assert np.abs(waves - value).min() <= 10 * bound + 1e-9


def test_near_a_number_and_many() -> None:
    known = np.pi**2 * np.sort(np.add.outer(np.arange(1, 9) ** 2, np.arange(1, 9) ** 2).ravel())[:20]
    assert inside(rp.eigen(stated("-laplace(u) = lam*u"), 20, tol=1e-9), known)
    assert inside(rp.eigen(stated("-laplace(u) = lam*u"), 2, near=100.0, tol=1e-9), [10 * np.pi**2] * 2)


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_residual_bounds_hold_for_matrices(seed: int) -> None:
    """Ritz values of random subspaces: each within its bound of the eigenvalue with its number."""
    draw = np.random.default_rng(seed)
    values = np.sort(draw.uniform(0, 100, 40))
    turn = np.linalg.qr(draw.standard_normal((40, 40)))[0]
    matrix = turn @ np.diag(values) @ turn.T
    space = np.linalg.qr(turn[:, :8] + 1e-4 * draw.standard_normal((40, 8)))[0]
    ritz, vectors = np.linalg.eigh(space.T @ matrix @ space)
    modes = space @ vectors
    reach = np.linalg.norm(matrix @ modes - modes * ritz, axis=0)
    assert (np.abs(ritz - values[:8])[:7] <= residual_bounds(ritz, reach)[:7] + 1e-12).all()
