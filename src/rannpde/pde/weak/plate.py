"""Plates by the symmetric interior penalty method: one solve on cells, as the adaptive loop needs it.

With M(w) the moments, Q = ∇·M(w)·n, averages {·} and jumps [·] on the faces, find w with

    Σ_K ∫ M(w):∇²v + k w v  +  Σ_faces ∫ {Q(w)} [v] + {Q(v)} [w] - {M(w) n}·[∇v] - {M(v) n}·[∇w]
        +  Σ_faces ∫ η₀ [w] [v] + η₁ [∇w]·[∇v]   =   ∫ f v

for all v. On the boundary the same terms stand for what is prescribed, deflection or slope, and data for what is not.
The penalties come from eigenvalues: η₀ from the largest ∫ Q(v)² on a side over the energy of v in its cell, η₁ from
that of ∫ |M(v) n|², so that the form is coercive whatever the functions are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
from numpy.polynomial.legendre import leggauss
from scipy.linalg import eigh

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import is_box
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.residual import relative_difference
from rannpde.pde.time.tableau import lagrange_matrix
from rannpde.pde.weak.assembly import factorised_traces
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.grading import SingularPoint, graded_tree, towards_points
from rannpde.pde.weak.mesh import ConditionFinder, WeakMesh, box_mesh
from rannpde.pde.weak.plate_form import PlateForm
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import CHECK_POINTS, WeakResolution

FIRST_DEGREE, DEGREE_STEP = 6, 2
"""Degree of the first solve, and by how much it rises: third derivatives must be resolved."""
INDICES: tuple[MultiIndex, ...] = tuple((a, order - a) for order in range(4) for a in range(order, -1, -1))
"""Derivatives up to the third."""


@dataclass(frozen=True, eq=False)
class PlateState:
    """One solution: the function, its mesh, values at the check points (M, 1), indicators (C,) and energy."""

    network: CellNetwork
    mesh: WeakMesh
    degree: int
    values: Array
    indicators: Array
    energy: float
    unknowns: int
    steps: int = 0
    trajectory: None = None

    @property
    def function(self) -> CellNetwork:
        return self.network

    @property
    def relative_indicator(self) -> float:
        """The energy of jumps over that of the solution."""
        return float(np.sqrt(self.indicators.sum() / max(self.energy, 1e-300)))


class PlateDiscretisation:
    """A plate on cells, for the adaptive loop."""

    failure = None
    newton_steps = 0

    def __init__(
        self,
        form: PlateForm,
        tol: float,
        settings: WeakSettings,
        rng: np.random.Generator,
        check_budget: Callable[[], None],
        degree: int | None = None,
    ) -> None:
        self.form, self.tol, self.settings, self.rng, self.check_budget = form, tol, settings, rng, check_budget
        self.problem, self.first_degree = form.problem, degree or FIRST_DEGREE
        self.finder = ConditionFinder(form.terms, 2)
        self.last: PlateState | None = None
        self.known = np.inf

    @cached_property
    def check_points(self) -> Array:
        return self.problem.domain.sample(CHECK_POINTS, rng=20_071)

    def first(self) -> WeakResolution:
        bounds = np.asarray(self.problem.domain.bounds, dtype=float)
        return WeakResolution(graded_tree(bounds, [], self._corners, 1.0, 1), self.first_degree)

    @cached_property
    def _corners(self) -> list[SingularPoint]:
        (left, right), (low, high) = np.asarray(self.problem.domain.bounds, dtype=float)
        return [SingularPoint((x, y), 1.0) for x in (left, right) for y in (low, high)]

    def solve(self, resolution: WeakResolution) -> PlateState:
        layer = HiddenLayer.sample(2, resolution.degree, self.settings, self.rng)
        mesh = box_mesh(self.problem.domain, resolution.tree, self.finder, layer.nodes)
        system = PlateSystem(self.form, mesh, layer, self.finder, self.check_budget)
        weights = system.solve()
        homes = np.zeros(len(resolution.tree.leaves), dtype=int)
        homes[mesh.leaves] = np.arange(mesh.count)
        outputs = np.asarray(layer.outputs @ weights[:, :, None])
        network = CellNetwork(resolution.tree, layer.features, mesh.boxes, outputs, homes)
        energy, jumps = system.energies(weights)
        self.last = PlateState(network, mesh, layer.degree, network(self.check_points), jumps, energy, weights.size)
        return self.last

    def estimate(self, before: PlateState | None, now: PlateState) -> float:
        """The estimate of the relative L² error: the difference of two solutions, which is the error of the earlier
        one."""
        self.known = np.inf if before is None else relative_difference(before.values, now.values)
        return self.known

    def indicators(self, now: PlateState) -> Array:
        return now.indicators

    def refine(self, resolution: WeakResolution, now: PlateState, marked: Array) -> WeakResolution | None:
        """A higher degree and smaller cells at the corners; at the highest degree, smaller cells where marked."""
        most = self.settings.most_degree[1]
        tree = towards_points(resolution.tree, [(one.point, 1) for one in self._corners])
        if resolution.degree >= most:
            leaves = resolution.tree.leaves
            cut = {leaves[now.mesh.leaves[cell]]: (0, 1) for cell in np.flatnonzero(marked)}
            tree = tree.refined({leaf: axes for leaf, axes in cut.items() if leaf in set(tree.leaves)})
        if len(tree.leaves) > self.settings.most_cells[1] // 4:
            return None
        return WeakResolution(tree, min(resolution.degree + DEGREE_STEP, most))


class PlateSystem:
    """The matrix and load of a plate on a mesh of boxes."""

    def __init__(
        self,
        form: PlateForm,
        mesh: WeakMesh,
        layer: HiddenLayer,
        finder: ConditionFinder,
        check_budget: Callable[[], None],
    ) -> None:
        self.form, self.mesh, self.layer, self.check_budget = form, mesh, layer, check_budget
        self.finder, self.size = finder, layer.size
        self.kinds: dict[tuple[float, ...], tuple[Array, Array]] = {}

    # ----------------------------------------------------------------------------------------------- one cell, one side

    def tables(self, cell: int, points: Array) -> dict[MultiIndex, Array]:
        """Derivatives (Q, n) up to the third of the functions of a cell at points (Q, 2)."""
        half = self.mesh.halfwidths[cell]
        scaled = (points - self.mesh.boxes[cell].mean(axis=1)) / half
        table = self.layer.derivative_tables(scaled, INDICES)
        return {index: table[:, k] / np.prod(half ** np.array(index, dtype=float)) for k, index in enumerate(INDICES)}

    def sided(self, tables: dict[MultiIndex, Array], axis: int) -> tuple[Array, ...]:
        """v, ∂_a v, ∂_b v, M_aa, M_ab and Q_a, each (Q, n), on a side across axis a, in the direction of the axis."""

        def of(a: int, b: int) -> Array:
            return tables[(a, b) if axis == 0 else (b, a)]

        stiff, ratio = self.form.stiffness, self.form.ratio
        bending = stiff * (of(2, 0) + ratio * of(0, 2))
        return (of(0, 0), of(1, 0), of(0, 1), bending, stiff * (1 - ratio) * of(1, 1), stiff * (of(3, 0) + of(1, 2)))

    def penalties(self, cell: int, axis: int) -> tuple[float, float]:
        """Largest ∫ Q² and ∫ |M n|² on a side across an axis over the energy of functions in the cell."""
        half = self.mesh.halfwidths[cell]
        key = (*(round(float(value), 12) for value in half / half.max()), axis)
        scale = float(half.max())
        if key not in self.kinds:
            stiff = self._bending(cell)
            nodes, weights = leggauss(self.layer.nodes)
            norms = []
            values, vectors = eigh(0.5 * (stiff + stiff.T))
            independent = values > self.settings_cutoff * values[-1]
            root = vectors[:, independent] / np.sqrt(values[independent])
            for end in (0, 1):
                points = np.empty((len(nodes), 2))
                points[:, axis] = self.mesh.boxes[cell, axis, end]
                points[:, 1 - axis] = self.mesh.boxes[cell, 1 - axis].mean() + half[1 - axis] * nodes
                _, _, _, bending, twist, shear = self.sided(self.tables(cell, points), axis)
                w = np.sqrt(half[1 - axis] * weights)[:, None]
                norms.append([np.linalg.norm((w * shear) @ root, 2) ** 2,
                              np.linalg.norm(np.concatenate([w * bending, w * twist]) @ root, 2) ** 2])  # fmt: skip
            most = np.max(norms, axis=0)
            self.kinds[key] = np.array([most[0] * scale**3, most[1] * scale]), np.zeros(0)
        shear, moment = self.kinds[key][0]
        return float(shear / scale**3), float(moment / scale)

    @property
    def settings_cutoff(self) -> float:
        """Energies below, over the largest, are those of rigid motions, up to rounding."""
        return self.layer.settings.derivative_cutoff**2

    def _bending(self, cell: int) -> Array:
        """∫ M(w):∇²v over a cell, (n, n)."""
        half = self.mesh.halfwidths[cell]
        grid, shares = self.layer.grid
        points = self.mesh.boxes[cell].mean(axis=1) + half * grid
        tables, w = self.tables(cell, points), (float(half.prod()) * shares)[:, None]
        xx, xy, yy = tables[2, 0], tables[1, 1], tables[0, 2]
        stiff, ratio = self.form.stiffness, self.form.ratio
        plain = xx.T @ (w * xx) + 2 * xy.T @ (w * xy) + yy.T @ (w * yy)
        return np.asarray(stiff * ((1 - ratio) * plain + ratio * (xx + yy).T @ (w * (xx + yy))))

    # ---------------------------------------------------------------------------------------------------- whole system

    def solve(self) -> Array:
        """Weights (C, n) of the functions of the cells."""
        n, count = self.size, self.mesh.count
        blocks: dict[tuple[int, int], Array] = {}
        load = np.zeros((count, n))

        def add(row: int, column: int, block: Array) -> None:
            blocks[row, column] = blocks[row, column] + block if (row, column) in blocks else block

        self.shared: dict[tuple[float, ...], Array] = {}
        for cell in range(count):
            half = self.mesh.halfwidths[cell]
            grid, shares = self.layer.grid
            points = self.mesh.boxes[cell].mean(axis=1) + half * grid
            force, foundation = self.form.at(points)
            values, w = self.layer.reference[0], float(half.prod()) * shares
            load[cell] += values.T @ (w * force)
            key = tuple(np.round(half / half.max(), 12).tolist())
            if key not in self.shared:
                self.shared[key] = self._bending(cell) * half.max() ** 2
            block = self.shared[key] / half.max() ** 2
            if foundation.any():
                block = block + values.T @ ((w * foundation)[:, None] * values)
            add(cell, cell, block)
        self._faces(add)
        self._patches(add, load)
        rows, columns, entries = [], [], []
        index = np.arange(n)
        for (row, column), block in blocks.items():
            rows.append(np.repeat(row * n + index, n))
            columns.append(np.tile(column * n + index, n))
            entries.append(block.ravel())
        total = count * n
        matrix = sparse.csc_matrix(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), (total, total)
        )
        self.check_budget()
        factors = factorised_traces(matrix, 2)
        weights = factors.solve(load.ravel())
        weights += factors.solve(load.ravel() - matrix @ weights)  # fourth order: two digits more
        self.matrix = matrix
        return np.asarray(weights.reshape(count, n))

    def _faces(self, add: Callable[[int, int, Array], None]) -> None:
        points, weights = self.mesh.face_points(self.layer.nodes)
        factor = self.layer.settings.coercivity * 2 * self.layer.dim
        self.face_terms: list[tuple[int, int, tuple[Array, ...], tuple[Array, ...], Array, float, float]] = []
        for face, (lower, upper) in enumerate(self.mesh.beside):
            axis, w = int(self.mesh.axis[face]), weights[face][:, None]
            sides = [self.sided(self.tables(int(cell), points[face]), axis) for cell in (lower, upper)]
            both = [self.penalties(int(cell), axis) for cell in (lower, upper)]
            eta = [factor * max(one[k] for one in both) for k in (0, 1)]
            for i, (row, sign) in enumerate(((lower, 1.0), (upper, -1.0))):
                for j, (column, other) in enumerate(((lower, 1.0), (upper, -1.0))):
                    add(
                        int(row),
                        int(column),
                        _pair(sides[i], sign, 0.5, sides[j], other, 0.5, w, eta, (True, True, True)),
                    )
            self.face_terms.append((int(lower), int(upper), sides[0], sides[1], weights[face], eta[0], eta[1]))
            if face % 64 == 0:
                self.check_budget()

    def _patches(self, add: Callable[[int, int, Array], None], load: Array) -> None:
        patches, factor = self.mesh.patches, self.layer.settings.coercivity * 2 * self.layer.dim
        nodes = leggauss(self.layer.nodes)[0]
        for patch in range(len(patches)):
            cell, points, normals = int(patches.cell[patch]), patches.points[patch], patches.normals[patch]
            axis = int(np.abs(normals[0]).argmax())
            sign, w = float(normals[0, axis]), patches.weights[patch][:, None]
            side = self.sided(self.tables(cell, points), axis)
            eta = [factor * one for one in self.penalties(cell, axis)]
            given = {}
            for number in self.mesh.conditions[int(patches.group[patch])]:
                order, values = self.form.data(self.form.terms[number], points, normals)
                given[order] = values
            held, turned = 0 in given, 1 in given
            add(cell, cell, _pair(side, sign, 1.0, side, sign, 1.0, w, eta, (held, turned, held)))
            value, slope, along, bending, twist, shear = side
            if held:
                half = 0.5 * (points[-1, 1 - axis] - points[0, 1 - axis]) / nodes[-1]
                tangent = lagrange_matrix(nodes, nodes, 1) @ given[0] / half
                load[cell] += ((sign * shear + eta[0] * value) * w).T @ given[0]
                load[cell] += ((eta[1] * along - sign * twist) * w).T @ tangent
            if turned:  # ∂_n = sign ∂_a, and M_nn = M_aa
                load[cell] += ((eta[1] * sign * slope - bending) * w).T @ given[1]
            if 2 in given:
                bent = self.form.stiffness * given[2]
                load[cell] += (sign * slope * w).T @ bent
            if 3 in given:
                load[cell] -= (value * w).T @ (self.form.stiffness * given[3])

    def energies(self, weights: Array) -> tuple[float, Array]:
        """The energy of the whole, and that of jumps by cells (C,)."""
        jumps = np.zeros(self.mesh.count)
        for lower, upper, one, other, w, first, second in self.face_terms:
            gaps = [one[k] @ weights[lower] - other[k] @ weights[upper] for k in range(3)]
            energy = float(w @ (first * gaps[0] ** 2 + second * (gaps[1] ** 2 + gaps[2] ** 2)))
            jumps[[lower, upper]] += 0.5 * energy
        flat = weights.ravel()
        return float(abs(flat @ (self.matrix @ flat))), jumps


def _pair(
    row: tuple[Array, ...], sign: float, share: float, column: tuple[Array, ...], other: float, part: float, w: Array,
    eta: list[float], held: tuple[bool, bool, bool],
) -> Array:  # fmt: skip
    """Terms of a face between functions of two cells: sign, other : of the jump; share, part : of the average.

    held : whether the jumps of the deflection, of its derivative along the axis and along the face count
    """
    v, va, vb, v_bending, v_twist, v_shear = row
    u, ua, ub, u_bending, u_twist, u_shear = column
    matrix = np.zeros((v.shape[1], u.shape[1]))
    flow = 1.0 if share < 1 else sign  # Q and M n along the axis of a face; outward on the boundary
    back = 1.0 if part < 1 else other
    jump, kick = (sign, other) if share < 1 else (1.0, 1.0)
    if held[0]:
        matrix += jump * part * back * v.T @ (w * u_shear) + share * flow * kick * v_shear.T @ (w * u)
        matrix += eta[0] * jump * kick * v.T @ (w * u)
    if held[1]:
        matrix -= jump * part * back * va.T @ (w * u_bending) + share * flow * kick * v_bending.T @ (w * ua)
        matrix += eta[1] * jump * kick * va.T @ (w * ua)
    if held[2]:
        matrix -= jump * part * back * vb.T @ (w * u_twist) + share * flow * kick * v_twist.T @ (w * ub)
        matrix += eta[1] * jump * kick * vb.T @ (w * ub)
    return matrix


def plate_obstacle(form: PlateForm) -> str:
    """Why cells do not fit a plate; empty where they do."""
    return "" if is_box(form.problem.domain) else "the plate is no box"
