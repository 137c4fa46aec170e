"""Solids: errors are within estimates that rest on the sampling of the boundary."""

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import seeds
from rannpde.pde.trefftz.least_squares import least_squares
from rannpde.pde.trefftz.space import SpaceIteration

OPERATORS = {"laplace": (0.0, "1/{r}"), "helmholtz": (1.0, "cos({k}*{r})/{r}"), "screened": (-1.0, "exp(-{k}*{r})/{r}")}


def solid(kind: str, rng: np.random.Generator, unit: float, at: np.ndarray):
    """A solid of about the given size about a point."""
    if kind == "ball":
        return rp.Ball(tuple(at), unit)
    if kind == "shell":
        return rp.Ball(tuple(at), unit) - rp.Ball(tuple(at + 0.2 * unit), 0.25 * unit)
    if kind == "torus":
        x, y, z = (f"({name} - ({float(value)!r}))" for name, value in zip("xyz", at, strict=True))
        tube = unit * float(rng.uniform(0.25, 0.4))
        within = rp.Box(
            **{name: (float(c - 1.5 * unit), float(c + 1.5 * unit)) for name, c in zip("xyz", at, strict=True)}
        )
        return rp.Implicit(f"(sqrt({x}**2 + {y}**2) - {unit!r})**2 + {z}**2 < {tube!r}**2", within=within)
    half = unit * rng.uniform(0.7, 1.0, 3)
    box = rp.Box(**{n: (float(c - h), float(c + h)) for n, c, h in zip("xyz", at, half, strict=True)})
    return box - rp.Ball(tuple(at), 0.3 * unit) if kind == "box with a hole" else box


@pytest.mark.parametrize("number", seeds("solids", 3, 60))
def test_errors_on_random_solids_are_within_their_estimates(number: int) -> None:
    """Sizes over four decades, positions, operators, tolerances and mixed conditions at random."""
    rng = np.random.default_rng([31, number])
    kind = ["ball", "box", "box with a hole", "torus", "shell"][number % 5]
    unit = float(10 ** rng.uniform(-2, 2))
    at = unit * rng.uniform(-3, 3, 3)
    sign, form = OPERATORS[sorted(OPERATORS)[int(rng.integers(3))]]
    wave_number = float(rng.uniform(1, 6)) / unit
    away = rng.normal(size=3)
    source = at + away / np.linalg.norm(away) * unit * rng.uniform(2.3, 3)
    r = "sqrt(" + " + ".join(f"({n} - ({float(v)!r}))**2" for n, v in zip("xyz", source, strict=True)) + ")"
    exact = f"{unit!r}*" + form.format(k=repr(wave_number), r=r)
    domain, conditions = solid(kind, rng, unit, at), {"boundary": f"u = {exact}"}
    if kind == "box":  # whose first side is that of the smallest x
        first, *others = domain.sides
        slope = sympy.diff(sympy.sympify(exact), sympy.Symbol("x"))
        robin = f"u - {unit!r}*u_x = {exact} - {unit!r}*({slope})"
        conditions = {"first": rp.On(first, robin), "others": rp.On(tuple(others), f"u = {exact}")}
    equation = f"laplace(u) + ({sign * wave_number**2!r})*u = 0"
    problem = rp.Problem(equation, domain, conditions, exact={"u": exact})
    solution = rp.solve(problem, tol=float(10.0 ** -rng.integers(2, 6)), method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] <= solution.estimate


@pytest.mark.parametrize("gap", [1e-1, 1e-3, -1e-5])
def test_estimates_hold_near_an_eigenvalue_of_the_ball(gap: float) -> None:
    """sin(kr)/r vanishes on the unit sphere for k = π: the closer k is, the more a boundary error is amplified."""
    k, r = float(np.pi + gap), "sqrt((x - 1.4)**2 + (y - 0.9)**2 + (z + 0.8)**2)"
    exact = f"cos({k!r}*{r})/{r}"
    problem = rp.Problem(
        f"laplace(u) + {k**2!r}*u = 0", rp.Ball((0, 0, 0), 1), {"boundary": f"u = {exact}"}, exact={"u": exact}
    )
    solution = rp.solve(problem, tol=1e-4, method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] <= solution.estimate


def test_the_deviation_is_that_of_errors_at_single_rows() -> None:
    """Against the spread of solutions whose right-hand sides have errors of the sizes of the residual."""
    rng = np.random.default_rng(3)
    matrix, inside = rng.normal(size=(300, 60)), rng.normal(size=(90, 60))
    sizes = np.exp(rng.normal(size=300))
    clean = matrix @ rng.normal(size=60)
    found = least_squares(matrix.copy(), clean + sizes * rng.choice([-1.0, 1.0], 300))
    told = found.deviation(found.responses(inside)) * np.linalg.norm(found.residual)
    noise = found.residual[:, None] * rng.choice([-1.0, 1.0], (300, 2000))
    spread = inside @ np.linalg.lstsq(matrix, noise, rcond=None)[0]
    measured = float(np.sqrt(np.square(spread).sum(axis=0).mean()))
    assert told == pytest.approx(measured, rel=0.15)  # √(2/64) of 90 responses, most of which are averaged


def test_growth_follows_the_errors_and_is_the_cheapest_where_nothing_is_known() -> None:
    first, second = SpaceIteration(100, 9, 1e-2), SpaceIteration(200, 13, 1e-2 / 2**5)
    assert second.growth(first, second.error / 32, 2.2) == pytest.approx(2.0)  # the fifth power of the number
    assert second.growth(first, 1e-9, 2.2) == 2.2
    grid = np.linspace(1.05, 3, 2000)
    assert second.growth(None, 1e-9, 2.2) == pytest.approx(grid[np.argmin(grid**3 / np.log(grid))], abs=1e-2)
    assert first.rate(second) == pytest.approx(5 * np.log(2) / 4)
    assert second.rate(first) == 0.0


def test_one_factorisation_tells_the_errors_of_all_lower_degrees() -> None:
    """Against a factorisation for each of them."""
    rng = np.random.default_rng(5)
    orders = np.repeat(np.arange(-1, 9), 5)
    matrix, rhs = rng.normal(size=(120, len(orders))), rng.normal(size=120)
    (gains,) = least_squares(matrix.copy(), rhs).gains
    squares = gains.truncated(orders, 8)
    for degree in range(9):
        own = matrix[:, orders <= degree]
        left = rhs - own @ np.linalg.lstsq(own, rhs, rcond=None)[0]
        assert squares[degree] == pytest.approx(left @ left * 120 / (120 - own.shape[1]))


@pytest.mark.parametrize("number", seeds("decay", 2, 30))
def test_degrees_come_from_the_decay(number: int) -> None:
    """With or without symmetries the second iteration is enough, and not by many digits."""
    rng = np.random.default_rng([41, number])
    unit = float(10 ** rng.uniform(-1, 2))
    wave_number, tol = float(rng.uniform(0, 5)) / unit, float(10.0 ** -rng.integers(4, 6))
    shift = 0.1 * unit * rng.normal(size=3) * (number % 2)
    half = unit * rng.uniform(0.8, 1.0, 3)
    box = rp.Box(**{n: (float(-h), float(h)) for n, h in zip("xyz", half, strict=True)})
    shape = box - rp.Ball(tuple(shift.tolist()), 0.35 * unit)
    away = rng.normal(size=3)
    source = away / np.linalg.norm(away) * unit * rng.uniform(2.2, 3)
    r = "sqrt(" + " + ".join(f"({n} - ({float(v)!r}))**2" for n, v in zip("xyz", source, strict=True)) + ")"
    exact = f"cos({wave_number!r}*{r})/{r}"
    problem = rp.Problem(
        f"laplace(u) + {wave_number**2!r}*u = 0", shape, {"boundary": f"u = {exact}"}, exact={"u": exact}
    )
    solution = rp.solve(problem, tol=tol, method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] <= solution.estimate
    assert len(solution.history.iterations) <= 3
    assert solution.estimate > 1e-3 * tol
