"""Random eigenvalue problems on plane shapes with known eigenvalues, in random units, places and orientations.

Closed forms: discs, annuli, sectors, rectangles, triangles with u = 0, ∂ₙu = 0 or both; Steklov's, damped and complex
problems, a density, clamped and supported plates, Stokes on discs. Polygons and discs with holes have no closed form:
their reference is a copy in another unit and orientation, with a far smaller tolerance.

    python tests/pde/spectrum/shapes.py 0 60      # seeds from, to: all within ten bounds, none missed?
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import iv, jn_zeros, jnp_zeros, jv, jvp, yv, yvp

import rannpde as rp

PLATE = "laplace(laplace(u)) = lam*u"
STOKES = ["-laplace(u) + p_x = lam*u", "-laplace(v) + p_y = lam*v", "u_x + v_y = 0"]
FIXED, FREE = "u = 0", "dn(u) = 0"


@dataclass(frozen=True)
class ShapeCase:
    """A problem, its eigenvalues in the order of the answer, how many are asked for, and the tolerance."""

    name: str
    problem: rp.Problem
    known: Callable[[int], np.ndarray]
    count: int
    tol: float

    def ratio(self, rng: int = 0, seconds: float | None = None) -> tuple[float, rp.Spectrum]:
        """The largest error over its bound, with rounding of the reference, and the answer."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rp.eigen(self.problem, self.count, tol=self.tol, rng=rng, seconds=seconds)
        known = self.known(len(found))
        size = np.maximum(np.abs(known), found.scale)
        away = np.maximum(np.abs(found.values - known) - 1e-11 * size, 0.0)
        return float((away / np.maximum(found.bounds, 1e-300)).max()), found


@dataclass(frozen=True)
class Frame:
    """A unit, a place and an orientation."""

    unit: float
    place: np.ndarray
    turn: float

    def points(self, corners: list[tuple[float, float]]) -> list[list[float]]:
        rotation = np.array([[np.cos(self.turn), -np.sin(self.turn)], [np.sin(self.turn), np.cos(self.turn)]])
        return (self.place + self.unit * np.array(corners) @ rotation.T).tolist()

    def disc(self, centre: tuple[float, float], radius: float) -> rp.Ball:
        return rp.Ball(self.points([centre])[0], radius * self.unit, names=("x", "y"))

    def polygon(self, corners: list[tuple[float, float]]) -> rp.Polygon:
        return rp.Polygon(self.points(corners))


def doubled(first: int, zeros: Callable[[int], np.ndarray], orders: int = 12) -> np.ndarray:
    """Zeros of all orders, once for the order 0 and twice for others, sorted."""
    return np.sort(np.concatenate([np.repeat(zeros(m), 1 if m == 0 else 2) for m in range(first, orders)]))


def roots(function: Callable[[np.ndarray], np.ndarray], low: float, high: float, points: int = 3000) -> np.ndarray:
    """Zeros of a function by signs on a grid and Brent's method."""
    grid = np.linspace(low, high, points)
    values = function(grid)
    places = np.flatnonzero(values[1:] * values[:-1] < 0)
    return np.array([brentq(function, grid[k], grid[k + 1], xtol=1e-14, rtol=1e-14) for k in places])


def cross(order: int, share: float, inner: bool, outer: bool) -> np.ndarray:
    """Zeros for an annulus of radii s and 1, each circle fixed or free."""
    a, b = (jv, yv) if outer else (jvp, yvp)
    c, d = (jv, yv) if inner else (jvp, yvp)
    return roots(lambda x: a(order, x) * d(order, share * x) - c(order, share * x) * b(order, x), 0.05, 60.0, 6000)


def membrane(draw: np.random.Generator, frame: Frame, kind: str) -> tuple[rp.Problem, np.ndarray]:
    """Laplace's operator with closed forms; eigenvalues of the unit shape."""
    sides: dict = {"boundary": FIXED}
    if kind == "disc":
        free = bool(draw.integers(0, 2))
        domain, sides = frame.disc((0, 0), 1.0), {"boundary": FREE if free else FIXED}
        values = doubled(0, (lambda m: jnp_zeros(m, 6)) if free else (lambda m: jn_zeros(m, 6))) ** 2
        values = np.append(0.0, values) if free else values
    elif kind == "annulus":
        share, inner, outer = float(np.round(draw.uniform(0.15, 0.7), 2)), *map(bool, draw.integers(0, 2, 2))
        outer = outer or not inner  # a constant mode is for free discs
        hole = frame.disc((0, 0), share)
        domain = frame.disc((0, 0), 1.0) - hole
        middle = 0.5 * (1 + share) * frame.unit

        def within(points: np.ndarray) -> np.ndarray:
            return np.hypot(*(points - frame.place).T) < middle

        sides = {"in": rp.On(within, FIXED if inner else FREE),
                 "out": rp.On(lambda points: ~within(points), FIXED if outer else FREE)}  # fmt: skip
        values = doubled(0, lambda m: cross(m, share, inner, outer)) ** 2
    elif kind == "sector":
        angle = float(draw.choice([np.pi / 2, np.pi, np.pi / 3]))
        rays = [(4 * np.cos(part * angle), 4 * np.sin(part * angle)) for part in (0, 0.5, 1)]
        domain = frame.disc((0, 0), 1.0) & frame.polygon([(0, 0), *rays])
        values = np.concatenate([
            roots(lambda x, v=np.pi * n / angle: jv(v, x), max(np.pi * n / angle, 0.5), 40.0) for n in range(1, 9)
        ]) ** 2  # fmt: skip
    elif kind == "rectangle":
        ends = [bool(one) for one in draw.integers(0, 2, 2)]  # of two opposite sides, fixed or free
        domain = frame.polygon([(0, 0), (1, 0), (1, 0.7), (0, 0.7)])
        turned = np.array([np.cos(frame.turn), np.sin(frame.turn)])

        def along(points: np.ndarray) -> np.ndarray:
            return (points - frame.place) @ turned / frame.unit

        sides = {"left": rp.On(lambda points: along(points) < 1e-6, FIXED if ends[0] else FREE),
                 "right": rp.On(lambda points: along(points) > 1 - 1e-6, FIXED if ends[1] else FREE),
                 "rest": rp.On(lambda points: np.abs(along(points) - 0.5) < 0.5 - 1e-6, FIXED)}  # fmt: skip
        m = np.arange(30) + (1.0 if all(ends) else 0.0 if not any(ends) else 0.5)
        values = np.pi**2 * np.add.outer(m**2, (np.arange(1, 30) / 0.7) ** 2).ravel()
    else:
        m, n = np.meshgrid(np.arange(1, 25), np.arange(1, 25), indexing="ij")
        if kind == "isosceles":
            domain = frame.polygon([(0, 0), (1, 0), (0, 1)])
            values = (np.pi**2 * (m**2 + n**2))[m < n]
        else:
            domain = frame.polygon([(0, 0), (1, 0), (0.5, np.sqrt(0.75))])
            values = (16 * np.pi**2 / 9 * (m**2 + m * n + n**2)).ravel()
    return rp.Problem("-laplace(u) = lam*u", domain, sides, eigenvalue="lam"), np.sort(values)


def other_operator(draw: np.random.Generator, frame: Frame, kind: str) -> tuple[rp.Problem, np.ndarray, int]:
    """Other problems on a disc of radius 1: eigenvalues, and the power of 1/length that they have."""
    disc, r = frame.disc((0, 0), 1.0), frame.unit
    x0, y0 = frame.place.tolist()
    fixed = {"boundary": FIXED}
    zeros = doubled(0, lambda m: jn_zeros(m, 6))
    if kind == "steklov":
        return rp.Problem("laplace(u) = 0", disc, {"boundary": "dn(u) = lam*u"}, eigenvalue="lam"), np.sort(
            np.append(0.0, np.repeat(np.arange(1.0, 9), 2))
        ), 1  # fmt: skip
    if kind == "damped":
        rate = float(np.round(draw.uniform(0.1, 4.0), 2))
        pairs = np.array([-rate / 2 + s * np.sqrt(rate**2 / 4 - z**2 + 0j) for z in zeros[:12] for s in (-1, 1)])
        order = np.lexsort((pairs.imag, np.round(np.abs(pairs), 9)))
        text = f"-laplace(u) + {rate!r}/{r!r}*lam*u + lam**2*u = 0"
        return rp.Problem(text, disc, fixed, eigenvalue="lam"), pairs[order], 1
    if kind == "complex":
        shift = complex(*np.round(draw.uniform(-5, 5, 2), 2))
        text = f"-laplace(u) + c*u/{r!r}**2 = lam*u"
        return rp.Problem(text, disc, fixed, parameters={"c": shift}, eigenvalue="lam"), zeros**2 + shift, 2
    if kind == "density":
        half = doubled(0, lambda m: roots(lambda x: jv(m / 2, x), max(m / 2, 0.5), 30.0))
        text = f"-laplace(u) = lam*((x - ({x0!r}))**2 + (y - ({y0!r}))**2)*u"
        return rp.Problem(text, disc, fixed, eigenvalue="lam"), 4 * half**2, 4
    if kind == "clamped plate":

        def determinant(m: int) -> np.ndarray:
            return roots(lambda x: jv(m, x) * iv(m + 1, x) / iv(m, x) + jv(m + 1, x), 0.5, 30.0)

        walls = {"boundary": (FIXED, FREE)}
        return rp.Problem(PLATE, disc, walls, eigenvalue="lam"), doubled(0, determinant) ** 4, 4
    if kind == "supported plate":
        walls = {"boundary": (FIXED, "laplace(u) = 0")}
        return rp.Problem(PLATE, disc, walls, eigenvalue="lam"), zeros**4, 4
    flow = rp.Problem(STOKES, disc, {"boundary": (FIXED, "v = 0")}, eigenvalue="lam", incomplete=True)
    values = np.concatenate([np.repeat(jn_zeros(m, 6), 1 if m == 1 else 2) for m in range(1, 12)]) ** 2
    return flow, np.sort(values), 2


def outline(draw: np.random.Generator, kind: str) -> Callable[[Frame], rp.Domain]:
    """A random star-shaped polygon, or a disc with holes, in any frame."""
    if kind == "polygon":
        count = int(draw.integers(4, 8))
        angles = 2 * np.pi * (np.arange(count) + draw.uniform(-0.3, 0.3, count)) / count
        radii = draw.uniform(0.45, 1.0, count)
        corners = np.round(np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1), 3).tolist()
        return lambda frame: frame.polygon(corners)
    holes = [((0.5 * np.cos(a), 0.5 * np.sin(a)), float(np.round(draw.uniform(0.08, 0.25), 3)))
             for a in draw.uniform(0, 2 * np.pi) + np.arange(2) * draw.uniform(1.6, 4.6)]  # fmt: skip

    def pierced(frame: Frame) -> rp.Domain:
        domain: rp.Domain = frame.disc((0, 0), 1.0)
        for centre, radius in holes:
            domain = domain - frame.disc(centre, radius)
        return domain

    return pierced


KINDS = ("disc", "steklov", "rectangle", "clamped plate", "annulus", "damped", "polygon", "stokes", "equilateral",
         "complex", "sector", "supported plate", "holes", "density", "isosceles")  # fmt: skip


def shape_case(seed: int) -> ShapeCase:
    """A random problem of one kind after another."""
    draw = np.random.default_rng(seed + 70_000)
    unit = 10 ** draw.uniform(-3, 3)
    frame = Frame(unit, unit * np.round(draw.uniform(-3, 3, 2), 3), float(draw.uniform(0, 2 * np.pi)))
    kind = KINDS[seed % len(KINDS)]
    count, digits = int(draw.integers(1, 6)), draw.uniform(3, 9)
    if kind in ("polygon", "holes"):
        made = outline(draw, kind)
        tol = 10 ** -min(digits, 6.0)

        def drum(frame: Frame) -> rp.Problem:
            return rp.Problem("-laplace(u) = lam*u", made(frame), {"boundary": FIXED}, eigenvalue="lam")

        def tighter(number: int) -> np.ndarray:
            plain = rp.eigen(drum(Frame(1.0, np.zeros(2), 0.0)), number, tol=tol / 30, rng=seed + 1)
            return plain.values / unit**2

        return ShapeCase(kind, drum(frame), tighter, count, tol)
    if kind in ("disc", "annulus", "sector", "rectangle", "isosceles", "equilateral"):
        problem, values = membrane(draw, frame, kind)
        power = 2
    else:
        problem, values, power = other_operator(draw, frame, kind)
        digits = min(digits, 7.0)
    return ShapeCase(kind, problem, lambda number: values[:number] / unit**power, count, 10**-digits)


def main() -> None:
    """Draw cases and compare."""
    worst, lost, begin = 0.0, 0, time.process_time()
    first, last = map(int, sys.argv[1:])
    for seed in range(first, last):
        case, start = shape_case(seed), time.process_time()
        try:
            ratio, found = case.ratio(seed, seconds=600)
        except Exception as error:  # every kind of failure is a finding
            print(f"{seed} {case.name}: {type(error).__name__} {error}", flush=True)
            lost += 1
            continue
        told = "" if found.converged else f", NOT CONVERGED: {found.reason}"
        spent = time.process_time() - start
        print(f"{seed} {case.name} ×{case.count} at {case.tol:.0e}: {ratio:.2g} bounds, {found.method.name}, "
              f"{spent:.1f} s{told}", flush=True)  # fmt: skip
        lost += not found.converged
        worst = max(worst, ratio if found.converged else 0.0)
    print(f"{last - first} problems, {lost} without an answer; worst {worst:.2g} bounds; "
          f"{time.process_time() - begin:.0f} s CPU")  # fmt: skip


if __name__ == "__main__":
    main()
