"""Flows of which whole fields vanish: components of a velocity, a pressure, a velocity altogether."""

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from known_channels import channel, flow_error, random_channel
from rannpde.pde.flow.difference import flow_difference

TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-2, 1e-3, 1e-2, 1e-5, 1e-2)


@pytest.mark.parametrize("seed", range(draws(2, 8)))
def test_random_channels(seed):
    """Poiseuille's and Couette's flows in random units, places, directions and Reynolds numbers."""
    tol = TOLERANCES[seed]
    solution = rp.solve(random_channel(np.random.default_rng(seed)), tol=tol, method="flow", seconds=60)
    assert solution.converged
    assert max(flow_error(solution)) <= tol


@pytest.mark.parametrize("viscosity", some([1e-3, 1e-2, 0.1, 10.0], 2))
def test_a_component_is_judged_by_its_vector(viscosity):
    """In a channel along x the component v vanishes, and at every viscosity two iterations suffice."""
    solution = rp.solve(channel(1 / viscosity), tol=1e-2, method="flow")
    assert solution.converged
    assert len(solution.history.iterations) == 2
    assert max(flow_error(solution)) < 1e-3


def test_a_pressure_that_vanishes_is_told():
    solution = rp.solve(channel(20.0, moving=True), tol=1e-3, method="flow")
    assert solution.converged
    assert "cannot be distinguished from zero" in str(solution.report())
    assert np.abs(solution([[1.0, 0.5]])[0, 2]) < 1e-3 / 20


def test_a_fluid_at_rest():
    """Gravity makes a pressure and no flow."""
    equations = ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = -9.81*exp(-y)", "u_x + v_y = 0"]
    walls = {"walls": rp.On("boundary except y=1", ["u = 0", "v = 0"]), "top": rp.On("y=1", ["u = 0", "p = 0"])}
    problem = rp.Problem(equations, rp.Box(x=(0, 2), y=(0, 1)), walls, fields=("u", "v", "p"))
    solution = rp.solve(problem, tol=1e-4, method="flow", seconds=60)
    assert solution.converged
    u, v, p = solution([[0.7, 0.25]])[0]
    assert p == pytest.approx(9.81 * (np.exp(-0.25) - np.exp(-1)), rel=1e-4)
    assert np.hypot(u, v) < 1e-6


def test_differences_in_every_unit():
    rng = np.random.default_rng(0)
    now = rng.normal(size=(200, 3)) * [1.0, 1e-9, 3.0]
    before = now + 1e-6 * rng.normal(size=now.shape)
    found = flow_difference(before, now, (0, 1, 2), 1.0, 1.0, 1e-3)
    assert found.velocity == pytest.approx(np.sqrt(2) * 1e-6, rel=0.2)
    assert not found.vanishing
    scales = np.array([1e4, 1e4, 1e-7])
    other = flow_difference(before * scales, now * scales, (0, 1, 2), 1e-7, 1e11, 1e-3)
    assert (other.velocity, other.pressure) == pytest.approx((found.velocity, found.pressure))
    noise = flow_difference(before - now, 2 * before - 2 * now, (0, 1, 2), 1.0, 1e-6, 1e-3)
    assert noise.vanishing
    assert noise.pressure < 2e-6
    assert flow_difference(before * np.nan, now, (0, 1, 2), 1.0, 1.0, 1e-3).velocity == np.inf
