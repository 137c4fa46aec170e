"""Trefftz networks: every row of their table, on sizes that are drawn anew for every seed, with NGSolve beside.

    python benchmarks/trefftz.py                     # the table, seed 0
    python benchmarks/trefftz.py --seed 7 --only stokes
    python benchmarks/trefftz.py --draws 500 --record build/draws.jsonl   # random problems beside cells

Errors are against exact solutions, series or known constants; where there are none, against a solve with another
seed and a hundredth of the tolerance. Seconds are of the process (CPU), so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import hankel1, jn_zeros, jv, y0

import rannpde as rp
from benchmarks import trefftz_ngsolve as peer
from benchmarks.linear_race import races

Array = np.ndarray
MOTZ = 401.1624537452
LIMIT = 600.0
"""Seconds by the clock of one solve: on a machine that is shared, much more than those of the process."""


@dataclass(frozen=True)
class Row:
    """What was solved: the goal, the error that was found, what the solution says of it, and how long it took."""

    name: str
    goal: str
    error: float
    estimate: float
    bound: float | None
    features: int
    seconds: float
    converged: bool
    beside: str = ""

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"{self.bound:.1e}"
        told = "yes" if self.converged else "no"
        return (
            f"| {self.name} | {self.goal} | {self.error:.1e} | {self.estimate:.1e} | {bound} | {self.features} | "
            f"{self.seconds:.2f} | {told} | {self.beside} |"
        )


def solved(
    problem: rp.Problem, tol: float, goal: str, error: Callable[[rp.Solution], float] | None = None, beside: str = ""
) -> Row:
    """One row; without an error of its own, the exact solution tells, or a second solve."""
    begin = time.process_time()
    solution = rp.solve(problem, tol=tol, method="trefftz", seconds=LIMIT)
    seconds = time.process_time() - begin
    if error is not None:
        found = error(solution)
    elif problem.exact_solution is not None:
        found = max(solution.errors().values())
    else:
        other = rp.solve(problem, tol=max(tol / 100, 1e-12), method="trefftz", rng=5, seconds=LIMIT)
        points = problem.domain.sample(2000, rng=3)
        gap = solution.function(points) - other.function(points)
        found = float((np.linalg.norm(gap, axis=0) / np.linalg.norm(other.function(points), axis=0)).max())
        found = found if other.estimate < solution.estimate else np.nan  # that is no reference
    bound = getattr(solution.history, "bound", None)
    return Row(
        problem.name, goal, found, solution.estimate, bound, sum(solution.widths), seconds, solution.converged, beside
    )


# ------------------------------------------------------------------------------------------------------ Helmholtz


def helmholtz(rng: np.random.Generator) -> Iterator[Row]:
    """A source outside of boxes and discs."""
    for k, goal in ((50, "1e-10 in 0.5 s"), (100, "1e-10 in 1 s"), (500, "1e-10 in 30 s")):
        wave_number = float(k * rng.uniform(0.9, 1.1))
        width, height = rng.uniform(0.8, 1.2, 2).tolist()
        for domain, name in ((rp.Box(x=(0, width), y=(0, height)), "box"), (rp.Ball((0.6, 0.6), 0.55), "disc")):

            def wave(x: Array, y: Array, k: float = wave_number) -> Array:
                return y0(k * np.hypot(x + 0.15, y + 0.1))

            problem = rp.Problem(
                f"laplace(u) + {wave_number!r}**2*u = 0", domain, {"boundary": "u = g(x, y)"}, functions={"g": wave},
                exact={"u": lambda points, g=wave: g(*points.T)}, name=f"Helmholtz, {name}, k = {wave_number:.1f}",
            )  # fmt: skip
            beside = _helmholtz_peer(name, width, height, wave_number) if k < 500 else ""
            yield solved(problem, 1e-10, goal, beside=beside)


def _helmholtz_peer(name: str, width: float, height: float, k: float) -> str:
    """Order 12, elements of three quarters of a wave length; a plane wave in place of the source."""
    if not peer.AVAILABLE:
        return ""
    import ngsolve as ng

    points = np.random.default_rng(0).uniform(0.05, 0.95, (200, 2)) * [width, height]
    shape: dict[str, Any] = {"box": (0, 0, width, height)}
    if name == "disc":
        points, shape = 0.6 + 0.35 * (2 * points / [width, height] - 1), {"discs": [(0.6, 0.6, 0.55)]}
    return peer.scalar(
        lambda: peer.plane_mesh(1.5 * np.pi / k, 12, **shape), 12,
        lambda mesh: ng.cos(0.6 * k * ng.x + 0.8 * k * ng.y), -(k**2),
        exact=lambda p: np.cos(k * p @ [0.6, 0.8]), points=points,
    )  # fmt: skip


def scattering(rng: np.random.Generator) -> Iterator[Row]:
    """Disc against its series; a square and three obstacles by the error on their boundary."""
    k, radius = 30.0, float(rng.uniform(0.7, 1.1))
    shift = rng.uniform(-0.1, 0.1, 2)
    shapes = {
        "disc": rp.Ball((0, 0), radius),
        "square": rp.Box(x=(-0.5 * radius, 0.5 * radius), y=(-0.5, 0.5)),
        "three obstacles": rp.Ball((0, 0), 0.4)
        | rp.Ball(np.array([1.2, 0.3]) + shift, 0.3)
        | rp.Ball((0.3, -1.1), 0.5),
    }
    for name, obstacles in shapes.items():
        begin = time.process_time()
        wave = rp.scatter(obstacles, k, tol=1e-8, seconds=120)
        seconds = time.process_time() - begin
        error = wave.boundary_error
        if name == "disc":
            turn = np.linspace(0, 6, 60)
            points = 1.7 * radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
            n = np.arange(-90, 91)
            terms = 1j**n * jv(n, k * radius) / hankel1(n, k * radius) * hankel1(n, 1.7 * k * radius)
            error = float(np.abs(wave.scattered(points) + (terms * np.exp(1j * n * turn[:, None])).sum(axis=1)).max())
        yield Row(
            f"scattering, {name}, k = 30",
            "1e-8 in 3 s",
            error,
            wave.boundary_error,
            None,
            len(wave.weights),
            seconds,
            wave.converged,
        )


# -------------------------------------------------------------------------------------------------------- Laplace


def laplace(rng: np.random.Generator) -> Iterator[Row]:
    """Four discs, an L-shape, Motz, a polygon with twelve corners, a star."""
    places, radius = rng.uniform(0.45, 0.55, 2), float(rng.uniform(0.25, 0.32))
    domain = rp.Box(x=(-1, 1), y=(-1, 1))
    for x in (-places[0], places[0]):
        for y in (-places[1], places[1]):
            domain = domain - rp.Ball((x, y), radius)
    walls = "x=-1, x=1, y=-1, y=1"
    conditions = {
        "walls": rp.On(tuple(walls.split(", ")), "u = 1"),
        "holes": rp.On(f"boundary except {walls}", "u = 0"),
    }
    problem = rp.Problem("laplace(u) = 0", domain, conditions, name="Laplace, square without four discs")
    yield solved(problem, 1e-10, "1e-10 in 1 s", beside=_discs_peer(places, radius))

    a, b = rng.uniform(0.8, 1.2, 2).tolist()
    corners = [(0, 0), (a, 0), (a, 1), (-1, 1), (-1, -b), (0, -b)]
    problem = rp.Problem("-laplace(u) = 1", rp.Polygon(corners), {"boundary": "u = 0"}, name="-Δu = 1, L-shape")
    yield solved(problem, 1e-9, "1e-9 in 1 s", beside=_polygon_peer(corners, 1.0))

    def left(points: Array) -> Array:
        return (points[:, 1] < 1e-9) & (points[:, 0] < 0)

    def right(points: Array) -> Array:
        return (points[:, 1] < 1e-9) & (points[:, 0] > 0)

    conditions = {"a": rp.On(left, "u = 0"), "b": rp.On(right, "dn(u) = 0"), "x=1": rp.On("x=1", "u = 500"),
                  "rest": rp.On(("x=-1", "y=1"), "dn(u) = 0")}  # fmt: skip
    problem = rp.Problem("laplace(u) = 0", rp.Box(x=(-1, 1), y=(0, 1)), conditions, name="Motz, first coefficient")
    yield solved(problem, 1e-9, "1e-9 in 1 s", _motz)

    turn = np.sort((np.arange(12) + rng.uniform(-0.35, 0.35, 12)) * np.pi / 6)
    reach = rng.uniform(0.5, 1.0, 12)
    corners = [(float(r * np.cos(t)), float(r * np.sin(t))) for r, t in zip(reach, turn, strict=True)]
    problem = rp.Problem(
        "laplace(u) = 0", rp.Polygon(corners), {"boundary": "u = x**2"}, name="Laplace, twelve random corners"
    )
    yield solved(problem, 1e-7, "1e-7 in 1 s", beside=_polygon_peer(corners, 0.0))

    depth = float(rng.uniform(0.15, 0.3))
    radius = f"(1 + {depth!r}*cos(5*s))"
    star = rp.Curve(f"{radius}*cos(s)", f"{radius}*sin(s)")
    exact = "exp(2*x)*cos(2*y)"
    problem = rp.Problem(
        "laplace(u) = 0", star, {"boundary": f"u = {exact}"}, exact={"u": exact}, name="Laplace, star-shaped curve"
    )
    yield solved(problem, 1e-12, "1e-12 in 1 s")


def _discs_peer(places: Array, radius: float) -> str:
    discs = [(a * float(places[0]), b * float(places[1]), radius) for a in (-1, 1) for b in (-1, 1)]
    return peer.scalar(
        lambda: peer.plane_mesh(0.3, 10, box=(-1, -1, 1, 1), discs=discs), 10,
        lambda mesh: mesh.BoundaryCF({"holes": 0.0}, 1.0),
    )  # fmt: skip


def _polygon_peer(corners: list[tuple[float, float]], load: float) -> str:
    """A mesh of even size: corners cost it digits."""
    if not peer.AVAILABLE:
        return ""
    import ngsolve as ng

    return peer.scalar(
        lambda: peer.plane_mesh(0.1, 8, corners=corners), 8, lambda mesh: ng.CF(0.0) if load else ng.x**2, load=load
    )


def _motz(solution: rp.Solution) -> float:
    turn = (np.arange(4000) + 0.5) * np.pi / 4000
    values = solution(0.3 * np.stack([np.cos(turn), np.sin(turn)], axis=1))
    return float(abs(2 * np.mean(values * np.cos(turn / 2)) / np.sqrt(0.3) / MOTZ - 1))


# ------------------------------------------------------------------------------------------------------- systems


def stokes(rng: np.random.Generator) -> Iterator[Row]:
    """A channel with three discs; an elastic plate with forty holes; a clamped plate."""
    domain, discs = rp.Box(x=(0, 3), y=(0, 1)), []
    for x in (0.6, 1.5, 2.4):
        middle = (float(x + rng.uniform(-0.1, 0.1)), float(0.5 + rng.uniform(-0.1, 0.1)))
        discs.append((*middle, float(rng.uniform(0.1, 0.2))))
        domain = domain - rp.Ball(middle, discs[-1][2])
    ends = "x=0, x=3"
    conditions = {
        "ends": rp.On(("x=0", "x=3"), ["u = y*(1 - y)", "v = 0"]),
        "walls": rp.On(f"boundary except {ends}", ["u = 0", "v = 0"]),
        "pin": rp.Data([[0.1, 0.5]], [0.0], "p"),
    }  # fmt: skip
    equations = ["laplace(u) = p_x", "laplace(v) = p_y", "u_x + v_y = 0"]
    problem = rp.Problem(equations, domain, conditions, name="Stokes, channel with three discs")
    yield solved(problem, 1e-10, "1e-10 in 2 s", beside=peer.stokes(discs))

    domain, discs = rp.Box(x=(0, 8), y=(0, 5)), []
    for i in range(8):
        for j in range(5):
            discs.append((i + 0.5, j + 0.5, float(rng.uniform(0.1, 0.25))))
            domain = domain - rp.Ball(discs[-1][:2], discs[-1][2])
    exact = {"u": "0.2*x + 0.1*y + 0.05*x*y", "v": "-0.1*y + 0.02*x**2"}
    load = "3*v_yy + 0.7*v_xx + 2.3*u_xy = 0.143"  # 0.7·0.04 + 2.3·0.05
    conditions = {"all": rp.On("boundary", [f"u = {exact['u']}", f"v = {exact['v']}"])}
    problem = rp.Problem(
        ["3*u_xx + 0.7*u_yy + 2.3*v_xy = 0", load], domain, conditions, exact=exact, name="elasticity, forty holes"
    )
    yield solved(problem, 1e-8, "1e-8 in 2 s", beside=peer.elastic(discs))
    walls = "x=0, x=8, y=0, y=5"
    conditions = {
        "walls": rp.On(tuple(walls.split(", ")), ["u = 0.1*x", "v = -0.03*y"]),
        "holes": rp.On(f"boundary except {walls}", ["u = 0", "v = 0"]),
    }
    pulled = ["3*u_xx + 0.7*u_yy + 2.3*v_xy = 0", "3*v_yy + 0.7*v_xx + 2.3*u_xy = 0"]
    problem = rp.Problem(pulled, domain, conditions, name="elasticity, forty holes that are held")
    yield solved(problem, 1e-8, "not in the issue")

    width = float(rng.uniform(0.8, 1.2))
    problem = rp.Problem(
        "laplace(laplace(u)) = 1",
        rp.Box(x=(0, width), y=(0, 1)),
        {"all": rp.On("boundary", ["u = 0", "dn(u) = 0"])},
        name="clamped plate, f = 1",
    )
    yield solved(problem, 1e-8, "1e-10 in 2 s")


def materials(rng: np.random.Generator) -> Iterator[Row]:
    """Coefficients that jump: a wire in a uniform field, a wave that is refracted; cells of networks."""
    contrast, radius = float(10 ** rng.uniform(1, 4)), float(rng.uniform(0.2, 0.5))
    share = (contrast - 1) / (contrast + 1)

    def field(points: Array) -> Array:
        x, square = points[:, 0], np.maximum((points**2).sum(axis=1), 1e-3)
        return np.where(square < radius**2, 2 / (1 + contrast) * x, x * (1 - share * radius**2 / square))

    problem = rp.Problem(
        f"div(where(x**2 + y**2 < {radius!r}**2, {contrast!r}, 1)*grad(u)) = 0", rp.Box(x=(-1, 1), y=(-1, 1)),
        {"boundary": "u = g(x, y)"}, functions={"g": lambda x, y: field(np.stack([x, y], axis=1))},
        exact={"u": field}, name=f"wire of contrast {contrast:.0f}",
    )  # fmt: skip
    beside = ""
    if peer.AVAILABLE:
        import ngsolve as ng

        square = ng.x**2 + ng.y**2
        beside = peer.scalar(
            lambda: peer.plane_mesh(0.3, 10, box=(-1, -1, 1, 1), discs=[(0, 0, radius)], inner=True), 10,
            lambda mesh: ng.x * (1 - share * radius**2 / square), conductivity={"inside": contrast, "outside": 1.0},
            exact=field, points=np.random.default_rng(0).uniform(-0.9, 0.9, (200, 2)),
        )  # fmt: skip
    yield solved(problem, 1e-8, "not in the issue", beside=beside)
    first, second = (float(k * rng.uniform(0.9, 1.1)) for k in (40, 60))
    across = 0.8 * first
    beyond = float(np.sqrt(second**2 - (0.6 * first) ** 2))
    back = (across - beyond) / (across + beyond)

    def wave(points: Array) -> Array:
        s, m = points[:, 0], points[:, 1] - 0.1
        whole = np.where(m < 0, np.exp(1j * across * m) + back * np.exp(-1j * across * m),
                         (1 + back) * np.exp(1j * beyond * m))  # fmt: skip
        return (np.exp(0.6j * first * s) * whole).real

    problem = rp.Problem(
        f"laplace(u) + where(y < 0.1, {first!r}, {second!r})**2*u = 0", rp.Box(x=(-1, 1), y=(-1, 1)),
        {"boundary": "u = g(x, y)"}, functions={"g": lambda x, y: wave(np.stack([x, y], axis=1))}, exact={"u": wave},
        name=f"wave refracted, k = {first:.0f} and {second:.0f}",
    )  # fmt: skip
    yield solved(problem, 1e-8, "not in the issue")


def layers(rng: np.random.Generator) -> Iterator[Row]:
    """Boundary layers: errors at points within them, relative to one."""
    for width in (1e-3, 1e-4, 1e-5, 1e-6):
        angle = float(rng.uniform(0.2, 1.3))
        c, s = float(np.cos(angle)), float(np.sin(angle))
        exact = f"exp(-({c!r}*x + {s!r}*y)/{width!r})"
        box = rp.Box(x=(0, 1), y=(0, 1))
        problem = rp.Problem(
            f"-{width!r}**2*laplace(u) + u = 0", box, {"boundary": f"u = {exact}"}, name=f"screened, layers {width:g}"
        )
        yield solved(
            problem,
            1e-8,
            "1e-8 in 2 s",
            lambda u, w=width, c=c, s=s: _in_layer(u, w, lambda p: np.exp(-(p @ [c, s]) / w)),
        )
        exact = f"(exp((x - 1)/{width!r}) - exp(-1/{width!r}))/(1 - exp(-1/{width!r}))"
        problem = rp.Problem(
            f"-{width!r}*laplace(u) + u_x = 0", box, {"boundary": f"u = {exact}"}, name=f"advection, layers {width:g}"
        )
        yield solved(
            problem, 1e-8, "1e-8 in 2 s", lambda u, w=width: _in_layer(u, w, lambda p: np.exp((p[:, 0] - 1) / w), True)
        )


def _in_layer(solution: rp.Solution, width: float, exact: Callable[[Array], Array], right: bool = False) -> float:
    rng = np.random.default_rng(1)
    depth = width * 10.0 ** rng.uniform(-2, 1, 400)
    other = rng.uniform(0, 1, 400)
    first = np.stack([1 - depth if right else depth, other], axis=1)
    return float(np.abs(solution(first) - exact(first)).max())


def varying(rng: np.random.Generator) -> Iterator[Row]:
    """Coefficients that vary: waves whose length is small against the box, and layers."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    for k, goal in ((100, "1e-6 in 20 s"), (200, "1e-6 in 120 s")):
        wave_number, angle = float(k * rng.uniform(0.95, 1.05)), float(rng.uniform(0.2, 1.3))
        c, s = (float(wave_number * one(angle)) for one in (np.cos, np.sin))
        phase, amplitude = f"({c!r}*x + {s!r}*y)", "(1 + x*y/5)"
        square = repr(wave_number**2)
        source = f"{square}*0.3*sin(x)*y*{amplitude}*cos({phase}) - 0.4*sin({phase})*({c!r}*y + {s!r}*x)"
        problem = rp.Problem(
            f"laplace(u) + {square}*(1 + 0.3*sin(x)*y)*u = {source}", box,
            {"boundary": f"u = {amplitude}*cos({phase})"}, exact={"u": f"{amplitude}*cos({phase})"},
            name=f"varying Helmholtz, k = {wave_number:.1f}",
        )  # fmt: skip
        yield solved(problem, 1e-6, goal)
        problem = rp.Problem(
            f"laplace(u) + {square}*(1 + 0.3*sin(x)*y)*u = 1", box, {"boundary": "u = 0"},
            name=f"the same with f = 1, u = 0, k = {wave_number:.1f}",
        )  # fmt: skip
        if k == 100:
            yield solved(problem, 1e-6, goal)
    for width in (1e-2, 1e-3):
        problem = rp.Problem(
            f"-{width!r}**2*laplace(u) + (1 + x*y/2)*u = 1", box, {"boundary": "u = 0"},
            name=f"varying screened, layers {width:g}",
        )  # fmt: skip
        yield solved(problem, 1e-5, "")
        exact = f"sin(2*x + y) + exp(-(1 - x)*(1 + y/3)/{width!r})"
        layer = f"exp(-(1 - x)*(1 + y/3)/{width!r})"
        flow = f"(1 + y/3)*(2*cos(2*x + y) + (1 + y/3)/{width!r}*{layer})"
        second = f"-5*sin(2*x + y) + ((1 + y/3)**2 + (1 - x)**2/9)/{width!r}**2*{layer}"
        problem = rp.Problem(
            f"-{width!r}*laplace(u) + (1 + y/3)*u_x = {flow} - {width!r}*({second})", box,
            {"boundary": f"u = {exact}"}, exact={"u": exact}, name=f"varying advection, layers {width:g}",
        )  # fmt: skip
        yield solved(problem, 1e-6, "")


def semilinear(rng: np.random.Generator) -> Iterator[Row]:
    """Equations that are not linear, by Newton's method, with cells beside them; waves on an L-shape."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    wave, slope = (float(one) for one in rng.uniform(2, 4, 2))
    exact = f"sin({wave!r}*x + {slope!r}*y)"
    cubic = f"-laplace(u) + u**3 = {wave**2 + slope**2!r}*{exact} + {exact}**3"
    rows = [("cubic", cubic, exact, 1e-9)]
    rows += [
        (f"Bratu, {rate:.1f}", f"laplace(u) + {rate!r}*exp(u) = 0", "0", 1e-6)
        for rate in rng.uniform(4, 6.5, 2).tolist()
    ]
    rows += [("pendulums", f"-laplace(u) + {float(rng.uniform(20, 30))!r}*sin(u) = 30*x", "x*y", 1e-6)]
    for width in (0.1, 0.03, 0.01):
        square = float(width * rng.uniform(0.95, 1.05)) ** 2
        rows.append((f"Allen–Cahn, {width:g}", f"-{square!r}*laplace(u) + u**3 - u = 0", "1 + x*y/2", 1e-6))
        rows.append((f"reaction, {width:g}", f"-{square!r}*laplace(u) + u**3 + u = 1 + x", "0", 1e-5))
    for name, equation, given, tol in rows:
        known = {"u": given} if name == "cubic" else {}
        problem = rp.Problem(equation, box, {"boundary": f"u = {given}"}, exact=known, name=name)
        begin = time.process_time()
        cells = rp.solve(problem, tol=tol, method="cells", seconds=LIMIT / 10)
        beside = f"cells: estimate {cells.estimate:.1e}, {time.process_time() - begin:.2f} s"
        yield solved(problem, tol, "", beside=beside)
    corner = box - rp.Box(x=(0.5, 1.5), y=(0.5, 1.5))
    index = f"laplace(u) + {float(rng.uniform(350, 450))!r}*(1 + 0.3*sin(x)*y)*u = 1"
    problem = rp.Problem(index, corner, {"boundary": "u = x*y"}, name="waves on an L-shape")
    begin = time.process_time()
    chosen = rp.solve(problem, tol=1e-4)
    seconds = time.process_time() - begin
    finer, points = rp.solve(problem, tol=1e-6), problem.domain.sample(2000, rng=3)
    gap = np.linalg.norm(chosen(points) - finer(points)) / np.linalg.norm(finer(points))
    name = f"{problem.name}, by {chosen.method.name}"
    yield Row(name, "", float(gap), chosen.estimate, None, sum(chosen.widths), seconds, chosen.converged)


def space(rng: np.random.Generator) -> Iterator[Row]:
    """Ball, cube without four balls, torus: Laplace and Helmholtz."""
    radius = float(rng.uniform(0.2, 0.3))
    cube = rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1))
    four: rp.Box = cube
    places = ((0.5, 0.5, 0.5), (-0.5, -0.5, 0.5), (0.5, -0.5, -0.5), (-0.5, 0.5, -0.5))
    for place in places:
        four = four - rp.Ball(place, radius)  # type: ignore[assignment]
    ring = rp.Implicit(
        f"(sqrt(x**2 + y**2) - 1)**2 + z**2 < {radius!r}**2",
        within=rp.Box(x=(-1.5, 1.5), y=(-1.5, 1.5), z=(-0.5, 0.5)),
    )
    away = "sqrt((x - 1.5)**2 + (y - 1.2)**2 + (z - 0.4)**2)"
    meshes = {
        "ball": lambda: peer.solid_mesh(0.5, 6, None, 1.0),
        "cube without four balls": lambda: peer.solid_mesh(0.5, 5, [(*place, radius) for place in places]),
    }
    for domain, name in ((rp.Ball((0, 0, 0), 1), "ball"), (four, "cube without four balls"), (ring, "torus")):
        for k in (0, 20):
            exact = f"cos({k}*{away})/{away}"
            problem = rp.Problem(
                f"laplace(u) + {k**2}*u = 0",
                domain,
                {"boundary": f"u = {exact}"},
                exact={"u": exact},
                name=f"{name}, k = {k}",
            )
            beside = ""
            if peer.AVAILABLE and name in meshes and not k:
                import ngsolve as ng

                gap = (ng.x - 1.5) ** 2 + (ng.y - 1.2) ** 2 + (ng.z - 0.4) ** 2
                points = np.random.default_rng(0).uniform(-0.2, 0.2, (100, 3))
                beside = peer.scalar(
                    meshes[name], 6 if name == "ball" else 5, lambda mesh, gap=gap: 1 / ng.sqrt(gap),
                    exact=lambda p: 1 / np.linalg.norm(p - [1.5, 1.2, 0.4], axis=1), points=points,
                )  # fmt: skip
            yield solved(problem, 1e-7, "1e-7 in 5 s", beside=beside)


# ------------------------------------------------------------------------------------------------------------ time


def images(x: Array, t: Array, centre: float, low: float, high: float, start: float) -> Array:
    """Heat from a Gaussian of variance 2 start between cold walls: the sum of its images."""
    n = np.arange(-3, 4)[:, None]  # farther ones are below rounding for the times asked here
    width, period = start + t, 2 * (high - low)
    gaps = x - centre + n * period, 2 * low - x - centre + n * period
    direct, mirrored = (np.exp(-(gap**2) / (4 * width)) for gap in gaps)
    return np.sqrt(start / width) * (direct - mirrored).sum(axis=0)


def evolution(rng: np.random.Generator) -> Iterator[Row]:
    """Heat on a square, a cube and a disc, waves to t = 100, Schrödinger: eigenfunctions with their rates."""
    goal = "1e-10 in 0.2 s"
    for d, name in ((2, "square"), (3, "cube")):
        high, start = rng.uniform(0.8, 1.2, d), 0.01
        centre = high * rng.uniform(0.3, 0.7, d)
        names = ("x", "y", "z")[:d]

        def spread(t: Array, *place: Array, c: Array = centre, b: Array = high, s: float = start) -> Array:
            return np.prod([images(x, t, c[k], 0.0, b[k], s) for k, x in enumerate(place)], axis=0)

        domain = rp.SpaceTime(t=(0, 0.1), **{n: (0.0, float(b)) for n, b in zip(names, high, strict=True)})
        conditions = {"t=0": f"u = g(t, {', '.join(names)})", "boundary": "u = 0"}
        yield solved(
            rp.Problem("u_t = laplace(u)", domain, conditions, functions={"g": spread}, name=f"heat, {name}",
                       exact={"u": lambda p, g=spread: g(*p.T)}),
            1e-10, goal,
        )  # fmt: skip
    orders, weights = rng.integers(0, 6, 5), rng.normal(size=5)
    zeros = np.array([jn_zeros(m, 4)[rng.integers(4)] for m in orders])

    def shape(t: Array, x: Array, y: Array, rates: Callable[[Array], Array]) -> Array:
        r, turn = np.hypot(x, y)[:, None], np.arctan2(y, x)[:, None]
        return (weights * rates(t[:, None]) * jv(orders, zeros * r) * np.cos(orders * turn)).sum(axis=1)

    disc = rp.Ball((0, 0), 1)
    rim = {"g": lambda x, y: shape(0 * x, x, y, lambda t: np.exp(0 * t))}
    yield solved(
        rp.Problem("u_t = laplace(u)", rp.SpaceTime(t=(0, 0.1), x=disc), {"t=0": "u = g(x, y)", "boundary": "u = 0"},
                   functions=rim, name="heat, disc",
                   exact={"u": lambda p: shape(*p.T, lambda t: np.exp(-(zeros**2) * t))}),
        1e-10, goal,
    )  # fmt: skip
    start_values = {"t=0": ("u = g(x, y)", "u_t = 0"), "boundary": "u = 0"}
    yield solved(
        rp.Problem("u_tt = laplace(u)", rp.SpaceTime(t=(0, 100), x=disc), start_values, functions=rim,
                   name="wave to t = 100, disc", exact={"u": lambda p: shape(*p.T, lambda t: np.cos(zeros * t))}),
        1e-10, goal,
    )  # fmt: skip
    a, b = rng.uniform(0.8, 1.2, 2).tolist()
    k, m = (int(n) for n in rng.integers(1, 9, 2))
    mode = f"sin({k}*pi*x/{a!r})*sin({m}*pi*y/{b!r})"
    square = rp.SpaceTime(t=(0, 100), x=(0, a), y=(0, b))
    frequency = f"pi*sqrt(({k}/{a!r})**2 + ({m}/{b!r})**2)"
    ground = f"sin(pi*x/{a!r})*sin(pi*y/{b!r})"
    first = f"pi*sqrt(1/{a!r}**2 + 1/{b!r}**2)"
    exact = f"{mode}*cos({frequency}*t) + {ground}*sin({first}*t)"
    conditions = {"t=0": (f"u = {mode}", f"u_t = {first}*{ground}"), "boundary": "u = 0"}
    yield solved(
        rp.Problem("u_tt = laplace(u)", square, conditions, exact={"u": exact}, name="wave to t = 100, square"),
        1e-10, goal,
    )  # fmt: skip
    short = rp.SpaceTime(t=(0, 1), x=(0, a), y=(0, b))
    waves = {
        "u_re": f"{mode}*cos(({frequency})**2*t) + {ground}*cos(({first})**2*t)",
        "u_im": f"-{mode}*sin(({frequency})**2*t) - {ground}*sin(({first})**2*t)",
    }
    yield solved(
        rp.Problem(["u_re_t = -laplace(u_im)", "u_im_t = laplace(u_re)"], short,
                   {"t=0": (f"u_re = {mode} + {ground}", "u_im = 0"), "boundary": ("u_re = 0", "u_im = 0")},
                   exact=waves, fields=("u_re", "u_im"), name="Schrödinger, square"),
        1e-10, goal,
    )  # fmt: skip


SETS = {
    "helmholtz": helmholtz,
    "scattering": scattering,
    "laplace": laplace,
    "stokes": stokes,
    "layers": layers,
    "varying": varying,
    "semilinear": semilinear,
    "materials": materials,
    "space": space,
    "time": evolution,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(SETS))
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--race", action=argparse.BooleanOptionalAction, default=True, help="cells beside each draw")
    parser.add_argument("--record", type=Path, help="file to which each draw is added; what it holds is not done again")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.draws:
        races(arguments.draws, arguments.seed, arguments.first, arguments.race, arguments.record)
        return
    warm = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = x*y"})
    rp.solve(warm, tol=1e-6)
    walls = {"t=0": "u = sin(pi*x)*sin(pi*y)", "boundary": "u = 0"}
    plate = rp.Problem("u_t = laplace(u)", rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)), walls)
    rp.solve(plate, tol=1e-6, method="trefftz")  # what is loaded by the first solve of a process is no part of any row
    print("| problem | goal | error | estimate | bound | features | s (CPU) | converged | beside |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, rows in SETS.items():
        if arguments.only in (None, name):
            for row in rows(np.random.default_rng(arguments.seed)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
