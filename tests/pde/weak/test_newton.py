"""Newton's method on the weak form: random manufactured problems, materials, tangents, loads without a solution."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq

import rannpde as rp
from draws import draws, some
from rannpde import On
from rannpde.pde.monitor import Status
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.tangent import TangentSystem

SQUARE = rp.Box(x=(0, 1), y=(0, 1))
X, Y = sp.symbols("x y")
CONDUCTIVITY = {
    "minimal surface": "(1 + u_x**2 + u_y**2)**(-0.5)", "p-Laplacian": "(u_x**2 + u_y**2)", "quadratic": "(1 + u**2)",
    "exponential": "exp(u)", "reaction": "1", "advection": "0.2", "shear": "(1 + u_x**2 + u_y**2)**0.25",
}  # fmt: skip
OTHER_TERMS = {"reaction": "- exp(u)", "advection": "- u*u_x + u*u_y"}


def manufactured(seed):
    """A random equation with a known smooth solution, on a random box or a box with a hole, and a tolerance."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(CONDUCTIVITY)))
    size = 10 ** rng.uniform(-0.7, 0.7)
    left, low = (rng.uniform(-1, 1, 2) * size).round(3)
    right, high = round(left + size, 3), round(low + size * rng.uniform(0.6, 1.6), 3)
    a, b, c = (rng.uniform(0.4, 1.5, 3) / size).round(3)
    by_slope = kind in ("minimal surface", "p-Laplacian", "shear")
    height = round(size * rng.uniform(0.3, 1.0) if by_slope else rng.uniform(0.3, 1.2), 3)
    exact = height * (sp.sin(a * X + b * Y) + sp.cos(c * X - a * Y) / 2)
    if kind == "p-Laplacian":  # its slopes vanish nowhere
        exact += round(1.2 * height / size, 3) * X
    words = {"u": exact, "u_x": sp.diff(exact, X), "u_y": sp.diff(exact, Y), "exp": sp.exp}
    factor, other = (sp.sympify(text, locals=words) for text in (CONDUCTIVITY[kind], OTHER_TERMS.get(kind, "0")))
    flux = [factor * words["u_x"], factor * words["u_y"]]
    right_side = sp.diff(flux[0], X) + sp.diff(flux[1], Y) + other
    equation = f"div({CONDUCTIVITY[kind]}*grad(u)) {OTHER_TERMS.get(kind, '')} = {right_side}"
    domain, mixed = rp.Box(x=(left, right), y=(low, high)), int(rng.integers(3))
    conditions = {"boundary": f"u = {exact}"}
    if mixed:
        spring = f"u**3/{round(height**2 * size, 3)}" if mixed == 2 else "0*u"
        given = flux[0] + sp.sympify(spring, locals=words)
        conditions = {"rest": On((f"x={left}", f"y={low}", f"y={high}"), f"u = {exact}")}
        conditions["free"] = On(f"x={right}", f"{CONDUCTIVITY[kind]}*dn(u) + {spring} = {given}")
    elif rng.random() < 0.4:
        middle = ((left + right) / 2, (low + high) / 2)
        domain = domain - rp.Ball(middle, 0.2 * min(right - left, high - low))
    return rp.Problem(equation, domain, conditions, exact={"u": str(exact)}), float(10 ** rng.uniform(-9, -2))


@pytest.mark.parametrize("seed", range(draws(2, 10)))
def test_random_equations_with_known_solutions(seed):
    problem, tol = manufactured(seed)
    solution = rp.solve(problem, tol=tol, method="weak")
    error = solution.errors()["u"]
    assert solution.converged
    assert error <= 3 * tol
    assert error <= 3 * solution.estimate + 1e-12


def stress(lam, mu):
    """The first Piola–Kirchhoff stress μ(F - F⁻ᵀ) + λ log J F⁻ᵀ of a plane neo-Hookean body, as text."""
    volume = "((1 + u_x)*(1 + v_y) - u_y*v_x)"
    factor = f"({lam}*log({volume}) - {mu})/{volume}"
    return [[f"({mu}*(1 + u_x) + {factor}*(1 + v_y))", f"({mu}*u_y - {factor}*v_x)"],
            [f"({mu}*v_x - {factor}*u_y)", f"({mu}*(1 + v_y) + {factor}*(1 + u_x))"]]  # fmt: skip


def block(width, height, stretch, lam, mu, *, clamped):
    """A block pulled along x, with ends that are clamped, or slide, and a floor that slides then."""
    (p, q), (r, s) = stress(lam, mu)
    ends = ["u = {}", "v = 0"] if clamped else ["u = {}", f"{r} = 0"]
    conditions = {
        "left": On("x=0", [ends[0].format(0), ends[1]]),
        "right": On(f"x={width}", [ends[0].format(stretch * width), ends[1]]),
        "top": On(f"y={height}", [f"{q} = 0", f"{s} = 0"]),
        "floor": On("y=0", [f"{q} = 0", f"{s} = 0" if clamped else "v = 0"]),
    }
    return rp.Problem([f"div({p}, {q}) = 0", f"div({r}, {s}) = 0"], rp.Box(x=(0, width), y=(0, height)), conditions)


@pytest.mark.parametrize(("scale", "stretch", "lam", "mu"), some([(0.013, 0.9, 2.3, 4.1), (1.0, 0.5, 10.0, 1.0)], 1))
def test_a_block_that_slides_is_stretched_uniformly(scale, stretch, lam, mu):
    solution = rp.solve(block(2 * scale, scale, stretch, lam, mu, clamped=False), tol=1e-3)
    # σ_yy = 0: μ (b - 1/b) + λ log(a b) / b with the stretches a, b
    thick = brentq(lambda b: mu * (b - 1 / b) + lam * np.log((1 + stretch) * b) / b, 0.1, 2.0)
    points = scale * np.array([[0.3, 0.7], [2.0, 1.0], [1.1, 0.2]])
    assert solution.method.name == "weak"
    assert solution.converged
    assert "not linear, with an energy" in solution.report()
    expected = points * [stretch, thick - 1]
    assert np.allclose(solution(points), expected, atol=1e-6 * scale)


def test_a_clamped_block_to_the_digits_of_a_finer_solution():
    solution = rp.solve(block(1.0, 1.0, 0.5, 10.0, 1.0, clamped=True), tol=1e-2)
    assert solution.converged
    # by cells of degree 9, graded towards the corners; the finer one agrees to 1e-7
    assert solution(np.array([[0.5, 1.0]]))[0, 1] == pytest.approx(-0.1727185, abs=5e-6)
    assert solution(np.array([[0.3, 0.3]]))[0] == pytest.approx([0.1242662, 0.0653431], abs=5e-6)


def test_the_tangent_is_the_derivative_of_the_residual():
    exact = "x*y + x"
    conditions = {
        "held": On(("x=0", "y=0"), f"u = {exact}"), "flux": On("x=1", "(1 + u**2)*u_x = (1 + (y + 1)**2)*(1 + y)"),
        "spring": On("y=1", "dn(u) + u**3 = x + 8*x**3"),
    }  # fmt: skip
    problem = rp.Problem("div((1 + u**2)*grad(u)) + u*u_x - u**2 = 1", SQUARE, conditions)
    form = weak_formulation(problem)
    settings, rng = WeakSettings(), np.random.default_rng(0)
    discretisation = WeakDiscretisation(form, 1e-4, settings, rng, lambda: None)
    layer = HiddenLayer.sample(2, 5, settings, rng)
    local = LocalMatrices(form, discretisation.mesh(discretisation.first().tree, layer), layer, lambda: None)
    system = TangentSystem(local, form.quasilinear)
    state = system.projected(lambda p: p[:, :1] * p[:, 1:] + p[:, :1])  # no jumps, which the tangent leaves out
    along = system.projected(lambda p: np.cos(2 * p[:, :1]) * np.exp(p[:, 1:]))
    _, tangent = system.linearise(state)
    step = 1e-5
    sides = [system.residual(state.moved(along, sign * step)) for sign in (1, -1)]
    slope = HybridState(*((getattr(sides[0], k) - getattr(sides[1], k)) / (2 * step) for k in ("weights", "traces")))
    assert system.relative(tangent.solve(slope).moved(along, -1.0), along) < 1e-4


@pytest.mark.parametrize(
    ("written", "fluxes"),
    [
        (
            "(3*u_x**2 + u_y**2)*u_xx + 4*u_x*u_y*u_xy + (u_x**2 + 3*u_y**2)*u_yy = -1",
            "div((u_x**2+u_y**2)*grad(u)) = -1",
        ),
        ("(2 + u)*u_xx + x*u_yy + u_x**2 = 0", "div((2 + u)*u_x, x*u_y) = 0"),
    ],
)
def test_equations_written_out_have_the_fluxes_of_their_divergence_form(written, fluxes):
    box = rp.Box(x=(1, 2), y=(0, 1))
    forms = [rp.Problem(text, box, {"boundary": "u = x + y"}).quasilinear for text in (written, fluxes)]
    rng = np.random.default_rng(0)
    state = rng.uniform(1, 2, (20, 2)), rng.uniform(-1, 1, (20, 1)), rng.uniform(-1, 1, (20, 1, 2))
    assert np.allclose(forms[0].terms(*state), forms[1].terms(*state))


@pytest.mark.parametrize("text", ["u_xx*u_yy - u_xy**2 = 1", "(1+u_y**2)*u_xx - 2*u_x*u_y*u_xy + (1+u_x**2)*u_yy = 0"])
def test_what_is_no_divergence_is_left_to_others(text):
    problem = rp.Problem(text, SQUARE, {"boundary": "u = x**2 + y**2"})
    assert isinstance(problem.quasilinear, NoDivergenceForm)
    assert rp.WeakCells().obstacles(problem)


def test_conditions_that_are_no_normal_flux_are_refused():
    conditions = {"held": On(("x=0", "y=0", "y=1"), "u = 0"), "odd": On("x=1", "u_x + u_y*u = 1")}
    (reason,) = rp.WeakCells().obstacles(rp.Problem("div((1 + u**2)*grad(u)) = 1", SQUARE, conditions))
    assert "odd" in reason


def test_a_load_without_a_solution_says_up_to_which_share_there_is_one():
    """-Δu = λ exp(u) on the unit square has solutions up to λ = 6.808 only."""
    for strength, exists in ((6.0, True), (9.0, False)):
        problem = rp.Problem(f"laplace(u) + {strength}*exp(u) = 0", SQUARE, {"boundary": "u = 0"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = rp.solve(problem, tol=1e-4, method="weak")
        assert solution.converged == exists
        if not exists:
            assert solution.status is Status.NEWTON
            assert "of the load" in solution.reason


def test_the_corner_of_an_l_is_solved_in_weak_form_by_default():
    corner = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
    problem = rp.Problem("laplace(u) = u**3 - 1", corner, {"boundary": "u = 0"})
    solution = rp.solve(problem, tol=1e-3)
    assert solution.method.name == "weak"
    assert solution.converged
    finer = rp.solve(problem, tol=1e-4, method="weak", rng=5)
    points = problem.domain.sample(500, rng=1)
    assert np.linalg.norm(solution(points) - finer(points)) <= 1e-3 * np.linalg.norm(finer(points))


@pytest.mark.slow
def test_a_single_cell_in_space():
    exact = "sin(x + y)*exp(0.5*z)"
    box = rp.Box(x=(0, 1), y=(0, 1), z=(0, 0.7))
    equation = f"laplace(u) - u**3 = -1.75*{exact} - ({exact})**3"
    solution = rp.solve(
        rp.Problem(equation, box, {"boundary": f"u = {exact}"}, exact={"u": exact}), tol=1e-2, method="weak"
    )
    assert solution.converged
    assert solution.errors()["u"] < 1e-2
