"""A problem stated with vectors, definitions or complex fields, as one of scalar equations for their components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, positive_integer, require, suggestion
from rannpde.pde.problem.conditions import Data, On, Periodic, naming
from rannpde.pde.statement.reading import infer_fields
from rannpde.pde.statement.tensor_notation import IMAGINARY, TENSOR_WORDS, TensorNotation
from rannpde.pde.statement.vocabulary import Vocabulary

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

MOST_COMPONENTS = 9
"""Components of a vector: those of a tensor of second order in space."""


def in_components(problem: Problem, equations: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the problem that change: equations, conditions, exact solutions and bounds by components."""
    require(isinstance(problem.complex, bool), "complex", problem.complex, "True or False")
    require(isinstance(problem.definitions, Mapping), "definitions", problem.definitions, "a mapping of names to text")
    for name, text in problem.definitions.items():
        require(isinstance(text, str), f"definitions[{name!r}]", text, "text")
    for name, statement in equations.items():
        require(isinstance(statement, str), f"equation {name!r}", statement, "text", "vectors are stated in text")
    sizes = _sizes(problem, equations)
    vectors = {name: tuple(f"{name}{k}" for k in range(1, count + 1)) for name, count in sizes.items() if count > 1}
    scalars = [part for name in sizes for part in vectors.get(name, (name,))]
    complexes = {name: (f"{name}_re", f"{name}_im") for name in scalars} if problem.complex else {}
    fields = tuple(part for name in scalars for part in complexes.get(name, (name,)))
    for name in problem.definitions:
        if name in (*sizes, *problem.domain.names, *problem.parameters):
            raise InputError(f"definitions has {name!r}, which is a field, a coordinate or a parameter; rename it")
    notation = TensorNotation(_words(problem, fields), vectors, complexes, dict(problem.definitions))
    groups = {
        name: tuple(p for part in vectors.get(name, (name,)) for p in complexes.get(part, (part,))) for name in sizes
    }
    lowered: dict[str, str] = {}
    for name, text in equations.items():
        with naming(f"equation {name!r}"):
            lowered |= _numbered(name, notation.statements(text))
    return {
        "equations": lowered,
        "fields": fields,
        "conditions": _conditions(problem, notation, groups),
        "exact": _exact(problem, notation, groups),
        "bounds": {part: pair for name, pair in problem.bounds.items() for part in groups.get(name, (name,))},
        "groups": {name: parts for name, parts in groups.items() if parts != (name,)},
        "definitions": {},
    }


def _words(problem: Problem, fields: tuple[str, ...]) -> Vocabulary:
    time = "t" if isinstance(problem.domain, SpaceTime) else None
    depends = {name: one.of for name, one in problem.unknown.items()}
    return Vocabulary(tuple(problem.domain.names), time, fields, problem.parameters, problem.functions, depends)


def _sizes(problem: Problem, equations: Mapping[str, Any]) -> dict[str, int]:
    """Field → number of its components."""
    if isinstance(problem.fields, Mapping):
        sizes = {name: positive_integer(f"fields[{name!r}]", count) for name, count in problem.fields.items()}
        for name, count in sizes.items():
            require(count <= MOST_COMPONENTS, f"fields[{name!r}]", count, f"at most {MOST_COMPONENTS}")
        require(bool(sizes), "fields", problem.fields, "at least one field")
        return sizes
    given = (problem.fields,) if isinstance(problem.fields, str) else tuple(problem.fields)
    if given:
        return dict.fromkeys(given, 1)
    # what tensor notation adds to the scalar language stands in as functions and numbers while fields are looked for
    functions = dict(problem.functions) | dict.fromkeys(TENSOR_WORDS, abs)
    numbers = dict(problem.parameters) | ({IMAGINARY: 1.0} if IMAGINARY not in problem.parameters else {})
    numbers |= dict.fromkeys(problem.definitions, 1.0)
    time = "t" if isinstance(problem.domain, SpaceTime) else None
    words = Vocabulary(tuple(problem.domain.names), time, (), numbers, functions)
    names = infer_fields([*equations.values(), *problem.definitions.values()], words)
    if not names:
        raise InputError('the equations hold no field; name them, such as fields={"u": 2} for a vector')
    return dict.fromkeys(names, 1)


def _numbered(name: str, statements: list[str]) -> dict[str, str]:
    if len(statements) == 1:
        return {name: statements[0]}
    return {f"{name} {k}": text for k, text in enumerate(statements, start=1)}


def _conditions(problem: Problem, notation: TensorNotation, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    lowered: dict[str, Any] = {}
    for name, condition in problem.conditions.items():
        if isinstance(condition, On) and isinstance(condition.equation, str):
            with naming(f"condition {name!r}"):
                statements = notation.statements(condition.equation)
            for key, text in _numbered(name, statements).items():
                lowered[key] = replace(condition, equation=text)
        elif isinstance(condition, Periodic) and condition.fields is not None:
            parts = tuple(part for one in condition.fields for part in groups.get(one, (one,)))
            lowered[name] = replace(condition, fields=parts)
        elif isinstance(condition, Data) and isinstance(condition.quantity, str):
            with naming(f"condition {name!r}"):
                formulas = [one for one in notation.formulas(condition.quantity) if one != "0"]
            require(
                len(formulas) == 1, f"condition {name!r}", condition.quantity, "one real number", "e.g. u[1] or re(u)"
            )
            lowered[name] = replace(condition, quantity=formulas[0])
        else:
            lowered[name] = condition
    return lowered


def _exact(problem: Problem, notation: TensorNotation, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Exact solutions by component; those of vectors are lists in text, as in equations, or lists of formulas."""
    solutions: dict[str, Any] = {}
    for name, given in problem.exact.items():
        if name not in groups:
            raise InputError(f"exact names {name!r}, which is no field; {suggestion(name, list(groups))}")
        text = f"[{', '.join(map(str, given))}]" if isinstance(given, list | tuple) else given
        if isinstance(text, str):
            with naming(f"exact {name!r}"):
                formulas = notation.formulas(text)
            require(len(formulas) == len(groups[name]), f"exact[{name!r}]", given, f"{len(groups[name])} components")
            solutions |= dict(zip(groups[name], formulas, strict=True))
        else:
            require(len(groups[name]) == 1, f"exact[{name!r}]", given, "text, or a list of formulas")
            solutions[groups[name][0]] = given
    return solutions


def vector_fields(problem: Problem, fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that are the components of a vector; see ``Solution.vector``."""
    timed = isinstance(problem.domain, SpaceTime)
    size = problem.domain.dim - timed
    first = fields[:size]
    stated = [] if problem.complex else [one for one in problem.groups.values() if len(one) == size]
    if stated and stated[0] == first:
        return first
    if size < 2 or len(first) < size:
        return ()
    for term in problem.terms:
        jets = term.expression.jets if term.kind == "interior" else ()
        if all(any(j.field == n and j.index[k + timed] for j in jets) for k, n in enumerate(first)):
            return first
    return ()
