"""NGSolve, if it is installed: the one place that imports it. Solvers that need it say so."""

from __future__ import annotations

try:
    import ngsolve as ng
    from netgen import occ
    from ngsolve.meshes import MakeStructured2DMesh as structured
except ImportError:  # pip install 'rannpde[peers]'
    ng = occ = structured = None

__all__ = ["ng", "occ", "structured"]
