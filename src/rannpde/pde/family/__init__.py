"""Parametric families: the solution for every value of some parameters, from few solves."""
