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

    def refined(self, resolution: Any, errors: Mapping[int, float], target: float, slow: bool) -> Any: ...


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

    network: TrefftzNetwork
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
        best: tuple[TrefftzNetwork, TrefftzIteration, float] | None = None
        done: list[TrefftzIteration] = []
        status, detail, vain, before = Status.STALLED, "more features do not lower the boundary error", 0, np.inf
        try:
            for number in range(1, self.tuning.iterations + 1):
                families = self.law.families(resolution, rng)
                columns = sum(family.columns for family in families)
                if columns > self.tuning.columns and best is not None:
                    detail = f"the next iteration would take {columns} features, more than {self.tuning.columns}"
                    break
                network, now, scale, errors = self._solved(families, resolution, inside, rng)
                done.append(now)
                if best is None or now.estimate < best[1].estimate:
                    best = network, now, scale
                self.monitor.tell(number, 1, width=columns, estimate=now.estimate)
                if now.estimate * self.tuning.safety <= self.tol:
                    status, detail = Status.CONVERGED, "the boundary error is below the tolerance"
                    break
                if now.stability > RESONANT or now.stability * np.finfo(float).eps > self.tol:
                    break
                vain = vain + 1 if now.estimate > 0.5 * before else 0
                slow = now.estimate > 0.1 * before or not np.isfinite(before)
                before = min(before, now.estimate)
                if vain >= self.tuning.patience:
                    break
                if self.monitor.exhausted or self._too_late(done):
                    status, detail = Status.BUDGET, ""
                    break
                resolution = self.law.refined(
                    resolution, errors, 0.3 * self.tol / np.sqrt(len(errors)), slow and number > 1
                )
        except KeyboardInterrupt:
            if best is None:
                raise
            status, detail = Status.INTERRUPTED, ""
        assert best is not None
        if best[1].stability > RESONANT or best[1].stability * np.finfo(float).eps > self.tol:
            status = Status.UNDETERMINED
            detail = (
                f"a unit of boundary error may be {best[1].stability:.1e} inside: the problem is at a resonance, or "
                "its conditions leave something free"
            )
        return TrefftzResult(best[0], best[1], tuple(done), status, detail, best[2])

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
        self, families: list[FeatureFamily], resolution: Any, inside: Array, rng: np.random.Generator
    ) -> tuple[TrefftzNetwork, TrefftzIteration, float, dict[int, float]]:
        start = self.monitor.elapsed
        words = self.problem.vocabulary
        parts = tuple(one.part for one in self.particular)
        nothing = TrefftzNetwork((), np.empty(0), parts, self.form)
        rows = boundary_rows(families, nothing, [*self.law.places(resolution, 0.5), *self.pins], words)
        found = least_squares(rows, self.tuning.cutoff)
        network = TrefftzNetwork(tuple(families), found.coefficients, parts, self.form)
        still = (0,) * self.problem.domain.dim
        near, shares = self.law.tube()
        seen, sizes = [], np.zeros(len(self.problem.fields))
        for points, share in ((inside, np.full(len(inside), 1 / len(inside))), (near, shares)):
            columns = feature_values(families, points, still) * np.sqrt(share)[:, None, None]
            values = columns @ found.coefficients + nothing.derivative(points, still) * np.sqrt(share)[:, None]
            sizes = np.maximum(sizes, np.linalg.norm(values, axis=0))
            seen.append(columns)
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
        boundary = float(np.linalg.norm(weighted))
        source = sum(one.defect * one.gain for one in self.particular) * (1 + stability)
        estimate = (stability * boundary + source) / scale if np.isfinite(boundary) else np.inf
        groups = np.concatenate([place.groups for place in fresh])
        errors = {int(g): stability / scale * float(np.linalg.norm(weighted[groups == g])) for g in np.unique(groups)}
        now = TrefftzIteration(
            len(found.coefficients), found.rank, len(rows.rhs), boundary / scale, float(residual.max()) / scale,
            absolute, estimate, self.monitor.elapsed - start,
        )  # fmt: skip
        return network, now, scale, errors
