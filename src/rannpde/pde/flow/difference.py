"""The relative difference of two flows, also where the velocity or the pressure vanishes everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import root_mean_square
from rannpde.rounding import COMPUTED


@dataclass(frozen=True)
class FlowDifference:
    """Relative differences of two flows: of the velocity as a vector, and of the pressure.

    vanishing : whether the pressure is no larger than its differences, and is compared with the viscous stress; still :
    whether the velocity is no larger than its differences
    """

    velocity: float
    pressure: float
    vanishing: bool
    still: bool = False


def flow_difference(
    before: Array, now: Array, columns: tuple[int, int, int], stress: float, driven: float, tol: float
) -> FlowDifference:
    """Compare two flows (M, fields); columns : those of the velocity and the pressure.

    stress : root mean square of ν ∇u; driven : velocity that differences of pressure alone would drive, over their size

    A component that vanishes has no size of its own. Nor has a pressure that cannot be distinguished from zero, as in
    Couette's flow: its differences are compared with the viscous stress. The velocity of a fluid at rest cannot be
    distinguished from zero: it is a rounding error of the velocity that the pressure would drive.
    """
    if not (np.isfinite(before).all() and np.isfinite(now).all()):
        return FlowDifference(np.inf, np.inf, False)
    parts = (list(columns[:2]), [columns[2]])
    gaps = [root_mean_square((before - now)[:, part]) for part in parts]
    sizes = [root_mean_square(now[:, part]) for part in parts]
    zero = [size <= 2 * gap for size, gap in zip(sizes, gaps, strict=True)]
    if zero[0]:
        sizes[0] = max(sizes[0], COMPUTED / tol * driven * sizes[1])
    if zero[1]:
        sizes[1] = max(sizes[1], stress)
    relative = [gap / max(size, 1e-300) for gap, size in zip(gaps, sizes, strict=True)]
    return FlowDifference(relative[0], relative[1], zero[1], zero[0])
