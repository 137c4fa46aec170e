"""Random problems as users state them: ``user_problem(seed)`` is always the same one.

Every problem has a manufactured solution. Sizes have decimals and units (millimetres to kilometres), shapes stand
anywhere and may be rotated, coefficients are given in those units, and each side has a condition of its own kind.
The solution is smooth in coordinates relative to the size of the shape, so that every problem is within reach of a
solver that does not depend on units, position or decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import cos, pi, sin

import numpy as np

from honesty.cases import force, pick
from rannpde import Ball, Box, Ellipse, Interval, Polygon, SpaceTime
from rannpde.domains.domain import Domain
from rannpde.pde.problem.conditions import Condition, On
from rannpde.pde.problem.problem import Problem

Generator = np.random.Generator


@dataclass(frozen=True)
class UserProblem:
    """One statement and what is asked of the solver.

    kind : equation and shape, by which results are tabulated; operators : name → left-hand side of an equation, whose
        right-hand side is what it makes of the exact solution
    """

    seed: int
    kind: str
    operators: Mapping[str, str]
    domain: Domain
    conditions: Mapping[str, Condition]
    exact: Mapping[str, str]
    tol: float

    def problem(self) -> Problem:
        """The problem itself; stating it may be refused with an InputError."""
        equations = {name: force(text, self.exact, self.domain.names) for name, text in self.operators.items()}
        return Problem(equations, self.domain, dict(self.conditions), exact=dict(self.exact))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.kind}, tol={self.tol:.1e}", f"on {self.domain!r}"]
        lines += [f"{name}: {text} = …" for name, text in self.operators.items()]
        lines.append("; ".join(name for name in self.conditions))
        return "\n      ".join([*lines, f"exact {dict(self.exact)}"])


# ------------------------------------------------------------------------------------------------ numbers and shapes


def decimal(rng: Generator, low: float, high: float, digits: int | None = None) -> float:
    """A log-uniform number of one to three significant digits, as people type them."""
    digits = int(rng.integers(1, 4)) if digits is None else digits
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.{digits}g}")


@dataclass(frozen=True)
class Frame:
    """The size of a shape and where it stands, in the user's units."""

    unit: float
    origin: tuple[float, ...]

    @classmethod
    def sample(cls, rng: Generator, dim: int) -> Frame:
        """Half of all users work in units of one; half of all shapes stand at the origin."""
        unit = 10.0 ** int(rng.integers(-3, 4)) if rng.random() < 0.5 else 1.0
        moved = rng.random() < 0.5
        return cls(unit, tuple(round(rng.uniform(-5, 5), 1) * unit if moved else 0.0 for _ in range(dim)))

    def length(self, rng: Generator, low: float = 0.3, high: float = 3.0) -> float:
        return decimal(rng, low, high) * self.unit

    def relative(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Formulas of the coordinates relative to origin and unit."""
        return tuple(f"(({name} - ({start!r}))/{self.unit!r})" for name, start in zip(names, self.origin, strict=True))


def interval(rng: Generator, frame: Frame) -> Domain:
    (start,) = frame.origin
    return Interval(start, start + frame.length(rng))


def box(rng: Generator, frame: Frame) -> Domain:
    names = "xyz"[: len(frame.origin)]
    return Box(
        **{n: (start, start + frame.length(rng, 0.5, 2.0)) for n, start in zip(names, frame.origin, strict=True)}
    )


def perforated(rng: Generator, frame: Frame, holes: int = 1) -> Domain:
    """A rectangle with one or two round holes."""
    plate = box(rng, frame)
    (left, right), (low, high) = (tuple(map(float, pair)) for pair in plate.bounds)
    radius = float(f"{rng.uniform(0.08, 0.18) * min((right - left) / holes, high - low):.2g}")
    shape: Domain = plate
    for k in range(holes):
        centre = (left + (right - left) * (k + 0.5) / holes, low + (high - low) * rng.uniform(0.4, 0.6))
        shape = shape - Ball(tuple(float(f"{c:.6g}") for c in centre), radius)
    return shape


def l_shape(rng: Generator, frame: Frame) -> Domain:
    """A rectangle without a corner."""
    plate = box(rng, frame)
    (left, right), (low, high) = (tuple(map(float, pair)) for pair in plate.bounds)
    x, y = (start + (end - start) * round(rng.uniform(0.3, 0.7), 1) for start, end in ((left, right), (low, high)))
    return plate - Box(x=(x, right + frame.unit), y=(y, high + frame.unit))


def disc(rng: Generator, frame: Frame) -> Domain:
    return Ball(frame.origin, frame.length(rng, 0.4, 1.5))


def annulus(rng: Generator, frame: Frame) -> Domain:
    radius = frame.length(rng, 0.5, 1.5)
    return Ball(frame.origin, radius) - Ball(frame.origin, float(f"{radius * rng.uniform(0.2, 0.6):.2g}"))


def ellipse(rng: Generator, frame: Frame) -> Domain:
    return Ellipse(
        frame.origin, (frame.length(rng, 0.5, 1.5), frame.length(rng, 0.5, 1.5)), round(rng.uniform(0, 3), 1)
    )


def polygon(rng: Generator, frame: Frame) -> Domain:
    """A convex or star-shaped polygon of four to seven corners."""
    count = int(rng.integers(4, 8))
    angles = 2 * pi * (np.arange(count) + rng.uniform(-0.25, 0.25, count)) / count
    radii = frame.unit * rng.uniform(0.7, 1.3, count)
    x0, y0 = frame.origin
    corners = [(x0 + r * cos(a), y0 + r * sin(a)) for r, a in zip(radii, angles, strict=True)]
    return Polygon([tuple(float(f"{c:.4g}") for c in corner) for corner in corners])


def rotated(rng: Generator, frame: Frame) -> Domain:
    return box(rng, frame).rotated(round(rng.uniform(0.1, 1.4), 2), centre=frame.origin)


SHAPES: dict[str, tuple[int, Callable[[Generator, Frame], Domain]]] = {
    "interval": (1, interval),
    "rectangle": (2, box),
    "one hole": (2, perforated),
    "two holes": (2, partial(perforated, holes=2)),
    "L-shape": (2, l_shape),
    "disc": (2, disc),
    "annulus": (2, annulus),
    "ellipse": (2, ellipse),
    "polygon": (2, polygon),
    "rotated rectangle": (2, rotated),
    "cuboid": (3, box),
}
"""Name → dimension and sampler."""


# ------------------------------------------------------------------------------------------ solutions and conditions


def smooth_function(rng: Generator, variables: tuple[str, ...], amplitude: float) -> str:
    """A smooth function of dimensionless variables, none of whose derivatives is large."""
    slopes = [round(rng.uniform(-1.5, 1.5), 2) for _ in variables]
    phase = " + ".join(f"({slope})*{variable}" for slope, variable in zip(slopes, variables, strict=True))
    squares = " + ".join(f"({variable} - {round(rng.uniform(0, 1), 2)})**2" for variable in variables)
    choices = (
        f"sin({phase} + {round(rng.uniform(0, 3), 2)})",
        f"exp(-({squares})/4)",
        f"exp(({phase})/2)",
        f"1/(2 + {squares})",
        f"(1 + {phase} + ({squares})/3)",
    )
    one, other = pick(rng, *choices), pick(rng, *choices)
    return f"{amplitude!r}*({one} + {round(rng.uniform(0.2, 1), 2)}*{other})"


def mixed_conditions(
    rng: Generator, domain: Domain, exact: Mapping[str, str], unit: float, needs_value: bool = True
) -> dict[str, Condition]:
    """A value, flux or Robin condition on each side of space; the first side has values where uniqueness needs them."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    conditions: dict[str, Condition] = {}
    sides = list(space.sides)
    first = int(rng.integers(len(sides)))
    for number, side in enumerate(sides):
        kind = pick(rng, "value", "value", "flux", "Robin") if number != first or not needs_value else "value"
        texts = []
        for name, value in exact.items():
            factor = float(f"{decimal(rng, 0.2, 5.0) / unit:.3g}")
            texts.append(
                {
                    "value": f"{name} = {value}",
                    "flux": f"dn({name} - ({value})) = 0",
                    "Robin": f"dn({name} - ({value})) + {factor!r}*({name} - ({value})) = 0",
                }[kind]
            )
        conditions[f"{kind} at {side}"] = On(side, texts if len(texts) > 1 else texts[0])
    return conditions


# -------------------------------------------------------------------------------------------------------- equations


def stationary(rng: Generator, frame: Frame, relative: tuple[str, ...], amplitude: float) -> str:
    """Diffusion with advection, reaction, variable coefficients or a non-linear term, in the user's units."""
    k = decimal(rng, 0.01, 100.0)
    speed, rate = decimal(rng, 0.5, 10.0) * k / frame.unit, decimal(rng, 0.5, 10.0) * k / frame.unit**2
    coefficient = f"({k!r}*(1 + 0.5*sin({relative[0]})))"
    return pick(
        rng,
        f"{k!r}*laplace(u)",
        f"-{k!r}*laplace(u) + {rate!r}*u",
        f"-{k!r}*laplace(u) + {speed!r}*u_x",
        f"div({coefficient}*grad(u))",
        f"-{k!r}*laplace(u) + {rate / amplitude**2!r}*u**3",
    )


def evolution(rng: Generator, frame: Frame, duration: float, amplitude: float) -> str:
    """Heat, advection–diffusion or reaction–diffusion over a time in which something happens."""
    k = float(f"{decimal(rng, 0.05, 1.0) * frame.unit**2 / duration:.3g}")
    speed = float(f"{decimal(rng, 0.1, 1.0) * frame.unit / duration:.3g}")
    rate = float(f"{decimal(rng, 0.1, 2.0) / duration:.3g}")
    return pick(
        rng,
        f"u_t - {k!r}*laplace(u)",
        f"u_t + {speed!r}*u_x - {k!r}*laplace(u)",
        f"u_t - {k!r}*laplace(u) - {rate!r}*u*(1 - u/{amplitude!r})",
    )


def elasticity(mu: float, lam: float) -> dict[str, str]:
    """Plane strain with Lamé's coefficients, written out in derivatives."""
    return {
        "x": f"{lam + 2 * mu!r}*u_xx + {mu!r}*u_yy + {lam + mu!r}*v_xy",
        "y": f"{mu!r}*v_xx + {lam + 2 * mu!r}*v_yy + {lam + mu!r}*u_xy",
    }


TOLERANCES = {1: (-10, -2), 2: (-8, -2), 3: (-4, -2)}
"""Range of log10 tol by the number of space dimensions."""


def user_problem(seed: int, shapes: Iterable[str] = SHAPES, evolving: int = 2) -> UserProblem:
    """The problem of a seed, on one of these shapes; evolutions where space has at most ``evolving`` dimensions."""
    rng = np.random.default_rng([20_261, seed])
    shape = pick(rng, *shapes)
    dim, sampler = SHAPES[shape]
    frame = Frame.sample(rng, dim)
    space = sampler(rng, frame)
    names = space.names
    amplitude = 10.0 ** int(rng.integers(-3, 4)) if rng.random() < 0.3 else 1.0
    low, high = TOLERANCES[dim]
    relative = frame.relative(names)
    timed, system = rng.random() < 0.3 and dim <= evolving, dim == 2 and rng.random() < 0.15
    if timed:
        tol = float(f"{10 ** rng.uniform(-5, -2):.1e}")
        duration = 10.0 ** int(rng.integers(-2, 3)) * decimal(rng, 0.5, 2.0)
        domain: Domain = SpaceTime(t=(0, duration), x=space)
        exact = {"u": smooth_function(rng, (f"(t/{duration!r})", *relative), amplitude)}
        operators = {"equation": evolution(rng, frame, duration, amplitude)}
        conditions: dict[str, Condition] = {"start": On("t=0", f"u = {exact['u']}".replace("(t/", "(0/"))}
        kind = "evolution"
    else:
        tol = float(f"{10 ** rng.uniform(low, high):.1e}")
        domain, conditions = space, {}
        if system:
            exact = {name: smooth_function(rng, relative, amplitude) for name in ("u", "v")}
            mu, lam = decimal(rng, 0.01, 1e4), decimal(rng, 0.01, 1e4)
            operators = elasticity(mu, lam)
            kind = "elasticity"
        else:
            exact = {"u": smooth_function(rng, relative, amplitude)}
            operators = {"equation": stationary(rng, frame, relative, amplitude)}
            kind = "stationary"
    conditions |= mixed_conditions(rng, domain, exact, frame.unit)
    return UserProblem(seed, f"{kind}, {shape}", operators, domain, conditions, exact, tol)
