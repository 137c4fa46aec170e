"""Which conditions of plane elasticity are natural: those on tractions.

At corners Trefftz networks have singular features that satisfy the conditions of both sides. Where these are values and
tractions, finite energy decides which of the features belong to the solution, which is unique. Conditions on other
combinations of derivatives, such as normal derivatives of the displacements, have no energy: what satisfies them to
rounding may be another solution, singular at a corner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.potentials import PotentialModel
from rannpde.pde.trefftz.rows import condition_coefficients
from rannpde.pde.trefftz.segments import BoundarySegment
from rannpde.rounding import COMPUTED


def traction_rows(normal: Array, stiffness: float) -> Array:
    """The two tractions (2, 4) by (u_x, u_y, v_x, v_y) for a normal (2,); stiffness: (λ + μ)/μ.

    >>> traction_rows(np.array([1.0, 0.0]), 3.0).tolist()
    [[4.0, 0.0, 0.0, 2.0], [0.0, 1.0, 1.0, 0.0]]
    """
    lame, (x, y) = stiffness - 1.0, normal
    return np.array([[(lame + 2) * x, y, y, lame * x], [lame * y, x, x, (lame + 2) * y]])


def condition_without_energy(
    segments: Sequence[BoundarySegment], model: PotentialModel, words: Vocabulary
) -> str | None:
    """The name of the first condition with derivatives that are no combination of the tractions; None without one."""
    stiffness = 1.0 / (0.5 * model.alpha - 1.0)
    for segment in segments:
        if not any(jet.order for term in segment.terms for jet in term.expression.jets):
            continue
        middle = np.array([0.5])
        along = segment.slopes(middle)[0]
        tractions = traction_rows(np.array([along[1], -along[0]]) / np.linalg.norm(along), stiffness)
        jets, table = condition_coefficients(segment.terms, segment.points(middle), words)
        for term, row in zip(segment.terms, table[0], strict=True):
            slopes = np.zeros(4)
            for jet, value in zip(jets, row, strict=False):
                if jet.order:
                    slopes[2 * model.fields.index(words.fields.index(jet.field)) + jet.index.index(1)] += value
            natural = np.linalg.lstsq(tractions.T, slopes, rcond=None)[0] @ tractions
            if np.abs(slopes - natural).max() > COMPUTED * np.abs(slopes).max():
                return term.name
    return None
