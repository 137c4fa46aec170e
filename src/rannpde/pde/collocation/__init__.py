"""Collocation: all output weights at once, by Gauss–Newton on the residuals at points. Stationary or in space-time."""
