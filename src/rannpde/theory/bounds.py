"""Constants and bounds of Lemma 1 (Parseval type) and Theorem 1, each as printed and as corrected.

What is corrected, with n = d + 1, P = p + λ_τ, Q = q + λ_a and ‖·‖_{P,Q} the norm of H^P(R; H^Q(R^d)):

    ∫ |R_ψ u|² (1+τ²)^P (1+|a|²)^Q (1+b²)
        ≤ (2π)^(n-1) [(C_1 + 2 C_2) ‖u‖²_{P,Q} + 2 C_3 (‖t u‖²_{P+1,Q} + Σ_j ‖x_j u‖²_{P,Q+1})]

with exact one-dimensional integrals C_1, C_2, C_3 of ψ̂ (the factors 2 are those of |a+b|² ≤ 2|a|²+2|b|², (2π)^(n-1)
is Plancherel's in b and in z). For the theorem, Σ_α w^(2α) ≤ (1+τ²)^p (1+|a|²)^q, so no derivatives need to be counted:

    E‖u - u_N‖²_{H^p_t H^q_x(Ω)} ≤ C_π |Ω| max_{j ≤ p+q} ‖σ^(j)‖²_∞ · (right-hand side above) / N.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, exp, gamma, inf, pi

import numpy as np
from scipy.integrate import quad

from rannpde.arrays import Array, Rng
from rannpde.domains import Domain, Estimate
from rannpde.errors import require
from rannpde.network.activations import Activation
from rannpde.network.laws import HeavyTailed, WeightLaw
from rannpde.theory.extension import Reflection
from rannpde.theory.parameter_space import Proposal, parameter_integral
from rannpde.theory.ridgelet_function import RidgeletFunction
from rannpde.theory.targets import RidgeletTarget
from rannpde.theory.unbiased import Estimator, check_domain


class SmoothnessWarning(UserWarning):
    """The function has fewer derivatives than the theorem asks for."""


@dataclass(frozen=True)
class Constant:
    """One constant or bound: its source in the paper, its value there and its value as derived anew."""

    name: str
    source: str
    printed: float
    corrected: float
    note: str = ""


# -------------------------------------------------------------------------------------------------- C_π, C_ψ, L_ψ


def normaliser(law: HeavyTailed, dim: int, *, by_quadrature: bool = False) -> float:
    """C_π of Theorem 1 on R^dim, in closed form or by three one-dimensional integrals.

    >>> law = HeavyTailed(1.0, 1.0)
    >>> abs(normaliser(law, 2) - normaliser(law, 2, by_quadrature=True)) < 1e-10
    True
    """
    if not by_quadrature:
        return exp(law.log_normaliser(dim))
    d = law.space_dim(dim)
    sphere = 2 * pi ** (d / 2) / gamma(d / 2)

    def radial(power: float, decay: float) -> float:
        # r = tan θ gives sin^power cos^(2 decay - power - 2) on (0, π/2); quad takes the powers at both ends as weights
        ends = (power, 2 * decay - power - 2)

        def rest(theta: float) -> float:
            return float(np.sinc(theta / pi) ** ends[0] * np.sinc(0.5 - theta / pi) ** ends[1])

        return float(quad(rest, 0, pi / 2, weight="alg", wvar=ends, epsabs=0, epsrel=1e-12)[0])

    time = 1.0 if law.time_decay is None else 2 * radial(0, law.time_decay)
    return float(time * sphere * radial(d - 1, law.space_decay) * pi)


@dataclass(frozen=True)
class ParsevalConstants:
    """C_ψ1, C_ψ2, C_ψ3 of the proof of Lemma 1 for weights (1+τ²)^P (1+|a|²)^Q on R^n."""

    first: float
    second: float
    third: float


def parseval_constants(
    psi: RidgeletFunction, dim: int, p: float, q: float, *, as_printed: bool = False
) -> ParsevalConstants:
    """The exact integrals by incomplete Gamma functions, or the bounds by which the paper replaces them.

    Exact: C_1 = ∫ |ψ̂|² max(1,|ω|^-2(p+q)) |ω|^-n, C_2 the same with ψ̂', C_3 = 2 ∫ |ψ̂|² max(…) |ω|^-(n+2).
    Printed: 4π + ‖ψ‖², 4π(M+1)² + ‖ψ'‖² and 8π + 2‖ψ‖ with M = (2p+2q+d+3)/2; they presume |ψ̂| ≤ √(2π)|ω|^M.
    """
    if as_printed:
        m = order_needed(dim, p, q)
        return ParsevalConstants(
            4 * pi + psi.norm() ** 2, 4 * pi * (m + 1) ** 2 + psi.norm(1) ** 2, 8 * pi + 2 * psi.norm()
        )

    def integral(power: float, derivative: int) -> float:
        inner = psi.power_integral(-power - 2 * (p + q), 0.0, 1.0, derivative)
        return inner + psi.power_integral(-power, 1.0, inf, derivative)

    return ParsevalConstants(integral(dim, 0), integral(dim, 1), 2 * integral(dim + 2, 0))


def order_needed(dim: int, p: float, q: float) -> float:
    """M = (2p + 2q + d + 3)/2 of Lemma 1: the order to which ψ̂ vanishes there. The lemma holds for orders > M - 1/2."""
    return (2 * p + 2 * q + dim + 2) / 2


def parseval_constant(
    psi: RidgeletFunction, dim: int, p: float, q: float, *, time: float, space: float, as_printed: bool = False
) -> float:
    """L_ψ of Lemma 1 (eq. Lpsi) for u supported in [-2 time, 2 time] × [-2 space, 2 space]^d.

    Printed: (4π + ‖ψ‖)(1 + 4T + 4R) + 4π(M+1)² + ‖ψ'‖². Corrected, against the norm of H^(⌈p⌉+1) H^(⌈q⌉+1):
    (2π)^(n-1) [C_1 + 2C_2 + 2C_3 (8T² + (⌈p⌉+2)²/2 + d (8R² + (⌈q⌉+2)²/2))], by the product rule
    ‖t u‖²_m ≤ (2·(2T)² + (m+1)²/2) ‖u‖²_m for whole m.
    """
    if as_printed:
        m = order_needed(dim, p, q)
        return (4 * pi + psi.norm()) * (1 + 4 * time + 4 * space) + 4 * pi * (m + 1) ** 2 + psi.norm(1) ** 2
    c = parseval_constants(psi, dim, p, q)
    in_time = 8 * time**2 + (ceil(p) + 2) ** 2 / 2
    in_space = (dim - 1) * (8 * space**2 + (ceil(q) + 2) ** 2 / 2)
    return (2 * pi) ** (dim - 1) * (c.first + 2 * c.second + 2 * c.third * (in_time + in_space))


# ----------------------------------------------------------------------------------------------- Lemma 1 as a check


@dataclass(frozen=True)
class ParsevalCheck:
    """Both sides of Lemma 1 for one function: the inequality holds where ratio = left / right ≤ 1."""

    left: Estimate
    right: float
    right_printed: float

    @property
    def ratio(self) -> float:
        return float(self.left) / self.right

    @property
    def ratio_printed(self) -> float:
        return float(self.left) / self.right_printed


def parseval_check(
    target: RidgeletTarget, psi: RidgeletFunction, p: float, q: float, *, time: float, space: float, rng: Rng = 0
) -> ParsevalCheck:
    """Lemma 1: ∫ |R_ψ u|² (1+τ²)^p (1+|a|²)^q (1+b²), its corrected bound, and L_ψ‖u‖² as printed.

    time, space : T and R of the support, which only the printed form uses
    """

    def integrand(weights: Array, biases: Array) -> Array:
        growth = (1 + weights[0] ** 2) ** p * (1 + np.square(weights[1:]).sum(axis=0)) ** q * (1 + biases**2)
        return np.asarray(target.ridgelet(psi, weights, biases) ** 2 * growth)

    freedom = 2 * (psi.order - p - q) - target.dim - 1
    expected = f"> p + q + (n+1)/2 = {p + q + 0.5 * (target.dim + 1):g}"
    require(freedom > 0, "order of psi", psi.order, expected, "else both sides are infinite")
    left = parameter_integral(integrand, Proposal.matching(target, psi, min(freedom, 20.0)), rng=rng)
    printed = parseval_constant(psi, target.dim, p, q, time=time, space=space, as_printed=True)
    return ParsevalCheck(left, parseval_right(target, psi, p, q), printed * target.squared_norm(p + 1, q + 1))


def parseval_right(target: RidgeletTarget, psi: RidgeletFunction, p: float, q: float) -> float:
    """The corrected right-hand side of Lemma 1, with the norms of t u and x_j u: no compact support needed."""
    c = parseval_constants(psi, target.dim, p, q)
    if c.third == inf:
        return inf
    in_time = target.times_coordinate(0).squared_norm(p + 1, q)
    in_space = sum(target.times_coordinate(axis).squared_norm(p, q + 1) for axis in range(1, target.dim))
    plain = (c.first + 2 * c.second) * target.squared_norm(p, q)
    return (2 * pi) ** (target.dim - 1) * (plain + 2 * c.third * (in_time + in_space))


# ------------------------------------------------------------------------------------------------------- Theorem 1


def theorem_bound(choice: Estimator, domain: Domain, *, extension: Reflection | None = None) -> Constant:
    """N times the right-hand side of Theorem 1 (eq. thm-ineq), printed and corrected.

    extension : where u is known on the domain alone, the operator that continues it: the bound then is that of the
        network of the continued function, with C_Ω. None: the target is the continued function, and its own norm counts

    A target that lacks the smoothness s_1 = λ_τ + 1 or s_2 = λ_a + 1 beyond p, q gets a SmoothnessWarning.
    """
    check_domain(choice.target, domain)
    law, p, q = heavy_tailed(choice.law), choice.time_order, choice.space_order
    weights = (p + (law.time_decay or 0.0), q + law.space_decay)
    check_smoothness(choice.target, weights[0] + 1, weights[1] + 1)
    size = choice.target.squared_norm(weights[0] + 1, weights[1] + 1)
    printed = printed_coefficient(choice, domain, p, q) * size
    if extension is None:
        right = parseval_right(choice.target, choice.psi, *weights)
    else:
        orders = (ceil(weights[0]) + 1, ceil(weights[1]) + 1)
        factor = extension.constant(domain, *orders)
        printed *= factor
        right = factor * _extended_right(choice, domain, extension, weights, orders)
    shared = normaliser(law, choice.target.dim) * domain.measure
    corrected = shared * largest_sup_norm(choice.activation, p + q) ** 2 * right
    note = "the printed factor p + q is 0 in L²" if p + q == 0 else ""
    return Constant("N · E‖u - u_N‖²", "Theorem 1, eq. thm-ineq", printed, corrected, note)


def _extended_right(
    choice: Estimator, domain: Domain, extension: Reflection, weights: tuple[float, float], orders: tuple[int, int]
) -> float:
    """L_ψ ‖u‖² of the continued function without C_Ω, which compares sums of squared derivatives.

    The norm of the target is a sum of squared derivatives with multinomial coefficients, from 1 to 2^m_1 (d+1)^m_2.
    """
    half = 0.5 * np.ptp(domain.bounds, axis=1)
    reach = (np.abs(domain.bounds).max(axis=1) + extension.margin * half).tolist()
    dim = choice.target.dim
    time, space = 0.5 * reach[0], 0.5 * max(reach[1:])  # which the lemma doubles
    lemma = parseval_constant(choice.psi, dim, *weights, time=time, space=space)
    return float(2.0 ** orders[0] * dim ** orders[1] * lemma * choice.target.squared_norm(*orders))


def printed_coefficient(choice: Estimator, domain: Domain, p: int, q: int) -> float:
    """𝓜_ψ as printed (eq. PME-bound): C_Ω C_π ‖σ^(p+q)‖²_∞ T|D| (p+q) L_ψ, with C_Ω = 1."""
    law, dim = heavy_tailed(choice.law), choice.target.dim
    reach = np.abs(domain.bounds).max(axis=1).tolist()
    weights = (p + (law.time_decay or 0.0), q + law.space_decay)
    lemma = parseval_constant(choice.psi, dim, *weights, time=reach[0], space=max(reach[1:]), as_printed=True)
    return normaliser(law, dim) * choice.activation.sup_norm(p + q) ** 2 * domain.measure * (p + q) * lemma


def largest_sup_norm(activation: Activation, order: int) -> float:
    """max_{j ≤ order} ‖σ^(j)‖_∞, where the paper has the last of them alone."""
    return max(activation.sup_norm(j) for j in range(order + 1))


def check_smoothness(target: RidgeletTarget, time: float, space: float) -> None:
    """Warn with what is missing where u ∉ H^time_t H^space_x."""
    for name, symbol, wanted, has in zip(
        ("time", "space"), ("s_1", "s_2"), (time, space), target.smoothness, strict=True
    ):
        if wanted > has:
            warnings.warn(
                f"the target has {has:g} derivatives in {name}, but Theorem 1 needs {wanted:g} there for these decay "
                f"exponents: {symbol} is short of {wanted - has:g}; the bound is not guaranteed",
                SmoothnessWarning,
                stacklevel=3,
            )


def heavy_tailed(law: WeightLaw) -> HeavyTailed:
    """The law, refused unless it is π: the bounds of the paper are for π alone."""
    require(isinstance(law, HeavyTailed), "law", law, "HeavyTailed, for which Theorem 1 is stated")
    assert isinstance(law, HeavyTailed)
    return law
