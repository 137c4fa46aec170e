"""Functions of the cells: random cosines and sines on [-1, 1]^d, orthonormal in H¹ on each cell.

One hidden layer serves all cells of a solve. Its columns are nearly dependent, and combinations of them that are
orthonormal have output weights of up to 1/cutoff, so that their values at points are rounded by that much: a Galerkin
method needs values, derivatives and traces of one function to belong together far better. The columns are therefore
expanded in Legendre polynomials, which is exact (Bessel functions, Jacobi–Anger), up to degrees where nothing is left:

    exp(i w x) = Σ_n (2n + 1) iⁿ j_n(w) P_n(x) .

Their singular vectors in H¹, and not in L², are the functions, as combinations of Legendre polynomials that are
evaluated to rounding, and as output weights of the network. The penalty of the method needs a bound of traces by
volumes,

    ∫_side g² ≤ c ∫_cell g²   for all g in the span of the derivatives of the functions,

whose sharp constant is an eigenvalue, computed here once for whole boxes and for every cut cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, pi, sqrt

import numpy as np
from scipy import sparse
from scipy.special import spherical_jn

from rannpde.arrays import BLOCK_BYTES, Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES
from rannpde.network.features import FourierFeatures
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.face_tables import FaceTables
from rannpde.pde.weak.legendre import gauss_cube, legendre_products, orthonormal_legendre, product_degrees
from rannpde.pde.weak.legendre_cube import LegendreCube
from rannpde.pde.weak.settings import WeakSettings
from rannpde.rounding import COMPUTED, EPS

GRAM_ROUNDING = COMPUTED
"""Eigenvalues of a matrix of products, over the largest, below which they are rounding."""
NEGLIGIBLE = 1e-13
"""Legendre coefficients of the features below are left out: beside the cutoff of functions they change no digit."""


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """Random features of a solve on [-1, 1]^d, comparable to polynomials of a degree, and what whole boxes share."""

    features: FourierFeatures
    degree: int
    settings: WeakSettings
    curved: bool = False

    @classmethod
    def sample(
        cls, dim: int, degree: int, settings: WeakSettings, rng: np.random.Generator, curved: bool = False
    ) -> HiddenLayer:
        """Frequencies uniform in a cube, phases uniform; ``curved`` : whether cells have curved sides."""
        count = columns_of(dim, degree, settings)
        scale = settings.frequency * degree
        weights, phases = rng.uniform(-scale, scale, (dim, count)), rng.uniform(0.0, 2 * pi, count)
        return cls(FourierFeatures(weights, phases, np.zeros(dim), np.ones(dim)), degree, settings, curved)

    @property
    def dim(self) -> int:
        return self.features.dim

    @property
    def nodes(self) -> int:
        """Gauss nodes along a face: products of two functions are about of twice the degree."""
        return self.degree + (self.settings.curved_nodes if self.curved else self.settings.more_nodes)

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Points (Q, d) and weights (Q,) of [-1, 1]^d for whole cells, none of whose sides is curved."""
        return gauss_cube(self.degree + self.settings.more_nodes, self.dim)

    # --------------------------------------------------------------------------------------------------- functions

    @cached_property
    def highest(self) -> int:
        """The degree of Legendre polynomials beyond which the coefficients of the features are below rounding."""
        scale = float(np.abs(self.features.weights).sum(axis=0).max())
        degrees = np.arange(4 * self.degree + 80)
        return int(np.flatnonzero(np.abs(spherical_jn(degrees, scale)) * (degrees + 1) > NEGLIGIBLE)[-1])

    @cached_property
    def modes(self) -> Array:
        """Multi-indices (R, d) of the products of Legendre polynomials that are used."""
        return product_degrees(self.dim, self.highest)

    @cached_property
    def _columns(self) -> Array:
        """The features, each (R,) in orthonormal Legendre products, (R, columns)."""
        width = self.features.width
        degrees = np.arange(self.highest + 1)
        turn = np.array([1, 1j, -1, -1j])[degrees % 4] * 2 * np.sqrt(degrees + 0.5)
        product = np.exp(1j * self.features.phases)[None, :]
        for axis in range(self.dim):
            table = turn[:, None] * spherical_jn(degrees[:, None], self.features.weights[axis])
            product = product * table[self.modes[:, axis]]
        constant = np.zeros((len(self.modes), 1))
        constant[0] = 2.0 ** (self.dim / 2)
        return np.concatenate([product.real / sqrt(width), product.imag / sqrt(width), constant], axis=1)

    @cached_property
    def _derivatives(self) -> list[sparse.csr_matrix]:
        """∂ along each axis as sparse matrices (R, R) of Legendre coefficients."""
        numbers = np.full((self.highest + 1,) * self.dim, -1)
        numbers[tuple(self.modes.T)] = np.arange(len(self.modes))
        matrices = []
        for axis in range(self.dim):
            rows, columns, entries = [], [], []
            own = self.modes[:, axis]
            for step in range(1, self.highest + 1, 2):  # P_n' = Σ (2m + 1) P_m over m = n - 1, n - 3, …
                mine = np.flatnonzero(own >= step)
                lower = self.modes[mine].copy()
                lower[:, axis] -= step
                rows.append(numbers[tuple(lower.T)])
                columns.append(mine)
                entries.append(2 * np.sqrt((lower[:, axis] + 0.5) * (own[mine] + 0.5)))
            indices = (np.concatenate(rows), np.concatenate(columns))
            matrices.append(sparse.csr_matrix((np.concatenate(entries), indices), (len(own), len(own))))
        return matrices

    @cached_property
    def _whole(self) -> tuple[Array, Array]:
        """Functions of a whole box: Legendre coefficients (R, k), output weights (columns, k)."""
        stacked = np.concatenate([self._columns, *(matrix @ self._columns for matrix in self._derivatives)])
        left, values, rows = np.linalg.svd(stacked, full_matrices=False)
        rank = int((values > self.settings.cutoff * values[0]).sum())
        return left[: len(self.modes), :rank], rows[:rank].T / values[:rank]

    @cached_property
    def outputs(self) -> Array:
        """Output weights (columns, k) of the functions of a whole box."""
        return self._whole[1]

    @property
    def size(self) -> int:
        """Functions of a whole box, k."""
        return int(self._whole[0].shape[1])

    @cached_property
    def jet(self) -> Array:
        """Legendre coefficients (R, (1 + d) k) of the functions and of their derivatives along each axis."""
        own = self._whole[0]
        return np.concatenate([own, *(matrix @ own for matrix in self._derivatives)], axis=1)

    def tables(self, scaled: Array) -> Array:
        """The functions of a whole box and their derivatives at points (M, d) of [-1, 1]^d: (M, 1 + d, k)."""
        return np.asarray((self.legendre(scaled) @ self.jet).reshape(len(scaled), 1 + self.dim, -1))

    @cached_property
    def _face_tables(self) -> FaceTables:
        return FaceTables(self.modes, self.jet, self.highest)

    def side_tables(self, scaled: Array) -> Array:
        """The functions and their derivatives on faces with points (P, q, d): (P, q, 1 + d, k)."""
        tables = np.empty((*scaled.shape[:2], self.jet.shape[1]))
        flat = np.zeros(len(scaled), dtype=bool)
        if self.dim == 2:
            flat, tables[flat] = self._face_tables.in_plane(scaled)
        for number, points in enumerate(scaled if self.dim > 2 else ()):
            own = self._face_tables.at(points)
            if own is not None:
                flat[number], tables[number] = True, own
        for some in self._blocks(np.flatnonzero(~flat), scaled.shape[1]):
            rest = self.legendre(scaled[some].reshape(-1, self.dim)) @ self.jet
            tables[some] = rest.reshape(len(some), *tables.shape[1:])
        return tables.reshape(*scaled.shape[:2], 1 + self.dim, -1)

    def point_blocks(self, counts: Sequence[int]) -> list[list[int]]:
        """Numbers of sets of points, in blocks whose tables of Legendre products have a bounded size."""
        limit = BLOCK_BYTES / (FLOAT_BYTES * len(self.modes))
        blocks: list[list[int]] = []
        taken = limit
        for number, count in enumerate(counts):
            if taken + count > limit:
                blocks.append([])
                taken = 0
            blocks[-1].append(number)
            taken += count
        return blocks

    def _blocks(self, rows: Array, nodes: int) -> list[Array]:
        """Rows, each with ``nodes`` points, in blocks whose tables of Legendre products have a bounded size."""
        return np.array_split(rows, len(rows) * nodes * len(self.modes) * FLOAT_BYTES // BLOCK_BYTES + 1)

    def fields_at(self, scaled: Array, coefficients: Array, cells: Array) -> Array:
        """Functions (P, q, n) of cells (P,) at points (P, q, d) of [-1, 1]^d; coefficients (C, R, n) : of all cells."""
        values = np.empty((*scaled.shape[:2], coefficients.shape[2]))
        for some in self._blocks(np.arange(len(scaled)), scaled.shape[1] + coefficients.shape[2]):
            table = self.legendre(scaled[some].reshape(-1, self.dim)).reshape(
                len(some), scaled.shape[1], len(self.modes)
            )
            values[some] = np.matmul(table, coefficients[cells[some]])
        return values

    def nested_sums(self, coefficients: Array, scaled: Array) -> Array:
        """Functions (M, n) with Legendre coefficients (R, n) at the points (M, 3) of a cut cell."""
        return LegendreCube(self.modes, self.highest, coefficients).in_pieces(scaled, self.nodes)

    def legendre(self, scaled: Array) -> Array:
        """All products of Legendre polynomials at points (M, d), (M, R)."""
        return legendre_products(scaled, self.modes)

    @cached_property
    def _by_second_axis(self) -> Array:
        """Legendre coefficients (A, A n) of the jet and of the span of the derivatives, by the degree along the second
        axis, then along the first; in the plane."""
        every = np.concatenate([self.jet, self.derivative_span], axis=1)
        grid = np.zeros((self.highest + 1, self.highest + 1, every.shape[1]))
        grid[self.modes[:, 1], self.modes[:, 0]] = every
        return grid.reshape(self.highest + 1, -1)

    @cached_property
    def _jet_cube(self) -> LegendreCube:
        return LegendreCube(self.modes, self.highest, self.jet)

    @cached_property
    def _span_cube(self) -> LegendreCube:
        return LegendreCube(self.modes, self.highest, self.derivative_span)

    def cut_tables(self, scaled: Array) -> tuple[Array, Array]:
        """The functions with their derivatives (M, 1 + d, k), and the span of the derivatives (M, n), at the points
        (M, d) of a cut cell.

        In the plane they lie on lines along the first axis: sums over the degree along the second are formed once for
        each line, which is a tenth of the work. In space they are nested (``LegendreCube``).
        """
        if self.dim == 3:
            jet, span = (cube.in_pieces(scaled, self.nodes) for cube in (self._jet_cube, self._span_cube))
            return jet.reshape(len(scaled), 4, -1), span
        heights, line = np.unique(scaled[:, 1], return_inverse=True)
        across, along = (orthonormal_legendre(one, self.highest) for one in (heights, scaled[:, 0]))
        lines = (across @ self._by_second_axis).reshape(len(heights), self.highest + 1, -1)
        tables = np.empty((len(scaled), lines.shape[2]))
        ends = np.cumsum(np.bincount(line.ravel()))[:-1]
        for own, rows in zip(lines, np.split(np.argsort(line.ravel(), kind="stable"), ends), strict=True):
            tables[rows] = along[rows] @ own
        width = self.jet.shape[1]
        return tables[:, :width].reshape(len(scaled), 1 + self.dim, -1), tables[:, width:]

    def derivative_tables(self, scaled: Array, indices: Sequence[MultiIndex]) -> Array:
        """∂^index of the functions of a whole box at points (M, d) of [-1, 1]^d: (M, indices, k)."""
        columns = [self._derived(self._whole[0], index) for index in indices]
        tables = self.legendre(scaled) @ np.concatenate(columns, axis=1)
        return np.asarray(tables.reshape(len(scaled), len(columns), -1))

    def derivative_coefficients(self, weights: Array, indices: Sequence[MultiIndex]) -> Array:
        """Legendre coefficients (C, indices, R, F) of ∂^index of fields of weights (C, F, k) on [-1, 1]^d."""
        count, fields = weights.shape[:2]
        own = self._whole[0] @ weights.reshape(count * fields, self.size).T  # (R, C F)
        coefficients = np.stack([self._derived(own, index) for index in indices])
        return np.asarray(coefficients.reshape(len(indices), len(own), count, fields).transpose(2, 0, 1, 3))

    def _derived(self, columns: Array, index: MultiIndex) -> Array:
        """∂^index of Legendre coefficients (R, n)."""
        for axis, order in enumerate(index):
            for _ in range(order):
                columns = self._derivatives[axis] @ columns
        return columns

    @cached_property
    def reference(self) -> tuple[Array, Array]:
        """Values (Q, k) and derivatives (d, Q, k) of the functions of a whole box at its grid."""
        tables = self.tables(self.grid[0])
        return np.ascontiguousarray(tables[:, 0]), np.ascontiguousarray(tables[:, 1:].transpose(1, 0, 2))

    def sizes_by_degree(self, weights: Array, axis: int | None = None) -> Array:
        """Root of the sum of squares of the Legendre coefficients of each degree, (…, degrees), of weights (…, k).

        axis : of the degree along this axis, not of the total degree
        """
        squares = (weights @ self._whole[0].T) ** 2
        degrees = self.modes.sum(axis=1) if axis is None else self.modes[:, axis]
        select = (degrees[:, None] == np.arange(self.highest + 1)).astype(float)
        return np.sqrt(squares @ select)

    def orthonormal(self, tables: Array, weights: Array) -> Array:
        """Combinations (k, r) of these functions that are orthonormal in H¹ at points of weights (Q,).

        tables (Q, 1 + d, k) : of values and derivatives there
        """
        if self.dim == 3:  # points are many in space, and few digits are asked for: normal equations
            gram = sum((tables[:, j].T * (weights / weights.sum())) @ tables[:, j] for j in range(4))
            squares, vectors = np.linalg.eigh(gram)
            independent = squares > GRAM_ROUNDING * squares[-1]
            return np.asarray(vectors[:, independent] / np.sqrt(squares[independent]))
        table = (tables * np.sqrt(weights / weights.sum())[:, None, None]).reshape(-1, tables.shape[2])
        triangle, inverse = _triangular_factor(table)
        if self.settings.cut_cutoff * np.linalg.norm(triangle) * np.linalg.norm(inverse) < 1:
            return inverse  # no singular value is below the cutoff
        _, values, rows = np.linalg.svd(triangle, full_matrices=False)
        rank = int((values > self.settings.cut_cutoff * values[0]).sum())
        return np.asarray(rows[:rank].T / values[:rank])

    @cached_property
    def derivative_span(self) -> Array:
        """Legendre coefficients (R, n) of an orthonormal basis of the span of all derivatives of the functions."""
        slopes = self.jet[:, self.size :]
        left, values, _ = np.linalg.svd(slopes, full_matrices=False)
        return np.asarray(left[:, values > self.settings.derivative_cutoff * values[0]])

    @cached_property
    def side_constant(self) -> float:
        """The largest ∫_side g² / ∫_cell g² on [-1, 1]^d over all sides and all g in the span of the derivatives."""
        face, weights = gauss_cube(self.nodes, self.dim - 1)
        sides = [np.insert(face, axis, end, axis=1) for axis in range(self.dim) for end in (-1.0, 1.0)]
        beside = [self.legendre(side) @ self.derivative_span * np.sqrt(weights)[:, None] for side in sides]
        return max(_largest_square(one) for one in beside)

    def trace_constant(self, inside: Array, volume: Array, border: Array, lengths: Array) -> float:
        """The largest ∫_border g² / ∫_cell g² over the span of functions g; 0 for a cell that a quadrature misses.

        inside (Q, n) : values at points of the cell with weights volume (Q,); border (M, n), lengths (M,)
        """
        values, vectors = np.linalg.eigh(inside.T @ (volume[:, None] * inside))  # weights may be negative in space
        independent = values > self.settings.derivative_cutoff**2 * values[-1]
        if not independent.any():
            return 0.0
        traces = border @ (vectors[:, independent] / np.sqrt(values[independent]))
        return max(float(np.linalg.eigvalsh(traces.T @ (lengths[:, None] * traces))[-1]), 0.0)

    # ------------------------------------------------------------------------------------------------------ traces

    @cached_property
    def face_grid(self) -> tuple[Array, Array]:
        """Points (q, d-1) and weights (q,) of [-1, 1]^(d-1)."""
        return gauss_cube(self.nodes, self.dim - 1)

    @cached_property
    def face_functions(self) -> Array:
        """Orthonormal polynomials on [-1, 1]^(d-1) at the nodes of a face, (q, m)."""
        return legendre_products(self.face_grid[0], product_degrees(self.dim - 1, self.degree))

    @cached_property
    def face_degrees(self) -> Array:
        """The degree of each polynomial on a face, (m,)."""
        return np.asarray(product_degrees(self.dim - 1, self.degree).sum(axis=1))


def columns_of(dim: int, degree: int, settings: WeakSettings) -> int:
    """How many cosines, and as many sines, are comparable to polynomials of a degree."""
    return round(0.5 * settings.columns * comb(degree + dim, dim)) + 1


def _triangular_factor(table: Array) -> tuple[Array, Array]:
    """R and R⁻¹ (k, k) of the QR decomposition of a tall table (M, k), by two Cholesky decompositions.

    The first one, shifted by its rounding, leaves columns that are independent enough for a second (shifted Cholesky
    QR, Fukaya and others 2020): products of matrices, in half of the time of Householder reflections. Columns in which
    shift and rounding are much smaller than what they span are independent enough after the first.
    """
    gram = table.T @ table
    shift = len(gram) * EPS * float(np.trace(gram))
    try:
        lower = np.linalg.cholesky(gram + shift * np.eye(len(gram)))
        first = np.linalg.inv(lower).T
        if shift * np.linalg.norm(first) ** 2 <= MUCH_SMALLER:
            return lower.T, first
        better = table @ first
        lower = np.linalg.cholesky(better.T @ better)
    except np.linalg.LinAlgError:
        triangle = np.asarray(np.linalg.qr(table, mode="r"))
        return triangle, np.linalg.pinv(triangle)
    inverse = first @ np.linalg.inv(lower).T
    return np.linalg.inv(inverse), inverse


def _largest_square(matrix: Array) -> float:
    """The square of the largest singular value."""
    small = matrix @ matrix.T if len(matrix) < matrix.shape[1] else matrix.T @ matrix
    return float(np.linalg.eigvalsh(small)[-1])
