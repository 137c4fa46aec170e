"""rp.eigen: eigenvalues of a problem with error bounds, whatever the domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rannpde.arrays import Rng
from rannpde.domains.domain import Box
from rannpde.errors import (
    InputError,
    is_real,
    positive_integer,
    positive_number,
    random_generator,
    reject,
    require,
    suggestion,
    whole_number,
)
from rannpde.pde.budget import Budget
from rannpde.pde.monitor import Monitor, Progress
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning
from rannpde.pde.spectrum.boxes.form import BoxForm, NotSeparable
from rannpde.pde.spectrum.boxes.solver import BoxSolver
from rannpde.pde.spectrum.interval.solver import IntervalSolver
from rannpde.pde.spectrum.interval.system import IntervalForm
from rannpde.pde.spectrum.pencil import read_pencil
from rannpde.pde.spectrum.result import WITHIN_BOUNDS, Spectrum
from rannpde.pde.spectrum.search import EigenRequest, EigenResult
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.particular import ParticularSolutions
from rannpde.pde.spectrum.shapes.solid import in_solid
from rannpde.pde.spectrum.shapes.solver import ShapeSolver
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.pde.weak.meshing import shape_obstacle
from rannpde.threads import one_thread

TIGHTEST = 1e-13
"""The smallest relative error that may be asked for: beyond, float64 has no digits."""
MOST_EIGENVALUES = 200
"""Eigenvalues at most."""


def eigen(
    problem: Problem,
    count: int = 6,
    *,
    near: complex | None = None,
    which: str | None = None,
    tol: float = 1e-8,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Callable[[Progress], None] | None = None,
    phase: Mapping[str, float] | None = None,
    settings: SpectrumSettings | None = None,
) -> Spectrum:
    """Eigenvalues and eigenfunctions of a linear homogeneous problem, with a bound for each.

    problem : stated with ``eigenvalue="lam"``; the eigenvalue may stand in equations and conditions, up to the fourth
        power (docs/spectrum.md)
    count : how many
    near : a number, real or complex: the eigenvalues nearest to it
    which : "lowest" or "highest" real parts, "lowest imaginary", "highest imaginary", or "smallest" absolute values;
        None takes the end at which the spectrum is bounded
    tol : the relative error wanted of each eigenvalue (of one near zero, relative to that of the longest wave)
    seconds, rng, progress : as in ``solve``
    phase : Bloch phase, coordinate → angle θ: periodic modes turn by exp(iθ) from end to end

    A result that did not reach the wanted error warns (ConvergenceWarning) and says so in ``report()``.

    >>> import rannpde as rp
    >>> well = rp.Problem("-u_xx + x**2*u = E*u", rp.Interval(-9, 9), {"boundary": "u = 0"}, eigenvalue="E")
    >>> eigen(well, count=3).values.round(9).tolist()
    [1.0, 3.0, 5.0]
    """
    require(isinstance(problem, Problem), "problem", problem, "a Problem")
    require(bool(problem.eigenvalue), "problem.eigenvalue", problem.eigenvalue, "the name of the eigenvalue",
            'state the problem with eigenvalue="lam"')  # fmt: skip
    require(positive_integer("count", count) <= MOST_EIGENVALUES, "count", count, f"at most {MOST_EIGENVALUES}")
    tol = max(positive_number("tol", tol), TIGHTEST)
    require(tol < 1, "tol", tol, "below 1")
    require(progress is None or callable(progress), "progress", progress, "a function of a Progress, or None")
    wanted = Wanted.of(which, near)
    monitor = Monitor(progress, Budget(None if seconds is None else positive_number("seconds", seconds)))
    generator = random_generator("rng", rng)
    request = EigenRequest(read_pencil(problem), wanted, count, tol, settings or SpectrumSettings(), generator, monitor)
    phases = _phases(phase, problem)
    with one_thread():
        if problem.domain.dim == 1 and isinstance(problem.domain, Box):
            form = IntervalForm(request.pencil, phases.get(problem.domain.names[0], 0.0))
            form.check()
            result = IntervalSolver(form, request).run()
        else:
            result = _in_several_dimensions(request, phases)
        spectrum = result.spectrum(request)
    if spectrum.converged:
        return replace(spectrum, detail=WITHIN_BOUNDS)
    warnings.warn(f"the eigenvalues did not converge: {spectrum.reason}", ConvergenceWarning, stacklevel=2)
    return spectrum


def _phases(phase: Mapping[str, float] | None, problem: Problem) -> dict[str, float]:
    if phase is None:
        return {}
    require(isinstance(phase, Mapping), "phase", phase, 'a mapping of periodic coordinates to angles, {"x": 0.5}')
    for name, angle in phase.items():
        require(name in problem.domain.names, "phase", name, f"that of a coordinate, {', '.join(problem.domain.names)}")
        require(is_real(angle) and bool(np.isfinite(angle)), f"phase[{name!r}]", angle, "a finite angle")
    return {name: float(angle) for name, angle in phase.items()}


def _in_several_dimensions(request: EigenRequest, phases: Mapping[str, float]) -> EigenResult:
    """Eigenvalues by tensor products where the conditions of a box allow it, else or after a stall by the weak form."""
    known: EigenResult | None = None
    try:
        form = BoxForm(request.pencil, phases)
    except NotSeparable as reason:
        if request.pencil.problem.periodic:
            raise InputError(f"no eigenvalues of a periodic problem: {reason}") from None
        require(not phases, "phase", dict(phases), "left out here", "Bloch phases are for periodic coordinates")
    else:
        known = BoxSolver(form, request).run()
        if known.status.converged or request.monitor.exhausted:
            return known
    try:
        return _on_shape(request)
    except InputError:
        if known is None:
            raise
        return known


def _on_shape(request: EigenRequest) -> EigenResult:
    """Eigenvalues by the weak form; where modes are analytic, particular solutions refine them."""
    problem = request.pencil.problem
    finer = ParticularSolutions.of(request.pencil, request.tol, int(request.rng.integers(2**31)), request.monitor)
    if problem.domain.dim == 3 and shape_obstacle(problem.at_eigenvalue(0.0)):
        return in_solid(finer, request)
    if finer is None or problem.domain.dim != 2:
        return ShapeSolver(request).run()
    rough = max(request.tol, request.settings.residual_limit)
    result = ShapeSolver(replace(request, tol=rough)).run()
    refined = finer.refined(result.values, result.bounds) if result.status.converged else None
    if refined is not None:
        return refined.result(result, finer.clamped)
    if request.tol < rough and not request.monitor.exhausted:
        return ShapeSolver(request).run()
    return result


def eigen_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of ``eigen`` that the table ``eigen`` of a file states.

    >>> eigen_settings({"count": 3, "near": "0.2+0.1j"})
    {'count': 3, 'near': (0.2+0.1j)}
    """
    known = ("count", "near", "which", "tol", "seconds", "rng", "phase")
    for key in table:
        if key not in known:
            raise InputError(f"eigen has the key {key!r}, which is unknown there; {suggestion(key, known)}")
    settings = dict(table)
    if isinstance(settings.get("near"), str):
        try:
            settings["near"] = complex(settings["near"].replace(" ", ""))
        except ValueError:
            reject("near", table["near"], 'a number, or a complex one as text, "0.2+0.1j"')
    if "rng" in settings:
        whole_number("rng", settings["rng"])
    return settings
