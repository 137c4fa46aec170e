"""Iterations over ever finer cells: draw, solve, compare with the iteration before, cut the cells that need it.

Every iteration draws its functions anew, so that two iterations share no error of the draw; and every iteration cuts
the cells with the largest residuals, so that they share none of the mesh where it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2, log10
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.basis import Draw
from rannpde.pde.cells.cuts import (
    Solved,
    at_holes_and_corners,
    first_tree,
    following,
    refined,
    towards,
    towards_corners,
)
from rannpde.pde.cells.interfaces import Interfaces, interfaces_of
from rannpde.pde.cells.judging import CellsIteration, Judge
from rannpde.pde.cells.mesh import MeshBuilder
from rannpde.pde.cells.network import cell_network
from rannpde.pde.cells.newton import Newton
from rannpde.pde.cells.system import CellsSystem
from rannpde.pde.cells.tree import CellNode
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import apart, field_sizes, held_out_residual

CHECK_POINTS = 4000
"""Fresh points at which two iterations are compared."""


@dataclass(frozen=True, eq=False)
class CellsFound:
    """What the iterations amount to."""

    best: Solved
    iterations: tuple[CellsIteration, ...]
    estimate: float
    status: Status
    detail: str


class Solver(Protocol):
    """What solves in the place of ``CellsIterations.solve``, in coordinates of its own."""

    @property
    def dim(self) -> int: ...

    def solve(
        self,
        tree: CellNode,
        draw: Draw,
        sizes: Array,
        last: Solved | None,
        seed: int,
        number: int,
        checkpoint: Callable[[], None],
    ) -> Solved: ...


class _TimeIsUp(Exception):
    """The time allowed was used up in the middle of a solve."""


class CellsIterations:
    """Draw, solve, compare, cut."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        monitor: Monitor,
        rng: np.random.Generator,
        tuning: CellsTuning,
        degree: int | None = None,
        factors: Mapping[str, float] | None = None,
        solver: Solver | None = None,
    ) -> None:
        self.problem, self.tol, self.monitor, self.rng, self.tuning = problem, tol, monitor, rng, tuning
        self.solver = solver
        self.dim = problem.domain.dim if solver is None else solver.dim
        self.degree = degree or self._degree()
        highest = self.degree if solver is not None else max(self.degree, tuning.most_degree[self.dim - 1])
        self.degrees = (self.degree, min(self.degree + 1, highest))
        self.factors = factors or {}
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)
        self.newton = None if problem.linear else Newton(tol, monitor, tuning, self.points)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim) if problem.kinked else Interfaces()
        self.creases = problem.domain.creases
        corners = len(problem.fields) > 1 and bool(problem.domain.corners)
        cornered = corners or bool(self.interfaces.corners) or len(self.creases) > 0
        self.judge = Judge(tol, tuning, solver is not None, self.dim == 1 and not problem.linear, cornered)
        self.sizes = np.ones(len(problem.fields))
        self.mark = tuning.mark * tol  # in space cells are dear: the worst first
        if self.dim < 3:
            self.mark = min(self.mark, self.judge.lenient)  # what is left alone must not stand in the way of the end
        self.last: Solved | None = None
        self.rushed = False
        self.best: tuple[Solved, float] | None = None
        self.pointed = False

    def _degree(self) -> int:
        first, per_digit = self.tuning.degree
        wanted = round(first - per_digit * log10(self.tol))
        return min(wanted, self.tuning.most_degree[self.dim - 1] - (self.dim > 2))

    # ------------------------------------------------------------------------------------------------------- loop

    def run(self, state: State, tree: CellNode | None = None) -> CellsFound:
        """Iterations until two of them agree, or time, cells or hope are used up."""
        graded = self.problem.linear or tree is not None  # Newton's first steps need no fine cells at corners
        tree = tree or first_tree(self.problem, self.degree, self.tol if graded else 1.0, self.tuning, self.interfaces)
        if self.dim == 1 and not self.problem.linear:
            tree = following(tree, state, self.degree, self.tuning.most_cells[0] // 4)
        status: Status | None = None
        while status is None:
            try:
                status = self._pass(tree, self.last.network if self.last is not None else state)
            except _TimeIsUp:
                status = Status.BUDGET
                if self.last is None:  # something to look at, from one cell
                    self.rushed = True
                    self._pass(CellNode(tree.bounds), state)
            except KeyboardInterrupt:
                if self.last is None:
                    raise
                status = Status.INTERRUPTED
            if status is None:
                assert self.last is not None
                before = tree
                tree = refined(before, self.last, self.mark, self.sizes, self.tuning, self.creases)
                if self.pointed:
                    self.pointed, tree = False, towards(tree, self.interfaces.crossings)
                if (
                    len(tree.leaves) > self.tuning.most_cells[self.dim - 1]
                    or len(self.judge.iterations) >= self.tuning.most_passes
                ):
                    status = Status.STALLED
                elif not graded:
                    graded, tree = True, self._graded(tree)
                else:
                    tree = self._unlike(before, tree)
        assert self.last is not None
        best, estimate = self.best if self.best is not None else (self.last, np.inf)
        if status is Status.STALLED and best.status is Status.NEWTON:
            status = Status.NEWTON
        elif status is Status.STALLED and self.judge.undetermined():
            status = Status.UNDETERMINED
        return CellsFound(best, tuple(self.judge.iterations), estimate, status, self._detail(status, estimate))

    def _pass(self, tree: CellNode, state: State) -> Status | None:
        number, begin = len(self.judge.iterations) + 1, self.monitor.elapsed
        solved = self.solve(tree, state, number)
        values = solved.network(self.points)
        change = np.inf if self.last is None else apart(self.last.network(self.points), values)
        residual = float(solved.marks.max())
        cells = sum(cell is not None for cell in solved.mesh.cells)
        volumes = np.array([np.prod(leaf.lengths) for leaf in solved.mesh.tree.leaves])
        whole = float(np.sqrt(volumes @ solved.marks**2 / volumes.sum()))
        seconds = self.monitor.elapsed - begin
        self.judge.hear(CellsIteration(cells, self.degree, solved.steps, residual, change, seconds), whole)
        short = solved.status.by_caller or solved.status is Status.INTEGRATOR
        again = self.last is not None and self.last.status is solved.status
        self.last = solved
        self.sizes = self._sizes_of(values)
        estimate = self.judge.estimate()
        if self.best is None or residual > self.judge.lenient or estimate <= self.best[1]:
            self.best = (solved, estimate)
        self.monitor.tell(number, solved.steps, width=cells, estimate=estimate if np.isfinite(estimate) else None)
        if short and (again or solved.status.by_caller):  # a march that did not come to its end
            return solved.status
        small = residual <= self.judge.lenient
        if solved.free and small and number > 1:
            return Status.UNDETERMINED
        alike = (
            self.dim > 1 or cells == self.judge.iterations[-2 if number > 1 else -1].cells
        )  # on a line a look is cheap
        agree = estimate <= self.tol and small and alike and solved.status is Status.CONVERGED
        if agree and not self._must_mend(solved):
            if len(self.judge.vetoes) > 1:  # those before would be vetoed, or no better
                self.best = (solved, estimate)
            return Status.CONVERGED
        if self.monitor.exhausted:
            return Status.BUDGET
        if estimate <= self.tol:  # what was left alone so far stands in the way of the end
            self.mark = min(self.mark, self.judge.lenient)
        return Status.STALLED if self.judge.hopeless(self.best[1] <= self.tol) else None

    def _must_mend(self, solved: Solved) -> bool:
        """Whether iterations agree on what would be vetoed, and the next shall have smaller cells, at crossings
        first."""
        if self.solver is not None:
            return False
        share = self.judge.mendable(max(held_out_residual(self.problem, solved.network).values()))
        self.mark, self.pointed = min(self.mark, share * float(solved.marks.max())), self.dim == 2 and share < 1
        return share < 1

    def _unlike(self, before: CellNode, tree: CellNode) -> CellNode:
        """The next cells: where they would be nearly those of the iteration before, something else has to differ.

        What both iterations lack does not show in their difference: so the degree is another, and at corners, where the
        degree matters little, cells are smaller. Where two iterations did not agree on such cells, more of them are
        cut.
        """
        assert self.last is not None
        residual = float(self.last.marks.max())
        if self._few(before, tree) and not self.judge.rounded(self.judge.iterations[-1]):
            differ = self.best is not None and self.tol < self.best[1] < np.inf
            # of a march steps may differ, in space cells are dear, at corners others help
            more = differ and self.solver is None and self.dim < 3 and not self._singular
            if more or tree is before:
                self.mark = min(self.mark / 4, self._aim() * residual)
            if more:
                tree = refined(before, self.last, self.mark, self.sizes, self.tuning)
        if self.solver is None and self._few(before, tree):
            self.degree = sum(self.degrees) - self.degree
            tree = towards_corners(tree, self.problem.domain, self.interfaces)
        return tree

    @property
    def _singular(self) -> bool:
        """Whether there are corners, where residuals fall slowly."""
        return bool(self.problem.domain.corners or self.interfaces.corners)

    def _few(self, before: CellNode, tree: CellNode) -> bool:
        """Whether hardly any cells were cut."""
        return len(tree.leaves) < self.tuning.alike * len(before.leaves)

    def _graded(self, tree: CellNode) -> CellNode:
        """Cells small enough at corners for the error wanted."""
        return at_holes_and_corners(tree, self.problem.domain, log2(1 / self.tol), self.interfaces)

    def _aim(self) -> float:
        """What the largest residual is to be multiplied by: errors are about proportional to it."""
        known = self.best[1] if self.best is not None else np.inf
        return float(np.clip(self.tol / known, self.tuning.boldest, 0.5))

    def _detail(self, status: Status, estimate: float) -> str:
        residual = self.judge.iterations[-1].residual
        if status is Status.STALLED:
            known = f"two iterations differ by {estimate:.1e}, " if np.isfinite(estimate) else ""
            return (
                f"{known}the largest residual of a cell is {residual:.1e} after {len(self.judge.iterations)} iterations"
            )
        if status is Status.UNDETERMINED:
            named = self.problem.free_constants
            what = f"a constant in {', '.join(named)}" if named else "a mode of the homogeneous problem"
            return f"the equations and conditions leave {what} free; add a condition that fixes it"
        if status.by_caller and estimate <= self.tol and residual > self.judge.lenient:
            return f"{status}; iterations agree to the tolerance, but a cell still leaves a residual of {residual:.1e}"
        return ""

    # ------------------------------------------------------------------------------------------------- one solve

    def solve(self, tree: CellNode, state: State, number: int) -> Solved:
        """The problem on the leaves of a tree, from a state."""
        tree = tree.shaken(self.tuning.shake[len(tree.bounds) - 1], self.rng, together=len(tree.bounds) > 2)
        draw = self.draw()
        if self.solver is not None:
            seed = int(self.rng.integers(2**31))
            return self.solver.solve(tree, draw, self.sizes, self.last, seed, number, self._checkpoint)
        names = self.problem.domain.names
        builder = MeshBuilder(self.problem.domain, draw, self.interfaces)
        mesh = builder.build(tree, tuple(map(names.index, self.problem.periodic)), self._checkpoint)
        loose = self._loose(mesh.tree)
        seed = int(self.rng.integers(2**31))
        system = CellsSystem(self.problem, mesh, self.sizes, loose, self.factors, seed, checkpoint=self._checkpoint)
        if self.newton is None:
            weights, free = system.solve(state, self._checkpoint)
            steps, status = 1, Status.CONVERGED
        else:
            first = self.last is None
            weights, steps, status, free = self.newton.solve(system, state, number, first, self._checkpoint)
        network = cell_network(mesh, weights)
        if self.last is None:  # residuals are relative to the sizes of fields, which are known now
            system.sizes = self._sizes_of(network(self.points))
        inside, beside = system.residuals(weights)
        return Solved(network, mesh, weights, inside, beside, system.losses(weights), steps, status, free)

    def _sizes_of(self, values: Array) -> Array:
        """Of the fields (fields,), from values (M, fields) at the points; as they were where nothing is known."""
        reached = values[np.isfinite(values).all(axis=1)]
        return field_sizes(np.sqrt(np.mean(reached**2, axis=0))) if len(reached) else self.sizes

    def draw(self) -> Draw:
        """New functions."""
        return Draw.sample(self.dim, self.degree, self.tuning, self.rng)

    def _loose(self, tree: CellNode) -> Array:
        """Leaves in which the iteration before missed the values prescribed there, or all."""
        if self.last is None:
            return np.ones(len(tree.leaves), dtype=bool)
        centres = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
        home = self.last.mesh.tree.locate(centres)
        return np.linalg.norm(self.last.beside, axis=1)[home] > self.tuning.loose

    def _checkpoint(self) -> None:
        first_march = self.solver is not None and self.last is None  # it looks at the clock itself
        if self.monitor.exhausted and not (self.rushed or first_march):
            raise _TimeIsUp
