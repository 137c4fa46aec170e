"""Classical spectral solvers, written compactly, that the benchmarks compare with and take their references from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.reference_solvers import chebyshev
from benchmarks.reference_solvers.chebyshev import grid, interpolation, tensor
from benchmarks.reference_solvers.chebyshev import points_of as chebyshev_points
from benchmarks.reference_solvers.steady import navier_stokes

__all__ = ["chebyshev_points", "interpolation", "navier_stokes"]  # for the benchmarks beside this one
Array = np.ndarray
Function = Callable[[Array], Array]


def scalar(make: Callable[..., Function]) -> Callable[..., Function]:
    """A solver of the public benchmark, whose values are (M, fields), for one field: values (M,)."""

    def made(*arguments: object) -> Function:
        found = make(*arguments)
        return lambda points: found(points)[:, 0]

    return made


poisson, ball_heat, modal = map(scalar, (chebyshev.poisson, chebyshev.ball_heat, chebyshev.modal))


# --------------------------------------------------------------------------------------------- Chebyshev in one axis


def barycentric(x: Array, weights: Array, values: Array, places: Array) -> Array:
    """Column m of the values (nodes + 1, M) at place m."""
    return (interpolation(x, weights, places).T * values).sum(axis=0)


# ------------------------------------------------------------------------------------------------- stationary problems


def layer(epsilon: float, nodes: int, across: int = 0) -> Function:
    """-ε Δu + u_x = load, u = 0 on the sides, in 1-D (load 1) or with ``across`` nodes in y (load sin πy).

    Chebyshev in s, where x = 1 - sinh(a(1-s)/2)/sinh(a) stretches the layer at 1.
    """
    a = 10.0
    for _ in range(20):  # a/(2 sinh a) = 5ε
        a = float(np.arcsinh(a / (10 * epsilon)))
    s, D, weights = chebyshev_points(nodes, -1.0, 1.0)
    x = 1 - np.sinh(a * (1 - s) / 2) / np.sinh(a)
    D /= (a / 2 * np.cosh(a * (1 - s) / 2) / np.sinh(a))[:, None]
    inner = slice(1, -1)
    first = (D - epsilon * D @ D)[inner, inner]

    def place(at: Array) -> Array:
        return interpolation(s, weights, 1 - 2 * np.arcsinh((1 - at) * np.sinh(a)) / a)

    if not across:
        values = np.zeros(len(x))
        values[inner] = np.linalg.solve(first, np.ones(len(x) - 2))
        return lambda points: place(points[:, 0]) @ values
    y, E, others = chebyshev_points(across, 0.0, 1.0)
    rates, vectors = np.linalg.eig((E @ E)[inner, inner])
    parts = np.linalg.solve(vectors, np.sin(np.pi * y[inner]))
    table = np.stack([
        np.linalg.solve(first - epsilon * rate.real * np.eye(len(first)), np.full(len(first), part.real))
        for rate, part in zip(rates, parts, strict=True)
    ])  # fmt: skip
    values = np.zeros((len(x), len(y)))
    values[inner, inner] = (vectors.real @ table).T
    return lambda points: tensor([place(points[:, 0]), interpolation(y, others, points[:, 1])], values)


# ---------------------------------------------------------------------------------- evolution in several dimensions


def burgers_square(nodes: int, steps: int, viscosity: float, exact: Function, times: Array) -> Function:
    """The system of Burgers on the unit square, values of the sides given: Chebyshev in space, Runge–Kutta in time."""
    x, D, weights = chebyshev_points(nodes, 0.0, 1.0)
    places, D2 = grid([x, x]), D @ D
    n = nodes + 1
    edge = np.ones((n, n), dtype=bool)
    edge[1:-1, 1:-1] = False
    rim = places[edge.ravel()]

    def walled(state: Array, t: float) -> Array:
        state[:, edge] = exact(np.column_stack([np.full(len(rim), t), rim])).T
        return state

    def rate(state: Array) -> Array:
        u, v = state
        return np.stack([viscosity * (D2 @ w + w @ D2.T) - u * (D @ w) - v * (w @ D.T) for w in state])

    h = 1.0 / steps
    state = exact(np.column_stack([np.zeros(n * n), places])).T.reshape(2, n, n)
    kept = {0.0: state}
    every = steps // (len(times) - 1)
    for step in range(steps):
        t = step * h
        a = rate(state)
        b = rate(walled(state + h / 2 * a, t + h / 2))
        c = rate(walled(state + h / 2 * b, t + h / 2))
        d = rate(walled(state + h * c, t + h))
        state = walled(state + h / 6 * (a + 2 * b + 2 * c + d), t + h)
        if (step + 1) % every == 0:
            kept[float(times[(step + 1) // every])] = state

    def evaluate(points: Array) -> Array:
        found = np.empty((len(points), 2))
        for time in np.unique(points[:, 0]):
            rows = points[:, 0] == time
            tables = [interpolation(x, weights, points[rows, k]) for k in (1, 2)]
            nearest = min(kept, key=lambda one: abs(one - time))
            found[rows] = np.stack([tensor(tables, field) for field in kept[nearest]], axis=1)
        return found

    return evaluate
