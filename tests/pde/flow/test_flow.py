"""Flows with known answers: manufactured ones in random units, benchmarks, mass and forces."""

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from known_flows import backward_step, cavity, cylinder, random_flow, shear_turns
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.forces import ForceRecord, bounded_forces
from rannpde.pde.flow.newton import FlowNewton, flow_distance
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.flow.solver import FlowDiscretisation
from rannpde.pde.monitor import Monitor
from rannpde.pde.weak.settings import WeakSettings

STOKES = ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", "u_x + v_y = 0"]
FIELDS = ("u", "v", "p")


@pytest.mark.parametrize("seed", range(draws(2, 6)))
def test_random_flows_are_found(seed):
    """Half with inertia, with a hole, with an open side, in units from millimetres to kilometres."""
    kinds = {"inertia": bool(seed % 2), "hole": bool(seed // 2 % 2), "open_side": seed in (1, 2, 4)}
    problem = random_flow(np.random.default_rng(100 + seed), **kinds, symmetric=seed == 4)
    tol = (1e-3, 1e-5)[seed % 2]
    solution = rp.solve(problem, tol=tol, method="flow", rng=seed)
    assert solution.converged
    assert solution.estimate <= tol
    assert max(solution.errors().values()) <= solution.estimate


def test_poiseuille_by_every_way_out():
    """Outflow by a traction, by pressure and slip symmetry: all the same parabola."""
    exact = {"u": "y*(2 - y)", "v": "0", "p": "2*(3 - x)"}
    wall, entry = rp.On("y=0", ["u = 0", "v = 0"]), rp.On("x=0", ["u = y*(2 - y)", "v = 0"])
    symmetry = rp.On("y=1", ["dn(u) = 0", "v = 0"])
    for stated in (["dn(u) - p = 0", "dn(v) = 0"], ["p = 0", "v = 0"], ["dn(u) - p = 0", "v = 0"]):
        sides = {"wall": wall, "entry": entry, "symmetry": symmetry, "out": rp.On("x=3", stated)}
        box = rp.Box(x=(0, 3), y=(0, 1))
        solution = rp.solve(rp.Problem(STOKES, box, sides, fields=FIELDS, exact=exact), tol=1e-4, method="flow")
        assert solution.converged
        assert max(solution.errors()[name] for name in ("u", "p")) < 1e-4
        x, y, _, _ = solution.history.forces["y=0"]
        assert x == pytest.approx(6.0, rel=1e-6)  # ∫ u_y over a wall of length 3
        assert y == pytest.approx(-9.0, rel=1e-6)  # -∫ p


def discretised(problem, degree, tol=0.1):
    found = FlowDiscretisation(flow_formulation(problem), tol, WeakSettings(), np.random.default_rng(3), lambda: None)
    return found.cells(found.tree(tol), degree, np.random.default_rng(3))


@pytest.mark.parametrize("hole", [False, True])
def test_mass_is_conserved_to_rounding(hole):
    problem = random_flow(np.random.default_rng(5), inertia=False, hole=hole, open_side=True)
    local = discretised(problem, 6)
    system = FlowSystem(local)
    state = system.solve(system.rest())
    through = np.matmul(local.across, state.stream[local.cell][:, :, None])[:, :, 0]
    fluxes = (local.weights * through).sum(axis=1)
    faces = local.interior // 2
    size = np.abs(fluxes).max()
    assert np.abs(fluxes[:faces] + fluxes[faces : 2 * faces]).max() < 1e-9 * size
    assert np.abs(np.bincount(local.cell, fluxes)).max() < 1e-9 * size
    solution = rp.solve(problem, tol=1e-2, method="flow")
    points = problem.domain.sample(500, rng=0)
    slopes = [solution.function.derivative(points, index) for index in ((1, 0), (0, 1))]
    assert np.abs(slopes[0][:, 0] + slopes[1][:, 1]).max() < 1e-9 * np.abs(slopes[0]).max()


def test_kovasznay_with_a_redundant_pressure():
    solution = rp.solve(rp.zoo("kovasznay"), tol=1e-4, method="flow")
    assert solution.converged
    assert max(solution.errors().values()) < 1e-4


def test_cylinder_in_metres_and_centimetres():
    """DFG 2D-1 at a moderate tolerance: forces within their bounds, and the same digits in other units."""
    published = {"drag": 5.57953523384, "lift": 0.010618948146}
    found = []
    for unit in (1.0, 100.0):
        solution = rp.solve(cylinder(unit), tol=1e-2)
        assert solution.converged
        assert solution.method.name == "flow"
        found.append(solution.outputs)
        for name, value in published.items():
            quantity = solution.outputs[name]
            assert abs(float(quantity) - value) <= quantity.bound
            assert quantity.how == "the weak residual of momentum"
    assert abs(float(found[0]["drag"]) / published["drag"] - 1) < 1e-3
    for name in published:
        assert float(found[0][name]) == pytest.approx(float(found[1][name]), rel=1e-5)


def test_a_flow_begins_from_its_neighbour():
    """At another viscosity, from the cells and the velocity of a flow that is known: the same as alone, in fewer
    iterations."""
    known = rp.solve(cylinder(1.0), tol=5e-2)
    problem = cylinder(1.0).with_parameters({"nu": 1.3e-3})
    alone = rp.solve(problem, tol=5e-2)
    beside = rp.Flow().solve(problem, 5e-2, np.random.default_rng(0), Monitor(), "asked for", known.function)
    assert beside.converged
    assert len(beside.history.iterations) <= len(alone.history.iterations)
    points = problem.domain.sample(300, rng=0)
    gap = beside(points)[:, :2] - alone(points)[:, :2]
    assert np.linalg.norm(gap) <= 5e-2 * np.linalg.norm(alone(points)[:, :2])
    drag, other = (one.outputs["drag"] for one in (beside, alone))
    assert abs(float(drag) - float(other)) <= drag.bound + other.bound


def test_cavity_and_what_is_saved(tmp_path):
    """Re 100 against Botella and Peyret's kind of values; the lid makes the pressure infinite, which is told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = cavity(100)
    solution = rp.solve(problem, tol=1e-3)
    assert solution.converged
    assert solution.method.name == "flow"
    line = np.linspace(0, 1, 401)
    middle = np.full(401, 0.5)
    assert solution(np.stack([middle, line], axis=1))[:, 0].min() == pytest.approx(-0.21404, abs=5e-4)
    across = solution(np.stack([line, middle], axis=1))[:, 1]
    assert across.max() == pytest.approx(0.17957, abs=5e-4)
    assert across.min() == pytest.approx(-0.25380, abs=1e-3)
    report = solution.report()
    assert "the prescribed velocity jumps" in report
    assert "mean zero" in report
    assert "force on y=1" in report
    path = tmp_path / "cavity.npz"
    solution.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        again = rp.load(path)
    points = problem.domain.sample(50, rng=0)
    assert np.array_equal(again(points), solution(points))
    assert again.history == solution.history


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reynolds", "least", "largest", "lowest"),
    [(2500, -0.42816, 0.42363, -0.56267), (5000, -0.44731, 0.44751, -0.57613)],
)
def test_cavity_by_continuation(reynolds, least, largest, lowest):
    """Values of a tolerance of 1e-4: at Re 5,000 Newton's method needs inertia in shares on two meshes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = cavity(reynolds)
    solution = rp.solve(problem, tol=1e-3)
    assert solution.converged
    assert float(solution.minimum("u", on="x=0.5")) == pytest.approx(least, rel=1e-3)
    assert float(solution.maximum("v", on="y=0.5")) == pytest.approx(largest, rel=1e-3)
    assert float(solution.minimum("v", on="y=0.5")) == pytest.approx(lowest, rel=1e-3)


def test_backward_step():
    """Where the flow reattaches at Re 100, in units of its own, against a solution to 1e-4 in others."""
    solution = rp.solve(backward_step(100, 6, 0.01, 37.0), tol=1e-2, method="flow")
    assert solution.converged
    assert shear_turns(solution, -0.005)[-1] == pytest.approx(0.0161043, rel=1e-3)
    assert len(shear_turns(solution, 0.005)) == 0


@pytest.mark.slow
def test_gartlings_step():
    solution = rp.solve(backward_step(800), tol=1e-3)
    assert solution.converged
    assert shear_turns(solution, -0.5) == pytest.approx([6.10], abs=0.02)
    assert shear_turns(solution, 0.5) == pytest.approx([4.85, 10.48], abs=0.01)


def test_continuation_reaches_what_newton_reaches():
    """From rest in shares of inertia, the same flow as directly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        local = discretised(cavity(200), 5, 0.5)
    system, newton = FlowSystem(local), FlowNewton(1e-10, WeakSettings())
    direct, steps = newton.solve(system, None)
    shared, more = newton.continued(system)
    assert 2 < steps < more
    assert flow_distance(local, shared, direct) < 1e-8


def test_data_that_do_not_balance_are_refused():
    sides = {"in": rp.On("x=0", ["u = 1", "v = 0"]), "rest": rp.On("boundary except x=0", ["u = 0", "v = 0"])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = rp.Problem(STOKES, rp.Box(x=(0, 1), y=(0, 1)), sides, fields=FIELDS)
    with pytest.raises(rp.InputError, match="left over"):
        rp.solve(problem, tol=1e-2, method="flow")


def test_bounds_of_forces_do_not_rest_on_one_coincidence():
    records = [ForceRecord({"wall": np.array(force)}, indicator) for force, indicator in
               [((1.0, 2.0), 0.4), ((1.1, 2.0), 0.2), ((1.1, 2.0), 0.1)]]  # fmt: skip
    (x, y, dx, dy) = bounded_forces(records, 2.0)["wall"]
    assert (x, y) == (1.1, 2.0)
    assert dx == dy == pytest.approx(2 * 0.5 * 0.1)
    assert bounded_forces(records[:1], 2.0)["wall"][2] == np.inf
