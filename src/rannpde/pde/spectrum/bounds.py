"""Bounds of eigenvalues of self-adjoint problems from residuals and gaps, whatever the discretisation.

A function in the domain of a self-adjoint operator that leaves the residual δ, relative to its norm, has an eigenvalue
within δ (Weinstein). Where the rest of the spectrum is further away than the gap, it lies within δ²/gap (Kato and
Temple); eigenvalues of a cluster are bounded together, by the sum of the squares of their residuals.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array


def residual_bounds(values: Array, residuals: Array) -> Array:
    """Bounds (K,) of eigenvalues (K,) with residuals (K,); the last of them may be computed for their gaps only.

    A gap is known only between computed eigenvalues; an outermost one has a gap on one side.

    >>> residual_bounds(np.array([1.0, 4.0, 9.0]), np.array([1e-3, 1e-3, 1e-3])).round(9).tolist()
    [3.33e-07, 3.33e-07, 2e-07]
    """
    order = np.argsort(values)
    ordered, errors = np.asarray(values)[order], np.asarray(residuals)[order]
    bounds = np.array(errors, dtype=float)
    groups: list[list[int]] = []
    for k in range(len(ordered)):
        touching = groups and ordered[k] - ordered[k - 1] <= 2 * (errors[k] + errors[k - 1])
        if touching:
            groups[-1].append(k)
        else:
            groups.append([k])
    for number, group in enumerate(groups):
        gaps = []
        if number:
            before = groups[number - 1][-1]
            gaps.append(ordered[group[0]] - ordered[before] - errors[before])
        if number + 1 < len(groups):
            after = groups[number + 1][0]
            gaps.append(ordered[after] - errors[after] - ordered[group[-1]])
        cluster_error = float(np.sqrt((errors[group] ** 2).sum()))
        gap = min(gaps, default=0.0)
        bounds[group] = np.minimum(cluster_error, cluster_error**2 / gap) if gap > cluster_error else cluster_error
    unordered = np.empty(len(bounds))
    unordered[order] = bounds
    return unordered
