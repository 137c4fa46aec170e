"""Quantities of interest: integrals, means, extrema, values and times of a solution, each with a bound of its error."""
