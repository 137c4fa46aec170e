"""Linear operators with constant coefficients, read off a statement, and the canonical form of elliptic ones.

The symbol of L = Σ a_α ∂^α is σ(λ) = Σ a_α λ^α: exp(λ·x) is an eigenfunction of L with the eigenvalue σ(λ), so that the
features exp(λ·x) with λ on the characteristic variety σ(λ) = 0 solve L u = 0 exactly. A definite operator of order two,

    A : ∇∇u + b·∇u + c u,

becomes Δv + κ v by y = A^(-1/2) (x - x₀) and u = exp(-d·y) v with d = A^(-1/2) b/2 and κ = c - |d|²: one family of
sources and of regular functions serves anisotropic diffusion, advection, Helmholtz and screened problems alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Expression, constant, evaluate

Symbol = Mapping[MultiIndex, float]
"""Σ a_α λ^α as α → a_α."""


@dataclass(frozen=True, eq=False)
class LinearEquation:
    """Σ_fields Σ_α a_α ∂^α u_field = source, one equation of a problem.

    symbols : field → its symbol; load : minus the source, a formula in the coordinates
    """

    name: str
    symbols: Mapping[str, Symbol]
    load: sympy.Expr
    expression: Expression

    def source(self, coordinates: tuple[sympy.Symbol, ...], points: Array) -> Array:
        """The right-hand side (M,) at points (M, n)."""
        known = dict(zip(coordinates, points.T, strict=True))
        value = evaluate([self.load], known, self.expression.functions)[0]
        return np.broadcast_to(-np.asarray(value, dtype=float), (len(points),))


def linear_equations(problem: Problem) -> tuple[LinearEquation, ...] | str:
    """The equations of a problem with constant coefficients, or the reason why they are not such."""
    equations = []
    for name, expression in problem.expressions.items():
        one = linear_equation(name, expression)
        if isinstance(one, str):
            return one
        equations.append(one)
    return tuple(equations)


def linear_equation(name: str, expression: Expression) -> LinearEquation | str:
    """An equation with constant coefficients, or the reason why it is none."""
    if expression.kinked:
        return f"{name} jumps or has kinks"
    if not expression.linear:
        return f"{name} is not linear"
    symbols: dict[str, dict[MultiIndex, float]] = {}
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        value = constant(partial)
        if value is None or not np.isfinite(value):
            return f"a coefficient of {name} varies"
        if value:
            symbols.setdefault(jet.field, {})[jet.index] = value
    load = expression.formula.xreplace({symbol: sympy.Integer(0) for symbol in expression.symbols})
    return LinearEquation(name, symbols, load, expression)


def symbol_at(symbol: Symbol, frequencies: Array) -> Array:
    """σ(λ) (N,) at frequencies λ (N, n), complex."""
    total = np.zeros(len(frequencies), dtype=complex)
    for index, value in symbol.items():
        total += value * np.prod(frequencies ** np.array(index), axis=1)
    return total


@dataclass(frozen=True, eq=False)
class CanonicalForm:
    """A : ∇∇u + b·∇u + c u as Δv + κ v, in the coordinates y = matrix (x - origin), u = exp(-drift·y) v.

    sign : with which the operator was multiplied so that A is positive
    zeroth : c of the operator after that, ≤ 0 where it has a maximum principle
    """

    matrix: Array
    origin: Array
    drift: Array
    kappa: float
    sign: float
    zeroth: float

    @property
    def dim(self) -> int:
        return len(self.origin)

    @cached_property
    def moves(self) -> bool:
        """Whether there is a drift."""
        return bool(np.any(self.drift))

    @cached_property
    def wave_number(self) -> float:
        """√|κ|: k of waves, or the inverse length 1/ℓ of layers."""
        return float(np.sqrt(abs(self.kappa)))

    def to(self, points: Array) -> Array:
        """y (M, n) of points x (M, n)."""
        return (points - self.origin) @ self.matrix.T

    def back(self, points: Array) -> Array:
        """x (M, n) of points y (M, n)."""
        return np.linalg.solve(self.matrix, points.T).T + self.origin

    def expanded(self, index: MultiIndex) -> dict[MultiIndex, float]:
        """∂_x^index of u as Σ_β c_β exp(-drift·y) ∂_y^β v: β → c_β.

        ∂_{x_i} is Σ_j matrix_ji (∂_{y_j} - drift_j).
        """
        still = (0,) * self.dim
        terms: dict[MultiIndex, float] = {still: 1.0}
        for axis, order in enumerate(index):
            for _ in range(order):
                grown: dict[MultiIndex, float] = {}
                for beta, value in terms.items():
                    for j, slope in enumerate(self.matrix[:, axis]):
                        if slope:
                            raised = tuple(b + (k == j) for k, b in enumerate(beta))
                            grown[raised] = grown.get(raised, 0.0) + value * slope
                            if self.drift[j]:
                                grown[beta] = grown.get(beta, 0.0) - value * slope * self.drift[j]
                terms = grown
        return terms


def canonical_form(symbol: Symbol, origin: Array) -> CanonicalForm | None:
    """The canonical form of a definite operator of order two, None for any other."""
    n = len(origin)
    if any(sum(index) > 2 for index in symbol):
        return None
    units = np.eye(n, dtype=int)
    second = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        value = symbol.get(tuple((units[i] + units[j]).tolist()), 0.0)
        second[i, j] = value if i == j else 0.5 * value
    values, vectors = np.linalg.eigh(second)
    if not (values.min() * values.max() > 0 and np.abs(values).min() > 1e-14 * np.abs(values).max()):
        return None
    sign = float(np.sign(values[0]))
    matrix = (vectors / np.sqrt(np.abs(values))) @ vectors.T
    if np.count_nonzero(second - np.diag(np.diag(second))) == 0:  # no rounding where there is nothing to turn
        matrix = np.diag(1 / np.sqrt(np.abs(np.diag(second))))
    first = sign * np.array([symbol.get(tuple(unit.tolist()), 0.0) for unit in units])
    zeroth = sign * symbol.get((0,) * n, 0.0)
    drift = 0.5 * matrix @ first
    kappa = zeroth - float(drift @ drift)
    return CanonicalForm(matrix, np.asarray(origin, dtype=float), drift, kappa, sign, zeroth)


def laplacian(symbol: Symbol, dim: int) -> float | None:
    """a of a symbol a (λ₁² + … + λ_n²), None for any other."""
    wanted = {tuple(2 * (j == k) for j in range(dim)) for k in range(dim)}
    values = list(symbol.values())
    same = set(symbol) == wanted and np.ptp(values) <= 1e-14 * abs(values[0])
    return float(values[0]) if same else None


def biharmonic(symbol: Symbol) -> float | None:
    """a of a symbol a (λ₁² + λ₂²)² in the plane, None for any other."""
    if set(symbol) != {(4, 0), (2, 2), (0, 4)}:
        return None
    value = symbol[4, 0]
    expected = {(2 * k, 4 - 2 * k): comb(2, k) * value for k in range(3)}
    same = all(abs(symbol[index] - expected[index]) <= 1e-14 * abs(value) for index in expected)
    return float(value) if same else None
