"""The same eigenvalues and special points with NumPy and SciPy alone: second-order differences, Chebyshev collocation.

What a user writes who has no solver of eigenvalues: sparse matrices and shift-and-invert ``eigsh`` or ``eigs``, dense
``eig`` for collocation, Newton's method for a fold. Each function gives eigenvalues, or one number, and the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import eigs, eigsh, spsolve

Potential = Callable[..., np.ndarray]


def line(potential: Potential, ends: tuple[float, float], count: int, shift: float, factor: float = 1.0, n: int = 4000,
         periodic: bool = False) -> tuple[np.ndarray, int]:  # fmt: skip
    """-factor u'' + V u on an interval, u = 0 at its ends or periodic."""
    x = np.linspace(*ends, n + 1)[:-1] if periodic else np.linspace(*ends, n + 2)[1:-1]
    h = x[1] - x[0]
    matrix = sparse.diags([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], [-1, 0, 1], format="lil")
    if periodic:
        matrix[0, n - 1] = matrix[n - 1, 0] = -1.0
    total = factor * matrix.tocsc() / h**2 + sparse.diags(potential(x))
    return np.sort(eigsh(total.tocsc(), count, sigma=shift, return_eigenvectors=False)), n


def second_differences(n: int, h: float, free: bool = False) -> sparse.csc_matrix:
    """-u'' at n inner points with u = 0 beyond, or in n cells with u' = 0 at the ends."""
    middle = np.full(n, 2.0)
    if free:
        middle[[0, -1]] = 1.0
    return (sparse.diags([np.full(n - 1, -1.0), middle, np.full(n - 1, -1.0)], [-1, 0, 1]) / h**2).tocsc()


def square(potential: Potential, side: float, count: int, n: int = 240) -> tuple[np.ndarray, int]:
    """-Δu + V u on a square about zero, by the five-point stencil."""
    x = -side + 2 * side * np.arange(1, n) / n
    one, unit = second_differences(n - 1, 2 * side / n), sparse.identity(n - 1)
    matrix = sparse.kron(one, unit) + sparse.kron(unit, one) + sparse.diags(potential(x[:, None], x[None, :]).ravel())
    return np.sort(eigsh(matrix.tocsc(), count, sigma=0.0, return_eigenvectors=False)), (n - 1) ** 2


def plate(count: int, clamped: bool, n: int = 120) -> tuple[np.ndarray, int]:
    """Δ²u on the unit square by thirteen points."""
    h = 1 / n
    one, unit = second_differences(n - 1, h), sparse.identity(n - 1)
    plain = (sparse.kron(one, unit) + sparse.kron(unit, one)).tocsc()
    matrix = plain @ plain
    if clamped:  # the mirrored point beyond the side instead of the opposite one
        edge = np.zeros(n - 1)
        edge[[0, -1]] = 2 / h**4
        matrix = matrix + sparse.diags(np.add.outer(edge, edge).ravel())
    return np.sort(eigsh(matrix.tocsc(), count, sigma=0.0, return_eigenvectors=False)), (n - 1) ** 2


def chebyshev(n: int, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Points and the differentiation matrix of Chebyshev collocation."""
    k = np.arange(n + 1)
    x = np.cos(np.pi * k / n)
    c = np.where((k == 0) | (k == n), 2.0, 1.0) * (-1.0) ** k
    away = x[:, None] - x + np.eye(n + 1)
    matrix = np.outer(c, 1 / c) / away
    matrix -= np.diag(matrix.sum(axis=1))
    half = 0.5 * (ends[1] - ends[0])
    return ends[0] + half * (x + 1), matrix / half


def collocated(stiff: np.ndarray, mass: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """Eigenvalues of a collocated equation whose first and last rows are conditions."""
    half = len(rows) // 2
    places = [*range(half), *range(len(stiff) - half, len(stiff))]
    stiff, mass = stiff.astype(complex), mass.astype(complex)
    for place, row in zip(places, rows, strict=True):
        stiff[place], mass[place] = row, 0.0
    values = scipy.linalg.eigvals(stiff, mass)
    return values[np.isfinite(values)]


def orr_sommerfeld(n: int = 120) -> tuple[np.ndarray, int]:
    """The growing mode at Reynolds number 10⁴ and wave number 1."""
    y, d = chebyshev(n, (-1, 1))
    unit, second = np.eye(n + 1), d @ d
    laplace = second - unit
    stiff = (laplace @ laplace) / 1e4 - 1j * ((1 - y**2)[:, None] * laplace + 2 * unit)
    values = collocated(stiff, -1j * laplace, [unit[0], d[0], d[-1], unit[-1]])
    values = values[np.abs(values) < 10]
    return values[[values.imag.argmax()]], n + 1


def beam(count: int, n: int = 40) -> tuple[np.ndarray, int]:
    """A beam, clamped at 0 and free at 1."""
    _, d = chebyshev(n, (0, 1))
    unit, second = np.eye(n + 1), d @ d
    values = collocated(second @ second, unit, [second[0], (second @ d)[0], d[-1], unit[-1]])
    return np.sort(values.real[values.real > 1])[:count], n + 1


def turing(jacobian: list[list[float]], ratio: float, count: int, cells: tuple[int, int] = (100, 70)) -> tuple[
        np.ndarray, int]:  # fmt: skip
    """Growth rates of two reacting substances on a box of 10 × 7 with closed sides."""
    one, other = (second_differences(n, length / n, True) for n, length in zip(cells, (10.0, 7.0), strict=True))
    plain = -(sparse.kron(one, sparse.identity(cells[1])) + sparse.kron(sparse.identity(cells[0]), other))
    (a, b), (c, d) = jacobian
    unit = sparse.identity(cells[0] * cells[1])
    matrix = sparse.bmat([[plain + a * unit, b * unit], [c * unit, ratio * plain + d * unit]]).tocsc()
    values = eigs(matrix, 4 * count, sigma=0.1, return_eigenvectors=False)  # all that grow are near zero
    order = np.lexsort((values.imag, -np.round(values.real, 9)))[:count]
    return values[order], 2 * cells[0] * cells[1]


def bratu(n: int = 80) -> tuple[float, int]:
    """The fold of Δu + λ eᵘ = 0 on the unit square: Newton's method for u, a null vector and λ together."""
    h = 1 / n
    one, unit = second_differences(n - 1, h), sparse.identity(n - 1)
    plain = (sparse.kron(one, unit) + sparse.kron(unit, one)).tocsc()
    x = np.arange(1, n) * h
    shape = np.outer(np.sin(np.pi * x), np.sin(np.pi * x)).ravel()
    u, v, lam, size = 1.4 * shape, shape.copy(), 6.8, len(shape)
    for _ in range(12):
        e = np.exp(u)
        matrix = plain - sparse.diags(lam * e)
        column = sparse.csc_matrix(np.concatenate([-e, -e * v, [0.0]])[:, None])
        left = sparse.bmat([[matrix, None], [sparse.diags(-lam * e * v), matrix], [None, sparse.csc_matrix(shape)]])
        whole = sparse.hstack([left, column]).tocsc()
        step = spsolve(whole, -np.concatenate([plain @ u - lam * e, matrix @ v, [shape @ v - shape @ shape]]))
        u, v, lam = u + step[:size], v + step[size:-1], lam + step[-1]
        if np.abs(step).max() < 1e-11:
            break
    return float(lam), 2 * size + 1


def hopf(n: int = 200) -> tuple[float, int]:
    """B at which the uniform state of the Brusselator begins to oscillate, on an interval with closed ends."""
    plain = -second_differences(n, 1 / n, True)
    unit = sparse.identity(n)

    def rate(b: float) -> float:
        matrix = sparse.bmat([[0.05 * plain + (b - 1) * unit, unit], [-b * unit, 0.02 * plain - unit]]).tocsc()
        return float(eigs(matrix.astype(complex), 4, sigma=0.1 + 1j, return_eigenvectors=False).real.max())

    return float(brentq(rate, 1.8, 2.2, xtol=1e-10)), 2 * n


def swift_hohenberg(n: int = 2000) -> tuple[float, int]:
    """r at which the first stripes begin on an interval of length 10 with closed ends."""
    one = sparse.identity(n) - second_differences(n, 10 / n, True)
    return float(eigsh((one @ one).tocsc(), 1, sigma=-1e-4, return_eigenvectors=False)[0]), n
