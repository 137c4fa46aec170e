"""Rows of the least-squares systems: collocation points, continuity constraints, fluxes through interfaces."""
