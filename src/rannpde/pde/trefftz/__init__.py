"""Trefftz networks: features that satisfy a linear equation with constant coefficients exactly."""
