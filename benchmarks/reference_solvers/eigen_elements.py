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

PLANE = {"L-shape": (0.15, 10), "disc": (0.4, 12), "annulus": (0.3, 12), "four holes": (0.1, 10)}
"""Domain → mesh width and order."""
SOLID = {"cube": (0.5, 6), "ball": (0.5, 6)}
"""The same in space."""


def plane(name: str) -> Any:
    """A plane domain."""
    from netgen.occ import Circle, MoveTo, Rectangle

    if name == "L-shape":
        return Rectangle(2, 2).Face().Move((-1, -1, 0)) - Rectangle(1, 1).Face()
    if name == "disc":
        return Circle((0, 0), 1).Face()
    if name == "annulus":
        return Circle((0, 0), 1).Face() - Circle((0, 0), 0.5).Face()
    if name == "four holes":
        face = MoveTo(0, 0).Rectangle(1, 1).Face()
        for x in (0.25, 0.75):
            for y in (0.25, 0.75):
                face = face - Circle((x, y), 0.1).Face()
        return face
    raise SystemExit(f"no mesh for {name}")


def solid(name: str) -> Any:
    """A domain in space."""
    from netgen.occ import Box, Pnt, Sphere

    if name == "cube":
        return Box(Pnt(0, 0, 0), Pnt(1, 1, 1))
    return Sphere(Pnt(0, 0, 0), 1)


def main() -> None:
    """Solve and print."""
    import ngsolve as ng
    import numpy as np
    from netgen.occ import OCCGeometry
    from scipy import sparse
    from scipy.sparse.linalg import eigsh

    name, count = sys.argv[1], int(sys.argv[2])
    begin = time.process_time()
    dim = 2 if name in PLANE else 3
    width, order = (PLANE if dim == 2 else SOLID)[name]
    shape = plane(name) if dim == 2 else solid(name)
    mesh = ng.Mesh(OCCGeometry(shape, dim=dim).GenerateMesh(maxh=width))
    mesh.Curve(order)
    space = ng.H1(mesh, order=order, dirichlet=".*")
    u, v = space.TnT()
    stiffness = ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx).Assemble()
    mass = ng.BilinearForm(u * v * ng.dx).Assemble()
    free = np.array([k for k, one in enumerate(space.FreeDofs()) if one])
    parts = []
    for form in (stiffness, mass):
        rows, columns, values = form.mat.COO()
        whole = sparse.csc_matrix((np.asarray(values), (np.asarray(rows), np.asarray(columns))))
        parts.append(whole[free][:, free])
    found = np.sort(eigsh(parts[0], count, parts[1], sigma=0.0, return_eigenvectors=False)).tolist()
    print(json.dumps({"values": found, "seconds": time.process_time() - begin, "unknowns": space.ndof}))


if __name__ == "__main__":
    main()
