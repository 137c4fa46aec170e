"""Pictures of a page: films with their slider, residual maps, and the figure of ``solution.plot()``."""

from __future__ import annotations

import base64
import io
import json
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.pde.inverse.identified import Identified
from rannpde.plotting.figures import component, logarithm, save_laid_out
from rannpde.plotting.film import Film, films, still
from rannpde.plotting.svg import Drawn, first_frame, greek, map_panel, profile_panel
from rannpde.plotting.view import Panel, last_time, scale_of

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

PAGE_GRID = 72
"""Points of a map along each axis: the browser smooths between them."""
PROFILES, MAPS, SLICES = 49, 25, 15
"""Pictures of a film of profiles, of maps, which take more room, and of slices, whose outlines take time."""


def pictures(solution: Solution) -> str:
    """Every field: as films where something can move, as stills elsewhere."""
    timed = isinstance(solution.stated.domain, SpaceTime)
    count = SLICES if not timed else PROFILES if solution.dim == 2 else MAPS
    moving = films(solution, count)
    shown = [_film(solution, film, number) for number, film in enumerate(moving)]
    if not moving:
        panels = _panels(solution, still(solution.stated.domain), "still")
        shown.append(f'<div class="panels">{"".join(_framed(name, first_frame(one)) for name, one in panels)}</div>')
    return f'<section><h2 id="pictures">Pictures</h2>{"".join(shown)}</section>'


def _film(solution: Solution, film: Film, number: int) -> str:
    panels = _panels(solution, film, f"film{number}")
    if film.line is not None:  # space and time in one map, over which a line runs
        whole = still(film.domain, last_time(solution))
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
    views = film.views(PAGE_GRID)
    axes = names[film.plane[0]], names[film.plane[1]]
    fields = [_on(view, function, len(solution.fields)) for view in views]
    drawn = []
    for k, name in enumerate(solution.fields):
        maps = [one[:, :, k] for one in fields]
        scale = scale_of(np.concatenate([one.ravel() for one in maps]), Panel(name, component(function, k)))
        drawn.append((name, map_panel(f"{key}-{k}", views, maps, scale, axes, f"map of {name}", levels)))
    return drawn


def _on(view: Any, function: Any, count: int) -> Array:
    """Values (G, G, fields) on a plane, NaN outside: one call for all fields."""
    values = np.full((len(view.points), count), np.nan)
    if view.known.any():
        values[view.known] = function(view.points[view.known])
    return values.reshape(len(view.up), len(view.across), count)


def residuals(solution: Solution) -> str:
    """Where the equations are satisfied least: the logarithm of what is left of each."""
    problem, film = solution.stated, still(solution.stated.domain, last_time(solution))
    panels = []
    for k, name in enumerate(problem.equations):
        panel = logarithm(name, lambda points: np.stack(list(solution.residual(points).values()), 1), k)
        if film.line is not None:
            rows = film.profiles(lambda points, panel=panel: panel.values(points)[:, None])[:, :, 0]  # type: ignore[misc]
            drawn = profile_panel(f"residual-{k}", film.across, rows, None, (film.domain.names[film.line], "log₁₀"))
        else:
            assert film.plane is not None
            views = film.views(PAGE_GRID)
            maps = [view.evaluate(panel.values) for view in views]
            axes = film.domain.names[film.plane[0]], film.domain.names[film.plane[1]]
            scale = scale_of(maps[0], panel)
            drawn = map_panel(f"residual-{k}", views, maps, scale, axes, f"map of the residual of {name}")
        panels.append(_framed(f"log₁₀ |residual of {name}|", first_frame(drawn)))
    where = "".join(f" at {film.domain.names[axis]} = {value:.4g}" for axis, value in film.fixed)
    told = f'<p class="quiet">What is left of each equation{escape(where)}: left side minus right side.</p>'
    return f'<section><h2 id="residuals">Residual map</h2>{told}<div class="panels">{"".join(panels)}</div></section>'


def _framed(name: str, drawn: Drawn) -> str:
    return f"<figure><figcaption>{escape(greek(name))}</figcaption>{drawn.svg}</figure>"


def figure(solution: Solution) -> str:
    """The figure of ``solution.plot()``; open where it has what no panel has: streamlines, sensors, intervals."""
    opened = " open" if solution.vector or isinstance(solution, Identified) else ""
    buffer = io.BytesIO()
    save_laid_out(solution.plot(), buffer, dpi=110)
    address = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<section><h2 id="figure">Figure</h2><details{opened}>'
        "<summary>as <code>solution.plot()</code> draws it</summary>"
        + wide(f'<img alt="{escape(solution.title)}" src="data:image/png;base64,{address}">', "figure")
        + "</details></section>"
    )


def wide(inner: str, label: str) -> str:
    """HTML that may be wider than a phone, in a box that scrolls."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}">{inner}</div>'
