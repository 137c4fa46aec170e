"""Newton systems on a tensor-product basis: Kronecker sums solved axis by axis, as preconditioners of GMRES.

The Jacobian of one field is approximated by J₀ = Σ_axes 1 ⊗ … ⊗ A_axis ⊗ … ⊗ 1, every coefficient replaced by its mean
over the other axes. With A = V T V⁻¹ on each axis, (shift - J₀) x = r costs two matrix products an axis and, where
all T are diagonal, a division (the fast diagonalisation method). Transport makes the eigenvectors ill-conditioned; T is
then the triangular factor of Schur's form, and the division a Sylvester equation (Bartels & Stewart). Where the
iteration x ← x + (shift - J₀)⁻¹ (r - (shift - J) x) would be slow, J₀ preconditions GMRES with the exact product J x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.linalg import schur, solve_triangular
from scipy.linalg.lapack import ztrsyl
from scipy.sparse.linalg import LinearOperator, gmres

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.lines.tensor.basis import along
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.tolerance import ALGEBRA_SHARE
from rannpde.rounding import EPS

WELL_CONDITIONED = EPS**-0.25
"""Condition number of eigenvectors up to which products with them and with their inverse leave half of the digits;
beyond it Schur's form is used."""


@dataclass(frozen=True, eq=False)
class SchurFactors:
    """A = vectors · T · dual with T upper triangular, or diag(values) where ``triangle`` is None."""

    vectors: Array
    dual: Array
    values: Array
    triangle: Array | None = None

    @classmethod
    def of(cls, matrix: Array) -> SchurFactors:
        if np.isrealobj(matrix) and np.abs(matrix - matrix.T).max() <= 1e-9 * np.abs(matrix).max():
            values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
            return cls(vectors, vectors.T, values)
        values, vectors = np.linalg.eig(matrix)
        if np.linalg.cond(vectors) < WELL_CONDITIONED:
            return cls(vectors, np.linalg.inv(vectors), values)
        triangle, vectors = schur(matrix, output="complex", check_finite=False)
        return cls(vectors, vectors.conj().T, np.diag(triangle).copy(), triangle)

    @property
    def upper(self) -> Array:
        """T as a matrix."""
        return np.diag(self.values) if self.triangle is None else self.triangle


class KroneckerSolve:
    """r → (shift - Σ_axes A_axis)⁻¹ r for tensors r of shape (r_1, …, r_d)."""

    def __init__(self, factors: Sequence[SchurFactors], shift: complex) -> None:
        self.factors, self.shift = factors, shift
        self.inverse: Array | None = None
        if all(one.triangle is None for one in factors):
            self.inverse = 1.0 / (shift - reduce(np.add.outer, [one.values for one in factors]))

    def __call__(self, rhs: Array) -> Array:
        for axis, one in enumerate(self.factors):
            rhs = along(one.dual, rhs, axis)
        if self.inverse is not None:
            rhs = rhs * self.inverse
        else:
            rhs = triangular_solve([one.upper for one in self.factors], self.shift, rhs)
        for axis, one in enumerate(self.factors):
            rhs = along(one.vectors, rhs, axis)
        return rhs


def triangular_solve(triangles: Sequence[Array], shift: complex, rhs: Array) -> Array:
    """(shift - Σ_axes T_axis)⁻¹ rhs for upper triangular T, by back substitution along the last axis."""
    if len(triangles) == 1:
        return np.asarray(solve_triangular(shift * np.eye(len(rhs)) - triangles[0], rhs, check_finite=False))
    if len(triangles) == 2:
        first = shift * np.eye(len(rhs)) - triangles[0]
        solution, scale, _ = ztrsyl(first, triangles[1].conj(), rhs.astype(complex), tranb="C", isgn=-1)
        return solution / scale
    last, solution = triangles[-1], np.zeros(rhs.shape, dtype=complex)
    for k in range(len(last) - 1, -1, -1):
        known = rhs[..., k] + solution[..., k + 1 :] @ last[k, k + 1 :]
        solution[..., k] = triangular_solve(triangles[:-1], shift - last[k, k], known)
    return solution


@dataclass(frozen=True, eq=False)
class FieldBlock:
    """The diagonal block of J₀ for one field.

    It is ∂_t u = Σ A_axis u for order 1, and ∂_tt u = Σ (A_axis u + D_axis u_t) for order 2.

    slices : of u, and of u_t, in the state; shape : (r_1, …, r_d)
    axis_matrices, damping : A_axis and D_axis, (r, r) for every axis
    """

    slices: tuple[slice, ...]
    shape: tuple[int, ...]
    axis_matrices: tuple[Array, ...]
    damping: tuple[Array, ...] = ()
    _factors: dict[str, list[SchurFactors]] = field(default_factory=dict, repr=False)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """A function that writes (shift - J₀)⁻¹ rhs into its second argument, on the slices of the field."""
        if len(self.slices) == 1:
            solve = KroneckerSolve(self._axis_factors(), shift)

            def first_order(rhs: Array, out: Array) -> None:
                out[self.slices[0]] = solve(rhs[self.slices[0]].reshape(self.shape)).ravel()

            return first_order
        damped = any(matrix.any() for matrix in self.damping)
        factors = (
            [SchurFactors.of(a + shift * b) for a, b in zip(self.axis_matrices, self.damping, strict=True)]
            if damped
            else self._axis_factors()
        )
        solve = KroneckerSolve(factors, shift**2)

        def second_order(rhs: Array, out: Array) -> None:
            """Eliminate u_t = shift u - r₀ from the second row."""
            above, below = (rhs[rows].reshape(self.shape) for rows in self.slices)
            value = below + shift * above
            if damped:
                value = value - sum(along(b, above, axis) for axis, b in enumerate(self.damping))
            value = solve(value)
            out[self.slices[0]] = value.ravel()
            out[self.slices[1]] = (shift * value - above).ravel()

        return second_order

    def _axis_factors(self) -> list[SchurFactors]:
        if "own" not in self._factors:
            self._factors["own"] = [SchurFactors.of(matrix) for matrix in self.axis_matrices]
        return self._factors["own"]

    def growth(self) -> float:
        """Largest real part of an eigenvalue of J₀, with damping replaced by its mean."""
        sums = reduce(np.add.outer, [one.values for one in self._axis_factors()]).ravel().astype(complex)
        if len(self.slices) == 1:
            return float(sums.real.max())
        mean = sum(np.trace(b) / len(b) for b in self.damping)
        return float(np.maximum(*((0.5 * (mean + sign * np.sqrt(mean**2 + 4 * sums))).real for sign in (1, -1))).max())


@dataclass(frozen=True, eq=False)
class CoupledBlock:
    """J₀ of several components on the same basis: one small matrix for each product of eigenvectors.

    slices : of the components in the state; symbols (r_1, …, r_d, c, c) : those matrices
    factors : of one matrix for each axis; all others are replaced by their diagonals in its eigenvectors
    """

    slices: tuple[slice, ...]
    shape: tuple[int, ...]
    factors: tuple[SchurFactors, ...]
    symbols: Array

    @classmethod
    def of(
        cls, slices: tuple[slice, ...], shape: tuple[int, ...], links: Mapping[tuple[int, int], Sequence[Array]]
    ) -> CoupledBlock | None:
        """The block, or None where eigenvectors are ill-conditioned.

        links : (row, column) → A_axis (r, r) for every axis
        """
        factors = []
        for axis in range(len(shape)):
            largest = max((matrices[axis] for matrices in links.values()), key=np.linalg.norm)
            factors.append(SchurFactors.of(largest))
        if any(one.triangle is not None for one in factors):
            return None
        symbols = np.zeros((*shape, len(slices), len(slices)), dtype=complex)
        for (row, column), matrices in links.items():
            values = [np.einsum("ij,ji->i", f.dual @ m, f.vectors) for f, m in zip(factors, matrices, strict=True)]
            symbols[..., row, column] += reduce(np.add.outer, values)
        return cls(slices, shape, tuple(factors), symbols)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """A function that writes (shift - J₀)⁻¹ rhs into its second argument, on the slices of the components."""
        inverses = np.linalg.inv(shift * np.eye(len(self.slices)) - self.symbols)

        def solve(rhs: Array, out: Array) -> None:
            tensor = np.stack([rhs[rows].reshape(self.shape) for rows in self.slices], axis=-1)
            for axis, one in enumerate(self.factors):
                tensor = along(one.dual, tensor, axis)
            tensor = np.einsum("...ij,...j->...i", inverses, tensor)
            for axis, one in enumerate(self.factors):
                tensor = along(one.vectors, tensor, axis)
            for k, rows in enumerate(self.slices):
                out[rows] = tensor[..., k].ravel()

        return solve

    def growth(self) -> float:
        """Largest real part of an eigenvalue of J₀."""
        return float(np.linalg.eigvals(self.symbols).real.max())


@dataclass(frozen=True, eq=False)
class DiagonalBlock:
    """J₀ = diag(values) on all of the state."""

    values: Array

    @property
    def slices(self) -> tuple[slice, ...]:
        return (slice(0, len(self.values)),)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        inverse = 1.0 / (shift - self.values)

        def solve(rhs: Array, out: Array) -> None:
            out[:] = inverse * rhs

        return solve

    def growth(self) -> float:
        return float(self.values.max())


class StateBlock(Protocol):
    """A diagonal block of J₀, which acts on some slices of the state."""

    @property
    def slices(self) -> tuple[slice, ...]: ...

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """A function that writes (shift - J₀)⁻¹ rhs into its second argument, on these slices."""
        ...

    def growth(self) -> float:
        """Largest real part of an eigenvalue."""
        ...


@dataclass(frozen=True, eq=False)
class KroneckerBlocks:
    """A ``JacobianOperator``: J₀ in blocks, and the product with the exact Jacobian.

    product : x (n,) → J x; exact : whether J₀ is J
    """

    blocks: tuple[StateBlock, ...]
    product: Callable[[Array], Array]
    exact: bool
    tuning: LinesTuning = field(default_factory=LinesTuning)

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        direct = self._direct(shift)
        if self.exact or self._contraction(shift, direct) < self.tuning.slow_contraction:
            return direct
        return self._krylov(shift, direct)

    def _direct(self, shift: complex) -> Callable[[Array], Array]:
        solvers = [block.solver(shift) for block in self.blocks]

        def solve(rhs: Array) -> Array:
            real = not np.iscomplexobj(rhs) and not np.iscomplexobj(shift)
            out = np.empty(len(rhs), dtype=complex)
            for one in solvers:
                one(rhs, out)
            return out.real if real else out

        return solve

    def _contraction(self, shift: complex, direct: Callable[[Array], Array]) -> float:
        """The factor by which a correction with J₀ alone reduces the residual, by a few steps of the power method."""
        size = max(rows.stop for block in self.blocks for rows in block.slices)
        rhs = np.random.default_rng(0).standard_normal(size).astype(complex)
        rate = 0.0
        for _ in range(self.tuning.power_steps):
            checkpoint()
            solution = direct(rhs)
            residual = self.product(solution) - shift * solution + rhs  # (J - J₀)(shift - J₀)⁻¹ rhs
            rate = float(np.linalg.norm(residual) / np.linalg.norm(rhs))
            if not 0 < rate < self.tuning.slow_contraction:
                break
            rhs = residual / np.linalg.norm(residual)
        return rate

    def _krylov(self, shift: complex, direct: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """GMRES on (shift - J₀)⁻¹ (shift - J) x = (shift - J₀)⁻¹ r: it measures errors, not residuals of stiff
        modes."""

        def solve(rhs: Array) -> Array:
            kind = complex if np.iscomplexobj(rhs) or np.iscomplexobj(shift) else float

            def preconditioned(x: Array) -> Array:
                checkpoint()
                return direct(shift * x - self.product(x))

            whole = LinearOperator((len(rhs), len(rhs)), preconditioned, dtype=kind)
            solution, _ = gmres(whole, direct(rhs), rtol=ALGEBRA_SHARE, restart=self.tuning.krylov_steps, maxiter=1)
            return np.asarray(solution)

        return solve
