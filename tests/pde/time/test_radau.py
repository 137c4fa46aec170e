"""Radau IIA collocation: order conditions, stiff accuracy at every time, complex states, SciPy's interface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rannpde.pde.monitor import Status
from rannpde.pde.problem.step_limit import StepLimit
from rannpde.pde.time.dynamics import DenseJacobian
from rannpde.pde.time.integrator import TimeIntegrator
from rannpde.pde.time.radau import SLOW_CONVERGENCE, RadauCollocation
from rannpde.pde.time.tableau import radau_tableau

EPS = np.finfo(float).eps


@dataclass(frozen=True)
class ProtheroRobinson:
    """y' = rate (y - cos t) - sin t, whose solution is cos t however stiff it is."""

    rate: complex

    def rates(self, times, states):
        return self.rate * (states - np.cos(times)) - np.sin(times)

    def jacobian(self, time, state):
        return DenseJacobian(np.array([[self.rate]]))

    def size(self, change):
        return float(np.abs(change).max())


@dataclass(frozen=True)
class Pendulum:
    """y'' = -sin y, energy y'²/2 - cos y."""

    def rates(self, times, states):
        return np.stack([states[1], -np.sin(states[0])])

    def jacobian(self, time, state):
        return DenseJacobian(np.array([[0.0, 1.0], [-np.cos(state[0]), 0.0]]))

    def size(self, change):
        return float(np.linalg.norm(change))


@pytest.mark.parametrize("stages", [1, 3, 5, 7, 9])
def test_order_conditions_and_eigenvectors(stages):
    """Σ b_i c_i^(k-1) = 1/k for k ≤ 2s - 1 and Σ_j a_ij c_j^(k-1) = c_i^k/k for k ≤ s (b is the last row of A)."""
    tableau = radau_tableau(stages)
    matrix = np.linalg.inv(tableau.derivative)
    slack = 200 * EPS * np.linalg.cond(tableau.derivative)
    for k in range(1, 2 * stages):
        assert matrix[-1] @ tableau.nodes ** (k - 1) == pytest.approx(1 / k, abs=slack)
    for k in range(1, stages + 1):
        assert matrix @ tableau.nodes ** (k - 1) == pytest.approx(tableau.nodes**k / k, abs=slack)
    rebuilt = (tableau.vectors * tableau.eigenvalues) @ tableau.dual
    assert (
        np.abs(rebuilt - tableau.derivative).max() < 1e3 * EPS * np.linalg.cond(tableau.vectors) * np.abs(rebuilt).max()
    )
    assert tableau.distinct == (stages + 1) // 2


@pytest.mark.parametrize("rate", [-1.0, -1e6, 1j, -1e4 + 1e4j])
@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
def test_dense_output_has_the_tolerance_at_every_time(rate, tol):
    start = np.array([1.0 + 0j]) if isinstance(rate, complex) else np.array([1.0])
    path = TimeIntegrator(tol).run(ProtheroRobinson(rate), (0.0, 3.0), start)
    times = np.linspace(0, 3, 777)
    # local errors add up over at most a few units of time; rounding of the stiff right-hand side counts too
    assert np.abs(path(times)[0] - np.cos(times)).max() < 20 * tol + 100 * EPS
    assert path.end == 3.0


def test_twelve_digits_take_few_steps():
    path = TimeIntegrator(1e-12).run(Pendulum(), (0.0, 10.0), np.array([1.0, 0.0]))
    states = path(np.linspace(0, 10, 500))
    energy = 0.5 * states[1] ** 2 - np.cos(states[0])
    assert np.abs(energy + np.cos(1.0)).max() < 1e-11
    assert len(path.steps) < 60  # SciPy's Radau takes thousands


@pytest.mark.parametrize("order", [1, 2, 3])
def test_time_derivatives_are_those_of_the_polynomials(order):
    path = TimeIntegrator(1e-12).run(Pendulum(), (0.0, 3.0), np.array([1.0, 0.0]))
    times = np.linspace(0.05, 2.95, 40)
    step = 1e-4
    stencil = path(times + step, order - 1) - path(times - step, order - 1)
    same = np.searchsorted(path.times, times - step) == np.searchsorted(path.times, times + step)
    wanted = (stencil / (2 * step))[:, same]  # curvature of the next two derivatives: step² times 10
    assert np.abs(path(times, order)[:, same] - wanted).max() < 1e-6


def test_steps_end_just_before_breaks_and_are_as_short_as_the_data_ask():
    limit = StepLimit(np.linspace(0, 3, 301), np.where(np.arange(300) < 200, 0.4, 0.01), (1.25,))
    path = TimeIntegrator(1e-6, longest_step=limit.longest_step).run(Pendulum(), (0.0, 3.0), np.array([1.0, 0.0]))
    assert np.abs(np.array(path.times) - 1.25).min() < 1e-9
    steps, begins = np.diff(path.times), np.array(path.times[:-1])
    assert steps.max() <= 0.4 + 1e-9
    assert steps[begins > 2.0].max() <= 0.01 + 1e-9
    assert steps[begins < 1.9].max() > 0.1


def test_smaller_tolerances_give_smaller_errors_in_proportion():
    times = np.linspace(0, 5, 300)
    exact = TimeIntegrator(1e-13).run(Pendulum(), (0.0, 5.0), np.array([1.0, 0.0]))(times)
    tolerances = np.array([1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
    found = [TimeIntegrator(t).run(Pendulum(), (0.0, 5.0), np.array([1.0, 0.0]))(times) for t in tolerances]
    errors = np.array([np.abs(one - exact).max() for one in found])
    assert (errors < 20 * tolerances).all()
    assert (errors > 1e-4 * tolerances).all()


def test_it_is_a_method_of_solve_ivp():
    system = Pendulum()
    result = solve_ivp(
        lambda t, y: system.rates(np.array([t]), y[:, None])[:, 0],
        (0, 2),
        [1.0, 0.0],
        method=RadauCollocation,
        dynamics=system,
        tol=1e-10,
        stages=7,
        dense_output=True,
        events=lambda t, y: y[0],
    )
    assert result.success
    assert result.t_events[0].size == 1


@pytest.mark.parametrize("integrator", ["Radau", "BDF", "DOP853"])
def test_integrators_of_scipy_agree(integrator):
    times = np.linspace(0, 2, 50)
    ours = TimeIntegrator(1e-12).run(Pendulum(), (0.0, 2.0), np.array([1.0, 0.0]))(times)
    theirs = TimeIntegrator(1e-8, integrator=integrator).run(Pendulum(), (0.0, 2.0), np.array([1.0, 0.0]))(times)
    assert np.abs(ours - theirs).max() < 1e-5


def test_events_are_found_and_may_end_the_march():
    def down(time, state):
        return state[0]

    path = TimeIntegrator(1e-10, events={"down": down}).run(Pendulum(), (0.0, 20.0), np.array([0.1, 0.0]))
    quarter = 0.5 * np.pi * (1 + 0.1**2 / 16)  # small oscillations, next term 1e-7
    assert path.events["down"][0] == pytest.approx(quarter, rel=1e-6)
    assert len(path.events["down"]) == 6

    def once(time, state):
        return state[0]

    once.terminal = True
    ended = TimeIntegrator(1e-10, events={"down": once}).run(Pendulum(), (0.0, 20.0), np.array([0.1, 0.0]))
    assert ended.status is Status.EVENT
    assert ended.detail.startswith("event 'down'")
    assert ended.end == pytest.approx(quarter, rel=1e-6)


def test_interruption_keeps_what_was_computed():
    def interrupt(steps, time):
        if time > 1.0:
            raise KeyboardInterrupt

    path = TimeIntegrator(1e-8, notice=interrupt).run(Pendulum(), (0.0, 20.0), np.array([0.1, 0.0]))
    assert path.status is Status.INTERRUPTED
    assert 1.0 < path.end < 20.0
    assert np.isfinite(path(np.array([0.5, path.end]))).all()


@dataclass(frozen=True)
class Riccati(ProtheroRobinson):
    """y' = y²: blows up at t = 1/y(0)."""

    def rates(self, times, states):
        return states**2

    def jacobian(self, time, state):
        return DenseJacobian(np.diag(2 * state))


def test_blow_up_stops_at_the_last_good_time():
    path = TimeIntegrator(1e-8).run(Riccati(0.0), (0.0, 2.0), np.array([1.0]))
    assert path.broken
    assert path.status in (Status.BLOW_UP, Status.INTEGRATOR)
    assert path.end == pytest.approx(1.0, abs=1e-5)
    assert path.reliable == pytest.approx(0.9, abs=1e-5)
    assert path(np.array([0.5]))[0, 0] == pytest.approx(2.0, abs=1e-6)


def started(ratio: float) -> RadauCollocation:
    """A solver of nine stages after one step of length 1 whose next one is ``ratio`` times as long."""
    solver = RadauCollocation(
        None, 0.0, np.zeros(2), 100.0, dynamics=ProtheroRobinson(-1.0), tol=1e-6, stages=9, first_step=ratio
    )
    solver.t, solver.last_h, solver.series = 1.0, 1.0, np.zeros((2, 10))
    return solver


@pytest.mark.parametrize("ratio", [0.3, 1.0, 8.0])
def test_guess_continues_a_polynomial_and_leaves_out_what_grows(ratio):
    """Of coefficients 1, 0.1, 1e-8, …, 1e-8 the last ones are noise: continued over eight lengths they would be 1e5."""
    solver = started(ratio)
    solver.series[:, 1:] = np.array([1.0, 0.1, *[1e-8] * 7])
    ahead = 1.0 + 2.0 * ratio * solver.tableau.nodes
    wanted = (ahead - 1.0) + 0.1 * (1.5 * ahead**2 - 1.5)
    assert np.abs(solver._guess(ratio) - wanted).max() < 1e-3


def test_jacobian_is_renewed_where_its_age_makes_newton_slow():
    """Computed in the middle of a step, it is eight times as far off in the next: |∫s ds| is 1/8 there and 1 here."""
    solver = started(1.0)
    solver.linearised_at, solver.contraction = 0.5, 0.04
    solver.factors[1.0] = []
    solver.iterations = solver.fresh_iterations = 5
    assert 8 * solver.contraction > SLOW_CONVERGENCE > 8 * 0.039
    assert solver._outdated(1.0)
    solver.contraction = 0.039
    assert not solver._outdated(1.0)
    solver.iterations = 7  # a step of another length needs new factors anyway
    assert not solver._outdated(1.0)
    assert solver._outdated(0.9)
