"""Eigenvalue problems on shapes and boxes: the weak form on cells."""
