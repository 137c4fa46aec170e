"""``rannpde bench``: benchmarks that anyone can repeat; parse, call, print; no mathematics."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rannpde.cli.answered import answered

if TYPE_CHECKING:
    from rannpde.bench.record import BenchRecord

BenchFolder = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for records, pictures, table.md and report.html.")
]
Again = Annotated[bool, typer.Option("--again", help="Run also what is in the folder already.")]
KEPT = "finished cases are kept, run the same command to go on"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    suites = typer.Typer(no_args_is_help=True, help="Benchmarks that anyone can repeat: pinnacle, paper, peers.")
    suites.command("pinnacle")(pinnacle)
    suites.command("paper")(paper)
    suites.command("peers")(peers)
    app.add_typer(suites, name="bench")


def pinnacle(
    cases: Annotated[list[str] | None, typer.Argument(help="Cases to solve; all when none is given.")] = None,
    out: BenchFolder = Path("results/pinnacle"),
    tol: Annotated[
        float | None, typer.Option(help="Relative L² error wanted; the goal of each case unless given.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time allowed to each solve; 1.5 times the goal's, at least 20, unless given.")
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="Small versions and loose tolerances, to see that it runs.")
    ] = False,
    again: Again = False,
) -> None:
    """Solve the PINNacle cases, the field's public table; finished cases are kept."""
    from rannpde.bench.pinnacle.suite import run_suite

    console = Console(highlight=False)

    def tell(record: BenchRecord, kept: bool) -> None:
        shown = (
            f"error {record.error:.1e} in {record.seconds:.1f} s" if record.error and record.seconds else record.told
        )
        console.print(f"{record.case:<22}{record.outcome:<9}{shown[:100]}{' (kept)' if kept else ''}", markup=False)

    with answered(KEPT):
        command = shlex.join(["rannpde", *sys.argv[1:]])
        product = run_suite(cases, out, command=command, tol=tol, seconds=seconds, small=small, again=again, tell=tell)
        console.print(f"written: {product.page}, {product.markdown}", markup=False, soft_wrap=True)


def paper(out: BenchFolder = Path("results/paper")) -> None:
    """The paper's Navier–Stokes study: this package against plain NumPy, side by side."""
    from rannpde.bench.paper import run_paper

    with answered("nothing was written"):
        for line in run_paper(out):
            typer.echo(line)


def peers(
    names: Annotated[list[str] | None, typer.Argument(help="Problems to run; all when none is given.")] = None,
    python: Annotated[str, typer.Option("--python", help="The Python that has the peers installed.")] = sys.executable,
    seconds: Annotated[float, typer.Option(help="Time allowed to each peer on each problem.")] = 120.0,
    out: BenchFolder = Path("results/peers"),
    again: Again = False,
) -> None:
    """DeepXDE, pyRFM, py-pde and scikit-learn beside this package, each in a process of its own."""
    from rannpde.bench.peers.suite import run_peers

    with answered(KEPT):
        for line in run_peers(names, out, python=python, seconds=seconds, again=again):
            typer.echo(line)
