"""TensorSystem of one-dimensional bases: identities of axes and Kronecker sums, accuracy, honest estimates, files."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pytest

from draws import FULL, some
from rannpde.domains import Box, SpaceTime
from rannpde.errors import InputError
from rannpde.loading import load
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.features.resolution import Resolution
from rannpde.pde.lines.method import Lines, discretisation, tensor_fits
from rannpde.pde.lines.settings import IterationSettings, data_step_limit
from rannpde.pde.lines.tensor.basis import AxisBasis, along, periodic_axis, random_axis
from rannpde.pde.lines.tensor.discretisation import TensorDiscretisation
from rannpde.pde.lines.tensor.kronecker import CoupledBlock, FieldBlock, KroneckerSolve, SchurFactors
from rannpde.pde.lines.tensor.length_scales import resolutions_of_data
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.evolution import Component, EndRow, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, Solution
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

EPS = float(np.finfo(float).eps)
SQUARE = {"x": (0, 1), "y": (0, 1)}
BY_PRODUCTS = Lines(windows=1)  # which Fourier modes do not have


def worst(solution: Solution) -> float:
    return max(solution.errors().values())


# ------------------------------------------------------------------------------------------------------ one axis


def drawn_axis(rows: list[EndRow], cutoff: float = 1e-12) -> AxisBasis:
    resolution = Resolution(Box(x=(0, 2)), np.full(LinesTuning().grid[0], 2.0))
    rule = resolution.rule(boundary=False)
    features = RandomFeatures.sample(width=60, dim=1, law=resolution.law(), rng=0, constant=True)
    nodes = rule.points[:, 0], rule.weights
    return random_axis((0.0, 2.0), features, nodes, rows, cutoff=cutoff, most=100)


ROWS = {
    "free": [],
    "Dirichlet": [EndRow(0.0, {0: 1.0}), EndRow(2.0, {0: 1.0})],
    "Neumann, Robin": [EndRow(0.0, {1: 1.0}), EndRow(2.0, {0: 2.0, 1: 1.0})],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_an_axis_is_orthonormal_and_satisfies_its_rows(rows):
    axis = drawn_axis(rows, cutoff=1e-8)
    gram = axis.tests @ axis.left
    assert np.abs(gram - np.eye(axis.rank)).max() < 100 * EPS
    for number, row in enumerate(rows):
        read = sum(c * axis.at(np.array([row.position]), order)[0] for order, c in row.coefficients.items())
        wanted = np.zeros(axis.functions)
        wanted[axis.rank + number] = 1.0
        assert np.abs(read - wanted).max() < 1e-5  # eps / cutoff, times the slope of the features


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_functions_are_recovered_with_their_boundary_values(rows):
    """The last coefficients of a smooth function are what the rows read off it."""
    axis = drawn_axis(rows)
    function = [np.exp(axis.nodes / 2) / 2**k for k in range(3)]
    coefficients = axis.fit @ function[0]
    for k in range(3):  # derivatives lose about the square of the rank each, most of it at the ends
        assert np.abs(axis.values(k) @ coefficients - function[k]).max() < 1e-9 * axis.rank ** (2 * k)
    for number, row in enumerate(rows):
        wanted = sum(c * np.exp(row.position / 2) / 2**order for order, c in row.coefficients.items())
        assert coefficients[axis.rank + number] == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_periodic_axis_is_orthonormal_and_differentiates_exactly(order):
    axis = periodic_axis((1.0, 3.0), 5)
    assert np.abs(axis.tests @ axis.left - np.eye(11)).max() < 100 * EPS
    coefficients = axis.fit @ np.sin(3 * np.pi * axis.nodes)
    found = axis.at(np.array([1.3, 2.2]), order) @ coefficients
    wanted = (3 * np.pi) ** order * np.sin(3 * np.pi * np.array([1.3, 2.2]) + order * np.pi / 2)
    assert found == pytest.approx(wanted, abs=1e-12 * (5 * np.pi) ** order)


def test_along_is_a_product_with_one_axis():
    rng = np.random.default_rng(0)
    tensor, matrix = rng.standard_normal((3, 4, 5, 2)), rng.standard_normal((6, 4))
    assert along(matrix, tensor, 1) == pytest.approx(np.einsum("ab,ibjs->iajs", matrix, tensor))
    assert along(matrix, tensor[..., 0, 0], 1) == pytest.approx(tensor[..., 0, 0] @ matrix.T)


# ------------------------------------------------------------------------------------------------ Kronecker sums


def kronecker_sum(matrices: list[np.ndarray]) -> np.ndarray:
    sizes = [len(matrix) for matrix in matrices]
    total = np.zeros((int(np.prod(sizes)),) * 2)
    for axis, matrix in enumerate(matrices):
        parts = [matrix if k == axis else np.eye(size) for k, size in enumerate(sizes)]
        total += reduce(np.kron, parts)
    return total


def some_matrix(size: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    matrix = rng.standard_normal((size, size))
    if kind == "symmetric":
        return matrix + matrix.T
    return matrix if kind == "general" else np.triu(np.ones((size, size))) * 3 + np.diag(np.arange(size) * 1e-4)


@pytest.mark.parametrize("kind", ["symmetric", "general", "defective"])
@pytest.mark.parametrize("shape", [(5,), (5, 4), (5, 4, 3)])
def test_kronecker_solves_agree_with_dense_ones(shape, kind):
    rng = np.random.default_rng(1)
    matrices = [some_matrix(size, kind, rng) for size in shape]
    factors = [SchurFactors.of(matrix) for matrix in matrices]
    assert all((one.triangle is not None) == (kind == "defective") for one in factors)
    shift, right = 20.0 + 3.0j, rng.standard_normal(shape)
    found = KroneckerSolve(factors, shift)(right).ravel()
    dense = shift * np.eye(right.size) - kronecker_sum(matrices)
    assert np.abs(dense @ found - right.ravel()).max() < 1e-11 * np.linalg.norm(dense)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_a_field_of_second_order_is_eliminated_exactly(kind):
    rng = np.random.default_rng(2)
    own, damping = ([some_matrix(size, kind, rng) for size in (4, 3)] for _ in range(2))
    block = FieldBlock((slice(0, 12), slice(12, 24)), (4, 3), tuple(own), tuple(damping))
    jacobian = np.block([[np.zeros((12, 12)), np.eye(12)], [kronecker_sum(own), kronecker_sum(damping)]])
    shift, right, out = 15.0 + 2.0j, rng.standard_normal(24), np.empty(24, dtype=complex)
    block.solver(shift)(right, out)
    assert np.abs(shift * out - jacobian @ out - right).max() < 1e-11


def test_components_that_share_eigenvectors_are_solved_together():
    rng = np.random.default_rng(3)
    base = [some_matrix(size, "symmetric", rng) for size in (4, 3)]
    size, numbers = 12, np.array([[1.0, -2.0], [0.5, 3.0]])
    links = {(i, j): [numbers[i, j] * m for m in base] for i in range(2) for j in range(2)}
    block = CoupledBlock.of((slice(0, size), slice(size, 2 * size)), (4, 3), links)
    assert block is not None
    jacobian = np.kron(numbers, kronecker_sum(base))
    assert block.growth() == pytest.approx(np.linalg.eigvals(jacobian).real.max())
    shift, right, out = 30.0 + 1.0j, rng.standard_normal(2 * size), np.empty(2 * size, dtype=complex)
    block.solver(shift)(right, out)
    assert np.abs(shift * out - jacobian @ out - right).max() < 1e-11


# ---------------------------------------------------------------------------------------------------- the system


def made(problem: Problem, tol: float = 1e-5) -> TensorSystem:
    evolution = evolution_form(problem)
    settings = IterationSettings(tol, LinesTuning(), Monitor(), data_step_limit(evolution, tol))
    return TensorDiscretisation(evolution, settings, np.random.default_rng(0)).system(tol)


EXACT = "exp(x - 2*y)*cos(t)"
REACTING = Problem(
    {
        "first": "u_t = (1 + x*y)*laplace(u) + u_xy - u*v_x + v**2",
        "second": "v_tt = 2*laplace(v) + sin(x)*v_t + u*v - u_y",
    },
    SpaceTime(t=(0, 1), **SQUARE),
    {
        "u at first": On("t=0", "u = exp(x - 2*y)"),
        "v at first": On("t=0", "v = cos(x)*y"),
        "speed": On("t=0", "v_t = x"),
        "u": On("boundary", f"u = {EXACT}"),
        "v": On("boundary", "dn(v) + v = t"),
    },
)


def test_products_take_the_values_and_derivatives_of_what_they_are_given():
    """With its boundary values, exp(x - 2y) is represented with all derivatives, at nodes and anywhere."""
    system = made(REACTING, 1e-9)
    state, start, points = system.initial_state(), np.zeros(1), np.random.default_rng(0).uniform(0, 1, (50, 2))
    wanted = np.exp(points @ [1.0, -2.0])
    for index, slack in (((0, 0), 1e-9), ((1, 0), 1e-7), ((0, 1), 1e-7), ((1, 1), 1e-6), ((2, 0), 1e-5)):
        factor = (-2.0) ** index[1]
        states = np.repeat(state[:, None], 50, axis=1)
        found = system.at(Component("u", 0), np.zeros(50), states, points, index, 0)
        assert found == pytest.approx(factor * wanted, abs=slack)
        grid = system.grids(Component("u", 0), start, state[:, None], index)[..., 0]
        nodes = np.exp(system.nodes @ [1.0, -2.0]).reshape(grid.shape)
        assert grid == pytest.approx(factor * nodes, abs=10 * slack)


def test_rates_of_many_times_are_those_of_blocks_between_which_the_time_is_asked(monkeypatch):
    """A step of Radau asks for the rates of all stages at once: on many nodes it must be possible to end in between."""
    system, asked, times = made(REACTING), [], np.linspace(0, 1, 7)
    states = np.random.default_rng(1).normal(size=(len(system.initial_state()), 7))
    whole = system.rates(times, states)
    monkeypatch.setattr("rannpde.pde.lines.tensor.system.checkpoint", lambda: asked.append(1))
    monkeypatch.setattr("rannpde.pde.lines.tensor.system.NODE_BLOCK", 2 * system.weights.size)
    assert system.rates(times, states) == pytest.approx(whole, rel=1e-9, abs=1e-9 * np.abs(whole).max())
    assert len(asked) == 4  # two times at once


def test_boundary_conditions_hold_at_every_time_whatever_the_state():
    system = made(REACTING)
    states = np.repeat(np.random.default_rng(0).standard_normal((system.unknowns, 1)), 40, axis=1)
    times, along_side = np.linspace(0, 1, 40), np.linspace(0.0, 1.0, 40)
    side = np.stack([np.ones(40), along_side], axis=1)
    value = system.at(Component("u", 0), times, states, side, (0, 0), 0)
    assert value == pytest.approx(np.exp(1 - 2 * along_side) * np.cos(times), abs=1e-4)
    rate = system.at(Component("u", 0), times, 0 * states, side, (0, 0), 1)
    assert rate == pytest.approx(-np.exp(1 - 2 * along_side) * np.sin(times), abs=1e-4)
    flux = sum(system.at(Component("v", 0), times, 0 * states, side, index, 0) for index in ((0, 0), (1, 0)))
    assert flux == pytest.approx(times, abs=1e-4)


def test_the_product_with_the_jacobian_is_the_derivative_of_the_rates():
    system = made(REACTING)
    rng = np.random.default_rng(0)
    state, change, now = system.initial_state(), rng.standard_normal(system.unknowns), np.array([0.3])
    operator = system.jacobian(0.3, state)
    assert not operator.exact
    step = 1e-5
    ahead, back = (system.rates(now, (state + s * step * change)[:, None])[:, 0] for s in (1, -1))
    wanted = (ahead - back) / (2 * step)
    assert np.abs(operator.product(change) - wanted).max() < 1e-7 * np.abs(wanted).max()
    both = operator.product(change + 2j * change)
    assert both == pytest.approx((1 + 2j) * operator.product(change))


def test_newton_systems_are_solved_to_what_krylov_steps_promise():
    system = made(REACTING)
    operator = system.jacobian(0.0, system.initial_state())
    matrix = np.stack([operator.product(unit) for unit in np.eye(system.unknowns)], axis=1)
    right = np.random.default_rng(0).standard_normal(system.unknowns)
    for shift in (300.0, 100.0 + 60.0j):
        wanted = np.linalg.solve(shift * np.eye(len(right)) - matrix, right)
        found = operator.shifted(shift)(right)
        assert np.linalg.norm(found - wanted) < 0.3 * np.linalg.norm(wanted)
        assert np.iscomplexobj(found) == np.iscomplexobj(shift)


def test_constant_coefficients_are_solved_exactly():
    system = made(zoo("heat", dim=2))
    operator = system.jacobian(0.0, system.initial_state())
    assert operator.exact
    assert system.fastest_growth(0.0, system.initial_state()) == pytest.approx(-0.4 * np.pi**2, rel=1e-6)
    right = np.random.default_rng(0).standard_normal(system.unknowns)
    found = operator.shifted(50.0)(right)
    assert np.abs(50.0 * found - operator.product(found) - right).max() < 1e-8


def test_each_axis_has_lengths_of_its_own():
    problem = Problem(
        "u_t = u_xx + u_yy",
        SpaceTime(t=(0, 1), **SQUARE),
        {"start": On("t=0", "u = sin(20*pi*x)*sin(pi*y)"), "walls": On("boundary", "u = 0")},
    )
    evolution = evolution_form(problem)
    settings = IterationSettings(1e-6, LinesTuning(), Monitor(), None)
    fine, coarse = (line.resolution.lengths_across for line in resolutions_of_data(evolution, settings))
    assert 10 < fine / coarse < 20
    shape = made(problem).shapes["u"]
    assert shape[0] > 4 * shape[1]


# --------------------------------------------------------------------------------------------- whole problems


def anisotropic() -> Problem:
    profile = "sin(8*pi*x)*sin(pi*y)"
    return Problem(
        "u_t = u_xx/2000 + u_yy/pi**2",
        SpaceTime(t=(0, 2), **SQUARE),
        {"start": On("t=0", f"u = {profile}"), "walls": On("boundary", "u = 0")},
        exact={"u": f"exp(-(64*pi**2/2000 + 1)*t)*{profile}"},
    )


def burgers() -> Problem:
    """A moving front with boundary values of its own (Fletcher)."""
    wave = "1 + exp((-4*x + 4*y - t)/(32*nu))"
    exact = {"u": f"3/4 - 1/(4*({wave}))", "v": f"3/4 + 1/(4*({wave}))"}
    conditions = {f"{name} at first": On("t=0", f"{name} = {value}") for name, value in exact.items()}
    conditions |= {f"{name} outside": On("boundary", f"{name} = {value}") for name, value in exact.items()}
    equations = {name: f"{name}_t + u*{name}_x + v*{name}_y = nu*laplace({name})" for name in exact}
    return Problem(equations, SpaceTime(t=(0, 0.5), **SQUARE), conditions, parameters={"nu": 0.05}, exact=exact)


def wave() -> Problem:
    first, second = "sin(pi*x)*sin(pi*y)", "sin(3*pi*x)*sin(2*pi*y)/2"
    return Problem(
        "u_tt = u_xx + 2*u_yy",
        SpaceTime(t=(0, 5), **SQUARE),
        {
            "start": On("t=0", f"u = {first} + {second}"),
            "speed": On("t=0", "u_t = 0"),
            "walls": On("boundary", "u = 0"),
        },
        exact={"u": f"cos(sqrt(3)*pi*t)*{first} + cos(sqrt(17)*pi*t)*{second}"},
    )


def variable_heat() -> Problem:
    exact = "exp(-t)*sin(x + 2*y) + t*x*y"
    source = "x*y - exp(-t)*sin(x + 2*y) + 5*(1 + x*y/2)*exp(-t)*sin(x + 2*y)"
    return Problem(
        f"u_t = (1 + x*y/2)*laplace(u) + {source}",
        SpaceTime(t=(0, 1), **SQUARE),
        {"start": On("t=0", "u = sin(x + 2*y)"), "walls": On("boundary", f"u = {exact}")},
        exact={"u": exact},
    )


def mixed() -> Problem:
    profile = "sin(2*pi*(x + t))*sin(pi*y)"
    return Problem(
        "u_t = laplace(u)/10 + u_x",
        SpaceTime(t=(0, 1), **SQUARE),
        {
            "start": On("t=0", "u = sin(2*pi*x)*sin(pi*y)"),
            "around": Periodic("x"),
            "walls": On(("y=0", "y=1"), "u = 0"),
        },
        exact={"u": f"exp(-pi**2*t/2)*{profile}"},
    )


def neumann_wave() -> Problem:
    exact, speed = "cos(2*t)*cos(pi*x)*cos(pi*y)", "(1 + cos(pi*x)/4)"
    return Problem(
        f"u_tt = {speed}*laplace(u) + (2*pi**2*{speed} - 4)*{exact}",
        SpaceTime(t=(0, 2), **SQUARE),
        {
            "start": On("t=0", "u = cos(pi*x)*cos(pi*y)"),
            "speed": On("t=0", "u_t = 0"),
            "walls": On("boundary", "dn(u) = 0"),
        },
        exact={"u": exact},
    )


def schroedinger() -> Problem:
    first, second = "sin(pi*x)*sin(pi*y)", "sin(2*pi*x)*sin(pi*y)"
    return Problem(
        {"real": "u_t = -laplace(v)", "imaginary": "v_t = laplace(u)"},
        SpaceTime(t=(0, 0.5), **SQUARE),
        {
            "u at first": On("t=0", f"u = {first} + {second}"),
            "v at first": On("t=0", "v = 0"),
            "u": On("boundary", "u = 0"),
            "v": On("boundary", "v = 0"),
        },
        exact={
            "u": f"cos(2*pi**2*t)*{first} + cos(5*pi**2*t)*{second}",
            "v": f"-sin(2*pi**2*t)*{first} - sin(5*pi**2*t)*{second}",
        },
    )


def cube_with_every_condition() -> Problem:
    exact = "exp(-t)*sin(x + y + z)"
    slope = "exp(-t)*cos(x + y + z)"
    return Problem(
        f"u_t = laplace(u) + 2*{exact}",
        SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1), z=(0, 1)),
        {
            "start": On("t=0", "u = sin(x + y + z)"),
            "x": On(("x=0", "x=1"), f"u = {exact}"),
            "y": On(("y=0", "y=1"), f"u_y = {slope}"),
            "low": On("z=0", f"2*u - u_z = 2*{exact} - {slope}"),
            "high": On("z=1", f"2*u + u_z = 2*{exact} + {slope}"),
        },
        exact={"u": exact},
    )


def oblique_diffusion() -> Problem:
    exact = "exp(x - y + t)"
    return Problem(
        "u_t = laplace(u) + u_xy",
        SpaceTime(t=(0, 1), **SQUARE),
        {"start": On("t=0", "u = exp(x - y)"), "walls": On("boundary", f"u = {exact}")},
        exact={"u": exact},
    )


WHOLE = {
    "heat": (partial(zoo, "heat", dim=2), 1e-9),
    "heat in a cube": (partial(zoo, "heat", dim=3), 1e-6),
    "anisotropic": (anisotropic, 1e-7),
    "burgers": (burgers, 1e-6),
    "wave": (wave, 1e-6),
    "variable heat": (variable_heat, 1e-8),
    "mixed": (mixed, 1e-8),
    "Neumann wave": (neumann_wave, 1e-7),
    "Schroedinger": (schroedinger, 1e-6),
    "every condition": (cube_with_every_condition, 1e-6 if FULL else 1e-3),
    "oblique diffusion": (oblique_diffusion, 1e-8),
}


@pytest.mark.parametrize("name", some(WHOLE, 6))
def test_tolerance_is_kept_and_the_estimate_is_honest(name):
    make, tol = WHOLE[name]
    solution = solve(make(), tol=tol, rng=1, method=BY_PRODUCTS)
    assert "products" in solution.method.label
    error = worst(solution)
    assert solution.converged
    assert error < tol
    assert error / 10 < solution.estimate < 10 * error


def test_draws_differ_and_are_reproducible():
    points = zoo("heat", dim=2).domain.sample(50, rng=0)
    heat = zoo("heat", dim=2)
    first, again, other = (solve(heat, tol=1e-5, rng=rng, method=BY_PRODUCTS)(points) for rng in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("make", some([mixed, wave, variable_heat], 2))
def test_saved_and_loaded_solutions_are_equal(make, tmp_path):
    problem = make()
    solution = solve(problem, tol=1e-4, rng=0)
    loaded = load(solution.save(tmp_path / "solution.rann"))
    points = problem.domain.sample(100, rng=1)
    for index in ((0, 0, 0), (1, 0, 0), (0, 1, 1)):
        wanted = solution.derivative(points, index)
        assert np.abs(loaded.derivative(points, index) - wanted).max() <= 1e-11 * np.abs(wanted).max()
    assert loaded.estimate == solution.estimate
    assert str(loaded.report()) == str(solution.report())


def test_windows_and_widths_are_taken():
    solution = solve(zoo("heat", dim=2), tol=1e-5, rng=0, method=Lines(windows=2, width=30))
    assert len(solution.function.segments) == 2
    assert worst(solution) < 1e-5


def test_what_products_cannot_do_stays_with_ridges():
    along_the_wall = Problem(
        "u_t = laplace(u)",
        SpaceTime(t=(0, 1), **SQUARE),
        {"start": On("t=0", "u = 0"), "x": On(("x=0", "x=1"), "u = 0"), "y": On(("y=0", "y=1"), "(1 + x)*u_y + u = 0")},
    )
    assert not tensor_fits(evolution_form(along_the_wall))
    for problem in (along_the_wall, zoo("porous_medium", dim=2, radius=0.3)):
        assert discretisation(evolution_form(problem)) is not TensorDiscretisation
    with pytest.raises(InputError, match="BDF"):
        solve(zoo("heat", dim=2), method=Lines(integrator="BDF"))


@pytest.mark.slow
def test_boundary_values_that_jump_in_a_corner_are_not_called_solved():
    with pytest.warns(UserWarning, match="corner"):
        problem = Problem(
            "u_t = laplace(u)",
            SpaceTime(t=(0, 0.1), **SQUARE),
            {"start": On("t=0", "u = 0"), "left": On("x=0", "u = t"), "others": On(("x=1", "y=0", "y=1"), "u = 0")},
        )
    with pytest.warns(ConvergenceWarning):
        solution = solve(problem, tol=1e-4, rng=0, method="lines")
    assert not solution.converged
    assert solution.estimate > 1e-3


@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_a_solution_that_grows_a_millionfold_keeps_its_digits(tol):
    """Errors made while it is small grow with it: the march is held to the size reached so far."""
    problem = Problem(
        "u_t = 60*(1 - 2*t)*u",
        SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)),
        {"start": On("t=0", "u = sin(pi*x)*sin(pi*y)"), "sides": On("boundary", "u = 0")},
        exact={"u": "exp(60*(t - t**2))*sin(pi*x)*sin(pi*y)"},
    )
    solution = solve(problem, tol=tol)
    error = max(solution.errors().values())
    assert solution.converged
    assert error < tol
    assert error / 10 < solution.estimate < 10 * error


# ------------------------------------------------------------------------------------------- axes that become finer


def steepening() -> Problem:
    """A reaction that makes fronts of a tenth of a wave out of two waves."""
    conditions = {"start": On("t=0", "u = 0.5*sin(4*pi*x)*sin(2*pi*y)"), "walls": On("boundary", "u = 0")}
    return Problem("u_t = 0.0005*laplace(u) + 8*(u - u**3)", SpaceTime(t=(0, 0.5), **SQUARE), conditions)


def products_for(problem: Problem, tol: float) -> TensorDiscretisation:
    form = evolution_form(problem)
    return TensorDiscretisation(form, IterationSettings(tol, LinesTuning(), Monitor(), None), np.random.default_rng(0))


def test_a_first_pass_refines_its_axes_where_fronts_arise():
    products = products_for(steepening(), 1e-3)
    found = products.run(1, 1e-2)
    ranks = [segment.system.rank for segment in found.segments]
    assert found.whole
    assert len(ranks) > 1
    assert ranks == sorted(ranks)
    edge = found.segments[0].trajectory.end  # nothing is lost from one segment to the next
    places = found.evolution.domain.space.sample(200, rng=0)
    before, after = (found(np.column_stack([np.full(200, edge + step), places]))[:, 0] for step in (0.0, 1e-9))
    assert np.linalg.norm(before - after) < 0.05 * np.linalg.norm(before)


def test_a_rule_has_a_few_nodes_for_every_function():
    system = products_for(steepening(), 1e-8).system(1e-8)
    for axis in system.first:
        assert axis.functions < len(axis.nodes) < 3.5 * axis.functions + 20  # whole cells of ten nodes
        gram = (axis.left * axis.weights[:, None]).T @ axis.left
        assert np.abs(gram - np.eye(axis.rank)).max() < 1e-12


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
def test_along_is_a_product_along_an_axis_whatever_comes_after(columns):
    rng = np.random.default_rng(0)
    matrix, tensor = rng.standard_normal((6, 4)), rng.standard_normal((3, 4, columns))
    for whole in (tensor, tensor + 1j * tensor):
        assert np.allclose(along(matrix, whole, 1), np.einsum("ab,xbs->xas", matrix, whole), rtol=1e-13, atol=1e-13)
