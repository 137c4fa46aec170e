"""Linear stability and continuation: dispersion relations, folds and branch points in closed form, crossings."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from rannpde.pde.spectrum.stability import stability

FIXED = {"boundary": "u = 0"}
ALLEN_CAHN = rp.Problem("u_xx + r*u - u**3 = 0", rp.Interval(0, np.pi), FIXED, parameters={"r": 0.0})


def bratu(domain: rp.Box) -> rp.Problem:
    return rp.Problem("laplace(u) + lam*exp(u) = 0", domain, FIXED, parameters={"lam": 0.0})


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_turing_instability_by_the_dispersion_relation(seed: int) -> None:
    """Schnakenberg's reaction at rest between free ends: σ are the eigenvalues of J - D (nπ/L)²."""
    draw = np.random.default_rng(seed)
    a, b = 0.1, 0.9
    ratio, strength, length = draw.uniform(5, 40), 10 ** draw.uniform(0.5, 2.5), draw.uniform(0.5, 3)
    rest = {"u": f"{a + b}", "v": f"{b / (a + b) ** 2}"}
    reaction = rp.Problem(
        ["u_xx + g*(a - u + u**2*v) = 0", "q*v_xx + g*(b - u**2*v) = 0"], rp.Interval(0, length),
        {"boundary": ("dn(u) = 0", "dn(v) = 0")}, parameters={"a": a, "b": b, "q": ratio, "g": strength}, exact=rest,
    )  # fmt: skip
    found = stability(reaction, reaction.exact_solution, 5, tol=1e-9)
    u, v = a + b, b / (a + b) ** 2
    jacobian = strength * np.array([[-1 + 2 * u * v, u**2], [-2 * u * v, -(u**2)]])
    waves = (np.pi * np.arange(40) / length) ** 2
    rates = np.concatenate([np.linalg.eigvals(jacobian - np.diag([1, ratio]) * w) for w in waves])
    known = np.sort(rates.real)[::-1][:5]
    assert np.allclose(np.real(found.values), known, rtol=1e-8, atol=1e-8 * strength)
    assert (np.real(found.values) > 0).sum() == (known > 0).sum()


def test_stability_of_a_solution_and_its_sign() -> None:
    """u = 0 of u_xx + r(u - u³) = 0 grows at r - n²; the sign of the statement does not matter."""
    for text in ("u_xx + 5*(u - u**3) = 0", "5*(u**3 - u) = u_xx"):
        solution = rp.solve(rp.Problem(text, rp.Interval(0, 1), FIXED), tol=1e-6)
        found = solution.stability(3, tol=1e-8)
        assert np.allclose(found.values, 5 - np.pi**2 * np.array([1, 4, 9]), atol=1e-6)
        assert found.problem.eigenvalue == "growth"


def test_a_travelling_front_between_walls_has_one_slow_mode() -> None:
    """tanh(x/√2) of u_xx + u - u³ = 0: rates 0 (translation, up to e^{-…}) and -3/2, then below -2."""
    front = rp.Problem(
        "u_xx + u - u**3 = 0", rp.Interval(-14, 14), {"boundary": "dn(u) = 0"}, exact={"u": "tanh(x/sqrt(2))"}
    )
    found = stability(front, front.exact_solution, 3, tol=1e-8)
    assert abs(found.values[0]) < 1e-6
    assert found.values[1] == pytest.approx(-1.5, abs=1e-6)
    assert found.values[2] < -1.99


def test_what_has_no_rate_of_change_is_refused() -> None:
    odd = rp.Problem("u_x = u**2", rp.Interval(0, 1), {"x=0": "u = 0.5"}, exact={"u": "1/(2 - x)"})
    with pytest.raises(rp.InputError, match="algebraic"):
        stability(odd, odd.exact_solution)
    moving = rp.Problem("u_t = u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), {"t=0": "u = 0", **FIXED}, exact={"u": "0"})
    with pytest.raises(rp.InputError, match="stationary"):
        stability(moving, moving.exact_solution)
    with pytest.raises(rp.InputError, match="algebraic"):
        stability(odd, odd.exact_solution, algebraic=("w",))


@pytest.mark.parametrize("length", some([0.037, 1.0, 250.0], 1))
def test_the_fold_of_bratu_in_any_unit(length: float) -> None:
    problem = bratu(rp.Interval(2 * length, 3 * length))
    found = rp.continuation(problem, "lam", 0.1 / length**2, 4 / length**2, tol=1e-9)
    (fold,) = found.folds
    assert found.converged
    assert fold.parameter * length**2 == pytest.approx(3.513830719125161, rel=1e-9)
    assert fold.extreme == pytest.approx(1.1868421686, rel=1e-6)
    (branch,) = found.branches
    passed = int(np.argmax(branch.parameters))
    assert (branch.unstable[:passed] == 0).all()
    assert (branch.unstable[passed + 1 :] == 1).all()


def test_the_fold_of_bratu_on_the_unit_square() -> None:
    found = rp.continuation(bratu(rp.Box(x=(0, 1), y=(0, 1))), "lam", 6.2, 7.2, tol=1e-7)
    (fold,) = found.folds
    assert fold.parameter == pytest.approx(6.80812442259, rel=1e-8)
    assert fold.extreme == pytest.approx(1.3916612, rel=1e-6)


def test_branch_points_and_the_branches_that_cross_there(tmp_path) -> None:
    """u = 0 of u'' + r u - u³ = 0 on (0, π) is left at r = n²."""
    found = rp.continuation(ALLEN_CAHN, "r", 0.3, 5.0, branches=1)
    assert [round(one.parameter, 8) for one in found.branch_points] == [1.0, 4.0]
    assert len(found.branches) == 5
    first, second = found.branches[1:3]
    assert first.extremes[-1] == pytest.approx(-second.extremes[-1])
    assert (first.unstable == 0).all()
    assert (found.branches[3].unstable[1:] >= 1).all()
    points = np.linspace(0.1, 3, 9)[:, None]
    one, r = first.functions[-1], first.parameters[-1]
    left = one.derivative(points, (2,)) + r * one(points) - one(points) ** 3
    assert np.abs(left).max() < 1e-4
    assert found.plot(tmp_path / "diagram.png").axes
    assert found.report().count("branch point at r = ") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameter": "s"}, "parameter"),
        ({"start": np.nan}, "start"),
        ({"stop": 0.3}, "stop"),
        ({"branches": -1}, "branches"),
        ({"tol": 2.0}, "tol"),
        ({"guess": 3}, "guess"),
        ({"guess": {"w": 1.0}}, "guess"),
        ({"seconds": 0}, "seconds"),
    ],
)
def test_wrong_arguments_of_continuation_are_named(change: dict, message: str) -> None:
    arguments = {"parameter": "r", "start": 0.3, "stop": 2.0} | change
    with pytest.raises(rp.InputError, match=message):
        rp.continuation(ALLEN_CAHN, **arguments)


def test_problems_that_cannot_be_followed_are_refused() -> None:
    with pytest.raises(rp.InputError, match="domain"):
        rp.continuation(bratu(rp.Ball((0, 0), 1, names=("x", "y"))), "lam", 0.0, 1.0)
    wavy = rp.Problem("u_xx + r*u = 0", rp.Interval(0, 1), {"x": "periodic"}, parameters={"r": 1.0})
    with pytest.raises(rp.InputError, match="periodic"):
        rp.continuation(wavy, "r", 0.0, 1.0)
    beam = rp.Problem("u_xxxx = q", rp.Interval(0, 1), {"boundary": ("u = 0", "dn(u) = 0")}, parameters={"q": 1.0})
    with pytest.raises(rp.InputError, match="order"):
        rp.continuation(beam, "q", 0.0, 1.0)
    none = rp.Problem("u_xx + lam*exp(u) = 0", rp.Interval(0, 1), FIXED, parameters={"lam": 0.0})
    with pytest.raises(rp.InputError, match="no solution"):
        rp.continuation(none, "lam", 9.0, 10.0)


def test_fields_that_an_equation_defines_have_no_rate_of_their_own() -> None:
    """Swift and Hohenberg's equation with w = u + u_xx: rates r - (1 - (nπ/L)²)² of the state of rest, by ``stability``
    and along a branch."""
    ends, length, r = {"boundary": ("dn(u) = 0", "dn(w) = 0")}, 10.0, 0.1
    stripes = rp.Problem(["u + u_xx - w = 0", "r*u - w - w_xx - u**3 = 0"], rp.Interval(0, length), ends,
                         parameters={"r": r}, exact={"u": "0", "w": "0"})  # fmt: skip
    known = np.sort(r - (1 - (np.arange(40) * np.pi / length) ** 2) ** 2)[::-1]
    found = stability(stripes, stripes.exact_solution, 3, algebraic=("w",))
    assert np.allclose(found.values.real, known[:3], atol=1e-7)
    branch = rp.continuation(stripes, "r", -0.02, 0.2, algebraic="w").branches[0]
    least = np.array([int((one + known - r > 0).sum()) for one in branch.parameters])
    assert (branch.unstable == least).all()
    assert np.allclose(branch.rates, branch.parameters + known[0] - r, atol=1e-8)
    with pytest.raises(rp.InputError, match="algebraic"):
        rp.continuation(stripes, "r", 0.0, 0.1, algebraic="v")
