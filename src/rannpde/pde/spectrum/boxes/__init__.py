"""Eigenvalue problems on boxes: tensor products of polynomials and Fourier modes that satisfy the conditions."""
