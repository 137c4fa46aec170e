"""Incompressible flow in time, recognised from its statement: ρ ∂_t u + (a stationary flow at every moment) = 0.

The problem in space has a number in the place of ∂_t, from which ρ is computed, and a function in the place of the
time, which returns the moment at which data are wanted, as for other evolutions in weak form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.time.integration import InitialValues, integration_obstacles, orders_in_time
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.time.tableau import radau_tableau
from rannpde.pde.weak.evolution import RATE_NAMES, Held, SpatialStatements
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class FlowEvolution:
    """A flow in time.

    problem : in space and time; form : the flow in space at a moment; density : ρ over the factor of the pressure
    moment : the time of the data; moving : whether data change in time
    """

    problem: Problem
    form: FlowForm
    density: float
    moment: Held
    moving: bool

    @property
    def interval(self) -> tuple[float, float]:
        assert isinstance(self.problem.domain, SpaceTime)
        start, end = self.problem.domain.time
        return float(start), float(end)

    @property
    def start(self) -> InitialValues:
        return InitialValues.of(self.problem)


def flow_evolution(problem: Problem) -> FlowEvolution:
    """The flow in time that a problem states; NoFlow, with the reason, where it is none.

    >>> from rannpde.domains import SpaceTime
    >>> equations = ["3*u_t + p_x = laplace(u)", "3*v_t + p_y = laplace(v)", "u_x + v_y = 0"]
    >>> conditions = {"start": On("t=0", ("u = 0", "v = 0")), "walls": On("boundary", ("u = y*t", "v = 0"))}
    >>> flow_evolution(Problem(equations, SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)), conditions)).density
    3.0
    """
    if not isinstance(problem.domain, SpaceTime):
        raise NoFlow("the domain has no time")
    orders = orders_in_time(problem)
    if len(orders) != 3 or sorted(orders.values()) != [0, 1, 1]:
        raise NoFlow("there are not two components of a velocity with first derivatives in time and a pressure")
    reasons = integration_obstacles(problem)
    if reasons:
        raise NoFlow(reasons[0])
    if not all(isinstance(one, On) for one in problem.conditions.values()):
        raise NoFlow("fields are periodic or measured, which is for stationary flows")
    for term in problem.constraints:
        if term.kind != "initial" and any(jet.index[0] for jet in term.expression.jets):
            raise NoFlow(f"condition {term.name!r} has a derivative in time")
    start, end = problem.domain.time
    # singular points are sought with the data of a time after the start, at which many data are zero
    moment = Held(start + radau_tableau(3).nodes[1] * (end - start))
    rates = tuple(tuple(Held() for _ in problem.fields) for _ in RATE_NAMES)
    try:
        states = SpatialStatements(problem, moment, (rates[0], rates[1]))
    except NoDivergenceForm as reason:
        raise NoFlow(str(reason)) from None
    form = flow_formulation(states.at((0.0, 0.0)))
    if form.gauges:
        raise NoFlow("a condition gives the constant of the pressure, which has the mean zero at every moment here")
    return FlowEvolution(problem, form, _density(form, flow_formulation(states.at((1.0, 0.0)))), moment, states.moving)


def _density(still: FlowForm, shifted: FlowForm) -> float:
    """ρ, the change of C with the number in the place of ∂_t."""
    points = still.problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    zero = np.zeros((len(points), 2)), np.zeros((len(points), 2, 2))
    derivatives = [form.inertia(points, *zero).by_velocity for form in (shifted, still)]
    change = derivatives[0] - derivatives[1]
    density = float(change[0, 0, 0])
    if not np.abs(change - density * np.eye(2)).max() <= COMPUTED * abs(density):
        raise NoFlow("the coefficient of the derivative in time is not one number for both components")
    if not density > 0:
        raise NoFlow("the density is not positive against the pressure gradient: the signs do not belong together")
    return density
