"""``rannpde solve`` and ``rannpde examples``: parse, call, print; no mathematics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rannpde.cli.answered import answered

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

NOT_CONVERGED = 3
"""Exit code beside 2, which wrong input has."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("solve")(solve_file)
    app.command("examples")(list_examples)


def solve_file(
    file: Annotated[
        Path, typer.Argument(help="A TOML file with equations, domain, conditions; see 'rannpde examples'.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the solution, the picture and the report.")] = Path("out"),
    width: Annotated[int | None, typer.Option(help="Neurons; overrides the file.")] = None,
    tol: Annotated[float | None, typer.Option(help="Tolerance; overrides the file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; overrides the file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Solve a stated problem; write <name>.npz, <name>.png and <name>.txt. Exit code 3 means it did not converge."""
    from rannpde.pde.problem.toml import read_problem
    from rannpde.pde.solve import solve

    with answered("nothing was written"):
        problem, settings = read_problem(file)
        settings |= {key: value for key, value in (("width", width), ("tol", tol), ("rng", seed)) if value is not None}
        solution = solve(problem, progress=None if quiet else _show, **settings)
        stem = _write(solution, out, file.stem)
    if not quiet:
        typer.echo(solution.report())
        typer.echo(f"written: {stem}.npz, {stem}.png, {stem}.txt")
    if not solution.converged:
        typer.echo(f"did not converge: {solution.reason}", err=True)
        raise typer.Exit(NOT_CONVERGED)


def _write(solution: Solution, folder: Path, name: str) -> Path:
    """The solution, its picture and its report; the common path without suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / name
    solution.save(stem.with_suffix(".npz"))
    solution.plot(stem.with_suffix(".png"))
    stem.with_suffix(".txt").write_text(f"{solution.report()}\n", encoding="utf-8")
    return stem


def list_examples(
    name: Annotated[str | None, typer.Argument(help="The example to copy.")] = None,
    to: Annotated[Path | None, typer.Option(help="Where to; the current folder by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """List the ready-made problems, or copy one of them to a file you can change and solve."""
    from rannpde.pde.problem.toml import example, examples

    if name is None:
        for key, text in examples().items():
            typer.echo(f"{key:<20}{text.splitlines()[0].lstrip('# ')}")
        typer.echo("copy one with: rannpde examples NAME, then: rannpde solve NAME.toml")
        return
    with answered("nothing was written"):
        text = example(name)
    target = (to or Path.cwd()) / f"{name}.toml" if to is None or to.is_dir() else to
    if target.exists() and not force:
        typer.echo(f"{target} exists; pass --force to replace it", err=True)
        raise typer.Exit(1)
    target.write_text(text, encoding="utf-8")
    typer.echo(f"written: {target}")


def _show(line: str) -> None:
    typer.echo(f"  {line}", err=True)
