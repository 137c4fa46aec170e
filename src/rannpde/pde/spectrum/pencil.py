"""The linear operators behind an eigenvalue problem: Σ_k λ^k A_k u = 0, read from its equations and conditions.

Each equation and condition is linear in the fields and a polynomial in the eigenvalue λ,

    Σ_k λ^k Σ_jets a_{k,jet}(x) ∂^α u = 0 ,

which is checked here, term by term. Complex parameters stand in statements as symbols; their powers are multiplied out,
so that all coefficients are sums of complex numbers times real formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet, differentiate, evaluate

HIGHEST_POWER = 4
"""Highest power of the eigenvalue, and of a complex parameter, in a statement: vibration with damping has 2."""
PENCIL_SAMPLES = 64
"""Points at which the sizes of coefficients are compared, or at which it is looked whether they vanish or vary."""

EigenvalueNumber = complex
"""An eigenvalue, real or complex; ``LinearTerm.complex`` hides the name of the type."""
Coefficient = tuple[tuple[complex, sympy.Expr], ...]
"""A sum of complex numbers times real formulas of the coordinates."""


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """An equation or condition: jet → its coefficients by powers of the eigenvalue."""

    name: str
    term: Term
    coefficients: Mapping[Jet, Mapping[int, Coefficient]]
    expression: Expression

    @cached_property
    def degree(self) -> int:
        """The highest power of the eigenvalue."""
        return max((power for own in self.coefficients.values() for power in own), default=0)

    @cached_property
    def complex(self) -> bool:
        """Whether a coefficient is complex."""
        parts = [part for own in self.coefficients.values() for sums in own.values() for part in sums]
        return any(factor.imag for factor, _ in parts)

    def order(self, field: str) -> int:
        """The highest derivative of a field; -1 where it does not occur."""
        return max((jet.order for jet in self.coefficients if jet.field == field), default=-1)

    def at(self, known: Mapping[sympy.Symbol, Array], count: int) -> dict[Jet, dict[int, Array]]:
        """The coefficients (M,) of each jet, by powers of the eigenvalue, where coordinates and normals are known."""
        coefficients: dict[Jet, dict[int, Array]] = {}
        for jet, own in self.coefficients.items():
            coefficients[jet] = {}
            for power, parts in own.items():
                values = evaluate([formula for _, formula in parts], known, self.expression.functions)
                total = sum(factor * value for (factor, _), value in zip(parts, values, strict=True))
                total = total if self.complex else np.real(total)
                coefficients[jet][power] = np.broadcast_to(total, (count,))
        return coefficients

    def residual(
        self, value: EigenvalueNumber, known: Mapping[sympy.Symbol, Array], count: int, mode: Callable[[Jet], Array]
    ) -> Array:
        """Σ λ^k a ∂^α u (M,) of a mode, jet → its values (M,), real or complex."""
        total: Array = np.zeros(count, dtype=complex)
        for jet, own in self.at(known, count).items():
            total = total + sum(factor * value**power for power, factor in own.items()) * mode(jet)
        return total

    def plain(
        self, known: Mapping[sympy.Symbol, Array], count: int, fields: tuple[str, ...], degree: int
    ) -> tuple[Array, ...]:
        """Coefficients (M, F) of the fields themselves by powers of the eigenvalue, 0 to a degree."""
        coefficients = [
            np.zeros((count, len(fields)), dtype=complex if self.complex else float) for _ in range(degree + 1)
        ]
        for jet, own in self.at(known, count).items():
            if not jet.order:
                for power, factor in own.items():
                    coefficients[power][:, fields.index(jet.field)] += factor
        return tuple(coefficients)


@dataclass(frozen=True, eq=False)
class Pencil:
    """All equations and conditions of an eigenvalue problem as linear terms."""

    problem: Problem
    equations: tuple[LinearTerm, ...]
    conditions: tuple[LinearTerm, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return self.problem.fields

    @cached_property
    def terms(self) -> tuple[LinearTerm, ...]:
        return self.equations + self.conditions

    @cached_property
    def degree(self) -> int:
        """The highest power of the eigenvalue in any of them."""
        return max(one.degree for one in self.terms)

    @cached_property
    def complex(self) -> bool:
        return any(one.complex for one in self.terms)

    def order(self, field: str) -> int:
        """The highest derivative of a field in the equations."""
        return max(one.order(field) for one in self.equations)

    def typical_eigenvalue(self, equations: Iterable[LinearTerm], points: Array, length: float) -> float:
        """The ratio of both sides of some equations, at points (M, n), for the longest wave on a length."""
        known = self.problem.vocabulary.at(points)
        wave, sums = np.pi / length, np.zeros(self.degree + 1)
        for one in equations:
            for jet, own in one.at(known, len(points)).items():
                for power, values in own.items():
                    sums[power] += float(np.median(np.abs(values))) * wave**jet.order
        if sums[0] > 0 and sums[-1] > 0:
            return float((sums[0] / sums[-1]) ** (1 / self.degree))
        return float(wave ** max(self.order(name) for name in self.fields))

    def require_real_derivatives(self) -> None:
        """An InputError where the eigenvalue or a complex number is a factor of a derivative, or of a condition
        without one: masses within cells are those of the fields themselves."""
        name = self.problem.eigenvalue
        for one in self.terms:
            slopes = {jet: own for jet, own in one.coefficients.items() if jet.order}
            watched = slopes or one.coefficients  # u = 0 says the same whatever its factor
            for jet, own in watched.items():
                if any(power or factor.imag for power, parts in own.items() for factor, _ in parts):
                    of = (
                        f"a derivative of {jet.field}"
                        if jet.order
                        else f"{jet.field} in a condition without derivative"
                    )
                    raise InputError(
                        f"{name} or a complex number is a factor of {of} in {one.name!r}; on a shape it must be one of "
                        "the fields themselves, in equations and in conditions with a derivative; boxes and intervals "
                        "have no such limit"
                    )

    @cached_property
    def real_part(self) -> Problem:
        """The problem without all that has the eigenvalue or an imaginary number as a factor."""
        if not self.complex:
            return self.problem.at_eigenvalue(0.0)
        problem, words = self.problem, self.problem.vocabulary

        def stated(one: LinearTerm) -> sympy.Expr:
            total: sympy.Expr = sympy.Integer(0)
            for jet, own in one.coefficients.items():
                factor = sum(factor.real * formula for factor, formula in own.get(0, ()))
                total += factor * words.derivative(jet.field, jet.index)
            return total

        conditions = dict(problem.conditions)
        for one in self.conditions:
            condition = conditions.get(one.name)
            if isinstance(condition, On):
                conditions[one.name] = replace(condition, equation=stated(one))
        return Problem(
            {one.term.name: stated(one) for one in self.equations}, problem.domain, conditions,
            functions=problem.functions, fields=problem.fields, name=problem.name, incomplete=problem.incomplete,
        )  # fmt: skip


def read_pencil(problem: Problem) -> Pencil:
    """The operators of a problem; an InputError where it is not linear, not homogeneous or no polynomial in λ.

    >>> from rannpde.domains import Interval
    >>> string = Problem("-u_xx = lam*(1 + x)*u", Interval(0, 1), {"boundary": "u = 0"}, eigenvalue="lam")
    >>> pencil = read_pencil(string)
    >>> pencil.degree, pencil.order("u"), pencil.complex
    (1, 2, False)
    """
    equations = tuple(_linear(f"equation {term.name!r}", term, problem) for term in problem.interior)
    conditions = tuple(_linear(f"condition {term.name!r}", term, problem) for term in problem.constraints)
    if max(one.degree for one in equations + conditions) == 0:
        raise InputError(f"the eigenvalue {problem.eigenvalue!r} stands in no equation or condition; use it there")
    return Pencil(problem, equations, conditions)


def _linear(said: str, term: Term, problem: Problem) -> LinearTerm:
    expression = term.expression
    unknowns = {symbol: jet for symbol, jet in expression.symbols.items() if jet.field in problem.fields}
    numbers = {jet.field: symbol for symbol, jet in expression.symbols.items() if jet.field not in problem.fields}
    _require_homogeneous(said, term, unknowns, numbers, problem)
    eigenvalue = numbers.pop(problem.eigenvalue, None)
    coefficients: dict[Jet, dict[int, Coefficient]] = {}
    for symbol, jet in unknowns.items():
        slope = differentiate(expression.formula, symbol)
        if slope.free_symbols & set(unknowns):
            raise InputError(
                f"{said} is not linear in {jet.field}; rp.eigen takes linear problems, solution.stability the "
                "linearisation at a solution"
            )
        coefficients[jet] = {}
        for power, part in enumerate(_powers(said, problem.eigenvalue, slope, eigenvalue)):
            sums = _phasors(said, part, {numbers[n]: v for n, v in problem.parameters.items() if n in numbers})
            if sums:
                coefficients[jet][power] = sums
    return LinearTerm(term.name, term, {jet: own for jet, own in coefficients.items() if own}, expression)


def _require_homogeneous(
    said: str, term: Term, unknowns: Mapping[sympy.Symbol, Jet], numbers: Mapping[str, sympy.Symbol], problem: Problem
) -> None:
    left = term.expression.formula.xreplace(dict.fromkeys(unknowns, sympy.Integer(0)))
    left = left.xreplace(dict.fromkeys(numbers.values(), sympy.Float((5**0.5 - 1) / 2)))
    if left == 0:
        return
    region = term.region
    assert region is not None
    points = region.sample(PENCIL_SAMPLES, rng=0)
    values = evaluate([left], term.known(points, problem.vocabulary), term.expression.functions)[0]
    if np.abs(values).max() > 0:
        raise InputError(
            f"{said} is not homogeneous: {np.abs(values).max():.4g} is left where the fields are zero, but an "
            "eigenvalue problem holds for multiples of its solutions too; drop what does not contain the fields"
        )


def _powers(said: str, name: str, slope: sympy.Expr, symbol: sympy.Symbol | None) -> list[sympy.Expr]:
    """Coefficients of a polynomial in a symbol, of the powers 0, 1, …"""
    if symbol is None:
        return [slope]
    coefficients: list[sympy.Expr] = []
    rest = slope
    for power in range(HIGHEST_POWER + 1):
        coefficients.append(rest.xreplace({symbol: sympy.Integer(0)}) / factorial(power))
        rest = differentiate(rest, symbol)
        if rest == 0 or sympy.expand(rest) == 0:
            if any(part.has(sympy.zoo, sympy.nan, sympy.oo) for part in coefficients):
                break
            return coefficients
    raise InputError(f"{said} is no polynomial in {name} of degree {HIGHEST_POWER} or less; state it as one")


def _phasors(said: str, part: sympy.Expr, numbers: Mapping[sympy.Symbol, complex]) -> Coefficient:
    """A polynomial in complex parameters as a sum of complex numbers times real formulas."""
    sums: list[tuple[complex, sympy.Expr]] = [(1.0 + 0j, part)]
    for symbol, value in numbers.items():
        sums = [
            (factor * value**power, own)
            for factor, formula in sums
            for power, own in enumerate(_powers(said, symbol.name, formula, symbol if formula.has(symbol) else None))
        ]
    return tuple((factor, formula) for factor, formula in sums if formula != 0)
