"""The adaptive loop on shapes: solve, estimate, mark, refine, as the weak form does, for several modes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject
from rannpde.pde.adaptivity.loop import OutOfBudget, doerfler
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.solution import SolvedFunction
from rannpde.pde.spectrum.algebra import clusters
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, Pencil
from rannpde.pde.spectrum.result import SpectrumIteration
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.hybrid import FAR_EIGENVALUE, HybridPencil
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.assembly import HybridSolution, HybridSystem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evaluation import sampled, weak_network
from rannpde.pde.weak.form import WeakForm, weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation, WeakResolution, WeakState, shape_obstacle

STEPS_DOWN = 60
"""Doublings of the distance to a shift below the whole spectrum."""


@dataclass(frozen=True, eq=False)
class ShapeModes:
    """What one discretisation gives: eigenvalues, weights (K, C, n), traces, squared relative indicators (K,).

    sums (K,) : of the absolute values of all products in the Rayleigh quotients, of which rounding is a share
    cells (C,) : squared indicators of the wanted modes together
    """

    pencil: HybridPencil
    resolution: WeakResolution
    values: Array
    weights: Array
    traces: Array
    indicators: Array
    sums: Array
    cells: Array


@dataclass(frozen=True, eq=False)
class ShapeSpectrum:
    """Eigenvalues with bounds and networks of the modes (real, imaginary or None); how it ended."""

    values: Array
    bounds: Array
    networks: tuple[tuple[SolvedFunction, SolvedFunction | None], ...]
    wanted: Wanted
    counted: str
    status: Status
    detail: str
    iterations: tuple[SpectrumIteration, ...]
    scale: float


class ShapeSolver:
    """One eigenvalue problem on a shape or a box."""

    def __init__(
        self,
        pencil: Pencil,
        wanted: Wanted,
        count: int,
        tol: float,
        settings: SpectrumSettings,
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> None:
        self.pencil, self.wanted, self.count, self.tol = pencil, wanted, count, tol
        self.settings, self.rng, self.monitor = settings, rng, monitor
        problem = pencil.problem
        if pencil.complex:
            raise InputError("complex parameters are for intervals and periodic boxes; write real fields on a shape")
        if pencil.degree > 1:
            raise InputError(
                f"{problem.eigenvalue} has the power {pencil.degree}, which is for intervals; on a shape write "
                "a system of first degree, with v = lam*u"
            )
        self.plain = problem.at_eigenvalue(0.0)
        if problem.periodic or problem.pairings:
            raise InputError("fields are periodic in some coordinates only, which shapes cannot be; use all or none")
        obstacle = shape_obstacle(self.plain)
        if obstacle:
            raise InputError(f"no eigenvalues of this problem yet: {obstacle}")
        try:
            self.still = weak_formulation(self.plain)
            self.scale = self._scale(self.still)
            self.far: WeakForm = weak_formulation(problem.at_eigenvalue(FAR_EIGENVALUE * self.scale))
        except NoDivergenceForm as reason:
            raise InputError(f"no eigenvalues of this problem: {reason}; state it in divergence form") from None
        dim = problem.domain.dim
        start, per_digit = settings.shape_degree[dim - 2]
        degree = round(start - per_digit * log10(tol))
        weak = WeakSettings()
        degree = min(max(degree, 3), weak.most_degree[dim - 1])
        self.discretisation = WeakDiscretisation(self.still, tol, weak, rng, self._pause, degree)
        self.weak = weak
        self.iterations: list[SpectrumIteration] = []

    def _pause(self) -> None:
        if self.monitor.exhausted:
            raise OutOfBudget

    def _scale(self, form: WeakForm) -> float:
        """A typical eigenvalue: diffusion over mass, times the square of the wave number of the longest wave."""
        problem = self.pencil.problem
        points = problem.domain.sample(PENCIL_SAMPLES, rng=0)
        diffusion = float(np.median(np.abs(form.at(points).diffusion).max(axis=(1, 2, 3, 4))))
        wave = np.pi / float(np.diff(np.asarray(problem.domain.bounds, dtype=float), axis=1).max())
        known = dict(zip(problem.vocabulary.symbols, points.T, strict=True))
        mass = 0.0
        for one in self.pencil.equations:
            for jet, own in one.at(known, len(points)).items():
                if 1 in own and jet.order:
                    reject("the eigenvalue", f"a factor of a derivative of {jet.field}", "one of the fields themselves")
                mass = max(mass, float(np.median(np.abs(own.get(1, np.zeros(1))))))
        return diffusion * wave**2 / mass if mass > 0 else diffusion * wave

    # ------------------------------------------------------------------------------------------------------ the loop

    def run(self) -> ShapeSpectrum:
        """Refine until every wanted eigenvalue has the wanted error."""
        resolution = self.discretisation.first()
        before: ShapeModes | None = None
        best: tuple[ShapeModes, Array] | None = None
        worst, idle = np.inf, 0
        status, detail, counted = Status.STALLED, "", ""
        while True:
            try:
                now = self._modes(resolution)
            except OutOfBudget:
                if best is None:
                    raise InputError(
                        f"seconds is {self.monitor.budget.seconds}, too little for one discretisation of this shape; "
                        "allow more time"
                    ) from None
                status = Status.BUDGET
                break
            errors = self._errors(before, now)
            size = np.maximum(np.abs(now.values[: self.count]), self.scale)
            enough = len(now.values) >= self.count
            estimate = float((errors[: self.count] / size).max(initial=0.0)) if enough else np.inf
            self._record(now, estimate)
            idle = 0 if estimate < 0.7 * worst or not np.isfinite(worst) else idle + 1
            if best is None or estimate <= worst:
                best, worst = (now, errors), estimate
            if enough and estimate <= self.tol:
                counted, missing = self._counted(now)
                if not missing:
                    status = Status.CONVERGED
                    break
                detail = missing
            if self.monitor.exhausted:
                status = Status.BUDGET
                break
            if idle >= self.weak.patience or len(self.iterations) >= self.settings.passes:
                detail = detail or f"refinement does not lower the errors any more; they are up to {worst:.1e}"
                break
            finer = self._refined(resolution, now)
            if finer is None:
                detail = detail or "the finest mesh allowed was reached"
                break
            before, resolution = now, finer
        return self._found(best[0], best[1], counted, status, detail)

    def _record(self, now: ShapeModes, estimate: float) -> None:
        one = SpectrumIteration(now.pencil.mesh.count, now.pencil.unknowns, estimate, self.monitor.elapsed)
        self.iterations.append(one)
        self.monitor.tell(len(self.iterations), 1, width=one.unknowns, estimate=estimate)

    def _modes(self, resolution: WeakResolution) -> ShapeModes:
        disc = self.discretisation
        layer = HiddenLayer.sample(disc.dim, resolution.degree, self.weak, self.rng, disc.curved)
        mesh = disc.mesh(resolution.tree, layer)
        pencil = HybridPencil(self.still, self.far, self.scale, mesh, layer, self._pause)
        values, weights, traces = self._wanted(pencil)
        indicators = np.zeros(len(values))
        cells = np.zeros(mesh.count)
        for k, value in enumerate(values):
            squares, energy = self._indicator(pencil, value, weights[k], traces[k])
            indicators[k] = squares.sum() / energy
            if k < self.count:
                cells += squares / energy
            self._pause()
        sums = pencil.absolute_quotients(weights, traces)
        return ShapeModes(pencil, resolution, values, weights, traces, indicators, sums, cells)

    def _wanted(self, pencil: HybridPencil) -> tuple[Array, Array, Array]:
        """The most wanted eigenvalues of a discretisation, a few more than asked for."""
        number = self.count + self.settings.shape_spare
        if self.wanted.near is not None:
            if abs(self.wanted.near.imag) > 0:
                raise InputError(f"near is {self.wanted.near}, but must be real on a shape")
            shift = float(self.wanted.near.real) + 1e-7 * self.scale
            found = pencil.shifted(shift).eigenpairs(number, self.rng)
        else:
            found = self._from_the_end(pencil, number)
        values, weights, traces = found
        order = self.wanted.order(np.asarray(values, dtype=complex))
        return values[order], weights[order], traces[order]

    def _from_the_end(self, pencil: HybridPencil, number: int) -> tuple[Array, Array, Array]:
        """The eigenvalues at the bounded end: the shift moves out until none lies beyond it."""
        sign = pencil.sign if pencil.sign else 1
        end = "lowest" if sign > 0 else "highest"
        if self.wanted.which is None:
            self.wanted = replace(self.wanted, which=end)
        elif self.wanted.which not in (end, "smallest"):
            reject("which", self.wanted.which, f"{end!r}: the spectrum has no other end", "or give near=…")
        step = 0.3 * self.scale
        if self.wanted.which == "smallest":
            return pencil.shifted(1e-3 * step).eigenpairs(number, self.rng)
        for _ in range(STEPS_DOWN):
            system = pencil.shifted(-sign * step)
            below = system.below
            if not below:  # none, or it cannot be told
                return system.eigenpairs(number, self.rng)
            step *= 2
            self._pause()
        raise InputError("the eigenvalues have no end that could be found; give near=…")

    # ---------------------------------------------------------------------------------------------- errors, refinement

    def _indicator(self, pencil: HybridPencil, value: complex, weights: Array, traces: Array) -> tuple[Array, float]:
        """Squared indicators (C,) of a mode: jumps and (h/p)² ∫ residual² / diffusion; and its energy."""
        total, energy = np.zeros(pencil.mesh.count), 0.0
        parts = [(weights.real, traces.real)] + ([(weights.imag, traces.imag)] if np.iscomplexobj(weights) else [])
        size = np.abs(weights).max()
        for own, trace in parts:
            if np.abs(own).max() <= 1e-9 * size:
                continue
            squares, part = self._real_indicator(pencil, value, own, trace)
            total, energy = total + squares, energy + part
        return total, max(energy, 1e-300)

    def _real_indicator(
        self, pencil: HybridPencil, value: complex, weights: Array, traces: Array
    ) -> tuple[Array, float]:
        local, mesh, fields = pencil.local, pencil.mesh, self.still.system.fields
        functions = pencil.block // len(fields)
        shaped = HybridSolution(
            weights.reshape(mesh.count, len(fields), pencil.size),
            traces.reshape(mesh.faces, len(fields), functions),
            np.zeros(0),
        )
        jumps = HybridSystem(local)._jumps(shaped.weights, shaped.traces)
        dim = mesh.boxes.shape[1]
        axes = [tuple(int(a == b) for b in range(dim)) for a in range(dim)]
        still = (0,) * dim
        terms = {one.name: one for one in self.pencil.equations}
        indices = sorted({jet.index for one in terms.values() for jet in one.coefficients} | {*axes, still})
        points, shares, owners, tables = sampled(local, shaped, indices)
        coefficients = self.still.at(points)
        own = np.einsum("mkkii->mk", coefficients.diffusion) / dim
        known = dict(zip(self.pencil.problem.vocabulary.symbols, points.T, strict=True))
        squares = np.zeros(len(points))
        mixed = np.iscomplexobj(value) and abs(np.imag(value)) > 1e-9 * abs(value)
        for k, name in enumerate(self.still.system.names):
            if mixed:  # real and imaginary parts belong together: jumps alone tell
                break
            expression = terms[name].expression
            jets = {
                jet: np.full(len(points), float(np.real(value))) if jet.field not in fields
                else tables[jet.index][:, fields.index(jet.field)]
                for jet in expression.jets
            }  # fmt: skip
            squares += expression.value(known, jets) ** 2 / np.maximum(own[:, k], 1e-300)
        lengths = 2 * mesh.halfwidths.max(axis=1)[owners] / local.layer.degree
        slopes = np.stack([tables[axis] for axis in axes], axis=2)
        energy = np.einsum("m,mki,mkfij,mfj->", shares, slopes, coefficients.diffusion, slopes, optimize=True)
        plain = np.einsum("m,mk,mf->", shares, own, tables[still] ** 2) * (np.pi / np.ptp(mesh.tree.bounds)) ** 2
        return jumps + np.bincount(owners, shares * lengths**2 * squares, mesh.count), float(energy + 1e-3 * plain)

    def _errors(self, before: ShapeModes | None, now: ShapeModes) -> Array:
        """Of each eigenvalue: the change since the last discretisation, times what its indicators have gained."""
        errors = np.full(len(now.values), np.inf)
        if before is None:
            return errors
        left = list(range(len(before.values)))
        for k, value in enumerate(now.values):
            if not left:
                break
            nearest = min(left, key=lambda j: abs(before.values[j] - value))
            left.remove(nearest)
            gain = now.indicators[k] / max(before.indicators[nearest], 1e-300)
            change = abs(before.values[nearest] - value)
            errors[k] = change * float(np.clip(self.settings.trust * gain, 0.5, 1.0))
        # two solutions may agree by chance in one mode: those of a cluster share the largest error, and none is taken
        # to be better than the median, as quadrature and rounding act on all modes alike
        size = np.maximum(np.abs(now.values), self.scale)
        relative = errors / size
        for group in clusters(now.values, self.settings.same, self.scale):
            relative[group] = relative[group].max()
        known = relative[: self.count]
        relative = np.maximum(relative, float(np.median(known)))
        return relative * size + self.settings.shape_rounding * np.finfo(float).eps * now.sums

    def _refined(self, resolution: WeakResolution, now: ShapeModes) -> WeakResolution | None:
        """A finer resolution where the modes need it, by the rules of the weak form."""
        shape = (now.pencil.mesh.count, -1, now.pencil.size)
        stacked = np.concatenate([part.reshape(shape) for part in np.real(now.weights[: self.count])], axis=1)
        together = HybridSolution(stacked, now.traces[0], np.zeros(0))
        network = self._network(now, now.weights[0].real, now.traces[0].real)
        state = WeakState(
            network, now.pencil.mesh, now.pencil.local, together, np.zeros((0, 1)), now.cells, 1.0, now.pencil.unknowns
        )
        return self.discretisation.refine(resolution, state, doerfler(now.cells, self.weak.theta))

    # ---------------------------------------------------------------------------------------------------- what is found

    def _counted(self, now: ShapeModes) -> tuple[str, str]:
        """How the eigenvalues were counted by inertia, and which are missing, in words."""
        pencil = now.pencil
        if not pencil.symmetric or not pencil.sign or len(now.values) <= self.count:
            return "", ""
        ordered = np.sort(pencil.sign * np.real(now.values))
        wanted = np.sort(pencil.sign * np.real(now.values[: self.count]))
        least = 1e-5 * max(float(np.abs(wanted).max()), self.scale)
        above = ordered[ordered > wanted[-1] + least]
        if not len(above):
            return "", ""
        upper = 0.5 * (float(above[0]) + float(ordered[ordered <= wanted[-1] + least].max()))
        below = ordered[ordered < wanted[0] - least]
        lower = wanted[0] - (0.5 * (wanted[0] - float(below[-1])) if len(below) else least)
        from_end = self.wanted.which in ("lowest", "highest")
        inside = int((ordered < upper).sum()) - (0 if from_end else len(below))
        before = 0 if from_end else pencil.shifted(pencil.sign * lower).below
        until = pencil.shifted(pencil.sign * upper).below
        if before is None or until is None:
            return "", ""
        counted = until - before
        if counted != inside:
            return "", f"inertia counts {counted} eigenvalues where {inside} were found"
        if from_end:
            return f"inertia counts {counted} up to here: none is missing", ""
        return f"inertia counts {counted} between {lower:.6g} and {upper:.6g}: none is missing", ""

    def _network(self, modes: ShapeModes, weights: Array, traces: Array) -> CellNetwork:
        pencil = modes.pencil
        own = HybridSolution(weights.reshape(pencil.mesh.count, pencil.fields, -1), traces, np.zeros(0))
        return weak_network(pencil.local, own)

    def _found(self, modes: ShapeModes, errors: Array, counted: str, status: Status, detail: str) -> ShapeSpectrum:
        kept = min(self.count, len(modes.values))
        points = self.pencil.problem.domain.sample(PENCIL_SAMPLES * 16, rng=3)
        networks: list[tuple[SolvedFunction, SolvedFunction | None]] = []
        real = not np.iscomplexobj(modes.values) or bool((np.abs(np.imag(modes.values[:kept])) <= errors[:kept]).all())
        for k in range(kept):
            weights, traces = modes.weights[k], modes.traces[k]
            values = self._network(modes, weights.real, traces.real)(points).astype(complex)
            if np.iscomplexobj(weights):
                values = values + 1j * self._network(modes, weights.imag, traces.imag)(points)
            largest = values.ravel()[np.abs(values).argmax()]
            weights, traces = weights / largest, traces / largest
            whole = real and np.abs(weights.imag).max() <= 1e-6 * np.abs(weights).max()
            imaginary = None if whole else self._network(modes, weights.imag, traces.imag)
            networks.append((self._network(modes, weights.real, traces.real), imaginary))
        found = np.real(modes.values[:kept]) if real else modes.values[:kept]
        return ShapeSpectrum(
            found, errors[:kept], tuple(networks), self.wanted, counted, status, detail, tuple(self.iterations),
            self.scale,
        )  # fmt: skip
