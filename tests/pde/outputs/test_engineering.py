"""Numbers that engineers ask for, in their units, with known answers: within the bound at any tolerance."""

from math import acosh, cosh, exp, pi, sinh, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq

import rannpde as rp
from draws import covering


def fin():
    """A cooling fin with convection at its sides and its tip: heat into it, temperature at the tip, mean."""
    h, k, thick, length = 35.0, 180.0, 0.002, 0.045
    m = sqrt(2 * h / (k * thick))
    tip = {"base": rp.On("x=0", "T = 95"), "tip": rp.On(f"x={length}", f"{k}*T_x + {h}*(T - 25) = 0")}
    outputs = {
        "loss": rp.Output(f"{-k * thick!r}*T_x", at=(0.0,)),
        "tip": f"T({length})",
        "mean": rp.Output("T", kind="mean"),
    }
    problem = rp.Problem(f"{k * thick!r}*T_xx = {2 * h!r}*(T - 25)", rp.Interval(0, length), tip, outputs=outputs)
    ratio, x = h / (m * k), m * length
    below = cosh(x) + ratio * sinh(x)
    loss, end = k * thick * m * 70 * (sinh(x) + ratio * cosh(x)) / below, 70 / below
    return problem, {"loss": loss, "tip": 25 + end, "mean": 25 + (loss - thick * h * end) / (2 * h) / length}


def cooling_wall():
    """A hot wall in cool air: when its middle has 60 °C."""
    length, k, h, spread = 0.1, 1.5, 30.0, 8e-7
    biot = h * length / k
    roots = [brentq(lambda s: s * np.sin(s) - biot * np.cos(s), n * pi, n * pi + pi / 2) for n in range(40)]
    roots = np.array(roots)
    parts = 4 * np.sin(roots) / (2 * roots + np.sin(2 * roots))
    exact = brentq(lambda t: 180 * parts @ np.exp(-(roots**2) * spread * t / length**2) - 40, 100, 1e6, xtol=1e-9)
    sides = {
        "start": rp.On("t=0", "T = 200"),
        "middle": rp.On("x=0", "T_x = 0"),
        "air": rp.On(f"x={length}", f"{k}*T_x + {h}*(T - 20) = 0"),
    }
    domain = rp.SpaceTime(t=(0, 30000), x=(0, length))
    return rp.Problem(f"T_t = {spread}*T_xx", domain, sides, outputs={"time": "T(0) = 60"}), {"time": exact}


def eccentric_cable():
    """A wire beside the axis of a shell, in metres: the capacitance over the permittivity."""
    shell, wire, away = 0.021, 0.0065, 0.0083
    cable = rp.Ball((0, 0), shell, name="shell") - rp.Ball((away, 0), wire, name="wire")
    outputs = {"capacitance": rp.Output("dn(u)/12", on="wire")}
    problem = rp.Problem("laplace(u) = 0", cable, {"shell": "u = 0", "wire": "u = 12"}, outputs=outputs)
    return problem, {"capacitance": 2 * pi / acosh((shell**2 + wire**2 - away**2) / (2 * shell * wire))}


def transport():
    """A layer at an outlet, Péclet number 60: the gradient there, and the amount inside."""
    outputs = {"gradient": rp.Output("c_x", at=(1.0,)), "amount": "c"}
    ends = {"in": rp.On("x=0", "c = 0"), "out": rp.On("x=1", "c = 1")}
    problem = rp.Problem("c_xx = 60*c_x", rp.Interval(0, 1), ends, outputs=outputs)
    return problem, {"gradient": 60 / (1 - exp(-60)), "amount": 1 / 60 - exp(-60) / (1 - exp(-60))}


@pytest.mark.parametrize(("case", "tol"), covering([fin, cooling_wall, eccentric_cable, transport], [1e-8, 1e-2]))
def test_known_answers_are_within_their_bounds(case, tol):
    problem, exact = case()
    solution = rp.solve(problem, tol=tol)
    for name, found in solution.outputs.items():
        assert found.converged
        assert abs(float(found) - exact[name]) <= float(found.bound) <= tol * abs(exact[name]), name
