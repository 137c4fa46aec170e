"""The adaptive loop for the value at one point: three errors, in time, of regression and of sampling, against tol.

SOLVE trains two independent models, ESTIMATE follows fresh paths of a pilot, MARK names the largest error, REFINE
doubles the steps, or the width and the training paths. When time and regression are small enough, the paths that are
still needed follow from the variance of the pilot, and are spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

import numpy as np
from scipy.special import ndtri

from rannpde.arrays import Array
from rannpde.checkpoints import Cause, Ended, guarded
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.paths.intervals import PathsIteration, PointValue, allowed_error
from rannpde.pde.paths.statistics import PathSample
from rannpde.pde.paths.trainer import PairTrainer, PathsResolution, TrainedPair
from rannpde.threads import one_thread


@dataclass(frozen=True, eq=False)
class PointSearch:
    """The loop at one start.

    unknowns : numbers that the fresh paths determine: one value, or the weights of a network on a region
    """

    trainer: PairTrainer
    tol: float
    confidence: float
    fixed: PathsResolution | None
    unknowns: int = 1

    @property
    def monitor(self) -> Monitor:
        return self.trainer.monitor

    @property
    def most_paths(self) -> int:
        return self.trainer.most_paths

    @property
    def quantile(self) -> float:
        return float(ndtri(0.5 + 0.5 * self.confidence))

    def run(self) -> PointValue:
        """The value, to tol or as far as paths and time allow."""
        with one_thread(), np.errstate(all="ignore"):
            return self._run()

    def _run(self) -> PointValue:
        iterations: list[PathsIteration] = []
        best = self.first()
        try:
            if self.fixed is None:
                best = self.refine(best, iterations)
            return self._spend(best, iterations)
        except Ended as stop:
            status, detail = status_of(stop)
            with guarded(None):
                return self._point_value(best, best.sample, iterations, status, detail)

    def first(self) -> TrainedPair:
        """The first models. Where time is limited they are so small that something is kept, and a try at a deadline
        is made once more with what little time is left after it.
        """
        if self.fixed is not None or self.monitor.budget.seconds is None:
            return self.trainer.solve(self.fixed or self.trainer.first_resolution())
        smallest, pilot = self.trainer.smallest_resolution(), self.trainer.tuning.pilot // 8
        try:
            return self.trainer.solve(smallest, pilot=pilot)
        except Ended as stop:
            if stop.cause is not Cause.TIME:
                raise
            return self.trainer.solve(smallest, pilot=pilot // 4)

    def refine(self, best: TrainedPair, iterations: list[PathsIteration]) -> TrainedPair:
        """The pair of models with which the bulk of the paths is spent; ``best`` is kept where the time ends."""
        iterations.append(self._iteration(best, best.sample))
        tried: set[PathsResolution] = {best.resolution}
        while not self.monitor.exhausted:
            target = self._target(iterations[-1], best.sample)
            wanted = self._refined(best, iterations[-1], target, tried)
            if wanted is None:
                break
            tried.add(wanted)
            try:
                candidate = self.trainer.solve(wanted, best.models)
            except Ended as stop:  # not in time: what there is must do
                if stop.cause is Cause.INTERRUPT:
                    raise
                break
            iterations.append(self._iteration(candidate, candidate.sample))
            if self._better(candidate, best, target):
                best = candidate
            else:
                iterations.append(self._iteration(best, best.sample))
        return best

    # ------------------------------------------------------------------------------------------------- decisions

    def _iteration(self, trained: TrainedPair, sample: PathSample) -> PathsIteration:
        r = trained.resolution
        in_time = sample.time_error(1.0)
        sampling = self.quantile * self._standard_error(sample)
        return PathsIteration(
            r.steps, r.width, r.training, 2 * sample.value.count, float(sample.value.mean) + trained.shift, in_time,
            trained.regression, sampling, self.monitor.elapsed, self.confidence,
        )  # fmt: skip

    def _standard_error(self, sample: PathSample) -> float:
        """The standard error of the mean of the paths; for a region without what their starts differ by, which the
        network knows."""
        if self.unknowns == 1:
            return float(sample.value.error)
        return float(np.sqrt(sample.residual / (2 * sample.value.count)))

    def _scale(self, iteration: PathsIteration, sample: PathSample) -> float:
        """The size to which tol is relative: the value, or the size of u along the paths if the value may be zero."""
        size = abs(iteration.value)
        return size if size > iteration.half_width else float(np.sqrt(sample.mean_square))

    def _target(self, iteration: PathsIteration, sample: PathSample) -> float:
        """The error that time and regression are refined to: the tolerance, but no less than the sampling error that
        all the paths allowed would leave, beside which smaller ones do not count."""
        reachable = iteration.sampling * float(np.sqrt(min(iteration.paths / self.most_paths, 1.0)))
        return max(self.tol * self._scale(iteration, sample), reachable)

    def _refined(
        self, best: TrainedPair, iteration: PathsIteration, target: float, tried: set[PathsResolution]
    ) -> PathsResolution | None:
        """The next resolution, or None where fresh paths are the better use of time."""
        if not isfinite(iteration.value):
            return None
        first = self.trainer.first_resolution()
        if best.resolution.width < first.width and first not in tried:
            return first if self._time_for(best, 16) else None
        r, tuning = best.resolution, self.trainer.tuning
        finer = self.trainer.resolution(2 * r.steps, r.substeps, r.width)
        if not self.trainer.process.exact:
            finer = self.trainer.resolution(
                2 * r.steps if iteration.in_time < target else r.steps, 2 * r.substeps, r.width
            )
        wider = self.trainer.resolution(r.steps, r.substeps, 2 * r.width, 2)
        # every bias below the target is allowed for by more paths: refining must be cheaper than these
        needed = min(self.unknowns * self._needed(iteration, target), self.most_paths) * best.path_seconds
        if needed <= 4 * best.training_seconds:
            return None
        untried = [one for one in (finer, wider) if one not in tried and one.steps <= tuning.most_steps]
        return untried[0] if untried and self._time_for(best, 4) else None

    def _surely_in_time(self, sample: PathSample) -> float:
        """The error in time that is not noise of the pilot: more paths will reduce the rest of it."""
        return sample.time_error(-1.0)

    def _surely_biased(self, trained: TrainedPair, sample: PathSample) -> float:
        """The bias that more paths will not reduce."""
        return self._surely_in_time(sample) + trained.regression

    def _time_for(self, best: TrainedPair, factor: float) -> bool:
        """Whether half of the time that is left holds another training, ``factor`` times as long as the last."""
        return factor * best.training_seconds < 0.5 * self.monitor.budget.remaining

    def _needed(self, iteration: PathsIteration, target: float) -> int:
        """Fresh paths after which the interval is as narrow as the target; beyond all where its bias is as large."""
        allowed = allowed_error(iteration.bias, target, self.confidence) if isfinite(iteration.sampling) else 0.0
        if allowed <= 0:
            return self.most_paths + 1
        return int(min(ceil(iteration.paths * (iteration.standard_error / allowed) ** 2), 2**62))

    def needed(self, trained: TrainedPair) -> int:
        """Fresh paths that all unknowns need with these models."""
        iteration = self._iteration(trained, trained.sample)
        return self.unknowns * self._needed(iteration, self._target(iteration, trained.sample))

    def _better(self, candidate: TrainedPair, best: TrainedPair, target: float) -> bool:
        """Whether a pair of models needs less time to the target; where none reaches it, whether it is less biased."""
        biases = [self._surely_biased(one, one.sample) for one in (candidate, best)]
        errors = [allowed_error(bias, target, self.confidence) for bias in biases]
        if not all(errors):
            return biases[0] < biases[1]
        costs = [
            one.path_seconds * one.sample.value.count * (self._standard_error(one.sample) / error) ** 2
            for one, error in zip((candidate, best), errors, strict=True)
        ]
        return costs[0] * self.trainer.tuning.gain < costs[1]

    # ------------------------------------------------------------------------------------------------- the bulk

    def _spend(self, best: TrainedPair, iterations: list[PathsIteration]) -> PointValue:
        """Fresh paths until the target, the number allowed, or the end of the time."""
        sample, iteration = best.sample, self._iteration(best, best.sample)
        while not self.monitor.exhausted and isfinite(iteration.half_width):
            target = self.tol * self._scale(iteration, sample)
            spent = 2 * sample.value.count
            if iteration.half_width <= target or spent >= self.most_paths:
                break
            if self._surely_biased(best, sample) >= self._target(iteration, sample):
                break  # more paths do not help
            # the variance of heavy tails shows late, and the noise of the error in time falls too: not all at once
            wanted = min(max(self._needed(iteration, target), spent + ceil(spent / 4)), 8 * spent, self.most_paths)
            affordable = self.monitor.budget.remaining / best.path_seconds
            missing = min(wanted - spent, max(affordable, 256))
            try:
                sample = sample + self.trainer.follow(best.models, int(missing), self.trainer.rng)
            except Ended:
                break
            iteration = self._iteration(best, sample)
        status, detail = self._ending(iteration, sample)
        return self._point_value(best, sample, iterations, status, detail)

    def _point_value(
        self, best: TrainedPair, sample: PathSample, iterations: list[PathsIteration], status: Status, detail: str
    ) -> PointValue:
        iteration = self._iteration(best, sample)
        gradient, error = self._gradient(best, sample)
        return PointValue(
            iteration.value, float(sample.value.error), iteration.half_width, self._scale(iteration, sample), gradient,
            error, (*iterations, iteration), status, detail,
        )  # fmt: skip

    def _ending(self, iteration: PathsIteration, sample: PathSample) -> tuple[Status, str]:
        scale = self._scale(iteration, sample)
        if not isfinite(iteration.value) or not isfinite(iteration.half_width):
            return Status.BLOW_UP, "the simulated values are not finite"
        if iteration.half_width <= self.tol * scale:
            return Status.CONVERGED, f"the {100 * self.confidence:g} % interval is within the tolerance"
        # with a limit of time, finer models were left out for want of it
        limited = self.monitor.budget.seconds is not None and iteration.paths < self.most_paths
        status = self.monitor.ending if limited or self.monitor.exhausted else Status.STALLED
        parts = {"time": iteration.in_time, "regression": iteration.regression, "sampling": iteration.sampling}
        largest = max(parts, key=lambda name: parts[name])
        unbiased = (
            ceil(iteration.paths * (iteration.sampling / (self.tol * scale)) ** 2) if scale > 0 else self.most_paths
        )
        remedy = (
            f"about {unbiased:.2g} paths would be needed" if largest == "sampling" else f"the error of {largest} leads"
        )
        return status, f"the interval is {iteration.half_width / scale:.1e} wide, relative, to either side; {remedy}"

    def _gradient(self, best: TrainedPair, sample: PathSample) -> tuple[Array, Array]:
        """∇u at the start and its standard errors, from how the value moves with the noise of the first step.

        For exact processes the score of that step is exact, so that what is left is an error in time of the order of
        the rule; Euler's steps are off by O(h): how much the gradient changes along the step is added there.
        """
        start = self.trainer.start(2, self.trainer.rng)
        process, nodes = best.models[0].process, best.models[0].grid.nodes
        state, h = process.start(start), float(nodes[1] - nodes[0])
        now, later = (
            np.mean([own.networks[k].as_martingale.gradient(state)[0] for own in best.models], axis=0)
            for k in (0, 1)
        )  # fmt: skip
        rows = np.stack([sample.gradient.mean, sample.gradient.error, sample.gradient_in_time.mean])
        turned = process.push(0.0, h, start[:1], rows)
        error = np.abs(turned[1]) + np.abs(turned[2])
        if not process.exact:
            error += np.abs(later - now)
        return now * process.shrink(h) + turned[0], error
