"""Finite elements of high order on curved meshes (NGSolve, the extra ``rannpde[peers]``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import sympy

from benchmarks.reference_solvers.chebyshev import at_moments
from benchmarks.reference_solvers.extra import ng
from rannpde.arrays import Array
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

WORDS = Vocabulary(("x", "y", "z"))
Swinging = tuple[str, Callable[[float], float]]
"""A formula of x and y, and a factor of time."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Functions on a mesh as a function of points (M, d), NaN where the mesh has no element; ``size`` unknowns."""

    mesh: Any
    functions: tuple[Any, ...]
    size: int

    def __call__(self, points: Array) -> Array:
        found = self.mesh(*points.T)
        inside = found["nr"] >= 0
        values = np.full((len(points), len(self.functions)), np.nan)
        for column, function in enumerate(self.functions):
            values[inside, column] = np.asarray(function(found[inside])).ravel()
        return values


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Functions on a mesh at moments as a function of points (M, 1 + d), whose times are among the moments."""

    moments: tuple[float, ...]
    kept: tuple[Elements, ...]

    def __call__(self, points: Array) -> Array:
        return at_moments(points, self.moments, lambda k, places: self.kept[k](places))

    @property
    def size(self) -> int:
        """Unknowns at one time."""
        return self.kept[0].size


def formula(text: str) -> Any:
    """Text of the language of equations in x, y, z as a coefficient function."""
    return ng.CoefficientFunction(_formed(read(text, WORDS).formula))


def _formed(node: sympy.Expr) -> Any:
    if node.is_number:
        return float(node)
    if node.is_Symbol:
        return getattr(ng, node.name)
    parts = [_formed(part) for part in node.args]
    if node.is_Add or node.is_Mul:
        return reduce(add if node.is_Add else mul, parts)
    if node.is_Pow:  # a power of a negative number is real for whole exponents only, and only if they come as such
        return parts[0] ** (int(node.args[1]) if node.args[1].is_Integer else parts[1])
    return getattr(ng, {"Exponential": "exp"}.get(type(node).__name__, type(node).__name__))(parts[0])


# ------------------------------------------------------------------------------------------------------- stationary


def solved(form: Any, load: Any, found: Any, inverse: str = "sparsecholesky") -> None:
    """Add to ``found``, which has the prescribed values, what the equations leave to be found; inner unknowns first."""
    form.Assemble()
    load.Assemble()
    rest = load.vec.CreateVector()
    rest.data = load.vec - form.mat * found.vec
    rest.data += form.harmonic_extension_trans * rest
    found.vec.data += form.mat.Inverse(found.space.FreeDofs(True), inverse) * rest
    found.vec.data += form.harmonic_extension * found.vec
    found.vec.data += form.inner_solve * rest


def scalar(
    mesh: Any, order: int, load: Any, prescribed: Mapping[str, Any], reaction: Any = 0.0, diffusion: Any = 1.0
) -> Elements:
    """-∇·(a∇u) + c u = load; u prescribed on boundaries (names separated by |), no flux through others.

    All but names are numbers or coefficient functions.
    """
    space = ng.H1(mesh, order=order, dirichlet="|".join(prescribed))
    u, v = space.TnT()
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += (diffusion * ng.grad(u) * ng.grad(v) + reaction * u * v) * ng.dx(bonus_intorder=2)
    right = ng.LinearForm(space)
    right += load * v * ng.dx(bonus_intorder=6)
    found = ng.GridFunction(space)
    if prescribed:
        found.Set(mesh.BoundaryCF(dict(prescribed)), definedon=mesh.Boundaries("|".join(prescribed)))
    solved(form, right, found)
    return Elements(mesh, (found,), space.ndof)


def block_poisson(mesh: Any, order: int, mean: Array, wave: Array) -> Elements:
    """-Δu = mean + wave |sin(π(x + 10)/4) sin(π(y + 10)/4)| block by block (``chequered``), ∂_n u = -u."""
    space = ng.H1(mesh, order=order)
    u, v = space.TnT()
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += ng.grad(u) * ng.grad(v) * ng.dx + u * v * ng.ds("outside")
    parts = [{f"block{i}{j}": float(value) for (i, j), value in np.ndenumerate(table)} for table in (mean, wave)]
    waves = ng.sin(np.pi * (ng.x + 10) / 4) * ng.sin(np.pi * (ng.y + 10) / 4)
    sign = {f"block{i}{j}": (-1.0) ** (i + j) for i, j in np.ndindex(mean.shape)}
    right = ng.LinearForm(space)
    source = mesh.MaterialCF(parts[0]) + mesh.MaterialCF(parts[1]) * mesh.MaterialCF(sign) * waves
    right += source * v * ng.dx(bonus_intorder=8)
    found = ng.GridFunction(space)
    solved(form, right, found)
    return Elements(mesh, (found,), space.ndof)


def flow(mesh: Any, order: int, viscosity: float, moving: tuple[str, str], enclosed: bool = False) -> Elements:
    """Steady flow; Newton from the flow of Stokes.

    moving : a boundary and the velocity u there; v = 0 there, both are 0 on ``wall``; p = ν u_x and v_x = 0 on others
    enclosed : no others; the pressure is then fixed at one node
    """
    where, speed = moving
    space = _taylor_hood(mesh, order, f"{where}|wall")
    if enclosed:
        space.FreeDofs()[space.Range(2).start] = False
    trial, test = space.TnT()
    found = ng.GridFunction(space)
    found.components[0].Set(formula(speed), definedon=mesh.Boundaries(where))
    for convection in (False, True):
        form = ng.BilinearForm(space)
        form += _slow(trial, test, viscosity)
        if convection:
            form += _carried(trial, trial, test, order)
        ng.solvers.Newton(form, found, maxit=20, inverse="umfpack", printing=False, maxerr=1e-9)
    return Elements(mesh, tuple(found.components), space.ndof)


def _taylor_hood(mesh: Any, order: int, fixed: str) -> Any:
    part = ng.H1(mesh, order=order, dirichlet=fixed)
    return part * part * ng.H1(mesh, order=order - 1)


def _slow(parts: Any, test: Any, viscosity: float) -> Any:
    """What Stokes' equations say."""
    (a, b, c), (p, q, r) = parts, test
    slip = viscosity * (ng.grad(a) * ng.grad(p) + ng.grad(b) * ng.grad(q))
    mass, rates = (ng.grad(one)[0] + ng.grad(two)[1] for one, two in ((a, b), (p, q)))
    return (slip - c * rates - mass * r) * ng.dx


def _carried(by: Any, parts: Any, test: Any, order: int) -> Any:
    """(u ∂_x + v ∂_y)(u, v) against both tests; three factors of that order need more than the usual quadrature."""
    pairs = zip(parts[:2], test[:2], strict=True)
    return sum((by[0] * ng.grad(w)[0] + by[1] * ng.grad(w)[1]) * s for w, s in pairs) * ng.dx(bonus_intorder=order)


# ----------------------------------------------------------------------------------------------------------- in time

SDIRK = (
    (1 / 4,),
    (1 / 2, 1 / 4),
    (17 / 50, -1 / 25, 1 / 4),
    (371 / 1360, -137 / 2720, 15 / 544, 1 / 4),
    (25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4),
)
"""Hairer and Wanner, Solving Ordinary Differential Equations II, Table IV.6.5: order 4, L-stable."""
FIRST = 10
"""Time begins in stretches that double, the first this many halvings of the end: start and sides do not agree."""


def heated(mesh: Any, order: int, outer: Mapping[str, float], moments: Sequence[float], steps: int) -> Snapshots:
    """u_t = Δu from 0 with ∂_n u = outer[name] - u on boundaries, so many steps in each stretch of time.

    moments : the end and halvings of it
    """
    space, end = ng.H1(mesh, order=order), max(moments)
    u, v = space.TnT()
    mass, stiff, load = (
        ng.BilinearForm(space, symmetric=True),
        ng.BilinearForm(space, symmetric=True),
        ng.LinearForm(space),
    )
    mass += u * v * ng.dx
    stiff += ng.grad(u) * ng.grad(v) * ng.dx + u * v * ng.ds
    load += mesh.BoundaryCF(dict(outer)) * v * ng.ds
    for part in (mass, stiff, load):
        part.Assemble()
    now, both = ng.GridFunction(space), mass.mat.CreateMatrix()
    kept, begin = {}, 0.0
    stages = [now.vec.CreateVector() for _ in SDIRK]
    place, rest = now.vec.CreateVector(), now.vec.CreateVector()
    for finish in (end / 2**k for k in range(FIRST, -1, -1)):
        step = (finish - begin) / steps
        both.AsVector().data = mass.mat.AsVector() + 0.25 * step * stiff.mat.AsVector()
        inverse = both.Inverse(space.FreeDofs(), "sparsecholesky")
        for _ in range(steps):
            for number, row in enumerate(SDIRK):
                place.data = now.vec
                for weight, stage in zip(row, stages[:number], strict=False):
                    place.data += step * weight * stage
                rest.data = load.vec - stiff.mat * place
                stages[number].data = inverse * rest
            for weight, stage in zip(SDIRK[-1], stages, strict=True):
                now.vec.data += step * weight * stage
        begin, kept[finish] = finish, _snapshot(mesh, now, space.ndof)
    return Snapshots(tuple(moments), tuple(kept[moment] for moment in moments))


def _snapshot(mesh: Any, now: Any, size: int, fields: int | None = None) -> Elements:
    copy = ng.GridFunction(now.space)
    copy.vec.data = now.vec
    return Elements(mesh, tuple(copy.components)[:fields] or (copy,), size)


BACKWARD = {
    1: (1.0, -1.0),
    2: (3 / 2, -2.0, 1 / 2),
    3: (11 / 6, -3.0, 3 / 2, -1 / 3),
    4: (25 / 12, -4.0, 3.0, -4 / 3, 1 / 4),
}
AHEAD = {1: (1.0,), 2: (2.0, -1.0), 3: (3.0, -3.0, 1.0), 4: (4.0, -6.0, 4.0, -1.0)}
"""The derivative at the new time from it and the ones before, and the new value extrapolated: order 4 once begun."""
DOUBLINGS, RUN = 6, 8
"""Steps begin that many times halved, of order 1; after so many (then half as many) of a length, it is doubled."""


def unsteady_flow(
    mesh: Any, order: int, viscosity: float, inflow: Swinging, force: Swinging, moments: Sequence[float], steps: int
) -> Snapshots:
    """Flow from rest, from ``left`` to ``right`` between walls; the force acts in y.

    Stokes' part is implicit, what is carried is extrapolated.

    steps : between two of the moments, which are evenly spaced; more than RUN
    """
    space = _taylor_hood(mesh, order, "left|top|bottom")
    trial, test = space.TnT()
    now = ng.GridFunction(space)
    rest = now.vec.CreateVector()
    mass, slow = ng.BilinearForm(space), ng.BilinearForm(space)
    mass += (trial[0] * test[0] + trial[1] * test[1]) * ng.dx
    slow += _slow(trial, test, viscosity)
    shape, across, lift = ng.LinearForm(space), ng.LinearForm(space), ng.GridFunction(space)
    across += formula(force[0]) * test[1] * ng.dx(bonus_intorder=6)
    lift.components[0].Set(formula(inflow[0]), definedon=mesh.Boundaries("left"))
    shape += _carried(now.components, now.components, test, order)
    for part in (mass, slow, across):
        part.Assemble()

    def advanced(past: list[tuple[Any, Any]], t: float, h: float, known: dict[int, tuple[Any, Any]]) -> Any:
        """The state h after the newest of the past, pairs of a state and what it carries, newest first."""
        level = min(len(past), 4)
        if level not in known:
            whole, weight = slow.mat.CreateMatrix(), BACKWARD[level][0] / h
            whole.AsVector().data = slow.mat.AsVector() + weight * mass.mat.AsVector()
            known[level] = whole, whole.Inverse(space.FreeDofs(), "umfpack")
        whole, inverse = known[level]
        rest.data = force[1](t) * across.vec
        for ahead, behind, (state, push) in zip(AHEAD[level], BACKWARD[level][1:], past, strict=False):
            rest.data -= ahead * push
            rest.data -= behind / h * (mass.mat * state)
        now.vec.data = inflow[1](t) * lift.vec
        rest.data -= whole * now.vec
        now.vec.data += inverse * rest
        shape.Assemble()
        return now.vec.CreateVector(copy=True), shape.vec.CreateVector(copy=True)

    shape.Assemble()
    past, kept = [(now.vec.CreateVector(copy=True), shape.vec.CreateVector(copy=True))], []
    for halvings in range(DOUBLINGS, -1, -1):
        h = moments[0] / steps / 2**halvings
        known: dict[int, tuple[Any, Any]] = {}
        first = len(past)  # of this length, from rest
        for number in range(first, RUN + 1 if halvings else steps * len(moments) + 1):
            past = [advanced(past, number * h, h, known), *past][: RUN + 1]
            if not halvings and number % steps == 0:
                kept.append(_snapshot(mesh, now, space.ndof))
        past = past[::2]
    return Snapshots(tuple(moments), tuple(kept))
