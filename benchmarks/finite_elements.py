"""Finite elements of high order on curved meshes (NGSolve): the classical solver beside which geometry.py stands.

NGSolve is a dependency of this benchmark only: ``pip install ngsolve``. Meshes follow circles and spheres with curved
elements of the order of the functions; corners are refined geometrically. Inner unknowns are eliminated element by
element, the rest by a direct solver. Scalar equations, heat, steady flow and most meshes come from
``benchmarks.reference_solvers``; here is what the public benchmark has no case of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from benchmarks.reference_solvers.elements import Elements, scalar, solved
from benchmarks.reference_solvers.extra import ng, occ
from benchmarks.reference_solvers.meshes import plane
from rannpde.arrays import Array

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


def nested(bounds: Sequence[Sequence[float]], radius: float, spacing: float, order: int) -> Any:
    """A rectangle with a disc around the origin inside as a material of its own, ``inner`` and ``outer``."""
    (left, right), (low, high) = bounds
    square, disc = occ.MoveTo(left, low).Rectangle(right - left, high - low).Face(), occ.Circle((0, 0), radius).Face()
    rest = square - disc
    square.edges.name = "outside"
    rest.faces.name, disc.faces.name = "outer", "inner"
    for edge in rest.edges:
        edge.name = "outside" if float(np.hypot(edge.center.x, edge.center.y)) > 1.01 * radius else "between"
    return plane(occ.Glue([rest, disc]), spacing, order)


def surface(path: Path, spacing: float) -> Any:
    """The solid in an STL file, in tetrahedra with flat faces."""
    return ng.Mesh(STLGeometry(str(path)).GenerateMesh(maxh=spacing, perfstepsend=meshing.MeshingStep.MESHVOLUME))


# ------------------------------------------------------------------------------------------------------------ solvers


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
    solved(form, right, found, "umfpack")
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
    solved(form, right, found)
    return Elements(mesh, (found[0], found[1]), space.ndof)


def cantilever(order: int, levels: int, lam: float, mu: float, load: float) -> Elements:
    """Plane strain on 1 × 0.2, clamped at x = 0, under its weight; refined to the corners of the clamp."""
    shape = occ.MoveTo(0, 0).Rectangle(1, 0.2).Face()
    for edge in shape.edges:
        edge.name = "clamp" if edge.center.x < 1e-9 else "free"
    for vertex in shape.vertices:
        if vertex.p.x < 1e-9:
            vertex.hpref = 1
    mesh = plane(shape, 0.2, order, levels)
    space = ng.VectorH1(mesh, order=order, dirichlet="clamp")
    u, v = space.TnT()
    strain = lambda gradient: 0.5 * (gradient + gradient.trans)  # noqa: E731
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += (2 * mu * ng.InnerProduct(strain(ng.Grad(u)), strain(ng.Grad(v))) + lam * ng.div(u) * ng.div(v)) * ng.dx
    right = ng.LinearForm(space)
    right += -load * v[1] * ng.dx
    found = ng.GridFunction(space)
    solved(form, right, found)
    return Elements(mesh, (found[0], found[1]), space.ndof)


def motz(order: int, levels: int) -> Elements:
    """Motz' problem on (-1, 1) × (0, 1), refined to the change of condition at the origin."""
    left = occ.MoveTo(-1, 0).Rectangle(1, 1).Face()
    shape = occ.Glue([left, occ.MoveTo(0, 0).Rectangle(1, 1).Face()])
    for edge in shape.edges:
        at = edge.center
        edge.name = "cold" if at.y < 1e-9 and at.x < 0 else "hot" if at.x > 1 - 1e-9 else "free"
    for vertex in shape.vertices:
        if abs(vertex.p.x) + abs(vertex.p.y) < 1e-9:
            vertex.hpref = 1
    return scalar(plane(shape, 0.5, order, levels), order, 0.0, {"cold": 0.0, "hot": 500.0})


def inclusion(order: int, levels: int, contrast: float) -> Elements:
    """-∇·(k∇u) = 1 on (-1, 1)², k = contrast in the square of half the size, refined to the corners of it."""
    inner = occ.MoveTo(-0.5, -0.5).Rectangle(1, 1).Face()
    inner.faces.name = "inner"
    outer = occ.MoveTo(-1, -1).Rectangle(2, 2).Face()
    outer.edges.name = "rim"
    rest = outer - inner
    rest.faces.name = "rest"
    shape = occ.Glue([inner, rest])
    for vertex in shape.vertices:
        if abs(vertex.p.x) < 0.75:
            vertex.hpref = 1
    mesh = plane(shape, 0.5, order, levels)
    factor = mesh.MaterialCF({"inner": contrast, "rest": 1.0})
    return scalar(mesh, order, 1.0, {"rim": 0.0}, 0.0, factor)


def checkerboard(order: int, levels: int, contrast: float) -> Elements:
    """-∇·(k∇u) = 1 on (-1, 1)², k = contrast in two opposite quadrants, refined to the crossing."""
    quadrants = []
    for x in (-1, 0):
        for y in (-1, 0):
            face = occ.MoveTo(x, y).Rectangle(1, 1).Face()
            face.faces.name = "stiff" if x == y else "soft"
            for edge in face.edges:
                edge.name = "rim" if max(abs(edge.center.x), abs(edge.center.y)) > 0.75 else "inside"
            quadrants.append(face)
    shape = occ.Glue(quadrants)
    for vertex in shape.vertices:
        if max(abs(vertex.p.x), abs(vertex.p.y)) < 0.5:
            vertex.hpref = 1
    mesh = plane(shape, 0.5, order, levels)
    return scalar(mesh, order, 1.0, {"rim": 0.0}, 0.0, mesh.MaterialCF({"stiff": contrast, "soft": 1.0}))


def fichera(spacing: float, order: int, levels: int) -> Elements:
    """-Δu = 1 on (-1, 1)³ without (0, 1)³, u = 0 on the boundary, refined to the re-entrant edges."""
    cube = occ.Box(occ.Pnt(-1, -1, -1), occ.Pnt(1, 1, 1)) - occ.Box(occ.Pnt(0, 0, 0), occ.Pnt(1, 1, 1))
    for edge in cube.edges:
        middle = edge.center
        if sorted(abs(value) < 1e-9 for value in (middle.x, middle.y, middle.z)) == [False, True, True]:
            edge.hpref = 1
    mesh = ng.Mesh(occ.OCCGeometry(cube).GenerateMesh(maxh=spacing))
    if levels:
        mesh.RefineHP(levels, factor=0.25)
    return scalar(mesh, order, 1.0, {".*": 0.0})


def bar(spacing: float, order: int, lam: float, mu: float, load: float) -> Elements:
    """A cantilever 1 × 0.2 × 0.2 in space, clamped at x = 0, under its weight; smaller elements at the clamp."""
    solid = occ.Box(occ.Pnt(0, 0, 0), occ.Pnt(1, 0.2, 0.2))
    for face in solid.faces:
        clamped = face.center.x < 1e-9
        face.name = "clamp" if clamped else "free"
        if clamped:
            face.edges.maxh = spacing / 8
    mesh = ng.Mesh(occ.OCCGeometry(solid).GenerateMesh(maxh=spacing))
    space = ng.VectorH1(mesh, order=order, dirichlet="clamp")
    u, v = space.TnT()
    strain = lambda gradient: 0.5 * (gradient + gradient.trans)  # noqa: E731
    form = ng.BilinearForm(space, symmetric=True, condense=True)
    form += (2 * mu * ng.InnerProduct(strain(ng.Grad(u)), strain(ng.Grad(v))) + lam * ng.div(u) * ng.div(v)) * ng.dx
    right = ng.LinearForm(space)
    right += -load * v[1] * ng.dx
    found = ng.GridFunction(space)
    solved(form, right, found)
    return Elements(mesh, (found[0], found[1], found[2]), space.ndof)


@dataclass(frozen=True, eq=False)
class OddHalf:
    """A function of the upper half of a square, continued with its sign changed to the lower one."""

    half: Elements

    @property
    def size(self) -> int:
        return self.half.size

    def __call__(self, points: Array) -> Array:
        return np.sign(points[:, 1])[:, None] * self.half(np.column_stack([points[:, 0], np.abs(points[:, 1])]))


def half_slit(order: int, levels: int) -> Any:
    """√r cos(θ/2) round the end of a crack, by its upper half: zero before the crack, insulated on it."""
    shape = occ.Glue([occ.MoveTo(-1, 0).Rectangle(1, 1).Face(), occ.MoveTo(0, 0).Rectangle(1, 1).Face()])
    for edge in shape.edges:
        at = edge.center
        edge.name = "before" if at.y < 1e-9 and at.x < 0 else "free" if at.y < 1e-9 or abs(at.x) < 1e-9 else "around"
    for vertex in shape.vertices:
        if abs(vertex.p.x) + abs(vertex.p.y) < 1e-9:
            vertex.hpref = 1
    around = ng.sqrt(0.5 * (ng.sqrt(ng.x**2 + ng.y**2) + ng.x))  # √r cos(θ/2) for θ below π
    return OddHalf(scalar(plane(shape, 0.5, order, levels), order, 0.0, {"before": 0.0, "around": around}))


def plate(spacing: float, order: int) -> Elements:
    """A clamped plate under a unit load, by Hellan, Herrmann and Johnson's mixed method."""
    mesh = plane(occ.MoveTo(0, 0).Rectangle(1, 1).Face(), spacing, 1)
    space = ng.HDivDiv(mesh, order=order - 1) * ng.H1(mesh, order=order, dirichlet=".*")
    (moment, w), (tested, v) = space.TnT()
    n = ng.specialcf.normal(2)

    def along(vector: Any) -> Any:
        return vector - (vector * n) * n

    form = ng.BilinearForm(space, symmetric=True)
    form += (ng.InnerProduct(moment, tested) + ng.div(moment) * ng.grad(v) + ng.div(tested) * ng.grad(w)) * ng.dx
    edges = ng.dx(element_boundary=True)
    form += (-(moment * n) * along(ng.grad(v)) - (tested * n) * along(ng.grad(w))) * edges
    right = ng.LinearForm(-v * ng.dx)
    found = ng.GridFunction(space)
    form.Assemble()
    right.Assemble()
    found.vec.data = form.mat.Inverse(space.FreeDofs(), "umfpack") * right.vec
    return Elements(mesh, (found.components[1],), space.ndof)


def rubber(order: int, levels: int, mu: float, lam: float) -> Elements:
    """A neo-Hookean block pulled by a half in five steps of the load, Newton's method in each."""
    shape = occ.MoveTo(0, 0).Rectangle(1, 1).Face()
    for edge in shape.edges:
        edge.name = "left" if edge.center.x < 1e-9 else "right" if edge.center.x > 1 - 1e-9 else "free"
    for vertex in shape.vertices:
        vertex.hpref = 1
    mesh = plane(shape, 0.35, order, levels)
    space = ng.VectorH1(mesh, order=order, dirichlet="left|right")
    u = space.TrialFunction()
    gradient = ng.Id(2) + ng.Grad(u)
    volume = ng.Det(gradient)
    energy = 0.5 * mu * (ng.InnerProduct(gradient, gradient) - 2 - 2 * ng.log(volume)) + 0.5 * lam * ng.log(volume) ** 2
    form = ng.BilinearForm(space, symmetric=True)
    form += ng.Variation(energy.Compile() * ng.dx)
    found, step = ng.GridFunction(space), ng.GridFunction(space)
    steps = 5
    for _ in range(steps):
        step.Set(ng.CF((0.5 / steps * ng.x, 0)))
        found.vec.data += step.vec
        for _ in range(25):
            form.AssembleLinearization(found.vec)
            rest, change, start = (found.vec.CreateVector() for _ in range(3))
            form.Apply(found.vec, rest)
            change.data = form.mat.Inverse(space.FreeDofs(), "sparsecholesky") * rest
            start.data, before, share = found.vec, form.Energy(found.vec), 1.0
            while share > 1e-3:  # no step that turns an element inside out, or adds energy
                found.vec.data = start - share * change
                if form.Energy(found.vec) <= before + 1e-12 * abs(before):
                    break
                share /= 2
            if ng.Norm(change) < 1e-9:
                break
    return Elements(mesh, (found[0], found[1]), space.ndof)


def obstacle(spacing: float, order: int, contact: float) -> Elements:
    """-Δu ≥ -2 over u = 0 with the exact values around: active sets of a penalty that is below their error."""
    shape = occ.MoveTo(-1, -1).Rectangle(2, 2).Face()
    mesh = plane(shape, spacing, 1)
    square = ng.x**2 + ng.y**2
    around = 0.5 * (square - contact**2) - 0.5 * contact**2 * ng.log(square / contact**2)
    space = ng.H1(mesh, order=order, dirichlet=".*")
    u, v = space.TnT()
    found = ng.GridFunction(space)
    found.Set(around, definedon=mesh.Boundaries(".*"))
    below = ng.GridFunction(ng.L2(mesh, order=0))  # elements in contact, which a penalty of what is below pushes up
    for _ in range(40):
        form = ng.BilinearForm(space, symmetric=True)
        form += (ng.grad(u) * ng.grad(v) + 1e8 * below * u * v) * ng.dx
        right = ng.LinearForm(-2 * v * ng.dx)
        form.Assemble()
        right.Assemble()
        rest = right.vec.CreateVector()
        rest.data = right.vec - form.mat * found.vec
        found.vec.data += form.mat.Inverse(space.FreeDofs(), "sparsecholesky") * rest
        before = below.vec.FV().NumPy().copy()
        below.vec.FV().NumPy()[:] = ng.Integrate(found, mesh, element_wise=True).NumPy() < 0
        if (below.vec.FV().NumPy() == before).all():
            break
    return Elements(mesh, (found,), space.ndof)
