"""Evolutions in weak form: manufactured solutions, orders in time, walls, and what is refused."""

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import some
from rannpde import On
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.time.tableau import radau_tableau
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evolution import weak_evolution
from rannpde.pde.weak.integration import WeakIntegrator
from rannpde.pde.weak.semidiscrete import SemiDiscreteForm
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation

T, X, Y = sympy.symbols("t x y")


def plate(scale=1.0, at=(0.0, 0.0)):
    """A box without a disc, in any units and anywhere."""
    box = rp.Box(x=(at[0], at[0] + scale), y=(at[1], at[1] + 0.8 * scale))
    return box - rp.Ball((at[0] + 0.6 * scale, at[1] + 0.4 * scale), 0.2 * scale, names=("x", "y"))


def manufactured(exact, order, space, end=1.0, damping=0.0, diffusion=1.0):
    """∂_t^order u + damping u_t = diffusion Δu + f with values on some sides and fluxes on one."""
    low = float(np.asarray(space.bounds)[1, 0])
    source = sympy.diff(exact, T, order) - diffusion * (sympy.diff(exact, X, 2) + sympy.diff(exact, Y, 2))
    source += damping * sympy.diff(exact, T)
    rate = "u_t" if order == 1 else "u_tt"
    start = [f"u = {exact.subs(T, 0)}"] + [f"u_t = {sympy.diff(exact, T).subs(T, 0)}"] * (order > 1)
    return rp.Problem(
        f"{rate} + {damping}*u_t = {diffusion}*laplace(u) + {source}" if damping else
        f"{rate} = {diffusion}*laplace(u) + {source}",
        rp.SpaceTime(t=(0, end), x=space),
        {"start": On("t=0", start), "held": On(f"boundary except y={low!r}", f"u = {exact}"),
         "flux": On(f"y={low!r}", f"u_y = {sympy.diff(exact, Y)}")},
        exact={"u": str(exact)},
    )  # fmt: skip


@pytest.mark.parametrize(("order", "damping", "tol"), some([(1, 0.0, 1e-3), (1, 0.0, 1e-4), (2, 0.7, 1e-3)], 2))
def test_manufactured_solutions_on_a_plate_with_a_hole(order, damping, tol):
    exact = sympy.cos(2 * T) * sympy.sin(2 * X + Y) + T * X
    solution = rp.solve(manufactured(exact, order, plate(), damping=damping), tol=tol, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < tol
    assert solution.errors()["u"] < 10 * solution.estimate


def test_units_and_places_do_not_matter():
    scale, at = 2.7e-3, (0.31, -1.2)
    exact = sympy.exp(-T) * sympy.sin((2 * X + Y) / scale)
    problem = manufactured(exact, 1, plate(scale, at), diffusion=scale**2)
    solution = rp.solve(problem, tol=1e-3, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < 1e-3


@pytest.mark.parametrize("seed", some([0, 1], 1))
def test_a_system_of_two_fields_that_exchange(seed):
    """Constant in space: the energy of gradients is rounding, and errors are compared with the rest of the energy."""
    equations = ["u_t = laplace(u) - 2*(u - v)", "v_t = 3*laplace(v) + 2*(u - v)"]
    conditions = {"start": On("t=0", ["u = 1", "v = 0"]), "wall": On("boundary", ["dn(u) = 0", "dn(v) = 0"])}
    problem = rp.Problem(equations, rp.SpaceTime(t=(0, 1), x=plate()), conditions)
    solution = rp.solve(problem, tol=1e-5, method="weak", rng=seed)
    assert solution.converged
    values = solution(np.array([[0.3, 0.1, 0.1], [1.0, 0.9, 0.7]]))
    decay = np.exp(-4 * np.array([0.3, 1.0]))
    assert np.abs(np.array(values).reshape(2, 2) - np.stack([(1 + decay) / 2, (1 - decay) / 2], axis=1)).max() < 1e-5


def test_an_absorbing_wall_lets_a_wave_out():
    """u = f(x - t) on a strip: u_t + dn(u) = 0 on the right is exact for waves that go there."""
    wave = "exp(-15*(x - t - 0.4)**2)"
    conditions = {
        "start": On("t=0", ["u = exp(-15*(x - 0.4)**2)", "u_t = 30*(x - 0.4)*exp(-15*(x - 0.4)**2)"]),
        "in": On("x=0", f"u = {wave}"), "out": On("x=1", "u_t + u_x = 0"), "sides": On(("y=0", "y=0.3"), "dn(u) = 0"),
    }  # fmt: skip
    space = rp.Box(x=(0, 1), y=(0, 0.3))
    problem = rp.Problem("u_tt = laplace(u)", rp.SpaceTime(t=(0, 1), x=space), conditions, exact={"u": wave})
    solution = rp.solve(problem, tol=1e-3, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < 1e-3


def test_the_order_in_time_is_that_of_radau():
    """Errors at the end fall like h^(2s - 1), s = 3, where the solution in space is exact."""
    problem = rp.Problem(
        "u_t = laplace(u) + cos(9*t)", rp.SpaceTime(t=(0, 1), x=rp.Box(x=(0, 1), y=(0, 1))),
        {"start": On("t=0", "u = 0"), "wall": On("boundary", "dn(u) = 0")},
    )  # fmt: skip
    evolution = weak_evolution(problem)
    space = WeakDiscretisation(evolution.still, 1e-3, WeakSettings(), np.random.default_rng(0), lambda: None, 3)
    layer = HiddenLayer.sample(2, 3, space.settings, space.rng)
    system = SemiDiscreteForm(evolution, space.mesh(space.first().tree, layer), layer, lambda: None)
    zero = np.zeros((system.mesh.count, system.size))
    integrator = WeakIntegrator(system, radau_tableau(3), 1.0)
    errors = []
    for count in (4, 8, 16):
        state = zero
        for step in range(count):
            state = integrator.stages(step / count, 1 / count, state, zero)[0][-1]
        one = system.projected(lambda points: np.ones((len(points), 1)))[0]
        errors.append(system.norms((state - np.sin(9) / 9 * one)[None])[0, 0])
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates[-1] > 4.6


@pytest.mark.parametrize(("equation", "reason"), [
    ("u_t = (1 + t)*laplace(u)", "change in time"), ("u_t = laplace(u) + u**2", "not linear"),
    ("u_t = laplace(u) + u_xxt", "derivatives|order"),
])  # fmt: skip
def test_what_does_not_apply_is_refused_with_the_reason(equation, reason):
    conditions = {"start": On("t=0", "u = 1"), "wall": On("boundary", "u = 1")}
    problem = rp.Problem(equation, rp.SpaceTime(t=(0, 1), x=plate()), conditions)
    with pytest.raises(NoDivergenceForm, match=reason):
        weak_evolution(problem)


def test_a_solve_that_runs_out_of_time_gives_what_it_has(tmp_path):
    exact = sympy.cos(40 * T) * sympy.sin(9 * X + Y)
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(manufactured(exact, 2, plate(), end=3.0), tol=1e-8, seconds=2.0, method="weak")
    assert not solution.converged


@pytest.mark.parametrize(
    ("start", "walls", "layer"),
    [
        ("u = 0", {"wall": On("boundary", "dn(u) = 1 - u")}, True),
        ("u = 0", {"hole": On("hole", "u = 1"), "rest": On("boundary except hole", "dn(u) = 0")}, True),
        ("u = x*y", {"wall": On("boundary", "u = x*y*exp(-t)")}, False),
        ("u = 0", {"hole": On("hole", "u = sin(t)"), "rest": On("boundary except hole", "dn(u) = 0")}, False),
        ("u = 3 + 1e-3*x", {"wall": On("boundary", "dn(u) = 0")}, True),
        ("u = 3", {"wall": On("boundary", "dn(u) = 0")}, False),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 3.7e-4])
def test_initial_values_that_contradict_the_boundary_ask_for_the_weak_form(start, walls, layer, scale):
    hole = rp.Ball((0.6 * scale, 0.4 * scale), 0.2 * scale, names=("x", "y"), name="hole")
    space = rp.Box(x=(0, scale), y=(0, 0.8 * scale)) - hole
    problem = rp.Problem(
        "u_t = laplace(u)", rp.SpaceTime(t=(0, scale**2), x=space), {"start": On("t=0", start), **walls}
    )
    assert weak_evolution(problem).starts_with_layer is layer
    assert (rp.WeakCells().drawbacks(problem) == ()) is layer


def test_products_of_real_matrices_with_complex_vectors():
    """By kinds, of which the first ones have one cell each, and the inverses by modes are those of the matrices."""
    problem = manufactured(sympy.exp(-T) * sympy.sin(X), 1, plate())
    evolution = weak_evolution(problem)
    space = WeakDiscretisation(evolution.still, 1e-2, WeakSettings(), np.random.default_rng(0), lambda: None)
    layer = HiddenLayer.sample(2, 4, space.settings, space.rng, space.curved)
    system = SemiDiscreteForm(evolution, space.mesh(space.first().tree, layer), layer, lambda: None)
    rng = np.random.default_rng(1)
    for group, modes in zip(system.groups, system.modes, strict=True):
        count, size = len(group.batch.cells), group.square.shape[1]
        vectors = rng.standard_normal((count, size)) + 1j * rng.standard_normal((count, size))
        wanted = np.matmul(group.of_cells(group.square), vectors[:, :, None])[:, :, 0]
        assert np.allclose(group.times(group.square, vectors), wanted, rtol=1e-12)
        assert modes is not None
        for shift in (3.0, 20.0 - 50.0j):
            found = modes.weights(modes.at(shift).times(modes.loads(vectors)))
            back = group.times(group.square + shift * group.masses[0], found)
            assert np.linalg.norm(back - vectors) < 1e-8 * np.linalg.norm(vectors)
