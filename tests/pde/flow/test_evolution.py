"""Flows in time: closed forms, the derivative of the equations, starts at once, what is saved and what is refused."""

import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from known_flows_in_time import EQUATIONS, flow_errors, vortices, womersley
from rannpde.pde.budget import timed_by
from rannpde.pde.flow.evolution import flow_evolution
from rannpde.pde.flow.form import NoFlow
from rannpde.pde.flow.integration import FlowIntegrator
from rannpde.pde.flow.semidiscrete import FlowVector, SemiDiscreteFlow
from rannpde.pde.flow.solver import FlowDiscretisation
from rannpde.pde.time.tableau import radau_tableau
from rannpde.pde.weak.settings import WeakSettings

FIELDS = ("u", "v", "p")
SQUARE = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
STILL = rp.On("t=0", ["u = 0", "v = 0"])


def random_vortices(seed):
    rng = np.random.default_rng(seed)
    return vortices(
        10.0 ** rng.uniform(0, 2.5), 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-3, 3),
        rng.uniform(-2, 2, 2).round(2), rng.uniform(0.8, 1.8, 2).round(2), rng.uniform(0.2, 1.0), bool(seed % 2),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(draws(2, 4)))
def test_random_vortices(seed):
    """Taylor and Green's vortices in random units, densities, places and Reynolds numbers, closed and open."""
    tol = (1e-2, 1e-3, 1e-4, 1e-2)[seed]
    solution = rp.solve(random_vortices(seed), tol=tol, method="flow", seconds=120)
    assert solution.converged
    assert max(flow_errors(solution)) <= tol


def test_an_oscillating_channel_and_what_is_saved(tmp_path):
    """Womersley's flow between given pressures; forces, derivatives in time, and the same from a file."""
    problem = womersley(3.0, periods=0.2)
    traction = "p*nx - mu*dn(u)"
    window = (0.3, 1.2)
    problem = replace(problem, outputs={"drag": rp.Output(traction, on="y=-1", kind="maximum in time", t=window)})
    solution = rp.solve(problem, tol=1e-2, method="flow", seconds=120)
    assert solution.converged
    assert max(flow_errors(solution)) <= 1e-2
    assert "steps in time" in solution.method.label
    time, height = 0.8, 1e-4
    points = np.array([[time, 0.5, 0.3]])
    later, earlier = (problem.exact_solution(points + np.array([s, 0, 0]))[0, 0] for s in (height, -height))
    assert solution.function.derivative(points, (1, 0, 0))[0, 0] == pytest.approx(
        (later - earlier) / (2 * height), rel=0.05
    )
    wall = problem.exact_solution(np.array([[time, 0.5, -1 + height]]))[0, 0] / height
    drag, _ = solution.history.force("y=-1", time)[0]
    assert drag == pytest.approx(wall * problem.parameters["mu"], rel=0.02)  # μ u_y over a wall of length 1
    asked = solution.integral(traction, on="y=-1", t=time)
    assert float(asked) == pytest.approx(drag, rel=1e-12)
    assert asked.how.startswith("the weak residual")
    times = np.linspace(*window, 400)
    beside = np.stack([times, 0.5 + 0 * times, height - 1 + 0 * times], axis=1)
    largest = solution.outputs["drag"]
    assert largest.converged
    wanted = problem.exact_solution(beside)[:, 0].max() / height * problem.parameters["mu"]
    assert abs(float(largest) - wanted) <= largest.bound + 1e-3 * wanted
    with pytest.raises(rp.InputError, match="known"):
        solution.history.force("lid", time)
    with pytest.raises(rp.InputError, match="between"):
        solution.history.force("y=1", 99.0)
    path = tmp_path / "channel.npz"
    solution.save(path)
    again = rp.load(path)
    sample = problem.domain.sample(40, rng=0)
    assert np.array_equal(again(sample), solution(sample))
    assert again.history == solution.history


def test_a_plate_that_starts_at_once():
    """Between a wall and a plate that moves from the start on: a series; the pressure is not judged, and 0."""
    sides = {
        "start": STILL, "wall": rp.On("y=0", ["u = 0", "v = 0"]), "plate": rp.On("y=1", ["u = 1", "v = 0"]),
        "ends": rp.On(("x=0", "x=1"), ["p = 0", "v = 0"]),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = rp.Problem(EQUATIONS, SQUARE, sides, {"rho": 1.0, "mu": 0.2}, fields=FIELDS)
        solution = rp.solve(problem, tol=2e-2, method="flow", seconds=120)
    assert "moves at once" in str(solution.report())
    points = np.array([[t, 0.4, y] for t in (0.1, 0.3, 0.9) for y in (0.2, 0.5, 0.8)])
    n = np.arange(1, 60)[:, None]
    t, y = points[:, 0], points[:, 2]
    exact = y + (2 / (n * np.pi) * (-1.0) ** n * np.exp(-0.2 * (n * np.pi) ** 2 * t) * np.sin(n * np.pi * y)).sum(
        axis=0
    )
    assert solution(points)[:, 0] == pytest.approx(exact, abs=1e-2)
    assert np.abs(solution(points)[:, 1]).max() < 1e-2


def discretised(hole):
    domain = rp.Box(x=(0, 1), y=(0, 1)) - rp.Ball((0.45, 0.5), 0.2, name="hole") if hole else rp.Box(x=(0, 1), y=(0, 1))
    sides = {
        "start": STILL, "held": rp.On("boundary except x=1", ["u = y*(1 - y)*t", "v = 0"]),
        "open": rp.On("x=1", ["mu*dn(u) - p*nx = 0", "mu*dn(v) = 0"]),
    }  # fmt: skip
    problem = rp.Problem(EQUATIONS, rp.SpaceTime(t=(0, 1), x=domain), sides, {"rho": 2.0, "mu": 0.1}, fields=FIELDS)
    evolution = flow_evolution(problem)
    found = FlowDiscretisation(evolution.form, 0.1, WeakSettings(), np.random.default_rng(3), lambda: None)
    return SemiDiscreteFlow(evolution, found.cells(found.tree(0.1), 5, np.random.default_rng(3)), lambda: None)


@pytest.mark.parametrize("hole", [False, True])
def test_the_tangent_is_the_derivative_and_mass_is_kept(hole):
    flow = discretised(hole)
    assert flow.evolution.density == pytest.approx(2.0)
    rng, active = np.random.default_rng(0), flow.system.active
    base, step = (
        FlowVector(0.1 * rng.normal(size=flow.shape), 0.1 * rng.normal(size=len(active)) * active) for _ in "ab"
    )
    held = flow.local.constants(np.arange(flow.shape[0]))  # stream functions that move nothing
    step = FlowVector(step.stream - (step.stream * held).sum(axis=1, keepdims=True) * held, step.traces)
    size = 1e-6

    def left(sign):
        moved = FlowVector(base.stream + sign * size * step.stream, base.traces + sign * size * step.traces)
        return flow.residual(0.5, moved)

    ahead, behind = left(1), left(-1)
    own, around = np.zeros(flow.shape), np.zeros(len(active))
    for group, one in zip(flow.groups, flow.tangent(base, 0.5), strict=True):
        here, beside = step.stream[group.cells][:, :, None], step.traces[group.dofs][:, :, None]
        own[group.cells] = (one.square @ here + one.upper @ beside)[:, :, 0]
        np.add.at(around, group.dofs, (one.lower @ here + one.corner @ beside)[:, :, 0])
    assert np.abs((ahead.stream - behind.stream) / (2 * size) - own).max() < 1e-6 * np.abs(own).max()
    assert np.abs(((ahead.traces - behind.traces) / (2 * size) - around) * active).max() < 1e-6 * np.abs(around).max()
    path = FlowIntegrator(flow, radau_tableau(3), 1e-2).run(flow.projected(lambda points: 0 * points, 0.0))
    assert path.complete
    local = flow.local
    through = np.matmul(local.across, path.streams[-1][local.cell][:, :, None])[:, :, 0]
    fluxes = (local.weights * through).sum(axis=1)
    assert np.abs(np.bincount(local.cell, fluxes)).max() < 1e-9 * np.abs(fluxes).max()


def test_time_that_runs_out_leaves_what_was_reached():
    """By a clock that counts how often it is asked: half of the work of a whole solve, on any machine."""
    asked = count()
    with timed_by(lambda: float(next(asked))):
        whole = rp.solve(vortices(300.0, periods=60.0), tol=1e-6, method="flow", seconds=1e9)
        with pytest.warns(rp.ConvergenceWarning, match="time allowed"):
            solution = rp.solve(vortices(300.0, periods=60.0), tol=1e-6, method="flow", seconds=0.5 * next(asked))
    assert whole.converged
    assert solution.status is rp.Status.BUDGET
    assert solution.estimate > whole.estimate


REFUSED = {
    "which has the mean zero": (["u_t + p_x = laplace(u)", "v_t + p_y = laplace(v)"], {"level": rp.On("x=0", "p = 0")}),
    "not one number": (["u_t + p_x = laplace(u)", "(1 + x)*v_t + p_y = laplace(v)"], {}),
    "signs do not belong": (["-u_t + p_x = laplace(u)", "-v_t + p_y = laplace(v)"], {}),
    "first derivatives in time": (["u_tt + p_x = laplace(u)", "v_tt + p_y = laplace(v)"], {}),
}


@pytest.mark.parametrize("part", REFUSED)
def test_what_is_no_flow_in_time_is_told(part):
    momentum, more = REFUSED[part]
    sides = {"start": STILL, "walls": rp.On("boundary", ["u = 0", "v = 0"]), **more}
    problem = rp.Problem([*momentum, "u_x + v_y = 0"], SQUARE, sides, fields=FIELDS, incomplete=True)
    with pytest.raises(NoFlow, match=part):
        flow_evolution(problem)
    assert part in rp.Flow().obstacles(problem)[0]
