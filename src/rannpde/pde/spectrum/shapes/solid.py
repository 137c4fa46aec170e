"""Solids that are not made of boxes: particular solutions without cells that would find and count modes before."""

from __future__ import annotations

import numpy as np

from rannpde.domains.shapes.meshes import SurfaceMesh
from rannpde.errors import InputError, reject
from rannpde.pde.monitor import Status
from rannpde.pde.solution import Choice
from rannpde.pde.spectrum.result import SAMPLED_BOUNDARY, WITHIN_BOUNDS
from rannpde.pde.spectrum.search import EigenRequest, EigenResult
from rannpde.pde.spectrum.shapes.particular import ParticularSolutions
from rannpde.pde.spectrum.wanted import Wanted


def in_solid(finer: ParticularSolutions | None, request: EigenRequest) -> EigenResult:
    """Solids that are not made of boxes: particular solutions from the lowest eigenvalue on."""
    domain, wanted = request.pencil.problem.domain, request.wanted
    if isinstance(domain, SurfaceMesh):
        raise InputError(
            f"no eigenvalues of this problem: the solid is a surface of {len(domain.faces)} flat triangles, whose "
            "edges and corners modes follow, and neither cells nor particular solutions resolve those; build the solid "
            "from Box, Ball and other shapes if it can be, or, if it is one of revolution, solve "
            "'-div(r*grad(f)) + m**2/r*f = lam*r*f' on its section in r and z for m = 0, 1, … (docs/spectrum.md)"
        )
    if finer is None or not finer.clamped or wanted.near is not None:
        raise InputError(
            "no eigenvalues of this problem yet: the domain is a shape in space that is not made of boxes, where "
            "-laplace(u) = lam*u with u = 0 on the boundary is solved, from the lowest on"
        )
    end = "lowest" if finer.slope > 0 else "highest"
    if wanted.which not in (None, end, "smallest"):
        reject("which", wanted.which, f"{end!r}: the spectrum has no other end")
    values, count = finer.searched(request.count), request.count
    errors = request.settings.residual_limit * np.abs(values)
    refined = finer.refined(values, errors) if len(values) == count else None
    if refined is None:
        limit = request.monitor.budget.seconds
        said = f"in {limit} s" if request.monitor.exhausted else "on this solid"
        raise InputError(
            f"no {count} eigenvalues to a relative error of {request.tol:g} found {said}; raise tol or seconds"
        )
    why = "the coefficients are constant and the domain is a solid that is not made of boxes"
    scale = abs((np.pi / float(np.ptp(np.asarray(domain.bounds), axis=1).max())) ** 2 / finer.slope)
    functions = tuple((network, None) for network in refined.networks if network is not None)
    return EigenResult(
        refined.values, refined.bounds, functions, Choice("particular", "particular solutions", why), Wanted(end), "",
        Status.CONVERGED, WITHIN_BOUNDS, (), scale, SAMPLED_BOUNDARY,
    )  # fmt: skip
