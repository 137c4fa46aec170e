"""Quadrature with respect to distributions of parameters, exact for the polynomials of a family."""

from __future__ import annotations

from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, require
from rannpde.pde.problem.ranges import Range

PANELS, NODES = 16, 24
"""Panels of equal probability, and Gauss nodes on each: densities with kinks and narrow peaks are resolved too."""
OUTSIDE = 1e-9
"""Probability outside the range that is not seen in any digit of a result; what lies there is moved to the end."""


def law_within(name: str, law: Any, one: Range) -> Any:
    """A continuous frozen distribution of SciPy whose values lie in the range; anything else is refused."""
    example = f"e.g. stats.uniform({one.lower:g}, {one.upper - one.lower:g})"
    expected = "a continuous frozen distribution of scipy.stats, or a number"
    require(is_frozen(law, ("pdf", "cdf", "ppf", "support")), f"the law of {name}", law, expected, example)
    outside = np.asarray(law.cdf(one.lower) + law.sf(one.upper), dtype=float)
    valid = outside.ndim == 0 and bool(np.isfinite(outside))
    require(valid, f"the law of {name}", law, "one distribution with parameters that SciPy allows", example)
    if not outside <= OUTSIDE:
        raise InputError(
            f"the law of {name} lies outside the range from {one.lower:g} to {one.upper:g} with probability "
            f"{outside:.2g}; solve with a wider range, or truncate it (stats.truncnorm)"
        )
    return law


def is_frozen(law: Any, methods: tuple[str, ...]) -> bool:
    """Whether an object is a distribution of SciPy whose parameters are given, and which has these methods."""
    return not hasattr(law, "freeze") and all(callable(getattr(law, name, None)) for name in methods)


def law_rule(law: Any, one: Range) -> tuple[Array, Array]:
    """Reduced coordinates (Q,) and weights (Q,) > 0 with sum 1 for expectations under a distribution.

    Panels end at quantiles, each weighed by its exact probability. On the first and the last, x = end ± width·s³
    smooths a density that is infinite there, such as that of a beta distribution.

    >>> from scipy import stats
    >>> nodes, weights = law_rule(stats.uniform(0, 1), Range(0, 1))
    >>> bool(abs(weights @ nodes**2 - 1 / 3) < 1e-14)
    True
    """
    edges = np.clip(law.ppf(np.linspace(0, 1, PANELS + 1)), one.lower, one.upper)
    unit, gauss = np.polynomial.legendre.leggauss(NODES)
    share, gauss = (unit + 1) / 2, gauss / 2
    nodes, weights = [], []
    for k in range(PANELS):
        width = edges[k + 1] - edges[k]
        if k == 0:
            positions, slopes = edges[0] + width * share**3, 3 * share**2
        elif k == PANELS - 1:
            positions, slopes = edges[-1] - width * share**3, 3 * share**2
        else:
            positions, slopes = edges[k] + width * share, np.ones(NODES)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.asarray(law.pdf(positions), dtype=float) * slopes * gauss
        density = np.where(np.isfinite(density) & (density > 0), density, 0.0)
        total = density.sum()
        nodes.append(positions)
        weights.append(density / total / PANELS if total > 0 else np.full(NODES, 1 / (PANELS * NODES)))
    return one.reduced(np.concatenate(nodes)), np.concatenate(weights)
