"""Collocation: all output weights at once, by Gauss–Newton on the residuals at points."""
