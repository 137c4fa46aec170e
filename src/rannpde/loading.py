"""load(): a network, solution, spectrum or family from a file that this package has written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError, choose, reject
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.network import Network
from rannpde.network.network import load as load_network
from rannpde.network.storage import arrays_under, floats
from rannpde.pde.cells.method import CellsHistory
from rannpde.pde.cells.network import unpack_cells
from rannpde.pde.cells.time.trajectory import unpack_trajectory
from rannpde.pde.collocation.method import CollocationHistory
from rannpde.pde.collocation.subdomains import unpack_subdomains
from rannpde.pde.ensembles import Ensemble
from rannpde.pde.family.combined import unpack_combined
from rannpde.pde.family.estimate import unpack_errors
from rannpde.pde.family.family import Family, middle_of
from rannpde.pde.family.history import FamilyHistory
from rannpde.pde.family.operator import Operator, unpack_operator
from rannpde.pde.family.shape_family import ShapeFamily, nearest_to_middle
from rannpde.pde.family.table import unpack_table
from rannpde.pde.flow.history import FlowHistory
from rannpde.pde.forward_model import Response
from rannpde.pde.inverse.estimates import Parameter, unpack_function
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.models import restored
from rannpde.pde.inverse.tangent import with_sensitivities
from rannpde.pde.lines.files import unpack_solution
from rannpde.pde.lines.method import LinesHistory
from rannpde.pde.monitor import Status
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.paths.region import unpack_region
from rannpde.pde.paths.solution import PathsHistory, PathsSolution, unpack_points
from rannpde.pde.polynomials.method import PolynomialHistory
from rannpde.pde.polynomials.space import unpack_tensor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.toml import from_table
from rannpde.pde.problem.unknown import UnknownFunction
from rannpde.pde.solution import Choice, Solution, SolvedFunction
from rannpde.pde.spectrum.boxes.function import ProductFunction
from rannpde.pde.spectrum.continuation.result import Continuation, unpack_continuation
from rannpde.pde.spectrum.interval.basis import PiecewisePolynomial
from rannpde.pde.spectrum.result import Mode, Spectrum, SpectrumIteration
from rannpde.pde.trefftz.files import unpack_trefftz
from rannpde.pde.trefftz.history import TrefftzHistory
from rannpde.pde.unsolved import InitialGuess, UnsolvedHistory
from rannpde.pde.weak.history import WeakHistory

HISTORIES: dict[
    str,
    type[TrefftzHistory]
    | type[LinesHistory]
    | type[FlowHistory]
    | type[WeakHistory]
    | type[CellsHistory]
    | type[CollocationHistory]
    | type[PathsHistory]
    | type[PolynomialHistory]
    | type[FamilyHistory]
    | type[UnsolvedHistory],
] = {
    "trefftz": TrefftzHistory,
    "lines": LinesHistory,
    "flow": FlowHistory,
    "weak": WeakHistory,
    "cells": CellsHistory,
    "collocation": CollocationHistory,
    "paths": PathsHistory,
    "polynomials": PolynomialHistory,
    "unsolved": UnsolvedHistory,
    "family": FamilyHistory,
}


def load(
    path: PathLike, problem: Problem | None = None
) -> Network | Solution | Ensemble | Operator | Spectrum | Continuation:
    """The network, solution, family, ensemble, operator, spectrum or continuation in that file; else a FileError.

    problem : that of a solution, where its file could not hold it (one that is made of functions, not of text)
    """
    kind, header, arrays = storage.read(path)
    if kind == "network":
        if problem is not None:
            reject("problem", problem, "left out, as the file holds a network")
        return load_network(path)
    with storage.consistent(path, kind):
        if kind == "solution":
            return _solution(header, arrays, problem)
        if kind == "ensemble":
            return Ensemble(_members(header, arrays, [problem] * len(header["members"])))
        if kind == "operator":
            return unpack_operator(header, arrays)
        if kind == "family":
            return _family(header, arrays, problem)
        if kind == "spectrum":
            return _spectrum(header, arrays, problem)
        if kind == "continuation":
            return unpack_continuation(header, arrays, problem)
    raise FileError(f"{path} holds a {kind}, which this release does not know")


def _members(
    header: Mapping[str, Any], arrays: Mapping[str, Array], problems: Sequence[Problem | None]
) -> tuple[Solution, ...]:
    """All solutions of a file that holds several, such as an ensemble or a family."""
    members = []
    for number, member_header in enumerate(header["members"]):
        member_arrays = arrays_under(arrays, f"{number}:")
        members.append(_solution(member_header, member_arrays, problems[number]))
    return tuple(members)


def _family(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> Family | ShapeFamily:
    """The family of solutions over its parameters, from its solutions at the nodes."""
    if problem is None and header["problem"] is not None:
        problem = from_table(header["problem"])
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    if header["fingerprint"] not in (None, problem.fingerprint) or not problem.ranges:
        raise FileError("the family is that of another problem than the one given")
    model = unpack_errors(arrays_under(arrays, "errors."))
    count, checked = len(model.grid.indices), int(header["checked"])
    if len(header["members"]) != count + checked or model.grid.dim != len(problem.ranges):
        raise FileError("the family has another number of solutions than of nodes")
    nodes = model.grid.nodes if not checked else np.concatenate([model.grid.nodes, np.zeros((checked, model.grid.dim))])
    problems: list[Problem | None] = []
    for number, node in enumerate(nodes):  # a problem made of functions is not in the file, but made at each node
        values = {name: span.value(y) for (name, span), y in zip(problem.ranges.items(), node, strict=True)}
        values = {**values, **header["members"][number].get("values", {})}
        in_file = header["members"][number]["problem"] is not None
        problems.append(None if in_file else problem.with_parameters(values))
    solutions = _members(header, arrays, problems)
    members = solutions[:count]
    table = None if header["table"] is None else unpack_table(header["table"], arrays, problem.domain.dim, count)
    common: dict[str, Any] = dict(
        problem=problem, history=FamilyHistory.from_table(header["history"]), members=members,
        checked=solutions[count:], model=model, table=table, **_common(header),
    )  # fmt: skip
    family: Family | ShapeFamily
    if problem.changing_domain:
        family = ShapeFamily(function=nearest_to_middle(model, members).function, **common)
    else:
        family = Family(function=middle_of(problem.ranges, model, members), **common)
    family.report()
    return family


def _solved_problem(header: Mapping[str, Any], problem: Problem | None, what: str) -> Problem | None:
    """The problem of a file, or the one given, which must be the one that was solved."""
    if problem is None:
        return None if header["problem"] is None else from_table(header["problem"])
    if header["fingerprint"] not in (None, problem.fingerprint):
        raise FileError(f"the {what} is that of another problem than the one given")
    return problem


def _common(header: Mapping[str, Any]) -> dict[str, Any]:
    """What the headers of all solutions hold: fields, method, status, error estimate, residuals, seconds."""
    residuals = {key: {str(n): float(v) for n, v in named.items()} for key, named in header["residuals"].items()}
    return residuals | {
        "fields": tuple(map(str, header["fields"])),
        "method": Choice(*map(str, header["method"])),
        "status": Status[header["status"]],
        "detail": str(header["detail"]),
        "estimate": np.inf if header["estimate"] is None else float(header["estimate"]),
        "seconds": float(header["seconds"]),
    }


def _solution(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> Solution:
    problem = _solved_problem(header, problem, "solution")
    common = _common(header)
    method = common["method"]
    identified = _identified(header["identified"], arrays, problem) if "identified" in header else {}
    forward = _at_values(problem, identified) if problem is not None and identified else problem
    kind = Identified if identified else PathsSolution if method.name == "paths" else Solution
    solution = kind(
        problem=problem,
        function=_function(header["function"], arrays, forward),
        history=choose("method", method.name, HISTORIES).from_table(header["history"]),
        stored=_outputs(header),
        **common,
        **identified,
    )
    _check(solution)
    return solution


def _spectrum(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> Spectrum:
    problem = _solved_problem(header, problem, "spectrum")
    values = arrays["values"]
    bounds = floats(arrays, "bounds", (None,))
    if values.dtype != np.complex128 or values.shape != bounds.shape or len(header["modes"]) != len(values):
        raise FileError("the numbers of eigenvalues, bounds and modes of the file differ")
    values = values.real.copy() if header["real"] else values
    fields = tuple(map(str, header["fields"]))
    modes = []
    for number, parts in enumerate(header["modes"]):
        functions = []
        for part, part_header in enumerate(parts):
            functions.append(_function(part_header, arrays_under(arrays, f"{number}.{part}:"), None))
        imaginary = functions[1] if len(functions) > 1 else None
        modes.append(Mode(values[number].item(), float(bounds[number]), fields, functions[0], imaginary))
    rows = [SpectrumIteration(int(c), int(n), np.inf if e is None else float(e), float(s))
            for c, n, e, s in header["iterations"]]  # fmt: skip
    spectrum = Spectrum(
        problem, fields, values, bounds, tuple(modes), str(header["wanted"]), str(header["counted"]),
        Choice(*map(str, header["method"])), Status[header["status"]], str(header["detail"]), float(header["tol"]),
        float(header["scale"]), tuple(rows), float(header["seconds"]), str(header.get("assurance", "")),
    )  # fmt: skip
    for mode in modes:
        with np.errstate(all="ignore"):  # the origin may be a pole in a hole of the domain
            shape = np.reshape(mode(np.zeros((2, mode.dim))), (2, -1)).shape
        if shape[1] != len(fields):
            raise FileError("the modes do not have the fields of the spectrum")
    spectrum.report()
    return spectrum


def _polynomial(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> PiecewisePolynomial:
    edges = floats(arrays, "edges", (None,))
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise FileError("the cells of a mode are not in order")
    return PiecewisePolynomial(edges, floats(arrays, "coefficients", (len(edges) - 1, None, None)))


def _product(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> ProductFunction:
    bounds, coefficients = floats(arrays, "bounds", (None, 2)), arrays["coefficients"]
    phases = tuple(None if phase is None else float(phase) for phase in header["phases"])
    known = coefficients.dtype in (np.float64, np.complex128) and bool(np.isfinite(coefficients).all())
    if not known or len(phases) != len(bounds) or coefficients.ndim != len(bounds) + 1:
        raise FileError("the coefficients of a mode do not belong to its box")
    return ProductFunction(bounds, phases, coefficients)


def _outputs(header: Mapping[str, Any]) -> dict[str, Quantity] | None:
    """Outputs of the problem as they were computed; None in files of problems without them."""
    outputs = header.get("outputs")
    return None if outputs is None else {str(name): Quantity.from_table(entry) for name, entry in outputs.items()}


def _identified(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> dict[str, Any]:
    """What an identified solution has besides a solution: parameters, functions, covariance, noise and misfit."""
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    parameters = {}
    for name, value, std, (lower, upper), confidence, note in header["parameters"]:
        ends = float(lower), float(upper)
        parameters[str(name)] = Parameter(str(name), float(value), float(std), ends, float(confidence), str(note))
    functions = {}
    for number, function_header in enumerate(header["functions"]):
        name = str(function_header["name"])
        unknown = problem.unknown.get(name)
        if not isinstance(unknown, UnknownFunction):
            raise FileError(f"the function {name!r} of the file is no unknown of its problem")
        functions[name] = unpack_function(function_header, arrays_under(arrays, f"identified.{number}."), unknown)
    count = len(parameters)
    spread = floats(arrays, "identified.spread", (None, None))
    identified: dict[str, Any] = {
        "parameters": parameters, "functions": functions, "spread": spread,
        "covariance": floats(arrays, "identified.covariance", (count, count)),
        "noise": {str(n): float(v) for n, v in header["noise"].items()},
        "misfit": {str(n): float(v) for n, v in header["misfit"].items()},
        "factor": float(header["factor"]), "notes": tuple(map(str, header["notes"])),
    }  # fmt: skip
    if "response" in header:
        response_arrays = arrays_under(arrays, "response.")
        values = {name: parameter.value for name, parameter in parameters.items()}
        if header["response"]["function"] == "forward_sensitivities":
            forward = _at_values(problem, identified)
            evolved = unpack_solution(header["response"]["solution"], response_arrays, forward)
            identified["response"] = restored(problem, values, functions, evolved)
        else:
            evolves = header["response"]["function"] == "evolved"
            augmented = with_sensitivities(problem, values) if evolves else problem
            function = _function(header["response"], response_arrays, augmented)
            identified["response"] = Response(function, len(problem.fields))
    return identified


def _at_values(problem: Problem, identified: Mapping[str, Any]) -> Problem:
    """The problem with the identified numbers and functions in place of its unknowns."""
    numbers = {name: parameter.value for name, parameter in identified["parameters"].items()}
    return problem.at(numbers | {name: function.expanded for name, function in identified["functions"].items()})


def _function(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> SolvedFunction:
    kind = header["function"]
    choose("function", kind, dict.fromkeys([*UNPACKERS, *UNPACKERS_WITH_PROBLEM]))
    if kind in UNPACKERS:
        return UNPACKERS[kind](header, arrays)
    return UNPACKERS_WITH_PROBLEM[kind](header, arrays, problem)


def _guess(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> InitialGuess:
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    return InitialGuess(problem)


def _combined(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> SolvedFunction:
    return unpack_combined(header, arrays, lambda part, part_arrays: _function(part, part_arrays, problem))


UNPACKERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], SolvedFunction]] = {
    "cells": unpack_cells,
    "cell trajectory": unpack_trajectory,
    "points": unpack_points,
    "polynomial": _polynomial,
    "product": _product,
    "subdomains": unpack_subdomains,
    "tensor": unpack_tensor,
    "trefftz": unpack_trefftz,
}
UNPACKERS_WITH_PROBLEM: dict[
    str, Callable[[Mapping[str, Any], Mapping[str, Array], Problem | None], SolvedFunction]
] = {"combined": _combined, "evolved": unpack_solution, "initial guess": _guess, "region": unpack_region}
"""Kinds of functions in files → how they are read, from header and arrays alone or with the problem that they solve."""


def _check(solution: Solution) -> None:
    """Evaluate and report the solution once, so that inconsistent parts of a file are refused when it is loaded."""
    if isinstance(solution, PathsSolution):
        solution.report()
        return
    points = np.zeros((2, solution.dim))
    if solution.problem is not None:
        if (solution.fields, solution.dim) != (solution.problem.fields, solution.problem.domain.dim):
            raise FileError("the fields of the solution are not those of its problem")
        points = solution.problem.domain.sample(2, rng=0)
        if solution.problem.domain.names[0] == "t":
            points[:, 0] = solution.problem.domain.bounds[0, 0]
    values = solution.function.derivative(points, (1,) + (0,) * (solution.dim - 1))
    if values.shape != (2, len(solution.fields)) or not np.isfinite(values).all():
        raise FileError("the parts of the solution do not fit each other")
    solution.history.lines()
