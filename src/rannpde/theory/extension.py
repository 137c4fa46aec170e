"""C_Ω with a number: an extension operator from boxes and balls to the whole space (Theorem 1, Step 1 of the proof).

Hestenes' reflection. Across a side at distance s the function is continued by

    E u(-s) = Σ_{j=1}^{k+1} c_j u(λ_j s),        Σ_j c_j (-λ_j)^i = 1   for i = 0, …, k,

so that all derivatives up to order k match and E u ∈ H^(k+1) wherever u is. With λ_j ≤ depth / margin every value
that is
asked for lies inside. A smooth cut-off ends it within the margin, ũ = η E u. Boxes are extended axis by axis; a ball
along its radii, x ↦ Φ(x) = R(1+λ) x/|x| - λ x. ``constant`` bounds ‖ũ‖²_{H^p_t H^q_x(R^n)} / ‖u‖²_{H^p_t H^q_x(D)}:

* along one axis, with A_i = Σ_j |c_j| λ_j^(i-1/2) (Minkowski) and the product rule for η, the vector of norms of the
  derivatives on one strip is at most B (‖u‖, ‖u'‖, …), B_ij = C(i,j) ‖η^(i-j)‖_∞ A_j; so the factor is 1 + 2‖B‖²;
* the factors of the axes multiply, since an operator in one coordinate commutes with derivatives in the others;
* on a ball Faà di Bruno's formula replaces the chain rule, with |D^k (x/|x|)| from Gegenbauer polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb, factorial

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import eval_legendre

from rannpde.arrays import Array
from rannpde.domains import Ball, Domain, SpaceTime
from rannpde.errors import finite_points, require

CUTOFF_DEGREE = 300
"""Degree of the Chebyshev interpolant that differentiates the cut-off: its coefficients have reached rounding."""
LINE_DEPTH = 2.0
"""Half-widths: the whole interval lies behind a side."""
BALL_DEPTH = 0.5
"""Radii: a radius of the ball ends at its centre, where Φ is singular; half of it bounds the Jacobian by 2^(d-1)."""


def smooth_step(x: Array) -> Array:
    """The C^∞ step of a bump's integral: 1 for x ≤ 0, 0 for x ≥ 1, with all derivatives 0 at both ends.

    >>> smooth_step(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])).tolist()
    [1.0, 1.0, 0.5, 0.0, 0.0]
    """
    x = np.clip(np.asarray(x, dtype=float), 0.0, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / (1.0 + np.exp(1.0 / (1.0 - x) - 1.0 / x))


@dataclass(frozen=True)
class Reflection:
    """Hestenes' reflection of order k with a smooth cut-off: k derivatives match across every side.

    order : k ≥ 0; an extension in H^m needs k ≥ m - 1
    margin : how far beyond the domain ũ lives, in units of the half-width of each coordinate (the radius of a ball);
        at most 2, the whole side

    >>> from rannpde.domains import Box
    >>> inside = lambda z: np.exp(z[:, 0] + z[:, 1])
    >>> extended = Reflection(order=3).extend(inside, Box([(0, 1), (0, 1)]))
    >>> z = np.array([[0.5, 0.5], [1.0 + 1e-3, 0.5], [3.0, 0.5]])
    >>> np.round(extended(z) / inside(z), 6).tolist()
    [1.0, 1.0, 0.0]
    """

    order: int = 4
    margin: float = 0.5
    cutoff: Callable[[Array], Array] = field(default=smooth_step, repr=False)

    def __post_init__(self) -> None:
        whole = isinstance(self.order, (int, np.integer)) and 0 <= self.order <= 12
        remedy = "the coefficients of more reflections exceed 1e9"
        require(bool(whole), "order", self.order, "a whole number from 0 to 12", remedy)
        require(0 < self.margin <= 2, "margin", self.margin, "in (0, 2] half-widths of the domain")

    def nodes(self, depth: float) -> tuple[Array, Array]:
        """λ_j ∈ (0, depth/margin] at Chebyshev points, and c_j, the Lagrange polynomials of the nodes -λ_j at 1.

        depth : how far inside, in half-widths, the values may be taken: the further, the smaller the coefficients
        """
        count = self.order + 1
        scales = depth / self.margin * 0.5 * (1 + np.cos(np.pi * np.arange(count) / max(count, 1.5)))
        if count == 1:
            scales = np.ones(1)
        ends = -scales
        others = [np.delete(ends, j) for j in range(count)]
        return scales, np.array([np.prod((1 - other) / (x - other)) for x, other in zip(ends, others, strict=True)])

    # -------------------------------------------------------------------------------------------------- the operator

    def extend(self, values: Callable[[Array], Array], domain: Domain) -> Callable[[Array], Array]:
        """ũ on R^n from values on the closed domain alone: points (M, n) → (M,)."""
        parts = _parts(domain)

        def extended(points: Array) -> Array:
            points = finite_points("points", points, domain.dim)
            total, near = np.zeros(len(points)), np.ones(len(points))
            for part in parts:
                near *= self.cutoff(part.outside(points) / (self.margin * part.half))
            rows = np.flatnonzero(near > 0)
            if len(rows):
                total[rows] = near[rows] * self._reflected(values, points[rows], parts)
            return total

        return extended

    def _reflected(self, values: Callable[[Array], Array], points: Array, parts: list[_Part]) -> Array:
        """Σ over the reflections of every part, one after the other; points inside a part are left as they are."""
        if not parts:
            return np.asarray(values(points), dtype=float)
        part, rest = parts[0], parts[1:]
        distance = part.outside(points)
        beyond = distance > 0
        total = np.zeros(len(points))
        if (~beyond).any():
            total[~beyond] = self._reflected(values, points[~beyond], rest)
        if beyond.any():
            for scale, coefficient in zip(*self.nodes(part.depth), strict=True):
                inner = part.reflected(points[beyond], distance[beyond], scale)
                total[beyond] += coefficient * self._reflected(values, inner, rest)
        return total

    # ------------------------------------------------------------------------------------------------- its constant

    def constant(self, domain: Domain, time_order: int = 0, space_order: int = 0) -> float:
        """C_Ω: a bound of ‖ũ‖²_{H^p_t H^q_x(R^n)} / ‖u‖²_{H^p_t H^q_x(domain)}, p = time_order, q = space_order.

        Without derivatives the extension by 0 is enough, and C_Ω = 1 (as the growth remark says).
        """
        for name, order in (("time_order", time_order), ("space_order", space_order)):
            require(isinstance(order, (int, np.integer)) and order >= 0, name, order, "a whole number ≥ 0")
            remedy = f"take Reflection(order={order - 1}): one derivative less must match"
            require(order <= self.order + 1, name, order, f"at most {self.order + 1}, the order plus 1", remedy)
        if time_order == space_order == 0:
            return 1.0
        total = 1.0
        for part in _parts(domain):
            order = time_order if part.is_time else space_order
            total *= part.constant(self, order)
        return float(total)

    def cutoff_norms(self, order: int, half: float) -> Array:
        """‖η^(i)‖_∞ for i = 0, …, order, for a cut-off of width margin · half."""
        x = np.cos(np.pi * (np.arange(CUTOFF_DEGREE + 1) + 0.5) / (CUTOFF_DEGREE + 1))
        series = chebyshev.chebfit(x, self.cutoff(0.5 * (1 + x)), CUTOFF_DEGREE)
        fine = np.linspace(-1, 1, 4001)
        sups = [
            np.abs(chebyshev.chebval(fine, chebyshev.chebder(series, i) if i else series)).max()
            for i in range(order + 1)
        ]
        return np.array([sup * (2 / (self.margin * half)) ** i for i, sup in enumerate(sups)])


@dataclass(frozen=True, eq=False)
class _Part:
    """One coordinate of a box, or the radius of a ball: what is reflected at once."""

    axes: tuple[int, ...]
    centre: Array
    half: float
    is_time: bool
    round: bool

    @property
    def depth(self) -> float:
        """How far inside reflections reach, in half-widths."""
        return BALL_DEPTH if self.round else LINE_DEPTH

    def outside(self, points: Array) -> Array:
        """The distance beyond this part, 0 inside it."""
        return np.maximum(np.linalg.norm(points[:, list(self.axes)] - self.centre, axis=1) - self.half, 0.0)

    def reflected(self, points: Array, distance: Array, scale: float) -> Array:
        """The points at ``scale`` times the distance inside."""
        inner, axes = points.copy(), list(self.axes)
        offset = points[:, axes] - self.centre
        length = self.half - scale * distance
        inner[:, axes] = self.centre + offset * (length / np.linalg.norm(offset, axis=1))[:, None]
        return inner

    def constant(self, reflection: Reflection, order: int) -> float:
        """1 + (number of strips) ‖B‖²."""
        if order == 0 and not self.round:
            # E is bounded in L² too, and the other coordinates' derivatives pass through it
            return 1.0 + 2.0 * float(_line_factors(reflection, 0)[0]) ** 2
        sups = reflection.cutoff_norms(order, self.half)
        matrix = self._ball_matrix(reflection, order) if self.round else np.diag(_line_factors(reflection, order))
        product_rule = np.array(
            [[comb(i, j) * sups[i - j] if j <= i else 0.0 for j in range(order + 1)] for i in range(order + 1)]
        )
        if self.round:
            # norms of tensors D^i count ordered indices: between Σ_β and i! Σ_β
            product_rule = product_rule @ matrix @ np.diag([factorial(j) ** 0.5 for j in range(order + 1)])
            return 1.0 + float(np.linalg.norm(product_rule, 2)) ** 2
        return 1.0 + 2.0 * float(np.linalg.norm(product_rule @ matrix, 2)) ** 2

    def _ball_matrix(self, reflection: Reflection, order: int) -> Array:
        """‖D^i(E u)‖ ≤ Σ_j matrix_ij ‖D^j u‖ on the shell, norms of Frobenius."""
        d, reach = len(self.axes), reflection.margin
        total = np.zeros((order + 1, order + 1))
        for scale, coefficient in zip(*reflection.nodes(self.depth), strict=True):
            # 1/|det DΦ| ≤ ((1+s)/(1-λs))^(d-1)/λ for s = |x|/R - 1 ≤ margin
            volume = ((1 + reach) / (1 - scale * reach)) ** (d - 1) / scale
            bounds = [_unit_vector_derivative(k, d) * (1 + scale) * self.half ** (1 - k) for k in range(1, order + 1)]
            if order:
                # DΦ has the eigenvalues -λ along the radius and at most 1 across it
                bounds[0] = (scale**2 + (d - 1)) ** 0.5
            total += abs(coefficient) * volume**0.5 * _bell(bounds, order)
        return total


def _parts(domain: Domain) -> list[_Part]:
    """The coordinates of boxes and the radius of a ball, time first."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    first = 1 if isinstance(domain, SpaceTime) else 0
    bounds = np.asarray(domain.bounds, dtype=float)
    if isinstance(space, Ball):
        ball = _Part(tuple(range(first, domain.dim)), np.array(space.centre), space.radius, False, True)
        line = [_line(bounds, axis, True) for axis in range(first)]
        return [*line, ball]
    boxed = np.isclose(domain.measure, np.prod(np.diff(bounds, axis=1)), rtol=1e-12)
    require(bool(boxed), "domain", domain, "a box, a ball, or a SpaceTime over one of them")
    return [_line(bounds, axis, axis < first) for axis in range(domain.dim)]


def _line(bounds: Array, axis: int, is_time: bool) -> _Part:
    low, high = bounds[axis]
    return _Part((axis,), np.array([0.5 * (low + high)]), float(0.5 * (high - low)), is_time, False)


def _line_factors(reflection: Reflection, order: int) -> Array:
    """A_i = Σ_j |c_j| λ_j^(i-1/2), i = 0, …, order."""
    scales, coefficients = reflection.nodes(LINE_DEPTH)
    return np.array([float((np.abs(coefficients) * scales ** (i - 0.5)).sum()) for i in range(order + 1)])


def _unit_vector_derivative(k: int, d: int) -> float:
    """A bound of |D^k (x/|x|)| for |x| ≥ 1, in the norm of Frobenius.

    x/|x| = ∇|x|, and |x + τv| = Σ τ^n C_n for unit x, v with the Gegenbauer polynomials C_n = (P_(n-2) - P_n)/(2n-1) of
    -x·v: the largest value of the symmetric tensor D^(k+1)|x| is (k+1)! max |C_(k+1)|; a tensor of order m on R^d
    has |T|_F ≤ d^((m-1)/2) |T|.
    """
    x, n = np.linspace(-1, 1, 2001), k + 1
    largest = float(np.abs(eval_legendre(n - 2, x) - eval_legendre(n, x)).max()) / (2 * n - 1)
    return factorial(k + 1) * largest * d ** (0.5 * k)


def _bell(bounds: list[float], order: int) -> Array:
    """Partial Bell polynomials B_ij(|DΦ|, |D²Φ|, …): |D^i(u∘Φ)| ≤ Σ_j B_ij |D^j u|."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for i in range(1, order + 1):
        for j in range(1, i + 1):
            table[i, j] = sum(comb(i - 1, m - 1) * bounds[m - 1] * table[i - m, j - 1] for m in range(1, i - j + 2))
    return table
