"""The empirical numbers behind quantities of interest, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.pde.tolerance import FINER_FACTOR, ILL_POSED_RATIO, PILOT_TOLERANCE, SAME_SOLUTION, TOLERANCE_REDUCTION
from rannpde.rounding import ROUNDED


@dataclass(frozen=True)
class OutputSettings:
    """Numbers of the evaluation of outputs.

    nodes : Gauss nodes along an axis of a panel with one, two, three and more parameters; analytic integrands converge
        in the first panels, and singular ones pay for the halvings only
    points : evaluations of the solution that one integral may take; the error of what is left is part of the bound
    rounding : error, relative to ∫|q| or to a value, that counts as rounding: no smaller tolerance is asked for
    safety : factor of the difference of two solutions in a bound; 2 covers two equally large errors, half cancelled
    finer : the tolerance of the second solution over the estimate of the first, so that its own error is negligible
    least_tolerance : least tolerance of the second solution, which float64 and random features can still reach
    companion_time : seconds of the second solve, as a factor of the first and a time to add, at most
    cloud, cloud_radius : points around a point, and how far, relative to the size of the domain, at which two
        solutions are compared: at the point alone their difference may vanish by chance
    resolved : relative difference of two solutions up to which an expression counts as known at a point: close to a
        corner, the derivatives of a network may be arbitrary
    beside : a derivative at a point is unresolved where the two solutions differ by more than this factor of their
        difference around the point
    scan : points at which the search for extrema begins; candidates : how many of them Newton's method refines
    times : points in time at which a first passage is looked for, per time scale that the solution resolves
    most_solves : most solves of the loop that lowers the tolerance of the fields until the outputs meet theirs
    step : smallest and largest factor by which that tolerance is multiplied from solve to solve
    """

    nodes: tuple[int, ...] = (16, 12, 8, 6)
    points: int = 2**19
    rounding: float = ROUNDED
    safety: float = FINER_FACTOR
    finer: float = 1 / TOLERANCE_REDUCTION
    least_tolerance: float = 3e-13
    companion_time: tuple[float, float] = (5.0, 5.0)
    cloud: int = 48
    cloud_radius: float = 0.03
    resolved: float = SAME_SOLUTION
    beside: float = ILL_POSED_RATIO
    scan: int = 4096
    candidates: int = 12
    times: int = 400
    most_solves: int = 7
    step: tuple[float, float] = (PILOT_TOLERANCE, 1 / TOLERANCE_REDUCTION)
