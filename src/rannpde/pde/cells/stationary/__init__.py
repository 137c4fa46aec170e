"""Stationary problems on one mesh: the least-squares system, and Newton's method."""
