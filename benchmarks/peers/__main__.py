"""Other libraries beside this package: parse, call, print.

python -m benchmarks.peers --python PATH   # DeepXDE, pyRFM, py-pde, scikit-learn, where that Python has them
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.harness.options import KEPT, Again, ResultsFolder
from benchmarks.peers.suite import run_peers
from rannpde.cli.answered import answered


def peers(
    names: Annotated[list[str] | None, typer.Argument(help="Problems to run; all when none is given.")] = None,
    python: Annotated[str, typer.Option("--python", help="The Python that has the peers installed.")] = sys.executable,
    seconds: Annotated[float, typer.Option(help="Time allowed to each peer on each problem.")] = 120.0,
    out: ResultsFolder = Path("results/peers"),
    again: Again = False,
) -> None:
    """DeepXDE, pyRFM, py-pde and scikit-learn beside this package, each in a process of its own."""
    with answered(KEPT):
        for line in run_peers(names, out, python=python, seconds=seconds, again=again):
            typer.echo(line)


def main() -> None:
    """The program."""
    typer.run(peers)


if __name__ == "__main__":
    main()
