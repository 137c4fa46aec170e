"""Partial sums of a fit: the equations of some of the samples, and the merge of two such parts into one.

On many machines each block of rows is a part, and a tree of merges makes the whole; cross-validation has a part for
every fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rannpde.errors import require
from rannpde.fitting.fit import FitEquations, FitMethod, RandomLayer, Samples, solved_weights, sums
from rannpde.fitting.path import Fitted


@dataclass(frozen=True, eq=False)
class Part:
    """Equations of some of the samples, in values divided by ``unit``, a power of two; 0 where all values are 0.

    rows, outside : of the samples, as in ``Samples``; scalar : the values came as one axis; solvers : how the sums were
    formed; block : number of the first block of rows, by which errors name it
    """

    equations: FitEquations
    unit: float
    rows: int
    outside: int
    scalar: bool
    solvers: frozenset[str]
    block: int = 0

    @classmethod
    def of(cls, features: RandomLayer, samples: Samples, method: FitMethod, block: int = 0) -> Part | None:
        """Sum the samples by "dense", "nufft", "orthogonal", or "auto": the cheaper of the first two; None for none."""
        equations, solver = sums(features, samples, method)
        if equations is None:
            return None
        unit = samples.unit if samples.largest > 0 else 0.0
        return cls(equations, unit, samples.rows, samples.outside, samples.scalar, frozenset({solver}), block)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row of the values."""
        return () if self.scalar else (self.equations.outputs,)

    def merge(self, other: Part) -> Part:
        """The sum of both parts. Powers of two scale without rounding, so that units cost no digits."""
        same_outputs(other.block, other.shape, self.block, self.shape)
        unit = max(self.unit, other.unit)
        mine, theirs = self.in_unit(unit), other.in_unit(unit)
        # two of one kind: ``method`` is the same for all parts of a fit
        equations = mine.merge(theirs)  # type: ignore[arg-type]
        return replace(
            self,
            equations=equations,
            unit=unit,
            rows=self.rows + other.rows,
            outside=self.outside + other.outside,
            solvers=self.solvers | other.solvers,
            block=min(self.block, other.block),
        )

    def in_unit(self, unit: float) -> FitEquations:
        """The equations for values divided by that unit instead."""
        if unit == self.unit or self.unit == 0:
            return self.equations
        return self.equations.rescaled(self.unit / unit)

    def fit(self, penalty: float | Literal["gcv"], cutoff: float | None = None) -> Fitted:
        """Solve the equations, which are not changed."""
        require(self.equations.count > 0, "weights", 0.0, "≥ 0 and not all 0")
        result = solved_weights(self.equations, self.rows, penalty, cutoff)
        solver = " and ".join(sorted(self.solvers))
        return Fitted(result, self.unit or 1.0, self.rows, self.outside, self.scalar, solver)

    def __sizeof__(self) -> int:
        """Bytes, arrays included: a scheduler that moves parts must know how heavy they are."""
        return object.__sizeof__(self) + self.equations.nbytes


def same_outputs(block: int, shape: tuple[int, ...], first: int, first_shape: tuple[int, ...]) -> None:
    """Refuse a block whose rows of values have another shape than those of the first block."""
    expected = f"of shape {('m', *first_shape)}, as in block {first}"
    require(shape == first_shape, f"values of block {block} with shape", ("m", *shape), expected)
