"""Step-size control: dyadic steps, their tolerances, and the cache of factorisations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rannpde.pde.time.control import DyadicController, FactorCache, TrialStep, step_factor

WAIT = 16


def controller(
    span: float, parts: int, level: int, tol: float, order: int, patience: int = 1
) -> DyadicController[None]:
    return DyadicController(span, parts, level, tol, order, wait=WAIT, futile=0.8, patience=patience)


def trial(steps: DyadicController[None], error: float) -> TrialStep[None]:
    return TrialStep(steps.level, steps.position, error, None)


@settings(max_examples=50, deadline=None)
@given(some.integers(0, 6), some.sampled_from([1, 3]), some.integers(0, 10**6))
def test_steps_fill_the_time_exactly(level: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, passed = controller(2.0, parts, level, 1e-3, 4), 0.0
    for _ in range(2000):
        if not steps.left:
            break
        assert abs(steps.time - passed) < 1e-12
        step = steps.decide(trial(steps, 1e-3 * 10 ** rng.uniform(-4, 0.5)))
        if step is not None:
            passed += steps.span / (parts * 2**step.level)
            steps.advance(step)
    assert steps.left or abs(passed - 2.0) < 1e-12


def test_errors_that_do_not_fall_with_the_step_are_those_of_space() -> None:
    steps = controller(1.0, 1, 6, 1e-6, 4)
    first = trial(steps, 1e-3)
    assert steps.decide(first) is None
    assert steps.level > 6
    assert steps.decide(trial(steps, 1e-3)) is first
    steps.advance(first)
    assert (steps.level, steps.position) == (6, 1)
    again = trial(steps, 1.2e-3)
    assert steps.decide(again) is again
    steps.advance(again)
    assert (steps.level, steps.position) == (5, 1)


def test_steps_grow_by_four_or_with_patience_by_two() -> None:
    steps = controller(1.0, 1, 10, 1e-6, 4, patience=4)
    levels = []
    for _ in range(8):
        levels.append(steps.level)
        steps.advance(trial(steps, 1e-12))
    assert levels == [10, 10, 10, 10, 8, 8, 8, 6]
    steps = controller(1.0, 1, 10, 1e-6, 4, patience=4)
    for _ in range(4):
        assert steps.level == 10
        steps.advance(trial(steps, 0.01 * steps.allowed(steps.level, steps.position)))
    assert steps.level == 9


@pytest.mark.parametrize("level", [4, 12])
def test_early_steps_may_err_more_and_leave_little_over_the_whole_time(level: int) -> None:
    steps = controller(1.0, 1, level, 1e-6, 4)
    errors = np.array([steps.allowed(level, position) for position in range(2**level)])
    assert errors[-1] == 1e-6
    assert np.sqrt(np.mean(errors**2)) < 1e-6 * np.sqrt(1 + np.log(2**level))


def test_steps_are_shorter_for_a_while_where_newton_failed() -> None:
    steps = controller(1.0, 1, 3, 1e-6, 4)
    steps.corrections_failed()
    assert steps.level == 6
    for _ in range(WAIT - 2):
        steps.advance(trial(steps, 1e-12))
        assert steps.level > 3
    steps.level = 60
    assert steps.too_short


def test_the_step_factor_gives_the_error_that_is_allowed() -> None:
    """An error of h^order, at h times the factor, is the allowed one times safety^order."""
    for order in (2, 4, 10):
        factor = step_factor(1e-6, 1e-9, order, safety=0.9)
        assert 1e-9 * factor**order == pytest.approx(1e-6 * 0.9**order)
    assert np.isfinite(step_factor(1e-6, 0.0, 4))


def test_the_cache_holds_the_factors_of_the_last_lengths() -> None:
    cache = FactorCache[str](capacity=2)
    for step in (1.0, 0.5):
        cache[step] = str(step)
    cache.make_room()
    assert cache.get(1.0) is None
    assert cache[0.5] == "0.5"
    cache.drop(0.5)
    cache.drop(0.25)  # which is not there
    assert not list(cache)
