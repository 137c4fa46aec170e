"""The adaptive loop on an interval: cells are halved until modes are resolved; a second discretisation measures errors.

A mode is resolved on a cell where its Legendre coefficients have fallen (Chebfun's chopping). The same cells with a
higher degree then give better eigenvalues; the difference bounds the error of the first. For Sturm–Liouville problems
the residual bounds the error, and the Prüfer angle counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.pde.monitor import Status
from rannpde.pde.solution import Choice
from rannpde.pde.spectrum.algebra import EigenPairs, eigenpairs
from rannpde.pde.spectrum.bounds import residual_bounds
from rannpde.pde.spectrum.interval.basis import PiecewisePolynomial
from rannpde.pde.spectrum.interval.sturm import SturmLiouville
from rannpde.pde.spectrum.interval.system import IntervalForm, IntervalSystem
from rannpde.pde.spectrum.result import RESIDUALS, TWO_DISCRETISATIONS, SpectrumIteration
from rannpde.pde.spectrum.search import EigenRequest, EigenResult, Parts, are_real
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import ROUNDED

COEFFICIENT_FLOOR = 1e-13
"""Legendre coefficients below, over the largest, are rounding."""
DEEPEST = 40
"""Halvings of an interval: beyond, ends of cells are rounding."""
COEFFICIENT_CELLS, COEFFICIENT_LEVELS = 96, 12
"""Cells, and halvings, at most that the coefficients of the equations alone may ask for: cells
cannot resolve a pole at an end, and whether modes are resolved is checked on them."""


@dataclass(frozen=True, eq=False)
class _JudgedInterval:
    """Eigenvalues, bounds and Legendre series (C, fields, K) of modes on cells, with a status."""

    values: Array
    bounds: Array
    series: tuple[Array, ...]
    edges: Array
    counted: str
    status: Status
    detail: str


class IntervalSolver:
    """One eigenvalue problem on an interval."""

    def __init__(self, form: IntervalForm, request: EigenRequest) -> None:
        self.form, self.request, self.wanted = form, request, request.wanted
        self.count, self.tol, self.settings = request.count, request.tol, request.settings
        self.rng, self.monitor = request.rng, request.monitor
        self.sturm = SturmLiouville.of(form)
        self.known: Array | None = None
        self.iterations: list[SpectrumIteration] = []

    # ------------------------------------------------------------------------------------------------------ the loop

    def run(self) -> EigenResult:
        """Refine until every wanted eigenvalue has the wanted error."""
        settings = self.settings
        edges = self._first()
        target = max(MUCH_SMALLER * self.tol**0.5, COEFFICIENT_FLOOR)
        best: _JudgedInterval | None = None
        worst = np.inf
        while True:
            system = IntervalSystem(self.form, edges, settings.degree)
            pairs = self._pairs(system)
            marked = self._marked(system, pairs, target)
            if marked.any() and len(edges) - 1 < settings.most_cells and not self._over():
                self._record(edges, system.size, np.inf)
                edges = self._halved(edges, marked)
                continue
            finer = IntervalSystem(self.form, edges, settings.degree + settings.more_degree)
            judged = self._judged(pairs, finer)
            estimate = self._relative(judged).max(initial=0.0) if len(judged.values) == self.count else np.inf
            self._record(edges, finer.size, estimate)
            if best is None or estimate <= worst:
                best, worst = judged, estimate
            if judged.status is Status.CONVERGED:
                return self._ended(judged, Status.CONVERGED, "")
            if self._over():
                return self._ended(best, Status.BUDGET, "")
            if len(self.iterations) >= settings.most_iterations or len(edges) - 1 >= settings.most_cells:
                return self._ended(best, best.status, best.detail)
            if target > COEFFICIENT_FLOOR:
                target = max(MUCH_SMALLER**2 * target, COEFFICIENT_FLOOR)
                edges = self._halved(edges, self._marked(system, pairs, target))
            else:
                edges = self._halved(edges, np.ones(len(edges) - 1, dtype=bool))

    def _over(self) -> bool:
        return self.monitor.exhausted

    def _record(self, edges: Array, size: int, estimate: float) -> None:
        self.request.recorded(self.iterations, len(edges) - 1, size, estimate)

    def _ended(self, judged: _JudgedInterval, status: Status, detail: str) -> EigenResult:
        real = not self.form.complex and are_real(judged.values, judged.bounds)
        functions: list[Parts] = []
        for series in judged.series:
            whole = real or np.abs(series.imag).max() <= ROUNDED * np.abs(series).max()
            parts = [PiecewisePolynomial(judged.edges, np.ascontiguousarray(one)) for one in (series.real, series.imag)]
            functions.append((parts[0], None if whole else parts[1]))
        return EigenResult(
            judged.values.real if real else judged.values, judged.bounds, tuple(functions),
            Choice("interval", "integrated Legendre polynomials on cells", "the domain is an interval"), self.wanted,
            judged.counted, status, detail, tuple(self.iterations), self.form.scale,
            RESIDUALS if self.sturm is not None else TWO_DISCRETISATIONS,
        )  # fmt: skip

    def _pairs(self, system: IntervalSystem) -> EigenPairs:
        """The wanted eigenvalues of a discretisation and a few more."""

        def order(values: Array) -> Array:
            self.wanted = self.wanted.decided(values)
            return self.wanted.order(values)

        select: Callable[[Array], Array] = order
        pairs = eigenpairs(
            system.matrices(), self.count + self.settings.spare, select, self.known, self.settings, self.rng
        )
        self.known = pairs.values
        return pairs

    # --------------------------------------------------------------------------------------------------------- cells

    def _first(self) -> Array:
        """Cells that end where coefficients jump, and on which smooth coefficients are polynomials."""
        lower, upper = self.form.ends
        inner = [position for position in self.form.jumps if lower < position < upper]
        edges = np.array(sorted({lower, upper, *inner}))
        while len(edges) - 1 < self.settings.first_cells:
            edges = self._halved(edges, np.ones(len(edges) - 1, dtype=bool))
        data = self.form.pencil.problem.variation
        for _ in range(COEFFICIENT_LEVELS):
            marked = self._unresolved(edges)
            if data is not None and len(edges) <= COEFFICIENT_CELLS:
                half = 0.5 * self.settings.degree
                cells = np.stack([edges[:-1], edges[1:]], axis=1)
                marked |= np.array([bool(np.any(data.changes(cell[None]) > half)) for cell in cells])
            marked &= np.diff(edges) > (upper - lower) * 2.0**-DEEPEST
            if not marked.any() or len(edges) + marked.sum() > COEFFICIENT_CELLS:
                break
            edges = self._halved(edges, marked)
        return edges

    def _unresolved(self, edges: Array) -> Array:
        """Cells (bool) on which a coefficient of the equations is no polynomial of the degree yet."""
        degree = self.settings.degree
        nodes = leggauss(degree + 1)[0]
        inverse = np.linalg.inv(legvander(nodes, degree))
        half = 0.5 * np.diff(edges)
        points = edges[:-1, None] + half[:, None] * (nodes + 1)
        symbol = self.form.pencil.problem.vocabulary.symbols[0]
        unresolved = np.zeros(len(half), dtype=bool)
        for one in self.form.pencil.equations:
            for own in one.at({symbol: points.ravel()}, points.size).values():
                for values in own.values():
                    series = np.abs(values.reshape(points.shape) @ inverse.T)
                    size = np.median(np.abs(values)) + series.max(axis=1)
                    unresolved |= ~(series[:, -2:].max(axis=1) <= self.settings.coefficient_tail * size)
        return unresolved

    @staticmethod
    def _halved(edges: Array, marked: Array) -> Array:
        middle = 0.5 * (edges[1:] + edges[:-1])
        return np.sort(np.concatenate([edges, middle[marked]]))

    def _marked(self, system: IntervalSystem, pairs: EigenPairs, target: float) -> Array:
        """Cells (bool) on which a wanted mode is not resolved to the target."""
        marked = np.zeros(len(system.half), dtype=bool)
        for vector in pairs.vectors[: self.count]:
            series = np.abs(system.series(vector))
            sizes = series.max(axis=(0, 2))
            sizes = np.where(sizes > 1e-10 * sizes.max(), sizes, sizes.max())
            for f, basis in enumerate(system.bases):
                tail = series[:, f, basis.size - 3 : basis.size].max(axis=1)
                marked |= tail > target * sizes[f]
        return marked & (np.diff(system.edges) > np.diff(self.form.ends)[0] * 2.0**-DEEPEST)

    # --------------------------------------------------------------------------------------------------------- errors

    def _judged(self, coarse: EigenPairs, finer: IntervalSystem) -> _JudgedInterval:
        """The wanted eigenvalues of a second discretisation, with bounds from the first, residuals and rounding."""
        settings = self.settings
        fine = self._pairs(finer)
        away = np.array([np.abs(coarse.values - value).min(initial=np.inf) for value in fine.values])
        errors = settings.trust * away + fine.rounding
        series = [_normalised(finer.series(vector)) for vector in fine.vectors]
        left = np.array([self._residual(finer, one, value) for one, value in zip(series, fine.values, strict=True)])
        size = np.maximum(np.abs(fine.values), self.form.scale)
        genuine = (left < settings.residual_limit) & (errors < MUCH_SMALLER * size)
        accepted = np.flatnonzero(genuine)
        if self.sturm is not None and len(accepted):
            functions = [finer.function(series[k].real) for k in accepted]
            errors[accepted] = self._guaranteed(functions, fine.values[accepted], fine.rounding[accepted], finer.degree)
        chosen = accepted[: self.count]
        counted, missing = self._counted(fine.values[accepted].real, finer.edges)
        values, errors = fine.values[chosen], errors[chosen]
        status, detail = Status.DISAGREE, ""
        if len(chosen) < self.count:
            detail = f"only {len(chosen)} of {self.count} eigenvalues are resolved"
        elif missing:
            detail = missing
        elif (errors <= self.tol * size[chosen]).all():
            status = Status.CONVERGED
        else:
            worst = int(np.argmax(errors / size[chosen]))
            floor = fine.rounding[chosen][worst] > 0.5 * errors[worst]
            detail = f"the error of eigenvalue {worst + 1} is up to {errors[worst]:.1e}" + (
                ", by rounding" if floor else ""
            )
            status = Status.STALLED if floor else Status.DISAGREE
        return _JudgedInterval(values, errors, tuple(series[k] for k in chosen), finer.edges, counted, status, detail)

    def _relative(self, judged: _JudgedInterval) -> Array:
        return np.asarray(judged.bounds / np.maximum(np.abs(judged.values), self.form.scale))

    def _residual(self, system: IntervalSystem, series: Array, value: complex) -> float:
        """The residual of a mode on a grid twice as fine, over the sum of the sizes of the terms of the equations."""
        nodes, weights = leggauss(2 * system.degree + 1)
        half = system.half[:, None]
        points = (system.edges[:-1, None] + half * (nodes + 1)).reshape(-1, 1)
        share = (half * weights).ravel()
        parts = [PiecewisePolynomial(system.edges, part) for part in (series.real, series.imag)]
        symbol = self.form.pencil.problem.vocabulary.symbols[0]
        still = np.stack([part(points) for part in parts])
        wave, highest = np.pi / np.diff(self.form.ends)[0], self.form.pencil.degree
        worst = 0.0
        for one in self.form.pencil.equations:
            total: Array = np.zeros(len(points), dtype=complex)
            size: Array = np.zeros(len(points))
            least = 0.0  # a mode without derivatives has no terms to compare with: those of the longest wave
            for jet, own in one.at({symbol: points[:, 0]}, len(points)).items():
                f = self.form.fields.index(jet.field)
                real, imaginary = (part.derivative(points, jet.index)[:, f] for part in parts)
                for power, coefficient in own.items():
                    term = coefficient * value**power * (real + 1j * imaginary)
                    total, size = total + term, size + np.abs(term)
                    plain = np.abs(coefficient) * self.form.scale**power * wave**jet.order * np.hypot(*still[:, :, f])
                    least = max(least, float(np.sqrt((share * plain**2).sum())) if power == highest else 0.0)
            norm = max(float(np.sqrt((share * size**2).sum())), least)
            worst = max(worst, float(np.sqrt((share * np.abs(total) ** 2).sum())) / max(norm, 1e-300))
        return worst

    def _guaranteed(self, functions: list[PiecewisePolynomial], values: Array, rounding: Array, degree: int) -> Array:
        """Bounds by residual and gap: an eigenvalue lies within δ, and within δ² / gap where others are far enough."""
        assert self.sturm is not None
        reach = self.sturm.residuals(functions, values.real, degree)
        return residual_bounds(values.real, reach) + rounding + np.abs(values.imag)

    def _counted(self, values: Array, edges: Array) -> tuple[str, str]:
        """How the eigenvalues were counted, and which are missing, in words."""
        sturm = self.sturm
        end = self.wanted.which
        if sturm is None or not sturm.separated or len(values) <= self.count:
            return "", ""
        ordered = np.sort(values * sturm.sign)
        if (end == "lowest" and sturm.sign > 0) or (end == "highest" and sturm.sign < 0):
            ordered, start = ordered[: self.count + 1], 0
        elif self.wanted.near is not None:
            inside = np.sort(values[: self.count] * sturm.sign)
            nearest = [v for v in ordered if v not in inside]
            if not nearest:
                return "", ""
            ordered = np.sort(np.append(inside, nearest[0] if nearest[0] > inside[-1] else inside[-1]))
            return self._consecutive(inside, edges)
        else:
            return "", ""
        middle = 0.5 * (ordered[-1] + ordered[-2])
        if ordered[-1] - ordered[-2] <= DISTINCT_EIGENVALUES / MUCH_SMALLER * max(abs(middle), self.form.scale):
            return "", ""
        number = sturm.count_before(float(middle) * sturm.sign, edges) - start
        if number == self.count:
            return f"the Prüfer angle counts {number} up to here: none is missing", ""
        return "", f"the Prüfer angle counts {number} eigenvalues where {self.count} were found"

    def _consecutive(self, inside: Array, edges: Array) -> tuple[str, str]:
        """Whether eigenvalues in order follow each other, by the number before the middle of each gap."""
        assert self.sturm is not None
        if len(inside) < 2:
            return "", ""
        sign = self.sturm.sign
        numbers = [self.sturm.count_before(float(v) * sign, edges) for v in 0.5 * (inside[1:] + inside[:-1])]
        if all(b - a == 1 for a, b in pairwise(numbers)):
            return f"these are the eigenvalues {numbers[0]} to {numbers[-1] + 1}, by the Prüfer angle", ""
        return "", f"the Prüfer angle counts other eigenvalues between those found: {numbers}"


def _normalised(series: Array) -> Array:
    """A mode whose largest Legendre coefficient is real and positive, with size one: the largest value about 1."""
    nodes = np.linspace(-1, 1, 4 * series.shape[2])
    values = series @ legvander(nodes, series.shape[2] - 1).T
    largest = values.ravel()[np.abs(values).argmax()]
    return np.asarray(series / largest)
