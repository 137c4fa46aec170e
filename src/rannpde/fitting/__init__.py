"""Linear least squares for the output weights: normal equations, their NUFFT short-cut, orthogonal factorisations."""

from rannpde.fitting.distributed import collect_equations
from rannpde.fitting.normal import NormalEquations, NotPositiveDefinite
from rannpde.fitting.orthogonal import Factor, OrthogonalEquations, SolvedRows
from rannpde.fitting.path import LinearFit, PenaltyPath

__all__ = [
    "Factor",
    "LinearFit",
    "NormalEquations",
    "NotPositiveDefinite",
    "OrthogonalEquations",
    "PenaltyPath",
    "SolvedRows",
    "collect_equations",
]
