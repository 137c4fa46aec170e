"""Inner coordinates: scalar functions of x on which the data of a problem depend, as inputs beside random ridges.

A random ridge w·x in d = 100 dimensions represents ‖x‖ or min_i x_i poorly. The statement names them: every reduction
of a vector in the data (norm, sum, dot, min, max, a component) is a coordinate ζ(x) of the hidden layer, smallest and
largest components smoothed at the scale of the noise that is still to come, and so are the data g themselves.

Every coordinate comes with a martingale increment over a step: ζ(X') - E[ζ(X') | X] where that is known in closed form
(squares under Gaussian noise, linear functions), ∇ζ·noise otherwise. The smallest and largest components are smoothed
as ε log mean exp(±y_i/ε) in states, with Itô's terms of second order while the noise of a step is smaller than ε. All
increments have mean zero exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import KINKS, REDUCTIONS, Operation, evaluate_vector, value_and_gradients
from rannpde.rounding import COMPUTED

SQUARE_KIND, QUADRATIC, LINEAR, EXTREME, GENERAL = "square", "quadratic", "linear", "extreme", "general"
MULTI_RIDGE = "multi-ridge"
"""A smooth function of several linear ones: its Hessian has their rank."""
LOGARITHMIC = "logarithmic"
"""Linear in the logarithms of x, as a geometric mean's."""
CURVATURE_STEP = np.finfo(float).eps ** 0.25
"""Relative step of second differences: their errors of rounding and of truncation are of the order of its square."""


@dataclass(frozen=True, eq=False)
class InnerCoordinate:
    """ζ(s, x): a formula, smoothed over ``softness`` times the noise to come, with a kind.

    The kind says how its increments are computed.

    A square without a formula is ‖z‖² of the standardised state.
    """

    kind: str
    formula: Operation | None = None
    softness: float = 0.0


def inner_coordinates(form: Parabolic, softness: tuple[float, ...]) -> tuple[InnerCoordinate, ...]:
    """The inner coordinates of a problem, each once."""
    coordinates: dict[str, InnerCoordinate] = {}
    whole = [form.data, *([form.obstacle.payoff] if form.obstacle else [])]
    for formula in [*whole, form.source, *(wall.level for wall in form.walls)]:
        for node in _reductions(formula):
            for coordinate in _recognised(_coordinate(node, softness), form):
                coordinates.setdefault(f"{_signature(node)} {coordinate.softness} {coordinate.kind}", coordinate)
    # only the first Itô term of the data themselves is known: they are used where the statement has no reductions
    for formula in whole if not coordinates else ():
        signature = _signature(formula)
        if formula.name not in REDUCTIONS and formula.has("point") and _cheap(formula):
            middle = softness[len(softness) // 2] if formula.has("smallest", "largest") else 0.0
            coordinates.setdefault(f"{signature} data", InnerCoordinate(GENERAL, formula, middle))
    listed = list(coordinates.values())
    linear = [coordinate for coordinate in listed if coordinate.kind == LINEAR]
    if len(linear) > 1 and _smooth_in(form.data, linear):  # of a single one, neurons represent every function
        listed.append(InnerCoordinate(MULTI_RIDGE, form.data))
    if not any(coordinate.kind == SQUARE_KIND for coordinate in listed):
        listed.insert(0, InnerCoordinate(SQUARE_KIND))
    return tuple(listed)


def _smooth_in(formula: Operation, linear: list[InnerCoordinate]) -> bool:
    """Whether a formula without kinks depends on x through these coordinates alone."""
    known = {_signature(one.formula) for one in linear if one.formula is not None}

    def through(node: Operation) -> bool:
        return _signature(node) in known or (node.name != "point" and all(map(through, node.operands)))

    return not formula.has(*KINKS, "time", "call") and through(formula)


def _reductions(formula: Operation) -> Iterable[Operation]:
    return [n for n in formula.nodes if n.name in REDUCTIONS and n.known and n.has("point") and _cheap(n)]


def _cheap(node: Operation) -> bool:
    """Whether gradients do not need differences of a user's function along every coordinate."""
    return all(n.name != "call" or hasattr(n.value, "gradient") for n in node.nodes)


def _coordinate(node: Operation, softness: tuple[float, ...]) -> list[InnerCoordinate]:
    if node.name in ("smallest", "largest"):
        plain = node.operands[0].name == "point"
        return [InnerCoordinate(EXTREME if plain else GENERAL, node, one) for one in softness]
    operands = [operand.name for operand in node.operands]
    squares = (node.name == "norm" and operands == ["point"]) or (node.name == "dot" and operands == ["point", "point"])
    if node.name == "sum" and operands == ["power"]:
        base, exponent = node.operands[0].operands
        squares = base.name == "point" and exponent.name == "constant" and float(exponent.value[0, 0]) == 2.0
    if squares:
        point = Operation("point", (), "vector")
        return [InnerCoordinate(SQUARE_KIND, Operation("dot", (point, point)))]
    if node.name == "norm":  # the square is smooth where the norm has its kink
        return [InnerCoordinate(GENERAL, Operation("dot", (node.operands[0], node.operands[0])))]
    linear = operands == ["point"] or (node.name == "dot" and set(operands) == {"point", "constant"})
    return [InnerCoordinate(LINEAR if linear else GENERAL, node)]


def _recognised(coordinates: list[InnerCoordinate], form: Parabolic) -> list[InnerCoordinate]:
    """The coordinates, with the kind of those recognised that are linear in log x or quadratic polynomials.

    For these x_i ∂ζ/∂x_i, or ζ(x + y) + ζ(x - y) - 2ζ(x), does not depend on x. One random y and two x would suffice
    with probability one, as formulas without kinks are analytic.
    """
    rng = np.random.default_rng(21)
    x, y = rng.uniform(0.5, 2.0, (3, form.dim)), rng.uniform(0.1, 0.4, (1, form.dim))
    listed = []
    for coordinate in coordinates:
        formula = coordinate.formula
        if coordinate.kind == GENERAL and formula is not None and not formula.has(*KINKS, "time"):
            slopes = x * value_and_gradients(formula, {"point": x}, ("point",))[1]["point"]
            if np.isfinite(slopes).all() and np.ptp(slopes, axis=0).max() <= COMPUTED * np.abs(slopes).max():
                listed.append(replace(coordinate, kind=LOGARITHMIC))
                continue
            seconds = _second_difference(formula, x, y)
            size = np.abs(evaluate_vector(formula, {"point": x})).max()
            if np.isfinite(seconds).all() and np.ptp(seconds) <= 1e-11 * size:
                coordinate = replace(coordinate, kind=QUADRATIC)
        listed.append(coordinate)
    return listed


def _second_difference(formula: Operation, x: Array, y: Array) -> Array:
    """ζ(x + y) + ζ(x - y) - 2ζ(x), (M,)."""
    values = [evaluate_vector(formula, {"point": point}) for point in (x + y, x - y, x)]
    difference: Array = (values[0] + values[1] - 2 * values[2])[:, 0]
    return difference


def _signature(node: Operation) -> str:
    """A text that is the same for equal formulas."""
    value = "" if node.value is None else (node.value.tolist() if isinstance(node.value, np.ndarray) else node.value)
    return f"{node.name}({','.join(map(_signature, node.operands))}){value}"


@dataclass(frozen=True)
class InnerValues:
    """All inner coordinates at states: values (M, R) and slopes (M, R, d), ∂ζ/∂y in states."""

    values: Array
    slopes: Array


@dataclass(frozen=True)
class InnerMoves:
    """The changes of inner coordinates over a step.

    along (M, R) = slope·noise; increments (M, R) = ζ(X') - E[ζ(X') | X], or their known part with mean zero
    covariance (M, R, R) : of ``along`` given X, None where the noise depends on the state
    """

    along: Array
    increments: Array
    covariance: Array | None


@dataclass(frozen=True, eq=False)
class InnerMap:
    """The inner coordinates as functions of the state at one time.

    standard : centre and scale (d,) of the standardised state
    noise_to_come : root mean square, per component, of the changes of states and of points until the last time
    """

    coordinates: tuple[InnerCoordinate, ...]
    form: Parabolic
    process: PathProcess
    s: float
    standard: tuple[Array, Array]
    noise_to_come: tuple[float, float]

    @cached_property
    def _extreme(self) -> tuple[int, ...]:
        kinds = [coordinate.kind for coordinate in self.coordinates]
        return tuple(k for k, kind in enumerate(kinds) if kind == EXTREME and self.process.exact)

    def _is_square(self, coordinate: InnerCoordinate) -> bool:
        return coordinate.kind == SQUARE_KIND and (coordinate.formula is None or _same_space(self.process))

    def _width(self, coordinate: InnerCoordinate) -> float:
        """ε of a smoothed extreme, below zero for the smallest component."""
        return (1.0 if _name(coordinate) == "largest" else -1.0) * coordinate.softness * self.noise_to_come[0]

    def values(self, state: Array, point: Array) -> InnerValues:
        """All coordinates at states and their points (M, d)."""
        size = (len(state), len(self.coordinates))
        values, slopes = np.empty(size), np.empty((*size, state.shape[1]))
        for name in ("smallest", "largest"):
            chosen = [k for k in self._extreme if _name(self.coordinates[k]) == name]
            if chosen:
                _extremes(state, [self._width(self.coordinates[k]) for k in chosen], chosen, values, slopes)
        for k, coordinate in enumerate(self.coordinates):
            if k in self._extreme:
                continue
            if self._is_square(coordinate):
                centre, scale = self.standard if coordinate.formula is None else (0.0, np.ones(1))
                z = (state - centre) / scale
                np.einsum("ij,ij->i", z, z, out=values[:, k])
                np.multiply(z, 2 / scale, out=slopes[:, k])
                continue
            assert coordinate.formula is not None
            soft = coordinate.softness * self.noise_to_come[1]
            value, gradient = value_and_gradients(coordinate.formula, self.form.known(self.s, point), ("point",), soft)
            values[:, k] = value[:, 0]
            slopes[:, k] = self.process.to_state(point, gradient["point"])
        return InnerValues(values, slopes)

    def moves(self, inner: InnerValues, state: Array, point: Array, move: PathStep, h: float) -> InnerMoves:
        """The changes of the coordinates over a step."""
        process, slopes, noise = self.process, inner.slopes, move.noise
        variance = process.noise_variance(h)
        along = (slopes @ noise[:, :, None])[:, :, 0]
        increments = along.copy()
        covariance = None if variance is None else _covariance(slopes, variance, process.correlation)
        for k, coordinate in enumerate(self.coordinates):
            if coordinate.kind == LINEAR and not _same_space(process):
                gradient = process.to_point(point, slopes[:, k])
                increments[:, k] = np.einsum("ij,ij->i", gradient, process.linear_noise(state, move, h))
            if variance is None:
                continue
            if self._is_square(coordinate):
                scale = self.standard[1] if coordinate.formula is None else np.ones(process.dim)
                scaled = noise / scale
                increments[:, k] += np.einsum("ij,ij->i", scaled, scaled) - float((variance / scale**2).sum())
            if coordinate.kind == MULTI_RIDGE and _same_space(process) and coordinate.formula is not None:
                increments[:, k] += self._curved(coordinate.formula, state, variance, noise)
            if coordinate.kind == QUADRATIC and _same_space(process) and coordinate.formula is not None:
                increments[:, k] += _quadratic(coordinate.formula, process, variance, noise)
        if covariance is not None and variance is not None and self._extreme:
            squares = (slopes @ (noise * noise - variance)[:, :, None])[:, :, 0]
            for k in self._extreme:
                # Itô's second-order term: the Hessian of ε log mean exp(y/ε) is (diag(p) - p pᵀ)/ε, p its slope
                width = self._width(self.coordinates[k])
                if variance.max() <= width**2:
                    increments[:, k] += 0.5 / width * (squares[:, k] - along[:, k] ** 2 + covariance[:, k, k])
        return InnerMoves(along, increments, covariance)

    @cached_property
    def _ridges(self) -> Array:
        """Normals (R, d) of the linear coordinates."""
        origin = np.zeros((1, self.process.dim))
        linear = [one.formula for one in self.coordinates if one.kind == LINEAR and one.formula is not None]
        known = self.form.known(self.s, origin)
        rows = [value_and_gradients(one, known, ("point",))[1]["point"] for one in linear]
        return np.concatenate([np.broadcast_to(row, origin.shape) for row in rows])

    def _curved(self, formula: Operation, state: Array, variance: Array, noise: Array) -> Array:
        """½ (nᵀHn - tr HΣ) (M,) of a function of the linear coordinates, n the noise and Σ its covariance: the trace
        is the sum of vᵀHv over vectors v that have the covariance of the coordinates.
        """
        deviation, correlation = np.sqrt(variance), self.process.correlation
        turned = self._ridges * deviation
        turned = (turned if correlation is None else turned @ correlation) * deviation  # A Σ
        values, vectors = np.linalg.eigh(turned @ self._ridges.T)
        regular = values > np.finfo(float).eps * values[-1] * self.process.dim
        columns = (vectors[:, regular] / np.sqrt(values[regular])).T @ turned
        expected = sum(_second_difference(formula, state, CURVATURE_STEP * row) for row in columns)
        curvature: Array = (_second_difference(formula, state, CURVATURE_STEP * noise) - expected) / (
            2 * CURVATURE_STEP**2
        )
        return curvature


def _name(coordinate: InnerCoordinate) -> str:
    return "" if coordinate.formula is None else coordinate.formula.name


def _extremes(state: Array, widths: list[float], columns: list[int], values: Array, slopes: Array) -> None:
    """ε log mean exp(y/ε) and its slopes for several widths ε of one sign at once.

    Widths that double need one exponential: exp(y/ε) is the square of exp(y/(2ε)).
    """
    sign = float(np.sign(widths[0]))
    signed = state if sign > 0 else -state
    top = signed.max(axis=1, keepdims=True)
    shifted = signed - top
    terms: Array | None = None
    previous = 0.0
    for width, column in sorted(zip(np.abs(widths).tolist(), columns, strict=True), reverse=True):
        if terms is not None and abs(previous - 2 * width) <= 1e-12 * previous:
            np.multiply(terms, terms, out=terms)
        else:
            terms = np.exp(shifted / width)
        previous = width
        total = terms.sum(axis=1)
        values[:, column] = sign * (top[:, 0] + width * np.log(total / state.shape[1]))
        np.divide(terms, total[:, None], out=slopes[:, column])


def _covariance(slopes: Array, variance: Array, correlation: Array | None) -> Array:
    """The covariance (M, R, R) of slope·noise of all coordinates."""
    same = float(np.ptp(variance)) == 0.0
    weighted = slopes if same else slopes * np.sqrt(variance)
    turned = weighted if correlation is None else weighted @ correlation
    covariance: Array = turned @ weighted.transpose(0, 2, 1)
    return covariance * variance[0] if same else covariance


def _quadratic(formula: Operation, process: PathProcess, variance: Array, noise: Array) -> Array:
    """The second-order increment (M,) of a quadratic polynomial, minus its mean."""
    origin, columns = np.zeros((1, process.dim)), np.diag(np.sqrt(variance))
    if process.correlation is not None:
        values_of, vectors = np.linalg.eigh(process.correlation)
        columns = (np.sqrt(np.maximum(values_of, 0.0)) * vectors).T * np.sqrt(variance)
    expected = float(_second_difference(formula, origin, columns).sum())
    return 0.5 * (_second_difference(formula, origin, noise) - expected)


def _same_space(process: PathProcess) -> bool:
    """Whether states and points are the same, as for Brownian motion."""
    probe = np.full((1, process.dim), 0.5)
    return bool((process.point(probe) == probe).all())
