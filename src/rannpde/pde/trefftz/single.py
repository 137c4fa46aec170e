"""One Trefftz network on the whole domain as a discretisation: law of features, rows, particular solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.parts import ParticularPart
from rannpde.pde.trefftz.rows import (
    ConditionPoints,
    Misses,
    TrefftzRows,
    boundary_misses,
    boundary_rows,
    feature_values,
)
from rannpde.pde.trefftz.symmetric_least_squares import FeatureOrbits, SymmetricRows
from rannpde.pde.trefftz.two_level import ColumnLevels, HoleBlock


class FeatureLaw(Protocol):
    """A law of features, which chooses them for a domain and an operator; ``Any`` is the type of its resolution."""

    def first(self) -> Any: ...

    def families(self, resolution: Any, rng: np.random.Generator) -> list[FeatureFamily]: ...

    def conditions(self, resolution: Any, shift: float, factor: float = 1.0) -> list[ConditionPoints]: ...

    def tube(self) -> tuple[Array, Array]: ...

    def hole_columns(self, families: Sequence[FeatureFamily]) -> dict[int, Array]: ...

    def hole_rows(self, conditions: Sequence[ConditionPoints]) -> dict[int, Array]: ...

    def orbits(self, families: Sequence[FeatureFamily]) -> FeatureOrbits | None: ...

    def refined(
        self,
        resolution: Any,
        errors: Mapping[int, float],
        target: float,
        slow: bool,
        weights: Sequence[tuple[FeatureFamily, Array]],
        gains: Sequence[ColumnGains] = (),
    ) -> Any: ...


@dataclass(frozen=True, eq=False)
class OneNetwork:
    """A law with the particular solution of every field; pins : values of fields at single points."""

    law: FeatureLaw
    form: CanonicalForm
    parts: tuple[ParticularPart, ...]
    words: Vocabulary
    pins: tuple[ConditionPoints, ...] = ()

    def first(self) -> Any:
        """The resolution of the first iteration."""
        return self.law.first()

    def families(self, resolution: Any, rng: np.random.Generator) -> list[FeatureFamily]:
        """A realisation of the law."""
        return self.law.families(resolution, rng)

    @property
    def sampled(self) -> bool:
        """Surfaces are sampled; curves have quadrature points."""
        return self.form.dim > 2

    def columns(self, families: list[FeatureFamily]) -> int:
        """The number N of features."""
        return sum(family.columns for family in families)

    def dense(self, families: list[FeatureFamily]) -> int:
        """Columns of the largest dense factorisation: all, unless most are multipoles of holes, or there are
        symmetries."""
        orbits = self._orbits(families)
        if orbits is not None:
            return max(combination.shape[0] for combination in orbits.combinations)
        blocks = [HoleBlock(np.empty(0), columns) for columns in self.law.hole_columns(families).values()]
        return len(ColumnLevels.of(self.columns(families), blocks).coupled)

    def network(self, families: list[FeatureFamily], weights: Array) -> TrefftzNetwork:
        """The function with output weights (N,)."""
        return TrefftzNetwork(tuple(families), weights, self.parts, self.form)

    def base(self, points: Array) -> Array:
        """The particular solutions (M, fields)."""
        return self.network([], np.empty(0))(points)

    def values(self, families: list[FeatureFamily], points: Array) -> Array:
        """All features (M, fields, N)."""
        return feature_values(families, points, (0,) * self.form.dim)

    def _orbits(self, families: list[FeatureFamily]) -> FeatureOrbits | None:
        """How symmetries act on the features; None without symmetries, or with values at single points."""
        return None if self.pins else self.law.orbits(families)

    def rows(
        self, families: list[FeatureFamily], resolution: Any, shift: float, factor: float = 1.0
    ) -> TrefftzRows | SymmetricRows:
        """The conditions at collocation points; another ``shift`` gives fresh ones, ``factor`` times as many."""
        conditions = [*self.law.conditions(resolution, shift, factor), *self.pins]
        orbits = self._orbits(families)
        if orbits is not None:
            part, order = self.network([], np.empty(0)), orbits.group.order
            first = boundary_rows(families, part, conditions[: len(conditions) // order], self.words)
            errors = boundary_misses(part, conditions, self.words).errors
            return SymmetricRows(first.matrix, -errors.reshape(order, -1), first.weights, orbits)
        columns, rows = self.law.hole_columns(families), self.law.hole_rows(conditions)
        blocks = [HoleBlock(rows[hole], numbers) for hole, numbers in columns.items()]
        levels = ColumnLevels.of(self.columns(families), blocks)
        return boundary_rows(
            families, self.network([], np.empty(0)), conditions, self.words, levels if levels.blocks else None
        )

    def misses(self, network: TrefftzNetwork, resolution: Any, shift: float, factor: float) -> Misses:
        """The residuals of a function in the conditions, at points that are chosen as in ``rows``."""
        return boundary_misses(network, self.law.conditions(resolution, shift, factor), self.words)

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundary with their shares of the domain, where layers are thin."""
        return self.law.tube()

    def refined(
        self, resolution: Any, errors: Mapping[int, float], target: float, slow: bool, families: list[FeatureFamily],
        weights: Array, gains: Sequence[ColumnGains],
    ) -> Any:  # fmt: skip
        """More features for the groups whose error is above the target; weights (N,) over the size of the solution."""
        ends = np.cumsum([family.columns for family in families])[:-1]
        split = list(zip(families, np.split(weights, ends), strict=True))
        return self.law.refined(resolution, errors, target, slow, split, () if self.pins else gains)
