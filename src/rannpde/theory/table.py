"""Every constant of the theory for one choice of activation, law, domain and norm, as rows of a table."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np

from rannpde.domains import Domain
from rannpde.network.activations import Activation, as_activation
from rannpde.network.laws import HeavyTailed
from rannpde.theory.bounds import (
    Constant,
    heavy_tailed,
    largest_sup_norm,
    normaliser,
    order_needed,
    parseval_check,
    parseval_constant,
    parseval_constants,
    theorem_bound,
)
from rannpde.theory.corollaries import require_probability
from rannpde.theory.optimal import optimal_law
from rannpde.theory.ridgelet_function import admissibility_constant, kernel_constant, with_parity
from rannpde.theory.unbiased import Estimator, check_activation, estimator, least_order, variance_limit


def constants_table(choice: Estimator, domain: Domain, *, error: float = 1e-2, delta: float = 0.05) -> list[Constant]:
    """Rows with the source in the paper, the printed and the corrected value; nan where a column has none."""
    delta = require_probability(delta)
    bound = theorem_bound(choice, domain)
    variance = float(choice.variance(domain))
    square = (error * choice.size(domain)) ** 2 * delta
    name = f"width for error {error:g}, probability {1 - delta:g}"
    widths = Constant(name, "Theorem 1 and Markov", _ceil(bound.printed / square), _ceil(bound.corrected / square))
    exact = Constant(f"{name}: exact", "Theorem 1, Step 2", nan, _ceil(variance / square), "from the exact variance")
    return [
        *_function_rows(choice),
        *_lemma_rows(choice, domain),
        bound,
        Constant("N · E‖u - u_N‖², exact", "Theorem 1, Step 2", nan, variance, "by quadrature"),
        Constant("the same under the best law", "beyond the paper", nan, _best_variance(choice, domain)),
        widths,
        exact,
    ]


def order_of_finite_bound(activation: str | Activation, law: HeavyTailed, dim: int, p: int, q: int) -> int:
    """The least order of ψ for which the variance and the bound of Theorem 1 are both finite.

    The bound replaces σ^(j) by its largest value also where it decays, which may cost one more order than the variance.
    """
    activation = as_activation(activation)
    check_activation(activation, p + q)
    least = least_order(activation, law, dim, p, q)
    lemma = order_needed(dim, p + (law.time_decay or 0.0), q + law.space_decay) - 0.5
    return max(least, with_parity(activation, int(np.floor(lemma)) + 1))


def _function_rows(choice: Estimator) -> list[Constant]:
    psi, activation, dim, law = choice.psi, choice.activation, choice.target.dim, heavy_tailed(choice.law)
    p, q = choice.time_order, choice.space_order
    limit = variance_limit(activation, law, dim, p, q)
    source = "Proposition 1"
    printed = admissibility_constant(psi, activation, dim, as_printed=True)
    kernel = abs(kernel_constant(activation, 1))
    return [
        Constant("order k of ψ", source, nan, psi.order, f"finite variance for k > {limit:g}"),
        Constant("K_ψσ", source, printed, admissibility_constant(psi, activation, dim), "printed with m = d"),
        Constant("|J_σ|, α = 1", "Definition 2", kernel, kernel),
        Constant("A_ψm, m = n", "eq. psi-condition", psi.vanishing_constant(dim), psi.vanishing_constant(dim)),
        Constant("‖ψ‖", "Lemma 1", psi.norm(), psi.norm()),
        Constant("‖ψ'‖", "Lemma 1", psi.norm(1), psi.norm(1)),
        Constant("C_π", "Theorem 1", normaliser(law, dim), normaliser(law, dim, by_quadrature=True), "by quadrature"),
        Constant("sup-norm of σ", "Theorem 1", activation.sup_norm(p + q), largest_sup_norm(activation, p + q)),
    ]


def _lemma_rows(choice: Estimator, domain: Domain) -> list[Constant]:
    psi, dim, law = choice.psi, choice.target.dim, heavy_tailed(choice.law)
    p, q = choice.time_order + (law.time_decay or 0.0), choice.space_order + law.space_decay
    reach = np.abs(domain.bounds).max(axis=1).tolist()
    support = {"time": reach[0], "space": max(reach[1:])}
    printed, exact = (parseval_constants(psi, dim, p, q, as_printed=flag) for flag in (True, False))
    lemma = [parseval_constant(psi, dim, p, q, **support, as_printed=flag) for flag in (True, False)]
    source = "proof of Lemma 1"
    rows = [
        Constant("M", "Lemma 1", order_needed(dim, p, q), order_needed(dim, p, q)),
        Constant("C_ψ1", source, printed.first, exact.first),
        Constant("C_ψ2", source, printed.second, exact.second),
        Constant("C_ψ3", source, printed.third, exact.third),
        Constant("L_ψ", "eq. Lpsi", lemma[0], lemma[1], "compact support"),
    ]
    if exact.third == inf:
        return rows
    check = parseval_check(choice.target, psi, p, q, **support)
    return [*rows, Constant("left / right side", "Lemma 1", check.ratio_printed, check.ratio, "holds where ≤ 1")]


def _best_variance(choice: Estimator, domain: Domain) -> float:
    orders = {"time_order": choice.time_order, "space_order": choice.space_order}
    law = optimal_law(choice.target, domain, activation=choice.activation, **orders)
    best = estimator(choice.target, law, activation=choice.activation, **orders)
    return float(best.variance(domain))


def _ceil(value: float) -> float:
    return value if value == inf or isnan(value) else float(np.ceil(value))
