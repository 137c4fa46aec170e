"""The record of a solve by Trefftz networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.pde.trefftz.adaptive import TrefftzIteration


@dataclass(frozen=True)
class TrefftzHistory:
    """The record of this method: its iterations, its features, and the bound of the maximum principle.

    bound : of |error| everywhere in the domain; None where there is no maximum principle
    """

    iterations: tuple[TrefftzIteration, ...]
    features: str
    bound: float | None = None

    advice = "more features of rp.Trefftz, or another method, may help"

    def lines(self) -> list[str]:
        """The lines of the report."""
        texts = [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        if self.bound is not None:
            texts.append(f"maximum principle: the error is at most {self.bound:.2e} everywhere")
        return texts

    def to_table(self) -> dict[str, Any]:
        """The record as data for JSON."""
        rows = [[x if np.isfinite(x) else None for x in vars(one).values()] for one in self.iterations]
        return {"iterations": rows, "features": self.features, "bound": self.bound}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> TrefftzHistory:
        rows = [[np.inf if x is None else x for x in row] for row in table["iterations"]]
        bound = table["bound"]
        return cls(
            tuple(TrefftzIteration(*map(int, row[:3]), *map(float, row[3:8]), *map(int, row[8:])) for row in rows),
            str(table["features"]),
            None if bound is None else float(bound),
        )
