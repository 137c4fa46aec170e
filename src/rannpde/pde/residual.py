"""Terms that must vanish, and the residuals of functions in them, on collocation points or held-out points.

A *term* is one sum of the PINN loss (paper, section "Physics-informed machine learning"): an expression that must
vanish on a region (the interior, a side, a slice), or at given points for measured data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.boundary.sides import Side
from rannpde.domains.norms import relative_errors
from rannpde.domains.region import Region
from rannpde.pde.functional_values import Surroundings, functional_values
from rannpde.pde.functions import State
from rannpde.pde.statement.expression import Expression, Jet, evaluate
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.rounding import COMPUTED

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

DATA_SYMBOL = sympy.Symbol("measured value", real=True)
HELD_OUT = 1000
"""Held-out points per term."""


@dataclass(frozen=True, eq=False)
class Term:
    """One sum of the loss: the expression vanishes on the region, or at fixed points with fixed data.

    kind : "interior", "initial", "boundary", "slice", "data", or "functional" for a condition on an integral
    surroundings : what values outside the domain are, for expressions that ask for them
    """

    name: str
    kind: str
    expression: Expression
    region: Region | None
    points: Array | None = None
    data: Array | None = None
    weight: float = 1.0
    surroundings: Surroundings | None = None

    @property
    def measure(self) -> float:
        """The measure of the region, with which a mean square becomes the integral J (1 for data)."""
        return 1.0 if self.region is None else self.region.measure

    def known(self, points: Array, vocabulary: Vocabulary, data: Array | None = None) -> dict[sympy.Symbol, Array]:
        """Return the values at points of everything that is not a field: coordinates, normals, measured values."""
        values = vocabulary.at(points)
        if isinstance(self.region, Side) and self.expression.free_symbols.intersection(vocabulary.normals):
            values |= dict(zip(vocabulary.normals, self.region.normals(points).T, strict=True))
        if data is not None:
            values[DATA_SYMBOL] = data
        return values

    @property
    def prescribed(self) -> tuple[Jet, sympy.Expr] | None:
        """(jet, value) of a condition that prescribes one jet, such as u = sin(x) or 2*u_t = x; None for others."""
        expression = self.expression
        if len(expression.jets) != 1:
            return None
        symbol, slope = next(iter(expression.symbols)), expression.partials[0]
        if symbol in slope.free_symbols or slope == 0:
            return None
        return expression.jets[0], -expression.formula.subs(symbol, 0) / slope


def jets_of(state: State, fields: tuple[str, ...], points: Array, jets: Iterable[Jet]) -> dict[Jet, Array]:
    """Return the values of these jets at the points; each derivative is computed once for all fields."""
    jets = list(jets)
    indices = sorted({jet.index for jet in jets})
    several = getattr(state, "derivatives", None)  # networks evaluate their profile once per order
    derivatives = several(points, indices) if several else {index: state.derivative(points, index) for index in indices}
    return {jet: derivatives[jet.index][:, fields.index(jet.field)] for jet in jets}


def jets_at(
    state: State, fields: tuple[str, ...], asked: Sequence[tuple[Array, Sequence[Jet]]]
) -> list[dict[Jet, Array]]:
    """Return the values of jets at several sets of points (M, n); those that ask for the same derivatives are evaluated
    together, and a set that is asked for twice once."""
    alike: dict[frozenset[tuple[int, ...]], list[int]] = {}
    for number, (_, jets) in enumerate(asked):
        alike.setdefault(frozenset(jet.index for jet in jets), []).append(number)
    jet_values: list[dict[Jet, Array]] = [{} for _ in asked]
    for indices, own in alike.items():
        if not indices:
            continue
        distinct = {id(asked[k][0]): asked[k][0] for k in own}
        starts = dict(zip(distinct, np.cumsum([0, *map(len, distinct.values())]).tolist(), strict=False))
        every = [Jet(field, index) for field in fields for index in sorted(indices)]
        values = jets_of(state, fields, np.concatenate(list(distinct.values())), every)
        for k in own:
            points, jets = asked[k]
            start = starts[id(points)]
            jet_values[k] = {jet: values[jet][start : start + len(points)] for jet in jets}
    return jet_values


def first_derivatives(dim: int) -> list[MultiIndex]:
    """Return the derivatives along each axis."""
    return [tuple(int(a == b) for b in range(dim)) for a in range(dim)]


def gradient(state: State, points: Array) -> Array:
    """Return ∂_l of every field, (M, fields, n)."""
    axes = first_derivatives(points.shape[1])
    several = getattr(state, "derivatives", None)
    derivatives = several(points, axes) if several else {axis: state.derivative(points, axis) for axis in axes}
    return np.stack([derivatives[axis] for axis in axes], axis=2)


def term_residual(term: Term, state: State, vocabulary: Vocabulary, points: Array) -> Array:
    """Return the residual (M,) of a loss term for these functions at points of its region."""
    jets = jets_of(state, vocabulary.fields, points, _stated(term, vocabulary))
    return _residual(term, state, vocabulary, points, None, jets)


def term_residuals(terms: Sequence[Term], state: State, vocabulary: Vocabulary, points: Sequence[Array]) -> list[Array]:
    """Return the residuals (M,) of many terms, each at points of its own, which are evaluated together."""
    asked = [(own, _stated(term, vocabulary)) for term, own in zip(terms, points, strict=True)]
    every = jets_at(state, vocabulary.fields, asked)
    return [
        _residual(term, state, vocabulary, own, term.data if own is term.points else None, jets)
        for term, own, jets in zip(terms, points, every, strict=True)
    ]


def _stated(term: Term, vocabulary: Vocabulary) -> list[Jet]:
    return [jet for jet in term.expression.jets if jet.field in vocabulary.fields]


def _residual(
    term: Term, state: State, vocabulary: Vocabulary, points: Array, data: Array | None, jets: dict[Jet, Array]
) -> Array:
    expression, known = term.expression, term.known(points, vocabulary, data)
    if expression.functionals:
        assert term.surroundings is not None
        jets |= functional_values(
            expression.functionals, state, vocabulary.fields, term.surroundings, known, expression.functions
        )
    value = expression.value(known, jets)
    return np.broadcast_to(value, (len(points),))


def distance(one: State, other: State, points: Array) -> float:
    """Return the relative l² distance of two states at points (M, n), the largest over the fields."""
    still = (0,) * points.shape[1]
    return float(relative_errors(one.derivative(points, still), other.derivative(points, still)).max())


def loss_integrals(problem: Problem, losses: Mapping[str, float]) -> dict[str, float]:
    """Term name → its loss times the measure of its region, J_PDE for equations; bounds have none."""
    measures: dict[str, float] = {}
    for term in problem.terms:
        measures[term.name] = measures.get(term.name, 0.0) + term.measure
    return {name: loss * measures.get(name, 1.0) for name, loss in losses.items()}


def mean_squares(problem: Problem, state: State, points: Array) -> dict[str, float]:
    """Return for each equation the mean square of its residual at points (M, n)."""
    residuals = {term.name: term_residual(term, state, problem.vocabulary, points) for term in problem.interior}
    return {name: float(np.mean(residual**2)) for name, residual in residuals.items()}


def sampled_losses(problem: Problem, state: State, count: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return by name the mean squares of the residuals of all terms, of several terms of one name the largest, and the
    measures of their regions.

    count : points inside; a tenth as many for each condition
    """
    losses = mean_squares(problem, state, problem.domain.sample(count, rng=11))
    measures = dict.fromkeys(losses, problem.domain.measure)
    for term in problem.constraints:
        if term.region is not None:
            points = term.region.sample(count // 10, rng=11)
            square = root_mean_square(term_residual(term, state, problem.vocabulary, points)) ** 2
            losses[term.name] = max(square, losses.get(term.name, 0.0))
            measures[term.name] = measures.get(term.name, 0.0) + term.measure
    return losses, measures


def held_out_residual(problem: Problem, state: State, rng: int = 20231, count: int = HELD_OUT) -> dict[str, float]:
    """Return by name the relative residual of every term on held-out points: see ``held_out_residuals``."""
    return held_out_residuals(problem, state, rng, count)[1]


def held_out_residuals(
    problem: Problem, state: State, rng: int = 20231, count: int = HELD_OUT
) -> tuple[dict[str, float], dict[str, float]]:
    """Return for each equation the mean square of its residual on held-out points; and by name of every term the root
    mean square of its residual there, relative to the size of its own summands.

    The number needs no exact solution and has no unit: 1 means that nothing is solved, 1e-6 that six digits balance.
    The size is at least that of the linearised term for fields that vary over the whole domain, |∂^α u| ~ |u|/h^α.
    Where the data are concentrated, an equation is evaluated there as well, and the larger residual counts.
    """
    generator = np.random.default_rng(rng)
    interior = problem.domain.sample(count, rng=generator)
    plain = {Jet(name, (0,) * problem.domain.dim) for name in problem.fields}
    needed = plain.union(*(term.expression.jets for term in problem.terms))
    for term in problem.terms:
        if term.kind != "interior":
            needed |= {one for jet in term.expression.jets for one in _derivatives_alike(problem, jet)}
    everywhere = jets_of(state, problem.fields, interior, needed)
    still = (0,) * problem.domain.dim
    plainly = np.array([root_mean_square(everywhere[Jet(name, still)]) for name in problem.fields])
    sizes = dict(zip(problem.fields, field_sizes(plainly).tolist(), strict=True))
    sums: dict[str, tuple[float, float]] = {}
    squares: dict[str, float] = {}
    known: dict[int, Array] = {}  # conditions on one side share their points
    sampled = [
        known[id(term.region)]
        if term.points is None and id(term.region) in known
        else known.setdefault(id(term.region), _held_out_points(term, interior, generator))
        for term in problem.terms
    ]
    outside = [k for k, term in enumerate(problem.terms) if term.kind != "interior"]
    asked = [(sampled[k], problem.terms[k].expression.jets) for k in outside]
    own = dict(zip(outside, jets_at(state, problem.fields, asked), strict=True))
    for number, term in enumerate(problem.terms):
        jets = own.get(number, everywhere)
        residual, size = _residual_and_size(term, problem, sampled[number], jets, everywhere, sizes)
        if term.kind == "interior":
            squares[term.name] = residual**2
        before = sums.get(term.name, (0.0, 0.0))
        sums[term.name] = (before[0] + residual**2, before[1] + size**2)
    ratios = {name: float(np.sqrt(residual / max(size, 1e-300))) for name, (residual, size) in sums.items()}
    focus = problem.variation.sample(count, generator) if problem.variation is not None else interior[:0]
    if len(focus):
        near = jets_of(state, problem.fields, focus, needed)
        for term in problem.interior:
            residual, size = _residual_and_size(term, problem, focus, near, near, sizes)
            ratios[term.name] = max(ratios[term.name], residual / max(size, 1e-300))
    return squares, ratios


def _held_out_points(term: Term, interior: Array, rng: np.random.Generator) -> Array:
    """Points of a term's own region, or those inside."""
    if term.kind == "interior" or term.points is not None:
        return interior if term.points is None else term.points
    region: Any = term.region
    return np.asarray(region.sample(1 if region.is_point else len(interior), rng=rng))


def _residual_and_size(
    term: Term,
    problem: Problem,
    points: Array,
    jets: Mapping[Jet, Array],
    everywhere: Mapping[Jet, Array],
    sizes: Mapping[str, float],
) -> tuple[float, float]:
    """Return root mean squares of the residual and of Σ |summand|, bounded below by the partial derivatives.

    jets : at the points of the term; everywhere : at points inside. The partial derivatives are multiplied by the sizes
    of their jets; in conditions these are sizes inside the domain, of the derivatives of the same order in all
    directions of space: where a field does not vary along y, rounding in u_y = 0 is small compared with u_x.
    """
    expression = term.expression
    values = term.known(points, problem.vocabulary, term.data)
    values |= {symbol: jets[jet] for symbol, jet in expression.symbols.items()}
    parts = evaluate(list(sympy.Add.make_args(expression.formula)), values, expression.functions)
    zero = np.zeros(len(points))
    residual, size = root_mean_square(sum(parts, zero)), root_mean_square(sum((np.abs(part) for part in parts), zero))
    halfwidth = 0.5 * np.diff(problem.domain.bounds, axis=1)[:, 0]
    natural = 0.0
    for jet, partial in zip(expression.jets, evaluate(expression.partials, values, expression.functions), strict=True):
        if term.kind == "interior" or jet.order == 0:
            own = sizes[jet.field] / float(np.prod(halfwidth ** np.array(jet.index)))
        else:
            own = max(root_mean_square(everywhere[one]) for one in _derivatives_alike(problem, jet))
        natural += root_mean_square(partial) * own
    return residual, max(size, natural)


def _derivatives_alike(problem: Problem, jet: Jet) -> list[Jet]:
    """The derivatives of a field that have the same order in space, and in time, as this one."""
    time = problem.vocabulary.time
    space = [axis for axis, name in enumerate(problem.domain.names) if name != time]
    order = sum(jet.index[axis] for axis in space)
    alike = []
    for chosen in combinations_with_replacement(space, order):
        index = [0 if axis in space else level for axis, level in enumerate(jet.index)]
        for axis in chosen:
            index[axis] += 1
        alike.append(Jet(jet.field, tuple(index)))
    return alike


def field_sizes(sizes: Array) -> Array:
    """Return the scales (fields,) of relative errors: the fields' own sizes, the largest size for one that is zero.

    >>> field_sizes(np.array([2.0, 1e-14, 1e-3]))
    array([2.e+00, 2.e+00, 1.e-03])
    """
    largest = max(float(sizes.max()), 1e-300)
    return np.where(sizes > COMPUTED * largest, sizes, largest)


def relative_difference(before: Array, after: Array) -> float:
    """Return the relative l² difference of values (M, fields), the largest over the fields; infinite where some are
    missing.

    >>> relative_difference(np.array([[1.0], [1.0]]), np.array([[1.0], [2.0]]))
    0.4472135954999579
    """
    gaps, sizes = (np.sqrt(np.mean(np.square(v), axis=0)) for v in (before - after, after))
    return float((gaps / field_sizes(sizes)).max()) if np.isfinite(gaps).all() and np.isfinite(sizes).all() else np.inf


def root_mean_square(values: Array) -> float:
    """Return the square root of the mean of the squares of all entries."""
    return float(np.sqrt(np.mean(np.square(values))))
