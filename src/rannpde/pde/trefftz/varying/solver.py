"""The adaptive iteration where coefficients vary: higher degrees or smaller cells, whichever is less work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.loop import AdaptiveLoop, AdaptiveRecord, Inadmissible
from rannpde.pde.functions import State, Zero
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.residual import relative_difference
from rannpde.pde.tolerance import ESTIMATOR_FACTOR, PILOT_TOLERANCE, RESIDUAL_TOLERANCE
from rannpde.pde.trefftz.adaptive import RESONANT, TrefftzIteration, TrefftzResult
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.mesh import CELL_DEGREES, BoxMesh, first_mesh, work
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.pde.trefftz.varying.newton import NoNewtonSolution, VaryingNewton, pilot_newton, pilot_solution
from rannpde.pde.trefftz.varying.polynomials import unit_gauss
from rannpde.pde.trefftz.varying.system import VaryingState, VaryingSystem
from rannpde.rounding import COMPUTED, EPS


@dataclass(frozen=True, eq=False)
class VaryingResolution:
    """A mesh and the degree of the polynomials in its cells."""

    mesh: BoxMesh
    degree: int


@dataclass(eq=False)
class VaryingDiscretisation:
    """The discretisation of the adaptive loop."""

    equation: VaryingEquation
    tol: float
    start: State
    pilot: VaryingState | None = None
    before: VaryingState | None = None
    latest: float = np.inf
    rate: float = 0.0
    """The decrease of the logarithm of the residuals with each degree."""

    def first(self) -> VaryingResolution:
        """A degree that is too low by two, of either parity, so that the next one is enough and has an estimate.

        An equation that is not linear is solved on a coarse mesh first: how fast solutions vary is read off the
        equation linearised at what is found there.
        """
        if not self.equation.linear:
            newton = pilot_newton(self.equation, self.start)
            return VaryingResolution(newton.mesh, newton.degree)
        mesh, degree = first_mesh(self.equation, self.tol)
        return VaryingResolution(mesh, degree - 2)

    def solve(self, resolution: VaryingResolution) -> VaryingState:
        """SOLVE."""
        mesh, degree = resolution.mesh, resolution.degree
        try:
            if self.equation.linear:
                return VaryingSystem(self.equation, mesh, degree).solved()
            newton = VaryingNewton(self.equation, mesh, degree, PILOT_TOLERANCE if self.pilot is None else self.tol)
            with np.errstate(all="ignore"):  # steps that are too long are seen by what is not finite
                now = pilot_solution(newton, self.start) if self.pilot is None else newton.solved(self.start)
        except np.linalg.LinAlgError as error:
            raise Inadmissible(Status.STALLED, str(error)) from error
        except NoNewtonSolution as error:
            raise Inadmissible(Status.NEWTON, str(error)) from error
        self.pilot, self.start = self.pilot or now, now.network
        return now

    def estimate(self, before: VaryingState | None, now: VaryingState) -> float:
        """ESTIMATE: the difference of two solutions, or more where errors fall slowly.

        Where errors fall by the factor ρ from one solution to the next, as residuals do, the later one has the
        error ρ/(1 - ρ) times their difference. It is not taken to be below the difference itself: near a resonance the
        error of the earlier solution may be small by chance.
        """
        self.before = before
        if before is None:
            return np.inf
        points, roots = _compared(now.network.mesh, now.network.degree)
        difference = relative_difference(*(roots * one.network(points) for one in (before, now)))
        fallen = float(np.sqrt(now.indicators.sum() / max(before.indicators.sum(), 1e-300)))
        fallen = max(fallen, now.residual / max(before.residual, 1e-300))
        steps = now.network.degree - before.network.degree
        same = len(now.network.mesh) == len(before.network.mesh)
        self.rate = -log(max(fallen, 1e-300)) / steps if same else 0.0
        left = fallen / (1 - fallen) if fallen < 1 else np.inf
        left = 1.0 if difference <= COMPUTED else left  # rounding does not fall
        self.latest = difference * max(1.0, ESTIMATOR_FACTOR * left) + now.algebra
        # rounding of sums over all degrees, and of the data, which is amplified
        self.latest = max(self.latest, EPS * (now.network.degree + now.stability))
        if self.equation.linear or self.latest <= self.tol:
            turning = (self.equation if self.equation.linear else self.equation.at(now.network)).turning
            if turning > 1:  # two solutions may agree although hardly anything determines them
                self.latest = max(self.latest, turning * max(now.missed / now.scale, EPS))
        return self.latest

    def indicators(self, now: VaryingState) -> Array:
        """The squared indicators of all cells."""
        return now.indicators

    def refine(self, resolution: VaryingResolution, now: VaryingState, marked: Array) -> VaryingResolution | None:
        """REFINE: the degree that its decay so far asks for, or the marked cells, whichever is less work."""
        if now is self.pilot:
            mesh, degree = first_mesh(self.equation.at(now.network), self.tol)
            done = degree - 2 == resolution.degree and np.array_equal(mesh.cells, resolution.mesh.cells)
            return VaryingResolution(mesh, degree if done else degree - 2)
        if self.before is self.pilot:  # None where the equation is linear
            return VaryingResolution(resolution.mesh, resolution.degree + 2)
        wanted = log(min(max(ESTIMATOR_FACTOR * self.latest / self.tol, ESTIMATOR_FACTOR), 1 / EPS))
        higher = resolution.degree + (ceil(wanted / self.rate) if self.rate > 0 else CELL_DEGREES.stop)
        axes = [
            _rough_axes(matrix) if chosen else () for matrix, chosen in zip(now.network.matrices, marked, strict=True)
        ]
        finer = resolution.mesh.split(axes)
        degree = resolution.degree + (1 if resolution.degree + 1 < CELL_DEGREES.stop else -1)
        if higher < CELL_DEGREES.stop and work(higher, len(resolution.mesh)) <= work(degree, len(finer)):
            return VaryingResolution(resolution.mesh, higher)
        return VaryingResolution(finer, degree)


def _compared(mesh: BoxMesh, degree: int) -> tuple[Array, Array]:
    """Gauss points (M, 2) of all cells, enough to measure sizes, and the roots (M, 1) of their shares of the area."""
    nodes, weights = unit_gauss(ceil(degree / 4))
    unit = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    points = mesh.middles[:, None] + mesh.halves[:, None] * unit
    shares = np.prod(mesh.halves, axis=1)[:, None] * np.outer(weights, weights).ravel()
    return points.reshape(-1, 2), np.sqrt(shares.reshape(-1, 1) / shares.sum())


def _rough_axes(matrix: Array) -> tuple[int, ...]:
    """The axes along which coefficients (p + 1, p + 1) of a cell fall slowest: both unless one is rougher by far."""
    high = np.arange(len(matrix)) > len(matrix) // 2
    tails = np.array([np.linalg.norm(matrix[high]), np.linalg.norm(matrix[:, high])])
    return tuple(np.flatnonzero(tails * len(matrix) >= tails.max()).tolist())


@dataclass(frozen=True, eq=False)
class VaryingSolver:
    """The loop for one problem; ``made`` : a function of the result, whose value is kept after every iteration."""

    equation: VaryingEquation
    tol: float
    monitor: Monitor
    made: Callable[[TrefftzResult], object]
    record: AdaptiveRecord[VaryingState, TrefftzIteration] = field(default_factory=AdaptiveRecord)

    def run(self) -> TrefftzResult:
        """Iterate until two solutions agree to the tolerance, or no refinement helps any more."""
        discretisation = VaryingDiscretisation(self.equation, self.tol, self.equation.state or Zero(1))
        self.monitor.keep(lambda status, detail: self._kept(status, detail))
        loop = AdaptiveLoop()
        outcome = loop.run(
            discretisation, discretisation.first(), self.tol, lambda: self.monitor.ended, self._described,
            self._verdict, self.record, report=self._report,
        )  # fmt: skip
        return self._result(outcome.status, outcome.detail)

    def _kept(self, status: Status, detail: str) -> object:
        return None if self.record.best is None else self.made(self._result(status, detail))

    def _result(self, status: Status, detail: str) -> TrefftzResult:
        best, record = self.record.best, self.record
        assert best is not None
        chosen = record.estimates.index(record.best_estimate) if np.isfinite(record.best_estimate) else -1
        if status is Status.UNDETERMINED:
            detail = (
                f"an error of 1 on the boundary may be {best.stability:.1e} inside: the problem is at a resonance, "
                "or its conditions do not determine the solution"
            )
        elif status is Status.CONVERGED:
            detail = "two solutions of different degrees agree to the tolerance"
        return TrefftzResult(
            best.network, record.iterations[chosen], tuple(record.iterations), status, detail, best.scale
        )

    def _verdict(self, now: VaryingState, estimate: float) -> Status | None:
        if now.stability > min(RESONANT, self.tol / EPS):
            return Status.UNDETERMINED
        return Status.CONVERGED if estimate <= self.tol and now.residual <= RESIDUAL_TOLERANCE else None

    def _described(self, now: VaryingState, estimate: float, seconds: float) -> TrefftzIteration:
        network: VaryingNetwork = now.network
        columns = sum(network.widths)
        return TrefftzIteration(
            columns,
            columns,
            now.rows,
            now.missed / now.scale,
            now.largest / now.scale,
            now.stability,
            estimate,
            seconds,
            now.steps,
        )

    def _report(self, now: VaryingState, estimate: float) -> None:
        columns = sum(now.network.widths)
        self.monitor.tell(len(self.record.iterations), 1, width=columns, estimate=estimate)
