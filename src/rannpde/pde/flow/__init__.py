"""Incompressible flow on cells: velocities are curls of random stream functions, pressures multipliers on faces."""
