"""Non-linear systems of second order in divergence form, with their exact linearisation at a state.

Each equation is brought into the form

    ∂_i F^k_i(x, u, ∇u) + f^k(x, u, ∇u) = 0 ,

whether it was stated with ``div``, ``d`` and ``laplace`` or written out. Coefficients of second derivatives that depend
on coordinates and fields are moved inside, c(u) u_xx = ∂_x (c u_x) - (∂_x c) u_x. Coefficients that are polynomials in
first derivatives are integrated, F_i = ∫_0^1 a_ij(s∇u) u_j ds, and it is checked that ∂_i F_i gives them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.grammar import StatementError
from rannpde.pde.statement.divergence import NoDivergenceForm, SecondOrderSystem
from rannpde.pde.statement.expansion import compile_expression, divergence_form
from rannpde.pde.statement.expression import INFINITE, Expression, Jet, differentiate, evaluate
from rannpde.pde.statement.kinks import KINKED
from rannpde.pde.statement.vocabulary import Vocabulary, coordinate_symbol


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Terms of the weak form and their derivatives at points and a state, by test jet a and trial jet b.

    The jets are the value and the derivatives along each axis, 1 + d in all. The weak form of an equation is
    Σ_a ∫ terms_a ∂^a v = 0: terms (M, K, 1 + d) holds -f and the fluxes F_i; tangent (M, K, F, 1 + d, 1 + d) holds
    their derivatives by the trial jets.
    """

    terms: Array
    tangent: Array

    @property
    def diffusion(self) -> Array:
        """∂F_i/∂(∂_j u), (M, K, F, d, d)."""
        return self.tangent[..., 1:, 1:]

    @property
    def advection(self) -> Array:
        """-∂f/∂(∂_j u), (M, K, F, d)."""
        return self.tangent[..., 0, 1:]

    @property
    def reaction(self) -> Array:
        """-∂f/∂u, (M, K, F)."""
        return self.tangent[..., 0, 0]


@dataclass(frozen=True, eq=False)
class QuasilinearSystem(SecondOrderSystem):
    """A non-linear system in divergence form; its fluxes are of fields and first derivatives."""

    @cached_property
    def kinked(self) -> bool:
        """Whether a coefficient or the load jumps or has kinks along fixed lines, which cells then follow."""
        own = set(self.vocabulary.symbols)
        kinks = [part for one in self.expressions for part in one.formula.atoms(*KINKED)]
        return any(part.free_symbols and part.free_symbols <= own for part in kinks)

    def probed(self, points: Array) -> Array:
        return self.linearised(points, *generic_state(len(points), len(self.fields), self.dim)).diffusion

    def terms(self, points: Array, values: Array, slopes: Array) -> Array:
        """-f and F_i, (M, K, 1 + d), at points (M, d), fields (M, F) and their slopes (M, F, d)."""
        known, terms = self._known(points), np.zeros((len(points), len(self.names), 1 + self.dim))
        for k, (row, rest, sign) in enumerate(zip(self.fluxes, self.rests, self.signs, strict=True)):
            for a, (one, factor) in enumerate([(rest, -sign), *((flux, sign) for flux in row)]):
                terms[:, k, a] = factor * one.value(known, self._jets(one, values, slopes))
        return terms

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """Terms and their derivatives at points (M, d), fields (M, F) and their slopes (M, F, d)."""
        count, fields, dim = len(points), len(self.fields), self.dim
        known, terms = self._known(points), np.zeros((count, fields, 1 + dim))
        tangent = np.zeros((count, fields, fields, 1 + dim, 1 + dim))
        for k, (row, rest, sign) in enumerate(zip(self.fluxes, self.rests, self.signs, strict=True)):
            for a, (one, factor) in enumerate([(rest, -sign), *((flux, sign) for flux in row)]):
                value, partials = one.linearised(known, self._jets(one, values, slopes))
                terms[:, k, a] = factor * value
                for jet, partial in zip(one.jets, partials, strict=True):
                    b = 1 + jet.index.index(1) if jet.order else 0
                    tangent[:, k, self.fields.index(jet.field), a, b] += factor * partial
        return Linearisation(terms, tangent)

    def _known(self, points: Array) -> dict[sympy.Symbol, Array]:
        return self.vocabulary.at(points)

    def _jets(self, expression: Expression, values: Array, slopes: Array) -> dict[Jet, Array]:
        return jet_values(expression, self.fields, values, slopes)


def jet_values(expression: Expression, fields: tuple[str, ...], values: Array, slopes: Array) -> dict[Jet, Array]:
    """The values of the jets of an expression of at most first order, from fields (M, F) and slopes (M, F, d)."""
    jets = {}
    for jet in expression.jets:
        f = fields.index(jet.field)
        jets[jet] = slopes[:, f, jet.index.index(1)] if jet.order else values[:, f]
    return jets


def quasilinear_system(
    expressions: Mapping[str, Expression], vocabulary: Vocabulary, bounds: Array
) -> QuasilinearSystem:
    """The system in divergence form; NoDivergenceForm, with the reason, where it has none.

    bounds (d, 2) : bounds of the domain, in which coefficients are looked at

    >>> from rannpde.pde.statement.reading import read
    >>> words = Vocabulary(("x", "y"), None, ("u",))
    >>> stated = {"equation": read("div((1 + u**2)*grad(u)) = 1", words)}
    >>> system = quasilinear_system(stated, words, np.array([(0.0, 1.0), (0.0, 1.0)]))
    >>> here = system.linearised(np.zeros((1, 2)), np.array([[2.0]]), np.array([[[1.0, 0.0]]]))
    >>> here.terms[0, 0].tolist(), here.tangent[0, 0, 0, 1].tolist()
    ([1.0, 5.0, 0.0], [4.0, 5.0, 0.0])
    """
    return QuasilinearSystem.of(expressions, vocabulary, _split).paired(bounds)


def _split(name: str, expression: Expression, vocabulary: Vocabulary) -> tuple[tuple[Expression, ...], Expression]:
    """Fluxes of at most first order that vanish with the slopes where that can be, and what is left."""
    if any(jet.order > 2 for jet in expression.jets):
        raise NoDivergenceForm(f"equation {name!r} has derivatives of order above two")
    try:
        form = divergence_form(expression, vocabulary)
        sources = {coordinate: flux.source for coordinate, flux in form.flux.items()}
        rest = form.source.source
        for coordinate, flux in _integrated(name, form.source, vocabulary).items():
            sources[coordinate] = sources.get(coordinate, sympy.Integer(0)) + flux
            rest = rest - sympy.Derivative(flux, coordinate_symbol(coordinate), evaluate=False)
        fluxes = []
        for coordinate in vocabulary.coordinates:
            flux = compile_expression(sources.get(coordinate, sympy.Integer(0)), vocabulary)
            if any(jet.order > 1 for jet in flux.jets):
                raise NoDivergenceForm(f"a flux of equation {name!r} has second derivatives")
            still = {symbol: sympy.Integer(0) for symbol, jet in flux.symbols.items() if jet.order == 1}
            left = flux.formula.xreplace(still)
            if left == 0 or left.has(*INFINITE) or left.has(*KINKED):
                fluxes.append(flux)
                continue
            left = left.xreplace(_functions(flux, vocabulary))  # a flux of values alone is advection
            fluxes.append(compile_expression(sources[coordinate] - left, vocabulary))
            rest = rest + sympy.Derivative(left, coordinate_symbol(coordinate), evaluate=False)
        remainder = compile_expression(rest, vocabulary)
    except StatementError as error:
        raise NoDivergenceForm(f"equation {name!r}: {error}") from None
    second = {symbol: sympy.Integer(0) for symbol, jet in remainder.symbols.items() if jet.order == 2}
    for symbol in second:  # they cancel, but for the order of their terms
        if not _cancels(differentiate(remainder.formula, symbol), remainder):
            raise NoDivergenceForm(f"the second derivatives of equation {name!r} are no divergence")
    symbols = {symbol: jet for symbol, jet in remainder.symbols.items() if jet.order < 2}
    return tuple(fluxes), Expression(remainder.source, remainder.formula.xreplace(second), symbols, remainder.functions)


def _functions(expression: Expression, vocabulary: Vocabulary) -> dict[sympy.Symbol, sympy.Expr]:
    """Symbols of jets of at most first order → fields and their derivatives."""
    jets = expression.symbols.items()
    return {symbol: vocabulary.derivative(jet.field, jet.index) for symbol, jet in jets if jet.order < 2}


def _integrated(name: str, source: Expression, vocabulary: Vocabulary) -> dict[str, sympy.Expr]:
    """Fluxes by coordinate whose divergence has the second derivatives of a source."""
    second = [(symbol, jet) for symbol, jet in source.symbols.items() if jet.order == 2]
    partials = dict(zip(source.symbols, source.partials, strict=True))
    second = [(symbol, jet) for symbol, jet in second if partials[symbol] != 0]
    if not second:
        return {}
    own = set(source.symbols)
    fluxes = dict.fromkeys(vocabulary.coordinates, sympy.Integer(0))
    names, table = _first_symbols(vocabulary), _functions(source, vocabulary)
    scale = sympy.Dummy("s")
    for symbol, jet in second:
        coefficient = partials[symbol]
        if coefficient.free_symbols & {one for one, _ in second}:
            raise NoDivergenceForm(f"equation {name!r} is not linear in its second derivatives")
        if coefficient.has(*KINKED):
            raise NoDivergenceForm(f"a coefficient of equation {name!r} jumps outside of a divergence")
        slopes = [one for one in own & coefficient.free_symbols if source.symbols[one].order == 1]
        ways = [jet.axes]
        if slopes:
            if not coefficient.is_polynomial(*slopes):
                raise NoDivergenceForm(f"the second derivatives of equation {name!r} are no divergence that we find")
            stretched = sympy.Poly(coefficient.xreplace({one: scale * one for one in slopes}), scale)
            coefficient = sympy.Add(*[c / (n + 1) for (n,), c in stretched.terms()])
            ways = [jet.axes, jet.axes[::-1]]  # half each: a_ij is symmetric then
        for inner, outer in ways:
            slope = names[(jet.field, inner)]
            table[slope] = sympy.Derivative(vocabulary.field_function(jet.field), vocabulary.symbols[inner])
            fluxes[vocabulary.coordinates[outer]] += coefficient * slope / len(ways)
    return {coordinate: flux.xreplace(table) for coordinate, flux in fluxes.items() if flux != 0}


def _first_symbols(vocabulary: Vocabulary) -> dict[tuple[str, int], sympy.Symbol]:
    """The symbols of first derivatives, as compiled expressions name them."""
    return {
        (field, axis): sympy.Symbol(f"{field}_{coordinate}", real=True)
        for field in vocabulary.fields
        for axis, coordinate in enumerate(vocabulary.coordinates)
    }


def _cancels(formula: sympy.Expr, expression: Expression) -> bool:
    """Whether a formula is zero, by its value at random points relative to the size of its summands."""
    if formula == 0:
        return True
    rng = np.random.default_rng(0)
    known = {symbol: rng.uniform(0.5, 1.5, 4) for symbol in sorted(formula.free_symbols, key=str)}
    try:
        terms = evaluate(sympy.Add.make_args(sympy.expand_mul(formula)), known, expression.functions)
    except InputError:
        return False
    together = np.broadcast_arrays(*terms)
    return bool(np.all(np.abs(np.sum(together, axis=0)) <= 1e-10 * np.sum(np.abs(together), axis=0)))


def generic_state(count: int, fields: int, dim: int, seed: int = 1) -> tuple[Array, Array]:
    """Values (M, F) between ½ and 3/2 and slopes (M, F, d) of about a tenth: where roots, logarithms and materials
    are defined, and nothing vanishes by chance."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, (count, fields)), rng.uniform(-0.1, 0.1, (count, fields, dim))
