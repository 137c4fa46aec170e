"""Forward in time, on fresh paths: an estimate whose error is of second order in that of the networks.

The networks û leave a defect ρ_n = û_{n+1}(X_{n+1}) - û_n(X_n) - M_n + ½h (f_n + f_{n+1}) along a path. Linearised at
û, the equation says what a defect at s_n means for the value at the start: it counts with the weight

    W_n = exp(∫ f_u ds + ∫ θ·dW - ½∫|θ|² ds) ,   √a θ = f_z ,

so that u(0, x) = û_0(x) + E Σ W_n ρ_n + O(‖u - û‖²): one Newton step, which for linear equations is exact. The part of
W with θ grows like exp(½∫|θ|²) in variance, and is therefore not a weight: the increments of the paths are tilted,
ΔW = noise + θh (Girsanov), and the tilt of a single step is taken back for the defect of that step. Fresh paths are
independent of û, whence M_n has mean zero, and the standard error of the mean is honest. Steps come in pairs, over
which f is integrated by Simpson's rule; the difference from a step of twice the length is the error in time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.paths.euler import EulerProcess
from rannpde.pde.paths.grid import NormalDraws
from rannpde.pde.paths.linearisation import SourceLinearisation, bounded_tilt, linearised
from rannpde.pde.paths.network import NetworkReading
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.paths.regression import PathsModel, data_values
from rannpde.rounding import EPS

LARGEST_GROWTH = -np.log(EPS)
"""Exponent of the weight of a path at most: beside a larger one the weights of all others are rounding."""


@dataclass(frozen=True)
class PathSums:
    """The contributions (M,) of the paths of a block to the estimates.

    value : the estimate; in_time, before : what a step of twice the length changes, and what doubling it once more
        does; residual : Σ W ρ by the
        trapezoidal rule, whose noise the martingale increments explain
    score, score_in_time (M, d) : what the gradient at the start is the mean of, before it is turned into one, and what
        a step of twice the length changes in it
    mean_square : mean square of u along the paths
    """

    value: Array
    in_time: Array
    before: Array
    residual: Array
    score: Array
    score_in_time: Array
    mean_square: float


@dataclass(frozen=True)
class PathsAtNode:
    """Paths at one node: state, the move to the next, what the network and the source are there, and the tilt θ (M, d)
    of the Brownian increments of the move, None where f has no gradient.
    """

    state: Array
    point: Array
    move: PathStep | None
    read: NetworkReading
    source: SourceLinearisation
    tilt: Array | None


def paths_at_node(model: PathsModel, process: PathProcess, draws: NormalDraws, n: int, state: Array) -> PathsAtNode:
    """The paths at node n, whose step is drawn; at the last node the data stand for the network."""
    form, nodes = model.form, model.grid.nodes
    s, slopes = float(nodes[n]), model.form.source.has("gradient")
    if n == model.grid.steps:
        point = process.point(state)
        value, gradient = data_values(form, point, slopes)
        none = np.zeros(len(state))
        source = linearised(form, s, point, value, gradient)
        return PathsAtNode(state, point, None, NetworkReading(value, gradient, none, none), source, None)
    h, own = float(nodes[n + 1] - nodes[n]), model.networks[n].at(state)
    point, slope = own.features.point, own.gradient if slopes else None
    source = linearised(form, s, point, own.value, slope)
    normals, tilt = draws.normals(n), None
    if source.by_gradient is not None:
        tilt = bounded_tilt(process.pull(s, point, source.by_gradient), h)
        parts = normals.shape[1] // process.dim
        normals = normals + np.tile(tilt, parts) * np.sqrt(h / parts)
    move = process.step(s, h, state, normals)
    increment, along = own.moved(move, h)
    return PathsAtNode(state, point, move, NetworkReading(own.value, slope, increment, along), source, tilt)


def follow(model: PathsModel, start: Array, draws: NormalDraws, process: PathProcess | None = None) -> PathSums:
    """Fresh paths from ``start`` (M, d); another process of the same law than the model's may be given.

    With walls, what lies behind a step counts with the probability that it touched none; paths that are outside have
    weight zero, and go on from their start, where all formulas are known.
    """
    process = model.process if process is None else process
    grid, count, origin = model.grid, len(start), process.start(start)
    coarser = np.stack([grid.rule(k) - grid.rule(2 * k) for k in (1, 2)])
    weight, held, waiting = np.ones(count), np.ones((2, count)), np.zeros((2, count))
    residual, doubled, in_time = np.zeros(count), np.zeros((2, count)), np.zeros((2, count))
    mean_square, trapezoidal = 0.0, np.zeros(count)
    first = here = paths_at_node(model, process, draws, 0, origin)
    score: tuple[Array, Array] | None = None
    for n in range(0, grid.steps, 2):
        checkpoint()
        pair = follow_pair(model, process, draws, n, here, origin)
        middle, there = pair.middle, pair.there
        growth, later = weight * pair.keep[0] * np.exp(pair.growth[0]), pair.growth[0] + pair.growth[1]
        in_time += np.outer(coarser[:, n], weight * here.source.value)
        in_time += np.outer(coarser[:, n + 1], growth * middle.source.value)
        share = float(grid.nodes[n + 2] - grid.nodes[n]) / grid.length
        mean_square += share * float(np.mean(weight * here.read.value**2))
        residual += weight * pair.back * pair.defect
        trapezoidal += weight * pair.back * pair.trapezoidal
        doubled += held * pair.back * pair.defect
        if score is None:
            score = _scores(first, pair, float(grid.nodes[1]), grid.pair_rule(0))
            rest = residual.copy()
        alive = pair.keep[0] * pair.keep[1]
        weight = weight * alive * np.exp(np.minimum(later, LARGEST_GROWTH))
        held, waiting = held * alive, waiting + later + pair.other_tilt
        for k, length in enumerate((4, 8)):  # weights and tilts as steps of twice and four times the length have them
            if (n + 2) % length == 0:
                held[k] *= np.exp(np.minimum(waiting[k], LARGEST_GROWTH))
                waiting[k] = 0.0
        here = there
    in_time += np.outer(coarser[:, -1], weight * here.source.value)
    in_time += np.stack([residual - doubled[0], doubled[0] - doubled[1]])
    assert score is not None
    assert first.move is not None
    noise = first.move.brownian / float(grid.nodes[1])
    noise = noise if first.tilt is None else noise - first.tilt
    own = residual - rest
    value = first.read.value + residual
    scores = score[0] + (own - own.mean())[:, None] * noise
    return PathSums(value, in_time[0], in_time[1], trapezoidal, scores, score[1], mean_square)


@dataclass(frozen=True)
class StepPair:
    """Two steps: their nodes, the probabilities to survive each, the growth ∫ f_u of each.

    back : the weight that takes their tilts back; defect, trapezoidal : of both steps, with Simpson's rule and with the
    rule of the regressions; other_tilt : the logarithm of the weight of a tilt that stays the same for both
    """

    middle: PathsAtNode
    there: PathsAtNode
    keep: tuple[Array | float, Array | float]
    growth: tuple[Array, Array]
    back: Array
    defect: Array
    trapezoidal: Array
    other_tilt: Array | float


def follow_pair(
    model: PathsModel, process: PathProcess, draws: NormalDraws, n: int, here: PathsAtNode, origin: Array
) -> StepPair:
    """The steps from node n to n + 2. Simpson's rule is taken under the law without tilt, as the defect is."""
    nodes, rule = model.grid.nodes, model.grid.pair_rule(n)
    lengths = float(nodes[n + 1] - nodes[n]), float(nodes[n + 2] - nodes[n + 1])
    first, middle = _next(model, process, draws, n, here, origin)
    second, there = _next(model, process, draws, n + 1, middle, origin)
    defect = second * (there.read.value + rule[2] * there.source.value) - middle.read.increment
    defect = first * (defect + rule[1] * middle.source.value)
    defect += rule[0] * here.source.value - here.read.value - here.read.increment
    moved = [rule[0] - 0.5 * lengths[0], rule[1] - 0.5 * sum(lengths), rule[2] - 0.5 * lengths[1]]
    trapezoidal = defect - moved[0] * here.source.value
    trapezoidal -= first * (moved[1] * middle.source.value + second * moved[2] * there.source.value)
    growth = [
        np.minimum(0.5 * h * (one.source.by_value + other.source.by_value), LARGEST_GROWTH)
        for h, one, other in ((lengths[0], here, middle), (lengths[1], middle, there))
    ]
    back = single_step_weight(here, lengths[0]) * single_step_weight(middle, lengths[1])
    other = _other_tilt(middle, here.tilt, lengths[1])
    return StepPair(middle, there, (first, second), (growth[0], growth[1]), back, defect, trapezoidal, other)


def _next(
    model: PathsModel, process: PathProcess, draws: NormalDraws, n: int, here: PathsAtNode, origin: Array
) -> tuple[Array | float, PathsAtNode]:
    """The probability to survive the step from node n, and the paths at the next."""
    assert here.move is not None
    moved, keep = here.move.state, 1.0
    if model.walls.pairs:
        alive = model.walls.survival(here.state, moved, float(model.grid.nodes[n + 1] - model.grid.nodes[n]))
        moved = np.where((alive > 0)[:, None], moved, origin)
        return alive, paths_at_node(model, process, draws, n + 1, moved)
    return keep, paths_at_node(model, process, draws, n + 1, moved)


def single_step_weight(here: PathsAtNode, h: float) -> Array:
    """exp(-θ·ΔW + ½h|θ|²): what takes the tilt of one step back."""
    if here.tilt is None or here.move is None:
        return np.ones(len(here.state))
    along = np.einsum("ij,ij->i", here.tilt, here.move.brownian)
    weight: Array = np.exp(0.5 * h * np.einsum("ij,ij->i", here.tilt, here.tilt) - along)
    return weight


def _other_tilt(here: PathsAtNode, other: Array | None, h: float) -> Array | float:
    """The logarithm of the weight by which a step has another tilt than its own."""
    if here.tilt is None or other is None or here.move is None:
        return 0.0
    change = other - here.tilt
    noise = here.move.brownian - h * here.tilt
    return np.einsum("ij,ij->i", change, noise) - 0.5 * h * np.einsum("ij,ij->i", change, change)


def _scores(first: PathsAtNode, pair: StepPair, h: float, rule: Array) -> tuple[Array, Array]:
    """(M, d): E[V ΔW]/h of the first two steps, and its change with the rule in time.

    Their defect has the law without tilt, for which ΔW/h is the score. f at the start does not move with the noise: it
    is extrapolated from the next two nodes, and from the next one for the change in time. Of the first increment only
    ∇û·noise has a known correlation with the noise, so that the rest of it is put back: its even terms cancel in
    antithetic pairs.
    """
    assert first.move is not None
    noise = first.move.brownian / h
    middle = pair.keep[0] * pair.middle.source.value
    there = pair.keep[0] * pair.keep[1] * pair.there.source.value
    defect = pair.defect + first.read.increment - first.read.along + rule[0] * (2 * middle - there)
    change = rule[0] * (middle - there)
    score = (pair.back * (defect - defect.mean()))[:, None] * noise
    return score, (pair.back * (change - change.mean()))[:, None] * noise


def follow_euler(model: PathsModel, start: Array, draws: NormalDraws) -> PathSums:
    """Sums over fresh paths of Euler's steps, extrapolated from twice as many substeps on the same Brownian paths.

    Half the extrapolation counts as an error in time, which is a third of what is given back, as for the other parts.
    """
    process = model.process
    assert isinstance(process, EulerProcess)
    finer = process.with_substeps(2 * process.substeps)
    small = NormalDraws(draws.seed, draws.count, finer.normal_count(), antithetic=draws.antithetic)
    fine = follow(model, start, small, finer)
    coarse = follow(model, start, small.paired(process.dim))
    change = fine.value - coarse.value
    in_time, before = fine.in_time + 3 / 2 * change, fine.before + 6 * change
    return replace(fine, value=fine.value + change, in_time=in_time, before=before)


@dataclass(frozen=True)
class LinearisationRemainder:
    """The remainder of the linearisation, for perturbations of the size of the difference of two models.

    above, below : means of the positive and of the negative part of ∫ W (f(û + δ) - f(û) - f'(û)δ) ds, δ the
        difference, each with two standard errors; where f is convex or concave in u and ∇u one of them is zero
    energy : E ∫ |√a ∇δ|² ds
    """

    above: float
    below: float
    energy: float


def remainder(model: PathsModel, other: PathsModel, start: Array, draws: NormalDraws) -> LinearisationRemainder:
    """Along fresh paths; ``other`` is an independent realisation on the same nodes."""
    process, grid, form = model.process, model.grid, model.form
    slopes = form.source.has("gradient")
    above, below, energy = np.zeros(len(start)), np.zeros(len(start)), 0.0
    origin = state = process.start(start)
    for n in range(grid.steps):
        checkpoint()
        here = paths_at_node(model, process, draws, n, state)
        h = float(grid.nodes[n + 1] - grid.nodes[n])
        assert here.move is not None
        second = other.networks[n].at(state)
        change, slope = second.value - here.read.value, second.gradient if slopes else None
        moved = linearised(form, float(grid.nodes[n]), here.point, second.value, slope)
        left = moved.value - here.source.value - here.source.by_value * change
        if here.source.by_gradient is not None:
            assert slope is not None
            assert here.read.gradient is not None
            left -= np.einsum("ij,ij->i", here.source.by_gradient, slope - here.read.gradient)
        above += h * np.maximum(left, 0.0)
        below += h * np.maximum(-left, 0.0)
        difference = second.moved(here.move, h)[1] - here.read.along
        energy += float(np.mean(single_step_weight(here, h) * difference**2))
        state = here.move.state
        if model.walls.pairs:
            state = np.where((model.walls.survival(here.state, state, h) > 0)[:, None], state, origin)
    larger, smaller = (float(one.mean() + 2 * one.std() / np.sqrt(len(one))) for one in (above, below))
    return LinearisationRemainder(larger, smaller, energy)
