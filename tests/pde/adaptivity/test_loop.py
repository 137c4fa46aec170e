"""The adaptive loop on a toy: piecewise constant approximation of √x, whose indicators are exact errors."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.adaptivity.loop import AdaptiveLoop, AdaptiveRecord, Inadmissible, OutOfBudget, doerfler
from rannpde.pde.monitor import Status


class Steps:
    """Means of √x on cells of [0, 1]; the resolution is the array of their ends."""

    def __init__(self, most=10_000, stop_after=10**9):
        self.most, self.left = most, stop_after

    def solve(self, resolution):
        self.left -= 1
        if self.left < 0:
            raise OutOfBudget
        return resolution

    def indicators(self, now):
        a, b = now[:-1], now[1:]
        mean = 2 / 3 * (b**1.5 - a**1.5) / (b - a)
        return np.maximum((b**2 - a**2) / 2 - mean**2 * (b - a), 0.0)

    def estimate(self, before, now):
        return float(np.sqrt(self.indicators(now).sum()))

    def refine(self, resolution, now, marked):
        middles = 0.5 * (now[:-1] + now[1:])[marked]
        finer = np.sort(np.concatenate([now, middles]))
        return finer if len(finer) <= self.most else None


def run(toy, tol, over=lambda: None, verdict=None, record=None, better=None, **settings):
    """The iterations are the estimates; half of the error is marked, as constants need it for optimal meshes."""
    return AdaptiveLoop(**{"most": 200, "theta": 0.5, **settings}).run(
        toy, np.linspace(0, 1, 3), tol, over, lambda now, estimate, seconds: estimate, verdict, record, better
    )


def test_it_refines_towards_the_singularity_until_the_error_is_reached():
    found = run(Steps(), 1e-3)
    assert found.status is Status.CONVERGED
    assert found.estimate <= 1e-3
    assert np.diff(found.best)[0] < 0.05 * np.diff(found.best).max()
    assert list(found.iterations) == sorted(found.iterations, reverse=True)


def test_it_is_of_the_optimal_order():
    sizes = [len(run(Steps(), tol).best) for tol in (1e-2, 1e-3)]
    assert 8 < sizes[1] / sizes[0] < 14  # error ~ 1/cells, though √x is only in H^1-


def test_it_ends_when_nothing_finer_is_allowed_or_time_is_up():
    assert run(Steps(most=20), 1e-6).status is Status.STALLED
    assert run(Steps(), 1e-6, over=lambda: Status.INTERRUPTED).status is Status.INTERRUPTED
    stopped = run(Steps(stop_after=4), 1e-6)
    assert stopped.status is Status.BUDGET
    assert len(stopped.iterations) == 4
    with pytest.raises(OutOfBudget):
        run(Steps(stop_after=0), 1e-6)


def test_it_gives_up_without_progress_and_keeps_the_best():
    class Stuck(Steps):
        def estimate(self, before, now):
            return 0.1 if len(now) == 4 else 0.5

    found = run(Stuck(), 1e-3, patience=3)
    assert found.status is Status.STALLED
    assert "does not lower" in found.detail
    assert found.estimate == 0.1


def test_a_method_may_add_checks_and_choose_what_is_best():
    """A verdict that never converges, and the latest state as the best one."""
    record = AdaptiveRecord()
    late = run(Steps(most=40), 1e-1, verdict=lambda now, estimate: None, record=record, better=lambda *_: True)
    assert late.status is Status.STALLED
    assert late.best is record.last
    assert run(Steps(), 0.0, verdict=lambda now, estimate: Status.UNDETERMINED).status is Status.UNDETERMINED


def test_a_resolution_without_a_solution_leaves_the_one_before():
    class Breaks(Steps):
        def solve(self, resolution):
            if len(resolution) > 6:
                raise Inadmissible(Status.INTEGRATOR, "no step")
            return resolution

    found = run(Breaks(), 1e-6)
    assert (found.status, found.detail) == (Status.INTEGRATOR, "no step")
    assert len(found.best) <= 6


def test_marking_takes_the_fewest_that_hold_the_share():
    rng = np.random.default_rng(0)
    for _ in range(50):
        indicators = rng.random(20) ** 4
        marked = doerfler(indicators, 0.6)
        assert indicators[marked].sum() >= 0.6 * indicators.sum()
        assert indicators[marked].sum() - indicators[marked].min() < 0.6 * indicators.sum()
    assert not doerfler(np.zeros(4), 0.5).any()
