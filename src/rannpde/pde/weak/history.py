"""The record of the weak form: its iterations, fluxes, and outputs with bounds by dual-weighted residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.pde.weak.fluxes import SideFluxes


@dataclass(frozen=True)
class WeakIteration:
    """One iteration of the adaptive loop: cells, degree, unknowns, relative indicator, estimate, seconds so far, and
    steps of Newton's method, 0 for a linear problem."""

    cells: int
    degree: int
    unknowns: int
    indicator: float
    estimate: float
    seconds: float
    steps: int = 0

    def __str__(self) -> str:
        known = f", estimate {self.estimate:.1e}" if np.isfinite(self.estimate) else ""
        known = f", {self.steps} steps of Newton's method{known}" if self.steps else known
        return (
            f"{self.cells} cells of degree {self.degree}, {self.unknowns} unknowns, "
            f"indicator {self.indicator:.1e}, {self.seconds:.2f} s{known}"
        )


@dataclass(frozen=True)
class WeakHistory:
    """The record of the weak form: its iterations, and which form was used."""

    iterations: tuple[WeakIteration, ...]
    form: tuple[str, ...] = ()
    bound: float | None = None
    """Guaranteed bound of the energy norm of the error, over that of the solution; None where there is none."""
    fluxes: SideFluxes = field(default_factory=dict)
    """Side → ∫ n·A∇u by the weak residual for each equation, and a bound of their errors."""
    weighted: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Output → value and bound by dual-weighted residuals."""

    advice = "more time, or a weaker tolerance, may help"

    def lines(self) -> list[str]:
        """The lines of the report."""
        lines = [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        if self.bound is not None:
            lines.append(
                f"energy norm of the error at most {self.bound:.1e} of that of the solution (equilibrated flux)"
            )
        if self.weighted:
            lines.append(f"bounds by dual-weighted residuals: {', '.join(self.weighted)}")
        return [*self.form, *lines]

    def to_table(self) -> dict[str, Any]:
        """The record as data for JSON."""
        rows = [[None if value == np.inf else value for value in vars(one).values()] for one in self.iterations]
        fluxes = {name: [list(values), error] for name, (values, error) in self.fluxes.items()}
        weighted = {name: list(pair) for name, pair in self.weighted.items()}
        return {
            "iterations": rows, "form": list(self.form), "bound": self.bound, "fluxes": fluxes, "weighted": weighted,
        }  # fmt: skip

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> WeakHistory:
        rows: list[list[Any]] = [[np.inf if value is None else value for value in row] for row in table["iterations"]]
        bound = table.get("bound")
        return cls(
            tuple(WeakIteration(*row) for row in rows), tuple(map(str, table["form"])),
            None if bound is None else float(bound),
            {name: (tuple(map(float, row[0])), float(row[1])) for name, row in table.get("fluxes", {}).items()},
            {name: (float(value), float(bound)) for name, (value, bound) in table.get("weighted", {}).items()},
        )  # fmt: skip
