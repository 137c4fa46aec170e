"""Families whose solutions are not smooth, or whose conditions are mixed: the weak form must be right on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from honesty.cases import Draw, family, number, pick, place, value_of
from rannpde.pde.problem.conditions import On


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


@family
def mixed_conditions(rng: Draw) -> dict[str, Any]:
    """u = 0 turns into a flux within a side: √r and a smooth harmonic part, in any units; the half of a crack."""
    size = number(rng, 1e-3, 1e3)
    left, right, top = (_digits(size * value) for value in rng.uniform(0.3, 2, 3))
    at = _digits(float(rng.uniform(-0.8 * left, 0.8 * right)))
    wave, part = _digits(float(rng.uniform(0.3, 2)) / size), round(float(rng.uniform(-1, 1)), 3)
    along = f"(x - ({at}))"
    radius = f"sqrt({along}**2 + y**2)"
    smooth = f"({part})*sinh({wave}*y)*cos({wave}*{along})"
    behind = f"sqrt(({radius} - {along})/2)/sqrt({size}) + {smooth}"
    ahead = f"y/sqrt(2*({radius} + {along}))/sqrt({size}) + {smooth}"

    def exact(points: np.ndarray) -> np.ndarray:
        x, y = points[:, 0] - at, points[:, 1]
        return np.sqrt((np.hypot(x, y) - x) / 2 / size) + part * np.sinh(wave * y) * np.cos(wave * x)

    flux = f"u_y = ({part})*{wave}*cos({wave}*{along})"
    conditions = {
        "held": On(f"y=0 where x > {at}", "u = 0"), "flux": On(f"y=0 where x < {at}", flux),
        "behind": On((f"x={-left}", f"y={top}"), f"u = {behind}"), "ahead": On(f"x={right}", f"u = {ahead}"),
    }  # fmt: skip
    return {
        "equations": {"equation": "laplace(u) = 0"}, "sides": {"x": (-left, right), "y": (0.0, top)},
        "conditions": conditions, "exact": {"u": exact},
    }  # fmt: skip


@family
def elasticity(rng: Draw) -> dict[str, Any]:
    """Smooth displacements of a plate, each side clamped, loaded or on rollers."""
    lam, mu = number(rng, 0.2, 50), number(rng, 0.2, 2)
    length, height = number(rng, 0.2, 5), number(rng, 0.2, 5)
    a, b, c, d = (_digits(value) for value in rng.uniform(0.5, 3, 4) / max(length, height))
    exact = {"u": f"sin({a}*x + 1)*cos({b}*y)", "v": f"cos({c}*x)*exp({d}*y)"}
    names = ("x", "y")
    slope = {f + k: value_of(text, names, k) for f, text in exact.items() for k in names}
    x, y = (sympy.Symbol(name, real=True) for name in names)
    first = (lam + 2 * mu) * slope["ux"] + lam * slope["vy"]
    second = (lam + 2 * mu) * slope["vy"] + lam * slope["ux"]
    shear = mu * (slope["uy"] + slope["vx"])
    forces = (sympy.diff(first, x) + sympy.diff(shear, y), sympy.diff(shear, x) + sympy.diff(second, y))
    stiff = f"({lam} + 2*{mu})"
    pull = {"x": f"{stiff}*u_x + {lam}*v_y = {first}", "y": f"{stiff}*v_y + {lam}*u_x = {second}"}
    slide = f"{mu}*(u_y + v_x) = {shear}"
    held = {name: f"{name} = {value_of(text, names)}" for name, text in exact.items()}
    kinds = [pick(rng, "clamped", "loaded", "roller") for _ in range(4)]
    kinds[int(rng.integers(4))] = "clamped"
    conditions = {}
    for side, kind in zip(("x=0", f"x={length}", "y=0", f"y={height}"), kinds, strict=True):
        normal = held["u"] if side[0] == "x" else held["v"]
        choices = {"clamped": list(held.values()), "loaded": [pull[side[0]], slide], "roller": [normal, slide]}
        conditions[f"at {side}"] = On(side, choices[kind])
    cross = f"({lam} + {mu})"
    return {
        "equations": {
            "first": f"{stiff}*u_xx + {mu}*u_yy + {cross}*v_xy = {forces[0]}",
            "second": f"{mu}*v_xx + {stiff}*v_yy + {cross}*u_xy = {forces[1]}",
        },
        "sides": {"x": (0.0, length), "y": (0.0, height)}, "conditions": conditions, "exact": exact,
    }  # fmt: skip


@family
def contrast(rng: Draw) -> dict[str, Any]:
    """Two layers of any contrast, a wave along them: u = cos(k y) f(x) with a continuous flux."""
    inside, at, wave = number(rng, 1e-4, 1e4), place(rng, 0.2, 0.8), int(rng.integers(1, 4))
    # cosh(w x) on the left goes on as p cosh(w (x - a)) + q sinh(w (x - a)) with p, q from value and flux
    w = wave * np.pi
    value, slope = float(np.cosh(w * at)), float(np.sinh(w * at)) / inside

    def shape(x: np.ndarray) -> np.ndarray:
        return np.where(x < at, np.cosh(w * x), value * np.cosh(w * (x - at)) + slope * np.sinh(w * (x - at)))

    end = float(shape(np.array([1.0]))[0])
    size = max(end, 1.0)

    def exact(points: np.ndarray) -> np.ndarray:
        return np.cos(w * points[:, 1]) * shape(points[:, 0]) / size

    conditions = {
        "left": On("x=0", "dn(u) = 0"), "right": On("x=1", f"u = {end / size!r}*cos({wave}*pi*y)"),
        "rest": On(("y=0", "y=1"), "dn(u) = 0"),
    }  # fmt: skip
    return {
        "equations": {"equation": f"div(where(x < {at}, 1, {inside})*grad(u)) = 0"},
        "sides": {"x": (0.0, 1.0), "y": (0.0, 1.0)}, "conditions": conditions, "exact": {"u": exact},
    }  # fmt: skip


@family
def unsupported(rng: Draw) -> dict[str, Any]:
    """Neumann data all round that do not balance: there is no solution, and none may be called converged."""
    source, wall = number(rng, 0.1, 10), number(rng, 0.1, 10)
    return {
        "equations": {"equation": f"div((1 + x**2)*grad(u)) = {source}"},
        "sides": {"x": (0.0, 1.0), "y": (0.0, 1.0)},
        "conditions": {"flux": On("x=1", f"dn(u) = -{wall}"), "rest": On("boundary except x=1", "dn(u) = 0")},
        "exact": {}, "posed": False, "method": "weak",
    }  # fmt: skip


@family
def crack(rng: Draw) -> dict[str, Any]:
    """A slit from within a box to its right side, in any units: √r at its end and a smooth harmonic part, the lips free
    or held."""
    size = number(rng, 1e-3, 1e3)
    left, right, down, up = (_digits(size * value) for value in rng.uniform(0.3, 2, 4))
    wave, part = _digits(float(rng.uniform(0.3, 2)) / size), round(float(rng.uniform(-1, 1)), 3)
    free = bool(rng.integers(2))

    def known(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        angle, radius = np.mod(np.arctan2(y, x), 2 * np.pi), np.hypot(x, y)
        smooth = np.cosh(wave * y) * np.cos(wave * x) if free else np.sinh(wave * y) * np.cos(wave * x)
        return np.sqrt(radius / size) * (np.cos(angle / 2) if free else np.sin(angle / 2)) + part * smooth

    def flux(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        angle, radius = np.mod(np.arctan2(y, x), 2 * np.pi), np.hypot(x, y)
        smooth = (np.cosh(wave * y) if free else np.sinh(wave * y)) * np.sin(wave * x) * -wave
        return 0.5 / np.sqrt(radius * size) * (np.cos(angle / 2) if free else -np.sin(angle / 2)) + part * smooth

    conditions = {
        "crack": On(f"slit (0, 0) to ({right}, 0)", "dn(u) = 0" if free else "u = 0"),
        "right": On(f"x={right}", "u_x = flux(x, y)"),
        "rest": On(f"boundary except x={right}", "u = known(x, y)"),
    }
    return {
        "equations": {"equation": "laplace(u) = 0"}, "sides": {"x": (-left, right), "y": (-down, up)},
        "conditions": conditions, "exact": {"u": lambda points: known(points[:, 0], points[:, 1])},
        "functions": {"known": known, "flux": flux},
    }  # fmt: skip


@family
def checkerboard(rng: Draw) -> dict[str, Any]:
    """Kellogg's solution r^λ Φ(θ) where interfaces cross, anywhere, λ from 0.01 to 0.9: right, or not called
    converged."""
    inside = number(rng, 1.5, 1e4)
    power = 4 / np.pi * np.arctan(1 / np.sqrt(inside))
    ratio = 1 / np.tan(power * np.pi / 4)

    def known(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = x - at[0], y - at[1]
        angle, radius = np.mod(np.arctan2(y, x), 2 * np.pi), np.hypot(x, y)
        sector = np.floor(angle / (np.pi / 2))
        own = power * (angle - (sector + 0.5) * np.pi / 2)
        sign = np.where(sector < 2, 1.0, -1.0)
        return radius**power * sign * np.where(sector % 2 == 0, np.cos(own), -ratio * np.sin(own))

    lengths = {name: (-number(rng, 0.3, 2), number(rng, 0.3, 2)) for name in ("x", "y")}
    at = [_digits(float(rng.uniform(0.5 * low, 0.5 * high))) for low, high in lengths.values()]
    where = f"(x - ({at[0]}))*(y - ({at[1]})) > 0"
    return {
        "equations": {"equation": f"div(where({where}, {inside}, 1)*grad(u)) = 0"}, "sides": lengths,
        "conditions": {"rim": On("boundary", "u = known(x, y)")}, "functions": {"known": known},
        "exact": {"u": lambda points: known(points[:, 0], points[:, 1])},
    }  # fmt: skip


@family
def beam_in_space(rng: Draw) -> dict[str, Any]:
    """A bar of any shape and stiffness, clamped to a cubic displacement at one end and loaded on the other sides."""
    lam, mu = number(rng, 0.2, 5), number(rng, 0.2, 2)
    lengths = [number(rng, 0.5, 2), number(rng, 0.2, 1), number(rng, 0.2, 1)]
    x, y, z = (sympy.Symbol(name, real=True) for name in "xyz")
    a, b, c = (_digits(float(value)) for value in rng.uniform(-1, 1, 3))
    exact = [a * x * x + b * y * z, b * x * x * y + c * z, c * x * y + a * z * z + b * x]
    strain = [[sympy.diff(f, s) for s in (x, y, z)] for f in exact]
    trace = sum(strain[i][i] for i in range(3))
    stress = [[lam * trace * int(i == j) + mu * (strain[i][j] + strain[j][i]) for j in range(3)] for i in range(3)]
    force = [sum(sympy.diff(stress[i][j], s) for j, s in enumerate((x, y, z))) for i in range(3)]
    fields, names = "uvw", "xyz"
    divergence = "(u_x + v_y + w_z)"
    equations, pulled = {}, []
    for i, f in enumerate(fields):
        mixed = " + ".join(f"{g}_{''.join(sorted(names[i] + names[k]))}" for k, g in enumerate(fields))
        equations[f"balance {f}"] = f"{mu}*laplace({f}) + ({lam} + {mu})*({mixed}) = {force[i]}"
        own = f"{lam}*{divergence} + 2*{mu}*{f}_{names[i]} = {stress[i][i]}"
        shear = [f"{mu}*({f}_{names[k]} + {fields[k]}_{names[i]}) = {stress[i][k]}" for k in range(3) if k != i]
        pulled.append([own, *shear])
    conditions = {"clamp": On("x=0", [f"{f} = {text}" for f, text in zip(fields, exact, strict=True)])}
    conditions["end"] = On(f"x={lengths[0]}", pulled[0])
    conditions["across y"] = On(("y=0", f"y={lengths[1]}"), pulled[1])
    conditions["across z"] = On(("z=0", f"z={lengths[2]}"), pulled[2])
    return {
        "equations": equations, "sides": {name: (0.0, end) for name, end in zip(names, lengths, strict=True)},
        "conditions": conditions, "exact": dict(zip(fields, map(str, exact), strict=True)),
        "tol": float(f"{10 ** rng.uniform(-3, -1):.1e}"),
    }  # fmt: skip
