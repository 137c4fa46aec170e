"""Numbers behind the errata that are in no other module: those that the paper prints, and the true ones.

Every function has its test and its paragraph in docs/theory.md.
"""

from __future__ import annotations

from math import gamma, inf, log, pi, sqrt

import numpy as np
from scipy.special import sici

from rannpde.errors import positive_integer, require
from rannpde.theory.dimension import growth_exponent
from rannpde.theory.ridgelet_function import RidgeletFunction


def growth_bound(d: int, ratio: float, *, as_printed: bool = False) -> float:
    """The bound of log F(d) in the growth remark (eq. logF), F with α = ratio · d.

    Printed: …  + 3/2 ln(d+7/2) - ½ ln λd - λ - 9/4 - ½ ln((λ+½)d). From the remark's own inequality of Γ one gets
    + ½ ln((λ+½)d), -7/4 and ¼ ln 2π, and keeps 1/(12λd) + 1/(24(d+7/2)).

    >>> growth_bound(1, 1.2, as_printed=True) < 0 < growth_bound(1, 1.2)
    True
    """
    d = positive_integer("d", d)
    linear = d * growth_exponent(ratio) + 0.5 * d * log(1 + 3.5 / d)
    shared = linear + 1.5 * log(d + 3.5) - 0.5 * log(ratio * d)
    second = log((ratio + 0.5) * d)
    if as_printed:
        return shared - ratio - 2.25 - 0.5 * second
    return shared + 0.5 * second - 1.75 + 0.25 * log(2 * pi) + 1 / (12 * ratio * d) + 1 / (24 * (d + 3.5))


def remark_ridgelet_norm(d: int, *, as_printed: bool = False) -> float:
    """‖ψ̂‖² of the growth remark, |ψ̂| = √(2π) |ω|^(d+4) e^(-ω²/2) (n = 1): 2π Γ(d + 9/2), not ≤ 4π + Γ(d + 5/2)."""
    d = positive_integer("d", d)
    return 4 * pi + gamma(d + 2.5) if as_printed else 2 * pi * gamma(d + 4.5)


def derivative_gap(order: float) -> tuple[float, float]:
    """Where |ψ̂'| ≤ |ω||ψ̂| of the proof of Lemma 1 fails on |ω| > 1: ψ̂' = (M/ω - ω) ψ̂, so for 1 < |ω| < √(M/2)."""
    require(order > 0, "order", order, "> 0")
    return (1.0, max(1.0, sqrt(order / 2)))


def derivative_integrals(psi: RidgeletFunction, dim: int) -> tuple[float, float]:
    """∫_{|ω|>1} |ψ̂'|² |ω|^(-n) and ‖ω ψ̂‖²_{|ω|>1}, of which the proof says that the first is the smaller."""
    return psi.power_integral(-dim, 1.0, inf, 1), psi.power_integral(2.0, 1.0, inf, 0)


def modal_norm(regularity: float, time_order: float, space_order: float, *, modes: int, start: float = 0.0) -> float:
    """‖∂_t^p ∂_x^q u‖²_{L²(start, 1)} of u = Σ_n a_n e^(-n² t) cos nx with a_n = n^(-k-1/2) log(n+1)^-1, u_0 ∈ H^k.

    The linearisation of the porous medium and of the momentum equation about a constant: each ∂_t is n². Sums over more
    and more modes show whether initial data in H^k are enough for a norm down to t = 0.
    """
    n = np.arange(1, positive_integer("modes", modes) + 1, dtype=float)
    squares = n ** (-2 * regularity - 1) / np.log(n + 1) ** 2 * n ** (4 * time_order + 2 * space_order)
    decay = np.exp(-2 * n**2 * start) - np.exp(-2 * n**2)
    return float((squares * decay / (2 * n**2)).sum() * pi)


def truncated_inversion(reach: float) -> tuple[float, float]:
    """For u = 1 on (-1, 1), which is in L¹: (1/2π)∫_{|ξ|<reach} û dξ e^(iξ) at the jump, and ∫_{|ξ|<reach} |û| dξ.

    The first tends to 1/2, neither value of u there; the second grows like log reach: inversion holds in L², and at
    points where û ∈ L¹.
    """
    require(reach > 0, "reach", reach, "> 0")
    xi = np.linspace(0, reach, int(200 * reach) + 1)[1:]
    absolute = float(2 * np.abs(2 * np.sin(xi) / xi).sum() * (xi[1] - xi[0]))
    return float(sici(2 * reach)[0] / pi), absolute
