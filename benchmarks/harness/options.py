"""Options that the programs of the benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ResultsFolder = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for records, pictures, table.md and report.html.")
]
Again = Annotated[bool, typer.Option("--again", help="Run also what is in the folder already.")]
KEPT = "finished cases are kept, run the same command to go on"
