"""Moving pictures of solutions as GIF files: profiles or maps over time, or slices across a solid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rannpde.errors import InputError, positive_integer, positive_number
from rannpde.io import PathLike
from rannpde.plotting.figures import canvas, component, heading
from rannpde.plotting.film import Film, films
from rannpde.plotting.style import COLOURS, style
from rannpde.plotting.typeset import inline_equation, symbol
from rannpde.plotting.view import SYMBOL_FONT_SIZE, Panel, scale_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rannpde.pde.solution import Solution

ANIMATION_GRID = 100
"""Points of a map along each axis."""


def animate(solution: Solution, path: PathLike, frames: int = 60, seconds: float = 5.0) -> Path:
    """Write a GIF of ``frames`` pictures that takes ``seconds`` and begins again; gives back its path."""
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise InputError(f"path is {str(path)!r}, but must end in .gif; for a page with a slider use to_html")
    frames, seconds = positive_integer("frames", frames), positive_number("seconds", seconds)
    moving = films(solution, frames)
    if not moving:
        raise InputError(
            "the solution has no time and fewer than three coordinates, so that nothing moves; use plot instead"
        )
    with style():
        figure, draw = (_profiles if moving[0].line is not None else _maps)(solution, moving[0])
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not again for each picture
        path.parent.mkdir(parents=True, exist_ok=True)
        FuncAnimation(figure, draw, frames=frames).save(
            path, writer=PillowWriter(fps=max(1, round(frames / seconds))), dpi=100
        )
    return path


def _profiles(solution: Solution, film: Film) -> tuple[Figure, Callable[[int], None]]:
    values, exact = film.profiles(solution.function), solution.stated.exact_solution
    wanted = None if exact is None else film.profiles(exact)
    figure, axes = canvas(1, len(solution.fields), width=5.2, height=3.4)
    assert film.line is not None
    lines = []
    for k, name in enumerate(solution.fields):
        ax = axes[0, k]
        lines.append(ax.plot(film.across, values[0, :, k], color=COLOURS[0], linewidth=2)[0])
        if wanted is not None:
            lines.append(ax.plot(film.across, wanted[0, :, k], "k:", linewidth=1)[0])
        known = values[:, :, k][np.isfinite(values[:, :, k])]
        room = 0.06 * float(np.ptp(known)) or 1.0
        ax.set(ylim=(known.min() - room, known.max() + room), xlim=(film.across[0], film.across[-1]))
        ax.set_xlabel(inline_equation(film.domain.names[film.line]), fontsize=SYMBOL_FONT_SIZE)
        ax.set_ylabel(inline_equation(name), fontsize=SYMBOL_FONT_SIZE)
    title = _clock(solution, film, figure)

    def draw(number: int) -> None:
        each = 1 if wanted is None else 2
        for k in range(len(solution.fields)):
            lines[each * k].set_ydata(values[number, :, k])
            if wanted is not None:
                lines[each * k + 1].set_ydata(wanted[number, :, k])
        title(number)

    return figure, draw


def _maps(solution: Solution, film: Film) -> tuple[Figure, Callable[[int], None]]:
    views = film.views(ANIMATION_GRID)
    drawn = []
    for k, name in enumerate(solution.fields):
        panel = Panel(inline_equation(name), component(solution.function, k))
        maps = [view.evaluate(panel.values) for view in views]
        drawn.append((panel, maps, scale_of(np.concatenate([one.ravel() for one in maps]), panel)))
    figure, axes = canvas(1, len(drawn), *views[0].size)
    images = []
    for ax, (panel, maps, scale) in zip(axes[0], drawn, strict=True):
        views[0].draw(figure, ax, panel, maps[0], scale)
        ax.set_title(panel.label, fontsize=SYMBOL_FONT_SIZE)
        images.append(ax.collections[0])
    title = _clock(solution, film, figure)

    def draw(number: int) -> None:
        for image, (_, maps, _) in zip(images, drawn, strict=True):
            image.set_array(maps[number])
        title(number)

    return figure, draw


def _clock(solution: Solution, film: Film, figure: Figure) -> Callable[[int], None]:
    """The heading, with the value of the coordinate that runs below it."""
    first = heading(solution, figure.get_figwidth()).splitlines()
    lines = [line for line in first if "error" not in line]

    def show(number: int) -> None:
        now = f"${symbol(film.coordinate)} = {film.positions[number]:.3f}$"
        figure.suptitle("\n".join([*lines, now]), fontsize=SYMBOL_FONT_SIZE)

    show(0)
    return show
