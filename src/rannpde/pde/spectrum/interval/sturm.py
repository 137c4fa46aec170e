"""Scalar problems of second order with real coefficients: self-adjoint in a weighted space (Sturm and Liouville).

    a u'' + b u' + c u + λ r u = 0   is   (P u')' + (P c / a) u + λ (P r / a) u = 0 ,   P = exp ∫ b/a .

A function that satisfies the conditions and leaves the residual R has an eigenvalue within δ = ‖R‖ / ‖u‖ in the
weighted norm (Weinstein), and within δ² / gap where the others are further away (Kato and Temple). How many eigenvalues
lie below a number is counted by the Prüfer angle, on coefficients that are piecewise constant (Pruess 1973), which is
independent of the discretisation that gave them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import atan2, ceil, cos, cosh, exp, floor, log, pi, sin, sinh, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss, legint, legval, legvander

from rannpde.arrays import Array
from rannpde.pde.spectrum.interval.basis import PiecewisePolynomial
from rannpde.pde.spectrum.interval.system import IntervalForm
from rannpde.pde.spectrum.pencil import LinearTerm
from rannpde.pde.statement.expression import Jet
from rannpde.rounding import ROUNDED

PRUEFER_SUBINTERVALS = 4000
"""Subintervals of constant coefficients for the Prüfer angle: they shift eigenvalues by the square of their length, and
only the number of eigenvalues below a value between two of them is needed."""
STEEPEST = -log(ROUNDED)
"""Largest exponent within a subinterval: beyond, the decaying part is rounding beside the growing one."""


@dataclass(frozen=True, eq=False)
class SturmLiouville:
    """A scalar real problem of second order whose weight has one sign.

    separated : whether each condition is at one end, in contrast to periodic ones
    """

    form: IntervalForm
    equation: LinearTerm
    separated: bool

    @classmethod
    def of(cls, form: IntervalForm) -> SturmLiouville | None:
        """The problem in this form; None where it does not have it."""
        pencil = form.pencil
        if form.orders != (2,) or form.complex or pencil.degree != 1 or any(form.jumps.values()):
            return None
        (equation,) = pencil.equations
        if any(1 in powers and jet.order for jet, powers in equation.coefficients.items()):
            return None
        if any(condition.degree for condition in pencil.conditions) or (form.periodic and abs(form.phase) > 0):
            return None
        lower, upper = form.ends
        points = np.linspace(lower, upper, 259)[1:-1]
        second, _, _, mass = _coefficients(form, equation, points)
        ratio = mass / second
        if not np.isfinite(ratio).all() or not ((ratio > 0).all() or (ratio < 0).all()):
            return None
        sides = [condition.term.region.outward for condition in pencil.conditions]  # type: ignore[union-attr]
        separated = not form.periodic and len(set(sides)) == 2
        if not separated and not form.periodic:
            return None
        return cls(form, equation, separated)

    @property
    def sign(self) -> float:
        """1 where eigenvalues go to +∞, -1 where they go to -∞."""
        lower, upper = self.form.ends
        second, _, _, mass = _coefficients(
            self.form, self.equation, np.array([lower + (3 - sqrt(5)) / 2 * (upper - lower)])
        )
        return 1.0 if mass[0] / second[0] > 0 else -1.0

    def _log_weight(self, edges: Array, nodes: Array) -> Array:
        """log P (C, q) at nodes (q,) of all cells, with the maximum zero."""
        count = len(nodes)
        inverse = np.linalg.inv(legvander(nodes, count - 1))
        total = 0.0
        logs = np.zeros((len(edges) - 1, count))
        for cell, (low, high) in enumerate(pairwise(edges)):
            half = 0.5 * (high - low)
            second, first, _, _ = _coefficients(self.form, self.equation, low + half * (nodes + 1))
            if not first.any():
                logs[cell] = total
                continue
            series = legint(inverse @ (first / second), lbnd=-1) * half
            logs[cell] = total + legval(nodes, series)
            total += float(legval(1.0, series))
        return np.asarray(logs - logs.max())

    def residuals(self, functions: list[PiecewisePolynomial], values: Array, degree: int) -> Array:
        """δ (K,) of functions with eigenvalues (K,): the weighted norm of the residual over that of the function."""
        nodes, weights = leggauss(2 * degree + 8)
        edges = functions[0].edges
        half = 0.5 * np.diff(edges)
        points = (edges[:-1, None] + half[:, None] * (nodes + 1)).ravel()
        second, first, plain, mass = _coefficients(self.form, self.equation, points)
        factor = np.exp(self._log_weight(edges, nodes)).ravel()
        density = factor * np.abs(mass / second) * (half[:, None] * weights).ravel()
        residuals = []
        for function, value in zip(functions, values, strict=True):
            u, slope, curvature = (function.derivative(points[:, None], (k,))[:, 0] for k in range(3))
            residual = (second * curvature + first * slope + plain * u) / mass + value * u
            residuals.append(sqrt(float((density * residual**2).sum()) / max(float((density * u**2).sum()), 1e-300)))
        return np.array(residuals)

    def count_before(self, value: float, edges: Array) -> int:
        """How many eigenvalues lie between a number and the bounded end of the spectrum, for separated conditions."""
        count = max(8, ceil(PRUEFER_SUBINTERVALS / (len(edges) - 1)))
        fine = np.concatenate([np.linspace(a, b, count, endpoint=False) for a, b in pairwise(edges)])
        fine = np.append(fine, edges[-1])
        middle, widths = 0.5 * (fine[1:] + fine[:-1]), np.diff(fine)
        second, first, plain, mass = _coefficients(self.form, self.equation, middle)
        growth = np.concatenate([[0.0], np.cumsum(first / second * widths)])
        squares = (plain + value * mass) / second  # of the local wave number
        angle = self._angle(0)
        for k, (square, width) in enumerate(zip(squares.tolist(), widths.tolist(), strict=True)):
            log_growth = float(growth[k + 1] - growth[k])
            angle = _through(angle, square, width)
            if log_growth:  # P changes: the slope is P u' / P
                angle = _rescaled(angle, exp(-log_growth))
        end_angle = self._angle(1)
        end_angle = pi if end_angle == 0.0 else end_angle
        return max(0, floor((angle - end_angle) / pi) + 1)

    def _angle(self, end: int) -> float:
        """The angle θ in [0, π), tan θ = u / u', that a condition prescribes."""
        position = self.form.ends[end]
        words = self.form.pencil.problem.vocabulary
        for condition in self.form.pencil.conditions:
            region = condition.term.region
            if (region.outward > 0) == bool(end):  # type: ignore[union-attr]
                known = {
                    words.symbols[0]: np.array([position]),
                    words.normals[0]: np.array([-1.0 if end == 0 else 1.0]),
                }
                table = {jet.order: float(powers[0][0]) for jet, powers in condition.at(known, 1).items()}
                plain, slope = table.get(0, 0.0), table.get(1, 0.0)
                angle = atan2(-slope, plain)  # plain u + slope u' = 0
                return angle % pi if abs(angle % pi - pi) > 1e-14 else 0.0
        raise AssertionError("separated conditions are at both ends")


def _through(angle: float, square: float, width: float) -> float:
    """The angle θ, tan θ = u / u', after a subinterval of u'' + square · u = 0."""
    if square * width * width > 1e-12:
        wave = sqrt(square)
        return _rescaled(_rescaled(angle, 1 / wave) + wave * width, wave)
    turns = floor(angle / pi)
    part = angle - turns * pi
    u, slope = sin(part), cos(part)
    if square * width * width < -1e-12:
        rate = sqrt(-square)
        exponent = min(rate * width, STEEPEST)
        u, slope = (
            u * cosh(exponent) + slope / rate * sinh(exponent),
            u * rate * sinh(exponent) + slope * cosh(exponent),
        )
    else:
        u = u + slope * width
    after = atan2(u, slope)
    # u is positive at the beginning of a subinterval (or zero with a positive slope) and has at most one zero in it
    return turns * pi + (after if after >= 0 else after + 2 * pi)


def _rescaled(angle: float, factor: float) -> float:
    """The angle with tan θ divided by a positive factor, on the same branch: multiples of π/2 do not change."""
    turns = floor(angle / pi)
    part = angle - turns * pi
    return turns * pi + atan2(sin(part), factor * cos(part)) if part else angle


def _coefficients(form: IntervalForm, equation: LinearTerm, points: Array) -> tuple[Array, Array, Array, Array]:
    """a, b, c, r (M,) of a u'' + b u' + c u + λ r u = 0."""
    symbol = form.pencil.problem.vocabulary.symbols[0]
    coefficients = equation.at({symbol: points}, len(points))
    name, zero = form.fields[0], np.zeros(len(points))
    parts = [coefficients.get(Jet(name, (order,)), {}).get(0, zero) for order in (2, 1, 0)]
    return parts[0], parts[1], parts[2], coefficients.get(Jet(name, (0,)), {}).get(1, zero)
