"""The adaptive iteration SOLVE → ESTIMATE → MARK → REFINE of Trefftz networks, with its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import field_sizes
from rannpde.pde.tolerance import ALGEBRA_SHARE, COMPARABLE, MUCH_SMALLER
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.least_squares import ColumnGains, Minimiser, largest_singular_value
from rannpde.pde.trefftz.modal import ModalNetwork
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.rows import Misses
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.rounding import EPS

INSIDE_POINTS = 400
"""Points inside, at which the size of the solution, the stability constant and residuals are measured."""
RESONANT = 1e12
"""A stability constant beyond which rounding of the data alone spoils all digits but a few."""
DEVIATIONS = 3
"""Standard deviations within which the error is expected where points are sampled: 99.7 % of normal ones."""


class RowSystem(Protocol):
    """Rows of all conditions, weights not applied, and their least squares."""

    @property
    def count(self) -> int: ...

    @property
    def data(self) -> float: ...

    def solved(self, accuracy: float) -> Minimiser: ...


class TrefftzDiscretisation(Protocol):
    """One network or cells of networks; ``Any`` is its own resolution, and its own list of families."""

    def first(self) -> Any: ...

    def families(self, resolution: Any, rng: np.random.Generator) -> Any: ...

    @property
    def sampled(self) -> bool:
        """Whether collocation points are a sample of the boundary, and not those of a quadrature rule."""
        ...

    def columns(self, families: Any) -> int: ...

    def dense(self, families: Any) -> int: ...

    def rows(self, families: Any, resolution: Any, shift: float, factor: float = 1.0) -> RowSystem: ...

    def misses(self, network: Any, resolution: Any, shift: float, factor: float) -> Misses: ...

    def values(self, families: Any, points: Array) -> Array: ...

    def base(self, points: Array) -> Array: ...

    def network(self, families: Any, weights: Array) -> TrefftzNetwork | CellsNetwork: ...

    def tube(self) -> tuple[Array, Array]: ...

    def refined(
        self, resolution: Any, errors: Mapping[int, float], target: float, slow: bool, families: Any, weights: Array,
        gains: Sequence[ColumnGains],
    ) -> Any: ...  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrefftzState:
    """The state after one iteration: the network, its record, and data that the next one uses.

    scale : the root mean square of the solution; errors : group of features → its part of the estimate
    values : at the points inside (M, fields), each field over its own size; weights (N,) : of the output
    data : what the features are fitted to on the boundary, in L², relative to the scale
    gains : the share of it that each feature explains, where one factorisation gives it
    """

    network: TrefftzNetwork | CellsNetwork
    record: TrefftzIteration
    scale: float
    errors: Mapping[int, float]
    values: Array
    weights: Array
    data: float
    gains: tuple[ColumnGains, ...] = ()


@dataclass(frozen=True)
class TrefftzIteration:
    """One adaptive iteration: features, rank, boundary error in L² and its largest value, stability, estimate.

    steps : factorisations of Newton's method; 0 where the equation is linear
    """

    columns: int
    rank: int
    rows: int
    boundary: float
    largest: float
    stability: float
    estimate: float
    seconds: float
    steps: int = 0

    def __str__(self) -> str:
        newton = f"{self.steps} step(s) of Newton's method, " if self.steps else ""
        return (
            f"{newton}{self.columns} features (rank {self.rank}), {self.rows} boundary points, relative boundary error "
            f"{self.boundary:.1e} (largest {self.largest:.1e}), stability constant {self.stability:.1e}, "
            f"estimate {self.estimate:.1e}, {self.seconds:.2f} s"
        )


@dataclass(frozen=True, eq=False)
class TrefftzResult:
    """The best network with its iterations and how it ended; ``scale`` is the root mean square of the solution."""

    network: TrefftzNetwork | CellsNetwork | ModalNetwork | VaryingNetwork
    best: TrefftzIteration
    iterations: tuple[TrefftzIteration, ...]
    status: Status
    detail: str
    scale: float


@dataclass(frozen=True, eq=False)
class AdaptiveTrefftz:
    """The loop for one problem, whatever its features; defect : of the particular solutions, as an error inside."""

    problem: Problem
    discretisation: TrefftzDiscretisation
    defect: float
    tol: float
    monitor: Monitor
    tuning: TrefftzTuning

    def run(self, rng: np.random.Generator) -> TrefftzResult:
        """Until the estimate is below the tolerance, or nothing helps any more."""
        resolution = self.discretisation.first()
        inside = self.problem.domain.sample(INSIDE_POINTS, rng=rng, method="sobol")
        best: TrefftzState | None = None
        before: TrefftzState | None = None
        done: list[TrefftzIteration] = []
        status, detail, idle, least = Status.STALLED, "more features do not lower the boundary error", 0, np.inf
        try:
            for number in range(1, self.tuning.iterations + 1):
                families = self.discretisation.families(resolution, rng)
                columns = self.discretisation.columns(families)
                dense = self.discretisation.dense(families)
                if dense > self._most_columns and best is not None:
                    detail = f"the next iteration would take {dense} features, more than {self._most_columns}"
                    break
                state = self._solved(families, resolution, inside, rng, before)
                now = state.record
                done.append(now)
                if best is None or now.estimate < best.record.estimate:
                    best = state
                self.monitor.tell(number, 1, width=columns, estimate=now.estimate)
                if now.estimate <= self.tol:
                    status, detail = Status.CONVERGED, "the boundary error is below the tolerance"
                    break
                if self._undetermined(state):
                    break
                idle = idle + 1 if now.estimate > 0.5 * least else 0
                slow = now.estimate > MUCH_SMALLER * least or not np.isfinite(least)
                least = min(least, now.estimate)
                if idle >= self.tuning.patience:
                    break
                if self.monitor.exhausted or self._too_late(done):
                    status, detail = Status.BUDGET, ""
                    break
                target = COMPARABLE * self.tol / np.sqrt(len(state.errors))
                resolution = self.discretisation.refined(
                    resolution, state.errors, target, slow and number > 1, families, state.weights / state.scale,
                    state.gains,
                )  # fmt: skip
                before = state
        except KeyboardInterrupt:
            if best is None:
                raise
            status, detail = Status.INTERRUPTED, ""
        assert best is not None
        if self._undetermined(best):
            status = Status.UNDETERMINED
            detail = (
                f"an error of 1 on the boundary may be {best.record.stability:.1e} inside: the problem is at a "
                "resonance, or its conditions do not determine the solution"
            )
        return TrefftzResult(best.network, best.record, tuple(done), status, detail, best.scale)

    @property
    def _most_columns(self) -> int:
        """Twice as many for surfaces as for curves: they have one more dimension to be resolved."""
        return (self.problem.domain.dim - 1) * self.tuning.columns

    def _undetermined(self, now: TrefftzState) -> bool:
        """Whether rounding of the data alone may be as large as the tolerance inside.

        At a resonance the solution grows until its boundary error is as large as the data that it is to satisfy.
        """
        stability, unsatisfied = now.record.stability, now.record.boundary > self.tol * now.data
        return stability > min(RESONANT, self.tol / EPS) or (unsatisfied and stability > EPS**-0.5)

    def _too_late(self, done: list[TrefftzIteration]) -> bool:
        """Whether the next iteration, which costs about growth³ times as much as the last, cannot end in time."""
        if self.monitor.budget.seconds is None:
            return False
        return self.monitor.elapsed + done[-1].seconds * self.tuning.growth**2 > self.monitor.budget.seconds

    def _solved(
        self, families: Any, resolution: Any, inside: Array, rng: np.random.Generator, before: TrefftzState | None
    ) -> TrefftzState:
        start, one = self.monitor.elapsed, self.discretisation
        rows = one.rows(families, resolution, 0.5)
        accuracy = ALGEBRA_SHARE * self.tol / (1.0 if before is None else max(before.record.stability, 1.0))
        data, minimiser = rows.data, rows.solved(accuracy)
        near, shares = one.tube()
        seen, sampled, sizes = [], [], np.zeros(len(self.problem.fields))
        for points, share in ((inside, np.full(len(inside), 1 / len(inside))), (near, shares)):
            columns = one.values(families, points) * np.sqrt(share)[:, None, None]
            values = columns @ minimiser.coefficients + one.base(points) * np.sqrt(share)[:, None]
            sizes = np.maximum(sizes, np.linalg.norm(values, axis=0))
            seen.append(columns)
            sampled.append(values)
        scale = float(sizes.max()) or 1.0  # the solution that vanishes has the error of itself
        every = np.concatenate(seen)[:: len(sizes)] * np.sqrt(len(sizes))  # as many rows for a system as for one field
        every = minimiser.sketch(every)
        responses = minimiser.responses(every.transpose(1, 0, 2).reshape(-1, every.shape[2]))
        # a field that vanishes is compared with itself until it is known to: that is no resonance
        absolute = stability = largest_singular_value(responses)
        if len(sizes) > 1:
            stability = largest_singular_value(responses * np.repeat(scale / field_sizes(sizes), len(every)))
        network = one.network(families, minimiser.coefficients)
        # at more points than the fit by an irrational factor, so that hardly one of them is shared
        fresh = one.misses(network, resolution, float(rng.uniform(0.15, 0.35)), float(np.sqrt(2)))
        residual = np.abs(fresh.errors)
        residual[~np.isfinite(residual)] = np.inf
        weighted = residual * fresh.weights
        boundary = float(np.linalg.norm(weighted)) / scale
        source = self.defect * (1 + stability) / scale
        values = np.concatenate(sampled) / field_sizes(sizes)
        amplification, measured = stability, self._amplification(before, values, boundary)
        if one.sampled or np.isfinite(measured):
            deviation = DEVIATIONS * minimiser.deviation(responses)
            amplification = min(stability, np.hypot(1.0, deviation) if one.sampled else max(measured, deviation))
        estimate = amplification * boundary + source if np.isfinite(boundary) else np.inf
        factor = amplification / scale
        groups = fresh.groups
        errors = {int(g): factor * float(np.linalg.norm(weighted[groups == g])) for g in np.unique(groups)}
        record = TrefftzIteration(
            len(minimiser.coefficients), minimiser.rank, rows.count, boundary, float(residual.max()) / scale, absolute,
            estimate, self.monitor.elapsed - start,
        )  # fmt: skip
        return TrefftzState(
            network, record, scale, errors, values, minimiser.coefficients, data / scale, minimiser.gains
        )

    def _amplification(self, before: TrefftzState | None, values: Array, boundary: float) -> float:
        """The measured factor, for systems, by which the boundary error of the iteration before was amplified inside.

        The stability constant is a worst case over all features, which for a pressure is that of the roughest one. The
        change from the solution before, which was much worse, is the error that its boundary error made. Rougher
        errors of derivatives grow with the number of features, hence the factor of their growth.
        """
        if before is None or len(self.problem.fields) == 1 or not before.record.boundary > 10 * boundary:
            return np.inf
        change = float(np.linalg.norm(values - before.values, axis=0).max())
        return self.tuning.growth * change / before.record.boundary
