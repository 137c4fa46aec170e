"""The weak form of a problem: fluxes whose normal components occur in the stated conditions.

A condition with first derivatives, b·∇u + c u = g on a side with normal n, is *natural* if b·∇u is a combination of the
normal fluxes, b^f_j = Σ_k R_k n_i A^{kf}_{ij}. Derivatives along the normal fix R, whatever the split of mixed
derivatives; derivatives along the side then are linear equations for the antisymmetric part S of that split. What these
leave free is chosen such that the form is symmetric and, if possible, non-negative at every point.

Conditions without derivatives are *essential*, B u = g, and enter by Nitsche's method with the projection on the rows
of B, so that a roller (one displacement, one traction) and an inclined wall (n·u = 0) are the same case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import DivergenceSystem, EllipticCoefficients, NoDivergenceForm
from rannpde.pde.weak.quasilinear_form import (
    NominalSystem,
    QuasilinearForm,
    linearised_condition,
    nominal_system,
    quasilinear_form,
)
from rannpde.rounding import COMPUTED, EPS, ROUNDED

COEFFICIENT_SAMPLES = 12
"""Points of the domain and of each side at which coefficients are compared: they are formulas, not noise."""


@dataclass(frozen=True, eq=False)
class BoundaryRows:
    """Conditions at boundary points: projection (M, K, K) on prescribed combinations of fields, their values
    (M, K), and the normal flux of the others, natural (M, K) - robin (M, K, K) · u."""

    projection: Array
    values: Array
    natural: Array
    robin: Array

    @property
    def essential(self) -> bool:
        """Whether any combination is prescribed."""
        return bool(self.projection.any())


@dataclass(frozen=True)
class StiffnessPart:
    """A diffusion in which no strain has more than ``ratio`` times the stiffness of the softest one; or the remainder.

    remainder : the remainder is taken, divided by this number, without lower terms, loads and natural data; 0 for the
    limited diffusion
    """

    ratio: float
    remainder: float = 0.0

    def of(self, whole: EllipticCoefficients) -> EllipticCoefficients:
        """This part of coefficients (M, …)."""
        values, vectors = strain_stiffnesses(whole.diffusion)
        beyond = np.maximum(values - self.ratio * _softest(values)[:, None], 0.0)
        count, fields, _, dim, _ = whole.diffusion.shape
        rest = np.einsum("mas,ms,mbs->mab", vectors, beyond, vectors, optimize=True)
        rest = _without_rotations(rest.reshape(count, fields, dim, fields, dim).transpose(0, 1, 3, 2, 4))
        if not self.remainder:
            return EllipticCoefficients(whole.diffusion - rest, whole.advection, whole.reaction, whole.load)
        return EllipticCoefficients(
            rest / self.remainder, 0 * whole.advection, 0 * whole.reaction, 0 * whole.load
        )  # fmt: skip

    def excess(self, diffusion: Array) -> float:
        """The largest stiffness that is left of a diffusion (M, K, F, d, d), over the limit of its point."""
        values, _ = strain_stiffnesses(diffusion)
        return float((values.max(axis=1) / (self.ratio * _softest(values)) - 1).max())


@dataclass(frozen=True, eq=False)
class WeakForm:
    """A problem ready for integration by parts.

    twist (K, F, d, d) : what was added to the diffusion, antisymmetric in the last two, so that conditions are natural
    symmetric : whether the bilinear form is symmetric
    quasilinear : the non-linear form of which this is the linearisation at a nominal state; None of a linear problem
    conditions : those of the problem, or of some of its fields; None for all
    part : of the stiffness that this form has; None for all of it
    """

    problem: Problem
    system: DivergenceSystem | NominalSystem
    twist: Array
    symmetric: bool
    quasilinear: QuasilinearForm | None = None
    conditions: tuple[Term, ...] | None = None
    part: StiffnessPart | None = None

    @property
    def fields(self) -> int:
        return len(self.system.fields)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The conditions."""
        return self.problem.constraints if self.conditions is None else self.conditions

    def stiffness_ratio(self, points: Array) -> float:
        """The largest ratio of the energies of two gradients at a point, but for those without energy, as rotations."""
        values, _ = strain_stiffnesses(self.at(points).diffusion)
        return float((values.max(axis=1) / _softest(values)).max())

    def at(self, points: Array) -> EllipticCoefficients:
        """Coefficients at points (M, d), of the diffusion with the split that makes the conditions natural."""
        coefficients = self.system.at(points)
        whole = EllipticCoefficients(
            _without_rotations(coefficients.diffusion + self.twist), coefficients.advection, coefficients.reaction,
            coefficients.load,
        )  # fmt: skip
        return whole if self.part is None else self.part.of(whole)

    def diffusion(self, points: Array, values: Array, slopes: Array) -> Array:
        """The diffusion (M, K, F, d, d) at points, of a non-linear problem at the state there."""
        if self.quasilinear is None:
            return self.at(points).diffusion
        return self.quasilinear.linearised(points, values, slopes).diffusion

    def rows(self, numbers: Sequence[int], points: Array, normals: Array) -> BoundaryRows:
        """The conditions of these numbers at boundary points (M, d) with outward normals (M, d)."""
        count, fields = len(points), self.fields
        gathered = [self.condition(self.terms[number], points, normals) for number in numbers]
        essential = [(value, plain) for value, plain, slopes in gathered if slopes is None]
        natural = [(value, plain, slopes) for value, plain, slopes in gathered if slopes is not None]
        projection, data = np.zeros((count, fields, fields)), np.zeros((count, fields))
        load, robin = np.zeros((count, fields)), np.zeros((count, fields, fields))
        if essential:
            rows = np.stack([plain for _, plain in essential], axis=1)  # (M, m, K)
            inverse = np.linalg.pinv(rows, rcond=1e-10)
            projection = inverse @ rows
            data = np.einsum("mkr,mr->mk", inverse, -np.stack([value for value, _ in essential], axis=1))
        if natural:
            slopes = np.stack([one for _, _, one in natural], axis=1)  # (M, r, F, d)
            diffusion = self.system.at(points).diffusion + self.twist
            combination = natural_combination(diffusion, slopes, normals)  # (M, r, K)
            inverse = np.linalg.pinv(combination, rcond=1e-10)
            load = np.einsum("mkr,mr->mk", inverse, -np.stack([value for value, _, _ in natural], axis=1))
            robin = inverse @ np.stack([plain for _, plain, _ in natural], axis=1)
            if essential:  # the flux along prescribed combinations is a reaction
                rest = np.eye(fields) - projection
                load, robin = np.einsum("mkl,ml->mk", rest, load), rest @ robin
        if self.part is not None and self.part.remainder:
            load, robin = 0 * load, 0 * robin
        return BoundaryRows(projection, data, load, robin)

    def condition(self, term: Term, points: Array, normals: Array) -> tuple[Array, Array, Array | None]:
        """value (M,), plain (M, K) and slopes (M, K, d), or None, of value + plain·u + slopes·∇u = 0."""
        known = self.problem.vocabulary.at(points, normals)
        state = self.system.nominal(term.expression, len(points))
        return linearised_condition(term.expression, self.system.fields, known, state, points.shape)

    def described(self) -> list[str]:
        """The lines of the report: which fluxes were integrated by parts, and how each condition enters."""
        kind = "symmetric" if self.symmetric else "not symmetric"
        natural = [t.name for t in self.terms if any(jet.order for jet in t.expression.jets)]
        if self.quasilinear is not None:
            kind = "not linear, with an energy" if self.symmetric else "not linear"
        lines = [f"weak form, {kind}; natural conditions: {', '.join(dict.fromkeys(natural)) or 'none'}"]
        if self.problem.inequalities:
            stated = ", ".join(dict.fromkeys(one.name for one in self.problem.inequalities))
            lines.append(f"inequalities by active sets: {stated}")
        if self.twist.any():
            lines.append("mixed derivatives are split such that these conditions are normal fluxes")
        return lines


def natural_combination(diffusion: Array, slopes: Array, normals: Array) -> Array:
    """R (M, r, K) with slopes·n = R n·A n: the normal fluxes that occur in conditions with slopes (M, r, F, d)."""
    across = np.einsum("mi,mkfij,mj->mkf", normals, diffusion, normals)
    wanted = np.einsum("mrfj,mj->mrf", slopes, normals)
    return np.asarray(np.swapaxes(np.linalg.solve(np.swapaxes(across, 1, 2), np.swapaxes(wanted, 1, 2)), 1, 2))


@lru_cache(maxsize=1)
def weak_formulation(problem: Problem) -> WeakForm:
    """The weak form of a stationary problem; NoDivergenceForm, with the reason, where it has none.

    The last one is stored, since obstacles, drawbacks and the solve of a problem ask for it in turn.

    >>> from rannpde.domains import Box
    >>> sides = {"x=0": ("u = 0", "v = 0"), "x=1": ("3*u_x + v_y = 0", "u_y + v_x = 0")}
    >>> sides |= {"y=0": ("u_y + v_x = 0", "3*v_y + u_x = 0"), "y=1": ("u_y + v_x = 0", "3*v_y + u_x = 0")}
    >>> plate = Problem(["3*u_xx + u_yy + 2*v_xy = 0", "v_xx + 3*v_yy + 2*u_xy = 1"], Box(x=(0, 1), y=(0, 1)), sides)
    >>> form = weak_formulation(plate)
    >>> form.symmetric, form.at(np.zeros((1, 2))).diffusion[0, 0, 1].round(12).tolist()
    (True, [[0.0, 1.0], [1.0, 0.0]])
    """
    bounds = np.asarray(problem.domain.bounds, dtype=float)
    linear = problem.linear and not problem.inequalities
    system = problem.elliptic if linear else _nominal(problem)
    if isinstance(system, NoDivergenceForm):
        raise NoDivergenceForm(*system.args)
    for term in problem.constraints:
        if term.kind != "boundary" or not isinstance(term.region, Side):
            raise NoDivergenceForm(f"condition {term.name!r} is no condition on the boundary")
        if any(jet.order > 1 for jet in term.expression.jets):
            raise NoDivergenceForm(f"condition {term.name!r} has second derivatives")
    points = problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    plain = WeakForm(problem, system, np.zeros((len(system.fields),) * 2 + (system.dim,) * 2), False)
    coefficients = system.at(points)
    for name, array in vars(coefficients).items():
        if not np.isfinite(array).all():
            raise NoDivergenceForm(f"the {name} is not finite everywhere")
    twist = _twist(plain, coefficients.diffusion)
    diffusion = coefficients.diffusion + twist
    least = np.linalg.eigvalsh(_across(diffusion)).min(axis=-1)
    if not (least > COMPUTED * np.abs(diffusion).max()).all():
        raise NoDivergenceForm("the equations are not elliptic")
    scale = np.abs(diffusion).max()
    mirrored = np.abs(diffusion - diffusion.transpose(0, 2, 1, 4, 3)).max() <= COMPUTED * scale
    still = np.abs(coefficients.advection).max() <= COMPUTED * scale / np.diff(bounds, axis=1).max()
    swapped = coefficients.reaction - coefficients.reaction.transpose(0, 2, 1)
    even = np.abs(swapped).max() <= COMPUTED * max(float(np.abs(coefficients.reaction).max()), 1e-300)
    symmetric = bool(mirrored and still and even)
    if isinstance(system, DivergenceSystem):
        return WeakForm(problem, system, twist, symmetric)
    quasilinear = quasilinear_form(problem, system.quasilinear, twist)
    return WeakForm(problem, system, twist, quasilinear.variational, quasilinear)


def _nominal(problem: Problem) -> NominalSystem | NoDivergenceForm:
    """A non-linear problem at a nominal state."""
    system = problem.quasilinear
    return system if isinstance(system, NoDivergenceForm) else nominal_system(system)


def _across(diffusion: Array) -> Array:
    """The symmetric part of n·A n (M, N, K, F) for normals n along the axes and between them."""
    dim = diffusion.shape[-1]
    normals = np.concatenate([np.eye(dim), [np.eye(dim)[a] + s * np.eye(dim)[b] for a, b in combinations(range(dim), 2)
                                            for s in (-1, 1)]]) if dim > 1 else np.eye(1)  # fmt: skip
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    across = np.einsum("ni,mkfij,nj->mnkf", normals, diffusion, normals)
    return np.asarray(0.5 * (across + np.swapaxes(across, 2, 3)))


def _twist(form: WeakForm, diffusion: Array) -> Array:
    """The antisymmetric part (K, F, d, d) of the split: by conditions, then by symmetry, then by positivity."""
    fields, dim = form.fields, form.system.dim
    planes = list(combinations(range(dim), 2))
    if not planes:
        return form.twist
    basis = []
    for k in range(fields):
        for f in range(fields):
            for i, j in planes:
                one = np.zeros((fields, fields, dim, dim))
                one[k, f, i, j], one[k, f, j, i] = 1.0, -1.0
                basis.append(one)
    directions = np.stack(basis)  # (S, K, F, d, d)
    scale = float(np.abs(diffusion).max())
    matrix, wanted, names = _natural_equations(form, directions)
    coefficients, free = np.zeros(len(directions)), np.eye(len(directions))
    if len(matrix):
        coefficients = np.linalg.lstsq(matrix, wanted, rcond=1e-10)[0]
        left = np.abs(matrix @ coefficients - wanted)
        if left.max() > COMPUTED * scale:
            worst = names[int(left.argmax())]
            raise NoDivergenceForm(f"condition {worst!r} is no combination of the normal fluxes of the equations")
        free = null_space(np.linalg.qr(matrix, mode="r"), rcond=1e-10)
    if free.shape[1]:
        skew = np.stack([_uneven(one[None]) for one in np.tensordot(free.T, directions, axes=1)], axis=1)
        start = _uneven(diffusion[:1] + np.tensordot(coefficients, directions, axes=1))
        step = np.linalg.lstsq(skew, -start, rcond=1e-10)[0]
        coefficients, free = coefficients + free @ step, free @ null_space(skew, rcond=1e-10)
    if free.shape[1]:
        coefficients = coefficients + free @ _most_positive(diffusion[0], coefficients, free, directions)
    twist = np.tensordot(coefficients, directions, axes=1)
    return np.where(np.abs(twist) > COMPUTED * scale, twist, 0.0)


def _flat_form(diffusion: Array) -> Array:
    """The symmetric part (…, K, d, F, d) of a diffusion (…, K, F, d, d), as a form of gradients."""
    turned = np.swapaxes(diffusion, -3, -2)
    return np.asarray(0.5 * (turned + np.moveaxis(turned, (-4, -3), (-2, -1))))


def _without_rotations(diffusion: Array) -> Array:
    """A diffusion (M, K, F, d, d) in whose fluxes of rotations, u_f = S_fj x_j, nothing is left that is rounding.

    Split coefficients are sums of larger ones, and a slender body turns (length/height)² times as much as it strains.
    """
    dim = diffusion.shape[-1]
    if diffusion.shape[1:3] != (dim, dim):
        return diffusion
    strained = 0.5 * (diffusion + diffusion.transpose(0, 3, 2, 1, 4))
    strained = 0.5 * (strained + strained.transpose(0, 1, 4, 3, 2))
    axes = (1, 2, 3, 4)
    gap, size = (np.abs(one).max(axis=axes, keepdims=True) for one in (diffusion - strained, diffusion))
    return np.asarray(np.where(gap <= 2 * dim * dim * EPS * size, strained, diffusion))


def strain_stiffnesses(diffusion: Array) -> tuple[Array, Array]:
    """Eigenvalues (M, K d) and eigenvectors (M, K d, K d) of a diffusion (M, K, F, d, d), as a form of gradients."""
    size = diffusion.shape[1] * diffusion.shape[3]
    return np.linalg.eigh(_flat_form(diffusion).reshape(-1, size, size))


def _softest(values: Array) -> Array:
    """The least stiffness (M,), but for strains without energy, as rotations."""
    largest = values.max(axis=1, keepdims=True)
    return np.asarray(np.where(values > ROUNDED * largest, values, np.inf).min(axis=1))


def _uneven(diffusion: Array) -> Array:
    """The differences of entries of a diffusion (M, K, F, d, d) that vanish if it is symmetric, as one row."""
    return np.asarray((diffusion - diffusion.transpose(0, 2, 1, 4, 3)).ravel())


def _natural_equations(form: WeakForm, directions: Array) -> tuple[Array, Array, list[str]]:
    """matrix · s = wanted, such that the conditions with derivatives are natural; the condition of each equation.

    Scaled such that a difference is one of diffusion coefficients.
    """
    matrix, wanted, names = [np.empty((0, len(directions)))], [np.empty(0)], []
    for term in form.terms:
        if not any(jet.order for jet in term.expression.jets):
            continue
        region = term.region
        assert isinstance(region, Side)
        points = region.sample(COEFFICIENT_SAMPLES, rng=0)
        normals = region.normals(points)
        slopes = form.condition(term, points, normals)[2]
        assert slopes is not None
        diffusion = form.at(points).diffusion
        combination = natural_combination(diffusion, slopes[:, None], normals)[:, 0]  # (M, K)
        size = np.linalg.norm(combination, axis=1)
        if not (size > COMPUTED).all() or not np.isfinite(size).all():
            raise NoDivergenceForm(f"condition {term.name!r} has no derivative along the normal")
        now = np.einsum("mk,mi,mkfij->mfj", combination, normals, diffusion)
        change = np.einsum("mk,mi,skfij->mfjs", combination, normals, directions)
        matrix.append((change / size[:, None, None, None]).reshape(-1, len(directions)))
        wanted.append(((slopes - now) / size[:, None, None]).ravel())
        names += [term.name] * len(wanted[-1])
    return np.concatenate(matrix), np.concatenate(wanted), names


def _most_positive(diffusion: Array, coefficients: Array, free: Array, directions: Array) -> Array:
    """Steps along the free directions after which the form has no negative eigenvalue at a point, if that can be."""
    size = diffusion.shape[0] * diffusion.shape[2]

    def matrix(step: Array) -> Array:
        whole = diffusion + np.tensordot(coefficients + free @ step, directions, axes=1)
        return _flat_form(whole).reshape(size, size)

    largest = float(np.linalg.eigvalsh(matrix(np.zeros(free.shape[1]))).max())
    step = np.zeros(free.shape[1])
    for aim in largest / 10 ** np.arange(1, 7):  # as far from zero as can be

        def lack(step: Array, aim: float = float(aim)) -> float:
            return float(np.square(np.maximum(aim - np.linalg.eigvalsh(matrix(step)), 0.0)).sum()) / aim**2

        step = np.asarray(minimize(lack, step, method="BFGS").x)
        if np.linalg.eigvalsh(matrix(step)).min() > 0:
            break
    return step
