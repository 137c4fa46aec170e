"""How the reference solutions and coefficients of the cases were computed, with the convergence tables."""
