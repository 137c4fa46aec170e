r"""
A solid from a file
===================

:math:`\Delta u = 0` with known values on the surface, in a ring with six corners that stands in an STL file as
triangles. What lies inside is found from the surface; no mesh of the inside is made.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import rannpde as rp

corners = 3 if "RANNPDE_SMALL" in os.environ else 6
turns = np.linspace(0, 2 * np.pi, corners + 1)
around = np.linspace(0, 2 * np.pi, 5) + np.pi / 4
s, t = np.meshgrid(turns, around, indexing="ij")
ring = np.stack([(1 + 0.5 * np.cos(t)) * np.cos(s), (1 + 0.5 * np.cos(t)) * np.sin(s), 0.5 * np.sin(t)], axis=-1)
lines = ["solid ring"]
for i, j in np.ndindex(corners, 4):
    a, b, c, d = ring[i, j], ring[i + 1, j], ring[i + 1, j + 1], ring[i, j + 1]
    for triangle in ((a, b, c), (a, c, d)):
        points = [f"vertex {' '.join(f'{value:.12g}' for value in corner)}" for corner in triangle]
        lines += ["facet normal 0 0 0", "outer loop", *points, "endloop", "endfacet"]
file = Path(tempfile.mkdtemp()) / "ring.stl"
file.write_text("\n".join([*lines, "endsolid ring", ""]))

solid = rp.mesh(file, names=("x", "y", "z"))
print(f"volume {solid.volume:.6f}")
exact = "sin(2*x + y)*cosh(sqrt(5)*z)"
problem = rp.Problem(
    "laplace(u) = 0", solid, {"boundary": f"u = {exact}"}, exact={"u": exact}, name="A solid from a file"
)
solution = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-5)
print(f"error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}")
figure = solution.plot()
