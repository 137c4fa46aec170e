"""Pictures of solutions: profiles and a space-time map in 1-D, panels in 2-D, slices beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.tri import Triangulation

from rannpde.arrays import Array
from rannpde.domains import Domain, SpaceTime
from rannpde.domains.export.simplices import filled
from rannpde.io import PathLike
from rannpde.pde.statement.expression import Jet
from rannpde.plotting.style import COLOURS, ONE_SIGN, SIZES, style
from rannpde.plotting.typeset import inline_equation, length, symbol, typeset_equations
from rannpde.plotting.view import SYMBOL_FONT_SIZE, Panel, View, informative_cut, last_time, scale_of, span

if TYPE_CHECKING:
    from rannpde.pde.ensembles import Ensemble
    from rannpde.pde.solution import Solution

_LINE = 400
_SNAPSHOTS = 5
HEADING = 11
"""Size of the letters of a heading."""
PANEL_MARGIN = 0.07
"""Inches around panels."""
DEFORMED_CELLS, DEFORMED_SHARE = 64, 0.1
"""Triangles along the longest side of a deformed shape; the largest displacement in a picture, over that side."""
EQUATIONS = 3
"""Most equations that a heading shows."""


def plot_solution(solution: Solution, path: PathLike | None = None) -> Figure:
    """The picture that suits the dimension; one row per field; written to ``path`` if given."""
    problem = solution.stated
    space_dim = problem.domain.dim - isinstance(problem.domain, SpaceTime)
    draw = {(1, False): _interval, (1, True): _space_time}.get(
        (space_dim, isinstance(problem.domain, SpaceTime)), _planes
    )
    with style():
        figure = draw(solution, problem.domain)
        figure.suptitle(heading(solution, figure.get_figwidth()), fontsize=HEADING)
        return finished(figure, path)


def plot_ensemble(ensemble: Ensemble, path: PathLike | None = None) -> Figure:
    """Mean and spread of every field over the first two coordinates, or over the one, at the last time."""
    first = ensemble.members[0]
    with style():
        return finished(_ensemble(ensemble, first.stated.domain), path)


def _ensemble(ensemble: Ensemble, domain: Domain) -> Figure:
    first = ensemble.members[0]
    fields = first.fields
    figure, axes = canvas(len(fields), 2, width=4.6, height=3.2)
    view = first_view(domain)
    shown: list[tuple[Callable[[Array], Array], str]] = [(ensemble, "mean"), (ensemble.spread, "spread")]
    for row, name in enumerate(fields):
        for column, (function, label) in enumerate(shown):
            ax = axes[row, column]
            if view is None:
                line = span(domain, 0, _LINE)
                ax.plot(line, np.reshape(function(line[:, None]), (_LINE, -1))[:, row])
                ax.set(xlabel=inline_equation(domain.names[0]), ylabel=f"{label} of {inline_equation(name)}")
                continue
            title = f"{label} of {inline_equation(name)}"
            panel = logarithm(title, function, row) if column else Panel(title, component(function, row))
            draw_map(figure, ax, view, panel)
    drawn = f"{len(ensemble.members)} independent draws"
    figure.suptitle(f"{first.stated.name or 'Mean and spread'}: {drawn}", fontsize=HEADING)
    return figure


def first_view(domain: Domain) -> View | None:
    """The first two coordinates, at the last time if there is time and more than one dimension; none in 1-D."""
    if domain.dim == 1:
        return None
    if not isinstance(domain, SpaceTime):
        return View.of(domain, (0, 1))
    return View.of(domain, (1, 0)) if domain.dim == 2 else View.of(domain, (1, 2), {0: domain.time[1]})


def heading(solution: Solution, width: float) -> str:
    """Name, equations as mathematics where they fit into ``width`` inches, errors, and whether it converged."""
    problem = solution.stated
    written = list(typeset_equations(problem).values())
    fits = [(length(one, HEADING) or np.inf) < 0.95 * width for one in written]
    lines = [problem.name] if problem.name else []
    if all(fits) and len(written) <= EQUATIONS:
        lines += _joined([f"${one}$" for one in written], width)
    elif not lines:
        lines = [", ".join(map(inline_equation, solution.fields))]
    errors = ", ".join(f"{inline_equation(name)} {error:.1e}" for name, error in solution.errors().items())
    if errors:
        lines.append(f"relative $L^2$ error: {errors}")
    return "\n".join([*lines, *([] if solution.converged else ["DID NOT CONVERGE"])])


def _joined(written: list[str], width: float) -> list[str]:
    """Formulas side by side as long as they fit."""
    lines = [written[0]]
    for formula in written[1:]:
        longer = f"{lines[-1]},    {formula}"
        if (length(longer.replace("$", ""), HEADING) or np.inf) + 0.4 < 0.95 * width:
            lines[-1] = longer
        else:
            lines.append(formula)
    return lines


def _interval(solution: Solution, domain: Domain) -> Figure:
    """Stationary problems on an interval: each field, with the exact solution and the error below it."""
    exact = solution.stated.exact_solution
    line = span(domain, 0, _LINE)[:, None]
    values = solution.function(line)
    rows = 1 if exact is None else 2
    figure, axes = canvas(rows, len(solution.fields), width=5.0, height=2.6)
    for column, name in enumerate(solution.fields):
        axes[0, column].plot(line[:, 0], values[:, column], label="solution")
        axes[0, column].set_ylabel(inline_equation(name), fontsize=SYMBOL_FONT_SIZE)
        if exact is not None:
            exact_values = exact(line)[:, column]
            axes[0, column].plot(line[:, 0], exact_values, "k:", label="exact")
            axes[0, column].legend()
            axes[1, column].semilogy(line[:, 0], np.maximum(np.abs(values[:, column] - exact_values), 1e-17))
            axes[1, column].set_ylabel(f"error of {inline_equation(name)}")
        axes[-1, column].set_xlabel(inline_equation(domain.names[0]), fontsize=SYMBOL_FONT_SIZE)
    return figure


def _space_time(solution: Solution, domain: Domain) -> Figure:
    """One space dimension and time: snapshots, the space-time map, and the map of the error where it is known."""
    exact = solution.stated.exact_solution
    left, right = domain.bounds[1]
    figure, axes = canvas(len(solution.fields), 2 if exact is None else 3, width=4.2, height=3.2)
    line = np.linspace(left, right, _LINE)
    view = View.of(domain, (1, 0))
    for row, name in enumerate(solution.fields):
        for shade, time in enumerate(_moments(solution, domain, _SNAPSHOTS)):
            points = np.column_stack([np.full(_LINE, time), line])
            label = f"$t = {time:.3g}$"
            axes[row, 0].plot(line, solution.function(points)[:, row], color=COLOURS[shade], label=label)
            if exact is not None:
                axes[row, 0].plot(line, exact(points)[:, row], "k:", linewidth=1)
        axes[row, 0].legend()
        axes[row, 0].set_xlabel(inline_equation(domain.names[1]), fontsize=SYMBOL_FONT_SIZE)
        axes[row, 0].set_ylabel(inline_equation(name), fontsize=SYMBOL_FONT_SIZE)
        panels = [_fields(solution)[row], *_checks(solution, timed=True)[row : row + 1]]
        for column, panel in enumerate(panels, start=1):
            draw_map(figure, axes[row, column], view, panel)
    return figure


def _moments(solution: Solution, domain: Domain, count: int) -> Array:
    """Times (count,) from the start to the end, or to where the time integration ended."""
    (start, end), known = domain.bounds[0], last_time(solution)
    return np.linspace(start, end if known is None else known, count)


def _planes(solution: Solution, domain: Domain) -> Figure:
    """Two space dimensions or more: panels in the first two, at three times if there is time, the rest cut.

    In three dimensions without time there are slices across each of the axes.
    """
    timed = isinstance(domain, SpaceTime)
    fields, checks = _fields(solution), _checks(solution, timed)
    rest = range(3 if timed or domain.dim == 3 else 2, domain.dim)
    cut = informative_cut(domain, solution.function, rest) if rest else {}
    if timed:
        views = [View.of(domain, (1, 2), {**cut, 0: float(time)}) for time in _moments(solution, domain, 3)]
        titles = [f", $t = {view.middle[0]:.3g}$" for view in views]
    elif domain.dim == 3:
        planes = zip(((0, 1), (0, 2), (1, 2)), (2, 1, 0), strict=True)
        views = [View.of(domain, plane, informative_cut(domain, solution.function, [k])) for plane, k in planes]
        across = zip(views, (2, 1, 0), strict=True)
        titles = [f", ${symbol(domain.names[k])} = {view.middle[k]:.3g}$" for view, k in across]
    else:
        return _one_plane(View.of(domain, (0, 1), cut), fields, checks)
    panels = fields + checks
    figure, axes = canvas(len(panels), len(views), *views[0].size)
    for row, panel in zip(axes, panels, strict=True):
        values = [view.evaluate(panel.values) for view in views]
        limits = scale_of(np.concatenate([one.ravel() for one in values]), panel)  # one scale for the whole row
        for ax, view, title, one in zip(row, views, titles, values, strict=True):
            view.draw(figure, ax, panel, one, limits)
            ax.set_title(panel.label + title, fontsize=SYMBOL_FONT_SIZE - 1)
    _name_the_rest(figure, domain, cut)
    return figure


def _one_plane(view: View, fields: list[Panel], checks: list[Panel]) -> Figure:
    """Fields on the left, their errors or the residuals on the right."""
    columns = [fields, checks] if checks else [fields]
    rows = max(len(column) for column in columns)
    figure, axes = canvas(rows, len(columns), *view.size)
    for number, column in enumerate(columns):
        for row in range(rows):
            ax = axes[row, number]
            if row >= len(column):
                ax.remove()
                continue
            draw_map(figure, ax, view, column[row])
    _name_the_rest(figure, view.domain, {k: float(view.middle[k]) for k in range(2, view.domain.dim)})
    return figure


def _name_the_rest(figure: Figure, domain: Domain, cut: Mapping[int, float]) -> None:
    if cut:
        cuts = [f"${symbol(domain.names[axis])} = {value:.3g}$" for axis, value in cut.items()]
        figure.supxlabel(f"slice at {', '.join(cuts)}", fontsize=8)


def _fields(solution: Solution) -> list[Panel]:
    """Panels of every field and, if some are a vector, of its length with its direction."""
    function, vector = solution.function, solution.vector
    panels = [Panel(inline_equation(name), component(function, k)) for k, name in enumerate(solution.fields)]
    if not vector:
        return panels
    size = len(vector)
    label = f"$|({', '.join(map(symbol, vector))})|$"
    streams = any(_is_divergence(term.expression.jets, vector) for term in solution.stated.terms)
    speed = lambda points: np.linalg.norm(function(points)[:, :size], axis=1)  # noqa: E731
    arrows = lambda points: function(points)[:, :size]  # noqa: E731
    return [Panel(label, speed, ONE_SIGN, arrows, streams, deformed=_is_displacement(solution)), *panels]


def _is_displacement(solution: Solution) -> bool:
    """Whether the fields are the two components of a vector in a stationary plane problem, as in plane elasticity.

    Every equation must contain second derivatives of both.
    """
    problem, vector = solution.stated, solution.vector
    alone = solution.fields == vector and len(vector) == 2 == problem.domain.dim
    if not alone or isinstance(problem.domain, SpaceTime):
        return False
    return all({jet.field for jet in one.jets if jet.order == 2} == set(vector) for one in problem.expressions.values())


def draw_deformed(figure: Figure, axes: Axes, view: View, panel: Panel) -> None:
    """The domain deformed by a displacement, coloured by its length, over the outline of the domain.

    Displacements are enlarged so that the largest is a tenth of the domain; the title says by how much.
    """
    assert panel.arrows is not None
    points, triangles = filled(view.domain, DEFORMED_CELLS)
    moves = panel.arrows(points)
    largest = float(np.nanmax(np.linalg.norm(moves, axis=1), initial=0.0))
    extent = float(np.ptp(points, axis=0).max())
    factor = DEFORMED_SHARE * extent / largest if largest > 0 else 1.0
    factor = float(f"{factor:.1g}") if not 0.5 <= factor <= 2 else 1.0  # a number that can be read, true size if it can
    across, up = (points + factor * moves).T
    mesh = Triangulation(across, up, triangles)
    image = axes.tripcolor(mesh, panel.values(points), cmap=panel.colours, shading="gouraud", rasterized=True)
    figure.colorbar(image, ax=axes).outline.set_visible(False)
    for loop in view.loops or (_corners(view.domain),):
        axes.plot(*np.concatenate([loop, loop[:1]]).T, color="black", linewidth=0.8, linestyle=":")
    axes.set_aspect("equal")
    axes.set(xlabel=inline_equation(view.domain.names[0]), ylabel=inline_equation(view.domain.names[1]))
    axes.locator_params(nbins=5)
    axes.margins(0.05)
    shown = "" if factor == 1 else rf", shape drawn with $\times\,{factor:g}$"
    axes.set_title(panel.label + shown, fontsize=SYMBOL_FONT_SIZE - 1)


def _corners(domain: Domain) -> Array:
    (left, right), (low, high) = np.asarray(domain.bounds)
    return np.array([[left, low], [right, low], [right, high], [left, high]])


def _is_divergence(jets: tuple[Jet, ...], vector: tuple[str, ...]) -> bool:
    """Whether an equation contains one first derivative of each component only: then streamlines do not end inside."""
    return sorted(jet.field for jet in jets) == sorted(vector) and all(jet.order == 1 for jet in jets)


def _checks(solution: Solution, timed: bool) -> list[Panel]:
    """Errors of the fields where they are known, else the residuals of equations without time."""
    problem, function = solution.stated, solution.function
    exact = problem.exact_solution

    def residuals(points: Array) -> Array:
        return np.stack(list(solution.residual(points).values()), axis=1)

    if exact is not None:
        kind, names, judged = "error", solution.fields, lambda points: function(points) - exact(points)
    elif not timed and problem.domain.dim == 2:
        kind, names, judged = "residual", tuple(problem.equations), residuals
    else:
        return []
    return [
        logarithm(f"{kind} of {inline_equation(name) if kind == 'error' else name}", judged, number)
        for number, name in enumerate(names)
    ]


def component(function: Callable[[Array], Array], column: int) -> Callable[[Array], Array]:
    """One column of a function."""
    return lambda points: np.reshape(function(points), (len(points), -1))[:, column]


def logarithm(label: str, function: Callable[[Array], Array], column: int) -> Panel:
    """The logarithm of the size of one column of a function."""
    one = component(function, column)
    size = lambda points: np.log10(np.maximum(np.abs(one(points)), 1e-17))  # noqa: E731
    return Panel(f"$\\log_{{10}}$ {label}", size, SIZES, logarithm=True)


def draw_map(figure: Figure, axes: Axes, view: View, panel: Panel) -> None:
    """A panel over the plane of a view, cut along the boundary; a displacement as the shape that it makes."""
    if panel.deformed:
        draw_deformed(figure, axes, view, panel)
        return
    values = view.evaluate(panel.values)
    view.draw(figure, axes, panel, values, scale_of(values, panel))
    axes.set_aspect("auto" if isinstance(view.domain, SpaceTime) and view.plane == (1, 0) else "equal")
    axes.set_title(panel.label, fontsize=SYMBOL_FONT_SIZE - 1)


def canvas(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Array]:
    engine = ConstrainedLayoutEngine(h_pad=PANEL_MARGIN, w_pad=PANEL_MARGIN)
    figure = Figure(figsize=(width * columns, height * rows + 0.4), layout=engine)
    return figure, figure.subplots(rows, columns, squeeze=False)


def finished(figure: Figure, path: PathLike | None) -> Figure:
    """The figure laid out, and written to ``path`` if given.

    Panels of equal scales reach their final position only at the second layout; the first would cut off their labels.
    """
    _lay_out(figure)
    if path is not None:
        save_laid_out(figure, path, dpi=150)
    return figure


def save_laid_out(figure: Figure, target: PathLike | IO[bytes], dpi: float) -> None:
    """Write a figure as PNG, or as what the name of a file says: laid out once, not again for each drawing."""
    engine = figure.get_layout_engine()
    _lay_out(figure)
    figure.set_layout_engine("none")
    try:
        figure.savefig(target, dpi=dpi)
    finally:
        figure.set_layout_engine(engine)


def _lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
