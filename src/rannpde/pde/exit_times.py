"""Expected times of exit from a domain, by which trapped flows are known (see ``trapping``).

A solution of ε Δu = x·∇u is an average of its prescribed values over the exits of the process dX = -X dt + √(2ε) dW,
whose paths stay near the origin for a time of the order exp(1/2ε). Residuals are integrated along these paths: the
longest expected time of exit, the maximum of w with L w = -1 and w = 0 where values are prescribed, is the norm of L⁻¹
between maximum norms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.problem.problem import Problem
from rannpde.rounding import ROOT_ROUNDED

EXIT_GRID_POINTS = 1681
"""Points of the grid on a bounding box, and points of each condition that tell where it stands."""


@dataclass(frozen=True, eq=False)
class ScalarOperator:
    """L = Σ_i a_i ∂_ii + b_i ∂_i + c at points: diffusion, drift (M, n) and reaction (M,), with a > 0."""

    diffusion: Array
    drift: Array
    reaction: Array


@dataclass(frozen=True, eq=False)
class ExitGrid:
    """The points of a uniform grid in a domain, and where paths leave it.

    spacing (n,) : the distance of neighbours along each axis; points (M, n)
    neighbours : for each axis the numbers (M,) of the neighbours below and above, -1 where they are not in the domain
    exits : likewise, whether values are prescribed where there is no neighbour
    """

    spacing: Array
    points: Array
    neighbours: tuple[tuple[Array, Array], ...]
    exits: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, problem: Problem) -> ExitGrid:
        """The grid of a problem on an interval or a shape, with the exits of its first field."""
        domain = problem.domain
        bounds = np.asarray(domain.bounds, dtype=float)
        lengths, dim = np.ptp(bounds, axis=1), domain.dim
        counts = np.maximum(np.round(lengths * (EXIT_GRID_POINTS / lengths.prod()) ** (1 / dim)), dim + 1).astype(int)
        spacing = lengths / counts
        every = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, dim)
        cells = every[domain.contains(bounds[:, 0] + spacing * (every + 0.5))]
        numbers = np.full(counts + 2, -1)  # with a layer of points outside around the box
        numbers[tuple(cells.T + 1)] = np.arange(len(cells))
        steps = np.eye(dim, dtype=int)
        neighbours = tuple((numbers[tuple((cells + 1 - one).T)], numbers[tuple((cells + 1 + one).T)]) for one in steps)
        points = bounds[:, 0] + spacing * (cells + 0.5)
        exits = _exits(problem, problem.fields[0], spacing, points, neighbours)
        return cls(spacing, points, neighbours, exits)

    def of_field(self, problem: Problem, field: str) -> ExitGrid:
        """The same grid with the exits of another field."""
        return replace(self, exits=_exits(problem, field, self.spacing, self.points, self.neighbours))

    @cached_property
    def closed(self) -> bool:
        """Whether no value is prescribed anywhere."""
        return not any(one.any() for pair in self.exits for one in pair)

    def same_conditions(self, operator: ScalarOperator, adjoint: ScalarOperator) -> bool:
        """Whether an operator and its adjoint have the same conditions: values, or slopes where no flow passes."""
        passing = [np.abs(one.drift) > ROOT_ROUNDED * np.abs(one.drift).max() for one in (operator, adjoint)]
        return not any(
            ((numbers < 0) & ~leaves & one[:, axis]).any()
            for one in passing
            for axis, sides in enumerate(zip(self.neighbours, self.exits, strict=True))
            for numbers, leaves in zip(*sides, strict=True)
        )

    def exit_time(self, operator: ScalarOperator) -> float:
        """Return the longest expected time of exit; infinite where rounding decides. A reaction that lets solutions
        grow is left out."""
        solve = self.inverse(operator, np.maximum(-operator.reaction, 0.0))
        if solve is None:
            return np.inf
        times = solve(np.ones(len(self.points)))
        return float(times.max()) if np.isfinite(times).all() and times.min() > 0 else np.inf

    @property
    def accuracy(self) -> float:
        """Relative accuracy of eigenvalues: rates are of first order in the spacing where it resolves no layer."""
        return float(np.max(self.spacing / np.ptp(self.points, axis=0)))

    def inverse(self, operator: ScalarOperator, decay: Array) -> Callable[..., Array] | None:
        """Return the solution operator of -L with a decay (M,) instead of the reaction; None where it is singular."""
        return factorised(self.matrix(operator, decay))

    def matrix(self, operator: ScalarOperator, decay: Array) -> csc_matrix:
        """Return the matrix (M, M) of -L with a decay (M,) instead of the reaction.

        Rates between neighbours are those of Scharfetter and Gummel, which are exact along an axis for a constant
        drift: without growth it is an M-matrix for every drift, and the barriers are those of the flow.
        """
        count = len(self.points)
        here, diagonal = np.arange(count), decay
        rows, columns, entries = [], [], []
        for axis, (pair, leaves) in enumerate(zip(self.neighbours, self.exits, strict=True)):
            for sign, numbers, leave in zip((-1, 1), pair, leaves, strict=True):
                inside = numbers >= 0
                other = np.where(inside, numbers, here)
                diffusion = 0.5 * (operator.diffusion[:, axis] + operator.diffusion[other, axis])
                drift = 0.5 * (operator.drift[:, axis] + operator.drift[other, axis])
                step = self.spacing[axis]
                rates = diffusion / step**2 * bernoulli(-sign * drift * step / diffusion)
                diagonal = diagonal + np.where(inside | leave, rates, 0.0)
                rows.append(here[inside])
                columns.append(numbers[inside])
                entries.append(-rates[inside])
        indices = np.concatenate([*rows, here]), np.concatenate([*columns, here])
        return csc_matrix((np.concatenate([*entries, diagonal]), indices), shape=(count, count))


def factorised(matrix: csc_matrix) -> Callable[..., Array] | None:
    """Return the solution operator of a matrix (``trans="T"`` for the transposed one); None where it is singular."""
    checkpoint()
    try:
        solve: Callable[..., Array] = splu(matrix, diag_pivot_thresh=0.0).solve
    except RuntimeError:  # an exactly singular matrix
        return None
    return solve


def bernoulli(z: Array) -> Array:
    """Return the Bernoulli function z / (exp(z) - 1), which is 1 at 0.

    >>> bernoulli(np.array([-1e9, -1.0, 0.0, 1.0, 1e9])).round(6).tolist()
    [1000000000.0, 1.581977, 1.0, 0.581977, 0.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(z == 0, 1.0, z / np.expm1(np.where(z == 0, 1.0, z)))


def _conditions(problem: Problem, field: str | None = None) -> list[tuple[Array, bool]]:
    """Points (M, n) of each condition, on one field or on any, and whether it is one on values."""
    samples = []
    for term in problem.terms:
        jets = [jet for jet in term.expression.jets if field in (None, jet.field)]
        if jets and term.kind in ("boundary", "initial") and term.region is not None:
            values = any(jet.order == 0 for jet in jets)
            samples.append((np.asarray(term.region.sample(EXIT_GRID_POINTS, rng=0)), values))
    return samples


def ends_with_conditions(problem: Problem) -> tuple[bool, bool]:
    """Whether conditions stand at the lower and the upper end of an interval."""
    positions = np.concatenate([np.zeros(0), *(points[:, 0] for points, _ in _conditions(problem))])
    (ends,) = np.asarray(problem.domain.bounds, dtype=float)
    near = np.abs(positions[:, None] - ends) <= 1e-9 * (ends[1] - ends[0])
    return bool(near[:, 0].any()), bool(near[:, 1].any())


def _exits(
    problem: Problem, field: str, spacing: Array, points: Array, neighbours: tuple[tuple[Array, Array], ...]
) -> tuple[tuple[Array, Array], ...]:
    """For each axis, whether there is no neighbour below and above (M,), and the nearest condition on a field is one on
    its values."""
    conditions = _conditions(problem, field)
    if not conditions:
        return tuple((np.zeros(len(points), bool),) * 2 for _ in neighbours)
    nearest = cKDTree(np.concatenate([samples / spacing for samples, _ in conditions]))
    on_values = np.concatenate([np.full(len(samples), values) for samples, values in conditions])
    exits = []
    for axis, pair in enumerate(neighbours):
        both = []
        for sign, numbers in zip((-1, 1), pair, strict=True):
            faces = points / spacing
            faces[:, axis] += 0.5 * sign
            both.append((numbers < 0) & on_values[nearest.query(faces)[1]])
        exits.append((both[0], both[1]))
    return tuple(exits)
