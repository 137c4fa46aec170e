"""Chebyshev collocation on boxes: differentiation matrices, fast diagonalisation, and what evolves with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from scipy.integrate import solve_ivp

from rannpde.arrays import Array, ArrayMap

PlaneFunction = Callable[[Array, Array], Array]
"""Of x and y, arrays of one shape."""
INNER = slice(1, -1)


def points_of(nodes: int, lower: float, upper: float) -> tuple[Array, Array, Array]:
    """Points (nodes + 1,) from the upper end to the lower one, differentiation matrix and barycentric weights.

    >>> x, D, weights = points_of(8, 0.0, 2.0)
    >>> bool(abs(D @ x**3 - 3 * x**2).max() < 1e-12)
    True
    """
    k = np.arange(nodes + 1)
    weights = np.where((k == 0) | (k == nodes), 0.5, 1.0) * (-1.0) ** k
    x = lower + (np.cos(np.pi * k / nodes) + 1) * (upper - lower) / 2
    return x, differentiation(x, weights), weights


def differentiation(x: Array, weights: Array) -> Array:
    """The matrix of the derivative of the interpolating polynomial."""
    D = weights / weights[:, None] / (x[:, None] - x + np.eye(len(x)))
    np.fill_diagonal(D, 0.0)
    return D - np.diag(D.sum(axis=1))


def interpolation(x: Array, weights: Array, places: Array) -> Array:
    """(M, nodes + 1): values at the nodes to values at the places."""
    gaps = places[:, None] - x
    exact = gaps == 0
    parts = weights / np.where(exact, 1.0, gaps)
    parts[exact.any(axis=1)] = 0.0
    parts[exact] = 1.0
    return parts / parts.sum(axis=1, keepdims=True)


def tensor(rows: Sequence[Array], values: Array) -> Array:
    """Σ rows[0][m, i] rows[1][m, j] … values[i, j, …] for every m."""
    found = np.tensordot(rows[0], values, axes=1)
    for row in rows[1:]:
        found = np.einsum("mi,mi...->m...", row, found)
    return found


def along(matrix: Array, values: Array, axis: int) -> Array:
    """A matrix applied to one axis."""
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def grid(axes: Sequence[Array]) -> Array:
    """The points (M, n) of a tensor grid, last axis fastest."""
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def at_moments(points: Array, moments: Sequence[float], at: Callable[[int, Array], Array]) -> Array:
    """Values (M, fields) at points (t, …) whose times are among the moments; ``at(k, places)`` gives those of one.

    >>> at_moments(np.array([[0.5, 7.0], [1.0, 8.0]]), (0.5, 1.0), lambda k, places: k + places)
    array([[7.],
           [9.]])
    """
    numbers = np.abs(points[:, :1] - np.asarray(moments)).argmin(axis=1)
    parts = {int(k): np.atleast_2d(at(int(k), points[numbers == k, 1:])) for k in np.unique(numbers)}
    found = np.empty((len(points), next(iter(parts.values())).shape[1]))
    for k, part in parts.items():
        found[numbers == k] = part
    return found


# ------------------------------------------------------------------------------------------------------ one dimension


def _marched(
    nodes: Array, weights: Array, rate: Callable[..., Array], jacobian: Callable[..., Array], start: Array, rtol: float
) -> ArrayMap:
    """SciPy's Radau from t = 0 to 1 for the inner nodes, first of what may be a longer state; zero at both ends."""
    path = solve_ivp(rate, (0, 1), start, method="Radau", jac=jacobian, rtol=rtol, atol=1e-2 * rtol, dense_output=True)

    def evaluate(points: Array) -> Array:
        values = np.zeros((len(nodes), len(points)))
        values[INNER] = path.sol(points[:, 0])[: len(nodes) - 2]
        return np.einsum("mi,im->m", interpolation(nodes, weights, points[:, 1]), values)[:, None]

    return evaluate


def burgers(viscosity: float, nodes: int, rtol: float) -> ArrayMap:
    """u_t + u u_x = ν u_xx on (-1, 1) from -sin πx."""
    x, D, weights = points_of(nodes, -1.0, 1.0)
    D1, D2 = D[INNER, INNER], (D @ D)[INNER, INNER]

    def jacobian(t: float, u: Array) -> Array:
        return viscosity * D2 - u[:, None] * D1 - np.diag(D1 @ u)

    rate = lambda t, u: viscosity * (D2 @ u) - u * (D1 @ u)  # noqa: E731
    return _marched(x, weights, rate, jacobian, -np.sin(np.pi * x[INNER]), rtol)


def wave(nodes: int, rtol: float = 1e-9) -> ArrayMap:
    """u_tt = 4 u_xx on (0, 1) from sin πx + ½ sin 4πx at rest."""
    x, D, weights = points_of(nodes, 0.0, 1.0)
    n = nodes - 1
    matrix = np.block([[np.zeros((n, n)), np.eye(n)], [4 * (D @ D)[INNER, INNER], np.zeros((n, n))]])
    start = np.append((np.sin(np.pi * x) + 0.5 * np.sin(4 * np.pi * x))[INNER], np.zeros(n))
    return _marched(x, weights, lambda t, y: matrix @ y, lambda t, y: matrix, start, rtol)


def ball_heat(nodes: int, rtol: float) -> ArrayMap:
    """u_t = Δu/5 - (r²/5) exp(r²/2 + t) in the unit ball of R⁵ with ∂_n u = exp(½ + t), in s = r² (it is radial)."""
    s, D, weights = points_of(nodes, 0.0, 1.0)
    operator = (4 * s[:, None] * (D @ D) + 10 * D) / 5

    def full(t: float, u: Array) -> Array:
        edge = (np.exp(0.5 + t) / 2 - D[0, 1:] @ u) / D[0, 0]
        return np.concatenate([np.atleast_1d(edge), u])

    def rate(t: float, u: Array) -> Array:
        return (operator @ full(t, u))[1:] - s[1:] / 5 * np.exp(s[1:] / 2 + t)

    jacobian = operator[1:, 1:] - np.outer(operator[1:, 0], D[0, 1:]) / D[0, 0]
    start = np.exp(s[1:] / 2)
    path = solve_ivp(rate, (0, 1), start, method="Radau", jac=jacobian, rtol=rtol, atol=rtol, dense_output=True)

    def evaluate(points: Array) -> Array:
        states = np.stack([full(t, u) for t, u in zip(points[:, 0], path.sol(points[:, 0]).T, strict=True)], axis=1)
        rows = interpolation(s, weights, np.square(points[:, 1:]).sum(axis=1))
        return np.einsum("mi,im->m", rows, states)[:, None]

    return evaluate


# ------------------------------------------------------------------------------------------------- several dimensions


def poisson(dim: int, nodes: int, load: ArrayMap, sides: ArrayMap) -> ArrayMap:
    """-Δu = load on the unit cube, u = sides on its boundary, by fast diagonalisation."""
    x, D, weights = points_of(nodes, 0.0, 1.0)
    D2 = D @ D
    values, vectors = (part.real for part in np.linalg.eig(D2[INNER, INNER]))
    back = np.linalg.inv(vectors)
    shape, middle = (nodes + 1,) * dim, (INNER,) * dim
    points = grid([x] * dim)
    known = sides(points).reshape(shape)
    known[middle] = 0.0
    right = load(points).reshape(shape)[middle] + sum(along(D2, known, k)[middle] for k in range(dim))
    right = reduce(lambda part, k: along(back, part, k), range(dim), right)
    right = right / -reduce(np.add.outer, [values] * dim)
    known[middle] = reduce(lambda part, k: along(vectors, part, k), range(dim), right)
    return lambda places: tensor([interpolation(x, weights, places[:, k]) for k in range(dim)], known)[:, None]


def modal(
    nodes: Sequence[int], rates: Sequence[float], start: ArrayMap, law: Callable[[Array, float], Array]
) -> ArrayMap:
    """û' or û'' = Σ rates[k] ∂_k² û on the unit cube with zero walls: its modes follow the law in time."""
    dim = len(nodes)
    axes = [points_of(n, 0.0, 1.0) for n in nodes]
    pairs = [[part.real for part in np.linalg.eig((D @ D)[INNER, INNER])] for _, D, _ in axes]
    speeds = reduce(np.add.outer, [rate * values for rate, (values, _) in zip(rates, pairs, strict=True)])
    first = start(grid([x[INNER] for x, _, _ in axes])).reshape([n - 1 for n in nodes])
    modes = reduce(lambda part, k: along(np.linalg.inv(pairs[k][1]), part, k), range(dim), first)

    def evaluate(points: Array) -> Array:
        moments = np.unique(points[:, 0]).tolist()

        def at(k: int, places: Array) -> Array:
            rows = [
                interpolation(x, weights, places[:, a])[:, INNER] @ pairs[a][1]
                for a, (x, _, weights) in enumerate(axes)
            ]
            return tensor(rows, law(speeds, moments[k]) * modes)[:, None]

        return at_moments(points, moments, at)

    return evaluate


def driven_heat(
    nodes: int, factor: PlaneFunction, load: PlaneFunction, frequency: float, moments: Sequence[float]
) -> ArrayMap:
    """u_t = a Δu + load sin ωt on the unit square from 0, zero walls; exact in time for the nodes' equations.

    With A = aΔ: u = Im(w e^(iωt)) - e^(tA) Im w, where (iω - A) w = load.
    """
    x, D, weights = points_of(nodes, 0.0, 1.0)
    n = nodes - 1
    D2, one = (D @ D)[INNER, INNER], np.eye(n)
    X, Y = np.meshgrid(x[INNER], x[INNER], indexing="ij")
    operator = factor(X, Y).ravel()[:, None] * (np.kron(D2, one) + np.kron(one, D2))
    values, vectors = np.linalg.eig(operator)
    source = np.linalg.solve(vectors, load(X, Y).ravel().astype(complex))
    forced = source / (1j * frequency - values)
    # Im(w e^(iωt)) of the nodes' values w: (w e^(iωt) - w̄ e^(-iωt))/2i, both parts expanded in the eigenvectors
    mirrored = source / (-1j * frequency - values)

    def at(k: int, places: Array) -> Array:
        t = moments[k]
        swing = (forced * np.exp(1j * frequency * t) - mirrored * np.exp(-1j * frequency * t)) / 2j
        state = (vectors @ (swing - np.exp(values * t) * (forced - mirrored) / 2j)).real.reshape(n, n)
        return tensor([interpolation(x, weights, places[:, a])[:, INNER] for a in range(2)], state)[:, None]

    return lambda points: at_moments(points, moments, at)
