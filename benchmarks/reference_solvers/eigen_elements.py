"""Eigenvalues by finite elements of high order (NGSolve, SciPy): ``python eigen_elements.py NAME COUNT``.

A process of its own, since NGSolve may live in another environment than the package: ``benchmarks/spectrum.py --peer
PYTHON`` names its interpreter.
Meshes and orders are chosen by hand for each domain. Prints one line of JSON: eigenvalues, CPU seconds, unknowns.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MESHES = {
    "L-shape": (0.15, 10), "disc": (0.4, 12), "annulus": (0.3, 12), "four holes": (0.1, 10), "ellipse": (0.5, 12),
    "first drum": (0.3, 10), "second drum": (0.3, 10), "clamped disc": (0.25, 7), "clamped square": (0.2, 7),
    "Stokes disc": (0.25, 7), "Stokes square": (0.2, 7), "cube": (0.5, 5), "ball": (0.6, 5), "Fichera": (1.0, 4),
    "torus": (0.5, 4),
}  # fmt: skip
"""Domain → mesh width and order."""
FIRST_DRUM = [(0, 0), (0, 2), (4, 6), (4, 4), (6, 4), (4, 2), (2, 2), (2, 0)]
SECOND_DRUM = [(0, 2), (0, 4), (4, 4), (4, 6), (6, 4), (4, 2), (2, 2), (2, 0)]


def shape(name: str) -> tuple[Any, int]:
    """A domain and its dimension."""
    from netgen import occ

    if name == "L-shape":
        return occ.Rectangle(2, 2).Face().Move((-1, -1, 0)) - occ.Rectangle(1, 1).Face(), 2
    if "disc" in name:
        return occ.Circle((0, 0), 1).Face(), 2
    if "square" in name:
        return occ.Rectangle(1, 1).Face(), 2
    if name == "ellipse":
        return occ.Ellipse(occ.gp_Ax2d(occ.gp_Pnt2d(0, 0), occ.gp_Dir2d(1, 0)), 2, 1).Face(), 2
    if name == "annulus":
        return occ.Circle((0, 0), 1).Face() - occ.Circle((0, 0), 0.5).Face(), 2
    if name == "four holes":
        face = occ.Rectangle(1, 1).Face()
        for x in (0.25, 0.75):
            for y in (0.25, 0.75):
                face = face - occ.Circle((x, y), 0.1).Face()
        return face, 2
    if "drum" in name:
        corners = (FIRST_DRUM if "first" in name else SECOND_DRUM)[::-1]  # counter-clockwise
        plane = occ.MoveTo(*corners[0])
        for corner in corners[1:]:
            plane = plane.LineTo(*corner)
        return plane.Close().Face(), 2
    if name == "cube":
        return occ.Box(occ.Pnt(0, 0, 0), occ.Pnt(1, 1, 1)), 3
    if name == "ball":
        return occ.Sphere(occ.Pnt(0, 0, 0), 1), 3
    if name == "Fichera":
        found = occ.Box(occ.Pnt(-1, -1, -1), occ.Pnt(1, 1, 1)) - occ.Box(occ.Pnt(0, 0, 0), occ.Pnt(1, 1, 1))
        for edge in found.edges:  # towards the three edges that are re-entrant
            middle = edge.center
            if max(abs(c) for c in (middle.x, middle.y, middle.z)) < 0.75:
                edge.hpref = 1
        return found, 3
    section = occ.Circle((1, 0), 0.4).Face()
    return section.Revolve(occ.Axis((0, 0, 0), occ.Y), 360), 3


def forms(name: str, mesh: Any, order: int) -> tuple[Any, Any, Any, float]:
    """The space, stiffness and mass of a problem, and a shift below the eigenvalues."""
    import ngsolve as ng

    if "Stokes" in name:
        space = ng.VectorH1(mesh, order=order, dirichlet=".*") * ng.H1(mesh, order=order - 1) * ng.NumberSpace(mesh)
        (u, p, r), (v, q, s) = space.TnT()
        flow = ng.InnerProduct(ng.Grad(u), ng.Grad(v)) - ng.div(u) * q - ng.div(v) * p + r * q + s * p
        return space, ng.BilinearForm(flow * ng.dx), ng.BilinearForm(u * v * ng.dx), 1.0
    if "clamped" in name:  # continuous elements, slopes by interior penalty
        space = ng.H1(mesh, order=order, dirichlet=".*", dgjumps=True)
        u, v = space.TnT()
        n, h = ng.specialcf.normal(2), ng.specialcf.mesh_size
        bent, tested = u.Operator("hesse"), v.Operator("hesse")
        other, beside = u.Other().Operator("hesse"), v.Other().Operator("hesse")
        mean, means = 0.5 * (n * ((bent + other) * n)), 0.5 * (n * ((tested + beside) * n))
        gap, gaps = (ng.grad(u) - ng.grad(u.Other())) * n, (ng.grad(v) - ng.grad(v.Other())) * n
        penalty = 4 * order**2 / h
        stiff = ng.BilinearForm(space)
        stiff += ng.InnerProduct(bent, tested) * ng.dx
        stiff += (-mean * gaps - means * gap + penalty * gap * gaps) * ng.dx(skeleton=True)
        slope, slopes = ng.grad(u) * n, ng.grad(v) * n
        edge = -(n * (bent * n)) * slopes - (n * (tested * n)) * slope + penalty * slope * slopes
        stiff += edge * ng.ds(skeleton=True)
        return space, stiff, ng.BilinearForm(u * v * ng.dx), 0.0
    space = ng.H1(mesh, order=order, dirichlet=".*")
    u, v = space.TnT()
    return space, ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx), ng.BilinearForm(u * v * ng.dx), 0.0


def main() -> None:
    """Solve and print."""
    import ngsolve as ng
    import numpy as np
    from netgen.occ import OCCGeometry
    from scipy import sparse
    from scipy.sparse.linalg import LinearOperator, eigsh, splu

    name, count = sys.argv[1], int(sys.argv[2])
    begin = time.process_time()
    width, order = MESHES[name]
    domain, dim = shape(name)
    mesh = ng.Mesh(OCCGeometry(domain, dim=dim).GenerateMesh(maxh=width))
    if name == "Fichera":
        mesh.RefineHP(int(sys.argv[3]) if len(sys.argv) > 3 else 3)
        order = int(sys.argv[4]) if len(sys.argv) > 4 else order
    mesh.Curve(order)
    space, stiffness, mass, shift = forms(name, mesh, order)
    parts = []
    free = np.array([k for k, one in enumerate(space.FreeDofs()) if one])
    for form in (stiffness.Assemble(), mass.Assemble()):
        rows, columns, values = form.mat.COO()
        size = (space.ndof, space.ndof)
        whole = sparse.csc_matrix((np.asarray(values), (np.asarray(rows), np.asarray(columns))), size)
        parts.append(whole[free][:, free])
    factors = splu((parts[0] - shift * parts[1]).tocsc(), permc_spec="MMD_AT_PLUS_A")
    inverse = LinearOperator(parts[0].shape, matvec=factors.solve)
    found = np.sort(eigsh(parts[0], count, parts[1], sigma=shift, OPinv=inverse, return_eigenvectors=False)).tolist()
    print(json.dumps({"values": found, "seconds": time.process_time() - begin, "unknowns": space.ndof}))


if __name__ == "__main__":
    main()
