"""Dual-weighted residuals: adjoints, derivatives of outputs, bounds of random problems, cells where they are needed."""

import os

import numpy as np
import pytest

import rannpde as rp
from pde.outputs.dual_weighted import drawn_problem, weighted_draw
from rannpde.pde.weak.adjoint import LinearAdjoint
from rannpde.pde.weak.assembly import HybridSystem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evaluation import weak_network
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.functionals import weightable_outputs
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or 4
"""Random problems; RANNPDE_FUZZ draws more of them."""
L_SHAPE = rp.Polygon([(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)])
FLUX = -0.275026214990
"""Of -Δu = 1, u = 0 on the L-shape through x = 1: by a Trefftz network, ± 4e-11."""
ADVECTION = "-div((2 + x)*grad(u)) + 3*u_x - y*u_y + u = 1"


def coarse(problem: rp.Problem, degree: int = 4) -> tuple[HybridSystem, HybridState]:
    """A system on the first mesh that keeps its matrices, and its solution."""
    weak = WeakDiscretisation(weak_formulation(problem), 0.1, WeakSettings(), np.random.default_rng(0), lambda: None)
    layer = HiddenLayer.sample(2, degree, WeakSettings(), np.random.default_rng(1), weak.curved)
    local = LocalMatrices(weak.form, weak.mesh(weak.first().tree, layer), layer, lambda: None)
    system = HybridSystem(local, keep=True)
    found = system.solve()
    return system, HybridState(found.weights, found.traces)


@pytest.mark.parametrize("seed", [3, 4, None])
def test_adjoint_and_solution_have_the_same_product(seed):
    """B u = f and Bᵀ z = j give j·u = f·z, whatever the form: symmetric, of a system, with advection."""
    if seed is None:
        sides = {"left": rp.On("x=0", "u = y"), "rest": rp.On("boundary except x=0", "(2 + x)*dn(u) + u = 1")}
        problem = rp.Problem(ADVECTION, rp.Box(x=(0, 1), y=(0, 1)), sides)
    else:
        problem, _ = drawn_problem(seed)
    system, solution = coarse(problem)
    load = np.random.default_rng(2).normal(size=solution.weights.shape)
    adjoint = LinearAdjoint(system).solve(load)
    stated = np.zeros_like(load)
    for batch, found, _ in system.eliminations:
        stated[batch.cells] = found.load.reshape(len(batch.cells), *load.shape[1:])
    one, other = float(np.vdot(load, solution.weights)), float(np.vdot(stated, adjoint.weights))
    assert one == pytest.approx(other, rel=1e-8)


@pytest.mark.parametrize(
    "output",
    [
        rp.Output("u"),
        rp.Output("x*u**2 + u_x", kind="mean"),
        rp.Output("u", on="x=2"),
        rp.Output("(1 + x)*dn(u)", on="x=1"),
        rp.Output("y*(1 + x)*dn(u) + u", on=("x=1", "y=0")),
        rp.Output("u", on=rp.Ball((1.5, 0.4), 0.2)),
        rp.Output("u_y", on=((1.1, 0.1), (1.7, 0.9)), kind="mean"),
        rp.Output("u*u_x", at=(1.3, 0.6)),
        rp.Output("u(1.2, 0.5)**2 - u_x(1.4, 0.1)"),
    ],
    ids=str,
)
def test_the_load_is_the_derivative_of_the_output(output):
    sides = {
        "held": rp.On(("x=1", "y=0"), "u = x*y"),
        "free": rp.On("boundary except x=1, y=0", "(1 + x)*dn(u) + 2*u = 1"),
    }
    problem = rp.Problem("-div((1 + x)*grad(u)) = 1", rp.Box(x=(1, 2), y=(0, 1)), sides, outputs={"q": output})
    system, solution = coarse(problem)
    local, stated = system.local, weightable_outputs(problem)["q"]

    def at(weights):
        return stated.linearised(local, weights, weak_network(local, HybridState(weights, solution.traces)))

    step, rel = 1e-4 * np.random.default_rng(3).normal(size=solution.weights.shape), 1e-6
    if not stated.region or (not stated.region.sided and output.on is not None):
        step, rel = 1e-2 * solution.weights, 1e-3  # rules that cross cells are made for functions with small jumps
    change = at(solution.weights + step).value - at(solution.weights - step).value
    load = at(solution.weights).load
    assert change == pytest.approx(2 * float(np.vdot(load, step)), rel=rel, abs=1e-11)


@pytest.mark.parametrize("seed", range(COUNT))
def test_errors_are_within_bounds(seed):
    draw = weighted_draw(seed)
    assert draw.weighted
    assert draw.solution.converged
    assert draw.effectivity >= 1, draw
    assert float(draw.quantity.relative_bound) <= draw.tol


@pytest.fixture(scope="module")
def flux():
    problem = rp.Problem(
        "laplace(u) = -1", L_SHAPE, {"boundary": "u = 0"}, outputs={"flux": rp.Output("dn(u)", on="edge4")}
    )
    return rp.solve(problem, tol={"flux": 1e-5}, method="weak")


def test_the_flux_through_one_side_of_an_l_shape(flux, tmp_path):
    found = flux.outputs["flux"]
    assert flux.converged
    assert found.how == "dual-weighted residual"
    assert abs(float(found) - FLUX) <= found.bound <= 1e-5 * abs(FLUX)
    assert "dual-weighted" in flux.report()
    again = rp.load(flux.save(tmp_path / "flux.rann"))
    assert again.outputs["flux"].value == found.value
    assert again.history.weighted == flux.history.weighted


def test_cells_are_small_where_the_output_needs_them():
    """Two re-entrant corners: the flux through a side that ends at one of them asks for that one."""
    comb = rp.Polygon([(0, 0), (10, 0), (10, 1), (8, 1), (8, 2), (2, 2), (2, 1), (0, 1)])
    right = next(name for name, side in comb.sides.items() if (side.sample(3, rng=0)[:, 0] == 8).all())
    problem = rp.Problem("laplace(u) = -1", comb, {"boundary": "u = 0"}, outputs={"flux": rp.Output("dn(u)", on=right)})
    solution = rp.solve(problem, tol={"flux": 1e-6}, method="weak")
    boxes = solution.function.boxes
    middles, sizes = boxes.mean(axis=2), np.diff(boxes, axis=2)[:, :, 0].max(axis=1)
    near, far = (sizes[np.linalg.norm(middles - np.array(corner), axis=1) < 0.7].min() for corner in ((8, 1), (2, 1)))
    assert solution.converged
    assert far >= 4 * near


def test_a_non_linear_problem_is_linearised():
    u = "sin(2*x + y) + x*y"
    exact = {"u": u}
    source = rp.Problem("u_xx = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"}, exact=exact)
    values = source.exact_solution(np.array([[0.3, 0.6]]))[0, 0]
    stated = "-div((1 + u**2)*grad(u)) = -2*w*(gx**2 + gy**2) + 5*(1 + w**2)*s"
    for name, text in (("w", f"({u})"), ("gx", "(2*cos(2*x + y) + y)"), ("gy", "(cos(2*x + y) + x)")):
        stated = stated.replace(name, text)
    stated = stated.replace("*s", "*sin(2*x + y)")
    problem = rp.Problem(stated, source.domain, {"boundary": f"u = {u}"}, exact=exact, outputs={"q": "u(0.3, 0.6)"})
    found = rp.solve(problem, tol={"q": 1e-5}, method="weak").outputs["q"]
    assert found.how == "dual-weighted residual"
    assert abs(float(found) - values) <= found.bound <= 1e-5 * abs(values)


def test_other_outputs_are_compared_as_before():
    square = rp.Box(x=(0, 1), y=(0, 1))
    outputs = {"top": rp.Output("u", kind="maximum"), "volume": "u"}
    problem = rp.Problem("laplace(u) = -1", square, {"boundary": "u = 0"}, outputs=outputs)
    assert set(weightable_outputs(problem)) == {"volume"}
    solution = rp.solve(problem, tol={"top": 1e-2, "volume": 1e-2}, method="weak")
    assert "two solutions" in solution.outputs["top"].how
    one = rp.solve(problem, tol={"volume": 1e-2}, method="weak")
    assert one.outputs["volume"].how == "dual-weighted residual"
    assert abs(float(one.outputs["volume"]) - 0.14057701495515551 / 4) <= one.outputs["volume"].bound
    assert "two solutions" in one.outputs["top"].how


def test_small_cells_far_from_the_origin_lose_no_digits():
    """Load and matrix of a cell belong together where coordinates are rounded by 1e-11 of it: a smooth solution is as
    accurate on a mesh that is graded towards a corner as on one that is not."""
    left, low = "(x - 3.3)/2.7", "(y + 1.9)/2.7"
    u = f"sin(1.3*{left} + 0.7*{low}) + 2"
    shape = rp.Polygon(
        [(3.3 + 2.7 * p, -1.9 + 2.7 * q) for p, q in [(0, 0), (1, 0), (1, 0.4), (0.5, 0.4), (0.5, 1), (0, 1)]]
    )
    sides = {name: rp.On(name, f"u = {u}") for name in shape.sides}
    natural = "dn(u) = (1.3*nx + 0.7*ny)*cos"
    sides["edge3"] = rp.On("edge3", f"{natural}(1.3*{left} + 0.7*{low})/2.7")
    source = f"-laplace(u) = {(1.3**2 + 0.7**2) / 2.7**2!r}*sin(1.3*{left} + 0.7*{low})"
    problem = rp.Problem(source, shape, sides, exact={"u": u})
    points = shape.sample(500, rng=0)
    worst = []
    for tol in (1e-1, 1e-7):
        weak = WeakDiscretisation(
            weak_formulation(problem), tol, WeakSettings(), np.random.default_rng(0), lambda: None, 10
        )
        state = weak.solve(weak.first())
        worst.append(np.abs(state.network(points) - problem.exact_solution(points)).max())
    assert state.mesh.halfwidths.min() < 1e-5
    assert worst[1] < 3 * worst[0] < 1e-9
