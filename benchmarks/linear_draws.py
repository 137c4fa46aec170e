"""Random linear problems with constant coefficients in the plane whose solutions are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde import Ball, Box, Ellipse, Polygon
from rannpde.domains.shapes.base import Domain
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem

SHAPES = ("box", "disc", "ellipse", "polygon", "hole", "two holes", "corner")
OPERATORS = ("laplace", "helmholtz", "screened", "advection", "anisotropic")


@dataclass(frozen=True)
class LinearDraw:
    """A problem with its exact solution, and what it was drawn as."""

    problem: Problem
    shape: str
    operator: str
    source: bool
    kind: str


def drawn(rng: np.random.Generator) -> LinearDraw:
    """One random problem: sizes over two decades, any position, decimals that are not round.

    >>> one = drawn(np.random.default_rng(3))
    >>> one.problem.linear, one.shape in SHAPES
    (True, True)
    """
    shape, operator = str(rng.choice(SHAPES)), str(rng.choice(OPERATORS))
    size = float(10 ** rng.uniform(-1, 1))
    domain = _shape(shape, size, rng.uniform(-3, 3, 2) * size, rng)
    bounds = domain.bounds
    middle, half = bounds.mean(axis=1), 0.5 * float(np.diff(bounds, axis=1).max())
    equation, solution = _solution(operator, middle, half, rng)
    source = bool(rng.random() < 0.4)
    if source:
        wave, growth = (float(rng.uniform(*ends) / half) for ends in ((0.5, 3), (-1, 1)))
        x, y = (float(one) for one in middle)
        extra = f"cos({wave!r}*(x - {x!r}))*exp({growth!r}*(y - {y!r}))"
        solution = f"{solution} + {extra}"
        right = equation.replace("U", f"({extra})")
    else:
        right = "0"
    kind = str(rng.choice(["values", "values", "slopes", "mixture"]))
    names = list(domain.sides)
    chosen = names[int(rng.integers(len(names)))]
    if kind == "values" or len(names) == 1:
        conditions = {"all": On("boundary", f"u = {solution}")}
        kind = "values"
    else:
        law = (
            f"dn(u) = dn({solution})"
            if kind == "slopes"
            else f"{float(1 / half)!r}*u + dn(u) = {float(1 / half)!r}*({solution}) + dn({solution})"
        )
        conditions = {"one": On(chosen, law), "others": On(f"boundary except {chosen}", f"u = {solution}")}
    text, name = f"{equation.replace('U', 'u')} = {right}", f"{operator} on {shape}"
    problem = Problem(text, domain, conditions, exact={"u": solution}, name=name, fields=("u",))
    return LinearDraw(problem, shape, operator, source, kind)


def _shape(shape: str, size: float, at: np.ndarray, rng: np.random.Generator) -> Domain:
    x, y = at.tolist()
    width, height = (size * rng.uniform(0.6, 1.4, 2)).tolist()
    box = Box(x=(x, x + 2 * width), y=(y, y + 2 * height))
    least = min(width, height)
    if shape == "disc":
        return Ball((x, y), size)
    if shape == "ellipse":
        return Ellipse((x, y), (width, height), angle=float(rng.uniform(0, 3)))
    if shape == "polygon":
        count = int(rng.integers(3, 8))
        turn = (np.arange(count) + rng.uniform(-0.25, 0.25, count)) * 2 * np.pi / count
        reach = size * rng.uniform(0.6, 1.2, count)
        return Polygon(np.stack([x + reach * np.cos(turn), y + reach * np.sin(turn)], axis=1))
    if shape == "corner":
        cut = Box(x=(x + width, x + 3 * width), y=(y + height, y + 3 * height))
        return box - cut
    if shape in ("hole", "two holes"):
        radius = least * rng.uniform(0.1, 0.35)
        found = box - Ball((x + 0.6 * width, y + height), radius, name="hole")
        if shape == "two holes":
            return found - Ball((x + 1.5 * width, y + 0.9 * height), radius * 0.8, name="other hole")
        return found
    return box


def _solution(operator: str, middle: np.ndarray, half: float, rng: np.random.Generator) -> tuple[str, str]:
    """The equation with U for the field, and a solution of L u = 0 with two waves or exponentials."""
    x, y = f"(x - {float(middle[0])!r})", f"(y - {float(middle[1])!r})"
    angle = rng.uniform(0, 2 * np.pi, 2)
    cosine, sine = np.cos(angle), np.sin(angle)
    if operator == "helmholtz":
        k = rng.uniform(1, 25) / half
        waves = [f"cos({float(k * c)!r}*{x} + {float(k * s)!r}*{y} + 0.4)" for c, s in zip(cosine, sine, strict=True)]
        return f"laplace(U) + {float(k * k)!r}*U", f"{waves[0]} + 0.6*{waves[1]}"
    if operator == "screened":
        m = rng.uniform(0.5, 8) / half
        parts = [
            f"exp({float(m * c)!r}*{x} + {float(m * s)!r}*{y} - {float(m * half)!r})"
            for c, s in zip(cosine, sine, strict=True)
        ]
        return f"-laplace(U) + {float(m * m)!r}*U", f"{parts[0]} + 0.7*{parts[1]}"
    if operator == "advection":
        b = rng.uniform(0.5, 12) / half
        wave = f"exp({float(b * cosine[0])!r}*{x} + {float(b * sine[0])!r}*{y} - {float(b * half)!r})"
        return f"-laplace(U) + {float(b * cosine[0])!r}*d(U, x) + {float(b * sine[0])!r}*d(U, y)", f"1 + {wave}"
    w = rng.uniform(0.5, 4) / half
    if operator == "anisotropic":
        a = rng.uniform(0.2, 4)
        return f"{float(a)!r}*d(U, x, x) + d(U, y, y)", f"exp({float(w / np.sqrt(a))!r}*{x})*cos({float(w)!r}*{y})"
    return "laplace(U)", f"exp({float(w)!r}*{x})*sin({float(w)!r}*{y} + 0.3) + {float(0.5 / half)!r}*{x}"
