"""Inner coordinates: the scalars through which the data of a problem see x, beside random ridges.

A random ridge w·x in d = 100 dimensions knows little of ‖x‖ or min_i x_i. The statement names these: every reduction
of a vector in the data (norm, sum, dot, min, max, a component) is a coordinate ζ(x) of the hidden layer, smallest and
largest components smoothed at the scale of the noise that is still to come, and the data g themselves.

Every coordinate comes with a martingale increment over a step: ζ(X') - E[ζ(X') | X] where that is known in closed form
(squares under Gaussian noise, linear functions), ∇ζ·noise otherwise. The smallest and largest components are smoothed
as ε log mean exp(±y_i/ε) in states, with Itô's terms of second order while the noise of a step is smaller than ε. All
increments have mean zero exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import KINKS, REDUCTIONS, Operation, evaluate_vector, value_and_gradients

SQUARE_KIND, QUADRATIC, LINEAR, EXTREME, GENERAL = "square", "quadratic", "linear", "extreme", "general"


@dataclass(frozen=True, eq=False)
class InnerCoordinate:
    """ζ(s, x): a formula with a softness relative to the noise to come; the kind says how its increments are known.

    A square without a formula is ‖z‖² of the standardised state.
    """

    kind: str
    formula: Operation | None = None
    softness: float = 0.0


def inner_coordinates(form: Parabolic, softness: tuple[float, ...]) -> tuple[InnerCoordinate, ...]:
    """Those of a problem, each once."""
    found: dict[str, InnerCoordinate] = {}
    whole = [form.data, *([form.obstacle.payoff] if form.obstacle else [])]
    for formula in [*whole, form.source]:
        for node in _reductions(formula):
            for one in _recognised(_coordinate(node, softness), form):
                found.setdefault(f"{_signature(node)} {one.softness} {one.kind}", one)
    # of the data themselves only the first Itô term is known: they serve where the statement does not show their form
    for formula in whole if not found else ():
        signature = _signature(formula)
        if formula.name not in REDUCTIONS and formula.has("point") and _cheap(formula):
            middle = softness[len(softness) // 2] if formula.has("smallest", "largest") else 0.0
            found.setdefault(f"{signature} data", InnerCoordinate(GENERAL, formula, middle))
    listed = list(found.values())
    if not any(one.kind == SQUARE_KIND for one in listed):
        listed.insert(0, InnerCoordinate(SQUARE_KIND))
    return tuple(listed)


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


def _recognised(found: list[InnerCoordinate], form: Parabolic) -> list[InnerCoordinate]:
    """General coordinates that are quadratic polynomials as such: ζ(x + y) + ζ(x - y) - 2ζ(x) does not depend on x.

    One random y and two x would do with probability one, as formulas without kinks are analytic.
    """
    rng = np.random.default_rng(21)
    x, y = rng.uniform(0.5, 2.0, (3, form.dim)), rng.uniform(0.1, 0.4, (1, form.dim))
    listed = []
    for one in found:
        formula = one.formula
        if one.kind == GENERAL and formula is not None and not formula.has(*KINKS, "time"):
            seconds = _second_difference(formula, x, y)
            size = np.abs(evaluate_vector(formula, {"point": x})).max()
            if np.isfinite(seconds).all() and np.ptp(seconds) <= 1e-11 * size:
                one = replace(one, kind=QUADRATIC)
        listed.append(one)
    return listed


def _second_difference(formula: Operation, x: Array, y: Array) -> Array:
    """ζ(x + y) + ζ(x - y) - 2ζ(x), (M,)."""
    values = [evaluate_vector(formula, {"point": point}) for point in (x + y, x - y, x)]
    found: Array = (values[0] + values[1] - 2 * values[2])[:, 0]
    return found


def _signature(node: Operation) -> str:
    """The same text for the same formula."""
    value = "" if node.value is None else (node.value.tolist() if isinstance(node.value, np.ndarray) else node.value)
    return f"{node.name}({','.join(map(_signature, node.operands))}){value}"


@dataclass(frozen=True)
class InnerValues:
    """ζ (M, R); slopes ∂ζ/∂y, one (M, d) each; beyond (M, R): increments less slope·noise, or None without a move."""

    values: Array
    slopes: tuple[Array, ...]
    beyond: Array | None


def inner_values(
    coordinates: tuple[InnerCoordinate, ...],
    form: Parabolic,
    process: PathProcess,
    s: float,
    state: Array,
    point: Array,
    standard: tuple[Array, Array],
    noise_to_come: tuple[float, float],
    move: PathStep | None = None,
    h: float = 0.0,
) -> InnerValues:
    """All coordinates at states.

    standard : centre and scale (d,) of the standardised state
    noise_to_come : root mean square, per component, of what states and points will still move
    """
    to_come_in_states, to_come_in_points = noise_to_come
    values, slopes, beyond = [], [], np.zeros((len(state), len(coordinates)))
    variance = process.noise_variance(h) if move is not None else None
    for k, one in enumerate(coordinates):
        centre, scale = standard if one.formula is None else (0.0, np.ones(1))
        if one.kind == SQUARE_KIND and (one.formula is None or _same_space(process)):
            z = (state - centre) / scale
            values.append((z * z).sum(axis=1))
            slopes.append(2 * z / scale)
            if move is not None and variance is not None:
                own = move.noise / scale
                beyond[:, k] = (own * own).sum(axis=1) - (variance / scale**2).sum()
            continue
        assert one.formula is not None
        if one.kind == EXTREME and process.exact:
            sign = 1.0 if one.formula.name == "largest" else -1.0
            width = sign * one.softness * to_come_in_states
            top = (state / width).max(axis=1, keepdims=True)
            terms = np.exp(state / width - top)
            total = terms.sum(axis=1, keepdims=True)
            values.append(width * (top[:, 0] + np.log(total[:, 0] / state.shape[1])))
            slopes.append(terms / total)
            if move is not None and variance is not None and variance.max() <= width**2:
                beyond[:, k] = _second_order(slopes[-1], move.noise, variance, width, process)
            continue
        value, gradient = value_and_gradients(
            one.formula, form.known(s, point), ("point",), one.softness * to_come_in_points
        )
        values.append(value[:, 0])
        slopes.append(process.to_state(point, gradient["point"]))
        if one.kind == QUADRATIC and move is not None and variance is not None and _same_space(process):
            origin, columns = np.zeros((1, process.dim)), np.diag(np.sqrt(variance))
            if process.correlation is not None:
                values_of, vectors = np.linalg.eigh(process.correlation)
                columns = (np.sqrt(np.maximum(values_of, 0.0)) * vectors).T * np.sqrt(variance)
            expected = float(_second_difference(one.formula, origin, columns).sum())
            beyond[:, k] = 0.5 * (_second_difference(one.formula, origin, move.noise) - expected)
        if one.kind == LINEAR and move is not None and not _same_space(process):
            beyond[:, k] = (gradient["point"] * process.linear_noise(state, move, h)).sum(axis=1)
            beyond[:, k] -= (slopes[-1] * move.noise).sum(axis=1)
    return InnerValues(np.stack(values, axis=1), tuple(slopes), beyond if move is not None else None)


def _second_order(shares: Array, noise: Array, variance: Array, width: float, process: PathProcess) -> Array:
    """½ (noise·H noise - E) of ε log mean exp(y/ε), whose Hessian is (diag(p) - p pᵀ)/ε, p the shares (M, d)."""
    along = np.einsum("ij,ij->i", shares, noise)
    ends = shares @ variance
    spread = shares * np.sqrt(variance)
    turned = spread if process.correlation is None else spread @ process.correlation
    return (
        0.5 / width * (np.einsum("ij,ij->i", shares, noise * noise) - ends - along**2 + (turned * spread).sum(axis=1))
    )


def _same_space(process: PathProcess) -> bool:
    """Whether states are points."""
    probe = np.full((1, process.dim), 0.5)
    return bool((process.point(probe) == probe).all())
