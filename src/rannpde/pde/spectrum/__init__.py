"""Eigenvalues, linear stability and continuation."""
