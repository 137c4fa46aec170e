"""Incompressible flows in the plane: Stokes' eigenvalues and growth rates of perturbations, velocities as curls.

The matrices are those of ``rannpde.pde.flow``, with tangential velocities and normal tractions on faces; the tractions
are multipliers of continuity, each of which is one negative eigenvalue of the symmetric problem. The mass is that of
the velocity. The pressure of a mode is computed afterwards; it is linear in the eigenvalue.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError
from rannpde.pde.adaptivity.loop import doerfler
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.pressure import PressureRecovery, RecoveredFlow, flow_network
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.flow.solver import FlowDiscretisation, FlowIterate
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, Pencil
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.cellwise import CellGroup, CellPencil
from rannpde.pde.spectrum.shapes.protocol import BudgetCheck, ModeShape, first_degree, mode_tables
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.statement.expression import Jet
from rannpde.pde.weak.evaluation import sampled
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import WeakResolution

STREAM_INDICES: tuple[MultiIndex, ...] = tuple((i, j) for i in range(4) for j in range(4 - i) if i + j)
"""Derivatives of stream functions that second derivatives of velocities need."""


def flow_of_pencil(pencil: Pencil) -> tuple[FlowForm | None, str]:
    """The flow that a problem is without its eigenvalue, or why it is none; nothing where it does not look like one."""
    if len(pencil.fields) != 3 or pencil.problem.domain.dim != 2:
        return None, ""
    try:
        return flow_formulation(pencil.real_part), ""
    except (NoFlow, NoDivergenceForm) as reason:
        return None, str(reason)


class FlowModes:
    """The eigenvalue problem of a flow on cells."""

    def __init__(
        self, form: FlowForm, pencil: Pencil, tol: float, settings: SpectrumSettings, rng: np.random.Generator,
        check_budget: BudgetCheck,
    ) -> None:  # fmt: skip
        name = pencil.problem.eigenvalue
        if pencil.complex or pencil.degree > 1 or any(one.degree for one in pencil.conditions):
            raise InputError(f"a flow on a shape has {name} once, as a factor of the velocity in its momentum, and "
                             "real coefficients; boxes and intervals have no such limit")  # fmt: skip
        pencil.require_real_derivatives()
        self.form, self.operators, self.rng, self.check_budget = form, pencil, rng, check_budget
        self.problem, self.weak = pencil.problem, WeakSettings()
        named = {one.term.name: one for one in pencil.equations}
        self.equations = [named[name] for name in form.momentum]
        disc = FlowDiscretisation(form, tol, self.weak, rng, check_budget)
        disc.first_degree = min(first_degree(tol, 2, settings, self.weak) + 1, disc.most_degree)  # curls have one less
        self.discretisation = disc
        points = self.problem.domain.sample(PENCIL_SAMPLES, rng=0)
        wave = np.pi / float(np.ptp(np.asarray(self.problem.domain.bounds, dtype=float), axis=1).max())
        mass = float(np.median(np.abs(self._masses(points)).max(axis=(1, 2))))
        if not mass > 0:
            raise InputError(f"{name} must stand beside a velocity in the momentum of a flow")
        self.scale = form.viscosity * wave**2 / mass

    def _masses(self, points: Array) -> Array:
        """The mass (M, 2, 2) of the velocity at points."""
        known = self.problem.vocabulary.at(points)
        columns = list(self.form.columns[:2])
        rows = [-factor * one.plain(known, len(points), self.problem.fields, 1)[1][:, columns]
                for one, factor in zip(self.equations, self.form.factors, strict=True)]  # fmt: skip
        return np.stack(rows, axis=1)

    # ------------------------------------------------------------------------------------------------- the protocol

    def first(self) -> WeakResolution:
        return self.discretisation.first()

    def pencil(self, resolution: WeakResolution) -> CellPencil:
        local = self.discretisation.cells(resolution.tree, resolution.degree, self.rng)
        system = FlowSystem(local)
        rest = system.rest()
        groups = []
        for batch in local.batches():
            matrices = system.matrices(batch, rest)
            points = local.stream_tables(batch.cells)[0]
            mass = self._masses(points.reshape(-1, 2)).reshape(*points.shape[:2], 2, 2)
            heavy = system.inertia.multiplied(batch.cells, mass)
            same = np.arange(len(batch.cells))
            groups.append(CellGroup(batch.cells, same, system.dofs(batch), matrices.square, matrices.upper,
                                    matrices.lower, matrices.corner, (heavy,)))  # fmt: skip
            self.check_budget()
        tractions = int(system.active[system.faces * system.m :].sum())
        return CellPencil(local, groups, system.total, self.scale, 1, system.active, tractions)

    def _recovered(self, pencil: CellPencil, mode: ModeShape) -> list[RecoveredFlow]:
        """The real and, where there is one, the imaginary part of a mode, with their pressures.

        The pressure p(u, λ) of a velocity is linear in u and in λ, each of which may be complex.
        """
        local = pencil.local
        assert isinstance(local, FlowCells)

        def recovered(part: tuple[Array, Array], value: float) -> RecoveredFlow:
            own = copy(local)
            own.form = flow_formulation(self.problem.at_eigenvalue(value))
            system = FlowSystem(own, active=pencil.active)
            split = system.faces * system.m
            stream, traces = part
            tangential, normal = traces[:split].reshape(-1, system.m), traces[split:].reshape(-1, system.n)
            return PressureRecovery(system).recovered(FlowState(stream, tangential, normal))

        parts, value = mode.parts(), complex(mode.value)
        flows = [recovered(part, value.real) for part in parts]
        if len(flows) > 1 and value.imag:
            forces = [recovered(part, value.imag).weights[:, 1] - recovered(part, 0.0).weights[:, 1] for part in parts]
            for one, force in zip(flows, (-forces[1], forces[0]), strict=True):
                one.weights[:, 1] += force
        return flows

    def quotient(self, pencil: CellPencil, mode: ModeShape) -> tuple[complex, float]:
        return mode.value, pencil.absolute_quotient(mode.value, mode.weights, mode.traces)

    def indicator(self, pencil: CellPencil, mode: ModeShape) -> tuple[Array, float]:
        """Jumps and (h/p)² ∫ |residual|² / ν of each cell, and the energy ν ∫ |∇u|²."""
        local = pencil.local
        parts = self._recovered(pencil, mode)
        samples = [sampled(local, part, [(0, 0), *STREAM_INDICES]) for part in parts]
        points, shares, owners, _ = samples[0]
        tables = mode_tables(samples)

        def values(jet: Jet) -> Array:
            a, b = jet.index
            if jet.field == self.form.pressure:
                return tables[a, b][:, 1]
            return tables[a, b + 1][:, 0] if jet.field == self.form.velocity[0] else -tables[a + 1, b][:, 0]

        known = self.problem.vocabulary.at(points)
        squares = np.zeros(len(points))
        for one, factor in zip(self.equations, self.form.factors, strict=True):
            squares += np.abs(factor * one.residual(mode.value, known, len(points), values)) ** 2
        lengths = 2 * local.mesh.halfwidths.min(axis=1)[owners] / local.layer.degree
        total = np.bincount(owners, shares * lengths**2 * squares / self.form.viscosity, local.mesh.count)
        xx, xy, yy = (np.abs(tables[index][:, 0]) ** 2 for index in ((2, 0), (1, 1), (0, 2)))
        energy = self.form.viscosity * float((shares * (xx + 2 * xy + yy)).sum())
        return total + sum(part.jumps for part in parts), max(energy, 1e-300)

    def refined(
        self, resolution: WeakResolution, pencil: CellPencil, modes: Array, indicators: Array
    ) -> WeakResolution | None:
        local = pencil.local
        assert isinstance(local, FlowCells)
        together = RecoveredFlow(
            FlowSystem(local, active=pencil.active).rest(), np.real(modes).swapaxes(0, 1), indicators
        )
        network = flow_network(resolution.tree, local, together.weights[:, [0, 0]])
        state = FlowIterate(
            network, local, together, np.zeros((0, 3)), indicators, 1.0, 0.0, {}, pencil.unknowns
        )  # fmt: skip
        return self.discretisation.refine(resolution, state, doerfler(indicators, self.weak.theta))

    def functions(
        self, resolution: WeakResolution, pencil: CellPencil, mode: ModeShape
    ) -> tuple[CellNetwork, CellNetwork | None]:
        assert isinstance(pencil.local, FlowCells)
        networks = [
            self._gauged(flow_network(resolution.tree, pencil.local, one.weights))
            for one in self._recovered(pencil, mode)
        ]
        return networks[0], networks[1] if len(networks) > 1 else None

    def _gauged(self, network: CellNetwork) -> CellNetwork:
        """The pressure, with mean zero where its constant is not determined: in an enclosed flow."""
        if any(self.form.pressure in term.expression.fields for term in self.form.terms):
            return network
        column = self.form.columns[2]
        coefficients = network.coefficients.copy()
        coefficients[:, -1, column] -= float(network(self.discretisation.check_points)[:, column].mean())
        return replace(network, coefficients=coefficients)
