"""One self-contained HTML page of a solution: the problem set as mathematics, pictures that move, how far to trust it.

Nothing on the page points outside. The slider exchanges attributes of the SVG panels; without scripts the first picture
is shown.
"""

from __future__ import annotations

import base64
import io
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Box, Domain, SpaceTime
from rannpde.errors import InputError
from rannpde.io import PathLike, write_whole
from rannpde.pde.problem.conditions import Condition, Data, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.plotting.figures import component, logarithm, plot_solution
from rannpde.plotting.film import Film, films, still
from rannpde.plotting.svg import Drawn, greek, map_panel, profile_panel, still_of
from rannpde.plotting.typeset import as_svg, equations, symbol, tex
from rannpde.plotting.view import Panel, scale_of

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

GRID = 72
"""Points of a map along each axis: the browser smooths between them."""
PROFILES, MAPS, SLICES = 49, 25, 15
"""Pictures of a film of profiles, of maps, which take more room, and of slices, whose outlines take time."""
LIBRARIES = ("numpy", "scipy", "sympy", "matplotlib")


def write_page(solution: Solution, path: PathLike, command: str = "") -> Path:
    """Write the page; ``command`` is what made the solution, where it was a command."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"path is {str(path)!r}, but must end in .html; for a picture use plot")
    return write_whole(path, page(solution, command))


def page(solution: Solution, command: str = "") -> str:
    """The whole page as text."""
    problem, home = solution.stated, files("rannpde.plotting")
    style, script = (home.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    parts = [
        _head(solution),
        _statement(problem),
        _pictures(solution),
        _residuals(solution),
        _found(solution),
        _passes(solution),
        _figure(solution),
        _made(solution, command),
    ]
    title = escape(solution.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + f"\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


# ------------------------------------------------------------------------------------------------- words and numbers


def _head(solution: Solution) -> str:
    good = solution.converged
    known = f"{solution.estimate:.1e}" if isfinite(solution.estimate) else "unknown"
    facts = [("estimated relative L² error", known)]
    facts += [(f"relative L² error of {name}", f"{error:.1e}") for name, error in solution.errors().items()]
    facts += [("time", f"{solution.seconds:.2f} s"), ("method", solution.method.name)]
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    verdict = f'<span class="verdict{"" if good else " failed"}">{"Converged" if good else "Did not converge"}</span>'
    return (
        f"<header><h1>{escape(solution.stated.name or f'Solution: {solution.title}')}</h1>\n<p>{verdict}: "
        f'{escape(solution.reason)}.</p>\n<dl class="facts">{listed}</dl></header>'
    )


def _statement(problem: Problem) -> str:
    """Equations, domain, conditions and parameters, typeset."""
    rows = [
        _wide(as_svg(written, f"{name}: {problem.equations[name]}"), f"equation {name}")
        for name, written in equations(problem).items()
    ]
    conditions = [
        (escape(name), escape(_place(condition)), _condition(condition, problem))
        for name, condition in problem.conditions.items()
    ]
    table = _table(("condition", "where", ""), conditions) if conditions else ""
    return (
        f'<section><h2 id="problem">Problem</h2>{"".join(rows)}<div class="domain wide"><span>on</span>'
        f"{_domain(problem.domain)}{_bounds(problem)}</div>{table}</section>"
    )


def _domain(domain: Domain) -> str:
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if isinstance(space, Box):
        ends = zip(domain.names, domain.bounds, strict=True)
        written = r",\ \ ".join(rf"{symbol(name)} \in ({low:.6g},\, {high:.6g})" for name, (low, high) in ends)
        return as_svg(written, repr(domain))
    return f"<code>{escape(repr(domain))}</code>"


def _bounds(problem: Problem) -> str:
    ends = [
        f"{'' if low is None else f'{low:g} ≤ '}{name}{'' if high is None else f' ≤ {high:g}'}"
        for name, (low, high) in problem.bounds.items()
    ]
    return f"<span>with {escape(', '.join(ends))}</span>" if ends else ""


def _place(condition: Condition) -> str:
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


def _found(solution: Solution) -> str:
    """Parameters with intervals where they were found, given ones, and the residual of every term."""
    parts = []
    found: Mapping[str, Any] = getattr(solution, "parameters", None) or {}
    if found:
        rows = [(escape(greek(name)), *_interval(value)) for name, value in found.items()]
        parts.append("<h3>Found</h3>" + _table(("parameter", "value", "95 % interval"), rows))
    given = [(escape(greek(k)), f"{v:.10g}") for k, v in solution.stated.parameters.items() if k not in found]
    if given:
        parts.append(_table(("parameter", "value"), given))
    names = dict.fromkeys([*solution.losses, *solution.held_out])
    tables = (solution.losses, solution.integrals, solution.held_out)
    residuals = [(escape(name), *(_number(table.get(name)) for table in tables)) for name in names]
    heads = ("term", "mean square of the residual", "its integral", "relative, on fresh points")
    parts.append(_table(heads, residuals) if residuals else "")
    return f'<section><h2 id="numbers">Parameters and residuals</h2>{"".join(parts)}</section>'


def _interval(value: Any) -> tuple[str, str]:
    """A parameter that was found, with its interval where it has one."""
    ends = getattr(value, "interval", None)
    middle = getattr(value, "value", value)
    return f"{float(middle):.8g}", "" if ends is None else f"{float(ends[0]):.8g} … {float(ends[1]):.8g}"


def _passes(solution: Solution) -> str:
    passes: Sequence[Any] = getattr(solution.story, "passes", ())
    table = ""
    if passes and all(is_dataclass(one) for one in passes):
        names = [one.name for one in fields(passes[0])]
        rows = [(str(k), *(_number(getattr(one, name)) for name in names)) for k, one in enumerate(passes, start=1)]
        table = _table(("pass", *names), rows)
    told = [line for line in solution.story.lines() if not (table and line.startswith("pass "))]
    listed = "".join(f"<li>{escape(line)}</li>" for line in told)
    total = f"{solution.seconds:.2f} s altogether"
    spent = sum(float(getattr(one, "seconds", 0.0)) for one in passes)
    timing = f"{total}, {spent:.2f} s of it in the passes" if spent else total
    return (
        f'<section><h2 id="passes">Passes and time</h2><p>{escape(str(solution.method))}</p>{table}'
        f"<p>{escape(timing)}.</p>{f'<ul>{listed}</ul>' if listed else ''}</section>"
    )


def _made(solution: Solution, command: str) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    how = command or f"rp.solve(problem, method={solution.method.name!r}, …) in Python"
    listed = [f"rannpde {_version('rannpde')}", f"Python {platform.python_version()}"]
    listed += [f"{name} {_version(name)}" for name in LIBRARIES]
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


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if isfinite(value) else "–"
    return "" if value is None else escape(str(value))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML; the caller escapes what is text."""
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return _wide(f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", f"table of {head[0]}s")


def _wide(inner: str, label: str) -> str:
    """What may be wider than a phone scrolls in a box of its own."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}">{inner}</div>'


# ---------------------------------------------------------------------------------------------------- pictures


def _pictures(solution: Solution) -> str:
    timed = isinstance(solution.stated.domain, SpaceTime)
    count = SLICES if not timed else PROFILES if solution.dim == 2 else MAPS
    moving = films(solution, count)
    shown = [_film(solution, film, number) for number, film in enumerate(moving)]
    if not moving:
        panels = _panels(solution, still(solution.stated.domain), "still")
        shown.append(f'<div class="panels">{"".join(_framed(name, still_of(one)) for name, one in panels)}</div>')
    return f'<section><h2 id="pictures">Pictures</h2>{"".join(shown)}</section>'


def _film(solution: Solution, film: Film, number: int) -> str:
    panels = _panels(solution, film, f"film{number}")
    if film.line is not None:  # space and time in one map, over which a line runs
        whole = still(film.domain, _last(solution))
        panels += _panels(solution, whole, f"whole{number}", film.positions)
    drawn = [one for _, one in panels]
    labels = [f"{greek(film.coordinate)} = {at:.4g}" for at in film.positions]
    frames = [sum((one.frames[k] for one in drawn), ()) for k in range(len(labels))]
    data = {"targets": [target for one in drawn for target in one.targets], "frames": frames, "labels": labels}
    inside = json.dumps(data).replace("</", "<\\/")
    rest = "" if not film.fixed else "".join(f", at {film.domain.names[k]} = {v:.4g}" for k, v in film.fixed)
    return (
        f'<div class="film"><div class="panels">{"".join(_framed(name, one) for name, one in panels)}</div>'
        f'<div class="controls"><button type="button">Play</button><input type="range" min="0" step="1" '
        f'max="{len(labels) - 1}" value="{len(labels) // 2}" aria-label="{escape(film.coordinate)}">'
        f"<output>{escape(labels[0])}</output></div>{f'<p class=quiet>Across{rest}.</p>' if rest else ''}"
        f'<script type="application/json">{inside}</script></div>'
    )


def _panels(solution: Solution, film: Film, key: str, levels: Array | None = None) -> list[tuple[str, Drawn]]:
    """One panel for every field: its name and what is drawn; ``levels`` as in ``map_panel``."""
    function, exact = solution.function, solution.stated.exact_solution
    names = film.domain.names
    if film.line is not None:
        values = film.profiles(function)
        wanted = None if exact is None else film.profiles(exact)
        return [
            (
                name + ("" if wanted is None else " (dotted: exact)"),
                profile_panel(
                    f"{key}-{k}",
                    film.across,
                    values[:, :, k],
                    None if wanted is None else wanted[:, :, k],
                    (names[film.line], name),
                ),
            )
            for k, name in enumerate(solution.fields)
        ]
    assert film.plane is not None
    views = film.views(GRID)
    axes = names[film.plane[0]], names[film.plane[1]]
    found = [_on(view, function, len(solution.fields)) for view in views]
    drawn = []
    for k, name in enumerate(solution.fields):
        maps = [one[:, :, k] for one in found]
        scale = scale_of(np.concatenate([one.ravel() for one in maps]), Panel(name, component(function, k)))
        drawn.append((name, map_panel(f"{key}-{k}", views, maps, scale, axes, f"map of {name}", levels)))
    return drawn


def _on(view: Any, function: Any, count: int) -> Array:
    """Values (G, G, fields) on a plane, NaN outside: one call for all fields."""
    values = np.full((len(view.points), count), np.nan)
    if view.known.any():
        values[view.known] = function(view.points[view.known])
    return values.reshape(len(view.up), len(view.across), count)


def _residuals(solution: Solution) -> str:
    """Where the equations are satisfied least: the logarithm of what is left of each."""
    problem, film = solution.stated, still(solution.stated.domain, _last(solution))
    panels = []
    for k, name in enumerate(problem.equations):
        panel = logarithm(
            name, lambda points: np.stack(list(problem.residual(solution.function, points).values()), 1), k
        )
        if film.line is not None:
            rows = film.profiles(lambda points, panel=panel: panel.values(points)[:, None])[:, :, 0]  # type: ignore[misc]
            drawn = profile_panel(f"residual-{k}", film.across, rows, None, (film.domain.names[film.line], "log10"))
        else:
            assert film.plane is not None
            views = film.views(GRID)
            maps = [view.evaluate(panel.values) for view in views]
            axes = film.domain.names[film.plane[0]], film.domain.names[film.plane[1]]
            scale = scale_of(maps[0], panel)
            drawn = map_panel(f"residual-{k}", views, maps, scale, axes, f"map of the residual of {name}")
        panels.append(_framed(f"log₁₀ |residual of {name}|", still_of(drawn)))
    where = "".join(f" at {film.domain.names[axis]} = {value:.4g}" for axis, value in film.fixed)
    told = f'<p class="quiet">What is left of each equation{escape(where)}: left side minus right side.</p>'
    return f'<section><h2 id="residuals">Residual map</h2>{told}<div class="panels">{"".join(panels)}</div></section>'


def _last(solution: Solution) -> float | None:
    """The last time that was reached, where a march ended early."""
    known = getattr(solution.story, "known_until", None)
    return None if known is None else float(known)


def _framed(name: str, drawn: Drawn) -> str:
    return f"<figure><figcaption>{escape(greek(name))}</figcaption>{drawn.svg}</figure>"


def _figure(solution: Solution) -> str:
    """The figure of ``solution.plot()``, which has streamlines and errors too; open where the fields are a vector."""
    buffer = io.BytesIO()
    plot_solution(solution).savefig(buffer, format="png", dpi=110)
    address = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<section><h2 id="figure">Figure</h2><details{" open" if solution.vector else ""}>'
        "<summary>as <code>solution.plot()</code> draws it</summary>"
        + _wide(f'<img alt="{escape(solution.title)}" src="data:image/png;base64,{address}">', "figure")
        + "</details></section>"
    )
