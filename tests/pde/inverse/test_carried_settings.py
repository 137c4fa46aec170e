"""Identification keeps the settings of the forward method: tuning, weights, degree, integrator; none is dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.cells import model as cells_model
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.forward_model import ModelRequest
from rannpde.pde.identification import ForwardSolver
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.lines.sensitivities import reintegration
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor
from rannpde.pde.time.integrator import TimeIntegrator
from rannpde.pde.tolerance import ALGEBRA_SHARE, TIME_SHARE


def cooling() -> rp.Problem:
    """u_t = k u_xx with u = exp(-k π² t) sin(π x), k = 0.1, measured at one point."""
    times = np.linspace(0.1, 1, 10)
    points = np.column_stack([times, np.full(10, 0.4)])
    values = np.exp(-0.1 * np.pi**2 * times) * np.sin(0.4 * np.pi)
    conditions = {"start": rp.On("t=0", "u = sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    conditions["data"] = rp.Data(points, values, "u")
    return rp.Problem("u_t = k*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, unknown={"k": rp.Unknown(0.12)})


def rod() -> rp.Problem:
    """-(k u_x)_x = 1, u(0) = u(1) = 0: u = x (1 - x)/(2k), k = 2."""
    places = np.linspace(0.1, 0.9, 9)[:, None]
    conditions = {
        "ends": rp.On(("x=0", "x=1"), "u = 0"),
        "data": rp.Data(places, (places * (1 - places))[:, 0] / 4, "u"),
    }
    return rp.Problem("k*u_xx = -1", rp.Box(x=(0, 1)), conditions, unknown={"k": rp.Unknown(1.5)})


def plate() -> rp.Problem:
    """u_t = k Δu on the unit square with u = exp(-2kπ²t) sin(πx) sin(πy), k = 0.05."""
    points = rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 1)).sample(20, rng=1)
    values = np.exp(-0.1 * np.pi**2 * points[:, 0]) * np.sin(np.pi * points[:, 1]) * np.sin(np.pi * points[:, 2])
    conditions = {"start": rp.On("t=0", "u = sin(pi*x)*sin(pi*y)"), "sides": rp.On("boundary", "u = 0")}
    conditions["data"] = rp.Data(points, values, "u")
    domain = rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 1))
    return rp.Problem("u_t = k*laplace(u)", domain, conditions, unknown={"k": rp.Unknown(0.06)})


def request(problem: rp.Problem, forward: ForwardSolver, tol: float) -> ModelRequest:
    """What identification asks the method of a solution at the guesses."""
    rng = np.random.default_rng(0)
    unknowns = Unknowns(problem, rng)
    solution = forward(problem.at({}), tol, rng)
    return ModelRequest(problem, solution, unknowns, unknowns.guess, tol, rng, Monitor())


def test_lines_integrate_again_with_their_own_tuning_and_integrator(monkeypatch):
    seen = []
    run = TimeIntegrator.run

    def recorded(self, *args, **kwargs):
        seen.append((self.integrator, self.control.newton_iterations, self.tol))
        return run(self, *args, **kwargs)

    steps = replace(LinesTuning().steps, newton_iterations=11)
    method = rp.Lines(integrator="BDF", width=80, tuning=LinesTuning(steps=steps))
    asked = request(cooling(), ForwardSolver(method, Monitor()), 1e-4)
    monkeypatch.setattr(reintegration.TimeIntegrator, "run", recorded)
    model = method.model(asked)
    assert model is not None
    values, changes = model.respond(np.array([0.1])).jets(np.array([[1.0, 0.5]]), (0, 0))
    assert seen == [("BDF", 11, pytest.approx(TIME_SHARE * ALGEBRA_SHARE * 1e-4))]
    assert values[0, 0] == pytest.approx(np.exp(-0.1 * np.pi**2), rel=1e-4)
    # ∂u/∂k = -π² t u: sensitivities follow the steps of any integrator
    assert changes[0, 0, 0] == pytest.approx(-(np.pi**2) * np.exp(-0.1 * np.pi**2), rel=1e-3)


def test_cells_model_has_the_tuning_weights_and_degree_of_the_method(monkeypatch):
    built = []
    system, draw = cells_model.CellsSystem, cells_model.BasisSample.sample
    monkeypatch.setattr(cells_model, "CellsSystem", lambda *args: built.append(args[4]) or system(*args))
    monkeypatch.setattr(
        cells_model.BasisSample,
        "sample",
        lambda dim, degree, tuning, rng: built.append((degree, tuning)) or draw(dim, degree, tuning, rng),
    )
    tuning = CellsTuning(singular_value_cutoff=3e-13)
    method = rp.Cells(degree=9, weights={"ends": 7.0}, tuning=tuning)
    asked = request(rod(), ForwardSolver(method, Monitor()), 1e-8)
    built.clear()
    model = method.model(asked)
    degree = asked.solution.history.iterations[-1].degree
    assert degree in (9, 11)  # every other iteration on an interval has two more, for the estimate
    assert built == [(degree, tuning), {"ends": 7.0}]
    values, changes = model.respond(np.array([1.5])).jets(np.array([[0.5]]), (0,))
    assert values[0, 0] == pytest.approx(1 / 12, rel=1e-6)
    assert changes[0, 0, 0] == pytest.approx(-1 / 18, rel=1e-5)  # ∂u/∂k = -u/k


def test_cells_in_space_keep_their_settings_through_time(monkeypatch):
    seen = []
    marching = cells_model.CellIntegration
    monkeypatch.setattr(cells_model, "CellIntegration", lambda *args: seen.append(args[3:]) or marching(*args))
    tuning = CellsTuning(singular_value_cutoff=3e-13)
    method = rp.Cells(degree=7, weights={"sides": 3.0}, time_stepping=True, tuning=tuning)
    asked = request(plate(), ForwardSolver(method, Monitor()), 1e-3)
    model = method.model(asked)
    assert model is not None
    values, _ = model.respond(np.array([0.05])).jets(np.array([[0.3, 0.5, 0.5]]), (0, 0, 0))
    assert seen
    assert all(one == (tuning, {"sides": 3.0}) for one in seen)
    assert values[0, 0] == pytest.approx(np.exp(-0.1 * np.pi**2 * 0.3), rel=1e-2)


def test_a_method_without_a_model_says_so():
    method = rp.Collocation()
    asked = request(rod(), ForwardSolver(rp.Cells(), Monitor()), 1e-6)
    assert method.model(asked) is None


@pytest.mark.parametrize(
    "method", [rp.Lines(integrator="BDF"), rp.Cells(degree=10, weights={"ends": 2.0}, time_stepping=False)]
)
def test_identification_with_settings_finds_the_number(method):
    solution = rp.solve(cooling(), tol=1e-6, method=method)
    assert solution.converged
    assert float(solution.parameters["k"]) == pytest.approx(0.1, rel=1e-4)
