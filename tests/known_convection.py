"""Flows that carry scalars, with exact solutions: sources follow from chosen fields."""

import numpy as np
import sympy

import rannpde as rp

X, Y = sympy.symbols("x y")


def _function(formula):
    compiled = sympy.lambdify((X, Y), formula, "numpy")
    return lambda x, y: compiled(x, y) + 0.0 * x


def made_convection(rng, shape="box", unit=1.0):
    """A flow with inertia, driven by buoyancy in a random direction, with a temperature T, and a concentration c that
    does not act back and reacts with T. Conditions of both change from side to side."""

    def number(low, high):
        return round(float(rng.uniform(low, high)), 3)

    def wave():
        places = [number(0.5, 2) * z / unit + number(0, 3) for z in (X, Y)]
        return number(0.5, 1.5) * sympy.sin(places[0]) * sympy.cos(places[1])

    def steady(field, diffusivity):
        spread = sympy.diff(field, X, 2) + sympy.diff(field, Y, 2)
        return u * sympy.diff(field, X) + v * sympy.diff(field, Y) - diffusivity * spread

    speed = 10.0 ** number(-1, 1)
    stream, pressure = speed * unit * wave(), speed**2 * wave()
    u, v = sympy.diff(stream, Y), -sympy.diff(stream, X)
    nu, kappa, mixing = (speed * unit * number(0.05, 1) for _ in range(3))
    warm, mixed = number(-2, 2) + wave(), wave()
    lift = [number(-5, 5) * speed**2 / unit for _ in range(2)]
    rate = speed / unit * number(0.1, 1)
    sources = {
        "fx": steady(u, nu) + sympy.diff(pressure, X) - lift[0] * warm,
        "fy": steady(v, nu) + sympy.diff(pressure, Y) - lift[1] * warm,
        "heat": steady(warm, kappa),
        "supply": steady(mixed, mixing) + rate * mixed * warm,
    }
    given = {"ue": u, "ve": v, "Te": warm, "ce": mixed}
    for name, field in (("T", warm), ("c", mixed)):
        given |= {f"{name}x": sympy.diff(field, X), f"{name}y": sympy.diff(field, Y)}
    equations = [
        f"u*u_x + v*u_y + p_x = {nu!r}*laplace(u) + ({lift[0]!r})*T + fx(x, y)",
        f"u*v_x + v*v_y + p_y = {nu!r}*laplace(v) + ({lift[1]!r})*T + fy(x, y)",
        "u_x + v_y = 0",
        f"{kappa!r}*laplace(T) + heat(x, y) = u*T_x + v*T_y",
        f"d(u*c, x) + d(v*c, y) = {mixing!r}*laplace(c) - {rate!r}*c*T + supply(x, y)",
    ]
    box = rp.Box(x=(0, 1.3 * unit), y=(0, unit))
    sides = ["x=0", f"x={1.3 * unit!r}", "y=0", f"y={unit!r}"]
    domain = box
    if shape == "disc":
        domain = box - rp.Ball((0.6 * unit, 0.5 * unit), 0.2 * unit, name="disc")
        sides.append("disc")
    if shape == "polygon":
        corners = unit * np.array([(0, 0), (1.3, 0.1), (1.1, 1), (0.2, 0.8)])
        sides = ["lower", "right", "upper", "left"]
        domain = rp.Polygon(corners.tolist(), edges=tuple(sides))
    warmth, slope = "T", "nx*Tx(x, y) + ny*Ty(x, y)"
    kinds = [
        f"{warmth} = Te(x, y)",
        f"dn(T) = {slope}",
        f"T + {0.5 * unit!r}*dn(T) = Te(x, y) + {0.5 * unit!r}*({slope})",
    ]
    conditions = {}
    for k, side in enumerate(sides):
        first = kinds[0 if k == 0 else int(rng.integers(3))]
        second = "c = ce(x, y)" if k == 0 or rng.random() < 0.6 else "dn(c) = nx*cx(x, y) + ny*cy(x, y)"
        conditions[f"side {k}"] = rp.On(side, ["u = ue(x, y)", "v = ve(x, y)", first, second])
    functions = {name: _function(formula) for name, formula in (sources | given).items()}
    problem = rp.Problem(equations, domain, conditions, functions=functions, fields=("u", "v", "p", "T", "c"))
    return problem, [_function(one) for one in (u, v, pressure, warm, mixed)]


def convection_errors(solution, exact, count=2000):
    """Relative errors of the velocity, of the pressure, whose mean is free, and of the scalars."""
    points = solution.stated.domain.sample(count, rng=1)
    found, wanted = solution(points), np.stack([one(*points.T) for one in exact], axis=1)
    found[:, 2] += wanted[:, 2].mean() - found[:, 2].mean()
    parts = [[0, 1], *([k] for k in range(2, len(exact)))]
    return [float(np.linalg.norm((found - wanted)[:, p]) / np.linalg.norm(wanted[:, p])) for p in parts]


def heated_cavity(rayleigh, prandtl=0.71, hot="x=0", cold="x=1", level=0.0):
    """De Vahl Davis' square, two opposite sides of which are kept at temperatures that differ by one."""
    rest = [side for side in ("x=0", "x=1", "y=0", "y=1") if side not in (hot, cold)]
    equations = [
        "u*u_x + v*u_y + p_x = Pr*laplace(u)",
        "u*v_x + v*v_y + p_y = Pr*laplace(v) + Ra*Pr*(T - level)",
        "u_x + v_y = 0",
        "u*T_x + v*T_y = laplace(T)",
    ]
    conditions = {
        "walls": rp.On("boundary", ["u = 0", "v = 0"]),
        "hot": rp.On(hot, "T = level + 1"),
        "cold": rp.On(cold, "T = level"),
        "insulated": rp.On(tuple(rest), "dn(T) = 0"),
    }
    parameters = {"Ra": rayleigh, "Pr": prandtl, "level": level}
    return rp.Problem(equations, rp.Box(x=(0, 1), y=(0, 1)), conditions, parameters, fields=("u", "v", "p", "T"))
