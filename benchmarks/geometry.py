"""Shapes: nothing given but the error wanted, beside finite elements of high order, as a table in Markdown.

    python -m benchmarks.geometry                       # every row, one at a time
    python -m benchmarks.geometry 2d-C L-shape          # these rows
    python -m benchmarks.geometry --seconds 120         # time allowed to a solve (three times the goal's unless given)
    python -m benchmarks.geometry --pictures gallery    # also a picture of each solution in that folder

Errors are relative L² on fresh points, the largest over the fields that count: against an exact or manufactured
solution, or else against finer finite elements (two orders more on a finer mesh; how far those are from the ones in
the table is their error there). Seconds are those of the processor, without the imports of either library.
``NGSolve`` (a benchmark dependency: pip install ngsolve) was given mesh and order by hand for the accuracy; a row's
seconds of it include meshing. The winner is who reached the goal's error, of both the faster; of neither, the more
accurate. Every row runs in a process of its own:
what crashes or never ends is a row too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy

import rannpde as rp
from benchmarks import finite_elements as fem
from benchmarks.classical import Array, Function
from benchmarks.finite_elements import COORDINATES
from benchmarks.reference_solvers import meshes
from benchmarks.reference_solvers.elements import Elements, flow, heated, scalar
from rannpde.pde.budget import timed_by

FRESH = 4000
GRACE = 240.0
"""Seconds beyond the time allowed after which a row is ended: the finite elements and their truth take some."""
HEAD = (
    "| problem | goal | error | estimate | CPU s | columns | verdict | NGSolve error | CPU s | unknowns | wins |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)
X, Y, Z = COORDINATES
Rival = Callable[[], tuple[Function, int]]


@dataclass(frozen=True)
class Row:
    """A problem, the error wanted within so many seconds, and the classical solver.

    truth : finer elements, where no exact solution is known
    fields : how many of them count
    times : at which the error of a problem in time is looked at
    """

    problem: Callable[[], rp.Problem]
    target: float
    seconds: float
    rival: Rival
    truth: Rival | None = None
    fields: int | None = None
    times: tuple[float, ...] = ()


def elements(made: Callable[[], Elements]) -> Rival:
    """A finite-element solution with its number of unknowns."""

    def rival() -> tuple[Function, int]:
        found = made()
        return found, found.size

    return rival


def laplacian(expression: Any, dim: int = 2) -> Any:
    return sum(sympy.diff(expression, symbol, 2) for symbol in COORDINATES[:dim])


# ----------------------------------------------------------------------------------------------- discs in a square

FOUR = [(x, y, 0.1) for x in (-0.3, 0.3) for y in (-0.3, 0.3)]
UNEVEN = [(0.5, 0.5, 0.2), (0.4, -0.4, 0.4), (-0.2, -0.7, 0.1), (-0.6, 0.5, 0.3)]
THREE = [(0.3, 0.3, 0.1), (0.7, 0.4, 0.1), (0.45, 0.75, 0.1)]
SQUARE = ((-1.0, 1.0), (-1.0, 1.0))
UNIT = ((0.0, 1.0), (0.0, 1.0))


def without(bounds: Any, discs: Any, names: tuple[str, ...] = ("x", "y")) -> rp.Domain:
    """A box without balls, each a row (centre, radius), called disc0, disc1, …"""
    domain: Any = rp.Box(**dict(zip(names, bounds, strict=True)))
    for number, (*centre, radius) in enumerate(discs):
        domain = domain - rp.Ball(tuple(centre), radius, names, name=f"disc{number}")
    return domain


def discs_of(discs: Any) -> tuple[str, ...]:
    return tuple(f"disc{number}" for number in range(len(discs)))


def outside(discs: Any) -> str:
    return "boundary except " + ", ".join(discs_of(discs))


def case_c() -> rp.Problem:
    conditions = {"outside": rp.On(outside(FOUR), "u = 1"), "discs": rp.On(discs_of(FOUR), "u = 0")}
    return rp.Problem("laplace(u) = 0", without(((-0.5, 0.5),) * 2, FOUR), conditions)


def case_c_elements(spacing: float, order: int) -> Elements:
    mesh = meshes.plate(((-0.5, 0.5),) * 2, FOUR, spacing, order)
    return scalar(mesh, order, 0.0, {"outside": 1.0} | dict.fromkeys(discs_of(FOUR), 0.0))


SOURCE = 10 * (17 + X**2 + Y**2) * sympy.sin(sympy.pi * X) * sympy.sin(4 * sympy.pi * Y)


def case_cg() -> rp.Problem:
    conditions = {"outside": rp.On(outside(UNEVEN), "u = 0.2"), "discs": rp.On(discs_of(UNEVEN), "u = 1")}
    return rp.Problem(f"-laplace(u) + 64*u = {SOURCE}", without(SQUARE, UNEVEN), conditions)


def case_cg_elements(spacing: float, order: int) -> Elements:
    mesh = meshes.plate(SQUARE, UNEVEN, spacing, order)
    values = {"outside": 0.2} | dict.fromkeys(discs_of(UNEVEN), 1.0)
    return scalar(mesh, order, fem.formula(SOURCE), values, 64.0)


# ----------------------------------------------------------------------------------------------------- corners

BESIDE = sympy.sqrt(X**2 + Y**2)
TURNED = sympy.Rational(3, 4) * sympy.pi + 2 * sympy.atan(
    (X + Y) / (sympy.sqrt(2) * BESIDE + Y - X)
)  # the angle from the positive x axis, without a jump in the domain: measured from the diagonal of the corner
SINGULAR = BESIDE ** sympy.Rational(2, 3) * sympy.sin(sympy.Rational(2, 3) * TURNED)


def singular(points: Array) -> Array:
    """r^(2/3) sin(2θ/3), θ from 0 to 3π/2."""
    angle = np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi)
    return np.hypot(*points.T) ** (2 / 3) * np.sin(2 / 3 * angle)


def l_shape() -> rp.Problem:
    domain = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
    conditions = {
        "corner": rp.On(("x=0", "y=0"), "u = 0"),
        "rest": rp.On("boundary except x=0, y=0", "u = g(x, y)"),
    }
    known = lambda x, y: singular(np.stack(np.broadcast_arrays(x, y), axis=1))  # noqa: E731
    return rp.Problem("laplace(u) = 0", domain, conditions, functions={"g": known}, exact={"u": singular})


def l_shape_elements() -> Elements:
    mesh = meshes.cornered(SQUARE, ((0, 1), (-1, 0)), 0.5, 12, 12)
    return scalar(mesh, 12, 0.0, {"left|right|wall": fem.formula(SINGULAR)})


FLOW = {
    "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
    "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
    "mass": "u_x + v_y = 0",
}


def step() -> rp.Problem:
    domain = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2))
    conditions = {
        "inflow, u": rp.On("x=0", "u = 4*y*(1 - y)"),
        "inflow, v": rp.On("x=0", "v = 0"),
        "walls, u": rp.On("boundary except x=0, x=4", "u = 0"),
        "walls, v": rp.On("boundary except x=0, x=4", "v = 0"),
        "outflow, u": rp.On("x=4", "p = nu*u_x"),  # no force: p = 0 alone is one condition too few
        "outflow, v": rp.On("x=4", "v_x = 0"),
    }
    return rp.Problem(FLOW, domain, conditions, {"nu": 0.01}, fields=("u", "v", "p"))


def step_elements(spacing: float, order: int, levels: int) -> Elements:
    mesh = meshes.cornered(((0, 4), (0, 2)), ((0, 2), (1, 2)), spacing, order, levels)
    return flow(mesh, order, 0.01, ("left", "4*y*(1 - y)"))


# ---------------------------------------------------------------------------------------------- Stokes, elasticity

STREAM = sympy.sin(3 * X + Y) * sympy.exp(Y) / 3
VELOCITY = (sympy.diff(STREAM, Y), -sympy.diff(STREAM, X))
PRESSURE = sympy.cos(2 * X) * sympy.sin(3 * Y)
MIDDLE = (0.5, 0.5)
LEVEL = float(PRESSURE.subs(dict(zip((X, Y), MIDDLE, strict=True))))


def stokes_force() -> tuple[Any, Any]:
    slopes = (sympy.diff(PRESSURE, X), sympy.diff(PRESSURE, Y))
    return tuple(sympy.simplify(-laplacian(w) + s) for w, s in zip(VELOCITY, slopes, strict=True))  # type: ignore[return-value]


def stokes() -> rp.Problem:
    first, second = stokes_force()
    equations = {
        "momentum x": f"-laplace(u) + p_x = {first}",
        "momentum y": f"-laplace(v) + p_y = {second}",
        "mass": "u_x + v_y = 0",
    }
    conditions = {
        "sides, u": rp.On("boundary", f"u = {VELOCITY[0]}"),
        "sides, v": rp.On("boundary", f"v = {VELOCITY[1]}"),
        "level": rp.Data(np.array([MIDDLE]), np.array([LEVEL]), "p"),
    }
    exact = {"u": str(VELOCITY[0]), "v": str(VELOCITY[1]), "p": str(PRESSURE)}
    return rp.Problem(equations, without(UNIT, THREE), conditions, fields=("u", "v", "p"), exact=exact)


def stokes_elements() -> Elements:
    mesh, order = meshes.plate(UNIT, THREE, 0.12, 11), 11
    force, velocity = ([fem.formula(one) for one in pair] for pair in (stokes_force(), VELOCITY))
    return fem.stokes(mesh, order, force, velocity, (*MIDDLE, LEVEL))


MODULUS, POISSON = 3e7, 0.3
PLANE_STRESS = MODULUS / (1 - POISSON**2)
BALANCE = {
    "balance x": f"{PLANE_STRESS!r}*(u_xx + {(1 - POISSON) / 2!r}*u_yy + {(1 + POISSON) / 2!r}*v_xy)",
    "balance y": f"{PLANE_STRESS!r}*(v_yy + {(1 - POISSON) / 2!r}*v_xx + {(1 + POISSON) / 2!r}*u_xy)",
}


def stresses(u: Any, v: Any) -> tuple[Any, Any, Any]:
    """σ_xx, σ_yy, σ_xy of displacements, in plane stress."""
    ux, uy, vx, vy = (sympy.diff(one, symbol) for one in (u, v) for symbol in (X, Y))
    return (
        PLANE_STRESS * (ux + POISSON * vy),
        PLANE_STRESS * (vy + POISSON * ux),
        PLANE_STRESS * (1 - POISSON) / 2 * (uy + vx),
    )


STRESS_XX, STRESS_YY = (f"{PLANE_STRESS!r}*({a} + {POISSON!r}*{b})" for a, b in (("u_x", "v_y"), ("v_y", "u_x")))
STRESS_XY = f"{PLANE_STRESS * (1 - POISSON) / 2!r}*(u_y + v_x)"


def elastic_force(u: Any, v: Any) -> tuple[Any, Any]:
    """-∇·σ."""
    xx, yy, xy = stresses(u, v)
    return -sympy.diff(xx, X) - sympy.diff(xy, Y), -sympy.diff(xy, X) - sympy.diff(yy, Y)


def beam_exact() -> tuple[Any, Any]:
    """Timoshenko: a cantilever of length 48 and height 12 under a shear load of 1000 at its end."""
    load, length, height = 1000, 48, 12
    stiffness = sympy.Rational(3 * 10**7) * sympy.Rational(height**3, 12)
    nu = sympy.Rational(3, 10)
    u = -load * Y / (6 * stiffness) * ((6 * length - 3 * X) * X + (2 + nu) * (Y**2 - sympy.Rational(height**2, 4)))
    v = load / (6 * stiffness) * (
        3 * nu * Y**2 * (length - X) + (4 + 5 * nu) * height**2 * X / 4 + (3 * length - X) * X**2
    )  # fmt: skip
    return u, v


def beam() -> rp.Problem:
    u, v = beam_exact()
    xx, _, xy = stresses(u, v)
    conditions = {
        "clamped, u": rp.On("x=0", f"u = {u.subs(X, 0)}"),
        "clamped, v": rp.On("x=0", f"v = {v.subs(X, 0)}"),
        "end, normal": rp.On("x=48", f"{STRESS_XX} = {xx.subs(X, 48)}"),
        "end, shear": rp.On("x=48", f"{STRESS_XY} = {xy.subs(X, 48)}"),
        "faces, normal": rp.On(("y=-6", "y=6"), f"{STRESS_YY} = 0"),
        "faces, shear": rp.On(("y=-6", "y=6"), f"{STRESS_XY} = 0"),
    }
    equations = {name: f"{text} = 0" for name, text in BALANCE.items()}
    return rp.Problem(equations, rp.Box(x=(0, 48), y=(-6, 6)), conditions, exact={"u": str(u), "v": str(v)})


def beam_elements() -> Elements:
    mesh = meshes.cornered(((0, 48), (-6, 6)), ((100, 101), (0, 1)), 12.0, 3, 0)
    return fem.elasticity(mesh, 3, MODULUS, POISSON, beam_exact(), "left", (sympy.Integer(0),) * 2)


def forty() -> list[tuple[float, float, float]]:
    """Discs in (0, 8)², radii from 0.3 to 0.6, most of them 0.03 apart from a neighbour or from the rim."""
    generator, found = np.random.default_rng(1), []
    while len(found) < 40:
        place = generator.uniform(0.4, 7.6, 2)
        room = min([*place, *(8 - place)] + [float(np.hypot(*(place - c[:2]))) - c[2] for c in map(np.array, found)])
        if room - 0.03 >= 0.3:
            found.append((float(place[0]), float(place[1]), min(0.6, float(room) - 0.03)))
    return found


def holes_exact() -> tuple[Any, Any]:
    """The displacements of the random feature method's case of many holes (Chen, Chi, E, Yang 2022)."""
    u = Y / 10 * ((X + 10) * sympy.sin(Y) + (Y + 5) * sympy.cos(X))
    v = Y / 60 * ((30 + 5 * X * sympy.sin(5 * X)) * (4 + sympy.exp(-5 * Y)) - 100)
    return u, v


def holes() -> rp.Problem:
    """Displacements are known outside, tractions on the holes."""
    u, v = holes_exact()
    discs = forty()
    force = dict(zip(BALANCE, elastic_force(u, v), strict=True))
    xx, yy, xy = stresses(u, v)
    around = discs_of(discs)
    conditions = {
        "outside, u": rp.On(outside(discs), f"u = {u}"),
        "outside, v": rp.On(outside(discs), f"v = {v}"),
        "holes, x": rp.On(around, f"{STRESS_XX}*dn(x) + {STRESS_XY}*dn(y) = ({xx})*dn(x) + ({xy})*dn(y)"),
        "holes, y": rp.On(around, f"{STRESS_XY}*dn(x) + {STRESS_YY}*dn(y) = ({xy})*dn(x) + ({yy})*dn(y)"),
    }
    equations = {name: f"{text} = -({force[name]})" for name, text in BALANCE.items()}
    domain = without(((0, 8), (0, 8)), discs)
    return rp.Problem(equations, domain, conditions, fields=("u", "v"), exact={"u": str(u), "v": str(v)})


def holes_elements() -> Elements:
    mesh = meshes.plate(((0, 8), (0, 8)), forty(), 0.5, 6, near=0.25)
    exact = holes_exact()
    return fem.elasticity(mesh, 6, MODULUS, POISSON, exact, "outside", elastic_force(*exact))


# ------------------------------------------------------------------------------------------------------ time

LARGE = [(x, y, 1.0) for x in (-4, 4) for y in (-9, -3, 3, 9)] + [(0, y, 1.0) for y in (-6, 0, 6)]
SMALL = [(x, y, 0.4) for x in (-3.2, 3.2) for y in (-6, 0, 6)]
END, HALVINGS = 3.0, 10
PLATE = ((-8.0, 8.0), (-12.0, 12.0))


def heat() -> rp.Problem:
    discs = [*LARGE, *SMALL]
    names = discs_of(discs)
    conditions = {
        "start": rp.On("t=0", "u = 0"),
        "large": rp.On(names[: len(LARGE)], "dn(u) = 5 - u"),
        "small": rp.On(names[len(LARGE) :], "dn(u) = 1 - u"),
        "outside": rp.On(outside(discs), "dn(u) = 0.1 - u"),
    }
    domain = rp.SpaceTime(t=(0, END), x=without(PLATE, discs))
    return rp.Problem("u_t = laplace(u)", domain, conditions)


def heat_elements(spacing: float, order: int, steps: int) -> tuple[Function, int]:
    discs = [*LARGE, *SMALL]
    names = discs_of(discs)
    outer = dict.fromkeys(names, 1.0) | dict.fromkeys(names[: len(LARGE)], 5.0) | {"outside": 0.1}
    moments = [END / 2**k for k in range(HALVINGS + 1)]
    found = heated(meshes.plate(PLATE, discs, spacing, order), order, outer, moments, steps)
    return found, found.size


# ------------------------------------------------------------------------------------------------------ space

BALLS = [(0.4, 0.3, 0.6, 0.2), (0.6, 0.7, 0.6, 0.2), (0.2, 0.8, 0.7, 0.1), (0.6, 0.2, 0.3, 0.1)]
CUBE = ((0.0, 1.0),) * 3
SMOOTH = sympy.sin(2 * X + Y) * sympy.exp(Z) + X * Y * Z


def poisson_in(domain: rp.Domain) -> rp.Problem:
    """-Δu = f with the smooth solution above, prescribed on the boundary."""
    conditions = {"sides": rp.On("boundary", f"u = {SMOOTH}")}
    return rp.Problem(f"-laplace(u) = {-laplacian(SMOOTH, 3)}", domain, conditions, exact={"u": str(SMOOTH)})


def smooth_elements(mesh: Any, order: int) -> Elements:
    return scalar(mesh, order, fem.formula(-laplacian(SMOOTH, 3)), {".*": fem.formula(SMOOTH)})


def waves() -> Any:
    """The source of 3d-CG."""
    sine = [sympy.sin(k * sympy.pi * c) for k, c in zip((1, 10, 5), COORDINATES, strict=True)]
    square = X**2 + Y**2 + Z**2
    return 20 * sympy.exp(sum(sine)) * (square - 1) / (square + 1) + 100 * sine[0] * sine[1] * sine[2]


def case_3d() -> rp.Problem:
    conditions = {"sides": rp.On("boundary", "dn(u) = 0")}
    equation = f"-laplace(u) + where(z < 0.5, 64, 100)*u = {waves()}"
    return rp.Problem(equation, without(CUBE, BALLS, ("x", "y", "z")), conditions)


def case_3d_elements(spacing: float, order: int) -> Elements:
    mesh = meshes.cube(BALLS, spacing, order)
    return scalar(mesh, order, fem.formula(waves()), {}, mesh.MaterialCF({"low": 64.0, "high": 100.0}))


def torus_file() -> Path:
    """A torus of radii 1 and 0.4 in 32 × 16 × 2 triangles, as text in the STL format."""
    around, along = 32, 16
    angle, turn = np.meshgrid(
        np.arange(around) * 2 * np.pi / around, np.arange(along) * 2 * np.pi / along, indexing="ij"
    )
    reach = 1 + 0.4 * np.cos(turn)
    points = np.stack([reach * np.cos(angle), reach * np.sin(angle), 0.4 * np.sin(turn)], axis=2)
    lines = ["solid torus"]
    for i in range(around):
        for j in range(along):
            a, b = points[i, j], points[(i + 1) % around, j]
            c, d = points[(i + 1) % around, (j + 1) % along], points[i, (j + 1) % along]
            for triangle in ((a, b, c), (a, c, d)):
                normal = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
                lines.append("facet normal " + " ".join(f"{v:.9g}" for v in normal / np.linalg.norm(normal)))
                lines += ["outer loop", *("vertex " + " ".join(f"{v:.17g}" for v in p) for p in triangle), "endloop"]
                lines.append("endfacet")
    path = Path(tempfile.gettempdir()) / "rannpde-torus.stl"
    path.write_text("\n".join([*lines, "endsolid torus", ""]))
    return path


def torus() -> rp.Problem:
    return poisson_in(rp.mesh(torus_file(), names=("x", "y", "z")))


# ------------------------------------------------------------------------------------------------- interface

RADIUS, CONTRAST = 0.5, 1000.0


def interface() -> rp.Problem:
    """∇·(a∇u) = 16 r², a = 1 inside a circle and 1000 outside: u = r⁴/a + a constant, the flux 4 r³ everywhere."""
    inside = f"x**2 + y**2 < {RADIUS**2!r}"
    jump = RADIUS**4 * (1 - 1 / CONTRAST)
    exact = f"where({inside}, (x**2 + y**2)**2, (x**2 + y**2)**2/{CONTRAST!r} + {jump!r})"
    conditions = {"sides": rp.On("boundary", f"u = (x**2 + y**2)**2/{CONTRAST!r} + {jump!r}")}
    equation = f"div(where({inside}, 1, {CONTRAST!r})*grad(u)) = 16*(x**2 + y**2)"
    return rp.Problem(equation, rp.Box(x=(-1, 1), y=(-1, 1)), conditions, exact={"u": exact})


def interface_elements() -> Elements:
    mesh = fem.nested(SQUARE, RADIUS, 0.5, 8)
    square = X**2 + Y**2
    rim = fem.formula(square**2 / CONTRAST + RADIUS**4 * (1 - 1 / CONTRAST))
    factor = mesh.MaterialCF({"inner": 1.0, "outer": CONTRAST})
    return scalar(mesh, 8, fem.formula(-16 * square), {"outside": rim}, 0.0, factor)


# ------------------------------------------------------------------------------------------- where nothing is smooth

STEEL = {"lam": 1.25, "mu": 1.0, "rho": 0.016}


def cantilever() -> rp.Problem:
    body = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = rho"]
    conditions = {
        "clamp": rp.On("x=0", ["u = 0", "v = 0"]),
        "tip": rp.On("x=1", ["(lam+2*mu)*u_x + lam*v_y = 0", "mu*(u_y + v_x) = 0"]),
        "long": rp.On(("y=0", "y=0.2"), ["mu*(u_y + v_x) = 0", "(lam+2*mu)*v_y + lam*u_x = 0"]),
    }
    return rp.Problem(body, rp.Box(x=(0, 1), y=(0, 0.2)), conditions, STEEL)


def cantilever_elements(order: int, levels: int) -> Elements:
    return fem.cantilever(order, levels, STEEL["lam"], STEEL["mu"], STEEL["rho"])


def motz() -> rp.Problem:
    conditions = {
        "cold": rp.On("y=0 where x < 0", "u = 0"),
        "floor": rp.On("y=0 where x > 0", "dn(u) = 0"),
        "hot": rp.On("x=1", "u = 500"),
        "rest": rp.On(("x=-1", "y=1"), "dn(u) = 0"),
    }
    return rp.Problem("laplace(u) = 0", rp.Box(x=(-1, 1), y=(0, 1)), conditions)


def inclusion() -> rp.Problem:
    equation = "div(where(max(abs(x), abs(y)) < 0.5, 100, 1)*grad(u)) = -1"
    return rp.Problem(equation, rp.Box(x=(-1, 1), y=(-1, 1)), {"rim": rp.On("boundary", "u = 0")})


STRONG = 1e4
"""The larger of the two coefficients of the checkerboard."""


def checkerboard() -> rp.Problem:
    equation = f"div(where(x*y > 0, {STRONG:g}, 1)*grad(u)) = -1"
    return rp.Problem(equation, rp.Box(x=(-1, 1), y=(-1, 1)), {"rim": rp.On("boundary", "u = 0")})


SERIES = 120
"""Terms of its series: the solutions with 80 and 120 of them differ by 8e-6 of their size."""


def checkerboard_series() -> tuple[Function, int]:
    """The checkerboard under a uniform load, by functions that satisfy equation and interface conditions.

    The solution is even about both diagonals, so that a wedge |θ| ≤ π/4 is enough, with a = k for θ > 0 and a = 1
    below. Even homogeneous solutions are r^(2m) cos 2m(θ ∓ π/4), with factors 1, 1 for even m and 1/k, -1 for odd m.
    The load asks for r² and, as 2 is one of the exponents, for r² log r. Least squares of u = 0 on the side x = 1 give
    the factors.
    """
    slope = (1 - 1 / STRONG) / (np.pi * (1 + STRONG))

    def polar(points: Array) -> tuple[Array, Array]:
        angle = np.mod(np.arctan2(points[:, 1], points[:, 0]) + np.pi / 4, np.pi) - np.pi / 4
        return np.hypot(*points.T), np.where(angle > np.pi / 4, np.pi / 2 - angle, angle)

    def loaded(r: Array, angle: Array) -> Array:
        above, scale = angle > 0, np.where(angle > 0, 1.0, STRONG)
        turned = angle + np.where(above, -np.pi / 4, np.pi / 4)
        bent = np.log(np.maximum(r, 1e-300)) * np.sin(2 * angle) + turned * np.cos(2 * angle)
        return r**2 * (-1 / np.where(above, 4 * STRONG, 4.0) + slope * scale * bent)

    def powers(r: Array, angle: Array) -> Array:
        above, turned = angle > 0, angle + np.where(angle > 0, -np.pi / 4, np.pi / 4)
        factors = [np.ones(len(r)), np.where(above, 1 / STRONG, -1.0)]
        columns = [(r / np.sqrt(2)) ** (2 * m) * factors[m % 2] * np.cos(2 * m * turned) for m in range(SERIES)]
        return np.stack(columns, axis=1)

    shares = (1 + np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)) / 2
    side = polar(np.stack([np.ones(8000), np.concatenate([shares, -shares])], axis=1))
    weights = np.linalg.lstsq(powers(*side), -loaded(*side), rcond=1e-15)[0]

    def function(points: Array) -> Array:
        r, angle = polar(points)
        return np.asarray(powers(r, angle) @ weights + loaded(r, angle))

    return function, SERIES


def fichera() -> rp.Problem:
    solid = rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1)) - rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    return rp.Problem("-laplace(u) = 1", solid, {"rim": rp.On("boundary", "u = 0")})


def bar() -> rp.Problem:
    """The cantilever in space."""
    body = [
        "(lam+2*mu)*u_xx + mu*(u_yy + u_zz) + (lam+mu)*(v_xy + w_xz) = 0",
        "mu*(v_xx + v_zz) + (lam+2*mu)*v_yy + (lam+mu)*(u_xy + w_yz) = rho",
        "mu*(w_xx + w_yy) + (lam+2*mu)*w_zz + (lam+mu)*(u_xz + v_yz) = 0",
    ]
    own = {
        a: f"(lam+2*mu)*{a} + lam*({b} + {c}) = 0"
        for a, b, c in (("u_x", "v_y", "w_z"), ("v_y", "u_x", "w_z"), ("w_z", "u_x", "v_y"))
    }
    shear = {"xy": "mu*(u_y + v_x) = 0", "xz": "mu*(u_z + w_x) = 0", "yz": "mu*(v_z + w_y) = 0"}
    conditions = {
        "clamp": rp.On("x=0", ["u = 0", "v = 0", "w = 0"]),
        "tip": rp.On("x=1", [own["u_x"], shear["xy"], shear["xz"]]),
        "y": rp.On(("y=0", "y=0.2"), [shear["xy"], own["v_y"], shear["yz"]]),
        "z": rp.On(("z=0", "z=0.2"), [shear["xz"], shear["yz"], own["w_z"]]),
    }
    return rp.Problem(body, rp.Box(x=(0, 1), y=(0, 0.2), z=(0, 0.2)), conditions, STEEL)


def opened(points: Array) -> Array:
    """√r cos(θ/2), θ from 0 to 2π: round the end of a crack along the positive x axis."""
    angle = np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi)
    return np.sqrt(np.hypot(*points.T)) * np.cos(angle / 2)


def slit() -> rp.Problem:
    """Insulated lips of a crack from the middle of a square to its side, the exact values around."""
    known = lambda x, y: opened(np.stack(np.broadcast_arrays(x, y), axis=1))  # noqa: E731
    conditions = {
        "crack": rp.On("slit (0, 0) to (1, 0)", "dn(u) = 0"),
        "rest": rp.On("boundary", "u = g(x, y)"),
    }
    return rp.Problem(
        "laplace(u) = 0", rp.Box(x=(-1, 1), y=(-1, 1)), conditions, functions={"g": known}, exact={"u": opened}
    )


def clamped_plate() -> rp.Problem:
    conditions = {"rim": rp.On("boundary", ["u = 0", "dn(u) = 0"])}
    return rp.Problem("laplace(laplace(u)) = 1", rp.Box(x=(0, 1), y=(0, 1)), conditions)


RUBBER = {"mu": 1.0, "lam": 10.0}


def rubber() -> rp.Problem:
    """A neo-Hookean block, clamped at both ends and pulled by a half."""
    volume = "((1 + u_x)*(1 + v_y) - u_y*v_x)"
    factor = f"(lam*log({volume}) - mu)/{volume}"
    p, q = f"(mu*(1 + u_x) + {factor}*(1 + v_y))", f"(mu*u_y - {factor}*v_x)"
    r, s = f"(mu*v_x - {factor}*u_y)", f"(mu*(1 + v_y) + {factor}*(1 + u_x))"
    conditions = {
        "left": rp.On("x=0", ["u = 0", "v = 0"]),
        "right": rp.On("x=1", ["u = 0.5", "v = 0"]),
        "free": rp.On(("y=0", "y=1"), [f"{q} = 0", f"{s} = 0"]),
    }
    return rp.Problem([f"div({p}, {q}) = 0", f"div({r}, {s}) = 0"], rp.Box(x=(0, 1), y=(0, 1)), conditions, RUBBER)


CONTACT = 0.6
"""Radius of the circle in which the membrane lies on the obstacle u = 0."""


def lifted(points: Array) -> Array:
    """½ (r² - a²) - a² log(r/a) outside the circle of contact: -Δu = -2 where it is free."""
    square = np.maximum((points**2).sum(axis=1), CONTACT**2)
    return 0.5 * (square - CONTACT**2) - 0.5 * CONTACT**2 * np.log(square / CONTACT**2)


def obstacle() -> rp.Problem:
    known = lambda x, y: lifted(np.stack(np.broadcast_arrays(x, y), axis=1))  # noqa: E731
    conditions = {"boundary": "u = g(x, y)", "interior": "u >= 0"}
    return rp.Problem(
        "laplace(u) = 2", rp.Box(x=(-1, 1), y=(-1, 1)), conditions, functions={"g": known}, exact={"u": lifted}
    )


ROWS: Mapping[str, Row] = {
    "2d-C": Row(
        case_c, 1e-6, 20, elements(lambda: case_c_elements(0.15, 9)), elements(lambda: case_c_elements(0.1, 13))
    ),
    "2d-CG": Row(
        case_cg, 1e-6, 20, elements(lambda: case_cg_elements(0.25, 11)), elements(lambda: case_cg_elements(0.2, 15))
    ),
    "L-shape": Row(l_shape, 1e-7, 10, elements(l_shape_elements)),
    "Stokes": Row(stokes, 1e-8, 20, elements(stokes_elements)),
    "beam": Row(beam, 1e-10, 5, elements(beam_elements)),
    "forty-holes": Row(holes, 1e-5, 120, elements(holes_elements)),
    "heat": Row(
        heat, 1e-4, 8, lambda: heat_elements(1.5, 5, 4), lambda: heat_elements(1.0, 7, 12),
        times=tuple(END / 2**k for k in range(HALVINGS // 2)),
    ),
    "step": Row(
        step, 1e-3, 60, elements(lambda: step_elements(0.4, 5, 3)), elements(lambda: step_elements(0.3, 8, 5)),
        fields=2,
    ),
    "cube": Row(
        lambda: poisson_in(without(CUBE, BALLS, ("x", "y", "z"))), 1e-6, 30,
        elements(lambda: smooth_elements(meshes.cube(BALLS, 0.3, 5), 5)),
    ),
    "3d-CG": Row(
        case_3d, 1e-3, 120, elements(lambda: case_3d_elements(0.2, 6)), elements(lambda: case_3d_elements(0.18, 8))
    ),
    "torus": Row(torus, 1e-6, 30, elements(lambda: smooth_elements(fem.surface(torus_file(), 0.3), 6))),
    "interface": Row(interface, 1e-8, 10, elements(interface_elements)),
    "cantilever": Row(
        cantilever, 1e-5, 1, elements(lambda: cantilever_elements(6, 6)), elements(lambda: cantilever_elements(14, 20))
    ),
    "Motz": Row(motz, 1e-8, 3, elements(lambda: fem.motz(10, 12)), elements(lambda: fem.motz(14, 26))),
    "inclusion": Row(
        inclusion, 1e-6, 5, elements(lambda: fem.inclusion(8, 8, 100.0)), elements(lambda: fem.inclusion(14, 16, 100.0))
    ),
    "checkerboard": Row(
        checkerboard, 1e-4, 5, elements(lambda: fem.checkerboard(8, 30, STRONG)), checkerboard_series,
    ),
    "Fichera": Row(
        fichera, 1e-3, 30, elements(lambda: fem.fichera(0.6, 4, 2)), elements(lambda: fem.fichera(0.5, 6, 3))
    ),
    "bar": Row(
        bar, 1e-3, 20, elements(lambda: fem.bar(0.1, 3, *STEEL.values())),
        elements(lambda: fem.bar(0.1, 5, *STEEL.values())), fields=2,
    ),
    "slit": Row(slit, 1e-6, 3, elements(lambda: fem.half_slit(10, 16))),
    "plate": Row(clamped_plate, 1e-6, 3, elements(lambda: fem.plate(0.3, 6)), elements(lambda: fem.plate(0.2, 9))),
    "neo-Hookean": Row(
        rubber, 1e-4, 5, elements(lambda: fem.rubber(6, 3, *RUBBER.values())),
        elements(lambda: fem.rubber(10, 5, *RUBBER.values())),
    ),
    "obstacle": Row(obstacle, 1e-4, 5, elements(lambda: fem.obstacle(0.02, 2, CONTACT))),
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------- running


def largest_error(function: Function, exact: Function, points: Array, fields: int | None) -> float:
    """Relative L², the largest over the first fields, where both are known."""
    found, wanted = (np.reshape(f(points), (len(points), -1))[:, :fields] for f in (function, exact))
    known = np.isfinite(found).all(axis=1) & np.isfinite(wanted).all(axis=1)
    if known.mean() < 0.9:
        return float("nan")
    gap, size = (np.linalg.norm(part[known], axis=0) for part in (found - wanted, wanted))
    return float((gap / size).max())


def fresh(problem: rp.Problem, times: tuple[float, ...]) -> Array:
    """Points that no solver saw; of a problem in time at the times that are looked at."""
    points = problem.domain.sample(FRESH, rng=7)
    if times:
        points[:, 0] = np.resize(times, FRESH)
    return points


@dataclass(frozen=True)
class Outcome:
    """What one of the two made of a row: a word when it failed."""

    error: float = float("nan")
    seconds: float = float("nan")
    size: int = 0
    word: str = ""
    estimate: float = float("nan")

    def cells(self, ours: bool) -> str:
        if self.word:
            return f"{self.word} | | | " + ("| " if ours else "")
        error = f"{self.error:.1e}" if np.isfinite(self.error) else "not judged"
        numbers = [error, *([f"{self.estimate:.1e}"] if ours else []), f"{self.seconds:.1f}"]
        return " | ".join([*numbers, f"{self.size:,}"]) + " | "

    def reaches(self, target: float) -> bool:
        return not self.word and self.error <= target


def solved(row: Row, seconds: float, pictures: Path | None, name: str) -> tuple[rp.Solution | None, Outcome, str]:
    """The solution, or why there is none, with the traceback."""
    solve = rp.solve  # names load when they are used: neither library's imports are counted
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), timed_by(time.process_time):
            warnings.simplefilter("ignore")
            problem = row.problem()
            solution = solve(problem, tol=row.target, seconds=seconds)
    except rp.InputError as refusal:
        return None, Outcome(word="refused"), str(refusal)
    except Exception as failure:
        return None, Outcome(word=type(failure).__name__), traceback.format_exc()
    spent = time.process_time() - begin  # with what it takes to understand the statement
    told = f"{solution.method}; {'converged' if solution.converged else 'did not converge: ' + solution.reason}"
    if pictures is not None:
        solution.plot(pictures / f"{name}.png")
    return solution, Outcome(seconds=spent, size=sum(solution.widths), estimate=solution.estimate), told


def run(name: str, seconds: float | None, pictures: Path | None) -> str:
    """Solve one case; the row of the table, and a line of what happened."""
    row = ROWS[name]
    solution, ours, told = solved(row, 3 * row.seconds if seconds is None else seconds, pictures, name)
    points, truth = (None, None) if solution is None else (fresh(solution.stated, row.times), None)
    theirs = Outcome(word="needs pip install ngsolve")
    if fem.available() and (solution is not None or row.truth is None):
        domain = None if solution is None else solution.stated
        begin = time.process_time()
        found, unknowns = row.rival()
        spent = time.process_time() - begin
        truth = row.truth()[0] if row.truth else None if domain is None else domain.exact_solution
        error = float("nan") if truth is None or points is None else largest_error(found, truth, points, row.fields)
        theirs = Outcome(error, spent, unknowns)
    elif solution is not None and row.truth is None:
        truth = solution.stated.exact_solution
    elif row.truth is checkerboard_series:  # a series, which needs no finite elements
        truth = row.truth()[0]
    if solution is not None and points is not None and truth is not None:
        error = largest_error(solution.function, truth, points, row.fields)
        ours = Outcome(error, ours.seconds, ours.size, estimate=ours.estimate)
    met = ours.reaches(row.target) and ours.seconds <= row.seconds
    goal = f"{row.target:.0e} in {row.seconds:g} s"
    verdict = "met" if met else "accurate, late" if ours.reaches(row.target) else "MISSED"
    line = f"| {name} | {goal} | {ours.cells(True)}{verdict} | {theirs.cells(False)}{winner(ours, theirs, row)} |"
    return f"{line}\n<!-- {name}: {told} -->"


def winner(ours: Outcome, theirs: Outcome, row: Row) -> str:
    """Who reached the goal's error, of both the faster; of neither the more accurate."""
    if ours.word or theirs.word:
        return "" if ours.word and theirs.word else "NGSolve" if ours.word else "rannpde"
    reached = ours.reaches(row.target), theirs.reaches(row.target)
    if reached[0] != reached[1]:
        return "rannpde" if reached[0] else "NGSolve"
    first = ours.seconds < theirs.seconds if all(reached) else ours.error < theirs.error
    return "rannpde" if first else "NGSolve"


def apart(name: str, options: argparse.Namespace) -> str:
    """The row from a process of its own; a word for one that crashes or does not end."""
    limit = (3 * ROWS[name].seconds if options.seconds is None else options.seconds) + GRACE
    command = [sys.executable, __file__, "--here", name]
    command += [] if options.seconds is None else ["--seconds", str(options.seconds)]
    command += [] if options.pictures is None else ["--pictures", str(options.pictures)]
    goal = f"| {name} | {ROWS[name].target:.0e} in {ROWS[name].seconds:g} s | "
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return goal + f"not yet: no end after {limit:.0f} s | | | | MISSED | | | | NGSolve |"
    if done.returncode:
        return goal + f"crashed ({done.returncode}) | | | | MISSED | | | | NGSolve |\n<!-- {done.stderr[-3000:]} -->"
    return done.stdout.rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="row", help=", ".join(ROWS))
    parser.add_argument("--seconds", type=float, help="time allowed to a solve")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the solutions")
    parser.add_argument("--here", action="store_true", help="in this process, without the head of the table")
    options = parser.parse_args()
    unknown = sorted(set(options.rows) - set(ROWS))
    if unknown:
        parser.error(f"unknown rows {unknown}; known: {', '.join(ROWS)}")
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    if not options.here:
        print(HEAD, flush=True)
    for name in options.rows or ROWS:
        print(run(name, options.seconds, options.pictures) if options.here else apart(name, options), flush=True)


if __name__ == "__main__":
    main()
