"""rp.eigen: eigenvalues of a problem with error bounds, whatever the domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rannpde.arrays import Rng
from rannpde.domains.domain import Box
from rannpde.errors import InputError, is_real, positive_integer, positive_number, reject, require, suggestion
from rannpde.pde.budget import Budget
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice, ConvergenceWarning
from rannpde.pde.spectrum.boxes.form import BoxForm, NotSeparable
from rannpde.pde.spectrum.boxes.solver import BoxSolver
from rannpde.pde.spectrum.interval.basis import PiecewisePolynomial
from rannpde.pde.spectrum.interval.solver import IntervalSolver
from rannpde.pde.spectrum.interval.system import IntervalForm
from rannpde.pde.spectrum.pencil import Pencil, read_pencil
from rannpde.pde.spectrum.result import (
    BOUNDARY_RESIDUALS,
    BOUNDARY_VALUES,
    RESIDUALS,
    SAMPLED_BOUNDARY,
    TWO_DISCRETISATIONS,
    Mode,
    Spectrum,
)
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.particular import ParticularSolutions
from rannpde.pde.spectrum.shapes.solver import ShapeSolver, discretised
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.pde.weak.solver import shape_obstacle
from rannpde.threads import one_thread

TIGHTEST = 1e-13
"""The smallest relative error that may be asked for: beyond, float64 has no digits."""
MOST_EIGENVALUES = 200
"""Eigenvalues at most."""
WITHIN_BOUNDS = "every bound is below the tolerance"


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
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        reject("rng", rng, "a whole number ≥ 0 or a numpy.random.Generator")
    pencil = read_pencil(problem)
    phases = _phases(phase, problem)
    chosen = settings or SpectrumSettings()
    with one_thread():
        if problem.domain.dim == 1 and isinstance(problem.domain, Box):
            spectrum = _on_interval(pencil, wanted, count, tol, chosen, generator, monitor, phases)
        else:
            spectrum = _in_several_dimensions(pencil, wanted, count, tol, chosen, generator, monitor, phases)
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


def _on_interval(
    pencil: Pencil, wanted: Wanted, count: int, tol: float, settings: SpectrumSettings, rng: np.random.Generator,
    monitor: Monitor, phases: Mapping[str, float],
) -> Spectrum:  # fmt: skip
    problem = pencil.problem
    form = IntervalForm(pencil, phases.get(problem.domain.names[0], 0.0))
    form.check()
    found = IntervalSolver(form, wanted, count, tol, settings, rng, monitor).run()
    real = not form.complex and bool((np.abs(found.values.imag) <= found.bounds + 1e-14 * np.abs(found.values)).all())
    values = found.values.real if real else found.values
    modes = []
    for value, bound, series in zip(values, found.bounds, found.series, strict=True):
        function = PiecewisePolynomial(found.edges, np.ascontiguousarray(series.real))
        whole = real or np.abs(series.imag).max() <= 1e-12 * np.abs(series).max()
        imaginary = None if whole else PiecewisePolynomial(found.edges, np.ascontiguousarray(series.imag))
        modes.append(Mode(value.item(), float(bound), problem.fields, function, imaginary))
    bounds = found.bounds
    method = Choice("interval", "integrated Legendre polynomials on cells", "the domain is an interval")
    return Spectrum(
        problem, problem.fields, values, bounds, tuple(modes), found.wanted.described, found.counted, method,
        found.status, found.detail, tol, form.scale, found.iterations, monitor.elapsed,
        RESIDUALS if found.guaranteed else TWO_DISCRETISATIONS,
    )  # fmt: skip


def _in_several_dimensions(
    pencil: Pencil, wanted: Wanted, count: int, tol: float, settings: SpectrumSettings, rng: np.random.Generator,
    monitor: Monitor, phases: Mapping[str, float],
) -> Spectrum:  # fmt: skip
    """By tensor products where the conditions of a box allow it, by the weak form otherwise or where they stall."""
    known: Spectrum | None = None
    try:
        form = BoxForm(pencil, phases)
    except NotSeparable as reason:
        if pencil.problem.periodic:
            raise InputError(f"no eigenvalues of a periodic problem: {reason}") from None
        require(not phases, "phase", dict(phases), "left out here", "Bloch phases are for periodic coordinates")
    else:
        known = _on_box(form, wanted, count, tol, settings, rng, monitor)
        if known.converged or monitor.exhausted:
            return known
    try:
        return _on_shape(pencil, wanted, count, tol, settings, rng, monitor)
    except InputError:
        if known is None:
            raise
        return known


def _on_box(
    form: BoxForm, wanted: Wanted, count: int, tol: float, settings: SpectrumSettings, rng: np.random.Generator,
    monitor: Monitor,
) -> Spectrum:  # fmt: skip
    problem = form.pencil.problem
    found = BoxSolver(form, wanted, count, tol, settings, rng, monitor).run()
    real = bool((np.abs(found.values.imag) <= found.bounds + 1e-14 * np.abs(found.values)).all())
    values = found.values.real if real else found.values
    modes = []
    for value, bound, function in zip(values, found.bounds, found.functions, strict=True):
        size, turned = np.abs(function.coefficients).max(), np.abs(function.coefficients.imag).max()
        whole = (real and turned <= 1e-9 * size) and not any(function.phases)
        own = replace(function, coefficients=np.ascontiguousarray(function.coefficients.real)) if whole else function
        modes.append(Mode(value.item(), float(bound), problem.fields, own, None if whole else own.times(-1j)))
    why = "the domain is a box whose conditions hold along whole sides"
    method = Choice("box", "tensor products of polynomials and Fourier modes", why)
    return Spectrum(
        problem, problem.fields, values, found.bounds, tuple(modes), found.wanted.described, found.counted, method,
        found.status, found.detail, tol, form.scale, found.iterations, monitor.elapsed,
        RESIDUALS if found.guaranteed else TWO_DISCRETISATIONS,
    )  # fmt: skip


def _on_shape(
    pencil: Pencil, wanted: Wanted, count: int, tol: float, settings: SpectrumSettings, rng: np.random.Generator,
    monitor: Monitor,
) -> Spectrum:  # fmt: skip
    """By the weak form; where modes are analytic it only finds them, and particular solutions give the digits."""
    problem = pencil.problem
    finer = ParticularSolutions.of(pencil, tol, int(rng.integers(2**31)), monitor)
    if problem.domain.dim == 3 and shape_obstacle(problem.at_eigenvalue(0.0)):
        return _in_solid(finer, pencil, wanted, count, tol, settings, monitor)
    finer = finer if problem.domain.dim == 2 else None
    rough = max(tol, settings.residual_limit) if finer is not None else tol
    cells = discretised(pencil, rough, settings, rng, monitor)
    found = ShapeSolver(cells, pencil, wanted, count, rough, settings, rng, monitor).run()
    refined = None
    if finer is not None and found.status.converged:
        refined = finer.refined(found.values, found.bounds)
        if refined is None and tol < rough and not monitor.exhausted:
            cells = discretised(pencil, tol, settings, rng, monitor)
            found = ShapeSolver(cells, pencil, wanted, count, tol, settings, rng, monitor).run()
    if refined is None or finer is None:
        method = Choice("weak", "the weak form on cells with local random networks", "the domain is a shape")
        values, bounds, functions, assurance = found.values, found.bounds, found.functions, TWO_DISCRETISATIONS
    else:
        why = "the coefficients are constant and modes are analytic; the weak form counted them"
        method = Choice("particular", "particular solutions", why)
        values, bounds = refined.values, refined.bounds
        functions = tuple(
            old if new is None else (new, None) for old, new in zip(found.functions, refined.networks, strict=True)
        )
        assurance = BOUNDARY_VALUES if finer.clamped else BOUNDARY_RESIDUALS
    order = found.wanted.order(values.astype(complex))
    modes = tuple(Mode(values[k].item(), float(bounds[k]), problem.fields, *functions[k]) for k in order)
    return Spectrum(
        problem, problem.fields, values[order], bounds[order], modes, found.wanted.described, found.counted, method,
        found.status, found.detail, tol, found.scale, found.iterations, monitor.elapsed, assurance,
    )  # fmt: skip


def _in_solid(
    finer: ParticularSolutions | None, pencil: Pencil, wanted: Wanted, count: int, tol: float,
    settings: SpectrumSettings, monitor: Monitor,
) -> Spectrum:  # fmt: skip
    """Solids that are not made of boxes: particular solutions from the lowest eigenvalue on."""
    problem = pencil.problem
    if finer is None or not finer.clamped or wanted.near is not None:
        raise InputError(
            "no eigenvalues of this problem yet: the domain is a shape in space that is not made of boxes, where "
            "-laplace(u) = lam*u with u = 0 on the boundary is solved, from the lowest on"
        )
    end = "lowest" if finer.slope > 0 else "highest"
    if wanted.which not in (None, end, "smallest"):
        reject("which", wanted.which, f"{end!r}: the spectrum has no other end")
    values = finer.searched(count)
    refined = finer.refined(values, settings.residual_limit * np.abs(values)) if len(values) == count else None
    if refined is None:
        said = f"in {monitor.budget.seconds} s" if monitor.exhausted else "on this solid"
        raise InputError(f"no {count} eigenvalues to a relative error of {tol:g} found {said}; raise tol or seconds")
    modes = tuple(
        Mode(value.item(), float(bound), problem.fields, network)
        for value, bound, network in zip(refined.values, refined.bounds, refined.networks, strict=True)
        if network is not None
    )
    why = "the coefficients are constant and the domain is a solid that is not made of boxes"
    scale = abs((np.pi / float(np.ptp(np.asarray(problem.domain.bounds), axis=1).max())) ** 2 / finer.slope)
    method = Choice("particular", "particular solutions", why)
    return Spectrum(
        problem, problem.fields, refined.values, refined.bounds, modes, Wanted(end).described, "", method,
        Status.CONVERGED, WITHIN_BOUNDS, tol, scale, (), monitor.elapsed, SAMPLED_BOUNDARY,
    )  # fmt: skip


def eigen_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of ``eigen`` that the table ``eigen`` of a file states.

    >>> eigen_settings({"count": 3, "near": "0.2+0.1j"})
    {'count': 3, 'near': (0.2+0.1j)}
    """
    known = ("count", "near", "which", "tol", "seconds", "rng", "phase")
    for key in table:
        if key not in known:
            raise InputError(f"eigen has the key {key!r}, which is unknown there; {suggestion(key, known)}")
    found = dict(table)
    if isinstance(found.get("near"), str):
        try:
            found["near"] = complex(found["near"].replace(" ", ""))
        except ValueError:
            reject("near", table["near"], 'a number, or a complex one as text, "0.2+0.1j"')
    if "rng" in found:
        whole = isinstance(found["rng"], int) and not isinstance(found["rng"], bool) and found["rng"] >= 0
        require(whole, "rng", found["rng"], "a whole number ≥ 0")
    return found
