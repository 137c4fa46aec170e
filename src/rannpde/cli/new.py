"""The command ``new``: a problem file, question by question; every answer is checked before the next is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rannpde.cli.answered import answered

if TYPE_CHECKING:
    from rannpde.pde.statement.vocabulary import Vocabulary

T = TypeVar("T")
TIME, SPACE = "t", ("x", "y", "z")
"""Names that are taken for coordinates where an equation has them as subscripts."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new")(new)


def new(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("problem.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a problem file, question by question.

    Equation, domain and conditions are asked for, each answer is checked, and the file solves.
    """
    from rannpde.io import write_whole

    if file.exists() and not force:
        typer.echo(f"{file} exists; pass --force to replace it", err=True)
        raise typer.Exit(1)
    with answered("nothing was written"):
        draft = Draft()
        _ask_equations(draft)
        _ask_names(draft)
        _ask_domain(draft)
        _ask_conditions(draft)
        tol = _ask("Relative L² error wanted", _tolerance, "1e-6")
        write_whole(file, written(draft.table | {"solve": {"tol": tol}}))
    typer.echo(f"written: {file}\nsolve it with: rannpde solve {file}")


@dataclass
class Draft:
    """The tables of the file as they grow, and what the names in it mean so far."""

    table: dict[str, Any] = field(default_factory=dict)
    words: Vocabulary | None = None


# ----------------------------------------------------------------------------------------------------- questions


def _ask(question: str, read: Callable[[str], T], default: str | None = None) -> T:
    """The answer as ``read`` understands it; what that refuses is reported, and asked for again."""
    from rannpde.errors import InputError

    while True:
        answer = typer.prompt(question, default=default, show_default=bool(default))
        try:
            return read(str(answer).strip())
        except InputError as error:
            typer.echo(f"  {error}", err=True)


def _ask_equations(draft: Draft) -> None:
    from rannpde.grammar import parse

    typer.echo("Equations, as in  u_t + u*u_x = nu*u_xx  or  -laplace(u) = 1.")

    def read(text: str) -> str:
        if text:
            parse(text)
        elif not equations:
            return _refuse("an equation is needed, such as u_t = u_xx")
        return text

    equations: list[str] = []
    while answer := _ask("Equation" if not equations else "Another equation (empty: no more)", read, ""):
        equations.append(answer)
    draft.table["equations"] = equations


def _ask_names(draft: Draft) -> None:
    """Coordinates, fields, and the values of all other names."""
    from rannpde.grammar import names, parse
    from rannpde.pde.statement.reading import infer_fields
    from rannpde.pde.statement.vocabulary import CONSTANTS, Vocabulary

    equations = draft.table["equations"]
    trees = [side for text in equations for side in parse(text) if side is not None]
    used = {name.text for tree in trees for name in names(tree)}
    bare = [name for name in (TIME, *SPACE) if any(_subscript(word, name) or word == name for word in used)]
    guess = bare if set(bare) & set(SPACE) else [*bare, *SPACE[:2]]

    def coordinates(text: str) -> Vocabulary:
        listed = tuple(re.split(r"[\s,]+", text))
        return Vocabulary(listed, TIME if TIME in listed else None)

    plain = _ask("Coordinates, t for time", coordinates, " ".join(guess))
    inferred = infer_fields(equations, plain)
    fields = inferred or _ask("Unknown functions", lambda text: tuple(re.split(r"[\s,]+", text)), "u")
    known = {*plain.coordinates, *fields, *CONSTANTS}
    rest = sorted(word for word in used - known if (plain.subscript(word) or ("",))[0] not in fields)
    parameters = {name: _ask(f"Value of {name}", _number) for name in rest}
    draft.words = Vocabulary(plain.coordinates, plain.time, fields, parameters)
    draft.table |= {"fields": list(fields)} if not inferred else {}
    draft.table |= {"parameters": parameters} if parameters else {}


def _ask_domain(draft: Draft) -> None:
    from rannpde.pde.problem.shapes import domain_from_table

    assert draft.words is not None
    parameters = draft.table.get("parameters", {})
    entries: dict[str, Any] = {}
    for name in draft.words.coordinates:

        def interval(text: str, name: str = name) -> list[Any]:
            ends = [_plain(part) for part in re.split(r"\s*,\s*|\s+", text.strip("[]() "))]
            domain_from_table({"x" if name == TIME else name: ends}, parameters)
            return ends

        entries[name] = _ask(f"{name} from, to", interval, "0, 1")
    domain_from_table(entries, parameters)
    draft.table["domain"] = entries


def _ask_conditions(draft: Draft) -> None:
    """Conditions until the problem is complete; what is still missing is told by the problem itself."""
    from rannpde.errors import InputError
    from rannpde.pde.problem.conditions import On, condition_terms, named_sides
    from rannpde.pde.problem.shapes import domain_from_table
    from rannpde.pde.problem.toml import from_table

    words = draft.words
    assert words is not None
    domain = domain_from_table(draft.table["domain"], words.parameters)
    conditions: dict[str, Any] = {}
    draft.table["conditions"] = conditions
    sides = [*(["t=" + f"{domain.bounds[0][0]:g}"] if words.time else []), *domain.sides]
    typer.echo(f"Conditions. Regions: {', '.join(sides)}, boundary; or: periodic x.")

    def region(text: str) -> str:
        periodic = re.fullmatch(r"periodic\s+(\w+)", text)
        if periodic is None:
            named_sides(text, domain, words.parameters)
        elif periodic[1] not in words.space:
            _refuse(f"the coordinate {periodic[1]!r} is none of {', '.join(words.space)}")
        return text

    def equation(text: str) -> str:
        condition_terms(name, On(where, text), domain, words)
        return text

    while True:
        try:
            from_table(draft.table)
            return
        except InputError as error:
            if conditions:
                typer.echo(f"  still open: {str(error).partition('; add')[0]}", err=True)
        where = _ask("Where", region)
        name = _named(where, conditions, words.time)
        if where.startswith("periodic"):
            conditions[name] = {"periodic": where.split()[1]}
        else:
            conditions[name] = {"on": where, "equation": _ask("Equation there, such as u = 0", equation)}


# ------------------------------------------------------------------------------------------------------- answers


def _subscript(word: str, letter: str) -> bool:
    """Whether a word may be a derivative by that coordinate: u_xx by x."""
    stem, _, below = word.rpartition("_")
    return bool(stem) and letter in below and set(below) <= {TIME, *SPACE}


def _named(where: str, taken: dict[str, Any], time: str | None) -> str:
    """A name for a condition: what it is, with a number where there are several."""
    kind = (
        "start" if time and re.match(rf"{time}\s*=", where) else "circle" if where.startswith("periodic") else "walls"
    )
    number = sum(name.partition("_")[0] == kind for name in taken) + 1
    return kind if number == 1 else f"{kind}_{number}"


def _refuse(reason: str) -> str:
    from rannpde.errors import InputError

    raise InputError(reason)


def _plain(text: str) -> float | int | str:
    """A number where the text is one, else the text, such as ``pi/2``."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _number(text: str) -> float:
    from rannpde.pde.statement.build import number

    return number(text, {})


def _tolerance(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        _refuse(f"the error is {value:g}, but must be above 0 and below 1")
    return value


def written(table: dict[str, Any]) -> str:
    """A problem file as text: plain entries first, then its tables.

    >>> print(written({"equations": ["u_x = 1"], "solve": {"tol": 1e-06}}))
    equations = ["u_x = 1"]
    <BLANKLINE>
    [solve]
    tol = 1e-06
    <BLANKLINE>
    """
    lines = [f"{key} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            nested = {f"{key}.{name}": entry for name, entry in value.items() if isinstance(entry, dict)}
            for header, entries in nested.items() if nested else [(key, value)]:
                lines += ["", f"[{header}]", *(f"{name} = {_value(entry)}" for name, entry in entries.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Text and lists of it are written alike in TOML and JSON."""
    return json.dumps(value, ensure_ascii=False)
