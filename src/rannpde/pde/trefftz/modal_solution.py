"""Solutions of linear evolutions in eigenfunctions, with their errors.

The equation and the conditions on the walls hold exactly; the error is that of the initial values, carried along by
exp(M(w)t). For the heat equation the maximum principle bounds it everywhere by the largest error at the start; waves
conserve its energy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import Ball
from rannpde.pde.trefftz.adaptive import INSIDE_POINTS
from rannpde.pde.trefftz.evolution import ModalProblem
from rannpde.pde.trefftz.modal import ModalFlow, ModalNetwork


@dataclass(frozen=True, eq=False)
class ModalResult:
    """A network with its relative error in L², the number of eigenfunctions, and a bound where there is one.

    initial, largest : the relative error of the initial values; amplification : of them, at later times
    """

    network: ModalNetwork
    estimate: float
    initial: float
    largest: float
    amplification: float
    scale: float
    bound: float | None


def modal_solution(given: ModalProblem, tol: float, rng: np.random.Generator) -> Iterator[ModalResult]:
    """Solutions with more and more eigenfunctions, until there are too many."""
    duration = given.domain.time[1] - given.domain.time[0]
    fresh = given.domain.space.sample(4 * INSIDE_POINTS, rng=rng, method="sobol")
    wanted, load_wanted = given.initial(fresh), given.load(fresh)
    inside = given.domain.sample(INSIDE_POINTS, rng=rng, method="sobol")
    lift, quadrature = given.lift, 0.0
    if given.measured is not None:
        measured, quadrature = given.measured.refined(inside, tol)
        lift = (measured,)
    for modes in given.modes(tol, rng):
        checkpoint()
        nodes = modes.nodes()
        values, loads = given.initial(nodes), given.load(nodes)
        every = range(values.shape[1])
        initial = np.stack([modes.projected(values[:, k]) for k in every], axis=1)
        load = np.stack([modes.projected(loads[:, k]) for k in every], axis=1)
        load[np.abs(load) <= 1e-15 * np.abs(loads).max(initial=0.0)] = 0.0
        sizes = [np.abs(one) / np.maximum(np.linalg.norm(one, axis=0), 1e-300) for one in (initial, load)]
        size = np.concatenate(sizes, axis=1).max(axis=1)
        small = size < tol / modes.count  # all of them together are far below the tolerance
        outer, dropped = modes.edge, np.linalg.norm(initial[small], axis=0)
        initial[small], load[small] = 0.0, 0.0
        modes, numbers = modes.trimmed(~small)
        initial, load = initial[numbers], load[numbers]
        flow = ModalFlow.of(given.matrices(modes))
        if flow.defective_load(load):
            return
        parts = flow.parts(initial, load, modes, given.shown)
        network = ModalNetwork(modes, tuple(parts), lift, given.domain.time[0], given.domain.dim)
        amplification = flow.amplification(duration, given.shown)
        result = _judged(
            given, network, flow, (fresh, wanted, load_wanted), (initial, load), inside, amplification, (outer, dropped)
        )
        bound = None if result.bound is None else result.bound + quadrature
        yield replace(result, estimate=result.estimate + quadrature / result.scale, bound=bound)


def _judged(
    given: ModalProblem,
    network: ModalNetwork,
    flow: ModalFlow,
    fresh: tuple[Array, Array, Array],
    coefficients: tuple[Array, Array],
    inside: Array,
    amplification: Array,
    omitted: tuple[float, Array],
) -> ModalResult:
    """The result with its estimate: the error of initial values and loads at new points, times the largest gain.

    omitted : the frequency beyond which all modes are left out, and the size of others that are, for each component
    """
    points, wanted, load_wanted = fresh
    modes, duration = network.modes, given.domain.time[1] - given.domain.time[0]
    still = (0,) * points.shape[1]
    left = modes.plain(points, still, coefficients[0]) - wanted
    unloaded = modes.plain(points, still, coefficients[1]) - load_wanted
    scale = float(np.sqrt(np.mean(np.square(network(inside)), axis=0)).max()) or 1.0
    # a load of the modes that are left out acts for the time in which these forget it
    outer, dropped = omitted
    acting = min(duration, 2 / given.slowest(outer))
    initial_errors = np.sqrt(np.mean(np.square(left), axis=0))
    if given.diffusive:  # they are forgotten: over the whole time little is left of a jump
        rate = 2 * given.slowest(outer) * duration
        rest = np.square(dropped) / given.domain.space.measure
        initial_errors = np.sqrt(np.square(initial_errors) * -np.expm1(-rate) / rate + rest)
    errors = initial_errors + acting * np.sqrt(np.mean(np.square(unloaded), axis=0))
    turning = float(np.abs(flow.rates.imag).max(initial=0.0)) if np.iscomplexobj(flow.rates) else 0.0
    size = np.abs(coefficients[0]).max(axis=0)
    rounding = np.finfo(float).eps * (1 + turning * duration) * float(size @ amplification) / scale
    rounding /= np.sqrt(given.domain.space.measure)
    estimate = float(errors @ amplification) / scale + rounding
    bound = None
    if given.diffusive and all(h >= 0 for pair in given.walls.box for h in pair):
        bound = _largest(given, network) + acting * float(np.abs(unloaded).max(initial=0.0))
    largest = float(np.abs(left).max(initial=0.0)) / scale
    return ModalResult(network, estimate, float(errors[0]) / scale, largest, float(amplification.max()), scale, bound)


def _largest(given: ModalProblem, network: ModalNetwork) -> float:
    """The largest error of the initial values: on a grid, and what second differences allow between its points."""
    space = given.domain.space
    count = {1: 2000, 2: 60, 3: 16}[space.dim]
    if isinstance(space, Ball) and space.dim == 2:
        r, turn = np.linspace(0, space.radius, count), np.arange(count) * 2 * np.pi / count
        arrows = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        points = np.asarray(space.centre) + (r[:, None, None] * arrows).reshape(-1, 2)
    else:
        points = combinations([np.linspace(a, b, count) for a, b in space.bounds])
    timed = np.concatenate([np.full((len(points), 1), given.domain.time[0]), points], axis=1)
    exact = given.evolution.initial_values(given.evolution.components[0], points)
    error = (network(timed)[:, 0] - exact).reshape([count] * space.dim)
    between = sum(float(np.abs(np.diff(error, 2, axis=axis)).max(initial=0.0)) for axis in range(space.dim)) / 8
    return float(np.abs(error).max()) + between
