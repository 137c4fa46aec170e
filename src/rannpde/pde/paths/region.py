"""The solution on a region as a network: paths that begin in a cloud, and the mean square error from pairs of them.

Models are trained from starts all over the region. On fresh paths the value V of each is unbiased for u(0, x) at its
start (up to the remainder of the linearisation), so that the network at s = 0 is corrected by the regression of
V - û_0(x). Two independent paths a, b from one start x have E[R_a R_b] = (u - û_0)²(x), R = V - û_0(x): their mean
over the region is the mean square error of the network, without noise in its expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import Ended, checkpoint
from rannpde.domains.domain import Domain
from rannpde.errors import InputError, finite_points, reject, require
from rannpde.network.storage import floats
from rannpde.pde.monitor import Status, status_of
from rannpde.pde.paths.adaptive import PointSearch
from rannpde.pde.paths.forward import follow, follow_euler
from rannpde.pde.paths.grid import NormalDraws
from rannpde.pde.paths.inner import inner_coordinates
from rannpde.pde.paths.intervals import PathsIteration
from rannpde.pde.paths.layer import PathLayer
from rannpde.pde.paths.network import PathNetwork
from rannpde.pde.paths.recognition import process_of
from rannpde.pde.paths.regression import PathsModel
from rannpde.pde.paths.ridge import RidgeRegression
from rannpde.pde.paths.statistics import SampleMoments, pairs
from rannpde.pde.paths.trainer import PathsResolution, PathStart, TrainedPair
from rannpde.pde.paths.tuning import PathsTuning
from rannpde.pde.paths.workers import parallel
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import GAIN
from rannpde.threads import one_thread

REGION_ERROR_POINTS = 256
"""Random points of a region at which the error of a network is measured: their number limits how well its mean square
is known to 2·√(2/256) of itself if errors are normal, which is added."""


@dataclass(frozen=True, eq=False)
class RegionNetwork:
    """u at one time on a region of R^d: the mean of two networks, with the root mean square of its error.

    half_width : half the width of the interval of each value, at the confidence asked for
    """

    networks: tuple[PathNetwork, PathNetwork]
    time: float
    half_width: float
    confidence: float

    @property
    def dim(self) -> int:
        return 1 + self.networks[0].layer.process.dim

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(network.layer.columns for network in self.networks)

    def _states(self, points: Array) -> Array:
        points = finite_points("points", points, None)
        if points.shape[1] == self.dim:
            same = np.abs(points[:, 0] - self.time) <= 1e-12 * (1 + abs(self.time))
            require(bool(same.all()), "the time of points", points[0, 0], f"{self.time:g}, for which it was solved")
            points = points[:, 1:]
        if points.shape[1] != self.dim - 1:
            reject("points with shape", points.shape, f"of shape (M, {self.dim - 1}) or (M, {self.dim})")
        return self.networks[0].layer.process.start(points)

    def __call__(self, points: Array) -> Array:
        """The values (M, 1) at points."""
        state = self._states(points)
        return np.mean([network.value(state) for network in self.networks], axis=0)[:, None]

    def gradient(self, points: Array) -> Array:
        """The gradients (M, d) at states."""
        state = self._states(points)
        gradient: Array = np.mean([network.gradient(state) for network in self.networks], axis=0)
        return gradient

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        if not any(derivative):
            return self(points)
        if sum(derivative) > 1 or derivative[0]:
            reject("derivative", derivative, "none, or one first derivative in space")
        return self.gradient(points)[:, [derivative.index(1) - 1]]

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header: dict[str, Any] = {
            "function": "region", "time": self.time, "half_width": self.half_width, "confidence": self.confidence,
            "layers": [],
        }  # fmt: skip
        arrays: dict[str, Array] = {}
        for k, network in enumerate(self.networks):
            layer = network.layer
            header["layers"].append([layer.s, layer.linear, *layer.noise_to_come, layer.squares])
            for name in _ARRAYS:
                arrays[f"{k}.{name}"] = np.asarray(getattr(layer, name), dtype=float)
            arrays[f"{k}.weights"] = network.weights
        return header, arrays


_ARRAYS = ("centre", "scale", "inner_mean", "inner_scale", "directions", "mix", "bias")


def unpack_region(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> RegionNetwork:
    """The network that ``pack`` made; its inner coordinates are those of the problem."""
    if problem is None or problem.parabolic is None:
        raise InputError("the file holds no problem made of text; pass problem=… to load")
    form = problem.parabolic
    process, inner = process_of(form), inner_coordinates(form, PathsTuning().softness)
    networks = []
    for k, (s, linear, *to_come) in enumerate(header["layers"]):
        own = [floats(arrays, f"{k}.{name}") for name in _ARRAYS]
        centre, scale, mean, deviation, directions, mix, bias = own
        layer = PathLayer(
            form, process, float(s), centre, scale, inner, mean, deviation, directions, mix, bias, bool(linear),
            (float(to_come[0]), float(to_come[1])), bool(to_come[2]) if len(to_come) > 2 else False,
        )  # fmt: skip
        weights = floats(arrays, f"{k}.weights", (layer.columns,))
        networks.append(PathNetwork(layer, weights, weights))
    return RegionNetwork(
        (networks[0], networks[1]), float(header["time"]), float(header["half_width"]), float(header["confidence"])
    )


def cloud(region: Domain) -> PathStart:
    """Starts all over a region, each twice: those of an antithetic pair."""

    def start(count: int, rng: np.random.Generator) -> Array:
        half = region.sample(count // 2, rng=rng)
        return np.concatenate([half, half])

    return start


@dataclass(frozen=True)
class RegionResult:
    """The network and how it came about."""

    network: RegionNetwork
    estimate: float
    iterations: tuple[PathsIteration, ...]
    status: Status
    detail: str


@dataclass(frozen=True, eq=False)
class RegionSearch:
    """Train models as for a value, but for as many numbers as a network has weights; correct them with fresh paths, in
    every iteration four times as many, until the mean square error is small enough; train wider ones where that is in
    vain.
    """

    search: PointSearch

    def run(self) -> RegionResult:
        with one_thread(), np.errstate(all="ignore"):
            return self._run()

    def _run(self) -> RegionResult:
        search, monitor = self.search, self.search.monitor
        iterations: list[PathsIteration] = []
        trained = search.first()
        if search.fixed is None:
            trained = search.refine(trained, iterations)
        needed, scale, ended = search.needed(trained), 1.0, None
        paths = max(4 * search.trainer.tuning.pilot, needed if needed <= search.most_paths else 0)
        best: RegionNetwork | None = None
        wider: PathsResolution | None = None
        before = inf
        while True:
            try:
                if wider is not None:
                    trained, wider = search.trainer.solve(wider), None
                networks = self._corrected(trained, paths)
                error, scale = self._error(trained, networks, paths)
            except Ended as stop:
                if best is None:
                    raise
                ended = stop  # the network of the iteration before is kept
                break
            in_time = abs(float(trained.sample.in_time.mean))
            biased = in_time + trained.regression + abs(trained.shift)
            half = search.quantile * error + biased
            iterations.append(self._iteration(trained, paths, scale, in_time, search.quantile * error))
            if best is None or half < best.half_width:
                best = RegionNetwork(networks, search.trainer.form.first_time, half, search.confidence)
            if best.half_width <= search.tol * scale or monitor.exhausted or paths >= search.most_paths:
                break
            if error > GAIN * before:  # four times the paths should halve the error: the layer is too small
                r = trained.resolution
                wider = search.trainer.resolution(r.steps, r.substeps, 2 * r.width, 2)
            before = error
            paths = min(4 * paths, search.most_paths)
        assert best is not None
        estimate = best.half_width / scale if scale > 0 else inf
        if isfinite(estimate) and estimate <= search.tol:
            status, detail = Status.CONVERGED, "the root mean square error on the region is within the tolerance"
        else:
            status = Status.BUDGET if monitor.exhausted else Status.STALLED
            detail = f"the error on the region is estimated as {estimate:.1e}, relative; more paths or time may help"
            if ended is not None:
                status, detail = status_of(ended)[0], status_of(ended)[1] or detail
        return RegionResult(best, estimate, tuple(iterations), status, detail)

    def _iteration(
        self, trained: TrainedPair, paths: int, scale: float, in_time: float, sampling: float
    ) -> PathsIteration:
        r, bias = trained.resolution, trained.regression + abs(trained.shift)
        return PathsIteration(
            r.steps, r.width, r.training, paths, scale, in_time, bias, sampling, self.search.monitor.elapsed,
            self.search.confidence,
        )  # fmt: skip

    def _values(self, model: PathsModel, start: Array, seed: int) -> Array:
        """Unbiased values (M/2,) of the antithetic pairs that begin at ``start`` (M, d)."""
        draws = NormalDraws(seed, len(start), model.process.normal_count())
        return pairs((follow if model.process.exact else follow_euler)(model, start, draws).value)

    def _corrected(self, trained: TrainedPair, paths: int) -> tuple[PathNetwork, PathNetwork]:
        """The networks at the start, each corrected by the regression of what fresh paths say on its own columns.

        The penalty of the regression keeps weights for which the paths do not suffice as they were.
        """
        rows = self.search.trainer.rows

        def one(model: PathsModel, seeds: Array) -> PathNetwork:
            network = model.networks[0]
            layer, size = network.layer, network.layer.columns + 1
            count, total, products = 0, np.zeros(size), np.zeros((size, size))
            for seed in seeds:
                checkpoint()
                start = self.search.trainer.start(rows, np.random.default_rng((int(seed), 1)))
                columns = layer.values(model.process.start(start[: rows // 2]))
                missing = self._values(model, start, int(seed)) - columns @ network.weights
                joined = np.column_stack([columns, missing])
                count, total = count + len(joined), total + joined.sum(axis=0)
                products += joined.T @ joined
            mean = total / count
            covariance = products / count - mean[:, None] * mean
            regression = RidgeRegression.of_moments(
                mean[:-1], covariance[:-1, :-1], count, self.search.trainer.tuning.penalty
            )
            weights = network.weights + regression.weights(covariance[:-1, -1], mean[-1], covariance[-1, -1])
            return PathNetwork(layer, weights, weights)

        count = max(1, paths // (2 * rows))
        seeds = self.search.trainer.rng.integers(2**62, size=(2, count))
        first, second = parallel(lambda k: one(trained.models[k], seeds[k]), range(2))
        return first, second

    def _error(
        self, trained: TrainedPair, networks: tuple[PathNetwork, PathNetwork], paths: int
    ) -> tuple[float, float]:
        """Root mean square error of the mean of the networks on the region, with two standard errors, and that of u.

        At random points, two independent means of many paths have the product (u - û_0)² in expectation, with a noise
        of (variance of a path)/(paths of a point): few points with many paths are better than many with two. Paths are
        followed until that noise is a quarter of what is asked for, or the error surely larger than that, or until they
        are as many as the correction had.
        """
        search, process = self.search, trained.models[0].process
        points = search.trainer.start(2 * REGION_ERROR_POINTS, search.trainer.rng)[:REGION_ERROR_POINTS]
        state = process.start(points)
        known = np.mean([network.value(state) for network in networks], axis=0)
        square = float(np.mean(known**2))
        asked = (search.tol / search.quantile) ** 2 * square
        total, repeats = np.zeros((2, REGION_ERROR_POINTS)), 0
        while True:
            checkpoint()
            start = np.concatenate([points, points])
            seeds = search.trainer.rng.integers(2**62, size=(2, 2))

            def both(k: int, start: Array = start, seeds: Array = seeds) -> Array:
                return np.sum([self._values(trained.models[k], start, int(seed)) for seed in seeds[k]], axis=0)

            total += np.stack(parallel(both, range(2)))
            repeats += 2
            one, other = total / repeats - known
            product = SampleMoments.of(one * other)
            noise = 2 * float(product.error)
            enough = (
                4 * noise <= asked or float(product.mean) - noise > asked or 4 * repeats * REGION_ERROR_POINTS >= paths
            )
            if enough or search.monitor.exhausted:
                break
        # a mean square is not negative: what the noise made of it is not taken from its standard errors
        return float(np.sqrt(max(float(product.mean), 0.0) + noise)), float(np.sqrt(square))


def region_search(search: PointSearch, region: Domain) -> RegionSearch:
    """A search on a region, with the settings of one at a point."""
    trainer = replace(search.trainer, start=cloud(region))
    width = (search.fixed or trainer.first_resolution()).width
    return RegionSearch(replace(search, trainer=trainer, unknowns=trainer.columns(width)))
