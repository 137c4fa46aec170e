"""The numbers behind piecewise polynomials, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PolynomialSettings:
    """Degrees, and where refinement ends.

    most_degree : degree from which cells are cut instead: more unknowns in one cell no longer pay where a series has
        not converged by then; the first solve has a third of it, each further one half as much again
    most_unknowns : beyond, a dense factorisation takes minutes; as many are allowed in every cell where cells are
        solved one after the other
    """

    most_degree: int = 27
    most_unknowns: int = 3000

    @property
    def degree(self) -> int:
        """The degree of the first solve."""
        return self.most_degree // 3
