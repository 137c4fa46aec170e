"""Kirchhoff's plate, c ∇⁴w + k w = f, in weak form: which conditions are prescribed, which are natural.

With Poisson's ratio ν the energy is that of the moments M = c ((1 - ν) ∇²w + ν Δw 1), and

    ∫ M(w):∇²v  =  ∫ c ∇⁴w v  +  ∮ M_nn ∂_n v - (c w_nnn + c (2 - ν) w_ntt) v  +  corner forces.

ν does not occur in the equation, only in the conditions. A moment, w_nn + ν w_tt = m, and a shear force,
w_nnn + (2 - ν) w_ntt = q, are natural for one ν, which all sides on which w is not prescribed have to share. Forces at
free corners are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.statement.expression import Expression
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.rounding import COMPUTED

BIHARMONIC: dict[MultiIndex, float] = {(4 - 2 * k, 2 * k): float(comb(2, k)) for k in range(3)}
"""Coefficients of laplace(laplace(u))."""


@dataclass(frozen=True, eq=False)
class PlateForm:
    """A plate: stiffness c, Poisson's ratio ν, and the conditions by the order of their derivatives."""

    problem: Problem
    stiffness: float
    ratio: float

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.problem.constraints

    def at(self, points: Array) -> tuple[Array, Array]:
        """Load (M,) and foundation k (M,) at points, of the equation with c > 0."""
        value, partials = _coefficients(self.problem, self._expression, points)
        sign = self._sign
        return -sign * value, sign * partials.get((0, 0), np.zeros(len(points)))

    @property
    def _expression(self) -> Expression:
        return self.problem.interior[0].expression

    @property
    def _sign(self) -> float:
        points = self.problem.domain.sample(1, rng=0)
        return float(np.sign(_coefficients(self.problem, self._expression, points)[1][4, 0][0]))

    def data(self, term: Term, points: Array, normals: Array) -> tuple[int, Array]:
        """Which derivative along the outward normal a condition prescribes, 0 to 3, and its values (M,)."""
        value, partials = _coefficients(self.problem, term.expression, points, normals)
        order = _order(term)
        axis = int(np.abs(normals[0]).argmax())
        lead = tuple(order if a == axis else 0 for a in range(2))
        sign = normals[:, axis] ** order
        return order, -value / (partials[lead] * sign)

    def described(self) -> list[str]:
        """The lines of the report."""
        return [f"weak form of a plate with Poisson's ratio {self.ratio:.4g} at sides that are not held, symmetric"]


def _coefficients(
    problem: Problem, expression: Expression, points: Array, normals: Array | None = None
) -> tuple[Array, dict[MultiIndex, Array]]:
    """Values (M,) without the field, and coefficients (M,) of its derivatives."""
    words = problem.vocabulary
    known = words.at(points, normals)
    still = {jet: np.zeros(len(points)) for jet in expression.jets}
    value, partials = expression.linearised(known, still)
    coefficients = {jet.index: np.broadcast_to(partial, (len(points),)) + 0.0
             for jet, partial in zip(expression.jets, partials, strict=True)}  # fmt: skip
    return np.broadcast_to(value, (len(points),)) + 0.0, coefficients


def plate_form(problem: Problem) -> PlateForm:
    """The plate that a problem is; NoDivergenceForm, with the reason, where it is none.

    >>> from rannpde.domains import Box
    >>> sides = {"x=0": ("u = 0", "u_x = 0"), "x=1": ("u = 0", "u_x = 0"), "y=0": ("u_yy + 0.3*u_xx = 0",
    ...          "u_yyy + 1.7*u_xxy = 0"), "y=1": ("u_yy + 0.3*u_xx = 0", "u_yyy + 1.7*u_xxy = 0")}
    >>> plate_form(Problem("laplace(laplace(u)) = 1", Box(x=(0, 1), y=(0, 1)), sides)).ratio
    0.3
    """
    if len(problem.fields) != 1 or not problem.linear or problem.domain.dim != 2:
        raise NoDivergenceForm("the problem is no plate of one linear equation in the plane")
    expression = problem.interior[0].expression
    if max(jet.order for jet in expression.jets) != 4:
        raise NoDivergenceForm("the equation is not of fourth order")
    points = problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    _, partials = _coefficients(problem, expression, points)
    lead = partials.get((4, 0), np.zeros(1))
    size = float(np.abs(lead).max())
    fits = size > 0 and set(partials) <= {*BIHARMONIC, (0, 0)} and set(BIHARMONIC) <= set(partials)
    fits = fits and all(np.abs(partials[index] - factor * lead[0]).max() <= COMPUTED * size
                        for index, factor in BIHARMONIC.items())  # fmt: skip
    if not fits:
        raise NoDivergenceForm("the equation is no constant times laplace(laplace(u)), and a foundation")
    held = {str(term.region): term for term in problem.constraints if _order(term) == 0}
    every = [(term, _ratio(problem, term)) for term in problem.constraints]
    ratios = {term.name: stated for term, stated in every if stated is not None and str(term.region) not in held}
    candidates = list(ratios.values()) or [stated for _, stated in every if stated is not None]
    ratio = next(iter(candidates), 0.0)
    for name, other in ratios.items():
        if abs(other - ratio) > COMPUTED:
            raise NoDivergenceForm(f"condition {name!r} has Poisson's ratio {other:.4g}, another one {ratio:.4g}")
    if not -1 < ratio < 1:
        raise NoDivergenceForm(f"Poisson's ratio of the conditions is {ratio:.4g}, not between -1 and 1")
    for term, stated in every:  # on a held side w_tt is known, and a moment of any ratio is natural where it is zero
        if stated is not None and str(term.region) in held and abs(stated - ratio) > COMPUTED:
            deflection = held[str(term.region)]
            assert isinstance(deflection.region, Side)
            points = deflection.region.sample(COEFFICIENT_SAMPLES, rng=0)
            if np.ptp(_coefficients(problem, deflection.expression, points, deflection.region.normals(points))[0]) > 0:
                raise NoDivergenceForm(f"condition {term.name!r} has another Poisson's ratio than free sides")
    if (0, 0) not in partials and _free_motions(problem):
        raise NoDivergenceForm("nothing holds a rigid motion of the plate")
    return PlateForm(problem, size, round(ratio, 12))


def _order(term: Term) -> int:
    return max(jet.order for jet in term.expression.jets)


def _free_motions(problem: Problem) -> bool:
    """Whether deflections and slopes that are prescribed leave one of 1, x, y free."""
    rows = [np.zeros((1, 3))]
    for term in problem.constraints:
        if _order(term) < 2 and isinstance(term.region, Side):
            points = term.region.sample(COEFFICIENT_SAMPLES, rng=0)
            if _order(term) == 0:
                middle = np.asarray(problem.domain.bounds, dtype=float).mean(axis=1)
                size = np.diff(np.asarray(problem.domain.bounds, dtype=float), axis=1)[:, 0]
                rows.append(np.column_stack([np.ones(len(points)), (points - middle) / size]))
            else:
                rows.append(np.column_stack([np.zeros(len(points)), term.region.normals(points)]))
    return bool(np.linalg.matrix_rank(np.concatenate(rows)) < 3)


def _ratio(problem: Problem, term: Term) -> float | None:
    """ν of a moment or of a shear force; None of other conditions. NoDivergenceForm where a condition is none of a
    plate."""
    region = term.region
    refusal = NoDivergenceForm(f"condition {term.name!r} is no deflection, slope, moment or shear force of a plate")
    if term.kind != "boundary" or not isinstance(region, Side):
        raise NoDivergenceForm(f"condition {term.name!r} is no condition on the boundary")
    if not isinstance(region, FlatSide):
        raise NoDivergenceForm(f"condition {term.name!r} holds on sides that are not along an axis")
    points = region.sample(COEFFICIENT_SAMPLES, rng=0)
    normals = region.normals(points)
    order = max(jet.order for jet in term.expression.jets)
    _, partials = _coefficients(problem, term.expression, points, normals)
    axis = region.axis
    lead = tuple(order if a == axis else 0 for a in range(2))
    if order > 3 or lead not in partials or np.ptp(partials[lead]) > COMPUTED * np.abs(partials[lead]).max():
        raise refusal
    size = float(partials[lead][0])
    rest = {index: partial / size for index, partial in partials.items() if index != lead}
    rest = {index: partial for index, partial in rest.items() if np.abs(partial).max() > COMPUTED}
    if order < 2:
        if rest:
            raise refusal
        return None
    beside = (0, 2) if axis == 0 else (2, 0)
    across = beside if order == 2 else tuple(1 if a == axis else 2 for a in range(2))
    if set(rest) - {across}:
        raise refusal
    given = rest.get(across, np.zeros(1))
    if np.ptp(given) > COMPUTED:
        raise refusal
    return float(given[0]) if order == 2 else 2.0 - float(given[0])
