"""Classical spectral solvers, written compactly, that the benchmarks compare with and take their references from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from scipy import fft
from scipy.integrate import solve_ivp
from scipy.linalg import lu_factor, lu_solve

Array = np.ndarray
Function = Callable[[Array], Array]


# --------------------------------------------------------------------------------------------- Chebyshev in one axis


def chebyshev_points(nodes: int, lower: float, upper: float) -> tuple[Array, Array, Array]:
    """Points (nodes + 1,) from the upper end to the lower one, differentiation matrix and barycentric weights."""
    k = np.arange(nodes + 1)
    weights = np.where((k == 0) | (k == nodes), 0.5, 1.0) * (-1.0) ** k
    x = lower + (np.cos(np.pi * k / nodes) + 1) * (upper - lower) / 2
    return x, differentiation(x, weights), weights


def differentiation(x: Array, weights: Array) -> Array:
    """The matrix of the derivative of the interpolating polynomial."""
    D = weights / weights[:, None] / (x[:, None] - x + np.eye(len(x)))
    np.fill_diagonal(D, 0.0)
    return D - np.diag(D.sum(axis=1))


def barycentric(x: Array, weights: Array, values: Array, places: Array) -> Array:
    """Column m of the values (nodes + 1, M) at place m."""
    return (interpolation(x, weights, places).T * values).sum(axis=0)


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


# ------------------------------------------------------------------------------------------------- stationary problems


def poisson(dim: int, nodes: int, load: Function, sides: Function) -> Function:
    """-Δu = load on the unit cube, u = sides on its boundary: Chebyshev collocation by fast diagonalisation."""
    x, D, weights = chebyshev_points(nodes, 0.0, 1.0)
    D2, inner = D @ D, slice(1, -1)
    values, vectors = np.linalg.eig(D2[inner, inner])
    values, vectors = values.real, vectors.real
    back = np.linalg.inv(vectors)
    shape, middle = (nodes + 1,) * dim, (inner,) * dim
    points = grid([x] * dim)
    known = sides(points).reshape(shape)
    known[middle] = 0.0
    right = load(points).reshape(shape)[middle] + sum(along(D2, known, k)[middle] for k in range(dim))
    right = reduce(lambda part, k: along(back, part, k), range(dim), right)
    right /= -reduce(np.add.outer, [values] * dim)
    known[middle] = reduce(lambda part, k: along(vectors, part, k), range(dim), right)
    return lambda places: tensor([interpolation(x, weights, places[:, k]) for k in range(dim)], known)


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


def navier_stokes(
    bounds: Array, viscosity: float, velocity: Function, pin: tuple[float, float, float], nodes: int
) -> Function:
    """Steady incompressible flow on a rectangle: Chebyshev P_N velocity, P_(N-2) pressure, Newton.

    It starts from rest, or from the solution with fewer nodes where there are many.
    velocity : (M, 2) on the boundary; pin : a point and the pressure there
    """
    (x, D, wx), (y, E, wy) = (chebyshev_points(nodes, *pair) for pair in bounds)
    n, inner = nodes + 1, slice(1, -1)
    px, py = x[inner], y[inner]
    ux, uy = wx[inner] * (px - x[0]) * (px - x[-1]), wy[inner] * (py - y[0]) * (py - y[-1])
    eye, small = np.eye(n)[inner], np.eye(n - 2)
    dx, dy = np.kron(D[inner], eye), np.kron(eye, E[inner])
    lap = np.kron((D @ D)[inner], eye) + np.kron(eye, (E @ E)[inner])
    gx, gy = np.kron(differentiation(px, ux), small), np.kron(small, differentiation(py, uy))
    inside = np.zeros((n, n), dtype=bool)
    inside[inner, inner] = True
    free = inside.ravel()
    state = np.where(free[:, None], 0.0, velocity(grid([x, y])))
    m = (n - 2) ** 2
    p = np.zeros(m)
    if nodes > 24:
        coarse = navier_stokes(bounds, viscosity, velocity, pin, 2 * nodes // 3)
        state[free], p = coarse(grid([px, py]))[:, :2], coarse(grid([px, py]))[:, 2]
    row = np.kron(*(interpolation(q, w, np.array([at])) for q, w, at in zip((px, py), (ux, uy), pin[:2], strict=True)))
    at, zero = np.ones(m) / m, np.zeros((m, m))
    for _ in range(30):
        u, v = state.T
        (u_x, v_x), (u_y, v_y), here = (dx @ state).T, (dy @ state).T, state[free]
        convection = here[:, :1] * dx[:, free] + here[:, 1:] * dy[:, free] - viscosity * lap[:, free]
        residual = np.concatenate([
            here[:, 0] * u_x + here[:, 1] * u_y - viscosity * lap @ u + gx @ p,
            here[:, 0] * v_x + here[:, 1] * v_y - viscosity * lap @ v + gy @ p,
            u_x + v_y,
            row @ p - pin[2],
        ])  # fmt: skip
        matrix = np.zeros((3 * m + 1, 3 * m + 1))
        matrix[:-1, :-1] = np.block([
            [convection + np.diag(u_x), np.diag(u_y), gx],
            [np.diag(v_x), convection + np.diag(v_y), gy],
            [dx[:, free], dy[:, free], zero],
        ])  # fmt: skip
        matrix[2 * m : 3 * m, -1], matrix[-1, 2 * m : 3 * m] = at, row[0]  # the level of the pressure
        step = lu_solve(lu_factor(matrix, overwrite_a=True), -residual)
        state[free] += step[: 2 * m].reshape(2, m).T
        p += step[2 * m : 3 * m]
        if np.abs(step[: 2 * m]).max() < 1e-7:  # it squares
            break

    def evaluate(points: Array) -> Array:
        fine = [interpolation(q, w, at) for q, w, at in zip((x, y), (wx, wy), points.T, strict=True)]
        coarse = [interpolation(q, w, at) for q, w, at in zip((px, py), (ux, uy), points.T, strict=True)]
        speeds = [tensor(fine, state[:, k].reshape(n, n)) for k in range(2)]
        return np.column_stack([*speeds, tensor(coarse, p.reshape(n - 2, n - 2))])

    return evaluate


def ball_heat(nodes: int, rtol: float) -> Function:
    """u_t = Δu/5 - (r²/5) exp(r²/2 + t) in the unit ball of R⁵ with ∂_n u = exp(½ + t), in s = r² (it is radial)."""
    s, D, weights = chebyshev_points(nodes, 0.0, 1.0)
    operator = (4 * s[:, None] * (D @ D) + 10 * D) / 5

    def full(t: float, u: Array) -> Array:
        edge = (np.exp(0.5 + t) / 2 - D[0, 1:] @ u) / D[0, 0]
        return np.concatenate([np.atleast_1d(edge), u])

    def rate(t: float, u: Array) -> Array:
        return (operator @ full(t, u))[1:] - s[1:] / 5 * np.exp(s[1:] / 2 + t)

    jacobian = operator[1:, 1:] - np.outer(operator[1:, 0], D[0, 1:]) / D[0, 0]
    path = solve_ivp(
        rate, (0, 1), np.exp(s[1:] / 2), method="Radau", jac=jacobian, rtol=rtol, atol=rtol, dense_output=True
    )

    def evaluate(points: Array) -> Array:
        states = np.stack([full(t, u) for t, u in zip(points[:, 0], path.sol(points[:, 0]).T, strict=True)], axis=1)
        return barycentric(s, weights, states, np.square(points[:, 1:]).sum(axis=1))

    return evaluate


# ---------------------------------------------------------------------------------- evolution in several dimensions


def modal(
    nodes: Sequence[int], rates: Sequence[float], start: Function, law: Callable[[Array, float], Array]
) -> Function:
    """û' or û'' = Σ rates[k] ∂_k² û on the unit cube with zero walls: Chebyshev, its modes in time by the law."""
    dim, inner = len(nodes), slice(1, -1)
    axes = [chebyshev_points(n, 0.0, 1.0) for n in nodes]
    pairs = [np.linalg.eig((D @ D)[inner, inner]) for _, D, _ in axes]
    speeds = reduce(np.add.outer, [rate * values.real for rate, (values, _) in zip(rates, pairs, strict=True)])
    first = start(grid([x[inner] for x, _, _ in axes])).reshape([n - 1 for n in nodes])
    modes = reduce(lambda part, k: along(np.linalg.inv(pairs[k][1].real), part, k), range(dim), first)
    vectors = [vectors.real for _, vectors in pairs]

    def evaluate(points: Array) -> Array:
        found = np.empty(len(points))
        for time in np.unique(points[:, 0]):
            rows = points[:, 0] == time
            tables = [
                interpolation(x, weights, points[rows, k + 1])[:, inner] @ vectors[k]
                for k, (x, _, weights) in enumerate(axes)
            ]
            found[rows] = tensor(tables, law(speeds, time) * modes)
        return found

    return evaluate


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


def etd_coefficients(z: Array) -> tuple[Array, ...]:
    """Of ETDRK4 with unit step for real z, by means over half circles (Kassam & Trefethen 2005)."""
    Q, f1, f2, f3 = (np.zeros(z.shape) for _ in range(4))
    for shift in np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32):
        w = z + shift
        Q += ((np.exp(w / 2) - 1) / w).real / 32
        f1 += ((-4 - w + np.exp(w) * (4 - 3 * w + w**2)) / w**3).real / 32
        f2 += ((2 + w + np.exp(w) * (w - 2)) / w**3).real / 32
        f3 += ((-4 - 3 * w - w**2 + np.exp(w) * (4 - w)) / w**3).real / 32
    return np.exp(z), np.exp(z / 2), Q, f1, f2, f3


def fourier_square(
    lower: float, length: float, size: int, steps: int, times: Array, linear: Function, rate: Callable, start: Function
) -> Function:
    """û' = linear(k²) û + rate(…) on a periodic square by ETDRK4 with fixed steps; ``start`` is (fields, n, n).

    linear : (n, n/2 + 1) to (fields, n, n/2 + 1)
    rate : of the transforms and the factors ik, il of both derivatives; aliases are its own
    """
    k, half = (2j * np.pi / length * frequencies(size, 1 / size) for frequencies in (fft.fftfreq, fft.rfftfreq))
    k[size // 2] = half[-1] = 0.0
    kx, ky = k[:, None], half[None, :]
    h = (times[-1] - times[0]) / steps
    E, E2, Q, f1, f2, f3 = etd_coefficients(h * linear(-(kx**2 + ky**2).real))
    x = lower + length * np.arange(size) / size
    w = fft.rfft2(start(*np.meshgrid(x, x, indexing="ij")))
    kept, every = [w], steps // (len(times) - 1)
    for step in range(1, steps + 1):
        n = rate(w, kx, ky)
        a = E2 * w + h * Q * n
        na = rate(a, kx, ky)
        b = E2 * w + h * Q * na
        nb = rate(b, kx, ky)
        c = E2 * a + h * Q * (2 * nb - n)
        w = E * w + h * (n * f1 + 2 * (na + nb) * f2 + rate(c, kx, ky) * f3)
        if step % every == 0:
            kept.append(w)
    twice = np.where((np.arange(size // 2 + 1) % (size // 2)) == 0, 1.0, 2.0)

    def evaluate(points: Array) -> Array:
        found = np.empty((len(points), len(w)))
        number = np.rint((points[:, 0] - times[0]) / (times[-1] - times[0]) * (len(times) - 1)).astype(int)
        for one in np.unique(number):
            rows = number == one
            left, right = (np.exp(np.outer(points[rows, a] - lower, q)) / size for a, q in ((1, k), (2, half)))
            found[rows] = np.stack([tensor([left, right * twice], table).real for table in kept[one]], axis=1)
        return found

    return evaluate
