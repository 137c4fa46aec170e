"""Forces of a flow on sides: their bounds, and which outputs are such forces.

The traction of the method, λ and the penalised tangential traction, is the residual of momentum tested with a unit
vector at the side: it converges twice as fast as the fields, and all forces balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from rannpde.arrays import Array
from rannpde.errors import choose, require
from rannpde.pde.flow.form import FlowForm, traction_weights
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression
from rannpde.rounding import COMPUTED

Forces = Mapping[str, tuple[float, float, float, float]]
"""Side → two components, and a bound of the error of each."""


@dataclass(frozen=True)
class ForceSeries:
    """Forces of a flow in time.

    times : of the stages of all steps; forces : side → two components of the force on it at each of them
    """

    times: tuple[float, ...]
    forces: Mapping[str, tuple[tuple[float, float], ...]]

    @classmethod
    def of(cls, times: Array, forces: Mapping[str, Array]) -> ForceSeries:
        """The series from times (N,) and a mapping side → forces (N, 2)."""
        return cls(
            tuple(map(float, times)),
            {str(name): tuple((float(x), float(y)) for x, y in rows) for name, rows in forces.items()},
        )

    def force(self, side: str, times: ArrayLike) -> Array:
        """The force (M, 2) on a side at times (M,), by a cubic spline through the stages."""
        choose("side", side, {name: name for name in self.forces})
        wanted = np.atleast_1d(np.asarray(times, dtype=float))
        first, last = self.times[0], self.times[-1]
        inside = bool(((wanted >= first) & (wanted <= last)).all())
        require(inside, "times", times, f"between {first:.4g} and {last:.4g}, the first and last stage")
        return np.asarray(CubicSpline(self.times, np.array(self.forces[side]))(wanted))

    def to_table(self) -> dict[str, Any]:
        """The series as data for JSON."""
        forces = {name: [list(row) for row in rows] for name, rows in self.forces.items()}
        return {"times": list(self.times), "forces": forces}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> ForceSeries:
        rows = {name: np.array(part, dtype=float).reshape(-1, 2) for name, part in table["forces"].items()}
        return cls.of(np.array(table["times"], dtype=float), rows)


@dataclass(frozen=True, eq=False)
class ForceRecord:
    """Side → force (2,) of one iteration, its relative indicator, forces in time where there is time, and side → fluxes
    (S,) of scalars."""

    forces: Mapping[str, Array]
    indicator: float
    series: ForceSeries | None = None
    fluxes: Mapping[str, Array] = field(default_factory=dict)


def bounded_forces(records: Sequence[ForceRecord], safety: float) -> dict[str, tuple[float, float, float, float]]:
    """The forces of the last iteration, with bounds by their changes since the two iterations before it.

    The change since the earlier one is lowered by the factor by which the indicators fell since. Both components have
    the bound of the norm of the change, since a single component may agree by chance.

    safety : the bound over the change from which it is computed
    """
    last = records[-1]
    bounded = {}
    for name, force in last.forces.items():
        changes = []
        for back, one in enumerate(records[-3:-1][::-1]):
            gain = 1.0 if back == 0 else min(safety * last.indicator / max(one.indicator, 1e-300), 1.0)
            changes.append(gain * float(np.linalg.norm(force - one.forces[name])))
        bound = safety * max(changes) if changes else np.inf
        bounded[name] = (float(force[0]), float(force[1]), bound, bound)
    return bounded


def as_force(
    form: FlowForm, expression: Expression, sides: Sequence[tuple[str, Array, Array]], forces: Forces
) -> tuple[float, float] | None:
    """∫ of an expression over sides, if it is c·(p n - ν (∂_n u + κ ∇(u·n))) with a constant c, and its bound.

    sides : name, points (M, 2) and outward normals (M, 2) of each; None for any other expression
    """
    if not all(name in forces for name, _, _ in sides):
        return None
    weights = force_weights(form, expression, sides)
    if weights is None:
        return None
    rows = np.array([forces[name] for name, _, _ in sides]).sum(axis=0)
    return float(weights @ rows[:2]), float(np.abs(weights) @ rows[2:])


def force_weights(form: FlowForm, expression: Expression, sides: Sequence[tuple[str, Array, Array]]) -> Array | None:
    """c (2,) of an expression that is c·(p n - ν (∂_n u + κ ∇(u·n))) on all sides; None for any other."""
    if not expression.linear:
        return None
    if any(jet.order > 1 or (jet.order and jet.field == form.pressure) for jet in expression.jets):
        return None
    if not set(expression.fields) <= {*form.velocity, form.pressure}:
        return None
    weights: Array | None = None
    for _, points, normals in sides:
        here = _weights(form, expression, points, normals)
        if here is None or (weights is not None and np.abs(here - weights).max() > COMPUTED * np.abs(weights).max()):
            return None
        weights = here
    return weights


def _weights(form: FlowForm, expression: Expression, points: Array, normals: Array) -> Array | None:
    """c (2,) of an expression, which is the same at all points; None where it is no such force."""
    term = Term("output", "boundary", expression, None)
    value, plain, slopes, pressure = form.coefficients(term, points, normals)
    if np.abs(value).max() > 0 or np.abs(plain).max() > 0 or not slopes.any():
        return None
    weights, left = traction_weights(form.viscosity, form.transposed, slopes, pressure, normals)
    even = np.abs(weights - weights.mean(axis=0)).max() <= COMPUTED * np.abs(weights).max()
    return -weights.mean(axis=0) if left <= COMPUTED and even else None
