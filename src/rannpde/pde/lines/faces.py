"""Boundary conditions on boxes, side by side: what they read off a function along one axis, and the value wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.sides import FlatSide
from rannpde.pde.lines.axis import Axis, EndRow
from rannpde.pde.problem.evolution import Constraint, Evolution
from rannpde.pde.residual import Term


@dataclass(frozen=True, eq=False)
class Face:
    """A condition on one side of a box, as a row of its axis: B u = value(t, other coordinates)."""

    axis: int
    row: EndRow
    normal: float
    value: sympy.Expr

    @classmethod
    def of(cls, evolution: Evolution, term: Term) -> Face | None:
        """None where the condition holds other derivatives than along its normal, or coefficients that vary."""
        side, expression = term.region, term.expression
        if not isinstance(side, FlatSide):
            return None
        words = evolution.problem.vocabulary
        axis, normal = side.axis - 1, float(side.outward)
        known: dict[sympy.Symbol, Any] = dict.fromkeys(words.normals, 0.0)
        known |= {words.normals[side.axis]: normal, words.symbols[side.axis]: side.value}
        coefficients = {}
        for jet, partial in zip(expression.jets, expression.partials, strict=True):
            if partial.free_symbols - set(known) and not partial.is_zero:
                return None
            number = float(evolution.values([partial], known)[0])
            if number and any(order for k, order in enumerate(jet.index) if k != axis + 1):
                return None
            if number:
                coefficients[jet.index[axis + 1]] = number
        value = -expression.formula.subs(dict.fromkeys(expression.symbols, 0))
        return cls(axis, EndRow(side.value, coefficients), normal, value) if coefficients else None


def faces_of(evolution: Evolution, name: str) -> list[Face] | None:
    """The boundary conditions of a field axis by axis, or None where one does not fit."""
    found = [Face.of(evolution, term) for term in evolution.boundary(name)]
    if any(face is None for face in found):
        return None
    return sorted((face for face in found if face is not None), key=lambda face: face.axis)


def values_on(face: Face, evolution: Evolution, name: str, axes: tuple[Axis, ...]) -> Constraint:
    """The prescribed values at the product of the nodes of the other axes."""
    places = [np.array([face.row.place]) if k == face.axis else axis.nodes for k, axis in enumerate(axes)]
    points = np.stack([m.ravel() for m in np.meshgrid(*places, indexing="ij")], axis=1)
    normals: Array = np.zeros_like(points)
    normals[:, face.axis] = face.normal
    return Constraint(name, points, normals, {}, face.value, evolution)
