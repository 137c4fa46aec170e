"""``rannpde eigen``: parse, call, print; no mathematics."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rannpde.cli.answered import answered
from rannpde.cli.solve import conclude
from rannpde.progress import Course, bar_shown


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("eigen")(eigen_file)


def eigen_file(
    file: Annotated[Path, typer.Argument(help='A TOML file with eigenvalue = "lam", and a table [eigen].')],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the spectrum, report, picture and page.")] = (
        Path("out")
    ),
    count: Annotated[int | None, typer.Option(help="How many eigenvalues; overrides the file.")] = None,
    near: Annotated[str | None, typer.Option(help='Those nearest to a number, such as 2.5 or "0.2+0.1j".')] = None,
    which: Annotated[str | None, typer.Option(help="lowest, highest, lowest imaginary, …, smallest.")] = None,
    tol: Annotated[float | None, typer.Option(help="Relative error wanted; overrides the file.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Time allowed; the best result by then is written.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; overrides the file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Eigenvalues of a problem file with bounds, and a page to look at.

    Beside the page <name>.html there are <name>.npz (rp.load reads it), <name>.txt and <name>.png. Exit code 3 means
    that the wanted error was not reached, 2 that the input is wrong, 1 that a part could not be written.
    """
    from rannpde.io import prepare_folder
    from rannpde.pde.budget import deferred_interrupts
    from rannpde.pde.problem.toml import in_file, read_problem
    from rannpde.pde.solution import ConvergenceWarning
    from rannpde.pde.spectrum.eigen import eigen, eigen_settings

    console = Console(stderr=True, highlight=False)
    with deferred_interrupts():
        with answered("nothing was written"):
            problem, table = read_problem(file, "eigen")
            with in_file(file, "eigen"):
                settings = eigen_settings(table)
            names = ("count", "near", "which", "tol", "seconds", "rng")
            given = dict(zip(names, (count, near, which, tol, seconds, seed), strict=True))
            settings |= eigen_settings({key: value for key, value in given.items() if value is not None})
            folder = prepare_folder(out)
            course = Course(None, settings.get("tol", 1e-8), settings.get("seconds"))
            with bar_shown(not quiet, course) as progress, warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the report and the exit code say it
                spectrum = eigen(problem, progress=progress, **settings)
        conclude("eigen", file, given, spectrum, folder, console, quiet)
