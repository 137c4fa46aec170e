"""A linear combination of solutions: the interpolation in parameters at one value of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import FileError
from rannpde.network.storage import arrays_under, floats
from rannpde.pde.solution import SolvedFunction


@dataclass(frozen=True, eq=False)
class CombinedFunction:
    """Σ weights[k] · parts[k], with its derivatives in the coordinates."""

    parts: tuple[SolvedFunction, ...]
    weights: Array

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of features of every part."""
        return tuple(sum(part.widths) for part in self.parts)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, derivatives: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several derivatives of every field: (M, fields) each."""
        sums: dict[MultiIndex, Array] = {}
        for part, weight in zip(self.parts, self.weights, strict=True):
            if weight == 0:
                continue
            several = getattr(part, "derivatives", None)  # some evaluate what their derivatives share only once
            values = several(points, derivatives) if several else {i: part.derivative(points, i) for i in derivatives}
            sums = {i: weight * values[i] + sums.get(i, 0.0) for i in derivatives}
        return sums

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        headers, arrays = [], {"combined.weights": np.asarray(self.weights, dtype=float)}
        for number, part in enumerate(self.parts):
            header, own = part.pack()
            headers.append(header)
            arrays |= {f"combined.{number}.{name}": array for name, array in own.items()}
        return {"function": "combined", "parts": headers}, arrays


def unpack_combined(
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    unpack: Callable[[Mapping[str, Any], Mapping[str, Array]], SolvedFunction],
) -> CombinedFunction:
    """The combination that ``pack`` made; ``unpack`` reads a part."""
    parts = []
    for number, own in enumerate(header["parts"]):
        if own["function"] == "combined":
            raise FileError("a combination of solutions holds another one; refused")
        inner = arrays_under(arrays, f"combined.{number}.")
        parts.append(unpack(own, inner))
    return CombinedFunction(tuple(parts), floats(arrays, "combined.weights", (len(parts),)))
