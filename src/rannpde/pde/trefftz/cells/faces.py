"""Conditions across faces: which combinations of derivatives are continuous, and their rows.

Where a flux of the statement jumps, as that of div(k grad u), the fields and the normal flux are continuous. Everywhere
else the solution is smooth: all Cauchy data of the system are continuous, and by the uniqueness of their continuation
(Holmgren) so is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.statement.interfaces import on_side
from rannpde.pde.statement.reading import read
from rannpde.pde.trefftz.potentials import PotentialModel


def side_of(problem: Problem, point: Array) -> Callable[[sympy.Expr], bool | None]:
    """A function from formulas of the coordinates to whether they are positive at a point (2,); None for fields."""
    known = dict(zip(problem.vocabulary.symbols, np.asarray(point)[:, None], strict=True))

    def positive(formula: sympy.Expr) -> bool | None:
        if not formula.free_symbols <= set(known) or formula.has(AppliedUndef):
            return None
        return bool(np.ravel(evaluate([formula], known)[0])[0] > 0)

    return positive


def one_sided(expression: Expression, positive: Callable[[sympy.Expr], bool | None]) -> Expression:
    """An expression as it stands in a cell, without its jumps."""
    return replace(expression, formula=on_side(expression.formula, positive), jumps=(), flux=None)


@dataclass(frozen=True, eq=False)
class FaceConditions:
    """Expressions, one for each cell that meets at a face, whose values are the same on both sides."""

    pairs: tuple[tuple[Expression, Expression], ...]

    @property
    def indices(self) -> list[MultiIndex]:
        """The derivatives that they contain."""
        return sorted({jet.index for pair in self.pairs for one in pair for jet in one.jets})


def smooth_conditions(problem: Problem, model: PotentialModel | None) -> FaceConditions:
    """The Cauchy data of the system: a solution for which these are continuous is smooth."""
    names = problem.fields
    texts = [f"{name} = 0" for name in names]
    if model is None:
        texts += [f"dn({name}) = 0" for name in names]
    elif model.system == "plate":
        texts += [f"dn({names[0]}) = 0", f"laplace({names[0]}) = 0", f"dn(laplace({names[0]})) = 0"]
    elif model.system == "elastic":
        texts += [f"dn({name}) = 0" for name in names]
    else:  # a Δu + s ∇p = 0 with 2a/s the pressure of the model: the stress is ∂ₙu + (s/a) p n
        u, v, p = (names[k] for k in model.fields)
        ratio = 2 / model.pressure
        texts = [f"{u} = 0", f"{v} = 0", f"dn({u}) + {ratio!r}*nx*{p} = 0", f"dn({v}) + {ratio!r}*ny*{p} = 0"]
    normal = [_normal(problem, axis) for axis in range(2)]
    texts = [text.replace("nx", normal[0]).replace("ny", normal[1]) for text in texts]
    expressions = [read(text, problem.vocabulary) for text in texts]
    return FaceConditions(tuple((one, one) for one in expressions))


def _normal(problem: Problem, axis: int) -> str:
    return f"n{problem.vocabulary.coordinates[axis]}"


def jump_conditions(problem: Problem, points: Sequence[Array]) -> FaceConditions:
    """Continuous fields and normal fluxes, for points (2,) in the two cells that meet."""
    sides = [side_of(problem, point) for point in points]
    fields = [read(f"{name} = 0", problem.vocabulary) for name in problem.fields]
    pairs = [(one, one) for one in fields]
    for expression in problem.expressions.values():
        flux = expression.flux
        assert flux is not None
        first, second = (one_sided(flux, side) for side in sides)
        pairs.append((first, second))
    return FaceConditions(tuple(pairs))
