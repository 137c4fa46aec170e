"""A guaranteed bound of the energy of the error, by Prager and Synge, on cells that are whole boxes in the plane.

For -∇·(A∇u) + c u = f with symmetric A > 0, c ≥ 0 and boundary data, let v be any function that fulfils the essential
conditions, and σ any flux with the prescribed normal components and ∇·σ = -f + c u_h. Then

    |u - v|²  ≤  ∫ A⁻¹ |σ - A∇v|²  +  ∫ c (v - u_h)²  +  ∫_Robin κ (v - u_h)² ,

in the norm |w|² = ∫ A∇w·∇w + c w² + ∫_Robin κ w² . There is no unknown constant. Both are made of the solution u_h
cell by cell. The numerical flux of the hybridised method is in balance in every cell and the same from both sides of a
face, so that σ = A∇u_h + τ with normal components of τ given on the sides and ∇·τ given inside: blended from the sides,
and integrated along lines. v is u_h and a correction on the sides, to means that agree in vertices, blended inside
(Coons). Both leave bubbles free, curls for σ and functions that vanish on the sides for v, which are chosen least.
Data enter by their polynomial interpolants at Gauss nodes, which is all that the guarantee leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.polynomial.legendre import legder, leggauss, legval, legvander
from scipy.linalg import block_diag, eigh

from rannpde.arrays import Array
from rannpde.pde.statement.divergence import DivergenceSystem
from rannpde.pde.weak.assembly import HybridSolution
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import COORDINATE_ROUNDING
from rannpde.rounding import ROOT_ROUNDED

DIGITS = 9
"""Decimals to which the ends of sides agree, in the coordinates of their cells, if cells have the same integrals."""
JUMP = ROOT_ROUNDED
"""Difference of essential data at a vertex, over their size, above which no function of finite energy fulfils them."""


@dataclass(frozen=True, eq=False)
class EnergyBound:
    """error : bound of the energy norm of the error of u_h, cell by cell (C,) in squares; energy : norm of u_h."""

    squares: Array
    energy: float

    @property
    def error(self) -> float:
        return float(np.sqrt(self.squares.sum()))

    @property
    def relative(self) -> float:
        return self.error / max(self.energy, 1e-300)


def bounded(local: LocalMatrices) -> bool:
    """Whether there is a bound: a linear symmetric problem of one field in the plane, no obstacles, whole boxes."""
    form, plane = local.form, local.layer.dim == 2 and not local.mesh.parts
    stated = form.problem.linear and not form.problem.inequalities and isinstance(form.system, DivergenceSystem)
    return plane and stated and local.fields == 1 and form.symmetric


def energy_bound(local: LocalMatrices, solution: HybridSolution) -> EnergyBound | None:
    """The bound of the error of a solution; None where there is none (``bounded``), or data have no energy."""
    if not bounded(local) or len(solution.inside):  # there, energies are those of infinitely many rings
        return None
    sides = _Sides(local, solution)
    if not sides.finite:
        return None
    squares, energy = np.zeros(local.mesh.count), 0.0
    for pattern in _patterns(local, sides):
        contribution = pattern.squares(local, solution, sides)
        if contribution is None:
            return None
        squares[pattern.cells] = contribution[0]
        energy += contribution[1]
    return EnergyBound(squares, float(np.sqrt(energy)))


class _Sides:
    """Faces and patches as seen from their cells, all with nodes in rising order: P pairs of cell and side.

    axis, end (P,) : which side of its cell; coordinate (P,) : of the side along this axis; low, high (P,) : its ends
    along the other; own (P, n) : u_h; normal, flux (P, n) : components of A∇u_h and of σ in the direction of the axis;
    trace (P, n) : v; robin (P, n)
    """

    def __init__(self, local: LocalMatrices, solution: HybridSolution) -> None:
        rows = np.arange(len(local.cell))
        n = local.points.shape[1]
        self.axis = np.abs(local.normals[:, 0]).argmax(axis=1)
        self.end = (local.normals[rows, 0, self.axis] > 0).astype(int)
        along = np.take_along_axis(local.points, (1 - self.axis)[:, None, None], axis=2)[:, :, 0]
        order = np.argsort(along, axis=1)
        along = np.take_along_axis(along, order, axis=1)
        nodes, _ = leggauss(n)
        half = (along[:, -1] - along[:, 0]) / (2 * nodes[-1])
        middle = 0.5 * (along[:, -1] + along[:, 0])
        lines = [np.unique(local.mesh.boxes[:, axis]) for axis in (0, 1)]
        self.lines = lines
        self.low, self.high = (_snapped(lines, 1 - self.axis, ends) for ends in (middle - half, middle + half))
        self.coordinate = _snapped(lines, self.axis, local.points[rows, 0, self.axis])
        values, slopes = local.functions.at(local.functions.jets(solution.weights), local.cell, local.points)
        coefficient, penalty, _ = local.pair_coefficients(rows)
        normal = np.einsum("pqj,pqj->pq", coefficient[:, :, 0, 0], slopes[:, :, 0])
        flux, trace, inner = np.empty((len(rows), n)), np.empty((len(rows), n)), local.interior
        functions, unit = local.layer.face_functions, local.layer.face_grid[1]
        hybrid = np.einsum("qm,pm->pq", functions, solution.traces[:, 0])[local.face[:inner]]
        raw = normal[:inner] - penalty[:inner, :, 0, 0] * (values[:inner, :, 0] - hybrid)
        flux[:inner] = (raw * unit) @ functions @ functions.T
        half_way = inner // 2
        flux[:half_way] = 0.5 * (flux[:half_way] - flux[half_way:inner])  # equal up to rounding
        flux[half_way:inner] = -flux[:half_way]
        stiff = penalty[:inner, :, 0, 0]
        mean = (stiff * values[:inner, :, 0])[:half_way] + (stiff * values[:inner, :, 0])[half_way:]
        mean /= stiff[:half_way] + stiff[half_way:]
        trace[:half_way], trace[half_way:inner] = mean, mean
        held = local.projection[:, :, 0, 0] > 0.5
        outside = values[inner:, :, 0]
        forced = normal[inner:] - penalty[inner:, :, 0, 0] * (outside - local.values[:, :, 0])
        free = local.natural[:, :, 0] - local.robin[:, :, 0, 0] * outside
        flux[inner:] = np.where(held, forced, free)
        trace[inner:] = np.where(held, local.values[:, :, 0], outside)
        sign = np.where(self.end == 1, 1.0, -1.0)[:, None]
        robin = np.zeros((len(rows), n))
        robin[inner:] = np.where(held, 0.0, local.robin[:, :, 0, 0])
        gathered = (values[:, :, 0], sign * flux, trace, robin, sign * normal)
        self.own, self.flux, self.trace, self.robin, self.normal = (
            np.take_along_axis(array, order, axis=1) for array in gathered
        )
        self.held = np.concatenate([np.zeros(inner, dtype=bool), held.all(axis=1)])
        self.count, self.inner = n, inner
        self.analysis = np.linalg.inv(legvander(nodes, n - 1))  # from values at the nodes to Legendre coefficients
        self.finite = bool((self.robin >= 0).all()) and self._agree(stiff, local)

    def _agree(self, stiff: Array, local: LocalMatrices) -> bool:
        """Make traces agree in vertices, linearly along sides; False where essential data jump."""
        spectra = self.trace @ self.analysis.T
        ends = np.stack([legval(-1.0, spectra.T), legval(1.0, spectra.T)], axis=1)  # (P, 2)
        points = np.empty((len(ends), 2, 2))
        rows = np.arange(len(ends))
        for end, coordinates in enumerate((self.low, self.high)):
            points[rows, end, self.axis] = self.coordinate
            points[rows, end, 1 - self.axis] = coordinates
        size = float(np.abs(points).max()) or 1.0
        flat = points.reshape(-1, 2)
        keys = np.stack([np.searchsorted(line, flat[:, axis]) for axis, line in enumerate(self.lines)], axis=1)
        middles = np.repeat(local.mesh.boxes[local.cell].mean(axis=2), 2, axis=0)
        for lip in local.form.problem.slits:  # vertices on a slit are two, but for its ends inside
            share, beside = lip.shares(flat)
            inside = local.form.problem.domain.level(np.array([lip.start, lip.end])) < -JUMP * size
            slack = COORDINATE_ROUNDING * size / lip.measure
            low, high = (slack if inside[0] else -slack), 1 - (slack if inside[1] else -slack)
            on = (beside <= slack) & (share > low) & (share < high)
            lips = np.where(on, np.sign((middles - lip.start) @ lip.normal), 0.0)
            keys = np.concatenate([keys, lips[:, None].astype(int)], axis=1)
        _, vertex = np.unique(keys, axis=0, return_inverse=True)
        vertex = vertex.reshape(len(ends), 2)
        weight = np.ones(len(ends))
        weight[: self.inner] = stiff.mean(axis=1) * (self.high - self.low)[: self.inner]
        weight[self.inner :] = weight[: self.inner].mean() if self.inner else 1.0
        fixed = np.zeros(vertex.max() + 1, dtype=bool)
        fixed[vertex[self.held].ravel()] = True
        weight = weight[:, None] * np.where(fixed[vertex], self.held[:, None] * 1.0, 1.0)
        total = np.bincount(vertex.ravel(), weight.ravel())
        agreed = np.bincount(vertex.ravel(), (weight * ends).ravel()) / np.maximum(total, 1e-300)
        change = agreed[vertex] - ends
        scale = float(np.abs(ends).max()) or 1.0
        nodes, _ = leggauss(self.count)
        self.trace = self.trace + change[:, :1] * (1 - nodes) / 2 + change[:, 1:] * (1 + nodes) / 2
        return not self.held.any() or bool(np.abs(change[self.held]).max() <= JUMP * scale)


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Cells whose sides are divided alike: pairs of each of the four sides, (B, m) in rising order, and their ends in
    [-1, 1]; sides in the order x low, x high, y low, y high."""

    cells: Array
    pairs: tuple[Array, ...]
    ends: tuple[Array, ...]

    def squares(self, local: LocalMatrices, solution: HybridSolution, sides: _Sides) -> tuple[Array, float] | None:
        """Squared bounds of the cells (B,), and the energy of u_h in them."""
        n = sides.count
        x, y = (_Line(np.unique(np.concatenate([self.ends[a], self.ends[a + 1]])), n) for a in (2, 0))
        half = local.mesh.halfwidths[self.cells]
        hx, hy = half[:, 0, None, None], half[:, 1, None, None]
        grid = np.stack([one.ravel() for one in np.meshgrid(x.nodes, y.nodes, indexing="ij")], axis=1)
        points = local.mesh.mapped(self.cells, grid).reshape(-1, 2)
        shape = (len(self.cells), len(x.nodes), len(y.nodes))
        coefficients = local.form.at(points)
        diffusion = coefficients.diffusion[:, 0, 0].reshape(*shape, 2, 2)
        reaction = coefficients.reaction[:, 0, 0].reshape(shape)
        if (reaction < 0).any():
            return None
        value, slope, residual = _inside(local, solution, self.cells, grid, points)
        value, residual = value.reshape(shape), residual.reshape(shape)
        slope = slope.reshape(*shape, 2)
        weights = hx * hy * (x.weights[:, None] * y.weights)
        # σ: normal components beyond those of A∇u_h, blended, then what the divergence lacks, along lines
        lack = [self._on(number, sides.flux - sides.normal, sides, line.nodes)
                for number, line in zip(range(4), (y, y, x, x), strict=True)]  # fmt: skip
        xs, ys = x.nodes[:, None], y.nodes[None, :]
        tx = lack[0][:, None, :] * (1 - xs) / 2 + lack[1][:, None, :] * (1 + xs) / 2
        ty = lack[2][:, :, None] * (1 - ys) / 2 + lack[3][:, :, None] * (1 + ys) / 2
        rest = residual - (lack[1] - lack[0])[:, None, :] / (2 * hx) - (lack[3] - lack[2])[:, :, None] / (2 * hy)
        mean = np.einsum("bij,i->bj", rest, x.weights) / 2  # by y
        left = mean @ y.weights / 2  # rounding of the balance of a cell
        rest, mean = rest - left[:, None, None], mean - left[:, None]
        tx = tx + hx * np.einsum("ki,bij->bkj", x.integral, rest - mean[:, None, :])
        ty = ty + hy * (mean @ y.integral.T)[:, None, :]
        # v: traces beyond those of u_h, blended
        gap = [self._on(number, sides.trace - sides.own, sides, line.nodes)
               for number, line in zip(range(4), (y, y, x, x), strict=True)]  # fmt: skip
        turn = [self._on(number, sides.trace - sides.own, sides, line.nodes, slope=True)
                for number, line in zip(range(4), (y, y, x, x), strict=True)]  # fmt: skip
        corner = [[self._end(2 + j, sides, i) for j in (0, 1)] for i in (0, 1)]  # value at x end i, y end j
        bx, by = [(1 - xs) / 2, (1 + xs) / 2], [(1 - ys) / 2, (1 + ys) / 2]
        step = sum(gap[i][:, None, :] * bx[i] for i in (0, 1)) + sum(gap[2 + j][:, :, None] * by[j] for j in (0, 1))
        gx = (gap[1] - gap[0])[:, None, :] / 2 + sum(turn[2 + j][:, :, None] * by[j] for j in (0, 1))
        gy = (gap[3] - gap[2])[:, :, None] / 2 + sum(turn[i][:, None, :] * bx[i] for i in (0, 1))
        sign = (-0.5, 0.5)
        for i in (0, 1):
            for j in (0, 1):
                value_at = corner[i][j][:, None, None]
                step = step - value_at * bx[i] * by[j]
                gx = gx - value_at * sign[i] * by[j]
                gy = gy - value_at * bx[i] * sign[j]
        bubbles = _Bubbles(x, y, local.layer.degree + 2)
        gx, gy = gx / hx, gy / hy
        change, cx, cy = bubbles.least(gx, gy, half)
        step, gx, gy = step + change, gx + cx, gy + cy
        _, sx, sy = bubbles.least(-ty, tx, half)  # curls: turned by a right angle
        tx, ty = tx + sy, ty - sx
        inverse, smallest = _inverse_and_least(diffusion)
        flux = np.stack([tx, ty], axis=-1)
        steps = np.stack([gx, gy], axis=-1)
        gap_flux = flux - np.einsum("bijkl,bijl->bijk", diffusion, steps)
        squares = np.einsum("bij,bijk,bijkl,bijl->b", weights, gap_flux, inverse, gap_flux, optimize=True)
        volume = np.einsum("bij,bij->b", weights, reaction * step**2)
        own = np.einsum("bij,bijk,bijkl,bijl->b", weights, steps, diffusion, steps, optimize=True) + volume
        robin = self._robin(local, sides, half, (y, y, x, x))
        least = smallest.reshape(len(self.cells), -1).min(axis=1)
        unbalanced = np.abs(left) * 2 * half.max(axis=1) / pi * np.sqrt(4 * half.prod(axis=1) / least)
        error = np.sqrt(squares) + unbalanced
        total = (np.sqrt(error**2 + volume + robin) + np.sqrt(own + robin)) ** 2  # of u - v, and of v - u_h
        energy = np.einsum("bij,bijk,bijkl,bijl->", weights, slope, diffusion, slope, optimize=True)
        return total, float(energy + (weights * reaction * value**2).sum())

    def _on(self, number: int, values: Array, sides: _Sides, nodes: Array, slope: bool = False) -> Array:
        """Values (P, n) of a side, or derivatives along it in [-1, 1], at nodes (N,) of its line: (B, N)."""
        pairs, ends = self.pairs[number], self.ends[number]
        table = np.zeros((len(nodes), len(ends) - 1, sides.count))  # from values at the nodes of the segments
        segment = np.clip(np.searchsorted(ends, nodes) - 1, 0, len(ends) - 2)
        for one in range(len(ends) - 1):
            mine = segment == one
            low, high = ends[one], ends[one + 1]
            local = (2 * nodes[mine] - low - high) / (high - low)
            if slope:
                table[mine, one] = legvander(local, sides.count - 2) @ legder(sides.analysis) * 2 / (high - low)
            else:
                table[mine, one] = legvander(local, sides.count - 1) @ sides.analysis
        return np.asarray(values[pairs].reshape(len(pairs), -1) @ table.reshape(len(nodes), -1).T)

    def _end(self, number: int, sides: _Sides, end: int) -> Array:
        """v - u_h (B,) at an end of a side."""
        column = self.pairs[number][:, -1 if end else 0]
        spectra = (sides.trace - sides.own)[column] @ sides.analysis.T
        return np.asarray(legval(1.0 if end else -1.0, spectra.T))

    def _robin(self, local: LocalMatrices, sides: _Sides, half: Array, lines: Sequence[_Line]) -> Array:
        """∫ κ (v - u_h)² over the sides of the cells (B,)."""
        integrals = np.zeros(len(self.cells))
        for number, line in enumerate(lines):
            factor = self._on(number, sides.robin, sides, line.nodes)
            if factor.any():
                gap = self._on(number, sides.trace - sides.own, sides, line.nodes)
                integrals += half[:, 1 - number // 2] * ((np.maximum(factor, 0.0) * gap**2) @ line.weights)
        return integrals


class _Line:
    """Gauss nodes and weights on [-1, 1] divided at ends; ``integral`` (N, N) : from -1 to each node."""

    def __init__(self, ends: Array, count: int) -> None:
        unit, shares = leggauss(count)
        half, middle = 0.5 * np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
        self.nodes = (middle[:, None] + half[:, None] * unit).ravel()
        self.weights = (half[:, None] * shares).ravel()
        inside = _integrals(unit, count - 1) @ np.linalg.inv(legvander(unit, count - 1))
        self.integral = block_diag(*(h * inside for h in half))
        for piece in range(1, len(half)):
            self.integral[piece * count :, (piece - 1) * count : piece * count] += half[piece - 1] * shares


def _integrals(nodes: Array, degree: int) -> Array:
    """∫_-1^x of the Legendre polynomials up to a degree, (N, degree + 1): (P_{k+1} - P_{k-1}) / (2k + 1)."""
    table = legvander(nodes, degree + 1)
    rest = (table[:, 2:] - table[:, :-2]) / (2 * np.arange(1, degree + 1) + 1)
    return np.concatenate([nodes[:, None] + 1, rest], axis=1)


class _Bubbles:
    """Products of polynomials that vanish at ±1 on a grid of two lines, for least squares of gradients on boxes."""

    def __init__(self, x: _Line, y: _Line, degree: int) -> None:
        self.axes = []
        for line in (x, y):
            values, slopes = _integrals(line.nodes, degree - 1)[:, 1:], legvander(line.nodes, degree - 1)[:, 1:]
            mass, stiff = (values.T * line.weights) @ values, (slopes.T * line.weights) @ slopes
            eigenvalues, vectors = eigh(mass, stiff)
            self.axes.append((values @ vectors, slopes @ vectors, eigenvalues, line.weights))

    def least(self, gx: Array, gy: Array, half: Array) -> tuple[Array, Array, Array]:
        """The bubble (B, I, J), and its gradient, for which |(gx, gy) + gradient| is least, on boxes of halfwidths."""
        (vx, dx, lx, wx), (vy, dy, ly, wy) = self.axes
        hx, hy = half[:, 0, None, None], half[:, 1, None, None]
        right = np.matmul((dx.T * wx) @ gx, wy[:, None] * vy) / hx + np.matmul((vx.T * wx) @ gy, wy[:, None] * dy) / hy
        system = ly[None, None, :] / hx**2 + lx[None, :, None] / hy**2
        weights = -right / system
        across = np.matmul(vx @ weights, vy.T)
        return across, np.matmul(dx @ weights, vy.T) / hx, np.matmul(vx @ weights, dy.T) / hy


def _inverse_and_least(matrices: Array) -> tuple[Array, Array]:
    """Inverses (…, 2, 2) and least eigenvalues (…) of symmetric positive matrices."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    determinant = a * d - b * b
    largest = 0.5 * (a + d) + np.hypot(0.5 * (a - d), b)
    inverse = np.stack([d, -b, -b, a], axis=-1).reshape(matrices.shape) / determinant[..., None, None]
    return inverse, determinant / largest


def _snapped(lines: Sequence[Array], axes: Array, coordinates: Array) -> Array:
    """Coordinates (P,) along axes (P,), moved by rounding to the nearest line at which boxes end."""
    snapped = coordinates.copy()
    for axis, line in enumerate(lines):
        mine = np.flatnonzero(axes == axis)
        above = np.clip(np.searchsorted(line, coordinates[mine]), 1, len(line) - 1)
        nearer = coordinates[mine] - line[above - 1] < line[above] - coordinates[mine]
        snapped[mine] = np.where(nearer, line[above - 1], line[above])
    return snapped


def _patterns(local: LocalMatrices, sides: _Sides) -> list[_Pattern]:
    """Cells by how their sides are divided."""
    boxes, half, count = local.mesh.boxes, local.mesh.halfwidths, local.mesh.count
    number = 2 * sides.axis + sides.end  # x low, x high, y low, y high
    order = np.lexsort((sides.low, number, local.cell))
    side = (4 * local.cell + number)[order]  # of all cells, each with its segments in rising order
    segments = np.bincount(side, minlength=4 * count)
    slot = np.arange(len(order)) - np.repeat(np.cumsum(segments) - segments, segments)
    along = 1 - sides.axis[order]
    middle, length = boxes.mean(axis=2)[local.cell[order], along], half[local.cell[order], along]
    most = int(segments.max())
    pairs, ends = np.full((4 * count, most), -1), np.full((4 * count, most + 1), np.inf)
    pairs[side, slot] = order
    ends[side, slot + 1] = (sides.high[order] - middle) / length
    ends[side, slot] = (sides.low[order] - middle) / length
    ends = np.round(ends, DIGITS) + 0.0
    _, first, same = np.unique(ends.reshape(count, -1), axis=0, return_index=True, return_inverse=True)
    by_side, ends_by_side, own_by_side = (one.reshape(count, 4, -1) for one in (pairs, ends, segments))
    patterns = []
    for kind, cell in enumerate(first):
        cells = np.flatnonzero(same.ravel() == kind)
        own = own_by_side[cell, :, 0]
        beside = tuple(by_side[cells, k, : own[k]] for k in range(4))
        patterns.append(_Pattern(cells, beside, tuple(ends_by_side[cell, k, : own[k] + 1] for k in range(4))))
    return patterns


def _inside(
    local: LocalMatrices, solution: HybridSolution, cells: Array, grid: Array, points: Array
) -> tuple[Array, Array, Array]:
    """u_h and ∇u_h, (B, Q) and (B, Q, 2), and -f - ∇·A∇u_h + c u_h at points of a grid (Q, 2) of [-1, 1]²."""
    problem, system = local.form.problem, local.form.system
    assert isinstance(system, DivergenceSystem)
    expression = next(term.expression for term in problem.interior if term.name == system.names[0])
    indices = sorted({jet.index for jet in expression.jets} | {(0, 0), (1, 0), (0, 1)})
    half = local.mesh.halfwidths[cells]
    table = local.layer.derivative_tables(grid, indices)  # (Q, indices, k)
    derivatives = np.einsum("qik,bk->ibq", table, solution.weights[cells, 0], optimize=True)
    tables = {index: one / np.prod(half ** np.array(index, dtype=float), axis=1)[:, None]
              for index, one in zip(indices, derivatives, strict=True)}  # fmt: skip
    known = problem.vocabulary.at(points)
    jets = {jet: tables[jet.index].ravel() for jet in expression.jets}
    residual = -system.signs[0] * expression.value(known, jets)
    return tables[0, 0], np.stack([tables[1, 0], tables[0, 1]], axis=-1), np.broadcast_to(residual, len(points))
