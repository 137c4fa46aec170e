"""Particular solutions that satisfy homogeneous conditions on the sides of the bounding box.

Where coefficients change along one axis at most, in slabs, and so do conditions along none, the operator on the box
is a sum of products of one-dimensional ones. These are discretised by piecewise polynomials (spectral elements whose
ends are the planes between slabs) and diagonalised, so that the solution on the box is found by products of small
matrices (fast diagonalisation; Lynch, Rice and Thomas 1964). What features have left to do is at the walls inside of
the box: they need not resolve the oscillations of a source along all of its sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from scipy.linalg import eigh

from rannpde.arrays import BLOCK_BYTES, Array, combinations
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.domains.boundary.sides import Side
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.tolerance import ALGEBRA_SHARE
from rannpde.pde.trefftz.operator import LinearEquation, Symbol
from rannpde.pde.trefftz.parts import LegendrePart
from rannpde.pde.trefftz.patches import PATCHES
from rannpde.pde.trefftz.rows import condition_coefficients
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class SlabOperator:
    """Σ_i a_i ∂_ii u + c u = source between planes across one axis, of which there may be none.

    axis, planes (S + 1,) : the ends of the slabs along the axis; equations : of each; diffusion (S, d) and reaction
    (S,) : a_i and c, after a division by a factor (S,) such that u and a ∂u are continuous at the planes
    """

    axis: int
    planes: Array
    equations: tuple[LinearEquation, ...]
    diffusion: Array
    reaction: Array
    factor: Array

    @classmethod
    def of(
        cls, equations: Sequence[LinearEquation], field: str, axis: int, planes: Array, fluxes: bool
    ) -> SlabOperator | None:
        """The operator where it has no mixed and no first derivatives; fluxes : whether a ∂u is continuous at planes,
        or ∂u itself."""
        dim = len(next(iter(equations[0].symbols[field])))
        read = [_diagonal(one.symbols[field], dim) for one in equations]
        diffusion = np.array([own[0] for own in read if own is not None])
        if len(diffusion) < len(equations) or not ((diffusion > 0).all() or (diffusion < 0).all()):
            return None
        reaction = np.array([own[1] for own in read if own is not None])
        factor = np.full(len(diffusion), float(np.sign(diffusion[0, axis]))) if fluxes else diffusion[:, axis]
        return cls(axis, planes, tuple(equations), diffusion / factor[:, None], reaction / factor, factor)

    @property
    def weights(self) -> Array | None:
        """ρ (S,) such that a_i = α_i ρ across the axis; None where there is none."""
        across = np.delete(self.diffusion, self.axis, axis=1)
        share = across / across[:1]
        return share[:, 0] if np.ptp(share, axis=1).max(initial=0.0) <= COMPUTED else None


def _diagonal(symbol: Symbol, dim: int) -> tuple[list[float], float] | None:
    """a_i and c of Σ a_i ∂_ii + c; None for other operators."""
    pure = [tuple(2 * int(j == k) for j in range(dim)) for k in range(dim)]
    still = (0,) * dim
    if any(value and index not in (*pure, still) for index, value in symbol.items()):
        return None
    return [float(symbol.get(index, 0.0)) for index in pure], float(symbol.get(still, 0.0))


def wall_conditions(problem: Problem, terms: Sequence[Term]) -> Array | None:
    """The ratio r (d, 2) of the condition ∂_n u + r u = 0 on each side of the bounding box, infinite for u = 0; None
    where one has no such condition, or several."""
    box = problem.domain.bounds
    size, ratios = float(np.ptp(box, axis=1).max()), np.full(box.shape, np.nan)
    for term in terms:
        if not isinstance(term.region, Side):
            continue
        points = term.region.sample(PATCHES, rng=1)
        flat = np.abs(points[:, :, None] - box[None]) <= COMPUTED * size
        for axis, end in np.argwhere(flat.all(axis=0)):
            ratio = _ratio(problem, term, points, int(axis), int(end))
            if ratio is None or not (np.isnan(ratios[axis, end]) or ratio == ratios[axis, end]):
                return None
            ratios[axis, end] = ratio
    return None if np.isnan(ratios).any() else ratios


def _ratio(problem: Problem, term: Term, points: Array, axis: int, end: int) -> float | None:
    """r of a homogeneous condition on a side of the box, from its coefficients at points of the side."""
    jets, table = condition_coefficients([term], points, problem.vocabulary)
    value, slopes = np.zeros(len(points)), np.zeros(points.shape)
    for jet, column in zip(jets, table[:, 0].T[:-1], strict=True):
        if jet.order > 1:
            return None
        if jet.order:
            slopes[:, jet.index.index(1)] = column
        else:
            value = column
    size = float(np.abs(table[:, 0, :-1]).max())
    normal = slopes[:, axis] * (1 if end else -1)
    others = np.delete(slopes, axis, axis=1)
    if np.abs(table[:, 0, -1]).max() > 0 or np.abs(others).max(initial=0.0) > COMPUTED * size:
        return None
    if np.abs(normal).max() <= COMPUTED * size:
        return np.inf
    ratio = value / normal if np.abs(normal).min() > COMPUTED * size else np.array([0.0, np.inf])
    return float(ratio[0]) if np.ptp(ratio) <= COMPUTED * max(np.abs(ratio).max(), 1.0) else None


@dataclass(frozen=True, eq=False)
class AxisElements:
    """Piecewise polynomials of one degree between breaks (S + 1,), continuous, and zero at ends of infinite ratios.

    weights, stiffness, reaction (S,) : ρ of the mass, a of ∫ a φ'φ', c of ∫ c φφ; ratios (2,) : of the conditions at
    the ends, times a there
    """

    breaks: Array
    degree: int
    weights: Array
    stiffness: Array
    reaction: Array
    ratios: Array

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Gauss nodes (S, q) and weights: two more than the degree needs, for sources."""
        points, shares = leggauss(self.degree + 3)
        half = 0.5 * np.diff(self.breaks)[:, None]
        return 0.5 * (self.breaks[1:] + self.breaks[:-1])[:, None] + half * points, half * shares

    @cached_property
    def functions(self) -> Array:
        """Legendre coefficients (S, degree + 1, n) of all functions on each element: hats, then differences of
        Legendre polynomials that vanish at both ends."""
        count, degree = len(self.weights), self.degree
        table = np.zeros((count, degree + 1, count + 1 + count * (degree - 1)))
        for element in range(count):
            table[element, :2, element] = 0.5, -0.5
            table[element, :2, element + 1] = 0.5, 0.5
            own = count + 1 + element * (degree - 1) + np.arange(degree - 1)
            rows = np.arange(degree - 1)
            scale = np.sqrt(4 * rows + 6)
            table[element, rows + 2, own], table[element, rows, own] = 1 / scale, -1 / scale
        held = [number for number, ratio in zip((0, count), self.ratios, strict=True) if np.isinf(ratio)]
        return np.delete(table, held, axis=2)

    @cached_property
    def tested(self) -> Array:
        """∫ φ f as a matrix (n, S q) of the values of f at the nodes."""
        _, shares = self.nodes
        values = legvander(leggauss(self.degree + 3)[0], self.degree) @ self.functions
        return np.asarray((values * shares[:, :, None]).reshape(-1, values.shape[2]).T)

    @cached_property
    def eigenvectors(self) -> tuple[Array, Array]:
        """λ (n,) and vectors (n, n) of stiffness with respect to mass, orthonormal in the latter."""
        points, shares = leggauss(self.degree + 3)
        plain = legvander(points, self.degree)
        slope = legvander(points, self.degree - 1) @ np.polynomial.legendre.legder(np.eye(self.degree + 1))
        mass: Array = np.zeros((self.functions.shape[2],) * 2)
        stiff = mass.copy()
        for own, half, weight, a, c in zip(
            self.functions, 0.5 * np.diff(self.breaks), self.weights, self.stiffness, self.reaction, strict=True
        ):
            values, slopes = plain @ own, slope @ own
            square = (values.T * shares) @ values * half
            mass += weight * square
            stiff += c * square + a / half * ((slopes.T * shares) @ slopes)
        for element, sign, ratio in ((0, -1.0, self.ratios[0]), (-1, 1.0, self.ratios[1])):
            if np.isfinite(ratio):
                ends = sign ** np.arange(self.degree + 1) @ self.functions[element]
                stiff += ratio * np.outer(ends, ends)
        values, vectors = eigh(stiff, mass)
        return values, vectors


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """Parts (S,), one for each slab; defect : the largest error of its source; gain : 1/λ of the least eigenvalue."""

    parts: tuple[LegendrePart, ...]
    defect: float
    gain: float


def box_solution(
    problem: Problem, operator: SlabOperator, ratios: Array, tol: float, points: Array, first: int = 8
) -> BoxSolution | None:
    """The solution on the bounding box with homogeneous conditions, None where it is not unique or not resolved; the
    error of the source is measured at points (M, d). Degrees begin with the first along each axis."""
    weights, box = operator.weights, problem.domain.bounds
    if weights is None:
        return None
    homes = np.clip(np.searchsorted(operator.planes, points[:, operator.axis]) - 1, 0, len(weights) - 1)
    degrees = np.full(len(box), first)
    while FLOAT_BYTES * np.prod(degrees + 1.0) * len(weights) <= BLOCK_BYTES:
        checkpoint()
        reserve(2.0 * FLOAT_BYTES * float(np.prod(2 + degrees)) * 2 * len(weights), "a solution on the bounding box")
        axes = [_elements(operator, weights, ratios, box, axis, int(n)) for axis, n in enumerate(degrees)]
        solved = _solved(problem, operator, axes)
        if solved is None:
            return None
        coefficients, least = solved
        parts = tuple(LegendrePart(_slab(box, operator, number), own) for number, own in enumerate(coefficients))
        values, missed = np.empty(len(points)), 0.0
        for number, (part, equation) in enumerate(zip(parts, operator.equations, strict=True)):
            own = points[homes == number]
            values[homes == number] = part.derivative(own, (0,) * len(box))
            symbol = equation.symbols[problem.fields[0]]
            left = sum(a * part.derivative(own, index) for index, a in symbol.items())
            gap = np.abs(left - equation.source(problem.vocabulary.symbols, own)) / abs(operator.factor[number])
            missed = max(missed, float(gap.max(initial=0.0)))
        allowed = ALGEBRA_SHARE * tol * float(np.sqrt(np.mean(values**2))) * least
        if missed <= allowed:
            return BoxSolution(tuple(_trimmed(part, ALGEBRA_SHARE * allowed) for part in parts), missed, 1 / least)
        high = np.max([[own[-(len(own) // 3)] for own in _tails(part)] for part in parts], axis=0) > allowed
        degrees = np.where(high | ~high.any(), degrees + (degrees + 1) // 2, degrees)
    return None


def _elements(
    operator: SlabOperator, weights: Array, ratios: Array, box: Array, axis: int, degree: int
) -> AxisElements:
    """The one-dimensional operator along an axis."""
    if axis == operator.axis:
        a = operator.diffusion[:, axis]
        return AxisElements(operator.planes, degree, weights, a, -operator.reaction, ratios[axis] * a[[0, -1]])
    one, a = np.ones(1), operator.diffusion[:1, axis]
    return AxisElements(box[axis], degree, one, a, 0 * one, ratios[axis] * a[0])


def _slab(box: Array, operator: SlabOperator, number: int) -> Array:
    """The bounds (d, 2) of a slab."""
    bounds = np.array(box, dtype=float)
    bounds[operator.axis] = operator.planes[number : number + 2]
    return bounds


def _solved(problem: Problem, operator: SlabOperator, axes: Sequence[AxisElements]) -> tuple[list[Array], float] | None:
    """Legendre coefficients of the solution in each slab, and the least eigenvalue; None if that is not positive."""
    symbols, slabs = problem.vocabulary.symbols, []
    for number, equation in enumerate(operator.equations):
        grid = [one.nodes[0][number if k == operator.axis else 0] for k, one in enumerate(axes)]
        source = equation.source(symbols, combinations(grid)).reshape([len(nodes) for nodes in grid])
        slabs.append(-source / operator.factor[number])
    image = np.concatenate(slabs, axis=operator.axis)
    if not np.isfinite(image).all():
        return None
    total = np.zeros(1)
    for axis, one in enumerate(axes):
        values, vectors = one.eigenvectors
        image = _along(image, vectors.T @ one.tested, axis)
        total = np.add.outer(total, values) if axis else values
    if not total.min() > 0:
        return None
    image /= total
    for axis, one in enumerate(axes):
        if axis != operator.axis:
            image = _along(image, one.functions[0] @ one.eigenvectors[1], axis)
    split = axes[operator.axis]
    return [_along(image, own @ split.eigenvectors[1], operator.axis) for own in split.functions], float(total.min())


def _along(values: Array, matrix: Array, axis: int) -> Array:
    """A matrix applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _tails(part: LegendrePart) -> list[Array]:
    """For each axis and each degree (k,) along it, the root mean square of second derivatives of what this degree and
    the higher ones hold: P_n bends about n² times as much as it is large."""
    tails, squares = [], part.coefficients**2
    for axis, count in enumerate(squares.shape):
        shares = 1 / (2 * np.arange(count) + 1)  # mean squares of Legendre polynomials
        squares = np.moveaxis(np.moveaxis(squares, axis, -1) * shares, -1, axis)
    for axis, count in enumerate(squares.shape):
        own = np.moveaxis(squares, axis, 0).reshape(count, -1).sum(axis=1)
        bends = (2 * np.arange(1, count + 1) / np.ptp(part.box[axis])) ** 2
        tails.append(np.sqrt(np.cumsum((own * bends**2)[::-1])[::-1]))
    return tails


def _trimmed(part: LegendrePart, allowed: float) -> LegendrePart:
    """The part without highest degrees, whose second derivatives in sum do not exceed ``allowed``."""
    counts = [int((own > allowed).sum()) or 1 for own in _tails(part)]
    kept = part.coefficients[tuple(slice(count) for count in counts)]
    return LegendrePart(part.box, np.ascontiguousarray(kept))
