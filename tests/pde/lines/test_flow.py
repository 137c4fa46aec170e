"""Incompressible flow in boxes: what is recognised, the constraint, the pressure, flows with known solutions."""

import numpy as np
import pytest
import sympy

import rannpde as rp
from rannpde.checkpoints import Ended
from rannpde.errors import InputError
from rannpde.pde.budget import Budget, watched
from rannpde.pde.lines.settings import IterationSettings
from rannpde.pde.lines.tensor.discretisation import TensorDiscretisation
from rannpde.pde.lines.tensor.flow import StokesModes, multiply_few
from rannpde.pde.lines.tensor.incompressible import flow_of
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.evolution import Component

X, Y, T = sympy.symbols("x y t")
FIELDS = ("u", "v", "p")
NU = sympy.Rational(1, 20)


def forced(u, v, p):
    """Equations that these fields satisfy, with the forces that they need."""
    pairs = [(f, sympy.diff(f, T) + u * sympy.diff(f, X) + v * sympy.diff(f, Y)) for f in (u, v)]
    loads = [
        moved + sympy.diff(p, s) - NU * (sympy.diff(f, X, 2) + sympy.diff(f, Y, 2))
        for (f, moved), s in zip(pairs, (X, Y), strict=True)
    ]
    assert sympy.simplify(sympy.diff(u, X) + sympy.diff(v, Y)) == 0
    return {
        "momentum x": f"u_t + u*u_x + v*u_y + p_x = laplace(u)/20 + {loads[0]}",
        "momentum y": f"v_t + u*v_x + v*v_y + p_y = laplace(v)/20 + {loads[1]}",
        "mass": "u_x + v_y = 0",
    }


def starts(u, v):
    return {
        "start of u": rp.On("t=0", f"u = {u.subs(T, 0)}"),
        "start of v": rp.On("t=0", f"v = {v.subs(T, 0)}"),
    }


def vortex(level=None):
    """A vortex between four walls that do not move."""
    amplitude = 1 + sympy.sin(2 * T) / 2
    u = sympy.sin(sympy.pi * X) ** 2 * sympy.sin(2 * sympy.pi * Y) * amplitude
    v = -sympy.sin(2 * sympy.pi * X) * sympy.sin(sympy.pi * Y) ** 2 * amplitude
    p = sympy.cos(sympy.pi * X) * sympy.cos(sympy.pi * Y) * sympy.cos(T)
    conditions = starts(u, v) | {f"walls, {f}": rp.On("boundary", f"{f} = 0") for f in "uv"}
    if level is not None:
        p = p + level - sympy.cos(T)  # the value of the corner
        times = np.linspace(0, 1, 9)
        values = np.array([float(level.subs(T, t)) for t in times])
        conditions["level"] = rp.Data(np.column_stack([times, np.zeros((9, 2))]), values, "p")
    exact = {"u": str(u), "v": str(v), "p": str(p)}
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    return rp.Problem(forced(u, v, p), domain, conditions, fields=FIELDS, exact=exact)


def through():
    """Inflow, walls that slide, an outflow whose stress is given: u = 1 + sin y e^(-x) cos t."""
    u = 1 + sympy.sin(Y) * sympy.exp(-X) * sympy.cos(T)
    v = -sympy.cos(Y) * sympy.exp(-X) * sympy.cos(T)
    p = sympy.sin(X) * sympy.cos(Y) * (1 + T)
    conditions = starts(u, v)
    conditions |= {f"sides, {n}": rp.On(("x=0", "y=0", "y=1"), f"{n} = {f}") for n, f in {"u": u, "v": v}.items()}
    stress = NU * sympy.diff(u, X) - p
    conditions |= {
        "outflow, u": rp.On("x=1", f"u_x/20 - p = {stress}"),
        "outflow, v": rp.On("x=1", f"v_x = {sympy.diff(v, X)}"),
    }
    exact = {"u": str(u), "v": str(v), "p": str(p)}
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    return rp.Problem(forced(u, v, p), domain, conditions, fields=FIELDS, exact=exact)


def modes_of(problem, tol=1e-5, seed=0):
    flow = flow_of(problem)
    settings = IterationSettings(tol, LinesTuning(), Monitor(), None)
    products = TensorDiscretisation(flow.evolution, settings, np.random.default_rng(seed), flow)
    return StokesModes(flow, products.system(tol))


# ------------------------------------------------------------------------------------------------- what is a flow


def test_a_flow_is_recognised_with_other_names_and_scales():
    equations = ["2*w_t + 3*q_y = laplace(w)", "2*c_t + 6*q_x = laplace(c)", "w_y + 2*c_x = sin(x)*t"]
    conditions = {f"start {n}": rp.On("t=0", f"{n} = 0") for n in "wc"}
    conditions |= {f"walls {n}": rp.On("boundary", f"{n} = 0") for n in "wc"}
    problem = rp.Problem(equations, rp.SpaceTime(t=(0, 1), x=(0, 2), y=(0, 1)), conditions, fields=("q", "w", "c"))
    flow = flow_of(problem)
    assert flow.pressure == "q"
    assert dict(flow.axes) == {"w": 1, "c": 0}
    assert dict(flow.divergence) == {"w": 1.0, "c": 2.0}
    assert flow.pressure_factor == -1.5
    assert str(flow.source) == "t*sin(x)"
    assert list(flow.evolution.orders) == ["q", "w", "c"]


@pytest.mark.parametrize(
    "change",
    [
        {"mass": "u_x + v_y = p"},  # an artificial compressibility is of index 1
        {"mass": "u_x + u*v_y = 0"},
        {"mass": "u_x + 2*v_y = 0"},  # the pressure would do work on the constraint
        {"momentum x": "u_t + p*p_x = laplace(u)"},
        {"momentum x": "u_tt + p_x = laplace(u)"},
        {"outflow, u": rp.On("x=1", "p = 0")},  # says nothing of u_x
        {"outflow, u": rp.On("x=1", "u*p = u_x")},
    ],
)
def test_what_is_no_such_flow_is_left_to_other_methods(change):
    equations = {
        "momentum x": "u_t + p_x = laplace(u)",
        "momentum y": "v_t + p_y = laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    conditions = {"a": rp.On("t=0", "u = 0"), "b": rp.On("t=0", "v = 0"), "outflow, u": rp.On("x=1", "p = u_x")}
    conditions |= {"outflow, v": rp.On("x=1", "v_x = 0")}
    conditions |= {f"walls, {n}": rp.On(("x=0", "y=0", "y=1"), f"{n} = 0") for n in "uv"}
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    assert flow_of(rp.Problem(equations, domain, conditions, fields=FIELDS)) is not None
    equations |= {name: law for name, law in change.items() if name in equations}
    conditions |= {name: one for name, one in change.items() if name in conditions}
    if "u_tt" in str(change):
        conditions["c"] = rp.On("t=0", "u_t = 0")
    problem = rp.Problem(equations, domain, conditions, fields=FIELDS)
    assert flow_of(problem) is None
    assert rp.Lines().obstacles(problem)


def test_a_problem_without_a_pressure_is_no_flow():
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    conditions = {"start": rp.On("t=0", "u = 0"), "walls": rp.On("boundary", "u = 0")}
    assert flow_of(rp.Problem("u_t = laplace(u)", domain, conditions)) is None


# ------------------------------------------------------------------------------------------------------ the modes


def test_stokes_modes_are_orthonormal_and_free_of_divergence():
    modes = modes_of(vortex())
    vectors, rates = modes.modes
    assert np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max() < 1e-10
    system, total = modes.system, 0.0
    whole = modes.homogeneous(np.eye(vectors.shape[1])[:, :20])
    for name, axis in modes.flow.axes.items():
        tensor = whole[system.slices[Component(name, 0)]].reshape(*system.shapes[name], -1)
        total = total + system.act("p", name, tuple(int(k == axis) for k in range(2)), tensor)
    assert np.abs(total).max() < 1e-9 * np.abs(whole).max() * rates.max()


def test_only_a_constant_pressure_is_not_felt_between_walls():
    modes = modes_of(vortex())
    felt, all_of_them = len(modes._schur[0]), int(np.prod(modes.system.shapes["p"]))
    assert felt == all_of_them - 1


def test_every_pressure_is_felt_where_fluid_may_leave():
    modes = modes_of(through())
    assert len(modes._schur[0]) == int(np.prod(modes.system.shapes["p"]))


def test_the_slowest_stokes_mode_of_a_square():
    """Its eigenvalue is 52.3447 on the unit square with unit viscosity (Leriche & Labrosse 2004)."""
    values = np.linalg.eigvalsh(-_viscous(modes_of(vortex(), tol=1e-6)))
    assert values[0] == pytest.approx(52.3447 / 20, rel=2e-6)


def _viscous(modes):
    """Vᵀ L V."""
    vectors, system = modes.modes[0], modes.system
    whole = modes.homogeneous(np.eye(vectors.shape[1]))
    found = np.zeros_like(whole)
    for name in modes.velocities:
        block = system.slices[Component(name, 0)]
        tensor = whole[block].reshape(*system.shapes[name], -1)
        parts = [system.act(name, name, orders, tensor) for orders in ((2, 0), (0, 2))]
        found[block] = (sum(parts) / 20).reshape(len(found[block]), -1)
    return vectors.T @ found[modes.rows]


def test_the_jacobian_is_the_derivative_of_the_rates():
    modes = modes_of(through(), tol=1e-3)
    rng = np.random.default_rng(1)
    state = modes.projected(modes.system.initial_state())
    change = rng.standard_normal(len(state))
    times, step = np.array([0.3]), 1e-6
    wanted = np.subtract(*(modes.rates(times, (state + s * step * change)[:, None])[:, 0] for s in (1, -1))) / (
        2 * step
    )
    found = modes.jacobian(0.3, state).product(change)
    assert np.linalg.norm(found - wanted) < 1e-5 * np.linalg.norm(wanted)  # single precision and differences
    pair = modes.jacobian(0.3, state).product(change + 2j * change)
    assert np.allclose(pair, (1 + 2j) * found, rtol=1e-4, atol=1e-4 * np.abs(found).max())


def test_few_columns_are_a_product():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((7, 5))
    for count in (1, 3, 9):
        columns = rng.standard_normal((5, count))
        assert np.allclose(multiply_few(matrix, columns), matrix @ columns, rtol=1e-14)


# ---------------------------------------------------------------------------------------------------- whole solves


@pytest.mark.parametrize("make", [vortex, through])
def test_flows_with_known_solutions(make):
    solution = rp.solve(make(), tol=1e-4)
    assert solution.converged
    assert solution.method.name == "lines"
    errors = solution.errors()
    assert max(errors.values()) < 1e-4
    assert max(errors.values()) < 10 * solution.estimate


def test_fields_that_vanish_are_not_refined():
    """Poiseuille's parabola: v and p are rounding, which has no lengths and no relative error."""
    equations = [f"{f}_t + u*{f}_x + v*{f}_y + p_{s} = laplace({f})/10 + {load}" for f, s, load in ("ux8", "vy0")]
    conditions = starts(4 * Y * (1 - Y), sympy.Integer(0)) | {"x": "periodic"}
    conditions |= {f"walls, {f}": rp.On(("y=0", "y=1"), f"{f} = 0") for f in "uv"}
    problem = rp.Problem(
        [one.replace("/10 + 8", "/10 + 0.8") for one in equations] + ["u_x + v_y = 0"],
        rp.SpaceTime(t=(0, 1), x=(0, 2), y=(0, 1)), conditions, fields=FIELDS,
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-4)
    assert solution.converged
    points = problem.domain.sample(200, rng=0)
    y = points[:, 2]
    assert np.abs(solution(points) - np.column_stack([4 * y * (1 - y), 0 * y, 0 * y])).max() < 1e-5
    assert max(one.rank for one in solution.history.iterations) < 500


def test_the_watch_is_asked_while_stokes_modes_are_made():
    modes = modes_of(vortex())
    with pytest.raises(Ended), watched(Budget(seconds=1e-9)):
        _ = modes.modes


def test_the_level_of_the_pressure_is_kept():
    solution = rp.solve(vortex(level=2 + sympy.sin(2 * T)), tol=1e-3)
    times = np.linspace(0, 1, 7)
    corner = np.column_stack([times, np.zeros((7, 2))])
    assert np.abs(solution(corner)[:, 2] - 2.0 - np.sin(2 * times)).max() < 1e-3  # as all is
    assert solution.errors()["p"] < 1e-3


def test_a_flow_is_kept_in_a_file(tmp_path):
    solution = rp.solve(through(), tol=1e-2)
    solution.save(tmp_path / "flow.npz")
    again = rp.load(tmp_path / "flow.npz")
    points = solution.problem.domain.sample(50, rng=0)
    assert np.array_equal(again(points), solution(points))


def test_events_see_the_fields():
    def slow(t, u):
        return float(u(np.array([[0.5, 0.5]]))[0, 0] - 1.0 - 0.9 * np.sin(0.5) * np.exp(-0.5))

    solution = rp.solve(through(), tol=1e-4, method=rp.Lines(events={"slow": slow}))
    assert solution.events["slow"][0] == pytest.approx(np.arccos(0.9), abs=1e-4)


def test_windows_are_refused():
    with pytest.raises(InputError, match="windows is 4, but an incompressible flow has one basis; leave it out"):
        rp.solve(vortex(), tol=1e-2, method=rp.Lines(windows=4))


def test_a_lid_that_starts_at_once_ends_in_time_and_promises_nothing():
    equations = [
        "u_t + u*u_x + v*u_y + p_x = laplace(u)/50",
        "v_t + u*v_x + v*v_y + p_y = laplace(v)/50",
        "u_x + v_y = 0",
    ]
    conditions = {"a": rp.On("t=0", "u = 0"), "b": rp.On("t=0", "v = 0"), "lid": rp.On("y=1", "u = 1")}
    conditions |= {"walls": rp.On(("x=0", "x=1", "y=0"), "u = 0"), "all": rp.On("boundary", "v = 0")}
    with pytest.warns(ConditionWarning, match="no smooth solution"):
        problem = rp.Problem(equations, rp.SpaceTime(t=(0, 0.1), x=(0, 1), y=(0, 1)), conditions, fields=FIELDS)
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-3, seconds=3)
    assert not solution.converged
    assert not solution.estimate < 1e-3
