"""``rannpde solve`` and ``rannpde examples``: parse, call, print; no mathematics."""

from __future__ import annotations

import shlex
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rannpde.cli.answered import answered

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution
    from rannpde.pde.spectrum.result import Spectrum

NOT_WRITTEN, NOT_CONVERGED = 1, 3
"""Exit codes beside 2, which wrong input has."""
PARTS = (".npz", ".txt", ".png", ".html")
"""The solution, its report, its picture and its page."""
SHARED = ("tol", "seconds", "rng")
"""Settings that every method has, which options of the command override."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("solve")(solve_file)
    app.command("examples")(list_examples)


def _methods() -> list[str]:
    """For the shell to complete."""
    from rannpde.pde.selection import METHODS

    return sorted(METHODS)


def _examples() -> list[str]:
    """For the shell to complete."""
    from rannpde.pde.problem.toml import examples

    return list(examples())


def solve_file(
    file: Annotated[
        Path, typer.Argument(help="A TOML file with equations, domain, conditions; see 'rannpde examples'.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the solution, report, picture and page.")] = (
        Path("out")
    ),
    tol: Annotated[float | None, typer.Option(help="Relative L² error wanted; overrides the file.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="trefftz, lines, flow, weak, cells, collocation, paths or polynomials, in place of the file's.",
            autocompletion=_methods,
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Time allowed; the best solution by then is written.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; overrides the file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Solve a problem file, and write a page to look at.

    Beside the page <name>.html there are <name>.npz (rp.load reads it), <name>.txt and <name>.png.
    Exit code 3 means that the wanted error was not reached, 2 that the input is wrong, 1 that a part could not be
    written where it belongs. Ctrl-C writes the best solution so far.
    """
    from rannpde.io import prepare_folder
    from rannpde.pde.budget import deferred_interrupts
    from rannpde.pde.problem.toml import in_file, read_problem
    from rannpde.pde.solution import ConvergenceWarning
    from rannpde.pde.solve import solve
    from rannpde.pde.solve_table import settings_from

    console = Console(stderr=True, highlight=False)
    with deferred_interrupts():
        with answered("nothing was written"):
            problem, table = read_problem(file)
            if method is not None:
                table = {
                    key: value for key, value in table.items() if key in (*SHARED, "at")
                }  # the other settings of the file are those of another method
            with in_file(file, "solve"):
                settings = settings_from(table)
            given = dict(zip((*SHARED, "method"), (tol, seconds, seed, method), strict=True))
            settings |= settings_from({key: value for key, value in given.items() if value is not None})
            folder = prepare_folder(out)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the report and the exit code say it
                solution = solve(problem, progress=not quiet, **settings)
        conclude("solve", file, given, solution, folder, console, quiet)


def conclude(
    name: str, file: Path, given: Mapping[str, object], solution: Solution | Spectrum, folder: Path, console: Console,
    quiet: bool,
) -> None:  # fmt: skip
    """Write the results of a command, print its report, and exit with the code that says how it ended."""
    options = {f"--{'seed' if key == 'rng' else key}": value for key, value in given.items() if value is not None}
    command = shlex.join(["rannpde", name, str(file), *(str(part) for pair in options.items() for part in pair)])
    written = write_parts(solution, folder / file.stem, console, command)
    if not quiet:
        typer.echo(solution.report())
        typer.echo(f"written: {', '.join(map(str, written))}")
    if not solution.converged:
        console.print(f"did not converge: {solution.reason}", markup=False, soft_wrap=True)
        raise typer.Exit(NOT_CONVERGED)
    if {path.suffix for path in written if path.parent == folder} != set(PARTS):
        raise typer.Exit(NOT_WRITTEN)


def write_parts(solution: Solution | Spectrum, stem: Path, console: Console, command: str) -> list[Path]:
    """Write solution, report, picture and page; one that cannot be written goes to a new temporary folder."""
    from rannpde.io import write_whole

    writers: tuple[Callable[[Path], object], ...] = (
        solution.save,
        lambda path: write_whole(path, f"{solution.report()}\n"),
        solution.plot,
        lambda path: solution.to_html(path, command),
    )
    written = []
    for suffix, write in zip(PARTS, writers, strict=True):
        for fallback in (False, True):
            path = stem.with_name(f"{stem.name}{suffix}")
            try:
                if fallback:  # a new folder, so that no file in the temporary one is replaced
                    path = Path(tempfile.mkdtemp(prefix="rannpde-")) / path.name
                write(path)
            except Exception as error:  # hours of work may be in it: whatever happens, the other parts are tried
                console.print(f"{path} could not be written: {error}", style="red", markup=False, soft_wrap=True)
            else:
                written.append(path)
                if fallback:
                    console.print(f"it was written to {path} instead", markup=False, soft_wrap=True)
                break
    return written


def list_examples(
    name: Annotated[str | None, typer.Argument(help="The example to copy.", autocompletion=_examples)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; the current folder by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """List the ready-made problems, or copy one to change.

    rannpde examples burgers writes burgers.toml, which rannpde solve takes.
    """
    from rannpde.pde.problem.toml import example, examples

    if name is None:
        for key, text in examples().items():
            typer.echo(f"{key:<20}{text.splitlines()[0].lstrip('# ')}")
        typer.echo("copy one with: rannpde examples NAME, then: rannpde solve NAME.toml")
        return
    with answered("nothing was written"):
        text = example(name)
        target = (out or Path.cwd()) / f"{name}.toml" if out is None or out.is_dir() else out
        if target.exists() and not force:
            typer.echo(f"{target} exists; pass --force to replace it", err=True)
            raise typer.Exit(1)
        target.write_text(text, encoding="utf-8")
    typer.echo(f"written: {target}")
