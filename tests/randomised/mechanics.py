"""Random problems of mechanics and of singular points: ``mechanics_problem(seed)`` is always the same one.

Cracked and clamped bodies, plates, rubber, materials that are nearly incompressible, besides the scalar problems of
``singular``. Solutions are exact (Williams' fields, manufactured displacements) where there are any; a cantilever is
solved by Trefftz networks as well, other problems once more with other functions at a thirtieth of the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import sympy

from honesty.cases import pick
from randomised import singular
from randomised.problems import Generator, decimal
from randomised.singular import METHODS, Array, Place, StatedProblem
from randomised.wider import tolerance, wide_frame
from rannpde import Box
from rannpde.pde.problem.conditions import Condition, On

X, Y = sympy.symbols("x y", real=True)
BALANCE = [
    "(lam + 2*mu)*u_xx + mu*u_yy + (lam + mu)*v_xy = {}",
    "mu*v_xx + (lam + 2*mu)*v_yy + (lam + mu)*u_xy = {}",
]
STRESS = {"xx": "(lam + 2*mu)*u_x + lam*v_y", "xy": "mu*(u_y + v_x)", "yy": "lam*u_x + (lam + 2*mu)*v_y"}


def material(rng: Generator) -> tuple[dict[str, float], float]:
    """Lamé's coefficients in any unit of stress, and Poisson's ratio, up to nearly incompressible."""
    modulus = decimal(rng, 0.5, 5.0) * 10.0 ** int(rng.integers(-3, 12))
    ratio = pick(rng, 0.0, 0.25, 0.3, round(float(rng.uniform(-0.3, 0.49)), 3), 0.4999)
    mu = float(f"{modulus / (2 * (1 + ratio)):.8g}")
    return {"lam": float(f"{2 * mu * ratio / (1 - 2 * ratio):.8g}"), "mu": mu}, ratio


def digits(value: float) -> float:
    return float(f"{value:.12g}")


def elastic_crack(rng: Generator) -> StatedProblem:
    """The field at the end of a crack with free lips, opening and sliding (Williams), displacements given around."""
    place = replace(Place.sample(rng), turns=0)
    lame, _ = material(rng)
    kappa = 1 + 2 * lame["mu"] / (lame["lam"] + lame["mu"])  # 3 - 4 ν
    size = 10.0 ** int(rng.integers(-6, 1)) * place.unit
    first, second = 1.0, round(float(rng.uniform(-1, 1)), 2)

    def field(x: Array, y: Array) -> tuple[Array, Array]:
        a, b = place.scaled(x, y)
        root, half = np.sqrt(np.hypot(a, b)), np.arctan2(b, a) / 2
        cosine, sine = np.cos(half), np.sin(half)
        return (
            size * root * (first * cosine * (kappa - 1 + 2 * sine**2) + second * sine * (kappa + 1 + 2 * cosine**2)),
            size * root * (first * sine * (kappa + 1 - 2 * cosine**2) - second * cosine * (kappa - 1 - 2 * sine**2)),
        )

    def pulled(x: Array, y: Array) -> tuple[Array, Array]:
        """σ_xx and σ_xy."""
        a, b = place.scaled(x, y)
        rate, half = 2 * lame["mu"] * size / place.unit / np.sqrt(np.hypot(a, b)), np.arctan2(b, a) / 2
        cosine, sine, c3, s3 = np.cos(half), np.sin(half), np.cos(3 * half), np.sin(3 * half)
        return (
            rate * (first * cosine * (1 - sine * s3) - second * sine * (2 + cosine * c3)),
            rate * (first * sine * cosine * c3 + second * cosine * (1 - sine * s3)),
        )

    tip, end = place.outside((0, 0)), place.outside((place.local[0, 0], 0))
    slit = f"slit ({tip[0]!r}, {tip[1]!r}) to ({end[0]!r}, {end[1]!r})"
    right = place.side(0, 1)
    held = ["u = first(x, y)", "v = second(x, y)"]
    conditions: dict[str, Condition] = {"lips": On(slit, [f"{STRESS['yy']} = 0", f"{STRESS['xy']} = 0"])}
    if rng.integers(2):
        conditions["pulled"] = On(right, [f"{STRESS['xx']} = normal(x, y)", f"{STRESS['xy']} = shear(x, y)"])
        conditions["rest"] = On(f"boundary except {right}", held)
    else:
        conditions["rest"] = On("boundary", held)
    functions = {
        "first": lambda x, y: field(x, y)[0], "second": lambda x, y: field(x, y)[1],
        "normal": lambda x, y: pulled(x, y)[0], "shear": lambda x, y: pulled(x, y)[1],
    }  # fmt: skip
    exact = {name: (lambda points, k=k: field(points[:, 0], points[:, 1])[k]) for k, name in enumerate("uv")}
    return StatedProblem(
        "elastic crack", [text.format(0) for text in BALANCE], place.box, conditions, tolerance(rng, 1e-7), exact,
        functions, lame,
    )  # fmt: skip


def manufactured(
    rng: Generator, kind: str, sides: tuple[tuple[float, float], ...], lame: Mapping[str, float],
    exact: Mapping[str, sympy.Expr], tol: float,
) -> StatedProblem:  # fmt: skip
    """A plate with these displacements, each side clamped, loaded or on rollers."""
    lam, mu = lame["lam"], lame["mu"]
    u, v = exact["u"], exact["v"]
    stress = {"xx": (lam + 2 * mu) * u.diff(X) + lam * v.diff(Y), "xy": mu * (u.diff(Y) + v.diff(X)),
              "yy": lam * u.diff(X) + (lam + 2 * mu) * v.diff(Y)}  # fmt: skip
    forces = [stress["xx"].diff(X) + stress["xy"].diff(Y), stress["xy"].diff(X) + stress["yy"].diff(Y)]
    conditions: dict[str, Condition] = {}
    kinds = ["clamped", *(pick(rng, "clamped", "loaded", "roller") for _ in range(3))]
    places = [(axis, value) for axis, ends in zip("xy", sides, strict=True) for value in ends]
    for number, turned in enumerate(rng.permutation(4)):
        axis, value = places[turned]
        moved, normal = ("u", "v")[axis == "y"], axis * 2
        choices = {
            "clamped": [f"u = {u}", f"v = {v}"],
            "loaded": [f"{STRESS[normal]} = {stress[normal]}", f"{STRESS['xy']} = {stress['xy']}"],
            "roller": [f"{moved} = {exact[moved]}", f"{STRESS['xy']} = {stress['xy']}"],
        }
        conditions[f"{kinds[number]} {number}"] = On(f"{axis}={value!r}", choices[kinds[number]])
    equations = [text.format(force) for text, force in zip(BALANCE, forces, strict=True)]
    return StatedProblem(
        kind, equations, Box(x=sides[0], y=sides[1]), conditions, tol, {name: str(one) for name, one in exact.items()},
        parameters=lame, method=pick(rng, *METHODS),
    )  # fmt: skip


def rectangle(rng: Generator, unit: float, origin: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    return tuple((digits(o), digits(o + unit * decimal(rng, 0.5, 3.0, 2))) for o in origin)


def incompressible(rng: Generator) -> StatedProblem:
    """Displacements of a stream function and a little volume change, Poisson's ratio from 0.49 to 0.49999."""
    frame = wide_frame(rng, 2)
    ratio = pick(rng, 0.49, 0.499, 0.4999, 0.49999)
    mu = decimal(rng, 0.5, 5.0) * 10.0 ** int(rng.integers(-3, 10))
    lame = {"lam": float(f"{2 * mu * ratio / (1 - 2 * ratio):.8g}"), "mu": mu}
    a, b, c, d = (round(float(value), 2) for value in rng.uniform(0.4, 1.6, 4))
    x, y = ((one - sympy.Float(digits(o))) / frame.unit for one, o in zip((X, Y), frame.origin, strict=True))
    stream = frame.unit**2 * sympy.sin(a * x + b * y + 0.3) * sympy.exp(c * x / 2)
    change = (1 - 2 * ratio) * frame.unit**2 * sympy.cos(d * x) * sympy.cos(a * y)
    exact = {"u": stream.diff(Y) + change.diff(X), "v": -stream.diff(X) + change.diff(Y)}
    sides = rectangle(rng, frame.unit, frame.origin)
    return manufactured(rng, "nearly incompressible", sides, lame, exact, tolerance(rng, 1e-7))


def cantilever(rng: Generator) -> StatedProblem:
    """A beam clamped at one end under its weight, or loaded at the other, of any slenderness."""
    frame = wide_frame(rng, 2)
    lame, _ = material(rng)
    long, high = decimal(rng, 0.5, 2.0, 2), decimal(rng, 0.05, 1.0, 2)
    upright = bool(rng.integers(2))
    ends = [(digits(o), digits(o + frame.unit * s)) for o, s in zip(
        frame.origin, (high, long) if upright else (long, high), strict=True)]  # fmt: skip
    weight = float(f"{lame['mu'] / frame.unit * 10.0 ** -int(rng.integers(2, 6)):.6g}")
    hanging = bool(rng.integers(2))
    force = float(f"{0.0 if hanging else weight * frame.unit * high:.6g}")
    own, across = ("y", "x") if upright else ("x", "y")
    clamp, tip = (f"{own}={ends[own == 'y'][k]!r}" for k in (0, 1))
    pair = tuple(f"{across}={ends[across == 'y'][k]!r}" for k in (0, 1))
    free = {axis: [f"{STRESS['xy']} = 0", f"{STRESS[axis * 2]} = 0"] for axis in "xy"}
    pulled = [f"{STRESS['xy']} = {-force!r}", f"{STRESS[own * 2]} = 0"]
    loads = [weight if hanging and upright else 0, weight if hanging and not upright else 0]
    conditions: dict[str, Condition] = {
        "clamp": On(clamp, ["u = 0", "v = 0"]), "tip": On(tip, pulled), "long": On(pair, free[across]),
    }  # fmt: skip
    return StatedProblem(
        "cantilever", [text.format(repr(load)) for text, load in zip(BALANCE, loads, strict=True)],
        Box(x=ends[0], y=ends[1]), conditions, tolerance(rng, 1e-6), parameters=lame, method="weak", finer="trefftz",
    )  # fmt: skip


def rubber(rng: Generator) -> StatedProblem:
    """A neo-Hookean plate with a manufactured deformation, some sides held, some loaded."""
    unit = 10.0 ** int(rng.integers(-3, 4))
    mu, lam = decimal(rng, 0.2, 5.0), decimal(rng, 0.5, 50.0)
    sides = rectangle(rng, unit, (0.0, 0.0))
    a, b, c, d = (round(float(value), 2) for value in rng.uniform(-0.4, 0.4, 4))
    x, y = X / unit, Y / unit
    exact = {"u": unit * (a * x + b * sympy.sin(x) * y / 2), "v": unit * (c * y / 2 + d * sympy.cos(y) * x / 2)}
    slopes = {f"{f}_{s}": one.diff(t) for f, one in exact.items() for s, t in (("x", X), ("y", Y))}
    volume = "((1 + u_x)*(1 + v_y) - u_y*v_x)"
    factor = f"({lam!r}*log({volume}) - {mu!r})/{volume}"
    texts = [f"({mu!r}*(1 + u_x) + {factor}*(1 + v_y))", f"({mu!r}*u_y - {factor}*v_x)",
             f"({mu!r}*v_x - {factor}*u_y)", f"({mu!r}*(1 + v_y) + {factor}*(1 + u_x))"]  # fmt: skip
    p, q, r, s = (sympy.sympify(text).subs(slopes) for text in texts)
    forces = p.diff(X) + q.diff(Y), r.diff(X) + s.diff(Y)
    conditions: dict[str, Condition] = {}
    for number, (name, held) in enumerate(
        [(f"{axis}={end!r}", k == 0 or rng.integers(2)) for axis, pair in zip("xy", sides, strict=True)
         for k, end in enumerate(pair)]
    ):  # fmt: skip
        near = name.startswith("x")
        own = ((0, p), (2, r)) if near else ((1, q), (3, s))
        pulled = [f"{texts[k]} = {value}" for k, value in own]
        conditions[f"side {number}"] = On(name, [f"{f} = {one}" for f, one in exact.items()] if held else pulled)
    return StatedProblem(
        "rubber", [f"div({texts[0]}, {texts[1]}) = {forces[0]}", f"div({texts[2]}, {texts[3]}) = {forces[1]}"],
        Box(x=sides[0], y=sides[1]), conditions, tolerance(rng, 1e-5),
        {name: str(one) for name, one in exact.items()}, method="weak",
    )  # fmt: skip


def plate(rng: Generator) -> StatedProblem:
    """Kirchhoff's plate with a manufactured deflection, each side clamped, supported or free; free sides do not meet,
    as the deflection would have a force at their corner."""
    frame = wide_frame(rng, 2)
    ratio, stiff, spring = round(float(rng.uniform(0, 0.45)), 2), decimal(rng, 1e-3, 1e3), pick(rng, 0.0, 5.0)
    sides = rectangle(rng, frame.unit, frame.origin)
    a, b, c = (round(float(value), 2) for value in rng.uniform(0.5, 2.0, 3))
    x, y = ((one - sympy.Float(digits(o))) / frame.unit for one, o in zip((X, Y), frame.origin, strict=True))
    exact = sympy.sin(a * x + 0.4) * sympy.exp(b * y / 2) + sympy.cos(c * x * y / 2)
    held = float(f"{spring * stiff / frame.unit**4:.6g}")
    bent = exact.diff(X, 4) + 2 * exact.diff(X, 2, Y, 2) + exact.diff(Y, 4)
    conditions: dict[str, Condition] = {}
    kinds = ["clamped", *(pick(rng, "clamped", "supported", "free") for _ in range(3))]
    places = [(one, other, value) for one, other, pair in ((X, Y, sides[0]), (Y, X, sides[1])) for value in pair]
    for number, turned in enumerate(rng.permutation(4)):
        one, other, value = places[turned]
        n, s = str(one), str(other)
        moment = f"u_{n * 2} + {ratio!r}*u_{s * 2} = {exact.diff(one, 2) + ratio * exact.diff(other, 2)}"
        mixed = "".join(sorted(n + s * 2))
        force = exact.diff(one, 3) + (2 - ratio) * exact.diff(one, 1, other, 2)
        choices = {
            "clamped": [f"u = {exact}", f"u_{n} = {exact.diff(one)}"], "supported": [f"u = {exact}", moment],
            "free": [moment, f"u_{n * 3} + {2 - ratio!r}*u_{mixed} = {force}"],
        }  # fmt: skip
        beside = [name.split(" ")[0] for name, on in conditions.items() if str(on.where)[0] != n]
        kind = "supported" if kinds[number] == "free" and "free" in beside else kinds[number]  # a force at the corner
        conditions[f"{kind} {number}"] = On(f"{n}={value!r}", choices[kind])
    return StatedProblem(
        "plate", f"{stiff!r}*laplace(laplace(u)) + {held!r}*u = {stiff * bent + held * exact}",
        Box(x=sides[0], y=sides[1]), conditions, tolerance(rng, 1e-7), {"u": str(exact)}, method=pick(rng, *METHODS),
    )  # fmt: skip


KINDS: tuple[Callable[[Generator], StatedProblem], ...] = (
    singular.turn, singular.crack, singular.inner_crack, singular.crossing, elastic_crack, cantilever, incompressible,
    plate, singular.obstacle, rubber, singular.inclusion, singular.prism, singular.fichera,
)  # fmt: skip


def mechanics_problem(seed: int) -> StatedProblem:
    """The problem of a seed: the kinds take turns."""
    return replace(KINDS[seed % len(KINDS)](np.random.default_rng([20_263, seed])), seed=seed)
