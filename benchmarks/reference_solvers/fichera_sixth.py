"""The first Dirichlet eigenvalue of Fichera's corner by NGSolve: ``python fichera_sixth.py LEVELS ORDER WIDTH``.

The mode is the same in the six parts x ≤ y ≤ z, … of the cube of side 2 without an octant: one of them is enough, with
∂ₙu = 0 on the planes between. Elements shrink geometrically towards the edge and the vertex; values are upper bounds.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Solve by inverse iteration and print."""
    import ngsolve as ng
    from netgen.occ import Box, HalfSpace, OCCGeometry, Pnt, Vec

    levels, order, width = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    begin = time.process_time()
    whole = Box(Pnt(-1, -1, -1), Pnt(1, 1, 1)) - Box(Pnt(0, 0, 0), Pnt(1, 1, 1))
    part = whole * HalfSpace(Pnt(0, 0, 0), Vec(1, -1, 0)) * HalfSpace(Pnt(0, 0, 0), Vec(0, 1, -1))
    for face in part.faces:
        middle = face.center
        face.name = "plane" if min(abs(middle.x - middle.y), abs(middle.y - middle.z)) < 1e-9 else "wall"
    for edge in part.edges:
        if abs(edge.center.x) + abs(edge.center.y) < 1e-9 < edge.center.z:
            edge.hpref = 1
    for vertex in part.vertices:
        if abs(vertex.p.x) + abs(vertex.p.y) + abs(vertex.p.z) < 1e-9:
            vertex.hpref = 1
    mesh = ng.Mesh(OCCGeometry(part).GenerateMesh(maxh=width))
    mesh.RefineHP(levels, factor=0.17)
    space = ng.H1(mesh, order=order, dirichlet="wall")
    u, v = space.TnT()
    stiffness = ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx).Assemble().mat
    mass = ng.BilinearForm(u * v * ng.dx).Assemble().mat
    inverse = stiffness.Inverse(space.FreeDofs(), inverse="sparsecholesky")
    mode = stiffness.CreateColVector()
    mode.SetRandom()
    mode.data = ng.Projector(space.FreeDofs(), True) * mode
    for _ in range(25):
        mode.data = inverse * (mass * mode).Evaluate()
        mode.data = (1 / ng.Norm(mode)) * mode
    value = ng.InnerProduct(mode, (stiffness * mode).Evaluate()) / ng.InnerProduct(mode, (mass * mode).Evaluate())
    print(f"{space.ndof} unknowns: {value:.9f} in {time.process_time() - begin:.1f} s")


if __name__ == "__main__":
    main()
