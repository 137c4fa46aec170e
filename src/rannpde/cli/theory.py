"""The command ``theory``: the table of constants for one choice, and its figures."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rannpde.cli.answered import answered

if TYPE_CHECKING:
    from rannpde.domains import Domain
    from rannpde.theory import Estimator


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(theory)


def theory(
    activation: Annotated[str, typer.Option(help="Name of the activation.")] = "tanh",
    space_dim: Annotated[int, typer.Option("--space-dim", "-d", help="Dimension d of space.")] = 1,
    time_order: Annotated[int, typer.Option("--time-order", "-p", help="p of the norm H^p_t H^q_x.")] = 0,
    space_order: Annotated[int, typer.Option("--space-order", "-q", help="q of the norm H^p_t H^q_x.")] = 0,
    time_decay: Annotated[float, typer.Option(help="λ_τ > 1/2 of the law π.")] = 0.75,
    space_decay: Annotated[float | None, typer.Option(help="λ_a > d/2 of π; d/2 + 1/4 unless given.")] = None,
    order: Annotated[int | None, typer.Option(help="Order of ψ; the least with a finite bound unless given.")] = None,
    duration: Annotated[float, typer.Option(help="T: the domain is (0, T) × (-side, side)^d.")] = 1.0,
    side: Annotated[float, typer.Option(help="Half the side of the cube in space.")] = 1.0,
    spread: Annotated[float, typer.Option(help="Standard deviation of the Gaussian u at the origin.")] = 1.0,
    error: Annotated[float, typer.Option(help="Relative error for the width needed.")] = 1e-2,
    delta: Annotated[float, typer.Option(help="Probability of missing it.")] = 0.05,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figures; none if left out.")] = None,
) -> None:
    """Print the constants of the theory, draw its figures.

    For u = exp(-|z|²/2s²): every constant as the paper prints it, and corrected.
    """
    from rannpde.domains import SpaceTime
    from rannpde.io import prepare_folder
    from rannpde.network.laws import HeavyTailed
    from rannpde.theory import GaussianMixture, estimator
    from rannpde.theory.table import constants_table, order_of_finite_bound

    console = Console()
    with answered("nothing was written"):
        folder = None if out is None else prepare_folder(out)
        domain = SpaceTime(t=(0.0, duration), x=[(-side, side)] * space_dim)
        law = HeavyTailed(time_decay, 0.5 * space_dim + 0.25 if space_decay is None else space_decay)
        target = GaussianMixture.gaussian(space_dim + 1, width=spread)
        if order is None:
            order = order_of_finite_bound(activation, law, space_dim + 1, time_order, space_order)
        choice = estimator(
            target, law, activation=activation, time_order=time_order, space_order=space_order, order=order
        )
        table = Table("constant", "source", "printed", "corrected", "note", title=f"{activation}, {law}, {domain}")
        for row in constants_table(choice, domain, error=error, delta=delta):
            table.add_row(row.name, row.source, _number(row.printed), _number(row.corrected), row.note)
        console.print(table)
        if folder is not None:
            _draw(choice, domain, folder, console)


def _draw(choice: Estimator, domain: Domain, folder: Path, console: Console) -> None:
    from rannpde.io import write_whole
    from rannpde.studies.show.figures import render_figure
    from rannpde.studies.show.theory_figures import theory_drawings

    for drawing in theory_drawings(choice, domain):
        path = write_whole(folder / f"theory-{drawing.name}.png", render_figure(drawing, ["png"])["png"])
        console.print(f"{path}: {drawing.caption}", markup=False, highlight=False, soft_wrap=True)


def _number(value: float) -> str:
    return "" if isnan(value) else f"{value:.6g}"
