"""Solve the PINNacle cases, the field's public table: parse, call, print.

python -m benchmarks.pinnacle              # every case; also: make pinnacle
python -m benchmarks.pinnacle wave-1d      # some of them
python -m benchmarks.pinnacle --small      # small versions and loose tolerances, to see that it runs
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.harness.options import KEPT, Again, ResultsFolder
from benchmarks.harness.record import BenchRecord
from benchmarks.pinnacle.suite import run_suite
from rannpde.cli.answered import answered


def pinnacle(
    cases: Annotated[list[str] | None, typer.Argument(help="Cases to solve; all when none is given.")] = None,
    out: ResultsFolder = Path("results/pinnacle"),
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
    console = Console(highlight=False)

    def report(record: BenchRecord, stored: bool) -> None:
        known = record.error is not None and record.seconds is not None
        shown = f"error {record.error:.1e} in {record.seconds:.1f} s" if known else record.message
        console.print(f"{record.case:<22}{record.outcome:<9}{shown[:100]}{' (kept)' if stored else ''}", markup=False)

    with answered(KEPT):
        command = shlex.join(["python", "-m", "benchmarks.pinnacle", *sys.argv[1:]])
        product = run_suite(
            cases, out, command=command, tol=tol, seconds=seconds, small=small, again=again, report=report
        )
        console.print(f"written: {product.page}, {product.markdown}", markup=False, soft_wrap=True)


def main() -> None:
    """The program."""
    typer.run(pinnacle)


if __name__ == "__main__":
    main()
