"""Growth of perturbations and the propagated defect, beside what is known of both in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np
import pytest

from rannpde.pde.time.dynamics import DenseJacobian, random_multiples
from rannpde.pde.time.integrator import TimeIntegrator


@dataclass(frozen=True)
class Attracted:
    """y' = rate(t) (y - c) + c', c = 2 + cos 3t, whose solution is c; a perturbation grows like exp(∫ rate)."""

    rate: Callable[[float], float]

    def rates(self, times, states):
        rates = np.array([self.rate(time) for time in times])
        return rates * (states - 2 - np.cos(3 * times)) - 3 * np.sin(3 * times)

    def jacobian(self, time, state):
        return DenseJacobian(np.array([[self.rate(time)]]))

    def size(self, change):
        return float(np.abs(change).max()) / 2

    def perturbation(self, state, rng):
        return random_multiples(state, rng)


def integrated(system, tol, longest=np.inf):
    """The trajectory on (0, 1), with what it measured."""
    integrator = TimeIntegrator(tol, longest_step=lambda t: longest, growth=True, defect=True)
    return integrator.run(system, (0.0, 1.0), np.array([3.0]))


@pytest.mark.parametrize(("first", "last", "rate"), [(0.2, 0.4, 30.0), (0.5, 0.9, 17.0), (0.05, 0.1, 140.0)])
def test_growth_of_perturbations_that_arise_at_any_time(first, last, rate):
    """What is damped before and after is seen as it grows in between, to the accuracy of the steps."""
    growth = integrated(Attracted(lambda t: rate if first < t < last else -50.0), 1e-4, longest=0.01).growth
    wanted = exp(rate * (last - first))
    assert 0.3 * wanted < growth < 3 * wanted


@pytest.mark.parametrize("rate", [-1e5, -3.0, 0.0])
def test_what_is_damped_does_not_grow(rate):
    assert integrated(Attracted(lambda t: rate), 1e-5).growth == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("rate", [-1e4, -30.0, 2.0])
def test_the_propagated_defect_is_the_error_in_time(rate, tol):
    """The largest error in each step, in the mean square over time, up to the shape of the defect within steps."""
    path = integrated(Attracted(lambda t: rate), tol)
    times = np.linspace(0.0, 1.0, 2001)
    errors = np.abs(path(times)[0] - 2 - np.cos(3 * times)) / 2
    steps = np.clip(np.searchsorted(path.times, times, side="left") - 1, 0, len(path.steps) - 1)
    largest = np.array([errors[steps == number].max(initial=0.0) for number in range(len(path.steps))])
    wanted = float(np.sqrt(np.sum(largest**2 * np.diff(path.times))))
    assert wanted / 10 < path.error + 1e-14 < 10 * wanted + 1e-13
