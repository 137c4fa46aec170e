"""Families of their own seeds: problems at the edge of what is determined, resolved or conditioned.

They do not take turns with the others, so that a seed of those keeps its problem: ``hunt.py --families delicate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import dawsn, erf, hyp1f1, lambertw

from honesty.cases import OWN_SEEDS, Draw, force, number, pick, place
from rannpde.pde.problem.conditions import On, Periodic


def delicate(make: Callable[[Draw], dict[str, Any]]) -> Callable[[Draw], dict[str, Any]]:
    OWN_SEEDS[make.__name__] = make
    return make


def tolerance(rng: Draw) -> float:
    """From 1e-9 to 1e-2, both ends often."""
    return pick(rng, 1e-2, 1e-9, float(f"{10 ** rng.uniform(-8, -2):.1e}"))


@delicate
def not_lipschitz(rng: Draw) -> dict[str, Any]:
    """±c |u|^p with p < 1: from beside an equilibrium towards infinity or into it, where it rests for good (one
    solution), or through one that it may leave at any time (many)."""
    p, c, first = place(rng, 0.2, 0.8), number(rng, 0.3, 30), number(rng, 0.05, 5)
    needed = first ** (1 - p) / (c * (1 - p))  # from there to rest
    kind = int(rng.integers(4))
    power = 1 / (1 - p)
    rest = f"max({first ** (1 - p)!r} - {c * (1 - p)!r}*t, 0)**{power!r}"
    equation, start, exact, length = (
        (f"u_t = {c}*abs(u)**{p}", first, f"({first ** (1 - p)!r} + {c * (1 - p)!r}*t)**{power!r}", 2.0),
        (f"u_t = -{c}*sign(u)*abs(u)**{p}", first, rest, 2.0),
        (f"u_t = -{c}*sign(u)*abs(u)**{p}", first, rest, 0.7),
        (f"u_t = {c}*abs(u)**{p}", -first, "", 2.0),
    )[kind]
    return {
        "equations": {"equation": equation}, "sides": {"t": (0.0, float(f"{length * needed:.4g}"))},
        "conditions": {"start": On("t=0", f"u = {start}")}, "exact": {"u": exact} if exact else {},
        "posed": bool(exact), "tol": tolerance(rng),
    }  # fmt: skip


@delicate
def systems_at_rest(rng: Draw) -> dict[str, Any]:
    """u'' = c |u|^p sign(u): from rest, or with just the energy to come to rest (many solutions); with less or more of
    it (one, not known as a formula), or from a height upwards."""
    p, c, height = place(rng, 0.2, 0.7), number(rng, 0.3, 30), number(rng, 0.05, 5)
    speed = float(np.sqrt(2 * c / (p + 1)) * height ** ((p + 1) / 2))
    needed = height / speed * 2 / (1 - p)
    kind = int(rng.integers(4))
    start, slope = ((0.0, 0.0), (height, -speed), (height, -0.7 * speed), (height, speed))[kind]
    power = 2 / (1 - p)
    exact = f"({height ** (1 / power)!r} + {speed / height / power * height ** (1 / power)!r}*t)**{power!r}"
    push = f"{c}*sign(u)*abs(u)**{p}"
    system = bool(rng.integers(2))
    equations = {"motion": "u_t = v", "force": f"v_t = {push}"} if system else {"force": f"u_tt = {push}"}
    return {
        "equations": equations, "sides": {"t": (0.0, float(f"{1.6 * needed:.4g}"))},
        "conditions": {
            "place": On("t=0", f"u = {start!r}"), "speed": On("t=0", f"{'v' if system else 'u_t'} = {slope!r}")
        },
        "exact": {"u": exact} if kind == 3 and not system else {}, "posed": kind > 1, "tol": tolerance(rng),
    }  # fmt: skip


@delicate
def several_branches(rng: Draw) -> dict[str, Any]:
    """First and second order, non-linear in the highest derivative or with a coefficient that may change its sign."""
    a, k, slope = number(rng, 0.1, 1), number(rng, 0.5, 4), pick(rng, 0.2, 1.0, 3.0)
    u, du, ddu = f"({slope}*x + {a}*sin({k}*x))", f"({slope} + {a * k!r}*cos({k}*x))", f"(-{a * k * k!r}*sin({k}*x))"
    equation, order = pick(
        rng, (f"u_x**2 + u = {du}**2 + {u}", 1), (f"u_x**3 + u_x = {du}**3 + {du}", 1),
        (f"u_x*abs(u_x) = {du}*abs({du})", 1), (f"u*u_x = {u}*{du}", 1), (f"u_xx*u_x = {ddu}*{du}", 2),
        (f"u*u_xx = {u}*{ddu}", 2),
        (f"sqrt(1 + u_x**2)*u_xx = sqrt(1 + {du}**2)*{ddu}", 2),
        (f"(0.01 + u_x**2)*u_xx = (0.01 + {du}**2)*{ddu}", 2), (f"u_xx*abs(u_x) = {ddu}*abs({du})", 2),
    )  # fmt: skip
    left, right = pick(rng, (0.0, 1.0), (0.3, 1.7), (-1.0, 1.0))
    sides = (f"x={left!r}",) if order == 1 else (f"x={left!r}", f"x={right!r}")
    return {
        "equations": {"equation": equation}, "sides": {"x": (left, right)},
        "conditions": {"ends": On(sides, f"u = {u}")}, "exact": {"u": u}, "tol": tolerance(rng),
    }  # fmt: skip


@delicate
def branches_in_the_plane(rng: Draw) -> dict[str, Any]:
    """u Δu = f and its like, where u changes its sign or does not."""
    shift, k, m = pick(rng, 0.0, 0.5, 2.0), number(rng, 0.5, 3), number(rng, 0.5, 3)
    u = f"({shift} + sin({k}*x - {m}*y))"
    residual = pick(rng, "u*laplace(u)", "div((0.1 + u**2)*grad(u))")
    return {
        "equations": {"equation": force(residual, {"u": u}, ("x", "y"))}, "sides": {"x": (-1.0, 1.0), "y": (0.0, 1.3)},
        "conditions": {"rim": On("boundary", f"u = {u}")}, "exact": {"u": u}, "tol": pick(rng, 1e-2, 1e-4, 1e-6),
    }  # fmt: skip


@delicate
def unresolved_waves(rng: Draw) -> dict[str, Any]:
    """Boundary and initial value problems of fast oscillations under a smooth load."""
    k, length = number(rng, 60, 3000), number(rng, 0.3, 3)
    if rng.integers(2):
        tan = float(np.tan(k * length / 2))
        exact = f"(1 - cos({k}*x) - ({tan!r})*sin({k}*x))/{k}**2"
        conditions = {"ends": On(("x=0", f"x={length!r}"), "u = 0")}
        return {"equations": {"equation": f"u_xx + {k}**2*u = 1"}, "sides": {"x": (0.0, length)},
                "conditions": conditions, "exact": {"u": exact}, "tol": tolerance(rng)}  # fmt: skip
    exact = f"(1 - cos({k}*t))/{k}**2"
    conditions = {"place": On("t=0", "u = 0"), "speed": On("t=0", "u_t = 0")}
    return {"equations": {"equation": f"u_tt = 1 - {k}**2*u"}, "sides": {"t": (0.0, length)},
            "conditions": conditions, "exact": {"u": exact}, "tol": tolerance(rng)}  # fmt: skip


@delicate
def turning_points(rng: Draw) -> dict[str, Any]:
    """ε u'' = ± x u' on (-a, a): outflow at both ends, or a layer inside."""
    eps, a, low, high = number(rng, 1e-9, 1), number(rng, 0.3, 3), round(float(rng.uniform(-2, 2)), 2), 1.0
    s = 1 / np.sqrt(2 * eps)
    outflow = bool(rng.integers(2))

    def exact(points: np.ndarray) -> np.ndarray:
        x = points[:, 0]
        odd = np.exp((x**2 - a**2) * s**2) * dawsn(x * s) / dawsn(a * s) if outflow else erf(x * s) / erf(a * s)
        return 0.5 * (high + low) + 0.5 * (high - low) * odd

    return {
        "equations": {"equation": f"{eps!r}*u_xx {'-' if outflow else '+'} x*u_x = 0"}, "sides": {"x": (-a, a)},
        "conditions": {"left": On(f"x={-a!r}", f"u = {low}"), "right": On(f"x={a!r}", f"u = {high}")},
        "exact": {"u": exact}, "tol": tolerance(rng),
    }  # fmt: skip


def carried_in_disc(rng: Draw, name: str) -> tuple[str, str, Callable[[np.ndarray], np.ndarray]]:
    """ε Δu = ± x·∇u in a disc: outflow along the whole circle, or inflow and a hump inside; the value on the circle.

    Solutions are r^m M(m/2, m + 1, ±r²/2ε) cos mθ, with Kummer's function M.
    """
    eps, m, mean = number(rng, 3e-3, 1), int(rng.integers(1, 4)), round(float(rng.uniform(-2, 2)), 2)
    sign = pick(rng, 1, -1)

    def profile(squared: np.ndarray) -> np.ndarray:
        """M at r², divided by exp(r²/2ε) for an outflow (Kummer's transformation)."""
        return hyp1f1(m / 2 + 1 if sign > 0 else m / 2, m + 1, -squared / (2 * eps))

    def exact(points: np.ndarray) -> np.ndarray:
        z, squared = points[:, 0] + 1j * points[:, 1], np.sum(points**2, axis=1)
        growth = np.exp((squared - 1) / (2 * eps)) if sign > 0 else 1.0
        return mean + (z**m).real * growth * profile(squared) / profile(np.ones(1))[0]

    equation = f"{eps!r}*laplace({name}) = {sign}*(x*{name}_x + y*{name}_y)"
    return equation, f"{name} = {mean} + {('x', 'x**2 - y**2', 'x**3 - 3*x*y**2')[m - 1]}", exact


@delicate
def trapped_flows(rng: Draw) -> dict[str, Any]:
    """A field in a disc that is carried outwards or inwards."""
    equation, circle, exact = carried_in_disc(rng, "u")
    return {
        "equations": {"equation": equation}, "shape": "disc", "sides": {"x": (-1.0, 1.0), "y": (-1.0, 1.0)},
        "exact": {"u": exact}, "tol": tolerance(rng), "conditions": {"circle": On("boundary", circle)},
    }  # fmt: skip


@delicate
def trapped_systems(rng: Draw) -> dict[str, Any]:
    """Two of them, the first with a share of what the second leaves, which is nothing."""
    (first, one, u), (second, other, v) = (carried_in_disc(rng, name) for name in "uv")
    left, right = second.split(" = ")
    return {
        "equations": {"first": f"{first} + {pick(rng, 0, number(rng, 0.1, 10))}*({left} - {right})", "second": second},
        "shape": "disc", "sides": {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, "exact": {"u": u, "v": v},
        "tol": pick(rng, 5e-2, 1e-2, tolerance(rng)), "conditions": {"circle": On("boundary", [one, other])},
    }  # fmt: skip


@delicate
def shocks_inside(rng: Draw) -> dict[str, Any]:
    """ε u'' = u u' between a and -b: for a = b a shock in the middle, whose place rounding decides for small ε, else a
    layer."""
    length, a = number(rng, 1e-3, 1e3), number(rng, 0.2, 5)
    share = pick(rng, 1.0, place(rng, 0.3, 0.9))
    eps = number(rng, 1e-3, 0.3 if share == 1.0 else 0.05)  # over a and half the length
    strength, centre = a, 1 - 2 * eps * np.arctanh(share) if share < 1 else 0.0
    if share == 1.0:
        for _ in range(200):
            strength = a / np.tanh(strength / a / (2 * eps))
    half = length / 2

    def exact(points: np.ndarray) -> np.ndarray:
        x = points[:, 0] / half - 1
        return -strength * np.tanh(strength / a * (x - centre) / (2 * eps))

    return {
        "equations": {"equation": f"{eps * a * half!r}*u_xx = u*u_x"}, "sides": {"x": (0.0, length)},
        "conditions": {"left": On("x=0", f"u = {a}"), "right": On(f"x={length!r}", f"u = {-share * a!r}")},
        "exact": {"u": exact} if share < 1 or eps > 0.05 else {}, "posed": share < 1 or eps > 0.05,
        "tol": tolerance(rng),
    }  # fmt: skip


@delicate
def flames(rng: Draw) -> dict[str, Any]:
    """u' = c (u² - u³) from a spark, by Lambert's function; until it burns, or to the moment before."""
    first, c = number(rng, 1e-5, 1e-1), number(rng, 0.1, 10)
    a = 1 / first - 1
    length = pick(rng, 0.5, 1.2, 2.0) / (first * c)

    def exact(points: np.ndarray) -> np.ndarray:
        z = np.log(a) + a - c * points[:, 0]  # the logarithm of the argument
        w = np.where(z < 500, lambertw(np.exp(np.minimum(z, 500.0))).real, z - np.log(np.maximum(z, 1.0)))
        for _ in range(4):  # w + log w = z
            w = np.where(z > 1, w - (w + np.log(np.maximum(w, 1e-300)) - z) / (1 + 1 / np.maximum(w, 1e-300)), w)
        return 1 / (1 + w)

    return {
        "equations": {"equation": f"u_t = {c}*(u**2 - u**3)"}, "sides": {"t": (0.0, float(f"{length:.4g}"))},
        "conditions": {"start": On("t=0", f"u = {first!r}")}, "exact": {"u": exact}, "tol": tolerance(rng),
    }  # fmt: skip


@delicate
def growth_from_little(rng: Draw) -> dict[str, Any]:
    """Logistic growth with diffusion from as good as nothing, the same everywhere."""
    first, rate = 10.0 ** -int(rng.integers(3, 40)), number(rng, 0.5, 3)
    length = float(f"{pick(rng, 0.5, 0.9, 1.3) * np.log(1 / first) / rate:.4g}")
    exact = f"1/(1 + {1 / first - 1!r}*exp(-{rate}*t))"
    return {
        "equations": {"equation": f"u_t = {number(rng, 1e-3, 1e-1)}*u_xx + {rate}*u*(1 - u)"},
        "sides": {"t": (0.0, length), "x": (0.0, 1.0)}, "exact": {"u": exact},
        "conditions": {"start": On("t=0", f"u = {first!r}"), "ends": On(("x=0", "x=1"), "u_x = 0")},
        "tol": pick(rng, 1e-2, 1e-5, 1e-9),
    }  # fmt: skip


@delicate
def tiny_jumps_of_sources(rng: Draw) -> dict[str, Any]:
    """A load on a thousandth of an interval, as a step or a roof, beside none."""
    width, centre = number(rng, 1e-4, 1e-2), place(rng, 0.2, 0.8)
    low, high = centre - width / 2, centre + width / 2

    def primitive(x: np.ndarray) -> np.ndarray:  # its second derivative is 1 between both, 0 elsewhere
        inside = np.clip(x, low, high) - low
        return 0.5 * inside**2 + (high - low) * np.maximum(x - high, 0.0)

    ends_of = primitive(np.array([0.0, 1.0]))

    def exact(points: np.ndarray) -> np.ndarray:
        x = points[:, 0]
        return primitive(x) - ends_of[0] * (1 - x) - ends_of[1] * x

    return {
        "equations": {"equation": f"u_xx = where(abs(x - {centre}) < {width / 2!r}, 1, 0)"}, "sides": {"x": (0.0, 1.0)},
        "conditions": {"ends": On(("x=0", "x=1"), "u = 0")}, "exact": {"u": exact}, "tol": pick(rng, 1e-2, 1e-4, 1e-6),
    }  # fmt: skip


@delicate
def carried_kinks(rng: Draw) -> dict[str, Any]:
    """A roof, or a root, that transport or a wave carries along, on a circle, into a domain, or around a torus."""
    c, length, left = number(rng, 0.1, 4), number(rng, 0.1, 10), place(rng, 0.05, 0.4)
    right, damping = left + place(rng, 0.2, 0.5), pick(rng, 0, number(rng, 0.1, 3))
    power = pick(rng, 1, 1, 0.5)
    roof = f"max(0, min({{0}} - {left}, {right!r} - {{0}}))**{power}".format

    def carried(x: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, np.minimum(x - left, right - x)) ** power

    def to_right(points: np.ndarray, speed: float = c) -> np.ndarray:
        return carried((points[:, 1] - speed * points[:, 0]) % 1.0)

    def both_ways(points: np.ndarray) -> np.ndarray:
        return (to_right(points) + to_right(points, -c)) / 2

    def opposite(points: np.ndarray) -> np.ndarray:
        return (to_right(points) - to_right(points, -c)) / 2

    def entered(points: np.ndarray) -> np.ndarray:
        return np.exp(-damping * points[:, 0]) * carried((1 + points[:, 1]) * np.exp(-c * points[:, 0]) - 1)

    start, around = {"start": On("t=0", f"u = {roof('x')}")}, {"around": Periodic("x")}
    rest = {"rest": On("t=0", "v = 0")}
    stated: tuple[Any, ...] = pick(
        rng, (f"u_t + {c}*u_x + {damping}*u = 0", start | around, lambda z: np.exp(-damping * z[:, 0]) * to_right(z)),
        (f"u_t + {c}*(1 + x)*u_x + {damping}*u = 0", start | {"in": On("x=0", "u = 0")}, entered),
        ({"u": f"u_t + {c}*v_x = 0", "v": f"v_t + {c}*u_x = 0"}, start | rest | around, both_ways),
        (f"u_tt = {c}**2*u_xx", start | {"still": On("t=0", "u_t = 0")} | around, both_ways),
        (f"u_t + {c}*u_x + {damping}*u_y = 0", start | around | {"across": Periodic("y")}, to_right),
    )  # fmt: skip
    equation, conditions, exact = stated
    plane = isinstance(equation, str) and "u_y" in equation
    return {
        "equations": {"equation": equation} if isinstance(equation, str) else equation,
        "sides": {"t": (0.0, float(f"{length / c:.4g}") / 4), "x": (0.0, 1.0)} | ({"y": (0.0, 0.8)} if plane else {}),
        "conditions": conditions, "tol": pick(rng, 5e-2, 1e-2, 1e-3),
        "exact": {"u": exact} if isinstance(equation, str) else {"u": exact, "v": opposite},
        "method": None if plane else pick(rng, None, None, "cells"),
    }  # fmt: skip
