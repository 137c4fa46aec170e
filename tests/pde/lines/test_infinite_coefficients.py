"""Evolution in a disc or a ball by its radius: coefficients that are infinite at the axis, and methods that fail."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.errors import MethodError
from rannpde.pde import selection


def radial(radius, diffusivity, decay, start, terms):
    """Cooling of a disc or a ball: the problem over the time in which it falls to 1/e."""
    return rp.Problem(
        f"u_t = {diffusivity!r}*(u_rr + {terms})",
        rp.SpaceTime(rp.Box(r=(0, radius)), (0, 1 / decay)),
        {
            "start": rp.On("t=0", f"u = {start}"),
            "axis": rp.On("r=0", "u_r = 0"),
            "outside": rp.On(f"r={radius!r}", "u = 0"),
        },
    )


def relative_error(solution, radius, decay, profile):
    points = np.random.default_rng(0).uniform(0, 1, (4000, 2)) * [1 / decay, radius]
    exact = profile(points[:, 1]) * np.exp(-decay * points[:, 0])
    return np.linalg.norm(solution(points) - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("seed", range(draws(4, 40)))
@pytest.mark.parametrize("shape", ["disc", "ball"])
def test_the_axis_does_not_disturb_what_cools_round_it(shape, seed):
    from scipy.special import j0, jn_zeros

    rng = np.random.default_rng([83, seed])
    radius = float(np.round(10 ** rng.uniform(-1, 1), 3))
    diffusivity, tol = float(10 ** rng.uniform(-2, 2)), float(10 ** rng.uniform(-9, -2))
    mode = int(rng.integers(1, 4))
    if shape == "disc":
        wave = float(jn_zeros(0, mode)[-1] / radius)
        start, profile, terms = f"besselj(0, {wave!r}*r)", lambda r: j0(wave * r), "u_r/r"
    else:
        wave = mode * np.pi / radius
        start, profile, terms = f"sin({wave!r}*r)/r", lambda r: np.sin(wave * r) / r, "2*u_r/r"
    decay = diffusivity * wave**2
    solution = rp.solve(radial(radius, diffusivity, decay, start, terms), tol=tol, rng=seed, seconds=60)
    error = relative_error(solution, radius, decay, profile)
    assert solution.converged
    assert error < max(10 * solution.estimate, 1e-12)
    assert error < 5 * tol


def test_a_method_that_comes_to_nothing_hands_over_to_the_next(monkeypatch):
    problem = radial(1.0, 1.0, 6.0, "1 - r**2", "u_r/r")
    run = selection._run

    def failing(method, *arguments):
        if method.name == "lines":
            raise MethodError("no step in time leads away from the initial values")
        return run(method, *arguments)

    monkeypatch.setattr(selection, "_run", failing)
    solution = rp.solve(problem, tol=1e-3, seconds=60)
    assert solution.method.name != "lines"
    assert "no step in time leads away" in solution.method.why


def test_where_every_method_comes_to_nothing_the_first_reason_is_told(monkeypatch):
    def failing(method, *arguments):
        raise MethodError(f"{method.name} came to nothing")

    monkeypatch.setattr(selection, "_run", failing)
    with pytest.raises(rp.InputError, match="lines came to nothing"):
        rp.solve(radial(1.0, 1.0, 6.0, "1 - r**2", "u_r/r"), tol=1e-3)
