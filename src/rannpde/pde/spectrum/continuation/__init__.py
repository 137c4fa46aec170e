"""Branches of stationary solutions over a parameter."""
