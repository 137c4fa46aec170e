"""Problems as TOML files: equations, domain, parameters, conditions, exact solution, solver settings.

    name = "Burgers"
    equations = ["u_t + u*u_x = nu*u_xx"]          # or a table of named equations
    [domain]
    t = [0, 1]                                      # with t it is a space-time
    x = [-1, 1]                                     # x = [[0, 1], [0, 1]] is x1, x2; ball = {centre, radius}
    [parameters]
    nu = 0.01
    [conditions.start]
    on = "t=0"
    equation = "u = -sin(pi*x)"
    [conditions.circle]                             # other kinds of condition
    periodic = "x"
    [conditions.sensors]
    points = [[0.5, 0.1]]
    values = [0.2]
    quantity = "u"
    [solve]
    width = 400

Files come from strangers: sizes are limited, unknown keys are answered, and text goes through our own grammar only.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from rannpde.domains import Ball, Box, Domain, SpaceTime
from rannpde.errors import FileError, InputError, choose, reject, require, suggestion
from rannpde.pde.problem.conditions import Condition, Data, On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.vocabulary import number

SIZE_LIMIT = 2**18
ENTRIES_LIMIT = 200
_KEYS = ("name", "equations", "domain", "parameters", "conditions", "fields", "bounds", "exact", "incomplete", "solve")
_SOLVE_KEYS = (
    "width",
    "scale",
    "rng",
    "activation",
    "placement",
    "slabs",
    "pieces",
    "method",
    "tol",
    "weights",
    "points_per_column",
    "guess",
)


def read_problem(path: str | os.PathLike[str]) -> tuple[Problem, dict[str, Any]]:
    """The problem in a TOML file and its solver settings, the keyword arguments of ``solve``."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > SIZE_LIMIT:
            raise FileError(f"{path} has {size} bytes, more than {SIZE_LIMIT}; refused")
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(
            f"{path} does not exist; check the path, or list ready-made ones with 'rannpde examples'"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"{path} cannot be read as TOML: {error}") from None
    try:
        settings = table.pop("solve", {})
        _known("solve", settings, _SOLVE_KEYS)
        return problem_from(table), dict(settings)
    except FileError:
        raise
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None


def problem_from(table: Mapping[str, Any]) -> Problem:
    """The problem that a table of this form states."""
    _known("the file", table, _KEYS)
    for key in ("equations", "domain"):
        if key not in table:
            raise InputError(f"the file has no {key!r}; see docs/solving.md for the form")
    parameters = _table("parameters", table)
    conditions = {str(name): _condition(str(name), entry) for name, entry in _table("conditions", table).items()}
    bounds = {str(name): _bound(name, pair) for name, pair in _table("bounds", table).items()}
    fields = table.get("fields", [])
    require(isinstance(fields, list), "fields", fields, "a list of names")
    return Problem(
        table["equations"],
        _domain(table["domain"], parameters),
        conditions,
        parameters=parameters,
        fields=tuple(fields),
        bounds=bounds,
        exact=_table("exact", table),
        name=str(table.get("name", "")),
        incomplete=bool(table.get("incomplete", False)),
    )


def describe(problem: Problem) -> dict[str, Any] | None:
    """The table of a problem, or None where it holds functions or SymPy expressions, which a file cannot keep."""
    parts = [*problem.equations.values(), *problem.exact.values()]
    parts += [c.equation for c in problem.conditions.values() if isinstance(c, On)]
    parts += [c.quantity for c in problem.conditions.values() if isinstance(c, Data)]
    if problem.functions or not all(isinstance(part, (str, int, float)) for part in parts):
        return None
    return {
        "name": problem.name,
        "equations": dict(problem.equations),
        "domain": _describe_domain(problem.domain),
        "parameters": {name: float(value) for name, value in problem.parameters.items()},
        "conditions": {name: _describe_condition(condition) for name, condition in problem.conditions.items()},
        "fields": list(problem.fields),
        "bounds": {name: [str(x) if x is None else x for x in pair] for name, pair in problem.bounds.items()},
        "exact": dict(problem.exact),
        "incomplete": problem.incomplete,
    }


def examples() -> dict[str, str]:
    """Name → text of the example files that come with the package."""
    folder = resources.files("rannpde.pde") / "examples"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {name.removesuffix(".toml"): (folder / name).read_text(encoding="utf-8") for name in files}


def example(name: str) -> str:
    """The text of one example file."""
    return choose("example", name, examples())


# ------------------------------------------------------------------------------------------------ parts of a file


def _known(where: str, table: Any, keys: tuple[str, ...]) -> None:
    require(isinstance(table, Mapping), where, type(table).__name__, "a table")
    for key in table:
        if key not in keys:
            raise InputError(f"{where} has the key {key!r}, which is unknown; {suggestion(key, keys)}")


def _table(key: str, table: Mapping[str, Any]) -> dict[str, Any]:
    value = table.get(key, {})
    require(isinstance(value, Mapping), key, type(value).__name__, "a table")
    require(len(value) <= ENTRIES_LIMIT, f"{key} of size", len(value), f"at most {ENTRIES_LIMIT} entries")
    return dict(value)


def _domain(table: Any, parameters: Mapping[str, float]) -> Domain:
    require(isinstance(table, Mapping) and bool(table), "domain", table, "a table of coordinates, e.g. x = [0, 1]")
    entries = dict(table)
    time = entries.pop("t", None)
    if "ball" in entries:
        ball = entries.pop("ball")
        _known("domain.ball", ball, ("centre", "radius", "names"))
        require(not entries, "domain", sorted(entries), "t and ball alone")
        names = tuple(ball["names"]) if "names" in ball else None
        space: Any = Ball(ball.get("centre"), ball.get("radius"), names=names)
    else:
        require(bool(entries), "domain", table, "given in space too, e.g. x = [0, 1]")
        space = Box(**{str(name): _interval(name, value, parameters) for name, value in entries.items()})
    return space if time is None else SpaceTime(_interval("t", time, parameters), x=space)


def _interval(name: str, value: Any, parameters: Mapping[str, float]) -> Any:
    """[0, 1], ["-pi", "pi"], or a list of such intervals."""
    require(
        isinstance(value, list) and 0 < len(value) <= ENTRIES_LIMIT,
        f"domain.{name}",
        value,
        "an interval [lower, upper]",
    )
    if all(isinstance(entry, list) for entry in value):
        return [_interval(name, entry, parameters) for entry in value]
    return [number(entry, parameters) if isinstance(entry, str) else entry for entry in value]


def _condition(name: str, entry: Any) -> Condition:
    where = f"conditions.{name}"
    _known(where, entry, ("on", "equation", "periodic", "fields", "points", "values", "quantity", "weight"))
    weight = entry.get("weight", 1.0)
    positive = isinstance(weight, (int, float)) and 0 < weight < np.inf
    require(positive, f"{where}.weight", weight, "a number > 0")
    if "periodic" in entry:
        return Periodic(str(entry["periodic"]), tuple(entry["fields"]) if "fields" in entry else None, weight)
    if "points" in entry:
        return Data(entry["points"], entry.get("values"), str(entry.get("quantity", "u")), weight)
    if "on" not in entry or "equation" not in entry:
        reject(where, sorted(entry), "a table with on and equation, periodic, or points and values")
    on = entry["on"]
    return On(tuple(map(str, on)) if isinstance(on, list) else str(on), str(entry["equation"]), weight)


def _bound(name: str, pair: Any) -> tuple[float | None, float | None]:
    """[0, "None"] is bounded below only: TOML has no null."""
    require(isinstance(pair, list) and len(pair) == 2, f"bounds.{name}", pair, '[lower, upper], "None" for no bound')
    lower, upper = (None if entry == "None" else number(entry, {}) for entry in pair)
    return lower, upper


def _describe_domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, SpaceTime):
        return {"t": list(domain.time)} | _describe_domain(domain.space)
    if isinstance(domain, Ball):
        return {"ball": {"centre": list(domain.centre), "radius": domain.radius, "names": list(domain.names)}}
    return {name: list(map(float, pair)) for name, pair in zip(domain.names, domain.bounds, strict=True)}


def _describe_condition(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Periodic):
        fields = {} if condition.fields is None else {"fields": list(condition.fields)}
        return {"periodic": condition.coordinate, "weight": condition.weight} | fields
    if isinstance(condition, Data):
        points, values = np.asarray(condition.points).tolist(), np.asarray(condition.values).tolist()
        return {"points": points, "values": values, "quantity": condition.quantity, "weight": condition.weight}
    on = condition.where if isinstance(condition.where, str) else list(condition.where)
    return {"on": on, "equation": condition.equation, "weight": condition.weight}
