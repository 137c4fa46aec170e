"""Compiled equations: the derivatives they need, their values, their exact linearisation.

A compiled expression is a formula in *jets*, symbols for the derivatives ∂^α u of the fields. Its partial derivatives
by the jets are the exact linearisation that Gauss–Newton needs,

    F'(u) w = Σ_jets ∂F/∂(∂^α u) · ∂^α w .

Values are computed from the tree of the formula as a list of steps: no code is generated, and every distinct node is
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import mul
from typing import Any, Protocol

import numpy as np
import sympy
from scipy.special import erf
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError, reject
from rannpde.pde.statement.kinks import KINKED, Absolute, Delta, Exponential, Larger, Sign, Smaller, Step, Where
from rannpde.pde.statement.special import SPECIAL_VALUES


@dataclass(frozen=True)
class Jet:
    """The derivative ∂^index of a field."""

    field: str
    index: MultiIndex

    @property
    def order(self) -> int:
        return sum(self.index)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which the field is differentiated, each repeated by its order."""
        return tuple(axis for axis, order in enumerate(self.index) for _ in range(order))


class Functional(Protocol):
    """A value of fields elsewhere, or an integral of them (``rannpde.pde.statement.functionals``)."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it takes values of."""
        ...

    @property
    def text(self) -> str:
        """Its description, for messages."""
        ...


@dataclass(frozen=True)
class Expression:
    """A scalar expression of coordinates and jets, with its exact partial derivatives by the jets.

    source : the SymPy expression as stated, derivatives of products and powers unevaluated
    formula : the same, expanded, in jet symbols
    jumps : expressions on whose zeros a flux of the statement jumps, so that the formula holds beside them only
    flux : Σ normal_x flux_x, in jets and normals, which is the same on both sides of those; None where nothing jumps
    functionals : name → integral, or value elsewhere, that a jet of this name stands for
    """

    source: sympy.Expr
    formula: sympy.Expr
    symbols: Mapping[sympy.Symbol, Jet]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict, repr=False)
    jumps: tuple[sympy.Expr, ...] = ()
    flux: Expression | None = field(default=None, repr=False)
    functionals: Mapping[str, Functional] = field(default_factory=dict)

    @property
    def jets(self) -> tuple[Jet, ...]:
        return tuple(self.symbols.values())

    @property
    def fields(self) -> tuple[str, ...]:
        in_jets = {jet.field for jet in self.jets} - set(self.functionals)
        return tuple(sorted(in_jets.union(*(functional.fields for functional in self.functionals.values()))))

    @cached_property
    def free_symbols(self) -> frozenset[sympy.Symbol]:
        """All symbols of the formula."""
        return frozenset(self.formula.free_symbols)

    @cached_property
    def _slopes(self) -> tuple[sympy.Expr, ...]:
        return tuple(differentiate(self.formula, symbol) for symbol in self.symbols)

    @cached_property
    def partials(self) -> tuple[sympy.Expr, ...]:
        """∂formula/∂jet, in the order of ``jets``; of a jump it is zero, as it is at almost every value of the jet.

        (That is a generalised derivative, with which Newton's method still converges at kinks.)
        """
        return tuple(slope.replace(Delta, lambda *_: sympy.Integer(0)) for slope in self._slopes)

    @cached_property
    def linear(self) -> bool:
        """Whether the expression is affine in the fields, so that one solve suffices."""
        in_jets = not any(slope.free_symbols & set(self.symbols) for slope in self._slopes)
        integrands = (getattr(functional, "integrand", None) for functional in self.functionals.values())
        return in_jets and all(integrand is None or integrand.linear for integrand in integrands)

    @property
    def kinked(self) -> bool:
        """Whether the formula, or a flux that it came from, jumps or has kinks anywhere."""
        return bool(self.jumps) or self.formula.has(*KINKED)

    def order(self, name: str, axis: int | None = None) -> int:
        """The highest derivative of that field, in all coordinates or in one; -1 when the field does not occur."""
        orders = [jet.order if axis is None else jet.index[axis] for jet in self.jets if jet.field == name]
        return max(orders, default=-1)

    def value(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> Array:
        """The residual (M,) at coordinate values and jet values (M,)."""
        return evaluate([self.formula], self._values(known, jets), self.functions)[0]

    def linearised(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> tuple[Array, list[Array]]:
        """The residual and its coefficients ∂F/∂jet, each (M,) or a scalar where it is constant."""
        value, *partials = evaluate([self.formula, *self.partials], self._values(known, jets), self.functions)
        return value, partials

    def _values(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> dict[sympy.Symbol, Array]:
        return dict(known) | {symbol: jets[jet] for symbol, jet in self.symbols.items()}


def jet_name(jet: Jet, coordinates: Iterable[str]) -> str:
    """``u_xx`` for Jet("u", (0, 2))."""
    letters = "".join(name * order for name, order in zip(coordinates, jet.index, strict=True))
    return jet.field + ("_" + letters if letters else "")


def differentiate(formula: sympy.Expr, variable: sympy.Symbol) -> sympy.Expr:
    """∂formula/∂variable; SymPy's diff builds a product anew for every factor, even for the constant ones.

    >>> x, y = sympy.symbols("x y")
    >>> differentiate(y * sympy.sin(x**2), x)
    2*x*y*cos(x**2)
    """
    known: dict[sympy.Expr, sympy.Expr] = {variable: sympy.Integer(1)}

    def slope(node: sympy.Expr) -> sympy.Expr:
        if node not in known:
            known[node] = rule(node) if node.args else sympy.Integer(0)
        return known[node]

    def rule(node: sympy.Expr) -> sympy.Expr:
        if isinstance(node, (AppliedUndef, sympy.Derivative)):
            return sympy.diff(node, variable)
        slopes = [slope(part) for part in node.args]
        moving = [k for k, part in enumerate(slopes) if part != 0]
        if node.is_Add:
            return sympy.Add(*slopes)
        if node.is_Mul:
            return sympy.Add(*[sympy.Mul(*node.args[:k], slopes[k], *node.args[k + 1 :]) for k in moving])
        if node.is_Pow and slopes[1] == 0:
            return node.exp * node.base ** (node.exp - 1) * slopes[0] if moving else sympy.Integer(0)
        if isinstance(node, Where):
            return node.slope(slopes)
        if node.is_Function and not node.is_Piecewise:
            return sympy.Add(*[node.fdiff(k + 1) * slopes[k] for k in moving])
        return sympy.diff(node, variable) if moving else sympy.Integer(0)

    return slope(formula)


# -------------------------------------------------------------------------------------------------- values

INFINITE = (sympy.zoo, sympy.nan, sympy.oo, -sympy.oo)

_UFUNCS: dict[Any, Callable[..., Any]] = (
    {
        getattr(sympy, name): getattr(np, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sign")
    }
    | {
        sympy.asin: np.arcsin,
        sympy.acos: np.arccos,
        sympy.atan: np.arctan,
        sympy.asinh: np.arcsinh,
        sympy.erf: erf,
        Exponential: np.exp,
        Absolute: np.abs,
        Sign: np.sign,
        Step: lambda z: np.heaviside(z, 0.5),
        Delta: lambda z, order: np.zeros_like(z),  # reached by linearisations and guesses only, where it is zero a.e.
        Larger: np.maximum,
        Smaller: np.minimum,
        Where: lambda z, a, b: np.where(z > 0, a, b),
        # SymPy's own functions, which statements in SymPy may contain
        sympy.Abs: np.abs,
        sympy.Heaviside: lambda z, middle=0.5: np.heaviside(z, middle),
        sympy.DiracDelta: lambda z, order=0: np.zeros_like(z),
        sympy.Max: lambda *z: np.maximum.reduce(np.broadcast_arrays(*z)),
        sympy.Min: lambda *z: np.minimum.reduce(np.broadcast_arrays(*z)),
    }
    | SPECIAL_VALUES
)


def evaluate(
    expressions: Sequence[sympy.Expr],
    values: Mapping[sympy.Symbol, Array],
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Array]:
    """Each expression at the arrays given for its symbols; constants stay scalars (shape ()).

    Leaving the domain of a logarithm or a root gives NaN in silence: the caller decides what that means.

    >>> x = sympy.Symbol("x")
    >>> evaluate([x**2 + 1, sympy.Integer(3)], {x: np.array([1.0, 2.0])})
    [array([2., 5.]), array(3.)]
    """
    constants, steps, positions = _program(tuple(expressions), tuple(values))
    results = [np.asarray(value, dtype=float) for value in values.values()] + list(constants)
    known = functions or {}
    with np.errstate(all="ignore"):
        for operation, below in steps:
            results.append(np.asarray(operation([results[k] for k in below], known)))
    return [results[k] for k in positions]


Functions = Mapping[str, Callable[..., Any]]
ArrayOperation = Callable[[list[Array], Functions], Any]
"""The operation of a node on the values of its arguments."""


@lru_cache(maxsize=512)
def _program(
    expressions: tuple[sympy.Expr, ...], given: tuple[sympy.Symbol, ...]
) -> tuple[tuple[Array, ...], tuple[tuple[ArrayOperation, tuple[int, ...]], ...], tuple[int, ...]]:
    """Return the trees as a list of steps: time integration evaluates the same formulas a thousand times, at few
    points.

    The values are one list: those given, then constants (large ones as floats), then one for each step. A step is an
    operation and the positions of its arguments. The last result gives the positions of the expressions themselves.
    """
    constants: dict[sympy.Expr, Array] = {}
    steps: dict[sympy.Expr, tuple[ArrayOperation, tuple[sympy.Expr, ...]]] = {}
    outside = set(given)

    def visit(node: sympy.Expr) -> None:
        if node in outside or node in constants or node in steps:
            return
        if not node.args and node.is_number and node.is_extended_real:
            constants[node] = np.asarray(float(node))
            return
        below = node.expr.args if isinstance(node, sympy.Derivative) else node.args
        for part in below:
            visit(part)
        operation = _operation(node)
        if below and not isinstance(node, (AppliedUndef, sympy.Derivative)) and all(p in constants for p in below):
            with np.errstate(all="ignore"):
                constants[node] = np.asarray(operation([constants[part] for part in below], {}))
        else:
            steps[node] = operation, below

    for expression in expressions:
        visit(expression)
    position = {node: k for k, node in enumerate((*given, *constants, *steps))}
    ordered = tuple((operation, tuple(position[part] for part in below)) for operation, below in steps.values())
    return tuple(constants.values()), ordered, tuple(position[expression] for expression in expressions)


def _operation(node: sympy.Expr) -> ArrayOperation:
    if node.is_Add:
        return lambda below, _: sum(below[1:], below[0])
    if node.is_Mul:
        return lambda below, _: reduce(mul, below)
    if node.is_Pow:
        return lambda below, _: _power(below[0], below[1], node.exp)
    if node.func in _UFUNCS:
        ufunc = _UFUNCS[node.func]
        return lambda below, _: ufunc(*below)
    call = node.expr if isinstance(node, sympy.Derivative) else node
    if isinstance(call, AppliedUndef):
        return lambda below, functions: _user(node, call, below, functions)
    if node.is_Symbol:
        raise InputError(f"the symbol {node} has no value here; declare it as a field, a coordinate or a parameter")
    raise _not_evaluated(node)


def _not_evaluated(node: sympy.Expr) -> InputError:
    known = ", ".join(sorted(f.__name__ for f in _UFUNCS))
    return InputError(f"{type(node).__name__} cannot be evaluated; known functions: {known}")


def _user(node: sympy.Expr, call: AppliedUndef, below: list[Array], functions: Functions) -> Array:
    name = call.func.__name__
    if name not in functions:
        raise _not_evaluated(node)
    if isinstance(node, sympy.Derivative):
        return _user_derivative(node, below, functions[name])
    return _user_value(name, functions[name], below)


def _power(base: Array, exponent: Array, exact: sympy.Expr) -> Array:
    if exact.is_Integer and abs(int(exact)) <= 8:  # repeated multiplication is ten times faster than np.power
        result = base
        for _ in range(abs(int(exact)) - 1):
            result = result * base
        return result if int(exact) > 0 else 1.0 / result
    if exact == sympy.Rational(1, 2):
        return np.asarray(np.sqrt(base))
    return np.asarray(np.power(base, exponent))


def _user_value(name: str, function: Callable[..., Any], arguments: list[Array]) -> Array:
    """A user's function of one-dimensional arrays, at arrays of any shape; InputError where it is no such function."""
    shape, flat = _flattened(arguments)
    try:
        result = np.asarray(function(*flat))
    except Exception as error:
        raise InputError(
            f"functions[{name!r}] failed for arrays of {len(flat[0])} numbers ({type(error).__name__}: {error}); it "
            "must take and return NumPy arrays: write it with np.where and the like, or wrap it by np.vectorize"
        ) from error
    if result.dtype.kind not in "fiub":
        reject(f"the type of the values of functions[{name!r}]", result.dtype.name, "that of real numbers")
    if result.shape not in ((), flat[0].shape):
        raise InputError(
            f"functions[{name!r}] gave an array of shape {result.shape} for arguments of shape {flat[0].shape}"
        )
    result = result.astype(float)
    return result.reshape(shape) if result.shape else result


def _user_derivative(node: sympy.Derivative, arguments: list[Array], function: Any) -> Array:
    """f.derivative(orders, *arguments) of a user's function that has it."""
    counts = dict(node.variable_count)
    orders = tuple(int(counts.get(argument, 0)) for argument in node.expr.args)
    shape, flat = _flattened(arguments)
    return np.asarray(function.derivative(orders, *flat), dtype=float).reshape(shape)


def _flattened(arguments: list[Array]) -> tuple[tuple[int, ...], list[Array]]:
    broadcast = np.broadcast_arrays(*arguments)
    return broadcast[0].shape, [array.ravel() for array in broadcast]


def constant(expression: sympy.Expr) -> float | None:
    """The float of a constant, NaN where it has none, None for what is no constant; SymPy's digits are not used.

    >>> constant(sympy.sqrt(2)), constant(sympy.Symbol("x"))
    (1.4142135623730951, None)
    """
    if not expression.is_number or expression.has(sympy.Derivative, sympy.Integral):
        return None
    if expression.has(*INFINITE, sympy.I):
        return np.nan
    return float(evaluate([expression], {})[0])
