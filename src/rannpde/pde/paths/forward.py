"""Forward in time, on fresh paths: an estimate whose error is of second order in that of the networks.

The networks û leave a defect ρ_n = û_{n+1}(X_{n+1}) - û_n(X_n) - M_n + ½h (f_n + f_{n+1}) along a path. Linearised at û, the
equation says what a defect at s_n means for the value at the start: it counts with the weight

    W_n = exp(∫ f_u ds + ∫ θ·dW - ½∫|θ|² ds) ,   √a θ = f_z ,

so that u(0, x) = û_0(x) + E Σ W_n ρ_n + O(‖u - û‖²): one Newton step, which for linear equations is exact. Fresh paths are
independent of û, whence M_n has mean zero, and the standard error of the mean is honest. Time is integrated by
Simpson's rule, whose difference from a step of twice the length is the error in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.layer import Reading
from rannpde.pde.paths.processes import Move
from rannpde.pde.paths.regression import Model, antithetic, data_values
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import value_and_gradients


@dataclass(frozen=True)
class Linearised:
    """f, ∂f/∂u (M,) and ∂f/∂∇u (M, d), or None where f has no gradient."""

    value: Array
    by_value: Array
    by_gradient: Array | None


def linearised(form: Parabolic, s: float, point: Array, value: Array, gradient: Array, slopes: bool) -> Linearised:
    known = form.known(s, point) | {"field": value[:, None], "gradient": gradient}
    leaves = ("field", "gradient") if slopes else ("field",)
    found, partial = value_and_gradients(form.source, known, leaves)
    return Linearised(found[:, 0], partial["field"][:, 0], partial["gradient"] if slopes else None)


@dataclass(frozen=True)
class PathSums:
    """What every path of a block contributes (M,).

    value : the estimate; picard : the same without weights; in_time : Simpson's rule less that of twice the step, and
    what the weights of twice the step change; residual : Σ W ρ; gradient : mean over pairs of what corrects ∇û_0
    """

    value: Array
    in_time: Array
    residual: Array
    square: float
    gradient: Array
    first_value: Array


def follow(model: Model, start: Array, rng: np.random.Generator) -> PathSums:
    """Fresh antithetic paths from ``start`` (M, d), the second half of which begins where the first does."""
    form, process, grid = model.form, model.process, model.grid
    count, steps, nodes = len(start), grid.steps, grid.nodes
    slopes = form.source.has("gradient")
    fine, coarse = grid.rule(1), grid.rule(2)
    smooth, in_time_weights = fine - grid.trapezoidal, fine - coarse
    state = process.start(start)
    weight, held = np.ones(count), np.ones(count)
    residual, doubled, correction, in_time = (np.zeros(count) for _ in range(4))
    square = 0.0

    def advance(n: int, state: Array) -> tuple[Move, Reading]:
        h = float(nodes[n + 1] - nodes[n])
        move = process.step(float(nodes[n]), h, state, antithetic(rng, count, process.normal_count()))
        return move, model.networks[n].read(state, move, h)

    move, read = advance(0, state)
    first, brownian = read.value, move.brownian
    f = linearised(form, float(nodes[0]), process.point(state), read.value, read.gradient, slopes)
    initial = f.value
    for n in range(steps):
        h = float(nodes[n + 1] - nodes[n])
        correction += smooth[n] * f.value
        in_time += in_time_weights[n] * f.value
        square += float(np.mean(read.value**2)) * h / grid.length
        after = process.point(move.state)
        if n + 1 < steps:
            next_move, next_read = advance(n + 1, move.state)
            next_value, next_gradient = next_read.value, next_read.gradient
        else:
            next_value, next_gradient = data_values(form, after, slopes)
        next_f = linearised(form, float(nodes[n + 1]), after, next_value, next_gradient, slopes)
        defect = next_value - read.value - read.increment + 0.5 * h * (f.value + next_f.value)
        residual += weight * defect
        doubled += held * defect
        growth = 0.5 * h * (f.by_value + next_f.by_value)
        if f.by_gradient is not None:
            theta = process.pull(float(nodes[n]), process.point(state), f.by_gradient)
            growth = growth + np.einsum("ij,ij->i", theta, move.brownian) - 0.5 * h * np.einsum("ij,ij->i", theta, theta)
        weight = weight * np.exp(growth)
        if n % 2:
            held = weight
        state, f = move.state, next_f
        if n + 1 < steps:
            move, read = next_move, next_read
    correction += smooth[-1] * f.value
    in_time += in_time_weights[-1] * f.value
    value = first + residual + correction
    # the first node's f does not move with the noise of the first step: what it stands for is taken at the second
    shifted = value - fine[0] * initial
    slope = (shifted - shifted.mean()) @ brownian / (float(nodes[1] - nodes[0]) * count)
    return PathSums(value, in_time + (residual - doubled), residual, square, slope, first)
