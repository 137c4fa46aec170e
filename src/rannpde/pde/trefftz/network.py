"""The solution of the method: features that satisfy the equation, output weights, and a particular solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, row_blocks
from rannpde.network.storage import floats
from rannpde.pde.trefftz.families import FeatureFamily, counted_features
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.parts import ParticularPart, unpack_part
from rannpde.pde.trefftz.symmetry import SymmetricFamily, unpack_symmetric


@dataclass(frozen=True, eq=False)
class TrefftzNetwork:
    """Fields Σ weights_j feature_j + part; weights (N,), one particular solution for each field."""

    families: tuple[FeatureFamily, ...]
    weights: Array
    parts: tuple[ParticularPart, ...]
    form: CanonicalForm

    @property
    def dim(self) -> int:
        return self.form.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each family."""
        return tuple(family.columns for family in self.families)

    @property
    def contents(self) -> str:
        """The features in words."""
        return counted_features(self.families)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^derivative (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several at once, each (M, fields): features are evaluated once for all of one order."""
        totals = {i: np.stack([part.derivative(points, i) for part in self.parts], axis=1) for i in indices}
        ends = np.cumsum([0, *self.widths])
        for family, start, stop in zip(self.families, ends[:-1], ends[1:], strict=True):
            for rows in row_blocks(len(points), family.rows_at_once):
                own = family.several(points[rows], list(totals), self.weights[start:stop])
                for total, one in zip(totals.values(), own, strict=True):
                    total[rows] += one
        return totals

    def pole_distances(self, points: Array) -> Array:
        """The distance (M,) of points (M, n) from the nearest pole of a feature; infinite where there are none."""
        arrays = [np.empty((0, self.dim))]
        for family in self.families:
            images = family.group.images if isinstance(family, SymmetricFamily) else []
            base: Any = family
            while hasattr(base, "base"):
                base = base.base
            own = [self.form.back(getattr(base, name)) for name in ("poles", "sources") if hasattr(base, name)]
            arrays += own + [image.points(one) for image, _ in images[1:] for one in own]
        poles = np.concatenate(arrays)
        if not len(poles):
            return np.full(len(points), np.inf)
        return np.array([np.linalg.norm(poles - point, axis=1).min() for point in points])

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        headers, arrays = [], {"weights": self.weights}
        for number, family in enumerate(self.families):
            header, own = family.pack()
            headers.append(header)
            arrays |= {f"family{number}.{name}": array for name, array in own.items()}
        for number, part in enumerate(self.parts):
            arrays |= {f"part{number}.{name}": array for name, array in part.pack().items()}
        form = self.form
        arrays |= {"form.matrix": form.matrix, "form.origin": form.origin, "form.drift": form.drift}
        arrays["form.numbers"] = np.array([form.kappa, form.sign, form.zeroth])
        return {"function": "trefftz", "families": headers, "parts": [part.kind for part in self.parts]}, arrays


def under(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def unpack_network(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> TrefftzNetwork:
    """The inverse of ``TrefftzNetwork.pack``."""
    numbers = floats(arrays, "form.numbers", (3,))
    origin = floats(arrays, "form.origin", (None,))
    n = len(origin)
    form = CanonicalForm(
        floats(arrays, "form.matrix", (n, n)), origin, floats(arrays, "form.drift", (n,)), *map(float, numbers)
    )

    families = tuple(
        unpack_symmetric(own, under(arrays, f"family{k}."), form) for k, own in enumerate(header["families"])
    )
    parts = tuple(unpack_part(str(kind), under(arrays, f"part{k}.")) for k, kind in enumerate(header["parts"]))
    weights = floats(arrays, "weights", (sum(family.columns for family in families),))
    return TrefftzNetwork(families, weights, parts, form)
