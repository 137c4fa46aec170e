"""Eigenvalue problems on an interval: integrated Legendre polynomials on cells."""
