"""What the empirical numbers of the solvers are worth: each is halved and doubled over a fixed set of problems.

    python -m benchmarks.sensitivity                        all fields, about an hour
    python -m benchmarks.sensitivity refinement placement.flat these fields, by name or with the group before it
    python -m benchmarks.sensitivity --used                 only which fields change anything at all
    python -m benchmarks.sensitivity --off                  what each rule is worth: all without it
    python -m benchmarks.sensitivity --list                 the fields and their values
    python -m benchmarks.sensitivity --problems heat wave   on these problems of the set

Tuples are changed as a whole, whole numbers stay whole and at least 1. SchurFactors of growth change by their excess
over 1, and shares between ½ and 1 go halfway to 1 instead of beyond it. Ratios are geometric means over the problems;
with the worst error in brackets; CPU seconds, since they bear other work on the machine. ``same`` marks fields where
both changes leave every result as it was, to the last bit: the set does not use them, or nobody needs them. ``noise``
marks those that change no more than another seed does. Both are candidates for deletion: ``--off`` tells whether the
rule that a number belongs to is needed at all.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

import rannpde as rp
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.zoo import zoo

SEEDS = (1, 2)
"""Of the runs that tell how much a result changes with the draw alone."""
BUDGET = 60.0
"""Seconds allowed for each solve; one that does not heed it is stopped after three times as many."""
GROWTH = ("finer", "tolerance_factor", "tighter", "growth", "factor")
"""SchurFactors from one iteration to the next, which mean nothing below 1."""
TIME_NOISE = 1.25
"""Ratios of CPU seconds nearer to 1 than this are noise."""


@dataclass(frozen=True)
class Case:
    """A problem, the error wanted, and the method by which it is solved."""

    name: str
    make: Callable[[], rp.Problem]
    tol: float
    settings: tuple[tuple[str, Any], ...] = ()


def kink() -> rp.Problem:
    """Transport of a kink, which no number of iterations resolves."""
    conditions = {"start": rp.On("t=0", "u = abs(x - 0.5)"), "inflow": rp.On("x=0", "u = abs(t + 0.5)")}
    domain = rp.SpaceTime(t=(0, 0.4), x=(0, 1))
    return rp.Problem("u_t + u_x = 0", domain, conditions, exact={"u": "abs(x - t - 0.5)"})


def blow_up() -> rp.Problem:
    """A solution that ends before its time."""
    conditions = {"start": rp.On("t=0", "u = 20*sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    return rp.Problem("u_t = u_xx + u**2", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions)


def pulse() -> rp.Problem:
    """A short source in time, which long steps would pass over."""
    exact = "sin(pi*x)*(1 + tanh(200*(t - 0.6)))"
    source = "sin(pi*x)*(200*(1 - tanh(200*(t - 0.6))**2) + pi**2*(1 + tanh(200*(t - 0.6))))"
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    return rp.Problem(f"u_t = u_xx + {source}", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, exact={"u": exact})


def flash() -> rp.Problem:
    """A source that comes and goes within a thousandth of the time."""
    bell = "exp(-(2000*(t - 0.6))**2)"
    equation = f"u_t = u_xx + sin(pi*x)*{bell}*(pi**2 - 2*2000**2*(t - 0.6))"
    domain, exact = rp.SpaceTime(t=(0, 1), x=(0, 1)), {"u": f"sin(pi*x)*{bell}"}
    return rp.Problem(equation, domain, {"t=0": "u = 0", "boundary": "u = 0"}, exact=exact)


def jump() -> rp.Problem:
    """Heat from a step."""
    conditions = {"t=0": "u = where(x < 0.5, 1, 0)", "x=0": "u = 1", "x=1": "u = 0"}
    return rp.Problem("u_t = 0.1*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions)


def layer() -> rp.Problem:
    """A load of width 0.01 inside an interval."""
    exact, slope = "tanh(100*(x - 0.4))", "(1 - tanh(100*(x - 0.4))**2)"
    conditions = {"ends": rp.On(("x=0", "x=1"), f"u = {exact}")}
    equation = f"u_xx = -20000*tanh(100*(x - 0.4))*{slope}"
    return rp.Problem(equation, rp.Interval(0, 1), conditions, exact={"u": exact})


def disc() -> rp.Problem:
    """Heat in a disc with a flux through its edge."""
    exact = "exp(-t)*(1 + x**2 + y)"
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "edge": rp.On("boundary", "dn(u) = exp(-t)*(2*x**2 + y)")}
    equation = f"u_t = laplace(u) - {exact} - 2*exp(-t)"
    return rp.Problem(equation, rp.SpaceTime(t=(0, 1), x=rp.Ball((0, 0), 1)), conditions, exact={"u": exact})


def waves() -> rp.Problem:
    """Steepening waves in modes, fields without a time derivative among them."""
    conditions = {"t=0": "u = sin(x) + 0.5*cos(2*x)", "x": "periodic"}
    return rp.Problem(
        ["u_t + u*u_x = 0.05*u_xx + q", "q = q_xx + 0.1*u"], rp.SpaceTime(t=(0, 1), x=(0, 2 * np.pi)), conditions
    )


def vortices() -> rp.Problem:
    """Vortices that decay in a periodic square."""
    flow = {"u": "sin(x)*cos(y)*exp(-0.2*t)", "v": "-cos(x)*sin(y)*exp(-0.2*t)"}
    conditions = {"t=0": [f"{name} = {text}".replace("*exp(-0.2*t)", "") for name, text in flow.items()]}
    equations = ["u_t + u*u_x + v*u_y + p_x = 0.1*laplace(u)", "v_t + u*v_x + v*v_y + p_y = 0.1*laplace(v)"]
    square = rp.SpaceTime(t=(0, 1), x=(0, 2 * np.pi), y=(0, 2 * np.pi))
    periodic = {"x": "periodic", "y": "periodic"}
    return rp.Problem([*equations, "u_x + v_y = 0"], square, conditions | periodic)


def lid() -> rp.Problem:
    """Flow below a lid that starts slowly, in Stokes modes."""
    walls = {"t=0": ["u = 0", "v = 0"], "boundary except y=1": ["u = 0", "v = 0"]}
    lid = {"y=1": ["u = 16*t**2*x**2*(1 - x)**2", "v = 0"]}
    equations = ["u_t + u*u_x + v*u_y + p_x = 0.1*laplace(u)", "v_t + u*v_x + v*v_y + p_y = 0.1*laplace(v)"]
    return rp.Problem([*equations, "u_x + v_y = 0"], rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 1)), walls | lid)


def blobs() -> rp.Problem:
    """Two that react in a periodic square, fronts that grow finer."""
    start = {"u": "1 - exp(-10*(x**2 + y**2))", "v": "exp(-10*((x - 0.1)**2 + y**2))"}
    equations = ["u_t = 2e-3*laplace(u) + 0.04*(1 - u) - u*v**2", "v_t = 1e-3*laplace(v) - 0.1*v + u*v**2"]
    domain = rp.SpaceTime(t=(0, 5), x=(-1, 1), y=(-1, 1))
    periodic = {"x": "periodic", "y": "periodic"}
    return rp.Problem(equations, domain, {"t=0": [f"{name} = {text}" for name, text in start.items()]} | periodic)


def front() -> rp.Problem:
    """A front across a square with walls, which the start does not show."""
    exact = "1/(1 + exp((x + y - t)/0.1))"
    conditions = {"t=0": f"u = {exact}", "boundary": f"u = {exact}"}
    square = rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 1))
    return rp.Problem("u_t + u*(u_x + u_y) = 0.05*laplace(u)", square, conditions, exact={"u": exact})


def growing() -> rp.Problem:
    """Small for half of the time, a million times larger in the middle of it."""
    exact = "exp(60*(t - t**2))*sin(pi*x)"
    conditions = {"t=0": f"u = {exact}", "boundary": "u = 0"}
    equation = "u_t = u_xx + (pi**2 + 60*(1 - 2*t))*u"
    return rp.Problem(equation, rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, exact={"u": exact})


def step() -> rp.Problem:
    """Slow flow over a backward step: a system round a re-entrant corner."""
    domain = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2))
    conditions = {
        "x=0": ["u = 4*y*(1 - y)", "v = 0"],
        "boundary except x=0, x=4": ["u = 0", "v = 0"],
        "x=4": ["p = u_x", "v_x = 0"],
    }
    return rp.Problem(["p_x = laplace(u)", "p_y = laplace(v)", "u_x + v_y = 0"], domain, conditions)


def outflow() -> rp.Problem:
    """A flow through a square that leaves through a layer of width 1e-3."""
    return rp.Problem("u_x = 1e-3*laplace(u) + 1", SQUARE, {"x=0": "u = 0", "x=1": "u = 0", "rest": SIDES})


def inclusion() -> rp.Problem:
    """A square that conducts a hundred times better, with corners."""
    equation = "div(where(max(abs(x), abs(y)) < 0.3, 100, 1)*grad(u)) = -1"
    return rp.Problem(equation, rp.Box(x=(-1, 1), y=(-1, 1)), {"boundary": "u = 0"})


def hollow() -> rp.Problem:
    """A cube around a ball."""
    domain = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)) - rp.Ball((0.4, 0.5, 0.5), 0.2, ("x", "y", "z"))
    return stated("laplace(u) = 3*exp(x + y - z)", domain, "exp(x + y - z)")


def plate() -> rp.Problem:
    """Heat round a hole, suddenly warm."""
    domain = rp.SpaceTime(t=(0, 1), x=SQUARE - rp.Ball((0.4, 0.5), 0.2, name="hole"))
    conditions = {"t=0": "u = 0", "hole": "dn(u) = 1 - u", "boundary except hole": "dn(u) = 0"}
    return rp.Problem("u_t = laplace(u)", domain, conditions)


def stated(equation: str, domain: Any, exact: str, *others: str) -> rp.Problem:
    """A problem with a known solution, given on the whole boundary."""
    return rp.Problem(equation, domain, {"boundary": [f"u = {exact}", *others]}, exact={"u": exact})


SQUARE = rp.Box(x=(0, 1), y=(0, 1))
SIDES = rp.On(("y=0", "y=1"), "dn(u) = 0")
CORNER = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))


def corner() -> rp.Problem:
    """A re-entrant corner; no solution is known, the estimate tells."""
    return rp.Problem("laplace(u) = -1", CORNER, {"boundary": "u = 0"})


def interface() -> rp.Problem:
    """A disc that conducts a hundred times better."""
    inside, outside = "(x**2 + y**2)/100", "x**2 + y**2 - 0.25 + 0.0025"
    exact = f"where(x**2 + y**2 < 0.25, {inside}, {outside})"
    equation = "div(where(x**2 + y**2 < 0.25, 100, 1)*grad(u)) = 4"
    return stated(equation, rp.Box(x=(-1, 1), y=(-1, 1)), exact)


def boundary_layer() -> rp.Problem:
    """A flow that leaves through a layer of width 1e-3."""
    exact = "(exp((x - 1)/1e-3) - exp(-1/1e-3))/(1 - exp(-1/1e-3))"
    return stated("-1e-3*u_xx + u_x = 0", rp.Interval(0, 1), exact)


def cavity() -> rp.Problem:
    """Steady flow below a lid."""
    walls = {"boundary except y=1": ["u = 0", "v = 0"], "y=1": ["u = 4*x*(1 - x)", "v = 0"]}
    equations = ["u*u_x + v*u_y + p_x = 0.1*laplace(u)", "u*v_x + v*v_y + p_y = 0.1*laplace(v)", "u_x + v_y = 0"]
    return rp.Problem(equations, SQUARE, walls | {"level": rp.Data([[0.0, 0.0]], [0.0], "p")})


def oscillator() -> rp.Problem:
    """Van der Pol's, an initial value problem."""
    return rp.Problem("u_tt = 5*(1 - u**2)*u_t - u", rp.Box(t=(0, 10)), {"t=0": ["u = 2", "u_t = 0"]})


LINES = (
    Case("heat", lambda: zoo("heat"), 1e-8),
    Case("heat by SciPy", lambda: zoo("heat"), 1e-6, (("integrator", "Radau"),)),
    Case("heat in 2-D", lambda: zoo("heat", dim=2), 1e-4),
    Case("disc", disc, 1e-5),
    Case("allen_cahn", lambda: zoo("allen_cahn"), 1e-6),
    Case("burgers", lambda: zoo("burgers", viscosity=0.05), 1e-9),
    Case("advection", lambda: zoo("advection"), 1e-6),
    Case("navier_stokes_eulerian", lambda: zoo("navier_stokes_eulerian"), 1e-8),
    Case("navier_stokes_lagrangian", lambda: zoo("navier_stokes_lagrangian"), 1e-3),
    Case("wave", lambda: zoo("wave"), 1e-6),
    Case("porous_medium", lambda: zoo("porous_medium", radius=0.3), 1e-3),
    Case("kink", kink, 3e-2),
    Case("pulse", pulse, 1e-6),
    Case("flash", flash, 1e-6),
    Case("jump", jump, 1e-3),
    Case("blow-up", blow_up, 1e-4),
    Case("waves", waves, 1e-8),
    Case("vortices", vortices, 1e-6),
    Case("lid", lid, 1e-3),
    Case("blobs", blobs, 1e-4),
    Case("front", front, 1e-5),
    Case("growing", growing, 1e-6),
)
COLLOCATION = (
    Case("poisson", lambda: zoo("poisson"), 1e-8),
    Case("poisson in 5-D", lambda: zoo("poisson", dim=5), 1e-8),
    Case("helmholtz", lambda: zoo("helmholtz"), 1e-8),
    Case("nonlinear_poisson", lambda: zoo("nonlinear_poisson"), 1e-8),
    Case("layer", layer, 1e-6),
    Case("kovasznay", lambda: zoo("kovasznay"), 1e-4),
    Case("heat", lambda: zoo("heat"), 1e-6),
    Case("burgers", lambda: zoo("burgers", viscosity=0.1), 1e-3),
    Case("advection", lambda: zoo("advection"), 1e-6),
    Case("porous_medium", lambda: zoo("porous_medium", radius=0.3), 1e-2, (("placement", "placed"), ("width", 100))),
)
CELLS = (
    Case("poisson", lambda: zoo("poisson"), 1e-8),
    Case("poisson in 3-D", lambda: zoo("poisson", dim=3), 1e-5),
    Case("nonlinear_poisson", lambda: zoo("nonlinear_poisson"), 1e-9),
    Case("layer", layer, 1e-8),
    Case("boundary layer", boundary_layer, 1e-8),
    Case("hole", lambda: stated("laplace(u) = 2*exp(x + y)", SQUARE - rp.Ball((0.4, 0.5), 0.2), "exp(x + y)"), 1e-8),
    Case("corner", corner, 1e-2),
    Case("interface", interface, 1e-6),
    Case("cavity", cavity, 1e-1),
    Case("oscillator", oscillator, 1e-8),
    Case("disc", disc, 1e-6),
    Case("step", step, 1e-2),
    Case("outflow", outflow, 1e-4),
    Case("inclusion", inclusion, 1e-2),
    Case("hollow", hollow, 1e-6),
    Case("plate", plate, 1e-3),
)


# ------------------------------------------------------------------------------------------------------ the fields

Tuning = LinesTuning | CollocationTuning | CellsTuning
METHODS: dict[str, Any] = {"lines": rp.Lines, "collocation": rp.Collocation, "cells": rp.Cells}


@dataclass(frozen=True)
class Field:
    """A number of one of the tables: which method's, the group inside it (or none), its name and value."""

    method: str
    group: str
    name: str
    value: Any

    @property
    def label(self) -> str:
        return f"{self.group or self.method}.{self.name}"

    def changed(self, factor: float) -> Tuning:
        """The whole tuning with this one number changed."""
        return self.set(scaled(self.name, self.value, factor))

    def set(self, value: Any) -> Tuning:
        """The whole tuning with another value of this one."""
        tuning: Any = TUNINGS[self.method]()
        if not self.group:
            return replace(tuning, **{self.name: value})
        return replace(tuning, **{self.group: replace(getattr(tuning, self.group), **{self.name: value})})


TUNINGS: dict[str, Callable[[], Tuning]] = {
    "lines": LinesTuning,
    "collocation": CollocationTuning,
    "cells": CellsTuning,
}


def all_fields() -> list[Field]:
    """Every numeric field, those of nested tables too."""
    found = []
    for method, make in TUNINGS.items():
        tuning = make()
        for one in fields(tuning):
            value = getattr(tuning, one.name)
            if is_dataclass(value):
                found += [Field(method, one.name, inner.name, getattr(value, inner.name)) for inner in fields(value)]
            else:
                found.append(Field(method, "", one.name, value))
    return found


def scaled(name: str, value: Any, factor: float) -> Any:
    """Half or double of a number, or of every number of a tuple, within what the number can mean."""
    if isinstance(value, tuple):
        return tuple(scaled(name, part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if name in GROWTH:
        return 1 + (value - 1) * factor
    return (1 + value) / 2 if factor > 1 and 0.5 <= value < 1 else value * factor


OFF: dict[str, Any] = {
    "lines.first_tolerances": (),
    "lines.tolerance_factor": 1.0,
    "lines.least_amplitude": 1.0,
    "steps.scipy_share": 0.3,
    "lines.rough_ratio": np.inf,
    "lines.width_excess": np.inf,
    "lines.uniform_share": 0.0,
    "lines.weak_node_share": 1.0,
    "lines.length_factors": (1.0,),
    "lines.unresolved_share": np.inf,
    "lines.growth": 1.0,
    "lines.pressure_cutoff": 0.0,
    "lines.slow_contraction": np.inf,
    "lines.pilot_power": 0,
    "lines.exponential_above": np.inf,
    "lines.resolved_padding": 3.0,
    "lines.growth_work": np.inf,
    "lines.window_counts": (),
    "steps.scales_per_step": np.inf,
    "collocation.ill_posed_factor": 1.0,
    "collocation.similar_residual_ratio": np.inf,
    "collocation.few_coordinates_from": 99,
    "collocation.condition_weight": 1.0,
    "collocation.focus_fraction": 0.0,
    "collocation.placement_residual": np.inf,
    "placement.free": 0.0,
    "placement.uniform": 0.0,
    "placement.flat": 0.0,
    "learning.free": 0.0,
    "learning.freer": 0.2,
    "learning.idle": 0,
    "cells.variation": (0.0, 0.0, 0.0),
    "cells.first_splits": (0, 0, 0),
    "cells.condition_weight": (1.0, 1.0, 1.0),
    "cells.corner_exponent": 0.0,
    "cells.trace_degree_reduction": (0, 0, 0),
    "cells.trace_cutoff": 1e-13,
    "cells.largest_contrast_weight": 1.0,
    "cells.outflow_misfit": np.inf,
    "cells.similar_mesh_ratio": 1.0,
    "cells.marking_fraction": 0.0,
    "cells.singular_estimator_factor": 0.7,
    "cells.min_gain": 1.0,
    "cells.anisotropy_threshold": 0.0,
    "cells.spatial_error_ratio": np.inf,
    "cells.steps_per_factor": 0,
    "cells.five_stage_tolerance": 0.0,
    "cells.first_step_level": 0,
    "cells.step_tolerance_reduction": 1.0,
}
"""Values with which a rule does nothing."""


# -------------------------------------------------------------------------------------------------------- the runs


@dataclass(frozen=True)
class Result:
    """What one solve gave; error is infinite where it failed, and not a number where no exact solution is known."""

    error: float
    seconds: float
    converged: bool
    mark: tuple[Any, ...]


class TooLongError(Exception):
    """A solve that did not heed its budget."""


def run(case: Case, method: str, tuning: Tuning, seed: int = 0) -> Result:
    """Solve one case; an exception is a result, too."""
    problem = case.make()
    chosen = METHODS[method](tuning=tuning, **dict(case.settings))
    begin = time.process_time()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(round(3 * BUDGET))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            solution = rp.solve(problem, tol=case.tol, method=chosen, seconds=BUDGET, rng=seed)
            error = max(solution.errors().values(), default=np.nan)
    except Exception as failure:
        return Result(np.inf, time.process_time() - begin, False, (type(failure).__name__, str(failure)))
    finally:
        signal.alarm(0)
    mark = (
        error,
        solution.estimate,
        solution.widths,
        solution.status,
        len(getattr(solution.history, "iterations", ())),
    )
    return Result(error, time.process_time() - begin, solution.converged, tuple(map(repr, mark)))


def stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError(f"still running after {3 * BUDGET:g} s")


@dataclass(frozen=True)
class Comparison:
    """Ratios to the results of the values as they are."""

    error: float
    worst: float
    time: float
    converged: int
    same: bool

    @classmethod
    def of(cls, before: list[Result], after: list[Result]) -> Comparison:
        errors = [b.error / a.error for a, b in zip(before, after, strict=True) if 0 < a.error < np.inf]
        logs = np.log(np.clip(errors, 1e-6, 1e6))
        times = np.log([b.seconds / a.seconds for a, b in zip(before, after, strict=True)])
        same = all(a.mark == b.mark for a, b in zip(before, after, strict=True))
        return cls(
            float(np.exp(logs.mean())) if len(logs) else np.nan,
            float(np.exp(logs.max())) if len(logs) else np.nan,
            float(np.exp(times.mean())),
            sum(one.converged for one in after),
            same,
        )

    def __str__(self) -> str:
        return f"{self.error:>8.2f} ({self.worst:>7.1e}){self.time:>7.2f}{self.converged:>5}"


def within(one: Comparison, noise: list[Comparison], base: int) -> bool:
    """Whether a change is no more than another seed makes."""
    most = max(abs(np.log(other.error)) for other in noise)
    quiet = abs(np.log(one.error)) <= most and abs(np.log(one.time)) <= np.log(TIME_NOISE)
    return quiet and one.worst <= 2 * max(other.worst for other in noise) and one.converged == base


def compare(method: str, cases: list[Case], chosen: list[Field]) -> list[str]:
    """Print the table of one method; the labels of the fields that change nothing."""
    base_tuning = TUNINGS[method]()
    for case in cases:
        run(case, method, base_tuning)  # imports and first calls are not counted
    base = [run(case, method, base_tuning) for case in cases]
    again = Comparison.of(base, [run(case, method, base_tuning) for case in cases])
    noise = [Comparison.of(base, [run(case, method, base_tuning, seed) for case in cases]) for seed in SEEDS]
    converged = sum(one.converged for one in base)
    print(f"\n{method}: {', '.join(case.name for case in cases)}")
    head = f"{'error':>8} {'(worst)':>9}{'time':>7}{'conv':>5}"
    print(f"{'field':<34}{'value':<20}{head:<31}{head}")
    print(f"{'unchanged, run again':<54}{again}   {'same' if again.same else 'NOT THE SAME'}")
    print(f"{'other seeds':<54}{noise[0]}{'':>2}{noise[1]}   {converged} of {len(cases)} converged before", flush=True)
    idle = []
    for field in chosen:
        half, double = (Comparison.of(base, [run(c, method, field.changed(f)) for c in cases]) for f in (0.5, 2.0))
        verdict = "same" if half.same and double.same else ""
        if not verdict and all(within(one, noise, converged) for one in (half, double)):
            verdict = "noise"
        if verdict:
            idle.append(f"{field.label} ({verdict})")
        print(f"{field.label:<34}{shown(field.value):<20}{half}{'':>2}{double}   {verdict}".rstrip(), flush=True)
    return idle


def used(method: str, cases: list[Case], chosen: list[Field]) -> list[str]:
    """Print the first problem whose result each field changes; the labels of those that change none."""
    base = {case.name: run(case, method, TUNINGS[method]()) for case in cases}
    order = sorted(cases, key=lambda case: base[case.name].seconds)
    idle = []
    for field in chosen:
        tunings = [field.changed(factor) for factor in (0.5, 2.0)]
        runs = ((case.name, run(case, method, tuning).mark) for case in order for tuning in tunings)
        first = next((name for name, mark in runs if mark != base[name].mark), "")
        idle += [] if first else [f"{field.label} (same)"]
        print(f"{field.label:<34}{shown(field.value):<20}{first or 'changes nothing'}", flush=True)
    return idle


def without(method: str, cases: list[Case], chosen: list[Field]) -> list[str]:
    """Print what changes without each rule, problem by problem; the labels of the rules that nothing needs."""
    base = [run(case, method, TUNINGS[method]()) for case in cases]
    head = f"{'error':>8} {'(worst)':>9}{'time':>7}{'conv':>5}"
    print(f"\n{method}: {', '.join(case.name for case in cases)}")
    print(f"{'without':<34}{'value':<20}{head}   {sum(one.converged for one in base)} converged before", flush=True)
    idle = []
    for field in (one for one in chosen if one.label in OFF):
        runs = [run(case, method, field.set(OFF[field.label])) for case in cases]
        told = [told_apart(case.name, a, b) for case, a, b in zip(cases, base, runs, strict=True) if a.mark != b.mark]
        idle += [] if told else [f"{field.label} (same)"]
        shares = ", ".join(one for one in told if one)
        print(f"{field.label:<34}{shown(OFF[field.label]):<20}{Comparison.of(base, runs)}   {shares}", flush=True)
    return idle


def told_apart(name: str, before: Result, after: Result) -> str:
    """A problem whose result is another one by more than a third."""
    error = after.error / before.error if 0 < before.error < np.inf else 1.0
    seconds = after.seconds / before.seconds
    lost = "" if after.converged == before.converged else " converges" if after.converged else " no longer converges"
    parts = [f"{ratio:.2g} {what}" for ratio, what in ((error, "error"), (seconds, "s")) if abs(np.log(ratio)) > 0.3]
    return f"{name}{lost} {', '.join(parts)}".rstrip() if lost or parts else ""


def shown(value: Any) -> str:
    """A short text of a number or a tuple."""
    return ", ".join(f"{part:.3g}" for part in (value if isinstance(value, tuple) else (value,)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fields", nargs="*", help="names, such as refinement or placement.flat; all unless given")
    parser.add_argument("--problems", nargs="*", default=[], help="names of problems; all unless given")
    parser.add_argument("--used", action="store_true", help="only tell which fields change anything at all")
    parser.add_argument("--off", action="store_true", help="only tell what changes without each rule")
    parser.add_argument("--list", action="store_true", help="only list the fields")
    options = parser.parse_args()
    known = all_fields()
    unknown = set(options.fields) - {one.name for one in known} - {one.label for one in known}
    if unknown:
        parser.error(f"no such field: {', '.join(sorted(unknown))}; see --list")
    chosen = [one for one in known if not options.fields or {one.name, one.label} & set(options.fields)]
    if options.list:
        print("\n".join(f"{one.label:<32}{shown(one.value)}" for one in chosen))
        return
    idle = []
    for method, cases in (("lines", LINES), ("collocation", COLLOCATION), ("cells", CELLS)):
        own = [one for one in chosen if one.method == method]
        some = [one for one in cases if not options.problems or one.name in options.problems]
        if own and some:
            idle += (used if options.used else without if options.off else compare)(method, some, own)
    print(f"\nNothing changes with: {', '.join(idle) or 'none of them'}")


if __name__ == "__main__":
    main()
