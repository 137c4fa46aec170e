"""The theory of the paper as code that runs: ridgelets, the unbiased network, every constant and bound."""

from rannpde.theory.bounds import (
    Constant,
    SmoothnessWarning,
    normaliser,
    parseval_check,
    parseval_constant,
    parseval_constants,
    theorem_bound,
)
from rannpde.theory.boxed import box_target, smooth_step
from rannpde.theory.corollaries import (
    ResidualBound,
    navier_stokes_corollary,
    navier_stokes_losses,
    paired_network,
    porous_medium_corollary,
    porous_medium_loss,
)
from rannpde.theory.dimension import critical_ratio, growth, growth_exponent, growth_factor
from rannpde.theory.fourier_target import FourierTarget
from rannpde.theory.optimal import OptimalLaw, best_decay, best_estimator, optimal_law
from rannpde.theory.ridgelet import dual_transform, reconstruct, ridgelet_transform
from rannpde.theory.ridgelet_function import (
    RidgeletFunction,
    admissibility_constant,
    admissible,
    kernel_constant,
)
from rannpde.theory.targets import GaussianMixture, RidgeletTarget
from rannpde.theory.tightness import fitted_error, measured_errors, required_width
from rannpde.theory.unbiased import Estimator, estimator, least_order, unbiased_network, variance_limit

__all__ = [
    "Constant",
    "Estimator",
    "FourierTarget",
    "GaussianMixture",
    "OptimalLaw",
    "ResidualBound",
    "RidgeletFunction",
    "RidgeletTarget",
    "SmoothnessWarning",
    "admissibility_constant",
    "admissible",
    "best_decay",
    "best_estimator",
    "box_target",
    "critical_ratio",
    "dual_transform",
    "estimator",
    "fitted_error",
    "growth",
    "growth_exponent",
    "growth_factor",
    "kernel_constant",
    "least_order",
    "measured_errors",
    "navier_stokes_corollary",
    "navier_stokes_losses",
    "normaliser",
    "optimal_law",
    "paired_network",
    "parseval_check",
    "parseval_constant",
    "parseval_constants",
    "porous_medium_corollary",
    "porous_medium_loss",
    "reconstruct",
    "required_width",
    "ridgelet_transform",
    "smooth_step",
    "theorem_bound",
    "unbiased_network",
    "variance_limit",
]
