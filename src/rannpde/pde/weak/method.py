"""WeakCells: the weak form on cells with local random networks, as a choice of settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import positive_integer, require
from rannpde.pde.capability import Capability
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.evolution import WeakEvolution, weak_evolution
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.formulations import formulation_of, fourth_order
from rannpde.pde.weak.meshing import shape_obstacle
from rannpde.pde.weak.plate import plate_obstacle
from rannpde.pde.weak.plate_form import plate_form
from rannpde.pde.weak.run import WeakRun
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation


@dataclass(frozen=True)
class WeakCells:
    """Solve the weak form on boxes, each with a random network of its own, coupled by traces on their faces.

    For stationary equations of second order in divergence form, Σ ∂_i F_i(x, u, ∇u) + f(x, u, ∇u) = 0, scalar or
    systems, in two and three coordinates, by Newton's method where they are not linear (docs/nonlinear.md), for linear
    evolutions on plane shapes, and for plates, laplace(laplace(u)) = f, on boxes.
    Right where solutions are not smooth: mixed conditions, corners, jumping coefficients, elasticity (docs/weak.md).

    degree : of the first solve; the functions of a cell are as good as polynomials of it; None follows ``tol``
    settings : the numbers behind all this

    >>> import rannpde as rp
    >>> sides = {"left": rp.On("x=0", "u = 0"), "rest": rp.On("boundary except x=0", "dn(u) = 0")}
    >>> plate = rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), sides, exact={"u": "x - x**2/2"})
    >>> solution = rp.solve(plate, tol=1e-6, method=rp.WeakCells())
    >>> solution.converged, solution.errors()["u"] < 1e-6
    (True, True)
    """

    degree: int | None = None
    settings: WeakSettings = field(default_factory=WeakSettings)

    name = "weak"
    reason: ClassVar[str] = "the equations have a divergence form, and the solution need not be smooth"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset({Status.STALLED})
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.SLITS, Capability.INEQUALITIES, Capability.FREE_CORNERS}
    )

    def __post_init__(self) -> None:
        if self.degree is not None:
            most = max(self.settings.most_degree)
            require(2 <= positive_integer("degree", self.degree) <= most, "degree", self.degree, f"from 2 to {most}")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        reasons = []
        timed = isinstance(problem.domain, SpaceTime)
        space = problem.domain.space if isinstance(problem.domain, SpaceTime) else problem.domain
        if timed and space.dim != 2:
            reasons.append("the problem is one in time, and space is not a plane")
        if space.dim not in (2, 3):
            reasons.append(f"the domain has {space.dim} coordinates, not two or three")
        if problem.bounds:
            reasons.append("fields have bounds")
        if problem.periodic or problem.pairings:
            reasons.append("fields are periodic")
        if problem.inequalities and len(problem.fields) > 1:
            reasons.append("a field of a system is bounded by an inequality")
        if not problem.linear and problem.free_constants:
            reasons.append(f"nothing holds a constant in {', '.join(problem.free_constants)}")
        if reasons:
            return tuple(reasons)
        try:
            if not timed and fourth_order(problem):
                shape = plate_obstacle(plate_form(problem))
                return (shape,) if shape else ()
            form = _evolution(problem).still if timed else weak_formulation(problem)
            shape = shape_obstacle(form.problem, curved_solids=problem.linear and not problem.inequalities)
            if shape:
                return (shape,)
            WeakDiscretisation(form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None)
        except NoDivergenceForm as reason:
            return (str(reason),)
        return ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        timed = isinstance(problem.domain, SpaceTime)
        if not timed and fourth_order(problem):
            return ()
        evolution = _evolution(problem) if timed else None
        form = evolution.still if evolution is not None else weak_formulation(problem)
        if form.problem.domain.dim == 3 and shape_obstacle(form.problem):
            return ("cells that curved walls cut in space cost it many times what they cost least squares",)
        if problem.jumping or problem.inequalities or problem.free_constants:  # it checks compatible data
            return ()
        rough = WeakDiscretisation(form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None)
        if any(exponent < 1 for exponent in rough.exponents):
            return ()
        if evolution is not None and rough.mesher.clippers and evolution.starts_with_layer:
            return ()
        natural = [term for term in form.terms if any(jet.order for jet in term.expression.jets)]
        if form.fields > 1 and natural:
            return ()
        return ("its solution is smooth, where least squares of the strong form give more digits",)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: identification stands on the strong form, whose models have the linearisation that it needs."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate."""

        run = WeakRun(problem, self.settings, monitor, self.name, why)
        formulation = formulation_of(
            problem, tol, self.settings, rng, run.check_budget, lambda: monitor.exhausted, self.degree
        )
        return run.solve(formulation, tol)


@lru_cache(maxsize=1)
def _evolution(problem: Problem) -> WeakEvolution:
    """The evolution of a problem that obstacles and drawbacks examine; a solve moves the time in one of its own."""
    return weak_evolution(problem)
