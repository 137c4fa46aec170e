"""Iterations in Fourier modes: as many of them as the solution needs at every time, along every axis.

Modes are added on the way, whenever the highest eighth of them is more than a small share of the solution: a function
keeps its coefficients exactly when zeros are appended, so that the change of basis costs nothing. The next iteration
has more modes than that from its beginning, for what is cut off while modes are added may grow, and a tighter
tolerance; it gives the error estimate and the answer. In several dimensions a first one with a loose tolerance finds
out how many.

Data that repeat themselves g times along an axis keep doing so, and are solved on the g-th part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from scipy import fft

from rannpde.arrays import Array
from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.iterations import Grown, Setting, first_scales, with_speeds
from rannpde.pde.lines.march import March, stages_of
from rannpde.pde.lines.periodic.equations import Equations
from rannpde.pde.lines.periodic.kept import KeptStep
from rannpde.pde.lines.periodic.modes import EXACT, AxisBounds, Modes, periodic_grid
from rannpde.pde.lines.periodic.spectral import HIGH, Spectral
from rannpde.pde.lines.radau import Polynomial
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.residual import field_sizes

FINE_MODES = {1: 2**14, 2: 2**9, 3: 2**6}
"""Points per axis of the grid on which the data of a problem are looked at."""
PRESENT = 1e-13
"""Modes below this share of the data are rounding."""
EVALUATIONS = 5
"""Of the rates for a step of ETDRK4 with what is rejected, and for a stage of collocation."""
PACE = 0.05
"""Share of the work allowed that must have been done before the pace is judged."""
MOST_PASSES = 4
"""Each has more modes than the one before: what four do not settle is no matter of modes."""


@dataclass
class Work:
    """Values on grids that a march has transformed, and that it has before it at the pace of its last step.

    each : values of a step
    """

    end: float
    each: float = 0.0
    spent: float = 0.0
    ahead: float = 0.0

    def count(self, step: Polynomial) -> None:
        """A step was made."""
        self.spent += self.each
        self.ahead = self.each * (self.end - step.t) / (step.t - step.t_old)


class FourierModes:
    """Iterations with as many Fourier modes as the solution needs at every time."""

    def __init__(self, evolution: Evolution, setting: Setting, rng: np.random.Generator | None = None) -> None:
        """Nothing is drawn: ``rng`` is there for the other kinds' sake."""
        self.evolution, self.setting, tuning = evolution, setting, setting.tuning
        self.equations = Equations.of(evolution)
        self.dim = evolution.domain.space.dim
        powers = range(0 if self.dim == 1 else -tuning.scouting, MOST_PASSES, 1)
        self.tolerances = tuple(setting.tol / tuning.mode_tighter**k for k in powers if k >= 0 or k == powers[0])
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.grown: Grown | None = None
        self.most = tuning.most_modes[self.dim - 1]
        self.parities = self.equations.parities
        self.bounds, wanted, rough = self._of_data()
        most = min(int(self.most / tuning.mode_step), tuning.rough_modes[self.dim - 1] if rough else self.most)
        self.highest = tuple(min(one, most) for one in wanted)
        self.rough, self.tol, self.work = rough, setting.tol, Work(evolution.domain.time[1])
        if setting.integrator is None:
            explicit = self.dim > 1 and (setting.tol >= tuning.exponential_from or self.equations.stiff)
            # iterations of what is linear with constant coefficients end with the first
            explicit = explicit and not self.equations.linear
            self.setting = replace(setting, integrator="ETDRK4" if explicit else "RadauIIA")

    def run(self, number: int, tol: float) -> Evolved:
        """The march over the whole time, in stretches of constant modes."""
        self.tol, self.work = tol, Work(self.evolution.domain.time[1])
        start, end = self.evolution.domain.time
        system = self._system(self.highest)
        if number == 1:
            self.scales = with_speeds(system.scales, pulls(system))
            system = replace(system, scales=self.scales)
        state, first_step = system.initial_state(), None
        stretches: list[Stretch] = []
        while True:
            last, larger = state, system.modes.highest

            def too_fine(now: Array, system: Spectral = system) -> bool:
                nonlocal last, larger
                last, larger = now, self._larger(system, now)
                return larger != system.modes.highest or (self.rough and system.modes.padding < EXACT)

            path = self._march(tol, number, system).run(
                system, (start, end), state, stop=too_fine, first_step=first_step
            )
            if path.steps or not stretches:
                stretches.append(Stretch(system, path))
            if path.status is not None or path.end >= end:
                return Evolved(self.evolution, tuple(stretches))
            before, system = system.modes, self._system(larger)
            state = system.modes.fitted(last.reshape(-1, *before.shape), before.highest).ravel()
            start, first_step = path.end, path.end - path.times[-2]

    def _larger(self, system: Spectral, state: Array) -> tuple[int, ...]:
        """The highest modes that the state asks for, if the work allows them; else the solution counts as rough."""
        tuning, highest = self.setting.tuning, system.modes.highest
        short = system.tails(state) > tuning.tail_share * self.tol
        if self.rough or not short.any():
            return highest
        # an iteration of the tolerance wanted must leave room for a finer one
        most = int(self.most / (1.0 if self.tol < self.setting.tol else tuning.mode_step))
        wanted = [
            int(np.ceil(tuning.mode_growth * high)) if few else high for high, few in zip(highest, short, strict=True)
        ]
        larger = tuple(min(high, most) for high in wanted)
        growth = float(np.prod(larger)) / float(np.prod(highest))
        self.rough = larger == highest or (self.dim > 1 and self._too_dear(growth))
        return highest if self.rough else larger

    def _too_dear(self, growth: float) -> bool:
        """Whether that many times the modes would take too long from here on, at the present pace.

        Steps are short at the start, and modes few: a pace counts when something has been spent at it.
        """
        work, most = self.work, self.setting.tuning.growth_work
        return work.spent > PACE * most and work.ahead * growth > most

    def _system(self, highest: tuple[int, ...]) -> Spectral:
        """Aliases of quadratic terms are kept out where modes are cheap, or too few; else they are as small as what
        the modes leave out."""
        exact = self.dim == 1 or self.rough
        padding = EXACT if exact else self.setting.tuning.resolved_padding
        modes = Modes(self.bounds, highest, padding, self.parities)
        return Spectral(self.equations, modes, self.scales)

    def _march(self, tol: float, number: int, system: Spectral) -> March:
        tuning = self.setting.tuning
        march = self.setting.march(tol, number, system, self.grown)
        points = float(np.prod(system.modes.grid_shape)) * system.transforms
        self.work.each = points * (EVALUATIONS if march.integrator == "ETDRK4" else EVALUATIONS * stages_of(march.tol))

        def keep(step: Polynomial) -> KeptStep:
            self.work.count(step)
            return system.kept(step, tuning.kept_share * tol)

        return replace(march, keep=keep, most_evaluations=np.inf if self.dim == 1 else tuning.most_work / points)

    def learn(self, solution: Evolved, failed: bool) -> bool:
        """More modes for the next iteration; False where there cannot be more, or where more do not resolve the
        solution."""
        last = solution.stretches[-1].system
        assert isinstance(last, Spectral)
        self.scales, self.grown = _scales(solution), Grown.of(solution, self.setting.tuning)
        step = self.setting.tuning.mode_step
        self.highest = tuple(min(int(np.ceil(step * high)), self.most) for high in last.modes.highest)
        again = self.rough and self.dim > 1 and self.tol <= self.setting.tol
        return not (again or (failed and max(last.modes.highest) >= self.most))

    # ------------------------------------------------------------------------------------------------ the data

    @property
    def fine(self) -> int:
        """Points per axis of the grid on which the data are looked at: between mirrors, of twice the box."""
        return FINE_MODES[self.dim] * (2 if self.parities and self.dim < 3 else 1)

    def _of_data(self) -> tuple[AxisBounds, tuple[int, ...], bool]:
        """The box that the data repeat, the highest modes that they hold there, and whether no grid resolves them.

        Data: initial values, sources and coefficients.
        """
        tuning, bounds, fine = self.setting.tuning, whole_period(self.evolution), self.fine
        numbers = np.abs(fft.fftfreq(fine, 1.0 / fine)).round().astype(int)
        highest = [tuning.first_modes[self.dim - 1]] * self.dim
        repeats = [0] * self.dim
        for values in space_fields(self.evolution, periodic_grid(bounds, (fine,) * self.dim)):
            power = np.abs(fft.fftn(values.reshape((fine,) * self.dim))) ** 2
            total = float(power.sum())
            for axis in range(self.dim if total > 0 else 0):
                along = power.sum(axis=tuple(k for k in range(self.dim) if k != axis))
                by_order = np.bincount(numbers, weights=along, minlength=fine // 2 + 1)
                repeats[axis] = gcd(repeats[axis], *np.flatnonzero(by_order > PRESENT**2 * total).tolist())
                above = np.sqrt(np.append(np.cumsum(by_order[::-1])[::-1][1:], 0.0) / total)
                # the highest eighth of the modes is to hold less than its share: so much room above the data
                resolved = int(np.argmax(above <= max(tuning.tail_share * self.setting.tol, 1e-14)))
                highest[axis] = max(highest[axis], int(np.ceil(resolved / HIGH)))
        rough = max(highest) >= fine // 2
        return *self._repeated(bounds, highest, repeats), rough

    def _repeated(
        self, bounds: AxisBounds, highest: list[int], repeats: list[int]
    ) -> tuple[AxisBounds, tuple[int, ...]]:
        """The part of the box that the data repeat, if they do at places that are on no grid too."""
        points = self.evolution.domain.space.sample(200, rng=7)
        here = list(space_fields(self.evolution, points))
        found = list(bounds)
        for axis, repeat in enumerate(repeats):
            if repeat < 2:
                continue
            (lower, upper), moved = bounds[axis], points.copy()
            moved[:, axis] = lower + (moved[:, axis] - lower + (upper - lower) / repeat) % (upper - lower)
            pairs = zip(here, space_fields(self.evolution, moved), strict=True)
            if all(np.abs(one - other).max() <= 1e-11 * np.abs(one).max() for one, other in pairs):
                found[axis] = (lower, lower + (upper - lower) / repeat)
                highest[axis] = max(self.setting.tuning.first_modes[self.dim - 1], -(-highest[axis] // repeat))
        return tuple(found), tuple(highest)


def pulls(system: Spectral) -> dict[Component, float]:
    """The root mean square of each rate at the start."""
    time, state = np.array([system.evolution.domain.time[0]]), system.initial_state()
    sizes = system.modes.norms(system.rates(time, state[:, None])[:, 0].reshape(-1, *system.modes.shape))
    return dict(zip(system.evolution.components, sizes, strict=True))


def whole_period(evolution: Evolution) -> AxisBounds:
    """The box, or twice the box where its walls are mirrors."""
    pairs = ((float(lower), float(upper)) for lower, upper in evolution.domain.space.bounds)
    return tuple((a, a + 2.0 * (b - a)) if evolution.mirrors is not None else (a, b) for a, b in pairs)


def _scales(solution: Evolved) -> dict[Component, float]:
    """Sizes of the components (root mean square over space), the largest at the ends and middles of all steps."""
    found: dict[Component, float] = {}
    for stretch in solution.stretches:
        for step in stretch.path.steps:
            assert isinstance(step, KeptStep)
            for weights in step.weights(np.array([0.5 * (step.t_old + step.t), step.t]), 0):
                modes, tables = step.summed(weights)
                for component, size in zip(solution.evolution.components, modes.norms(tables), strict=False):
                    found[component] = max(found.get(component, 0.0), float(size))
    sizes = field_sizes(np.array(list(found.values())))  # what is rounding has no size of its own
    return {component: float(size) or 1.0 for component, size in zip(found, sizes, strict=True)}
