"""The boundary of a solid for particular solutions: sides with their conditions, without corners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.domains.boundary.sides import Side
from rannpde.domains.shapes.base import Domain
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.rounding import ROOT_ROUNDED


@dataclass(frozen=True, eq=False)
class SolidSide:
    """One side with its condition; the names are those of segments of plane boundaries."""

    term: Term
    form: CanonicalForm
    straight: bool = False
    loop: int = 0
    corners: tuple[int, int] = (-1, -1)


@dataclass(frozen=True, eq=False)
class SolidBoundary:
    """All sides; length : canonical area of the boundary; radius : canonical radius of the domain about its middle."""

    segments: tuple[SolidSide, ...]
    length: float
    radius: float
    corners: tuple[()] = ()


def solid_boundary(domain: Domain, terms: Sequence[Term], form: CanonicalForm) -> SolidBoundary | str:
    """The boundary of a domain in space; a reason where conditions do not cover it once."""
    measure = sum(side.measure for side in domain.sides.values())
    if any(not isinstance(term.region, Side) for term in terms):
        return "a condition holds inside the domain"
    if abs(sum(term.measure for term in terms) - measure) > ROOT_ROUNDED * measure:
        return "the conditions do not cover the boundary exactly once"
    scale = float(form.matrix[0, 0])
    ends = np.asarray(domain.bounds, dtype=float)
    radius = 0.5 * float(np.linalg.norm(np.ptp(ends, axis=1))) * scale
    return SolidBoundary(tuple(SolidSide(term, form) for term in terms), measure * scale**2, radius)
