"""Random scalar problems whose solutions are singular at a point, an edge or a free boundary, with exact solutions.

Each stands anywhere, in units from micrometres to kilometres, turned by quarters, with conditions of several kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq

from honesty.cases import pick
from randomised.problems import Generator, decimal
from randomised.wider import tolerance, wide_frame
from rannpde import Box
from rannpde.domains.domain import Domain
from rannpde.pde.problem.conditions import Condition, On
from rannpde.pde.problem.problem import Problem

Array = np.ndarray
Function = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class StatedProblem:
    """What a user states, the tolerance, the method asked for, and a second way to the solution where none is known.

    finer : method by which the reference is computed at a thirtieth of the tolerance; empty where ``exact`` is known
    """

    kind: str
    equations: Any
    domain: Domain
    conditions: Mapping[str, Condition]
    tol: float
    exact: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    method: str | None = None
    finer: str = ""
    seed: int = -1

    def problem(self) -> Problem:
        """The problem itself."""
        return Problem(
            self.equations, self.domain, dict(self.conditions), dict(self.parameters),
            exact=dict(self.exact), functions=dict(self.functions),
        )  # fmt: skip

    def __str__(self) -> str:
        texts = self.equations if isinstance(self.equations, (list, tuple)) else [self.equations]
        lines = [f"seed {self.seed}, {self.kind}, tol={self.tol:.1e}, method={self.method}", f"on {self.domain!r}"]
        lines += [str(text)[:300] for text in texts] + [f"{dict(self.parameters)}"]
        return "\n      ".join(lines + [f"{name}: {one}"[:300] for name, one in self.conditions.items()])


@dataclass(frozen=True)
class Place:
    """A rectangle in local coordinates, in the user's units: shifted and turned by quarters.

    local (2, 2) : bounds of the rectangle about the singular point; turns : quarters
    """

    unit: float
    origin: tuple[float, float]
    turns: int
    local: Array

    @classmethod
    def sample(cls, rng: Generator, low: tuple[float, float] = (0.4, 0.4)) -> Place:
        """A rectangle that reaches ``low`` to 2 beyond the singular point; low = 0 : not at all, along that axis."""
        frame = wide_frame(rng, 2)
        local = np.array([[-decimal(rng, low[a], 2.0) if low[a] else 0.0, decimal(rng, 0.4, 2.0)] for a in range(2)])
        return cls(frame.unit, frame.origin, int(rng.integers(4)), local)

    @property
    def rotation(self) -> Array:
        cosine, sine = [(1, 0), (0, 1), (-1, 0), (0, -1)][self.turns]
        return np.array([[cosine, -sine], [sine, cosine]], dtype=float)

    def outside(self, point: Any) -> tuple[float, float]:
        """The user's coordinates of a local point, as typed."""
        moved = np.asarray(self.origin) + self.unit * (self.rotation @ np.asarray(point, dtype=float))
        return tuple(float(f"{value:.12g}") + 0.0 for value in moved)  # type: ignore[return-value]

    @property
    def box(self) -> Box:
        ends = np.sort(np.array([self.outside(self.local[:, k]) for k in range(2)]), axis=0)
        return Box(x=tuple(map(float, ends[:, 0])), y=tuple(map(float, ends[:, 1])))

    def side(self, axis: int, end: int, beyond: int = 0) -> str:
        """The name of a side; beyond : ±1 for the part on which the other local coordinate has this sign."""
        point = np.zeros(2)
        point[axis] = self.local[axis, end]
        own = (axis + self.turns) % 2
        text = f"{'xy'[own]}={self.outside(point)[own]!r}"
        if beyond:
            along = self.rotation @ np.eye(2)[1 - axis]
            sign = ">" if along[1 - own] * beyond > 0 else "<"
            text += f" where {'xy'[1 - own]} {sign} {self.outside((0, 0))[1 - own]!r}"
        return text

    def scaled(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Local coordinates of the user's points."""
        away = (np.stack(np.broadcast_arrays(x, y), axis=-1) - np.asarray(self.outside((0, 0)))) / self.unit
        u, v = np.moveaxis(away @ self.rotation, -1, 0)
        return u, v


@dataclass(frozen=True)
class Local:
    """A function of local coordinates with its slopes, of which the user's functions are made."""

    place: Place
    value: Function
    slope: Callable[[Array, Array], tuple[Array, Array]]

    def known(self, x: Array, y: Array) -> Array:
        return self.value(*self.place.scaled(x, y))

    def exact(self, points: Array) -> Array:
        return self.known(points[:, 0], points[:, 1])

    def across(self, axis: int, end: int) -> Function:
        """The derivative along the outward normal of a side."""
        sign = (-1.0, 1.0)[end] / self.place.unit
        return lambda x, y: sign * self.slope(*self.place.scaled(x, y))[axis]


def rim(rng: Generator, place: Place, local: Local, skipped: Any = ()) -> dict[str, Any]:
    """Conditions and functions of all sides but those skipped: values, fluxes and Robin's, the first of them values."""
    sides = [(axis, end) for axis in (0, 1) for end in (0, 1) if (axis, end) not in skipped]
    conditions: dict[str, Condition] = {}
    functions: dict[str, Function] = {"known": local.known}
    for number, (axis, end) in enumerate(sides):
        kind = pick(rng, "value", "flux", "Robin") if number else "value"
        name, flux = place.side(axis, end), f"flux{number}"
        if kind == "value":
            conditions[f"value {number}"] = On(name, "u = known(x, y)")
            continue
        functions[flux] = local.across(axis, end)
        rate = float(f"{decimal(rng, 0.2, 5.0) / place.unit:.3g}")
        held = "" if kind == "flux" else f" + {rate!r}*(u - known(x, y))"
        conditions[f"{kind} {number}"] = On(name, f"dn(u){held} = {flux}(x, y)")
    return {"conditions": conditions, "functions": functions, "exact": {"u": local.exact}}


def powers(exponents: Array, sectors: Callable[[float, Array], tuple[Array, Array]], weights: Array) -> Any:
    """Σ w r^λ Φ_λ(θ) and its slopes; sectors(λ, θ) : Φ and Φ', θ from 0 to 2π."""

    def polar(x: Array, y: Array) -> tuple[Array, Array]:
        return np.maximum(np.hypot(x, y), 1e-300), np.mod(np.arctan2(y, x), 2 * np.pi)

    def value(x: Array, y: Array) -> Array:
        r, angle = polar(x, y)
        return sum(w * r**e * sectors(e, angle)[0] for w, e in zip(weights, exponents, strict=True))  # type: ignore

    def slope(x: Array, y: Array) -> tuple[Array, Array]:
        r, angle = polar(x, y)
        first, second = np.zeros_like(r), np.zeros_like(r)
        for w, e in zip(weights, exponents, strict=True):
            shape, turned = sectors(e, angle)
            along, around = w * e * r ** (e - 1) * shape, w * r ** (e - 1) * turned
            first = first + along * np.cos(angle) - around * np.sin(angle)
            second = second + along * np.sin(angle) + around * np.cos(angle)
        return first, second

    return value, slope


def coefficients(rng: Generator, count: int) -> Array:
    """The first is one, so that the strongest singularity is there."""
    return np.concatenate([[1.0], np.round(rng.uniform(-1, 1, count - 1), 2)])


METHODS = (None, "weak", "weak")
"""What users ask for: mostly the weak form, which this generator is for."""


# --------------------------------------------------------------------------------------------- turns, cracks, crossings


def turn(rng: Generator) -> StatedProblem:
    """u = 0 turns into ∂_n u = 0 within a side, as in Motz' problem: r^½, r^(3/2), … with any coefficients."""
    place = Place.sample(rng, (0.4, 0.0))
    exponents = np.arange(int(rng.integers(1, 4))) + 0.5
    value, slope = powers(
        exponents, lambda e, a: (np.cos(e * a), -e * np.sin(e * a)), coefficients(rng, len(exponents))
    )
    local = Local(place, value, slope)
    made = rim(rng, place, local, skipped=[(1, 0)])
    made["conditions"] |= {
        "held": On(place.side(1, 0, -1), "u = 0"), "free": On(place.side(1, 0, 1), "dn(u) = 0"),
    }  # fmt: skip
    return StatedProblem(
        "turn", "laplace(u) = 0", place.box, tol=tolerance(rng, 1e-9), method=pick(rng, *METHODS), **made
    )


def crack(rng: Generator) -> StatedProblem:
    """A slit from a point to a side, lips free, held, or one of each (r^¼), which runs along any axis."""
    place = Place.sample(rng)
    lips = pick(rng, "free", "held", "one of each")
    count = int(rng.integers(1, 4))
    exponents = (np.arange(count) + 0.5) / (2 if lips == "one of each" else 1)
    even = (lambda e, a: (np.cos(e * a), -e * np.sin(e * a))) if lips == "free" else (
        lambda e, a: (np.sin(e * a), e * np.cos(e * a)))  # fmt: skip
    local = Local(place, *powers(exponents, even, coefficients(rng, count)))
    made = rim(rng, place, local, skipped=[(0, 1)])
    made["functions"]["through"] = local.across(0, 1)
    tip, end = place.outside((0, 0)), place.outside((place.local[0, 1], 0))
    slit = f"slit ({tip[0]!r}, {tip[1]!r}) to ({end[0]!r}, {end[1]!r})"
    own: dict[str, Condition] = {"through": On(place.side(0, 1), "dn(u) = through(x, y)")}
    if lips == "one of each":  # θ = 0 lies to the left of the way from the tip to the side
        own |= {"above": On(f"{slit}, left", "u = 0"), "below": On(f"{slit}, right", "dn(u) = 0")}
    else:
        own["lips"] = On(slit, "dn(u) = 0" if lips == "free" else "u = 0")
    made["conditions"] = own | made["conditions"]
    return StatedProblem(
        f"crack, {lips}", "laplace(u) = 0", place.box, tol=tolerance(rng, 1e-8), method=pick(rng, *METHODS), **made
    )


def inner_crack(rng: Generator) -> StatedProblem:
    """A slit within a box, both ends singular: Re √(z² - a²) where lips are held, Im where they are free."""
    place = Place.sample(rng, (0.7, 0.4))
    half, held = decimal(rng, 0.1, 0.35, 2), bool(rng.integers(2))

    def root(x: Array, y: Array) -> Array:
        z = x + 1j * y
        return np.sqrt(z - half) * np.sqrt(z + half)

    def value(x: Array, y: Array) -> Array:
        return root(x, y).real if held else root(x, y).imag

    def slope(x: Array, y: Array) -> tuple[Array, Array]:
        rate = (x + 1j * y) / root(x, y)
        return (rate.real, -rate.imag) if held else (rate.imag, rate.real)

    local = Local(place, value, slope)
    made = rim(rng, place, local)
    start, end = place.outside((-half, 0)), place.outside((half, 0))
    slit = f"slit ({start[0]!r}, {start[1]!r}) to ({end[0]!r}, {end[1]!r})"
    made["conditions"] = {"lips": On(slit, "u = 0" if held else "dn(u) = 0")} | made["conditions"]
    return StatedProblem(
        f"inner crack, {'held' if held else 'free'}", "laplace(u) = 0", place.box, tol=tolerance(rng, 1e-8),
        method=pick(rng, *METHODS), **made,
    )  # fmt: skip


def transferred(stiff: Array, power: float) -> Array:
    """What a turn through four quadrants of these coefficients makes of (Φ, a Φ'/λ)."""
    cosine, sine = np.cos(power * np.pi / 2), np.sin(power * np.pi / 2)
    through = np.eye(2)
    for a in stiff:
        through = np.array([[cosine, sine / a], [-a * sine, cosine]]) @ through
    return through


def crossing_powers(stiff: Array, most: int) -> Array:
    """The least exponents λ > 0 at which 2 - trace of the transfer changes its sign."""

    def left(power: float) -> float:
        return float(2 - np.trace(transferred(stiff, power)))

    grid = np.linspace(5e-3, 2.9, 1001)
    signs = np.sign([left(power) for power in grid])
    roots = [brentq(left, grid[k], grid[k + 1], xtol=1e-15) for k in np.flatnonzero(signs[1:] * signs[:-1] < 0)]
    return np.array(roots[:most])


def crossing_shape(stiff: Array, power: float) -> Callable[[Array], tuple[Array, Array]]:
    """Φ and Φ' round a crossing, largest about one."""
    _, _, rows = np.linalg.svd(transferred(stiff, power) - np.eye(2))
    state, states = rows[-1], []
    for number in range(4):
        states.append(state)
        a, turn_ = stiff[number], power * np.pi / 2
        state = np.array([np.cos(turn_) * state[0] + np.sin(turn_) * state[1] / a,
                          -a * np.sin(turn_) * state[0] + np.cos(turn_) * state[1]])  # fmt: skip
    table = np.array(states)
    size = max(float(np.hypot(*(one * np.array([1, 1 / a])))) for one, a in zip(table, stiff, strict=True))

    def shape(angle: Array) -> tuple[Array, Array]:
        own = np.minimum((angle / (np.pi / 2)).astype(int), 3)
        turned, (first, second) = power * (angle - own * np.pi / 2), table[own].T / size
        second = second / stiff[own]
        return (
            first * np.cos(turned) + second * np.sin(turned),
            power * (-first * np.sin(turned) + second * np.cos(turned)),
        )

    return shape


def crossing(rng: Generator) -> StatedProblem:
    """Four quadrants of any materials: the corner of an inclusion, a checkerboard, all different; r^λ Φ(θ)."""
    place = Place.sample(rng)
    contrast, base = decimal(rng, 0.01, 1000.0), 10.0 ** int(rng.integers(-3, 4))
    name = pick(rng, "inclusion", "checkerboard", "different")
    stiff = base * np.array({
        "inclusion": [contrast, 1, 1, 1], "checkerboard": [contrast, 1, contrast, 1],
        "different": [contrast, 1, decimal(rng, 0.1, 10.0), decimal(rng, 0.1, 10.0)],
    }[name], dtype=float)  # fmt: skip
    exponents = crossing_powers(stiff, int(rng.integers(1, 4)))
    shapes = {float(e): crossing_shape(stiff, float(e)) for e in exponents}
    local = Local(place, *powers(exponents, lambda e, a: shapes[float(e)](a), coefficients(rng, len(exponents))))
    made = rim(rng, place, local)
    corner = place.outside((0, 0))
    turned = np.roll(stiff, place.turns)  # quadrants in the user's coordinates
    first, second, third, fourth = (repr(float(f"{value:.12g}")) for value in turned)
    right, up = f"x > {corner[0]!r}", f"y > {corner[1]!r}"
    factor = f"where({up}, where({right}, {first}, {second}), where({right}, {fourth}, {third}))"
    return StatedProblem(
        f"crossing, {name}", f"div({factor}*grad(u)) = 0", place.box, tol=tolerance(rng, 1e-8),
        method=pick(rng, *METHODS), **made,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ contact, solids, finer references


def obstacle(rng: Generator) -> StatedProblem:
    """A membrane on an inclined plane, which it touches in a disc: the exact free boundary is a circle."""
    place = Place.sample(rng, (0.8, 0.8))
    radius, load = decimal(rng, 0.2, 0.7, 2), decimal(rng, 0.1, 10.0)
    level, tilt = round(float(rng.uniform(-1, 1)), 2), round(float(rng.uniform(-1, 1)), 2)
    corner = place.outside((0, 0))
    plane = f"({level!r} + {tilt!r}*(x - ({corner[0]!r}))/{place.unit!r})"

    def known(x: Array, y: Array) -> Array:
        u, v = place.scaled(x, y)
        square = np.maximum(u**2 + v**2, radius**2)
        lifted = 0.5 * (square - radius**2) - 0.5 * radius**2 * np.log(square / radius**2)
        return level + tilt * (x - corner[0]) / place.unit + 0.5 * load * lifted

    conditions: dict[str, Condition] = {"rim": On("boundary", "u = known(x, y)")}
    return StatedProblem(
        "obstacle", f"laplace(u) = {float(f'{load / place.unit**2:.12g}')!r}", place.box,
        conditions | {"interior": f"u >= {plane}"}, tol=tolerance(rng, 1e-4),  # type: ignore[dict-item]
        exact={"u": lambda points: known(points[:, 0], points[:, 1])}, functions={"known": known},
    )  # fmt: skip


def inclusion(rng: Generator) -> StatedProblem:
    """A square inclusion of any contrast in a loaded rectangle, against a finer solve with other functions."""
    place = Place.sample(rng, (0.7, 0.7))
    half, contrast = decimal(rng, 0.2, 0.6, 2), decimal(rng, 0.01, 1000.0)
    corner = place.outside((0, 0))
    inside = f"max(abs(x - ({corner[0]!r})), abs(y - ({corner[1]!r}))) < {half * place.unit!r}"
    conditions: dict[str, Condition] = {"rim": On("boundary", "u = 0")}
    if rng.integers(2):
        side = place.side(0, 1)
        conditions = {"free": On(side, "dn(u) = 0"), "rim": On(f"boundary except {side}", "u = 0")}
    load = float(f"{decimal(rng, 0.1, 10.0) / place.unit**2:.6g}")
    return StatedProblem(
        "square inclusion", f"div(where({inside}, {contrast!r}, 1)*grad(u)) = -{load!r}", place.box, conditions,
        tol=tolerance(rng, 1e-6), finer="weak",
    )  # fmt: skip


def prism(rng: Generator) -> StatedProblem:
    """An L-shaped prism: r^(2/3) across its re-entrant edge, linear along it, some faces with fluxes."""
    frame = wide_frame(rng, 3)
    origin, unit = frame.origin, frame.unit
    sizes = [decimal(rng, 0.5, 1.5, 2) for _ in range(4)]
    height, along = decimal(rng, 0.5, 1.5, 2), round(float(rng.uniform(-1, 1)), 2)
    ends = [float(f"{v:.12g}") for v in (
        origin[0] - sizes[0] * unit, origin[0] + sizes[1] * unit, origin[1] - sizes[2] * unit,
        origin[1] + sizes[3] * unit, origin[2], origin[2] + height * unit)]  # fmt: skip
    solid = Box(x=(ends[0], ends[1]), y=(ends[2], ends[3]), z=(ends[4], ends[5])) - Box(
        x=(origin[0], ends[1] + unit), y=(ends[2] - unit, origin[1]), z=(ends[4] - unit, ends[5] + unit)
    )

    def known(x: Array, y: Array, z: Array) -> Array:
        u, v = (x - origin[0]) / unit, (y - origin[1]) / unit
        angle = np.mod(np.arctan2(v, u), 2 * np.pi)
        return np.hypot(u, v) ** (2 / 3) * np.sin(2 / 3 * angle) * (1 + along * (z - origin[2]) / unit)

    def lifted(x: Array, y: Array, z: Array) -> Array:
        return known(x, y, z) / (1 + along * (z - origin[2]) / unit) * along / unit

    top = f"z={ends[5]!r}"
    conditions: dict[str, Condition] = {
        "top": On(top, "dn(u) = lifted(x, y, z)"), "rest": On(f"boundary except {top}", "u = known(x, y, z)"),
    }  # fmt: skip
    return StatedProblem(
        "L-prism", "laplace(u) = 0", solid, conditions, tol=float(f"{10 ** rng.uniform(-3, -1.5):.1e}"),
        exact={"u": lambda p: known(p[:, 0], p[:, 1], p[:, 2])}, functions={"known": known, "lifted": lifted},
    )  # fmt: skip


def fichera(rng: Generator) -> StatedProblem:
    """A box without a box at its vertex, u = 0 on all or on some of the faces, against a finer solve."""
    frame = wide_frame(rng, 3)
    names = "xyz"
    sizes = [(decimal(rng, 0.6, 1.4, 2), decimal(rng, 0.6, 1.4, 2)) for _ in names]
    whole = {
        n: (o - a * frame.unit, o + b * frame.unit) for n, o, (a, b) in zip(names, frame.origin, sizes, strict=True)
    }
    whole = {n: tuple(float(f"{v:.12g}") for v in pair) for n, pair in whole.items()}
    solid = Box(**whole) - Box(**{n: (o, whole[n][1] + frame.unit) for n, o in zip(names, frame.origin, strict=True)})
    conditions: dict[str, Condition] = {"rim": On("boundary", "u = 0")}
    if rng.integers(2):
        side = f"x={whole['x'][0]!r}"
        conditions = {"free": On(side, "dn(u) = 0"), "rim": On(f"boundary except {side}", "u = 0")}
    load = float(f"{decimal(rng, 0.1, 10.0) / frame.unit**2:.6g}")
    return StatedProblem(
        "Fichera", f"-laplace(u) = {load!r}", solid, conditions, tol=float(f"{10 ** rng.uniform(-2.3, -1.3):.1e}"),
        finer="weak",
    )  # fmt: skip
