"""The adaptive loop on shapes: solve, estimate, mark, refine, as the weak form does, for several modes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject
from rannpde.pde.adaptivity.loop import OutOfBudget
from rannpde.pde.monitor import Status
from rannpde.pde.solution import Choice
from rannpde.pde.spectrum.algebra import clusters
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES
from rannpde.pde.spectrum.result import TWO_DISCRETISATIONS, SpectrumIteration
from rannpde.pde.spectrum.search import EigenRequest, EigenResult, Parts, are_real
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES
from rannpde.pde.spectrum.shapes.cellwise import CellPencil
from rannpde.pde.spectrum.shapes.elliptic import EllipticCells
from rannpde.pde.spectrum.shapes.flow import FlowModes, flow_of_pencil
from rannpde.pde.spectrum.shapes.plate import PlateModes
from rannpde.pde.spectrum.shapes.plate_form import is_plate, shape_plate
from rannpde.pde.spectrum.shapes.protocol import CellDiscretisation, ModeShape
from rannpde.pde.tolerance import COMPARABLE, GAIN
from rannpde.pde.weak.settings import WeakSettings
from rannpde.rounding import EPS, ROOT_ROUNDED

STEPS_DOWN = 60
"""Doublings of the distance to a shift below the whole spectrum."""


@dataclass(frozen=True, eq=False)
class ShapeModes:
    """The result of one discretisation: eigenvalues (K,), modes, squared relative indicators (K,).

    sums (K,) : sums of the absolute values of all products in the Rayleigh quotients, of which rounding is a share
    cells (C,) : squared indicators of the wanted modes together
    """

    pencil: CellPencil
    resolution: Any
    values: Array
    weights: Array
    traces: Array
    indicators: Array
    sums: Array
    cells: Array

    def shape(self, number: int) -> ModeShape:
        return ModeShape(self.values[number].item(), self.weights[number], self.traces[number])


def discretised(request: EigenRequest) -> CellDiscretisation:
    """The discretisation that fits a problem; an InputError, with the reason, where none does."""

    def check_budget() -> None:
        if request.monitor.exhausted:
            raise OutOfBudget

    pencil, tol, settings, rng = request.pencil, request.tol, request.settings, request.rng
    problem = pencil.problem
    if problem.periodic or problem.pairings:
        raise InputError("fields are periodic in some coordinates only, which shapes cannot be; use all or none")
    if is_plate(pencil):
        return PlateModes(shape_plate(pencil), tol, settings, rng, check_budget)
    flow, reason = flow_of_pencil(pencil)
    if flow is not None:
        return FlowModes(flow, pencil, tol, settings, rng, check_budget)
    try:
        return EllipticCells(pencil, tol, settings, rng, check_budget)
    except InputError as refusal:
        if reason:
            raise InputError(f"{refusal}; and it is no flow, as {reason}") from None
        raise


class ShapeSolver:
    """One eigenvalue problem on a shape or a box."""

    def __init__(self, request: EigenRequest) -> None:
        self.request, self.wanted = request, request.wanted
        self.discretisation = discretised(request)
        self.scale = self.discretisation.scale
        self.step = COMPARABLE * self.scale
        self.count, self.tol, self.settings = request.count, request.tol, request.settings
        self.rng, self.monitor = request.rng, request.monitor
        self.patience = WeakSettings().patience
        self.iterations: list[SpectrumIteration] = []

    # ------------------------------------------------------------------------------------------------------ the loop

    def run(self) -> EigenResult:
        """Refine until every wanted eigenvalue has the wanted error."""
        before: ShapeModes | None = None
        earlier = np.empty(0)
        best: tuple[ShapeModes, Array] | None = None
        worst, idle = np.inf, 0
        status, detail, counted = Status.STALLED, "", ""
        resolution = self.discretisation.first()
        while True:
            try:
                now = self._modes(resolution)
            except OutOfBudget:
                if best is None:
                    raise InputError(
                        f"seconds is {self.monitor.budget.seconds}, too little for one discretisation of this shape; "
                        "allow more time"
                    ) from None
                status = Status.BUDGET
                break
            errors, changes = self._errors(before, earlier, now)
            size = np.maximum(np.abs(now.values[: self.count]), self.scale)
            enough = len(now.values) >= self.count
            estimate = float((errors[: self.count] / size).max(initial=0.0)) if enough else np.inf
            self.request.recorded(self.iterations, now.pencil.count, now.pencil.unknowns, estimate)
            idle = 0 if estimate < GAIN * worst or not np.isfinite(worst) else idle + 1
            if best is None or estimate <= worst:
                best, worst = (now, errors), estimate
            if enough and estimate <= self.tol:
                counted, missing = self._counted(now, before)
                if not missing:
                    status = Status.CONVERGED
                    break
                detail = missing
            if self.monitor.exhausted:
                status = Status.BUDGET
                break
            if idle >= self.patience or len(self.iterations) >= self.settings.most_iterations:
                detail = detail or f"refinement does not lower the errors any more; they are up to {worst:.1e}"
                break
            finer = self.discretisation.refined(resolution, now.pencil, now.weights[: self.count], now.cells)
            if finer is None:
                detail = detail or "the finest mesh allowed was reached"
                break
            before, earlier, resolution = now, changes, finer
        return self._result(best[0], best[1], counted, status, detail)

    def _modes(self, resolution: Any) -> ShapeModes:
        pencil = self.discretisation.pencil(resolution)
        values, weights, traces = self._wanted(pencil)
        indicators = np.ones(len(values))  # those beyond the wanted ones only give gaps
        cells = np.zeros(pencil.count)
        for k, value in enumerate(values[: self.count]):
            mode = ModeShape(value.item(), weights[k], traces[k])
            squares, energy = self.discretisation.indicator(pencil, mode)
            indicators[k] = squares.sum() / energy
            cells += squares / energy
            if self.monitor.exhausted:
                raise OutOfBudget
        parts = [ModeShape(value.item(), *rest) for value, *rest in zip(values, weights, traces, strict=True)]
        quotients = [self.discretisation.quotient(pencil, mode) for mode in parts]
        values = np.array([value for value, _ in quotients])
        sums = np.array([total for _, total in quotients])
        return ShapeModes(pencil, resolution, values, weights, traces, indicators, sums, cells)

    def _wanted(self, pencil: CellPencil) -> tuple[Array, Array, Array]:
        """The most wanted eigenvalues of a discretisation, a few more than asked for."""
        number = self.count + self.settings.shape_spare
        nudge = EPS**0.5 * self.scale  # an eigenvalue at the number itself would leave a singular matrix
        if self.wanted.near is not None:
            pairs = pencil.shifted(self.wanted.near + nudge).eigenpairs(number, self.rng)
        elif not pencil.sign:
            if self.wanted.which not in (None, "smallest"):
                reject("which", self.wanted.which, "'smallest' here: the spectrum has two ends or is no line",
                       "or give near=…")  # fmt: skip
            self.wanted = replace(self.wanted, which="smallest")
            pairs = pencil.shifted(nudge).eigenpairs(number, self.rng)
        else:
            pairs = self._from_the_end(pencil, number)
        values, weights, traces = pairs
        order = self.wanted.order(np.asarray(values, dtype=complex))
        return values[order], weights[order], traces[order]

    def _from_the_end(self, pencil: CellPencil, number: int) -> tuple[Array, Array, Array]:
        """The eigenvalues at the bounded end: the shift moves out until none lies beyond it."""
        end = "lowest" if pencil.sign > 0 else "highest"
        if self.wanted.which is None:
            self.wanted = replace(self.wanted, which=end)
        elif self.wanted.which not in (end, "smallest"):
            reject("which", self.wanted.which, f"{end!r}: the spectrum has no other end", "or give near=…")
        if self.wanted.which == "smallest":
            return pencil.shifted(EPS**0.5 * self.step).eigenpairs(number, self.rng)
        for _ in range(STEPS_DOWN):
            system = pencil.shifted(-pencil.sign * self.step)
            # the first discretisation gives the shift, and the last two are counted: inertia costs as much as a solve
            if self.iterations or not system.below:  # none, or the number is not known
                return system.eigenpairs(number, self.rng)
            self.step *= 2
            if self.monitor.exhausted:
                raise OutOfBudget
        raise InputError("the eigenvalues have no end that could be found; give near=…")

    # ---------------------------------------------------------------------------------------------- errors, refinement

    def _errors(self, before: ShapeModes | None, earlier: Array, now: ShapeModes) -> tuple[Array, Array]:
        """For each eigenvalue the change since the last discretisation, times what its errors have gained; the change.

        Errors fall as the indicators do, which are of the same order, but are not taken to fall faster than the change
        has since the ``earlier`` one, (K,) of the eigenvalues before; where that is not known, by no more than half.
        """
        errors, changes = np.full((2, len(now.values)), np.inf)
        if before is None:
            return errors, changes
        left = list(range(len(before.values)))
        for k, value in enumerate(now.values):
            if not left:
                break
            nearest = min(left, key=lambda j: abs(before.values[j] - value))
            left.remove(nearest)
            gain = now.indicators[k] / max(before.indicators[nearest], 1e-300)
            change = changes[k] = abs(before.values[nearest] - value)
            fallen = change / earlier[nearest] if np.isfinite(earlier[nearest]) else 0.5 / self.settings.trust
            errors[k] = change * min(self.settings.trust * max(gain, fallen), 1.0)
        # two solutions may agree by chance in one mode: those of a cluster share the largest error, and none is taken
        # to be better than the median, as quadrature and rounding act on all modes alike
        size = np.maximum(np.abs(now.values), self.scale)
        relative = errors / size
        for group in clusters(now.values, self.settings.same, self.scale):
            relative[group] = relative[group].max()
        known = relative[: self.count]
        relative = np.maximum(relative, float(np.median(known)))
        return relative * size + self.settings.shape_rounding * EPS * now.sums, changes

    # ---------------------------------------------------------------------------------------------------- the result

    def _counted(self, now: ShapeModes, coarser: ShapeModes | None) -> tuple[str, str]:
        """How the eigenvalues were counted by inertia, and which are missing, in words.

        The coarser discretisation counts, which costs less, and the finer one where their numbers differ.
        """
        pencil = now.pencil
        if not pencil.symmetric or not pencil.sign or len(now.values) <= self.count:
            return "", ""
        ordered = np.sort(pencil.sign * np.real(now.values))
        wanted = np.sort(pencil.sign * np.real(now.values[: self.count]))
        least = DISTINCT_EIGENVALUES * max(float(np.abs(wanted).max()), self.scale)
        above = ordered[ordered > wanted[-1] + least]
        if not len(above):
            return "", ""
        upper = 0.5 * (float(above[0]) + float(ordered[ordered <= wanted[-1] + least].max()))
        below = ordered[ordered < wanted[0] - least]
        lower = wanted[0] - (0.5 * (wanted[0] - float(below[-1])) if len(below) else least)
        from_end = self.wanted.which in ("lowest", "highest")
        inside = int((ordered < upper).sum()) - (0 if from_end else len(below))
        for counting in (pencil,) if coarser is None else (coarser.pencil, pencil):
            until = counting.shifted(pencil.sign * upper).below
            until_lower = 0 if from_end else counting.shifted(pencil.sign * lower).below
            if until is None or until_lower is None:
                return "", ""
            counted = until - until_lower
            if counted == inside:
                where = "up to here" if from_end else f"between {lower:.6g} and {upper:.6g}"
                return f"inertia counts {counted} {where}: none is missing", ""
        return "", f"inertia counts {counted} eigenvalues where {inside} were found"

    def _result(self, modes: ShapeModes, errors: Array, counted: str, status: Status, detail: str) -> EigenResult:
        count = min(self.count, len(modes.values))
        points = self.request.pencil.problem.domain.sample(PENCIL_SAMPLES * 16, rng=3)
        functions: list[Parts] = []
        real = are_real(modes.values[:count], errors[:count])
        for k in range(count):
            mode = modes.shape(k)
            whole, turned = self.discretisation.functions(modes.resolution, modes.pencil, mode)
            values = whole(points) + (0 if turned is None else 1j * turned(points))
            largest = values.ravel()[np.abs(values).argmax()]
            weights, traces = mode.weights / largest, mode.traces / largest
            plain = real and np.abs(weights.imag).max() <= ROOT_ROUNDED * np.abs(weights).max()
            if plain:
                weights, traces = weights.real, traces.real
            mode = ModeShape(mode.value, weights, traces)
            functions.append(self.discretisation.functions(modes.resolution, modes.pencil, mode))
        eigenvalues = np.real(modes.values[:count]) if real else modes.values[:count]
        method = Choice("weak", "the weak form on cells with local random networks", "the domain is a shape")
        return EigenResult(
            eigenvalues, errors[:count], tuple(functions), method, self.wanted, counted, status, detail,
            tuple(self.iterations), self.scale, TWO_DISCRETISATIONS,
        )  # fmt: skip
