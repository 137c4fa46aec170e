"""One self-contained HTML page of a solution: the problem set as mathematics, pictures that move, how far to trust it.

Nothing on the page points outside. The slider exchanges attributes of the SVG panels; without scripts the first picture
is shown.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.domains import Box, Domain, SpaceTime
from rannpde.io import PathLike
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.problem.conditions import Condition, Data, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.plotting.document import html_document, scrolling_table, verdict_heading, write_document
from rannpde.plotting.shown import figure, pictures, residuals, wide
from rannpde.plotting.svg import greek
from rannpde.plotting.typeset import as_svg, symbol, tex, typeset_equations

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

PAGE_LIBRARIES = ("numpy", "scipy", "sympy", "matplotlib")


def write_page(solution: Solution, path: PathLike, command: str = "") -> Path:
    """Write the page; ``command`` is what made the solution, where it was a command."""
    return write_document(path, page(solution, command))


def page(solution: Solution, command: str = "") -> str:
    """The whole page as text."""
    parts = [
        _head(solution),
        _statement(solution.stated),
        _outputs(solution),
        pictures(solution),
        figure(solution),
        residuals(solution),
        _identified_values(solution),
        _iterations(solution),
        _made(solution, command),
    ]
    script = files("rannpde.plotting").joinpath("page.js").read_text(encoding="utf-8")
    return html_document(solution.title, parts, script)


# ------------------------------------------------------------------------------------------------- words and numbers


def _head(solution: Solution) -> str:
    known = f"{solution.estimate:.1e}" if isfinite(solution.estimate) else "unknown"
    facts = [("estimated relative L² error", known)]
    facts += [(f"relative L² error of {name}", f"{error:.1e}") for name, error in solution.errors().items()]
    facts += [("time", f"{solution.seconds:.2f} s"), ("method", solution.method.name)]
    title = solution.stated.name or f"Solution: {solution.title}"
    return verdict_heading(title, solution.converged, solution.reason, facts)


def _statement(problem: Problem) -> str:
    """Equations, domain, conditions and parameters, typeset."""
    rows = [
        wide(as_svg(written, f"{name}: {problem.equations[name]}"), f"equation {name}")
        for name, written in typeset_equations(problem).items()
    ]
    conditions = [
        (escape(name), escape(_region_of(condition)), _condition(condition, problem))
        for name, condition in problem.conditions.items()
    ]
    table = scrolling_table(("condition", "where", ""), conditions) if conditions else ""
    return (
        f'<section><h2 id="problem">Problem</h2>{"".join(rows)}<div class="domain wide"><span>on</span>'
        f"{_domain(problem.domain)}{_bounds(problem)}</div>{table}</section>"
    )


def _domain(domain: Domain) -> str:
    space = domain.space if isinstance(domain, SpaceTime) else domain
    ends = zip(domain.names, domain.bounds, strict=True)
    written = as_svg(
        r",\ \ ".join(rf"{symbol(name)} \in ({low:.6g},\, {high:.6g})" for name, (low, high) in ends), repr(domain)
    )
    if isinstance(space, Box):
        return written
    return f"a part of {written} <code>{escape(repr(domain))}</code>"


def _bounds(problem: Problem) -> str:
    ends = [
        f"{'' if low is None else f'{low:g} ≤ '}{name}{'' if high is None else f' ≤ {high:g}'}"
        for name, (low, high) in problem.bounds.items()
    ]
    return f"<span>with {escape(', '.join(ends))}</span>" if ends else ""


def _region_of(condition: Condition) -> str:
    if isinstance(condition, Periodic):
        return f"{condition.coordinate}, periodic"
    if isinstance(condition, Data):
        return f"{len(np.asarray(condition.values))} points"
    if callable(condition.where):
        return "a part of the boundary"
    return condition.where if isinstance(condition.where, str) else ", ".join(condition.where)


def _condition(condition: Condition, problem: Problem) -> str:
    if isinstance(condition, Periodic):
        return escape("all fields" if condition.fields is None else ", ".join(condition.fields))
    statement = condition.quantity if isinstance(condition, Data) else condition.equation
    words = str(statement)
    shown = (
        as_svg(tex(words, problem.vocabulary), words) if isinstance(statement, str) else f"<code>{escape(words)}</code>"
    )
    return f"measured values of {shown}" if isinstance(condition, Data) else shown


def _outputs(solution: Solution) -> str:
    """The quantities of interest with their bounds."""
    stated = solution.stated.outputs
    if not stated:
        return ""
    rows = [
        (
            escape(greek(name)),
            escape(str(quantity)) + ("" if quantity.converged else " (not converged)"),
            f"<code>{escape(str(stated[name]))}</code>" if name in stated else "",
            escape(quantity.how),
        )
        for name, quantity in solution.outputs.items()
    ]
    table = scrolling_table(("output", "value ± bound", "what it is", "what the bound rests on"), rows)
    return f'<section><h2 id="outputs">Outputs</h2>{table}</section>'


def _identified_values(solution: Solution) -> str:
    """What was identified, with intervals and bands; what was given; the residual of every term."""
    parts = []
    if isinstance(solution, Identified):
        told = [[greek(name), str(one)] for name, one in solution.parameters.items()]
        told += [repr(one).split(": ", 1) for one in solution.functions.values()]
        parts.append(scrolling_table(("unknown", "estimate"), [[escape(part) for part in row] for row in told]))
        data = [
            (escape(name), _number(sigma), _number(solution.misfit[name])) for name, sigma in solution.noise.items()
        ]
        parts.append(scrolling_table(("measurement", "noise", "misfit in units of it"), data))
        parts.append(_listed(solution.notes))
    given = [(escape(greek(k)), f"{v:.10g}") for k, v in solution.stated.numbers.items()]
    if given:
        parts.append(scrolling_table(("parameter", "value"), given))
    names = dict.fromkeys([*solution.losses, *solution.held_out])
    tables = (solution.losses, solution.integrals, solution.held_out)
    terms = [(escape(name), *(_number(table.get(name)) for table in tables)) for name in names]
    heads = ("term", "mean square of the residual", "its integral", "relative, on fresh points")
    parts.append(scrolling_table(heads, terms) if terms else "")
    return f'<section><h2 id="numbers">Parameters and residuals</h2>{"".join(parts)}</section>'


def _iterations(solution: Solution) -> str:
    iterations: Sequence[Any] = getattr(solution.history, "iterations", ())
    table = ""
    if iterations and all(is_dataclass(one) for one in iterations):
        names = [one.name for one in fields(iterations[0])]
        rows = [(str(k), *(_number(getattr(one, name)) for name in names)) for k, one in enumerate(iterations, start=1)]
        table = scrolling_table(("iteration", *names), rows)
    told = [line for line in solution.history.lines() if not (table and line.startswith("iteration "))]
    total = f"{solution.seconds:.2f} s altogether"
    spent = sum(float(getattr(one, "seconds", 0.0)) for one in iterations)
    timing = f"{total}, {spent:.2f} s of it in the iterations" if spent else total
    return (
        f'<section><h2 id="iterations">Iterations and time</h2><p>{escape(str(solution.method))}</p>{table}'
        f"<p>{escape(timing)}.</p>{_listed(told)}</section>"
    )


def _made(solution: Solution, command: str) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    how = command or f"rp.solve(problem, method={solution.method.name!r}, …) in Python"
    listed = [f"rannpde {_version('rannpde')}", f"Python {platform.python_version()}"]
    listed += [f"{name} {_version(name)}" for name in PAGE_LIBRARIES]
    listed.append(f"{platform.system()} {platform.machine()}")
    return (
        f'<section><h2 id="made">How it was made</h2><pre>{escape(how)}</pre>'
        f'<p class="quiet">{escape(", ".join(listed))}; {made}.</p></section>'
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


def _listed(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if isfinite(value) else "–"
    return "" if value is None else escape(str(value))
