"""One tolerance, divided once: tol = error of space + error of time + algebraic errors; and criteria of all methods.

Adaptive refinement makes the error of space meet what the other two leave. Every part of a method that ends early
(Newton's method, Krylov methods, quadrature, truncation of modes and of what is stored) takes the same share.
"""

from __future__ import annotations

MUCH_SMALLER = 0.1
"""An order of magnitude: what is smaller by this factor is neglected beside the other, and what is not is comparable
with it. This is the one meaning of "much smaller" in all rules."""

TIME_SHARE = 0.3
"""Share of the tolerance for the time integration: its work grows like tol^(-1/8) for the order used, that of space
like log(1/tol) in each dimension, so that time gets less than half."""
ALGEBRA_SHARE = 0.05
"""Share of the tolerance for each algebraic error: up to four of them stay below a fifth of it."""

PILOT_TOLERANCE = 1e-3
"""Relative error of pilot solves, which estimate scales, sizes and unknowns for the solve that follows."""
TOLERANCE_REDUCTION = 4.0
"""Factor between the tolerances in time of successive iterations, so that errors in time show in their difference: for
kinks that are carried around, whose error in time falls like √tol, a factor of 2 hid nine tenths of the error."""
GAIN = 0.8
"""Refinement that does not lower what it should to this share does not help any more: the one number of all stopping
rules. Smaller ones gave up on kinks, whose errors fall like the square root of the size of cells."""
FINER_FACTOR = 2.0
"""Factor of the difference of two solutions, the finer of which is believed, in a bound of its error: it covers two
errors of one size that cancel by half."""
ESTIMATOR_FACTOR = 3.0
"""Factor of estimates by the difference of solutions that have part of their errors in common, and of bounds for such
differences. Behind a step and at re-entrant edges errors were two to four times the difference of two iterations, over
sixty random problems with learned features up to 3.3 times."""
UNBOUNDED = 1e6
"""A solution that is this many times its scale is on its way to infinity: before a pole of order two, a thousandth of
the time is left then."""
ILL_POSED_RATIO = 1e3
"""Solutions whose difference exceeds this multiple of their relative residuals are not determined by their residuals:
problems that are well posed have constants of stability below it."""

RESIDUAL_TOLERANCE = 1e-2
"""Largest relative residual, on points that were not used, of what may be called a solution."""
STRONG_RESIDUAL_TOLERANCE = MUCH_SMALLER * RESIDUAL_TOLERANCE
"""The same where the residual of the strong form is what is minimised, by least squares: in its maximum over cells, and
on points that were not used."""
SAME_SOLUTION = RESIDUAL_TOLERANCE
"""Functions that differ by less, relative to their size, approximate one solution; what differs by more may not be
determined. Values of a field that differ by less than this share of its range count as the same."""
UNSOLVED_RESIDUAL = 0.3
"""With a larger relative residual, where a third of the terms of an equation are left, nothing is solved."""

NONLINEAR_SHARE = MUCH_SMALLER
"""Share of the second-order part in a change up to which a linearisation predicts it, and Newton's method converges
quadratically: the ratio of one of its steps to the step before."""
LINEAR_CHANGE = NONLINEAR_SHARE**0.5
"""Relative change of a function whose second-order part, of the size of its square, is that share."""

CONDITION_WEIGHT = 10.0
"""Weight of conditions and of continuity relative to equations in least squares of the strong form: in the plane 10 to
100 differ little, 1 and 1000 lose a factor of 3; non-linear Poisson gains up to a digit over weight 1."""
TAIL_START = 0.875
"""Coefficients of an expansion beyond this share of its highest order, the last eighth, are its tail: the truncation
error is smaller."""
UNIFORM_SHARE = 0.2
"""Share of samples of a density that is uniform instead (a defensive mixture), so that what the density does not know
of is still found; the others are at most a quarter more dense for it."""
