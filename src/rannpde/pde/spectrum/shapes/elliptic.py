"""Elliptic systems of second order on shapes: the hybridised weak form, with masses of volume and boundary.

The eigenvalue and complex numbers may be factors of the fields themselves, in equations and in conditions with a
derivative (Steklov, impedance, damping), in any power. All else is the real weak form of ``rannpde.pde.weak``.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.adaptivity.loop import doerfler
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.residual import first_derivatives
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, Pencil
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.cellwise import CellGroup, CellPencil
from rannpde.pde.spectrum.shapes.protocol import BudgetCheck, ModeShape, WeightedFields, first_degree, mode_tables
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.tolerance import PILOT_TOLERANCE
from rannpde.pde.weak.assembly import HybridSolution, HybridSystem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evaluation import sampled, weak_network
from rannpde.pde.weak.form import natural_combination, weak_formulation
from rannpde.pde.weak.functions import FACE_DIGITS
from rannpde.pde.weak.local import CellBatch, LocalMatrices
from rannpde.pde.weak.meshing import shape_obstacle
from rannpde.pde.weak.residual_indicators import mean_diffusion, residual_squares, slopes_of
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution, WeakState


class EllipticCells:
    """An elliptic eigenvalue problem on cells."""

    def __init__(
        self,
        pencil: Pencil,
        tol: float,
        settings: SpectrumSettings,
        rng: np.random.Generator,
        check_budget: BudgetCheck,
    ) -> None:
        self.problem, self.operators, self.rng, self.check_budget = pencil.problem, pencil, rng, check_budget
        pencil.require_real_derivatives()
        plain = pencil.real_part
        obstacle = shape_obstacle(plain)
        if obstacle:
            raise InputError(f"no eigenvalues of this problem yet: {obstacle}")
        try:
            self.form = weak_formulation(plain)
            # where masses jump, cells end, and only the statement with an eigenvalue shows it
            meshed = weak_formulation(pencil.problem.at_eigenvalue(1.0)) if pencil.problem.kinked else self.form
        except NoDivergenceForm as reason:
            raise InputError(f"no eigenvalues of this problem: {reason}; state it in divergence form") from None
        self.weak, dim = WeakSettings(), plain.domain.dim
        self.fields = self.form.system.fields
        named = {one.term.name: one for one in pencil.equations}
        self.equations = [named[name] for name in self.form.system.names]
        degree = first_degree(tol, dim, settings, self.weak)
        self.discretisation = WeakDiscretisation(meshed, tol, self.weak, rng, check_budget, degree)
        self.degree = pencil.degree
        self.scale, self.uniform = self._scale()

    def _scale(self) -> tuple[float, bool]:
        """A typical eigenvalue, that of the longest wave with the highest power alone, and whether masses are constant
        and of the volume only."""
        domain = self.problem.domain
        points = domain.sample(PENCIL_SAMPLES, rng=0)
        diffusion = float(np.median(np.abs(self.form.at(points).diffusion).max(axis=(1, 2, 3, 4))))
        wave = np.pi / float(np.diff(np.asarray(domain.bounds, dtype=float), axis=1).max())
        masses = self._reactions(points)
        varying = any(np.ptp(np.abs(one), axis=0).max() > 1e-12 * np.abs(one).max(initial=1e-300) for one in masses)
        boundary = any(own for one in self.operators.conditions for own in (one.degree, one.complex))
        mass = float(np.median(np.abs(masses[-1]).max(axis=(1, 2))))
        size = diffusion * wave**2 / mass if mass > 0 else diffusion * wave
        return size ** (1 / self.degree), not varying and not boundary

    def _reactions(self, points: Array) -> tuple[Array, ...]:
        """Imaginary part of K, then masses of each power, as coefficients (M, K, F) at points."""
        known = self.problem.vocabulary.at(points)
        rows = []
        for one, sign in zip(self.equations, self.form.system.signs, strict=True):
            plain = one.plain(known, len(points), self.fields, self.degree)
            rows.append([-1j * sign * np.imag(plain[0]), *(sign * part for part in plain[1:])])
        return tuple(np.stack([row[k] for row in rows], axis=1) for k in range(self.degree + 1))

    def _fluxes(self, numbers: tuple[int, ...], points: Array, normals: Array) -> tuple[Array, ...]:
        """Imaginary part of K, then masses of each power, of conditions with a derivative, at boundary points: as
        coefficients of normal fluxes (M, K, F)."""
        count, fields = len(points), len(self.fields)
        fluxes = [np.zeros((count, fields, fields), dtype=complex) for _ in range(self.degree + 1)]
        words = self.problem.vocabulary
        known = words.at(points, normals)
        gathered = [(self.operators.conditions[k], self.form.condition(self.form.terms[k], points, normals)[2])
                    for k in numbers]  # fmt: skip
        natural = [(one, slopes) for one, slopes in gathered if slopes is not None]
        if natural:
            stacked = np.stack([slopes for _, slopes in natural], axis=1)
            combination = natural_combination(self.form.at(points).diffusion, stacked, normals)
            inverse = np.linalg.pinv(combination, rcond=1e-10)
            free = np.eye(fields) - self.form.rows(numbers, points, normals).projection
            each = [one.plain(known, count, self.fields, self.degree) for one, _ in natural]
            for power in range(self.degree + 1):
                row = free @ inverse @ np.stack([own[power] for own in each], axis=1)
                fluxes[power] = 1j * np.imag(row) if power == 0 else -row
        return tuple(fluxes)

    # ------------------------------------------------------------------------------------------------- the protocol

    def first(self) -> WeakResolution:
        return self.discretisation.first()

    def pencil(self, resolution: WeakResolution) -> CellPencil:
        disc = self.discretisation
        layer = HiddenLayer.sample(disc.dim, resolution.degree, self.weak, self.rng, disc.curved)
        mesh = disc.mesh(resolution.tree, layer)
        local = LocalMatrices(self.form, mesh, layer, self.check_budget)
        edges = self._boundary(local)
        groups = []
        for batch in local.batches():
            first, same = self._kinds(local, batch)
            some = CellBatch(batch.cells[first], batch.pairs[first], batch.faces)
            square, upper, lower, corner, _ = local.matrices(some)
            turned, *masses = self._masses(local, some.cells, edges)
            square = square + turned if turned.any() else square
            groups.append(CellGroup(batch.cells, same, local.dofs(batch), square, upper, lower, corner,
                                    tuple(masses)))  # fmt: skip
            self.check_budget()
        block = local.fields * layer.face_functions.shape[1]
        return CellPencil(local, groups, mesh.faces * block, self.scale, block)

    def _kinds(self, local: LocalMatrices, batch: CellBatch) -> tuple[Array, Array]:
        """A row (U,) of each kind of cell, and the kind (B,) of each: kinds are equal in form and in size."""
        if not self.uniform:
            return np.arange(len(batch.cells)), np.arange(len(batch.cells))
        half = local.mesh.halfwidths[batch.cells]
        keys = np.column_stack([local.kinds(batch)[1], np.round(np.log(half), FACE_DIGITS)])
        _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return first, same.ravel()

    def _boundary(self, local: LocalMatrices) -> tuple[Array, ...]:
        """Fluxes (B, q, K, F) on all patches, the imaginary part of K first, then of each power."""
        patches = local.mesh.patches
        count, fields = patches.points.shape[1], len(self.fields)
        fluxes = [np.zeros((len(patches), count, fields, fields), dtype=complex) for _ in range(self.degree + 1)]
        if not self.uniform:
            for group, numbers in enumerate(local.mesh.conditions):
                mine = np.flatnonzero(patches.group == group)
                dim = patches.points.shape[2]
                own = self._fluxes(
                    numbers, patches.points[mine].reshape(-1, dim), patches.normals[mine].reshape(-1, dim)
                )
                for power, part in enumerate(own):
                    fluxes[power][mine] = part.reshape(len(mine), count, fields, fields)
        return tuple(fluxes)

    def _masses(self, local: LocalMatrices, cells: Array, edges: tuple[Array, ...]) -> list[Array]:
        """Imaginary part of K, then masses of each power, each (B, n, n), of cells."""
        fields, k = len(self.fields), local.size
        masses = [np.zeros((len(cells), fields, k, fields, k), dtype=complex) for _ in range(self.degree + 1)]
        for row, cell in enumerate(cells.tolist()):
            values, weights, points = local.functions.cell_table(cell)
            heavy = weights[:, None] * values
            for power, part in enumerate(self._reactions(points)):
                for f, g in zip(*np.nonzero(np.abs(part).max(axis=0)), strict=True):
                    masses[power][row, f, :, g] = heavy.T @ (part[:, f, g, None] * values)
        if any(edge.any() for edge in edges):
            rows = {cell: row for row, cell in enumerate(cells.tolist())}
            for patch in np.flatnonzero(np.isin(local.mesh.patches.cell, cells)):
                row = rows[int(local.mesh.patches.cell[patch])]
                pair = local.interior + patch
                values = local.tables(local.cell[[pair]], local.points[[pair]])[0][0]
                heavy = local.weights[pair][:, None] * values
                for power, edge in enumerate(edges):
                    for f, g in zip(*np.nonzero(np.abs(edge[patch]).max(axis=0)), strict=True):
                        masses[power][row, f, :, g] += heavy.T @ (edge[patch][:, f, g, None] * values)
        flat = [one.reshape(len(cells), fields * k, fields * k) for one in masses]
        return [flat[0], *(one if self.operators.complex else one.real for one in flat[1:])]

    def quotient(self, pencil: CellPencil, mode: ModeShape) -> tuple[complex, float]:
        return mode.value, pencil.absolute_quotient(mode.value, mode.weights, mode.traces)

    def indicator(self, pencil: CellPencil, mode: ModeShape) -> tuple[Array, float]:
        """Jumps and (h/p)² ∫ |residual|² / diffusion of each cell; the energy, and a little of the size of the mode."""
        assert isinstance(pencil.local, LocalMatrices)
        local, mesh, fields = copy(pencil.local), pencil.local.mesh, self.fields
        if not self.uniform:
            fluxes = self._boundary(local)
            local.robin = local.robin - sum(
                np.real(part * mode.value**power) for power, part in enumerate(fluxes) if power
            )
        total, energy = np.zeros(mesh.count), 0.0
        shape, traces = (mesh.count, len(fields), local.size), (mesh.faces, len(fields), -1)
        parts = [(own.reshape(shape), trace.reshape(traces)) for own, trace in mode.parts()]
        dim = mesh.boxes.shape[1]
        axes, still = first_derivatives(dim), (0,) * dim
        indices = sorted({jet.index for one in self.equations for jet in one.coefficients} | {*axes, still})
        samples = [sampled(local, WeightedFields(own), indices) for own, _ in parts]
        points, shares, owners, _ = samples[0]
        diffusion = self.form.at(points).diffusion
        tables = mode_tables(samples)
        known = self.problem.vocabulary.at(points)
        residuals = [
            one.residual(mode.value, known, len(points), lambda jet: tables[jet.index][:, fields.index(jet.field)])
            for one in self.equations
        ]
        total += residual_squares(local, shares, owners, np.stack(residuals, axis=1), diffusion)
        for (weights, trace), (_, _, _, real) in zip(parts, samples, strict=True):
            total += HybridSystem(local).jumps(weights, trace)
            slopes = slopes_of(real, dim)
            energy += float(np.einsum("m,mki,mkfij,mfj->", shares, slopes, diffusion, slopes, optimize=True))
            size = float(np.einsum("m,mk,mf->", shares, mean_diffusion(diffusion), real[still] ** 2))
            # constants have no energy
            energy += PILOT_TOLERANCE * size * (np.pi / float(np.ptp(mesh.tree.bounds))) ** 2
        return total, max(energy, 1e-300)

    def refined(
        self, resolution: WeakResolution, pencil: CellPencil, modes: Array, indicators: Array
    ) -> WeakResolution | None:
        local = pencil.local
        assert isinstance(local, LocalMatrices)
        shape = (local.mesh.count, -1, local.size)
        stacked = np.concatenate([part.reshape(shape) for part in np.real(modes)], axis=1)
        together = HybridSolution(stacked, np.zeros(0), np.zeros(0))
        network = weak_network(local, WeightedFields(stacked[:, : len(self.fields)]))
        state = WeakState(
            network, local.mesh, local, together, np.zeros((0, 1)), indicators, 1.0, pencil.unknowns
        )  # fmt: skip
        return self.discretisation.refine(resolution, state, doerfler(indicators, self.weak.theta))

    def functions(
        self, resolution: WeakResolution, pencil: CellPencil, mode: ModeShape
    ) -> tuple[CellNetwork, CellNetwork | None]:
        shape = (pencil.count, len(self.fields), -1)
        networks = [weak_network(pencil.local, WeightedFields(own.reshape(shape))) for own, _ in mode.parts()]
        return networks[0], networks[1] if len(networks) > 1 else None
