"""One tolerance, divided once: tol = error of space + error of time + algebraic errors.

Adaptive refinement makes the error of space meet what the other two leave. Every part of a method that ends early
(Newton's method, Krylov methods, quadrature, truncation of modes and of what is stored) takes the same share.
"""

from __future__ import annotations

TIME_SHARE = 0.3
"""Share of the tolerance for the time integration: its work grows like tol^(-1/8) for the order used, that of space
like log(1/tol) in each dimension, so that time gets less than half."""
ALGEBRA_SHARE = 0.05
"""Share of the tolerance for each algebraic error: up to four of them stay below a fifth of it."""
