"""Linear least squares for the output weights: normal equations, their NUFFT short-cut, orthogonal factorisations."""

from rannpde.fitting.fit import fit
from rannpde.fitting.normal import NormalEquations, NotPositiveDefinite
from rannpde.fitting.orthogonal import LeastSquares, OrthogonalEquations, solve_orthogonal
from rannpde.fitting.path import LinearFit, PenaltyPath

__all__ = [
    "LeastSquares",
    "LinearFit",
    "NormalEquations",
    "NotPositiveDefinite",
    "OrthogonalEquations",
    "PenaltyPath",
    "fit",
    "solve_orthogonal",
]
