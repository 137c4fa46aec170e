"""Forward sensitivities: the derivatives of a trajectory by unknown numbers and functions, along its own steps.

With z' = F(t, z, θ), the sensitivity S = ∂z/∂θ satisfies S' = F_z S + F_θ. On a step of the trajectory F_z and F_θ are
known, so that the stages of S solve one linear system, that of Newton's method for z, with many right-hand sides:

    (A⁻¹/h ⊗ 1 - 1 ⊗ J) ΔS = F_z S + F_θ - A⁻¹(S - S_0)/h .

With a matrix J that is frozen for the step this becomes an iteration, as in the simplified Newton method. For a
trajectory of Radau collocation the result is the derivative of the discrete solution itself; for other integrators it
is that of the collocation whose degree is that of their dense output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from numpy.polynomial import legendre

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.forward_model import UnknownVector
from rannpde.pde.lines.sensitivities.dependence import ParametricDependence
from rannpde.pde.lines.sensitivities.spaces import FeatureSpace, FourierSpace, TensorSpace, solver, space_of
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.problem.evolution import Component, constraints_of
from rannpde.pde.statement.expression import Jet
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.tableau import RadauTableau, radau_tableau
from rannpde.threads import one_thread

MOST_STAGE_ITERATIONS = 40
"""Iterations for the stages of a step; Newton's method needed six at most, for more digits, with a worse matrix."""
STAGE_TOLERANCE = 1e-9
"""Relative change of the stages that ends the iteration: far below the accuracy that a fit needs of derivatives."""


@dataclass(frozen=True, eq=False)
class SensitiveSolution:
    """A solution with its derivatives by p unknowns: fields · (1 + p) outputs, the solution's first.

    starts (steps, n, p), series (steps, n, p, degree + 1) : S at the beginning of each step, and its Legendre series
    boundary : field → a function that gives ∂(boundary values)/∂θ (m, s, p) at times (s,); empty where all vanish
    """

    solution: SpaceTimeSolution
    starts: Array
    series: Array
    boundary: Mapping[str, Callable[[Array, int], Array]] = field(default_factory=dict, repr=False)

    @cached_property
    def space(self) -> FeatureSpace | TensorSpace | FourierSpace:
        return space_of(self.solution.segments[0].system, self.solution.evolution)

    @property
    def dim(self) -> int:
        return self.solution.dim

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of all outputs at points (M, n): (M, fields · (1 + p))."""
        own = self.solution.derivative(points, derivative)
        changes = np.stack([self._changes(name, points, derivative) for name in self.solution.evolution.orders], axis=2)
        return np.concatenate([own, changes.reshape(len(points), -1)], axis=1)

    def _changes(self, name: str, points: Array, derivative: MultiIndex) -> Array:
        """(M, p): the derivative of a field, step by step."""
        trajectory, order = self.solution.trajectory, self.solution.evolution.orders[name]
        level = min(derivative[0], order - 1)
        component, within = Component(name, level), derivative[0] - level
        block, result = self.space.slices[component], np.full((len(points), self.starts.shape[2]), np.nan)
        numbers = np.clip(
            np.searchsorted(trajectory.times, points[:, 0], side="left") - 1, 0, len(trajectory.steps) - 1
        )
        for number in np.unique(numbers):
            rows = np.flatnonzero((numbers == number) & (points[:, 0] <= trajectory.end))
            table = self.space.table(component, points[rows, 1:], derivative[1:])
            step, series = trajectory.steps[number], self.series[number, block]
            scale = 2.0 / (step.t - step.t_old)
            series = legendre.legder(series, within, scl=scale, axis=2) if within else series
            basis = legendre.legvander(scale * (points[rows, 0] - step.t_old) - 1.0, series.shape[2] - 1)
            spread = (table @ series.reshape(len(series), -1)).reshape(len(rows), -1, series.shape[2])
            values = np.einsum("mpk,mk->mp", spread, basis)
            result[rows] = (values + (table @ self.starts[number, block] if not within else 0.0)).real
        if name in self.boundary and isinstance(self.space, FeatureSpace):
            lifting = self.space.lifting(name, derivative[1:], points[:, 1:])
            result += np.einsum("mk,kmp->mp", lifting, self.boundary[name](points[:, 0], derivative[0]))
        return result

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file: those of the solution, from which sensitivities are computed again."""
        header, arrays = self.solution.pack()
        return {"function": "forward_sensitivities", "solution": header}, arrays


def forward_sensitivities(
    solution: SpaceTimeSolution,
    dependence: ParametricDependence,
    unknowns: UnknownVector,
    vector: Array,
    exhausted: Callable[[], bool],
) -> SensitiveSolution:
    """A solution with its sensitivities to the unknowns, at their values (p,)."""
    with one_thread(solution.evolution.domain.space.dim == 1):
        return _SensitivityIntegrator(solution, dependence, unknowns, vector).run(exhausted)


class _SensitivityIntegrator:
    """Integrates the sensitivities along the steps of a solution."""

    def __init__(
        self, solution: SpaceTimeSolution, dependence: ParametricDependence, unknowns: UnknownVector, vector: Array
    ) -> None:
        self.solution, self.dependence, self.unknowns, self.vector = solution, dependence, unknowns, vector
        self.evolution, self.segment = dependence.evolution, solution.segments[0]
        self.space = space_of(self.segment.system, self.evolution)
        self.complex = isinstance(self.space, FourierSpace)
        self.steps = [step for step in self.segment.trajectory.steps if isinstance(step, LegendreStep)]
        self.size = len(self.steps[0].y_old)
        self.last: tuple[Any, ...] = ()
        self.formulas = self._formulas()
        self.boundary = (
            self._boundary() if isinstance(self.space, FeatureSpace) and dependence.changes_boundary_values else {}
        )

    def _formulas(self) -> list[tuple[str, int, str, Any, sympy.Expr]]:
        """(field, part, "own" or "unknown", jet or symbol, ∂part/∂it)."""
        formulas: list[tuple[str, int, str, Any, sympy.Expr]] = []
        for name, rate in self.evolution.rates.items():
            for number, part in enumerate(rate.parts):
                for jet, slope in zip(part.jets, part.partials, strict=True):
                    formulas.append((name, number, "own", jet, slope.xreplace(self.dependence.table)))
                for symbol, slope in self.dependence.slopes(part.formula).items():
                    formulas.append((name, number, "unknown", symbol, slope))
        return formulas

    # ------------------------------------------------------------------------------------ the symbols of the formulas

    def _spread(self, symbol: sympy.Symbol, points: Array) -> Array:
        """(M, p): the change of an unknown's derivative with all unknowns."""
        jet = self.dependence.jets[symbol]
        whole = np.zeros((len(points), self.unknowns.count))
        whole[:, self.unknowns.slices[jet.field]] = self.unknowns.table(jet, points)
        return whole

    @cached_property
    def _at_nodes(self) -> dict[sympy.Symbol, tuple[Array, Array]]:
        """Symbol of an unknown → its values (Q, 1) and changes (Q, p) at the nodes, the same at all times."""
        points = np.column_stack([np.zeros(len(self.space.nodes)), self.space.nodes])
        jets = self.dependence.jets
        return {s: (self.unknowns.value(jets[s], points, self.vector)[:, None], self._spread(s, points)) for s in jets}

    def _slopes(self, times: Array, states: Array) -> list[Array]:
        """All partial derivatives at the nodes, (Q, s) each."""
        known = self.evolution.known(times[None, :], self.space.nodes[:, :, None])
        known |= {s: self.space.known(jet, times, states) for s, jet in self.evolution.symbols.items()}
        known |= {s: values for s, (values, _) in self._at_nodes.items()}
        slopes = self.evolution.values([row[-1] for row in self.formulas], known)
        shape = (len(self.space.nodes), len(times))
        return [np.broadcast_to(np.where(np.isfinite(v), v, 0.0), shape) for v in slopes]

    def _boundary(self) -> dict[str, Callable[[Array, int], Array]]:
        assert isinstance(self.space, FeatureSpace)
        return {name: lambda t, order, name=name: self._moved(name, t, order) for name in self.evolution.orders}  # type: ignore[misc]

    def _moved(self, name: str, times: Array, order: int) -> Array:
        """(m, s, p): ∂/∂θ of the boundary values of a field, or of their time derivatives."""
        assert isinstance(self.space, FeatureSpace)
        parts = []
        for row in constraints_of(self.evolution, name, self.space.system.bases[name].boundary_points):
            count = len(row.points)
            points = np.column_stack([np.zeros(count), row.points])
            known = self.evolution.known(times[None, :], row.points[:, :, None], row.normals[:, :, None])
            for symbol, jet in self.dependence.jets.items():
                known[symbol] = self.unknowns.value(jet, points, self.vector)[:, None]
            total = np.zeros((count, len(times), self.unknowns.count))
            for symbol, slope in self.dependence.slopes(row.value).items():
                moved = sympy.diff(slope, self.evolution.clock, order) if order else slope
                value = np.broadcast_to(self.evolution.values([moved], known)[0], (count, len(times)))
                total += value[:, :, None] * self._spread(symbol, points)[:, None, :]
            parts.append(total)
        return np.concatenate(parts)

    def _initial(self) -> Array:
        """S (n, p) at the first time."""
        positions, start = self.space.initial_points(), self.evolution.domain.time[0]
        points = np.column_stack([np.full(len(positions), start), positions])
        state = np.zeros((self.size, self.unknowns.count), dtype=complex if self.complex else float)
        known = self.evolution.known(start, positions)
        for symbol, jet in self.dependence.jets.items():
            known[symbol] = self.unknowns.value(jet, points, self.vector)
        for component, formula in self.evolution.initial.items():
            total = np.zeros((len(positions), self.unknowns.count))
            for symbol, slope in self.dependence.slopes(formula).items():
                value = np.broadcast_to(self.evolution.values([slope], known)[0], (len(positions),))
                total += value[:, None] * self._spread(symbol, points)
            if total.any():
                state[self.space.slices[component]] = self.space.project(component.field, total)
        return state

    # --------------------------------------------------------------------------------------------------- integration

    def run(self, exhausted: Callable[[], bool]) -> SensitiveSolution:
        """Integrate step by step; where the time allowed is used up, the rest is NaN."""
        state = self._initial()
        starts, series = [], []
        for step in self.steps:
            if exhausted():
                state = np.full_like(state, np.nan)
            tableau = radau_tableau(step.series.shape[1] - 1)
            stages = self._stages(step, tableau, state) if np.isfinite(state).all() else np.full(
                (*state.shape, len(tableau)), np.nan, dtype=state.dtype
            )  # fmt: skip
            starts.append(state)
            series.append(np.concatenate([np.zeros_like(state)[:, :, None], stages], axis=2) @ tableau.legendre.T)
            state = state + stages[:, :, -1]
        return SensitiveSolution(self.solution, np.stack(starts), np.stack(series), self.boundary)

    def _stages(self, step: LegendreStep, tableau: RadauTableau, state: Array) -> Array:
        """S - S_0 (n, p, s) at the nodes of a step."""
        length = step.t - step.t_old
        times = step.t_old + length * tableau.nodes
        slopes = self._slopes(times, step(times))
        forcing, solve = self._forcing(times, slopes), self._solver(step, tableau, slopes)
        stages = np.zeros((*state.shape, len(times)), dtype=state.dtype)
        previous = np.inf
        for _ in range(MOST_STAGE_ITERATIONS):
            rate = self._push(slopes, state[:, :, None] + stages) + forcing
            change = solve(rate - stages @ tableau.derivative.T / length)
            stages = stages + change
            size = float(np.linalg.norm(change)) / max(float(np.linalg.norm(stages + state[:, :, None])), 1e-300)
            if not size > STAGE_TOLERANCE or (size < 1000 * STAGE_TOLERANCE and size > 0.5 * previous):
                break
            previous = size
        return stages

    def _push(self, slopes: Sequence[Array], changes: Array) -> Array:
        """F_z S (n, p, s)."""
        flat, (size, count, stages) = changes.reshape(len(changes), -1), changes.shape
        result = np.empty_like(flat)
        at_nodes: dict[Jet, Array] = {}
        parts: dict[tuple[str, int], Array] = {}
        for (name, number, kind, jet, _), slope in zip(self.formulas, slopes, strict=True):
            if kind == "own":
                if jet not in at_nodes:
                    at_nodes[jet] = self.space.jet(jet, flat).reshape(-1, count, stages)
                term = (slope[:, None, :] * at_nodes[jet]).reshape(len(slope), -1)
                parts[name, number] = parts[name, number] + term if (name, number) in parts else term
        self._gathered(parts, result, flat)
        return result.reshape(size, count, stages)

    def _gathered(self, parts: Mapping[tuple[str, int], Array], result: Array, changes: Array | None) -> None:
        for component, block in self.space.slices.items():
            above = self.evolution.above(component)
            if above is not None:
                result[block] = 0.0 if changes is None else changes[self.space.slices[above]]
                continue
            name, nothing = component.field, np.zeros((len(self.space.nodes), result.shape[1]))
            numbers = range(len(self.evolution.rates[name].parts))
            result[block] = self.space.rate(name, [parts.get((name, k), nothing) for k in numbers])

    def _forcing(self, times: Array, slopes: Sequence[Array]) -> Array:
        """F_θ (n, p, s), with the effect of boundary values that depend on the unknowns."""
        count, parts = self.unknowns.count, dict[tuple[str, int], Array]()
        for (name, number, kind, what, _), slope in zip(self.formulas, slopes, strict=True):
            if kind == "unknown":
                term = slope[:, None, :] * self._at_nodes[what][1][:, :, None]
            elif what.field in self.boundary and isinstance(self.space, FeatureSpace):
                moved = self.boundary[what.field](times, what.index[0])
                lifted = np.einsum("qk,ksp->qps", self.space.lifting(what.field, what.index[1:]), moved)
                term = slope[:, None, :] * lifted
            else:
                continue
            flat = term.reshape(len(slope), -1)
            parts[name, number] = parts[name, number] + flat if (name, number) in parts else flat
        result = np.empty((self.size, count * len(times)), dtype=complex if self.complex else float)
        self._gathered(parts, result, None)
        return result.reshape(self.size, count, len(times))

    def _solver(self, step: LegendreStep, tableau: RadauTableau, slopes: Sequence[Array]) -> Callable[[Array], Array]:
        """The system of a step in the eigenvectors of A⁻¹; reused for a step of the same length and coefficients."""
        length = step.t - step.t_old
        own = [slope for (_, _, kind, _, _), slope in zip(self.formulas, slopes, strict=True) if kind == "own"]
        steady = all((slope == slope[:, :1]).all() for slope in own)
        same = steady and self.last and all(
            np.array_equal(a[:, 0], b[:, 0]) for a, b in zip(own, self.last[0], strict=True)
        )  # fmt: skip
        operator = (
            self.last[1] if same else self.space.operator(step.t_old + 0.5 * length, step(step.t_old + 0.5 * length))
        )
        count = len(tableau) if self.complex else tableau.distinct
        if same and len(self.last[3]) == count and abs(self.last[2] / length - 1.0) < 1e-12:
            solvers = self.last[3]
        else:
            solvers = [solver(operator, tableau.shift(k) / length) for k in range(count)]
        self.last = (own, operator, length, solvers) if steady else ()

        def solve(residual: Array) -> Array:
            total = np.zeros_like(residual)
            for k, one in enumerate(solvers):
                alone = not self.complex and tableau.is_real(k)
                dual, vector = tableau.dual[k], tableau.vectors[:, k]
                part = one(residual @ (dual.real if alone else dual))
                change = part[:, :, None] * (vector.real if alone else vector)
                total += change if alone or self.complex else 2.0 * change.real
            return total

        return solve
