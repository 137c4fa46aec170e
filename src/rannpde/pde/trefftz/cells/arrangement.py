"""Lines and circles that divide the plane into cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.charts import Conic, Segments
from rannpde.network.storage import floats
from rannpde.rounding import ROUNDED


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Dividing curves, and the sides of them on which each cell lies.

    curves (K, 4) : numbers c of the values c₀ + c₁ x + c₂ y + c₃ (x² + y²), which near the curve are distances from it
    signs (cells, K) : ±1, the sign of each value in each cell
    """

    curves: Array
    signs: Array

    def values(self, points: Array) -> Array:
        """The values (M, K) at points (M, 2), one for each curve."""
        x, y = points.T
        return np.stack([np.ones(len(points)), x, y, x**2 + y**2], axis=1) @ self.curves.T

    def locate(self, points: Array) -> Array:
        """The number (M,) of the cell that holds each point, or that is nearest to it."""
        values = self.values(points)
        best = np.full(len(points), -np.inf)
        numbers: Array = np.zeros(len(points), dtype=int)
        for number, signs in enumerate(self.signs):
            depth = (signs * values).min(axis=1, initial=np.inf)
            better = depth > best
            best[better], numbers[better] = depth[better], number
        return numbers

    def neighbour(self, cell: int, curve: int) -> int | None:
        """The cell on the other side of a curve."""
        signs = self.signs[cell].copy()
        signs[curve] *= -1
        same = np.flatnonzero((self.signs == signs).all(axis=1))
        return int(same[0]) if len(same) else None

    def arcs(self, curve: int, around: Array) -> Arcs:
        """A curve where it passes the box ``around`` (2, 2), with positive values on its left."""
        constant, *slope, bend = self.curves[curve].tolist()
        if bend:
            centre = -0.5 * np.array(slope) / bend
            radius = float(np.sqrt(centre @ centre - constant / bend))
            quarters = np.ones(4)
            chart: Any = Conic("", centre, radius * np.eye(2))
            return Arcs(chart, np.arange(4), 0 * quarters, quarters, -np.sign(bend) * quarters)
        normal = np.array(slope)
        middle = around.mean(axis=1)
        foot = middle - (constant + normal @ middle) * normal
        # from the point nearest to the middle of the box, a diameter reaches beyond it
        along = float(np.linalg.norm(np.diff(around, axis=1))) * np.array([normal[1], -normal[0]])
        one = np.ones(1)
        return Arcs(Segments("", (foot - along)[None], (foot + along)[None]), np.zeros(1, dtype=int), 0 * one, one, one)

    def holds(self, cell: int, without: int | None = None) -> Callable[[Array], Array]:
        """A test whether points (M, 2) are on the side of a cell for all curves but one."""
        others = [k for k in range(len(self.curves)) if k != without]

        def inside(points: Array) -> Array:
            return np.asarray((self.values(points) * self.signs[cell])[:, others].min(axis=1, initial=np.inf) > 0)

        return inside

    def pack(self) -> dict[str, Array]:
        """The arrays of a file."""
        return {"curves": self.curves, "signs": self.signs.astype(float)}


def unpack_arrangement(arrays: Mapping[str, Array]) -> Arrangement:
    """The inverse of ``Arrangement.pack``."""
    curves = floats(arrays, "curves", (None, 4))
    return Arrangement(curves, floats(arrays, "signs", (None, len(curves))))


def arranged(curves: Sequence[Array], inside: Array) -> tuple[Arrangement, Array]:
    """The cells that points (M, 2) of a domain lie in, and which curves (K,) divide it; the others are left out."""
    whole = Arrangement(np.array(curves).reshape(-1, 4), np.empty((0, len(curves))))
    signs = np.where(whole.values(inside) > 0, 1.0, -1.0)
    dividing = np.ptp(signs, axis=0) > 0
    return Arrangement(whole.curves[dividing], np.unique(signs[:, dividing], axis=0)), dividing


def line(point: Array, normal: Array) -> Array:
    """The numbers (4,) of the line through a point, with positive values where its normal leads."""
    unit = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    return np.array([-float(unit @ point), *unit, 0.0])


def dividing_curve(level: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Array | None:
    """The numbers (4,) of a line or a circle on which a formula vanishes, None for any other curve.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> dividing_curve(x**2 + y**2 - 4 * y, (x, y)).tolist(), dividing_curve(x * y - 1, (x, y))
    ([0.0, 0.0, -1.0, 0.25], None)
    """
    roots = [node for node in level.atoms(sympy.Pow) if node.exp == sympy.Rational(1, 2) and node.free_symbols]
    if len(roots) == 1:  # √P = c is P = c²
        mark = sympy.Dummy()
        plain = sympy.Poly(level.xreplace({roots[0]: mark}), mark)
        if plain.degree() != 1 or plain.free_symbols_in_domain:
            return None
        slope, rest = plain.all_coeffs()
        if -rest / slope < 0:
            return None
        level = roots[0].base - (rest / slope) ** 2
    if not level.is_polynomial(*symbols):
        return None
    terms = dict(sympy.Poly(level, *symbols).terms())
    if any(sum(power) > 2 for power in terms) or any(not value.is_number for value in terms.values()):
        return None
    coefficients = {power: float(value) for power, value in terms.items()}
    bend, other = coefficients.get((2, 0), 0.0), coefficients.get((0, 2), 0.0)
    if abs(bend - other) > ROUNDED * abs(bend) or coefficients.get((1, 1), 0.0):
        return None
    curve = np.array(
        [coefficients.get((0, 0), 0.0), coefficients.get((1, 0), 0.0), coefficients.get((0, 1), 0.0), bend]
    )
    if not bend:
        return curve / np.hypot(curve[1], curve[2])
    square = (curve[1] ** 2 + curve[2] ** 2) / (4 * bend**2) - curve[0] / bend
    return curve / (2 * abs(bend) * np.sqrt(square)) if square > 0 else None
