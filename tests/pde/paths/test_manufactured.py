"""Random semilinear problems with explicit solutions: many processes, sources, dimensions, units, either end of time.

A wave or a power v whose conditional expectation along the process is known in closed form solves the linear equation;
F(u) - F(v) is added for a random F of u and ∇u, and vanishes on u = v.
"""

import os
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

import rannpde as rp
from draws import draws

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or draws(4, 8)
"""Draws; RANNPDE_FUZZ=1000 asks for a hundred of them."""
METHOD = rp.Paths(steps=4, width=8, training=1000, paths=1024)


@dataclass(frozen=True)
class Manufactured:
    """A problem, the point at which it is asked, and its solution there."""

    problem: rp.Problem
    point: np.ndarray
    exact: float
    words: str


def manufactured(rng):
    """A problem whose solution v is known along a random process: a wave sin(k·x) of Brownian motion with drift, of
    correlated noise or of an Ornstein–Uhlenbeck process, or a product of powers of a geometric Brownian motion.

    ``left`` is the time to the data, written in t; numbers are in random units of x and t.
    """
    dim, kind = int(rng.choice([1, 2, 7, 30, 100])), str(rng.choice(["drift", "correlated", "forgets", "lognormal"]))
    length, unit, size = (float(10 ** rng.uniform(-1, 1)) for _ in range(3))
    at_end = bool(rng.integers(2))
    left = f"({length!r} - t)" if at_end else "t"
    sigma = unit / np.sqrt(length)  # of order one in these units
    k = rng.normal(0, 1, dim) / np.sqrt(dim) / unit
    phase, point = float(rng.uniform(0, 3)), unit * rng.normal(0, 1, dim)
    words = {"k": k, "q": phase, "c": size, "e": 2.5}
    if kind == "lognormal":
        rate, spread = float(rng.normal(0, 0.3)) / length, float(rng.uniform(0.1, 0.5)) / np.sqrt(length)
        power, point = rng.normal(0, 1, dim) / np.sqrt(dim), unit * np.exp(rng.normal(0, 0.3, dim))
        growth = float(rate * power.sum() + 0.5 * spread**2 * np.sum(power**2 - power))
        words = {"p": power, "r": rate, "s": spread, "g": growth, "c": size, "m": unit}
        second = "r*dot(x, grad(u)) + trace(diag((s*x)**2)*hessian(u))/2"
        base = f"exp(dot(p, log(x/m)) + g*{left})"
        wave, slope = f"c*{base}", f"(c*{base})**2*dot(p**2, x**(-2))"
        value = size * np.exp(power @ np.log(point / unit) + growth * length)
    else:
        root = np.eye(dim)
        if kind == "correlated":
            root = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * rng.uniform(0.3, 1.2, dim)
        covariance = sigma**2 * root @ root.T
        variance = float(k @ covariance @ k)
        drift = sigma / np.sqrt(length) * rng.normal(0, 1, dim) / np.sqrt(dim) if kind == "drift" else np.zeros(dim)
        decay = float(rng.uniform(0.2, 2)) / length if kind == "forgets" else 0.0
        words |= {"C": covariance, "b": drift, "w": variance, "d1": float(k @ drift), "y": decay}
        second = "trace(C*hessian(u))/2" + (" + dot(b, grad(u))" if kind == "drift" else "")
        second += " - y*dot(x, grad(u))" if decay else ""
        shrink = f"exp(-y*{left})" if decay else "1"
        spent = f"(1 - exp(-2*y*{left}))/(2*y)" if decay else left
        inside = f"dot(k, x)*{shrink} + d1*{left} + q"
        wave = f"c*(e + sin({inside})*exp(-w*{spent}/2))"
        slope = f"(c*cos({inside})*exp(-w*{spent}/2)*{shrink})**2*dot(k, k)"
        times = (np.exp(-decay * length), -np.expm1(-2 * decay * length) / (2 * decay)) if decay else (1.0, length)
        value = np.sin(k @ point * times[0] + k @ drift * length + phase) * np.exp(-0.5 * variance * times[1])
        value = size * (2.5 + value)
    speed = 1 / length
    sources = {
        "linear": "0*u", "square": f"z*(u**2 - ({wave})**2)/c", "sine": f"z*c*(sin(u/c) - sin({wave}/c))",
        "capped": f"z*c*min(1, ((u - {wave})/c)**2)", "gradient": f"z*l**2/c*(dot(grad(u), grad(u)) - {slope})",
    }  # fmt: skip
    name = str(rng.choice(list(sources)))
    words |= {"z": float(rng.uniform(-1, 1)) * speed, "l": unit}
    equation = f"u_t + {second} + {sources[name]} = 0" if at_end else f"u_t = {second} + {sources[name]}"
    time, data = (f"t={length!r}", wave) if at_end else ("t=0", wave)
    problem = rp.Problem(
        equation, rp.SpaceTime(t=(0, length), x=rp.Euclidean(dim)), {time: f"u = {data}"}, parameters=words
    )
    return Manufactured(problem, point, float(value), f"{kind}, {name}, d = {dim}")


@pytest.fixture(scope="module")
def answers():
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        for seed in range(COUNT):
            case = manufactured(np.random.default_rng([7, seed]))
            found.append((case, rp.solve(case.problem, at=case.point, tol=1e-9, method=METHOD, rng=seed)))
    return found


def test_intervals_hold_the_solutions_as_often_as_they_say(answers):
    held = [found.interval[0] <= case.exact <= found.interval[1] for case, found in answers]
    assert sum(held) >= binom.ppf(1e-4, len(held), 0.95)


def test_no_value_is_far_outside_its_interval(answers):
    far = [
        (case.words, case.exact, found.value, found.half_width)
        for case, found in answers
        if abs(found.value - case.exact) > 3 * found.half_width + 1e-9 * abs(case.exact)
    ]  # 3 half-widths are six standard errors
    assert not far
