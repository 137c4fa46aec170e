"""Fields that are the components of a displacement, which have one size together.

The energy of an elastic body is symmetric and does not change with infinitesimal rotations, u_f = S_fj x_j with S
antisymmetric. So field f belongs to axis f, and all of them have one unit. A component of a bent bar may be a
thousandth of another, and an error of this vector is what a gauge at the body would show: the components are judged
together, as those of a velocity are.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import relative_difference
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES, WeakForm
from rannpde.rounding import COMPUTED


def judged_difference(displacement: bool, before: Array, after: Array) -> float:
    """The relative l² difference of values (M, fields): of a vector, or the largest over the fields.

    >>> before, after = np.array([[3.0, 0.1]]), np.array([[3.0, 0.2]])
    >>> judged_difference(False, before, after), round(judged_difference(True, before, after), 3)
    (0.5, 0.033)
    """
    if displacement:
        before, after = before.reshape(-1, 1), after.reshape(-1, 1)
    return relative_difference(before, after)


def is_displacement(form: WeakForm) -> bool:
    """Whether the fields of a form are the components of a displacement, one along each axis, in any order.

    The split of mixed derivatives does not matter, as where all conditions are essential none is stated. Fields that
    only lower terms couple have sizes of their own.
    """
    points = form.problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    dim = points.shape[1]
    if form.fields != dim:
        return False
    if form.quasilinear is None:
        diffusion = form.at(points).diffusion
    else:
        rest = np.zeros((len(points), dim)), np.zeros((len(points), dim, dim))
        with np.errstate(all="ignore"):
            diffusion = form.quasilinear.linearised(points, *rest).diffusion
        if not np.isfinite(diffusion).all():
            return False
    symbol = 0.5 * (diffusion + np.swapaxes(diffusion, -1, -2))  # the same for all splits of mixed derivatives
    return _coupled(symbol) and any(
        all(_free_to_rotate(one[np.ix_(order, order)]) for one in symbol) for order in permutations(range(dim))
    )


def _coupled(symbol: Array) -> bool:
    """Whether second derivatives of each field stand in the equations of others (M, K, F, d, d)."""
    sizes = np.abs(symbol).max(axis=(0, 3, 4))
    others = sizes - np.diag(np.diag(sizes))
    return bool((others.max(axis=1) > COMPUTED * sizes.max()).all())


def _free_to_rotate(symbol: Array) -> bool:
    """Whether a split of mixed derivatives gives a symmetric form (K, F, d, d) without energy in rotations."""
    dim, size = len(symbol), float(np.abs(symbol).max())
    if np.abs(symbol - np.swapaxes(symbol, 0, 1)).max() > COMPUTED * size:
        return False
    turns = np.zeros((dim * (dim - 1) // 2, dim, dim))
    for turn, (i, j) in zip(turns, combinations(range(dim), 2), strict=True):
        turn[i, j], turn[j, i] = 1.0, -1.0
    splits = np.einsum("akf,bij->abkfij", turns, turns).reshape(-1, *symbol.shape)
    matrix = np.einsum("skfij,rfj->rkis", splits, turns).reshape(-1, len(splits))
    right = -np.einsum("kfij,rfj->rki", symbol, turns).ravel()
    left = matrix @ np.linalg.lstsq(matrix, right, rcond=None)[0] - right
    return bool(np.abs(left).max() <= COMPUTED * size)
