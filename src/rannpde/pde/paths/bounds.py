"""The adaptive loop of optimal stopping: substeps and width until the two bounds meet, then fresh paths."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

import numpy as np
from scipy.special import ndtri

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, Ended, reserve
from rannpde.errors import reject
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.paths.grid import NormalDraws
from rannpde.pde.paths.inner import inner_coordinates
from rannpde.pde.paths.intervals import PathsIteration, PointValue
from rannpde.pde.paths.layer import layer_law
from rannpde.pde.paths.processes import PathProcess
from rannpde.pde.paths.stopping import (
    StoppingGrid,
    StoppingModel,
    StoppingSample,
    bound,
    check_stopping,
    train_stopping,
)
from rannpde.pde.paths.tuning import PathsTuning
from rannpde.pde.paths.workers import parallel
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER
from rannpde.threads import one_thread

MOST_SUBSTEPS = 32
"""Steps between two dates, beyond which the bounds do not come closer for any problem that was tried."""
CONTINUOUS = 16
"""Dates that stand for all times at first, doubled once to see what more dates change."""


@dataclass(frozen=True, eq=False)
class StoppingSearch:
    """The value at one point, between a lower and an upper bound."""

    form: Parabolic
    process: PathProcess
    point: Array
    tol: float
    confidence: float
    most_paths: int
    tuning: PathsTuning
    rng: np.random.Generator
    monitor: Monitor

    @property
    def quantile(self) -> float:
        return float(ndtri(0.5 + 0.5 * self.confidence))

    def run(self) -> PointValue:
        check_stopping(self.form)
        if not self.process.exact:
            reject("the process of an obstacle problem", "one that needs Euler's steps", "Gaussian or lognormal",
                   "its bounds would have an error in time that is not known")  # fmt: skip
        with one_thread():
            return self._run()

    def _run(self) -> PointValue:
        iterations: list[PathsIteration] = []
        dates, in_time, substeps, width = CONTINUOUS, 0.0, 1, self.tuning.first_width
        begin = self.monitor.elapsed
        model, sample = self._solve(substeps, width, dates)
        spent = self.monitor.elapsed - begin
        iterations.append(self._iteration(model, sample, in_time, width))
        assert self.form.obstacle is not None
        while not self._late(4 * spent):
            gap = abs(float(sample.upper.mean - sample.lower.mean))
            target = self.tol * abs(iterations[-1].value)
            noise = self.quantile * float(sample.upper.error)
            if not self.form.obstacle.dates and dates < 64 * CONTINUOUS and gap < max(target, 2 * noise):
                if in_time and in_time < COMPARABLE * target:
                    break
                before = iterations[-1].value
                dates, substeps = 2 * dates, max(substeps // 2, 1)
            elif gap > COMPARABLE * target and gap > noise and substeps < MOST_SUBSTEPS:
                before, substeps = None, 2 * substeps
            elif gap > 0.5 * target and gap > noise and width < 4 * self.tuning.first_width:
                before, width = None, 2 * width
            else:
                break
            begin = self.monitor.elapsed
            try:
                solved = self._solve(substeps, width, dates)
            except Ended as stop:  # the bounds before are kept
                return self._spend(model, sample, iterations, iterations[-1].width, stop)
            model, sample = solved
            spent = self.monitor.elapsed - begin
            iteration = self._iteration(model, sample, 0.0, width)
            if before is not None:
                in_time = abs(iteration.value - before)
            iterations.append(self._iteration(model, sample, in_time, width))
        return self._spend(model, sample, iterations, width)

    def _late(self, seconds: float) -> bool:
        monitor = self.monitor
        return monitor.budget.seconds is not None and monitor.elapsed + seconds > 0.5 * monitor.budget.seconds

    def _solve(self, substeps: int, width: int, dates: int) -> tuple[StoppingModel, StoppingSample]:
        form, process, tuning = self.form, self.process, self.tuning
        inner = inner_coordinates(form, tuning.softness)
        grid = StoppingGrid.of(form, substeps, dates)
        law = layer_law(width, inner, process.dim, tuning.linear_share, tuning.sparse)
        columns = law.columns(inner, process.dim)
        allowed = self.monitor.budget.memory
        memory = tuning.memory if allowed is None else min(tuning.memory, allowed / 2)
        fits = int(memory // (4 * len(grid.nodes) * process.dim + 4 * FLOAT_BYTES * (columns + process.dim)))
        count = 2 * max(min(tuning.paths_per_column * columns, fits) // 2, 2 * columns)
        reserve(count * (4 * len(grid.nodes) * process.dim + 4 * FLOAT_BYTES * (columns + process.dim)), "the training")
        start = np.tile(self.point, (count, 1))
        model = train_stopping(form, process, grid, start, law, inner, tuning.penalty, self.rng)
        self.monitor.tell(1, len(grid.nodes), width=width)
        return model, self._bound(model, tuning.pilot)

    def _bound(self, model: StoppingModel, count: int) -> StoppingSample:
        dim = self.process.dim
        rows = 2 * max(self.tuning.block // (8 * dim * 4), 64)
        blocks = max(2, ceil(count / rows))
        rows = 2 * ceil(count / blocks / 2)
        seeds = self.rng.integers(2**62, size=blocks)
        total: StoppingSample | None = None
        for first in range(0, blocks, 2):
            chosen = range(first, min(first + 2, blocks))
            for block in parallel(lambda k: self._block(model, rows, int(seeds[k])), chosen):
                total = block if total is None else total + block
            if self.monitor.exhausted:
                break
        assert total is not None
        return total

    def _block(self, model: StoppingModel, rows: int, seed: int) -> StoppingSample:
        return bound(model, np.tile(self.point, (rows, 1)), NormalDraws(seed, rows, self.process.dim))

    def _iteration(self, model: StoppingModel, sample: StoppingSample, in_time: float, width: int) -> PathsIteration:
        lower, upper = float(sample.lower.mean), float(sample.upper.mean)
        sampling = self.quantile * max(float(sample.lower.error), float(sample.upper.error))
        return PathsIteration(
            len(model.grid.nodes) - 1, width, model.training, 2 * sample.lower.count, 0.5 * (lower + upper), in_time,
            0.5 * abs(upper - lower), sampling, self.monitor.elapsed, self.confidence,
        )  # fmt: skip

    def _spend(
        self, model: StoppingModel, sample: StoppingSample, iterations: list[PathsIteration], width: int,
        stop: Ended | None = None,
    ) -> PointValue:  # fmt: skip
        """Fresh paths until the bounds are close enough, unless the solve was stopped before."""
        last = iterations[-1]
        target = self.tol * abs(last.value)
        allowed = max(target - last.in_time - last.regression, 0.5 * target)
        excess = last.sampling / allowed if allowed > 0 else np.inf
        needed = int(min((1 + MUCH_SMALLER) * last.paths * excess**2 + 1, 2**62))
        wanted = min(needed, self.most_paths)
        if self.monitor.budget.seconds is not None:
            earlier = iterations[-2].seconds if len(iterations) > 1 else 0.0
            each = (self.monitor.elapsed - earlier) / max(last.paths, 1) / 2
            wanted = min(wanted, int((1 - MUCH_SMALLER) * self.monitor.budget.remaining / max(each, 1e-9)))
        if wanted > last.paths and stop is None and not self.monitor.exhausted:
            try:
                sample = sample + self._bound(model, wanted - last.paths)
            except Ended as later:
                stop = later
        iteration = self._iteration(model, sample, last.in_time, width)
        iterations.append(iteration)
        half = iteration.half_width
        scale = max(abs(iteration.value), 1e-300)
        if not isfinite(half):
            status, detail = Status.BLOW_UP, "the simulated values are not finite"
        elif half <= self.tol * scale:
            status, detail = Status.CONVERGED, "the bounds with their errors are within the tolerance"
        else:
            parts = {
                "time": iteration.in_time,
                "the gap of the bounds": iteration.regression,
                "sampling": iteration.sampling,
            }
            leads = max(parts, key=lambda name: parts[name])
            status = Status.BUDGET if self.monitor.exhausted or needed <= self.most_paths else Status.STALLED
            detail = f"the bounds with their errors are {half / scale:.1e} off the middle, relative; {leads} leads"
            detail += f"; about {needed:.2g} paths would be needed" if leads == "sampling" else ""
            if stop is not None:
                status, detail = status_of(stop)[0], status_of(stop)[1] or detail
        state = self.process.start(self.point[None, :])
        gradient = model.networks[0].gradient(state)[0]
        error = np.full_like(gradient, np.sqrt(np.mean(gradient**2)))  # nothing is known of it: as large as itself
        return PointValue(
            iteration.value, float(max(sample.lower.error, sample.upper.error)), half, scale, gradient, error,
            tuple(iterations), status, detail, (float(sample.lower.mean), float(sample.upper.mean)),
        )  # fmt: skip
