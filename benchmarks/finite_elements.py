"""Finite elements of high order on curved meshes (NGSolve): the classical solver beside which geometry.py stands.

NGSolve is a dependency of this benchmark only: ``pip install ngsolve``. Meshes follow circles and spheres with curved
elements of the order of the functions; corners are refined geometrically. Inner unknowns are eliminated element by
element, the rest by a direct solver. Steady flow, meshes with corners and the cube come from ``rannpde.bench.rivals``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from rannpde.bench.rivals.elements import SDIRK, Elements
from rannpde.bench.rivals.extra import ng, occ

try:
    import netgen.meshing as meshing
    from netgen.stl import STLGeometry
except ImportError:  # said where it is needed: the rest of the benchmark runs without
    meshing = STLGeometry = None

COORDINATES = sympy.symbols("x y z", real=True)
"""Symbols of formulas."""


def available() -> bool:
    """Whether NGSolve can be imported."""
    return ng is not None


def formula(expression: Any) -> Any:
    """A SymPy expression of x, y, z as a coefficient function."""
    words = {name: getattr(ng, name) for name in ("sin", "cos", "exp", "sqrt", "atan", "log")}
    made = sympy.lambdify(COORDINATES, sympy.sympify(expression), modules=[words])
    return ng.CoefficientFunction(made(ng.x, ng.y, ng.z))


# ------------------------------------------------------------------------------------------------------------ meshes


def plate(
    bounds: Sequence[Sequence[float]], discs: Sequence[Sequence[float]], spacing: float, order: int, near: float = 0.0
) -> Any:
    """A rectangle without discs (x, y, radius), as a mesh with boundaries ``outside``, ``disc0``, ``disc1``, …

    near : spacing along discs over their radius; 0 leaves it to the mesher
    """
    (left, right), (low, high) = bounds
    shape = occ.MoveTo(left, low).Rectangle(right - left, high - low).Face()
    shape.edges.name = "outside"
    for number, (x, y, radius) in enumerate(discs):
        disc = occ.Circle((x, y), radius).Face()
        disc.edges.name = f"disc{number}"
        if near:
            disc.edges.maxh = near * radius
        shape = shape - disc
    return _plane(shape, spacing, order)


def nested(bounds: Sequence[Sequence[float]], radius: float, spacing: float, order: int) -> Any:
    """A rectangle with a disc around the origin inside as a material of its own, ``inner`` and ``outer``."""
    (left, right), (low, high) = bounds
    square, disc = occ.MoveTo(left, low).Rectangle(right - left, high - low).Face(), occ.Circle((0, 0), radius).Face()
    rest = square - disc
    square.edges.name = "outside"
    rest.faces.name, disc.faces.name = "outer", "inner"
    for edge in rest.edges:
        edge.name = "outside" if float(np.hypot(edge.center.x, edge.center.y)) > 1.01 * radius else "between"
    return _plane(occ.Glue([rest, disc]), spacing, order)


def _plane(shape: Any, spacing: float, order: int) -> Any:
    mesh = ng.Mesh(occ.OCCGeometry(shape, dim=2).GenerateMesh(maxh=spacing))
    mesh.Curve(order)
    return mesh


def surface(path: Path, spacing: float) -> Any:
    """The solid in an STL file, in tetrahedra with flat faces."""
    return ng.Mesh(STLGeometry(str(path)).GenerateMesh(maxh=spacing, perfstepsend=meshing.MeshingStep.MESHVOLUME))


# ------------------------------------------------------------------------------------------------------------ solvers


def _solved(form: Any, load: Any, found: Any, inverse: str) -> None:
    """Add to ``found``, which has the prescribed values, what the equations leave to be found; inner unknowns first."""
    form.Assemble()
    load.Assemble()
    rest = load.vec.CreateVector()
    rest.data = load.vec - form.mat * found.vec
    if not form.condense:
        found.vec.data += form.mat.Inverse(found.space.FreeDofs(), inverse) * rest
        return
    rest.data += form.harmonic_extension_trans * rest
    found.vec.data += form.mat.Inverse(found.space.FreeDofs(True), inverse) * rest
    found.vec.data += form.harmonic_extension * found.vec
    found.vec.data += form.inner_solve * rest


def scalar(
    mesh: Any, order: int, load: Any, prescribed: Mapping[str, Any], reaction: Any = 0.0, diffusion: Any = 1.0
) -> Elements:
    """-∇·(a∇u) + c u = f; u prescribed on boundaries (names separated by |), no flux through others."""
    space = ng.H1(mesh, order=order, dirichlet="|".join(prescribed))
    u, v = space.TnT()
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += (diffusion * ng.grad(u) * ng.grad(v) + reaction * u * v) * ng.dx(bonus_intorder=2)
    right = ng.LinearForm(space)
    right += load * v * ng.dx(bonus_intorder=6)
    found = ng.GridFunction(space)
    if prescribed:
        values = mesh.BoundaryCF(dict(prescribed))
        found.Set(values, definedon=mesh.Boundaries("|".join(prescribed)))
    # a form with inner unknowns eliminated must not see those of the prescribed function: only its trace counts
    _solved(form, right, found, "sparsecholesky")
    return Elements(mesh, (found,), space.ndof)


def stokes(mesh: Any, order: int, force: Sequence[Any], velocity: Sequence[Any], level: tuple[float, ...]) -> Elements:
    """-Δ(u, v) + ∇p = f, velocity prescribed on the whole boundary; p at a point (x, y, value). Taylor and Hood."""
    space = ng.VectorH1(mesh, order=order, dirichlet=".*") * ng.H1(mesh, order=order - 1)
    (u, p), (v, q) = space.TnT()
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += (ng.InnerProduct(ng.Grad(u), ng.Grad(v)) - ng.div(u) * q - ng.div(v) * p) * ng.dx
    for free in (space.FreeDofs(), space.FreeDofs(True)):
        free[space.Range(1).start] = False  # the level of the pressure, at one corner of the mesh
    right = ng.LinearForm(space)
    right += ng.CoefficientFunction(tuple(force)) * v * ng.dx(bonus_intorder=6)
    found = ng.GridFunction(space)
    found.components[0].Set(ng.CoefficientFunction(tuple(velocity)), definedon=mesh.Boundaries(".*"))
    _solved(form, right, found, "umfpack")
    flow, pressure = found.components[0], found.components[1]
    x, y, value = level
    pressure_there = pressure + (value - pressure(mesh(x, y)))
    return Elements(mesh, (flow[0], flow[1], pressure_there), space.ndof)


def elasticity(
    mesh: Any, order: int, modulus: float, poisson: float, exact: Sequence[Any], clamped: str, force: Sequence[Any]
) -> Elements:
    """Plane stress, -∇·σ = f: exact displacements where it is clamped, exact tractions on the rest."""
    space = ng.VectorH1(mesh, order=order, dirichlet=clamped)
    u, v = space.TnT()
    factor = modulus / (1 - poisson**2)

    def stress(gradient: Any) -> Any:
        strain = 0.5 * (gradient + gradient.trans)
        return factor * ((1 - poisson) * strain + poisson * ng.Trace(strain) * ng.Id(2))

    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += ng.InnerProduct(stress(ng.Grad(u)), 0.5 * (ng.Grad(v) + ng.Grad(v).trans)) * ng.dx
    slopes = tuple(formula(sympy.diff(one, symbol)) for one in exact for symbol in COORDINATES[:2])
    known = stress(ng.CoefficientFunction(slopes, dims=(2, 2)))
    right = ng.LinearForm(space)
    right += ng.CoefficientFunction(tuple(formula(one) for one in force)) * v * ng.dx(bonus_intorder=8)
    # normals of the elements: those of curves may point inwards around holes
    right += (known * ng.specialcf.normal(2)) * v * ng.ds(skeleton=True, bonus_intorder=8)
    found = ng.GridFunction(space)
    found.Set(ng.CoefficientFunction(tuple(formula(one) for one in exact)), definedon=mesh.Boundaries(clamped))
    _solved(form, right, found, "sparsecholesky")
    return Elements(mesh, (found[0], found[1]), space.ndof)


def heat(
    mesh: Any, order: int, outer: Callable[[str], float], end: float, halvings: int, steps: int
) -> tuple[dict[float, Elements], int]:
    """u_t = Δu from 0 with ∂_n u = outer(name) - u on boundaries: at end, end/2, end/4, …, and the unknowns.

    Time in stretches that double, so many steps each: the start does not agree with the boundary conditions.
    """
    space = ng.H1(mesh, order=order)
    u, v = space.TnT()
    mass, stiff, load = ng.BilinearForm(space, symmetric=True), ng.BilinearForm(space, symmetric=True), None
    mass += u * v * ng.dx
    stiff += ng.grad(u) * ng.grad(v) * ng.dx + u * v * ng.ds
    load = ng.LinearForm(space)
    load += mesh.BoundaryCF({name: outer(name) for name in set(mesh.GetBoundaries())}) * v * ng.ds
    for part in (mass, stiff, load):
        part.Assemble()
    now, both = ng.GridFunction(space), mass.mat.CreateMatrix()
    kept, begin = {}, 0.0
    stages = [now.vec.CreateVector() for _ in SDIRK]
    place, rest = now.vec.CreateVector(), now.vec.CreateVector()
    for finish in (end / 2**k for k in range(halvings, -1, -1)):
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
        begin = finish
        snapshot = ng.GridFunction(space)
        snapshot.vec.data = now.vec
        kept[finish] = Elements(mesh, (snapshot,), space.ndof)
    return kept, space.ndof
