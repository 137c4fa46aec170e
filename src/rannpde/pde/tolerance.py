"""One tolerance, divided once: tol = error of space + error of time + algebraic errors; and criteria of all methods.

Adaptive refinement makes the error of space meet what the other two leave. Every part of a method that ends early
(Newton's method, Krylov methods, quadrature, truncation of modes and of what is stored) takes the same share.
"""

from __future__ import annotations

MUCH_SMALLER = 0.1
"""An order of magnitude: what is smaller by this factor is neglected beside the other, and what is not is comparable
with it. This is the one meaning of "much smaller" in all rules."""
COMPARABLE = MUCH_SMALLER**0.5
"""Half an order of magnitude: what is above this share of another is nearer to it than to what is much smaller."""

TIME_SHARE = 0.3
"""Share of the tolerance for the time integration: its work grows like tol^(-1/8) for the order used, that of space
like log(1/tol) in each dimension, so that time gets less than half."""
ALGEBRA_SHARE = MUCH_SMALLER * TIME_SHARE
"""Share of the tolerance for each algebraic error, which costs little to reduce: much smaller than that in time, so
that up to four of them stay below an eighth of the tolerance. Space has more than half of it."""

DOERFLER_SHARE = 1 - MUCH_SMALLER
"""Share θ of the squared indicators that marked cells hold (Dörfler): the others hold much less. Degrees are high here,
and a cell that is split leaves next to nothing; methods of low order need smaller shares for meshes of optimal order.
Least squares on cells take the same time with 0.8 to 0.99; with 0.8 one of three draws at corners of an inclusion did
not converge."""
GAIN = 0.8
"""Refinement that does not lower an error to this share of it does not help any more: the one number of all stopping
rules. Smaller ones gave up on kinks, whose errors fall like the square root of the size of cells."""
FINER_FACTOR = 2.0
"""Factor of the difference of two solutions in a bound of the error of the finer one, which is the result. It covers
two equally large errors that cancel by half."""
TOLERANCE_REDUCTION = (1 - 1 / FINER_FACTOR) ** -2
"""Factor between the tolerances in time of successive iterations, so that errors in time show in their difference. The
error of kinks that are transported falls like √tol; FINER_FACTOR times the difference then is the first error."""
ESTIMATOR_FACTOR = 3.0
"""Factor of estimates by the difference of solutions that have part of their errors in common, and of bounds for such
differences. Behind a step and at re-entrant edges errors were two to four times the difference of two iterations, over
sixty random problems with learned features up to 3.3 times."""
RESIDUAL_TOLERANCE = 1e-2
"""Largest relative residual, on points that were not used, of what may be called a solution."""
STRONG_RESIDUAL_TOLERANCE = MUCH_SMALLER * RESIDUAL_TOLERANCE
"""Largest relative residual of the strong form where it is minimised by least squares: in its maximum over cells, and
on points that were not used."""
SAME_SOLUTION = RESIDUAL_TOLERANCE
"""Functions that differ by less, relative to their size, approximate one solution; what differs by more may not be
determined. Values of a field that differ by less than this share of its range count as the same."""
UNSOLVED_RESIDUAL = COMPARABLE
"""With a larger relative residual, which is comparable with the terms of the equation, nothing is solved."""
ILL_POSED_RATIO = 1 / STRONG_RESIDUAL_TOLERANCE
"""Solutions whose difference exceeds this multiple of their relative residuals are not determined by their residuals:
the residual of what may be called a solution would allow errors of the size of the solution."""

PILOT_TOLERANCE = MUCH_SMALLER * SAME_SOLUTION
"""Relative error of pilot solves, which estimate scales, sizes and unknowns for the solve that follows: much smaller
than the difference from which on two solutions count as distinct."""
NEARBY = MUCH_SMALLER * SAME_SOLUTION
"""Distance, relative to the domain, over which values change by much less than SAME_SOLUTION where nothing is singular:
how far from a point its neighbourhood is sampled."""
UNBOUNDED = PILOT_TOLERANCE**-2
"""A solution that is this many times its scale is on its way to infinity: the time that is left before a pole of order
two is then PILOT_TOLERANCE of the time scale."""

NONLINEAR_SHARE = MUCH_SMALLER
"""Share of the second-order part in a change up to which a linearisation predicts it, and Newton's method converges
quadratically: the ratio of one of its steps to the step before."""
LINEAR_CHANGE = NONLINEAR_SHARE**0.5
"""Relative change of a function whose second-order part, of the size of its square, is that share."""

SUFFICIENT_DECREASE = 1e-4
"""Share of the decrease that a linear model predicts for a step of a line search which suffices to accept it (Armijo's
condition; the value is that of Nocedal and Wright, Numerical Optimization, ch. 3)."""
CONDITION_WEIGHT = 1 / MUCH_SMALLER
"""Weight of conditions and of continuity relative to equations in least squares of the strong form: an order of
magnitude, so that what they leave is much smaller. In the plane 10 to 100 differ little, 1 and 1000 lose a factor of
3; non-linear Poisson gains up to a digit over weight 1."""
TAIL_START = 0.875
"""Coefficients of an expansion beyond this share of its highest order, the last eighth, are its tail: the truncation
error is smaller."""
UNIFORM_SHARE = 0.2
"""Share of samples of a density that is uniform instead (a defensive mixture), so that what the density does not know
of is still seen; the others are at most a quarter more dense for it. With a tenth, first iterations of heat from a step
were off by 40 to 70 %, with a fifth by 2 to 20 %."""
CONFIDENCE = 0.95
"""Probability with which intervals and bands hold the value, unless another one is asked for; also the efficiency of
robust estimates at normal noise, relative to least squares. Both are conventions of statistics."""
