"""Adaptive interpolation in parameters: one loop for one parameter (Leja points) and for several (sparse grids).

SOLVE at the nodes of the active indices → ESTIMATE by their surpluses → MARK the largest → REFINE by the indices above
it (Gerstner and Griebel, Dimension-adaptive tensor-product quadrature, 2003). The surpluses of the active indices are
what the interpolation without them misses at their nodes; those of the next ones are smaller, so that their sum bounds
the error as long as the surpluses decay. Evaluations at independent random values check that they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.family.estimate import ErrorModel, judged_values
from rannpde.pde.family.nodes import Levels, SparseGrid, backward_neighbours, forward_neighbours
from rannpde.pde.family.settings import FamilySettings
from rannpde.pde.monitor import Monitor, Status


@dataclass(frozen=True, eq=False)
class Sample:
    """The interpolated values at one node.

    values : (m, fields), compared in the root mean square over m, each field relative to its own size
    error : estimated relative error of the values
    result : whatever else belongs to the node, such as the solution
    ended : the status of an evaluation that a limit or an interrupt cut short, else None
    """

    values: Array
    error: float = 0.0
    result: Any = None
    ended: Status | None = None


class Evaluate(Protocol):
    """Evaluation at nodes of reduced coordinates in [-1, 1]^d; it may end early, with fewer samples than nodes."""

    def __call__(self, nodes: Sequence[Array], /) -> list[Sample]: ...


class WorstPoint(Protocol):
    """The one (d,) of these reduced coordinates (K, d) where an interpolation seems worst; None where it is unknown."""

    def __call__(self, samples: Sequence[Sample], grid: SparseGrid, reduced: Array, /) -> Array | None: ...


@dataclass(frozen=True)
class Refinement:
    """One iteration of the adaptive loop: number of evaluations, estimated error, largest level of every parameter."""

    solves: int
    estimate: float
    levels: tuple[int, ...]


@dataclass(eq=False)
class Interpolant:
    """Samples at the nodes of a growing sparse grid, the state of the loop.

    missed : largest relative error of the checks that the estimate there does not cover; 0 where it covers all
    """

    dim: int
    settings: FamilySettings
    indices: list[Levels] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    finished: set[Levels] = field(default_factory=set)
    missed: float = 0.0

    @property
    def grid(self) -> SparseGrid:
        return SparseGrid(tuple(self.indices))

    @property
    def values(self) -> Array:
        """The values of all samples, (n, m, fields)."""
        return np.stack([sample.values for sample in self.samples])

    def add(self, index: Levels, sample: Sample) -> None:
        """Add the node of an index with its sample."""
        self.indices.append(index)
        self.samples.append(sample)

    def predict(self, node: Array) -> Array:
        """The interpolation (m, fields) at reduced coordinates (d,)."""
        return np.asarray(np.tensordot(self.grid.weights(node[None])[0], self.values, axes=1))

    def reopen(self) -> None:
        """Make indices active again whose forward neighbours are missing, because an iteration was cut short."""
        below = {neighbour for index in self.indices for neighbour in backward_neighbours(index)}
        self.finished &= below

    def keep(self, count: int) -> None:
        """Drop all samples but the first ``count``."""
        del self.indices[count:], self.samples[count:]
        self.reopen()

    @property
    def active(self) -> list[int]:
        """Positions of the indices whose forward neighbours have not been added yet."""
        return [k for k, index in enumerate(self.indices) if index not in self.finished]

    def sizes(self) -> Array:
        """(n, fields): the larger of the surplus and of the Chebyshev coefficient of every index.

        A surplus is the error at one value only, and may be small by chance where the error is elsewhere, such as at a
        kink; coefficients are not. Where the function is analytic, both have the same order of magnitude.
        """
        grid = self.grid
        surpluses = np.tensordot(grid.surplus_matrix, self.values, axes=1)
        coefficients = np.tensordot(grid.chebyshev_matrix, surpluses, axes=1)
        return np.sqrt(np.maximum(np.mean(surpluses**2, axis=1), np.mean(coefficients**2, axis=1)))

    def indicators(self) -> Array:
        """(n, fields): the sizes, but no less than a share of those one and two levels below.

        Of the backward neighbours along several axes, the smallest is taken.
        """
        position = {index: k for k, index in enumerate(self.indices)}
        share = self.settings.believed_decay
        sizes = self.sizes()
        first, second = np.zeros_like(sizes), np.zeros_like(sizes)
        for k, index in enumerate(self.indices):
            below = [position[neighbour] for neighbour in backward_neighbours(index)]
            if below:
                first[k], second[k] = sizes[below].min(axis=0), first[below].min(axis=0)
        return np.maximum(sizes, np.maximum(share * first, share**2 * second))

    def _tail_factors(self) -> Array:
        """(fields,): what all later indices add, relative to the last ones, by the decay of the sizes so far.

        Along an axis, the size c_k of level k is the largest of all indices with that level. If the sizes of the later
        half go on as k^-p, they add up to c_n · n/(p - 1). Where the function is analytic, p is large and grows with n,
        and this is the sum of the geometric series; at a kink p is 2, and the sum far larger than its last term.
        """
        sizes, levels = self.sizes(), self.grid.levels
        noise = np.max([sample.error * root_mean_squares(sample.values) for sample in self.samples], axis=0)
        factors = np.ones(sizes.shape[1])
        for axis in range(self.dim):
            last = int(levels[:, axis].max())
            if last < 4:
                continue
            largest = np.array([sizes[levels[:, axis] == level].max(axis=0) for level in range(last + 1)])
            if np.all(largest[-3:] <= self.settings.noise_level * noise):  # errors of solves are estimated separately
                continue
            last_levels = np.arange(last // 2, last + 1)
            logs = np.log(np.maximum(largest[last_levels], 1e-17 * sizes.max(axis=0) + 1e-300))
            slopes = np.polynomial.polynomial.polyfit(np.log(last_levels), logs, 1)[1]
            above = np.max(logs - slopes * np.log(last_levels)[:, None], axis=0) + slopes * np.log(last)
            series = last / np.maximum(-slopes - 1, 1 / last)  # sizes oscillate: the line lies above all of them
            factors = np.maximum(factors, series * np.exp(np.minimum(above - logs[-2:].max(axis=0), np.log(last))))
        return factors

    @property
    def floor(self) -> Array:
        """(fields,): the size to which errors are relative where the solution is smaller than it."""
        largest = np.max([root_mean_squares(sample.values) for sample in self.samples], axis=0)
        floor = self.settings.smallest_share * largest
        return np.where(floor > 0, floor, 1.0)

    def model(self) -> ErrorModel:
        """The error estimate of the present interpolation."""
        values, floor = self.values, self.floor
        sizes = [np.maximum(root_mean_squares(sample.values), floor) for sample in self.samples]
        errors = np.array([sample.error * size for sample, size in zip(self.samples, sizes, strict=True)])
        gram = np.einsum("imf,jmf->fij", values, values, optimize=True) / values.shape[1]
        indicators = self.indicators() * self._tail_factors()
        return ErrorModel(self.grid, np.array(self.active, dtype=int), indicators, errors, gram, floor, self.missed)

    def estimate(self) -> tuple[float, float]:
        """The largest estimated errors over the range: of interpolation, and of the solves."""
        return self.model().largest(self.settings.judged_values)

    def relative_indicators(self) -> Array:
        """(n,): the indicators relative to the size of the values at the node, the largest over the fields."""
        sizes = np.maximum([root_mean_squares(sample.values) for sample in self.samples], self.floor)
        return np.asarray((self.indicators() / sizes).max(axis=1))


@dataclass(frozen=True, eq=False)
class AdaptiveInterpolation:
    """The result of the loop. checks : errors at the random values; checked : their reduced coordinates (k, d)."""

    interpolant: Interpolant
    status: Status
    detail: str
    checked: Array
    checks: tuple[float, ...]
    check_samples: tuple[Sample, ...]
    iterations: tuple[Refinement, ...]


def interpolate_adaptively(
    evaluate: Evaluate,
    dim: int,
    tol: float,
    settings: FamilySettings,
    rng: np.random.Generator,
    monitor: Monitor,
    batch: int = 1,
    worst_point: WorstPoint | None = None,
) -> AdaptiveInterpolation:
    """Interpolate in d parameters to the relative error ``tol``.

    batch : active indices that are refined at once: as many as there are workers to evaluate at their neighbours
    worst_point : chooses where one of the checks is made; without it, all are made at random values
    """
    loop = _Loop(evaluate, Interpolant(dim, settings), tol, settings, rng, monitor, worst_point)
    status, detail = loop.run(batch)
    return AdaptiveInterpolation(
        loop.state, status, detail, np.array(loop.checked).reshape(-1, dim), tuple(loop.check_errors()),
        tuple(loop.check_samples), tuple(loop.iterations),
    )  # fmt: skip


@dataclass(eq=False)
class _Loop:
    evaluate: Evaluate
    state: Interpolant
    tol: float
    settings: FamilySettings
    rng: np.random.Generator
    monitor: Monitor
    worst_point: WorstPoint | None = None
    iterations: list[Refinement] = field(default_factory=list)
    checked: list[Array] = field(default_factory=list)
    check_samples: list[Sample] = field(default_factory=list)

    def run(self, batch: int) -> tuple[Status, str]:
        """Iterate; return the status with which the loop ends, and a detail."""
        state = self.state
        ended = self._take([(0,) * state.dim]) or self._take_axes()
        while ended is None:
            self._update_missed()
            interpolation, solved = state.estimate()
            self._record(interpolation + solved)
            if not np.isfinite(interpolation + solved):
                return self._failed()
            broad = state.missed > 0
            if interpolation + solved <= self.tol or interpolation <= min(0.5 * solved, self.tol):
                ended = self._check()
                self._update_missed()
                if ended is None and state.missed == 0:
                    return self._judged(*state.estimate())
                if ended is not None:
                    break
                broad = True
            if self.monitor.exhausted:
                return Status.BUDGET, ""
            if self._predicted() > self.settings.most_solves:
                return Status.STALLED, (
                    f"after {len(state.samples)} solves the error falls too slowly with more of them: the solution may "
                    "have a kink or a singularity in a parameter within its range, or need a narrower range"
                )
            ended = self._take(self._refined(batch, broad))
        state.reopen()
        return ended

    def _take(self, indices: list[Levels]) -> tuple[Status, str] | None:
        """Evaluate at the nodes of new indices; the status with which the loop must end, or None."""
        if not indices:
            return Status.STALLED, "there is no node left to refine at"
        samples = self.evaluate([_node(index) for index in indices])
        for index, sample in zip(indices, samples, strict=False):
            if sample.ended is not None and self.state.samples:  # a sample that was cut short would make it worse
                return sample.ended, ""
            self.state.add(index, sample)
            if sample.ended is not None:
                return sample.ended, ""
            if not np.isfinite(sample.values).all():
                return self._failed()
        return None if len(samples) == len(indices) else (Status.BUDGET, "")

    def _take_axes(self) -> tuple[Status, str] | None:
        """Evaluate the first levels of every parameter, before any decay of the surpluses is relied on."""
        state = self.state
        for level in range(1, self.settings.first_levels + 1):
            axis_indices = [tuple(level if k == axis else 0 for k in range(state.dim)) for axis in range(state.dim)]
            state.finished |= {below for index in axis_indices for below in backward_neighbours(index)}
            ended = self._take(axis_indices)
            if ended is not None:
                return ended
        return self._take(self._above(state.indices))

    def _above(self, indices: Sequence[Levels]) -> list[Levels]:
        state = self.state
        candidates: list[Levels] = []
        for index in indices:
            if index in state.finished:
                candidates += forward_neighbours(index, state.finished, set(state.indices) | set(candidates))
        return candidates or self._refined(1, False)

    def _refined(self, batch: int, broad: bool) -> list[Levels]:
        """Finish the active indices with the largest indicators, and return those of their forward neighbours to add.

        broad : finish those of the lowest degree instead. Where an error at a check is not covered though the surpluses
        are small, they are small by chance in directions that were not refined.
        """
        state = self.state
        relative = state.relative_indicators()
        lowest = min(sum(state.indices[k]) for k in state.active)
        order = sorted(state.active, key=lambda k: -float(relative[k]))
        if broad:
            order.sort(key=lambda k: sum(state.indices[k]))
            batch = max(batch, sum(sum(state.indices[k]) == lowest for k in order))
        candidates: list[Levels] = []
        for count, k in enumerate(order):
            if candidates and count >= batch:
                break
            state.finished.add(state.indices[k])
            candidates += forward_neighbours(state.indices[k], state.finished, set(state.indices) | set(candidates))
        return candidates

    def _check(self) -> tuple[Status, str] | None:
        """Evaluate at new values, one of them where the interpolation seems worst, the others random.

        After a check that the estimate did not cover, there are as many new ones: a check at values that have become
        nodes would prove nothing.
        """
        from scipy.stats import qmc  # loading it takes half a second

        state, count = self.state, 1 + self.settings.checks * self.state.dim
        nodes = list(2 * qmc.LatinHypercube(state.dim, rng=self.rng).random(count) - 1)  # one in every stratum
        if self.worst_point is not None:
            shifted = judged_values(state.dim, self.settings.judged_values) + self.rng.uniform(0, 2, state.dim)
            worst = self.worst_point(state.samples, state.grid, (shifted + 1) % 2 - 1)
            nodes = nodes if worst is None else [worst, *nodes[1:]]
        samples = self.evaluate(nodes)
        for node, sample in zip(nodes, samples, strict=False):
            if sample.ended is not None:
                return sample.ended, "before the family could be checked"
            self.checked.append(node)
            self.check_samples.append(sample)
        return None if len(samples) == len(nodes) else (Status.BUDGET, "before the family could be checked")

    def check_errors(self) -> list[float]:
        """Relative error of the interpolation at every checked value."""
        errors = []
        for node, sample in zip(self.checked, self.check_samples, strict=True):
            size = np.maximum(root_mean_squares(sample.values), self.state.floor)
            errors.append(float(np.max(root_mean_squares(sample.values - self.state.predict(node)) / size)))
        return errors

    def _update_missed(self) -> None:
        """Set the largest error of a check that the estimate does not cover; it is added to the estimate everywhere."""
        self.state.missed = 0.0
        if not self.checked:
            return
        errors = np.array(self.check_errors())
        if not np.isfinite(errors).all():
            self.state.missed = np.inf
            return
        interpolation, solved = self.state.model().errors(np.array(self.checked))
        check_errors = np.array([sample.error for sample in self.check_samples])
        covered = errors <= np.maximum(interpolation + solved + check_errors, 0.5 * self.tol)
        self.state.missed = float(np.max(np.where(covered, 0.0, errors)))

    def _judged(self, interpolation: float, solved: float) -> tuple[Status, str]:
        if interpolation + solved <= self.tol:
            return Status.CONVERGED, "the interpolation in the parameters agrees with independent solves"
        return Status.DISAGREE, "the solves themselves do not reach the tolerance that the family needs"

    def _failed(self) -> tuple[Status, str]:
        return Status.STALLED, "a solve within the range has no finite solution or no estimate of its error"

    def _record(self, estimate: float) -> None:
        levels = tuple(int(n) for n in self.state.grid.levels.max(axis=0))
        self.iterations.append(Refinement(len(self.state.samples), estimate, levels))
        self.monitor.tell(len(self.iterations), len(self.state.samples), estimate=estimate)

    def _predicted(self) -> float:
        """Solves that the tolerance needs, if the error goes on as exp(-c n^(1/d)), the best that smoothness allows."""
        solves = np.array([iteration.solves for iteration in self.iterations], dtype=float)
        dim, count = self.state.dim, solves[-1]
        if count < 16 * dim**2:
            return float(count + 1)
        estimates = [iteration.estimate for iteration in self.iterations]
        envelope = np.maximum.accumulate(estimates[::-1])[::-1]  # the largest estimate from then on
        half = int(np.searchsorted(solves, count / 2))
        reached, before = float(np.mean(envelope[-2:])), float(envelope[half])
        rate = np.log(before / reached) / max(count ** (1 / dim) - solves[half] ** (1 / dim), 1e-300)
        if rate <= 0:
            return np.inf if count >= 24 * dim**2 else float(count + 1)
        return float((count ** (1 / dim) + np.log(max(reached / self.tol, 1.0)) / rate) ** dim)


def _node(index: Levels) -> Array:
    return np.asarray(SparseGrid((index,)).nodes[0])


def root_mean_squares(values: Array) -> Array:
    """Root mean squares (fields,) of values (m, fields)."""
    return np.sqrt(np.mean(np.square(values), axis=0))
