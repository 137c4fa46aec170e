"""Systems of second order in divergence form, which a weak formulation integrates by parts.

Each equation of a linear system is brought into the form

    -∂_i (A^{kf}_{ij} ∂_j u_f) + b^{kf}_j ∂_j u_f + c^{kf} u_f = load_k ,

whether it was stated with ``div``, ``d`` and ``laplace`` or written out in u_xx, v_xy. Coefficients of second
derivatives are moved inside, c u_xy = ∂_y (c u_x) - c_y u_x; those that jump must stand inside a divergence already.
The split of mixed derivatives is not unique: ∂_i (S_ij ∂_j u) = 0 for every constant antisymmetric S. Which split is
meant is for the boundary conditions to say (``rannpde.pde.weak.form``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import sympy
from scipy.optimize import linear_sum_assignment
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array
from rannpde.grammar import StatementError
from rannpde.pde.statement.expansion import compile_expression, divergence_form
from rannpde.pde.statement.expression import Expression, Jet, evaluate
from rannpde.pde.statement.kinks import KINKED
from rannpde.pde.statement.vocabulary import Vocabulary, coordinate_symbol

PROBES = 8
"""Random points of the bounding box at which coefficients are looked at to pair equations with fields."""


EquationSplit = Callable[[str, Expression, Vocabulary], tuple[tuple[Expression, ...], Expression]]
"""The name of an equation, the equation and its vocabulary → its fluxes by coordinate, and the rest of it."""


class NoDivergenceForm(Exception):
    """Why a system has no divergence form that a weak formulation could use; its text is the reason."""


@dataclass(frozen=True, eq=False)
class EllipticCoefficients:
    """Coefficients at points: diffusion (M, K, F, d, d), advection (M, K, F, d), reaction (M, K, F), load (M, K)."""

    diffusion: Array
    advection: Array
    reaction: Array
    load: Array


@dataclass(frozen=True, eq=False)
class SecondOrderSystem(ABC):
    """A system of second order in divergence form, the equations in the order of the fields they belong to.

    names : names of the equations; signs : ±1 by which each was multiplied, so that its own diffusion is positive
    fluxes : by equation, by coordinate, of at most first order; rests : by equation, all other terms
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    signs: tuple[float, ...]
    fluxes: tuple[tuple[Expression, ...], ...]
    rests: tuple[Expression, ...]

    @classmethod
    def of(cls, expressions: Mapping[str, Expression], vocabulary: Vocabulary, split: EquationSplit) -> Self:
        """The equations as they are stated; ``split`` gives the fluxes of an equation, and what is left of it."""
        if vocabulary.time is not None:
            raise NoDivergenceForm("the problem is one in time")
        if len(expressions) != len(vocabulary.fields):
            raise NoDivergenceForm(f"{len(expressions)} equations for {len(vocabulary.fields)} fields")
        parts = [split(name, expression, vocabulary) for name, expression in expressions.items()]
        fluxes, rests = tuple(flux for flux, _ in parts), tuple(rest for _, rest in parts)
        return cls(vocabulary, tuple(expressions), (1.0,) * len(parts), fluxes, rests)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.vocabulary.fields

    @property
    def dim(self) -> int:
        return len(self.vocabulary.coordinates)

    @property
    def expressions(self) -> list[Expression]:
        """All fluxes and rests."""
        return [one for row in self.fluxes for one in row] + list(self.rests)

    @property
    @abstractmethod
    def kinked(self) -> bool:
        """Whether a coefficient or the load jumps or has kinks that cells must follow."""

    @abstractmethod
    def probed(self, points: Array) -> Array:
        """The diffusion (M, K, F, d, d) at points (M, d), at some state."""

    def paired(self, bounds: Array) -> Self:
        """Equations in the order of the fields whose second derivatives they hold most of, with positive diffusion."""
        points = bounds[:, 0] + np.diff(bounds, axis=1)[:, 0] * np.random.default_rng(0).random((PROBES, len(bounds)))
        diffusion = np.nan_to_num(self.probed(points))
        traces = np.trace(diffusion, axis1=3, axis2=4)  # (M, K, F)
        sizes = np.linalg.norm(diffusion, axis=(3, 4)).mean(axis=0)
        share = sizes / np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        rows, columns = linear_sum_assignment(-share)
        order = [int(rows[list(columns).index(f)]) for f in range(len(self.fields))]
        signs = []
        for f, k in enumerate(order):
            if not sizes[k, f] > 0:
                raise NoDivergenceForm(f"no equation has second derivatives of {self.fields[f]!r}")
            own = traces[:, k, f]
            if np.abs(own).max() <= 1e-9 * sizes[k, f]:
                raise NoDivergenceForm(f"the equation of {self.fields[f]!r} is not elliptic")
            if own.min() < 0 < own.max():
                raise NoDivergenceForm(f"the diffusion of {self.fields[f]!r} changes its sign")
            signs.append(1.0 if own.mean() > 0 else -1.0)
        return replace(
            self, names=tuple(self.names[k] for k in order), signs=tuple(signs),
            fluxes=tuple(self.fluxes[k] for k in order), rests=tuple(self.rests[k] for k in order),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class DivergenceSystem(SecondOrderSystem):
    """A linear system in divergence form; its fluxes hold first derivatives only."""

    @property
    def constant(self) -> bool:
        """Whether diffusion, advection and reaction are the same everywhere."""
        return all(not partial.free_symbols for one in self.expressions for partial in one.partials)

    @property
    def kinked(self) -> bool:
        """Whether a coefficient or the load jumps or has kinks anywhere."""
        return any(one.formula.has(*KINKED) for one in self.expressions)

    def probed(self, points: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.at(points).diffusion

    def at(self, points: Array) -> EllipticCoefficients:
        """The coefficients at points (M, d)."""
        count, fields, dim = len(points), len(self.fields), self.dim
        known = self.vocabulary.at(points)
        diffusion = np.zeros((count, fields, fields, dim, dim))
        advection = np.zeros((count, fields, fields, dim))
        reaction, load = np.zeros((count, fields, fields)), np.zeros((count, fields))
        for k, (row, rest, sign) in enumerate(zip(self.fluxes, self.rests, self.signs, strict=True)):
            for i, flux in enumerate(row):
                for jet, partial in zip(flux.jets, self._partials(flux, known), strict=True):
                    diffusion[:, k, self.fields.index(jet.field), i, jet.index.index(1)] += sign * partial
            for jet, partial in zip(rest.jets, self._partials(rest, known), strict=True):
                f = self.fields.index(jet.field)
                if jet.order:
                    advection[:, k, f, jet.index.index(1)] -= sign * partial
                else:
                    reaction[:, k, f] -= sign * partial
            still = {jet: np.zeros(count) for jet in rest.jets}
            load[:, k] += sign * rest.value(known, still)
        return EllipticCoefficients(diffusion, advection, reaction, load)

    def nominal(self, expression: Expression, count: int) -> dict[Jet, Array]:
        """The state (M,) of each jet at which conditions are linearised: any will do, they are linear."""
        return {jet: np.zeros(count) for jet in expression.jets}

    def _partials(self, expression: Expression, known: Mapping[sympy.Symbol, Array]) -> list[Array]:
        return evaluate(expression.partials, known, expression.functions)


def divergence_system(expressions: Mapping[str, Expression], vocabulary: Vocabulary, bounds: Array) -> DivergenceSystem:
    """The system in divergence form; NoDivergenceForm, with the reason, where it has none.

    bounds (d, 2) : bounds of the domain, in which coefficients are looked at

    >>> from rannpde.pde.statement.reading import read
    >>> words = Vocabulary(("x", "y"), None, ("u",))
    >>> stated = {"equation": read("u_xx + x*u_yy + 2*u_xy = 1", words)}
    >>> system = divergence_system(stated, words, np.array([(1.0, 2.0), (0.0, 1.0)]))
    >>> system.at(np.array([[1.5, 0.0]])).diffusion[0, 0, 0].tolist(), system.at(np.array([[1.5, 0.0]])).load.tolist()
    ([[1.0, 0.0], [2.0, 1.5]], [[-1.0]])
    """
    return DivergenceSystem.of(expressions, vocabulary, _split).paired(bounds)


def _split(name: str, expression: Expression, vocabulary: Vocabulary) -> tuple[tuple[Expression, ...], Expression]:
    """Fluxes of first derivatives only, and what is left, of at most first order."""
    if not expression.linear:
        raise NoDivergenceForm(f"equation {name!r} is not linear")
    if any(jet.order > 2 for jet in expression.jets):
        raise NoDivergenceForm(f"equation {name!r} has derivatives of order above two")
    try:
        form = divergence_form(expression, vocabulary)
        sources = {coordinate: flux.source for coordinate, flux in form.flux.items()}
        rest = form.source.source
        for jet, coefficient in _second_order(form.source):
            _require_smooth(name, coefficient)
            first, last = jet.axes
            inner = sympy.Derivative(vocabulary.field_function(jet.field), vocabulary.symbols[first])
            coordinate = vocabulary.coordinates[last]
            symbol = coordinate_symbol(coordinate)
            sources[coordinate] = sources.get(coordinate, sympy.Integer(0)) + coefficient * inner
            whole = sympy.Derivative(inner, symbol, evaluate=False)
            rest = rest - coefficient * whole - sympy.diff(coefficient, symbol) * inner
        fluxes = []
        for coordinate in vocabulary.coordinates:
            flux = compile_expression(sources.get(coordinate, sympy.Integer(0)), vocabulary)
            own, other = _first_order(name, flux, vocabulary)
            fluxes.append(own)
            if other != 0:
                rest = rest + sympy.Derivative(other, coordinate_symbol(coordinate), evaluate=False)
        rest_expression = _without_second(compile_expression(rest, vocabulary))
    except StatementError as error:
        raise NoDivergenceForm(f"equation {name!r}: {error}") from None
    return tuple(fluxes), rest_expression


def _second_order(expression: Expression) -> list[tuple[Jet, sympy.Expr]]:
    pairs = zip(expression.jets, expression.partials, strict=True)
    return [(jet, partial) for jet, partial in pairs if jet.order == 2 and partial != 0]


def _without_second(expression: Expression) -> Expression:
    """The expression without second derivatives, whose coefficients cancel but for the order of their terms."""
    second = {symbol: sympy.Integer(0) for symbol, jet in expression.symbols.items() if jet.order == 2}
    symbols = {symbol: jet for symbol, jet in expression.symbols.items() if jet.order < 2}
    formula = expression.formula.xreplace(second)
    return Expression(expression.source, formula, symbols, expression.functions)


def _first_order(name: str, flux: Expression, vocabulary: Vocabulary) -> tuple[Expression, sympy.Expr]:
    """The terms of a flux with first derivatives, and the others as SymPy, which must be smooth."""
    if any(jet.order > 1 for jet in flux.jets):
        raise NoDivergenceForm(f"a flux of equation {name!r} has second derivatives")
    first = {symbol: sympy.Integer(0) for symbol, jet in flux.symbols.items() if jet.order == 1}
    left = flux.formula.xreplace(first)
    plain = {s: vocabulary.field_function(jet.field) for s, jet in flux.symbols.items() if jet.order == 0}
    if left != 0:
        _require_smooth(name, left.xreplace(dict.fromkeys(plain, sympy.Integer(1))))
    pairs = [(s, jet, p) for (s, jet), p in zip(flux.symbols.items(), flux.partials, strict=True) if jet.order == 1]
    formula = sympy.Add(*[symbol * partial for symbol, _, partial in pairs])
    own = Expression(flux.source, formula, {symbol: jet for symbol, jet, _ in pairs}, flux.functions)
    return own, left.xreplace(plain)


def _require_smooth(name: str, coefficient: sympy.Expr) -> None:
    if coefficient.has(*KINKED):
        raise NoDivergenceForm(f"a coefficient of equation {name!r} jumps outside of a divergence")
    if coefficient.has(AppliedUndef):
        raise NoDivergenceForm(f"a coefficient of equation {name!r} is a function without a formula")
