"""The source f linearised at a network, and the tilt of Brownian increments that its gradient means (Girsanov)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import value_and_gradients

LARGEST_TILT = 4.0
"""|θ|²h of one step at most: its weight then has a variance of e⁴, and steps are refined before that matters."""


@dataclass(frozen=True)
class SourceLinearisation:
    """f, ∂f/∂u (M,) and ∂f/∂∇u (M, d), or None where f has no gradient."""

    value: Array
    by_value: Array
    by_gradient: Array | None


def linearised(form: Parabolic, s: float, point: Array, value: Array, gradient: Array | None) -> SourceLinearisation:
    """f and its derivatives at values (M,) and gradients (M, d), which may be missing where f has none."""
    slopes = form.source.has("gradient")
    known = form.known(s, point) | {"field": value[:, None]}
    if gradient is not None:
        known["gradient"] = gradient
    source, partial = value_and_gradients(form.source, known, ("field", "gradient") if slopes else ("field",))
    return SourceLinearisation(source[:, 0], partial["field"][:, 0], partial["gradient"] if slopes else None)


def bounded_tilt(tilt: Array, h: float) -> Array:
    """θ with |θ|²h at most LARGEST_TILT: a longer one would move paths, and weigh single steps, beyond all use."""
    size = h * np.einsum("ij,ij->i", tilt, tilt)
    factor = np.sqrt(LARGEST_TILT / np.maximum(size, LARGEST_TILT))
    return tilt * factor[:, None]
