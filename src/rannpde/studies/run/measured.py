"""Run the cells that a chapter defines, and record their measurements."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import isfinite, sqrt

from rannpde.errors import require
from rannpde.studies.cell import MeasurementCell
from rannpde.studies.run.fit import check_measured

MeasuredRows = tuple[tuple[float, ...], ...]
"""For each width the number of every realisation."""


@dataclass(frozen=True)
class MeasuredResult:
    """Quantities by name, "error" among them; each has a row for each width and a number for each realisation."""

    quantities: dict[str, MeasuredRows]
    seconds: float

    def __post_init__(self) -> None:
        table = isinstance(self.quantities, dict) and "error" in self.quantities
        require(table, "quantities", self.quantities, "a table with 'error'")
        plain = {name: tuple(tuple(row) for row in rows) for name, rows in self.quantities.items()}
        object.__setattr__(self, "quantities", plain)
        for name, rows in plain.items():
            for value in (value for row in rows for value in row):
                number = isinstance(value, float) and isfinite(value)
                require(number, f"a value of {name}", value, "a finite number")
        for value in (value for row in plain["error"] for value in row):
            check_measured("error", value)
        check_measured("seconds", self.seconds)

    @property
    def error(self) -> MeasuredRows:
        """The errors, by width and realisation."""
        return self.quantities["error"]

    @property
    def last_error(self) -> float:
        """The root-mean-square error at the largest width."""
        return sqrt(sum(error**2 for error in self.error[-1]) / len(self.error[-1]))


def run_measurement(cell: MeasurementCell) -> MeasuredResult:
    """Measure the cell. Depends on the cell alone."""
    started = time.perf_counter()
    measured = cell.measure()
    for name, rows in measured.items():
        require(len(rows) == len(cell.widths), f"rows of {name}", len(rows), f"{len(cell.widths)}, one a width")
    quantities = {name: tuple(tuple(float(v) for v in row) for row in rows) for name, rows in measured.items()}
    return MeasuredResult(quantities, time.perf_counter() - started)
