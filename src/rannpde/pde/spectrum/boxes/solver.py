"""The adaptive loop on boxes: degrees rise along the axes until modes are resolved, then residuals bound the errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from rannpde.arrays import Array
from rannpde.errors import InputError, require
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.spectrum.algebra import FINITE, EigenPairs, MatrixPencil, eigenpairs
from rannpde.pde.spectrum.bounds import residual_bounds
from rannpde.pde.spectrum.boxes.form import BoxForm, BoxSystem
from rannpde.pde.spectrum.boxes.function import ProductFunction
from rannpde.pde.spectrum.result import SpectrumIteration
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.wanted import Wanted


@dataclass(frozen=True, eq=False)
class BoxSpectrum:
    """Eigenvalues with bounds, and the modes, each of size one; how it ended."""

    values: Array
    bounds: Array
    functions: tuple[ProductFunction, ...]
    guaranteed: bool
    wanted: Wanted
    counted: str
    status: Status
    detail: str
    iterations: tuple[SpectrumIteration, ...]


@dataclass(frozen=True, eq=False)
class _Level:
    """What one discretisation gives.

    symmetric : the blocks of a symmetric problem K x = λ M x, or None; dense : whether all eigenvalues were computed
    """

    system: BoxSystem
    pairs: EigenPairs
    symmetric: list[tuple[Array, Array]] | None
    dense: bool


class BoxSolver:
    """One eigenvalue problem on a box."""

    def __init__(
        self,
        form: BoxForm,
        wanted: Wanted,
        count: int,
        tol: float,
        settings: SpectrumSettings,
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> None:
        self.form, self.wanted, self.count, self.tol = form, wanted, count, tol
        self.settings, self.rng, self.monitor = settings, rng, monitor
        self.known: Array | None = None
        self.differences = np.inf
        self.iterations: list[SpectrumIteration] = []

    def run(self) -> BoxSpectrum:
        """Raise degrees until every wanted eigenvalue has the wanted error."""
        # all eigenvalues of the first matrices are computed: half as many functions as are for that
        first = round((self.settings.dense / 2) ** (1 / self.form.dim))
        degrees = (first,) * self.form.dim
        before: _Level | None = None
        best: BoxSpectrum | None = None
        least = np.inf
        while True:
            level = self._level(BoxSystem(self.form, degrees))
            found = self._judged(before, level)
            size = np.maximum(np.abs(found.values), self.form.scale)
            estimate = float((found.bounds / size).max(initial=0.0)) if len(found.values) == self.count else np.inf
            self.iterations.append(SpectrumIteration(1, level.system.size, estimate, self.monitor.elapsed))
            self.monitor.tell(len(self.iterations), 1, width=level.system.size, estimate=estimate)
            if best is None or estimate <= least:
                best, least = found, estimate
            if found.status is Status.CONVERGED:
                return self._ended(found, Status.CONVERGED, "")
            if self.monitor.exhausted:
                if not len(best.values):
                    seconds = self.monitor.budget.seconds
                    raise InputError(f"seconds is {seconds}, too little for two discretisations; allow more time")
                return self._ended(best, Status.BUDGET, "")
            finer = self._finer(degrees, level)
            if finer is None:
                return self._ended(best, best.status, best.detail)
            before, degrees = level, finer

    def _ended(self, found: BoxSpectrum, status: Status, detail: str) -> BoxSpectrum:
        return BoxSpectrum(
            found.values, found.bounds, found.functions, found.guaranteed, self.wanted, found.counted, status, detail,
            tuple(self.iterations),
        )  # fmt: skip

    def _finer(self, degrees: tuple[int, ...], level: _Level) -> tuple[int, ...] | None:
        """Half as much again along axes on which modes are not resolved; None where that is more than can be solved."""
        vectors = level.pairs.vectors[: self.count]
        each = [level.system.function(vector).tails() for vector in vectors] or [np.ones(self.form.dim)]
        tails = np.max(each, axis=0)
        # errors of eigenvalues of symmetric problems are squares of those of modes
        wanted = np.log(0.1 * (self.tol**0.5 if level.symmetric else self.tol))
        with np.errstate(divide="ignore"):
            factors = np.clip(wanted / np.minimum(np.log(tails), -1.0), 1.2, 1.5)
        marked = tails > 0.1 * float(tails.max())
        marked = marked if marked.any() else np.ones(len(tails), dtype=bool)  # two levels must differ to tell anything
        raised = tuple(max(d + 2, int(f * d)) if m else d for d, f, m in zip(degrees, factors, marked, strict=True))
        size = BoxSystem(self.form, raised).size * self.form.pencil.degree
        return raised if size <= self.settings.box_unknowns[0 if level.symmetric else 1] else None

    # ------------------------------------------------------------------------------------------------- linear algebra

    def _level(self, system: BoxSystem) -> _Level:
        """The most wanted eigenvalues of all blocks into which the matrices fall."""
        matrices = system.matrices()
        count, known = self.count + self.settings.spare, self.known
        ends = ("lowest", "highest")
        found: list[EigenPairs] = []
        blocks = []
        if known is None:
            natural = Wanted().decided(self._all_values(matrices)).which
            if self._symmetric(matrices) is not None and natural in ends and self.wanted.which in ends:
                fits = self.wanted.which == natural
                require(
                    fits, "which", self.wanted.which, f"{natural!r}: the spectrum has no other end", "or give near=…"
                )
            self.wanted = self.wanted if self.wanted.which or self.wanted.near is not None else Wanted(natural)
        for places in _components(matrices):
            own = [one[np.ix_(places, places)] for one in matrices]
            symmetric = self._symmetric(own)
            pairs = None if symmetric is None else self._lanczos(*symmetric, count, known)
            pairs = pairs or self._general(own, count, known)
            blocks.append((symmetric, len(places)))
            vectors = np.zeros((len(pairs.values), system.size), dtype=pairs.vectors.dtype)
            vectors[:, places] = pairs.vectors
            found.append(EigenPairs(pairs.values, vectors, pairs.rounding))
        together = EigenPairs(*(np.concatenate([getattr(one, name) for one in found])
                                for name in ("values", "vectors", "rounding")))  # fmt: skip
        order = self.wanted.order(together.values.astype(complex))[:count]
        pairs = EigenPairs(together.values[order], together.vectors[order], together.rounding[order])
        self.known = pairs.values
        every = [symmetric for symmetric, _ in blocks if symmetric is not None]
        dense = all(size <= self.settings.dense for _, size in blocks)
        return _Level(system, pairs, every if len(every) == len(blocks) else None, dense)

    def _all_values(self, matrices: list[Array]) -> Array:
        """All finite eigenvalues of the first matrices: the most wanted alone do not tell which end is bounded."""
        lower, upper = MatrixPencil(tuple(map(sparse.csc_matrix, matrices)), self.form.scale).linearised()
        values = scipy.linalg.eigvals(lower.toarray(), -upper.toarray())
        values = values[np.isfinite(values)]
        return np.asarray(values[np.abs(values) <= 1 / FINITE**0.5] * self.form.scale)

    def _general(self, matrices: list[Array], count: int, known: Array | None) -> EigenPairs:
        """The wanted eigenvalues of matrices of no symmetry."""
        pencil = MatrixPencil(tuple(sparse.csc_matrix(one) for one in matrices), self.form.scale)
        if len(matrices[0]) < 3:
            known = None
        return eigenpairs(pencil, count, self.wanted.order, known, self.settings, self.rng)

    @staticmethod
    def _symmetric(matrices: list[Array]) -> tuple[Array, Array] | None:
        """K and a definite M with K x = λ M x; None where the matrices are not such."""
        if len(matrices) != 2:
            return None
        stiff, mass = matrices[0], -matrices[1]
        diagonal = np.sqrt(np.abs(np.diag(stiff)) + np.abs(np.diag(mass)) * np.abs(np.diag(stiff)).max())
        if not (diagonal > 0).all():
            return None
        for one in (stiff, mass):
            scaled = one / diagonal[:, None] / diagonal
            if np.abs(scaled - scaled.conj().T).max() > 1e-10 * np.abs(scaled).max():
                return None
        stiff, mass = 0.5 * (stiff + stiff.conj().T), 0.5 * (mass + mass.conj().T)
        if np.real(np.diag(mass)).max() < 0:
            stiff, mass = -stiff, -mass
        try:
            scipy.linalg.cholesky(mass / np.sqrt(np.outer(np.diag(mass), np.diag(mass))))
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        return stiff, mass

    def _lanczos(self, stiff: Array, mass: Array, count: int, known: Array | None) -> EigenPairs | None:
        """The wanted eigenvalues of K x = λ M x; None where they are not found this way."""
        size = len(stiff)
        count = min(count, size)
        if self.wanted.which in ("lowest imaginary", "highest imaginary"):
            return None
        scale = 1 / np.sqrt(np.real(np.diag(mass)))
        grid = np.outer(scale, scale)
        if known is None or size <= self.settings.dense or count > size // 4:
            values, vectors = scipy.linalg.eigh(stiff * grid, mass * grid)
            chosen = self.wanted.order(values.astype(complex))[:count]
            values, vectors = values[chosen], scale[:, None] * vectors[:, chosen]
        else:
            values, vectors = self._inverted(stiff * grid, mass * grid, count, known)
            vectors = scale[:, None] * vectors
        if len(values) < count:
            return None
        sums = np.einsum("ik,ik->k", np.abs(vectors), np.abs(stiff) @ np.abs(vectors))
        sums += np.abs(values) * np.einsum("ik,ik->k", np.abs(vectors), np.abs(mass) @ np.abs(vectors))
        norms = np.real(np.einsum("ik,ik->k", vectors.conj(), mass @ vectors))
        values = np.real(np.einsum("ik,ik->k", vectors.conj(), stiff @ vectors)) / norms
        return EigenPairs(values, vectors.T, self.settings.rounding * np.finfo(float).eps * sums / norms)

    def _inverted(self, stiff: Array, mass: Array, count: int, known: Array) -> tuple[Array, Array]:
        """By Lanczos iteration with the inverse of K - σM, σ beyond the wanted end, or near the wanted number.

        Cholesky's factorisation succeeds exactly where no eigenvalue lies beyond the shift.
        """
        known = np.sort(np.real(known))
        end = self.wanted.which in ("lowest", "highest")
        sign = -1.0 if self.wanted.which == "highest" else 1.0
        step = max(float(np.ptp(known)), self.form.scale) / len(known)
        shift = float(known[0] if sign > 0 else known[-1])
        if not end:
            near = 0.0 if self.wanted.near is None else float(np.real(self.wanted.near))
            factors = scipy.linalg.lu_factor(stiff - near * mass, check_finite=False)
        while end:
            shift -= sign * step
            try:
                factors = scipy.linalg.cho_factor(sign * (stiff - shift * mass), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                step *= 2

        def solved(vector: Array) -> Array:
            if end:
                return np.asarray(sign * scipy.linalg.cho_solve(factors, vector, check_finite=False))
            return np.asarray(scipy.linalg.lu_solve(factors, vector, check_finite=False))

        shift = shift if end else near
        inverse = LinearOperator(stiff.shape, matvec=solved, dtype=stiff.dtype)
        begin = self.rng.standard_normal(len(stiff)).astype(stiff.dtype)
        try:
            return eigsh(stiff, count, M=mass, sigma=shift, OPinv=inverse, which="LM", v0=begin, tol=1e-14)
        except (ArpackNoConvergence, ArpackError):
            return np.zeros(0), np.zeros((len(stiff), 0))

    # --------------------------------------------------------------------------------------------------------- errors

    def _judged(self, before: _Level | None, level: _Level) -> BoxSpectrum:
        """Eigenvalues with bounds by residuals for self-adjoint problems, by the level before for others."""
        values, rounding = level.pairs.values, level.pairs.rounding
        functions = [_normalised(level.system.function(v)) for v in level.pairs.vectors]
        left, reach = self._residuals(level.system, functions, values)
        guaranteed = level.symmetric is not None and reach is not None
        size = np.maximum(np.abs(values), self.form.scale)
        errors = self._changes(before, level) + rounding
        genuine = (left < self.settings.residual_limit) & (errors < 0.1 * size)
        if guaranteed and reach is not None:
            bounds = residual_bounds(values.real, reach) + rounding
            sure = bool((bounds <= self.tol * size)[: self.count].all())
            # residuals at corners may not be square integrable, where eigenvalues converge all the same
            guaranteed = sure or not bool((errors < bounds)[: self.count].all())
            errors = bounds if guaranteed else errors
            genuine |= bounds < 0.1 * size
        chosen = np.flatnonzero(genuine)[: self.count]
        status, detail, counted = Status.DISAGREE, "", ""
        if len(chosen) < self.count:
            detail = f"only {len(chosen)} of {self.count} eigenvalues are resolved"
        elif (errors[chosen] <= self.tol * size[chosen]).all():
            counted, missing = self._counted(level)
            status, detail = (Status.DISAGREE, missing) if missing else (Status.CONVERGED, "")
        else:
            worst = int(chosen[np.argmax(errors[chosen] / size[chosen])])
            detail = f"the error of eigenvalue {worst + 1} is up to {errors[worst]:.1e}"
            if rounding[worst] > 0.5 * errors[worst]:
                status, detail = Status.STALLED, detail + ", by rounding"
        return BoxSpectrum(
            values[chosen], errors[chosen], tuple(functions[k] for k in chosen), guaranteed, self.wanted, counted,
            status, detail, (),
        )  # fmt: skip

    def _changes(self, before: _Level | None, level: _Level) -> Array:
        """Differences (K,) to the level before, times ``trust``; infinite where they do not fall by half at least.

        A series of differences that fall by half has a rest no larger than the last one. A single mode may agree by
        chance, as where a degree is of the other parity: all share the largest relative difference.
        """
        values = level.pairs.values
        if before is None:
            return np.full(len(values), np.inf)
        away = _nearest(values, before.pairs.values)
        size = np.maximum(np.abs(values), self.form.scale)
        last, self.differences = self.differences, float((away / size)[: self.count].max(initial=0.0))
        falling = self.differences <= 0.5 * last
        return self.settings.trust * self.differences * size if falling else np.full(len(values), np.inf)

    def _residuals(
        self, system: BoxSystem, functions: list[ProductFunction], values: Array
    ) -> tuple[Array, Array | None]:
        """What equations leave of modes on a finer grid: over the sizes of their terms, and in the norm of the mass.

        The second is None where the eigenvalue is no factor of a positive weight times the field of each equation.
        """
        form = self.form
        nodes, weights = system.grid(max(system.degrees))
        share = weights[0]
        for own in weights[1:]:
            share = np.multiply.outer(share, own)
        relative, squares, norms = np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values))
        weighted = True
        wave = np.pi / float(np.ptp(form.bounds, axis=1).max())
        for f, (field, one) in enumerate(zip(form.fields, form.equations, strict=True)):
            coefficients = system.coefficients(one, nodes)
            masses = [(jet, own[1]) for jet, own in coefficients.items() if 1 in own]
            plain = len(masses) == 1 and masses[0][0].field == field and masses[0][0].order == 0
            weight = np.real(masses[0][1]) if plain else np.zeros(share.shape)
            weighted &= plain and bool((weight > 0).all() or (weight < 0).all()) and form.pencil.degree == 1
            for k, (function, value) in enumerate(zip(functions, values, strict=True)):
                total: Array = np.zeros(share.shape, dtype=complex)
                size: Array = np.zeros(share.shape)
                least = 0.0
                tables = {jet.index: function.on_grid(nodes, jet.index) for jet in coefficients}
                for jet, powers in coefficients.items():
                    g = form.fields.index(jet.field)
                    still = np.abs(function.on_grid(nodes, (0,) * form.dim)[..., g]) if jet.order == 0 else None
                    for power, factor in powers.items():
                        term = factor * value**power * tables[jet.index][..., g]
                        total, size = total + term, size + np.abs(term)
                        if still is not None and power:
                            plainly = np.abs(factor) * form.scale**power * still * wave**jet.order
                            least = max(least, float(np.sqrt((share * plainly**2).sum())))
                norm = max(float(np.sqrt((share * size**2).sum())), least)
                left = float((share * np.abs(total) ** 2).sum())
                relative[k] = max(relative[k], np.sqrt(left) / max(norm, 1e-300))
                if plain and weighted:
                    squares[k] += float((share * np.abs(total) ** 2 / np.abs(weight)).sum())
                    here = np.abs(function.on_grid(nodes, (0,) * form.dim)[..., f]) ** 2
                    norms[k] += float((share * np.abs(weight) * here).sum())
        return relative, np.sqrt(squares / np.maximum(norms, 1e-300)) if weighted else None

    def _counted(self, level: _Level) -> tuple[str, str]:
        """How it was counted that none is missing, and what is missing, in words."""
        if level.symmetric is None or len(level.pairs.values) <= self.count:
            return "", ""
        if level.dense:
            return f"all {level.system.size} eigenvalues of the matrices were computed: none is missing", ""
        if self.wanted.which not in ("lowest", "highest"):
            return "", ""
        sign = -1.0 if self.wanted.which == "highest" else 1.0
        ordered = np.sort(sign * np.real(level.pairs.values))
        gaps = ordered[self.count :] - ordered[self.count - 1 : -1]
        wide = np.flatnonzero(gaps > 1e-5 * np.maximum(np.abs(ordered[self.count - 1]), self.form.scale))
        if not len(wide):
            return "", ""
        number = self.count + int(wide[0])
        middle = 0.5 * (ordered[number] + ordered[number - 1])
        found = 0
        for stiff, mass in level.symmetric:
            scale = 1 / np.sqrt(np.real(np.diag(mass)))
            found += _negative((sign * stiff - middle * mass) * np.outer(scale, scale))
        if found == number:
            return f"inertia counts {found} up to here: none is missing", ""
        return "", f"inertia counts {found} eigenvalues where {number} were found"


def _nearest(values: Array, others: Array) -> Array:
    """The distance (K,) of each value to the nearest of others that is not taken by one before it."""
    left = list(others)
    found = np.full(len(values), np.inf)
    for k, value in enumerate(values):
        if left:
            distances = np.abs(np.array(left) - value)
            found[k] = distances.min()
            left.pop(int(distances.argmin()))
    return found


def _components(matrices: list[Array]) -> list[Array]:
    """Unknowns (each an array of positions) that matrices couple above rounding: reflections, or waves one by one."""
    total: Array = np.zeros(matrices[0].shape)
    for one in matrices:
        size = np.sqrt(np.abs(np.diag(one)))
        largest = float(np.abs(one).max())
        floor = np.maximum(np.outer(size, size), 1e-3 * np.finfo(float).eps * largest + np.finfo(float).tiny)
        total = np.maximum(total, np.abs(one) / floor)
    linked = total > len(total) * np.finfo(float).eps
    count, labels = connected_components(sparse.csr_matrix(linked), directed=False)
    return [np.flatnonzero(labels == k) for k in range(count)]


def _negative(matrix: Array) -> int:
    """The number of negative eigenvalues of a Hermitian matrix, by its factorisation L D L* (Sylvester)."""
    _, blocks, _ = scipy.linalg.ldl(matrix, hermitian=True, check_finite=False)
    diagonal, beside = np.real(np.diag(blocks)), np.abs(np.diag(blocks, 1))
    pairs = np.flatnonzero(beside > 0)  # blocks of two have one eigenvalue of each sign
    single = np.ones(len(diagonal), dtype=bool)
    single[pairs] = single[pairs + 1] = False
    return int((diagonal[single] < 0).sum()) + len(pairs)


def _normalised(function: ProductFunction) -> ProductFunction:
    """The function whose largest value is 1."""
    nodes = [np.linspace(low, high, 4 * n) for (low, high), n in
             zip(function.bounds, function.coefficients.shape, strict=False)]  # fmt: skip
    nodes = [axis[:: max(1, len(axis) // (60 if function.dim == 3 else 200))] for axis in nodes]
    values = function.on_grid(nodes, (0,) * function.dim).ravel()
    return function.times(1 / values[np.abs(values).argmax()])
