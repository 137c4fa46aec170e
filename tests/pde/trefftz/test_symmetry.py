"""Sides that are mirrors: unfolded domains against closed forms, and sides that only look like mirrors."""

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.trefftz.setting import trefftz_setting


def quarter_ring(centre, inner, outer):
    x, y = centre
    ring = rp.Ball(centre, outer, name="outer") - rp.Ball(centre, inner, name="inner")
    return ring & rp.Box(x=(x, x + 2 * outer), y=(y, y + 2 * outer))


def mirrors_of(problem):
    setting = trefftz_setting(problem)
    assert not isinstance(setting, str), setting
    return () if setting.unfolding is None else tuple((m.axis, m.signs) for m in setting.unfolding.group.mirrors)


# harmonic in X = x - a, Y = y - b, with the signs of its continuation at X = 0 and Y = 0; where it vanishes there, the
# conditions of all sides are of one kind, and nothing is gained by unfolding
HARMONIC = {
    "X**2 - Y**2 + log(X**2 + Y**2)": (1, 1),
    "X*Y*(1 + 1/(X**2 + Y**2)**2)": (-1, -1),
    "X + X/(X**2 + Y**2)": (-1, 1),
    "3*X**2*Y - Y**3": (1, -1),
}


@pytest.mark.parametrize("seed", range(draws(2, 6)))
def test_quarters_of_rings(seed):
    """Random sizes, units and positions; every kind of continuation; no singular point is left at two mirrors."""
    rng = np.random.default_rng(seed)
    formula, parities = list(HARMONIC.items())[seed % len(HARMONIC)]
    unit = float(10.0 ** rng.integers(-2, 3))
    a, b = (unit * rng.uniform(-2, 2, 2)).round(3).tolist()
    inner = unit * float(rng.uniform(0.2, 0.5))
    exact = formula.replace("X", f"((x - ({a!r}))/{unit!r})").replace("Y", f"((y - ({b!r}))/{unit!r})")
    sides = {
        f"{name}={place!r}": "u = 0" if parity < 0 else "dn(u) = 0"
        for name, place, parity in zip("xy", (a, b), parities, strict=True)
    }
    problem = rp.Problem(
        "laplace(u) = 0",
        quarter_ring((a, b), inner, unit),
        {**sides, "inner": f"u = {exact}", "outer": f"u = {exact}"},
        exact={"u": exact},
    )
    assert mirrors_of(problem) == tuple((axis, (1,)) for axis, parity in enumerate(parities) if parity > 0)
    solution = rp.solve(problem, tol=1e-9)
    assert solution.method.name == "trefftz"
    assert solution.converged
    assert solution.errors()["u"] < 1e-9
    if parities != (1, 1):
        return
    assert "poles at corners" not in solution.method.label
    corner = np.array([[a + inner, b]])
    slope = solution.derivative(corner, (1, 0))[0]
    step = 1e-4 * unit
    near = np.array([[a + inner + step, b], [a + inner + 2 * step, b]])
    known = problem.exact_solution(np.concatenate([corner, near]))[:, 0]
    expected = (-3 * known[0] + 4 * known[1] - known[2]) / (2 * step)
    assert slope == pytest.approx(expected, rel=1e-5, abs=1e-5 / unit)


def test_waves_are_continued():
    """J₀(kr) on a quarter of a disc, whose three corners are none."""
    disc = rp.Ball((0, 0), 1.0, name="rim") & rp.Box(x=(0, 2), y=(0, 2))
    problem = rp.Problem(
        "laplace(u) + 36*u = 0", disc, {"x=0": "u_x = 0", "y=0": "dn(u) = 0", "rim": "u = besselj(0, 6)"},
        exact={"u": "besselj(0, 6*sqrt(x**2 + y**2 + 1e-300))"},
    )  # fmt: skip
    assert mirrors_of(problem) == ((0, (1,)), (1, (1,)))
    solution = rp.solve(problem, tol=1e-9)
    assert solution.converged
    assert solution.errors()["u"] < 1e-9


def test_stress_concentration_of_a_hole(tmp_path):
    """Kirsch: three times the tension, on the quarter that every textbook computes."""
    from benchmarks.outputs import stress_concentration

    case = stress_concentration()
    assert mirrors_of(case.problem) == ((0, (-1, 1)), (1, (1, -1)))
    solution = rp.solve(case.problem, tol=1e-8)
    assert solution.method.name == "trefftz"
    factor = solution.outputs["factor"]
    assert solution.converged
    assert factor.converged
    assert abs(float(factor) - 3) <= factor.bound < 1e-9
    again = rp.load(solution.save(tmp_path / "plate.npz"))
    points = solution.stated.domain.sample(20, rng=1)
    assert np.array_equal(again(points), solution(points))


@pytest.mark.parametrize(
    ("left", "data", "mirror"),
    [
        ("dn(u) = 0", "y", True),
        ("2*u_x = 0", "exp(x**2)", True),
        ("dn(u) = 0", "x", False),
        ("3*u = 0", "x*y", True),
        ("3*u = 0", "y", False),
        ("u = 1", "y", False),
        ("dn(u) = 1", "y", False),
        ("dn(u) + 2*u = 0", "y", False),
        ("u_x + u_y = 0", "y", False),
    ],
)
def test_what_is_a_mirror(left, data, mirror):
    half = rp.Ball((0, 0), 1.0, name="rim") & rp.Box(x=(0, 2), y=(-2, 2))
    problem = rp.Problem("laplace(u) = 0", half, {"x=0": left, "rim": f"dn(u) + u = {data}"})
    assert bool(mirrors_of(problem)) == mirror


def test_a_line_with_two_conditions_is_no_mirror():
    """Motz: u = 0 turns into ∂_n u = 0 on one side."""
    box = rp.Box(x=(-7, 7), y=(0, 7))
    sides = {
        "left": rp.On("y=0 where x < 0", "u = 0"),
        "right": rp.On("y=0 where x > 0", "dn(u) = 0"),
        "end": rp.On("x=7", "u = 500"),
        "rest": rp.On(("y=7", "x=-7"), "dn(u) = 0"),
    }
    setting = trefftz_setting(rp.Problem("laplace(u) = 0", box, sides))
    assert all((mirror.axis, mirror.position) != (1, 0.0) for mirror in setting.unfolding.group.mirrors)


def test_sources_are_left_to_the_boundary_as_it_is():
    half = rp.Ball((0, 0), 1.0, name="rim") & rp.Box(x=(0, 2), y=(-2, 2))
    problem = rp.Problem("laplace(u) = x", half, {"x=0": "dn(u) = 0", "rim": "u = 0"})
    assert mirrors_of(problem) == ()


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_data_that_reflection_does_not_continue_smoothly(tol):
    """∂_x u = 0 on the flat side of a half disc and u = x on the round one: |cos θ| after reflection, with a kink."""
    half = rp.Ball((0, 0), 1.0, name="rim") & rp.Box(x=(0, 2), y=(-2, 2))
    problem = rp.Problem("laplace(u) = 0", half, {"x=0": "dn(u) = 0", "rim": "u = x"})
    assert not mirrors_of(problem)
    solution = rp.solve(problem, tol=tol)
    assert solution.converged
    points = half.sample(200, rng=3)
    z = points @ np.array([1.0, 1j])
    k = np.arange(1, 400)
    series = ((-1.0) ** (k + 1) / (4 * k**2 - 1) * z[:, None] ** (2 * k)).real.sum(axis=1)
    exact = 2 / np.pi + 4 / np.pi * series
    inside = np.abs(z) < 0.95  # where the series has converged
    assert np.abs(solution(points) - exact)[inside].max() < 3 * tol
