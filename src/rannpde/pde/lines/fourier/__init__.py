"""Fourier modes on boxes that are periodic in all coordinates."""
