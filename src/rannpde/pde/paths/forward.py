"""Forward in time, on fresh paths: an estimate whose error is of second order in that of the networks.

The networks û leave a defect ρ_n = û_{n+1}(X_{n+1}) - û_n(X_n) - M_n + ½h (f_n + f_{n+1}) along a path. Linearised at
û, the equation says what a defect at s_n means for the value at the start: it counts with the weight

    W_n = exp(∫ f_u ds + ∫ θ·dW - ½∫|θ|² ds) ,   √a θ = f_z ,

so that u(0, x) = û_0(x) + E Σ W_n ρ_n + O(‖u - û‖²): one Newton step, which for linear equations is exact. Fresh
paths are independent of û, whence M_n has mean zero, and the standard error of the mean is honest. Time is integrated
by Simpson's rule, whose difference from a step of twice the length is the error in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.layer import NetworkReading
from rannpde.pde.paths.processes import EulerProcess, PathProcess, PathStep
from rannpde.pde.paths.regression import NormalDraws, PathsModel, data_values
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import value_and_gradients


@dataclass(frozen=True)
class SourceLinearisation:
    """f, ∂f/∂u (M,) and ∂f/∂∇u (M, d), or None where f has no gradient."""

    value: Array
    by_value: Array
    by_gradient: Array | None


def linearised(form: Parabolic, s: float, point: Array, value: Array, gradient: Array) -> SourceLinearisation:
    """f and its derivatives at values (M,) and gradients (M, d)."""
    slopes = form.source.has("gradient")
    known = form.known(s, point) | {"field": value[:, None], "gradient": gradient}
    found, partial = value_and_gradients(form.source, known, ("field", "gradient") if slopes else ("field",))
    return SourceLinearisation(found[:, 0], partial["field"][:, 0], partial["gradient"] if slopes else None)


@dataclass(frozen=True)
class PathSums:
    """What every path of a block contributes (M,).

    value : the estimate; in_time : what a step of twice the length changes; residual : Σ W ρ
    shifted, brownian : what the gradient at the start is found from; mean_square : of u along the paths
    """

    value: Array
    in_time: Array
    residual: Array
    shifted: Array
    brownian: Array
    mean_square: float


@dataclass(frozen=True)
class PathsAtNode:
    """Paths at one node: state, the move to the next, and what the network and the source are there."""

    state: Array
    point: Array
    move: PathStep | None
    read: NetworkReading
    source: SourceLinearisation


def paths_at_node(model: PathsModel, process: PathProcess, draws: NormalDraws, n: int, state: Array) -> PathsAtNode:
    """The paths at node n, whose step is drawn; at the last node the data stand for the network."""
    form, nodes = model.form, model.grid.nodes
    point, s = process.point(state), float(nodes[n])
    if n == model.grid.steps:
        value, gradient = data_values(form, point, form.source.has("gradient"))
        read, move = NetworkReading(value, gradient, gradient, np.zeros(len(state))), None
    else:
        h = float(nodes[n + 1] - nodes[n])
        move = process.step(s, h, state, draws.normals(n))
        read = model.networks[n].read(state, move, h)
    return PathsAtNode(state, point, move, read, linearised(form, s, point, read.value, read.gradient))


def log_weight(process: PathProcess, s: float, h: float, here: PathsAtNode, there: PathsAtNode) -> Array:
    """∫ f_u ds + ∫ θ·dW - ½∫|θ|² ds over a step."""
    growth = 0.5 * h * (here.source.by_value + there.source.by_value)
    if here.source.by_gradient is not None and here.move is not None:
        theta = process.pull(s, here.point, here.source.by_gradient)
        growth = growth + np.einsum("ij,ij->i", theta, here.move.brownian)
        growth -= 0.5 * h * np.einsum("ij,ij->i", theta, theta)
    return growth


def follow(model: PathsModel, start: Array, draws: NormalDraws, process: PathProcess | None = None) -> PathSums:
    """Fresh paths from ``start`` (M, d); another process of the same law than the model's may be given."""
    process = model.process if process is None else process
    grid, nodes, count = model.grid, model.grid.nodes, len(start)
    fine, coarse = grid.rule(1), grid.rule(2)
    smooth, in_time_weights = fine - grid.trapezoidal, fine - coarse
    weight, held = np.ones(count), np.ones(count)
    residual, doubled, correction, in_time = (np.zeros(count) for _ in range(4))
    mean_square = 0.0
    first = here = paths_at_node(model, process, draws, 0, process.start(start))
    for n in range(grid.steps):
        assert here.move is not None
        h = float(nodes[n + 1] - nodes[n])
        there = paths_at_node(model, process, draws, n + 1, here.move.state)
        correction += smooth[n] * here.source.value
        in_time += in_time_weights[n] * here.source.value
        mean_square += float(np.mean(here.read.value**2)) * h / grid.length
        defect = there.read.value - here.read.value - here.read.increment
        defect += 0.5 * h * (here.source.value + there.source.value)
        residual += weight * defect
        doubled += held * defect
        weight = weight * np.exp(np.minimum(log_weight(process, float(nodes[n]), h, here, there), 50.0))
        if n % 2:
            held = weight
        here = there
    correction += smooth[-1] * here.source.value
    in_time += in_time_weights[-1] * here.source.value
    value = first.read.value + residual + correction
    # the first node's f does not move with the noise of the first step: what it stands for is taken at the second
    shifted = value - fine[0] * first.source.value
    assert first.move is not None
    return PathSums(value, in_time + (residual - doubled), residual, shifted, first.move.brownian, mean_square)


def follow_euler(model: PathsModel, start: Array, draws: NormalDraws) -> PathSums:
    """The same for Euler's steps: extrapolated from twice the number of substeps on the same Brownian paths, of which
    half the extrapolation counts as an error in time.
    """
    process = model.process
    assert isinstance(process, EulerProcess)
    finer = process.with_substeps(2 * process.substeps)
    small = NormalDraws(draws.seed, draws.count, finer.normal_count(), antithetic=draws.antithetic)
    fine = follow(model, start, small, finer)
    coarse = follow(model, start, small.paired(process.dim))
    change = fine.value - coarse.value
    return PathSums(
        fine.value + change, fine.in_time + 0.5 * change, fine.residual, fine.shifted, fine.brownian, fine.mean_square
    )


@dataclass(frozen=True)
class LinearisationRemainder:
    """What the linearisation leaves, for perturbations that have the size of the difference of two models.

    mean, error : of ∫ W (f(û + δ) - f(û) - f'(û)δ) ds with δ the difference; energy : E ∫ |√a ∇δ|² ds
    """

    mean: float
    error: float
    energy: float


def remainder(model: PathsModel, other: PathsModel, start: Array, draws: NormalDraws) -> LinearisationRemainder:
    """PathsAtNode fresh paths; ``other`` is an independent realisation on the same nodes."""
    process, grid, form = model.process, model.grid, model.form
    total, energy, state = np.zeros(len(start)), 0.0, process.start(start)
    for n in range(grid.steps):
        here = paths_at_node(model, process, draws, n, state)
        h = float(grid.nodes[n + 1] - grid.nodes[n])
        second = other.networks[n].read(state)
        assert here.move is not None
        change, slope = second.value - here.read.value, second.gradient - here.read.gradient
        moved = linearised(form, float(grid.nodes[n]), here.point, second.value, second.gradient)
        left = moved.value - here.source.value - here.source.by_value * change
        if here.source.by_gradient is not None:
            left -= np.einsum("ij,ij->i", here.source.by_gradient, slope)
        total += h * left
        difference = second.state_gradient - here.read.state_gradient
        energy += float(np.mean(np.einsum("ij,ij->i", difference, here.move.noise) ** 2))
        state = here.move.state
    return LinearisationRemainder(float(total.mean()), float(total.std() / np.sqrt(len(total))), energy)
