"""NGSolve beside rows of ``benchmarks.trefftz``: elements of high order, curved, one mesh each, direct solves.

Each function returns a sentence: order, unknowns, CPU seconds with the mesh, and the error where a solution is known.
Without NGSolve it is empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

Array = np.ndarray
AVAILABLE = find_spec("ngsolve") is not None


def told(order: int, unknowns: int, seconds: float, error: float | None = None) -> str:
    """One sentence about a run."""
    known = "" if error is None else f", error {error:.1e}"
    return f"NGSolve, order {order}: {unknowns} unknowns, {seconds:.2f} s{known}"


def plane_mesh(
    h: float,
    order: int,
    box: tuple[float, float, float, float] | None = None,
    corners: list[tuple[float, float]] | None = None,
    discs: list[tuple[float, float, float]] | None = None,
    inner: bool = False,
) -> Any:
    """A box or polygon, without discs (x, y, radius), or with them as materials where ``inner``."""
    import ngsolve as ng
    from netgen.geom2d import SplineGeometry

    geometry = SplineGeometry()
    if box is not None:
        geometry.AddRectangle(box[:2], box[2:], bcs=("y0", "x1", "y1", "x0"))
    elif corners is not None:
        numbers = [geometry.AppendPoint(*corner) for corner in corners]
        for one, other in zip(numbers, numbers[1:] + numbers[:1], strict=True):
            geometry.Append(["line", one, other], bc="walls")
    for x, y, radius in discs or []:
        if box is None and corners is None:
            geometry.AddCircle((x, y), radius, bc="walls")
        else:
            geometry.AddCircle((x, y), radius, leftdomain=2 if inner else 0, rightdomain=1, bc="holes")
    if inner:
        geometry.SetMaterial(1, "outside")
        geometry.SetMaterial(2, "inside")
    mesh = ng.Mesh(geometry.GenerateMesh(maxh=h))
    mesh.Curve(order)
    return mesh


def scalar(
    make: Callable[[], Any],
    order: int,
    values: Callable[[Any], Any],
    reaction: float = 0.0,
    load: float = 0.0,
    conductivity: dict[str, float] | None = None,
    exact: Callable[[Array], Array] | None = None,
    points: Array | None = None,
) -> str:
    """-div(k grad u) + reaction u = load with given values on the whole boundary; the error at points (M, d)."""
    if not AVAILABLE:
        return ""
    import ngsolve as ng

    begin = time.process_time()
    mesh = make()
    space = ng.H1(mesh, order=order, dirichlet=".*" if conductivity is None else "x0|x1|y0|y1")
    u, v = space.TnT()
    k = 1.0 if conductivity is None else mesh.MaterialCF(conductivity)
    form = ng.BilinearForm((k * ng.grad(u) * ng.grad(v) + reaction * u * v) * ng.dx, condense=True).Assemble()
    right = ng.LinearForm(ng.Parameter(load) * v * ng.dx).Assemble()
    found = ng.GridFunction(space)
    found.Set(values(mesh), ng.BND, definedon=mesh.Boundaries(".*" if conductivity is None else "x0|x1|y0|y1"))
    _condensed(form, right, found, space, "sparsecholesky" if reaction >= 0 else "umfpack")
    seconds = time.process_time() - begin
    if exact is None or points is None:
        return told(order, space.ndof, seconds)
    here = np.array([found(mesh(*point)) for point in points])
    wanted = exact(points)
    return told(order, space.ndof, seconds, float(np.linalg.norm(here - wanted) / np.linalg.norm(wanted)))


def _condensed(form: Any, right: Any, found: Any, space: Any, kind: str) -> None:
    """Solve with inner unknowns of elements eliminated."""
    left = right.vec.CreateVector()
    left.data = right.vec - form.mat * found.vec
    left.data += form.harmonic_extension_trans * left
    step = left.CreateVector()
    step.data = form.mat.Inverse(space.FreeDofs(coupling=True), inverse=kind) * left
    found.vec.data += step
    found.vec.data += form.harmonic_extension * found.vec
    found.vec.data += form.inner_solve * left


def stokes(discs: list[tuple[float, float, float]]) -> str:
    """Taylor–Hood elements in a channel with discs."""
    if not AVAILABLE:
        return ""
    import ngsolve as ng

    order, begin = 8, time.process_time()
    mesh = plane_mesh(0.25, order, box=(0, 0, 3, 1), discs=discs)
    space = ng.VectorH1(mesh, order=order, dirichlet=".*") * ng.H1(mesh, order=order - 1) * ng.NumberSpace(mesh)
    (u, p, a), (v, q, b) = space.TnT()
    form = ng.BilinearForm(
        (ng.InnerProduct(ng.grad(u), ng.grad(v)) - ng.div(u) * q - ng.div(v) * p + a * q + b * p) * ng.dx
    ).Assemble()
    found = ng.GridFunction(space)
    found.components[0].Set(
        mesh.BoundaryCF({"x0": ng.CF((ng.y * (1 - ng.y), 0)), "x1": ng.CF((ng.y * (1 - ng.y), 0))}, ng.CF((0, 0))),
        ng.BND,
    )
    left = (-form.mat * found.vec).Evaluate()
    found.vec.data += form.mat.Inverse(space.FreeDofs(), inverse="umfpack") * left
    return told(order, space.ndof, time.process_time() - begin)


def elastic(discs: list[tuple[float, float, float]]) -> str:
    """The plate with forty holes, displacements given everywhere: a polynomial, which order two has exactly."""
    if not AVAILABLE:
        return ""
    import ngsolve as ng

    order, begin = 5, time.process_time()
    mesh = plane_mesh(0.4, order, box=(0, 0, 8, 5), discs=discs)
    space = ng.VectorH1(mesh, order=order, dirichlet=".*")
    u, v = space.TnT()
    strain = [0.5 * (ng.grad(w) + ng.grad(w).trans) for w in (u, v)]
    energy = 1.4 * ng.InnerProduct(*strain) + 1.6 * ng.div(u) * ng.div(v)
    form = ng.BilinearForm(energy * ng.dx, condense=True).Assemble()
    right = ng.LinearForm(ng.CF((0, -0.143)) * v * ng.dx).Assemble()
    wanted = ng.CF((0.2 * ng.x + 0.1 * ng.y + 0.05 * ng.x * ng.y, -0.1 * ng.y + 0.02 * ng.x**2))
    found = ng.GridFunction(space)
    found.Set(wanted, ng.BND)
    _condensed(form, right, found, space, "sparsecholesky")
    seconds = time.process_time() - begin
    gap = ng.Integrate(ng.InnerProduct(found - wanted, found - wanted), mesh)
    size = ng.Integrate(ng.InnerProduct(wanted, wanted), mesh)
    return told(order, space.ndof, seconds, float(np.sqrt(gap / size)))


def solid_mesh(h: float, order: int, balls: list[tuple[float, float, float, float]] | None, radius: float = 0.0) -> Any:
    """A ball, or the cube [-1, 1]³ without balls (x, y, z, radius)."""
    import ngsolve as ng
    from netgen.csg import CSGeometry, OrthoBrick, Pnt, Sphere

    geometry = CSGeometry()
    if balls is None:
        geometry.Add(Sphere(Pnt(0, 0, 0), radius).bc("walls"))
    else:
        body = OrthoBrick(Pnt(-1, -1, -1), Pnt(1, 1, 1)).bc("walls")
        for x, y, z, r in balls:
            body = body - Sphere(Pnt(x, y, z), r).bc("walls")
        geometry.Add(body)
    mesh = ng.Mesh(geometry.GenerateMesh(maxh=h))
    mesh.Curve(order)
    return mesh
