"""Random flows with known velocity and pressure: positions, units, viscosities, inertia, holes and conditions."""

import numpy as np
import sympy

import rannpde as rp

X, Y = sympy.symbols("x y", real=True)


def random_flow(rng, inertia=None, hole=None, open_side=None, symmetric=False):
    """A problem with its exact solution, which a stream function and a pressure give."""
    given = (inertia, hole, open_side)
    inertia, hole, open_side = (bool(rng.integers(2)) if one is None else one for one in given)
    unit = 10.0 ** rng.uniform(-3, 3)
    low = unit * rng.uniform(-3, 3, 2).round(2)
    size = unit * rng.uniform(0.5, 1.5, 2).round(3)
    speed = 10.0 ** rng.uniform(-2, 2)
    reynolds = 10.0 ** rng.uniform(0, 2)
    viscosity = float(f"{speed * unit / reynolds:.3g}")
    a, b, shift = rng.uniform(0.8, 2.2, 3).round(2)
    x, y = (X - low[0]) / unit, (Y - low[1]) / unit
    stream = speed * unit * (sympy.sin(a * x + shift) * sympy.cos(b * y) + y * sympy.exp(-x / 2) / 2)
    if open_side:  # fluid leaves there: flows that enter through a given traction are not unique
        stream += 3 * speed * unit * y
    u, v = sympy.diff(stream, Y), -sympy.diff(stream, X)
    p = speed * viscosity / unit * (sympy.cos(a * x) * y + sympy.sin(b * y))
    carried = [sympy.Integer(0)] * 2
    if inertia:
        carried = [u * sympy.diff(one, X) + v * sympy.diff(one, Y) for one in (u, v)]
    forces = [
        carried[k] - viscosity * (sympy.diff(one, X, 2) + sympy.diff(one, Y, 2)) + sympy.diff(p, (X, Y)[k])
        for k, one in enumerate((u, v))
    ]
    moved = ("u*u_x + v*u_y", "u*v_x + v*v_y") if inertia else ("0", "0")
    equations = {
        "x": f"{moved[0]} - nu*laplace(u) + p_x = {forces[0]}",
        "y": f"{moved[1]} - nu*laplace(v) + p_y = {forces[1]}",
        "mass": "u_x + v_y = 0",
    }
    high = low + size
    domain = rp.Box(x=(low[0], high[0]), y=(low[1], high[1]))
    if hole:
        domain = domain - rp.Ball(tuple(low + size * rng.uniform(0.35, 0.6, 2)), 0.2 * size.min(), name="hole")
    held = [f"u = {u}", f"v = {v}"]
    exact = {"u": str(u), "v": str(v), "p": str(p)}
    if not open_side:
        corner = np.array([low + 0.01 * size])
        value = float(p.subs({X: corner[0, 0], Y: corner[0, 1]}))
        conditions = {"velocity": rp.On("boundary", held), "level": rp.Data(corner, [value], "p")}
    else:
        side = f"x={float(high[0])!r}"
        slopes = [sympy.diff(one, X) for one in (u, v)]
        if symmetric:
            tractions = [2 * viscosity * slopes[0] - p, viscosity * (slopes[1] + sympy.diff(u, Y))]
            stated = [f"2*nu*u_x - p = {tractions[0]}", f"nu*(v_x + u_y) = {tractions[1]}"]
        else:
            stated = [f"nu*dn(u) - p*nx = {viscosity * slopes[0] - p}", f"nu*dn(v) = {viscosity * slopes[1]}"]
        conditions = {"velocity": rp.On(f"boundary except {side}", held), "open": rp.On(side, stated)}
    return rp.Problem(equations, domain, conditions, {"nu": viscosity}, fields=("u", "v", "p"), exact=exact)


def cylinder(unit=1.0, outputs=True):
    """DFG 2D-1, flow around a cylinder (Schäfer and Turek 1996), in a unit of length."""
    height = 0.41 * unit
    channel = rp.Box(x=(0, 2.2 * unit), y=(0, height)) - rp.Ball((0.2 * unit, 0.2 * unit), 0.05 * unit, name="cylinder")
    equations = {
        "x": "u*u_x + v*u_y = -p_x + nu*laplace(u)",
        "y": "u*v_x + v*v_y = -p_y + nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    sides = {
        "inflow": rp.On("x=0", [f"u = 1.2*{unit}*y*({height} - y)/{height}**2", "v = 0"]),
        "walls": rp.On(("y=0", f"y={height!r}", "cylinder"), ["u = 0", "v = 0"]),
        "outflow": rp.On(f"x={2.2 * unit!r}", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    }
    scale = 500 / unit**3
    stated = {"drag": rp.Output(f"{scale}*(p*nx - nu*dn(u))", on="cylinder")}
    stated["lift"] = rp.Output(f"{scale}*(p*ny - nu*dn(v))", on="cylinder")
    return rp.Problem(
        equations, channel, sides, {"nu": 1e-3 * unit**2}, fields=("u", "v", "p"), outputs=stated if outputs else {}
    )  # fmt: skip


def cavity(reynolds, unit=1.0):
    """The flow in a box whose lid moves: the prescribed velocity jumps in two corners."""
    equations = [
        "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "u_x + v_y = 0",
    ]
    lid = f"y={float(unit)!r}"
    sides = {"lid": rp.On(lid, ["u = 1", "v = 0"]), "walls": rp.On(f"boundary except {lid}", ["u = 0", "v = 0"])}
    box = rp.Box(x=(0, unit), y=(0, unit))
    return rp.Problem(equations, box, sides, {"nu": unit / reynolds}, fields=("u", "v", "p"))


def backward_step(reynolds, length=30, unit=1.0, speed=1.0):
    """Gartling's channel: the fluid enters through the upper half of its left side; heights and mean velocities in any
    unit."""
    half = 0.5 * unit
    conditions = {
        "inflow": rp.On("x=0 where y > 0", [f"u = {24 * speed!r}*(y/{unit!r})*(0.5 - y/{unit!r})", "v = 0"]),
        "step": rp.On("x=0 where y < 0", ["u = 0", "v = 0"]),
        "walls": rp.On((f"y={-half!r}", f"y={half!r}"), ["u = 0", "v = 0"]),
        "outflow": rp.On(f"x={length * unit!r}", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    }
    equations = ["u*u_x + v*u_y + p_x = nu*laplace(u)", "u*v_x + v*v_y + p_y = nu*laplace(v)", "u_x + v_y = 0"]
    domain = rp.Box(x=(0, length * unit), y=(-half, half))
    return rp.Problem(equations, domain, conditions, {"nu": speed * unit / reynolds}, fields=("u", "v", "p"))


def shear_turns(solution, wall, count=400):
    """Where the shear u_y on a wall y = … changes its sign."""
    low, high = solution.stated.domain.bounds[0]
    x = np.linspace(low, high, count + 2)[1:-1]
    shear = solution.derivative("u_y", x=x, y=wall)
    k = np.flatnonzero(np.sign(shear[1:]) != np.sign(shear[:-1]))
    return x[k] - shear[k] * (x[k + 1] - x[k]) / (shear[k + 1] - shear[k])
