"""One tolerance, divided once: tol = error of space + error of time + algebraic errors; and criteria of all methods.

Adaptive refinement makes the error of space meet what the other two leave. Every part of a method that ends early
(Newton's method, Krylov methods, quadrature, truncation of modes and of what is stored) takes the same share.
"""

from __future__ import annotations

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
ESTIMATOR_FACTOR = 3.0
"""Factor of estimates by the difference of solutions that have part of their errors in common, and of bounds for such
differences. Behind a step and at re-entrant edges errors were two to four times the difference of two iterations, over
sixty random problems with learned features up to 3.3 times."""
ILL_POSED_RATIO = 1e3
"""Solutions whose difference exceeds this multiple of their relative residuals are not determined by their residuals:
problems that are well posed have constants of stability below it."""

RESIDUAL_TOLERANCE = 1e-2
"""Largest relative residual, on points that were not used, of what may be called a solution."""
UNSOLVED_RESIDUAL = 0.5
"""With a larger relative residual, where half of the terms of an equation are left, nothing is solved."""

NONLINEAR_SHARE = 0.1
"""Share of the second-order part in a change up to which a linearisation predicts it, and Newton's method converges
quadratically: the ratio of one of its steps to the step before."""
LINEAR_CHANGE = NONLINEAR_SHARE**0.5
"""Relative change of a function whose second-order part, of the size of its square, is that share."""

UNIFORM_SHARE = 0.2
"""Share of samples of a density that is uniform instead (a defensive mixture), so that what the density does not know
of is still found; the others are at most a quarter more dense for it."""
