"""Iterations in Fourier modes: as many of them as the solution needs at every time, along every axis.

Modes are added during the integration, whenever the highest eighth of them is more than a small share of the solution:
appending zeros keeps a function exactly, so that the change of basis costs nothing. The next iteration starts with more
modes than that, since what is truncated while modes are added may grow, and with a smaller tolerance; it gives the
error estimate and the solution. In several dimensions a pilot iteration with a loose tolerance determines the number
of modes.

Data of period L/g along an axis of length L keep that period, and the problem is solved on one period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from scipy import fft

from rannpde.arrays import Array
from rannpde.pde.lines.fourier.equations import Equations
from rannpde.pde.lines.fourier.modes import EXACT, AxisBounds, FourierBasis, periodic_grid, whole_period
from rannpde.pde.lines.fourier.steps import TruncatedStep
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.settings import IterationSettings, RunningAmplitude, first_scales, with_initial_rates
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.residual import field_sizes
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.integrator import TimeIntegrator
from rannpde.pde.time.tableau import stages_for
from rannpde.pde.tolerance import ALGEBRA_SHARE, MUCH_SMALLER, TAIL_START

DATA_GRID = {1: 2**14, 2: 2**9, 3: 2**6}
"""Points per axis of the grid on which the data of a problem are sampled, by dimension."""
MODE_ROUNDING = 1e-13
"""Modes below this share of the data are rounding."""
EVALUATIONS = 5
"""Evaluations of the rates in a step of ETDRK4, rejected steps included, and for a stage of collocation."""
MOST_FOURIER_ITERATIONS = 4
"""Each has more modes than the one before: where four do not agree, more modes would not help."""


@dataclass
class Work:
    """Values on grids that an integration has transformed, and those still to come at the pace of its last step.

    each : values transformed in one step
    """

    end: float
    each: float = 0.0
    spent: float = 0.0
    ahead: float = 0.0

    def count(self, step: LegendreStep) -> None:
        """Count a step."""
        self.spent += self.each
        self.ahead = self.each * (self.end - step.t) / (step.t - step.t_old)


class FourierDiscretisation:
    """Iterations with as many Fourier modes as the solution needs at every time."""

    def __init__(
        self, evolution: Evolution, settings: IterationSettings, rng: np.random.Generator | None = None
    ) -> None:
        """Nothing is sampled; ``rng`` is there for the sake of the other discretisations."""
        self.evolution, self.settings, tuning = evolution, settings, settings.tuning
        self.equations = Equations.of(evolution)
        self.dim = evolution.domain.space.dim
        powers = range(0 if self.dim == 1 else -tuning.pilot_power, MOST_FOURIER_ITERATIONS, 1)
        self.tolerances = tuple(settings.tol / tuning.tolerance_factor**k for k in powers if k >= 0 or k == powers[0])
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.amplitude: RunningAmplitude | None = None
        self.most = tuning.most_modes[self.dim - 1]
        self.parities = self.equations.parities
        self.bounds, wanted, rough = self._of_data()
        most = min(int(self.most / tuning.growth), tuning.rough_modes[self.dim - 1] if rough else self.most)
        self.highest = tuple(min(one, most) for one in wanted)
        self.rough, self.tol, self.work = rough, settings.tol, Work(evolution.domain.time[1])
        if settings.integrator is None:
            explicit = self.dim > 1 and (settings.tol >= tuning.exponential_above or self.equations.stiff)
            # the simplified Newton method is exact for linear equations with constant coefficients
            explicit = explicit and not self.equations.linear
            self.settings = replace(settings, integrator="ETDRK4" if explicit else "RadauIIA")

    def run(self, number: int, tol: float) -> SpaceTimeSolution:
        """The solution over the whole time, in segments with constant numbers of modes."""
        self.tol, self.work = tol, Work(self.evolution.domain.time[1])
        start, end = self.evolution.domain.time
        system = self._system(self.highest)
        if number == 1:
            self.scales = with_initial_rates(system.scales, initial_rates(system))
            system = replace(system, scales=self.scales)
        state, first_step = system.initial_state(), None
        segments: list[TimeSegment] = []
        while True:
            last, larger = state, system.modes.highest

            def too_fine(now: Array, system: FourierSystem = system) -> bool:
                nonlocal last, larger
                last, larger = now, self._larger(system, now)
                return larger != system.modes.highest or (self.rough and system.modes.padding < EXACT)

            trajectory = self._integrator(tol, number, system).run(
                system, (start, end), state, stop=too_fine, first_step=first_step
            )
            if trajectory.steps or not segments:
                segments.append(TimeSegment(system, trajectory))
            if trajectory.status is not None or trajectory.end >= end:
                return SpaceTimeSolution(self.evolution, tuple(segments))
            before, system = system.modes, self._system(larger)
            state = system.modes.resized(last.reshape(-1, *before.shape), before.highest).ravel()
            start, first_step = trajectory.end, trajectory.end - trajectory.times[-2]

    def _larger(self, system: FourierSystem, state: Array) -> tuple[int, ...]:
        """The highest modes that the state needs, if the work allows them; else the solution counts as rough."""
        tuning, highest = self.settings.tuning, system.modes.highest
        short = system.tails(state) > ALGEBRA_SHARE * self.tol
        if self.rough or not short.any():
            return highest
        # an iteration of the tolerance wanted must leave room for a finer one
        most = int(self.most / (1.0 if self.tol < self.settings.tol else tuning.growth))
        wanted = [int(np.ceil(tuning.growth * high)) if few else high for high, few in zip(highest, short, strict=True)]
        larger = tuple(min(high, most) for high in wanted)
        growth = float(np.prod(larger)) / float(np.prod(highest))
        self.rough = larger == highest or (self.dim > 1 and self._too_costly(growth))
        return highest if self.rough else larger

    def _too_costly(self, growth: float) -> bool:
        """Whether ``growth`` times as many modes would take too much work from here on, at the present pace.

        Steps are short at the start, and modes are few: the pace counts only after a share of the work.
        """
        work, most = self.work, self.settings.tuning.growth_work
        return work.spent > MUCH_SMALLER * most and work.ahead * growth > most

    def _system(self, highest: tuple[int, ...]) -> FourierSystem:
        """The system with these highest modes.

        Aliasing of quadratic terms is avoided where modes are cheap, or too few; else it is as small as the modes that
        are left out.
        """
        exact = self.dim == 1 or self.rough
        padding = EXACT if exact else self.settings.tuning.resolved_padding
        modes = FourierBasis(self.bounds, highest, padding, self.parities)
        return FourierSystem(self.equations, modes, self.scales)

    def _integrator(self, tol: float, number: int, system: FourierSystem) -> TimeIntegrator:
        tuning = self.settings.tuning
        integrator = self.settings.time_integrator(tol, number, system, self.amplitude)
        points = float(np.prod(system.modes.grid_shape)) * system.transforms
        stages = 1 if integrator.integrator == "ETDRK4" else stages_for(integrator.tol)
        self.work.each = points * EVALUATIONS * stages

        def store(step: LegendreStep) -> TruncatedStep:
            self.work.count(step)
            return system.truncated(step, ALGEBRA_SHARE * tol)

        return replace(integrator, store=store, most_evaluations=np.inf if self.dim == 1 else tuning.most_work / points)

    def adapt(self, solution: SpaceTimeSolution, failed: bool) -> bool:
        """More modes for the next iteration; False where there cannot be more, or where more would not resolve the
        solution."""
        last = solution.segments[-1].system
        assert isinstance(last, FourierSystem)
        self.scales, self.amplitude = _scales(solution), RunningAmplitude.of(solution, self.settings.tuning)
        step = self.settings.tuning.growth
        self.highest = tuple(min(int(np.ceil(step * high)), self.most) for high in last.modes.highest)
        again = self.rough and self.dim > 1 and self.tol <= self.settings.tol
        return not (again or (failed and max(last.modes.highest) >= self.most))

    # ------------------------------------------------------------------------------------------------ the data

    @property
    def fine(self) -> int:
        """Points per axis of the grid on which the data are sampled; with reflection symmetry, of twice the box."""
        return DATA_GRID[self.dim] * (2 if self.parities and self.dim < 3 else 1)

    def _of_data(self) -> tuple[AxisBounds, tuple[int, ...], bool]:
        """The period of the data (initial values, sources, coefficients), their highest modes, and whether no grid
        resolves them."""
        tuning, bounds, fine = self.settings.tuning, whole_period(self.evolution), self.fine
        numbers = np.abs(fft.fftfreq(fine, 1.0 / fine)).round().astype(int)
        highest = [tuning.first_modes[self.dim - 1]] * self.dim
        repeats = [0] * self.dim
        for values in space_fields(self.evolution, periodic_grid(bounds, (fine,) * self.dim)):
            power = np.abs(fft.fftn(values.reshape((fine,) * self.dim))) ** 2
            total = float(power.sum())
            for axis in range(self.dim if total > 0 else 0):
                along = power.sum(axis=tuple(k for k in range(self.dim) if k != axis))
                by_order = np.bincount(numbers, weights=along, minlength=fine // 2 + 1)
                repeats[axis] = gcd(repeats[axis], *np.flatnonzero(by_order > MODE_ROUNDING**2 * total).tolist())
                above = np.sqrt(np.append(np.cumsum(by_order[::-1])[::-1][1:], 0.0) / total)
                # the highest eighth of the modes must hold less than its share: room above the modes of the data
                resolved = int(np.argmax(above <= max(ALGEBRA_SHARE * self.settings.tol, 1e-14)))
                highest[axis] = max(highest[axis], int(np.ceil(resolved / TAIL_START)))
        rough = max(highest) >= fine // 2
        return *self._repeated(bounds, highest, repeats), rough

    def _repeated(
        self, bounds: AxisBounds, highest: list[int], repeats: list[int]
    ) -> tuple[AxisBounds, tuple[int, ...]]:
        """The period of the data, if random points off the grid confirm it, and its highest modes."""
        points = self.evolution.domain.space.sample(200, rng=7)
        here = list(space_fields(self.evolution, points))
        repeated = list(bounds)
        for axis, repeat in enumerate(repeats):
            if repeat < 2:
                continue
            (lower, upper), moved = bounds[axis], points.copy()
            moved[:, axis] = lower + (moved[:, axis] - lower + (upper - lower) / repeat) % (upper - lower)
            pairs = zip(here, space_fields(self.evolution, moved), strict=True)
            if all(np.abs(one - other).max() <= 1e-11 * np.abs(one).max() for one, other in pairs):
                repeated[axis] = (lower, lower + (upper - lower) / repeat)
                highest[axis] = max(self.settings.tuning.first_modes[self.dim - 1], -(-highest[axis] // repeat))
        return tuple(repeated), tuple(highest)


def initial_rates(system: FourierSystem) -> dict[Component, float]:
    """The root mean square of the rate of each component at the start."""
    time, state = np.array([system.evolution.domain.time[0]]), system.initial_state()
    sizes = system.modes.norms(system.rates(time, state[:, None])[:, 0].reshape(-1, *system.modes.shape))
    return dict(zip(system.evolution.components, sizes, strict=True))


def _scales(solution: SpaceTimeSolution) -> dict[Component, float]:
    """Sizes of the components (root mean square over space), the largest at the ends and midpoints of all steps."""
    largest: dict[Component, float] = {}
    for segment in solution.segments:
        for step in segment.trajectory.steps:
            assert isinstance(step, TruncatedStep)
            for weights in step.weights(np.array([0.5 * (step.t_old + step.t), step.t]), 0):
                modes, tables = step.summed(weights)
                for component, size in zip(solution.evolution.components, modes.norms(tables), strict=False):
                    largest[component] = max(largest.get(component, 0.0), float(size))
    sizes = field_sizes(np.array(list(largest.values())))  # a component that is rounding has no size of its own
    return {component: float(size) or 1.0 for component, size in zip(largest, sizes, strict=True)}
