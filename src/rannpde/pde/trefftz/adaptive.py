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
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.modal import ModalNetwork
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.particular import NoPart, Particular
from rannpde.pde.trefftz.rows import ConditionPoints, boundary_rows, feature_values, least_squares
from rannpde.pde.trefftz.tuning import TrefftzTuning

INSIDE_POINTS = 400
"""Points inside, at which the size of the solution and the stability constant are measured."""
RESONANT = 1e12
"""A stability constant beyond which rounding of the data alone spoils all digits but a few."""


class FeatureLaw(Protocol):
    """What knows which features a domain and an operator need; ``Any`` is its own resolution."""

    def first(self) -> Any: ...

    def families(self, resolution: Any, rng: np.random.Generator) -> list[FeatureFamily]: ...

    def places(self, resolution: Any, shift: float, factor: float = 1.0) -> list[ConditionPoints]: ...

    def tube(self) -> tuple[Array, Array]: ...

    def refined(
        self,
        resolution: Any,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
    ) -> Any: ...


@dataclass(frozen=True, eq=False)
class TrefftzState:
    """What one iteration leaves: the network, its record, and what the next one needs of it.

    scale : the root mean square of the solution; errors : group of features → its part of the estimate
    values : at the points inside (M, fields), each field over its own size
    """

    network: TrefftzNetwork
    record: TrefftzIteration
    scale: float
    errors: Mapping[int, float]
    values: Array


@dataclass(frozen=True)
class TrefftzIteration:
    """One adaptive iteration: features, rank, boundary error in L² and its largest value, stability, estimate."""

    columns: int
    rank: int
    rows: int
    boundary: float
    largest: float
    stability: float
    estimate: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.columns} features (rank {self.rank}), {self.rows} boundary points, relative boundary error "
            f"{self.boundary:.1e} (largest {self.largest:.1e}), stability constant {self.stability:.1e}, "
            f"estimate {self.estimate:.1e}, {self.seconds:.2f} s"
        )


@dataclass(frozen=True, eq=False)
class TrefftzResult:
    """The best network with its iterations and how it ended; ``scale`` is the root mean square of the solution."""

    network: TrefftzNetwork | ModalNetwork
    best: TrefftzIteration
    iterations: tuple[TrefftzIteration, ...]
    status: Status
    detail: str
    scale: float


@dataclass(frozen=True, eq=False)
class AdaptiveTrefftz:
    """The loop for one problem, whatever its law of features."""

    problem: Problem
    law: FeatureLaw
    form: CanonicalForm
    particular: Sequence[Particular]
    tol: float
    monitor: Monitor
    tuning: TrefftzTuning
    pins: tuple[ConditionPoints, ...] = ()

    def run(self, rng: np.random.Generator) -> TrefftzResult:
        """Until the estimate is below the tolerance, or nothing helps any more."""
        resolution = self.law.first()
        inside = self.problem.domain.sample(INSIDE_POINTS, rng=rng, method="sobol")
        best: TrefftzState | None = None
        before: TrefftzState | None = None
        done: list[TrefftzIteration] = []
        status, detail, idle, least = Status.STALLED, "more features do not lower the boundary error", 0, np.inf
        try:
            for number in range(1, self.tuning.iterations + 1):
                families = self.law.families(resolution, rng)
                columns = sum(family.columns for family in families)
                if columns > self.tuning.columns and best is not None:
                    detail = f"the next iteration would take {columns} features, more than {self.tuning.columns}"
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
                if self._undetermined(now):
                    break
                idle = idle + 1 if now.estimate > 0.5 * least else 0
                slow = now.estimate > 0.1 * least or not np.isfinite(least)
                least = min(least, now.estimate)
                if idle >= self.tuning.patience:
                    break
                if self.monitor.exhausted or self._too_late(done):
                    status, detail = Status.BUDGET, ""
                    break
                ends = np.cumsum([family.columns for family in families])[:-1]
                weights = list(zip(families, np.split(state.network.weights / state.scale, ends), strict=True))
                target = 0.3 * self.tol / np.sqrt(len(state.errors))
                resolution = self.law.refined(resolution, state.errors, target, slow and number > 1, weights)
                before = state
        except KeyboardInterrupt:
            if best is None:
                raise
            status, detail = Status.INTERRUPTED, ""
        assert best is not None
        if self._undetermined(best.record):
            status = Status.UNDETERMINED
            detail = (
                f"a unit of boundary error may be {best.record.stability:.1e} inside: the problem is at a resonance, "
                "or its conditions leave something free"
            )
        return TrefftzResult(best.network, best.record, tuple(done), status, detail, best.scale)

    def _undetermined(self, now: TrefftzIteration) -> bool:
        """Whether rounding of the data alone may be as large as the tolerance inside."""
        return now.stability > min(RESONANT, self.tol / float(np.finfo(float).eps))

    def failed(self, reason: str) -> TrefftzResult:
        """What comes back where no particular solution is known: zero, and the reason."""
        zero = TrefftzNetwork((), np.empty(0), (NoPart(),) * len(self.problem.fields), self.form)
        nothing = TrefftzIteration(0, 0, 0, np.inf, np.inf, np.inf, np.inf, 0.0)
        return TrefftzResult(zero, nothing, (nothing,), Status.STALLED, reason, 1.0)

    def _too_late(self, done: list[TrefftzIteration]) -> bool:
        """Whether the next iteration, which costs about growth³ times as much as the last, cannot end in time."""
        if self.monitor.budget.seconds is None:
            return False
        return self.monitor.elapsed + done[-1].seconds * self.tuning.growth**2 > self.monitor.budget.seconds

    def _solved(
        self,
        families: list[FeatureFamily],
        resolution: Any,
        inside: Array,
        rng: np.random.Generator,
        before: TrefftzState | None,
    ) -> TrefftzState:
        start = self.monitor.elapsed
        words = self.problem.vocabulary
        parts = tuple(one.part for one in self.particular)
        nothing = TrefftzNetwork((), np.empty(0), parts, self.form)
        rows = boundary_rows(families, nothing, [*self.law.places(resolution, 0.5), *self.pins], words)
        found = least_squares(rows, self.tuning.cutoff)
        network = TrefftzNetwork(tuple(families), found.coefficients, parts, self.form)
        still = (0,) * self.problem.domain.dim
        near, shares = self.law.tube()
        seen, sampled, sizes = [], [], np.zeros(len(self.problem.fields))
        for points, share in ((inside, np.full(len(inside), 1 / len(inside))), (near, shares)):
            columns = feature_values(families, points, still) * np.sqrt(share)[:, None, None]
            values = columns @ found.coefficients + nothing.derivative(points, still) * np.sqrt(share)[:, None]
            sizes = np.maximum(sizes, np.linalg.norm(values, axis=0))
            seen.append(columns)
            sampled.append(values)
        scale = float(sizes.max()) or 1.0  # the solution that vanishes has the error of itself
        relative = np.concatenate(seen) * (scale / field_sizes(sizes))[None, :, None]
        stability = found.stability(relative.transpose(1, 0, 2).reshape(-1, relative.shape[2]))
        # a field that vanishes is compared with itself until it is known to: that is no resonance
        plain = np.concatenate(seen).transpose(1, 0, 2).reshape(-1, relative.shape[2])
        absolute = stability if len(sizes) == 1 else found.stability(plain)
        fresh = self.law.places(resolution, float(rng.uniform(0.15, 0.35)), 1.4)
        again = boundary_rows(families, nothing, fresh, words)
        residual = np.abs(again.matrix @ found.coefficients - again.rhs)
        residual[~np.isfinite(residual)] = np.inf
        weighted = residual * again.weights
        boundary = float(np.linalg.norm(weighted)) / scale
        source = sum(one.defect * one.gain for one in self.particular) * (1 + stability) / scale
        values = np.concatenate(sampled) / field_sizes(sizes)
        amplification = min(stability, self._amplification(before, values, boundary))
        estimate = amplification * boundary + source if np.isfinite(boundary) else np.inf
        groups = np.concatenate([place.groups for place in fresh])
        factor = amplification / scale
        errors = {int(g): factor * float(np.linalg.norm(weighted[groups == g])) for g in np.unique(groups)}
        record = TrefftzIteration(
            len(found.coefficients), found.rank, len(rows.rhs), boundary, float(residual.max()) / scale,
            absolute, estimate, self.monitor.elapsed - start,
        )  # fmt: skip
        return TrefftzState(network, record, scale, errors, values)

    def _amplification(self, before: TrefftzState | None, values: Array, boundary: float) -> float:
        """How much the boundary error of the iteration before was amplified inside: measured, for systems.

        The stability constant is a worst case over all features, which for a pressure is that of the roughest one. The
        change from the solution before, which was much worse, is the error that its boundary error made. Rougher
        errors of derivatives grow with the number of features, hence the factor of their growth.
        """
        if before is None or len(self.problem.fields) == 1 or not before.record.boundary > 10 * boundary:
            return np.inf
        change = float(np.linalg.norm(values - before.values, axis=0).max())
        return self.tuning.growth * change / before.record.boundary
