"""How the constants grow with the dimension d: the remark of the paper (F(d), P(λ, d)) and the true growth.

The remark bounds C_π L_ψ by F(d), with √Γ(d+7/2) from the unsquared norm of a ψ that is not normalised. For ψ with
K_{ψ,σ} = 1 the amplitude alone is of order (2π)^-(n-1) / Γ, which changes everything. ``growth`` computes, for
u = exp(-|z|²/2) on R^n (largest value 1) and |σ| ≤ 1, all in logarithms of numbers that bound N E|u_N(z) - u(z)|²:

    bound    C_π times the corrected right-hand side of Lemma 1
    moment   ∫∫ |R_ψ u|²/π, the second moment that π gives where σ² is replaced by its bound 1
    least    (∫∫ |R_ψ u|)², the same for the best of all laws
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log, pi

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, roots_hermitenorm

from rannpde.arrays import Array
from rannpde.errors import positive_integer, require
from rannpde.network.activations import Activation
from rannpde.network.laws import HeavyTailed
from rannpde.theory.bounds import parseval_right
from rannpde.theory.ridgelet_function import RidgeletFunction, admissible, hermite_functions, panels, with_parity
from rannpde.theory.targets import GaussianMixture
from rannpde.theory.unbiased import least_order


def growth_factor(d: int, ratio: float) -> float:
    """log F(d) of the growth remark, F = π^(d/2) Γ(α)/Γ(d/2+α) √Γ(d+7/2) with α = ratio · d."""
    d = positive_integer("d", d)
    require(ratio > 0, "ratio", ratio, "> 0")
    alpha = ratio * d
    return 0.5 * d * log(pi) + lgamma(alpha) - lgamma(0.5 * d + alpha) + 0.5 * lgamma(d + 3.5)


def growth_exponent(ratio: float) -> float:
    """P(λ, d) (eq. poly-condition): the linear rate of log F(d), ½ ln π + λ ln λ - (λ+½) ln(λ+½).

    >>> growth_exponent(1.2) < 0 < growth_exponent(0.5)
    True
    """
    require(ratio > 0, "ratio", ratio, "> 0")
    return 0.5 * log(pi) + ratio * log(ratio) - (ratio + 0.5) * log(ratio + 0.5)


def critical_ratio() -> float:
    """The λ at which P changes sign: the remark's sufficient π/e ≈ 1.156 is a little more than needed."""
    return float(brentq(growth_exponent, 0.5, 2.0, xtol=1e-14))


@dataclass(frozen=True)
class Growth:
    """Natural logarithms of the constants in one dimension d, for a unit Gaussian and L²; printed is log F(d)."""

    d: int
    order: int
    normaliser: float
    printed: float
    bound: float
    moment: float
    least: float


def growth(d: int, activation: str | Activation = "tanh", *, ratio: float | None = None, excess: int = 0) -> Growth:
    """The constants for λ_τ = 1 and λ_a = d/2 + α, α = ratio · d (or 1/2 where ratio is None).

    excess : how many steps of 2 the order of ψ is above the least with finite variance
    """
    d = positive_integer("d", d)
    n = d + 1
    law = HeavyTailed(1.0, 0.5 * d + (0.5 if ratio is None else ratio * d))
    order = least_order(activation, law, n) + 2 * excess
    psi = admissible(activation, n, order)
    printed = -inf if ratio is None else growth_factor(d, ratio)
    least = 2 * log_absolute_integral(admissible(activation, n, with_parity(activation, n + 2)), n)
    return Growth(d, order, law.log_normaliser(n), printed, _log_bound(psi, law, n), log_moment(psi, law, n), least)


def log_moment(psi: RidgeletFunction, law: HeavyTailed, n: int) -> float:
    """log ∫∫ |R_ψ u|²/π dw db for u = exp(-|z|²/2): the integral over b is closed, (τ, |a|) are summed on a grid."""
    time = law.time_decay or 0.0
    return law.log_normaliser(n) + log_parseval_left(psi, n, time, law.space_decay)


def log_parseval_left(psi: RidgeletFunction, n: int, p: float, q: float) -> float:
    """log of the left-hand side of Lemma 1 for u = exp(-|z|²/2), with weights (1+τ²)^p (1+|a|²)^q (1+b²)."""
    d, k = n - 1, psi.order
    # ∫ He_k² e^(-x²) = Γ(k+½); ∫ x² He_k² e^(-x²) = Γ(k+½)(k² /(k-½) - 2k + k + ½)
    zeroth, second = lgamma(k + 0.5), lgamma(k + 0.5) + log(k**2 / (k - 0.5) - k + 0.5)
    # τ = sinh x and |a| = sinh y spread the algebraic tails over a bounded range of x and y
    x, weight = panels(0.0, 40.0, 40, 8)
    tau, log_dtau = np.log1p(np.sinh(x) ** 2), np.log(np.cosh(x)) + np.log(weight)
    log_s2 = np.logaddexp(tau[:, None], _log_square(x)[None, :])
    log_area = log(2.0) + 0.5 * d * log(pi) - lgamma(0.5 * d)
    radial = 0.5 * (d - 1) * _log_square(x) + log_dtau + q * tau
    terms = (log(2.0) + log_dtau + p * tau)[:, None] + radial[None, :]
    terms = terms + np.logaddexp(zeroth - (k + 0.5) * log_s2, second - (k - 0.5) * log_s2)
    return 2 * log(abs(psi.amplitude)) + d * log(2 * pi) + log_area + float(logsumexp(terms))


def _log_square(x: Array) -> Array:
    return np.asarray(2 * np.log(np.sinh(x)))


def log_absolute_integral(psi: RidgeletFunction, n: int) -> float:
    """log ∫∫ |R_ψ u| dw db for u = exp(-|z|²/2): |a| (2π)^((n-1)/2) ∫|He_k|e^(-x²/2) dx · π^(n/2) Γ((k-n)/2)/Γ(k/2)."""
    k = psi.order
    require(k > n, "order of psi", k, f"> n = {n}", "else the transform is not integrable")
    # He_k e^(-x²/2) is minus the derivative of He_(k-1) e^(-x²/2), whose total variation sits at the zeros of He_k
    zeros = roots_hermitenorm(k)[0]
    oscillation = 2 * float(np.abs(hermite_functions(zeros, k - 1)[-1]).sum())
    sphere = 0.5 * n * log(pi) + lgamma(0.5 * (k - n)) - lgamma(0.5 * k)
    return log(abs(psi.amplitude)) + 0.5 * (n - 1) * log(2 * pi) + log(oscillation) + sphere


def _log_bound(psi: RidgeletFunction, law: HeavyTailed, n: int) -> float:
    """log of C_π times the corrected right-hand side of Lemma 1, for the unit Gaussian."""
    right = parseval_right(GaussianMixture.gaussian(n), psi, law.time_decay or 0.0, law.space_decay)
    return law.log_normaliser(n) + log(right)
