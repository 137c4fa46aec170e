"""Piecewise polynomials for equations with integrals and delays: one least-squares problem for all coordinates."""
