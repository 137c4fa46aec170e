"""Walls with u = 0: exact solutions by reflection, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm

import rannpde as rp
from rannpde.pde.paths.walls import WallPair

FAST = rp.Paths(steps=8, width=16, training=1500, paths=8192)


def solved(equation, conditions, at, dim=10, length=1.0, method=FAST, **more):
    problem = rp.Problem(equation, rp.SpaceTime(t=(0, length), x=rp.Euclidean(dim)), conditions, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        return rp.solve(problem, at=at, tol=1e-9, method=method, rng=1)


def holds(found, reference):
    lower, upper = found.interval
    width = upper - lower
    return lower - width <= reference <= upper + width  # three half-widths: 4e-9 by chance


@pytest.mark.parametrize("width", [np.inf, 1.0, 0.3])
def test_bridges_survive_as_often_as_fine_walks(width):
    rng, steps, count, h = np.random.default_rng(0), 500, 4000, 0.2
    start, end = 0.2 if width > 0.5 else 0.1, 0.25 if width > 0.5 else 0.15
    noise = rng.standard_normal((count, steps)) * np.sqrt(h / steps)
    walk = np.cumsum(noise, axis=1)
    time = np.arange(1, steps + 1) / steps
    bridge = start + walk - time * walk[:, -1:] + time * (end - start)
    pair = WallPair(np.ones(1), 0.0, width)
    found = pair.survival(np.array([start]), np.array([end]), h)[0]
    # a walk on a grid sees a wall that is 0.5826 standard deviations of a step farther away (Siegmund 1979)
    shift = 0.5826 * np.sqrt(h / steps)
    moved = WallPair(np.ones(1), -shift, width + 2 * shift).survival(np.array([start]), np.array([end]), h)[0]
    seen = np.mean((bridge > 0).all(axis=1) & (bridge < width).all(axis=1))
    assert abs(seen - moved) < 5 * np.sqrt(max(moved * (1 - moved), 1 / count) / count)
    assert found <= moved


def test_heat_in_a_half_space_is_found_by_reflection():
    # u = 0 at x_1 = 0, u(1) = 1: u = erf(x_1/√2), in any number of dimensions
    found = solved("u_t + laplace(u)/2 = 0", {"t=1": "u = 1", "x[1]=0": "u = 0"}, np.full(10, 0.7))
    assert holds(found, 2 * norm.cdf(0.7) - 1)
    assert found.half_width < 0.02


def test_heat_in_a_slab_decays_with_its_first_mode():
    # u(T) = sin(πx_1)·(1 + sum of the others): the other coordinates are free
    conditions = {"t=0.2": "u = sin(pi*x[1])*(1 + x[2])", "walls": rp.On(("x[1]=0", "x[1]=1"), "u = 0")}
    found = solved("u_t + laplace(u)/2 + u = 0", conditions, np.full(10, 0.4), length=0.2)
    assert holds(found, np.sin(0.4 * np.pi) * 1.4 * np.exp(0.2 - 0.1 * np.pi**2))


def test_a_knock_out_call_has_its_closed_form():
    # down-and-out, barrier 80 below the strike: the call less its image (Merton 1973)
    def call(x):
        first = (np.log(x / 100) + 0.05 + 0.02) / 0.2
        return x * norm.cdf(first) - 100 * np.exp(-0.05) * norm.cdf(first - 0.2)

    found = solved(
        "u_t + 0.05*dot(x, grad(u)) + 0.02*trace(diag(x**2)*hessian(u)) = 0.05*u",
        {"t=1": "u = max(x[1] - 100, 0)", "x[1]=80": "u = 0"}, 95.0, dim=3,
    )  # fmt: skip
    image = (95 / 80) ** (1 - 2 * 0.05 / 0.04) * call(80**2 / 95)
    assert holds(found, call(95.0) - image)


@pytest.mark.parametrize(
    ("conditions", "at", "says"),
    [
        ({"norm(x)=1": "u = 0"}, 0.1, "hyperplane"),
        ({"x[1]=0": "u = 1"}, 0.5, "u = 0"),
        ({"x[1]=0.5": "u = 0"}, 0.5, "on one side"),
        ({"x[1]=0": "u = 0", "x[1] + x[2]=0": "u = 0"}, 0.5, "parallel"),
    ],
)
def test_walls_that_are_not_simple_are_refused(conditions, at, says):
    with pytest.raises(rp.InputError, match=says):
        solved("u_t + laplace(u)/2 = 0", {"t=1": "u = 1", **conditions}, at, dim=2)


def test_walls_and_other_processes_are_refused():
    with pytest.raises(rp.InputError, match="Brownian"):
        solved("u_t + laplace(u)/2 - dot(x, grad(u)) = 0", {"t=1": "u = 1", "x[1]=0": "u = 0"}, 0.5, dim=2)
