"""Passes over the whole time interval: each places the features of the next, until two of them agree.

The first pass takes its resolution from the initial data and a loose tolerance; later ones from the solution of the
pass before, at every time. One static basis, good for all that the solution does, serves a whole pass: rebuilding it on
the way costs an error at every transfer. The difference of the last two passes, which draw different features and march
with different tolerances, is the error estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

import numpy as np

from rannpde.network.features import RandomFeatures
from rannpde.pde.functions import term_residual
from rannpde.pde.lines.basis import BOUNDARY_CUTOFF, Basis, build_basis
from rannpde.pde.lines.boundary import constraints_of
from rannpde.pde.lines.evolved import Evolved, Stretch, difference, fields_at
from rannpde.pde.lines.fourier import Spectral
from rannpde.pde.lines.galerkin import Galerkin
from rannpde.pde.lines.march import CALLER, Event, March, Path
from rannpde.pde.lines.resolution import Resolution, from_initial, from_nodes, grid_places, inverse_length
from rannpde.pde.problem.evolution import Component, Evolution

Array = np.ndarray

FIRST_TOLERANCE, SECOND_TOLERANCE = 1e-3, 1e-6
WEAK_TOLERANCE = 1e-6
"""Fluxes are integrated by parts down to this tolerance. Below, the rounding of the test functions' derivatives, eps
over the smallest singular value kept, would show, and the strong form is projected instead; in 2-D it always is, unless
a field touches a bound where its equation may degenerate."""
LOOSE_TOLERANCE = 1e-5
"""Half of the quadrature nodes suffice down to this tolerance."""
WEAK_CUTOFF, STRONG_CUTOFF = 1e-10, 1e-13
TOUCHING = 1e-2
"""A field within this share of its range of a bound touches it."""
MOST_PASSES = 8
FINER = 1.15
"""Lengths shrink by this factor with every pass that should have been the last: kinks have no length of their own."""
NARROWEST, WIDEST = {1: 60, 2: 350}, {1: 1500, 2: 1200}
HOPELESS = 2.0
"""A solution that wants this many times the widest basis is not resolved by one for all times: passes end."""
STUBBORN = 3
"""Disagreements of passes with the wanted tolerance before features follow the residual."""
RESIDUAL_SHARE = 0.3
"""Empirical and mild: on the free boundary of Barenblatt's solution shares from 0 to 0.6 gave the same error."""
RESIDUAL_TIMES, RESIDUAL_PLACES = 10, 200
LOOKS = 161
"""Times at which a pass looks for the finest length."""
BOUNDARY_POINTS = 40
MARCH_SHARE = 0.3
"""Share of a pass's tolerance that the march in time may use."""
TIGHTER = 2.0
"""The last pass marches with a tolerance this much smaller than the one before, so that errors in time show as well."""
ESTIMATE_SHARE = 0.5
"""Error of the last pass over its difference to the one before: 0.7 for equally good, 0.3 if three times better."""


SpaceFunction = Callable[[Array], Array]
FieldEvent = Callable[[float, SpaceFunction], float]


@dataclass(frozen=True)
class Controls:
    """What the caller may set.

    tol : wanted relative L² error over space-time
    integrator : see March
    events : name → function of (time, u) whose zeros are recorded, u being a function of points (M, d) of space with
        values (M, fields); one with attribute ``terminal`` ends the march
    progress : called with (pass number, time reached) after every step
    width : features of every pass, or None to choose them from tol
    """

    tol: float
    integrator: str = "collocation"
    events: Mapping[str, FieldEvent] = field(default_factory=dict)
    progress: Callable[[int, float], None] | None = None
    width: int | None = None

    def march(self, tol: float, number: int, system: Galerkin | Spectral) -> March:
        """The march of one pass. Its dense output is held a little below the tolerance of the pass."""
        report = None if self.progress is None else partial(self.progress, number)
        events = {name: _on_states(event, system) for name, event in self.events.items()}
        caution = 1.0 if tol >= self.tol else 1.0 / TIGHTER
        return March(MARCH_SHARE * tol, self.integrator, events, report, caution)


def _on_states(event: FieldEvent, system: Galerkin | Spectral) -> Event:
    def on_state(time: float, state: Array) -> float:
        return float(event(time, lambda points: fields_at(system, time, state, points)))

    if getattr(event, "terminal", False):
        on_state.terminal = True  # type: ignore[attr-defined]
    return on_state


@dataclass(frozen=True)
class Pass:
    """One pass: what it used, and how far it lies from the one before (relative L², the largest over the fields)."""

    tolerance: float
    width: int
    rank: int
    nodes: int
    steps: int
    reason: str
    difference: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The last pass and the story of all of them; estimate is the difference of the last two."""

    solution: Evolved
    passes: tuple[Pass, ...]
    estimate: float
    growth: float
    reason: str
    converged: bool


def check_points(evolution: Evolution, end: float, count: int = 2000) -> Array:
    """Fresh points in space-time up to the time reached, where passes are compared."""
    points = evolution.domain.sample(count, rng=20_071)
    start = evolution.domain.time[0]
    points[:, 0] = start + (points[:, 0] - start) * (end - start) / (evolution.domain.time[1] - start)
    return points


def by_features(evolution: Evolution, strong: Evolution, controls: Controls, rng: np.random.Generator) -> Outcome:
    """Passes with random features adapted to the solution."""
    space = evolution.domain.space
    places = grid_places(space)
    resolution = from_initial(space, [evolution.initial_values(c, places) for c in evolution.components])
    scales = initial_scales(evolution)
    passes: list[Pass] = []
    solutions: list[Evolved] = []
    disagreements, touching = 0, bool(evolution.problem.bounds)
    for number in range(MOST_PASSES):
        begin = perf_counter()
        tol = _tolerance(controls.tol, number)
        form = evolution if touching or (tol >= WEAK_TOLERANCE and space.dim == 1) else strong
        system = _system(form, resolution, max(tol, controls.tol), scales, controls, FINER**disagreements, rng)
        path = controls.march(tol, number, system).run(system, evolution.domain.time, system.initial_state())
        if not path.steps:
            return Outcome(
                Evolved(evolution, (Stretch(system, path),)), tuple(passes), np.inf, np.nan, path.reason, False
            )
        solutions.append(Evolved(evolution, (Stretch(system, path),)))
        change = np.inf
        if len(solutions) > 1:
            end = min(one.stretches[0].path.reliable for one in solutions[-2:])
            change = max(difference(solutions[-2], solutions[-1], check_points(evolution, end)).values())
        passes.append(_record(tol, system, path, change, perf_counter() - begin))
        comparable = _comparable(passes, controls.tol)
        if path.reason.startswith(CALLER) or (comparable and (change <= controls.tol or path.broken)):
            break
        if comparable:
            disagreements += 1
        resolution, scales = look(solutions[-1], system)
        if disagreements >= STUBBORN:  # something is missed that the lengths do not show
            resolution = finer_by_residual(resolution, solutions[-1])
        if number and controls.width is None and wanted_width(resolution, controls.tol) > HOPELESS * WIDEST[space.dim]:
            break
        touching = _touches_bounds(solutions[-1])
    last = solutions[-1].stretches[0]
    growth = last.system.growth(last.path.times[0], last.system.initial_state())
    reached = passes[-1].difference <= controls.tol
    reason = last.path.reason or ("" if reached else f"the last two passes differ by {passes[-1].difference:.1e}")
    return Outcome(
        solutions[-1],
        tuple(passes),
        ESTIMATE_SHARE * passes[-1].difference,
        growth,
        reason,
        reached and not last.path.reason,
    )


def _record(tol: float, system: Galerkin, path: Path, change: float, seconds: float) -> Pass:
    bases = system.bases.values()
    width, rank = max(b.features.columns for b in bases), max(b.rank for b in bases)
    return Pass(tol, width, rank, len(next(iter(bases)).rule.points), path.steps, path.reason, change, seconds)


def _tolerance(tol: float, number: int) -> float:
    """Loose, medium, then the wanted one; at the end alternately tighter, so that two passes can be compared."""
    early = [t for t in (FIRST_TOLERANCE, SECOND_TOLERANCE) if t > 3 * tol]
    return early[number] if number < len(early) else tol / (TIGHTER if (number - len(early)) % 2 else 1.0)


def _comparable(passes: list[Pass], tol: float) -> bool:
    """Whether the last two passes both had the wanted tolerance."""
    return len(passes) > 1 and passes[-2].tolerance <= tol


def _touches_bounds(solution: Evolved) -> bool:
    """Whether a field comes near a declared bound, where its equation may degenerate."""
    problem = solution.evolution.problem
    values = solution(check_points(solution.evolution, solution.end))
    for name, bounds in problem.bounds.items():
        own = values[:, problem.fields.index(name)]
        near = TOUCHING * np.ptp(own)
        if any(bound is not None and np.abs(own - bound).min() <= near for bound in bounds):
            return True
    return False


def initial_scales(evolution: Evolution) -> dict[Component, float]:
    """Root mean squares of the initial values; 1 where they vanish, and over the time span for velocities."""
    points = evolution.domain.space.sample(2000, rng=0)
    start, end = evolution.domain.time
    scales: dict[Component, float] = {}
    for component in evolution.components:
        size = float(np.sqrt(np.mean(np.square(evolution.initial_values(component, points)))))
        before = scales.get(Component(component.field, component.level - 1))
        if before is not None:
            size = max(size, before / (end - start))
        scales[component] = size if size > 1e-12 else 1.0
    return scales


def _system(
    evolution: Evolution,
    resolution: Resolution,
    tol: float,
    scales: Mapping[Component, float],
    controls: Controls,
    boost: float,
    rng: np.random.Generator,
) -> Galerkin:
    weak = any(rate.flux for rate in evolution.rates.values())
    resolution = resolution.finer(boost)
    loose = weak and tol >= LOOSE_TOLERANCE and resolution.dim == 1
    rule = resolution.rule(boundary=weak, density=0.5 if loose else 1.0)
    dim = resolution.dim
    early = 0.5 if tol > controls.tol else 1.0  # the length of an unresolved solution is too short: its wiggles count
    wanted = max(early * wanted_width(resolution, tol), NARROWEST[dim])
    width = controls.width or int(min(wanted, WIDEST[dim], 0.7 * len(rule.points)))
    features = RandomFeatures.sample(
        width=width, dim=dim, law=resolution.law(), activation="tanh", rng=rng, constant=True
    )
    cutoff = max(WEAK_CUTOFF, 1e-5 * tol) if weak else max(STRONG_CUTOFF, 1e-3 * tol)
    boundary_cutoff = BOUNDARY_CUTOFF if dim == 1 else max(BOUNDARY_CUTOFF, 1e-3 * tol)
    bases: dict[str, Basis] = {}
    for name in evolution.orders:
        constraints = constraints_of(evolution, name, BOUNDARY_POINTS)
        bases[name] = build_basis(features, rule, constraints, cutoff, boundary_cutoff)
    return Galerkin(evolution, bases, scales)


def wanted_width(resolution: Resolution, tol: float) -> float:
    """Features that resolve these lengths, were there no limit."""
    return features_per_length(tol, resolution.dim) * resolution.lengths_across


def features_per_length(tol: float, dim: int) -> float:
    """Features for each length ℓ, or each square of it: tuned on Burgers (32 for twelve digits) and heat in 2-D."""
    digits = -np.log10(tol)
    return float(8.0 + 2.0 * digits if dim == 1 else (4.0 + digits) ** 2 / 12.0)


def look(solution: Evolved, system: Galerkin) -> tuple[Resolution, dict[Component, float]]:
    """The resolution that the solution needs over all times, and the sizes of its components."""
    evolution, path = system.evolution, solution.stretches[0].path
    space = evolution.domain.space
    times = np.unique(
        np.append(np.linspace(path.times[0], path.reliable, LOOKS), path.times[:: max(1, path.steps // 200)])
    )
    times = times[times <= path.reliable]
    states = path(times)
    inside = len(next(iter(system.bases.values())).rule.points)
    total = np.zeros(inside)
    scales = {}
    dim = space.dim
    for component, block in system.slices.items():
        basis = system.bases[component.field]
        data = basis.data(times, component.level)
        coefficients = basis.coefficients(states[block], data)

        def values(
            index: tuple[int, ...], basis: Basis = basis, own: Array = coefficients, data: Array = data
        ) -> Array:
            functions, lifting = basis.values(index)
            return functions[:inside] @ own + lifting[:inside] @ data

        value = values((0,) * dim)
        sizes = np.sqrt(np.mean(value**2 * basis.rule.weights[:, None], axis=0) * len(value) / basis.rule.weights.sum())
        scales[component] = float(sizes.max()) or 1.0
        if component.level == 0:
            slope = np.sqrt(sum(values(index) ** 2 for index in _indices(dim, 1)))
            bend = np.sqrt(sum(values(index) ** 2 for index in _indices(dim, 2)))
            total = np.maximum(total, inverse_length(space, value, slope, bend))
    return from_nodes(space, next(iter(system.bases.values())).rule.points, total), scales


def finer_by_residual(resolution: Resolution, solution: Evolved) -> Resolution:
    """Lengths shorter where the equations hold worst, longer elsewhere: features move, their number stays.

    At the largest residual of each equation 1/ℓ grows by RESIDUAL_SHARE against places where it vanishes.
    """
    problem, space = solution.evolution.problem, resolution.space
    inside = resolution.places[space.contains(resolution.places)]
    places = inside[:: max(1, len(inside) // RESIDUAL_PLACES)]
    path = solution.stretches[-1].path
    times = np.linspace(path.times[0], path.reliable, RESIDUAL_TIMES + 1)[1:]
    points = np.column_stack([np.repeat(times, len(places)), np.tile(places, (len(times), 1))])
    factor = np.ones(len(places))
    for term in problem.interior:
        residual = np.abs(term_residual(term, solution, problem.vocabulary, points)).reshape(len(times), -1).max(axis=0)
        if 0 < residual.max() < np.inf:
            factor = np.maximum(factor, 1.0 + RESIDUAL_SHARE * residual / residual.max())
    moved = replace(resolution, inverse=resolution.inverse * from_nodes(space, places, factor).inverse)
    return moved.finer((resolution.lengths_across / moved.lengths_across) ** (1.0 / space.dim))


def _indices(dim: int, order: int) -> list[tuple[int, ...]]:
    """Multi-indices of that order, each as often as it stands in the gradient or the Hessian."""
    units = np.eye(dim, dtype=int)
    if order == 1:
        return [tuple(int(k) for k in unit) for unit in units]
    return [tuple(int(k) for k in units[i] + units[j]) for i in range(dim) for j in range(dim)]
