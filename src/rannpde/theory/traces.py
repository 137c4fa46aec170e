"""Trace inequalities on boxes, with constants: the remark after Corollary NS on boundary and initial residuals.

On an interval of length ℓ, for e ∈ H¹ and one end, e(0)² = ∫_0^ℓ d/ds((s/ℓ - 1) e²) ds gives

    |e(0)|² ≤ (1/ℓ + ε) ‖e‖² + (1/ε) ‖e'‖²   for every ε > 0,

and integrating it over the other coordinates bounds every face of a box. So with e = u_N - u

    J_ic = ‖e(t_0)‖²_{L²(D)} ≤ c_t ‖e‖²_{H^1_t L²_x},        J_bc = Σ_faces ‖e‖²_{L²} ≤ c_x ‖e‖²_{L²_t H^1_x},

with the least c for which both terms are covered, c = (1/ℓ + √(1/ℓ² + 4))/2, for one face; a coordinate has two. Both
norms are below that of H^1_t H^2_x, so that Corollary PME and NS carry over to the whole PINN loss in the same event.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from rannpde.domains import Domain, SpaceTime
from rannpde.errors import require
from rannpde.theory.bounds import Constant, theorem_bound
from rannpde.theory.unbiased import Estimator


def face_constant(length: float) -> float:
    """c with |e(0)|² ≤ c (‖e‖² + ‖e'‖²) on an interval of that length: 1/ℓ + ε = 1/ε.

    >>> round(face_constant(1.0), 12)
    1.61803398875
    """
    require(length > 0, "length", length, "> 0")
    return 0.5 * (1 / length + sqrt(1 / length**2 + 4))


def initial_trace(domain: SpaceTime) -> float:
    """c_t: ‖e(t_0)‖²_{L²(D)} ≤ c_t ‖e‖²_{H^1_t L²_x}."""
    return face_constant(domain.time[1] - domain.time[0])


def boundary_trace(domain: SpaceTime) -> float:
    """c_x: ‖e‖² over all walls of a box ≤ c_x ‖e‖²_{L²_t H^1_x}; every coordinate has two faces and its own derivative.

    Σ_l 2 ((1/ℓ_l + ε)‖e‖² + ‖∂_l e‖²/ε): with ε the same for all coordinates, 2 max(Σ 1/ℓ_l + dε, 1/ε).
    """
    _require_box(domain)
    lengths = np.diff(np.asarray(domain.space.bounds, dtype=float), axis=1)[:, 0]
    inverse, d = float((1 / lengths).sum()), len(lengths)
    return 2 * 0.5 * (inverse + sqrt(inverse**2 + 4 * d))


def condition_bounds(choices: list[Estimator], domain: SpaceTime, scale: float) -> dict[str, Constant]:
    """Bounds of the initial and the boundary residual, with probability 1 - δ, by the corrected Theorem 1.

    choices : the estimator of every field, built with p ≥ 1 and q ≥ 1; scale : N · δ
    """
    for choice in choices:
        enough = choice.time_order >= 1 and choice.space_order >= 1
        got = (choice.time_order, choice.space_order)
        require(enough, "orders of the estimator", got, "at least (1, 1)", "traces take one derivative in each")
    bounds = [theorem_bound(choice, domain) for choice in choices]
    total = {name: sum(getattr(bound, name) for bound in bounds) for name in ("printed", "corrected")}
    source = "remark after Corollary NS"
    return {
        name: Constant(name, source, constant * total["printed"] / scale, constant * total["corrected"] / scale)
        for name, constant in (("initial", initial_trace(domain)), ("boundary", boundary_trace(domain)))
    }


def _require_box(domain: Any) -> None:
    timed = isinstance(domain, SpaceTime)
    require(timed, "domain", type(domain).__name__, "a SpaceTime")
    assert isinstance(domain, Domain)
    bounds = np.asarray(domain.bounds, dtype=float)
    full = bool(np.isclose(domain.measure, np.prod(np.diff(bounds, axis=1)), rtol=1e-12))
    require(full, "domain", domain, "a box in space", "the constants are those of boxes")
