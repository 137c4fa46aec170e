"""More random problems with manufactured solutions: ``wider_problem(seed)`` is always the same one.

What the first generator lacks: equations of first order, waves, systems that evolve, non-linear problems in space,
holes of small radius, units from micrometres to thousands of kilometres, amplitudes from 1e-9 to 1e9, and tolerances of
1e-2 and 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from honesty.cases import pick
from randomised.problems import (
    Frame,
    UserProblem,
    annulus,
    box,
    decimal,
    disc,
    interval,
    l_shape,
    mixed_conditions,
    polygon,
    smooth_function,
)  # fmt: skip
from rannpde import Ball, SpaceTime
from rannpde.domains.domain import Domain
from rannpde.pde.problem.conditions import Condition, On

Generator = np.random.Generator


def wide_frame(rng: Generator, dim: int) -> Frame:
    """Units from micrometres to thousands of kilometres; a third of the shapes stand away from the origin."""
    unit = 10.0 ** int(rng.integers(-6, 7))
    moved = rng.random() < 0.3
    return Frame(unit, tuple(round(rng.uniform(-3, 3), 1) * unit if moved else 0.0 for _ in range(dim)))


def amplitude_of(rng: Generator) -> float:
    return 10.0 ** int(rng.integers(-9, 10)) if rng.random() < 0.5 else 1.0


def tolerance(rng: Generator, smallest: float) -> float:
    """The ends of the range as often as what is between."""
    return pick(rng, 1e-2, smallest, float(f"{10 ** rng.uniform(np.log10(smallest), -2):.1e}"))


def everywhere(exact: dict[str, str]) -> dict[str, Condition]:
    texts = [f"{name} = {value}" for name, value in exact.items()]
    return {"value at boundary": On("boundary", texts if len(texts) > 1 else texts[0])}


def first_order(rng: Generator, seed: int) -> UserProblem:
    """Decay or a cubic friction along a line."""
    frame, size = wide_frame(rng, 1), amplitude_of(rng)
    domain = interval(rng, frame)
    exact = {"u": smooth_function(rng, frame.relative(("x",)), size)}
    rate = float(f"{decimal(rng, 0.5, 20.0) / frame.unit:.3g}")
    operator = pick(rng, f"u_x + {rate!r}*u", f"u_x + {rate / size**2!r}*u**3")
    start = f"x={float(domain.bounds[0][0])!r}"
    conditions: dict[str, Condition] = {"value at start": On(start, f"u = {exact['u']}")}
    return UserProblem(seed, "first order", {"equation": operator}, domain, conditions, exact, tolerance(rng, 1e-9))


def wave(rng: Generator, seed: int) -> UserProblem:
    """u_tt = c² u_xx, with or without damping, for about one transit."""
    frame, size = wide_frame(rng, 1), amplitude_of(rng)
    space, duration = interval(rng, frame), 10.0 ** int(rng.integers(-4, 5))
    exact = {"u": smooth_function(rng, (f"(t/{duration!r})", *frame.relative(("x",))), size)}
    square = float(f"{(decimal(rng, 0.3, 2.0) * frame.unit / duration) ** 2:.3g}")
    damping = pick(rng, "", f" + {float(f'{decimal(rng, 0.1, 2.0) / duration:.3g}')!r}*u_t")
    value = exact["u"]
    conditions: dict[str, Condition] = {"start": On("t=0", [f"u = {value}", f"d(u - ({value}), t) = 0"])}
    ends = {f"value at {side}": On(side, f"u = {value}") for side in space.sides}
    domain = SpaceTime(t=(0, duration), x=space)
    return UserProblem(
        seed, "wave", {"equation": f"u_tt - {square!r}*u_xx{damping}"}, domain, conditions | ends, exact,
        tolerance(rng, 1e-7),
    )  # fmt: skip


def evolving_system(rng: Generator, seed: int) -> UserProblem:
    """Two fields that diffuse and react with each other on an interval or a rectangle."""
    dim = int(rng.integers(1, 3))
    frame, duration = wide_frame(rng, dim), 10.0 ** int(rng.integers(-4, 5))
    space = interval(rng, frame) if dim == 1 else box(rng, frame)
    variables = (f"(t/{duration!r})", *frame.relative(space.names))
    exact = {name: smooth_function(rng, variables, 1.0) for name in ("u", "v")}
    k = [float(f"{decimal(rng, 0.05, 1.0) * frame.unit**2 / duration:.3g}") for _ in range(2)]
    rate = float(f"{decimal(rng, 0.1, 2.0) / duration:.3g}")
    operators = {
        "first": f"u_t - {k[0]!r}*laplace(u) + {rate!r}*(u - v)",
        "second": f"v_t - {k[1]!r}*laplace(v) + {rate!r}*u*v",
    }
    start = [f"{name} = {value}".replace("(t/", "(0/") for name, value in exact.items()]
    conditions: dict[str, Condition] = {"start": On("t=0", start)}
    domain = SpaceTime(t=(0, duration), x=space)
    for side in space.sides:
        conditions[f"value at {side}"] = On(side, [f"{name} = {value}" for name, value in exact.items()])
    return UserProblem(seed, f"system in time, {dim}-D", operators, domain, conditions, exact, tolerance(rng, 1e-6))


def nonlinear(rng: Generator, seed: int) -> UserProblem:
    """Semi-linear and quasi-linear equations with one solution, in the plane and in space."""
    dim = int(rng.integers(2, 4))
    frame, size = wide_frame(rng, dim), amplitude_of(rng)
    shape: Callable[[Generator, Frame], Domain] = box if dim == 3 else pick(rng, box, disc, l_shape, polygon, annulus)
    domain = shape(rng, frame)
    exact = {"u": smooth_function(rng, frame.relative(domain.names), size)}
    rate = float(f"{decimal(rng, 0.5, 5.0) / frame.unit**2:.3g}")
    operator = pick(
        rng,
        f"-laplace(u) + {rate * size!r}*(exp(u/{size!r}) - 1)",
        f"-laplace(u) + {rate / size**2!r}*u**3",
        f"-div((1 + (u/{size!r})**2)*grad(u))",
    )
    tol = tolerance(rng, 1e-4 if dim == 3 else 1e-7)
    conditions = mixed_conditions(rng, domain, exact, frame.unit) if dim == 2 else everywhere(exact)
    return UserProblem(seed, f"non-linear, {dim}-D", {"equation": operator}, domain, conditions, exact, tol)


def small_hole(rng: Generator, seed: int) -> UserProblem:
    """A rectangle with a hole of a hundredth to a thousandth of its size, with the logarithm that belongs to it."""
    frame = wide_frame(rng, 2)
    plate = box(rng, frame)
    (left, right), (low, high) = (tuple(map(float, pair)) for pair in plate.bounds)
    radius = float(f"{10 ** rng.uniform(-3, -2) * min(right - left, high - low):.2g}")
    x, y = (float(f"{a + (b - a) * rng.uniform(0.35, 0.65):.6g}") for a, b in ((left, right), (low, high)))
    domain = plate - Ball((x, y), radius)
    logarithm = f"log(((x - ({x!r}))**2 + (y - ({y!r}))**2)/{frame.unit!r}**2)"
    exact = {"u": f"{logarithm} + {smooth_function(rng, frame.relative(('x', 'y')), 1.0)}"}
    rate = float(f"{decimal(rng, 0.5, 5.0) / frame.unit**2:.3g}")
    operator = pick(rng, "laplace(u)", f"laplace(u) - {rate!r}*u")
    return UserProblem(
        seed, "small hole", {"equation": operator}, domain, everywhere(exact), exact, tolerance(rng, 1e-6)
    )  # fmt: skip


KINDS: tuple[Callable[[Generator, int], UserProblem], ...] = (
    first_order, wave, evolving_system, nonlinear, small_hole,
)  # fmt: skip


def wider_problem(seed: int) -> UserProblem:
    """The problem of a seed: the kinds take turns."""
    return KINDS[seed % len(KINDS)](np.random.default_rng([20_262, seed]), seed)
