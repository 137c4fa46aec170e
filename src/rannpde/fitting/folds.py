"""Cross-validation from sums alone: every fold is a part, and the data are read once.

For folds k = 1 … K the fit to all other folds is judged on the sums of fold k, whose misfit is a quadratic form,

    Σ |wᵀφ - y|² = Σ y² - 2 w·Σ φy + w·(Σ φφᵀ) w,

or |R [w; -1]|² with a triangular factor. The penalty with the least misfit over all folds is taken for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import positive_integer, require
from rannpde.fitting.fit import FitMethod, RandomLayer, Samples
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.fitting.parts import Part
from rannpde.fitting.path import Fitted, relative_error

FOLDS = 5
"""Parts of the data when no number is given: the customary one."""
PER_DECADE = 4
"""Penalties tried in a factor of 10; the minimum of a cross-validation is flatter than that."""

T = TypeVar("T")


def checked_folds(folds: int | None) -> int:
    """The number of folds, 5 for None; a whole number ≥ 2."""
    count = FOLDS if folds is None else positive_integer("folds", folds)
    require(count >= 2, "folds", count, "a whole number ≥ 2", "each fold is judged by a fit to the others")
    return count


@dataclass(frozen=True, eq=False)
class Trials:
    """Penalties to try (P,), and the unit in which all folds are judged."""

    penalties: Array
    unit: float

    @classmethod
    def of(cls, whole: Part) -> Trials:
        """A grid up to ten times the size of the features, Σ|φ|²/M, and down to the rounding of the equations."""
        deepest = 28 if isinstance(whole.equations, OrthogonalEquations) else 14
        grid = np.logspace(-deepest, 1, (deepest + 1) * PER_DECADE + 1)
        return cls(whole.equations.size * grid, whole.unit)


def fold_misfits(rest: Part, fold: Part, trials: Trials) -> Array:
    """Σ |u(z_i) - y_i|² over the fold (P,), for the fit to the rest with each penalty."""
    fits = rest.in_unit(trials.unit).path().solve_all(trials.penalties.tolist())
    held_out = fold.in_unit(trials.unit)
    return np.array([held_out.misfit(fit.coefficients) for fit in fits])


def chosen_fit(whole: Part, trials: Trials, misfits: Sequence[Array]) -> Fitted:
    """The whole fitted with the penalty of the least sum of misfits, and its relative error on the held-out folds."""
    total = np.sum(misfits, axis=0)
    best = int(np.argmin(total))
    error = relative_error(float(total[best]), whole.equations.square_sum)
    return replace(whole.fit(float(trials.penalties[best])), validation_error=error)


def fit_folds(features: RandomLayer, samples: Samples, method: FitMethod, folds: int | None) -> Fitted:
    """Fit arrays with the penalty that predicts each fold from the others best; row i is in fold i modulo ``folds``."""
    require(samples.repeatable, "penalty", "folds", "a number or 'gcv' with a stream of blocks")
    dealt = [Part.of(features, fold, method) for fold in samples.dealt(checked_folds(folds))]
    parts = [part for part in dealt if part is not None]
    require(len(parts) == len(dealt), "points with rows", samples.rows, f"at least {len(dealt)}, the number of folds")
    return cross_validated(parts)


def cross_validated(folds: Sequence[Part]) -> Fitted:
    """The fit to all folds with the penalty that predicts each from the others best."""
    whole = tree(folds, Part.merge)
    trials = Trials.of(whole)
    misfits = [fold_misfits(tree(others(folds, k), Part.merge), fold, trials) for k, fold in enumerate(folds)]
    return chosen_fit(whole, trials, misfits)


def others(items: Sequence[T], k: int) -> list[T]:
    """All but the item at k."""
    return [*items[:k], *items[k + 1 :]]


def tree(items: Sequence[T], merge: Callable[[T, T], T]) -> T:
    """One out of many by merging neighbours again and again: the same tree for the same number of items.

    >>> tree(["a", "b", "c", "d", "e"], lambda left, right: f"({left}{right})")
    '(((ab)(cd))e)'
    """
    while len(items) > 1:
        merged = [merge(*pair) for pair in zip(items[::2], items[1::2], strict=False)]
        items = [*merged, *items[2 * len(merged) :]]
    return items[0]
