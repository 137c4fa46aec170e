"""Adaptive integration over patches: panels are halved where two Gauss rules differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.quadrature.patches import PlacedPoints, RegionPatches
from rannpde.domains.region import composite_gauss, tensor_rule

PANEL_LEVELS = 60
"""Halvings of a panel at most: below, coordinates are rounding."""
BLOCK = 2**16
"""Points that are evaluated at once."""
UNSEEN = 4.0
"""What is left over the difference of two rules, at most: at a singularity r^(α - k), α ≥ 1/3, each halving leaves a
share 2^-α of the error, and the sum of what is left is 2^-α / (1 - 2^-α) < 4 of the last difference."""


@dataclass(frozen=True, eq=False)
class AdaptiveIntegral:
    """Integrals (C,) of several functions, with errors (C,); whether the first reached the tolerance; points used."""

    values: Array
    errors: Array
    reached: bool
    points: int


def integrate_patches(
    function: Callable[[PlacedPoints], Array],
    patches: RegionPatches,
    tolerance: Callable[[Array], float],
    nodes: int,
    budget: int,
    noise: int | None = None,
) -> AdaptiveIntegral:
    """∫ of functions, (M,) points → (M, C), over patches: refined where the first one needs it.

    noise : the column of a function whose integral over a panel says what the others are uncertain by: panels on which
        the rules differ by less are not halved

    tolerance : from the present values (C,) of the integrals, the sum of absolute errors that is allowed
    nodes : Gauss nodes along each parameter of a panel; budget : points at most

    >>> from rannpde.domains.quadrature.patches import BoxPatches
    >>> line = BoxPatches(np.zeros(1), np.eye(1))
    >>> integral = integrate_patches(lambda at: at.points ** -0.5, line, lambda v: 1e-9, 16, 100_000)
    >>> bool(abs(integral.values[0] - 2) <= integral.errors[0] <= 1e-9), integral.reached
    (True, True)
    """
    k = patches.extent
    cube, weights = tensor_rule([composite_gauss(np.array([0.0, 1.0]), nodes)] * k)
    corners = np.array(list(product((0.0, 0.5), repeat=k))).reshape(2**k, k)

    def integrals(patch: Array, low: Array, size: Array) -> Array:
        unit = (low[:, None] + size[:, None, None] * cube).reshape(len(patch) * len(cube), k)
        owners = np.repeat(patch, len(cube))
        blocks = []
        step = max(1, BLOCK // len(cube)) * len(cube)
        for start in range(0, len(unit), step):
            placed = patches.place(owners[start : start + step], unit[start : start + step])
            blocks.append(function(placed) * placed.density[:, None])
        values = np.concatenate(blocks).reshape(len(patch), len(cube), -1)
        return np.einsum("pqc,q,p->pc", values, weights, size**k)

    patch, low, size = np.arange(patches.count), np.zeros((patches.count, k)), np.ones(patches.count)
    coarse = integrals(patch, low, size)
    used = len(cube) * len(patch)
    if k == 0:
        values = coarse.sum(axis=0)
        return AdaptiveIntegral(values, 8 * np.finfo(float).eps * np.abs(values), True, used)
    done, left, pending = (np.zeros(coarse.shape[1]) for _ in range(3))
    for _ in range(PANEL_LEVELS):
        children = len(corners) * len(patch) * len(cube)
        if used + children > budget:
            break
        family = np.repeat(patch, len(corners))
        child_low = (low[:, None] + size[:, None, None] * corners).reshape(len(family), k)
        child_size = np.repeat(0.5 * size, len(corners))
        fine = integrals(family, child_low, child_size)
        used += children
        grouped = fine.reshape(len(patch), len(corners), -1)
        errors = np.abs(grouped.sum(axis=1) - coarse)
        total = done + fine.sum(axis=0)
        if not np.isfinite(total).all():
            return AdaptiveIntegral(total, np.full(len(total), np.inf), False, used)
        allowed = tolerance(total) / UNSEEN  # reported errors are UNSEEN times the differences
        own = errors[:, 0]
        if own.sum() + left[0] <= allowed:
            return AdaptiveIntegral(total, UNSEEN * (left + errors.sum(axis=0)), True, used)
        rough = own > 0.5 * max(allowed - left[0], 0.0) / len(patch)
        if noise is not None:
            rough &= own > np.abs(coarse[:, noise])
        if not rough.any():
            return AdaptiveIntegral(total, UNSEEN * (left + errors.sum(axis=0)), True, used)
        done += grouped[~rough].sum(axis=(0, 1))
        left += errors[~rough].sum(axis=0)
        chosen = np.repeat(rough, len(corners))
        patch, low, size, coarse = family[chosen], child_low[chosen], child_size[chosen], fine[chosen]
        pending = errors[rough].sum(axis=0)
    if used == len(cube) * patches.count:  # not even one comparison
        return AdaptiveIntegral(coarse.sum(axis=0), np.full(coarse.shape[1], np.inf), False, used)
    return AdaptiveIntegral(done + coarse.sum(axis=0), UNSEEN * (left + pending), False, used)
