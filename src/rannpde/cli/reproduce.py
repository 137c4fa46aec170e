"""Commands that run studies: ``reproduce``, ``study``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rannpde.cli.answered import answered
from rannpde.errors import reject, require

if TYPE_CHECKING:
    from rannpde.studies.show.chapter import Chapter

ReproductionFolder = Annotated[Path, typer.Option("--out", "-o", help="Folder for records, figures and report.html.")]
Workers = Annotated[
    int,
    typer.Option("--workers", "-w", help="Cells run at once, each in its own process; 0: as many as the cores allow."),
]
Threads = Annotated[int, typer.Option("--threads", help="BLAS threads of each cell, whatever the number of workers.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address of a Dask scheduler, like tcp://host:8786, whose workers run the cells."),
]

CELLS_KEPT = "finished cells are kept, run the same command to go on"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(reproduce)
    app.command()(study)


def _chapters() -> list[str]:
    """For the shell to complete."""
    from rannpde.studies.paper.catalogue import CHAPTERS

    return list(CHAPTERS)


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Studies to run; all when none is given.", autocompletion=_chapters)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="All figures in about 3 minutes on 2 cores.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Widths up to 8,192: hours.")] = False,
    out: ReproductionFolder = Path("results"),
    workers: Workers = 0,
    threads: Threads = 1,
    scheduler: Scheduler = None,
) -> None:
    """Run the paper's experiments, and write a report.

    Finished cells are kept, so that an interrupted run goes on where it stopped.
    """
    from rannpde.studies.paper.catalogue import chapters
    from rannpde.studies.show.chapter import Size

    with answered(CELLS_KEPT):
        if quick and full:
            reject("--quick", "given together with --full", "given alone")
        size: Size = "quick" if quick else "full" if full else "default"
        heading = f"Random neural networks for PDEs: the paper's experiments ({size} size)"
        _produce(chapters(names, size), out / size, heading, workers, threads, scheduler)


def study(
    file: Annotated[Path, typer.Argument(help="A study as a TOML file; see docs/experiments.md.")],
    out: ReproductionFolder = Path("results"),
    workers: Workers = 0,
    threads: Threads = 1,
    scheduler: Scheduler = None,
) -> None:
    """Run a study of your own."""
    from rannpde.studies.show.chapter import plain_chapter
    from rannpde.studies.toml import read_study

    with answered(CELLS_KEPT):
        mine = read_study(file)
        _produce([plain_chapter(mine)], out / mine.name, mine.title or mine.name, workers, threads, scheduler)


def _produce(
    chapters: Sequence[Chapter], folder: Path, heading: str, workers: int, threads: int, scheduler: str | None
) -> None:
    from rannpde.studies.reproduce import reproduce as produce
    from rannpde.studies.reproduce import show
    from rannpde.studies.run.environment import cores

    if scheduler is not None:
        require(workers == 0, "--workers", workers, "left out with --scheduler, whose workers run the cells")
    console = Console()
    product = produce(
        chapters,
        folder,
        heading=heading,
        command=shlex.join(["rannpde", *sys.argv[1:]]),
        workers=workers or max(1, cores() // max(threads, 1)),
        threads=threads,
        scheduler=scheduler,
        console=console,
    )
    show(product, console)
    if product.failures:
        raise typer.Exit(1)
