"""The method of lines: features in space, a collocation method in time, and features that adapt themselves.

evolution   the statement → ∂_t u = F, first or second order in time, divergence form kept
boundary    boundary conditions as rows       basis       features → orthonormal basis that satisfies them
galerkin    projection in the L² product      spectral    the same for periodic problems, by fast transforms
radau       Radau IIA collocation             march       stepping, events, blow-up, interruption
resolution  the length ℓ(x) of a solution     passes      adaptive passes, error estimate
periodic    passes with Fourier modes         evolved     the result as a function of space-time
"""

from rannpde.pde.lines.evolution import NotAnEvolution, evolution_form
from rannpde.pde.lines.solve import solve_lines

__all__ = ["NotAnEvolution", "evolution_form", "solve_lines"]
