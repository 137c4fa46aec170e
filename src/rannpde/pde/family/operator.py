"""Operators between functions, learned in closed form from examples: random features of the input's coefficients.

An input function, given by its values on a grid, has coefficients: principal components, or Fourier modes on a periodic
grid. Features cos(w·z + b) of these coefficients z, with random w and b, and z itself, carry the output linearly, and
ridge regression finds its weights. How far the features vary with each of the leading coefficients decides everything;
these scales are searched by the error on examples that take no part in the regression.

On a periodic grid the operator commutes with shifts: only the output at one point is learned, from all shifts of all
examples, and the others follow by shifting the input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rannpde.arrays import Array, Rng, row_blocks
from rannpde.errors import finite_array, positive_integer, require
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.storage import floats
from rannpde.pde.solution import Report
from rannpde.pde.tolerance import MUCH_SMALLER, PILOT_TOLERANCE, SAME_SOLUTION

ENERGY = PILOT_TOLERANCE**2
"""Share of the variance of the outputs that their coefficients may leave out: the square of an error."""
INPUT_ENERGY = SAME_SOLUTION**2
"""Share of the variance of the inputs that their coefficients may leave out: inputs that differ by less than
SAME_SOLUTION count as the same."""
MOST_COEFFICIENTS = 128
"""Coefficients at most: with more, there are too few examples to distinguish features."""
SEARCHED, SCALE_ROUNDS = 4, 3
"""Leading coefficients whose scales are searched one by one beside the common one, and sweeps of that search."""
FACTORS = tuple(2.0**power for power in (-3, -2, -1, 1, 2, 3))
"""Factors of a scale that are all tried: oscillation with a coefficient shows only near the right one."""
SEARCH_WIDTH, SEARCH_ROWS = 300, 3000
"""Features and rows with which scales are compared; their order is that of the full regression."""
RIDGES = np.logspace(-10, 0, 11)
"""Ridge parameters, relative to the mean square of the features, among which the selection examples choose."""
SHIFTS = 32
"""Shifts of every example on a periodic grid, at most: neighbouring ones are nearly equal."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator between functions on grids: ``operator(inputs)`` for inputs (N, m) gives outputs (N, M).

    centre, basis : mean (m,) of the inputs and their principal directions (m, r); on a periodic grid Fourier modes
    slopes, offsets : weights and phases of the features cos(z·slopes + offsets), (r, width) and (width,)
    weights : (1 + r + width, k), of the constant, the coefficients and the features
    mean, directions : mean and principal directions of the outputs, (M,) and (k, M); empty on a periodic grid
    periodic : whether it commutes with shifts; held_out : mean relative error on examples that took no part at all
    """

    centre: Array
    basis: Array
    slopes: Array
    offsets: Array
    weights: Array
    mean: Array
    directions: Array
    periodic: bool
    held_out: float
    examples: int

    @classmethod
    def fit(cls, inputs: Array, outputs: Array, *, periodic: bool = False, width: int = 1000, rng: Rng = 0) -> Operator:
        """Learn from examples: inputs (N, m) and outputs (N, M), values of functions on grids.

        periodic : both are values on one uniform grid of a period, and the operator commutes with shifts
        width : number of features. A tenth of the examples is kept for ``held_out``, another one chooses scales

        >>> rng = np.random.default_rng(0)
        >>> x = np.arange(32) / 32
        >>> phases = rng.uniform(0, 1, (200, 1))
        >>> waves = np.sin(2 * np.pi * (x + phases)) + rng.normal(size=(200, 1))
        >>> bool(Operator.fit(waves, waves**2, periodic=True, width=300).held_out < 1e-3)
        True
        """
        inputs, outputs = finite_array("inputs", inputs, 2), finite_array("outputs", outputs, 2)
        require(len(inputs) >= 20, "inputs with rows", len(inputs), "20 examples or more")
        require(len(outputs) == len(inputs), "outputs with rows", len(outputs), f"{len(inputs)}, as many as inputs")
        positive_integer("width", width)
        if periodic:
            same = outputs.shape == inputs.shape
            require(same, "outputs with shape", outputs.shape, f"{inputs.shape}: one periodic grid for both")
        generator = np.random.default_rng(rng)
        order, tenth = generator.permutation(len(inputs)), max(len(inputs) // 10, 2)
        test, select, train = order[:tenth], order[tenth : 2 * tenth], order[2 * tenth :]
        plain = _prepared(cls, inputs[train], outputs[train], periodic)
        scales = _searched(plain, inputs, outputs, train, select, min(width, SEARCH_WIDTH), generator)
        drawn = plain._with_features(scales, width, generator)
        ridge = drawn._best_ridge(inputs, outputs, train, select)
        final = drawn._solved(*drawn._equations(inputs[order[tenth:]], outputs[order[tenth:]]), ridge)
        error = final.error(inputs[test], outputs[test])
        return replace(final, held_out=error, examples=len(inputs) - tenth)

    @classmethod
    def learn(cls, inputs: Array, solution: Callable[[Array], Array], **settings: Any) -> Operator:
        """Learn from solves: ``solution`` of every input (m,) gives the output (M,); settings as in ``fit``."""
        inputs = finite_array("inputs", inputs, 2)
        return cls.fit(inputs, np.stack([np.asarray(solution(row), dtype=float) for row in inputs]), **settings)

    def __call__(self, inputs: Array) -> Array:
        """Outputs (N, M) of inputs (N, m); of one input (m,), the output (M,)."""
        given = finite_array("inputs", inputs, (1, 2))
        rows = np.atleast_2d(given)
        require(
            rows.shape[1] == len(self.centre), "inputs with shape", given.shape, f"of {len(self.centre)} values each"
        )
        if self.periodic:
            outputs = np.empty(rows.shape)
            for shift in range(rows.shape[1]):
                outputs[:, shift] = (self._features(np.roll(rows, -shift, axis=1)) @ self.weights)[:, 0]
        else:
            outputs = self._features(rows) @ self.weights @ self.directions + self.mean
        return outputs[0] if given.ndim == 1 else outputs

    def error(self, inputs: Array, outputs: Array) -> float:
        """Mean over examples of the relative l² error of the output."""
        sizes = np.linalg.norm(outputs, axis=1)
        return float(np.mean(np.linalg.norm(self(inputs) - outputs, axis=1) / np.where(sizes > 0, sizes, 1.0)))

    def report(self) -> Report:
        """Coefficients, features and the held-out error."""
        kind = "Fourier modes, with shifts" if self.periodic else "principal components"
        return Report(
            f"operator from {self.examples} examples: mean relative error {self.held_out:.2e} on held-out ones\n"
            f"  {self.basis.shape[1]} {kind}; {self.slopes.shape[1]} random features"
        )

    def save(self, path: PathLike) -> Path:
        """One file that ``rp.load`` reads back."""
        header = {"periodic": self.periodic, "held_out": self.held_out, "examples": self.examples}
        names = ("centre", "basis", "slopes", "offsets", "weights", "mean", "directions")
        return storage.write(path, "operator", header, {name: np.asarray(getattr(self, name)) for name in names})

    # ------------------------------------------------------------------------------------------------ regression

    def _coefficients(self, rows: Array) -> Array:
        return np.asarray((rows - self.centre) @ self.basis)

    def _features(self, rows: Array) -> Array:
        reduced = self._coefficients(rows)
        waves = np.cos(reduced @ self.slopes + self.offsets)
        return np.concatenate([np.ones((len(rows), 1)), reduced, waves], axis=1)

    def _with_features(self, scales: Array, width: int, rng: np.random.Generator) -> Operator:
        slopes = rng.normal(size=(self.basis.shape[1], width)) * scales[:, None]
        return replace(self, slopes=slopes, offsets=rng.uniform(0, 2 * np.pi, width))

    def _rows(self, inputs: Array, outputs: Array) -> tuple[Array, Array]:
        """Inputs and targets of the regression: shifts of the examples, or coefficients of the outputs."""
        if not self.periodic:
            return inputs, (outputs - self.mean) @ self.directions.T
        size = inputs.shape[1]
        shifts = np.unique(np.linspace(0, size, min(SHIFTS, size), endpoint=False).astype(int))
        rows = np.concatenate([np.roll(inputs, -shift, axis=1) for shift in shifts])
        return rows, np.concatenate([outputs[:, shift] for shift in shifts])[:, None]

    def _equations(self, inputs: Array, outputs: Array) -> tuple[Array, Array, int]:
        """Normal matrix, right-hand sides and number of rows."""
        rows, targets = self._rows(inputs, outputs)
        size = 1 + self.basis.shape[1] + self.slopes.shape[1]
        matrix, rhs = np.zeros((size, size)), np.zeros((size, targets.shape[1]))
        for part in row_blocks(len(rows), 4096):
            design = self._features(rows[part])
            matrix += design.T @ design
            rhs += design.T @ targets[part]
        return matrix, rhs, len(rows)

    def _solved(self, matrix: Array, rhs: Array, count: int, ridge: float) -> Operator:
        """The weights with a ridge parameter, which does not act on the constant and the coefficients themselves."""
        linear = 1 + self.basis.shape[1]
        penalty = np.full(len(matrix), ridge * count)
        penalty[:linear] = 1e-12 * np.trace(matrix) / len(matrix)
        return replace(self, weights=cho_solve(cho_factor(matrix + np.diag(penalty), lower=True), rhs))

    def _best_ridge(self, inputs: Array, outputs: Array, train: Array, select: Array) -> float:
        equations = self._equations(inputs[train], outputs[train])
        rows, targets = self._rows(inputs[select], outputs[select])
        design = self._features(rows)
        missed = [float(np.linalg.norm(design @ self._try(equations, ridge) - targets)) for ridge in RIDGES]
        return float(RIDGES[int(np.argmin(missed))])

    def _try(self, equations: tuple[Array, Array, int], ridge: float) -> Array:
        try:
            return self._solved(*equations, ridge).weights
        except np.linalg.LinAlgError:  # too small a ridge for features that nearly depend on each other
            return np.full((len(equations[0]), equations[1].shape[1]), np.inf)


def _prepared(kind: type[Operator], inputs: Array, outputs: Array, periodic: bool) -> Operator:
    """The coefficients of inputs and outputs, without features."""
    empty = np.zeros(0)
    if periodic:
        size = inputs.shape[1]
        waves = np.fft.rfft(inputs - inputs.mean(), axis=1) / size
        energy = np.mean(np.abs(waves) ** 2, axis=0) * np.where(np.arange(waves.shape[1]) > 0, 2, 1)
        most = min(MOST_COEFFICIENTS // 2, (size - 1) // 2)
        left = 1 - np.cumsum(energy) / max(energy.sum(), 1e-300)
        highest = int(min(np.argmax(left <= INPUT_ENERGY), most)) or 1
        angles = 2 * np.pi * np.outer(np.arange(size), np.arange(1, highest + 1)) / size
        modes = np.concatenate([np.ones((size, 1)), np.cos(angles), np.sin(angles)], axis=1) / size
        centre = np.full(size, inputs.mean())
        spread = np.array([np.sqrt(energy[0]), *np.tile(np.sqrt(energy[1 : highest + 1]), 2)])
        basis = modes / max(float(spread.max()), 1e-300)
        return kind(centre, basis, empty, empty, empty, np.zeros(size), np.zeros((1, size)), True, np.inf, 0)
    centre, (basis, size_in) = inputs.mean(axis=0), _components(inputs - inputs.mean(axis=0), INPUT_ENERGY)
    mean, (directions, _) = outputs.mean(axis=0), _components(outputs - outputs.mean(axis=0), ENERGY)
    return kind(centre, basis / size_in, empty, empty, empty, mean, directions.T, False, np.inf, 0)


def _components(centred: Array, share: float) -> tuple[Array, float]:
    """Principal directions (m, r) that leave out that share of the variance, and the largest standard deviation."""
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    left = 1 - np.cumsum(sizes**2) / max(float(np.sum(sizes**2)), 1e-300)
    count = min(int(np.argmax(left <= share)) + 1, MOST_COEFFICIENTS)
    return directions[:count].T, max(float(sizes[0]) / len(centred) ** 0.5, 1e-300)


def _searched(
    plain: Operator,
    inputs: Array,
    outputs: Array,
    train: Array,
    select: Array,
    width: int,
    rng: np.random.Generator,
) -> Array:
    """Scales (r,) of the slopes, by the error on the selection examples: the common one, then those that lead."""
    count = plain.basis.shape[1]
    groups = [np.arange(count)]
    if plain.periodic:  # cosine and sine of one wave share a scale
        waves = (count - 1) // 2
        groups += [np.array([0])] + [np.array([k, k + waves]) for k in range(1, min(SEARCHED, waves + 1))]
    else:
        groups += [np.array([k]) for k in range(min(SEARCHED, count))]
    seed = int(rng.integers(2**32))
    shifts = min(SHIFTS, inputs.shape[1]) if plain.periodic else 1
    examples, select = rng.permutation(train)[: max(SEARCH_ROWS // shifts, 60)], select[: max(1000 // shifts, 10)]

    def judge(scales: Array) -> float:
        drawn = plain._with_features(scales, width, np.random.default_rng(seed))
        equations = drawn._equations(inputs[examples], outputs[examples])
        rows, targets = drawn._rows(inputs[select], outputs[select])
        design = drawn._features(rows)
        return min(float(np.linalg.norm(design @ drawn._try(equations, ridge) - targets)) for ridge in RIDGES[1::3])

    scales = np.full(count, 0.5)
    best = judge(scales)
    for _ in range(SCALE_ROUNDS):
        before = best
        for group in groups:
            base = scales
            for factor in FACTORS:
                trial = base.copy()
                trial[group] *= factor
                error = judge(trial)
                if error < best:
                    scales, best = trial, error
        if best > (1 - MUCH_SMALLER) * before:
            break
    return scales


def unpack_operator(header: dict[str, Any], arrays: dict[str, Array]) -> Operator:
    """The operator that ``save`` wrote."""
    basis = floats(arrays, "basis", (None, None))
    size, count = basis.shape
    slopes = floats(arrays, "slopes", (count, None))
    width = slopes.shape[1]
    weights, directions = (
        floats(arrays, "weights", (1 + count + width, None)),
        floats(arrays, "directions", (None, None)),
    )
    return Operator(
        floats(arrays, "centre", (size,)), basis, slopes, floats(arrays, "offsets", (width,)), weights,
        floats(arrays, "mean", (directions.shape[1],)), directions, bool(header["periodic"]),
        float(header["held_out"]), int(header["examples"]),
    )  # fmt: skip
