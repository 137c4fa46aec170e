"""Coefficients that vary: local solutions in cells, joined by least squares."""

from itertools import pairwise

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import seeds
from rannpde.pde.functions import Zero
from rannpde.pde.trefftz.varying.dissection import Dissection, NeighbourRows
from rannpde.pde.trefftz.varying.equation import VaryingEquation, varying_equation
from rannpde.pde.trefftz.varying.local import LocalOperator
from rannpde.pde.trefftz.varying.mesh import BoxMesh, first_mesh
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.pde.trefftz.varying.newton import (
    NEWTON_FACTORISATIONS,
    NoNewtonSolution,
    VaryingNewton,
    pilot_newton,
)
from rannpde.pde.trefftz.varying.polynomials import square_polynomials
from rannpde.pde.trefftz.varying.system import VaryingSystem

X, Y = sympy.symbols("x y")
FIELD = sympy.Function("u")(X, Y)
NAMES = {
    "Derivative(u(x, y), (x, 2))": "u_xx",
    "Derivative(u(x, y), (y, 2))": "u_yy",
    "Derivative(u(x, y), x, y)": "u_xy",
    "Derivative(u(x, y), x)": "u_x",
    "Derivative(u(x, y), y)": "u_y",
    "u(x, y)": "u",
}


def stated(formula):
    """A formula in the language of equations."""
    text = str(formula)
    for long, short in NAMES.items():
        text = text.replace(long, short)
    return text


def laplace(u):
    return sympy.diff(u, X, 2) + sympy.diff(u, Y, 2)


def helmholtz(k, conditions="boundary", tol=1e-6):
    """A plane wave with a varying amplitude in a medium whose index of refraction varies."""
    u = sympy.cos(k * (0.8 * X + 0.6 * Y)) * (1 + X * Y / 5)
    index = 1 + 0.3 * sympy.sin(X) * Y
    return problem_of(lambda v: laplace(v) + k**2 * index * v, u, ((0.0, 1.0), (0.0, 1.0)), conditions), u, tol


def problem_of(operator, u, bounds, kind="boundary"):
    """The problem whose solution is u."""
    (a, b), (c, d) = bounds
    box = rp.Box(x=(a, b), y=(c, d))
    sides = [f"x={a!r}", f"x={b!r}", f"y={c!r}", f"y={d!r}"]
    given = {"boundary": rp.On("boundary", f"u = {u}")}
    if kind != "boundary":
        scale = 1 / (b - a)
        flux = sympy.diff(u, X) if kind == "neumann" else sympy.diff(u, X) + scale * u
        left = "u_x" if kind == "neumann" else f"u_x + {scale!r}*u"
        given = {"values": rp.On(tuple(sides[k] for k in (0, 2, 3)), f"u = {u}"),
                 "flux": rp.On((sides[1],), f"{left} = {flux}")}  # fmt: skip
    return rp.Problem(f"{stated(sympy.expand(operator(FIELD).doit()))} = {operator(u)}", box, given)


def error(solution, u, bounds):
    low, high = np.array(bounds).T
    points = low + (high - low) * np.random.default_rng(3).random((2000, 2))
    exact = sympy.lambdify((X, Y), u, "numpy")(*points.T)
    return np.linalg.norm(solution(points).ravel() - exact) / np.linalg.norm(exact)


# ------------------------------------------------------------------------------------------------------- parts


def test_differentiation_of_orthonormal_polynomials():
    square = square_polynomials(7)
    places, step = np.array([-0.7, 0.1, 0.9]), 1e-6
    slopes = (square.along(places + step, 0) - square.along(places - step, 0)) / (2 * step)
    # the error of central differences is step² times the third derivative, at most 7⁶ times the values
    assert np.allclose(square.along(places, 1), slopes, atol=step**2 * 7**6 * 4)


def test_local_solutions_approximate_all_solutions_exponentially():
    """exp(xy/2) cos(k·x) with |k| = 20 is a solution, and a wave of another length is none."""
    equation = "laplace(u) - y*u_x - x*u_y + ((x**2 + y**2)/4 + 400)*u = 0"
    stated = varying_equation(rp.Problem(equation, rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"}))
    assert isinstance(stated, VaryingEquation)
    mesh = BoxMesh(np.array([[[0.2, 0.5], [0.1, 0.4]]]))
    missed = {20: [], 15: []}
    for degree in (8, 12, 16):
        square = square_polynomials(degree)
        found = LocalOperator(stated, square, mesh).solutions(0).homogeneous
        assert found.shape == (square.count, 2 * degree + 1)
        assert np.allclose(found.T @ found, np.eye(2 * degree + 1), atol=1e-12)
        x, y = (mesh.middles[0] + mesh.halves[0] * square.points).T
        for k, errors in missed.items():
            values = np.exp(x * y / 2) * np.cos(k * (0.6 * x + 0.8 * y))
            basis = square.table((0, 0)) @ found
            left = values - basis @ (basis.T @ (square.weights * values))
            errors.append(float(np.sqrt(square.weights @ left**2)))
    assert missed[20][2] < 1e-2 * missed[20][1] < 1e-4 * missed[20][0]
    assert missed[15][2] > 1e-2


def uneven_mesh():
    cells = BoxMesh(np.array([[[0.0, 1.0], [0.0, 2.0]], [[1.0, 3.0], [0.0, 2.0]]]))
    return cells.split([(0, 1), (1,)]).split([(0,), (), (1,), (), (0, 1), ()])


def test_faces_join_cells_of_all_sizes():
    mesh = uneven_mesh()
    sizes = np.prod(2 * mesh.halves, axis=1)
    assert sizes.sum() == pytest.approx(6.0)
    lengths = np.zeros(len(mesh))
    for face in mesh.faces:
        for cell in face.cells:
            lengths[cell] += face.length if cell >= 0 else 0.0
    assert np.allclose(lengths, 4 * mesh.halves.sum(axis=1))
    points = np.random.default_rng(0).random((300, 2)) * [3, 2]
    assert (np.abs(mesh.scaled(points, mesh.locate(points))) <= 1 + 1e-12).all()


def test_nested_dissection_is_least_squares():
    mesh, width, rng = uneven_mesh(), 3, np.random.default_rng(1)
    rows, dense = [], []
    for face in mesh.faces:
        cells = tuple(cell for cell in face.cells if cell >= 0)
        own = rng.standard_normal((4, width * len(cells)))
        rows.append(NeighbourRows(cells, own, rng.standard_normal(4)))
        full = np.zeros((4, len(mesh), width))
        full[:, list(cells)] = own.reshape(4, len(cells), width)
        dense.append(full.reshape(4, -1))
    matrix, rhs = np.concatenate(dense), np.concatenate([one.rhs for one in rows])
    factors = Dissection.of(rows, mesh.cells, width)
    expected = np.linalg.lstsq(matrix, rhs, rcond=None)[0]
    assert np.allclose(factors.solved().ravel(), expected, atol=1e-11)
    assert np.allclose(factors.corrected((matrix.T @ rhs).reshape(-1, width)).ravel(), expected, atol=1e-10)
    weights = 1 + rng.random(len(mesh))
    least = np.linalg.svd(matrix / np.repeat(weights, width), compute_uv=False)[-1]
    assert factors.smallest_singular_value(weights, 200) == pytest.approx(least, rel=1e-6)


def test_layers_have_cells_of_their_own():
    box = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("-1e-4*laplace(u) + (1 + y)*u_x = 1", box, {"boundary": "u = 0"})
    equation = varying_equation(problem)
    assert isinstance(equation, VaryingEquation)
    # towards the outflow the rate is b/ε; along the walls, between which nothing flows, √(b/(ε length))
    assert equation.layers[0, 1] == pytest.approx(2e4, rel=0.03)
    assert equation.layers[1, 1] == pytest.approx(np.sqrt(2e4), rel=0.03)
    mesh, _ = first_mesh(equation, 1e-6)
    first, second = mesh.lines
    assert 1 - first[-2] < 50 / 2e4 < 0.1 < first[1]
    assert 1 - second[-2] < 50 / np.sqrt(2e4)


# ------------------------------------------------------------------------------------------------------- solves


def test_waves_in_a_medium_that_varies(tmp_path):
    problem, u, tol = helmholtz(35.0)
    solution = rp.solve(problem, tol=tol)
    assert solution.converged
    assert solution.method.name == "trefftz"
    assert "coefficients that vary" in solution.report()
    assert error(solution, u, ((0, 1), (0, 1))) <= min(solution.estimate, tol)
    points = np.random.default_rng(0).random((50, 2))
    solution.save(tmp_path / "waves.npz")
    assert np.array_equal(rp.load(tmp_path / "waves.npz")(points), solution(points))
    step = 1e-5
    aside = np.array([step, 0.0])
    slopes = (solution(points + aside) - solution(points - aside)).ravel() / (2 * step)
    assert np.allclose(solution.function.derivative(points, (1, 0)).ravel(), slopes, atol=35**3 * step**2)


def test_slow_solutions_are_left_to_cells():
    problem, _, _ = helmholtz(3.0)
    assert not rp.Trefftz().obstacles(problem)
    assert "no faster than cells" in rp.Trefftz().drawbacks(problem)[0]


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("u_xx - u_yy + 900*(1 + x)*u = 1", "varies"),
        ("where(x < 0.31*sin(y), 1, 2)*u + laplace(u) = 1", "jump"),
        ("laplace(u) + u*u_xx = 1", "highest derivatives"),
        ("laplace(u) + 1/u = 1", "not finite"),
    ],
)
def test_what_is_left_to_others(equation, reason):
    problem = rp.Problem(equation, rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    assert reason in "; ".join(rp.Trefftz().obstacles(problem))


def test_a_resonance_is_told():
    """exp(xy/2) sin(4πx) sin(3πy) solves the homogeneous problem."""
    equation = f"laplace(u) - y*u_x - x*u_y + ((x**2 + y**2)/4 + {25 * np.pi**2!r})*u = 1 + x"
    problem = rp.Problem(equation, rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    with pytest.warns(rp.ConvergenceWarning, match="resonance"):
        solution = rp.solve(problem, tol=1e-6, method=rp.Trefftz())
    assert not solution.converged


def random_problem(seed):
    """An operator, a solution, a box, conditions and a tolerance, all by chance."""
    rng = np.random.default_rng(seed)
    size = 10 ** rng.uniform(-2, 2)
    lengths = size * rng.uniform(0.6, 1.4, 2)
    low = size * rng.uniform(-1, 1, 2)
    bounds = tuple((round(float(a), 4), round(float(b), 4)) for a, b in zip(low, low + lengths, strict=True))
    lengths = np.ptp(bounds, axis=1)
    s, t = (X - bounds[0][0]) / lengths[0], (Y - bounds[1][0]) / lengths[1]
    tol = 10 ** rng.uniform(-9, -2)
    kind = ["boundary", "neumann", "robin"][seed % 3]
    smooth = sympy.sin(rng.uniform(1, 3) * s + rng.uniform(1, 3) * t + rng.uniform(0, 6))
    index = 1 + rng.uniform(0.1, 0.5) * sympy.cos(rng.uniform(0.5, 3) * s) * t
    match rng.choice(["helmholtz", "screened", "advection", "conductivity"]):
        case "helmholtz":
            k, angle = rng.uniform(10, 70), rng.uniform(0, 6.28)
            u = sympy.cos(k * (np.cos(angle) * s + np.sin(angle) * t)) * (2 + smooth)
            return problem_of(lambda v: size**2 * laplace(v) + k**2 * index * v, u, bounds, kind), u, bounds, tol
        case "conductivity":
            k, angle = rng.uniform(10, 40), rng.uniform(0, 6.28)
            u = sympy.cos(k * (np.cos(angle) * s + np.sin(angle) * t))

            def divergence(v):
                flux = [size**2 * index * sympy.diff(v, one) for one in (X, Y)]
                return sympy.diff(flux[0], X) + sympy.diff(flux[1], Y) + k**2 * v

            return problem_of(divergence, u, bounds, kind), u, bounds, tol
        case "screened":
            width = 10 ** rng.uniform(-2.3, -1)
            u = smooth + sympy.exp(-s / width) + 2 * sympy.exp(-t / width)
            return (
                problem_of(lambda v: -((width * size) ** 2) * laplace(v) + index * v, u, bounds, kind),
                u,
                bounds,
                tol,
            )
        case _:
            width = 10 ** rng.uniform(-2.3, -1)
            u = smooth + sympy.exp(-t * (1 + s / 3) / width)

            def carried(v):
                flow = (1 + s / 3) * sympy.diff(v, Y)
                return size * width * laplace(v) + flow + index * sympy.diff(v, X) / 3

            return problem_of(carried, u, bounds), u, bounds, tol


@pytest.mark.parametrize("seed", seeds("varying", 2, 60))
def test_random_problems_are_within_their_estimates(seed):
    problem, u, bounds, tol = random_problem(seed)
    solution = rp.solve(problem, tol=tol, method=rp.Trefftz())
    assert solution.converged
    assert error(solution, u, bounds) <= min(tol, solution.estimate)


def test_limits_are_kept_and_told():
    problem, _, _ = helmholtz(200.0)
    with pytest.raises(rp.InputError, match="memory is too small"):
        rp.solve(problem, tol=1e-6, method=rp.Trefftz(), memory=5e7)
    singular = rp.Problem("laplace(u) + 900*u + u/(x - 0.5)**2 = 1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    assert "varies" in rp.Trefftz().obstacles(singular)[0]


# ------------------------------------------------------------------------------------------- shapes made of boxes


def l_shape(x=0.5, y=0.5):
    return rp.Box(x=(0, 1), y=(0, 1)) - rp.Box(x=(x, 2), y=(y, 2))


def test_cells_fill_a_shape_and_crowd_at_its_reentrant_corner():
    problem = rp.Problem("laplace(u) + 400*(1 + x)*u = 1", l_shape(0.6, 0.3), {"boundary": "u = 0"})
    equation = varying_equation(problem)
    assert isinstance(equation, VaryingEquation)
    ((corner, exponent),) = equation.singular
    assert np.allclose(corner, [0.6, 0.3])
    assert exponent == pytest.approx(2 / 3)
    mesh, _ = first_mesh(equation, 1e-3)
    assert np.prod(2 * mesh.halves, axis=1).sum() == pytest.approx(1 - 0.4 * 0.7)
    near = np.abs(mesh.cells - corner[:, None]).min(axis=2).max(axis=1) < 1e-12
    assert near.sum() == 3  # one cell in each quadrant of the domain
    assert mesh.halves[near].max() ** (4 / 3) < 1e-3
    walls = sum(face.length for face in mesh.faces if min(face.cells) < 0)
    assert walls == pytest.approx(4.0)
    outside = mesh.locate(np.array([[0.6 + 1e-3, 0.3 + 2e-3]]))[0]
    assert np.abs(mesh.middles[outside] - corner).max() < 0.01


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(l_shape(0.6, 0.3), id="l"),
        pytest.param(
            rp.Box(x=(0, 1), y=(0, 1)) - rp.Box(x=(0.3, 0.55), y=(0.4, 0.7)), id="hole", marks=pytest.mark.slow
        ),
    ],
)
def test_waves_on_shapes_made_of_boxes(shape):
    k, tol = 18.0, 1e-3
    u = sympy.cos(k * (0.8 * X + 0.6 * Y)) * (1 + X * Y / 5)
    index = 1 + 0.3 * sympy.sin(X) * Y
    load = laplace(u) + k**2 * index * u
    equation = f"{stated(sympy.expand(laplace(FIELD) + k**2 * index * FIELD))} = {load}"
    problem = rp.Problem(equation, shape, {"boundary": f"u = {u}"}, exact={"u": str(u)})
    assert "singular" in rp.Trefftz().drawbacks(problem)[0]  # the weak form is two to forty times faster
    solution = rp.solve(problem, tol=tol, method=rp.Trefftz())
    assert solution.converged
    assert max(solution.errors().values()) <= min(solution.estimate, tol)


def test_shapes_that_are_left_to_others():
    disc = rp.Problem("laplace(u) + 400*(1 + x)*u = 1", rp.Ball((0, 0), 1), {"boundary": "u = 0"})
    assert "not made of boxes" in varying_equation(disc)
    assert rp.Trefftz().obstacles(disc)


# ------------------------------------------------------------------------------------------------ Newton's method


def semilinear(operator, text, u, bounds=((0, 1), (0, 1)), kind="boundary"):
    """The problem whose solution is u, of an equation that is not linear."""
    linear = problem_of(laplace, u, bounds, kind)
    return rp.Problem(f"{text} = {operator(u)}", linear.domain, dict(linear.conditions), exact={"u": str(u)})


WAVY = sympy.sin(3 * X + Y) * sympy.exp(Y / 2)
SEMILINEAR = {
    "cubic": (lambda v: -laplace(v) + v**3, "-laplace(u) + u**3", WAVY, ((0, 1), (0, 1)), "boundary", 1e-9),
    "millimetres": (
        lambda v: -1e-6 * laplace(v) + v**3 + v, "-1e-6*laplace(u) + u**3 + u",
        sympy.sin(700 * X + Y), ((-0.002, 0.003), (0.0, 0.0041)), "robin", 1e-5,
    ),
    "gradient": (
        lambda v: -laplace(v) + sympy.diff(v, X) ** 2 + sympy.diff(v, Y) ** 2, "-laplace(u) + u_x**2 + u_y**2",
        WAVY, ((0.3, 1.1), (-0.2, 0.9)), "neumann", 1e-6,
    ),
    "carried": (
        lambda v: -0.07 * laplace(v) + v * sympy.diff(v, X), "-0.07*laplace(u) + u*u_x",
        1.3 + sympy.sin(2 * X) * sympy.cos(Y), ((0, 1), (0, 2)), "boundary", 1e-2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEMILINEAR)
def test_newton_steps_reach_the_solution(name):
    *statement, tol = SEMILINEAR[name]
    problem = semilinear(*statement)
    solution = rp.solve(problem, tol=tol, method="trefftz")
    assert solution.converged
    assert max(solution.errors().values()) <= min(tol, solution.estimate)


def test_what_newton_leaves_is_kept_in_files_and_reports(tmp_path):
    *statement, tol = SEMILINEAR["cubic"]
    solution = rp.solve(semilinear(*statement), tol=tol, method="trefftz")
    assert "Newton" in solution.report()
    solution.save(tmp_path / "cubic.npz")
    again = rp.load(tmp_path / "cubic.npz")
    points = np.random.default_rng(0).random((20, 2))
    assert np.array_equal(again(points), solution(points))
    assert again.history.lines() == solution.history.lines()


def test_the_tangent_is_the_derivative_of_the_residual():
    """A step with the tangent of a state leaves what is of second order in it."""
    *statement, _ = SEMILINEAR["cubic"]
    equation = varying_equation(semilinear(*statement))
    assert isinstance(equation, VaryingEquation)
    mesh = BoxMesh(np.array([[[0.0, 0.5], [0.0, 1.0]], [[0.5, 1.0], [0.0, 1.0]]]))
    newton = VaryingNewton(equation, mesh, 12, 1e-9)
    exact = newton.solved(equation.problem.exact_solution).network.coefficients
    again = VaryingNewton(equation, mesh, 12, 1e-15).solved(VaryingNetwork(mesh, 12, exact))
    assert again.steps <= 2  # from the solution on, steps are rounding
    assert again.algebra < 1e-12
    sizes = []
    for length in (1e-2, 1e-3):
        away = exact + length * newton.projected(Quadratic())
        here = equation.at(VaryingNetwork(mesh, 12, away))
        tangent = VaryingSystem(here, mesh, 12, away).factorised()
        step = tangent.solution() - away
        assert np.allclose(tangent.correction(away), step, atol=1e-9)
        sizes.append(newton.size(away + step - exact))
    assert sizes[1] < 1.1e-2 * sizes[0]


class Quadratic:
    def derivative(self, points, index):
        assert not any(index)
        return np.prod(points, axis=1, keepdims=True) + 1


def test_flows_lead_from_where_newton_fails():
    """At u = 0 the Allen–Cahn equation is indefinite, and no step of Newton's method helps."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("-0.0016*laplace(u) + u**3 - u = 0", box, {"boundary": "u = 1"}, exact={"u": "1"})
    solution = rp.solve(problem, tol=1e-6)
    assert solution.method.name == "trefftz"
    assert solution.converged
    assert max(solution.errors().values()) <= 1e-6


def test_a_guess_chooses_among_several_solutions():
    box = rp.Box(x=(0, 1), y=(0, 1.3))
    problem = rp.Problem("-0.3*laplace(u) + u**3 - u = 0", box, {"boundary": "dn(u) = 0"})
    for value in (1, -1):
        solution = rp.solve(problem, tol=1e-6, method=rp.Trefftz(guess={"u": f"{0.8 * value} + x/20"}))
        assert solution.converged
        assert np.allclose(solution(box.sample(20, rng=0)), value, atol=1e-6)
    linear, _, _ = helmholtz(30.0)
    with pytest.raises(rp.InputError, match="takes no guess"):
        rp.solve(linear, method=rp.Trefftz(guess={"u": "x"}))


def test_no_solution_is_none():
    """Bratu's problem on the unit square has none beyond λ = 6.81."""
    problem = rp.Problem("laplace(u) + 8*exp(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    with pytest.warns(rp.ConvergenceWarning, match="Newton"):
        solution = rp.solve(problem, tol=1e-3, method="trefftz")
    assert not solution.converged
    assert not solution.estimate < 1


def random_semilinear(seed):
    """An equation with one solution, that solution, a box, conditions and a tolerance, all by chance."""
    rng = np.random.default_rng([seed, 7])
    size = 10 ** rng.uniform(-2, 2)
    lengths = size * rng.uniform(0.6, 1.4, 2)
    low = size * rng.uniform(-1, 1, 2)
    bounds = tuple((round(float(a), 4), round(float(b), 4)) for a, b in zip(low, low + lengths, strict=True))
    s, t = ((one - a) / (b - a) for one, (a, b) in zip((X, Y), bounds, strict=True))
    width = 10 ** rng.uniform(-1.7, 0)
    area = float((width * size) ** 2)
    u = sympy.sin(rng.uniform(1, 3) * s + rng.uniform(1, 3) * t + rng.uniform(0, 6)) * rng.uniform(0.5, 2)
    u = u + sympy.exp(-s / width) * rng.uniform(0, 2)
    v, first = sympy.symbols("u u_x")
    index = 1 + rng.uniform(0.1, 0.5) * sympy.cos(rng.uniform(0.5, 3) * s) * t
    right = {
        "cubic": index * (v**3 + v),
        "exponential": sympy.exp(v) + index * v,
        "sine": 2 * v + index * sympy.sin(v),
        "carried": v + size * width * v * first / 5,
    }[["cubic", "exponential", "sine", "carried"][seed % 4]]
    load = -area * laplace(u) + right.subs({v: u, first: sympy.diff(u, X)})
    kind = ["boundary", "neumann", "robin"][seed % 3]
    linear = problem_of(laplace, u, bounds, kind)
    problem = rp.Problem(
        f"-{area!r}*laplace(u) + {right} = {load}", linear.domain, dict(linear.conditions), exact={"u": str(u)}
    )
    return problem, 10 ** rng.uniform(-9, -2)


@pytest.mark.parametrize("seed", seeds("semilinear", 2, 40))
def test_random_semilinear_problems_are_within_their_estimates(seed):
    problem, tol = random_semilinear(seed)
    solution = rp.solve(problem, tol=tol, method="trefftz")
    assert solution.converged
    assert max(solution.errors().values()) <= min(tol, solution.estimate)


@pytest.mark.parametrize("seed", seeds("far away", 4, 40))
def test_newton_steps_from_far_away(seed):
    """Where u³ is not felt yet, the first step is longer than the solution by orders of magnitude."""
    rng = np.random.default_rng([7, seed])
    size, rate = float(10 ** rng.uniform(0, 1.5)), float(rng.uniform(10, 60))
    a, b, c = rng.uniform(0.5, 3, 3).tolist()
    u = [size * X * Y, size * sympy.sin(a * X + b * Y + c), size * sympy.exp(-a * X - b * Y), size * (1 + X)][seed % 4]
    load = -laplace(u) + rate * u**3
    others = ("x=0", f"x={a!r}", "y=0")
    sides = [(sympy.diff(u, X), "u_x"), (sympy.diff(u, X), "u_x"), (sympy.diff(u, Y), "u_y")]
    conditions = {name: rp.On(name, f"{left} = {given}") for name, (given, left) in zip(others, sides, strict=True)}
    conditions["top"] = rp.On(f"y={b!r}", f"u = {u}")
    problem = rp.Problem(
        f"-laplace(u) + {rate!r}*u**3 = {load}", rp.Box(x=(0, a), y=(0, b)), conditions, exact={"u": str(u)}
    )
    solution = rp.solve(problem, tol=1e-2, method="trefftz", seconds=20)
    assert solution.converged, solution.reason
    assert solution.errors()["u"] <= solution.estimate


@pytest.mark.parametrize(("index", "load"), [(400, 1.0), (377.0, 2.5)])
def test_the_mesh_of_the_pilot_is_not_compared_with_itself(index, load):
    """Waves that hardly feel u²: the mesh on which they are solved first has the degree that the tolerance asks for."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem(f"laplace(u) + {index}*(1 + 0.01*u**2)*u = {load}", box, {"boundary": "u = 0"})
    solution = rp.solve(problem, tol=1e-3, method="trefftz", seconds=20)
    assert solution.converged, solution.reason
    degrees = [one.columns for one in solution.history.iterations]
    assert all(first != second for first, second in pairwise(degrees))


def test_a_fold_on_the_way_ends_newtons_method(monkeypatch):
    """The index of a strong wave passes a resonance on the way from no data: that is told soon."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    kerr = rp.Problem("laplace(u) + 400*(1 + 0.1*u**2)*u = 0", box, {"boundary": "u = cos(12*x + 16*y)"})
    equation = varying_equation(kerr)
    steps = []
    newton = pilot_newton(equation, Zero(1))
    damped = VaryingNewton._damped
    monkeypatch.setattr(VaryingNewton, "_damped", lambda *given: steps.append(1) or damped(*given))
    with pytest.raises(NoNewtonSolution, match="fold"):
        newton.solved(Zero(1))
    assert len(steps) < NEWTON_FACTORISATIONS / 4
