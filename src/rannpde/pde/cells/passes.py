"""Passes over ever finer cells: draw, solve, compare with the pass before, cut the cells that need it.

Every pass draws its functions anew, so that two passes share no error of the draw; and every pass cuts the cells with
the largest residuals, so that they share none of the mesh where it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2, log10
from typing import Protocol

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.pde.cells.basis import Draw
from rannpde.pde.cells.evolved import MarchedNetwork
from rannpde.pde.cells.first import at_holes_and_corners, axes_of, first_tree, following
from rannpde.pde.cells.interfaces import interfaces_of
from rannpde.pde.cells.mesh import Mesh, MeshBuilder
from rannpde.pde.cells.network import CellNetwork, cell_network
from rannpde.pde.cells.newton import Newton, apart
from rannpde.pde.cells.system import System
from rannpde.pde.cells.tree import Node
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.cells.weights import Weights
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import field_sizes
from rannpde.pde.watch import Ending, Watch

CHECK_POINTS = 4000
"""Fresh points at which two passes are compared."""
ROUNDING = 1e-9
"""Differences below are taken as they are: a smaller residual of the later pass need not mean a smaller error."""
CLOSE, FREE = 1e-2, 1e3
"""Passes that differ by less are approximations of one solution; by so many residuals, of many solutions."""


@dataclass(frozen=True)
class CellsPass:
    """One pass: cells, their degree, Newton steps, the largest residual, the change to the pass before, seconds."""

    cells: int
    degree: int
    steps: int
    residual: float
    difference: float
    seconds: float

    def __str__(self) -> str:
        change = f", change {self.difference:.1e}" if np.isfinite(self.difference) else ""
        steps = f"{self.steps} step{'s' * (self.steps > 1)}"
        told = f"{self.cells} cells of degree {self.degree}, {steps}, residual {self.residual:.1e}"
        return f"{told}, {self.seconds:.2f} s{change}"


@dataclass(frozen=True, eq=False)
class Solved:
    """One solve: the function; residuals per leaf, of equations (C,) and of conditions by axis (C, n); its ending."""

    network: CellNetwork | MarchedNetwork
    mesh: Mesh
    weights: Weights
    inside: Array
    beside: Array
    losses: Mapping[str, float]
    steps: int
    ending: Ending
    free: bool

    @property
    def marks(self) -> Array:
        """Dimensionless residual per leaf, (C,)."""
        return np.hypot(self.inside, np.linalg.norm(self.beside, axis=1))


@dataclass(frozen=True, eq=False)
class Found:
    """What the passes amount to."""

    best: Solved
    passes: tuple[CellsPass, ...]
    estimate: float
    ending: Ending
    detail: str


class Solver(Protocol):
    """What solves in the place of ``Passes.solve``, in coordinates of its own."""

    @property
    def dim(self) -> int: ...

    def solve(
        self,
        tree: Node,
        draw: Draw,
        sizes: Array,
        last: Solved | None,
        seed: int,
        number: int,
        pause: Callable[[], None],
    ) -> Solved: ...


class _TimeIsUp(Exception):
    """The time allowed was used up in the middle of a solve."""


class Passes:
    """Draw, solve, compare, cut."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        watch: Watch,
        rng: np.random.Generator,
        tuning: CellsTuning,
        degree: int | None = None,
        factors: Mapping[str, float] | None = None,
        solver: Solver | None = None,
    ) -> None:
        self.problem, self.tol, self.watch, self.rng, self.tuning = problem, tol, watch, rng, tuning
        self.solver = solver
        self.dim = problem.domain.dim if solver is None else solver.dim
        self.degree = degree or self._degree()
        highest = self.degree if solver is not None else max(self.degree, tuning.most_degree[self.dim - 1])
        self.degrees = (self.degree, min(self.degree + 1, highest))
        self.factors = factors or {}
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)
        self.newton = Newton(tol, watch, tuning, self.points)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim)
        self.sizes = np.ones(len(problem.fields))
        self.mark = tuning.mark * tol
        self.last: Solved | None = None
        self.rushed = False
        self.best: tuple[Solved, float] | None = None
        self.passes: list[CellsPass] = []
        self.residuals: list[float] = []

    def _degree(self) -> int:
        first, per_digit = self.tuning.degree
        wanted = round(first - per_digit * log10(self.tol))
        return min(wanted, self.tuning.most_degree[self.dim - 1] - (self.dim > 2))

    # ------------------------------------------------------------------------------------------------------- loop

    def run(self, state: State, tree: Node | None = None) -> Found:
        """Passes until two of them agree, or time, cells or hope are used up."""
        graded = self.problem.linear or tree is not None  # Newton's first steps need no fine cells at corners
        tree = tree or first_tree(self.problem, self.degree, self.tol if graded else 1.0, self.tuning, self.interfaces)
        if self.dim == 1 and not self.problem.linear:
            tree = following(tree, state, self.degree, self.tuning.most_cells[0] // 4)
        ending: Ending | None = None
        while ending is None:
            try:
                ending = self._pass(tree, self.last.network if self.last is not None else state)
            except _TimeIsUp:
                ending = Ending.BUDGET
                if self.last is None:  # something to look at, from one cell
                    self.rushed = True
                    self._pass(Node(tree.bounds), state)
            except KeyboardInterrupt:
                if self.last is None:
                    raise
                ending = Ending.INTERRUPTED
            if ending is None:
                assert self.last is not None
                before = tree
                tree = self._refined(before)
                if (
                    len(tree.leaves) > self.tuning.most_cells[self.dim - 1]
                    or len(self.passes) >= self.tuning.most_passes
                ):
                    ending = Ending.STALLED
                elif not graded:
                    graded, tree = True, at_holes_and_corners(tree, self.problem.domain, log2(1 / self.tol))
                elif tree is before:  # once more with other and better functions, and if that does not agree, finer
                    self.mark = min(self.mark / 4, self._aim() * float(self.last.marks.max()))
                    self.degree = sum(self.degrees) - self.degree
        assert self.last is not None
        best, estimate = self.best if self.best is not None else (self.last, np.inf)
        if ending is Ending.STALLED and best.ending is Ending.NEWTON:
            ending = Ending.NEWTON
        elif ending is Ending.STALLED and self._undetermined():
            ending = Ending.UNDETERMINED
        return Found(best, tuple(self.passes), estimate, ending, self._detail(ending, estimate))

    def _pass(self, tree: Node, state: State) -> Ending | None:
        number, begin = len(self.passes) + 1, self.watch.elapsed
        solved = self.solve(tree, state, number)
        volumes = np.array([np.prod(leaf.lengths) for leaf in solved.mesh.tree.leaves])
        self.residuals.append(float(np.sqrt(volumes @ solved.marks**2 / volumes.sum())))
        values = solved.network(self.points)
        change = np.inf if self.last is None else apart(self.last.network(self.points), values)
        residual = float(solved.marks.max())
        cells = sum(cell is not None for cell in solved.mesh.cells)
        self.passes.append(CellsPass(cells, self.degree, solved.steps, residual, change, self.watch.elapsed - begin))
        short = solved.ending.by_caller or solved.ending is Ending.INTEGRATOR
        again = self.last is not None and self.last.ending is solved.ending
        self.last = solved
        reached = values[np.isfinite(values).all(axis=1)]
        if len(reached):
            self.sizes = field_sizes(np.sqrt(np.mean(reached**2, axis=0)))
        estimate = self._estimate(change)
        if self.best is None or residual > self._lenient or estimate <= self.best[1]:
            self.best = (solved, estimate)
        self.watch.tell(number, solved.steps, width=cells, estimate=estimate if np.isfinite(estimate) else None)
        if short and (again or solved.ending.by_caller):  # a march that did not come to its end
            return solved.ending
        small = residual <= self._lenient
        if solved.free and small and number > 1:
            return Ending.UNDETERMINED
        alike = self.dim > 1 or cells == self.passes[-2 if number > 1 else -1].cells  # on a line a look is cheap
        if estimate <= self.tol and small and alike and solved.ending is Ending.CONVERGED:
            return Ending.CONVERGED
        if self.watch.over:
            return Ending.BUDGET
        return Ending.STALLED if self._hopeless(small) else None

    def _hopeless(self, small: bool) -> bool:
        """Whether many more cells have gained nothing: there is no solution, or what is left is rounding."""
        first = 0
        if small:  # what passes differ by counts from the first two that leave little
            large = [k for k, one in enumerate(self.passes) if one.residual > self._lenient]
            first = large[-1] + 2 if large else 1
        cells = np.array([one.cells for one in self.passes[first:]])
        told = np.array([one.difference for one in self.passes[first:]] if small else self.residuals)
        early = np.flatnonzero(cells * (4 if small else 16) <= cells[-1]) if len(cells) else cells
        later = len(cells) - early[-1] - 1 if len(early) else 0
        if len(self.passes) < 4 or not (later >= 2 if small else 0 < later <= 2):
            return False
        return bool(told[early[-1] + 1 :].min() > self.tuning.stall * told[early].min())

    def _estimate(self, change: float) -> float:
        """Of the error of the last pass, from what it differs by from the one before, whose residual may be larger."""
        if len(self.residuals) < 2:
            return np.inf
        # residuals of space do not tell the error in time; along a line errors may grow, and one more pass is cheap
        if self.solver is not None or self.dim == 1:
            return self.tuning.share * change
        gain = self.tuning.trust * self.residuals[-1] / max(self.residuals[-2], 1e-300)
        gained = change * float(np.clip(gain, self.tuning.least, 1.0))
        return self.tuning.share * max(gained, min(change, ROUNDING))  # near rounding, residuals tell nothing of errors

    def _aim(self) -> float:
        """What the largest residual is to be multiplied by: errors are about proportional to it."""
        known = self.best[1] if self.best is not None else np.inf
        return float(np.clip(self.tol / known, self.tuning.boldest, 0.5))

    def _undetermined(self) -> bool:
        """Whether passes that all satisfy the equations differ by far more than their residuals."""
        told = [one for one in self.passes[-3:] if one.residual <= self._lenient]
        return len(told) == 3 and all(one.difference > max(CLOSE, FREE * one.residual) for one in told)

    @property
    def _lenient(self) -> float:
        return max(self.tuning.lenient, 0.5 * self.tol)

    def _detail(self, ending: Ending, estimate: float) -> str:
        residual = self.passes[-1].residual
        if ending is Ending.STALLED:
            known = f"two passes differ by {estimate:.1e}, " if np.isfinite(estimate) else ""
            return f"{known}the largest residual of a cell is {residual:.1e} after {len(self.passes)} passes"
        if ending is Ending.UNDETERMINED:
            named = self.problem.free_constants
            what = f"a constant in {', '.join(named)}" if named else "a mode of the homogeneous problem"
            return f"the equations and conditions leave {what} free; add a condition that fixes it"
        if ending.by_caller and estimate <= self.tol and residual > self._lenient:
            return f"{ending}; passes agree to the tolerance, but a cell still leaves a residual of {residual:.1e}"
        return ""

    # ------------------------------------------------------------------------------------------------- one solve

    def solve(self, tree: Node, state: State, number: int) -> Solved:
        """The problem on the leaves of a tree, from a state."""
        tree = tree.shaken(self.tuning.shake[len(tree.bounds) - 1], self.rng)
        draw = self.draw()
        if self.solver is not None:
            seed = int(self.rng.integers(2**31))
            return self.solver.solve(tree, draw, self.sizes, self.last, seed, number, self._pause)
        names = self.problem.domain.names
        builder = MeshBuilder(self.problem.domain, draw, self.interfaces)
        mesh = builder.build(tree, tuple(map(names.index, self.problem.periodic)))
        loose = self._loose(mesh.tree)
        system = System(self.problem, mesh, self.sizes, loose, self.factors, int(self.rng.integers(2**31)))
        first = self.last is None
        weights, steps, ending, free = self.newton.solve(system, state, number, first, self._pause)
        inside, beside = system.residuals(weights)
        return Solved(
            cell_network(mesh, weights), mesh, weights, inside, beside, system.losses(weights), steps, ending, free
        )

    def draw(self) -> Draw:
        """New functions."""
        return Draw.sample(self.dim, self.degree, self.tuning, self.rng)

    def _loose(self, tree: Node) -> Array:
        """Leaves in which the pass before missed the values prescribed there, or all."""
        if self.last is None:
            return np.ones(len(tree.leaves), dtype=bool)
        centres = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
        home = self.last.mesh.tree.locate(centres)
        return np.linalg.norm(self.last.beside, axis=1)[home] > self.tuning.loose

    def _pause(self) -> None:
        first_march = self.solver is not None and self.last is None  # it looks at the clock itself
        if self.watch.over and not (self.rushed or first_march):
            raise _TimeIsUp

    # --------------------------------------------------------------------------------------------------- cutting

    def _refined(self, tree: Node) -> Node:
        """The tree with the cells of large residual cut; the same tree where there are none."""
        assert self.last is not None
        marks, homes = self.last.marks, self.last.mesh.homes
        chosen = np.flatnonzero(marks > max(self.mark, self.tuning.worst * float(marks.max())))
        chosen = chosen[np.argsort(marks[chosen], kind="stable")]  # of two parts of a box the worse one is heard
        cuts = {tree.leaves[homes[k]]: self._axes(self.last, int(k)) for k in chosen}
        return tree.refined(cuts) if cuts else tree

    def _axes(self, solved: Solved, number: int) -> tuple[int, ...]:
        """The axes across which a cell is to be cut: those along which the solution is not resolved."""
        cell, tuning = solved.mesh.cells[number], self.tuning
        assert cell is not None
        beside = solved.beside[number]
        if self.dim > 1 and np.linalg.norm(beside) > 3 * solved.inside[number]:
            return axes_of(beside > 0.3 * beside.max())
        if not cell.whole or self.dim == 1:
            lengths = solved.mesh.tree.leaves[number].lengths
            return axes_of(lengths > 0.6 * lengths.max())
        count, degree = cell.draw.nodes, cell.draw.degree
        nodes, shares = leggauss(count)
        analysis = legvander(nodes, count - 1).T * shares * np.sqrt(np.arange(count)[:, None] + 0.5)
        plain = (0,) * self.dim
        values = (cell.tables([plain])[plain] @ solved.weights.cells[number]) / self.sizes
        grid = values.reshape((count,) * self.dim + (-1,))
        for axis in range(self.dim):
            grid = np.moveaxis(np.tensordot(analysis, grid, axes=(1, axis)), 0, axis)
        beyond = np.arange(int(tuning.tail * degree), degree + 1)
        tails = np.array([np.linalg.norm(np.take(grid, beyond, axis=axis)) for axis in range(self.dim)])
        return axes_of(tails >= tuning.direction * tails.max())
