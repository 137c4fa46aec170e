"""The record of a flow: its iterations, the recognised equations, forces, and forces in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rannpde.arrays import Array
from rannpde.errors import require
from rannpde.pde.flow.forces import Forces, ForceSeries
from rannpde.pde.flow.scalar_fluxes import ScalarFluxes
from rannpde.pde.weak.history import WeakIteration


@dataclass(frozen=True)
class FlowHistory:
    """The record of a flow: its iterations, the recognised equations, and forces.

    forces : side → force of the flow on it, ∫ p n - ν (∂_n u + κ ∇(u·n)) by the weak residual: two components, then a
        bound of the error of each; empty for a flow in time
    series : of a flow in time, the forces of the iteration that is the solution, and of the one before it, from which
        bounds are computed
    fluxes : scalar that the flow carries → side → ∫ κ ∂_n of it by the weak residual, and a bound of its error
    """

    iterations: tuple[WeakIteration, ...]
    form: tuple[str, ...] = ()
    forces: Forces = field(default_factory=dict)
    series: tuple[ForceSeries, ...] = ()
    fluxes: ScalarFluxes = field(default_factory=dict)

    advice = "more time, or a weaker tolerance, may help"

    def force(self, side: str, times: ArrayLike) -> Array:
        """The force (M, 2) on a side at times (M,) of a flow in time."""
        require(bool(self.series), "history", "that of a stationary flow", "one of a flow in time", "take forces[side]")
        return self.series[0].force(side, times)

    def lines(self) -> list[str]:
        """The lines of a report on iterations and forces."""
        lines = [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        for name, (x, y, dx, dy) in self.forces.items():
            lines.append(f"force on {name}: {x:.10g} ± {dx:.1e}, {y:.10g} ± {dy:.1e}")
        for scalar, sides in self.fluxes.items():
            for name, ((value,), bound) in sides.items():
                lines.append(f"flux of {scalar} through {name}: {value:.10g} ± {bound:.1e}")
        for one in self.series[:1]:
            for name, rows in one.forces.items():
                (x, y), when = rows[-1], one.times[-1]
                lines.append(f"force on {name} at the time {when:.6g}: {x:.6g}, {y:.6g}")
        return [*self.form, *lines]

    def to_table(self) -> dict[str, Any]:
        """The record as data for JSON."""
        rows = [[None if value == np.inf else value for value in vars(one).values()] for one in self.iterations]
        forces = {name: [None if v == np.inf else v for v in row] for name, row in self.forces.items()}
        series = [one.to_table() for one in self.series]
        fluxes = {
            scalar: {name: [value, bound] for name, ((value,), bound) in sides.items()}
            for scalar, sides in self.fluxes.items()
        }
        return {"iterations": rows, "form": list(self.form), "forces": forces, "series": series, "fluxes": fluxes}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> FlowHistory:
        rows: list[list[Any]] = [[np.inf if value is None else value for value in row] for row in table["iterations"]]
        forces = {}
        for name, row in table["forces"].items():
            x, y, dx, dy = (np.inf if value is None else float(value) for value in row)
            forces[str(name)] = (x, y, dx, dy)
        series = tuple(ForceSeries.from_table(one) for one in table.get("series", ()))
        fluxes = {
            str(scalar): {str(name): ((float(value),), float(bound)) for name, (value, bound) in sides.items()}
            for scalar, sides in table.get("fluxes", {}).items()
        }
        return cls(tuple(WeakIteration(*row) for row in rows), tuple(map(str, table["form"])), forces, series, fluxes)
