"""Problems as TOML files: equations, domain, parameters, conditions, exact solution, solver settings.

    name = "Burgers"
    equations = ["u_t + u*u_x = nu*u_xx"]          # or a table of named equations
    [domain]
    t = [0, 1]                                      # with t it is a space-time
    x = [-1, 1]                                     # x = [[0, 1], [0, 1]] is x1, x2; other shapes: docs/geometry.md
                                                    # x = { euclidean = 100 } is a vector: docs/many_dimensions.md
    [parameters]
    nu = 0.01                                       # or all values of a range: { range = [0.01, 0.1], scale = "log" }
    [conditions]
    "t=0" = "u = -sin(pi*x)"                        # a region and its equation, or a list of them
    y = "periodic"                                  # a coordinate
    [conditions.ends]                               # or with a name of its own, on several regions
    on = ["x=-1", "x=1"]
    equation = "u = 0"
    [conditions.sensors]
    points = [[0.5, 0.1]]
    values = [0.2]
    quantity = "u"
    [conditions.probes]                             # or from a file beside this one: coordinates, then values
    csv = "probes.csv"
    noise = 0.01                                    # measurements of a problem with unknowns
    [unknown.nu]                                    # a number to be identified; with of = ["x"] a function
    guess = 0.1
    bounds = [0, "None"]
    [fields]                                        # vectors: u has the components u1, u2; or a list of names
    u = 2
    [definitions]
    eps = "sym(grad(u))"
    [bounds]
    u = [0, "None"]                                 # TOML has no null
    eigenvalue = "lam"                              # at the top: for rannpde eigen; parameters may be "1j" then
    [outputs]
    mass = "u"                                      # an integral; u(0.5, 0.5) is a value, u(0.5, 0.5) = 1 a first time
    flux = { expression = "dn(u)", on = "x=1" }     # also kind, t, at: docs/answers.md
    [solve]
    tol = 1e-8                                      # settings of the solver, which checks them

Files come from strangers: sizes are limited, every entry is checked here against the one form above, and text goes
through our own grammar only. (Checked by hand: a schema library would know the types, but neither the grammar nor our
wording, and is one more dependency.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from rannpde.errors import InputError, choose, is_real, reject, require
from rannpde.io import PathLike, read_csv, read_toml
from rannpde.pde.problem.conditions import Condition, Data, On, Periodic, naming
from rannpde.pde.problem.entries import array, boolean, each, formula, known, phasor, real, table_of, text, texts
from rannpde.pde.problem.location import locate
from rannpde.pde.problem.output import output_from_table, output_table
from rannpde.pde.problem.parametric_domain import domain_of_table
from rannpde.pde.problem.problem import Bounds, Problem
from rannpde.pde.problem.ranges import Range
from rannpde.pde.problem.shapes import domain_from_table, domain_table
from rannpde.pde.problem.unknown import AnyUnknown, Unknown, UnknownFunction
from rannpde.pde.statement.build import number

SettingsTable = dict[str, Any]
"""Plain values: numbers, text, booleans, lists and tables of them."""

VALUES_LIMIT = 100_000
"""Values in a whole file, points of measurements included: the most that a file of the allowed size can hold."""
DEPTH_LIMIT = 12
"""Levels of nesting: a shape made of shapes adds three to its parts, and corners of a polygon's hole have seven."""
WHOLE_LIMIT = 2**63
"""Integers of more than 64 bits are refused: no quantity is so large."""
_KEYS = (
    "name", "equations", "domain", "parameters", "conditions", "fields", "bounds", "exact", "incomplete", "unknown",
    "eigenvalue", "outputs", "definitions", "complex", "groups",
)  # fmt: skip
_KINDS = {
    "on": ("on", "equation", "weight"),
    "periodic": ("periodic", "fields", "weight"),
    "points": ("points", "values", "quantity", "weight", "noise", "loss"),
    "over": ("over", "values", "quantity", "weight", "noise", "loss"),
}


def read_problem(path: PathLike, settings: str = "solve") -> tuple[Problem, SettingsTable]:
    """The problem in a TOML file, and its table ``solve`` (or ``eigen``), unchecked: the solver knows its settings.

    An InputError says what is wrong and, where it can be found, in which line and column.
    """
    table = read_toml(path)
    with in_file(path):
        _check_plain(table)
        tables = {name: table_of(name, table.pop(name, {})) for name in ("solve", "eigen")}
        _read_measured(table, Path(path).parent)
        return from_table(table), tables[settings]


def _read_measured(table: dict[str, Any], folder: Path) -> None:
    """Read the CSV files of conditions, which must lie in the folder of the problem file: points, then values."""
    for name, entry in table_of("conditions", table.get("conditions", {})).items():
        if isinstance(entry, dict) and "csv" in entry:
            given = text(f"conditions.{name}.csv", entry.pop("csv"))
            require(Path(given).name == given, f"conditions.{name}.csv", given, "the name of a file in the same folder")
            rows = read_csv(folder / given)
            require(rows.shape[1] >= 2, f"columns of {given}", rows.shape[1], "coordinates, then the value")
            entry |= {"points": rows[:, :-1].tolist(), "values": rows[:, -1].tolist()}


@contextmanager
def in_file(path: PathLike, *tables: str) -> Iterator[None]:
    """Add the file to the errors of a block and, where they can be found, line and column of the entry.

    tables : the nested tables that hold the entry
    """
    try:
        yield
    except InputError as error:
        location = locate(str(error), tables, Path(path).read_text(encoding="utf-8"))
        position = f", line {location[0]}, column {location[1]}" if location else ""
        raise type(error)(f"{path}{position}: {error}") from None


def from_table(table: Mapping[str, Any]) -> Problem:
    """The problem that a table of this form states."""
    _check_plain(table)
    known("the file", table, _KEYS)
    for key in ("equations", "domain"):
        if key not in table:
            raise InputError(f"the file has no {key!r}; see docs/solving.md for the form")
    eigenvalue = text("eigenvalue", table.get("eigenvalue", ""))
    parameters = each("parameters", table, phasor if eigenvalue else _parameter)
    return Problem(
        _equations(table["equations"]),
        _domain(table["domain"], parameters),
        each("conditions", table, _condition),
        parameters=parameters,
        fields=_fields(table.get("fields", [])),
        bounds=each("bounds", table, _bound),
        exact=each("exact", table, formula),
        name=text("name", table.get("name", "")),
        incomplete=boolean("incomplete", table.get("incomplete", False)),
        unknown=each("unknown", table, _unknown),
        eigenvalue=eigenvalue,
        outputs=each("outputs", table, output_from_table),
        definitions=each("definitions", table, text),
        complex=boolean("complex", table.get("complex", False)),
        groups={name: tuple(parts) for name, parts in each("groups", table, texts).items()},
    )


def to_table(problem: Problem) -> dict[str, Any] | None:
    """The table of a problem, or None where it holds functions, SymPy expressions or shapes that a file cannot keep."""
    parts = [*problem.equations.values(), *problem.exact.values()]
    parts += [c.equation for c in problem.conditions.values() if isinstance(c, On)]
    if any(callable(c.where) for c in problem.conditions.values() if isinstance(c, On)):
        return None
    parts += [c.quantity for c in problem.conditions.values() if isinstance(c, Data)]
    moving = problem.parametric_domain if problem.changing_domain else None
    domain = domain_table(problem.domain) if moving is None else moving.table
    if problem.functions or domain is None or not all(isinstance(part, (str, int, float)) for part in parts):
        return None
    outputs = {name: output_table(output) for name, output in problem.outputs.items()}
    if any(entry is None for entry in outputs.values()):
        return None
    return {
        "name": problem.name,
        "equations": dict(problem.equations),
        "domain": dict(domain),
        "parameters": {name: _parameter_table(value) for name, value in problem.parameters.items()},
        "conditions": {name: _condition_table(condition) for name, condition in problem.conditions.items()},
        "fields": list(problem.fields),
        "bounds": {name: ["None" if x is None else float(x) for x in pair] for name, pair in problem.bounds.items()},
        "exact": dict(problem.exact),
        "incomplete": bool(problem.incomplete),
        "unknown": {name: _unknown_table(unknown) for name, unknown in problem.unknown.items()},
        "outputs": outputs,
        "complex": bool(problem.complex),
        "groups": {name: list(parts) for name, parts in problem.groups.items()},
    } | ({"eigenvalue": problem.eigenvalue} if problem.eigenvalue else {})


def examples() -> dict[str, str]:
    """Name → text of the example files that come with the package."""
    folder = resources.files("rannpde.pde") / "examples"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {name.removesuffix(".toml"): (folder / name).read_text(encoding="utf-8") for name in files}


def example(name: str) -> str:
    """The text of one example file."""
    return choose("example", name, examples())


# ------------------------------------------------------------------------------------------------ plain values


def _check_plain(table: Any) -> None:
    """Refuse what no entry may hold: foreign types, absurd numbers, too many or too deeply nested values."""
    require(isinstance(table, Mapping), "the file", type(table).__name__, "a table")
    stack: list[tuple[str, Any, int]] = [("", table, 0)]
    count = 0
    while stack:
        key, value, depth = stack.pop()
        count += 1
        require(count <= VALUES_LIMIT, "the number of values", count, f"at most {VALUES_LIMIT}")
        require(depth <= DEPTH_LIMIT, f"{key} with its depth", depth, f"nested at most {DEPTH_LIMIT} levels")
        if isinstance(value, Mapping):
            for name in value:
                require(isinstance(name, str), f"a key of {key or 'the file'}", name, "text")
            stack += [(f"{key}.{name}" if key else name, entry, depth + 1) for name, entry in value.items()]
        elif isinstance(value, (list, tuple)):
            stack += [(key, entry, depth + 1) for entry in value]
        elif isinstance(value, int) and abs(value) >= WHOLE_LIMIT:
            reject(key, f"a whole number of {value.bit_length()} bits", "below 2**63")
        elif value is not None and not isinstance(value, (str, int, float)):
            reject(key, type(value).__name__, "text, a number, true or false, a list or a table")


# ------------------------------------------------------------------------------------------------ parts of a file


def _equations(value: Any) -> str | list[str] | dict[str, str]:
    if isinstance(value, Mapping):
        return each("equations", {"equations": value}, text)
    return value if isinstance(value, str) else texts("equations", value)


def _domain(value: Any, parameters: Mapping[str, Any]) -> Any:
    """The domain, or the domain as a function of those parameters with a range that it contains."""
    numbers = {name: value for name, value in parameters.items() if not isinstance(value, (list, complex, Range))}
    ranges = {name: value for name, value in parameters.items() if isinstance(value, Range)}
    stated = domain_of_table(value, {**numbers, **ranges})
    return stated if set(stated.names) & set(ranges) else domain_from_table(value, numbers)


def _fields(value: Any) -> Any:
    """Names of fields; or a table of the number of components of each, fields = { u = 2 }."""
    if isinstance(value, Mapping):
        return dict(value)
    return tuple(texts("fields", value))


def _condition(key: str, value: Any) -> Condition | str | list[str]:
    if isinstance(value, (str, list)):  # in short: the key is the region
        return value if isinstance(value, str) else texts(key, value)
    entry = known(key, value, tuple(dict.fromkeys(name for names in _KINDS.values() for name in names)))
    kind = next((kind for kind in _KINDS if kind in entry), None)
    if kind is None:
        reject(key, sorted(entry), "a table with on and equation, with periodic, or with points and values")
    known(key, entry, _KINDS[kind])
    weight = real(f"{key}.weight", entry.get("weight", 1.0))
    with naming(key):
        if kind == "periodic":
            fields = tuple(texts("fields", entry["fields"])) if "fields" in entry else None
            return Periodic(text("periodic", entry["periodic"]), fields, weight)
        needed = "equation" if kind == "on" else "values"
        require(needed in entry, "the table", sorted(entry), f"given with {needed} too")
        if kind in ("points", "over"):
            return _data(entry, weight)
        on = entry["on"]
        sides = on if isinstance(on, str) else tuple(texts("on", on))
        equation = entry["equation"]
        stated = texts("equation", equation) if isinstance(equation, list) else text("equation", equation)
        return On(sides, stated, weight)


def _parameter(key: str, value: Any) -> Any:
    """A number, numbers of a vector or a matrix, or a range of numbers."""
    if not isinstance(value, Mapping):
        return array(key, value)
    entry = known(key, value, ("range", "scale"))
    require("range" in entry, key, sorted(entry), "given with range = [lower, upper]")
    pair = entry["range"]
    require(isinstance(pair, (list, tuple)) and len(pair) == 2, f"{key}.range", pair, "[lower, upper]")
    with naming(key):
        lower, upper = (number(end, {}) for end in pair)
        return Range(lower, upper, text("scale", entry.get("scale", "linear")))


def _parameter_table(value: Any) -> Any:
    if isinstance(value, Range):
        return {"range": [value.lower, value.upper], "scale": value.scale}
    if isinstance(value, complex):
        return str(value)
    return value if is_real(value) else np.asarray(value).tolist()


def _data(entry: Mapping[str, Any], weight: float) -> Data:
    quantity = text("quantity", entry.get("quantity", "u"))
    noise = entry.get("noise")
    if noise is not None and not isinstance(noise, list):
        noise = real("noise", noise)
    loss = text("loss", entry.get("loss", "squares"))
    over = entry.get("over")
    if isinstance(over, list) and not all(isinstance(part, str) for part in over):
        over = [tuple(map(tuple, part)) if isinstance(part, list) else part for part in over]
    return Data(entry.get("points"), entry["values"], quantity, weight, noise, loss, over)


def _unknown(key: str, value: Any) -> AnyUnknown:
    entry = known(key, value, ("guess", "bounds", "of", "smoothness", "degree"))
    with naming(key):
        bounds = _bound("bounds", entry["bounds"]) if "bounds" in entry else (None, None)
        if "of" in entry:
            given = {name: entry[name] for name in ("guess", "smoothness", "degree") if entry.get(name) is not None}
            return UnknownFunction(tuple(texts("of", entry["of"])), bounds=bounds, **given)
        require("guess" in entry, "the table", sorted(entry), "given with a guess")
        for name in ("smoothness", "degree"):
            require(name not in entry, name, entry.get(name), "left out for a number; functions have of = [...]")
        return Unknown(real("guess", entry["guess"]), bounds)


def _unknown_table(unknown: AnyUnknown) -> dict[str, Any]:
    table: dict[str, Any] = {
        "guess": unknown.guess,
        "bounds": ["None" if x is None else float(x) for x in unknown.bounds],
    }
    if isinstance(unknown, UnknownFunction):
        stated = {"smoothness": unknown.smoothness, "degree": unknown.degree}
        table |= {"of": list(unknown.of)} | {name: number for name, number in stated.items() if number is not None}
    return table


def _bound(key: str, value: Any) -> Bounds:
    """[0, "None"] is bounded below only."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2
    require(pair, key, value, '[lower, upper], "None" for no bound')
    with naming(key):
        lower, upper = (None if entry in (None, "None") else number(entry, {}) for entry in value)
    return lower, upper


def _condition_table(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Periodic):
        fields = {} if condition.fields is None else {"fields": list(condition.fields)}
        return {"periodic": condition.coordinate, "weight": condition.weight} | fields
    if isinstance(condition, Data):
        table = {"values": np.asarray(condition.values).tolist(), "quantity": condition.quantity}
        table |= {"weight": condition.weight, "loss": condition.loss}
        table |= {} if condition.points is None else {"points": np.asarray(condition.points).tolist()}
        table |= {} if condition.over is None else {"over": condition.over}
        return table | ({} if condition.noise is None else {"noise": np.asarray(condition.noise, dtype=float).tolist()})
    on = condition.where if isinstance(condition.where, str) else list(condition.where)  # type: ignore[arg-type]
    return {"on": on, "equation": condition.equation, "weight": condition.weight}
