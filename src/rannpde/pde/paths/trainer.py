"""The step SOLVE: two independent models of one resolution, and independent new paths that measure their error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from os import cpu_count

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, reserve
from rannpde.pde.monitor import Monitor
from rannpde.pde.paths.euler import EulerProcess
from rannpde.pde.paths.forward import follow, follow_euler, remainder
from rannpde.pde.paths.grid import NormalDraws, TimeGrid
from rannpde.pde.paths.inner import InnerCoordinate, inner_coordinates
from rannpde.pde.paths.layer import LayerLaw, layer_law
from rannpde.pde.paths.processes import PathProcess
from rannpde.pde.paths.regression import PathsModel, train
from rannpde.pde.paths.statistics import PathSample
from rannpde.pde.paths.tuning import PathsTuning
from rannpde.pde.paths.walls import NO_WALLS, walls_of
from rannpde.pde.paths.workers import parallel
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import KINKS

PathStart = Callable[[int, np.random.Generator], Array]
"""``count`` points (count, d) where paths begin, the second half like the first."""


def fixed_start(point: Array) -> PathStart:
    """All paths begin at one point (d,)."""
    return lambda count, rng: np.tile(point, (count, 1))


@dataclass(frozen=True)
class PathsResolution:
    """The resolution of an iteration: time steps, substeps of Euler's method, neurons, training paths."""

    steps: int
    substeps: int
    width: int
    training: int


@dataclass(frozen=True, eq=False)
class TrainedPair:
    """Two independent models of one resolution, with the cost of their training and evaluation.

    sample : of the new paths of a pilot run; remainder : least and largest bias that the linearisation may have left
    training_seconds : for both; path_seconds : for one new path
    """

    models: tuple[PathsModel, PathsModel]
    resolution: PathsResolution
    sample: PathSample
    remainder: tuple[float, float]
    training_seconds: float
    path_seconds: float

    @property
    def shift(self) -> float:
        """The middle of the remainders that are possible, which is added to the mean of the paths."""
        return 0.5 * (self.remainder[0] + self.remainder[1])

    @property
    def regression(self) -> float:
        """The bias that may be left beside the shift."""
        return 0.5 * (self.remainder[1] - self.remainder[0])


@dataclass(frozen=True, eq=False)
class PairTrainer:
    """Trains pairs of models for paths from one start, within the memory allowed.

    most_paths : fresh paths of a pilot at most
    """

    form: Parabolic
    process: PathProcess
    start: PathStart
    most_paths: int
    tuning: PathsTuning
    rng: np.random.Generator
    monitor: Monitor

    def first_resolution(self) -> PathsResolution:
        tuning = self.tuning
        return self.resolution(tuning.first_steps, 1 if self.process.exact else 2, tuning.first_width)

    def smallest_resolution(self) -> PathsResolution:
        """Half the steps, few neurons, and four training paths for every column."""
        first = self.first_resolution()
        small = self.resolution(first.steps // 2, first.substeps, first.width // 8)
        return replace(small, training=4 * self.columns(small.width))

    def columns(self, width: int) -> int:
        """Columns of the regressions."""
        return self._law(width).columns(self.inner, self.process.dim)

    def resolution(self, steps: int, substeps: int, width: int, factor: int = 1) -> PathsResolution:
        dim, tuning = self.process.dim, self.tuning
        columns = self.columns(width)
        enough = factor * tuning.paths_per_column * columns
        affordable = int(self._memory // (4 * (steps + 1) * dim + 4 * FLOAT_BYTES * (columns + dim)))
        return PathsResolution(steps, substeps, width, 2 * max(min(enough, affordable) // 2, 2 * columns))

    @property
    def _memory(self) -> float:
        """Bytes for the training of one model: two of them are trained at once, beside blocks of fresh paths."""
        allowed = self.monitor.budget.memory
        return self.tuning.memory if allowed is None else min(self.tuning.memory, allowed / 4)

    @property
    def rows(self) -> int:
        """Fresh paths of a block."""
        size = min(self.tuning.block, self._memory / 8)
        return 2 * max(int(size // (8 * self.process.dim * 4)), 64)

    @property
    def inner(self) -> tuple[InnerCoordinate, ...]:
        """The inner coordinates of the problem."""
        return inner_coordinates(self.form, self.tuning.softness)

    def _law(self, width: int) -> LayerLaw:
        return layer_law(width, self.inner, self.process.dim, self.tuning.linear_share, self.tuning.sparse)

    @property
    def kinked(self) -> bool:
        return self.form.data.has(*KINKS)

    def solve(
        self, resolution: PathsResolution, guides: tuple[PathsModel, PathsModel] | None = None, pilot: int | None = None
    ) -> TrainedPair:
        """Two models and their pilot; earlier models guide training paths where f has a gradient."""
        begin = self.monitor.elapsed
        tuning, process = self.tuning, self.process
        if isinstance(process, EulerProcess):
            process = process.with_substeps(resolution.substeps)
        grid = TimeGrid(self.form.length, resolution.steps, 2 if self.kinked else 1)
        law = self._law(resolution.width)
        seeds = self.rng.spawn(2)
        numbers = (resolution.steps + 1) * process.dim / 2 + 4 * (self.columns(resolution.width) + process.dim)
        reserve(2 * FLOAT_BYTES * resolution.training * numbers, "the training of two models")
        walls = walls_of(self.form, self.process, self.start(64, self.rng)) if self.form.walls else NO_WALLS

        def trained_model(k: int) -> PathsModel:
            seed = seeds[k]
            guide = guides[k] if guides is not None and self.form.source.has("gradient") else None
            start = self.start(resolution.training, seed)
            return train(self.form, process, grid, start, law, self.inner, tuning.penalty, seed, walls, guide)

        first, second = parallel(trained_model, range(2))
        training = self.monitor.elapsed - begin
        sample = self.follow((first, second), min(pilot or tuning.pilot, self.most_paths), self.rng)
        following = self.monitor.elapsed - begin - training
        bias = self._remainder(first, second, sample)
        pair = TrainedPair((first, second), resolution, sample, bias, training, following / (2 * sample.value.count))
        self.monitor.tell(1, resolution.steps, width=resolution.width, estimate=None)
        return pair

    def follow(self, models: tuple[PathsModel, PathsModel], count: int, rng: np.random.Generator) -> PathSample:
        """At least ``count`` fresh paths, half of them by each model, in blocks that fit the memory."""
        rows = self.rows
        blocks = max(2, 2 * ceil(count / (2 * rows)))
        rows = 2 * ceil(count / blocks / 2)
        seeds = rng.integers(2**62, size=blocks)
        total: PathSample | None = None
        workers = cpu_count() or 1
        for first in range(0, blocks, 2 * workers):
            chosen = range(first, min(first + 2 * workers, blocks))
            for block in parallel(lambda k: self._block(models[k % 2], rows, int(seeds[k])), chosen):
                total = block if total is None else total + block
            if self.monitor.exhausted:
                break
        assert total is not None
        return total

    def _block(self, model: PathsModel, rows: int, seed: int) -> PathSample:
        start = self.start(rows, np.random.default_rng((seed, 1)))
        draws = NormalDraws(seed, rows, model.process.normal_count())
        sums = follow(model, start, draws) if model.process.exact else follow_euler(model, start, draws)
        return PathSample.of(sums)

    def _remainder(self, first: PathsModel, second: PathsModel, sample: PathSample) -> tuple[float, float]:
        """The least and the largest error of the linearisation.

        It is computed for the difference of the two models, and scaled to the error that the residual of the new paths
        allows: the variance of that residual is E ∫ |√a ∇(u - û)|² ds plus the noise of finite steps. The mean square
        of the difference of two independent models is twice that of the error of one.
        """
        if not self.form.source.has("field", "gradient"):
            return 0.0, 0.0
        rows = min(self.tuning.pilot // 2, self.rows)
        draws = NormalDraws(int(self.rng.integers(2**62)), rows, first.process.normal_count())
        left = remainder(first, second, self.start(rows, self.rng), draws)
        scale = max(sample.residual / left.energy, 0.5) if left.energy > 0 else 0.0
        return -scale * left.below, scale * left.above
