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
    rounding : relative to ∫|q|, or to a value, what is left to rounding: no digits below it are asked for
    safety : factor of the difference of two solutions in a bound; 2 covers two errors of one size that cancel by half
    finer : the tolerance of the second solution over the estimate of the first: its own error should not count
    least_tolerance : least tolerance of the second solution, above what float64 and random features allow
    companion_time : seconds of the second solve, as a factor of the first and a time to add, at most
    cloud, cloud_radius : points around a point, and how far, relative to the size of the domain, at which two
        solutions are compared: at the point alone their difference may vanish by chance
    resolved : relative difference of two solutions up to which an expression counts as known at a point: nearer to a
        corner, derivatives of a network may be anything
    beside : factor of the difference of two solutions around a point by which they differ at it, from which on a
        derivative there is called unresolved
    scan : points at which extrema begin to be sought; candidates : those of them that Newton's method refines
    times : points in time at which a first passage is looked for, per time scale that the solution resolves
    most_solves : solves of the loop that works towards tolerances of outputs, at most
    step : by which factors the tolerance of the fields is lowered from solve to solve, least and most
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
