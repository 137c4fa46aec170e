"""Points of one term in one cell, with everything that is known there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.residual import Term


@dataclass(frozen=True, eq=False)
class Place:
    """Points (P, n) of one term in one cell, weights (P,), sum 1, what is known there, and ∂^index of the functions."""

    term: Term
    points: Array
    weights: Array
    known: Mapping[sympy.Symbol, Array]
    tables: Mapping[MultiIndex, Array]
