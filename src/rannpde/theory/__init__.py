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
from rannpde.theory.boxed import box_target
from rannpde.theory.corollaries import (
    ResidualBound,
    continuity_corollary,
    navier_stokes_approximation,
    navier_stokes_corollary,
    paired_network,
    porous_medium_approximation,
    porous_medium_corollary,
)
from rannpde.theory.dimension import critical_ratio, growth, growth_exponent, growth_factor
from rannpde.theory.extension import Reflection, smooth_step
from rannpde.theory.flows import EulerianWave, PeriodicFlow
from rannpde.theory.fourier_target import FourierTarget
from rannpde.theory.losses import boundary_loss, initial_loss, navier_stokes_losses, porous_medium_loss
from rannpde.theory.optimal import OptimalLaw, best_decay, best_estimator, optimal_law
from rannpde.theory.ridgelet import dual_transform, reconstruct, ridgelet_transform
from rannpde.theory.ridgelet_function import (
    RidgeletFunction,
    admissibility_constant,
    admissible,
    kernel_constant,
)
from rannpde.theory.separable import SeparableTarget, barenblatt_target, separable_target
from rannpde.theory.targets import GaussianMixture, RidgeletTarget
from rannpde.theory.tightness import fitted_error, measured_errors, required_width
from rannpde.theory.traces import boundary_trace, condition_bounds, face_constant, initial_trace
from rannpde.theory.unbiased import Estimator, estimator, least_order, unbiased_network, variance_limit

__all__ = [
    "Constant",
    "Estimator",
    "EulerianWave",
    "FourierTarget",
    "GaussianMixture",
    "OptimalLaw",
    "PeriodicFlow",
    "Reflection",
    "ResidualBound",
    "RidgeletFunction",
    "RidgeletTarget",
    "SeparableTarget",
    "SmoothnessWarning",
    "admissibility_constant",
    "admissible",
    "barenblatt_target",
    "best_decay",
    "best_estimator",
    "boundary_loss",
    "boundary_trace",
    "box_target",
    "condition_bounds",
    "continuity_corollary",
    "critical_ratio",
    "dual_transform",
    "estimator",
    "face_constant",
    "fitted_error",
    "growth",
    "growth_exponent",
    "growth_factor",
    "initial_loss",
    "initial_trace",
    "kernel_constant",
    "least_order",
    "measured_errors",
    "navier_stokes_approximation",
    "navier_stokes_corollary",
    "navier_stokes_losses",
    "normaliser",
    "optimal_law",
    "paired_network",
    "parseval_check",
    "parseval_constant",
    "parseval_constants",
    "porous_medium_approximation",
    "porous_medium_corollary",
    "porous_medium_loss",
    "reconstruct",
    "required_width",
    "ridgelet_transform",
    "separable_target",
    "smooth_step",
    "theorem_bound",
    "unbiased_network",
    "variance_limit",
]
