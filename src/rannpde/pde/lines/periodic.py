"""Passes for periodic problems: as many Fourier modes as the solution needs at every time.

Modes are added on the way, whenever the highest quarter of them is more than a small share of the solution: a function
keeps its coefficients exactly when zeros are appended, so that the change of basis costs nothing. A second pass, with
more modes and a tighter tolerance, gives the error estimate and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from rannpde.pde.lines.evolved import Evolved, Stretch, difference
from rannpde.pde.lines.fourier import Modes, Spectral
from rannpde.pde.lines.march import CALLER
from rannpde.pde.lines.passes import ESTIMATE_SHARE, TIGHTER, Controls, Outcome, Pass, check_points, initial_scales
from rannpde.pde.problem.evolution import Component, Evolution

FIRST_MODES = {1: 16, 2: 8, 3: 4}
MOST_MODES = {1: 1024, 2: 48, 3: 12}
TAIL_SHARE = 0.1
"""Share of the tolerance that the highest quarter of the modes may hold."""
GROWTH = 1.5
MOST_PASSES = 4


def by_modes(evolution: Evolution, controls: Controls) -> Outcome:
    """Passes with Fourier modes."""
    scales = initial_scales(evolution)
    highest = _first_modes(evolution, scales, controls.tol)
    solutions: list[Evolved] = []
    passes: list[Pass] = []
    for number in range(MOST_PASSES):
        begin = perf_counter()
        tol = controls.tol / (TIGHTER if number else 1.0)
        solution = _march(evolution, scales, highest, tol, controls, number)
        change = np.inf
        if solutions:
            points = check_points(evolution, min(one.stretches[-1].path.reliable for one in (solutions[-1], solution)))
            change = max(difference(solutions[-1], solution, points).values())
        solutions.append(solution)
        last = solution.stretches[-1]
        assert isinstance(last.system, Spectral)
        modes, steps = last.system.modes, sum(stretch.path.steps for stretch in solution.stretches)
        passes.append(
            Pass(
                tol,
                last.system.count,
                last.system.count,
                len(modes.points),
                steps,
                last.path.reason,
                change,
                perf_counter() - begin,
            )
        )
        full = modes.highest >= MOST_MODES[modes.dim] and number > 0
        if change <= controls.tol or full or last.path.reason.startswith(CALLER) or (number and last.path.broken):
            break
        highest = min(int(np.ceil(1.3 * modes.highest)), MOST_MODES[modes.dim])
    first, last = solutions[-1].stretches[0], solutions[-1].stretches[-1]
    growth = first.system.growth(first.path.times[0], first.system.initial_state())
    reached = passes[-1].difference <= controls.tol
    reason = last.path.reason or ("" if reached else f"the last two passes differ by {passes[-1].difference:.1e}")
    estimate = ESTIMATE_SHARE * passes[-1].difference
    return Outcome(solutions[-1], tuple(passes), estimate, growth, reason, reached and not last.path.reason)


def _bounds(evolution: Evolution) -> tuple[tuple[float, float], ...]:
    return tuple((float(lower), float(upper)) for lower, upper in evolution.domain.space.bounds)


def _first_modes(evolution: Evolution, scales: Mapping[Component, float], tol: float) -> int:
    """Enough for the initial data, as far as that is possible."""
    bounds = _bounds(evolution)
    highest, most = FIRST_MODES[len(bounds)], int(MOST_MODES[len(bounds)] / 1.3)
    while highest < most:
        system = Spectral(evolution, Modes(bounds, highest), scales)
        if system.tail(system.initial_state()) <= TAIL_SHARE * tol:
            break
        highest = min(2 * highest, most)
    return highest


def _march(
    evolution: Evolution, scales: Mapping[Component, float], highest: int, tol: float, controls: Controls, number: int
) -> Evolved:
    bounds = _bounds(evolution)
    most = int(MOST_MODES[len(bounds)] / (1.0 if number else 1.3))  # the second pass must be the finer one
    start, end = evolution.domain.time
    system = Spectral(evolution, Modes(bounds, highest), scales)
    state, first_step = system.initial_state(), None
    stretches: list[Stretch] = []
    while True:
        room = system.modes.highest < most

        def too_fine(state: np.ndarray, system: Spectral = system, room: bool = room) -> bool:
            return room and system.tail(state) > TAIL_SHARE * tol

        march = controls.march(tol, number, system)
        path = march.run(system, (start, end), state, stop=too_fine, first_step=first_step)
        if path.steps or not stretches:
            stretches.append(Stretch(system, path))
        if path.reason != "stopped" or path.end >= end:
            return Evolved(evolution, tuple(stretches))
        larger = Modes(bounds, min(int(np.ceil(GROWTH * system.modes.highest)), most))
        parts = path.last.reshape(-1, system.count)
        state = np.concatenate([system.modes.embed(part, larger) for part in parts])
        start, first_step = path.end, path.end - path.times[-2]
        system = Spectral(evolution, larger, scales)
