"""Hopf points, resumed continuations, pseudospectra, Turing's instability, and cracks: closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import some


def brusselator(first: float, second: float) -> rp.Problem:
    return rp.Problem(
        [f"{first}*u_xx + 1 - (B + 1)*u + u**2*v = 0", f"{second}*v_xx + B*u - u**2*v = 0"], rp.Interval(0, 1),
        {"boundary": ("dn(u) = 0", "dn(v) = 0")}, parameters={"B": 1.0},
    )  # fmt: skip


def test_a_hopf_point_is_located_saved_and_passed_again(tmp_path) -> None:
    """The mixture at rest loses its stability at B = 2 with frequency 1, where stripes do not come first."""
    problem = brusselator(0.05, 0.02)
    found = rp.continuation(problem, "B", 1.8, 2.1, guess={"u": 1.0, "v": 1.8})
    (point,) = found.hopf_points
    assert abs(point.parameter - 2) <= 10 * point.bound + 1e-10
    assert abs(point.frequency - 1) < 1e-8
    assert "Hopf point" in found.report()
    again = rp.load(found.save(tmp_path / "branch.npz"))
    assert again.hopf_points[0].parameter == point.parameter
    further = rp.continuation(problem, "B", 1.8, 2.2, resume=again)
    assert len(further.branches[0]) > len(found.branches[0])
    assert abs(further.branches[0].parameters[-1] - 2.2) < 1e-9
    assert len(further.hopf_points) == 1
    with pytest.raises(rp.InputError, match="resume"):
        rp.continuation(problem, "B", 1.8, 2.2, resume="branch.npz")


def test_branches_of_swift_and_hohenberg_begin_where_the_symbol_vanishes() -> None:
    stripes = rp.Problem(
        ["u + u_xx - w = 0", "r*u - w - w_xx - u**3 = 0"], rp.Interval(0, 10),
        {"boundary": ("dn(u) = 0", "dn(w) = 0")}, parameters={"r": 0.0},
    )  # fmt: skip
    found = rp.continuation(stripes, "r", -0.02, 0.05)
    known = np.sort([(1 - (n * np.pi / 10) ** 2) ** 2 for n in range(8)])
    known = known[known < 0.05]
    assert len(found.branch_points) == len(known)
    assert np.allclose([one.parameter for one in found.branch_points], known, rtol=1e-8)


@pytest.mark.parametrize("sides", some(["free", "periodic"], 1))
def test_turing_patterns_grow_as_the_dispersion_relation_says(sides: str) -> None:
    """Schnakenberg's reaction in the plane: the right number of growing modes, and their rates to ten digits."""
    jacobian, ratio, lengths = np.array([[0.8, 1.0], [-1.8, -1.0]]), 40.0, (10.0, 7.0)
    conditions = {"boundary": ("dn(u) = 0", "dn(v) = 0")} if sides == "free" else {"x": "periodic", "y": "periodic"}
    mixture = rp.Problem(
        ["laplace(u) + 0.8*u + v = s*u", "40*laplace(v) - 1.8*u - v = s*v"],
        rp.Box(x=(0, lengths[0]), y=(0, lengths[1])), conditions, eigenvalue="s",
    )  # fmt: skip
    numbers = np.arange(20) if sides == "free" else 2 * np.arange(-9, 10)
    squares = np.add.outer((np.pi * numbers / lengths[0]) ** 2, (np.pi * numbers / lengths[1]) ** 2).ravel()
    rates = np.concatenate([np.linalg.eigvals(jacobian - q * np.diag([1.0, ratio])) for q in squares]).real
    known = np.sort(rates[rates > 0])[::-1]
    found = rp.eigen(mixture, len(known) + 1, which="highest", tol=1e-9)
    assert int((np.real(found.values) > 0).sum()) == len(known)
    assert np.allclose(np.real(found.values)[:-1], known, rtol=1e-8)


def test_pseudospectra_of_orthogonal_modes_are_discs_and_of_others_larger(tmp_path) -> None:
    ends = {"boundary": "u = 0"}
    string = rp.eigen(rp.Problem("-u_xx = lam*u", rp.Interval(0, 1), ends, eigenvalue="lam"), 4)
    plain = rp.pseudospectrum(string, ((0.0, 100.0), (-20.0, 20.0)), points=9)
    place = plain.real[None, :] + 1j * plain.imaginary[:, None]
    away = np.abs(place[..., None] - string.values).min(axis=2)
    assert np.allclose(plain.distances, away, rtol=1e-8)
    assert abs(plain.condition - 1) < 1e-8
    flow = rp.eigen(rp.Problem("-u_xx + 20*u_x = lam*u", rp.Interval(0, 1), ends, eigenvalue="lam"), 8)
    shifted = rp.pseudospectrum(flow, points=9)
    away = np.abs((shifted.real[None, :] + 1j * shifted.imaginary[:, None])[..., None] - flow.values).min(axis=2)
    assert (shifted.distances <= away * (1 + 1e-8)).all()
    assert shifted.distances.min() < 0.1 * away.min()
    assert shifted.plot(tmp_path / "cloud.png").axes
    with pytest.raises(rp.InputError, match="bounds"):
        rp.pseudospectrum(flow, ((1, 0), (0, 1)))


@pytest.mark.slow
def test_a_disc_with_a_crack_has_half_orders() -> None:
    """The slit from the middle makes a sector of angle 2π: zeros of J of order n/2, the first is π."""
    sides = {"crack": rp.On("slit (0, 0) to (1, 0)", "u = 0"), "rest": rp.On("boundary", "u = 0")}
    disc = rp.Ball((0, 0), 1, names=("x", "y"))
    found = rp.eigen(rp.Problem("-laplace(u) = lam*u", disc, sides, eigenvalue="lam"), 1, tol=1e-5)
    assert found.converged
    assert abs(found.values[0] - np.pi**2) <= found.bounds[0]
