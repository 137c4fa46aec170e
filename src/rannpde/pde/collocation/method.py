"""Collocation: Gauss–Newton on all output weights at once, as a choice of settings.

A random network in all coordinates, time among them, whose output weights minimise the residuals at points: the PINN
loss. It applies to stationary problems and to evolution in space-time alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import choose, positive_integer, positive_number, reject, require
from rannpde.network.activations import as_activation
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import WeightLaw
from rannpde.pde.adaptivity.result import Iteration, iteration_lines, iteration_table, iterations_from
from rannpde.pde.capability import Capability
from rannpde.pde.collocation.iterations import AdaptiveCollocation, by_slabs
from rannpde.pde.collocation.loop import CollocationResult
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.gauss_newton import GaussNewton, GaussNewtonStep
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import loss_integrals
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.start import check_weights


@dataclass(frozen=True)
class Collocation:
    """Minimise the residuals of any stated problem at points by Gauss–Newton on the output weights.

    width : neurons per subdomain; None doubles them until two iterations agree
    scale : largest hidden weight on the domain mapped to [-1, 1]^n, one number or one per coordinate; None searches
    activation, law : of the hidden layer; not for periodic problems, whose features are cosines of integer frequencies
    placement : "uniform" samples neurons by the law, "placed" puts them where the solution varies, on a growing time
        window; None tries the second where the first leaves a large residual
    slabs : number of time slabs, solved one after the other
    subdomains : {"x": 4} divides the domain along x into four subdomains, coupled by continuity
    features : a hidden layer of your own
    guess : field → formula or callable with derivatives, or a Solution
    weights : factors of the rows of an equation or condition, by name, in addition to the balance (see ``first_step``)
    points_per_column : collocation points inside per column
    newton : settings of Gauss–Newton; tuning : the empirical settings

    >>> from rannpde.pde.solve import solve
    >>> from rannpde.pde.zoo import zoo
    >>> solve(zoo("poisson"), tol=1e-6, method=Collocation(width=200, scale=1.0)).errors()["u"] < 1e-6
    True
    """

    width: int | None = None
    scale: float | Sequence[float] | None = None
    activation: str | None = None
    law: WeightLaw | None = None
    placement: str | None = None
    slabs: int = 1
    subdomains: Mapping[str, int] = field(default_factory=dict)
    features: RandomFeatures | FourierFeatures | None = None
    guess: Any = None
    weights: Mapping[str, float] = field(default_factory=dict)
    points_per_column: float | None = None
    newton: GaussNewton | None = None
    tuning: CollocationTuning = field(default_factory=CollocationTuning)

    name = "collocation"
    reason: ClassVar[str] = "it takes every problem"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset()
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        if self.width is not None:
            object.__setattr__(self, "width", positive_integer("width", self.width))
        positive_integer("slabs", self.slabs)
        if self.points_per_column is not None:
            positive_number("points_per_column", self.points_per_column)
        if self.scale is not None:
            single = isinstance(self.scale, str) or np.ndim(self.scale) == 0
            for value in [self.scale] if single else list(self.scale):  # type: ignore[arg-type]
                positive_number("scale", value)
        if self.placement is not None:
            choose("placement", self.placement, dict.fromkeys(("uniform", "placed")))
        if self.activation is not None:
            as_activation(self.activation)
        require(isinstance(self.subdomains, Mapping), "subdomains", self.subdomains, 'a mapping such as {"x": 4}')
        require(isinstance(self.weights, Mapping), "weights", self.weights, "a mapping of names to numbers")
        kinds = {"law": WeightLaw, "newton": GaussNewton, "features": RandomFeatures | FourierFeatures}
        for key, kind in kinds.items():
            value = getattr(self, key)
            require(value is None or isinstance(value, kind), key, value, f"an object of {kind}", "or left out")
        self._refuse_unused()

    def _refuse_unused(self) -> None:
        """Refuse settings that the chosen kind of features could not use."""
        sampling = ("scale", "activation", "law")
        groups = {
            "placement='placed'": (self.placement == "placed", (*sampling, "subdomains", "points_per_column")),
            "features=…": (self.features is not None, ("width", *sampling, "placement", "subdomains")),
            "law=…": (self.law is not None, ("scale",)),
        }
        for cause, (active, useless) in groups.items():
            for key in useless:
                if active and getattr(self, key) not in (None, {}):
                    reject(key, getattr(self, key), f"left out with {cause}", "it would have no effect")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Return reasons why this method cannot solve the problem: a flux that jumps, as its networks are smooth."""
        return tuple(f"the flux of equation {name!r} jumps" for name in problem.jumping)

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Return reasons to prefer another method that can solve the problem too: there are none."""
        return ()

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: Gauss–Newton on one network gives no model, and identification solves anew at every value."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """Return the solution with a relative L² error of about ``tol``, or the best one so far, with its error
        estimate."""
        self._refuse_for(problem)
        if self.slabs > 1:
            return self._solution(problem, by_slabs(problem, self, tol, monitor, rng), monitor, why)
        adaptive = AdaptiveCollocation(problem, self, tol, monitor, rng)
        adaptive.on_result = lambda make: monitor.keep(lambda *end: self._solution(problem, make(*end), monitor, why))
        return self._solution(problem, adaptive.run(), monitor, why)

    def _refuse_for(self, problem: Problem) -> None:
        """Refuse settings that this problem could not use, or that name what it does not have."""
        if problem.periodic:
            for key in ("activation", "law"):
                require(getattr(self, key) is None, key, getattr(self, key), "left out for a periodic problem")
        if self.slabs > 1 and not isinstance(problem.domain, SpaceTime):
            reject("slabs", self.slabs, "1, as the domain has no time")
        if self.features is not None:
            same = self.features.dim == problem.domain.dim
            require(same, "features of dim", self.features.dim, f"{problem.domain.dim}, as the domain")
        check_weights(problem, self.weights)

    def _solution(self, problem: Problem, result: CollocationResult, monitor: Monitor, why: str) -> Solution:
        best = result.best
        losses = {name: total / count for name, (total, count) in best.losses.items()}
        tried = tuple(dict.fromkeys((one.label, one.score) for one in result.others))
        linear_seconds = sum(one.descent.solve_seconds for one in (best, *result.others))
        history = CollocationHistory(best.descent.steps, result.iterations, tried, linear_seconds)
        return Solution(
            problem=problem, fields=problem.fields, function=best.network, status=result.status, detail=result.detail,
            estimate=result.estimate, held_out=best.held_out, losses=losses,
            integrals=loss_integrals(problem, losses),
            history=history, method=Choice(self.name, f"collocation, {best.label}", why), seconds=monitor.elapsed,
        )  # fmt: skip


@dataclass(frozen=True)
class CollocationHistory:
    """The history of collocation.

    newton_steps : residual norm, step, damping, rank and condition of every Gauss–Newton step of the chosen trial
    iterations : widths, residuals and differences; tried : the trials of the search for scales, (label, residual)
    linear_seconds : time spent in orthogonal factorisations
    """

    newton_steps: tuple[GaussNewtonStep, ...]
    iterations: tuple[Iteration, ...]
    tried: tuple[tuple[str, float], ...]
    linear_seconds: float

    advice = "more width, another scale, slabs, placement='placed' or a better guess of rp.Collocation may help"

    def lines(self) -> list[str]:
        """Return the lines for the report."""
        lines = iteration_lines(self.iterations)
        if self.newton_steps:
            last = self.newton_steps[-1]
            lines.append(f"{len(self.newton_steps)} step(s), rank {last.rank}, condition {last.condition:.1e}")
        lines += [f"tried {label}: {score:.2e}" for label, score in self.tried]
        return [*lines, f"{self.linear_seconds:.2f} s in orthogonal factorisations"]

    def to_table(self) -> dict[str, Any]:
        """Return the same as data that JSON can hold."""
        return {
            "newton_steps": iteration_table(self.newton_steps),
            "iterations": iteration_table(self.iterations),
            "tried": [list(one) for one in self.tried],
            "linear_seconds": self.linear_seconds,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> CollocationHistory:
        return cls(
            iterations_from(GaussNewtonStep, table["newton_steps"]),
            iterations_from(Iteration, table["iterations"]),
            tuple((str(label), float(score)) for label, score in table["tried"]),
            float(table["linear_seconds"]),
        )
