"""The adaptive loop on boxes: degrees rise along the axes until modes are resolved, then residuals bound the errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.errors import InputError, require
from rannpde.pde.monitor import Status
from rannpde.pde.solution import Choice
from rannpde.pde.spectrum.algebra import FINITE, EigenPairs, MatrixPencil, eigenpairs
from rannpde.pde.spectrum.bounds import residual_bounds
from rannpde.pde.spectrum.boxes.form import BoxForm, BoxSystem
from rannpde.pde.spectrum.boxes.function import ProductFunction
from rannpde.pde.spectrum.boxes.residual import box_residuals
from rannpde.pde.spectrum.boxes.symmetric import SymmetricSearch, components, negative, symmetric_pair
from rannpde.pde.spectrum.result import RESIDUALS, TWO_DISCRETISATIONS, SpectrumIteration
from rannpde.pde.spectrum.search import EigenRequest, EigenResult, Parts, are_real
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class _EstimatedBox:
    """The eigenvalues of one discretisation with bounds, their modes with largest value 1, and a status.

    guaranteed : whether the bounds are proven, by residuals; counted : how it was checked that none is missing
    """

    values: Array
    bounds: Array
    functions: tuple[ProductFunction, ...]
    guaranteed: bool
    counted: str
    status: Status
    detail: str


@dataclass(frozen=True, eq=False)
class _Level:
    """The eigenpairs of one discretisation.

    symmetric : the blocks of a symmetric problem K x = λ M x, or None; dense : whether all eigenvalues were computed
    """

    system: BoxSystem
    pairs: EigenPairs
    symmetric: list[tuple[Array, Array]] | None
    dense: bool


class BoxSolver:
    """One eigenvalue problem on a box."""

    def __init__(self, form: BoxForm, request: EigenRequest) -> None:
        self.form, self.request, self.wanted = form, request, request.wanted
        self.count, self.tol, self.settings = request.count, request.tol, request.settings
        self.rng, self.monitor = request.rng, request.monitor
        self.known: Array | None = None
        self.differences = np.inf
        self.iterations: list[SpectrumIteration] = []

    def run(self) -> EigenResult:
        """Raise degrees until every wanted eigenvalue has the wanted error."""
        # all eigenvalues of the first matrices are computed, which have half of the unknowns that this allows
        first = round((self.settings.dense / 2) ** (1 / self.form.dim))
        degrees = (first,) * self.form.dim
        before: _Level | None = None
        best: _EstimatedBox | None = None
        least = np.inf
        while True:
            level = self._level(BoxSystem(self.form, degrees))
            estimated = self._estimated(before, level)
            size = np.maximum(np.abs(estimated.values), self.form.scale)
            estimate = (
                float((estimated.bounds / size).max(initial=0.0)) if len(estimated.values) == self.count else np.inf
            )
            self.request.recorded(self.iterations, 1, level.system.size, estimate)
            if best is None or estimate <= least:
                best, least = estimated, estimate
            if estimated.status is Status.CONVERGED:
                return self._ended(estimated, Status.CONVERGED, "")
            if self.monitor.exhausted:
                if not len(best.values):
                    seconds = self.monitor.budget.seconds
                    raise InputError(f"seconds is {seconds}, too little for two discretisations; allow more time")
                return self._ended(best, Status.BUDGET, "")
            finer = self._finer(degrees, level)
            if finer is None:
                return self._ended(best, best.status, best.detail)
            before, degrees = level, finer

    def _ended(self, estimated: _EstimatedBox, status: Status, detail: str) -> EigenResult:
        real = are_real(estimated.values, estimated.bounds)
        functions: list[Parts] = []
        for function in estimated.functions:
            size, turned = np.abs(function.coefficients).max(), np.abs(function.coefficients.imag).max()
            if real and turned <= COMPUTED * size and not any(function.phases):
                whole = replace(function, coefficients=np.ascontiguousarray(function.coefficients.real))
                functions.append((whole, None))
            else:
                functions.append((function, function.times(-1j)))
        why = "the domain is a box whose conditions hold along whole sides"
        return EigenResult(
            estimated.values.real if real else estimated.values, estimated.bounds, tuple(functions),
            Choice("box", "tensor products of polynomials and Fourier modes", why), self.wanted, estimated.counted,
            status, detail, tuple(self.iterations), self.form.scale,
            RESIDUALS if estimated.guaranteed else TWO_DISCRETISATIONS,
        )  # fmt: skip

    def _finer(self, degrees: tuple[int, ...], level: _Level) -> tuple[int, ...] | None:
        """Degrees raised by up to a half along axes on which modes are not resolved; None where they are too many."""
        vectors = level.pairs.vectors[: self.count]
        by_mode = [level.system.function(vector).tails() for vector in vectors] or [np.ones(self.form.dim)]
        tails = np.max(by_mode, axis=0)
        # errors of eigenvalues of symmetric problems are squares of those of modes
        target = np.log(MUCH_SMALLER * (self.tol**0.5 if level.symmetric else self.tol))
        with np.errstate(divide="ignore"):
            factors = np.clip(target / np.minimum(np.log(tails), -1.0), 1, 3 / 2)
        marked = tails > MUCH_SMALLER * float(tails.max())
        marked = marked if marked.any() else np.ones(len(tails), dtype=bool)  # equal levels would show no error
        raised = tuple(max(d + 2, int(f * d)) if m else d for d, f, m in zip(degrees, factors, marked, strict=True))
        size = BoxSystem(self.form, raised).size * self.form.pencil.degree
        return raised if size <= self.settings.box_unknowns[0 if level.symmetric else 1] else None

    # ------------------------------------------------------------------------------------------------- linear algebra

    def _level(self, system: BoxSystem) -> _Level:
        """The most wanted eigenvalues of a discretisation, block by block where its matrices decouple."""
        matrices = system.matrices()
        count, known = self.count + self.settings.spare, self.known
        ends = ("lowest", "highest")
        by_block: list[EigenPairs] = []
        blocks = []
        if known is None:
            natural = Wanted().decided(self._all_values(matrices)).which
            if symmetric_pair(matrices) is not None and natural in ends and self.wanted.which in ends:
                fits = self.wanted.which == natural
                require(
                    fits, "which", self.wanted.which, f"{natural!r}: the spectrum has no other end", "or give near=…"
                )
            self.wanted = self.wanted if self.wanted.which or self.wanted.near is not None else Wanted(natural)
        search = SymmetricSearch(self.wanted, self.form.scale, self.settings, self.rng)
        for members in components(matrices):
            block = [matrix[np.ix_(members, members)] for matrix in matrices]
            symmetric = symmetric_pair(block)
            pairs = None if symmetric is None else search.pairs(*symmetric, count, known)
            pairs = pairs or self._general(block, count, known)
            blocks.append((symmetric, len(members)))
            vectors = np.zeros((len(pairs.values), system.size), dtype=pairs.vectors.dtype)
            vectors[:, members] = pairs.vectors
            by_block.append(EigenPairs(pairs.values, vectors, pairs.rounding))
        joined = EigenPairs(*(np.concatenate([getattr(pairs, name) for pairs in by_block])
                              for name in ("values", "vectors", "rounding")))  # fmt: skip
        order = self.wanted.order(joined.values.astype(complex))[:count]
        pairs = EigenPairs(joined.values[order], joined.vectors[order], joined.rounding[order])
        self.known = pairs.values
        every = [symmetric for symmetric, _ in blocks if symmetric is not None]
        dense = all(size <= self.settings.dense for _, size in blocks)
        return _Level(system, pairs, every if len(every) == len(blocks) else None, dense)

    def _all_values(self, matrices: list[Array]) -> Array:
        """All finite eigenvalues of the first matrices, which show at which end the spectrum is bounded."""
        lower, upper = MatrixPencil(tuple(map(sparse.csc_matrix, matrices)), self.form.scale).linearised()
        values = scipy.linalg.eigvals(lower.toarray(), -upper.toarray())
        values = values[np.isfinite(values)]
        return np.asarray(values[np.abs(values) <= 1 / FINITE**0.5] * self.form.scale)

    def _general(self, matrices: list[Array], count: int, known: Array | None) -> EigenPairs:
        """The wanted eigenvalues of matrices that are not symmetric."""
        pencil = MatrixPencil(tuple(sparse.csc_matrix(matrix) for matrix in matrices), self.form.scale)
        if len(matrices[0]) < 3:
            known = None
        return eigenpairs(pencil, count, self.wanted.order, known, self.settings, self.rng)

    # --------------------------------------------------------------------------------------------------------- errors

    def _estimated(self, before: _Level | None, level: _Level) -> _EstimatedBox:
        """Eigenvalues with bounds by residuals for self-adjoint problems, by the level before for others."""
        values, rounding = level.pairs.values, level.pairs.rounding
        functions = [_normalised(level.system.function(v)) for v in level.pairs.vectors]
        left, reach = box_residuals(level.system, functions, values)
        guaranteed = level.symmetric is not None and reach is not None
        size = np.maximum(np.abs(values), self.form.scale)
        errors = self._changes(before, level) + rounding
        genuine = (left < self.settings.residual_limit) & (errors < MUCH_SMALLER * size)
        if guaranteed and reach is not None:
            bounds = residual_bounds(values.real, reach) + rounding
            sure = bool((bounds <= self.tol * size)[: self.count].all())
            # residuals at corners may not be square integrable, where eigenvalues converge all the same
            guaranteed = sure or not bool((errors < bounds)[: self.count].all())
            errors = bounds if guaranteed else errors
            genuine |= bounds < MUCH_SMALLER * size
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
        return _EstimatedBox(
            values[chosen], errors[chosen], tuple(functions[k] for k in chosen), guaranteed, counted, status, detail
        )

    def _changes(self, before: _Level | None, level: _Level) -> Array:
        """Differences (K,) to the level before, times ``trust``; infinite where they do not fall by half at least.

        If differences keep falling by half, the sum of all later ones is no larger than the last one. The values of a
        single mode may agree by chance, as where a raised degree has the other parity; all modes therefore get the
        largest relative difference.
        """
        values = level.pairs.values
        if before is None:
            return np.full(len(values), np.inf)
        away = _nearest(values, before.pairs.values)
        size = np.maximum(np.abs(values), self.form.scale)
        last, self.differences = self.differences, float((away / size)[: self.count].max(initial=0.0))
        falling = self.differences <= 0.5 * last
        return self.settings.trust * self.differences * size if falling else np.full(len(values), np.inf)

    def _counted(self, level: _Level) -> tuple[str, str]:
        """In words: how it was checked that no eigenvalue is missing, and how many are."""
        if level.symmetric is None or len(level.pairs.values) <= self.count:
            return "", ""
        if level.dense:
            return f"all {level.system.size} eigenvalues of the matrices were computed: none is missing", ""
        if self.wanted.which not in ("lowest", "highest"):
            return "", ""
        sign = -1.0 if self.wanted.which == "highest" else 1.0
        ordered = np.sort(sign * np.real(level.pairs.values))
        gaps = ordered[self.count :] - ordered[self.count - 1 : -1]
        wide = np.flatnonzero(
            gaps > DISTINCT_EIGENVALUES * np.maximum(np.abs(ordered[self.count - 1]), self.form.scale)
        )
        if not len(wide):
            return "", ""
        number = self.count + int(wide[0])
        middle = 0.5 * (ordered[number] + ordered[number - 1])
        negative_ones = 0
        for stiff, mass in level.symmetric:
            scale = 1 / np.sqrt(np.real(np.diag(mass)))
            negative_ones += negative((sign * stiff - middle * mass) * np.outer(scale, scale))
        if negative_ones == number:
            return f"inertia counts {negative_ones} up to here: none is missing", ""
        return "", f"inertia counts {negative_ones} eigenvalues where {number} were found"


def _nearest(values: Array, others: Array) -> Array:
    """The distance (K,) of each value to the nearest of others that is not taken by one before it."""
    left = list(others)
    nearest = np.full(len(values), np.inf)
    for k, value in enumerate(values):
        if left:
            distances = np.abs(np.array(left) - value)
            nearest[k] = distances.min()
            left.pop(int(distances.argmin()))
    return nearest


def _normalised(function: ProductFunction) -> ProductFunction:
    """The function whose largest value is 1."""
    nodes = [np.linspace(low, high, 4 * n) for (low, high), n in
             zip(function.bounds, function.coefficients.shape, strict=False)]  # fmt: skip
    nodes = [axis[:: max(1, len(axis) // (60 if function.dim == 3 else 200))] for axis in nodes]
    values = function.on_grid(nodes, (0,) * function.dim).ravel()
    return function.times(1 / values[np.abs(values).argmax()])
