"""Coefficients that vary: in every cell the solutions of the equation itself, among polynomials."""
