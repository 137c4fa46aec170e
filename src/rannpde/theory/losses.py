"""PINN losses of any function with derivatives: residuals of the equations, of the initial and the boundary condition.

    J_PDE(u) = ∫ |∂_t u - Δ(u^m)|²,     J¹ = ∫ |∂_t ρ + ∂_x(ρu)|²,
    J² = ∫ |∂_t(ρu) + ∂_x(ρu²) - ∂_x(μ ρ^α ∂_x u) + ∂_x ρ^γ|²

over (0, T) × D, with γ = α = 0 for the pressureless case of constant viscosity of the corollary. The loss that is
trained
adds ∫_D |u - u_0|² at the first time and ∫∫ |u - g|² over the walls (section "Physics-informed machine learning").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.domains import Domain, Estimate, SpaceTime, integrate
from rannpde.domains.norms import Difference, evaluate
from rannpde.domains.quadrature.integrals import PANEL_NODES, Options, gauss_rule
from rannpde.domains.region import Region
from rannpde.errors import is_real, require
from rannpde.network.features import RidgeLayer
from rannpde.network.network import Network
from rannpde.pde.residual import jets_of
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.zoo.navier_stokes_eulerian import equations
from rannpde.pde.zoo.porous_medium import EQUATION

CACHED_BYTES = 2**18
"""Size of a block of features: profiles make some ten passes over it, which a block in the cache halves."""


def loss_integral(density: Callable[[Array], Array], region: Region) -> Estimate:
    """∫ of a squared residual to three digits, which are enough beside bounds that are orders of magnitude above it.

    Gauss's rule in at most two coordinates, Sobol points beyond: at most 4,096 points either way.
    """
    options: Options = {"rule": "gauss" if _flat(region) else "sobol", "tolerance": 1e-3, "budget": 2**12, "rng": 0}
    return integrate(density, region, **options)


def loss_rule(region: Region) -> tuple[Array, Array]:
    """Points (M, n) and weights (M,) of one rule for losses of many functions: the finest of ``loss_integral``.

    Gauss's rule with 64 nodes an axis in two coordinates, 256 in one; 4,096 Sobol points beyond.
    """
    if _flat(region):
        return gauss_rule(region, PANEL_NODES, panels=1 if region.extent == 2 else 4)
    points = region.sample(2**12, rng=0, method="sobol")
    return points, np.full(len(points), region.measure / len(points))


def _flat(region: Region) -> bool:
    return region.extent <= 2 and region.has_rule


@dataclass(frozen=True)
class Gas:
    """p(ρ) = ρ^γ and μ(ρ) = viscosity · ρ^α; γ = 0 is the pressureless case, α = 0 constant viscosity.

    >>> Gas(viscosity=0.1, gamma=1.4).pressure(np.array([1.0]), 1)
    array([1.4])
    """

    viscosity: float = 1.0
    gamma: float = 0.0
    alpha: float = 0.0

    def __post_init__(self) -> None:
        require(is_real(self.viscosity) and self.viscosity > 0, "viscosity", self.viscosity, "a number > 0")
        for name in ("gamma", "alpha"):
            value = getattr(self, name)
            require(is_real(value) and value >= 0, name, value, "a number ≥ 0", "0 leaves the term out")

    def pressure(self, density: Array, order: int) -> Array:
        """p^(order)(ρ), order ≥ 1 (a constant pressure has no effect)."""
        return power_derivative(density, self.gamma, order) if self.gamma else np.zeros_like(density)

    def thickness(self, density: Array, order: int) -> Array:
        """μ^(order)(ρ)."""
        return self.viscosity * power_derivative(density, self.alpha, order)

    @property
    def needs_positive(self) -> bool:
        """Whether a power of the density is not a polynomial."""
        return any(float(power) != int(power) for power in (self.gamma, self.alpha))


def power_derivative(base: Array, power: float, order: int) -> Array:
    """The derivative of that order of base^power; whole powers also of negative numbers."""
    factor = float(np.prod([power - k for k in range(order)]))
    if factor == 0.0:
        return np.zeros_like(base)
    rest = power - order
    return np.asarray(factor * base ** (int(rest) if float(rest).is_integer() and rest >= 0 else rest))


def require_exponent(exponent: float) -> float:
    """m, refused unless it is a number > 1."""
    proper = is_real(exponent) and 1 < exponent < np.inf
    require(proper, "exponent", exponent, "a number m > 1", "m = 1 is the heat equation, m < 1 fast diffusion")
    return float(exponent)


# -------------------------------------------------------------------------------------------------- in the interior


def porous_medium_loss(function: Any, domain: SpaceTime, *, exponent: float = 2) -> Estimate:
    """J_PDE(u) = ∫ |∂_t u - Δ(u^m)|² over the domain, m = exponent > 1, for a network or anything with derivatives.

    Where m is no whole number u must be positive.
    """
    system = porous_medium(domain.dim, exponent)
    return loss_integral(lambda z: system.residuals(function, z)[:, 0] ** 2, domain)


def navier_stokes_losses(
    function: Any, domain: SpaceTime, *, viscosity: float = 1.0, gamma: float = 0.0, alpha: float = 0.0
) -> tuple[Estimate, Estimate]:
    """J¹ and J² with p = ρ^γ and μ = viscosity · ρ^α, d = 1; the function has outputs (ρ, u)."""
    require(domain.dim == 2, "dimension of the domain", domain.dim, "2: (t, x)")
    both = navier_stokes(Gas(viscosity, gamma, alpha))
    first = loss_integral(lambda z: both.residuals(function, z)[:, 0] ** 2, domain)
    return first, loss_integral(lambda z: both.residuals(function, z)[:, 1] ** 2, domain)


@dataclass(frozen=True)
class EquationSystem:
    """Equations of the zoo, whose residuals are taken of any functions with derivatives."""

    expressions: tuple[Expression, ...]
    vocabulary: Vocabulary
    positive: bool = False

    def residuals(self, function: Any, points: Array) -> Array:
        """The residuals (M, equations)."""
        words, state = self.vocabulary, _Columns(function)
        if self.positive:
            require_positive(state.derivative(points, (0,) * points.shape[1])[:, 0])
        known = dict(zip(words.symbols, points.T, strict=True))
        jets = jets_of(state, words.fields, points, {jet for e in self.expressions for jet in e.jets})
        residuals = [e.value(known, {jet: jets[jet] for jet in e.jets}) for e in self.expressions]
        return np.stack([np.broadcast_to(values, len(points)) for values in residuals], axis=1)

    @property
    def indices(self) -> list[MultiIndex]:
        """The derivatives that the residuals take."""
        return sorted({jet.index for e in self.expressions for jet in e.jets})

    def difference(self, function: Any, other: Any, domain: SpaceTime) -> float:
        """∫ |residuals of one - residuals of the other|², summed over the equations."""

        def gap(points: Array) -> Array:
            return np.asarray(np.square(self.residuals(function, points) - self.residuals(other, points)).sum(axis=1))

        return float(loss_integral(gap, domain))


def require_positive(values: Array) -> None:
    """Refuse values ≤ 0 where a power of them is taken that is no polynomial."""
    least = float(values.min())
    remedy = "take a wider network, or whole exponents, for which powers are polynomials"
    require(least > 0, "least value of the function", least, "> 0, as a power of it is taken", remedy)


@dataclass(frozen=True)
class _Columns:
    """A function, whatever the shape of its values, as the columns that residuals want."""

    function: Any

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return evaluate(self.function, points, derivative)

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        return derivatives_of(self.function, points, indices)


def derivatives_of(function: Any, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
    """Several derivatives at the points, each (M, outputs); a network evaluates its profile once for every order."""
    if not (isinstance(function, Network) and isinstance(function.features, RidgeLayer)):
        return {index: evaluate(function, points, index) for index in indices}
    features, coefficients = function.features, function.coefficients.reshape(len(function.coefficients), -1)
    derivatives = {index: np.empty((len(points), coefficients.shape[1])) for index in indices}
    rows = min(block_rows(features.columns, CACHED_BYTES), max(len(points), 1))
    buffer = np.empty((rows, features.columns))
    weighted = {index: features.factor(index)[:, None] * coefficients for index in indices}
    for block in row_blocks(len(points), rows):
        for order in {sum(index) for index in indices}:
            design = features.ridge(points[block], order, buffer[: block.stop - block.start])
            for index in (index for index in indices if sum(index) == order):
                np.matmul(design, weighted[index], out=derivatives[index][block])
    return derivatives


def porous_medium(dim: int, exponent: float) -> EquationSystem:
    """∂_t u = Δ(u^m) in dim = 1 + d coordinates."""
    names = ("t", *(f"x{i}" for i in range(1, dim)))
    m = require_exponent(exponent)
    words = Vocabulary(names, "t", ("u",), {"m": int(m) if m.is_integer() else m})
    return EquationSystem((read(EQUATION, words),), words, not m.is_integer())


def navier_stokes(gas: Gas) -> EquationSystem:
    """Mass and momentum of (ρ, u) in (t, x)."""
    powers = {
        name: int(value) if float(value).is_integer() else value
        for name, value in (("gamma", gas.gamma), ("alpha", gas.alpha))
    }
    words = Vocabulary(("t", "x"), "t", ("rho", "u"), {"mu": gas.viscosity, **powers})
    texts = equations(gas.gamma, gas.alpha).values()
    return EquationSystem(tuple(read(text, words) for text in texts), words, gas.needs_positive)


# ------------------------------------------------------------------------------------ conditions, and the whole loss


def initial_loss(function: Any, exact: Any, domain: SpaceTime) -> float:
    """∫_D |u - u_0|² at the first time, over all outputs."""
    return _square(Difference(function, exact), domain.initial)


def boundary_loss(function: Any, exact: Any, domain: SpaceTime) -> float:
    """∫_0^T ∫_∂D |u - g|² with the values of ``exact`` on the walls, over all outputs."""
    return sum(_square(Difference(function, exact), wall) for wall in domain.sides.values())


def _square(gap: Difference, region: Any) -> float:
    def density(points: Array) -> Array:
        return np.asarray(np.square(gap(points)).sum(axis=1))

    return float(loss_integral(density, region))


def sup(values: Array | float) -> float:
    """The largest absolute value."""
    return float(np.abs(values).max())


SUP_POINTS = 2**13
"""Sobol points at which sup-norms over the domain are taken: largest values of a sample, not proven bounds."""


def sup_sample(domain: Domain) -> Array:
    """The points at which sup-norms are taken."""
    return domain.sample(SUP_POINTS, rng=0, method="sobol")
