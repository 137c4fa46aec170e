"""Particular solutions: polynomials for polynomial sources, Fourier features divided by the symbol for all others.

A source f is fitted on the bounding box by Fourier features of a longer period (a Fourier extension, least squares
axis by axis); exp(iω·x) is an eigenfunction of the operator with the eigenvalue σ(iω), so a division gives L u = f
exactly up to the fit. The period is the one of a few whose lattice of frequencies stays farthest from the zeros of
σ, and frequencies of the first axis are shifted by half a step, so that ω = 0 and directions along which σ is small
are not among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.checkpoints import reserve
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import MUCH_SMALLER, PILOT_TOLERANCE
from rannpde.pde.trefftz.box_solution import SlabOperator, box_solution, wall_conditions
from rannpde.pde.trefftz.operator import LinearEquation, Symbol, symbol_at
from rannpde.pde.trefftz.parts import FourierPart, NoPart, ParticularPart, PolynomialPart

PERIODS = tuple(np.linspace(1.9, 2.5, 7))
"""Periods of the Fourier features in units of the box: below 1.9 fits lose digits, above 2.5 they need more
features.
"""

COUNTS = {2: (16, 24, 36, 54, 80, 120, 180), 3: (12, 18, 26, 38)}
"""Fourier features of each axis that are tried in turn, in the plane and in space."""

LARGEST_SOURCE_DEGREE = 12
"""The highest degree of a source that is treated as a polynomial."""

EXTENSION_ROUNDING = 1e-13
"""A fit of this relative error is exact, as far as float64 goes."""

EXTENSION_CUTOFF = 1e-14
"""Relative singular values of Fourier extensions that are left out."""


class NoParticular(Exception):
    """Raised, with the reason, where no particular solution is accurate enough."""


@dataclass(frozen=True, eq=False)
class Particular:
    """A particular solution, the largest absolute error of its source, and 1/min |σ|."""

    part: ParticularPart
    defect: float
    gain: float


def particular(problem: Problem, equation: LinearEquation, symbol: Symbol, tol: float) -> Particular:
    """A particular solution of one equation in one field; NoParticular where none is good enough."""
    if equation.load == 0:
        return Particular(NoPart(), 0.0, 0.0)
    box = problem.domain.bounds
    lattice = _lattice(symbol, box, COUNTS[problem.domain.dim][0])
    gain = 1 / lattice[1]
    points = source_points(problem)
    source = equation.source(problem.vocabulary.symbols, points)
    if not np.isfinite(source).all():
        raise NoParticular("the source is not finite")
    exact = _exact_polynomials(problem, [equation], points, [source])
    if exact is not None:
        return Particular(exact[0][0], exact[1], gain)
    boxed = box_particulars(problem, (equation,), 0, box[0], False, tol) if problem.domain.dim == 3 else None
    return boxed[0] if boxed is not None else _fourier(problem, equation, symbol, tol, points, source)


def box_particulars(
    problem: Problem, equations: Sequence[LinearEquation], axis: int, planes: Array, fluxes: bool, tol: float
) -> list[Particular] | None:
    """Particular solutions in slabs between planes (S + 1,) across an axis; None where there are none.

    They are the parts of one solution on the bounding box that satisfies homogeneous conditions on its sides. In space,
    where surfaces need many features, it saves more of them than it costs.
    """
    operator = SlabOperator.of(equations, problem.fields[0], axis, planes, fluxes)
    ratios = None if operator is None else wall_conditions(problem, problem.constraints)
    if operator is None or ratios is None:
        return None
    whole = box_solution(problem, operator, ratios, tol, source_points(problem))
    if whole is None:
        return None
    return [Particular(part, whole.defect, whole.gain * (k == 0)) for k, part in enumerate(whole.parts)]


def source_points(problem: Problem) -> Array:
    """Points at which the error of a fit of the source is measured: of the domain, and more where data vary fast."""
    points = problem.domain.sample(400, rng=12)
    if problem.variation is None:
        return points
    return np.concatenate([points, problem.variation.sample(400, np.random.default_rng(13))])


def _applied(part: Any, symbol: Symbol, points: Array) -> Array:
    return np.asarray(sum(value * part.derivative(points, index) for index, value in symbol.items()))


def _polynomials(problem: Problem, equations: Sequence[LinearEquation]) -> list[PolynomialPart] | None:
    """The least polynomials, one for each field, with L p = f, where all sources are polynomials of low degree."""
    names, n, fields = problem.vocabulary.symbols, problem.domain.dim, problem.fields
    if not all(equation.load.is_polynomial(*names) for equation in equations):
        return None
    box = problem.domain.bounds
    origin, length = box.mean(axis=1), 0.5 * float(np.diff(box, axis=1).max())
    local = [sympy.Symbol(f"xi{k}") for k in range(n)]
    moved = {name: sympy.Float(o) + sympy.Float(length) * xi for name, o, xi in zip(names, origin, local, strict=True)}
    sources = [sympy.Poly(sympy.expand((-equation.load).subs(moved)), *local) for equation in equations]
    degree = max(source.total_degree() for source in sources)
    if degree > LARGEST_SOURCE_DEGREE:
        return None
    orders = [sum(index) for equation in equations for symbol in equation.symbols.values() for index in symbol]
    powers = _powers(n, degree + (min(orders) if len(fields) == 1 else max(orders)))
    rows = {power: k for k, power in enumerate(powers)}
    matrix, rhs = np.zeros((len(equations), len(rows), len(fields), len(rows))), np.zeros((len(equations), len(rows)))
    for number, (equation, source) in enumerate(zip(equations, sources, strict=True)):
        for power, value in source.terms():
            rhs[number, rows[power]] = float(value)
        for field, symbol in equation.symbols.items():
            for column, power in enumerate(powers):
                for index, value in symbol.items():
                    left = tuple(p - i for p, i in zip(power, index, strict=True))
                    if min(left) >= 0:
                        falls = np.prod([factorial(p) / factorial(q) for p, q in zip(power, left, strict=True)])
                        change = value * falls / length ** sum(index)
                        matrix[number, rows[left], fields.index(field), column] += change
    whole = matrix.reshape(rhs.size, -1)
    sizes = np.linalg.norm(whole, axis=0)
    sizes[sizes == 0] = 1.0
    coefficients = (np.linalg.lstsq(whole / sizes, rhs.ravel(), rcond=1e-14)[0] / sizes).reshape(len(fields), -1)
    return [PolynomialPart(np.array(powers, dtype=float), of_field, origin, length) for of_field in coefficients]


def _exact_polynomials(
    problem: Problem, equations: Sequence[LinearEquation], points: Array, sources: Sequence[Array]
) -> tuple[list[PolynomialPart], float] | None:
    """Polynomials that satisfy all equations at points (M, n) up to rounding, with their largest residual, or None."""
    polynomials = _polynomials(problem, equations)
    if polynomials is None:
        return None
    residual = 0.0
    for equation, values in zip(equations, sources, strict=True):
        symbols = equation.symbols.items()
        parts = [_applied(polynomials[problem.fields.index(name)], symbol, points) for name, symbol in symbols]
        residual = max(residual, float(np.abs(np.sum(parts, axis=0) - values).max()))
    size = max(float(np.abs(values).max()) for values in sources)
    return (polynomials, residual) if residual <= 1e-11 * size else None


def _powers(n: int, degree: int) -> list[MultiIndex]:
    return [power for power in product(range(degree + 1), repeat=n) if sum(power) <= degree]


def _lattice(symbol: Symbol, box: Array, count: int) -> tuple[tuple[Array, ...], float]:
    """Frequencies of each axis, for the period that keeps σ farthest from zero, and min |σ| there."""
    best: tuple[tuple[Array, ...], float] | None = None
    for period in PERIODS:
        steps = 2 * np.pi / (period * np.diff(box, axis=1)[:, 0])
        whole = np.arange(count) - count // 2
        axes = tuple(step * (whole + 0.5 * (axis == 0)) for axis, step in enumerate(steps))
        least = float(np.abs(symbol_at(symbol, 1j * combinations(axes))).min())
        if best is None or least > best[1]:
            best = axes, least
    assert best is not None
    return best


def particulars(problem: Problem, equations: tuple[LinearEquation, ...], tol: float) -> list[Particular]:
    """Particular solutions of a system, one for each field: at each frequency, the matrix of symbols is inverted."""
    fields = problem.fields
    if len(fields) == 1:
        return [particular(problem, equations[0], equations[0].symbols[fields[0]], tol)]
    if all(equation.load == 0 for equation in equations):
        return [Particular(NoPart(), 0.0, 0.0) for _ in fields]
    box, points = problem.domain.bounds, source_points(problem)
    sources = [equation.source(problem.vocabulary.symbols, points) for equation in equations]
    exact = _exact_polynomials(problem, equations, points, sources)
    if exact is not None:
        gain = _gain(_matrices(fields, equations, _lattice({(2, 0): 1.0, (0, 2): 1.0}, box, COUNTS[2][0])[0]))
        return [Particular(part, exact[1] * (k == 0), gain) for k, part in enumerate(exact[0])]
    best: list[Particular] | None = None
    for count in COUNTS[problem.domain.dim][:5]:
        reserve(8 * 16 * (2 * count) ** problem.domain.dim, "a particular solution")
        frequencies = _lattice({(2, 0): 1.0, (0, 2): 1.0}, box, count)[0]
        matrices = _matrices(fields, equations, frequencies)
        sides, defect = [], 0.0
        for equation, values in zip(equations, sources, strict=True):
            fitted = _source_fit(problem, equation, frequencies, count)
            part = FourierPart(frequencies, fitted, box.mean(axis=1))
            defect = max(defect, float(np.abs(part.derivative(points, (0,) * len(box)) - values).max()))
            sides.append(fitted.ravel())
        solved = np.linalg.solve(matrices, np.array(sides).T[:, :, None])[:, :, 0]
        gain = _gain(matrices)
        shape = [len(omega) for omega in frequencies]
        solutions = [
            Particular(FourierPart(frequencies, solved[:, k].reshape(shape), box.mean(axis=1)), defect * (k == 0), gain)
            for k in range(len(fields))
        ]
        if best is None or defect < best[0].defect:
            best = solutions
        if defect <= EXTENSION_ROUNDING * max(float(np.abs(w).max()) for w in sources):
            break
    assert best is not None
    if best[0].defect > MUCH_SMALLER * PILOT_TOLERANCE * max(float(np.abs(w).max()) for w in sources):
        raise NoParticular("Fourier features do not fit the loads")
    return best


def _matrices(fields: Sequence[str], equations: Sequence[LinearEquation], frequencies: tuple[Array, ...]) -> Array:
    """The symbols of a system (K, equations, fields) at all frequencies of a lattice."""
    lattice = 1j * combinations(frequencies)
    rows = [[symbol_at(equation.symbols.get(name, {}), lattice) for name in fields] for equation in equations]
    return np.array(rows).transpose(2, 0, 1)


def _gain(matrices: Array) -> float:
    """The largest factor by which an error of the sources becomes one of the solution."""
    return float(1 / np.linalg.svd(matrices, compute_uv=False)[:, -1].min())


def _source_fit(problem: Problem, equation: LinearEquation, frequencies: tuple[Array, ...], count: int) -> Array:
    """Coefficients of the Fourier extension of a source from the bounding box."""
    box = problem.domain.bounds
    grids = [0.5 * (b - a) * -np.cos(np.pi * (np.arange(2 * count) + 0.5) / (2 * count)) for a, b in box]
    try:
        values = equation.source(problem.vocabulary.symbols, combinations(grids) + box.mean(axis=1))
    except Exception as error:  # a user's function, asked outside of the domain
        raise NoParticular(f"the source has no values around the domain ({error})") from None
    if not np.isfinite(values).all():
        raise NoParticular("the source is not finite around the domain")
    matrices = [np.exp(1j * grid[:, None] * omega) for grid, omega in zip(grids, frequencies, strict=True)]
    return _fitted(matrices, values.reshape([len(grid) for grid in grids]).astype(complex))


def _fourier(
    problem: Problem, equation: LinearEquation, symbol: Symbol, tol: float, points: Array, source: Array
) -> Particular:
    box = problem.domain.bounds
    origin, size = box.mean(axis=1), float(np.abs(source).max())
    best: Particular | None = None
    for count in COUNTS[problem.domain.dim]:
        reserve(8 * 16 * (2 * count) ** problem.domain.dim, "a particular solution")
        frequencies, least = _lattice(symbol, box, count)
        coefficients = _source_fit(problem, equation, frequencies, count)
        sigma = symbol_at(symbol, 1j * combinations(frequencies)).reshape(coefficients.shape)
        defect = float(
            np.abs(FourierPart(frequencies, coefficients, origin).derivative(points, (0,) * len(box)) - source).max()
        )
        solution = Particular(FourierPart(frequencies, coefficients / sigma, origin), defect, 1 / least)
        if best is None or defect < best.defect:
            best = solution
        if defect <= EXTENSION_ROUNDING * size or (best.defect < 1e-9 * size and solution is not best):
            break
    assert best is not None
    if best.defect > MUCH_SMALLER * max(tol, EXTENSION_ROUNDING, PILOT_TOLERANCE) * size:
        raise NoParticular(f"Fourier features leave {best.defect / size:.1e} of the source")
    return _trimmed(best)


def _fitted(matrices: list[Array], values: Array) -> Array:
    """Least squares for a tensor product of matrices, by the truncated singular value decomposition of the whole.

    Its singular values are products of those of the factors: to truncate each factor alone would let noise through that
    the next one magnifies.
    """
    factors = [np.linalg.svd(matrix, full_matrices=False) for matrix in matrices]
    for axis, (left, _, _) in enumerate(factors):
        values = np.moveaxis(np.tensordot(left.conj().T, values, axes=(1, axis)), 0, axis)
    sizes = reduce(np.multiply.outer, [sizes for _, sizes, _ in factors])
    image = np.where(sizes > EXTENSION_CUTOFF * sizes.max(), values / np.maximum(sizes, 1e-300), 0.0)
    for axis, (_, _, right) in enumerate(factors):
        image = np.moveaxis(np.tensordot(right.conj().T, image, axes=(1, axis)), 0, axis)
    return image


def _trimmed(solution: Particular) -> Particular:
    """The solution without the frequencies at the ends of the axes whose coefficients are below rounding."""
    part = solution.part
    assert isinstance(part, FourierPart)
    sizes, axes = np.abs(part.coefficients), []
    keep = sizes.max() * 1e-17
    for axis in range(sizes.ndim):
        others = tuple(k for k in range(sizes.ndim) if k != axis)
        axes.append(np.flatnonzero(sizes.max(axis=others) > keep))
    chosen = reduce(lambda c, pair: np.take(c, pair[1], axis=pair[0]), enumerate(axes), part.coefficients)
    frequencies = tuple(omega[numbers] for omega, numbers in zip(part.frequencies, axes, strict=True))
    return Particular(FourierPart(frequencies, chosen, part.origin), solution.defect, solution.gain)
