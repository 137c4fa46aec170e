"""The history of a family: iterations of the interpolation, and checks at independent values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rannpde.pde.family.adaptive import Refinement


@dataclass(frozen=True)
class FamilyHistory:
    """names : names of the parameters; iterations : rows of the adaptive loop; checks : values of the parameters, the
    error there.

    slowest : seconds of the slowest solve; table : whether queries read a table of values
    """

    names: tuple[str, ...]
    iterations: tuple[Refinement, ...]
    checks: tuple[tuple[tuple[float, ...], float], ...]
    slowest: float
    table: bool

    advice = 'a narrower range, scale="log", more seconds or a larger tol may help'

    def lines(self) -> list[str]:
        """The lines of a report."""
        lines = []
        if self.iterations:
            last = self.iterations[-1]
            degrees = ", ".join(f"{n} in {name}" for name, n in zip(self.names, last.levels, strict=True))
            lines.append(f"{last.solves} solves, the slowest {self.slowest:.1f} s; largest degrees {degrees}")
        for values, error in self.checks:
            shown = ", ".join(f"{name} = {value:.4g}" for name, value in zip(self.names, values, strict=True))
            lines.append(f"checked by a solve at {shown}: relative difference {error:.1e}")
        return lines

    def to_table(self) -> dict[str, Any]:
        """The history as data that JSON can hold."""
        return {
            "names": list(self.names),
            "iterations": [[one.solves, one.estimate, list(one.levels)] for one in self.iterations],
            "checks": [[list(values), error] for values, error in self.checks],
            "slowest": self.slowest,
            "table": self.table,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> FamilyHistory:
        iterations = tuple(
            Refinement(int(n), float(e), tuple(map(int, levels))) for n, e, levels in table["iterations"]
        )
        checks = tuple((tuple(map(float, values)), float(error)) for values, error in table["checks"])
        return cls(tuple(map(str, table["names"])), iterations, checks, float(table["slowest"]), bool(table["table"]))
