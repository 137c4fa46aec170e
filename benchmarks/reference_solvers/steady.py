"""Steady incompressible flow on a rectangle by Chebyshev collocation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from benchmarks.reference_solvers.chebyshev import differentiation, grid, interpolation, points_of, tensor
from rannpde.arrays import Array, ArrayMap


def navier_stokes(
    bounds: Sequence[tuple[float, float]],
    viscosity: float,
    velocity: ArrayMap,
    pin: tuple[float, float, float],
    nodes: int,
) -> ArrayMap:
    """Steady incompressible flow on a rectangle: Chebyshev P_N velocity, P_(N-2) pressure, Newton.

    It starts from rest, or from the solution with fewer nodes where there are many.
    velocity : (M, 2) on the boundary; pin : a point and the pressure there
    """
    (x, D, wx), (y, E, wy) = (points_of(nodes, *pair) for pair in bounds)
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
